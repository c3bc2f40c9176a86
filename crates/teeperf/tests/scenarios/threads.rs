//! Threads: thousands of them, blocked or short; every way a thread ends; threads that are
//! still there when the program ends.

use crate::support::*;

/// Guards: the pool grows with the threads that hold a chunk. With a fixed pool a thousand
/// threads that log a little and then block leave nothing for the one that works.
#[test]
fn a_thousand_blocked_threads() {
    let shop = Workshop::new();
    let program = shop.build("threads.c", Compiler::Gcc, &["-O2"]);
    let recorded = shop.record(&[], &program, &["blocked", "1000"], 0);
    assert_calls(&recorded.outcome.told(), &recorded.report);
    recorded.report.expect_whole();
    assert_eq!(recorded.report.threads(), 1001);
}

/// Guards: chunks of threads that ended come back.
#[test]
fn many_short_threads() {
    let (shop, threads) = (Workshop::new(), repeats(100_000));
    let program = shop.build("threads.c", Compiler::Gcc, &["-O2"]);
    let recorded = shop.record(&[], &program, &["short", &threads.to_string()], 0);
    assert_calls(&recorded.outcome.told(), &recorded.report);
    recorded.report.expect_whole();
    assert_eq!(recorded.report.threads(), threads + 1);
}

/// Guards: the thread's last chunk is handed over however the thread ends.
#[test]
fn threads_that_return_exit_or_are_cancelled() {
    let shop = Workshop::new();
    for compiler in Compiler::tried() {
        for flags in [&["-O2"][..], &["-O0", "-static"]] {
            let program = shop.build("threads.c", compiler, flags);
            let recorded = shop.record(&[], &program, &["ways"], 0);
            assert_calls(&recorded.outcome.told(), &recorded.report);
            assert_eq!(recorded.report.health("lost"), 0);
        }
    }
}

/// Guards: chunks that were never handed over are read up to the first zero.
#[test]
fn threads_that_outlive_main() {
    let shop = Workshop::new();
    let program = shop.build("threads.c", Compiler::Gcc, &["-O2"]);
    let recorded = shop.record(&[], &program, &["outlive", "30"], 0);
    assert_calls(&recorded.outcome.told(), &recorded.report);
    assert_eq!(recorded.report.health("lost"), 0);
    // Each of the thirty is inside `outliving` and `stays`.
    assert_eq!(recorded.report.health("open"), 60);
}

/// Guards: early start and late end: hooks before main and after it, where thread-local
/// storage is only just there, or nearly gone.
#[test]
fn constructors_destructors_and_thread_local_objects() {
    let shop = Workshop::new();
    for compiler in Compiler::tried() {
        for flags in [&["-O0"][..], &["-O2"], &["-O2", "-static"]] {
            let program = shop.build("lifetimes.cc", compiler, flags);
            let recorded = shop.record(&[], &program, &[], 6);
            assert_calls(&recorded.outcome.told(), &recorded.report);
            recorded.report.expect_whole();
        }
    }
}
