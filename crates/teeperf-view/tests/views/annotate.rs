//! Sources with figures: of the kitchen, whose `parse` calls `read` from one line and itself from two.

use crate::support::kitchen;
use std::collections::BTreeMap;
use teeperf_profile::annotate::{Noted, annotate};
use teeperf_profile::model::{FunctionId, Profile};
use teeperf_view::annotate;
use teeperf_view::style::Style;

const SOURCE: &str = "\
int read(int n);

static int parse(int n)
{
\tif (n > 3) {
        parse(n - 1);
    }\x1b[31m
    parse(n / 2);
    return read(n);
}
int after(void) { return 0; }
";

fn noted(line: u32) -> (Profile, Vec<Noted>) {
    let mut profile = kitchen();
    profile.functions[1].file = Some("/src/soup.c".into());
    profile.functions[1].line = Some(line);
    let mut noted = annotate(&profile, &[FunctionId(1)], &[None], &[]);
    for callee in &mut noted[0].callees {
        let lines: &[u32] = if callee.name == "parse" { &[6, 8] } else { &[9] };
        callee.sites = lines.iter().map(|&line| ("/src/soup.c".into(), line)).collect();
        callee.places = lines.len();
    }
    (profile, noted)
}

fn text(line: u32, has_source: bool) -> String {
    let (profile, noted) = noted(line);
    let source = ("/src/soup.c".to_owned(), SOURCE.to_owned());
    let sources = BTreeMap::from_iter(has_source.then_some(source));
    let mut out = Vec::new();
    let style = Style { colour: false, width: 100 };
    annotate::write(&profile, &noted, &sources, &style, false, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn figures_stand_beside_the_source() {
    assert_eq!(text(3, true), include_str!("data/text/annotated.txt"));
}

#[test]
fn a_function_begins_in_front_of_its_bracket() {
    assert_eq!(text(4, true), text(3, true));
}

#[test]
fn without_a_source_there_are_figures_and_callees() {
    let text = text(3, false);
    assert!(text.starts_with("/src/soup.c (not found)\n"), "{text}");
    assert!(text.contains("       3  parse\n"), "{text}");
    assert!(text.contains("=> parse, from 2 sites, lines 6, 8\n"), "{text}");
    assert!(text.contains("=> read, from line 9\n"), "{text}");
}

#[test]
fn several_functions_have_their_names_and_no_line_is_wider_than_a_terminal() {
    let (profile, one) = noted(3);
    let two = [one[0].clone(), one[0].clone()];
    let long = SOURCE.replace(
        "int n)",
        "int n /* which is a number that takes a long comment to explain, longer than any */)",
    );
    let sources = BTreeMap::from([("/src/soup.c".to_owned(), long)]);
    let written = |noted: &[Noted], is_cut| {
        let mut out = Vec::new();
        let style = Style { colour: false, width: 90 };
        annotate::write(&profile, noted, &sources, &style, is_cut, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let text = written(&two, true);
    assert_eq!(text.lines().filter(|line| *line == "parse").count(), 2, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 90) && text.contains('…'), "{text}");
    let whole = written(&one, false);
    assert!(
        !whole.lines().any(|line| line == "parse") && whole.contains("longer than any */)"),
        "{whole}"
    );
}

#[test]
fn a_file_of_another_build_is_told() {
    let text = text(30, true);
    assert!(text.contains("the file has no line 30: it is not that of the build"), "{text}");
}

#[test]
fn json_has_the_sites() {
    let (profile, noted) = noted(3);
    let mut out = Vec::new();
    annotate::write_json(&profile, &noted, &mut out).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let parse = &json["functions"][0];
    assert_eq!(
        (&parse["name"], &parse["calls"], &parse["line"]),
        (&"parse".into(), &6.into(), &3.into())
    );
    let callees = parse["callees"].as_array().unwrap();
    let read = callees.iter().find(|callee| callee["name"] == "read").unwrap();
    assert_eq!((&read["calls"], &read["sites"][0]["line"]), (&8000.into(), &9.into()));
}
