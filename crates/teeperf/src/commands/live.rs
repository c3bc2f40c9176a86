//! The line that a recording shows while it runs: only on a terminal, and not while the
//! program has the terminal to itself (an editor, a pager). Where the program writes lines to the
//! same terminal, these scroll above it: the last row is kept out of the scrolling region
//! (DECSTBM, see ctlseqs of xterm), as package managers do.
//!
//! Where the recording goes on although the program has ended, that is said once, terminal or not.

use super::terminal;
use std::io::{IsTerminal, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use teeperf_record::{Snapshot, Stats};

/// How often the line changes.
const BEAT: Duration = Duration::from_millis(200);
/// A row of a terminal that others write to is taken only from programs that run so long.
const PATIENCE: Duration = Duration::from_secs(1);
/// So many beats behind the program's end it is said that the recording goes on.
const BEATS_BEHIND: u32 = 5;
const GOES_ON: &str = "teeperf: the program has ended, but processes that it started are still \
                       recorded, or may yet call something; Ctrl-C ends the recording\n";

/// A line under way. Gone from the terminal when this is dropped.
#[derive(Debug)]
pub(crate) struct Live {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Live {
    /// Shows these counters until it is dropped.
    pub(crate) fn show(stats: Arc<Stats>) -> Self {
        let (end, ended) = channel();
        let thread = std::thread::spawn(move || {
            let began = Instant::now();
            let mut beats_behind = 0;
            let mut before = Snapshot::default();
            let mut place = std::io::stderr().is_terminal().then(Place::find);
            while ended.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                let now = stats.snapshot();
                let since = began.elapsed();
                // A recorder that waits for its output makes no rounds.
                let goes_on = now.rounds_behind > before.rounds_behind;
                beats_behind += u32::from(goes_on);
                if goes_on && beats_behind == BEATS_BEHIND {
                    place.iter_mut().for_each(Place::clear);
                    write(GOES_ON);
                }
                if let Some(place) = &mut place
                    && is_line_by_line()
                    && (place.is_ours() || since >= PATIENCE)
                {
                    place.draw(&line(&now, &before, since));
                }
                before = now;
            }
            place.iter_mut().for_each(Place::clear);
        });
        Self { end: Some(end), thread: Some(thread) }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A line that could not be drawn is no reason to fail.
            let _ = thread.join();
        }
    }
}

/// Where the line stands.
#[derive(Debug)]
struct Place {
    shared: bool,
    drawn: bool,
}

impl Place {
    fn find() -> Self {
        let shared = std::io::stdout().is_terminal() && size().is_some();
        Self { shared, drawn: false }
    }

    /// Whether nobody else writes there.
    fn is_ours(&self) -> bool {
        !self.shared
    }

    /// Puts a line there, over the one before.
    fn draw(&mut self, line: &str) {
        match size().filter(|_| self.shared) {
            None => write(&format!("\r\x1b[2K{line}")),
            Some((rows, columns)) => {
                if !self.drawn {
                    // The row below the last line, which may be the terminal's last.
                    write("\n\x1b[A");
                }
                let line: String = line.chars().take(columns.into()).collect();
                let above = rows - 1;
                write(&format!("\x1b7\x1b[1;{above}r\x1b[{rows};1H\x1b[2K{line}\x1b8"));
            }
        }
        self.drawn = true;
    }

    /// Leaves the terminal as it was.
    fn clear(&mut self) {
        match size().filter(|_| self.shared) {
            _ if !self.drawn => {}
            None => write("\r\x1b[2K"),
            Some((rows, _)) => write(&format!("\x1b7\x1b[r\x1b[{rows};1H\x1b[2K\x1b8")),
        }
        self.drawn = false;
    }
}

fn write(text: &str) {
    // Errors: the terminal is gone, and with it whoever would read this.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Rows and columns of the terminal, where it is large enough to give a row away.
fn size() -> Option<(u16, u16)> {
    terminal::size(&std::io::stderr()).filter(|(rows, _)| *rows > 3)
}

fn line(now: &Snapshot, before: &Snapshot, since: Duration) -> String {
    let beats = 1.0 / BEAT.as_secs_f64();
    let rate = now.events.saturating_sub(before.events) as f64 * beats;
    let mut text = format!(
        "[teeperf {:.1} s] {}, {}/s, {} written, {} thread{}",
        since.as_secs_f64(),
        events(now.events as f64),
        events(rate),
        bytes(now.bytes),
        now.threads,
        if now.threads == 1 { "" } else { "s" },
    );
    if now.samples > 0 {
        text += &format!(", {} samples", now.samples);
    }
    if now.lost > 0 {
        text += &format!(", {} LOST", events(now.lost as f64));
    }
    if now.waits > 0 {
        text += &format!(", waited {} times", now.waits);
    }
    text
}

/// `412.0 M events`
pub(crate) fn events(count: f64) -> String {
    match count {
        _ if count >= 1e9 => format!("{:.2} G events", count / 1e9),
        _ if count >= 1e6 => format!("{:.1} M events", count / 1e6),
        _ if count >= 1e4 => format!("{:.0} k events", count / 1e3),
        _ => format!("{count:.0} events"),
    }
}

/// `13.1 MB`
pub(crate) fn bytes(count: u64) -> String {
    match count as f64 {
        count if count >= 1e9 => format!("{:.2} GB", count / 1e9),
        count if count >= 1e6 => format!("{:.1} MB", count / 1e6),
        count if count >= 1e3 => format!("{:.1} kB", count / 1e3),
        count => format!("{count} bytes"),
    }
}

/// Whether the terminal takes whole lines; a program that fills the screen has turned that off.
fn is_line_by_line() -> bool {
    let mut settings = std::mem::MaybeUninit::<libc::termios>::uninit();
    // SAFETY: the descriptor is only asked, and the settings have room for the answer.
    let answer = unsafe { libc::tcgetattr(std::io::stderr().as_raw_fd(), settings.as_mut_ptr()) };
    // SAFETY: the call has filled the settings in when it answers 0.
    answer == 0 && unsafe { settings.assume_init() }.c_lflag & libc::ICANON != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_rate_size_threads_and_losses() {
        let before = Snapshot { events: 1_000_000, ..Snapshot::default() };
        let now =
            Snapshot { events: 3_000_000, bytes: 2_345_678, threads: 1, ..Snapshot::default() };
        let since = Duration::from_millis(400);
        assert_eq!(
            line(&now, &before, since),
            "[teeperf 0.4 s] 3.0 M events, 10.0 M events/s, 2.3 MB written, 1 thread"
        );
        let now = Snapshot { threads: 2, lost: 7, waits: 3, ..now };
        assert!(line(&now, &before, since).ends_with("2 threads, 7 events LOST, waited 3 times"));
    }

    #[test]
    fn figures_read_well() {
        assert_eq!(events(999.0), "999 events");
        assert_eq!(events(54_321.0), "54 k events");
        assert_eq!(events(1.5e9), "1.50 G events");
        assert_eq!(bytes(12), "12 bytes");
        assert_eq!(bytes(1_500), "1.5 kB");
        assert_eq!(bytes(3_210_000_000), "3.21 GB");
    }
}
