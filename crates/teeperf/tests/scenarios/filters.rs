//! What is recorded is chosen while a program runs: functions by name and module, threads by name. Calls of what is
//! chosen are all there, of all else none, and nothing has to be mended however often that changes.

use crate::support::*;

/// What was seen of calls, and that nothing had to be mended.
#[track_caller]
fn expect_seen(report: &Report, seen: &[(&str, u64)]) {
    assert_seen(report, seen, &[]);
}

/// Ways to record: what passes is the same in all.
const WAYS: [&[&str]; 4] =
    [&["--clock", "tick"], &["--clock", "cycle"], &["--clock", "ordered"], &["--probe", "tree"]];

/// Guards: the map that hooks look at before all else, and what the runtime asks of the recorder for it.
#[test]
fn from_the_beginning() {
    for way in WAYS {
        let mut phases = Phases::start(&[way, &["--only", "r*", "--only", "main"]].concat());
        phases.does(&["red 1000", "green 500", "deep 20", "red 7", "up 0", "blue 11"]);
        let (_, report, _shop) = phases.end();
        expect_seen(&report, &[("main", 1), ("red", 1007)]);
        assert_eq!(report.paths().get("main;red"), Some(&1007), "{way:?}");

        let mut phases = Phases::start(&[way, &["--exclude", "/^(red|deep)$/"]].concat());
        phases.does(&["red 1000", "green 500", "deep 20", "red 7", "blue 3", "up 0", "blue 11"]);
        let (_, report, _shop) = phases.end();
        expect_seen(&report, &[("main", 1), ("green", 500), ("blue", 14)]);
        assert_eq!(report.paths().get("main;blue"), Some(&14), "{way:?}");
    }
}

/// Guards: the steps by which one filter takes another's place, and the word that says from which event on.
#[test]
fn while_the_program_runs() {
    for way in WAYS {
        let mut phases = Phases::start(way);
        phases.does(&["red 10", "green 10"]);
        phases.asks(&["filter", "--only", "red", "--only", "main"]);
        phases.does(&["red 100", "green 100", "blue 100"]);
        phases.asks(&["filter", "--exclude", "red"]);
        phases.does(&["red 1000", "green 1000"]);
        phases.asks(&["filter", "--only", "no_such_function"]);
        // Of what calls nothing that passes nobody comes to the runtime by itself.
        phases.does(&["red 5", "green 5", "blue 5", "deep 5", "up 0"]);
        phases.asks(&["filter", "--all"]);
        phases.does(&["red 10000", "blue 10000"]);
        let (_, report, _shop) = phases.end();
        let seen = [("main", 1), ("red", 10110), ("green", 1010), ("blue", 10000)];
        let unused = "the filter \"only no_such_function\" has fitted no function that was seen";
        assert_seen(&report, &seen, &[unused]);
    }
}

/// Guards: replay's floor. Frames that are open when the filter changes: of functions that it has before and
/// behind, that it leaves out now, and that it has only now.
#[test]
fn open_frames_are_where_they_were() {
    let mut phases = Phases::start(&[]);
    phases.does(&["deep 3", "red 1"]);
    phases.asks(&["filter", "--exclude", "deep"]);
    // Twenty frames that are not seen, and the three below them are left out as well.
    phases.does(&["red 2", "deep 20", "red 4"]);
    phases.asks(&["filter", "--all"]);
    phases.does(&["red 8", "deep 2", "red 16", "up 0", "red 32"]);
    // The returns of twenty that were not seen and of three that were.
    phases.does(&["up 0", "red 64", "up 0", "red 128"]);
    let (_, report, _shop) = phases.end();
    expect_seen(&report, &[("main", 1), ("deep", 5), ("red", 255)]);
    let paths = report.paths();
    assert_eq!(paths.get("main;deep;deep;deep;red"), Some(&1), "{paths:?}");
    assert_eq!(paths.get("main;deep;deep;red"), Some(&16), "{paths:?}");
    assert_eq!(paths.get("main;red"), Some(&(255 - 17)), "{paths:?}");
    assert_eq!(report.health("open"), 0);
}

/// Guards: what a gap says of returns is of those that its filter has, and one filter's are told apart from the next one's.
#[test]
fn in_the_midst_of_a_pause() {
    for way in [["--clock", "tick"], ["--clock", "cycle"]] {
        let mut phases = Phases::start(&way);
        phases.does(&["deep 3", "green 1"]);
        phases.asks(&["filter", "--exclude", "red"]);
        phases.does(&["deep 2", "green 1"]);
        phases.asks(&["pause"]);
        phases.does(&["red 5", "up 0"]);
        phases.asks(&["filter", "--exclude", "deep"]);
        // The frames of the first three are closed, and of these returns nobody hears.
        phases.does(&["green 5", "up 0", "deep 5", "green 5"]);
        phases.asks(&["filter", "--all"]);
        phases.does(&["up 0", "deep 1", "green 5"]);
        phases.asks(&["resume"]);
        phases.does(&["blue 4", "up 0", "blue 8"]);
        let (_, report, _shop) = phases.end();
        let seen = [("main", 1), ("deep", 5), ("green", 2), ("blue", 12)];
        expect_seen(&report, &seen);
        let paths = report.paths();
        assert_eq!(paths.get("main;[...];blue"), Some(&4), "{paths:?}");
        assert_eq!(paths.get("main;blue"), Some(&8), "{paths:?}");
    }
}

/// Guards: a filter is a thread's although it told of it only when the next had come, if it was its process's.
#[test]
fn while_a_thread_sleeps() {
    let mut phases = Phases::start(&[]);
    phases.does(&["thread 0", "deep 1"]);
    phases.asks(&["filter", "--exclude", "sleeps", "--exclude", "deep"]);
    // Nobody sees this one.
    phases.asks(&["filter", "--exclude", "sleeps", "--exclude", "main"]);
    phases.does(&["green 1", "wake 0"]);
    phases.asks(&["filter", "--all"]);
    phases.does(&["green 1", "go 10", "up 0"]);
    let (_, report, _shop) = phases.end();
    let seen = [("main", 1), ("deep", 1), ("sleeper", 1), ("sleeps", 1), ("red", 10), ("green", 2)];
    expect_seen(&report, &seen);
    let paths = report.paths();
    assert_eq!(paths.get("sleeper;red"), Some(&10), "{paths:?}");
    assert_eq!(paths.get("main;deep;green"), Some(&2), "{paths:?}");
}

/// Guards: many changes while threads call all the time. What is left out in none is exact, and no return is taken
/// for another's.
#[test]
fn many_times_under_threads() {
    for way in [&["--clock", "tick"], &["--clock", "cycle"]] {
        let shop = Workshop::new();
        let program = shop.build("filtered.c", Compiler::Gcc, &["-O1", "-pthread"]);
        let mut phases = Phases::of(shop, &program, way);
        phases.does(&["4"]);
        for _ in 0..8 {
            phases.asks(&["filter", "--exclude", "often"]);
            phases.asks(&["filter", "--exclude", "middle", "--exclude", "twice"]);
            phases.asks(&["filter", "--only", "always", "--only", "work"]);
            phases.asks(&["filter", "--all"]);
        }
        let (outcome, report, _shop) = phases.end_by("end", 0);
        let told = outcome.told();
        for figure in ["lost", "mended", "unopened", "open"] {
            assert_eq!(report.health(figure), 0, "{figure}: {report:?}");
        }
        assert_eq!(report.warnings, [""; 0]);
        for (name, exact) in [("always", true), ("work", true), ("often", false), ("twice", false)]
        {
            let (made, seen) = (told.calls[name], report.calls.get(name).copied().unwrap_or(0));
            assert!(seen == made || !exact && 0 < seen && seen < made, "{name}: {seen} of {made}");
        }
        // Whatever filter held, the one is called by the other.
        let paths = report.paths();
        let above =
            |name: &str| paths.keys().filter(|path| path.ends_with(name)).collect::<Vec<_>>();
        assert!(above(";always").iter().all(|path| path.contains("work")), "{paths:?}");
    }
}

/// Guards: libraries that are loaded while a filter holds ask for their own map, and patterns for modules.
#[test]
fn modules_that_come_and_go() {
    let shop = Workshop::new();
    let host = shop.build("plugin_host.c", Compiler::Gcc, &["-O2"]);
    let shared = ["-O2", "-shared", "-fPIC"];
    let plugin = |own| shop.build("plugin.c", Compiler::Gcc, &[&shared[..], &[own]].concat());
    let (red, blue) = (plugin("-DNAME=red"), plugin("-DNAME=blue"));
    let arguments = ["30", red.to_str().unwrap(), blue.to_str().unwrap()];
    let rules = ["--only", "@*NAMEred*", "--only", "main", "--exclude", "red_loaded"];
    let Recorded { report, .. } = shop.record(&rules, &host, &arguments, 0);
    let seen = [("main", 1), ("plugin_run", 15), ("red_inner", 60), ("red_unloaded", 15)];
    expect_seen(&report, &seen);
}

/// Guards: the child of a fork asks anew, and a program that is executed as well.
#[test]
fn in_children_as_in_their_parents() {
    for how in ["fork", "exec", "spawn"] {
        let shop = Workshop::new();
        let program = shop.build("processes.c", Compiler::Gcc, &["-O1", "-pthread"]);
        let all = shop.record(&[], &program, &[how], 0);
        let part = shop.record(&["--exclude", "leaf"], &program, &[how], 0);
        let mut expected = all.report.calls.clone();
        assert!(expected.remove("leaf").is_some_and(|calls| calls >= 100));
        assert_eq!(part.report.calls, expected, "{how}");
        assert_eq!(part.report.health("mended"), 0);
    }
}

/// Guards: threads ask whether they are left out, again and again, since they are named some time after they began.
#[test]
fn threads_by_name() {
    for (rule, [red, blue]) in
        [("--only-thread", [true, false]), ("--exclude-thread", [false, true])]
    {
        let shop = Workshop::new();
        let program = shop.build("named.c", Compiler::Gcc, &["-O1", "-pthread"]);
        let Recorded { report, outcome, .. } = shop.record(&[rule, "red*"], &program, &[], 0);
        let made = outcome.told();
        for (name, is_there) in [("by_red", red), ("by_blue", blue)] {
            let seen = report.calls.get(name).copied().unwrap_or(0);
            // They have their names from their 100th call on, and a pause comes behind that.
            let made = made.calls[name];
            let expected = if is_there { made - 100..made + 1 } else { 0..101 };
            assert!(expected.contains(&seen), "{rule} {name}: {seen} of {made}");
        }
        assert_eq!(report.health("mended"), 0);
    }
}

/// Guards: `status`, and what is told of a filter later.
#[test]
fn what_is_asked_for_is_told() {
    let mut phases = Phases::start(&["--exclude", "green"]);
    phases.does(&["red 10"]);
    let status = phases.asks(&["status"]);
    assert!(
        status.contains("state: recording\n") && status.contains("rule: exclude green\n"),
        "{status}"
    );
    assert!(status.contains("processes: 1\n") && status.contains("clock: "), "{status}");
    phases.asks(&["pause"]);
    phases.asks(&["filter", "--only", "red@phases*", "--only-thread", "ph*"]);
    let status: serde_json::Value =
        serde_json::from_str(&phases.asks(&["status", "--json"])).unwrap();
    assert_eq!(status["state"], "paused");
    assert_eq!(status["rules"], serde_json::json!(["only red@phases*", "only-thread ph*"]));
    assert!(status["output"].as_str().unwrap().ends_with(".teeperf"), "{status}");
    phases.asks(&["resume"]);
    phases.does(&["red 10", "green 10"]);
    let file = phases.file.clone();
    let (_, report, _shop) = phases.end();
    assert_eq!(report.calls.get("red"), Some(&20));
    let text = run(teeperf().arg("report").arg(&file)).stdout;
    assert!(
        text.contains("Not everything was recorded: only red@phases*, only-thread ph*"),
        "{text}"
    );
    let dump = run(teeperf().arg("dump").arg(&file)).stdout;
    assert!(
        dump.contains("number=1 rules=\"exclude green\"") && dump.contains("number=2"),
        "{dump}"
    );
}

/// Guards: errors that say what is wrong with a pattern, before anything runs.
#[test]
fn what_is_no_pattern_is_said() {
    for words in
        [&["record", "--only", "/(/", "--", "true"][..], &["ctl", "1", "filter", "--only", "/(/"]]
    {
        let outcome = run(teeperf().args(words));
        outcome.expect_code(1);
        assert!(outcome.stderr.contains("\"/(/\" is no pattern"), "{}", outcome.stderr);
    }
    let outcome = run(teeperf().args(["ctl", "1", "filter"]));
    outcome.expect_code(1);
    assert!(outcome.stderr.contains("--all"), "{}", outcome.stderr);
}

/// Guards: code in a TEE does not ask which of its functions are wanted, so nobody is told that it does.
#[test]
fn code_in_a_tee_has_no_filter() {
    let shop = Workshop::new();
    let memory = shop.path("memory");
    let mut serving = teeperf();
    serving.arg("serve-memory").arg(&memory).args(["--size", "64KiB", "--quiet", "-o"]);
    serving.arg(shop.path("recording.teeperf")).args(["--", "sleep", "2"]);
    let serving = Running::start(&mut serving);
    wait_until("memory", || memory.exists());
    let pid = serving.pid().to_string();
    let outcome = run(teeperf().args(["ctl", &pid, "filter", "--only", "f"]));
    outcome.expect_code(1);
    assert!(outcome.stderr.contains("code in a TEE"), "{}", outcome.stderr);
    serving.wait().expect_code(0);
}
