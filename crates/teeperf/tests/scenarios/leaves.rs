//! Time of a function that is left in a way that no hook sees: it is the function's own, and not that of whatever
//! runs next.

use crate::support::*;

/// Ways to leave, and the function that all time is of.
const WAYS: [(&str, &str); 7] = [
    ("longjmp", "worker"),
    ("_longjmp", "worker"),
    ("siglongjmp", "worker"),
    ("setcontext", "worker"),
    ("swapcontext", "switcher"),
    ("uc_link", "ends"),
    ("vfork", "child"),
];

/// Self time of a function, with that of code without hooks which it called, of that of all.
fn share(report: &Report, function: &str) -> f64 {
    let json = json(report.recording(), &["--fold-unhooked"]);
    let functions = json["functions"].as_array().unwrap();
    let own = |function: &serde_json::Value| function["self"].as_f64().unwrap();
    let of_it: f64 = functions.iter().filter(|known| known["name"] == function).map(own).sum();
    of_it / functions.iter().map(own).sum::<f64>()
}

fn time_stays_with_the_worker(options: &[&str], source: &str, flags: &[&str]) {
    let shop = Workshop::new();
    for compiler in Compiler::tried() {
        let program = shop.build(source, compiler, flags);
        for (way, worker) in WAYS {
            let recorded = shop.record(options, &program, &[way, "3000"], 0);
            let how = format!("{compiler:?} {source} {flags:?} {options:?} {way}");
            let share = share(&recorded.report, worker);
            assert!(share > 0.5, "{how}: {worker} has {:.0} %", share * 100.0);
            recorded.report.expect_whole_but_open();
        }
    }
}

/// Guards: a way out carries the time.
#[test]
fn with_the_tick() {
    time_stays_with_the_worker(&["--clock", "tick", "--no-cpu-samples"], "leaves.c", &["-O1"]);
}

#[test]
fn with_the_counter() {
    time_stays_with_the_worker(&["--clock", "cycle"], "leaves.c", &["-O2"]);
}

#[test]
fn in_cxx_and_fortified() {
    let flags = ["-O2", "-D_FORTIFY_SOURCE=2"];
    time_stays_with_the_worker(&["--clock", "tick", "--no-cpu-samples"], "leaves.cc", &flags);
}

#[test]
fn in_a_static_program_without_optimisation() {
    time_stays_with_the_worker(
        &["--clock", "tick", "--no-cpu-samples"],
        "leaves.c",
        &["-O0", "-static"],
    );
}

/// Guards: a tree has the time charged before it follows a way out.
#[test]
fn where_calls_are_summed() {
    for clock in ["tick", "cycle"] {
        let options = ["--probe", "tree", "--clock", clock];
        time_stays_with_the_worker(&options, "leaves.c", &["-O2"]);
    }
}
