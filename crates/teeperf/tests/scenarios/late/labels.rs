//! Jumps to labels whose addresses a program takes.

use super::*;

/// Guards: jumps within a function taken for exits. Hooks there write below the stack pointer, where
/// the function's variables are.
#[test]
fn labels_that_a_program_keeps() {
    let shop = Workshop::new();
    for compiler in [&["gcc"][..], &CLANGS].concat() {
        if installed(&[compiler]).is_empty() {
            continue;
        }
        for flags in [&["-O1"][..], &["-O2"], &["-O2", "-fno-asynchronous-unwind-tables"]] {
            let recorded = recorded_alike(&shop, compiler, flags, "resumed.c");
            for (function, expected) in [
                ("run", 200),
                ("first", 200),
                ("second", 200),
                ("third", 200),
                ("dispatch", 200),
                ("after", 100),
            ] {
                let below = |caller| recorded.report.calls_directly_below(caller, function);
                // Not every compiler makes a jump of a call where it optimises little.
                let in_place = if flags == ["-O1"] { below("dispatch") } else { 0 };
                let calls = below("main") + in_place;
                assert_eq!(calls, expected, "{compiler} {flags:?} {function}");
            }
            recorded.report.expect_whole();
        }
    }
}
