//! Two kitchens, compared: `parse` takes longer, `read` in `main` has given way to a function with a hostile name.

use crate::support::{function, kitchen};
use roxmltree::{Document, ParsingOptions};
use serde_json::Value;
use teeperf_profile::diff::condition::Condition;
use teeperf_profile::diff::outcome::Outcome;
use teeperf_profile::diff::{Comparison, Diff, Options, Side};
use teeperf_profile::model::{FunctionId, Profile, Time};
use teeperf_view::diff::{self, Sort, text};
use teeperf_view::page;
use teeperf_view::style::Style;

const HOSTILE: &str = "</script>\x1b[31m;\"new\", \u{202e}";

fn changed() -> Profile {
    let mut profile = kitchen();
    profile.functions.push(function(HOSTILE, "kitchen"));
    profile.threads[1].tree.nodes[1].self_time = Time::from(51e6);
    profile.threads[1].tree.nodes[1].total = Time::from(251e6);
    profile.threads[1].tree.nodes[0].total = Time::from(251e6);
    let nodes = &mut profile.threads[0].tree.nodes;
    nodes[2].self_time = Time::from(500e6);
    nodes[5].function = FunctionId(profile.functions.len() as u32 - 1);
    nodes[5].self_time = Time::from(100e6);
    nodes[5].calls = 7;
    for node in nodes.iter_mut() {
        node.total = node.self_time;
    }
    for at in (1..nodes.len()).rev() {
        let (parent, total) = (nodes[at].parent as usize, nodes[at].total);
        nodes[parent].total += total;
    }
    profile
}

fn compared(before: &[Profile], after: &[Profile]) -> Diff {
    let mut comparison = Comparison::default();
    before.iter().for_each(|run| comparison.add(Side::Before, "old.teeperf", run.clone()));
    after.iter().for_each(|run| comparison.add(Side::After, "new.teeperf", run.clone()));
    comparison.finish(&Options::default())
}

fn two() -> Diff {
    compared(&[kitchen()], &[changed()])
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn report(diff: &Diff, options: &text::Options, colour: bool) -> String {
    written(|out| text::write(diff, options, &Style { colour, width: 120 }, out))
}

#[test]
fn the_report_has_the_whole_first_and_then_functions() {
    let expected = include_str!("data/text/compared-120.txt");
    assert_eq!(report(&two(), &text::Options::default(), false), expected);
}

#[test]
fn noise_is_faint_and_changes_are_not() {
    let report = report(&two(), &text::Options::default(), true);
    let line = |name: &str| report.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(line("  parse").starts_with("\x1b[1;31m"), "{report}");
    assert!(line("  serve").starts_with("\x1b[2m"), "{report}");
    assert!(line("  read").starts_with("\x1b[32m"), "{report}");
    assert!(!report.contains("\x1b[31m;"), "{report}");
}

#[test]
fn what_differs_little_can_be_left_out() {
    let options = text::Options { threshold: 0.3, sort: Sort::Name, ..text::Options::default() };
    let report = report(&two(), &options, false);
    assert!(
        !report.contains("  main") && report.contains("  parse") && report.contains("[new]"),
        "{report}"
    );
    let options = text::Options { limit: 1, ..text::Options::default() };
    let report = self::report(&two(), &options, false);
    assert!(report.contains("1 of 5") && !report.contains("  serve"), "{report}");
}

#[test]
fn json_has_every_figure() {
    let text = written(|out| diff::json::write(&two(), out));
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&json["format"], &json["version"]), (&"teeperf-diff".into(), &1.into()));
    assert_eq!(json["before"][0]["recording"], "old.teeperf");
    let parse =
        json["functions"].as_array().unwrap().iter().find(|f| f["name"] == "parse").unwrap();
    assert_eq!(parse["self"]["before"], 400e6);
    assert_eq!(parse["self"]["difference"], 200e6);
    assert_eq!(
        (&parse["self"]["is_change"], &parse["calls"]["is_change"]),
        (&true.into(), &false.into())
    );
    let new = json["functions"].as_array().unwrap().iter().find(|f| f["name"] == HOSTILE).unwrap();
    assert_eq!((&new["presence"], &new["calls"]["after"]), (&"new".into(), &7.0.into()));
    assert_eq!(json["whole"]["before"], 1250e6);
}

#[test]
fn csv_has_a_line_for_each_function_whatever_its_name() {
    let text = written(|out| diff::csv::write(&two(), Sort::Name, out));
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert_eq!((lines.len(), lines[6]), (7, ""));
    assert!(lines[0].starts_with("function,module,presence,calls_before,calls_after,"));
    assert!(
        lines[1]
            .starts_with("\"</script>\\x1b[31m;\"\"new\"\", \\u{202e}\",kitchen,new,0,7,7,0,true,")
    );
    assert!(
        lines.contains(
            &lines
                .iter()
                .find(|l| l
                    .starts_with("parse,kitchen,both,6,6,0,0,false,400000000,600000000,200000000,"))
                .copied()
                .unwrap()
        )
    );
}

#[test]
fn folded_stacks_have_two_counts() {
    let text = written(|out| diff::folded::write(&two(), out));
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.contains(&"main;parse 300000000 500000000"), "{text}");
    assert!(lines.contains(&"main;read 300000000 0"), "{text}");
    assert!(lines.contains(&"main;</script> [31m:\"new\", 0 100000000"), "{text}");
}

#[test]
fn frames_are_red_where_they_grew_and_blue_where_they_shrank() {
    let colour = |widths, name: &str| {
        let text = written(|out| diff::svg::write(&two(), widths, out));
        let options = ParsingOptions { nodes_limit: 1_000_000, ..Default::default() };
        let document = Document::parse_with_options(&text, options).expect("well-formed XML");
        let title = |node: &roxmltree::Node<'_, '_>| {
            node.has_tag_name(("http://www.w3.org/2000/svg", "title"))
                && node.text().is_some_and(|text| text.starts_with(&format!("{name}\n")))
        };
        let title = document.descendants().find(title)?;
        let rect = title.next_sibling_element()?;
        Some(rect.attribute("fill")?.to_owned())
    };
    let channels =
        |colour: &str| [1, 3, 5].map(|at| u8::from_str_radix(&colour[at..at + 2], 16).unwrap());
    let [red, _, blue] = channels(&colour(Side::After, "parse").unwrap());
    assert!(red > blue);
    let [red, green, blue] = channels(&colour(Side::After, "serve").unwrap());
    assert!(red == green && green == blue);
    let [red, _, blue] = channels(&colour(Side::Before, "read").unwrap());
    assert!(red < blue);
}

#[test]
fn the_page_has_both_sides_of_the_same_paths() {
    let text =
        written(|out| diff::page::write(&two(), Side::Before, &page::Options::default(), out));
    assert_eq!(text.matches("</script>").count(), 2);
    let begin = text.find("id=\"profile\">").unwrap() + "id=\"profile\">".len();
    let data: Value =
        serde_json::from_str(&text[begin..begin + text[begin..].find("</script>").unwrap()])
            .unwrap();
    assert_eq!(data["compared"]["first"], 1);
    let threads = data["threads"].as_array().unwrap();
    assert_eq!((threads.len(), &threads[0]["nodes"]), (2, &threads[1]["nodes"]));
    assert_eq!(
        (&threads[0]["up"], &threads[0]["function"]),
        (&threads[1]["up"], &threads[1]["function"])
    );
    assert_ne!(threads[0]["self"], threads[1]["self"]);
    // No more paths than are asked for on both sides together, and what is left out is told.
    let options = page::Options { most_paths: 8, bottom_up: false };
    let text = written(|out| diff::page::write(&two(), Side::After, &options, out));
    assert!(text.contains("4 of 8 call paths") && text.contains("[short call paths]"), "{text}");
}

#[test]
fn runs_that_were_recorded_otherwise_are_told() {
    let what = |change: &dyn Fn(&mut Profile)| {
        let mut after = kitchen();
        change(&mut after);
        let found = diff::findings(&compared(&[kitchen()], &[after]));
        found.into_iter().filter(|f| f.warning).map(|f| f.what).collect::<Vec<_>>().join("\n")
    };
    let plain = what(&|_| {});
    for (change, expected) in [
        (
            &(|p: &mut Profile| p.info.filters = vec![vec!["only parse".into()]])
                as &dyn Fn(&mut Profile),
            "everything before, only parse after",
        ),
        (&|p| p.info.clock = "cycle".into(), "tick before, cycle after"),
        (&|p| p.info.summed = true, "single calls before, sums (--probe tree) after"),
        (&|p| p.health.lost = 999, "999 calls or returns were lost after"),
        (&|p| p.health.gaps = vec![("paused".into(), 1, 5)], "paused after"),
        (&|p| p.health.unopened = 4, "begin in the midst of calls"),
        (&|p| p.info.signal = Some(11), "signal 11 after"),
        (&|p| p.info.processor = "Other".into(), "CPU, x86_64 before, Other, x86_64 after"),
    ] {
        let told = what(change);
        assert!(told.contains(expected), "{expected}: {told}");
        assert!(!plain.contains(expected), "{plain}");
    }
}

#[test]
fn failures_say_which_condition_and_why() {
    let of = |text: &str| {
        let condition = Condition::parse(text).unwrap();
        diff::failures::of(&condition, &condition.met(&two()), &two())
    };
    assert_eq!(of("self(parse) > +60%"), [""; 0]);
    let lines = of("self(parse) > +40% and calls(parse) > 5");
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].starts_with("failed: self(parse) > +40% and calls(parse) > 5: parse: self 400.0 ms → 600.0 ms, +50.0 % ± "),
        "{lines:?}"
    );
    assert!(lines[0].ends_with("; calls 6 → 6, +0.0 %"), "{lines:?}");
    let lines = of("any self > +10% and any self > 90ms");
    let new = lines.iter().find(|line| line.contains("script")).unwrap();
    assert!(new.ends_with("self 0 ns → 100.0 ms, new"), "{lines:?}");
}

#[test]
fn what_cannot_be_told_says_why_and_what_to_do() {
    let condition = Condition::parse("total > +3%").unwrap();
    let Outcome::Unsure(found) = condition.outcome(&two()) else { panic!("it is told") };
    let line = diff::failures::unsure(&condition, &found, &two());
    assert!(
        line.starts_with("cannot tell: total > +3%: with one run a side no change below 8."),
        "{line}"
    );
    assert!(line.contains("it asks for 3.0 %") && line.contains("--unsure pass"), "{line}");
}
