//! One program in all the ways in which it is built.

use super::{Compiler, Report, Workshop, assert_calls, assert_paths, is_hooked};

/// The same program from every compiler, with and without optimisation, recorded with these options: call path by
/// call path what it told.
#[track_caller]
pub(crate) fn assert_paths_agree(
    options: &[&str],
    source: &str,
    arguments: &[&str],
    flags: &[&str],
) -> Vec<Report> {
    let shop = Workshop::new();
    let mut reports = Vec::new();
    for compiler in Compiler::tried() {
        for level in ["-O0", "-O2"] {
            let flags: Vec<&str> = [level].iter().chain(flags).copied().collect();
            if !is_hooked(compiler, &flags) {
                continue;
            }
            let program = shop.build(source, compiler, &flags);
            let recorded = shop.record(options, &program, arguments, 0);
            let told = recorded.outcome.told();
            assert_calls(&told, &recorded.report);
            assert_paths(&told, &recorded.report);
            assert_eq!(recorded.report.health("lost"), 0, "{compiler:?} {level}");
            reports.push(recorded.report);
        }
    }
    reports
}
