//! What the tracer does with what happens to threads: they begin, stop, get signals, end.

use super::enclave;
use super::ptrace::{self, Event as Happened, Waited};
use super::space::{Out, Space};
use super::target::{self, AttachError, Target};
use super::thread::Thread;
use super::tracer::{Means, settings};
use crate::drain::Event;
use crate::enclaves::Mapping;
use crate::packets::Level;
use crate::process::Ending;
use crate::sample::{Outlet, Packets};
use crate::server::{parent_of, random};
use crate::sgx::{GivenModule, Told};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};
use teeperf_aex::sampler::{Settings, event};
use teeperf_aex::state::{MOST_CHAIN, MOST_STACK, Room};

/// Between two looks at what changes by itself.
const LOOK: Duration = Duration::from_millis(300);
/// Until it is looked again, while others do not wait yet for the command's first thread, which has ended.
const ENDING: Duration = Duration::from_millis(1);

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    inside: u64,
    unreadable: u64,
    outside: u64,
    /// How long threads stood for their samples.
    stood: Duration,
    longest: Duration,
}

/// See the module.
pub(super) struct Work {
    means: Means,
    pub(super) settings: Settings,
    modules: Arc<[GivenModule]>,
    outlet: Arc<Outlet>,
    packets: Out,
    /// The command's first thread.
    command: Option<u32>,
    threads: HashMap<u32, Thread>,
    spaces: HashMap<u32, Space>,
    random: u64,
    room: Box<Room>,
    counts: Counts,
    /// Threads whose time the kernel does not tell by events.
    has_late: bool,
}

impl Work {
    pub(super) fn new(means: Means, command: Option<u32>) -> io::Result<Self> {
        let outlet = Arc::new(Outlet::new(means.events.clone()));
        let out = Arc::clone(&outlet);
        let send: Box<dyn FnMut(u16, Vec<u8>) + Send> =
            Box::new(move |kind, payload| out.send(kind, payload));
        Ok(Self {
            settings: settings(&means.sgx),
            modules: means.sgx.modules.clone().into(),
            packets: Packets::new(0, send)?,
            outlet,
            means,
            command,
            threads: HashMap::new(),
            spaces: HashMap::new(),
            random: random()?,
            room: Box::new(Room { chain: [[0; 8]; MOST_CHAIN], stack: [0; MOST_STACK] }),
            counts: Counts::default(),
            has_late: false,
        })
    }

    /// Seizes who is to be sampled.
    pub(super) fn begin(&mut self) -> Result<(), AttachError> {
        if let Some(command) = self.command {
            ptrace::seize(command).map_err(|error| target::refused(command, error))?;
            // What it is until it executes its program nobody asks.
            self.spaces.insert(command, Space::new(command, Arc::clone(&self.modules)));
            self.thread_begins(command, command, true);
            return Ok(());
        }
        let Target::Process(pid) = self.means.target else { return Ok(()) };
        // Those that it makes meanwhile come with who makes them, or are there in the next round.
        loop {
            let before = self.threads.len();
            for tid in threads_of(pid) {
                if self.threads.contains_key(&tid) {
                    continue;
                }
                match ptrace::seize(tid) {
                    Ok(()) => self.thread_begins(tid, pid, true),
                    Err(error) if tid == pid => return Err(target::refused(pid, error)),
                    // It has ended, or its maker has it traced.
                    Err(_) => {}
                }
            }
            if self.threads.len() == before {
                break;
            }
        }
        if self.threads.is_empty() {
            return Err(AttachError::Missing(pid));
        }
        if !Mapping::all(pid).is_ok_and(|maps| enclave::has_any(&maps)) {
            let text = format!(
                "process {pid} has no enclave so far: it is sampled, and those that it makes will be"
            );
            notice(&self.means.events, (Level::Information, text));
        }
        Ok(())
    }

    pub(super) fn run(&mut self, stop: &AtomicBool) {
        let mut looked = Instant::now();
        while !stop.load(Relaxed) {
            match ptrace::wait(self.command, self.threads.keys().copied()) {
                Waited::Event(tid, happened) => self.happened(tid, happened),
                Waited::Interrupted => self.look_for_late(),
                Waited::Ending => std::thread::sleep(ENDING),
                Waited::Nobody => break,
            }
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                self.look_in();
            }
            self.packets.flush_old();
            self.count();
        }
        self.finish();
    }

    fn happened(&mut self, tid: u32, happened: Happened) {
        if !self.threads.contains_key(&tid) && happened != Happened::Ended {
            // It is told of before its maker is.
            let Some(pid) = target::process_of(tid) else { return ptrace::go_on(tid, 0) };
            self.thread_begins(tid, pid, false);
        }
        match happened {
            Happened::Signal(signal) => self.go_on(tid, signal),
            Happened::GroupStop => {
                if let Some(thread) = self.threads.get_mut(&tid) {
                    (thread.stands, thread.has_begun) = (true, true);
                }
                ptrace::listen(tid);
            }
            Happened::Stopped => self.stopped(tid),
            Happened::Began => {
                if let Some(new) = ptrace::message(tid)
                    && !self.threads.contains_key(&new)
                    && let Some(pid) = target::process_of(new)
                {
                    self.thread_begins(new, pid, false);
                }
                self.go_on(tid, 0);
            }
            Happened::Executed => {
                self.executed(tid);
                ptrace::go_on(tid, 0);
            }
            Happened::Ends => {
                self.thread_ends(tid);
                // So that who waits for it hears of its end from the kernel alone.
                ptrace::leave(tid);
            }
            Happened::Ended => self.thread_ends(tid),
        }
    }

    /// Lets a thread go on that stands for another reason than to be sampled. With that the kernel forgets that it was asked to stop: a
    /// fork takes long, and would often have its process unsampled from there on.
    fn go_on(&self, tid: u32, signal: i32) {
        if self.threads.get(&tid).is_some_and(Thread::is_due) {
            ptrace::interrupt(tid);
        }
        ptrace::go_on(tid, signal);
    }

    fn thread_begins(&mut self, tid: u32, pid: u32, has_begun: bool) {
        let mut thread = Thread::new(tid, pid, has_begun, self.random);
        if !self.spaces.contains_key(&pid) {
            let mut space = Space::new(pid, Arc::clone(&self.modules));
            // Of what was there before, nobody asks who made it.
            let parent = parent_of(pid).filter(|parent| self.spaces.contains_key(parent));
            space.begin(parent, &mut self.packets);
            self.spaces.insert(pid, space);
        }
        if let Some(space) = self.spaces.get_mut(&pid) {
            space.thread_begins(tid, &mut self.packets);
        }
        self.has_late |= !thread.begin(self.settings.period_ns);
        self.threads.insert(tid, thread);
    }

    fn thread_ends(&mut self, tid: u32) {
        let Some(thread) = self.threads.remove(&tid) else { return };
        let pid = thread.pid;
        if let Some(space) = self.spaces.get_mut(&pid) {
            space.thread_ends(tid, &mut self.packets);
        }
        if !self.threads.values().any(|other| other.pid == pid)
            && let Some(mut space) = self.spaces.remove(&pid)
        {
            let told = space.end();
            self.tell(told);
        }
    }

    /// All other threads of the process are gone, and the one that executed has the process's id.
    fn executed(&mut self, pid: u32) {
        self.threads.retain(|_, thread| thread.pid != pid);
        let Some(space) = self.spaces.get_mut(&pid) else { return };
        let told = space.end();
        space.executed(&mut self.packets);
        self.tell(told);
        let mut thread = Thread::new(pid, pid, true, self.random);
        self.has_late |= !thread.begin(self.settings.period_ns);
        self.threads.insert(pid, thread);
    }

    /// A thread stands because it was asked to.
    fn stopped(&mut self, tid: u32) {
        let began = Instant::now();
        let Some(thread) = self.threads.get_mut(&tid) else { return ptrace::go_on(tid, 0) };
        let is_first = !std::mem::replace(&mut thread.has_begun, true);
        // Its group goes on.
        let stood = std::mem::replace(&mut thread.stands, false);
        let is_sampled = !is_first && !stood && !self.means.page.is_paused();
        let period = if is_sampled { thread.take_period() } else { 0 };
        let space = self.spaces.get_mut(&thread.pid).filter(|_| period > 0);
        let seen = space.and_then(|space| {
            let registers = ptrace::registers(tid)?;
            let seen = space.look(&registers, self.settings.wanted, &mut self.room);
            Some((space, seen))
        });
        thread.arm(self.settings.period_ns, self.settings.is_constant);
        ptrace::go_on(tid, 0);
        let Some((space, seen)) = seen else { return };
        if !std::mem::replace(&mut thread.is_named, true) {
            space.name(tid, &mut self.packets);
        }
        let stood = began.elapsed();
        self.counts.stood += stood;
        self.counts.longest = self.counts.longest.max(stood);
        match seen.event() {
            event::INSIDE => self.counts.inside += 1,
            event::UNREADABLE => self.counts.unreadable += 1,
            _ => self.counts.outside += 1,
        }
        if self.outlet.is_held_up() {
            return self.packets.lost(1);
        }
        space.write(&seen, (tid, period), &self.room, &mut self.packets);
        let told = std::mem::take(&mut space.told);
        self.tell(told);
    }

    /// Stops those that are due and were not stopped.
    fn look_for_late(&mut self) {
        if !self.has_late {
            return;
        }
        let mean = self.settings.period_ns;
        for thread in self.threads.values().filter(|thread| thread.is_late(mean)) {
            ptrace::interrupt(thread.tid);
        }
    }

    fn look_in(&mut self) {
        for space in self.spaces.values_mut() {
            let pid = space.pid;
            let threads = self.threads.values().filter(|thread| thread.pid == pid);
            space.look_in(threads.map(|thread| thread.tid), &mut self.packets);
        }
        let told: Told =
            self.spaces.values_mut().flat_map(|space| std::mem::take(&mut space.told)).collect();
        self.tell(told);
        // Signals are lost seldom.
        let mean = self.settings.period_ns;
        for thread in self.threads.values().filter(|thread| thread.is_late(mean)) {
            ptrace::interrupt(thread.tid);
        }
    }

    fn tell(&self, told: Told) {
        told.into_iter().for_each(|one| notice(&self.means.events, one));
    }

    fn count(&self) {
        self.means.stats.samples.set(self.packets.counts.samples);
        self.means.stats.samples_lost.set(self.packets.counts.lost);
    }

    fn finish(&mut self) {
        let told: Told = self.spaces.values_mut().flat_map(Space::end).collect();
        self.tell(told);
        let Counts { inside, unreadable, outside, stood, longest } = self.counts;
        let all = inside + unreadable + outside;
        if all > 0 {
            let text = format!(
                "{inside} samples were inside enclaves, {unreadable} inside some that could not be read, {outside} outside; for each \
                 its thread stood {:.1} us on average, {:.1} us at most",
                stood.as_secs_f64() * 1e6 / all as f64,
                longest.as_secs_f64() * 1e6
            );
            notice(&self.means.events, (Level::Information, text));
        }
        if inside + unreadable == 0 {
            let text = "no thread was found inside an enclave";
            notice(&self.means.events, (Level::Warning, text.into()));
        }
        if self.packets.counts.lost > 0 {
            let text = "samples were lost, since the output was slow";
            notice(&self.means.events, (Level::Warning, text.into()));
        }
        self.packets.flush();
        self.count();
        if self.command.is_none() && self.threads.is_empty() {
            // Nobody else knows of its end.
            let _ = self.means.events.send(Event::CommandEnded(Ending::default()));
        }
    }
}

/// Threads of a process.
fn threads_of(pid: u32) -> Vec<u32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Tells the user.
pub(super) fn notice(events: &Sender<Event>, (level, text): (Level, String)) {
    // After the recording's end nobody listens.
    let _ = events.send(Event::Notice { level, text, process: 0 });
}
