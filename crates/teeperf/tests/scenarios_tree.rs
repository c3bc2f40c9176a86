//! Calls summed by call path while the program runs (`record --probe tree`): the same programs, the same
//! counts and paths as with events.

mod scenario;
use scenario::*;

const TREE: &[&str] = &["--probe", "tree"];

/// Records a program that ends with `code` under these options too, and compares the calls.
#[track_caller]
fn summed(
    shop: &Workshop,
    options: &[&str],
    program: &std::path::Path,
    arguments: &[&str],
    code: i32,
) -> (Told, Report) {
    let recorded = shop.record(&[TREE, options].concat(), program, arguments, code);
    let told = recorded.outcome.told();
    assert_calls(&told, &recorded.report);
    assert_eq!(recorded.report.health("lost"), 0, "{:?}", recorded.report);
    (told, recorded.report)
}

/// Guards: a call goes to the node of its path, a return to the one above, by every clock.
#[test]
fn every_clock_and_way_of_linking() {
    let shop = Workshop::new();
    for compiler in Compiler::all() {
        for (flags, clock) in [
            (&["-O0"][..], "tick"),
            (&["-O2"], "cycle"),
            (&["-O2"], "ordered"),
            (&["-O2", "-static"], "tick"),
            (&["-O2", "-static-pie", "-fPIE"], "cycle"),
            (&["-O2", "-no-pie", "-fno-pie"], "tick"),
        ] {
            let program = shop.build("calls.c", compiler, flags);
            let (_, report) = summed(&shop, &["--clock", clock], &program, &["3000"], 0);
            report.expect_whole();
            assert_eq!(report.clock, clock);
        }
    }
}

/// Call path by call path, from every compiler, with and without optimisation; returns what is mended.
#[track_caller]
fn paths_agree(source: &str, arguments: &[&str], flags: &[&str]) -> Vec<u64> {
    let shop = Workshop::new();
    let mut mended = Vec::new();
    for compiler in Compiler::all() {
        for level in ["-O0", "-O2"] {
            let flags: Vec<&str> = [level].iter().chain(flags).copied().collect();
            let program = shop.build(source, compiler, &flags);
            let recorded =
                shop.record(&[TREE, &["--tree-size", "16MiB"]].concat(), &program, arguments, 0);
            let mut told = recorded.outcome.told();
            if compiler == Compiler::Clang {
                told = told.without("inlined_thrower");
            }
            assert_calls(&told, &recorded.report);
            assert_paths(&told, &recorded.report);
            assert_eq!(recorded.report.health("lost"), 0, "{compiler:?} {level}");
            mended.push(recorded.report.health("mended"));
        }
    }
    mended
}

/// Guards: a mark keeps the node, and a jump goes back to it.
#[test]
fn longjmp_over_many_frames_nested_and_out_of_handlers() {
    paths_agree("longjmps.c", &[], &[]);
    paths_agree("longjmps.c", &["20"], &["-static"]);
}

/// Guards: a catch closes what is above the function that catches.
#[test]
fn exceptions_through_many_frames() {
    paths_agree("exceptions.cc", &[], &[]);
    paths_agree("unwinding.cc", &[], &[]);
}

/// Guards: each stack has a node of its own where it is.
#[test]
fn coroutines_have_stacks_of_their_own() {
    paths_agree("coroutines.c", &[], &[]);
}

/// Guards: frames entered while it is off are unknown ones.
#[test]
fn random_off_and_on_against_a_slow_model() {
    for (seed, toggles) in [("1", "10"), ("2", "100"), ("3", "500"), ("4", "2"), ("5", "1000")] {
        paths_agree("pauses.c", &[seed, toggles, "20000"], &[]);
    }
}
