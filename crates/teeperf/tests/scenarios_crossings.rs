//! `teeperf record --sgx` on a simulated machine with SGX (`teeperf-aex/tests/simulator`), whose untrusted runtime is called as Intel's
//! is: a host counts its crossings itself, and what is recorded is that.
#![cfg(target_arch = "x86_64")]

mod scenario;
use scenario::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The machine, its runtime, a host and an enclave, in a folder.
struct Machine {
    shop: Workshop,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { shop: Workshop::new() };
        let library = ["-fPIC", "-shared", "-Wl,-rpath,$ORIGIN", "-pthread"];
        let parts = ["device.c", "processor.c", "signals.c", "inline.c"];
        machine.compile("gcc", &parts.map(simulator), &library, "libmachine.so");
        let parts = ["urts.c", "urts_enter.S", "intel.c"].map(simulator);
        machine.compile(
            "gcc",
            &parts,
            &[&library[..], &["-L.", "-lmachine"]].concat(),
            "libsgx_urts.so",
        );
        machine.compile("gcc", &[own("enclave_u.c")], &["-c"], "enclave_u.o");
        // The machine is to come before the C library.
        let with = ["enclave_u.o", "-L.", "-lsgx_urts", "-Wl,--no-as-needed", "-lmachine"];
        machine.compile("g++", &[own("host.cc")], &[&with[..], &library[2..]].concat(), "host");
        let parts = ["enclave.c", "trts.S"].map(simulator);
        machine.compile("gcc", &parts, &ENCLAVE, "enclave.so");
        machine
    }

    fn compile(&self, compiler: &str, sources: &[PathBuf], flags: &[&str], out: &str) {
        let mut command = Command::new(compiler);
        command.current_dir(self.shop.path("")).args(["-O2", "-g", "-Wall", "-Wextra", "-Werror"]);
        command.args(["-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"]);
        command.arg("-I").arg(simulator("")).args(sources).args(flags).args(["-o", out]);
        let outcome = run(&mut command);
        assert!(outcome.success(), "{command:?}: {outcome:#?}");
    }

    /// What the host does, recorded, and what it says of it.
    #[track_caller]
    fn record(
        &self,
        options: &[&str],
        mode: &str,
        number: &str,
    ) -> (Report, BTreeMap<String, u64>) {
        let options = [&["--sgx", "--force", "--quiet"], options].concat();
        let recorded =
            self.shop.record(&options, &self.shop.path("host"), &["enclave.so", mode, number], 0);
        let numbers = recorded.outcome.stdout.lines().map(|line| {
            let (name, number) = line.split_once(' ').unwrap();
            (name.to_owned(), number.parse().unwrap())
        });
        (recorded.report, numbers.collect())
    }

    /// Rows of the table of crossings, by name: calls, mean in nanoseconds, the rest as it is.
    #[track_caller]
    fn crossings(&self, report: &Report) -> BTreeMap<String, Row> {
        let mut command = teeperf();
        let outcome = run(command.args(["report", "--crossings", "--csv"]).arg(report.recording()));
        assert!(outcome.success(), "{outcome:#?}");
        let rows = outcome.stdout.lines().skip(1).map(|line| {
            let cells: Vec<&str> = line.splitn(7, ',').collect();
            let row = Row {
                calls: cells[0].parse().unwrap(),
                total: cells[1].parse().unwrap(),
                faults: cells[3].parse().ok(),
                function: cells[6].to_owned(),
            };
            (cells[5].to_owned(), row)
        });
        rows.collect()
    }
}

#[derive(Debug)]
struct Row {
    calls: u64,
    total: f64,
    faults: Option<u64>,
    function: String,
}

/// What makes an enclave of sources.
const ENCLAVE: [&str; 7] = [
    "-fno-stack-protector",
    "-nostdlib",
    "-ffreestanding",
    "-fPIC",
    "-shared",
    "-Wl,-Bsymbolic",
    "-Wl,-e,enclave_entry",
];

fn simulator(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../teeperf-aex/tests/simulator").join(name)
}

fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/sgx").join(name)
}

/// All ECALLs and OCALLs that the host has counted.
#[track_caller]
fn expect_counted(report: &Report, told: &BTreeMap<String, u64>) {
    let sum = |kind: &str| -> u64 {
        let of_kind = report
            .calls
            .iter()
            .filter(|(name, _)| name.trim_start_matches("switchless ").starts_with(kind));
        of_kind.map(|(_, calls)| calls).sum()
    };
    assert_eq!((sum("ECALL "), sum("OCALL ")), (told["ecalls"], told["ocalls"]), "{report:#?}");
}

/// Number, nesting, names and times are those that the host counts, in each of several threads.
#[test]
fn crossings_are_those_that_the_host_makes() {
    let machine = Machine::new();
    for (mode, threads) in [("calls", 1), ("threads", 8)] {
        let (report, told) = machine.record(&[], mode, "20");
        expect_counted(&report, &told);
        for figure in ["lost", "mended", "open", "unopened"] {
            assert_eq!(report.health(figure), 0, "{figure}: {report:#?}");
        }
        assert_eq!(report.threads(), threads);
        let paths = report.paths();
        let nested = "ecall_ocalls;ECALL 1;OCALL 1;enclave_ocall_nested;ecall_work;ECALL 0";
        for (path, calls) in [
            ("ecall_work;ECALL 0", 20),
            ("ecall_ocalls;ECALL 1;OCALL 0;enclave_ocall_outside", 30),
            (nested, 30),
        ] {
            assert_eq!(paths.get(path), Some(&(calls * threads)), "{path}: {paths:#?}");
        }
        // What is nested counts twice, as it does in the host.
        let rows = machine.crossings(&report);
        let total = |kind: &str| {
            rows.iter()
                .filter(|(name, _)| name.starts_with(kind))
                .map(|(_, row)| row.total)
                .sum::<f64>()
        };
        let (ecalls, ocalls) = (total("ECALL"), total("OCALL"));
        // The host's has besides what it takes to count, and to record.
        let is_within =
            |recorded: f64, counted: u64| (0.5..1.0001).contains(&(recorded / counted as f64));
        assert!(is_within(ecalls, told["ecall_ns"]), "{ecalls} {told:?}");
        // An OCALL has the runtime's way to it in it, which the host does not see.
        assert!((0.9..2.0).contains(&(ocalls / told["ocall_ns"] as f64)), "{ocalls} {told:?}");
        assert_eq!(rows["ECALL 0"].function, "ecall_work");
        assert_eq!(rows["OCALL 1"].function, "enclave_ocall_nested");
        assert_eq!(rows["ECALL 1"].calls, 20 * threads);
    }
}

/// What an OCALL takes is not its ECALL's own.
#[test]
fn time_outside_is_not_the_ecalls_own() {
    let machine = Machine::new();
    // An OCALL sleeps for 0.2 ms, ten times as long as the enclave works for it.
    let (report, told) = machine.record(&[], "calls", "200");
    let outside = report.time("enclave_ocall_outside", "self");
    let slept = 300.0 * 200_000.0;
    assert!(outside > slept, "{outside}");
    let inside = report.time("ECALL 1", "self");
    let (total, of_host) = (report.time("ECALL 1", "total"), told["ecall_ns"] as f64);
    assert!(inside + slept < total && total < of_host, "{inside} of {total} of {of_host}");
}

/// A thread that ends in an OCALL, and OCALLs that `longjmp` or an exception leaves, take nothing with them: what comes later is where it
/// belongs.
#[test]
fn ocalls_that_do_not_return() {
    let machine = Machine::new();
    for mode in ["ends", "leaps", "throws"] {
        let (report, told) = machine.record(&[], mode, "6");
        expect_counted(&report, &told);
        assert_eq!((report.health("lost"), report.health("mended")), (0, 0), "{mode}");
        let paths = report.paths();
        let outermost =
            ["ecall_work;ECALL 0", "ecall_ocalls;ECALL 1"].map(|path| paths.get(path).copied());
        assert_eq!(outermost, [Some(6), Some(12)], "{mode}: {paths:#?}");
        let open = if mode == "ends" { 6 * 4 } else { 0 };
        assert_eq!(report.health("open"), open, "{mode}");
    }
}

/// A child of `fork`, made in an OCALL, has no part in it.
#[test]
fn a_child_made_in_an_ocall() {
    let machine = Machine::new();
    let (report, told) = machine.record(&[], "forks", "5");
    expect_counted(&report, &told);
    assert_eq!((report.health("lost"), report.health("open"), report.processes()), (0, 0, 1));
}

/// Switchless calls have names of their own.
#[test]
fn switchless_calls_are_told_apart() {
    let machine = Machine::new();
    let (report, _) = machine.record(&[], "switchless", "5");
    let path = "ecall_ocalls_switchless;switchless ECALL 1;OCALL 0;enclave_ocall_outside";
    assert_eq!(report.paths().get(path), Some(&5), "{report:#?}");
}

/// Page faults are counted in the ECALLs in which they come, unless nobody wants that; and of crossings alone all is recorded.
#[test]
fn page_faults_are_counted_by_ecall() {
    let machine = Machine::new();
    let (report, _) = machine.record(&["--events", "crossings"], "calls", "20");
    let rows = machine.crossings(&report);
    // The first one touches the enclave's pages.
    assert!(rows["ECALL 0"].faults > Some(0), "{rows:?}");
    assert_eq!(rows["OCALL 0"].faults, None);
    let mut recording = machine.shop.recording(
        &["--sgx", "--force"],
        &machine.shop.path("host"),
        &["enclave.so", "calls", "20"],
    );
    run(recording.command.env("TEEPERF_SGX_USAGE", "0")).expect_code(0);
    let rows = machine.crossings(&Report::of(&recording.file));
    assert_eq!((rows["ECALL 0"].faults, rows["ECALL 0"].calls), (Some(0), 50));
}
