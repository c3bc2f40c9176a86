//! `teeperf ctl`: asks a recording that runs for something, from another terminal.

use super::{filtering, pause};
use anyhow::{Result, bail, ensure};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use teeperf_record::control::Request;
use teeperf_record::{Events, Rules};
use teeperf_view::{json::harmless, printable, printable_lines};

/// Asks a recording that runs to pause, to record other functions, or how it goes
///
/// When the command comes back, it is done: calls from then on are recorded as was asked.
#[derive(Args, Debug)]
#[command(
    subcommand_value_name = "WHAT",
    subcommand_help_heading = "What",
    after_help = "\
Examples:
  teeperf ctl status                                        how the only recording that runs goes
  teeperf ctl $(pidof server) status                        how the one of a program does
  teeperf ctl $(pidof server) pause                         until `resume`
  teeperf ctl $(pidof server) filter --only 'parse*'        nothing but the parser from now on
  teeperf ctl $(pidof server) filter --exclude '@libz.so*'  all but a library
  teeperf ctl $(pidof server) filter --all                  everything again
  teeperf ctl $(pidof server) timed 'handle*'               the exact length of each call of these, too
  teeperf ctl $(pidof server) timed --none                  of none any more
  teeperf ctl $(pidof server) events marks                  its marks and counters alone; then: events all
  teeperf ctl $(pidof server) snapshot                      what was recorded so far can be read"
)]
pub(crate) struct Arguments {
    /// Process id of `teeperf record`, or of a program that it records [default: the only recording that runs]
    pid: Option<u32>,
    #[command(subcommand)]
    what: What,
}

/// What a recording can be asked for.
#[derive(Subcommand, Debug)]
enum What {
    /// Record nothing until it is resumed
    #[command(after_help = "\
Examples:
  teeperf ctl pause                    the only recording that runs
  teeperf ctl $(pidof server) pause    the one of a program")]
    Pause,
    /// Go on, or begin, where it waits for a call (--trigger)
    #[command(after_help = "\
Examples:
  teeperf ctl resume                    the only recording that runs
  teeperf ctl $(pidof server) resume    the one of a program")]
    Resume,
    /// Record only some functions and threads from now on, in place of what was asked before
    ///
    /// Functions that are open stay so where they are still recorded, so that paths go on; with --probe tree paths
    /// begin anew.
    #[command(after_help = "\
Examples:
  teeperf ctl filter --only 'parse*'                          the parser alone
  teeperf ctl $(pidof server) filter --exclude '@libz.so*'    all but a library
  teeperf ctl filter --only-thread 'worker*'                  threads of these names
  teeperf ctl filter --all                                    everything again")]
    Filter {
        #[command(flatten)]
        rules: filtering::Arguments,
        /// Record everything
        #[arg(long, conflicts_with_all = ["only", "exclude", "only_thread", "exclude_thread"])]
        all: bool,
        /// Typed without an option, which is told
        #[arg(hide = true, value_name = "PATTERN")]
        patterns: Vec<OsString>,
    },
    /// Time single calls of these functions by the processor's counter from now on, in place of what was asked before
    ///
    /// A call that is open meanwhile has no exact length. What is recorded stays as it is: a function that a filter
    /// leaves out is not timed.
    #[command(after_help = "\
Examples:
  teeperf ctl timed 'handle*'                   each call of these
  teeperf ctl $(pidof server) timed 'read*'     of one program that is recorded
  teeperf ctl timed --none                      of none any more")]
    Timed {
        /// A name, a glob, a /regular expression/, @ and a module, as for `record --timed`
        #[arg(value_name = "FUNCTION", required_unless_present = "none")]
        functions: Vec<String>,
        /// Time none
        #[arg(long, conflicts_with = "functions")]
        none: bool,
    },
    /// Record only these kinds of events from now on
    ///
    /// What else was asked for, such as a filter, stays.
    #[command(after_help = format!("{}\n
Examples:
  teeperf ctl events marks                    marks and counters alone
  teeperf ctl $(pidof server) events all      everything again, of one program", filtering::KINDS))]
    Events {
        /// calls, marks, or both with a comma between them; all
        #[arg(value_name = "KINDS")]
        kinds: Events,
    },
    /// Write out what is there so far, and what threads have summed in their trees, so that it can be read now
    #[command(after_help = "\
Examples:
  teeperf ctl snapshot && teeperf report")]
    Snapshot,
    /// Print how it goes
    #[command(after_help = "\
Examples:
  teeperf ctl status                    how the only recording that runs goes
  teeperf ctl $(pidof server) status    how the one of a program does
  teeperf ctl status --json | jq .events")]
    Status {
        /// As JSON, on one line
        #[arg(long)]
        json: bool,
    },
    /// End the recording; the program goes on
    #[command(after_help = "\
Examples:
  teeperf ctl stop && teeperf report    the only recording that runs
  teeperf ctl $(pidof server) stop      the one of a program")]
    Stop,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let request = match &arguments.what {
        What::Pause => Request::Pause,
        What::Resume => Request::Resume,
        What::Snapshot => Request::Snapshot,
        What::Stop => Request::Stop,
        What::Status { .. } => Request::Status,
        What::Filter { patterns, .. } if !patterns.is_empty() => {
            let typed = printable(&patterns[0].to_string_lossy()).replace('\'', "'\\''");
            let pattern = format!("'{typed}'");
            bail!(
                "say whether {pattern} is recorded or left out: `teeperf ctl filter --only {pattern}` records nothing else, \
                 `teeperf ctl filter --exclude {pattern}` all else"
            );
        }
        What::Filter { rules, all, .. } => {
            let rules = rules.rules()?;
            ensure!(
                *all || !rules.is_empty(),
                "name what is to be recorded, by --only, --exclude, --only-thread or --exclude-thread, or --all"
            );
            Request::Filter(rules)
        }
        What::Events { kinds } => {
            ensure!(
                kinds.calls || kinds.marks,
                "calls between worlds are those that record --optee --events crossings has"
            );
            let mut rules = Rules::default();
            rules.events(Events { crossings: true, ..*kinds });
            Request::Events(rules)
        }
        What::Timed { functions, .. } => {
            let mut rules = Rules::default();
            filtering::time(&mut rules, functions)?;
            Request::Timed(rules)
        }
    };
    let answer = pause::ask(arguments.pid, &request)?;
    match arguments.what {
        What::Status { json: true } => {
            super::to_stdout(|out| harmless::write(&as_json(&answer), out))
        }
        What::Filter { .. } | What::Timed { .. } => {
            for rule in answer.lines() {
                let rule = printable(rule);
                note!("warning: \"{rule}\" fits no function that was seen so far");
            }
            Ok(())
        }
        _ => super::print(printable_lines(&answer).as_bytes()),
    }
}

/// The lines of a status as an object: numbers are numbers, rules and programs lists.
fn as_json(status: &str) -> Value {
    let mut object: BTreeMap<&str, Value> = BTreeMap::new();
    let (mut rules, mut programs, mut triggers) = (Vec::new(), Vec::new(), Vec::new());
    for (name, value) in status.lines().filter_map(|line| line.split_once(": ")) {
        match (name, value.parse::<u64>(), value.parse::<f64>()) {
            ("rule", ..) => rules.push(Value::from(value)),
            ("trigger", ..) => triggers.push(Value::from(value)),
            ("program", ..) => {
                let (pid, name) = value.split_once(' ').unwrap_or((value, ""));
                programs.push(json!({ "pid": pid.parse::<u32>().ok(), "name": name }));
            }
            ("seconds" | "waited", _, Ok(seconds)) => _ = object.insert(name, seconds.into()),
            ("state" | "output" | "clock", ..) => _ = object.insert(name, value.into()),
            (_, Ok(number), _) => _ = object.insert(name, number.into()),
            _ => _ = object.insert(name, value.into()),
        }
    }
    object.insert("rules", rules.into());
    object.insert("programs", programs.into());
    object.insert("triggers", triggers.into());
    object.insert("format", "teeperf-status".into());
    object.insert("version", 1.into());
    json!(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_an_object() {
        let json = as_json(
            "state: paused\noutput: 7\nevents: 12\nseconds: 1.500\nrule: only a: b\nrule: exclude c\nprogram: 7 a b\ntrigger: f\n",
        );
        assert_eq!(
            json.to_string(),
            concat!(
                r#"{"events":12,"format":"teeperf-status","output":"7","programs":[{"name":"a b","pid":7}],"rules":["only a: b","exclude c"],"#,
                r#""seconds":1.5,"state":"paused","triggers":["f"],"version":1}"#
            )
        );
    }
}
