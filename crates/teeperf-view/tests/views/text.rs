//! The text report against reports written by hand, and what it says of recordings that
//! are not whole.

use crate::support::{
    exact, function, interrupted_kitchen, kitchen, node, parser, summed_kitchen, thread,
};
use teeperf_profile::crossings::{Crossing, Evidence, Kind};
use teeperf_profile::model::{
    CallGraph, FunctionId, Health, Mended, NoRoom, Node, Profile, Stacks, Time, Waits,
};
use teeperf_view::style::Style;
use teeperf_view::text::{self, Options, Sort};

pub(crate) fn report(profile: &Profile, options: &Options, width: usize) -> String {
    let mut out = Vec::new();
    text::write(profile, options, &Style { colour: false, width }, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn everything_at_120_columns() {
    let options = Options { call_tree: true, least_share: 0.2, ..Options::default() };
    assert_eq!(report(&kitchen(), &options, 120), include_str!("data/text/kitchen-120.txt"));
}

#[test]
fn sorted_and_limited_at_80_columns() {
    let options = Options { sort: Sort::Total, limit: 2, threads: false, ..Options::default() };
    let report = report(&kitchen(), &options, 80);
    let table = report.find("\nFunctions").unwrap();
    assert_eq!(&report[table..], include_str!("data/text/kitchen-80.txt"));
}

#[test]
fn shortest_and_longest_calls_where_they_are_known_and_find_room() {
    let options = Options { threads: false, ..Options::default() };
    let table = |width| {
        let report = report(&summed_kitchen(), &options, width);
        report[report.find("\nFunctions").unwrap()..].to_owned()
    };
    assert_eq!(table(120), include_str!("data/text/summed-120.txt"));
    assert_eq!(table(80), include_str!("data/text/summed-80.txt"));
    assert!(!table(70).contains("LONGEST"));
}

#[test]
fn calls_without_paths_are_shown_from_both_sides() {
    assert_eq!(
        report(&parser(), &Options::default(), 120),
        include_str!("data/text/parser-120.txt")
    );
}

#[test]
fn advice_says_what_is_so_and_how_that_is_known() {
    let profile = kitchen();
    let rows = teeperf_profile::aggregate::table(&profile, Sort::Calls);
    let of = |evidence, kind| {
        let crossings = vec![Crossing { row: rows[0], share: 0.56, evidence, kind }; 4];
        let report = report(&profile, &Options { crossings, ..Options::default() }, 400);
        let lines = report.lines().filter_map(|line| line.strip_prefix("Advice     "));
        let lines: Vec<String> = lines.map(str::to_owned).collect();
        assert_eq!(lines.len(), 3);
        lines[0].clone()
    };
    assert_eq!(
        of(Evidence::Name, Some(Kind::Data)),
        "56.0 % of the time is read: 23,000 calls of 30.43 µs each. By its name it is a system call. Move more with each call: \
         collect what is small, or map it."
    );
    let names = ["getpid", "gettid", "getuid", "getgid"].map(String::from).into();
    let code = of(Evidence::Code(names), Some(Kind::Constant));
    assert!(
        code.contains(
            "Its code calls getpid, gettid, getuid and 1 more, which goes into the kernel."
        ),
        "{code}"
    );
    let time = of(Evidence::Code(vec!["clock_gettime".into()]), Some(Kind::Time));
    assert!(
        time.contains("into the kernel unless the vDSO answers it, and out of a TEE always"),
        "{time}"
    );
    assert!(of(Evidence::Cost, None).contains("if it computes, no advice"));
}

#[test]
fn callers_and_callees_stay_few_and_narrow() {
    let names: Vec<String> = (0..40).map(|n| format!("{}{n}", "deep::".repeat(30))).collect();
    let calls = (1..40).flat_map(|n| [(Some(0), n, 1), (Some(n), 0, 2)]);
    let profile = Profile {
        functions: names.iter().map(|name| function(name, "m")).collect(),
        graph: Some(CallGraph::new(
            (0..40).map(|n| (FunctionId(n), 1e9)),
            calls.map(|(from, to, n)| (from.map(FunctionId), FunctionId(to), n)),
        )),
        ..parser()
    };
    for width in [80, 120] {
        let report = report(&profile, &Options { limit: 3, ..Options::default() }, width);
        let tail = &report[report.find("\nCallers").unwrap()..];
        assert_eq!(tail.matches("\ndeep").count(), 3, "{tail}");
        assert_eq!(tail.matches("more").count(), 3, "{tail}");
        for line in tail.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

/// Names of the functions in the table, in order.
fn order(sort: Sort) -> Vec<String> {
    let options = Options { sort, threads: false, ..Options::default() };
    let report = report(&kitchen(), &options, 80);
    let rows = report.split("FUNCTION\n").nth(1).unwrap();
    rows.lines().filter_map(|line| line.rsplit(' ').next()).map(str::to_owned).collect()
}

#[test]
fn siblings_below_the_limit_are_one_line_when_they_matter_together() {
    let functions = (0..40).map(|i| function(&format!("f{i}"), "m")).collect();
    // Ten of 4 ms and thirty of 2 ms below one of 100 ms.
    let mut nodes = vec![node(0, 0, 0, 0.0, 100.0), node(0, 0, 1, 0.0, 100.0)];
    nodes.extend((0..40).map(|i| {
        let ms = if i < 10 { 4.0 } else { 2.0 };
        node(1, i, 3, ms, ms)
    }));
    let profile = Profile {
        functions,
        threads: vec![thread(1, "t", nodes)],
        health: Health { events: 1, ..Health::default() },
        ..Profile::default()
    };
    let options = Options {
        functions: false,
        threads: false,
        call_tree: true,
        least_share: 0.04,
        ..Options::default()
    };
    let report = report(&profile, &options, 80);
    let tree: Vec<&str> = report.lines().skip_while(|line| !line.starts_with("TOTAL%")).collect();
    assert_eq!(tree.len(), 14);
    assert_eq!(tree[11], "  4.00 4.000 ms  4.000 ms       3  · f9");
    assert_eq!(tree[12], " 60.00 60.00 ms                    · … 30 call paths below the limit");
    assert_eq!(tree[13], "30 call paths below the limit not shown, 60.0 % of the time in all");
}

#[test]
fn every_order() {
    assert_eq!(order(Sort::Total), ["main", "read", "parse", "serve"]);
    assert_eq!(order(Sort::SelfTime), ["read", "parse", "main", "serve"]);
    assert_eq!(order(Sort::Calls), ["read", "parse", "main", "serve"]);
    assert_eq!(order(Sort::Name), ["main", "parse", "read", "serve"]);
}

#[test]
fn no_line_is_wider_than_asked() {
    let mut profile = kitchen();
    profile.functions[2].name =
        format!("ns::{}::read(int, {})", "deep::".repeat(60), "x".repeat(200));
    profile.functions[1].module = "m".repeat(300);
    profile.threads[0].name = "t".repeat(300);
    profile.info.command = vec!["w".repeat(500)];
    profile.health.lost = 5_000;
    profile.health.gaps = vec![("dropped".into(), 3, 9_000)];
    let options = Options { call_tree: true, ..Options::default() };
    for width in [80, 100, 120, 200] {
        for line in report(&profile, &options, width).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn colour_is_only_colour() {
    let options = Options { call_tree: true, ..Options::default() };
    let mut out = Vec::new();
    text::write(&kitchen(), &options, &Style { colour: true, width: 120 }, &mut out).unwrap();
    let painted = String::from_utf8(out).unwrap();
    let mut bare = String::new();
    let mut parts = painted.split("\x1b[");
    bare.push_str(parts.next().unwrap());
    let mut colours = 0;
    for part in parts {
        bare.push_str(part.split_once('m').unwrap().1);
        colours += 1;
    }
    assert!(colours > 10);
    assert_eq!(bare, report(&kitchen(), &options, 120));
}

#[test]
fn names_cannot_steer_the_terminal() {
    let mut profile = kitchen();
    let hostile = "\x1b]0;title\x07\x1b[2J\r\u{202e}";
    for function in &mut profile.functions {
        function.name = hostile.into();
        function.module = hostile.into();
    }
    profile.threads[0].name = hostile.into();
    profile.info.command = vec![hostile.into()];
    profile.info.host = hostile.into();
    profile.info.clock_reason = hostile.into();
    profile.health.warnings = vec![hostile.into()];
    profile.health.gaps = vec![(hostile.into(), 1, 1)];
    let options = Options { call_tree: true, selection: "everything".into(), ..Options::default() };
    let report = report(&profile, &options, 200);
    assert!(report.chars().all(|c| c == '\n' || !c.is_control()), "{report:?}");
    assert!(!report.contains('\u{202e}'));
    assert!(report.contains("\\x1b]0;title\\x07"));
}

/// Guards: a warning that something else may be missing is no doubt about processes.
#[test]
fn health_has_doubts_about_processes_alone() {
    let doubt = format!("2 programs ended; {}", teeperf_wire::body::notice::MAY_MISS);
    for (warning, is_doubt) in [(&*doubt, true), ("callers behind it may be missing", false)] {
        let mut profile = kitchen();
        profile.health.warnings = vec![warning.into()];
        let report = report(&profile, &Options::default(), 200);
        assert_eq!(report.contains("Health     processes may be missing"), is_doubt, "{report}");
    }
}

#[test]
fn what_is_missing_stands_on_top_with_the_next_step() {
    let mut profile = kitchen();
    profile.health = Health {
        unrecorded: 0,
        events: 9_000,
        lost: 1_000,
        mended: 10,
        mended_in: [(2, 5), (1, 3), (0, 1), (3, 1)]
            .map(|(at, frames)| Mended { function: FunctionId(at), frames })
            .to_vec(),
        open: 2,
        only_sums: false,
        unopened: 1,
        unopened_in_coroutines: 0,
        taken_over: 0,
        stacks: Stacks::default(),
        missing: Vec::new(),
        gaps: vec![("dropped".into(), 4, 5_000_000), ("paused".into(), 1, 1_000_000_000)],
        warnings: vec!["at byte 4096: a chunk's checksum is wrong, skipped".into()],
    };
    profile.info.signal = Some(9);
    let report = report(&profile, &Options::default(), 200);
    let lines: Vec<&str> = report.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "WARNING    1,000 calls or returns were lost, 10.0 % of all: call counts are too low \
             by as much. Record with --on-full wait, which lets the program wait for room instead.",
            "WARNING    10 frames were mended because a call or a return was not seen where it \
             belongs: 0.11 % of all events, most of read (5), parse (3), main (1). Call paths around them may be wrong. Look for",
            "           code that leaves functions or changes stacks in a way of its own, and for lost events.",
        ]
    );
    assert_eq!(lines[3], "WARNING    at byte 4096: a chunk's checksum is wrong, skipped");
    assert!(lines[4].starts_with("Command"));
    for note in [
        "Ended      by signal 9, SIGKILL",
        "Note       2 calls had not returned at the end; time counts up to there.",
        "Note       1 return is from calls made before recording began.",
        "Note       Memory was full 4 times; events were dropped for 5.000 ms in all.",
        "Note       Recording was paused 1 time, 1.000 s in all.",
    ] {
        assert!(lines.contains(&note), "{note}\n{report}");
    }
}

#[test]
fn coroutines_that_changed_threads_are_told() {
    let told = |times| {
        let mut profile = kitchen();
        profile.health.taken_over = times;
        let found = teeperf_view::findings::of(&profile);
        found.into_iter().find(|finding| finding.what.contains("coroutine"))
    };
    let finding = told(2).unwrap();
    assert!(
        finding.warning && finding.what.starts_with("Threads went on 2 times with"),
        "{finding:?}"
    );
    assert_eq!(told(0), None);
}

/// The kitchen, looked at now and then.
fn sampled_kitchen() -> Profile {
    let mut profile = kitchen();
    profile.info.clock = "samples".into();
    profile.info.event = "cpu-clock".into();
    profile.info.clock_reason = "cpu-clock of the kernel".into();
    profile.health.events = 23;
    profile
}

#[test]
fn samples_are_no_calls() {
    let mut profile = sampled_kitchen();
    profile.health.stacks = Stacks { followed: 2_000, cut: 3, ..Stacks::default() };
    let whole = report(&profile, &Options { call_tree: true, ..Options::default() }, 120);
    assert!(whole.contains("Samples    23 samples in 2 threads"), "{whole}");
    assert!(whole.contains("Health     0 lost, 3 of 2,000 stacks cut short\n"), "{whole}");
    assert_eq!(whole.matches(" SAMPLES  FUNCTION").count(), 2, "{whole}");
    assert!(whole.contains(" SAMPLES  PROCESS"), "{whole}");
    for word in ["CALLS", "PER CALL", "EVENTS", "WARNING", "hooks"] {
        assert!(!whole.contains(word), "{word} in {whole}");
    }
    profile.health.stacks = Stacks { chains: 100, alone: 50, ..Stacks::default() };
    let chains = |profile: &Profile| report(profile, &Options::default(), 400);
    assert!(!chains(&profile).contains("WARNING"));
    profile.health.stacks.alone = 51;
    assert!(
        chains(&profile).contains("% of the call chains nobody called"),
        "{}",
        chains(&profile)
    );
    profile.health.stacks = Stacks { followed: 2_000, ..Stacks::default() };
    profile.health.stacks.cut = 200;
    profile.health.lost = 2;
    let told = report(&profile, &Options::default(), 200);
    assert!(told.contains("WARNING    10.0 % of the stacks could not be followed"), "{told}");
    assert!(told.contains("WARNING    2 samples were lost, 8.0 % of all"), "{told}");
}

/// Guards: advice about stacks that were cut short is not what was done already.
#[test]
fn advice_about_cut_stacks_is_not_what_was_done() {
    let told = |asked, beyond, holed| {
        let mut profile = sampled_kitchen();
        profile.info.asked_stack = asked;
        profile.health.stacks =
            Stacks { followed: 100, cut: 50, beyond, holed, ..Stacks::default() };
        report(&profile, &Options::default(), 1000)
    };
    let has = |told: String, wanted: &str| assert!(told.contains(wanted), "{wanted}: {told}");
    has(told(8192, 50, 0), "--call-graph dwarf,32768");
    has(told(32768, 50, 0), "--call-graph dwarf,65528");
    let longest = told(65528, 50, 0);
    assert!(!longest.contains("--call-graph dwarf"), "{longest}");
    has(longest, "--call-graph fp");
    let holed = told(32768, 3, 47);
    assert!(!holed.contains("--call-graph dwarf"), "{holed}");
    has(holed, "longer copies do not help. Build with -fstack-clash-protection");
    has(told(8192, 10, 5), "Code without tables for unwinding");
    has(told(0, 50, 0), "--call-graph dwarf,32768");
}

#[test]
fn what_was_sampled_beside_calls_is_said_behind_them() {
    let mut out = Vec::new();
    let style = Style { colour: false, width: 120 };
    text::write_beside(&sampled_kitchen(), &Options::default(), &style, &mut out).unwrap();
    let told = String::from_utf8(out).unwrap();
    assert!(told.starts_with("Samples of cpu-clock\nClock "), "{told}");
    assert!(!told.contains("Command") && !told.contains("Machine"), "{told}");
}

#[test]
fn without_samples_it_is_said_what_to_do() {
    let mut profile = sampled_kitchen();
    profile.health.events = 0;
    profile.threads.clear();
    let told = report(&profile, &Options::default(), 200);
    assert!(told.contains("No sample was taken") && told.contains("--sample=10000"), "{told}");
    assert!(!told.contains("SIGURG"), "{told}");
    profile.info.is_from_within = true;
    let told = report(&profile, &Options::default(), 200).replace("\n           ", " ");
    for part in ["hardly any time of a processor", "or handles SIGURG", "`--sgx=outside`"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    profile.health.warnings.push("recording was paused from its start to its end".into());
    let told = report(&profile, &Options::default(), 200);
    assert!(told.contains("No sample was taken: recording was paused"), "{told}");
    assert!(!told.contains("--sample=10000"), "{told}");
}

#[test]
fn a_single_sample_needs_no_clock_that_moves() {
    let mut profile = sampled_kitchen();
    profile.threads.iter_mut().for_each(|thread| thread.wall_ns = 0);
    let told = report(&profile, &Options::default(), 200);
    assert!(!told.contains("clock never moved"), "{told}");
    profile.info.event.clear();
    let told = report(&profile, &Options::default(), 200);
    assert!(told.contains("clock never moved"), "{told}");
}

#[test]
fn of_sums_it_is_not_said_which_calls_have_returned() {
    let mut profile = kitchen();
    profile.health.only_sums = true;
    let report = report(&profile, &Options::default(), 120);
    assert!(report.contains("Events     23,008 calls in 2 threads, 11,504 a second\n"), "{report}");
    assert!(report.contains("Health     0 lost, 0 mended\n"), "{report}");
}

/// A kitchen in whose second thread there was no room for `serve`.
fn crowded_kitchen() -> Profile {
    let mut profile = kitchen();
    profile.threads[1].tree.nodes =
        vec![node(0, 0, 0, 0.0, 250.0), node(0, 4, 0, 250.0, 250.0), node(1, 3, 1, 0.0, 0.0)];
    profile.functions.push(function("[no room]", ""));
    profile.threads[1].no_room = Some(NoRoom {
        function: FunctionId(4),
        total: exact(250e6),
        nobodys: exact(250e6),
        functions: vec![(FunctionId(3), Some(0.0)), (FunctionId(4), None)],
        is_nameless: false,
    });
    profile
}

#[test]
fn times_that_may_lack_some_are_marked_though_they_are_nothing() {
    let mut profile = crowded_kitchen();
    let no_room = profile.threads[1].no_room.take();
    let unmarked = report(&profile, &Options::default(), 120);
    assert!(unmarked.contains("    0 ns    0.00     0 ns    0.00"), "{unmarked}");
    profile.threads[1].no_room = no_room;
    let report = report(&profile, &Options::default(), 120);
    assert!(report.contains("    0 ns~   0.00     0 ns~   0.00"), "{report}");
    assert!(report.contains("self 0 ns to 260.3 ms, total 0 ns to 260.3 ms: serve"), "{report}");
    assert!(report.contains(" –  serve"), "{report}");
}

#[test]
fn and_so_are_those_of_paths_but_not_for_what_hooks_cost() {
    let mut profile = crowded_kitchen();
    let hooked = Time { value: 0.0, low: 0.0, high: 5.0 };
    profile.threads[0].tree.nodes.push(Node {
        self_time: hooked,
        total: hooked,
        ..node(1, 3, 1, 0.0, 0.0)
    });
    let options = Options { call_tree: true, least_share: 0.0, ..Options::default() };
    let report = report(&profile, &options, 120);
    let paths = &report[report.find("\nCall tree").unwrap()..];
    assert!(paths.contains("   0 ns~     0 ns~       1  · serve"), "{paths}");
    assert!(paths.contains("   0 ns      0 ns        1  · serve"), "{paths}");
}

#[test]
fn the_mean_stays_where_little_may_be_missing() {
    let mut profile = kitchen();
    profile.threads[1].no_room = Some(NoRoom {
        function: FunctionId(4),
        total: exact(10.0),
        functions: vec![(FunctionId(3), None)],
        ..NoRoom::default()
    });
    let mean = |profile: &Profile| {
        let report = report(profile, &Options::default(), 120);
        let row = report.lines().find(|line| line.contains("  serve")).unwrap().to_owned();
        (row.contains(" 250.0 ms   serve"), row.contains(" –  serve"))
    };
    assert_eq!(mean(&profile), (true, false));
    profile.threads[1].no_room.as_mut().unwrap().total = exact(250e6);
    assert_eq!(mean(&profile), (false, true));
}

#[test]
fn waits_for_memory_of_trees_are_no_matter_of_the_disk() {
    let mut profile = kitchen();
    profile.health.lost = 1;
    profile.health.gaps =
        vec![("waited".into(), 4, profile.info.duration_ns), ("stalled".into(), 1, 0)];
    let traced = report(&profile, &Options::default(), 400);
    assert!(traced.contains("whether the disk is full") && traced.contains("a faster disk"));
    profile.info.summed = true;
    let summed = report(&profile, &Options::default(), 400);
    assert!(!summed.contains("disk"), "{summed}");
    assert!(summed.contains("a smaller --tree-size") && summed.contains("has to make"), "{summed}");
}

#[test]
fn a_pause_says_what_is_known_of_it() {
    let mut profile = kitchen();
    profile.health.gaps = vec![("paused".into(), 2, 0)];
    let note = |profile: &Profile| {
        let report = report(profile, &Options::default(), 200);
        report.lines().find(|line| line.contains("paused")).map(str::to_owned).unwrap()
    };
    assert_eq!(note(&profile), "Note       Recording was paused 2 times.");
    profile.functions[0].name = "[unknown]".into();
    assert_eq!(
        note(&profile),
        "Note       Recording was paused 2 times. What was called meanwhile and had not returned \
         when it went on is `[unknown]`."
    );
}

#[test]
fn nothing_recorded_in_a_pause_is_no_matter_of_the_compiler() {
    let mut profile = Profile::default();
    assert!(report(&profile, &Options::default(), 200).contains("`teeperf cc`"));
    profile.health.warnings = vec!["recording was paused from its start to its end".into()];
    let report = report(&profile, &Options::default(), 200);
    assert!(report.starts_with("WARNING    No call was recorded: recording was paused. Resume it"));
    assert!(!report.contains("`teeperf cc`"), "{report}");
}

#[test]
fn losses_up_to_one_in_a_thousand_are_no_warning() {
    let mut profile = kitchen();
    profile.health = Health { events: 999, lost: 1, ..Health::default() };
    assert!(report(&profile, &Options::default(), 120).starts_with("Command"));
    profile.health = Health { events: 998, lost: 1, ..Health::default() };
    assert!(report(&profile, &Options::default(), 120).starts_with("WARNING"));
}

#[test]
fn nothing_recorded_says_how_to_record() {
    let report = report(&Profile::default(), &Options::default(), 120);
    assert!(
        report.starts_with("WARNING    No call was recorded. Build the program with `teeperf cc`")
    );
    assert!(!report.contains("Functions by"));
}

#[test]
fn uncertain_figures_are_flagged_with_their_interval() {
    let mut profile = kitchen();
    // 200 ms ± 40 ms is more than 30 % wide, and so is the caller's total. 2,000 ticks are known
    // to 89, which makes 9 ms; 5,000 calls may have left 30 µs to their caller.
    let tree = &mut profile.threads[1].tree;
    tree.nodes[2].self_time = Time { value: 200e6, low: 160e6, high: 240e6 };
    tree.nodes[2].total = tree.nodes[2].self_time;
    profile.threads.remove(0);
    let report = report(&profile, &Options::default(), 120);
    assert!(report.contains("200.0 ms~  80.00 200.0 ms~  80.00"), "{report}");
    assert!(
        report.contains("    self 151.1 to 249.0 ms, total 151.1 to 249.0 ms: read\n"),
        "{report}"
    );
    assert!(!report.contains("50.00 ms~"));
}

#[test]
fn a_stack_of_any_depth_is_printed() {
    let functions = vec![function("descend", "deep")];
    let nodes: Vec<_> =
        (0..100_000u32).map(|at| node(at.saturating_sub(1), 0, 1, 0.0, 1.0)).collect();
    let profile = Profile {
        functions,
        threads: vec![thread(1, "deep", nodes)],
        health: Health { events: 1, ..Health::default() },
        ..Profile::default()
    };
    let options = Options { call_tree: true, most_paths: 5_000, ..Options::default() };
    let report = report(&profile, &options, 100);
    assert!(report.contains("·4999· descend"));
    assert!(report.contains("… cut off after 5,000 lines; 1 call path and what they call follow"));
}

#[test]
fn a_mean_is_told_once_enough_ticks_fell_into_the_calls() {
    let mut profile = kitchen();
    // `read` was on for 700 ms: 7 ticks of 100 ms, so that it may have been 1.229 s.
    profile.info.period_ns = 100e6;
    let few = report(&profile, &Options::default(), 120);
    assert!(few.contains("23,000  < 53.45 µs   read"), "{few}");
    assert!(few.contains("< fewer than ten ticks, 100.0 ms apart, fell into these calls"), "{few}");
    // 70 ticks are known to a quarter, 7000 well.
    profile.info.period_ns = 10e6;
    let some = report(&profile, &Options::default(), 120);
    assert!(some.contains("23,000    30.43 µs~  read"), "{some}");
    profile.info.period_ns = 1e5;
    let many = report(&profile, &Options::default(), 120);
    assert!(many.contains("23,000    30.43 µs   read"), "{many}");
    // What a call takes is far below a tick, and known all the same.
    profile.threads[1].tree.nodes[2].calls = 20_000_000;
    let short = report(&profile, &Options::default(), 120);
    assert!(short.contains(" ns   read") || short.contains(" ns~  read"), "{short}");
}

#[test]
fn samples_that_are_further_apart_than_was_asked_for_are_said_to_be() {
    let mut profile = kitchen();
    profile.info.clock = "samples".into();
    profile.info.event = "cpu-timer".into();
    profile.info.clock_reason = "cpu-timer of timers".into();
    profile.info.asked_ns = 1e6;
    let clock = |profile: &Profile| {
        let report = report(profile, &Options::default(), 120);
        let line = report.lines().find_map(|line| line.strip_prefix("Clock")).unwrap();
        line.trim().to_owned()
    };
    profile.info.period_ns = 4e6;
    let said = "samples, 4.000 ms apart where 1.000 ms was asked for (cpu-timer of timers)";
    assert_eq!(clock(&profile), said);
    profile.info.period_ns = 1.05e6;
    assert_eq!(clock(&profile), "samples, 1.050 ms apart (cpu-timer of timers)");
    (profile.info.period_ns, profile.info.asked_ns) = (4e6, 0.0);
    assert_eq!(clock(&profile), "samples, 4.000 ms apart (cpu-timer of timers)");
}

#[test]
fn what_async_functions_waited_has_a_table_of_its_own() {
    let mut profile = kitchen();
    let none = report(&profile, &Options::default(), 100);
    assert!(!none.contains("Async"));
    let waits = |function, times, total_ns, longest_ns| Waits {
        function: FunctionId(function),
        times,
        total_ns,
        longest_ns,
    };
    profile.waits = vec![waits(3, 1_200, 6e9, 1e9), waits(1, 0, 0.0, 0.0), waits(9, 1, 0.0, 0.0)];
    let text = report(&profile, &Options { limit: 2, ..Options::default() }, 100);
    let table = "Async functions between polls, in no thread's time: 2 of 3

 WAITED   TIMES     MEAN   LONGEST   FUNCTION
6.000 s   1,200  5.000 ms  1.000 s   serve
    0 ns      0      0 ns      0 ns  parse
… 1 function more
";
    assert!(text.contains(table), "{text}");
    let tables = Options { functions: false, ..Options::default() };
    assert!(!report(&profile, &tables, 100).contains("Async"));
}

#[test]
fn waiting_in_times_of_a_clock_is_said() {
    let note = |cpu_ns: u64, timer_samples| {
        let mut profile = kitchen();
        profile.info.timer_samples = timer_samples;
        let nodes = vec![node(0, 0, 0, 0.0, 1000.0), node(0, 0, 1, 1000.0, 1000.0)];
        profile.threads = vec![teeperf_profile::model::Thread {
            wall_ns: 1_000_000_000,
            cpu_ns: Some(cpu_ns * 1_000_000),
            cpu_over_ns: 1_000_000_000,
            ..thread(11, "kitchen", nodes)
        }];
        let report = report(&profile, &Options::default(), 400);
        report.lines().find(|line| line.contains("no processor")).map(str::to_owned)
    };
    let told = note(100, None).unwrap();
    assert!(
        told.starts_with(
            "Note       Threads had no processor for 90.0 % of the time, which is in these times."
        ) && told.contains("which `teeperf record` takes"),
        "{told}"
    );
    assert_eq!((note(900, None), note(100, Some(700))), (None, None));
}

#[test]
fn threads_have_what_hooks_took_where_samples_tell_it() {
    let table = |profile: &Profile| {
        let text = report(profile, &Options::default(), 100);
        let (_, table) = text.split_once("Threads: 2 of 2").unwrap();
        table.lines().skip(1).take(4).map(str::to_owned).collect::<Vec<_>>()
    };
    let rows = [
        "",
        "RECORDED     WALL       CPU    WAITED     HOOKS   EVENTS  PROCESS       ID  THREAD",
        "1.000 s   1.000 s   900.0 ms  2.000 s   301.4 ns  36,014       10       11  kitchen",
        "250.0 ms  250.0 ms       –        0 ns      0 ns  10,002       10       12  reader",
    ];
    assert_eq!(table(&interrupted_kitchen()), rows);
    let mut profile = interrupted_kitchen();
    profile.threads[0].tree.nodes.iter_mut().for_each(|node| node.spent.hooks_ns = 0.0);
    assert!(!table(&profile)[1].contains("HOOKS"));
}

/// Threads get the program's name where they give themselves none.
#[test]
fn threads_of_one_name_are_told_apart_by_what_they_run() {
    let mut profile = kitchen();
    let names = |profile: &Profile| -> Vec<String> {
        let report = report(profile, &Options::default(), 100);
        let lines = report.lines().skip_while(|line| !line.ends_with("  THREAD")).skip(1);
        lines.map(|line| line.rsplit("  ").next().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&profile), ["kitchen", "reader"]);
    profile.threads[1].name = "kitchen".into();
    assert_eq!(names(&profile), ["kitchen: main", "kitchen: serve"]);
    // Of another process likewise.
    profile.threads[1].pid += 1;
    assert_eq!(names(&profile), ["kitchen: main", "kitchen: serve"]);
    profile.threads[1].pid -= 1;
    profile.functions[3].name =
        "ns::Kitchen::serve_all(std::vector<int, std::allocator<int>>)".into();
    assert_eq!(names(&profile)[1], "kitchen: ns::Kitchen::serve_all");
}

/// Threads of one name are told apart by where their busiest paths part, in other processes too.
#[test]
fn threads_called_the_same_are_told_apart() {
    let path = |tid, functions: &[u32]| {
        let mut nodes = vec![node(0, 0, 0, 0.0, 100.0)];
        nodes.extend(functions.iter().zip(0..).map(|(&f, parent)| node(parent, f, 1, 0.0, 100.0)));
        thread(tid, "worker", nodes)
    };
    let rows = |threads: Vec<teeperf_profile::model::Thread>| -> Vec<String> {
        let report = report(&Profile { threads, ..kitchen() }, &Options::default(), 120);
        let table = &report[report.find("\nThreads").unwrap()..];
        let rows = table.lines().filter(|line| line.contains("worker"));
        rows.map(|row| row[row.find("worker").unwrap()..].to_owned()).collect()
    };
    // main, then parse or read: as workers that a server forks.
    let other = |mut thread: teeperf_profile::model::Thread| {
        thread.pid = 11;
        thread
    };
    assert_eq!(
        rows(vec![path(1, &[0, 1, 2]), other(path(2, &[0, 2])), other(path(3, &[0]))]),
        ["worker: parse", "worker: read", "worker: main"]
    );
    // The same all along: the first function in one process, and nothing where processes have ids.
    assert_eq!(rows(vec![path(1, &[0, 1]), path(2, &[0, 1])]), ["worker: main", "worker: main"]);
    assert_eq!(rows(vec![path(1, &[0, 1]), other(path(2, &[0, 1]))]), ["worker", "worker"]);
    // A function that takes little of its caller's time tells nothing.
    let mut little = path(1, &[0, 1]);
    little.tree.nodes[2].total.value = 1.0;
    assert_eq!(rows(vec![little, path(2, &[0, 1])]), ["worker: main", "worker: parse"]);
}

#[test]
fn time_outside_of_hooks_and_single_calls_are_noted() {
    let notes = |profile: &Profile| -> Vec<String> {
        let found = teeperf_view::findings::of(profile);
        let is_meant = |what: &str| what.contains("outside of all") || what.starts_with("One call");
        found.into_iter().map(|finding| finding.what).filter(|what| is_meant(what)).collect()
    };
    assert_eq!(notes(&kitchen()), [""; 0]);
    // 900 ms of a processor; in calls for no more than 200 ms of a second.
    let mut profile = kitchen();
    let exactly = |value| Time { value, low: value, high: value };
    profile.threads[0].tree.nodes[0].self_time = exactly(800e6);
    let said = notes(&profile);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("kitchen (thread 11) for 700.0 ms of 900.0 ms"), "{said:?}");
    // What is not known for certain, what a filter left out, and little of it are not said.
    profile.threads[0].tree.nodes[0].self_time.low = 100e6;
    assert_eq!(notes(&profile), [""; 0]);
    profile.threads[0].tree.nodes[0].self_time = exactly(800e6);
    profile.info.filters = vec![vec!["only parse".into()]];
    assert_eq!(notes(&profile), [""; 0]);
    profile.info.filters.clear();
    profile.threads[0].cpu_ns = Some(250_000_000);
    assert_eq!(notes(&profile), [""; 0]);

    // Of three calls of a function that take 600 ms, one takes 500.
    let mut profile = kitchen();
    profile.length_unit_ns = Some(1e6);
    let mut lengths = teeperf_profile::lengths::Lengths::default();
    [50, 50, 500].iter().for_each(|&length| lengths.add(length));
    profile.threads[0].lengths = vec![(FunctionId(1), lengths.clone())];
    let said = notes(&profile);
    assert_eq!(
        said,
        ["One call of parse took 500.0 ms of the 600.0 ms of its 3 calls: their mean says little."]
    );
    // Of many that take more than it there is nothing to say, nor of a function that is called twice.
    (0..20).for_each(|_| lengths.add(50));
    profile.threads[0].lengths = vec![(FunctionId(1), lengths)];
    assert_eq!(notes(&profile), [""; 0]);
    // Likewise where calls were summed on their paths.
    let mut profile = kitchen();
    let longest =
        |longest_ns| Some(teeperf_profile::model::Extremes { shortest_ns: 1.0, longest_ns });
    profile.threads[0].tree.nodes[2].extremes = longest(400e6);
    profile.threads[0].tree.nodes[1].extremes = longest(1000e6);
    assert_eq!(notes(&profile).len(), 1);
}

#[test]
fn functions_that_are_shown_by_their_addresses_are_noted() {
    let notes = |profile: &Profile| -> Vec<String> {
        let found = teeperf_view::findings::of(profile);
        let texts = found.into_iter().map(|finding| finding.what);
        texts.filter(|what| what.contains("symbols")).collect()
    };
    let mut profile = kitchen();
    assert_eq!(notes(&profile), [""; 0]);
    let module = profile.functions[1].module.clone();
    profile.functions[1].name = format!("{module}+0x10");
    let own = |profile: &mut Profile, value| {
        for node in &mut profile.threads[0].tree.nodes {
            let own = if node.function == FunctionId(1) { value } else { 500e6 };
            node.self_time = Time { value: own, low: own, high: own };
        }
    };
    own(&mut profile, 500e6);
    let said = notes(&profile);
    let begin = format!("1 function of {module} has no symbols: ");
    assert!(said.len() == 1 && said[0].starts_with(&begin), "{said:?}");
    // Nobody looks at what takes next to nothing.
    own(&mut profile, 1.0);
    assert_eq!(notes(&profile), [""; 0]);
}
