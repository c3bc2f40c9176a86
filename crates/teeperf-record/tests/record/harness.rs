//! Runs a role under the recorder.

use crate::reading::Recording;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use teeperf_record::{Choice, Options, Outcome, Output, Recorder};

/// Environment variable that makes this executable play a role.
pub(crate) const ROLE: &str = "TEEPERF_TEST_ROLE";

/// The command that plays a role.
pub(crate) fn command(role: &str) -> Vec<OsString> {
    let own = std::env::current_exe().unwrap();
    let mut words = vec!["/usr/bin/env".into(), format!("{ROLE}={role}").into(), own.into()];
    words.extend(["roles::program", "--exact", "--nocapture", "-q"].map(OsString::from));
    words
}

/// The same for a shell.
pub(crate) fn shell(role: &str) -> String {
    let words = command(role).into_iter().map(|word| format!("'{}'", word.display()));
    words.collect::<Vec<_>>().join(" ")
}

/// A folder and a recording in it.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("test.teeperf")
    }

    /// Options to record here.
    pub(crate) fn options(&self) -> Options {
        let mut options = Options::new(Output::File(self.path()));
        // Tests run beside one another in one process, whose signals are nobody's.
        options.signals = false;
        options.clock = Choice::Tick;
        options
    }

    pub(crate) fn read(&self) -> Recording {
        read(&self.path())
    }
}

pub(crate) fn read(path: &Path) -> Recording {
    Recording::new(&std::fs::read(path).unwrap())
}

/// Records a role with these changes to the usual options.
pub(crate) fn record(role: &str, change: impl FnOnce(&mut Options)) -> (Outcome, Recording) {
    record_command(&command(role), change)
}

/// Records a command.
pub(crate) fn record_command(
    command: &[OsString],
    change: impl FnOnce(&mut Options),
) -> (Outcome, Recording) {
    let place = Place::new();
    let mut options = place.options();
    change(&mut options);
    let outcome = Recorder::new(options).run(command).unwrap();
    (outcome, place.read())
}

/// Waits until something is so.
pub(crate) fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !so() {
        assert!(since.elapsed() < Duration::from_secs(30), "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
