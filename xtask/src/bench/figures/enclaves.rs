//! Samples of simulated enclaves: what they cost, and whether they say what samples of the same code without an enclave say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Figure;
use crate::bench::lab::Lab;
use crate::bench::measure::{furthest, median, ratio};
use crate::bench::table::{Limit, Row, digits};
use crate::commands;

pub(crate) const FIGURE: Figure = Figure {
    name: "enclaves",
    title: "Simulated enclaves",
    method: "The machine of `crates/teeperf-aex/tests/simulator`, which no figure of a processor with SGX follows from: its exits and entries are \
             signals. A host with four threads in an enclave whose functions' work is known, and one with zstd's library in an enclave, each alone, \
             sampled within the process (`record --probe sample --sgx`) and from another (`--sgx=outside`), 1,000 times a second of each \
             thread, with call chains. Native: the same code in an ordinary program, sampled by the kernel. Shares are of self time in the enclave's \
             functions, all rounds together, of those that have 1 % by either. Lost are samples that found no room.",
    measure,
};

const RATE: &str = "--sample=1000";
const FLAGS: [&str; 4] = ["-O2", "-g", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"];
const FREESTANDING: [&str; 8] = [
    "-fno-stack-protector",
    "-fno-builtin",
    "-nostdlib",
    "-ffreestanding",
    "-fPIC",
    "-shared",
    "-Wl,-Bsymbolic",
    "-Wl,-e,enclave_entry",
];

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let built = Built::new(lab)?;
    let known = Work {
        name: "known",
        what: "functions of known work, four threads",
        enclave: "enclave.so",
        native: "native",
        threads: 4,
        rounds: lab.size(60_000, 3_000),
    };
    let zstd = Work {
        name: "zstd",
        what: "zstd, one thread",
        enclave: "zstd.so",
        native: "native-zstd",
        threads: 1,
        rounds: lab.size(1_500, 100),
    };
    let mut rows = known.measure(lab, &built)?;
    rows.extend(zstd.measure(lab, &built)?);
    Ok(rows)
}

/// Where the machine, its host, enclaves and native programs are.
struct Built(PathBuf);

impl Built {
    fn new(lab: &Lab) -> Result<Self> {
        let built = Self(lab.work.join("enclaves"));
        std::fs::create_dir_all(&built.0)?;
        let machine = ["device.c", "processor.c", "signals.c", "inline.c"];
        let library = ["-fPIC", "-shared", "-Wl,-Bsymbolic", "-ldl"];
        built.compile(lab, &machine, &library, "libmachine.so")?;
        // What a tracer sees of the machine.
        built.compile(lab, &["tracer.c"], &["-fPIC", "-shared", "-ldl"], "libtracer.so")?;
        let folder = format!("-L{}", built.0.display());
        let with = [folder.as_str(), "-lmachine", "-Wl,-rpath,$ORIGIN", "-pthread"];
        built.compile(lab, &["host.c", "urts.c", "urts_enter.S"], &with, "host")?;
        built.compile(lab, &["enclave.c", "trts.S"], &FREESTANDING, "enclave.so")?;
        let zstd = [&FREESTANDING[..], &["-l:libzstd.a"]].concat();
        built.compile(lab, &["zstd_enclave.c", "trts.S"], &zstd, "zstd.so")?;
        let main = lab.bench_file("programs/native_enclave.c").display().to_string();
        built.compile(lab, &["enclave.c", &main], &["-I.", "-pthread"], "native")?;
        let zstd = ["-I.", "-fno-builtin", "-pthread", "-l:libzstd.a"];
        built.compile(lab, &["zstd_enclave.c", &main], &zstd, "native-zstd")?;
        Ok(built)
    }

    fn compile(&self, lab: &Lab, sources: &[&str], flags: &[&str], out: &str) -> Result<()> {
        let mut cc = Command::new("cc");
        cc.current_dir(lab.root.join("crates/teeperf-aex/tests/simulator"));
        cc.args(FLAGS).args(sources).args(flags).arg("-o").arg(self.0.join(out));
        commands::run(&mut cc)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// What is done in an enclave, and without one.
struct Work {
    name: &'static str,
    what: &'static str,
    enclave: &'static str,
    native: &'static str,
    threads: u32,
    rounds: u32,
}

impl Work {
    fn measure(&self, lab: &Lab, built: &Built) -> Result<Vec<Row>> {
        let host = |command: &mut Command| {
            let Self { threads, rounds, .. } = self;
            command.arg(built.path("host")).arg(built.path(self.enclave));
            command.args([format!("threads={threads}"), format!("tcs={threads}")]);
            command.arg(format!("rounds={rounds}"));
        };
        let (mut alone, mut native) = (Vec::new(), Shares::default());
        let mut fronts = [
            Front::new("inside", "within the process", "--sgx", Some(1.03)),
            Front {
                is_outside: true,
                ..Front::new("outside", "from another process", "--sgx=outside", None)
            },
        ];
        for _ in 0..lab.rounds(7) {
            let mut command = Command::new("env");
            host(&mut command);
            alone.push(lab.run(&mut command)?.seconds);
            let recording = lab.scratch("native.teeperf");
            let mut record = lab.record(&recording, &["--probe", "sample", RATE]);
            record.arg(built.path(self.native));
            lab.run(record.args([self.threads, self.rounds].map(|number| number.to_string())))?;
            native.add(lab, &recording, None)?;
            for front in &mut fronts {
                let recording = lab.scratch("enclave.teeperf");
                let options = ["--probe", "sample", RATE, front.option];
                let mut record = lab.record(&recording, &options);
                host(&mut record);
                if front.is_outside {
                    record.env("LD_PRELOAD", built.path("libtracer.so")).env("MACHINE_INLINE", "1");
                }
                front.seconds.push(lab.run(&mut record)?.seconds);
                front.shares.add(lab, &recording, Some("sgx"))?;
            }
        }
        let rows = fronts.iter().map(|front| front.rows(self, &alone, &native));
        Ok(rows.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }
}

/// A front end of the sampler, and what it did.
struct Front {
    name: &'static str,
    what: &'static str,
    option: &'static str,
    most: Option<f64>,
    /// The host asks the kernel by itself.
    is_outside: bool,
    seconds: Vec<f64>,
    shares: Shares,
}

impl Front {
    fn new(
        name: &'static str,
        what: &'static str,
        option: &'static str,
        most: Option<f64>,
    ) -> Self {
        let (seconds, shares) = (Vec::new(), Shares::default());
        Self { name, what, option, most, is_outside: false, seconds, shares }
    }

    fn rows(&self, work: &Work, alone: &[f64], native: &Shares) -> Result<[Row; 3]> {
        let id = |figure: &str| format!("{}-{}-{figure}", work.name, self.name);
        let what = |figure: &str| format!("{}, {}: {figure}", work.what, self.what);
        ensure!(self.shares.own.values().sum::<f64>() > 0.0, "there are no samples in the enclave");
        let apart = furthest(&native.own, &self.shares.own);
        let (function, points) = apart.context("no function has 1 %")?;
        let cost = Row::new(
            &id("cost"),
            &what("wall time"),
            format!("{} s", digits(median(&self.seconds))),
        )
        .beside(format!("alone {} s", digits(median(alone))));
        let times = ratio(&self.seconds, alone);
        Ok([
            match self.most {
                Some(most) => cost.limit(Limit::AtMost(most), Some(times), "×"),
                None => cost.beside(format!("{} × of alone", digits(times))),
            },
            Row::new(&id("shares"), &what("shares"), format!("{function} is furthest apart"))
                .beside(format!("{} samples, native {}", self.shares.samples, native.samples))
                .limit(Limit::AtMost(2.0), Some(points), "points"),
            Row::new(&id("lost"), &what("samples lost"), String::new()).limit(
                Limit::AtMost(0.0),
                Some(self.shares.lost as f64),
                "",
            ),
        ])
    }
}

/// Self time by function, of several runs.
#[derive(Default)]
struct Shares {
    own: BTreeMap<String, f64>,
    samples: u64,
    lost: u64,
}

impl Shares {
    fn add(&mut self, lab: &Lab, recording: &Path, event: Option<&str>) -> Result<()> {
        let mut report = Command::new(&lab.teeperf);
        report.args(["report", "--json", "--no-inline"]).arg(recording);
        event.into_iter().for_each(|event| _ = report.args(["--event", event]));
        let report: Value = serde_json::from_str(&lab.run(&mut report)?.out)?;
        for function in report["functions"].as_array().context("functions")? {
            let name = function["name"].as_str().context("name")?;
            let module = function["module"].as_str().unwrap_or_default();
            // The way in and out, which native code has none of, and the kernel.
            if module.starts_with('[') || name.starts_with("enclave_") || name.starts_with('[') {
                continue;
            }
            *self.own.entry(name.to_owned()).or_default() +=
                function["self"].as_f64().context("self")?;
        }
        self.samples += report["health"]["events"].as_u64().context("events")?;
        self.lost += report["health"]["lost"].as_u64().context("lost")?;
        Ok(())
    }
}
