//! The JSON report as a program would read it: by the field names that docs/json.md has.

use crate::support::kitchen;
use serde_json::{Value, json};
use teeperf_profile::model::Profile;
use teeperf_view::json::{self, Options};

fn report(profile: &Profile, call_tree: bool) -> Value {
    let mut out = Vec::new();
    json::write(profile, &Options { call_tree }, &mut out).unwrap();
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
    let mut names = Vec::new();
    fields(&report(&profile, true), &mut names);
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
