//! How far work is that takes longer than a second, on a terminal.

use super::interrupt;
use crate::recordings;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Shown from this time on, and so often.
const PATIENCE: Duration = Duration::from_secs(1);
const INTERVAL: Duration = Duration::from_millis(200);

/// Whether there is a line on the terminal that is to go. Who has it may write there.
static IS_SHOWN: Mutex<bool> = Mutex::new(false);

/// Bytes done, of all there are where that is known. What is shown goes again when this is dropped, and when a signal ends the
/// process.
pub(crate) struct Progress {
    what: &'static str,
    all: Option<u64>,
    shown: Option<Instant>,
    began: Instant,
    is_seen: bool,
}

impl Progress {
    /// Of work on a recording. To be made before other threads are.
    pub(crate) fn of(what: &'static str, path: &Path) -> Self {
        Self::of_all(what, size(path))
    }

    /// Of work on several.
    pub(crate) fn of_several(what: &'static str, paths: &[&Path]) -> Self {
        Self::of_all(what, paths.iter().map(|path| size(path)).sum())
    }

    /// Of so many bytes.
    pub(crate) fn of_bytes(what: &'static str, all: u64) -> Self {
        Self::of_all(what, Some(all))
    }

    /// Of what comes, of which nobody knows how much there is.
    pub(crate) fn of_what_comes(what: &'static str) -> Self {
        Self::of_all(what, None)
    }

    fn of_all(what: &'static str, all: Option<u64>) -> Self {
        let is_seen = std::io::stderr().is_terminal();
        // Where there is no thread for it, the line stays when the process is ended.
        let _ = is_seen.then(|| interrupt::before_end(|| Ok(((), clear))));
        let all = all.filter(|&all| all > 0);
        Self { what, all, shown: None, began: Instant::now(), is_seen }
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
        let line = line(self.what, bytes, self.all, self.began.elapsed());
        let mut is_shown = is_shown();
        *is_shown = true;
        // Errors: the terminal is gone, and with it whoever would read this.
        let _ = std::io::stderr().write_all(format!("\r{line}\x1b[K").as_bytes());
    }
}

/// What is under way, of which nobody knows how far it is, such as what compilers do. What is shown goes again when this is dropped; signals
/// are not kept back for it, since programs that are started would have that from here.
pub(crate) struct Steps;

impl Steps {
    /// This is begun.
    pub(crate) fn at(&mut self, what: &str) {
        if std::io::stderr().is_terminal() {
            *is_shown() = true;
            // As above.
            let _ = std::io::stderr().write_all(format!("\rteeperf: {what}\x1b[K").as_bytes());
        }
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        clear();
    }
}

/// Says something on standard error, in the place of a line that is shown there.
pub(crate) fn say(text: impl std::fmt::Display) {
    let mut is_shown = is_shown();
    take_away(&mut is_shown);
    note!("{}", teeperf_view::printable_lines(&text.to_string()));
}

impl Drop for Progress {
    fn drop(&mut self) {
        clear();
    }
}

/// Takes the line away.
pub(crate) fn clear() {
    take_away(&mut is_shown());
}

fn take_away(is_shown: &mut bool) {
    if std::mem::take(is_shown) {
        let _ = std::io::stderr().write_all(b"\r\x1b[K");
    }
}

fn is_shown() -> MutexGuard<'static, bool> {
    IS_SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes to be read, where bytes that are done are bytes of the file: of archives they are not.
fn size(path: &Path) -> Option<u64> {
    if path.is_dir() {
        let lengths =
            std::fs::read_dir(path).ok()?.map(|entry| Some(entry.ok()?.metadata().ok()?.len()));
        return lengths.sum();
    }
    let about = path.metadata().ok().filter(|about| about.is_file());
    about.filter(|_| !recordings::is_archive(path)).map(|about| about.len())
}

fn line(what: &str, bytes: u64, all: Option<u64>, since: Duration) -> String {
    let mut line = format!("teeperf: {what}: {:.0} MB", bytes as f64 / 1e6);
    let share = all.map(|all| (bytes as f64 / all as f64).min(1.0));
    if let Some(share) = share.filter(|&share| share > 0.0) {
        let left = since.mul_f64((1.0 - share) / share);
        // Writing to a text does not fail.
        let _ = write!(line, ", {:.0} %, {} left", share * 100.0, told(left));
    }
    line
}

/// A time for people: `7 s`, `3 min 20 s`.
fn told(time: Duration) -> String {
    match time.as_secs_f64().ceil() as u64 {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_told_where_it_is_known() {
        let at = |bytes, all, seconds| line("reading", bytes, all, Duration::from_secs(seconds));
        let gigabyte = Some(1_000_000_000);
        assert_eq!(at(250_000_000, gigabyte, 2), "teeperf: reading: 250 MB, 25 %, 6 s left");
        assert_eq!(at(1_000_000, gigabyte, 1), "teeperf: reading: 1 MB, 0 %, 16 min 39 s left");
        assert_eq!(at(0, gigabyte, 1), "teeperf: reading: 0 MB");
        assert_eq!(at(7_000_000, None, 1), "teeperf: reading: 7 MB");
        // A file that grows meanwhile.
        assert_eq!(at(2_000_000_000, gigabyte, 3), "teeperf: reading: 2000 MB, 100 %, 0 s left");
        assert_eq!(told(Duration::from_secs(7300)), "2 h 1 min");
    }

    #[test]
    fn sizes_of_files_and_folders() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, [0; 100]).unwrap();
        std::fs::write(folder.path().join("b"), [0; 23]).unwrap();
        assert_eq!((size(&path), size(folder.path())), (Some(100), Some(123)));
        assert_eq!((size(Path::new("/dev/null")), size(Path::new("/no/such"))), (None, None));
        std::fs::write(&path, teeperf_edit::pack::MAGIC).unwrap();
        assert_eq!(size(&path), None);
    }
}
