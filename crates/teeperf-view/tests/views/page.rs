//! What the page carries and what it must not: the data read back by a decoder written
//! here, and the text of the file for anything that could load, send or break out. What it
//! does in a browser is tested in `web/`.

use serde_json::Value;
use teeperf_profile::diff::{self, Comparison, Side};
use teeperf_profile::model::{FunctionId, NoRoom, Point, PointKind, Profile, Spent, Time};
use teeperf_view::diff as compare;
use teeperf_view::page::{self, Options};

use crate::support::{exact, interrupted_kitchen, kitchen};

fn page(profile: &Profile) -> String {
    let mut out = Vec::new();
    page::write(profile, &Options::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn raw_data(page: &str) -> &str {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"profile\">").unwrap();
    rest.split_once("</script>").unwrap().0
}

fn data(page: &str) -> Value {
    serde_json::from_str(raw_data(page)).unwrap()
}

/// A column: base64, then LEB128.
fn column(value: &Value) -> Vec<u64> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => panic!("{c} in base64"),
    };
    let mut bits = Vec::new();
    for c in value.as_str().unwrap().trim_end_matches('=').bytes() {
        bits.extend((0..6).rev().map(|bit| digit(c) >> bit & 1));
    }
    let bytes = bits.chunks_exact(8).map(|byte| byte.iter().fold(0, |sum, bit| sum << 1 | bit));
    let mut numbers = vec![];
    let (mut number, mut shift) = (0u64, 0);
    for byte in bytes {
        number |= u64::from(byte & 127) << shift;
        shift += 7;
        if byte < 128 {
            numbers.push(std::mem::take(&mut number));
            shift = 0;
        }
    }
    numbers
}

#[test]
fn all_call_paths_are_in_it() {
    let mut profile = kitchen();
    profile.threads[0].tree.nodes[1].self_time = Time { value: 100e6, low: 90e6, high: 100.4e6 };
    let data = data(&page(&profile));
    let first = &data["threads"][0];
    assert_eq!(first["nodes"], 6);
    assert_eq!(column(&first["up"]), [0, 1, 1, 1, 1, 4]);
    assert_eq!(column(&first["function"]), [0, 0, 1, 1, 2, 2]);
    assert_eq!(column(&first["calls"]), [0, 1, 4, 2, 8_000, 10_000]);
    let ms = |list: [u64; 6]| list.map(|ms| ms * 1_000_000);
    assert_eq!(column(&first["self"]), ms([0, 100, 300, 100, 200, 300]));
    assert_eq!(column(&first["less"]), ms([0, 10, 0, 0, 0, 0]));
    assert_eq!(column(&first["more"]), [0, 400_000, 0, 0, 0, 0]);
    assert_eq!(data["threads"][1]["name"], "reader");
    let read = &data["functions"][2];
    assert_eq!(read[0], "read");
    assert_eq!(data["modules"][read[1].as_u64().unwrap() as usize], "libio.so");
    assert_eq!(data["files"][read[2].as_u64().unwrap() as usize], "io/read.c");
    assert_eq!(read[3], 42);
}

#[test]
fn waiting_and_hooks_are_in_it_where_samples_tell_them() {
    let data = data(&page(&interrupted_kitchen()));
    assert_eq!(data["info"]["samples"], 7);
    let first = &data["threads"][0];
    assert_eq!(first["waiting"]["all"], 2_000_000_005u64);
    assert_eq!(column(&first["waiting"]["paths"]), [5, 0, 0, 0, 2_000_000_000, 0]);
    assert_eq!(first["hooks"]["all"], 301);
    assert_eq!(column(&first["hooks"]["paths"]), [1, 0, 300, 0, 0, 0]);
    for part in ["waiting", "hooks"] {
        assert_eq!(data["threads"][1][part], serde_json::json!({ "all": 0 }));
    }
}

#[test]
fn a_thread_that_waits_outside_of_functions_has_no_column() {
    let mut profile = interrupted_kitchen();
    profile.threads[0].tree.nodes[4].spent = Spent::default();
    let waiting = &data(&page(&profile))["threads"][0]["waiting"];
    assert_eq!(*waiting, serde_json::json!({ "all": 5 }));
}

#[test]
fn nothing_of_waiting_and_hooks_is_in_pages_of_other_times() {
    let lacks_them = |data: &Value| {
        let threads = data["threads"].as_array().unwrap();
        let lacks = |thread: &Value| {
            thread["self"].is_string()
                && ["waiting", "hooks"].iter().all(|part| thread.get(part).is_none())
        };
        threads.len() == 2 && threads.iter().all(lacks)
    };
    let of_clock = data(&page(&kitchen()));
    assert!(lacks_them(&of_clock) && of_clock["info"].get("samples").is_none());
    let mut comparison = Comparison::default();
    for side in [Side::Before, Side::After] {
        comparison.add(side, "kitchen.teeperf", interrupted_kitchen());
    }
    let mut out = Vec::new();
    let diff = comparison.finish(&diff::Options::default());
    compare::page::write(&diff, Side::After, &Options::default(), &mut out).unwrap();
    assert!(lacks_them(&data(std::str::from_utf8(&out).unwrap())));
}

#[test]
fn it_opens_with_the_view_that_was_asked_for() {
    for (bottom_up, view) in [(false, "paths"), (true, "bottom-up")] {
        let mut out = Vec::new();
        page::write(&kitchen(), &Options { bottom_up, ..Options::default() }, &mut out).unwrap();
        assert_eq!(data(std::str::from_utf8(&out).unwrap())["view"], view);
    }
}

#[test]
fn nothing_loads_or_sends() {
    let page = page(&kitchen());
    assert!(page.contains(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'\">"
    ));
    for sign in ["http://", "https://", "src=", "href=", "@import", "url(", "fetch(", "import("] {
        assert!(!page.contains(sign), "{sign}");
    }
    for sign in ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function("]
    {
        assert!(!page.contains(sign), "{sign}");
    }
}

fn of_name(name: &str, kind: PointKind) -> Point {
    Point { pid: 1, tid: 2, at_ns: 3.0, name: name.into(), kind }
}

#[test]
fn names_cannot_break_out() {
    let mut profile = kitchen();
    let hostile = "</script><!--<script>{{script}}{{title}}&lt;\u{2028}\u{2029}\"\\";
    for function in &mut profile.functions {
        *function = teeperf_profile::model::Function {
            name: hostile.into(),
            module: hostile.into(),
            file: Some(hostile.into()),
            ..Default::default()
        };
    }
    profile.info.command = vec![format!("./{hostile}"), hostile.into()];
    profile.threads[0].name = hostile.into();
    profile.health.warnings = vec![hostile.into()];
    profile.points =
        [PointKind::Note, PointKind::Integer(1)].map(|kind| of_name(hostile, kind)).into();
    let hostile_page = page(&profile);
    for tag in ["<script", "</script", "<!--", "<meta", "<title"] {
        let count = |page: &str| page.matches(tag).count();
        assert_eq!(count(&hostile_page), count(&page(&kitchen())), "{tag}");
    }
    let raw = raw_data(&hostile_page);
    assert!(!raw.contains(['<', '>', '&', '\u{2028}', '\u{2029}', '\n']));
    let name = data(&hostile_page)["functions"][0][0].as_str().unwrap().to_owned();
    assert_eq!(name, "</script><!--<script>{{script}}{{title}}&lt;\\u{2028}\\u{2029}\"\\");
}

#[test]
fn too_many_paths_are_cut_with_a_word_about_it() {
    let mut out = Vec::new();
    page::write(&kitchen(), &Options { most_paths: 4, ..Options::default() }, &mut out).unwrap();
    let data = data(std::str::from_utf8(&out).unwrap());
    let finding = data["findings"][0]["what"].as_str().unwrap();
    assert!(
        finding.starts_with("3 of 7 call paths, those with at most 250.0 ms each, are left out")
    );
    // Nothing of the time is lost: 1 s and 250 ms.
    let sum = |at: usize| column(&data["threads"][at]["self"]).iter().sum::<u64>();
    assert_eq!((sum(0), sum(1)), (1_000_000_000, 250_000_000));
    let last = data["functions"].as_array().unwrap().last().unwrap();
    assert_eq!(last[0], "[short call paths]");
}

#[test]
fn what_was_waited_on_paths_that_are_cut_stays() {
    let mut out = Vec::new();
    let options = Options { most_paths: 2, ..Options::default() };
    page::write(&interrupted_kitchen(), &options, &mut out).unwrap();
    let data = data(std::str::from_utf8(&out).unwrap());
    let first = &data["threads"][0];
    // `read` below both calls of `parse` waits, and is cut with the inner one.
    assert_eq!(column(&first["function"]), [0, 0, 1, 4, 4]);
    assert_eq!(column(&first["waiting"]["paths"]), [5, 0, 0, 0, 2_000_000_000]);
    assert_eq!(first["waiting"]["all"], 2_000_000_005u64);
}

#[test]
fn what_had_no_room_goes_with_its_thread() {
    let mut profile = kitchen();
    profile.threads[0].no_room = Some(NoRoom {
        function: FunctionId(2),
        total: exact(9.0),
        nobodys: exact(4.0),
        functions: vec![(FunctionId(1), Some(5.0)), (FunctionId(2), None)],
        is_nameless: true,
    });
    let data = data(&page(&profile));
    let functions = serde_json::json!([[1, 5.0], [2, null]]);
    let expected = serde_json::json!({
        "function": 2, "total": 9.0, "self": 4.0, "nameless": true, "functions": functions
    });
    assert_eq!(data["threads"][0]["noRoom"], expected);
    assert!(data["threads"][1].get("noRoom").is_none());
}

#[test]
fn of_sums_it_is_said_that_they_are() {
    let mut profile = kitchen();
    assert!(data(&page(&profile)).get("onlySums").is_none());
    profile.health.only_sums = true;
    assert_eq!(data(&page(&profile))["onlySums"], true);
}

#[test]
fn empty_profiles_make_pages() {
    let data = data(&page(&Profile::default()));
    assert_eq!(data["threads"].as_array().unwrap().len(), 0);
    assert!(data["findings"][0]["what"].as_str().unwrap().starts_with("No call was recorded"));
}
