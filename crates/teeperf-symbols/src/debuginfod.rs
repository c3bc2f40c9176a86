//! Files by build-id from servers of debug information (debuginfod), through the client of elfutils: `debuginfod-find`.
//!
//! That program knows the servers (`DEBUGINFOD_URLS`), keeps what it fetched (`DEBUGINFOD_CACHE_PATH`), and does TLS. It is
//! asked only where the user allows it: what a server is told is which programs run here.

use crate::error::hex;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{env, thread};

/// The program of elfutils.
const PROGRAM: &str = "debuginfod-find";
/// What it obeys: where servers are, how long one may say nothing, how long one file may take and how large it may be.
const URLS: &str = "DEBUGINFOD_URLS";
/// Limits in seconds and bytes, unless the user set others.
const LIMITS: [(&str, &str); 3] = [
    ("DEBUGINFOD_TIMEOUT", "30"),
    ("DEBUGINFOD_MAXTIME", "600"),
    ("DEBUGINFOD_MAXSIZE", "4294967296"),
];
/// Longest that is waited for one file, whatever the client does.
const MOST_WAITED: Duration = Duration::from_secs(900);
/// How often it is looked whether the client has ended.
const STEP: Duration = Duration::from_millis(10);
/// Longest path that it may print, and most bytes of what it says that are kept.
const MAX_PATH: u64 = 4096;
const MAX_SAID: u64 = 4096;
/// The client ends its message so where no server has the file.
const NOT_FOUND: &str = "No such file or directory";

/// Kind of a file, and build-id.
type Wanted = (&'static str, Vec<u8>);

/// Servers of debug information, and what they were asked for.
#[derive(Debug, Default)]
pub struct Debuginfod {
    /// By kind and build-id; nothing where no server has it.
    known: Mutex<HashMap<Wanted, Option<PathBuf>>>,
    most_waited: Option<Duration>,
    failures: Mutex<Failures>,
}

/// Files that could not be asked for.
#[derive(Debug, Default)]
struct Failures {
    number: u32,
    /// The client's message about the last of them.
    last: String,
}

impl Debuginfod {
    /// The user's servers.
    ///
    /// # Errors
    ///
    /// In a text that says what to do: when no server is named, or the client is not installed.
    pub fn of_user() -> Result<Self, String> {
        if env::var_os(URLS).is_none_or(|urls| urls.is_empty()) {
            return Err(format!(
                "no server of debug information is named; next: set {URLS}, such as to https://debuginfod.debian.net"
            ));
        }
        let found = Command::new(PROGRAM)
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        match found {
            Ok(_) => Ok(Self::default()),
            Err(error) => Err(format!(
                "{PROGRAM} cannot be run: {error}; next: install it (package debuginfod of Debian, elfutils-debuginfod-client \
                 of Fedora)"
            )),
        }
    }

    /// The file of a build: its `executable`, or `debuginfo`.
    pub(crate) fn find(&self, kind: &'static str, build_id: &[u8]) -> Option<PathBuf> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.entry((kind, build_id.to_vec()));
        found.or_insert_with(|| self.ask(kind, build_id)).clone()
    }

    /// How many files could not be asked for, and why, as a sentence's end; nothing where all
    /// could.
    pub fn failures(&self) -> Option<String> {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        (failures.number > 0).then(|| {
            let files = if failures.number == 1 { "file" } else { "files" };
            format!("{} {files} could not be asked for: {}", failures.number, failures.last)
        })
    }

    fn fails(&self, said: String) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.number += 1;
        failures.last = said;
    }

    fn ask(&self, kind: &str, build_id: &[u8]) -> Option<PathBuf> {
        let mut command = Command::new(PROGRAM);
        command.arg(kind).arg(hex(build_id));
        for (name, limit) in LIMITS {
            if env::var_os(name).is_none() {
                command.env(name, limit);
            }
        }
        // A pipe would fill where it says much.
        let said = tempfile::tempfile().ok();
        let errors = said.as_ref().and_then(|file| file.try_clone().ok());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).env("LC_ALL", "C");
        command.stderr(errors.map_or_else(Stdio::null, Stdio::from));
        let mut client = command.spawn().ok()?;
        let end = Instant::now() + self.most_waited.unwrap_or(MOST_WAITED);
        let status = loop {
            match client.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if Instant::now() < end => thread::sleep(STEP),
                _ => {
                    // One that has ended meanwhile cannot be killed, and is only waited for.
                    let _ = client.kill();
                    let _ = client.wait();
                    self.fails(format!("{PROGRAM} took too long"));
                    return None;
                }
            }
        };
        let mut path = Vec::new();
        client.stdout.take()?.take(MAX_PATH).read_to_end(&mut path).ok()?;
        let path = path.strip_suffix(b"\n").unwrap_or(&path);
        let is_path = status.success() && path.first() == Some(&b'/');
        let said = said.map(last_line).unwrap_or_default();
        if !is_path && !said.ends_with(NOT_FOUND) {
            self.fails(if said.is_empty() { format!("{PROGRAM}: {status}") } else { said });
        }
        is_path.then(|| OsString::from_vec(path.to_vec()).into())
    }
}

/// The last line of what was written to a file, free of control characters.
fn last_line(mut file: File) -> String {
    let end = file.seek(SeekFrom::End(0)).unwrap_or(0);
    let mut bytes = Vec::new();
    // A message that cannot be read counts as none.
    let _ = file.seek(SeekFrom::Start(end.saturating_sub(MAX_SAID)));
    let _ = file.take(MAX_SAID).read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    line.trim().replace(char::is_control, "?")
}
