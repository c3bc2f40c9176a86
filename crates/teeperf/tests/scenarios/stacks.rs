//! Ways into and out of functions that no hook sees: the profile's call paths against those
//! the program knows it went.

use crate::support::*;

fn paths_agree(source: &str, arguments: &[&str], flags: &[&str]) -> Vec<Report> {
    assert_paths_agree(&[], source, arguments, flags)
}

/// Guards: marks at `setjmp` and jumps at `longjmp`. Without them frames that were left pile
/// up, and what follows hangs below them.
#[test]
fn longjmp_over_many_frames_nested_and_out_of_handlers() {
    paths_agree("longjmps.c", &[], &[]);
    paths_agree("longjmps.c", &["20"], &["-static"]);
}

/// Guards: the depth at a catch. clang emits no return hook where an exception passes.
#[test]
fn exceptions_through_many_frames() {
    paths_agree("exceptions.cc", &[], &[]);
}

/// As above, where unwinder and runtime are in one static program.
#[test]
fn exceptions_in_a_static_program() {
    paths_agree("exceptions.cc", &["10"], &["-static"]);
}

/// Guards: each frame that an exception leaves returns, before destructors on its way run and before
/// anything is caught. gcc emits hooks for that; with clang the unwinder is asked.
#[test]
fn destructors_and_catches_while_an_exception_passes() {
    for flags in [&[][..], &["-static"], &["-fPIE", "-pie", "-flto"]] {
        for report in paths_agree("unwinding.cc", &[], flags) {
            report.expect_whole();
        }
    }
}

/// Guards: an id for each stack, and a word at each switch.
#[test]
fn coroutines_have_stacks_of_their_own() {
    paths_agree("coroutines.c", &[], &[]);
}

/// Guards: after a jump the runtime does not claim to know the stack that it led to; chunks that begin then do not tell one.
#[test]
fn coroutines_that_jump_from_stack_to_stack() {
    let (many, several) = (repeats(20_000).to_string(), repeats(3000).to_string());
    for arguments in [["10", "1", "2"], ["40", "1", "7"], [&many, "1", "5"], [&several, "4", "6"]] {
        paths_agree("jumpers.c", &arguments, &[]);
    }
    paths_agree("jumpers.c", &[&repeats(5000).to_string(), "1", "3"], &["-static"]);
}

/// Guards: a return hook in the place of a tail call, and recursion.
#[test]
fn plain_calls_have_plain_paths() {
    for report in paths_agree("pauses.c", &["5", "0", "20000"], &[]) {
        report.expect_whole();
    }
}

/// Guards: depth is counted, not stored: a million frames, and a jump over all of them.
#[test]
fn a_million_frames() {
    let shop = Workshop::new();
    let program = shop.build("deep.c", Compiler::Gcc, &["-O1"]);
    let recorded = shop.record(&[], &program, &["1000000"], 0);
    assert_calls(&recorded.outcome.told(), &recorded.report);
    assert_eq!(recorded.report.health("lost"), 0);
    assert_eq!(recorded.report.health("open"), 0);
}

/// Guards: gap words and the stacks across them. Recording goes off and on at random from
/// inside; the program keeps a slow model of its stacks.
#[test]
fn random_off_and_on_against_a_slow_model() {
    let shop = Workshop::new();
    for compiler in Compiler::tried() {
        let program = shop.build("pauses.c", compiler, &["-O2"]);
        for (seed, toggles) in [("1", "10"), ("2", "100"), ("3", "500"), ("4", "2"), ("5", "1000")]
        {
            let recorded = shop.record(&[], &program, &[seed, toggles, "20000"], 0);
            let told = recorded.outcome.told();
            assert_calls(&told, &recorded.report);
            assert_paths(&told, &recorded.report);
        }
    }
}

/// Guards: all of the above together, in random order: jumps past catches, coroutines inside
/// handlers, exceptions below jumps.
#[test]
fn random_walks_through_everything() {
    let (shop, steps) = (Workshop::new(), repeats(20_000).to_string());
    for compiler in Compiler::tried() {
        for level in ["-O0", "-O2"] {
            let program = shop.build("wanders.cc", compiler, &[level]);
            for (seed, allowed) in
                [("1", "j"), ("2", "x"), ("3", "s"), ("4", "c"), ("5", "jxs"), ("6", "jxsc")]
            {
                let recorded = shop.record(&[], &program, &[seed, &steps, allowed], 0);
                let told = recorded.outcome.told();
                assert_calls(&told, &recorded.report);
                assert_eq!(recorded.report.health("lost"), 0, "{compiler:?} {level} {allowed}");
                // Without return hooks an exception is known by the function that catches it,
                // which cannot tell two frames of that function apart.
                if compiler == Compiler::Gcc || !allowed.contains('x') {
                    assert_paths(&told, &recorded.report);
                }
            }
            // What happens while recording is off is not followed, so that paths after a jump
            // or a switch in between are mended ones; counts are exact.
            let recorded = shop.record(&[], &program, &["7", &steps, "jxscp"], 0);
            assert_calls(&recorded.outcome.told(), &recorded.report);
        }
    }
}
