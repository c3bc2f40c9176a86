//! Help as wide as the terminal. clap wraps what follows the options line by line, and would break examples and tables
//! that are written for one width once more in their midst: so these are laid out here, for the width at hand.

use crate::commands::terminal;
use clap::Command;

/// Columns where nothing tells how many there are, and most that are used: longer lines read badly.
const MOST: usize = 100;
/// Fewest that anything is laid out for.
const LEAST: usize = 40;
/// Columns that an explanation keeps beside what it explains; with fewer it stands below.
const BESIDE: usize = 28;
/// In front of explanations that stand below.
const BELOW: &str = "      ";

/// A definition with help for this terminal.
pub(crate) fn for_terminal(command: Command) -> Command {
    laid_out(command, terminal::columns().unwrap_or(MOST).clamp(LEAST, MOST))
}

fn laid_out(command: Command, width: usize) -> Command {
    let mut command = command.term_width(width);
    if let Some(text) = command.get_after_help() {
        let text = layout(&text.to_string(), width);
        command = command.after_help(text);
    }
    if let Some(text) = command.get_after_long_help() {
        let text = layout(&text.to_string(), width);
        command = command.after_long_help(text);
    }
    let names: Vec<String> =
        command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for name in names {
        command = command.mut_subcommand(name, |command| laid_out(command, width));
    }
    command
}

/// A text of paragraphs, and of rows that begin with two spaces: what two more spaces divide is an explanation, which goes
/// on in lines that are farther in.
fn layout(text: &str, width: usize) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.is_empty() {
            out.push(String::new());
        } else if line.starts_with("  ") {
            let mut rows: Vec<(String, String)> = vec![row(line)];
            while let Some(line) = lines.next_if(|line| line.starts_with("  ")) {
                let text = line.trim_start();
                match rows.last_mut() {
                    Some((_, explained))
                        if line.len() - text.len() > 12 && !explained.is_empty() =>
                    {
                        explained.push(' ');
                        explained.push_str(text);
                    }
                    _ => rows.push(row(line)),
                }
            }
            table(&rows, width, &mut out);
        } else {
            let mut paragraph = line.to_owned();
            while let Some(line) = lines.next_if(|line| !line.is_empty() && !line.starts_with("  "))
            {
                paragraph.push(' ');
                paragraph.push_str(line);
            }
            out.extend(wrap(&paragraph, width));
        }
    }
    out.join("\n")
}

/// What stands in a row, and what explains it.
fn row(line: &str) -> (String, String) {
    let text = line.trim();
    let (left, right) = text.split_once("  ").unwrap_or((text, ""));
    (left.to_owned(), right.trim_start().to_owned())
}

fn table(rows: &[(String, String)], width: usize, out: &mut Vec<String>) {
    let columns = |text: &str| text.chars().count();
    let explained = rows.iter().filter(|(_, right)| !right.is_empty());
    let column = 2 + explained.map(|(left, _)| columns(left)).max().unwrap_or(0) + 2;
    let is_beside = column + BESIDE <= width;
    for (left, right) in rows {
        if right.is_empty() || !is_beside {
            out.extend(example(left, width));
        }
        if right.is_empty() {
            continue;
        }
        let (first, indent) = match is_beside {
            true => (format!("  {left:<0$}", column - 2), " ".repeat(column)),
            false => (BELOW.into(), BELOW.into()),
        };
        let lines = wrap(right, width - columns(&indent));
        for (at, line) in lines.iter().enumerate() {
            out.push(format!("{}{line}", if at == 0 { &first } else { &indent }));
        }
    }
}

/// A command, which goes on in further lines as a shell takes it.
fn example(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::from(" ")];
    for word in words(text) {
        let Some(line) = lines.last_mut() else { break };
        // Room for the word, a space, and the backslash behind it.
        if line.len() > 4 && line.chars().count() + word.chars().count() + 3 > width {
            line.push_str(" \\");
            lines.push(format!("   {word}"));
            lines.last_mut().into_iter().for_each(|line| line.insert(0, ' '));
        } else {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines
}

/// Parts between spaces that are not within quotes.
fn words(text: &str) -> Vec<&str> {
    let (mut begin, mut quote) = (0, None);
    let mut found = Vec::new();
    for (at, c) in text.char_indices() {
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (' ', None) => {
                found.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    found.push(&text[begin..]);
    found
}

fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    const TEXT: &str = "\
Words of two
lines.

Examples:
  teeperf report                     the newest recording in this folder, wherever it was made
  teeperf report --sort calls 'a b'  what is called most
                                     of all
  teeperf diff --fail-if 'total > +3%' --fail-if 'any self > +10%' a.teeperf b.teeperf";

    #[test]
    fn explanations_stand_beside_or_below() {
        assert_eq!(
            layout(TEXT, 80),
            "Words of two lines.

Examples:
  teeperf report                     the newest recording in this folder,
                                     wherever it was made
  teeperf report --sort calls 'a b'  what is called most of all
  teeperf diff --fail-if 'total > +3%' --fail-if 'any self > +10%' a.teeperf \\
    b.teeperf"
        );
        assert_eq!(
            layout(TEXT, 50),
            "Words of two lines.

Examples:
  teeperf report
      the newest recording in this folder,
      wherever it was made
  teeperf report --sort calls 'a b'
      what is called most of all
  teeperf diff --fail-if 'total > +3%' --fail-if \\
    'any self > +10%' a.teeperf b.teeperf"
        );
    }

    #[test]
    fn no_help_is_wider_than_its_terminal() {
        fn check(command: &mut Command, width: usize) {
            let help = command.render_long_help().to_string();
            // How it is used clap writes on one line.
            let lines = help.lines().filter(|line| !line.starts_with("Usage:"));
            for line in lines.filter(|line| line.chars().count() > width) {
                // What cannot be broken: one word.
                assert!(words(line.trim()).len() < 2, "{width}: {}: {line}", command.get_name());
            }
            command.get_subcommands_mut().for_each(|command| check(command, width));
        }
        for width in [60, 80, 100] {
            let mut command = laid_out(Cli::command(), width);
            command.build();
            check(&mut command, width);
        }
    }
}
