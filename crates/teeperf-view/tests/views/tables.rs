//! Tables beside the usual ones, on a terminal and as CSV.

use crate::support::{interrupted_kitchen, kitchen};
use teeperf_profile::aggregate::Sort;
use teeperf_profile::around::around;
use teeperf_profile::groups::{By, groups};
use teeperf_profile::inlined::Inlined;
use teeperf_profile::lengths::Lengths;
use teeperf_profile::model::{FunctionId, Profile};
use teeperf_profile::pattern::{Found, Pattern};
use teeperf_view::style::Style;
use teeperf_view::tables::{self, Table};

fn drawn(table: &Table, width: usize) -> String {
    let mut out = Vec::new();
    tables::write_text(table, &kitchen().functions, &Style { colour: false, width }, &mut out)
        .unwrap();
    let text = String::from_utf8(out).unwrap();
    for line in text.lines() {
        assert!(line.chars().count() <= width, "{width}: {line}");
    }
    text
}

fn rows(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().skip_while(|line| !line.contains("CALLS"));
    lines.map(|line| line.split_whitespace().collect()).collect()
}

/// As a program reads it: the header, and each row.
fn read(table: &Table) -> (Vec<String>, Vec<Vec<String>>) {
    let mut out = Vec::new();
    tables::write_csv(table, &mut out).unwrap();
    assert!(out.ends_with(b"\r\n") || out.is_empty());
    let mut reader = csv::Reader::from_reader(&out[..]);
    let header = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let rows = reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect());
    (header, rows.collect())
}

/// The kitchen with calls that were timed in units of 2 ns: of `read` 1,000, of 1 to 1,000 units; of `parse` one.
fn timed(period_ns: f64) -> Profile {
    let mut profile = kitchen();
    profile.info.period_ns = period_ns;
    profile.length_unit_ns = Some(2.0);
    let place = |name: &str| profile.functions.iter().position(|f| f.name.contains(name)).unwrap();
    let (read, parse) = (FunctionId(place("read") as u32), FunctionId(place("parse") as u32));
    for (thread, from) in profile.threads.iter_mut().zip([1, 501]) {
        let mut lengths = Lengths::default();
        (from..from + 500).for_each(|length| lengths.add(length));
        thread.lengths.push((read, lengths));
    }
    let mut one = Lengths::default();
    one.add(50_000_000);
    profile.threads[0].lengths.push((parse, one));
    profile
}

fn named(profile: &Profile, text: &str) -> Found {
    Pattern::new(text).unwrap().among(&profile.functions)
}

#[test]
fn callers_and_callees() {
    let profile = kitchen();
    let (list, all) = around(&profile, &named(&profile, "parse"), 10);
    assert_eq!((list.len(), all), (1, 1));
    let found = tables::around(&profile, &list[0], true, true, 20);
    let [callers, callees] = [0, 1].map(|at| drawn(&found[at], 80));
    assert!(callers.contains("parse: ") && callers.contains(" of all time"), "{callers}");
    assert_eq!(rows(&callers)[0], ["TOTAL", "TOTAL%", "SELF", "CALLS", "CALLER"]);
    assert_eq!(rows(&callers)[1].last(), Some(&"main"));
    assert!(rows(&callees).iter().any(|row| row.last().is_some_and(|name| name.contains("read"))));
    let mut sampled = kitchen();
    sampled.info.event = "cycles".into();
    let (samples, _) = around(&sampled, &named(&sampled, "parse"), 10);
    let callers = drawn(&tables::around(&sampled, &samples[0], true, true, 20)[0], 80);
    assert!(callers.contains(" in 6 samples, "), "{callers}");
    assert!(callers.contains("SAMPLES  CALLER"), "{callers}");
    let table = tables::neighbours(&profile, &list, true, true);
    let (header, rows) = read(&table);
    assert_eq!(
        header,
        [
            "function",
            "module",
            "relation",
            "total_ns",
            "share",
            "self_ns",
            "calls",
            "other",
            "other_module"
        ]
    );
    assert_eq!(rows[0][..3], ["parse", "kitchen", "caller"]);
    assert_eq!(rows.len(), list[0].callers.len() + list[0].callees.len());
    // Of a whole name that function alone, of a part all that have it.
    let count = |text: &str| around(&profile, &named(&profile, text), 9).1;
    assert_eq!((count("main"), count("r"), count("nothing")), (1, 3, 0));
}

#[test]
fn groups_have_their_functions() {
    let profile = kitchen();
    for (by, name) in [
        (By::Thread, "thread"),
        (By::Process, "process"),
        (By::Module, "module"),
        (By::File, "file"),
    ] {
        let groups = groups(&profile, by, Sort::SelfTime);
        let whole: f64 = groups.iter().map(|group| group.self_time.value).sum();
        assert!((whole - profile.framed_ns()).abs() < 1.0, "{name}: {whole}");
        let text = drawn(&tables::by(&profile, &groups, by, 20, true), 80);
        assert!(text.contains(&format!("Functions by {name}")), "{text}");
        let (header, rows) = read(&tables::by(&profile, &groups, by, 20, false));
        assert!(header.iter().any(|column| column == name), "{header:?}");
        let functions: usize = groups.iter().map(|group| group.functions.len()).sum();
        assert_eq!(rows.len(), groups.len() + functions);
    }
    let of_threads = groups(&profile, By::Thread, Sort::SelfTime);
    let text = drawn(&tables::by(&profile, &of_threads, By::Thread, 20, true), 100);
    assert!(text.contains("reader, thread 12 of process 10"), "{text}");
}

/// Who names functions with `--timed` asks for these.
#[test]
fn functions_that_the_counter_timed_come_first() {
    let mut profile = timed(100_000.0);
    let first = |profile: &Profile, order| {
        let (header, rows) = read(&tables::lengths(profile, order, 20));
        let name = header.iter().position(|column| column == "function").unwrap();
        rows[0][name].clone()
    };
    let own = tables::Order::Table(Sort::SelfTime);
    assert_ne!(first(&profile, own), "serve");
    let serve = profile.functions.iter().position(|f| f.name == "serve").unwrap();
    let mut one = Lengths::default();
    one.add(5_000);
    profile.threads[1].counted.push((FunctionId(serve as u32), one));
    assert_eq!(first(&profile, own), "serve");
    assert_ne!(first(&profile, tables::Order::Table(Sort::Calls)), "serve");
    let text = drawn(&tables::lengths(&profile, own, 1), 400);
    assert!(!text.contains(" no length"), "its one call has one: {text}");
}

/// Overloads differ in nothing else.
#[test]
fn headings_have_whole_names() {
    let mut profile = kitchen();
    let long = format!("ns::Table::find({}int) const", "unsigned long, ".repeat(9));
    profile.functions[1].name.clone_from(&long);
    let (list, _) = around(&profile, &named(&profile, &long), 10);
    let found = tables::around(&profile, &list[0], true, true, 20);
    for table in &found {
        assert!(table.title.starts_with(&long), "{}", table.title);
        drawn(table, 80);
    }
}

#[test]
fn lengths_of_calls() {
    let profile = timed(0.0);
    let text = drawn(&tables::lengths(&profile, tables::Order::Table(Sort::SelfTime), 20), 132);
    let heads = [
        "MEAN", "SHORTEST", "50", "%", "90", "%", "99", "%", "99.9", "%", "LONGEST", "CALLS",
        "FUNCTION",
    ];
    assert_eq!(rows(&text)[0], heads);
    let of = |name: &str| text.lines().find(|line| line.contains(name)).unwrap();
    let figures: Vec<&str> =
        of("read").split("  ").map(str::trim).filter(|f| !f.is_empty()).collect();
    // Exact at both ends, and in the middle the middles of buckets.
    assert_eq!(figures[..2], ["1.001 µs", "2.000 ns"]);
    assert_eq!(figures[6], "2.000 µs");
    assert!(of("main").trim_start().starts_with("–  "), "{text}");
    assert!(
        drawn(&tables::lengths(&profile, tables::Order::Table(Sort::SelfTime), 20), 80)
            .contains("FUNCTION")
    );
    // Names have room on a usual terminal, and in a pipe.
    let text = drawn(&tables::lengths(&profile, tables::Order::Table(Sort::SelfTime), 20), 100);
    assert!(!text.contains("SHORTEST") && !text.contains("90 %"), "{text}");
    let (header, rows) = read(&tables::lengths(&profile, tables::Order::Table(Sort::SelfTime), 20));
    let column = |name: &str| header.iter().position(|column| column == name).unwrap();
    let row = rows.iter().find(|row| row[column("function")].contains("read")).unwrap();
    assert_eq!((&row[column("mean_ns")][..], &row[column("timed_calls")][..]), ("1001", "1000"));
    for (name, exact) in [("p50_ns", 1000.0), ("p90_ns", 1800.0), ("p99_ns", 1980.0)] {
        let told: f64 = row[column(name)].parse().unwrap();
        assert!((told - exact).abs() <= exact / 64.0 + 2.0, "{name} {told}");
    }
}

#[test]
fn with_a_tick_short_lengths_are_not_made_up() {
    let profile = timed(100_000.0);
    let text = drawn(&tables::lengths(&profile, tables::Order::Table(Sort::SelfTime), 20), 132);
    let line = text.lines().find(|line| line.contains("read")).unwrap();
    assert_eq!(line.matches("< 150.0 µs").count(), 6, "{line}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("single lengths are known to 150.0 µs only"), "{text}");
    let (header, rows) = read(&tables::lengths(&profile, tables::Order::Table(Sort::SelfTime), 20));
    let p50 = header.iter().position(|column| column == "p50_ns").unwrap();
    assert!(
        rows.iter().any(|row| row[p50].is_empty() && row.iter().any(|cell| cell.contains("read")))
    );
}

/// Of a function that the counter has timed, its lengths alone are told, and are known however short.
#[test]
fn what_the_counter_timed_is_known() {
    let mut profile = timed(100_000.0);
    let (read_all, _) = profile.threads[0].lengths[0].clone();
    let mut counted = Lengths::default();
    (1..=100).for_each(|ns| counted.add(ns * 1000));
    profile.threads[1].counted.push((read_all, counted));
    let text = drawn(&tables::lengths(&profile, tables::Order::Table(Sort::SelfTime), 20), 132);
    let line = text.lines().find(|line| line.contains("read")).unwrap();
    let cells: Vec<&str> =
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(
        (cells[0], cells[1], cells[6], cells[8]),
        ("50.50 ns", "1.000 ns", "100.0 ns", "counter")
    );
    assert!(text.lines().any(|line| line.contains("parse") && line.contains("  tick  ")), "{text}");
    let (header, rows) = read(&tables::lengths(&profile, tables::Order::Table(Sort::SelfTime), 20));
    let column = |name: &str| header.iter().position(|column| column == name).unwrap();
    let row = rows.iter().find(|row| row[column("function")].contains("read")).unwrap();
    assert_eq!((&row[column("timed_by")][..], &row[column("timed_calls")][..]), ("counter", "100"));
    let (found, _) = tables::histogram(&profile, &named(&profile, "read"), 5);
    assert!(drawn(&found[0], 100).contains("100 calls, timed by the counter, 50.50 ns on average"));
}

#[test]
fn a_histogram_has_all_calls() {
    let profile = timed(0.0);
    let (found, all) = tables::histogram(&profile, &named(&profile, "read"), 5);
    assert_eq!((found.len(), all), (1, 1));
    let text = drawn(&found[0], 100);
    assert!(text.contains("1,000 calls, 1.001 µs on average"), "{text}");
    let (header, rows) = read(&found[0]);
    assert_eq!(
        header,
        ["function", "module", "from_ns", "below_ns", "calls", "share", "share_so_far", "timed_by"]
    );
    let number = |row: &Vec<String>, at: usize| row[at].parse::<f64>().unwrap();
    assert_eq!(rows.iter().map(|row| number(row, 4)).sum::<f64>(), 1000.0);
    assert!(rows.windows(2).all(|two| number(&two[0], 3) == number(&two[1], 2)));
    // Lengths are 2, 4, … 2000 ns: as many as bins have room for, but for the last.
    for bin in &rows[..rows.len() - 1] {
        let even = |ns: f64| (ns / 2.0).ceil();
        let first = even(number(bin, 2)).max(1.0);
        assert_eq!(number(bin, 4), even(number(bin, 3)) - first, "{bin:?}");
    }
    assert_eq!(tables::histogram(&profile, &named(&profile, "nothing"), 5).1, 0);
}

#[test]
fn of_inlined_functions_as_many_as_there_is_room_for() {
    let profile = kitchen();
    let names = |count: usize| (0..count).map(|n| format!("inlined_{n}")).collect();
    let told = Inlined {
        functions: vec![(FunctionId(1), names(40)), (FunctionId(2), names(2))],
        unknown: vec!["it has no debug information".into()],
    };
    let table = tables::inlined(&profile, &told, Sort::SelfTime);
    let text = drawn(&table, 80);
    assert!(text.contains("inlined_0, ") && text.contains(" more\n"), "{text}");
    assert!(
        text.contains("inlined_0, inlined_1\n") && text.contains("no debug information"),
        "{text}"
    );
    assert_eq!(read(&table).1[0][4].split(", ").count(), 40);
}

#[test]
fn functions_with_any_names_are_csv() {
    let mut profile = kitchen();
    let hostile = "f(\"a,b\", \r\n c)";
    profile.functions[1].name = hostile.into();
    let (header, rows) = read(&tables::functions(&profile, Sort::SelfTime, 20));
    assert_eq!(header[..6], ["function", "module", "file", "line", "calls", "self_ns"]);
    assert!(rows.iter().any(|row| row[0] == "f(\"a,b\", \\x0d\\x0a c)"));
    profile.functions[1].name = "=cmd|' /C calc'!A0".into();
    let (_, rows) = read(&tables::functions(&profile, Sort::SelfTime, 20));
    let row = rows.iter().find(|row| row[0] == "'=cmd|' /C calc'!A0").unwrap();
    assert!(row[4..6].iter().all(|number| number.parse::<f64>().is_ok()), "{row:?}");
    let (header, rows) = read(&tables::threads(&profile, 20));
    assert_eq!((header.len(), rows.len()), (9, 2));
    let (header, rows) = read(&tables::threads(&interrupted_kitchen(), 20));
    assert_eq!(header[9..], ["waiting_ns", "hooks_ns"]);
    assert_eq!(rows[0][9..], ["2000000005", "301.4"]);
    let text = drawn(&tables::lines(&profile, Sort::SelfTime, 20), 80);
    assert!(text.contains("DEFINED AT") && !text.contains('\r'), "{text}");
}
