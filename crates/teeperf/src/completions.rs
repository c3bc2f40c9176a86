//! Completions for shells, of the same definition as parsing. What makes them knows files, and no recordings: where a command
//! reads these, each script is given what offers recordings, archives of them, files of gprof, and folders, and any file where there are none.

use crate::manual;
use clap::{Arg, Command};
use clap_complete::Shell;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// What values are called that are recordings.
const RECORDINGS: [&str; 4] = ["RECORDING", "BEFORE", "AFTER", "MORE"];

const BASH: &str = r#"
# Recordings, archives of them, files of gprof, and folders, where a command reads recordings; the shell has any file where there are none.
_teeperf_with_recordings() {
    _teeperf "$@"
    local valued
    case "${COMP_WORDS[1]}" in
@CASES@        *)
            return 0
            ;;
    esac
    if [[ ${COMP_CWORD} -lt 2 || $2 == -* || $3 == "=" || " ${valued} " == *" $3 "* ]] ; then
        return 0
    fi
    compopt -o filenames
    mapfile -t COMPREPLY < <(
        compgen -f -X '!*.teeperf' -- "$2"
        compgen -f -X '!*.tar.zst' -- "$2"
        compgen -f -X '!*gmon*.out' -- "$2"
        compgen -d -X '*.teeperf' -- "$2"
    )
}
"#;

const ZSH_FILES: &str = r#"_files -g "(*.(teeperf|tar.zst)|gmon*.out)""#;

const FISH: &str = r"
# Recordings, archives of them, files of gprof, and folders, where a command reads recordings; any file where there are none.
function __fish_teeperf_recordings
    set -l files (complete -C '__fish_command_without_completions '(commandline -ct))
    string match -r -- '^.*(?:\.teeperf|\.tar\.zst|gmon[^/]*\.out|/)$' $files
    or printf '%s\n' $files
end

";

/// Within the function that completes.
const ELVISH: &str = r"    # Recordings, archives of them, files of gprof, and folders; any file where there are none.
    fn recordings {|word|
        if (str:has-prefix $word '-') {
            return
        }
        var all = [(edit:complete-filename $word | each {|file| if (str:has-prefix $file[stem] $word) { put $file } })]
        var those = [(each {|file| if (re:match '(\.teeperf|\.tar\.zst|gmon[^/]*\.out|/)$' $file[stem]) { put $file } } $all)]
        if (== 0 (count $those)) {
            set those = $all
        }
        all $those
    }
";

/// What stands at the end of it; and what goes before, since words that are no command may stand on the line.
const ELVISH_END: &str = "    $completions[$command]\n";
const ELVISH_KNOWN: &str = "    while (not (has-key $completions $command)) {
        set command = $command[..(str:last-index $command ';')]
    }
";

/// The script for a shell.
pub(crate) fn script(shell: Shell) -> String {
    let mut cli = manual::definition();
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut cli, "teeperf", &mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match shell {
        Shell::Bash => bash(&cli, &text),
        Shell::Zsh => zsh(&cli, &text),
        Shell::Fish => text + &fish(&cli),
        Shell::Elvish => elvish(&cli, &text),
        _ => text,
    }
}

fn is_recording(arg: &Arg) -> bool {
    let mut names = arg.get_value_names().unwrap_or_default().iter();
    arg.is_positional() && names.any(|name| RECORDINGS.contains(&name.as_str()))
}

/// Commands that read recordings.
fn readers(cli: &Command) -> impl Iterator<Item = &Command> {
    cli.get_subcommands().filter(|command| command.get_positionals().any(is_recording))
}

fn bash(cli: &Command, text: &str) -> String {
    let mut cases = String::new();
    for command in readers(cli) {
        let options = command.get_opts().flat_map(|option| {
            let long = option.get_long().map(|name| format!("--{name}"));
            long.into_iter().chain(option.get_short().map(|letter| format!("-{letter}")))
        });
        let valued = options.collect::<Vec<_>>().join(" ");
        let name = command.get_name();
        // Writing to a text does not fail.
        let _ = writeln!(cases, "        {name})\n            valued=\"{valued}\"\n            ;;");
    }
    let text = text.replace("complete -F _teeperf ", "complete -F _teeperf_with_recordings ");
    text + &BASH.replace("@CASES@", &cases)
}

fn zsh(cli: &Command, text: &str) -> String {
    let args = readers(cli).flat_map(Command::get_positionals).filter(|arg| is_recording(arg));
    let places: BTreeSet<String> = args.map(zsh_place).collect();
    let mut lines: Vec<String> = Vec::new();
    let mut is_second = false;
    for line in text.lines() {
        let is_one =
            places.iter().any(|place| line.trim_start_matches(['\'', '*', ':']).starts_with(place));
        let ends = ["_files' \\", "_default' \\"];
        match ends.iter().find_map(|end| line.strip_suffix(end)).filter(|_| is_one) {
            // It would ask once more, find nothing new, and have any file.
            Some(_) if is_second => {
                let first = lines.pop().unwrap_or_default();
                lines.push(first.replacen("'::", "'*:", 1));
            }
            Some(rest) => lines.push(format!("{rest}{ZSH_FILES}' \\")),
            None => lines.push(line.to_owned()),
        }
        is_second = is_one;
    }
    lines.join("\n") + "\n"
}

/// How the line of a positional argument begins, behind what says how many there may be.
fn zsh_place(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let words = help.split(|letter: char| letter != ' ' && !letter.is_alphanumeric()).next();
    format!("{} -- {}", arg.get_id(), words.unwrap_or_default())
}

fn fish(cli: &Command) -> String {
    readers(cli).fold(FISH.to_owned(), |text, command| {
        let name = command.get_name();
        let condition = format!("__fish_teeperf_using_subcommand {name}");
        text + &format!(
            "complete -c teeperf -n \"{condition}\" -f -k -a '(__fish_teeperf_recordings)'\n"
        )
    })
}

fn elvish(cli: &Command, text: &str) -> String {
    let begin = "    var command = 'teeperf'\n";
    let text = text.replacen("use str;", "use re;\nuse str;", 1);
    let text = text.replacen(begin, &format!("{ELVISH}{begin}"), 1);
    let text = text.replacen(ELVISH_END, &format!("{ELVISH_KNOWN}{ELVISH_END}"), 1);
    readers(cli).fold(text, |text, command| {
        let block = format!("&'teeperf;{}'= {{\n", command.get_name());
        text.replacen(&block, &format!("{block}            recordings $words[-1]\n"), 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is put into a script has its place there, whatever made the script.
    #[test]
    fn each_command_that_reads_recordings_offers_them() {
        let cli = manual::definition();
        let names: Vec<&str> = readers(&cli).map(Command::get_name).collect();
        for name in
            ["report", "annotate", "diff", "flame", "info", "cut", "repair", "merge", "pack"]
        {
            assert!(names.contains(&name), "{names:?}");
        }
        assert!(!names.contains(&"record") && !names.contains(&"import"), "{names:?}");
        let of = |shell, text: &str| script(shell).matches(text).count();
        assert_eq!(of(Shell::Bash, "complete -F _teeperf_with_recordings "), 2);
        assert_eq!(of(Shell::Bash, "            valued=\"--"), names.len());
        assert_eq!(of(Shell::Zsh, ZSH_FILES), names.len());
        assert_eq!(of(Shell::Zsh, "'*:recording -- "), 1, "of report");
        assert_eq!(of(Shell::Fish, "(__fish_teeperf_recordings)"), names.len());
        assert_eq!(of(Shell::Elvish, "    recordings $words[-1]\n"), names.len());
        for text in ["use re;\n", "fn recordings", ELVISH_KNOWN] {
            assert_eq!(of(Shell::Elvish, text), 1, "{text}");
        }
    }
}
