//! Conditions as people type them, right and wrong.

use super::*;
use crate::model::{Function, FunctionId};
use proptest::prelude::*;

fn figure(before: f64, after: f64, is_change: bool) -> Figure {
    Figure { before, after, is_change, ..Figure::default() }
}

/// `parse` grows from 100 to 120 ms, `read(int)` from 1 to 2 ms, `noisy` from 100 to 150 within noise.
fn diff() -> Diff {
    let all = [
        ("parse", figure(100e6, 120e6, true), figure(10.0, 10.0, false)),
        ("read(int)", figure(1e6, 2e6, true), figure(0.0, 1500.0, true)),
        ("noisy", figure(100e6, 150e6, false), figure(5.0, 6.0, true)),
        ("ns::Table::find(int (*)(int))", figure(9e6, 9e6, false), figure(7.0, 7.0, false)),
        ("int* make<int>(int)", figure(4e6, 4e6, false), figure(7.0, 7.0, false)),
    ];
    let change = |(at, &(_, self_time, calls)): (usize, &(&str, Figure, Figure))| Change {
        function: FunctionId(at as u32),
        presence: Presence::Both,
        calls,
        self_time,
        total: self_time,
    };
    Diff {
        functions: all
            .iter()
            .map(|(name, ..)| Function {
                name: (*name).into(),
                module: "prog".into(),
                file: Some("/x/src/a.c".into()),
                ..Function::default()
            })
            .collect(),
        changes: all.iter().enumerate().map(change).collect(),
        whole: figure(1e9, 1.04e9, true),
        ..Diff::default()
    }
}

fn met(text: &str) -> Vec<Option<String>> {
    let condition = Condition::parse(text).unwrap_or_else(|wrong| panic!("{wrong}"));
    condition.met(&diff()).into_iter().map(|met| met.function).collect()
}

#[test]
fn only_what_is_true_is_met() {
    for (text, expected) in [
        ("self(parse) > +5%", true),
        ("self(parse) > +20%", false),
        ("self(parse)>+19.9 %", true),
        ("self(parse) > +20ms", false),
        ("self(parse) > +19 ms", true),
        ("self(parse) > 119ms", true),
        ("self(parse) > 121ms", false),
        ("self(parse) > 11%", true),
        ("self(parse) > 12%", false),
        ("self(parse) < 13%", true),
        ("total > +3%", true),
        ("total > +5%", false),
        ("total > 1s", true),
        ("total < -1%", false),
        ("calls(read) > 1000", true),
        ("calls(read(int)) > 1000", true),
        ("calls(read) > +5%", true),
        ("calls(r*) > 1000 and total > +3%", true),
        ("calls(r*) > 1000 and total > +5%", false),
        ("self(noisy) > +5%", false),
        ("self(noisy) > 140ms", true),
        ("calls(noisy) > +0", true),
        ("calls(parse) > +0", false),
        ("self(ns::Table::find(int (*)(int))) < 10ms", true),
        ("self(ns::Table::find) < 10ms", true),
        ("self(/^pa(r|x)s/) > +5%", true),
        ("self(/^pa(r|x)t/) > +5%", false),
        ("self(make) > 3ms", true),
        ("self(make<int>) > 3ms", true),
        ("self(make<char>) > 3ms", false),
        ("self(parse@prog) > +5%", true),
        ("self(parse@lib*) > +5%", false),
        ("self(file:src/a.c) > +5%", true),
    ] {
        assert_eq!(!met(text).is_empty(), expected, "{text}");
    }
}

#[test]
fn what_is_said_of_any_is_said_of_one() {
    let named =
        |names: &[&str]| names.iter().map(|name| Some((*name).to_owned())).collect::<Vec<_>>();
    assert_eq!(met("any self > +10%"), named(&["parse", "read(int)"]));
    assert_eq!(met("any self > +10% and any self > 10ms"), named(&["parse"]));
    assert_eq!(met("any self > +10% and any calls > 1000"), named(&["read(int)"]));
    assert_eq!(met("any self > +10% and total > +5%"), named(&[]));
    assert_eq!(met("total > +3%"), [None]);
}

#[test]
fn names_that_nobody_has_are_known() {
    let condition =
        Condition::parse("self(pars) > +5% and total(read) > 1s and calls(x*) > 1").unwrap();
    assert_eq!(condition.unknown_names(&diff()), ["pars", "x*"]);
}

#[test]
fn errors_point_to_the_place() {
    for (text, at, expected) in [
        ("", 0, "`self(NAME)`"),
        ("selfish(x) > 1s", 0, "`self(NAME)`"),
        ("self > +5%", 5, "`(NAME)`"),
        ("self() > +5%", 5, "a function's name"),
        ("self(a > +5%", 12, "`)`"),
        ("self(/a > +5%", 13, "`/)`"),
        ("self(/a[/) > +5%", 5, "a pattern"),
        ("self(a) +5%", 8, "`>` or `<`"),
        ("self(a) > five", 10, "a number"),
        ("self(a) > +5", 12, "a unit"),
        ("self(a) > +5 calls", 13, "a unit"),
        ("self(a) > +5% or total > 1s", 14, "`and`"),
        ("any > +5%", 4, "`self`, `total`"),
        ("calls(a) > 5%", 13, "a number of calls"),
        ("größe(a) > 1", 0, "`self(NAME)`"),
        ("self(größe) = 1s", 14, "`>` or `<`"),
    ] {
        let wrong = Condition::parse(text).unwrap_err();
        assert_eq!(wrong.at, at, "{text}: {wrong}");
        assert!(wrong.expected.starts_with(expected), "{text}: {wrong}");
    }
    let wrong = Condition::parse("self(größe) = 1s").unwrap_err();
    assert_eq!(wrong.to_string(), "expected `>` or `<`\n  self(größe) = 1s\n              ^");
}

proptest! {
    #[test]
    fn any_text_is_a_condition_or_wrong(text in "(any |self|total|calls|\\(|\\)|>|<|[+]|-|5|%|ms|and| |ö){0,20}") {
        if let Err(wrong) = Condition::parse(&text) {
            prop_assert!(wrong.at <= text.len());
            let _ = wrong.to_string();
        }
    }
}
