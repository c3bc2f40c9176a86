//! One page, in the macros of man(7).

use super::told::{ENVIRONMENT, FILES, Told, related, statuses};
use clap::builder::PossibleValue;
use clap::{Arg, Command};
use roff::{Inline, Roff, bold, italic, roman};

/// When what stands here was last changed in a release; raised with the version.
const DATE: &str = "2026-11-24";

/// The page of a command of this name, such as `teeperf-record`.
pub(crate) fn page(name: &str, command: &Command) -> String {
    let mut roff = Roff::new();
    let version = format!("teeperf {}", env!("CARGO_PKG_VERSION"));
    roff.control("TH", [&name.to_uppercase(), "1", DATE, &version, "teeperf"]);
    section(&mut roff, "NAME");
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    roff.text([roman(format!("{name} - {about}"))]);
    section(&mut roff, "SYNOPSIS");
    let usage = command.clone().render_usage().to_string();
    lines(&mut roff, usage.strip_prefix("Usage: ").unwrap_or(&usage).lines());
    section(&mut roff, "DESCRIPTION");
    let described = command.get_long_about().or(command.get_about()).map(ToString::to_string);
    paragraphs(&mut roff, described.as_deref().unwrap_or_default());
    let help = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
    let blocks = help.as_deref().map(blocks).unwrap_or_default();
    let (of_examples, others): (Vec<&Block<'_>>, Vec<_>) =
        blocks.iter().partition(|block| block.title == Some("Examples"));
    for block in others {
        match block.title {
            Some(title) => roff.control("SS", [title]),
            None => roff.control("PP", []),
        };
        lines(&mut roff, block.lines.iter().copied());
    }
    options(&mut roff, command);
    subcommands(&mut roff, name, command);
    section(&mut roff, "EXIT STATUS");
    for (status, text) in statuses(command.get_name()) {
        match *status {
            "" => paragraphs(&mut roff, text),
            status => entry(&mut roff, [bold(status)], text),
        }
    }
    told(&mut roff, "ENVIRONMENT", ENVIRONMENT, command.get_name());
    told(&mut roff, "FILES", FILES, command.get_name());
    if let Some(block) = of_examples.first() {
        section(&mut roff, "EXAMPLES");
        lines(&mut roff, block.lines.iter().copied());
    }
    see_also(&mut roff, name, command);
    roff.render()
}

fn section(roff: &mut Roff, title: &str) {
    roff.control("SH", [title]);
}

/// A thing, and below it what is said of it.
fn entry<const N: usize>(roff: &mut Roff, thing: [Inline; N], text: &str) {
    roff.control("TP", []);
    roff.text(thing);
    roff.text([roman(joined(text))]);
}

/// Texts between empty lines, each filled by itself.
fn paragraphs(roff: &mut Roff, text: &str) {
    for (number, paragraph) in text.split("\n\n").enumerate() {
        if number > 0 {
            roff.control("PP", []);
        }
        roff.text([roman(joined(paragraph))]);
    }
}

/// Lines as they stand, behind a heading.
fn lines<'a>(roff: &mut Roff, all: impl IntoIterator<Item = &'a str>) {
    roff.control("nf", []);
    for line in all {
        // An empty line would end what stands as it is.
        roff.text([roman(line.trim_end())]);
    }
    roff.control("fi", []);
}

/// On one line, which the reader's terminal breaks.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A part of what stands behind the options in help.
struct Block<'a> {
    /// Of a block that begins with a line of its own, such as `Examples:`.
    title: Option<&'a str>,
    lines: Vec<&'a str>,
}

fn blocks(help: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    for block in help.split("\n\n") {
        let mut lines: Vec<&str> = block.lines().collect();
        let title = match lines[..] {
            [first, second, ..] if second.starts_with("  ") && !first.starts_with(' ') => {
                first.strip_suffix(':')
            }
            _ => None,
        };
        if title.is_some() {
            lines.remove(0);
        }
        blocks.push(Block { title, lines });
    }
    blocks
}

fn options(roff: &mut Roff, command: &Command) {
    let shown = || command.get_arguments().filter(|arg| !arg.is_hide_set());
    if shown().next().is_none() {
        return;
    }
    section(roff, "OPTIONS");
    for arg in
        shown().filter(|arg| arg.is_positional()).chain(shown().filter(|arg| !arg.is_positional()))
    {
        roff.control("TP", []);
        roff.text(heading(arg));
        let help =
            arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
        let mut text = joined(&help);
        let defaults = arg.get_default_values().iter().map(|value| value.to_string_lossy());
        let defaults = defaults.collect::<Vec<_>>().join(", ");
        if arg.get_action().takes_values()
            && !defaults.is_empty()
            && !arg.is_hide_default_value_set()
        {
            text += &format!(" [default: {defaults}]");
        }
        roff.text([roman(text)]);
        let values = arg.get_possible_values();
        let values =
            values.iter().filter(|value| arg.get_action().takes_values() && !value.is_hide_set());
        let values: Vec<&PossibleValue> = values.collect();
        if !values.is_empty() {
            roff.control("RS", []);
            for value in values {
                let help = value.get_help().map(ToString::to_string).unwrap_or_default();
                roff.control("TP", []);
                roff.text([bold(value.get_name())]);
                roff.text([roman(joined(&help))]);
            }
            roff.control("RE", []);
        }
    }
}

/// As it is typed.
fn heading(arg: &Arg) -> Vec<Inline> {
    let mut parts = Vec::new();
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    for name in short.into_iter().chain(long) {
        if !parts.is_empty() {
            parts.push(roman(", "));
        }
        parts.push(bold(name));
    }
    if arg.is_positional() || arg.get_action().takes_values() {
        let names = arg.get_value_names().unwrap_or_default();
        let names = names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let name = if names.is_empty() { arg.get_id().to_string().to_uppercase() } else { names };
        if !parts.is_empty() {
            parts.push(roman(" "));
        }
        parts.push(italic(name));
    }
    parts
}

fn subcommands(roff: &mut Roff, name: &str, command: &Command) {
    let mut below = command.get_subcommands().filter(|below| !below.is_hide_set()).peekable();
    if below.peek().is_none() {
        return;
    }
    section(roff, "COMMANDS");
    for one in below {
        let about = one.get_about().map(ToString::to_string).unwrap_or_default();
        entry(roff, [bold(format!("{name}-{}", one.get_name())), roman("(1)")], &about);
    }
}

fn told(roff: &mut Roff, title: &str, all: &[Told], command: &str) {
    let mut shown = all.iter().filter(|told| told.is_on(command)).peekable();
    if shown.peek().is_some() {
        section(roff, title);
    }
    for Told { name, text, .. } in shown {
        entry(roff, [bold(*name)], text);
    }
}

fn see_also(roff: &mut Roff, name: &str, command: &Command) {
    let below = command.get_subcommands().filter(|below| !below.is_hide_set());
    let mut pages: Vec<String> =
        below.map(|below| format!("{name}-{}", below.get_name())).collect();
    pages.extend(related(command.get_name()).iter().map(|page| (*page).to_owned()));
    if name != "teeperf" {
        pages.push("teeperf".into());
    }
    pages.retain(|page| page != name);
    pages.sort();
    pages.dedup();
    section(roff, "SEE ALSO");
    let mut parts = Vec::new();
    for (number, page) in pages.iter().enumerate() {
        parts.push(bold(page.clone()));
        parts.push(roman(if number + 1 < pages.len() { "(1), " } else { "(1)" }));
    }
    roff.text(parts);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_has_blocks_with_and_without_titles() {
        let help = "Words for people.\n\nConditions:\n  'a > 1'   so\n\nExamples:\n  teeperf x\n  teeperf y";
        let told: Vec<_> =
            blocks(help).into_iter().map(|block| (block.title, block.lines.len())).collect();
        assert_eq!(told, [(None, 1), (Some("Conditions"), 1), (Some("Examples"), 2)]);
    }
}
