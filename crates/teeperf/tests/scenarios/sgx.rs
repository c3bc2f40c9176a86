//! `record --sgx`, on a simulated machine with SGX, and `record --sample` by timers within the program, as where the kernel lets nothing
//! be sampled.
#![cfg(target_arch = "x86_64")]

use crate::support::*;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// A recording of a host.
struct Run {
    outcome: Outcome,
    file: std::path::PathBuf,
}

/// Options that samples of a simulated host are taken with.
const SGX: [&str; 5] = ["--probe", "sample", "--sgx", "--module", "enclave.so"];

impl Run {
    fn of(shop: &Workshop, options: &[&str], arguments: &str) -> Self {
        let [host, enclave] = shop.enclave();
        let words: Vec<&str> =
            std::iter::once(enclave.to_str().unwrap()).chain(arguments.split(' ')).collect();
        let run = Self::of_program(shop, options, &host, &words);
        assert!(run.outcome.stdout.ends_with("done\n"), "{:?}", run.outcome);
        run
    }

    fn of_program(shop: &Workshop, options: &[&str], program: &Path, arguments: &[&str]) -> Self {
        let mut recording = shop.recording(options, program, arguments);
        let outcome = run(&mut recording.command);
        Self { outcome, file: recording.file }
    }

    /// Call paths of an event with their weight, of all processes and threads.
    fn paths(&self, event: &str) -> Vec<(String, u64)> {
        folded(&self.file, event)
    }

    /// Percent of an event's weight in paths that fit.
    fn percent(&self, event: &str, fits: impl Fn(&str) -> bool) -> f64 {
        percent(&self.paths(event), fits)
    }

    fn report(&self) -> String {
        report(&self.file)
    }

    /// Exports to perf's format, and gives what the real `perf report` says; nothing where there is no perf.
    fn by_perf(&self) -> Option<String> {
        let data = self.file.with_extension("perf");
        let mut export = teeperf();
        export.args(["export", "--to", "perf", "-o"]).arg(&data).arg(&self.file);
        run(&mut export).expect_code(0);
        let perf = Command::new("perf").args(["report", "--stdio", "-i"]).arg(&data).output();
        match perf {
            Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
            Err(error) => {
                eprintln!("skipped: perf: {error}");
                None
            }
        }
    }
}

/// What each whole stack has, of the host and of the enclave that it called.
const WHOLE: &str = ";run;urts_ecall;urts_enter;enclave_entry;ecall;main_loop;";
/// What it begins with, of the first thread.
const FIRST: &str = "main;run;urts_ecall;urts_enter;";

/// Guards: rings, maps of enclaves, chains inside; both sides' functions.
#[test]
fn functions_inside_and_outside_have_whole_stacks() {
    let shop = Workshop::new();
    // The runtime's own list says which file is in the enclave.
    let run = Run::of(&shop, &SGX[..3], "call=1 rounds=6000");
    run.outcome.expect_code(0);
    let joined = run.percent("sgx", |path| path.contains(FIRST));
    assert!(joined > 99.0, "{joined}: {:?}", run.paths("sgx"));
    let whole = run.percent("sgx", |path| path.contains(WHOLE));
    // Entry and exit have no frames of their own.
    assert!(whole > 60.0, "{whole}: {:?}", run.paths("sgx"));
    for function in ["half", "three_tenths", "nested_once;fifth"] {
        let share = run.percent("sgx", |path| path.contains(function));
        assert!(share > 5.0, "{function}: {share}");
    }
    let outside = run.percent("outside-sgx", |path| path.ends_with("urts_ecall;outside_work"));
    assert!(outside > 50.0, "{outside}: {:?}", run.paths("outside-sgx"));
    assert!(run.outcome.stderr.contains(" samples of "), "{}", run.outcome.stderr);
    if let Some(text) = run.by_perf() {
        let is_there = |name: &str| text.contains(name);
        assert!(["main_loop", "three_tenths", "outside_work"].into_iter().all(is_there), "{text}");
        assert!(!text.contains("[enclave at"), "samples before the file's map: {text}");
        assert_joined(&text);
    }
    // And what was written for perf is read the same.
    let back = folded(&run.file.with_extension("perf"), "sgx");
    let (mut back, mut paths) = (back, run.paths("sgx"));
    back.sort();
    paths.sort();
    assert_eq!(back, paths);
}

/// The first stack that perf shows of an enclave leads from the host's functions to those inside.
fn assert_joined(text: &str) {
    let lines = text.lines().skip_while(|line| !line.contains(" of event 'sgx"));
    let first = lines.skip_while(|line| !line.contains("---")).take_while(|line| !line.is_empty());
    let mut stack = first.map(|line| line.rsplit('-').next().unwrap().trim());
    for function in ["main", "run", "urts_ecall", "urts_enter", "enclave_entry", "ecall"] {
        assert!(stack.any(|line| line == function), "{function}: {text}");
    }
}

/// Guards: the host's stack is followed by tables, whatever inside is followed by.
#[test]
fn a_host_without_frame_pointers_stands_below_its_enclave() {
    let shop = Workshop::new();
    let [host, enclave] = shop.enclave();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../teeperf-aex/tests/simulator");
    let plain = shop.path("plain");
    let mut cc = Command::new("cc");
    cc.current_dir(source).args(["-O2", "-g", "-fomit-frame-pointer", "-Wl,-rpath,$ORIGIN", "-o"]);
    cc.arg(&plain).args(["host.c", "urts.c", "urts_enter.S", "-pthread", "-lmachine", "-L"]);
    run(cc.arg(host.parent().unwrap())).expect_code(0);
    let run = Run::of_program(&shop, &SGX, &plain, &[enclave.to_str().unwrap(), "rounds=6000"]);
    run.outcome.expect_code(0);
    let whole = run.percent("sgx", |path| path.contains(FIRST) && path.contains(WHOLE));
    assert!(whole > 95.0, "{whole}: {:?}", run.paths("sgx"));
    let report = run.report();
    assert!(!report.contains("cut short") && !report.contains("could not be"), "{report}");
}

/// Guards: copies of stacks, of enclaves and outside, which are followed by tables.
#[test]
fn copies_of_stacks_are_followed_inside_and_outside() {
    let shop = Workshop::new();
    let options = [&SGX[..], &["--call-graph", "dwarf"]].concat();
    let run = Run::of(&shop, &options, "call=1 rounds=4000");
    let whole = run.percent("sgx", |path| path.contains(WHOLE) && path.contains(FIRST));
    assert!(whole > 60.0, "{whole}: {:?}", run.paths("sgx"));
    let outside = run.percent("outside-sgx", |path| path.contains("main;run;urts_ecall;outside"));
    assert!(outside > 50.0, "{outside}: {:?}", run.paths("outside-sgx"));
    if let Some(text) = run.by_perf() {
        assert_joined(&text);
    }
    // The entry has no tables, and nobody called it.
    let report = Run::of(&shop, &options, "rounds=3000").report();
    assert!(!report.contains("could not be followed"), "{report}");
}

/// Guards: code that knows nothing of enclaves has its host's functions below it, whether its own stack can be followed or not.
#[test]
fn a_library_inside_is_called_by_main() {
    let shop = Workshop::new();
    let ([host, _], enclave) = (shop.enclave(), shop.zstd_enclave());
    let words = [enclave.to_str().unwrap(), "rounds=300"];
    for (how, inner) in [("dwarf", FIRST_OF_ZSTD), ("fp", "")] {
        let options = [&SGX[..3], &["--call-graph", how]].concat();
        let run = Run::of_program(&shop, &options, &host, &words);
        run.outcome.expect_code(0);
        let paths = run.paths("sgx");
        let is_zstd = |path: &str| {
            let leaf = path.rsplit(';').next().unwrap();
            // One loop is assembly without tables.
            !leaf.contains("_asm_")
                && ["ZSTD_", "HUF_", "FSE_", "HIST_"].iter().any(|part| leaf.starts_with(part))
        };
        let zstd = percent(&paths, is_zstd);
        assert!(zstd > 50.0, "{how}: {zstd}: {paths:?}");
        let path = format!("{FIRST}{inner}");
        let joined = percent(&paths, |one| is_zstd(one) && one.contains(&path));
        assert!(joined > zstd * 0.95, "{how}: {joined} of {zstd}: {paths:?}");
    }
}

/// What the library's functions are called by, in the enclave.
const FIRST_OF_ZSTD: &str = "enclave_entry;ecall;one_round;";

/// Guards: of stacks that were not asked for none is said to be cut short.
#[test]
fn without_stacks_none_is_cut_short() {
    let shop = Workshop::new();
    let options = [&SGX[..], &["--call-graph", "none"]].concat();
    let run = Run::of(&shop, &options, "rounds=1000");
    let report = run.report();
    assert!(report.contains("three_tenths") && !report.contains("urts_ecall"), "{report}");
    assert!(!report.contains("cut short"), "{report}");
    assert!(!report.contains("could not be followed"), "{report}");
}

/// Guards: a ring for each thread, enclaves that come and go, and that nothing of them is lost.
#[test]
fn four_threads_in_enclaves_that_come_and_go() {
    let shop = Workshop::new();
    let run = Run::of(&shop, &SGX, "threads=4 tcs=2 lives=5 rounds=400 times=3");
    run.outcome.expect_code(0);
    let whole = run.percent("sgx", |path| path.contains(WHOLE));
    assert!(whole > 90.0, "{whole}: {:?}", run.paths("sgx"));
    let report = run.report();
    assert!(report.contains("Health     0 lost"), "{report}");
    assert!(!report.contains("sgx-unreadable"), "{report}");
}

/// Guards: enclaves that are gone before anybody looks have the functions of those before, and what is told of them is told once.
#[test]
fn enclaves_of_short_lives_have_functions() {
    let shop = Workshop::new();
    // By the runtime's list alone, which an enclave is taken off before its end. Of those that live for a millisecond hardly any is seen
    // in it, and those before the first one that is have nothing.
    for (lives, most) in [("lives=300 rounds=20", 5.0), ("lives=1500 rounds=2", 90.0)] {
        let run = Run::of(&shop, &SGX[..3], &format!("threads=4 tcs=2 {lives}"));
        run.outcome.expect_code(0);
        let nameless = run.percent("sgx", |path| path.contains("[enclave at "));
        assert!(nameless <= most, "{lives}: {nameless}: {:?}", run.paths("sgx"));
        let told = &run.outcome.stderr;
        assert!(told.matches("what is loaded in").count() <= 1, "{told}");
    }
}

/// Guards: what an enclave is, is seen when it is made.
#[test]
fn a_production_enclave_is_told_of_and_its_time_counted() {
    let shop = Workshop::new();
    let run = Run::of(&shop, &SGX, "debug=0 rounds=2000 threads=2");
    let line = run.outcome.stdout.lines().next().unwrap();
    let base = line.split(' ').nth(1).unwrap();
    let said =
        format!("the enclave at 0x{base} is a production enclave, whose memory nobody can read");
    assert_eq!(run.outcome.stderr.matches(&said).count(), 1, "{}", run.outcome.stderr);
    let name = format!("[enclave at 0x{base}]");
    // Which ECALLs they are in is known by the host's stack.
    let leaf = format!(";run;urts_ecall;urts_enter;{name}");
    let share = run.percent("sgx-unreadable", |path| path.ends_with(&leaf));
    assert!(share > 99.0, "{:?}", run.paths("sgx-unreadable"));
    assert!(run.report().contains(&said));
    if let Some(text) = run.by_perf() {
        assert!(text.contains("urts_ecall") && text.contains(&name), "{text}");
    }
}

/// Guards: a host that asks the kernel by itself is told of, and what to do.
#[test]
fn a_host_without_the_c_library_is_told_of() {
    let shop = Workshop::new();
    let [host, enclave] = shop.enclave();
    let mut recording = shop.recording(&SGX, &host, &[enclave.to_str().unwrap(), "rounds=2000"]);
    recording.command.env("MACHINE_INLINE", "1");
    let outcome = run(&mut recording.command);
    assert!(outcome.stdout.ends_with("done\n"), "{outcome:?}");
    assert!(outcome.stderr.contains("record it with --sgx=outside"), "{}", outcome.stderr);
}

/// Guards: samples are in memory that outlives the program, and what was written is readable without the recorder.
#[test]
fn the_end_of_either_side_leaves_what_was_sampled() {
    let shop = Workshop::new();
    let [host, enclave] = shop.enclave();
    let arguments = [enclave.to_str().unwrap(), "rounds=4000000"];
    for is_of_program in [true, false] {
        let mut recording = shop.recording(&SGX, &host, &arguments);
        let _ = std::fs::remove_file(&recording.file);
        let running = Running::start(&mut recording.command);
        wait_until("samples in the recording", || {
            std::fs::metadata(&recording.file).is_ok_and(|file| file.len() > 20_000)
        });
        let program = child_of(running.pid());
        let first = if is_of_program { program } else { running.pid() };
        // SAFETY: kill only takes numbers.
        assert_eq!(unsafe { libc::kill(first, libc::SIGKILL) }, 0);
        running.wait();
        // SAFETY: as above.
        unsafe { libc::kill(program, libc::SIGKILL) };
        let run = Run { outcome: run(&mut Command::new("true")), file: recording.file };
        let whole = run.percent("sgx", |path| path.contains(WHOLE));
        assert!(whole > 90.0, "{whole}: {:?}", run.paths("sgx"));
        let report = run.report();
        assert_eq!(report.contains("by signal 9"), is_of_program, "{report}");
    }
}

/// Guards: the kernel's ticks in place of its events, and that this is said.
#[test]
fn enclaves_are_sampled_where_events_are_not_permitted() {
    let shop = Workshop::new();
    let [host, enclave] = shop.enclave();
    let arguments = [enclave.to_str().unwrap(), "rounds=20000"];
    let mut recording = shop.recording(&SGX, &host, &arguments);
    let outcome = run(without_perf_event_open(&mut recording.command));
    outcome.expect_code(0);
    let run = Run { outcome, file: recording.file };
    let whole = run.percent("sgx", |path| path.contains(WHOLE));
    assert!(whole > 90.0, "{whole}: {:?}", run.paths("sgx"));
    let told = &run.outcome.stderr;
    assert_eq!(told.matches("the kernel permits no events").count(), 1, "{told}");
}

/// Guards: a runtime that handles exits itself has samples taken of what it interrupted.
#[test]
fn a_runtime_that_asks_for_samples() {
    let shop = Workshop::new();
    let [host, enclave] = shop.enclave();
    let options = [&SGX[..], &["--sample=1s"]].concat();
    let arguments = [enclave.to_str().unwrap(), "call=2", "rounds=300"];
    let mut recording = shop.recording(&options, &host, &arguments);
    recording.command.env("MACHINE_SAMPLES", "1");
    let outcome = run(&mut recording.command);
    assert!(outcome.stdout.ends_with("done\n"), "{outcome:?}");
    // Each of the exceptions, and of timers hardly any.
    assert!(outcome.stderr.contains("samples of "), "{}", outcome.stderr);
    let run = Run { outcome, file: recording.file };
    // What the runtime itself says it interrupted has no host's stack.
    let asked = run.percent("sgx", |path| path == "enclave_entry;ecall;fault");
    assert!(asked > 90.0, "{asked}: {:?}", run.paths("sgx"));
}

/// Guards: hooks and samples in one recording.
#[test]
fn hooks_beside_samples_of_enclaves() {
    let shop = Workshop::new();
    let program = shop.build("within.c", Compiler::Gcc, &["-O1", "-pthread"]);
    let run = Run::of_program(&shop, &["--sgx"], &program, &[]);
    run.outcome.expect_code(0);
    let report = run.report();
    assert!(report.contains("in_main") && report.contains("outside-sgx"), "{report}");
    let said = &run.outcome.stderr;
    assert!(said.contains("no thread was found inside an enclave"), "{said}");
}

/// Timers within the program.
const WITHIN: [&str; 4] = ["--probe", "sample", "--sample", "--sample-within"];

/// Guards: threads however they end, and their places; without a thread's cleanup they would run out.
#[test]
fn threads_are_sampled_however_they_end() {
    let shop = Workshop::new();
    let program = shop.build_unhooked("within.c", Compiler::Gcc, &["-O1", "-pthread"]);
    let run = Run::of_program(&shop, &WITHIN, &program, &["threads"]);
    run.outcome.expect_code(0);
    for function in ["in_main", "in_returning", "in_exiting", "in_cancelled"] {
        let share = run.percent("cpu-timer", |path| path.contains(function));
        assert!(share > 3.0, "{function}: {share} {:?}", run.paths("cpu-timer"));
    }
    let said = &run.outcome.stderr;
    assert!(said.contains("timers within the program"), "{said}");
    assert!(!said.contains("not sampled"), "{said}");
    let report = run.report();
    assert!(report.contains(" returning"), "{report}");
}

/// Guards: threads of a process with ids of its own are not taken for such as have ended.
#[test]
fn a_process_in_a_namespace_of_its_own() {
    let shop = Workshop::new();
    let program = shop.build_unhooked("within.c", Compiler::Gcc, &["-O1", "-pthread"]);
    let arguments = ["-fp", program.to_str().unwrap(), "signals"];
    if !run(Command::new("unshare").args(["-fp", "true"])).success() {
        eprintln!("skipped: unshare -fp is not permitted");
        return;
    }
    let run = Run::of_program(&shop, &WITHIN, Path::new("/usr/bin/unshare"), &arguments);
    run.outcome.expect_code(0);
    // Of half a second, in which it is looked which threads there are.
    let spent: u64 = run.paths("cpu-timer").iter().map(|(_, weight)| weight).sum();
    assert!(spent > 420_000_000, "{spent} {:?}", run.paths("cpu-timer"));
}

/// Guards: children have memory of their own, and programs that they execute too.
#[test]
fn children_are_sampled_and_what_they_execute() {
    let shop = Workshop::new();
    let program = shop.build_unhooked("within.c", Compiler::Gcc, &["-O1", "-pthread"]);
    // So often, that a signal is on its way when another program is executed.
    let often = ["--probe", "sample", "--sgx", "--sample=20000"];
    Run::of_program(&shop, &often, &program, &["children"]).outcome.expect_code(0);
    let run = Run::of_program(&shop, &WITHIN, &program, &["children"]);
    run.outcome.expect_code(0);
    for function in ["in_main", "in_child", "in_executed"] {
        let share = run.percent("cpu-timer", |path| path.contains(function));
        assert!(share > 3.0, "{function}: {share} {:?}", run.paths("cpu-timer"));
    }
    // Each has its own maps and thread.
    let whole = run.percent("cpu-timer", |path| path.contains("main"));
    assert!(whole > 90.0, "{whole} {:?}", run.paths("cpu-timer"));
}

/// Guards: the program's own use of the signal goes on, and ours does too.
#[test]
fn a_program_that_uses_the_signal_itself() {
    let shop = Workshop::new();
    // gcc gives functions that call none a frame here alone.
    let program = shop.build_unhooked("within.c", Compiler::Gcc, &["-O0", "-pthread"]);
    for options in [&WITHIN[..], &["--probe", "sample", "--sgx"]] {
        let run = Run::of_program(&shop, options, &program, &["signals"]);
        run.outcome.expect_code(0);
        let own: Vec<u32> =
            run.outcome.stdout.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [own, timers] = own[..] else { panic!("{:?}", run.outcome) };
        // Of two at one moment the kernel keeps one.
        assert!(
            (90..=100).contains(&own) && timers > 5,
            "{own} of 100, {timers} of a timer's in 300 ms"
        );
        let event = if options.contains(&"--sgx") { "outside-sgx" } else { "cpu-timer" };
        // With all signals masked, and beside a handler of the program's.
        for function in ["in_main", "in_returning"] {
            let share = run.percent(event, |path| path.contains(function));
            assert!(share > 15.0, "{function}: {share} {:?}", run.paths(event));
        }
    }
}

/// Guards: what threads are timed by stays open, and out of the program's way.
#[test]
fn a_daemon_that_closes_all_descriptors() {
    let shop = Workshop::new();
    let program = shop.build_unhooked("within.c", Compiler::Gcc, &["-O0", "-pthread"]);
    let run = Run::of_program(&shop, &["--probe", "sample", "--sgx"], &program, &["closes"]);
    run.outcome.expect_code(0);
    for function in ["in_main", "in_returning", "in_exiting", "in_cancelled"] {
        let share = run.percent("outside-sgx", |path| path.contains(function));
        assert!(share > 10.0, "{function}: {share} {:?}", run.paths("outside-sgx"));
    }
}

/// Guards: it is looked what code there is where a sample is in none that is known, before the sample is written.
#[test]
fn a_library_that_is_loaded_later() {
    let shop = Workshop::new();
    let program = shop.build_unhooked("within.c", Compiler::Gcc, &["-O0", "-pthread"]);
    let library = shop.build_unhooked("within.c", Compiler::Gcc, &["-O0", "-shared", "-fPIC"]);
    let arguments = ["loads", library.to_str().unwrap()];
    let run = Run::of_program(&shop, &WITHIN, &program, &arguments);
    run.outcome.expect_code(0);
    let share = run.percent("cpu-timer", |path| path.contains("loads;in_library;spin"));
    assert!(share > 45.0, "{share} {:?}", run.paths("cpu-timer"));
}

/// Guards: what the program writes to the memory is no more than a recording without sense.
#[test]
fn a_program_that_writes_over_its_samples() {
    let shop = Workshop::new();
    let program = shop.build_unhooked("within.c", Compiler::Gcc, &["-O1", "-pthread"]);
    let options = [&WITHIN[..], &["--sample-buffer", "64K"]].concat();
    let run = Run::of_program(&shop, &options, &program, &["scribbles"]);
    run.outcome.expect_code(0);
    let said = &run.outcome.stderr;
    assert!(said.contains("wrote over its own samples"), "{said}");
    assert!(said.contains("samples of cpu-timer"), "{said}");
    run.report();
}

/// Guards: options that belong together.
#[test]
fn options_of_enclaves_are_for_enclaves() {
    let shop = Workshop::new();
    let run = Run::of_program(&shop, &["--module", "a.so"], Path::new("/bin/true"), &[]);
    run.outcome.expect_code(1);
    assert!(run.outcome.stderr.contains("--module is about"), "{}", run.outcome.stderr);
    let run =
        Run::of_program(&shop, &["--sgx", "--module", "a.so@xyz"], Path::new("/bin/true"), &[]);
    run.outcome.expect_code(2);
}

/// Guards: each sample's thread, processor and time; names, maps, build-ids and ends of threads, of what is written for perf.
#[test]
fn perf_is_told_all_that_it_wants_to_know() {
    let shop = Workshop::new();
    let taken = Run::of(&shop, &SGX[..3], "threads=4 tcs=4 rounds=6000");
    let data = taken.file.with_extension("perf");
    let mut export = teeperf();
    export.args(["export", "--to", "perf", "-o"]).arg(&data).arg(&taken.file);
    run(&mut export).expect_code(0);
    let perf = |words: &[&str]| {
        let output = Command::new("perf").args(words).arg("-i").arg(&data).output().ok()?;
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let words = ["script", "--show-mmap-events", "--show-task-events", "-F"];
    let Some(told) = perf(&[&words[..], &["comm,tid,cpu,time,event,ip,sym"]].concat()) else {
        eprintln!("skipped: perf is not installed");
        return;
    };
    let samples: Vec<Vec<&str>> = told
        .lines()
        .filter(|line| line.contains(" sgx:"))
        .map(|line| line.split_whitespace().collect())
        .collect();
    let threads: BTreeSet<&str> = samples.iter().map(|words| words[1]).collect();
    let processors: BTreeSet<&str> = samples.iter().map(|words| words[2]).collect();
    assert_eq!(threads.len(), 4, "{told}");
    assert!(
        processors.iter().all(|number| number.starts_with('[')) && !processors.contains("[-01]")
    );
    let times = samples.iter().map(|words| words[3].trim_end_matches(':').parse::<f64>().unwrap());
    let (first, last) = times.fold((f64::MAX, 0.0f64), |(a, b), time| (a.min(time), b.max(time)));
    assert!(first > 0.0 && last > first, "{first} {last}");
    for record in ["PERF_RECORD_COMM", "PERF_RECORD_MMAP2", "PERF_RECORD_EXIT", "enclave.so"] {
        assert!(told.contains(record), "{record}: {told}");
    }
    // It says nothing against any record.
    assert!(perf(&["script", "-D"]).is_some());
    let build_ids = perf(&["buildid-list"]).unwrap();
    for file in ["/enclave.so", "/libc.so.6"] {
        assert!(build_ids.lines().any(|line| line.ends_with(file)), "{file}: {build_ids}");
    }
}

/// Guards: of a library that is there since a moment ago, and that a copied stack leads through, the recording has the code.
#[test]
fn callers_in_a_library_that_was_just_loaded() {
    assert_late_library_is_known("--sgx");
}
