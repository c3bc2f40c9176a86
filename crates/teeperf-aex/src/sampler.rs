//! Samples as they are taken: what a thread's timer has its signal handler do, and what a front end in another process does with a
//! thread that it has stopped.
//!
//! A sample stands for the processor time since the thread's sample before, and a thread's first for a whole period, or the kernel's
//! ticks that make one; wherever that was spent: inside or outside is told by where the thread is found. So time outside is never an enclave's that is entered behind it, but has samples of its own.

use crate::context::{Cause, Interrupted, REGISTERS};
use crate::debug_read::DebugRead;
use crate::enclaves::Enclaves;
use crate::layout::Registers;
use crate::ring::Ring;
use crate::state::{self, MOST_CHAIN, Room, Wanted};
use crate::system;
use crate::threads::{Head, Threads};
use crate::timer::{self, Arming, Next, Timer};
pub use crate::timer::{Clock, first, has_events, next_random, period};
use core::ops::Range;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::compiler_fence;
use teeperf_wire::body::sample::{MAX_STACK, NO_CPU, Numbers, Outer, Sample, abi, mode};
use teeperf_wire::sampling::{Terms, clock, kept};

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
    /// All periods are the same: wrong for programs that beat in step with them.
    pub is_constant: bool,
    /// Threads inside enclaves are told apart.
    pub has_enclaves: bool,
    /// What is read beside registers.
    pub wanted: Wanted,
    /// The timers' signal.
    pub signal: i32,
    /// The process.
    pub process: u32,
}

impl Settings {
    /// Of what the recorder lays down; `signal` is the timers'.
    pub fn of(terms: &Terms, signal: i32) -> Self {
        Self {
            clock: match terms.clock {
                clock::EVENT => Clock::Event,
                _ => Clock::Processor,
            },
            period_ns: terms.period_ns,
            is_constant: terms.is_constant,
            has_enclaves: terms.has_enclaves,
            wanted: match terms.kept {
                kept::CHAIN => Wanted::Chain,
                kept::STACK => Wanted::Stack(terms.stack as usize),
                _ => Wanted::Registers,
            },
            signal,
            process: terms.process,
        }
    }
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

/// Of a timer's value, beside the place: it is ours.
const OURS: u64 = u64::from_le_bytes(*b"\0\0\0\0teep");
/// Periods without a sample, behind which a signal has been lost.
const LOST: u64 = 8;

/// What a thread outside of enclaves shows beside where it is; of one inside, the host's registers, where it goes on, and stack.
#[derive(Clone, Copy, Debug, Default)]
struct Outside<'a> {
    registers: &'a [[u8; 8]],
    chain: &'a [[u8; 8]],
    stack: &'a [u8],
}

impl<R: DebugRead> Sampler<R> {
    /// The calling thread, whose stack this is, is sampled from here on. Nothing where there is no place or no timer for it.
    pub fn thread_begins(&self, stack: Range<u64>) -> Option<()> {
        let thread = system::thread_id();
        let (place, head) = self.threads.begin(thread)?;
        let Settings { clock, signal, period_ns, .. } = self.settings;
        let Some(timer) = Timer::create(clock, signal, OURS | place as u64, period_ns) else {
            self.threads.end(thread);
            self.threads.free(place);
            return None;
        };
        head.timer.store(timer.number(), Relaxed);
        head.arming.store(Arming::first(timer, period_ns).0, Relaxed);
        head.random.store(system::now(system::clock::MONOTONIC) ^ u64::from(thread) << 32, Relaxed);
        head.stack[0].store(stack.start, Relaxed);
        head.stack[1].store(stack.end, Relaxed);
        let random = timer::next_random(head.random.load(Relaxed));
        let first = timer.first(period_ns.max(1), random);
        head.first.store(first.weight, Relaxed);
        let now = system::now(system::clock::THREAD_CPUTIME);
        head.since.store(now.saturating_add(first.latest), Relaxed);
        timer.arm(first.armed);
        Some(())
    }

    /// The calling thread is not sampled any more.
    pub fn thread_ends(&self) {
        if let Some(head) = self.threads.end(system::thread_id()) {
            Timer::of(head.timer.load(Relaxed)).delete();
        }
    }

    /// Whether the calling thread is sampled.
    pub fn has_thread(&self) -> bool {
        self.threads.of(system::thread_id()).is_some()
    }

    /// What the calling thread is timed by, where that is a file.
    pub fn timer_file(&self) -> Option<i32> {
        let (_, head) = self.threads.of(system::thread_id())?;
        match Timer::of(head.timer.load(Relaxed)) {
            Timer::Event(file) => Some(file),
            Timer::Posix(_) => None,
        }
    }

    /// In the child of a fork: closes what it has copies of, that the parent's threads are timed by and its enclaves read.
    pub fn leave(&self) {
        for place in 0..self.threads.places() {
            let head = self.threads.head(place).filter(|head| head.owner().is_some());
            let timer = head.map(|head| Timer::of(head.timer.load(Relaxed)));
            if let Some(Timer::Event(file)) = timer {
                system::close(file);
            }
        }
        self.memory.leave();
    }

    /// Behind a sample that was begun when the thread had had so much processor time.
    fn rearm(&self, head: &Head, begun: u64) {
        let random = timer::next_random(head.random.load(Relaxed));
        head.random.store(random, Relaxed);
        let now = system::now(system::clock::THREAD_CPUTIME);
        head.since.store(now, Relaxed);
        head.first.store(0, Relaxed);
        let Settings { period_ns, is_constant, .. } = self.settings;
        let period = if is_constant { period_ns } else { timer::period(period_ns, random) };
        let arming = Arming(head.arming.load(Relaxed));
        let (arming, next) = arming.next(now.wrapping_sub(begun), period_ns);
        head.arming.store(arming.0, Relaxed);
        let timer = Timer::of(head.timer.load(Relaxed));
        match next {
            Next::Nothing => {}
            Next::GoesOn => timer.goes_on(period),
            Next::Once => timer.arm(period),
        }
    }

    /// Processor time of the calling thread, and what a sample stands for now.
    fn time(head: &Head) -> (u64, u64) {
        let now = system::now(system::clock::THREAD_CPUTIME);
        let since = now.saturating_sub(head.since.load(Relaxed));
        (now, head.first.load(Relaxed).saturating_add(since))
    }

    /// What the handler of the timers' signal does. Whether the signal was a timer's of this sampler, for this thread;
    /// if not, it is the program's.
    ///
    /// # Safety
    /// `info` and `context` are what a handler with SA_SIGINFO was given, and the signal does not interrupt its own handler.
    pub unsafe fn expired(&self, info: *const u8, context: *const u8) -> bool {
        let Some((place, head)) = self.threads.of(system::thread_id()) else { return false };
        let timer = Timer::of(head.timer.load(Relaxed));
        // SAFETY: the caller's promise.
        let is_ours = match unsafe { Cause::of(info) } {
            Cause::Timer(value) => value == OURS | place as u64,
            Cause::File(file) => timer == Timer::Event(file),
            Cause::Other => false,
        };
        if !is_ours {
            // Of two signals at once the kernel keeps one, and it may have been the program's.
            let (now, period) = Self::time(head);
            if period > LOST * self.settings.period_ns.max(system::tick()) {
                self.rearm(head, now);
            }
            return false;
        }
        if Arming(head.arming.load(Relaxed)).is_once() {
            timer.stand();
        }
        let (now, period) = Self::time(head);
        if !head.is_taking.load(Relaxed) {
            // SAFETY: the caller's promise; this is the owner's handler, once at a time.
            unsafe { self.interrupted(place, head, context, period) };
        }
        self.rearm(head, now);
        true
    }

    /// # Safety
    /// `context` is what a handler of the place's owner was given.
    unsafe fn interrupted(&self, place: usize, head: &Head, context: *const u8, period: u64) {
        // SAFETY: the caller's promise.
        let interrupted = unsafe { Interrupted::of(context) };
        let ip = interrupted.instruction_pointer();
        // SAFETY: this is the owner's handler, once at a time.
        let room = unsafe { head.room() };
        let stack = head.stack[0].load(Relaxed)..head.stack[1].load(Relaxed);
        let registers = interrupted.0.map(u64::to_le_bytes);
        if self.settings.has_enclaves
            && let Some(tcs) = Self::tcs(&interrupted)
        {
            // SAFETY: as below; the thread stands where its host entered the enclave.
            let copy = unsafe { interrupted.stack(&stack, self.settings.wanted.host()) };
            let registers = Registers::host(&registers);
            let host = Outside { registers, stack: copy, ..Outside::default() };
            return self.take(place, room, Some(tcs), (ip, host), period);
        }
        let mut chain = [[0; 8]; MOST_CHAIN];
        let mut outside = Outside { registers: &registers, ..Outside::default() };
        // SAFETY: the thread was given with its stack, whose upper part is in use, and it stands here.
        unsafe {
            match self.settings.wanted {
                Wanted::Registers => {}
                Wanted::Chain => {
                    let taken = interrupted.chain(&stack, &mut chain);
                    outside.chain = &chain[..taken];
                }
                Wanted::Stack(most) => outside.stack = interrupted.stack(&stack, most),
            }
        }
        self.take(place, room, None, (ip, outside), period);
    }

    /// The TCS by which the interrupted thread was inside an enclave.
    #[cfg(target_arch = "x86_64")]
    fn tcs(interrupted: &Interrupted) -> Option<u64> {
        let [ax, bx, cx, ..] = interrupted.0;
        let shown = crate::interrupted::Shown { ip: interrupted.instruction_pointer(), ax, bx, cx };
        // SAFETY: asked for a byte of the instruction that runs next, so it is mapped.
        shown.tcs(|at| Some(unsafe { (at as *const u8).read() }))
    }

    /// There are no such enclaves here.
    #[cfg(not(target_arch = "x86_64"))]
    fn tcs(_: &Interrupted) -> Option<u64> {
        None
    }

    /// A sample of the calling thread, which an enclave was left by asynchronously that this TCS is of, and which itself says so.
    /// Whether it is sampled at all.
    pub fn left(&self, tcs: u64) -> bool {
        let Some((place, head)) = self.threads.of(system::thread_id()) else { return false };
        head.is_taking.store(true, Relaxed);
        compiler_fence(SeqCst);
        // SAFETY: this is the owner, and its handler stays away.
        let room = unsafe { head.room() };
        let (now, period) = Self::time(head);
        self.take(place, room, Some(tcs), (tcs, Outside::default()), period);
        self.rearm(head, now);
        compiler_fence(SeqCst);
        head.is_taking.store(false, Relaxed);
        true
    }

    /// Writes a sample of the thread that has a place: found inside an enclave by a TCS, or outside at `ip`.
    fn take(
        &self,
        place: usize,
        room: &mut Room,
        tcs: Option<u64>,
        (ip, shown): (u64, Outside<'_>),
        period: u64,
    ) {
        let (Some(head), Some(ring)) = (self.threads.head(place), self.threads.ring(place)) else {
            return;
        };
        let tid = head.owner().unwrap_or_default();
        // Of a thread of another process nobody knows.
        let own = (tid == system::thread_id()).then(system::processor).flatten();
        let cpu = own.unwrap_or(NO_CPU);
        let outside = Sample {
            event: event::OUTSIDE,
            mode: mode::USER,
            time_ns: system::now(system::clock::MONOTONIC),
            pid: self.settings.process,
            tid,
            cpu,
            ip,
            period,
            ..Sample::default()
        };
        let Some(tcs) = tcs else {
            head.outside.fetch_add(1, Relaxed);
            let has_registers = !shown.registers.is_empty();
            push(
                ring,
                &Sample {
                    abi: if has_registers { abi::BITS_64 } else { abi::NONE },
                    mask: if has_registers { REGISTERS } else { 0 },
                    chain: Numbers::of(shown.chain.as_flattened()),
                    registers: Numbers::of(shown.registers.as_flattened()),
                    stack: shown.stack,
                    ..outside
                },
            );
            return;
        };
        let outer = match shown.stack {
            [] => Outer::default(),
            stack => Outer {
                mask: Registers::HOST,
                registers: Numbers::of(shown.registers.as_flattened()),
                stack,
            },
        };
        let abi = if outer.is_there() { abi::BITS_64 } else { abi::NONE };
        let enclave = self.enclaves.of_tcs(tcs);
        let read = enclave.and_then(|enclave| {
            state::read(&self.memory, &enclave, tcs, self.settings.wanted, room).ok()
        });
        let Some(state) = read else {
            head.unreadable.fetch_add(1, Relaxed);
            push(ring, &Sample { event: event::UNREADABLE, abi, ip: tcs, outer, ..outside });
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
            outer,
            ..outside
        };
        push(ring, &sample);
    }
}

fn push(ring: Ring<'_>, sample: &Sample<'_>) {
    ring.push(&sample.parts(&sample.heads()));
}
