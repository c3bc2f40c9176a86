//! The JSON report as a program would read it: by the field names that docs/json.md has.

use crate::support::{kitchen, parser, summed_kitchen};
use serde_json::{Value, json};
use teeperf_profile::model::{FunctionId, Profile, Waits};
use teeperf_view::json::{self, Options};

fn report(profile: &Profile, call_tree: bool) -> Value {
    let mut out = Vec::new();
    json::write(profile, &Options { call_tree, ..Options::default() }, &mut out).unwrap();
    assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn the_whole_report() {
    let expected: Value = serde_json::from_str(include_str!("data/json/kitchen.json")).unwrap();
    assert_eq!(report(&kitchen(), true), expected);
}

#[test]
fn call_paths_only_when_asked() {
    let report = report(&kitchen(), false);
    assert!(report["threads"][0].get("tree").is_none());
    assert_eq!(report["threads"][0]["recorded"], json!(1e9));
}

#[test]
fn shortest_and_longest_calls_where_they_are_known() {
    let report = report(&summed_kitchen(), true);
    let lengths = |of: &Value| (of["shortest"].as_f64(), of["longest"].as_f64());
    let paths = &report["threads"][0]["tree"];
    assert_eq!(lengths(&paths[2]), (Some(300_000.0), Some(300e6)));
    let named = |name: &str| {
        let mut functions = report["functions"].as_array().unwrap().iter();
        lengths(functions.find(|function| function["name"] == name).unwrap())
    };
    assert_eq!(named("parse"), (Some(150_000.0), Some(600e6)));
    assert_eq!(named("serve"), (None, None));
}

#[test]
fn of_sums_it_is_not_known_which_calls_have_returned() {
    let mut profile = kitchen();
    assert_eq!(report(&profile, false)["health"]["open"], 0);
    profile.health.only_sums = true;
    assert!(report(&profile, false)["health"]["open"].is_null());
}

#[test]
fn calls_without_paths() {
    let report = report(&parser(), true);
    let names: Vec<&str> = report["functions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["read", "expr", "parse", "main"]);
    assert_eq!(report["threads"], json!([]));
    assert_eq!(
        report["arcs"],
        json!([
            {"caller": null, "callee": 0, "calls": 500, "total": 250e6},
            {"caller": 3, "callee": 2, "calls": 1, "total": 2500e6},
            {"caller": 3, "callee": 0, "calls": 500, "total": 250e6},
            {"caller": 2, "callee": 2, "calls": 6, "total": 0.0},
            {"caller": 2, "callee": 1, "calls": 40, "total": 0.0},
            {"caller": 2, "callee": 0, "calls": 1000, "total": 500e6},
            {"caller": 1, "callee": 2, "calls": 39, "total": 0.0},
            {"caller": 1, "callee": 0, "calls": 2000, "total": 1000e6},
        ])
    );
    let cycle =
        json!({"members": [2, 1], "calls": 1, "inner_calls": 85, "total": 2500e6, "self": 1000e6});
    assert_eq!(report["cycles"], json!([cycle]));
}

#[test]
fn every_field_is_documented() {
    fn fields(value: &Value, into: &mut Vec<String>) {
        match value {
            Value::Object(object) => {
                for (name, value) in object {
                    into.push(name.clone());
                    fields(value, into);
                }
            }
            Value::Array(list) => list.iter().for_each(|value| fields(value, into)),
            _ => {}
        }
    }
    let document = include_str!("../../../../docs/json.md");
    let mut profile = kitchen();
    profile.health.gaps = vec![("paused".into(), 1, 2)];
    let waits = Waits { function: FunctionId(3), times: 7, total_ns: 9.0, longest_ns: 2.0 };
    profile.waits = vec![waits];
    let waits =
        json!([{"name": "serve", "module": "kitchen", "times": 7, "total": 9.0, "longest": 2.0}]);
    assert_eq!(report(&profile, false)["waits"], waits);
    let mut names = Vec::new();
    fields(&report(&profile, true), &mut names);
    fields(&report(&summed_kitchen(), true), &mut names);
    fields(&report(&parser(), true), &mut names);
    for name in names {
        assert!(document.contains(&format!("`{name}`")), "docs/json.md does not name `{name}`");
    }
}

#[test]
fn hostile_figures_and_names_stay_json() {
    let mut profile = kitchen();
    profile.threads[0].tree.nodes[1].total.value = f64::NAN;
    profile.threads[0].tree.nodes[1].self_time.high = f64::INFINITY;
    profile.functions[0].name = "\"\\\u{0}\u{2028}</script>".into();
    let report = report(&profile, true);
    let main = &report["threads"][0]["tree"][0];
    assert_eq!(main["name"], "\"\\\u{0}\u{2028}</script>");
    assert_eq!(main["total"], json!(0.0));
}
