//! A program that loads a library when it has run for a while.

use super::build::{Compiler, Workshop};
use super::folded::{folded, percent};
use super::run::{run, teeperf};

/// Records one, with `sgx` as the front end, and checks that callers in the library are there, of which a copied stack alone tells.
pub(crate) fn assert_late_library_is_known(sgx: &str) {
    let shop = Workshop::new();
    let so = shop.build_unhooked("through.c", Compiler::Gcc, &["-O1", "-fPIC", "-shared"]);
    let app = shop.build_unhooked("loads_late.c", Compiler::Gcc, &["-O1"]);
    let options = ["--probe", "sample", sgx, "--call-graph=dwarf", "--sample=4000"];
    let mut recording = shop.recording(&options, &app, &[so.to_str().unwrap()]);
    run(&mut recording.command).expect_code(0);
    let paths = folded(&recording.file, "outside-sgx");
    assert_both(&paths);
    // A file of perf has all in the order of time.
    let exported = shop.path("late.perf.data");
    let mut export = teeperf();
    export.args(["export", "--to", "perf", "-o"]).arg(&exported).arg(&recording.file);
    run(&mut export).expect_code(0);
    assert_both(&folded(&exported, "outside-sgx"));
}

fn assert_both(paths: &[(String, u64)]) {
    let by_library = percent(paths, |path| path.contains("main;through;busy"));
    let by_itself = percent(paths, |path| path.contains("main;busy"));
    assert!(by_library > 1.2 * by_itself && by_itself > 5.0, "{paths:?}");
}
