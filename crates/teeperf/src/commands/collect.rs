//! `teeperf collect`: takes recordings that are sent.

use super::progress::{self, Progress, say};
use super::transport::{Listener, Place};
use super::{amounts, interrupt, live};
use crate::shell;
use anyhow::{Context, Result};
use clap::Args;
use std::io::{self, Cursor, IsTerminal, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use teeperf_edit::collect::{Received, Receiving};
use teeperf_edit::greeting::{self, Beginning, Stream, Until};

/// Takes recordings that `teeperf record --to` sends, each into a file of its own
///
/// Several may send at once; each is told at its end what was kept. A connection that breaks leaves a valid recording, cut
/// off there. What is no recording, or says nothing for some seconds, is turned away. Ends with Ctrl-C, or behind so
/// many recordings (--count).
///
/// What is sent tells the way that programs went, and goes unencrypted: listen where nobody else can connect, or
/// through a tunnel.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf collect -o taken                                 on this machine alone, tcp:127.0.0.1:7377
  teeperf collect --listen tcp:0.0.0.0:7377 -o taken       from other machines too
  teeperf record --to tcp:collector:7377 -- ./program      sends")]
pub(crate) struct Arguments {
    /// Where to listen: tcp:HOST:PORT or unix:PATH; port 0 is any that is free
    #[arg(long, value_name = "PLACE", value_parser = Place::parse, default_value = "tcp:127.0.0.1:7377")]
    listen: Place,
    /// The folder for recordings
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    /// Most bytes of one recording
    #[arg(long, value_name = "SIZE", value_parser = amounts::bytes, default_value = "10G")]
    limit_size: u64,
    /// Most that send at once; others are turned away
    #[arg(long, value_name = "N", default_value_t = 64)]
    senders: usize,
    /// End behind so many recordings
    #[arg(long, value_name = "N")]
    count: Option<usize>,
}

/// Most connections beside those that send: who connects says what for, and within so long; a recording begins
/// when what hooks cost has been measured.
const MOST_UNKNOWN: usize = 64;
const GREETING: Duration = Duration::from_secs(5);
const BEGINNING: Duration = Duration::from_secs(60);
/// How often what is shown on a terminal changes.
const BEAT: Duration = Duration::from_millis(200);

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    std::fs::create_dir_all(&arguments.output)
        .with_context(|| format!("cannot write {}", arguments.output.display()))?;
    let desk = Arc::new(Desk {
        folder: arguments.output.clone(),
        limit: arguments.limit_size,
        senders: arguments.senders,
        count: arguments.count,
        slots: Mutex::default(),
        bytes: AtomicU64::new(0),
    });
    let (listener, place) = interrupt::before_end(|| {
        let (listener, place) = arguments.listen.listen()?;
        let (at_end, ended) = (place.clone(), Arc::clone(&desk));
        let end = move || {
            leave(&at_end);
            let sending = ended.slots().sending;
            if sending > 0 {
                say(format!(
                    "teeperf: {sending} of what was being sent is cut off there, and can be read"
                ));
            }
        };
        Ok(((listener, place), end))
    })?;
    say(format!(
        "teeperf: listening at {place}; send with: teeperf record --to {place} -- PROGRAM"
    ));
    let (taken, all_taken) = channel();
    if arguments.count == Some(0) {
        leave(&place);
        return Ok(());
    }
    if io::stderr().is_terminal() {
        let (desk, progress) = (Arc::clone(&desk), Progress::of_what_comes("receiving"));
        let show = move || desk.show(progress);
        std::thread::Builder::new().spawn(show).context("a thread")?;
    }
    let accept = move || loop {
        desk.accept(&listener, &taken);
    };
    std::thread::Builder::new().spawn(accept).context("a thread")?;
    for _ in all_taken.iter().take(arguments.count.unwrap_or(usize::MAX)) {}
    leave(&place);
    Ok(())
}

/// A socket that nobody listens at any more.
fn leave(place: &Place) {
    if let Place::Unix(path) = place {
        let _ = std::fs::remove_file(path);
    }
}

/// Who may send, and where to.
struct Desk {
    folder: PathBuf,
    limit: u64,
    senders: usize,
    count: Option<usize>,
    slots: Mutex<Slots>,
    /// What has come of those that send now, and of those that ended meanwhile.
    bytes: AtomicU64,
}

/// A connection, of which it is counted what comes.
struct Counted<'a> {
    stream: &'a mut dyn Stream,
    bytes: &'a AtomicU64,
}

impl Read for Counted<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(into)?;
        self.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[derive(Default)]
struct Slots {
    /// Connections.
    open: usize,
    /// Those that send, or may.
    sending: usize,
    /// Recordings that came to their end.
    taken: usize,
}

impl Desk {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows how much has come, while somebody sends.
    fn show(&self, mut progress: Progress) {
        loop {
            std::thread::sleep(BEAT);
            // Nobody begins or ends between the look and the line.
            let slots = self.slots();
            if slots.sending > 0 {
                progress.at(self.bytes.load(Ordering::Relaxed));
            } else {
                progress::clear();
                self.bytes.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Takes the next connection; each has a thread.
    fn accept(self: &Arc<Self>, listener: &Listener, taken: &mpsc::Sender<()>) {
        let (mut stream, from) = match listener.accept() {
            Ok(connection) => connection,
            Err(error) => {
                // Such as too many open files: those that send may end.
                say(format!("teeperf: a connection was not taken: {error}"));
                std::thread::sleep(Duration::from_millis(100));
                return;
            }
        };
        let mut slots = self.slots();
        if slots.open - slots.sending >= MOST_UNKNOWN {
            say(format!("teeperf: {from} was turned away: too many connect and say nothing"));
            return;
        }
        slots.open += 1;
        drop(slots);
        let (desk, taken) = (Arc::clone(self), taken.clone());
        let serve = move || {
            let received = desk.serve(&mut *stream, &from);
            desk.slots().open -= 1;
            match received {
                Err(error) => say(format!("teeperf: {from}: {error}")),
                Ok(received) => {
                    tell(&received, &from);
                    // Nobody listens where all were taken.
                    let _ = taken.send(());
                }
            }
        };
        if std::thread::Builder::new().spawn(serve).is_err() {
            say("teeperf: a connection was not taken: there is no thread for it");
            self.slots().open -= 1;
        }
    }

    fn serve(&self, stream: &mut dyn Stream, from: &str) -> io::Result<Received> {
        let beginning = greeting::hear(stream, GREETING)?;
        let greets = beginning == Beginning::Greets;
        if let Some(why) = self.refuses() {
            if greets {
                greeting::answer(stream, Some(&why))?;
            }
            return Err(io::Error::other(format!("turned away: {why}")));
        }
        let received = self.receive(stream, beginning, from);
        let mut slots = self.slots();
        slots.sending -= 1;
        slots.taken += usize::from(received.is_ok());
        drop(slots);
        let received = received?;
        if greets {
            // One that is gone has lost the connection, and says so.
            let _ = greeting::tell(stream, &received);
        }
        Ok(received)
    }

    /// Why nobody may send, if so; otherwise somebody does from here on.
    fn refuses(&self) -> Option<String> {
        let mut slots = self.slots();
        if slots.sending >= self.senders {
            return Some(format!("{} send already", self.senders));
        }
        if let Some(count) = self.count.filter(|&count| slots.sending + slots.taken >= count) {
            return Some(format!("no more than {count} are taken"));
        }
        slots.sending += 1;
        None
    }

    fn receive(
        &self,
        stream: &mut dyn Stream,
        beginning: Beginning,
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
        // Who is silent now may be a program that calls nothing.
        stream.patience(None)?;
        Ok(receiving.go_on(Counted { stream, bytes: &self.bytes }, self.limit))
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
