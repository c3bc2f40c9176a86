//! The latest part alone, for long: whether the folder keeps its size, and reads whole at any moment.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::Figure;
use super::rotate::{size, watched};
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::table::{Limit, Row, digits};

pub(crate) const FIGURE: Figure = Figure {
    name: "rotate-long",
    title: "The latest part alone, for long",
    method: "lua 5.4 as above with `--rotate 100M` for a minute (`TEEPERF_ROTATE_SECONDS=600`: ten), at full rate. Most bytes in the \
             folder are looked for every ten milliseconds. Meanwhile the folder is copied by `cp` and the copy reported, thirty times, and at \
             the end the recorder is killed (`kill -9`) and what it leaves is reported. A report is whole where nothing is lost, no \
             frame had to be mended, and no more is missing than the end.",
    measure,
};

/// What is granted, bytes, and what it may never be more than.
const GRANTED: &str = "100M";
const MOST: f64 = 110e6;
/// Bytes that are there when the time begins.
const FIRST: u64 = 1_000_000;
/// Copies that are made of the folder while it is written to.
const COPIES: u32 = 30;

/// Records until the time is over, and kills the recorder.
fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let program = lab.lua(Hooks::Late)?;
    let script = lab.bench_file("programs/work.lua");
    let told = std::env::var("TEEPERF_ROTATE_SECONDS").ok();
    let seconds: u32 = match &told {
        Some(text) => text.parse().with_context(|| format!("TEEPERF_ROTATE_SECONDS={text}"))?,
        None => lab.size(60, 6),
    };
    let folder = lab.scratch("long.teeperf");
    let copy = lab.scratch("copy.teeperf");
    remove(&folder)?;
    let mut command = lab.record(&folder, &["-q", "--clock", "cycle", "--rotate", GRANTED]);
    // More rounds than there is time for.
    command.arg(program).arg(script).arg("1000000000").stdout(Stdio::null()).stderr(Stdio::null());
    let mut recorder = Group(command.process_group(0).spawn()?);
    let mut work = || -> Result<(f64, Vec<Kept>)> {
        while size(&folder) < FIRST && recorder.runs()? {
            std::thread::sleep(Duration::from_millis(10));
        }
        let begun = Instant::now();
        let mut kept = Vec::new();
        for number in 1..=COPIES {
            let at = Duration::from_secs(seconds.into()) * number / COPIES;
            std::thread::sleep(at.saturating_sub(begun.elapsed()));
            remove(&copy)?;
            // What is gone before its turn comes cannot be copied.
            Command::new("cp").arg("-a").args([&folder, &copy]).stderr(Stdio::null()).status()?;
            kept.push(Kept::of(lab, &copy).with_context(|| format!("copy {number}"))?);
        }
        recorder.signal(libc::SIGKILL)?;
        kept.push(Kept::of(lab, &folder).context("what the killed recorder leaves")?);
        Ok((begun.elapsed().as_secs_f64(), kept))
    };
    let ((lasted, kept), most) = watched(&folder, &mut work)?;
    drop(recorder);
    remove(&copy)?;
    let whole = kept.iter().filter(|kept| kept.is_whole).count();
    let least = kept.iter().map(|kept| kept.events).fold(f64::INFINITY, f64::min);
    Ok(vec![
        Row::new(
            "disk",
            &format!("--rotate {GRANTED}: most on the disk"),
            format!("in {} s", digits(lasted)),
        )
        .limit(Limit::AtMost(MOST / 1e6), Some(most as f64 / 1e6), "MB"),
        Row::new(
            "whole",
            &format!("--rotate {GRANTED}: reports that are not whole"),
            format!(
                "{whole} of {} whole, of {} M events or more; after kill -9 too",
                kept.len(),
                digits(least / 1e6)
            ),
        )
        .limit(Limit::AtMost(0.0), Some((kept.len() - whole) as f64), ""),
    ])
}

/// What a report says of a folder.
struct Kept {
    events: f64,
    is_whole: bool,
}

impl Kept {
    fn of(lab: &Lab, folder: &Path) -> Result<Self> {
        let mut command = Command::new(&lab.teeperf);
        let ran = lab.run(command.args(["report", "--json"]).arg(folder))?;
        let report: Value = serde_json::from_str(&ran.out).context("report --json")?;
        let health = &report["health"];
        let events = health["events"].as_f64().context("no events in the report")?;
        ensure!(events > 0.0, "no events are kept");
        let findings = health["findings"].as_array().context("no findings in the report")?;
        let warnings = findings.iter().filter(|finding| finding["warning"] == true);
        let missing: Vec<&str> = warnings.filter_map(|finding| finding["what"].as_str()).collect();
        let is_end = |what: &&str| what.starts_with("the recording has no end");
        let is_whole = health["lost"] == 0 && health["mended"] == 0 && missing.iter().all(is_end);
        if !is_whole {
            eprintln!("{}: {health}", folder.display());
        }
        Ok(Self { events, is_whole })
    }
}

/// A command and all that it started, which end with this.
struct Group(Child);

impl Group {
    /// Whether the command has not ended by itself.
    fn runs(&mut self) -> Result<bool> {
        ensure!(self.0.try_wait()?.is_none(), "the recording ended by itself");
        Ok(true)
    }

    /// To the command alone.
    fn signal(&self, signal: libc::c_int) -> Result<()> {
        // SAFETY: kill takes numbers alone; the child was not waited for, so that its number is still its own.
        match unsafe { libc::kill(self.0.id() as libc::pid_t, signal) } {
            0 => Ok(()),
            _ => bail!("kill: {}", std::io::Error::last_os_error()),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // SAFETY: as above; the group is that of the child, which leads it.
        unsafe { libc::kill(-(self.0.id() as libc::pid_t), libc::SIGKILL) };
        let _ = self.0.wait();
    }
}

/// Removes a folder, if it is there.
fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
