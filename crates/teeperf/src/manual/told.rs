//! What stands in manual pages beside the options: variables, files and exit statuses. Each is told once, with the commands that
//! it is for.

/// A thing, what is said of it, and the commands whose pages have it beside the first page; none, it is of all.
pub(super) struct Told {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
    of: &'static [&'static str],
}

impl Told {
    /// Whether the page of this command has it; the first page, of `teeperf`, has all.
    pub(super) fn is_on(&self, command: &str) -> bool {
        command == "teeperf" || self.of.is_empty() || self.of.contains(&command)
    }
}

const fn told(name: &'static str, of: &'static [&'static str], text: &'static str) -> Told {
    Told { name, text, of }
}

const BUILDING: &[&str] = &["cc", "c++", "flags", "install-wrappers", "doctor"];
const CACHING: &[&str] = &["cc", "c++", "flags", "record", "serve-memory", "demo", "doctor"];
const WRITING: &[&str] = &["record", "serve-memory", "import", "cut", "merge", "repair", "collect"];
const READING: &[&str] = &[
    "report", "flame", "dump", "export", "annotate", "diff", "suggest", "info", "cut", "merge",
    "repair", "pack", "doctor",
];

/// Variables of the environment.
pub(super) const ENVIRONMENT: &[Told] = &[
    told(
        "TEEPERF_CC",
        BUILDING,
        "The C compiler to stand in for; it may hold words, as in `ccache gcc`. Otherwise the first of cc, gcc and clang in PATH.",
    ),
    told("TEEPERF_CXX", BUILDING, "The same for C++: otherwise c++, g++, clang++."),
    told(
        "TEEPERF_CC_OPTIONS",
        BUILDING,
        "Options of the wrapper, --teeperf-…, for all its calls, ahead of those on the command line.",
    ),
    told(
        "TEEPERF_CONFIG",
        &[],
        "A file of settings in place of the project's teeperf.toml. Empty: no file holds, and the user's neither.",
    ),
    told(
        "TEEPERF_SOCKET",
        &["record"],
        "Set by the recorder for the programs that it starts: where they find it.",
    ),
    told(
        "TEEPERF_SGX_USAGE",
        &["record"],
        "0: with --sgx, page faults and context switches in ECALLs are not counted, which takes a system call at each crossing.",
    ),
    told(
        "XDG_CONFIG_HOME",
        &[],
        "The folder of the user's settings, teeperf/config.toml; otherwise ~/.config.",
    ),
    told(
        "XDG_CACHE_HOME",
        CACHING,
        "The folder of what teeperf keeps; otherwise ~/.cache. A path with a space or a colon cannot be preloaded from.",
    ),
    told("HOME", CACHING, "Where the two folders above are when they are not named."),
    told(
        "TMPDIR",
        CACHING,
        "For what is kept when there is no other place, and for trials of doctor; otherwise /tmp.",
    ),
    told("PATH", BUILDING, "Where compilers and programs are looked for."),
    told(
        "RUSTC",
        &["install-sdk", "doctor", "cargo"],
        "The Rust compiler; otherwise rustc in PATH.",
    ),
    told("CARGO", &["cargo"], "The cargo that builds; otherwise cargo in PATH."),
    told(
        "NO_COLOR",
        &[],
        "When it is set and not empty, text has no colour; --color says otherwise.",
    ),
    told(
        "CLICOLOR_FORCE",
        &[],
        "When it is set, and neither empty nor 0, text has colour in pipes and files too, unless NO_COLOR is set.",
    ),
    told("CLICOLOR", &[], "0: no colour on terminals."),
    told("TERM", &[], "dumb: no colour."),
    told(
        "COLUMNS",
        &[],
        "How wide tables and the text of --help are, where they go to no terminal that says it; otherwise 100.",
    ),
];

/// Files and folders.
pub(super) const FILES: &[Told] = &[
    told(
        "teeperf.toml",
        &[],
        "In the current folder or the nearest above: how a project is built ([build]), and options of commands. See teeperf-config(1).",
    ),
    told("~/.config/teeperf/config.toml", &[], "The user's own settings. See teeperf-config(1)."),
    told(
        "~/.cache/teeperf/",
        CACHING,
        "The runtime that hooked programs are linked with. It may be removed at any time.",
    ),
    told(
        "*.teeperf",
        WRITING,
        "Recordings, of the format that docs/format.md describes. Programs' recordings are named after them.",
    ),
    told(
        "/usr/lib/debug/.build-id/",
        READING,
        "Where names and lines of stripped programs and libraries are looked for.",
    ),
];

/// What a command's exit status says, beside 0 for success.
pub(super) fn statuses(command: &str) -> &'static [(&'static str, &'static str)] {
    const USUAL: &[(&str, &str)] = &[
        ("0", "It is done."),
        ("1", "It failed; standard error says why."),
        ("2", "The command line is wrong."),
    ];
    match command {
        "cc" | "c++" => &[("", "That of the compiler; 1 where it was not started.")],
        "record" | "serve-memory" => &[
            (
                "",
                "That of the program; 128 and the number of the signal that ended it, 126 or 127 where it could not be started.",
            ),
            ("0", "Without a program: the recording ended in order."),
            (
                "1",
                "It could not be recorded, or, with --to, not all was kept, and the program's own is 0.",
            ),
            ("2", "The command line is wrong."),
        ],
        "diff" => &[
            ("0", "The runs were compared, and no condition of --fail-if is met."),
            ("1", "A condition of --fail-if is met."),
            ("2", "There is no answer, or the command line is wrong."),
        ],
        "doctor" => &[
            ("0", "Nothing essential is missing."),
            ("1", "Something is, or it could not be looked at."),
            ("2", "The command line is wrong."),
        ],
        "selection" => &[
            ("0", "Each pattern fits a function."),
            ("1", "One fits none, or a file cannot be read."),
            ("2", "The command line is wrong."),
        ],
        "import" => &[
            ("0", "All pieces are in the recording."),
            ("1", "Some were damaged and left out, or it failed."),
            ("2", "The command line is wrong."),
        ],
        _ => USUAL,
    }
}

/// Pages that those of a command lead to.
pub(super) fn related(command: &str) -> &'static [&'static str] {
    match command {
        "cc" | "c++" | "flags" | "install-wrappers" => {
            &["teeperf-selection", "teeperf-suggest", "teeperf-record"]
        }
        "record" => {
            &["teeperf-cc", "teeperf-ctl", "teeperf-report", "teeperf-collect", "teeperf-doctor"]
        }
        "collect" => &["teeperf-record"],
        "report" | "flame" | "annotate" | "dump" | "export" => {
            &["teeperf-record", "teeperf-diff", "teeperf-info"]
        }
        "diff" => &["teeperf-report", "teeperf-record"],
        "cut" | "merge" | "repair" | "pack" | "info" => &["teeperf-record", "teeperf-report"],
        "suggest" | "selection" => &["teeperf-cc", "teeperf-report"],
        "pause" | "resume" | "ctl" => &["teeperf-record"],
        "doctor" | "config" => &["teeperf-record", "teeperf-cc"],
        "import" | "serve-memory" | "install-sdk" => &["teeperf-record", "teeperf-report"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Names behind `begins` in all sources of a folder.
    fn names(folder: &Path, begins: &[&str], out: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                names(&path, begins, out);
                continue;
            }
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            for begin in begins {
                for (at, _) in text.match_indices(begin) {
                    let name = text[at + begin.len()..].split('"').next().unwrap_or_default();
                    let prefix = begin.rsplit('"').next().unwrap_or_default();
                    out.insert(format!("{prefix}{name}"));
                }
            }
        }
    }

    #[test]
    fn each_variable_is_told_once() {
        let mut asked = BTreeSet::new();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        names(
            &sources,
            &[
                "var_os(\"",
                "env::var(\"",
                "= \"TEEPERF_",
                "=> \"TEEPERF_",
                "is_said(\"",
                "absolute(\"",
                "is(\"",
            ],
            &mut asked,
        );
        asked.insert(teeperf_wire::hello::SOCKET_VARIABLE.to_owned());
        let told: Vec<&str> = ENVIRONMENT.iter().map(|told| told.name).collect();
        let unknown: Vec<&String> = asked
            .iter()
            .filter(|name| {
                name.chars().all(|c| c.is_ascii_uppercase() || c == '_') && !name.is_empty()
            })
            .filter(|name| !told.contains(&name.as_str()))
            .collect();
        assert_eq!(unknown, Vec::<&String>::new());
        assert!(asked.contains("NO_COLOR") && asked.contains("TEEPERF_CC"), "{asked:?}");
        assert_eq!(told.iter().collect::<BTreeSet<_>>().len(), told.len());
    }

    #[test]
    fn what_is_told_is_of_commands_that_there_are() {
        let cli = super::super::definition();
        let known: BTreeSet<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
        let of = ENVIRONMENT.iter().chain(FILES).flat_map(|told| told.of);
        let unknown: Vec<_> = of.filter(|name| !known.contains(**name)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        let pages: BTreeSet<String> =
            super::super::pages(&cli).into_iter().map(|(name, _)| name).collect();
        for name in known {
            let missing: Vec<_> =
                related(name).iter().filter(|page| !pages.contains(**page)).collect();
            assert!(missing.is_empty(), "{name}: {missing:?}");
        }
    }
}
