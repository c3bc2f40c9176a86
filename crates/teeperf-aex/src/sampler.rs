//! Samples as they are taken: what a thread's timer has its signal handler do, and what a front end in another process does with a
//! thread that it has stopped.
//!
//! A sample stands for the processor time since the thread's sample before, wherever that was spent: inside or outside is told by where
//! the thread is found. So time outside is never an enclave's that is entered behind it, but has samples of its own.

use crate::debug_read::DebugRead;
use crate::enclaves::Enclaves;
use crate::interrupted::Shown;
use crate::layout::Registers;
use crate::state::{self, Room, Wanted};
use crate::system;
use crate::threads::{Head, Threads};
pub use crate::timer::Clock;
use crate::timer::{self, Timer};
use core::sync::atomic::Ordering::Relaxed;
use teeperf_wire::body::sample::{MAX_STACK, NO_CPU, Numbers, Sample, abi, mode};

const _: () = assert!(state::MOST_STACK <= MAX_STACK);

/// Numbers of what was sampled, in the recording (`teeperf_wire::body::sampled`).
pub mod event {
    /// A thread inside an enclave, with its state.
    pub const INSIDE: u16 = 1;
    /// A thread inside an enclave that cannot be read; its address is the TCS.
    pub const UNREADABLE: u16 = 2;
    /// A thread outside of enclaves.
    pub const OUTSIDE: u16 = 3;
}

/// What a user is told, once, of an enclave that cannot be read.
pub const PRODUCTION: &str = "is a production enclave, whose memory nobody can read: samples inside it are counted, and have no functions";

/// What is sampled, and how.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What periods are counted in.
    pub clock: Clock,
    /// Mean period.
    pub period_ns: u64,
    /// What is read beside registers.
    pub wanted: Wanted,
    /// The timers' signal.
    pub signal: i32,
    /// The process.
    pub process: u32,
}

/// Samples the threads of a process.
#[derive(Debug)]
pub struct Sampler<R> {
    /// Its enclaves.
    pub enclaves: Enclaves,
    /// The way into them.
    pub memory: R,
    /// Where samples go.
    pub threads: Threads,
    /// How.
    pub settings: Settings,
}

/// Why and where a signal came: of `siginfo_t` and `ucontext_t`, as Linux has them on this processor.
mod signal {
    /// `si_code`, `si_value`.
    pub(super) const CODE: usize = 8;
    pub(super) const VALUE: usize = 24;
    pub(super) const SI_TIMER: i32 = -2;
    /// General registers of the context: `gregs`, with RBX, RAX, RCX and RIP at these numbers.
    pub(super) const REGISTERS: usize = 40;
    pub(super) const BX: usize = 11;
    pub(super) const AX: usize = 13;
    pub(super) const CX: usize = 14;
    pub(super) const IP: usize = 16;
}

impl<R: DebugRead> Sampler<R> {
    /// The calling thread is sampled from here on. Nothing where there is no place or no timer for it.
    pub fn thread_begins(&self) -> Option<()> {
        let thread = system::thread_id();
        let (place, head) = self.threads.begin(thread)?;
        let Some(timer) = Timer::create(self.settings.clock, self.settings.signal, place as u64)
        else {
            self.threads.end(thread);
            self.threads.free(place);
            return None;
        };
        head.timer.store(timer.number(), Relaxed);
        head.random.store(system::now(system::clock::MONOTONIC) ^ u64::from(thread) << 32, Relaxed);
        self.rearm(head);
        Some(())
    }

    /// The calling thread is not sampled any more.
    pub fn thread_ends(&self) {
        if let Some(head) = self.threads.end(system::thread_id()) {
            Timer::of(head.timer.load(Relaxed)).delete();
        }
    }

    /// A place for a thread of another process.
    pub fn place_of(&self, thread: u32) -> Option<usize> {
        self.threads.begin(thread).map(|(place, _)| place)
    }

    /// A sample of a thread that another process has stopped. `period` is its processor time since its sample before.
    pub fn stopped(&self, place: usize, room: &mut Room, shown: &Shown, period: u64) {
        let tcs = shown.tcs(|at| {
            let mut byte = [0];
            self.memory.read_all(at, &mut byte).is_ok().then_some(byte[0])
        });
        self.take(place, room, tcs, shown.ip, period);
    }

    fn rearm(&self, head: &Head) {
        let random = timer::next_random(head.random.load(Relaxed));
        head.random.store(random, Relaxed);
        head.since.store(system::now(system::clock::THREAD_CPUTIME), Relaxed);
        Timer::of(head.timer.load(Relaxed)).arm(timer::period(self.settings.period_ns, random));
    }

    /// What the handler of the timers' signal does. Whether the signal was a timer's of this sampler, for this thread;
    /// if not, it is the program's.
    ///
    /// # Safety
    /// `info` and `context` are what a handler with SA_SIGINFO was given, and the signal does not interrupt its own handler.
    pub unsafe fn expired(&self, info: *const u8, context: *const u8) -> bool {
        // SAFETY: within a `siginfo_t`.
        let (code, value) = unsafe {
            (
                info.add(signal::CODE).cast::<i32>().read(),
                info.add(signal::VALUE).cast::<u64>().read(),
            )
        };
        let place = usize::try_from(value).ok().filter(|_| code == signal::SI_TIMER);
        let Some(head) = place.and_then(|place| self.threads.head(place)) else { return false };
        if head.owner() != Some(system::thread_id()) {
            return false;
        }
        let period =
            system::now(system::clock::THREAD_CPUTIME).saturating_sub(head.since.load(Relaxed));
        // SAFETY: within a `ucontext_t`.
        let register =
            |number| unsafe { context.add(signal::REGISTERS).cast::<u64>().add(number).read() };
        let shown = Shown {
            ip: register(signal::IP),
            ax: register(signal::AX),
            bx: register(signal::BX),
            cx: register(signal::CX),
        };
        // SAFETY: asked for a byte of the instruction that runs next, so it is mapped.
        let tcs = shown.tcs(|at| Some(unsafe { (at as *const u8).read() }));
        // SAFETY: this is the owner's handler, once at a time.
        let room = unsafe { head.room() };
        self.take(value as usize, room, tcs, shown.ip, period);
        self.rearm(head);
        true
    }

    /// Writes a sample of the thread that has a place: found inside an enclave by a TCS, or outside at `ip`.
    fn take(&self, place: usize, room: &mut Room, tcs: Option<u64>, ip: u64, period: u64) {
        let (Some(head), Some(ring)) = (self.threads.head(place), self.threads.ring(place)) else {
            return;
        };
        let outside = Sample {
            event: event::OUTSIDE,
            mode: mode::USER,
            time_ns: system::now(system::clock::MONOTONIC),
            pid: self.settings.process,
            tid: head.owner().unwrap_or_default(),
            cpu: NO_CPU,
            ip,
            period,
            ..Sample::default()
        };
        let Some(tcs) = tcs else {
            head.outside.fetch_add(1, Relaxed);
            ring.push(&[&outside.head()]);
            return;
        };
        let enclave = self.enclaves.of_tcs(tcs);
        let read = enclave.and_then(|enclave| {
            state::read(&self.memory, &enclave, tcs, self.settings.wanted, room).ok()
        });
        let Some(state) = read else {
            head.unreadable.fetch_add(1, Relaxed);
            ring.push(&[&Sample { event: event::UNREADABLE, ip: tcs, ..outside }.head()]);
            return;
        };
        head.inside.fetch_add(1, Relaxed);
        head.reads.fetch_add(state.calls, Relaxed);
        head.words.fetch_add(state.words, Relaxed);
        let registers = state.registers.0.map(u64::to_le_bytes);
        let sample = Sample {
            event: event::INSIDE,
            abi: abi::BITS_64,
            ip: state.registers.instruction_pointer(),
            mask: Registers::MASK,
            chain: Numbers::of(room.chain[..state.chain].as_flattened()),
            registers: Numbers::of(registers.as_flattened()),
            stack: &room.stack[..state.stack],
            ..outside
        };
        let filling = &[0; 8][..sample.filling()];
        ring.push(&[
            &sample.head(),
            sample.chain.bytes(),
            sample.registers.bytes(),
            sample.stack,
            filling,
        ]);
    }
}
