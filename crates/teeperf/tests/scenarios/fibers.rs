//! Coroutines whose stacks a program switches by itself: who called whom is what the program knows.

use crate::support::*;

const TREE: &[&str] = &["--probe", "tree", "--tree-size", "16MiB"];

/// Rounds, threads, coroutines of each, bytes of a stack.
const WAYS: [[&str; 4]; 4] = [
    ["50", "1", "3", "65536"],
    ["2000", "1", "9", "65536"],
    ["300", "1", "7", "16384"],
    ["200", "4", "5", "262144"],
];

fn paths_agree(options: &[&str], arguments: &[&str], flags: &[&str]) {
    for report in assert_paths_agree(options, "fibers.c", arguments, flags) {
        assert_eq!((report.health("mended"), report.health("unopened")), (0, 0));
        assert_eq!(report.warnings, Vec::<String>::new());
    }
}

/// Guards: hooks look at the stack pointer where the program's code switches stacks; a page belongs to a stack; memory that
/// another coroutine begins in is a new one; a handler on a stack of its own is no coroutine.
#[test]
fn switched_by_a_few_instructions() {
    for arguments in WAYS {
        paths_agree(&[], &arguments, &[]);
    }
}

/// Guards: the same by the counter, and where calls are summed.
#[test]
fn by_another_clock_and_summed() {
    paths_agree(&["--clock", "cycle"], &WAYS[1], &[]);
    for clock in ["tick", "cycle"] {
        paths_agree(&[TREE, &["--clock", clock]].concat(), &WAYS[1], &[]);
    }
}

#[test]
fn in_a_static_program() {
    paths_agree(&[], &WAYS[1], &["-static"]);
    paths_agree(&["--stacks", "always"], &WAYS[0], &["-static-pie", "-fPIE"]);
}

/// Guards: what a program says by itself counts, whether hooks look or not.
#[test]
fn that_the_program_tells_of() {
    let include = format!("-I{}/../teeperf-rt/include", env!("CARGO_MANIFEST_DIR"));
    for says in ["-DSAYS_SO", "-DSAYS_WHERE"] {
        for stacks in ["auto", "always"] {
            paths_agree(&["--stacks", stacks], &WAYS[3], &[says, &include]);
        }
    }
    paths_agree(&["--stacks", "never"], &WAYS[1], &["-DSAYS_SO", &include]);
    paths_agree(TREE, &WAYS[1], &["-DSAYS_SO", &include]);
}

/// Guards: instructions that are made while the program runs are found by no look at its code.
/// Hooks look at the stack pointer where the program says that it has stacks; where they begin to
/// look in the midst, the report warns.
#[test]
fn by_instructions_that_are_made_while_the_program_runs() {
    let include = format!("-I{}/../teeperf-rt/include", env!("CARGO_MANIFEST_DIR"));
    paths_agree(&[], &WAYS[1], &["-DMADE", "-DSAYS_WHERE", &include]);
    paths_agree(&["--stacks", "always"], &WAYS[1], &["-DMADE"]);
    let shop = Workshop::new();
    for compiler in Compiler::tried() {
        let program = shop.build("fibers.c", compiler, &["-O2", "-DMADE"]);
        let report = shop.record(&[], &program, &WAYS[1], 0).report;
        let warns = |text: &String| text.starts_with("On stacks of coroutines, ");
        assert!(report.warnings.iter().any(warns), "{:?}", report.warnings);
    }
}

/// Guards: a library without hooks that does little else than to switch stacks is looked through as well.
#[test]
fn of_boost_context() {
    of_boost_context_with("-DSAYS_NOTHING");
}

/// Guards: the allocator that the documentation has.
#[test]
fn of_boost_context_whose_allocator_tells() {
    of_boost_context_with("-DSAYS_WHERE");
}

fn of_boost_context_with(says: &str) {
    if !std::path::Path::new("/usr/include/boost/context/fiber.hpp").exists() {
        eprintln!("without boost.context (libboost-context-dev): not tested");
        return;
    }
    let include = format!("-I{}/../teeperf-rt/include", env!("CARGO_MANIFEST_DIR"));
    let shop = Workshop::new();
    for compiler in Compiler::tried() {
        for level in ["-O0", "-O2"] {
            let flags = [level, "-std=c++17", "-lboost_context", says, &include];
            let program = shop.build("fibers_boost.cc", compiler, &flags);
            for options in [&[][..], TREE] {
                let recorded = shop.record(options, &program, &["2000"], 0);
                let report = recorded.report;
                for (caller, callee, calls) in [
                    ("source", "item", 12_000),
                    ("source", "produces", 12_000),
                    ("produces", "produces", 18_000),
                    // But for the last round, each of whose calls is as deep as they come, and does not return.
                    ("produces", "item", 30_000 - 6 * 4),
                    ("consumer", "used", 12_000),
                    ("ends", "item", 400),
                    ("short_ones", "used", 400),
                    ("main", "consumer", 2000),
                ] {
                    let told = report.calls_directly_below(caller, callee);
                    let how = format!("{compiler:?} {level} {options:?}: {caller} called {callee}");
                    assert_eq!(told, calls, "{how}");
                }
                assert_eq!(report.health("mended"), 0);
            }
        }
    }
}
