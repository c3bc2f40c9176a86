//! What files can set: the options of commands, by the names that they have on the command line. Nothing is listed here:
//! what an option is called and takes is what `cli.rs` says.

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, Command};
use std::any::TypeId;
use std::path::PathBuf;

/// Commands that read the settings to tell of them.
const TELLING: [&str; 2] = ["config", "doctor"];
/// Commands of which a project's file sets nothing: they take what strangers send, write what is passed on, or set up the user's own
/// system.
const USERS_COMMANDS: [&str; 5] = ["collect", "completions", "demo", "install-sdk", "pack"];
/// What a project's file may set, of all other commands: what is measured, and what of it is shown. All else is the user's
/// (docs/trust.md), and so is a new option, until it stands here.
const PROJECTS: &[&str] = &[
    // What is built and recorded, and how.
    "attributes",
    "call-graph",
    "cflags",
    "clang",
    "clock",
    "counter-hz",
    "dependency",
    "events",
    "exclude",
    "exclude-thread",
    "fold-recursion",
    "hz",
    "interval",
    "libs",
    "limit-size",
    "limit-time",
    "module",
    "on-full",
    "only",
    "only-thread",
    "optee",
    "paused",
    "period",
    "probe",
    "quiet",
    "rotate",
    "sample",
    "sample-constant",
    "sample-within",
    "sample-buffer",
    "sgx",
    "shared",
    "size",
    "stacks",
    "static",
    "timed",
    "tree-size",
    "trigger",
    // What is read of it.
    "bias",
    "check",
    "event",
    "focus",
    "fold-unhooked",
    "group",
    "ignore",
    "most-paths",
    "no-cpu-samples",
    "no-inline",
    "packets",
    "path",
    "process",
    "root",
    "since",
    "thread",
    "until",
    // What is shown, and how.
    "around",
    "by",
    "callees",
    "callers",
    "crossing",
    "crossings",
    "csv",
    "fail-if",
    "flags",
    "folded",
    "format",
    "histogram",
    "inlined",
    "inverted",
    "json",
    "lengths",
    "limit",
    "lines",
    "noise",
    "normalize",
    "rate",
    "shares",
    "sort",
    "svg",
    "threads",
    "threshold",
    "time-line",
    "toml",
    "tree",
    "unsure",
    "widths-before",
];

/// Commands with options that files can set.
pub(crate) fn sections(cli: &Command) -> impl Iterator<Item = &Command> {
    let has_keys = |command: &&Command| {
        !TELLING.contains(&command.get_name()) && keys(command).next().is_some()
    };
    cli.get_subcommands().filter(has_keys)
}

/// The options of a command that files can set, by their long names.
pub(crate) fn keys(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| {
        let is_of_values = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
        arg.get_long().is_some()
            && !arg.is_required_set()
            && !arg.is_global_set()
            && (is_of_values || is_switch(arg))
    })
}

/// Options of all commands, which stand in no section.
pub(crate) fn global_keys(cli: &Command) -> impl Iterator<Item = &Arg> {
    cli.get_arguments().filter(|arg| arg.is_global_set() && arg.get_long().is_some())
}

/// Whether an option stands for itself, without a value.
pub(crate) fn is_switch(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue)
}

/// Whether an option of a command is the user's alone to set: it says where something is written, sent or read from, that it
/// may be overwritten, or what is passed on to others. A project's file came with its sources, and whoever wrote these should not
/// say so.
pub(crate) fn is_the_users_own(command: &Command, arg: &Arg) -> bool {
    let is_place = |parser: &ValueParser| {
        let kind = parser.type_id();
        kind == TypeId::of::<PathBuf>() || kind == TypeId::of::<crate::commands::Place>()
    };
    USERS_COMMANDS.contains(&command.get_name())
        || is_place(arg.get_value_parser())
        || !arg.get_long().is_some_and(|name| PROJECTS.contains(&switch(command, name)))
}

/// The switch that an option takes back; or the option.
fn switch<'a>(command: &Command, name: &'a str) -> &'a str {
    let is_switch = |of: &&str| keys(command).any(|arg| arg.get_long() == Some(of));
    name.strip_prefix("no-").filter(is_switch).unwrap_or(name)
}

/// Whether the command line cannot have both. The command is one that was built, which has all its groups.
pub(crate) fn conflict(command: &Command, one: &Arg, other: &Arg) -> bool {
    let is_in = |arg: &Arg, other: &Arg| {
        command.get_arg_conflicts_with(arg).iter().any(|found| found.get_id() == other.get_id())
    };
    let excludes = |group: &clap::ArgGroup| {
        let has = |arg: &Arg| group.get_args().any(|id| id == arg.get_id());
        !group.clone().is_multiple() && has(one) && has(other)
    };
    one.get_id() != other.get_id()
        && (is_in(one, other) || is_in(other, one) || command.get_groups().any(excludes))
}

/// The command line with `--no-…` for each switch, which takes back what a file says. Not shown: all there are
/// would make help twice as long.
pub(crate) fn with_refusals(cli: Command) -> Command {
    let names: Vec<String> = sections(&cli).map(|section| section.get_name().to_owned()).collect();
    names.iter().fold(cli, |cli, name| {
        cli.mut_subcommand(name, |command| {
            let switches: Vec<(String, clap::Id)> = keys(&command)
                .filter(|arg| is_switch(arg))
                .filter_map(|arg| Some((arg.get_long()?.to_owned(), arg.get_id().clone())))
                .collect();
            switches.into_iter().fold(command, |command, (long, id)| {
                let no = Arg::new(refusal(&long)).long(refusal(&long)).hide(true);
                command.arg(no.action(ArgAction::SetTrue).overrides_with(id))
            })
        })
    })
}

/// What takes a switch back.
pub(crate) fn refusal(long: &str) -> String {
    format!("no-{long}")
}

/// Why an option does not take these values, as the command line would say it.
pub(crate) fn refused(command: &Command, long: &str, values: &[String]) -> Option<String> {
    let words = std::iter::once(command.get_name().to_owned())
        .chain(values.iter().map(|value| format!("--{long}={value}")));
    let optional = |arg: clap::Arg| {
        arg.required(false).required_unless_present(clap::builder::Resettable::<clap::Id>::Reset)
    };
    let alone = command.clone().mut_args(optional);
    let alone = alone.subcommand_required(false).arg_required_else_help(false);
    let error = alone.try_get_matches_from(words).err()?.to_string();
    let text = error.strip_prefix("error: ").unwrap_or(&error);
    let told = text.split("\n\n").next().unwrap_or(text);
    Some(told.lines().map(str::trim).collect::<Vec<_>>().join(" "))
}

/// The name that is most like a mistyped one, if any is like it.
pub(crate) fn nearest<'a>(
    mistyped: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let likeness = |name: &str| strsim::jaro_winkler(mistyped, name);
    let best = names.into_iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(best) > 0.7).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Options that are the user's, of commands of which a project sets others.
    const USERS: &[&str] = &[
        "record --attach",
        "record --elf",
        "record --force",
        "record --output",
        "record --to",
        "record --secret",
        "record --insecure",
        "serve-memory --secret",
        "serve-memory --insecure",
        "serve-memory --elf",
        "serve-memory --force",
        "serve-memory --output",
        "serve-memory --to",
        "import --elf",
        "import --force",
        "import --output",
        "cut --force",
        "merge --force",
        "repair --force",
        "report --debuginfod",
        "report --elf",
        "report --symfs",
        "flame --debuginfod",
        "flame --elf",
        "flame --symfs",
        "flame --force",
        "flame --output",
        "dump --debuginfod",
        "dump --elf",
        "dump --symfs",
        "export --debuginfod",
        "export --elf",
        "export --symfs",
        "export --force",
        "export --output",
        "annotate --debuginfod",
        "annotate --elf",
        "annotate --symfs",
        "annotate --source-dir",
        "annotate --sources-from",
        "diff --debuginfod",
        "diff --elf",
        "diff --symfs",
        "diff --force",
        "diff --html",
        "diff --folded",
        "diff --svg",
        "man --dir",
        "suggest --debuginfod",
        "suggest --elf",
        "suggest --symfs",
        "suggest --write",
    ];

    /// Guards: an option that nobody has thought about in the hands of whoever wrote a project's sources. A new one stands
    /// in [`PROJECTS`], in [`USERS_COMMANDS`] or here.
    #[test]
    fn each_option_is_a_projects_or_the_users() {
        let cli = crate::config::definition();
        let (mut users, mut projects) = (BTreeSet::new(), BTreeSet::new());
        for command in sections(&cli) {
            let of_users = USERS_COMMANDS.contains(&command.get_name());
            for arg in keys(command).filter(|_| !of_users) {
                let name = arg.get_long().unwrap();
                if switch(command, name) != name {
                    continue;
                }
                match is_the_users_own(command, arg) {
                    true => _ = users.insert(format!("{} --{name}", command.get_name())),
                    false => _ = projects.insert(name.to_owned()),
                }
            }
        }
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let known: BTreeSet<String> = all(USERS);
        assert_eq!(users, known, "each is to be said to be whose");
        assert_eq!(projects, all(PROJECTS), "what is a project's is an option");
        for name in USERS_COMMANDS {
            assert!(sections(&cli).any(|command| command.get_name() == name), "{name}");
        }
    }
}
