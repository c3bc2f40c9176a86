//! `teeperf record --optee` without OP-TEE: client library and TEE are one library in the client's process
//! (`programs/optee`), which loads trusted applications that are built for this machine by their own makefiles, with the
//! SDK as it is installed. What is recorded of them is what they did, and the client sees what it sees without.

use crate::support::*;
use std::path::{Path, PathBuf};
use std::process::Command;

const DEMO: &str = "80391883-0ed0-447a-a4d2-13769a2c6c84";
const CALLEE: &str = "15cc187a-0d9c-4ce6-b9c4-532575f57ded";
const STRICT: &str = "4b1e7ab0-6c2f-4f11-9d5e-0d8c2a7e3f01";
const PLAIN: &str = "4b1e7ab0-6c2f-4f11-9d5e-0d8c2a7e3f02";

/// A machine with both worlds, in a folder.
struct Machine {
    shop: Workshop,
}

impl Machine {
    /// With an SDK and a TEE, and no trusted applications yet.
    fn new() -> Self {
        let machine = Self { shop: Workshop::new() };
        let sdk = machine.shop.path("sdk");
        let installed = run(teeperf().arg("install-sdk").arg(&sdk));
        assert!(installed.success(), "{installed:#?}");
        let library = sdk.join("lib").join(std::env::consts::ARCH);
        // Where makefiles for OP-TEE look.
        let for_optee = sdk.join("lib/aarch64");
        if library != for_optee {
            std::os::unix::fs::symlink(library, for_optee).unwrap();
        }
        std::fs::create_dir(machine.shop.path("applications")).unwrap();
        let out = machine.shop.path("libteec.so");
        machine.compile(&["client/libteec.c"], &["-shared", "-fPIC"], &out);
        machine
    }

    fn compile(&self, sources: &[&str], flags: &[&str], out: &Path) {
        let mut command = Command::new("gcc");
        command.args(["-O2", "-g", "-Wall", "-Wextra", "-Werror"]).args(flags).arg("-o").arg(out);
        for folder in ["client", "kit/include", "strict/include"] {
            command.arg("-I").arg(own(folder));
        }
        for folder in ["demo", "callee", "liar", "library", "rust"] {
            command.arg("-I").arg(integration("ta").join(folder).join("include"));
        }
        command.args(sources.iter().map(|source| own(source)));
        expect_built(&mut command);
    }

    /// A client, from its source.
    fn client(&self, source: &str) -> PathBuf {
        let out = self.shop.path("client");
        // The library is a file as sources are: the loader knows it by its path.
        let library = self.shop.path("libteec.so");
        self.compile(&[source, library.to_str().unwrap()], &["-pthread"], &out);
        out
    }

    /// A trusted application, built in a folder by the makefile that is there.
    fn application(&self, folder: &Path, uuid: &str, variables: &[&str]) {
        let out = self.shop.path(&format!("built-{uuid}"));
        std::fs::create_dir(&out).unwrap();
        let mut make = Command::new("make");
        make.arg("-s").arg("-C").arg(folder).arg(format!("O={}", out.display()));
        make.arg(format!("TA_DEV_KIT_DIR={}", own("kit").display()));
        make.arg(format!("TEEPERF={}", self.shop.path("sdk/optee").display()));
        expect_built(make.arg(format!("BINARY={uuid}")).args(variables));
        let name = format!("{uuid}.elf");
        std::fs::rename(out.join(&name), self.linked(uuid)).unwrap();
    }

    fn linked(&self, uuid: &str) -> PathBuf {
        self.shop.path(&format!("applications/{uuid}.elf"))
    }

    fn with_demo(variables: &[&str]) -> (Self, PathBuf) {
        let machine = Self::new();
        machine.application(&integration("ta/demo"), DEMO, variables);
        machine.application(&integration("ta/callee"), CALLEE, variables);
        let client = machine.client(integration("host/main.c").to_str().unwrap());
        (machine, client)
    }

    fn with_strict(variables: &[&str]) -> (Self, PathBuf) {
        let machine = Self::new();
        machine.application(&own("strict"), STRICT, variables);
        machine.application(&own("strict"), PLAIN, &["UUID=PLAIN_TA_UUID", "TEEPERF_PROBE=none"]);
        let client = machine.client("asks.c");
        (machine, client)
    }

    /// What a client says that is not recorded.
    fn unrecorded(&self, client: &Path, arguments: &[&str]) -> Outcome {
        let mut command = Command::new(client);
        command.env("TEE_APPLICATIONS", self.shop.path("applications"));
        run(command.args(arguments))
    }

    /// Records a client.
    #[track_caller]
    fn record(&self, options: &[&str], client: &Path, arguments: &[&str]) -> (Outcome, Report) {
        let mut recording = self.recording(options, client, arguments);
        let outcome = run(&mut recording.command);
        outcome.expect_code(0);
        (outcome, Report::of(&recording.file))
    }

    /// A recording of a client, not started yet.
    fn recording(&self, options: &[&str], client: &Path, arguments: &[&str]) -> Recording {
        let linked: Vec<_> = [DEMO, CALLEE, STRICT].map(|uuid| self.linked(uuid)).into();
        let linked = linked.iter().filter(|file| file.exists());
        let linked = linked.map(|file| format!("--elf={}", file.display()));
        let mut all = vec!["--optee".to_owned(), "--force".to_owned(), "--quiet".to_owned()];
        all.extend(linked.chain(options.iter().map(|&option| option.to_owned())));
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let mut recording = self.shop.recording(&all, client, arguments);
        recording.command.env("TEE_APPLICATIONS", self.shop.path("applications"));
        recording
    }
}

/// A file of these scenarios.
fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/optee").join(name)
}

/// A file of what runs in OP-TEE itself.
fn integration(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../integrations/optee").join(name)
}

#[track_caller]
fn expect_built(command: &mut Command) {
    let outcome = run(command);
    assert!(outcome.success(), "{command:?}: {outcome:#?}");
}

/// Nothing is missing, and these functions were called so often.
#[track_caller]
fn expect_calls(report: &Report, calls: &[(&str, u64)]) {
    for figure in ["lost", "mended", "open", "unopened"] {
        assert_eq!(report.health(figure), 0, "{figure}: {report:#?}");
    }
    for &(function, calls) in calls {
        assert_eq!(
            report.calls.get(function).copied().unwrap_or(0),
            calls,
            "{function}: {report:#?}"
        );
    }
}

/// Lines in an order that does not depend on who came first.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// Whatever the demo is asked: the same answers, and every call in both worlds.
#[test]
fn trusted_applications_and_their_client() {
    let (machine, client) = Machine::with_demo(&[]);
    for (arguments, calls) in [
        (
            &["calls", "7"][..],
            &[
                ("TEEC_OpenSession", 1),
                ("TA_OpenSessionEntryPoint", 1),
                ("outer", 7),
                ("leaf", 105),
            ][..],
        ),
        (&["params", "7"], &[("TEEC_InvokeCommand", 2), ("command 2", 2)]),
        (&["nested", "10"], &[("TEEC_InvokeCommand", 1), ("nested", 1)]),
        // From the demo, while nothing is lent to the callee, and from the client.
        (&["both", "4"], &[("twice", 5), ("nested", 1), ("TEEC_InvokeCommand", 2)]),
        (
            &["sessions", "20"],
            &[("TEEC_OpenSession", 21), ("TA_OpenSessionEntryPoint", 21), ("leaf", 300)],
        ),
        // Ten calls without a free slot, and one with some.
        (&["slots", "5"], &[("TA_InvokeCommandEntryPoint", 11), ("all_four", 10), ("leaf", 75)]),
        // Into the panic, and anew.
        (
            &["panic", "66"],
            &[("TEEC_InvokeCommand", 3), ("TA_InvokeCommandEntryPoint", 2), ("leaf", 990)],
        ),
        (&["cancel", "30"], &[("until_cancelled", 1), ("TEEC_InvokeCommand", 1)]),
        (&["unknown"], &[("another command", 1), ("TA_InvokeCommandEntryPoint", 1)]),
        (&["calls", "20000"], &[("outer", 20_000), ("middle", 60_000), ("leaf", 300_000)]),
    ] {
        let without = machine.unrecorded(&client, arguments);
        let (outcome, report) = machine.record(&[], &client, arguments);
        assert_eq!(outcome.stdout, without.stdout, "{arguments:?}");
        expect_calls(&report, calls);
    }
    let (_, report) = machine.record(&[], &client, &["calls", "7"]);
    let path = "TEEC_InvokeCommand;command 0;TA_InvokeCommandEntryPoint;calls;outer;middle;leaf";
    assert_eq!(
        report.paths().get(path),
        Some(&105),
        "one stack leads from one world into the other"
    );
    let (_, report) = machine.record(&[], &client, &["leaps", "50"]);
    assert_eq!(report.calls.get("dive"), Some(&50));
    assert_eq!((report.health("lost"), report.health("mended")), (0, 100), "left without a word");
}

/// Guards: of the calls between the worlds alone, commands and their times are there, and nothing that the application calls.
#[test]
fn calls_between_the_worlds_alone() {
    let (machine, client) = Machine::with_demo(&[]);
    for arguments in [&["calls", "2000"][..], &["sessions", "20"], &["params", "7"]] {
        let without = machine.unrecorded(&client, arguments);
        let (outcome, whole) = machine.record(&[], &client, arguments);
        let (_, report) = machine.record(&["--events", "crossings"], &client, arguments);
        assert_eq!(outcome.stdout, without.stdout, "{arguments:?}");
        let is_crossing = |name: &str| name.starts_with("TEEC_") || name.starts_with("command ");
        let crossings: Vec<_> = whole.calls.iter().filter(|(name, _)| is_crossing(name)).collect();
        assert!(crossings.len() >= 3 && crossings.len() < whole.calls.len(), "{whole:?}");
        assert_eq!(report.calls.iter().collect::<Vec<_>>(), crossings, "{arguments:?}");
        expect_calls(&report, &[]);
    }
}

/// Calls are summed in the application's own memory, and handed over whenever its client calls.
#[test]
fn summed_calls_of_a_trusted_application() {
    let (machine, client) = Machine::with_demo(&["TEEPERF_PROBE=tree"]);
    for (arguments, calls) in [
        (&["calls", "20000"][..], &[("outer", 20_000), ("middle", 60_000), ("leaf", 300_000)][..]),
        (&["slots", "5"], &[("TA_InvokeCommandEntryPoint", 11), ("all_four", 10), ("leaf", 75)]),
        (&["both", "4"], &[("twice", 5), ("nested", 1)]),
    ] {
        let without = machine.unrecorded(&client, arguments);
        let (outcome, report) = machine.record(&[], &client, arguments);
        assert_eq!(outcome.stdout, without.stdout, "{arguments:?}");
        expect_calls(&report, calls);
    }
}

/// Guards: what an application had summed when it panicked is missing, and the recording says so.
#[test]
fn summed_calls_of_an_application_that_panics() {
    for probe in ["tree", "gprof"] {
        let (machine, client) = Machine::with_demo(&[&format!("TEEPERF_PROBE={probe}")]);
        for (arguments, is_missing) in [(&["calls", "20"][..], false), (&["panic", "66"], true)] {
            let (_, report) = machine.record(&[], &client, arguments);
            let told = |warning: &String| warning.contains("has ended while it was attached");
            assert_eq!(report.warnings.iter().any(told), is_missing, "{probe}: {report:#?}");
        }
    }
}

/// Guards: what an application hands over with each of many calls is added up before it is written.
#[test]
fn summed_calls_of_many_invocations() {
    let times = 20_000;
    for probe in ["tree", "gprof"] {
        let (machine, client) = Machine::with_strict(&[&format!("TEEPERF_PROBE={probe}")]);
        let (_, report) = machine.record(&[], &client, &["strict", "many", &times.to_string()]);
        // The first and the last invocation open and close the session.
        let entered = times + 1;
        expect_calls(&report, &[("TA_InvokeCommandEntryPoint", entered), ("look", 4 * entered)]);
        let dumped = run(teeperf().arg("dump").arg(report.recording()));
        let kinds = dumped.stdout.lines().filter_map(|line| line.split_whitespace().nth(1));
        let packets = kinds.filter(|kind| ["tree", "arcs"].contains(kind)).count();
        assert!((1..20).contains(&packets), "{probe}: {packets} packets");
    }
}

/// A client that calls without end an application that sums.
struct Endless {
    running: Running,
    file: PathBuf,
    _machine: Machine,
}

impl Endless {
    fn start(options: &[&str]) -> Self {
        let (machine, client) = Machine::with_strict(&["TEEPERF_PROBE=tree"]);
        let mut recording = machine.recording(options, &client, &["strict", "many", "4000000000"]);
        let running = Running::start(&mut recording.command);
        let endless = Self { running, file: recording.file, _machine: machine };
        wait_until("calls", || endless.told() > 5000);
        endless
    }

    /// Calls that the application has told of.
    fn told(&self) -> u64 {
        self.running.stdout_so_far().lines().filter(|line| line.starts_with("seen ")).count() as u64
    }

    fn has_ended(&mut self) -> bool {
        self.running.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Calls in the recording as it is now.
    fn read(&self) -> u64 {
        let calls = Report::of(&self.file).calls;
        calls.get("TA_InvokeCommandEntryPoint").copied().unwrap_or(0)
    }
}

/// What may be in the application still, since all memory that was lent is full.
const NOT_HANDED_OVER: u64 = 2000;

/// Guards: what was added up is written when it is asked for, and when the recording is interrupted.
#[test]
fn summed_calls_of_a_recording_that_is_interrupted() {
    // The interval is that of trusted applications as well.
    let mut endless = Endless::start(&["--probe", "tree", "--interval", "1h"]);
    assert_eq!(endless.read(), 0, "nothing is written before it is asked for");
    let told = endless.told();
    let pid = endless.running.pid();
    run(teeperf().args(["ctl", &pid.to_string(), "snapshot"])).expect_code(0);
    assert!(endless.read() + NOT_HANDED_OVER > told, "{} of {told}", endless.read());
    wait_until("more calls", || endless.told() > told + 3 * NOT_HANDED_OVER);
    // SAFETY: kill only takes numbers; the group is the recorder's own.
    assert_eq!(unsafe { libc::kill(-pid, libc::SIGINT) }, 0);
    wait_until("the recording's end", || endless.has_ended());
    let (read, told) = (endless.read(), endless.told());
    assert!(read + NOT_HANDED_OVER > told, "{read} of {told}");
}

/// Guards: a recorder that is killed takes no more with it than what came since it has written last.
#[test]
fn summed_calls_of_a_recorder_that_is_killed() {
    let mut endless = Endless::start(&[]);
    wait_until("something written", || endless.read() > 5000);
    let told = endless.told();
    wait_until("what came until then", || endless.read() + NOT_HANDED_OVER > told);
    // SAFETY: kill only takes numbers. Else the client would go on.
    assert_eq!(unsafe { libc::kill(-endless.running.pid(), libc::SIGKILL) }, 0);
    wait_until("its end", || endless.has_ended());
    assert!(endless.read() + NOT_HANDED_OVER > told);
}

/// Guards: an application hands its sums over with each call, and waits until there is room for them.
#[test]
fn summed_calls_of_a_client_that_does_not_pause() {
    for probe in ["TEEPERF_PROBE=tree", "TEEPERF_PROBE=gprof"] {
        let (machine, client) = Machine::with_demo(&[probe]);
        let (outcome, report) = machine.record(&[], &client, &["hammer", "1"]);
        let answers = outcome.stdout.split("right=").nth(1).and_then(|rest| rest.split(' ').next());
        let answers: u64 = answers.unwrap().parse().unwrap();
        assert!(outcome.stdout.ends_with("refused=0 wrong=0\n"), "{}", outcome.stdout);
        let rounds: u64 = (0..answers).map(|answer| 1 + answer % 50).sum();
        expect_calls(
            &report,
            &[("TA_InvokeCommandEntryPoint", answers), ("outer", rounds), ("leaf", 15 * rounds)],
        );
    }
}

/// What finds no room is counted, in the application as in its client.
#[test]
fn calls_that_find_no_room() {
    let (machine, client) = Machine::with_demo(&[]);
    let (_, report) = machine.record(&["--on-full", "drop"], &client, &["calls", "20000"]);
    // outer, middle and leaf are 1 + 3 + 15 calls. Eight lead to them, or begin and end the session.
    let all = 2 * (20_000 * 19 + 8);
    assert_eq!(report.health("events") + report.health("lost"), all, "{report:#?}");
}

/// Clients that come at the same time, each with sessions of its own.
#[test]
fn several_clients() {
    let (machine, client) = Machine::with_demo(&[]);
    let client = client.display();
    let script = format!(
        "for n in 1 2 3; do {client} calls 2000 & {client} sessions 5 & {client} both 4 & done; wait"
    );
    let (_, report) = machine.record(&[], Path::new("/bin/sh"), &["-c", &script]);
    expect_calls(
        &report,
        &[
            ("TEEC_OpenSession", 3 + 3 * 6 + 3 * 2),
            ("outer", 3 * (2000 + 5)),
            ("leaf", 3 * (30_000 + 75)),
            ("nested", 3),
            // Each time four from the demo, one from the client.
            ("twice", 3 * 5),
        ],
    );
}

/// What a client asks, in whatever way the API lets it ask.
const ASKED: [&str; 7] = ["slots", "edges", "cancelled", "greetings", "turns", "threads", "forks"];

/// Guards: the slot is one that is free, and as it was behind the call; results, origins, parameters and memory are those that
/// the application has given; an operation can be used again, and there need not be one; memory is registered with the context
/// that it is lent in, and released with it; each thread, and the child of a fork, has its own.
#[test]
fn a_client_sees_nothing_of_it() {
    let (machine, client) = Machine::with_strict(&[]);
    for asked in ASKED {
        let arguments = ["strict", asked];
        let without = machine.unrecorded(&client, &arguments);
        without.expect_code(0);
        let (outcome, report) = machine.record(&[], &client, &arguments);
        let mut seen = sorted(&outcome.stdout);
        // One of the sessions in turn is with the other application.
        seen.retain(|line| asked != "turns" || *line != "opens 7000");
        assert_eq!(seen, sorted(&without.stdout), "{asked}");
        let told = outcome.told();
        for (function, calls) in &told.calls {
            expect_calls(&report, &[(function, *calls)]);
        }
        let entered = seen.iter().filter(|line| line.starts_with("seen ")).count() as u64;
        let by_the_other = if asked == "turns" { 4 } else { 0 };
        let entered = entered - by_the_other;
        let without_a_free_slot = if asked == "slots" { 20 } else { 0 };
        let below = report.calls_below("TEEC_InvokeCommand", "look");
        assert_eq!(below, 4 * (entered - without_a_free_slot), "{asked}: on one stack");
        expect_calls(&report, &[("TA_InvokeCommandEntryPoint", entered), ("look", 4 * entered)]);
    }
}

/// Guards: a call that did not come as far as the application says nothing of whether that has hooks.
#[test]
fn an_application_that_is_not_there_at_first() {
    let (machine, client) = Machine::with_strict(&[]);
    let arguments = ["strict", "late"];
    let without = machine.unrecorded(&client, &arguments);
    without.expect_code(0);
    let (outcome, report) = machine.record(&[], &client, &arguments);
    assert_eq!(sorted(&outcome.stdout), sorted(&without.stdout));
    expect_calls(&report, &[("TEEC_OpenSession", 2), ("TA_InvokeCommandEntryPoint", 1)]);
}

/// Guards: nor does one that fails for a while, though the same without lent memory does not.
#[test]
fn a_call_that_finds_no_memory_at_first() {
    let (machine, client) = Machine::with_demo(&[]);
    let mut recording = machine.recording(&[], &client, &["sessions", "5"]);
    run(recording.command.env("TEE_IS_SHORT_OF_MEMORY", "1")).expect_code(0);
    expect_calls(&Report::of(&recording.file), &[("leaf", 75)]);
}

/// Guards: an application that refuses the parameter that it does not know is asked once more, once, with parameters as its client
/// has set them. What it has made of them meanwhile may be a size that is more than there is.
#[test]
fn an_application_without_hooks_sees_it_once() {
    let (machine, client) = Machine::with_strict(&[]);
    for asked in ASKED {
        let arguments = ["plain", asked];
        let without = machine.unrecorded(&client, &arguments);
        let (outcome, report) = machine.record(&[], &client, &arguments);
        let strange = if asked == "greetings" { "opens 7063" } else { "opens 7000" };
        let mut expected = sorted(&without.stdout);
        expected.push(strange);
        expected.sort_unstable();
        assert_eq!(sorted(&outcome.stdout), expected, "{asked}");
        for (function, calls) in &outcome.told().calls {
            expect_calls(&report, &[(function, *calls)]);
        }
    }
}

/// Guards: what an application leaves in the memory that it was lent is believed neither by the recorder, which drains it
/// meanwhile, nor by its client's side, which goes on there.
#[test]
fn an_application_that_lies() {
    let machine = Machine::new();
    machine.application(&integration("ta/liar"), STRICT, &[]);
    let client = machine.client("asks.c");
    for on_full in ["wait", "drop"] {
        let arguments = ["strict", "threads"];
        let without = machine.unrecorded(&client, &arguments);
        let options = ["--limit-size", "16M", "--on-full", on_full];
        let (outcome, report) = machine.record(&options, &client, &arguments);
        assert_eq!(sorted(&outcome.stdout), sorted(&without.stdout));
        let refused = |warning: &String| warning.contains("made no sense");
        assert!(report.warnings.iter().any(refused), "{report:#?}");
        assert!(std::fs::metadata(report.recording()).unwrap().len() < 24 << 20);
        let dumped = run(teeperf().arg("dump").arg(report.recording()));
        assert!(dumped.success(), "{}", dumped.stderr);
    }
}
