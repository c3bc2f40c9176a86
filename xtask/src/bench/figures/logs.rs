//! How fast logs of the original TEE-Perf are read, and in how much memory.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::measure::median;
use crate::bench::report::Report;
use crate::bench::table::{Limit, Row, digits};

pub(crate) const FIGURE: Figure = Figure {
    name: "logs",
    title: "Logs of the original TEE-Perf",
    method: "All of `teeperf report`, from a log that the system has in memory already to the printed text, and the \
             most memory resident meanwhile. For a log of 2 GiB its own analyser takes 4 minutes and 20 GiB. Logs with entries \
             of 16 and of 24 bytes, of sqlite3's speed test, and made ones: of a program 2,000 calls deep and of one \
             whose calls call nothing, with four threads where entries tell threads. Calls of sqlite3 are \
             compared with those of our own recording of it.",
    measure,
};

const GIB: u64 = 1 << 30;
/// Seconds and MiB that a log of 2 GiB may take.
const MOST_SECONDS: f64 = 5.0;
const MOST_MIB: f64 = 200.0;

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let mut rows = sqlite(lab)?;
    let path = lab.scratch("made.log");
    for (id, depth) in [("deep", 2000), ("flat", 2)] {
        for has_threads in [false, true] {
            let log = Made { bytes: lab.size(2 * GIB, GIB / 16), depth, has_threads };
            log.write(&path).with_context(|| path.display().to_string())?;
            rows.extend(read(lab, id, &path, has_threads, None)?);
        }
    }
    std::fs::remove_file(&path)?;
    Ok(rows)
}

fn sqlite(lab: &Lab) -> Result<Vec<Row>> {
    let arguments = ["--size", lab.size("9", "1"), "--memdb"];
    let recording = lab.scratch("logs.teeperf");
    let hooked = lab.speedtest(Hooks::Late)?;
    lab.run(lab.record(&recording, &[]).arg(&hooked).args(arguments))?;
    let recorded = calls(&Report::of_whole(lab, &recording)?);
    let program = lab.speedtest(Hooks::Log)?;
    let path = lab.scratch("sqlite3.log");
    let mut rows = Vec::new();
    for has_threads in [false, true] {
        let mut run = Command::new(&program);
        run.args(arguments).env("TEE_PERF_LOG", &path).env("TEE_PERF_SIZE", (4 * GIB).to_string());
        if has_threads {
            run.env("TEE_PERF_THREADS", "1");
        }
        lab.run(&mut run)?;
        rows.extend(read(lab, "sqlite3", &path, has_threads, Some(&program))?);
        let logged = calls(&Report::of_elf(lab, &path, Some(&program))?);
        let differ = recorded.iter().filter(|function| !logged.contains(function)).count()
            + logged.iter().filter(|function| !recorded.contains(function)).count();
        let told = format!(
            "{} functions, {} calls",
            logged.len(),
            logged.iter().map(|f| f.1).sum::<u64>()
        );
        let id = format!("sqlite3-calls-{}", entry(has_threads));
        let what =
            format!("sqlite3, {} bytes an entry: functions whose calls differ", entry(has_threads));
        rows.push(Row::new(&id, &what, told).limit(Limit::AtMost(0.0), Some(differ as f64), ""));
    }
    std::fs::remove_file(&path)?;
    Ok(rows)
}

fn calls(report: &Report) -> Vec<(String, u64)> {
    let functions = report.functions.iter().filter(|function| function.calls > 0);
    functions.map(|function| (function.name.clone(), function.calls)).collect()
}

/// Time and memory of a report on a log.
fn read(
    lab: &Lab,
    id: &str,
    log: &Path,
    has_threads: bool,
    program: Option<&PathBuf>,
) -> Result<[Row; 2]> {
    let events = Report::of_elf(lab, log, program)?.events;
    let (mut seconds, mut mib) = (Vec::new(), Vec::new());
    for _ in 0..lab.rounds(5) {
        let mut command = Command::new(&lab.teeperf);
        command.arg("report").arg(log);
        if let Some(program) = program {
            command.arg("--elf").arg(program);
        }
        let ran = lab.run(&mut command)?;
        seconds.push(ran.seconds);
        mib.push(ran.peak_mib);
    }
    let entry = entry(has_threads);
    let what = format!("{id}, {entry} bytes an entry");
    let (seconds, mib) = (median(&seconds), median(&mib));
    let bytes = events * entry as f64;
    let told = format!(
        "{} M events, {} GiB, {} M/s",
        digits(events / 1e6),
        digits(bytes / GIB as f64),
        digits(events / 1e6 / seconds)
    );
    let time = Row::new(&format!("{id}-{entry}"), &what, told);
    let memory =
        Row::new(&format!("{id}-{entry}-memory"), &format!("{what}: memory"), String::new());
    Ok([
        time.limit(Limit::AtMost(MOST_SECONDS), Some(seconds), "s"),
        memory.limit(Limit::AtMost(MOST_MIB), Some(mib), "MiB"),
    ])
}

fn entry(has_threads: bool) -> u64 {
    if has_threads { 24 } else { 16 }
}

/// A log of a program that goes down and up again at random, and calls one of a few leaves now and then.
struct Made {
    bytes: u64,
    depth: usize,
    has_threads: bool,
}

impl Made {
    fn write(&self, path: &Path) -> Result<()> {
        const FUNCTIONS: u64 = 0x5555_5555_6000;
        const LEAVES: u64 = 0x5555_5556_6000;
        const RETURN: u64 = 1 << 63;
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
        let entries = (self.bytes - 56) / entry(self.has_threads);
        let flags = 1 | 1 << 31 | u64::from(self.has_threads) << 16;
        for number in [50 * entries, flags, 0x7f00_0000_0000, 4711, self.bytes, entries, FUNCTIONS]
        {
            out.write_all(&number.to_le_bytes())?;
        }
        let threads = if self.has_threads { 4 } else { 1 };
        // How deep each thread is, and the leaf that it is in.
        let mut depths = vec![(0usize, None::<u64>); threads];
        let (mut random, mut time, mut thread) = (0x2545_F491_4F6C_DD1Du64, 1u64, 0);
        for _ in 0..entries {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            time += random % 64;
            if random >> 58 == 0 {
                thread = (random >> 8) as usize % threads;
            }
            let (depth, leaf) = &mut depths[thread];
            let function = |depth: usize| FUNCTIONS + 0x40 * (depth as u64 % 300);
            let (kind, address) = match leaf.take() {
                Some(address) => (RETURN, address),
                None if *depth > 0 && (random >> 16) % 3 == 0 => {
                    let address = LEAVES + 0x40 * ((random >> 24) % 5);
                    *leaf = Some(address);
                    (0, address)
                }
                None if *depth == 0 || (*depth < self.depth && (random >> 32) % 100 < 52) => {
                    *depth += 1;
                    (0, function(*depth))
                }
                None => {
                    *depth -= 1;
                    (RETURN, function(*depth + 1))
                }
            };
            out.write_all(&(time | kind).to_le_bytes())?;
            out.write_all(&address.to_le_bytes())?;
            if self.has_threads {
                let id = 0x7f12_3456_7000 - thread as u64 * 0x80_1000;
                out.write_all(&id.to_le_bytes())?;
            }
        }
        // As real ones, it is a byte longer than it says.
        out.write_all(&[0])?;
        out.flush()?;
        ensure!(std::fs::metadata(path)?.len() > self.bytes - 56, "the log is not whole");
        Ok(())
    }
}
