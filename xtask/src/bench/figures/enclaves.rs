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
             parts of signals. A host with four threads in an enclave whose functions' work is known, and one with zstd's library in an enclave, each \
             alone, sampled within the process (`record --probe sample --sgx`) and from another (`--sgx=outside`), 1,000 times a second of each \
             thread, with call chains. What the kernel's timer and signal take, and the simulated exit and entry with them, is told apart by a \
             yardstick, the same host with a timer as often whose handler is empty (`bench/programs/bare_timer.c`): the sampler and its recorder are \
             what is more than that. On a virtual machine, where each timer's interrupt is some of the host's, the yardstick is most of it, in a \
             program without an enclave too. In the signal path: time within the sampler's handler by the clock, the median of all samples \
             (`bench/programs/handler_time.c`): of an enclave that cannot be read and of threads outside of enclaves, with registers and call \
             chain, the greater of the two; beside it an enclave that is read. Native: the same code in an ordinary program, sampled by the \
             kernel. Shares are of self time in the enclave's functions, all rounds together, of those that have 1 % by either. Lost are samples \
             that found no room.",
    measure,
};

const RATE: &str = "--sample=1000";
const PERIOD_NS: &str = "1000000";
/// What the simulated processor resumes by is not the instruction, whose signal takes as long as all the rest.
const AT_ONCE: &str = "MACHINE_RESUMES_AT_ONCE";
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
        rounds: lab.size(7_500, 100),
    };
    let mut rows = known.measure(lab, &built)?;
    rows.push(known.handler(lab, &built)?);
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
        for yardstick in ["bare_timer", "handler_time"] {
            let source = lab.bench_file(&format!("programs/{yardstick}.c")).display().to_string();
            let library = ["-fPIC", "-shared", "-ldl"];
            built.compile(lab, &[&source], &library, &format!("{yardstick}.so"))?;
        }
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
    fn host(&self, built: &Built, command: &mut Command) {
        let Self { threads, rounds, .. } = self;
        command.arg(built.path("host")).arg(built.path(self.enclave));
        command.args([format!("threads={threads}"), format!("tcs={threads}")]);
        command.arg(format!("rounds={rounds}")).env(AT_ONCE, "1");
    }

    fn native(&self, built: &Built, command: &mut Command) {
        command.arg(built.path(self.native));
        command.args([self.threads, self.rounds].map(|number| number.to_string()));
    }

    fn measure(&self, lab: &Lab, built: &Built) -> Result<Vec<Row>> {
        let mut bare = Bare::default();
        let mut native = Shares::default();
        let mut fronts = [
            Front::new("inside", "within the process", "--sgx", Some(1.03)),
            Front {
                is_outside: true,
                ..Front::new("outside", "from another process", "--sgx=outside", None)
            },
        ];
        for _ in 0..lab.rounds(7) {
            bare.run(self, lab, built)?;
            let recording = lab.scratch("native.teeperf");
            let mut record = lab.record(&recording, &["--probe", "sample", RATE]);
            self.native(built, &mut record);
            lab.run(&mut record)?;
            native.add(lab, &recording, None)?;
            for front in &mut fronts {
                let recording = lab.scratch("enclave.teeperf");
                let options = ["--probe", "sample", RATE, front.option];
                let mut record = lab.record(&recording, &options);
                self.host(built, &mut record);
                if front.is_outside {
                    record.env("LD_PRELOAD", built.path("libtracer.so")).env("MACHINE_INLINE", "1");
                }
                front.seconds.push(lab.run(&mut record)?.seconds);
                front.shares.add(lab, &recording, Some("sgx"))?;
            }
        }
        let mut rows = bare.rows(self).to_vec();
        for front in &fronts {
            rows.extend(front.rows(self, &bare, &native)?);
        }
        Ok(rows)
    }

    /// What the sampler's handler takes.
    fn handler(&self, lab: &Lab, built: &Built) -> Result<Row> {
        let timed = |program: &dyn Fn(&mut Command)| -> Result<f64> {
            let recording = lab.scratch("enclave.teeperf");
            let mut record = lab.record(&recording, &["--probe", "sample", RATE, "--sgx"]);
            program(&mut record);
            let ran = lab.run(record.env("LD_PRELOAD", built.path("handler_time.so")))?;
            ensure!(ran.number("handled")? > 100.0, "few samples");
            Ok(ran.number("median_ns")? / 1000.0)
        };
        let mut all = [const { Vec::new() }; 3];
        for _ in 0..lab.rounds(5) {
            all[0].push(timed(&|command| {
                self.host(built, command);
                command.arg("debug=0");
            })?);
            all[1].push(timed(&|command| self.native(built, command))?);
            all[2].push(timed(&|command| self.host(built, command))?);
        }
        let [unreadable, outside, read] = all.map(|each| median(&each));
        let what = "in the signal path, without the debug reads";
        let ours = format!("unreadable {} µs, outside {} µs", digits(unreadable), digits(outside));
        Ok(Row::new(&format!("{}-handler", self.name), &format!("{}: {what}", self.what), ours)
            .beside(format!("with the simulated reads {} µs", digits(read)))
            .limit(Limit::AtMost(10.0), Some(unreadable.max(outside)), "µs"))
    }
}

/// What is not sampled: the host, and the native program, each alone and with a timer whose handler is empty. Seconds.
#[derive(Default)]
struct Bare {
    alone: Vec<f64>,
    timer: Vec<f64>,
    native: Vec<f64>,
    native_timer: Vec<f64>,
}

impl Bare {
    fn run(&mut self, work: &Work, lab: &Lab, built: &Built) -> Result<()> {
        let seconds = |is_timed: bool, program: &dyn Fn(&mut Command)| -> Result<f64> {
            let mut command = Command::new("env");
            program(&mut command);
            if is_timed {
                command.env("LD_PRELOAD", built.path("bare_timer.so"));
                command.env("TIMER_PERIOD_NS", PERIOD_NS);
            }
            Ok(lab.run(&mut command)?.seconds)
        };
        let host = |command: &mut Command| work.host(built, command);
        let native = |command: &mut Command| work.native(built, command);
        self.alone.push(seconds(false, &host)?);
        self.timer.push(seconds(true, &host)?);
        self.native.push(seconds(false, &native)?);
        self.native_timer.push(seconds(true, &native)?);
        Ok(())
    }

    fn rows(&self, work: &Work) -> [Row; 2] {
        let row = |id: &str, what: &str, timer: &[f64], alone: &[f64]| {
            let what =
                format!("{}, a timer alone, with an empty handler{what}: wall time", work.what);
            let ours =
                format!("{} s, {} × of alone", digits(median(timer)), digits(ratio(timer, alone)));
            let row = Row::new(&format!("{}-{id}", work.name), &what, ours);
            row.beside(format!("alone {} s", digits(median(alone))))
        };
        [
            row("timer", "", &self.timer, &self.alone),
            row("native-timer", ", in the native program", &self.native_timer, &self.native),
        ]
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

    fn rows(&self, work: &Work, bare: &Bare, native: &Shares) -> Result<Vec<Row>> {
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
        .beside(format!("alone {} s", digits(median(&bare.alone))));
        let times = ratio(&self.seconds, &bare.alone);
        let mut rows = match self.most {
            Some(most) => {
                let beside = ratio(&self.seconds, &bare.timer);
                let timer = format!("a timer alone {} s", digits(median(&bare.timer)));
                let what = what("wall time, beside a timer alone");
                let row = Row::new(&id("cost-timer"), &what, cost.ours.clone()).beside(timer);
                vec![
                    cost.limit(Limit::AtMost(most), Some(times), "×"),
                    row.limit(Limit::AtMost(most), Some(beside), "×"),
                ]
            }
            None => vec![cost.beside(format!("{} × of alone", digits(times)))],
        };
        rows.extend([
            Row::new(&id("shares"), &what("shares"), format!("{function} is furthest apart"))
                .beside(format!("{} samples, native {}", self.shares.samples, native.samples))
                .limit(Limit::AtMost(2.0), Some(points), "points"),
            Row::new(&id("lost"), &what("samples lost"), String::new()).limit(
                Limit::AtMost(0.0),
                Some(self.shares.lost as f64),
                "",
            ),
        ]);
        Ok(rows)
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
