//! A peer that means harm, beside a program that means none. Nothing it does may end the
//! recorder, block the other, or spoil what was recorded of it.

mod scenario;
use scenario::*;
use std::path::Path;

/// Records a good program and the hostile one together, and returns what the latter said.
fn beside_a_good_program(how: &str) -> (Outcome, Report) {
    let shop = Workshop::new();
    let hostile = shop.build_unhooked("hostile.c", Compiler::Gcc, &["-O2"]);
    let good = shop.build("calls.c", Compiler::Gcc, &["-O2"]);
    let script = format!(
        "{} {how} & enemy=$!; {} 20000; good=$?; wait $enemy; echo enemy $?; exit $good",
        hostile.display(),
        good.display()
    );
    let recorded = shop.record(&[], Path::new("/bin/sh"), &["-c", &script], 0);
    let told = recorded.outcome.told();
    for (name, &calls) in &told.calls {
        assert_eq!(recorded.report.calls.get(name), Some(&calls), "{name} beside {how}");
    }
    assert!(recorded.outcome.stdout.contains("enemy 0\n"), "{:#?}", recorded.outcome);
    (recorded.outcome, recorded.report)
}

/// Guards: seals. Without them a peer's `ftruncate` kills the recorder with SIGBUS.
#[test]
fn one_that_truncates() {
    beside_a_good_program("truncate");
}

/// Guards: limits on every number that comes from shared memory.
#[test]
fn one_that_writes_random_words() {
    beside_a_good_program("random 1000000");
}

/// Guards: whoever connects and says nothing, or nonsense, keeps nobody waiting.
#[test]
fn one_that_greets_strangely() {
    let (outcome, _) = beside_a_good_program("greetings");
    assert!(outcome.stdout.contains("hostile: greetings done"), "{outcome:#?}");
}

/// Guards: full chunks without words, from a thread that never was.
#[test]
fn one_that_hands_over_nothing() {
    let (_, report) = beside_a_good_program("silent");
    let refused = |warning: &String| warning.contains("made no sense");
    assert!(report.warnings.iter().any(refused), "{report:?}");
}
