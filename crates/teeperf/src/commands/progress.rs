//! How far work is that takes longer than a second, on a terminal.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Shown from this time on, and so often.
const PATIENCE: Duration = Duration::from_secs(1);
const INTERVAL: Duration = Duration::from_millis(200);

/// Bytes done, of all of a file where that is known. What is shown goes again when this is dropped.
pub(crate) struct Progress {
    what: &'static str,
    all: Option<u64>,
    shown: Option<Instant>,
    began: Instant,
    is_seen: bool,
}

impl Progress {
    /// Of work on a file.
    pub(crate) fn of(what: &'static str, path: &Path) -> Self {
        let about = path.metadata().ok().filter(|about| about.is_file());
        Self {
            what,
            all: about.map(|about| about.len()).filter(|&all| all > 0),
            shown: None,
            began: Instant::now(),
            is_seen: std::io::stderr().is_terminal(),
        }
    }

    /// So many bytes are done.
    pub(crate) fn at(&mut self, bytes: u64) {
        let is_time = match self.shown {
            None => self.began.elapsed() >= PATIENCE,
            Some(shown) => shown.elapsed() >= INTERVAL,
        };
        if !self.is_seen || !is_time {
            return;
        }
        self.shown = Some(Instant::now());
        let megabytes = bytes as f64 / 1e6;
        let share = self.all.map_or(String::new(), |all| {
            format!(", {:.0} %", (bytes as f64 / all as f64 * 100.0).min(100.0))
        });
        eprint!("\rteeperf: {}: {megabytes:.0} MB{share}\x1b[K", self.what);
        let _ = std::io::stderr().flush();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() {
            eprint!("\r\x1b[K");
        }
    }
}
