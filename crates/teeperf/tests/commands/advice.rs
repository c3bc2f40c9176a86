//! Advice of a report: that a function's time is that of going into the kernel or out of an enclave, of a real program, as text and as JSON.

use crate::schema_check::Schema;
use crate::support::{Folder, run, teeperf};
use serde_json::Value;

const COMMANDS: &str = "100000";

/// `bench/programs/crossing.c` with hooks, recorded with these words.
fn recorded(words: &[&str]) -> Folder {
    let folder = Folder::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/programs/crossing.c");
    run(teeperf(&folder).args(["cc", "--teeperf-hooks=source", "-O2", source, "-o", "crossing"]));
    record(&folder, words);
    folder
}

fn record(folder: &Folder, words: &[&str]) {
    let mut command = teeperf(folder);
    command.args(["record", "-q", "--force", "-o", "it.teeperf", "--", "./crossing"]);
    run(command.args(words).arg(COMMANDS));
}

fn text(folder: &Folder, words: &[&str]) -> String {
    let report = run(teeperf(folder).args(["report", "it.teeperf"]).args(words));
    // Lines that belong together are one.
    report.replace("\n           ", " ")
}

/// What is advised, with the names of the functions.
fn advice(folder: &Folder, words: &[&str]) -> Vec<(String, Value)> {
    let report = run(teeperf(folder).args(["report", "it.teeperf", "--json"]).args(words));
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(Schema::of_reports().errors(&report), Vec::<String>::new());
    let list = report["advice"].as_array().cloned().unwrap_or_default();
    let name = |one: &Value| {
        let place = one["function"].as_u64().unwrap() as usize;
        report["functions"][place]["name"].as_str().unwrap().to_owned()
    };
    list.into_iter().map(|one| (name(&one), one)).collect()
}

#[test]
fn what_goes_into_the_kernel_is_said_and_gone_when_it_is_cached() {
    let folder = recorded(&["system", "plain"]);
    let found = advice(&folder, &[]);
    let of = |name: &str| &found.iter().find(|(known, _)| known == name).unwrap().1;
    let (pid, clock) = (of("process_id"), of("time_stamp"));
    assert_eq!((&pid["evidence"], &pid["kind"]), (&"code".into(), &"constant".into()));
    assert_eq!(pid["calls"], serde_json::json!(["getpid"]));
    assert_eq!(clock["calls"], serde_json::json!(["syscall"]));
    // Whichever of the many small functions a tick falls into: these two are most of it.
    let share = |one: &Value| one["share"].as_f64().unwrap();
    assert!(share(clock) > share(pid) && share(pid) + share(clock) > 0.4, "{found:?}");
    let said = text(&folder, &[]);
    assert!(said.contains("of the time is process_id: 100,000 calls of "), "{said}");
    assert!(said.contains("Its code calls getpid, which goes into the kernel."), "{said}");
    assert!(said.contains("ask once, and keep it"), "{said}");
    // Of a copy of the program that was changed nothing is known, and at this cost nothing is guessed of what is not
    // called 100,000 times or takes less than a fifth.
    std::fs::write(folder.path().join("crossing"), "another").unwrap();
    assert!(advice(&folder, &[]).iter().all(|(_, one)| one["evidence"] == "cost"));

    let folder = recorded(&["system", "cached"]);
    assert_eq!(advice(&folder, &[]), []);
    assert!(!text(&folder, &[]).contains("Advice"));
}

#[test]
fn ways_out_of_an_enclave_are_known_by_name_and_others_by_pattern() {
    let folder = recorded(&["2000", "plain"]);
    let found = advice(&folder, &[]);
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["ocall_clock", "ocall_getpid"]);
    for (_, one) in &found {
        assert_eq!((&one["evidence"], &one["kind"]), (&"name".into(), &"exit".into()));
        let per_call = one["per_call"].as_f64().unwrap();
        assert!(per_call > 1_900.0, "{per_call}");
    }
    assert!(text(&folder, &[]).contains("By its name it is a way out of the TEE."));
    // A function that calls one is none, unless the user says so.
    let found = advice(&folder, &["--crossing", "driver_clock"]);
    assert!(found.iter().any(|(name, one)| name == "driver_clock" && one["evidence"] == "pattern"));
    assert!(text(&folder, &["--crossing", "driver_clock"]).contains("as --crossing says"));
    // A part of the recording has its own.
    assert_eq!(advice(&folder, &["--focus", "driver_pid"]).len(), 1);
}
