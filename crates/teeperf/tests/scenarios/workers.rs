//! Workers of a server that gave up rights before it forked them: they are recorded, or told of.

use crate::support::*;

/// Records the program as it gives something up, from each compiler; nothing where it must not.
fn given_up(what: &str, times: &str, flags: &[&str]) -> Vec<(Told, Report, Outcome)> {
    let shop = Workshop::new();
    let mut all = Vec::new();
    for compiler in Compiler::tried() {
        for more in [&["-O2"][..], &["-O1", "-static"]] {
            let program = shop.build("workers.c", compiler, &[more, flags].concat());
            // A filter that no wrapper sees would end the program for a signal handler's return.
            let options: &[&str] = if what == "unseen" { &["--no-cpu-samples"] } else { &[] };
            let recording = shop.recording(options, &program, &[what, times]);
            let Some(recorded) = recording.run_with_rights() else { return Vec::new() };
            let Recorded { outcome, report, .. } = recorded;
            all.push((outcome.told(), report, outcome));
        }
    }
    all
}

/// All is recorded, and nobody is said to be missing.
fn expect_all(what: &str, times: &str, processes: usize) {
    for (told, report, _) in given_up(what, times, &[]) {
        assert_calls(&told, &report);
        assert_eq!((report.health("lost"), report.processes()), (0, processes), "{what}");
        report.expect_whole();
    }
}

/// Guards: the recorder serves a child that has another user.
#[test]
fn without_their_user() {
    expect_all("user", "1000", 4);
    expect_all("euid", "1000", 4);
}

/// Guards: a child in a network of its own finds the recorder by its file.
#[test]
fn without_their_network() {
    expect_all("network", "1000", 4);
}

/// Guards: such a child is known by the memory, not by the number that it gives itself.
#[test]
fn without_their_processes() {
    expect_all("process", "1000", 2);
}

/// Guards: nothing is opened, and nothing mapped.
#[test]
fn at_their_limits() {
    expect_all("files", "1000", 4);
    for (told, report, _) in given_up("memory", "1000", &[]) {
        assert_calls(&told, &report);
        assert_eq!(report.health("lost"), 0);
    }
}

/// Guards: a child that cannot reach the recorder has a place in memory that it inherited; so many calls
/// go through more chunks than there are in it.
#[test]
fn with_system_calls_that_are_refused() {
    expect_all("socket", "400000", 4);
    expect_all("map", "1000", 4);
}

/// Guards: a filter that ends the process for a system call that it does not know ends no program for one of
/// the runtime's. All is recorded, through many chunks.
#[test]
fn with_system_calls_that_end_them() {
    const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/loads_filter.c");
    let ways = [("ends", &[][..]), ("ends", &["-DBY_NUMBER"]), ("strict", &[])];
    let more = [("library", &["-DLIBRARY", LIBRARY][..]), ("unseen", &[])];
    for (what, flags) in ways.into_iter().chain(more) {
        for (told, report, _) in given_up(what, "300000", flags) {
            assert_calls(&told, &report);
            assert_eq!(report.health("lost"), 0, "{what}");
        }
    }
}

/// Seconds that a report tells before a filter and behind it, and the CPU time of the thread with most
/// time.
fn around_a_filter(report: &Report) -> (f64, f64, f64) {
    let total = |name| report.time(name, "total") / 1e9;
    let threads = &json(report.recording(), &[])["threads"];
    (total("before"), total("after"), threads[0]["cpu"].as_f64().expect("CPU time") / 1e9)
}

/// Guards: time behind a filter of system calls that is missing without a word, as no thread can
/// be interrupted or tell its CPU time there.
#[test]
fn time_behind_a_filter_is_told_by_the_clock() {
    const LIBRARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/loads_filter.c");
    let shop = Workshop::new();
    let flags = ["-O1", "-pthread"];
    let own = shop.build("restricts.c", Compiler::Gcc, &flags);
    let by_library = [&flags[..], &["-DLIBRARY", LIBRARY]].concat();
    let by_library = shop.build("restricts.c", Compiler::Gcc, &by_library);
    let ways = [("ends", &own), ("refuses", &own), ("strict", &own), ("library", &by_library)];
    for (way, program) in ways {
        for more in [&[][..], &["both"]] {
            if way == "strict" && !more.is_empty() {
                continue;
            }
            let recording = shop.recording(&[], program, &[&[way], more].concat());
            let Some(Recorded { report, .. }) = recording.run_with_rights() else { return };
            let (before, after, cpu) = around_a_filter(&report);
            assert!(before > 0.08, "{way}: {before}");
            // The other thread may have had the processor meanwhile.
            assert!(after > 0.8 * (cpu - before), "{way}: {before} and {after} of {cpu}");
            // All of the thread's CPU time is somewhere.
            let all = report.time("main", "total") / 1e9;
            assert!((0.85 * cpu..1.15 * cpu).contains(&all), "{way}: {all} of {cpu}");
            if !more.is_empty() {
                // So is that of a thread which did nothing itself, and works for as long.
                let beside = report.time("beside", "total") / 1e9;
                assert!(beside > 0.3 * all, "{way}: {beside} beside {all}");
            }
            let [told] = &report.warnings[..] else { panic!("{:?}", report.warnings) };
            assert!(told.contains("the program filters its system calls"), "{told}");
            assert_eq!((report.health("lost"), report.health("mended")), (0, 0));
        }
    }
}

/// Guards: children that are not recorded, because a look at their own id would end them, are told of.
#[test]
fn that_must_not_know_who_they_are() {
    for (told, report, outcome) in given_up("ends-ids", "1000", &[]) {
        assert_eq!((report.calls["work"], told.calls["work"]), (1, 4));
        expect_told(&report, &outcome, 3, "getpid");
    }
}

/// Guards: each worker beyond those that there is memory for is told of, exactly.
#[test]
fn that_are_too_many() {
    for (told, report, outcome) in given_up("many", "1000", &[]) {
        assert_eq!(told.calls["work"], 21);
        let recorded = report.calls["work"];
        assert_eq!((recorded, report.processes()), (17, 17));
        expect_told(&report, &outcome, 21 - recorded, "have fewer of them at a time");
    }
}

/// Guards: the next program that a process executes finds the recorder: by its file from another network, as
/// another user where root records, and by its parent's environment where it has none.
#[test]
fn that_execute_another_program() {
    for what in ["executed", "other-user", "empty"] {
        for (told, report, _) in given_up(what, "0", &[]) {
            assert_calls(&told, &report);
            assert_eq!(report.health("lost"), 0, "{what}");
        }
    }
}

/// Guards: a library that finds no runtime, in a namespace of its own, is told of; one that does is recorded.
#[test]
fn that_load_a_library_into_a_namespace_of_its_own() {
    let shop = Workshop::new();
    for compiler in Compiler::tried() {
        let flags = ["-O2", "-shared", "-fPIC", "-DNAME=red"];
        let library = shop.build("plugin.c", compiler, &flags);
        let program = shop.build("namespaces.c", compiler, &["-O2", "-ldl"]);
        for (how, missing) in [("same", 0), ("own", 1)] {
            let mut recording = shop.recording(&[], &program, &[how, library.to_str().unwrap()]);
            let outcome = run(&mut recording.command);
            outcome.expect_code(0);
            let report = Report::of(&recording.file);
            let calls = report.calls.get("plugin_run").copied().unwrap_or(0);
            assert_eq!(calls > 0, missing == 0, "{how}");
            match missing {
                0 => assert!(!outcome.stderr.contains("not recorded"), "{}", outcome.stderr),
                _ => expect_told(&report, &outcome, missing, "dlopen"),
            }
        }
    }
}

/// So many processes are missing, and the report and the recorder say so, and what to do.
fn expect_told(report: &Report, outcome: &Outcome, missing: u64, next: &str) {
    assert_eq!(report.unrecorded(), missing);
    let says_so = |text: &str| text.contains("not recorded") && text.contains(next);
    assert!(report.warnings.iter().any(|warning| says_so(warning)), "{:?}", report.warnings);
    assert!(says_so(&outcome.stderr), "{}", outcome.stderr);
}
