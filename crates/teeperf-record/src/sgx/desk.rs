//! The thread that processes ask for memory, and that empties it: to the end of the recording.

use super::NO_EVENTS;
use super::options::Within;
use super::process::{Process, Told};
use super::rings::Counts;
use crate::clock::ClockPage;
use crate::drain::Event;
use crate::machine::monotonic_ns;
use crate::packets::Level;
use crate::sample::{Outlet, Packets};
use crate::socket::{Connection, Listener};
use crate::stats::Stats;
use crate::trust::Owner;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use teeperf_aex::sampler::event;
use teeperf_aex::told;
use teeperf_wire::body::sampled::source;
use teeperf_wire::sampling::{ASK_SIZE, Ask, Terms, VERSION, flag, what};

/// The running thread. Dropping it has it take what is left, and ends it.
#[derive(Debug)]
pub(crate) struct Desk {
    thread: Option<JoinHandle<()>>,
    /// Closed to end the thread.
    stop: Option<io::PipeWriter>,
}

/// What it works with.
#[derive(Debug)]
pub(crate) struct Means {
    pub(crate) within: Within,
    pub(crate) page: Arc<ClockPage>,
    pub(crate) stats: Arc<Stats>,
    pub(crate) events: Sender<Event>,
}

/// Between two rounds: samples of a thread that runs all the time are less by far than its ring has room for.
const ROUND: Duration = Duration::from_millis(10);
/// Longest silence of who connects.
const SILENCE: Duration = Duration::from_secs(2);
/// Connections that may be silent at once.
const MOST_WAITING: usize = 64;
/// Processes at one time.
const MOST_PROCESSES: usize = 4096;
/// Name of samples that are of no enclaves.
const TIMER: &str = "cpu-timer";

/// Payloads of the packets that say what is sampled, and how; the samples' clock had this value at the recording's start.
pub(crate) fn sampled(within: &Within, zero_ns: u64) -> Vec<Vec<u8>> {
    let fields = |event, source| {
        let mut room = [0; 512];
        let fields = told::fields(&mut room, event, &within.settings(), zero_ns, source);
        fields.map(<[u8]>::to_vec).unwrap_or_default()
    };
    if within.has_enclaves {
        told::EVENTS.map(|event| fields(event, source::AEX)).to_vec()
    } else {
        vec![fields((event::OUTSIDE, TIMER), source::TIMER)]
    }
}

impl Within {
    /// What samples are called, all together.
    pub(crate) fn name(&self) -> String {
        if self.has_enclaves { "enclaves and their hosts".into() } else { TIMER.into() }
    }
}

impl Desk {
    /// Listens under this name, and starts the thread.
    pub(crate) fn start(name: &str, means: Means) -> io::Result<Self> {
        let listener = Listener::bind(name)?;
        let (stopped, stop) = io::pipe()?;
        let packets = Outlet::new(means.events.clone());
        let thread = std::thread::Builder::new().name("teeperf-sample".into());
        let thread = thread.spawn(move || {
            let notices = means.events.clone();
            if let Err(error) = work(means, &listener, &stopped, &packets) {
                let text = format!("nothing could be sampled: {error}");
                notice(&notices, 0, (Level::Warning, text));
            }
        })?;
        Ok(Self { thread: Some(thread), stop: Some(stop) })
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic in it was already reported by the thread itself.
            let _ = thread.join();
        }
    }
}

fn notice(events: &Sender<Event>, process: u32, (level, text): (Level, String)) {
    // After the recording's end nobody listens.
    let _ = events.send(Event::Notice { level, text, process });
}

/// What one round works on.
struct Work<'a, S> {
    means: Means,
    outlet: &'a Outlet,
    packets: Packets<S>,
    processes: Vec<Process>,
    /// Connected, and said nothing yet.
    waiting: Vec<(Connection, Instant)>,
    /// Of processes that have ended.
    counts: Counts,
    owner: Owner,
    has_attached: bool,
    is_paused: bool,
    is_told_of_ticks: bool,
}

fn work(
    means: Means,
    listener: &Listener,
    stopped: &io::PipeReader,
    outlet: &Outlet,
) -> io::Result<()> {
    let is_paused = means.page.is_paused();
    let mut work = Work {
        means,
        outlet,
        // Lost samples may be of any event.
        packets: Packets::new(0, |kind, payload| outlet.send(kind, payload))?,
        processes: Vec::new(),
        waiting: Vec::new(),
        counts: Counts::default(),
        owner: Owner::of_this_process(),
        has_attached: false,
        is_paused,
        is_told_of_ticks: false,
    };
    while !work.round(listener, stopped) {}
    work.finish();
    Ok(())
}

impl<S: FnMut(u16, Vec<u8>)> Work<'_, S> {
    /// Whether it was the last.
    fn round(&mut self, listener: &Listener, stopped: &io::PipeReader) -> bool {
        let ready = self.poll(listener, stopped);
        let [is_stopped, arrivals, rest @ ..] = &ready[..] else { return true };
        let (said, ended) = rest.split_at(self.waiting.len());
        let ended: Vec<u32> = self
            .processes
            .iter()
            .zip(ended)
            .filter_map(|(process, &has_ended)| has_ended.then_some(process.pid))
            .collect();
        // Of the time since the round before this one.
        let is_paused = std::mem::replace(&mut self.is_paused, self.means.page.is_paused());
        if !self.outlet.is_held_up() || *is_stopped {
            let mut told = Told::new();
            for process in &mut self.processes {
                told.extend(process.look_ahead(&mut self.packets));
                told.extend(process.drain(is_paused, &mut self.packets));
                process.look_in(&mut self.packets);
            }
            self.tell(0, told);
        }
        self.hear(said);
        ended.into_iter().for_each(|pid| self.see_off(pid));
        if *arrivals {
            while self.waiting.len() < MOST_WAITING
                && let Ok(connection) = listener.accept()
            {
                self.waiting.push((connection, Instant::now()));
            }
        }
        self.packets.flush_old();
        self.count();
        *is_stopped
    }

    /// Waits until something is to be done, or a round is over. Says which: the pipe that ends the thread, the listener, the silent, the
    /// processes.
    fn poll(&self, listener: &Listener, stopped: &io::PipeReader) -> Vec<bool> {
        let entry = |file: BorrowedFd<'_>| libc::pollfd {
            fd: file.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let mut all = vec![entry(stopped.as_fd()), entry(listener.as_fd())];
        all.extend(self.waiting.iter().map(|(silent, _)| entry(silent.as_fd())));
        all.extend(self.processes.iter().map(|process| entry(process.ended.as_fd())));
        // Without processes nothing changes by itself.
        let is_idle = self.processes.is_empty() && self.waiting.is_empty();
        let due = self.processes.iter().filter_map(Process::due).min().unwrap_or(ROUND);
        let round = due.clamp(Duration::from_millis(1), ROUND);
        let time = if is_idle { -1 } else { round.as_millis() as libc::c_int };
        // SAFETY: address and length are those of `all`. After an error nothing is ready.
        unsafe { libc::poll(all.as_mut_ptr(), all.len() as libc::nfds_t, time) };
        all.iter().map(|entry| entry.revents != 0).collect()
    }

    fn hear(&mut self, said: &[bool]) {
        let waiting = std::mem::take(&mut self.waiting);
        for ((connection, since), &speaks) in waiting.into_iter().zip(said) {
            if speaks {
                self.answer(&connection);
            } else if since.elapsed() < SILENCE {
                self.waiting.push((connection, since));
            }
        }
    }

    /// Answers one message; the connection is closed behind the answer.
    fn answer(&mut self, connection: &Connection) {
        let mut message = [0; ASK_SIZE + 1];
        let (Ok(peer), Ok(length)) = (connection.peer(), connection.receive(&mut message)) else {
            return;
        };
        let Some(ask) = Ask::decode(&message[..length]) else { return };
        if !self.owner.is_of(peer) || peer.pid == 0 || ask.version != VERSION {
            let text =
                format!("process {} is of another user or version: it is not sampled", peer.pid);
            return self.tell(0, vec![(Level::Warning, text)]);
        }
        if ask.what == what::ATTACH {
            if let Err(error) = self.attach(connection, peer.pid, &ask) {
                let text = format!("process {} could not be sampled: {error}", peer.pid);
                self.tell(0, vec![(Level::Warning, text)]);
            }
            return;
        }
        let told = self.look_at(peer.pid, &ask);
        self.tell(0, told);
        // Who asked may be gone.
        let _ = connection.send(&Terms { version: VERSION, ..Terms::default() }.encode(), &[]);
    }

    fn attach(&mut self, connection: &Connection, pid: u32, ask: &Ask) -> io::Result<()> {
        let peer = connection.peer()?;
        // The program before this one in the same process writes no more.
        self.see_off(pid);
        if self.processes.len() >= MOST_PROCESSES {
            return Err(io::Error::other("there are too many"));
        }
        let ended = connection.peer_process(peer)?;
        let within = &self.means.within;
        let mut process = Process::new((pid, ask.pid), ended, within)?;
        let terms = within.terms(pid);
        if within.has_enclaves && ask.flags & flag::NO_EVENTS != 0 && !self.is_told_of_ticks {
            self.is_told_of_ticks = true;
            self.tell(0, vec![(Level::Warning, NO_EVENTS.into())]);
        }
        process.begin(ask.flags & flag::FORKED != 0, &self.processes, &mut self.packets);
        connection.send(&terms.encode(), &[process.memory.file()])?;
        self.has_attached = true;
        self.processes.push(process);
        Ok(())
    }

    /// Looks at a process that stands meanwhile.
    fn look_at(&mut self, pid: u32, ask: &Ask) -> Told {
        let Work { means, processes, packets, is_paused, .. } = self;
        let Some(process) = processes.iter_mut().find(|process| process.pid == pid) else {
            return Told::new();
        };
        if ask.what == what::GOES {
            return process.goes(ask, *is_paused, packets);
        }
        let mut told = process.drain(*is_paused, packets);
        told.extend(match ask.what {
            what::MADE => process.made(ask, ask.flags & flag::DEBUG != 0, &means.within, packets),
            what::ENDS => {
                process.look_at_code(packets, Some(monotonic_ns()));
                Told::new()
            }
            what::LEFT_OUT => {
                let text = format!(
                    "process {pid} has more enclaves than are remembered: samples inside the others are of sgx-unreadable"
                );
                vec![(Level::Warning, text)]
            }
            _ => Told::new(),
        });
        told
    }

    /// Takes what a process has left that is gone.
    fn see_off(&mut self, pid: u32) {
        let Some(at) = self.processes.iter().position(|process| process.pid == pid) else {
            return;
        };
        let mut process = self.processes.remove(at);
        let mut told = process.drain(self.is_paused, &mut self.packets);
        self.counts.add(&process.counts());
        // What comes next may be long in coming.
        self.packets.flush();
        told.extend(process.end());
        self.tell(0, told);
    }

    fn tell(&self, process: u32, told: Told) {
        told.into_iter().for_each(|one| notice(&self.means.events, process, one));
    }

    fn count(&mut self) {
        let counts = self.packets.counts;
        self.means.stats.samples.set(counts.samples);
        self.means.stats.samples_lost.set(counts.lost);
    }

    fn finish(mut self) {
        let all: Vec<u32> = self.processes.iter().map(|process| process.pid).collect();
        all.into_iter().for_each(|pid| self.see_off(pid));
        let Counts { inside, unreadable, outside, reads, words, .. } = self.counts;
        if self.means.within.has_enclaves && self.has_attached {
            let text = format!(
                "{inside} samples were inside enclaves, {unreadable} inside some that could not be read, {outside} outside; {} KiB \
                 were read of enclaves, in {reads} calls",
                words >> 7
            );
            self.tell(0, vec![(Level::Information, text)]);
        }
        if self.means.within.has_enclaves && self.has_attached && inside + unreadable == 0 {
            let text = "no thread was found inside an enclave";
            self.tell(0, vec![(Level::Warning, text.into())]);
        }
        if !self.has_attached {
            let text = "no program took the library that samples it: programs that are linked statically or set-user-id do not";
            self.tell(0, vec![(Level::Warning, text.into())]);
        }
        if self.counts.lost > 0 {
            let text = "samples were lost: --sample-buffer makes more room";
            self.tell(0, vec![(Level::Warning, text.into())]);
        }
        self.packets.flush();
        self.count();
    }
}
