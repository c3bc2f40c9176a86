//! Takes connections, and what they send.

use super::guests::{Guests, Limits};
use crate::commands::live;
use crate::commands::progress::{self, Progress, say};
use crate::commands::transport::Listener;
use crate::shell;
use std::io::{self, Cursor, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use teeperf_edit::collect::{Account, Received, Receiving};
use teeperf_edit::greeting::{self, Beginning, Stream, Until};
use teeperf_edit::secured::Secret;

/// A client that connects says what for within so long.
const GREETING: Duration = Duration::from_secs(5);
const BEGINNING: Duration = Duration::from_secs(60);
/// How often what is shown on a terminal changes.
const BEAT: Duration = Duration::from_millis(200);
/// How often it is said that somebody was turned away.
const COMPLAINT: Duration = Duration::from_secs(1);

/// Who may send, and where to.
pub(super) struct Desk {
    pub(super) folder: PathBuf,
    /// Most bytes of a recording.
    pub(super) limit: u64,
    pub(super) limits: Limits,
    pub(super) count: Option<usize>,
    pub(super) secret: Option<Secret>,
    /// Bytes that all together may still take.
    pub(super) left: AtomicU64,
    pub(super) slots: Mutex<Slots>,
    /// What has come of those that send now, and of those that ended meanwhile.
    pub(super) bytes: AtomicU64,
}

#[derive(Default)]
pub(super) struct Slots {
    guests: Guests,
    /// Recordings that came to their end.
    taken: usize,
    /// When it was last said that somebody was turned away, and how many were since.
    complained: Option<Instant>,
    silently: usize,
}

/// A sender, as its recording is counted.
struct Sender<'a> {
    desk: &'a Desk,
    number: u64,
}

impl Account for Sender<'_> {
    fn grants(&self, bytes: u64) -> bool {
        let take = |left: u64| left.checked_sub(bytes);
        self.desk.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    fn has_come(&self, bytes: u64) {
        self.desk.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.desk.slots().guests.has_sent(self.number);
    }
}

impl Desk {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many send.
    pub(super) fn sending(&self) -> usize {
        self.slots().guests.sending()
    }

    /// Shows how much has come, while somebody sends.
    pub(super) fn show(&self, mut progress: Progress) {
        loop {
            std::thread::sleep(BEAT);
            // Nobody begins or ends between the look and the line.
            let slots = self.slots();
            if slots.guests.sending() > 0 {
                progress.at(self.bytes.load(Ordering::Relaxed));
            } else {
                progress::clear();
                self.bytes.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Takes the next connection; each has a thread.
    pub(super) fn accept(self: &Arc<Self>, listener: &Listener, taken: &mpsc::Sender<()>) {
        let (stream, from, address) = match listener.accept() {
            Ok(connection) => connection,
            Err(error) => {
                // Such as too many open files: those that send may end.
                self.complain(format!("a connection was not taken: {error}"));
                std::thread::sleep(Duration::from_millis(100));
                return;
            }
        };
        let came = match stream.again() {
            Ok(handle) => self.slots().guests.come(address, handle, &self.limits),
            Err(error) => Err(error.to_string()),
        };
        let number = match came {
            Ok(number) => number,
            Err(why) => return self.complain(format!("{from} was turned away: {why}")),
        };
        let (desk, taken) = (Arc::clone(self), taken.clone());
        let serve = move || {
            let received = desk.serve(stream, number, &from);
            desk.slots().guests.go(number);
            match received {
                Err(error) => desk.complain(format!("{from}: {error}")),
                Ok(received) => {
                    tell(&received, &from);
                    // Nobody listens where all were taken.
                    let _ = taken.send(());
                }
            }
        };
        if std::thread::Builder::new().spawn(serve).is_err() {
            self.complain("a connection was not taken: there is no thread for it".into());
            self.slots().guests.go(number);
        }
    }

    /// Says what is wrong with somebody, unless it was just said of others.
    fn complain(&self, text: String) {
        let mut slots = self.slots();
        if slots.complained.is_some_and(|at| at.elapsed() < COMPLAINT) {
            slots.silently += 1;
            return;
        }
        slots.complained = Some(Instant::now());
        let others = match std::mem::take(&mut slots.silently) {
            0 => String::new(),
            count => format!(" (and {count} others before)"),
        };
        drop(slots);
        say(format!("teeperf: {text}{others}"));
    }

    fn serve(&self, stream: Box<dyn Stream>, number: u64, from: &str) -> io::Result<Received> {
        let deadline = Instant::now() + GREETING;
        let mut stream = match &self.secret {
            Some(secret) => greeting::secured(stream, secret, deadline).map_err(in_words)?,
            None => stream,
        };
        let beginning = greeting::hear(&mut *stream, deadline)?;
        let greets = beginning == Beginning::Greets;
        if let Err(why) = self.let_in(number) {
            if greets {
                greeting::answer(&mut *stream, Some(&why))?;
            }
            return Err(io::Error::other(format!("turned away: {why}")));
        }
        let received = self.receive(&mut *stream, beginning, number, from);
        let mut slots = self.slots();
        slots.taken += usize::from(received.is_ok());
        let is_cut = slots.guests.is_cut(number);
        drop(slots);
        let mut received = received?;
        if is_cut && !received.is_whole {
            received.why = "it was silent for too long, and another wanted its place".into();
        }
        if greets {
            // One that is gone has lost the connection, and says so.
            let _ = greeting::tell(&mut *stream, &received);
        }
        Ok(received)
    }

    /// Lets somebody send, or says why not.
    fn let_in(&self, number: u64) -> Result<(), String> {
        let mut slots = self.slots();
        let (taken, sending) = (slots.taken, slots.guests.sending());
        if let Some(count) = self.count.filter(|&count| sending + taken >= count) {
            return Err(format!("no more than {count} are taken"));
        }
        if self.left.load(Ordering::Relaxed) == 0 {
            return Err("all recordings together have reached --limit-total".into());
        }
        slots.guests.let_in(number, &self.limits)
    }

    fn receive(
        &self,
        stream: &mut dyn Stream,
        beginning: Beginning,
        number: u64,
        from: &str,
    ) -> io::Result<Received> {
        let has_come = match beginning {
            Beginning::Greets => {
                greeting::answer(stream, None)?;
                Cursor::new([0; 4]).take(0)
            }
            Beginning::Sends(bytes) => Cursor::new(bytes).take(4),
        };
        let deadline = Instant::now() + BEGINNING;
        let first = Until { stream: &mut *stream, deadline };
        let receiving = Receiving::begin(&mut has_come.chain(first), &self.folder)?;
        say(format!("teeperf: {from} sends {}", receiving.path().display()));
        // Who is silent now may be a program that calls nothing. It gives way where somebody wants its place.
        stream.patience(None)?;
        Ok(receiving.go_on(stream, self.limit, &Sender { desk: self, number }))
    }
}

/// What the system says of silence says little.
fn in_words(error: io::Error) -> io::Error {
    match greeting::is_late(&error) {
        true => io::Error::other("nothing was sent in time"),
        false => error,
    }
}

fn tell(received: &Received, from: &str) {
    let cut = match received.is_whole {
        true => String::new(),
        false => format!(", cut off: {}", received.why),
    };
    say(format!(
        "teeperf: {} from {from}{cut}; next: teeperf report {}",
        live::bytes(received.bytes),
        shell::typed(&received.path),
    ));
}
