//! Runs commands with a hard limit: what hangs is killed, with all it started, and fails its
//! test. Output goes to files, so that a child that outlives its parent blocks nobody.

use super::report::Report;
use super::told::Told;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The command under test.
pub(crate) const TEEPERF: &str = env!("CARGO_BIN_EXE_teeperf");

/// The command, away from the user's settings, with a cache that the tests share.
pub(crate) fn teeperf() -> Command {
    let mut command = Command::new(TEEPERF);
    command.env("XDG_CACHE_HOME", cache()).env("TEEPERF_CONFIG", "");
    for variable in ["TEEPERF_CC", "TEEPERF_CXX", "TEEPERF_CC_OPTIONS", "TEEPERF_SOCKET"] {
        command.env_remove(variable);
    }
    let hooks = if are_late() { "late" } else { "source" };
    command.env("TEEPERF_CC_OPTIONS", format!("--teeperf-hooks={hooks}"));
    command
}

/// Whether programs are built with late hooks, which `TEEPERF_TEST_HOOKS=late` asks for.
pub(crate) fn are_late() -> bool {
    std::env::var_os("TEEPERF_TEST_HOOKS").is_some_and(|hooks| hooks == "late")
}

/// Whether tests take the time that `cargo xtask test --thorough` gives them.
pub(crate) fn are_thorough() -> bool {
    std::env::var_os("TEEPERF_TEST_THOROUGH").is_some()
}

/// How often a program does what takes long: a fifth of `most` where tests are not thorough.
pub(crate) fn repeats(most: u64) -> u64 {
    if are_thorough() { most } else { most / 5 }
}

/// The cache that the tests share.
pub(crate) fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")
}

/// Nothing here takes a tenth of this where nobody else works: it is there so that a hang is a
/// failure.
const LIMIT: Duration = Duration::from_secs(300);

/// How a command ended and what it said.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    pub(crate) fn success(&self) -> bool {
        self.status.success()
    }

    /// Ended with this status, or says all that is known.
    #[track_caller]
    pub(crate) fn expect_code(&self, code: i32) -> &Self {
        assert_eq!(self.status.code(), Some(code), "{self:#?}");
        self
    }

    /// What the program told of its calls.
    pub(crate) fn told(&self) -> Told {
        Told::read(&self.stdout)
    }
}

/// A command under way.
pub(crate) struct Running {
    pub(crate) child: Child,
    stdout: File,
    stderr: File,
    began: Instant,
    shown: String,
}

impl Running {
    /// Starts it in a process group of its own. `command` keeps the input it was given.
    pub(crate) fn start(command: &mut Command) -> Self {
        let stdout = tempfile::tempfile().expect("a file for output");
        let stderr = tempfile::tempfile().expect("a file for errors");
        let shown = format!("{command:?}");
        let copy = |file: &File| Stdio::from(file.try_clone().expect("another descriptor"));
        let child = command
            .stdout(copy(&stdout))
            .stderr(copy(&stderr))
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("{shown}: {error}"));
        Self { child, stdout, stderr, began: Instant::now(), shown }
    }

    /// Process id.
    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Sends it a signal.
    #[track_caller]
    pub(crate) fn signal(&self, number: i32) {
        // SAFETY: kill only takes numbers.
        assert_eq!(unsafe { libc::kill(self.pid(), number) }, 0, "kill {}", self.shown);
    }

    /// What it has said so far on standard output.
    pub(crate) fn stdout_so_far(&self) -> String {
        text(&self.stdout)
    }

    /// What it has said so far on standard error.
    pub(crate) fn stderr_so_far(&self) -> String {
        text(&self.stderr)
    }

    /// Waits for its end, no longer than the limit.
    #[track_caller]
    pub(crate) fn wait(mut self) -> Outcome {
        loop {
            if let Some(status) = self.child.try_wait().expect("waiting") {
                let (stdout, stderr) = (text(&self.stdout), text(&self.stderr));
                return Outcome { status, stdout, stderr };
            }
            if self.began.elapsed() > LIMIT {
                panic!(
                    "still running after {LIMIT:?}: {}\n{}{}",
                    self.shown,
                    text(&self.stdout),
                    text(&self.stderr)
                );
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            // SAFETY: kill only takes numbers; the group is the child's own.
            unsafe { libc::kill(-self.pid(), libc::SIGKILL) };
            let _ = self.child.wait();
        }
    }
}

/// What is in the file so far. Its position is the writer's, and is left where it is.
fn text(file: &File) -> String {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    while let Ok(count @ 1..) = file.read_at(&mut part, bytes.len() as u64) {
        bytes.extend_from_slice(&part[..count]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Runs a command to its end.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> Outcome {
    Running::start(command).wait()
}

/// Waits until something has come true, no longer than the limit.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < LIMIT, "{what}: not after {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A program under `teeperf record`, as it will be started.
pub(crate) struct Recording {
    pub(crate) command: Command,
    pub(crate) file: PathBuf,
}

/// How it went: the command's own outcome, and the report.
pub(crate) struct Recorded {
    pub(crate) outcome: Outcome,
    pub(crate) file: PathBuf,
    pub(crate) report: Report,
}

impl Recording {
    /// Runs a program that needs rights, and reads the recording. Nothing, and a word of it, where
    /// the program has not got them: it ends with 77 then, and with 0 else.
    #[track_caller]
    pub(crate) fn run_with_rights(mut self) -> Option<Recorded> {
        let outcome = run(&mut self.command);
        if outcome.status.code() == Some(77) {
            eprintln!("skipped: this test needs rights that it does not have here");
            return None;
        }
        outcome.expect_code(0);
        let report = Report::of(&self.file);
        Some(Recorded { outcome, file: self.file, report })
    }
}

impl super::Workshop {
    /// `teeperf record OPTIONS -o FILE -- PROGRAM ARGUMENTS`, not started yet.
    pub(crate) fn recording(
        &self,
        options: &[&str],
        program: &Path,
        arguments: &[&str],
    ) -> Recording {
        let file = self.path("recording.teeperf");
        let mut command = teeperf();
        command.arg("record").args(options).arg("-o").arg(&file).arg("--").arg(program);
        command.args(arguments).stdin(Stdio::null()).current_dir(self.path(""));
        Recording { command, file }
    }

    /// Records a program that ends with `code`, and reads the recording.
    #[track_caller]
    pub(crate) fn record(
        &self,
        options: &[&str],
        program: &Path,
        arguments: &[&str],
        code: i32,
    ) -> Recorded {
        let mut recording = self.recording(options, program, arguments);
        let outcome = run(&mut recording.command);
        outcome.expect_code(code);
        let report = Report::of(&recording.file);
        Recorded { outcome, file: recording.file, report }
    }
}

/// The signal that a status tells of: directly, or as shells tell it.
pub(crate) fn signal_of(status: ExitStatus) -> Option<i32> {
    status.signal().or(status.code().filter(|&code| code > 128).map(|code| code - 128))
}

/// The file in which `steady.c` says how far it has got.
pub(crate) struct Progress {
    path: PathBuf,
    file: File,
}

impl Progress {
    pub(crate) fn new(shop: &super::Workshop, name: &str) -> Self {
        let path = shop.path(name);
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .expect("a file for the progress");
        file.set_len(4096).expect("a page");
        Self { path, file }
    }

    pub(crate) fn name(&self) -> &str {
        self.path.to_str().expect("a plain name")
    }

    /// Calls of `leaf` so far.
    pub(crate) fn calls(&self) -> u64 {
        self.word(0)
    }

    /// Whether main has ended its work.
    pub(crate) fn done(&self) -> bool {
        self.word(1) == 1
    }

    /// Tells it to end.
    pub(crate) fn stop(&self) {
        self.file.write_all_at(&1u64.to_ne_bytes(), 16).expect("writing the word");
    }

    fn word(&self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, at * 8).expect("reading the word");
        u64::from_ne_bytes(bytes)
    }
}

/// The one child of a process: the program under a recorder.
#[track_caller]
pub(crate) fn child_of(pid: i32) -> i32 {
    let mut child = None;
    wait_until("a child", || {
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        child = children.ok().and_then(|text| text.split_whitespace().next()?.parse().ok());
        child.is_some()
    });
    child.expect("waited for")
}
