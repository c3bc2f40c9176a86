//! The host's side: `teeperf serve-memory`, which lends a file that programs map, and what it has recorded.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::build::Workshop;
use crate::commands::run_quietly;

const LIMIT: Duration = Duration::from_secs(20);
/// Letters and version that an arena begins with.
const MAGIC: &[u8] = b"TPARENA\x01";

/// Where an arena counts how often nothing was free in it: `segment::WANTED` of the segment behind the first page.
const WANTED: std::ops::Range<usize> = 4160..4164;

/// A recorder that runs.
pub(super) struct Host {
    child: Child,
    teeperf: PathBuf,
    /// What it lends.
    pub(super) memory: PathBuf,
    recording: PathBuf,
}

impl Host {
    /// Lends memory of a size, with further options, to a program.
    pub(super) fn start(
        shop: &Workshop,
        program: &Path,
        size: &str,
        options: &[&str],
    ) -> Result<Self> {
        let (memory, recording) = (shop.path("memory"), shop.path("recorded.teeperf"));
        for file in [&memory, &recording] {
            if file.exists() {
                fs::remove_file(file)?;
            }
        }
        let mut command = Command::new(&shop.teeperf);
        command.arg("serve-memory").arg(&memory).args(["--size", size, "--elf"]).arg(program);
        command.args(["--quiet", "--force", "-o"]).arg(&recording).args(options);
        // What it and hooked programs keep stays out of the user's folders.
        command.env("XDG_CACHE_HOME", shop.path("cache")).stdin(Stdio::null());
        let log = fs::File::create(shop.path("host.log"))?;
        let child = command.stdout(log.try_clone()?).stderr(log).spawn()?;
        let mut host = Self { child, teeperf: shop.teeperf.clone(), memory, recording };
        let has_begun = |host: &mut Self| {
            let is_there = fs::read(&host.memory).is_ok_and(|bytes| bytes.starts_with(MAGIC));
            let ended = host.child.try_wait()?;
            ensure!(ended.is_none(), "it ended: {}", fs::read_to_string(shop.path("host.log"))?);
            Ok(is_there)
        };
        host.wait_for(has_begun).context("teeperf serve-memory does not begin")?;
        Ok(host)
    }

    fn wait_for(&mut self, mut what: impl FnMut(&mut Self) -> Result<bool>) -> Result<()> {
        let start = Instant::now();
        while !what(self)? {
            ensure!(start.elapsed() < LIMIT, "it takes more than {} s", LIMIT.as_secs());
            sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Sends a signal.
    pub(super) fn signal(&self, signal: libc::c_int) -> Result<()> {
        // SAFETY: a signal for a child that has not been waited for.
        match unsafe { libc::kill(self.child.id() as libc::pid_t, signal) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error().into()),
        }
    }

    /// Stops all of its threads, for a while.
    pub(super) fn stop(&mut self) -> Result<()> {
        self.signal(libc::SIGSTOP)?;
        let threads = PathBuf::from(format!("/proc/{}/task", self.child.id()));
        let is_so = |_: &mut Self| {
            for thread in fs::read_dir(&threads)? {
                let state = fs::read_to_string(thread?.path().join("stat"))?;
                // Behind the name, which may have parentheses itself: proc_pid_stat(5).
                if !state.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T')) {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        self.wait_for(is_so).context("it does not stop")
    }

    /// `teeperf pause` or `resume`, for this one; the clock has moved since when this is back.
    pub(super) fn ask(&self, what: &str) -> Result<()> {
        run_quietly(Command::new(&self.teeperf).args([what, &self.child.id().to_string()]))?;
        // Ten times what a tick takes.
        sleep(Duration::from_millis(20));
        Ok(())
    }

    /// What is recorded so far.
    pub(super) fn snapshot(&self) -> Result<Recorded> {
        let pid = self.child.id().to_string();
        run_quietly(Command::new(&self.teeperf).args(["ctl", &pid, "snapshot"]))?;
        Recorded::read(&self.teeperf, &self.recording)
    }

    /// Waits until somebody has found nothing free in the memory.
    pub(super) fn is_wanted(&mut self) -> Result<()> {
        let is_so = |host: &mut Self| {
            let bytes = fs::read(&host.memory)?;
            Ok(bytes.get(WANTED).is_some_and(|count| count.iter().any(|byte| *byte != 0)))
        };
        self.wait_for(is_so).context("the memory does not get full")
    }

    /// Ends recording as Ctrl-C does; what was recorded.
    pub(super) fn end(mut self) -> Result<Recorded> {
        self.signal(libc::SIGINT)?;
        self.wait_for(|host| Ok(host.child.try_wait()?.is_some()))?;
        let status = self.child.wait()?;
        ensure!(
            status.success() || status.signal() == Some(libc::SIGINT),
            "teeperf serve-memory ended with {status}"
        );
        Recorded::read(&self.teeperf, &self.recording)
    }

    /// Ends it without a word; what it had recorded until then.
    pub(super) fn kill(mut self) -> Result<Recorded> {
        self.child.kill()?;
        self.child.wait()?;
        Recorded::read(&self.teeperf, &self.recording)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may have ended, or be stopped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The report of a recording.
pub(super) struct Recorded(Value);

impl Recorded {
    pub(super) fn read(teeperf: &Path, recording: &Path) -> Result<Self> {
        let mut command = Command::new(teeperf);
        let text = run_quietly(command.args(["report", "--json", "--tree"]).arg(recording))?;
        Ok(Self(serde_json::from_str(&text)?))
    }

    /// Calls of each function.
    pub(super) fn calls(&self) -> BTreeMap<String, u64> {
        let functions = self.0["functions"].as_array().into_iter().flatten();
        let calls = functions.map(|function| {
            let name = function["name"].as_str().unwrap_or_default();
            (name.to_owned(), function["calls"].as_u64().unwrap_or(0))
        });
        calls.filter(|(_, calls)| *calls > 0).collect()
    }

    /// Time in a function itself, nanoseconds.
    pub(super) fn time(&self, name: &str) -> f64 {
        let mut functions = self.0["functions"].as_array().into_iter().flatten();
        let function = functions.find(|function| function["name"] == name);
        function.and_then(|function| function["self"].as_f64()).unwrap_or(0.0)
    }

    /// How long the recording is, nanoseconds.
    pub(super) fn duration(&self) -> f64 {
        self.0["info"]["duration"].as_f64().unwrap_or(0.0)
    }

    /// A figure of the recording's health; nothing where it is not known, as of calls that are open in sums.
    pub(super) fn health(&self, name: &str) -> u64 {
        let figure = self.0["health"].get(name);
        figure.map_or(u64::MAX, |figure| figure.as_u64().unwrap_or(0))
    }

    /// Nanoseconds in a function itself.
    pub(super) fn self_ns(&self, name: &str) -> f64 {
        let mut functions = self.0["functions"].as_array().into_iter().flatten();
        let function = functions.find(|function| function["name"] == name);
        function.and_then(|function| function["self"].as_f64()).unwrap_or(0.0)
    }

    /// Calls on each path, as `outer;inner`, over all threads.
    pub(super) fn paths(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for thread in self.0["threads"].as_array().into_iter().flatten() {
            let mut names: Vec<String> = Vec::new();
            for node in thread["tree"].as_array().into_iter().flatten() {
                let name = node["name"].as_str().unwrap_or_default();
                let caller = node["caller"].as_u64().and_then(|at| names.get(at as usize));
                let path =
                    caller.map_or_else(|| name.to_owned(), |caller| format!("{caller};{name}"));
                *all.entry(path.clone()).or_insert(0) += node["calls"].as_u64().unwrap_or(0);
                names.push(path);
            }
        }
        all
    }

    /// What the recorder warned of.
    pub(super) fn warnings(&self) -> Vec<String> {
        let findings = self.0["health"]["findings"].as_array().into_iter().flatten();
        findings.filter_map(|finding| finding["what"].as_str().map(str::to_owned)).collect()
    }

    /// How often there was a gap for a reason.
    pub(super) fn gaps(&self, reason: &str) -> u64 {
        let gaps = self.0["health"]["gaps"].as_array().into_iter().flatten();
        let times = gaps.filter(|gap| gap["reason"] == reason).map(|gap| gap["times"].as_u64());
        times.flatten().sum()
    }

    pub(super) fn threads(&self) -> usize {
        self.0["threads"].as_array().map_or(0, Vec::len)
    }

    /// An error unless nothing is missing, and these are all calls.
    pub(super) fn is_whole(&self, calls: &[(&str, u64)]) -> Result<()> {
        for figure in ["lost", "mended", "open", "unopened"] {
            ensure!(self.health(figure) == 0, "{figure}: {}", self.health(figure));
        }
        let expected: BTreeMap<String, u64> =
            calls.iter().map(|&(name, calls)| (name.to_owned(), calls)).collect();
        if self.calls() != expected {
            bail!("calls: {:?}, and not {expected:?}", self.calls());
        }
        Ok(())
    }
}
