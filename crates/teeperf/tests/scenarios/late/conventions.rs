//! Functions with a convention of their own.

use super::*;

/// Guards: names of `vectorcall`, which versions of clang before 16 write and do not read.
#[test]
fn vectorcall_of_every_clang() {
    let shop = Workshop::new();
    // Names in reports have no version, and what follows `@@` looks like one.
    for compiler in installed(&CLANGS) {
        for flags in [&["-O0"][..], &["-O2", "-g", "-fPIC"]] {
            let recorded = recorded_alike(&shop, compiler, flags, "vectorcall.c");
            let calls = |name: &str| recorded.report.calls[name];
            assert_eq!([calls("weigh"), calls("turn")], [200, 100], "{compiler} {flags:?}");
        }
    }
}

/// Guards: naked functions that hooks of the source break without a word.
#[test]
fn naked_functions_where_the_compiler_hooks_the_source() {
    let shop = Workshop::new();
    let program = shop.path("naked");
    for (compiler, is_broken) in
        [("gcc", true), ("clang-14", true), ("clang-16", true), ("clang-19", false)]
    {
        if installed(&[compiler]).is_empty() {
            continue;
        }
        for (kind, may_warn) in [("source", true), ("late", false)] {
            let mut command = wrapper(kind, compiler);
            command.arg("-O2").arg("-o").arg(&program).arg(source("naked.c"));
            let outcome = succeed(&mut command);
            let warns = outcome.stderr.contains("naked.c:4: hooks of the source break naked");
            assert_eq!(warns, is_broken && may_warn, "{compiler} {kind}: {}", outcome.stderr);
            if !warns {
                assert_eq!(succeed(&mut Command::new(&program)).stdout, "8\n", "{compiler} {kind}");
            }
        }
    }
}
