//! One thread's recording: the few fields that every hook looks at, and what is done when the clock
//! moved, the chunk is full, or an address has no site.
//!
//! A thread is used by one caller at a time. Where interrupts may run hooked code in the midst of a
//! hook, it is built with the feature `nested`: what comes meanwhile is counted as left out.

use crate::arcs::Counted;
use crate::arena::{Arena, Refusal};
use crate::chunk::{self, Chunk};
use crate::losses::Losses;
use crate::platform;
use crate::sums::{Sums, Window};
use core::cell::Cell;
#[cfg(feature = "nested")]
use core::sync::atomic::{Ordering::SeqCst, compiler_fence};
use teeperf_tally::arcs::Arcs;
use teeperf_wire::arena::baton;
use teeperf_wire::compose;
use teeperf_wire::shared::{ClockKind, OnFull};
use teeperf_wire::word::{self, FIRST_SITE, MAX_ARG, MAX_SITE, code, gap};

/// The code whose functions have sites: a stretch of addresses.
#[derive(Clone, Copy, Debug)]
pub struct Image {
    /// Address of the symbol `teeperf_anchor`: readers know places in the image by how far they lie from
    /// it, and are not told where it lies.
    pub anchor: usize,
    /// First address, and bytes: may go round the end of the address space.
    pub low: usize,
    /// See above.
    pub length: usize,
    /// Name of its file.
    pub name: &'static [u8],
}

/// See the module.
pub struct Thread {
    /// The word that moves with the tick; while there is none, a word of our own that stands.
    watched: Cell<*const u32>,
    /// Where the next word goes, and where there is no more room. Alike when there is none at all.
    next: Cell<*mut u32>,
    end: Cell<*mut u32>,
    /// Lowest address that has a site, and how many there are.
    low: Cell<usize>,
    sites: Cell<usize>,
    /// Word of a call at the lowest address.
    first_word: Cell<u32>,
    /// Value of the watched word at the last look.
    last: Cell<u32>,
    #[cfg(feature = "nested")]
    busy: Cell<bool>,
    #[cfg(feature = "nested")]
    nested: Cell<Losses>,
    arena: Cell<Option<Arena>>,
    state: Cell<State>,
    pub(crate) chunk: Cell<Option<Chunk>>,
    /// Time up to which the chunk's words reach.
    pub(crate) time: Cell<u64>,
    pub(crate) who: Cell<Who>,
    pub(crate) losses: Cell<Losses>,
    /// Time when the present pause began.
    since: Cell<u64>,
    /// Cookie and first site of the arena that the image was announced in.
    announced: Cell<(u64, u32)>,
    sums: Sums,
    pub(crate) counted: Counted,
}

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has no arena, or recording has ended there.
    Off,
    /// It writes, as soon as it has a chunk.
    On,
    /// Recording is paused; the chunk is kept.
    Paused,
    /// There is no free chunk, and events are counted, for this [`gap`] reason.
    Dropping(u32),
}

/// Whose chunks they are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Who {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) serial: u32,
    /// Number of the present or last chunk.
    pub(crate) sequence: u32,
}

static STANDS: u32 = 0;
/// Events without a chunk until the next look for one, where the clock does not move.
const RETRY: u64 = 1024;
/// Longest rest of a wait in which neither the clock moves nor the host frees anything, microseconds; and most
/// looks, where the platform cannot rest.
const PATIENCE_US: u64 = 1_000_000;
const PATIENCE_LOOKS: u32 = 1 << 22;
/// Longest wait of all, whatever the host's clock and progress say.
const LONGEST_US: u64 = 60_000_000;
const MOST_LOOKS: u32 = 1 << 26;

impl Thread {
    /// Off.
    pub const fn new() -> Self {
        Self {
            watched: Cell::new(&raw const STANDS),
            next: Cell::new(core::ptr::null_mut()),
            end: Cell::new(core::ptr::null_mut()),
            low: Cell::new(0),
            sites: Cell::new(0),
            first_word: Cell::new(0),
            last: Cell::new(0),
            #[cfg(feature = "nested")]
            busy: Cell::new(false),
            #[cfg(feature = "nested")]
            nested: Cell::new(Losses { events: 0, popped: 0, pushed: 0 }),
            arena: Cell::new(None),
            state: Cell::new(State::Off),
            chunk: Cell::new(None),
            time: Cell::new(0),
            who: Cell::new(Who { pid: 0, tid: 0, serial: 0, sequence: 0 }),
            losses: Cell::new(Losses { events: 0, popped: 0, pushed: 0 }),
            since: Cell::new(0),
            announced: Cell::new((0, 0)),
            sums: Sums::new(),
            counted: Counted::new(),
        }
    }

    /// What a hook does: a call (kind 0) or a return (1) of the function at this address.
    #[inline(always)]
    pub fn event(&self, address: usize, kind: u32) {
        #[cfg(feature = "nested")]
        if self.enter(kind) {
            return;
        }
        // SAFETY: the tick of an arena that is attached, or a word of our own.
        let now = unsafe { self.watched.get().read_volatile() };
        let site = address.wrapping_sub(self.low.get());
        let next = self.next.get();
        if now != self.last.get() || site >= self.sites.get() || next == self.end.get() {
            self.event_slowly(address, kind);
        } else {
            let word = self.first_word.get().wrapping_add((site as u32) << 1 | kind);
            // SAFETY: a place of the thread's own chunk, below its end.
            unsafe { next.write_volatile(word) };
            self.next.set(next.wrapping_add(1));
        }
        #[cfg(feature = "nested")]
        self.leave();
    }

    /// Says whether a hook of this thread is under way, which this one interrupts.
    #[cfg(feature = "nested")]
    #[inline(always)]
    fn enter(&self, kind: u32) -> bool {
        if self.busy.get() {
            let mut losses = self.nested.get();
            losses.add(kind);
            self.nested.set(losses);
            return true;
        }
        self.busy.set(true);
        compiler_fence(SeqCst);
        false
    }

    #[cfg(feature = "nested")]
    #[inline(always)]
    fn leave(&self) {
        compiler_fence(SeqCst);
        self.busy.set(false);
    }

    /// Goes on in lent memory: where the thread left it, if the host says so, else in a chunk of its own. Says
    /// whether that was left by somebody who ended there without a word.
    ///
    /// # Safety
    /// As [`Arena::check`], until [`Thread::detach`].
    pub unsafe fn attach(
        &self,
        base: *mut u8,
        length: usize,
        image: &Image,
    ) -> Result<bool, Refusal> {
        if self.arena.get().is_some() {
            return Err(Refusal::Attached);
        }
        // SAFETY: the caller's promise.
        let arena = unsafe { Arena::check(base, length, platform::is_outside) }?;
        if arena.clock == ClockKind::Cycle && !platform::has_counter() {
            return Err(Refusal::Clock);
        }
        arena.write(baton::ENTERED, arena.read(baton::ENTERED).wrapping_add(1));
        self.open_window(&arena, image);
        let mut who = self.who.get();
        let tid = arena.read(baton::TID);
        let serial = arena.read(baton::SERIAL);
        who.pid = arena.read(baton::PID);
        if tid != 0 && serial != 0 {
            who = Who { tid, serial, sequence: arena.read(baton::SEQUENCE), ..who };
        } else if self.announced.get().0 != arena.cookie {
            let serial = platform::next_serial();
            who = Who { tid: serial, serial, sequence: 0, ..who };
        }
        self.who.set(who);
        self.arena.set(Some(arena));
        self.state.set(if arena.is_stopped() { State::Off } else { State::On });
        let is_held = arena.read(baton::HELD) == 1 && tid != 0;
        if tid != 0 && !is_held {
            let left = Losses {
                events: arena.wide(baton::LOST),
                popped: arena.read(baton::POPPED),
                pushed: arena.read(baton::PUSHED),
            };
            self.losses.set(left.then(self.losses.get()));
        }
        arena.write_wide(baton::LOST, 0);
        arena.write(baton::HELD, 1);
        if self.state.get() == State::On {
            if is_held {
                self.go_on_behind(&arena);
            } else if let Some((chunk, used)) = chunk::left(&arena) {
                self.time.set(arena.wide(baton::TIME));
                self.set_chunk(&arena, chunk, used);
            }
            self.announce(&arena, image);
            self.hand_over_sums(&arena);
            self.sums.follow(&arena);
            self.counted.follow(&arena, self.now(&arena));
        }
        Ok(is_held)
    }

    /// Goes on behind the last word that somebody has written who ended there.
    fn go_on_behind(&self, arena: &Arena) {
        let mut who = self.who.get();
        let Some((chunk, sequence, used)) = chunk::abandoned(arena, who.serial) else { return };
        who.sequence = sequence;
        self.who.set(who);
        self.time.set(self.now(arena));
        self.set_chunk(arena, chunk, used);
        self.put_where_room(&compose::stamp(self.time.get()));
    }

    /// An escape without payload ([`code`]), where events are recorded.
    pub fn escape(&self, code: u32, arg: u32) {
        self.put_where_room(&[word::escape(code, arg)]);
    }

    /// Writes words that belong together, if there is a chunk, or the next is free.
    fn put_where_room(&self, words: &[u32]) {
        let Some(arena) = self.arena.get().filter(|_| self.state.get() == State::On) else {
            return;
        };
        if self.room() >= words.len() || self.change_chunk(&arena) {
            self.put_all(words);
            if arena.clock == ClockKind::Cycle || platform::always_sums() {
                self.end_hooks_room();
            }
        }
    }

    /// Leaves the arena, and says there how far it came. Nothing of it is touched any more.
    pub fn detach(&self) {
        let Some(arena) = self.arena.get() else { return };
        self.counted.leave(&arena, self.now(&arena), self.who.get(), self.window());
        if platform::always_sums() && self.state.get() == State::On {
            self.hand_over_sums(&arena);
        }
        let chunk = self.chunk.get();
        if let Some(chunk) = chunk
            && self.state.get() == State::Paused
        {
            self.resume(&arena, chunk);
        }
        let used = chunk.map_or(0, |chunk| chunk.used(&arena, self.next.get()));
        let who = self.who.get();
        // Without a number of the host's, the next one here is this one.
        let losses =
            if arena.read(baton::TID) != 0 { self.losses.take() } else { Losses::default() };
        arena.write_wide(baton::LOST, losses.events);
        arena.write(baton::POPPED, losses.popped);
        arena.write(baton::PUSHED, losses.pushed);
        arena.write(baton::SEQUENCE, who.sequence);
        arena.write(baton::USED, used as u32);
        arena.write_wide(baton::TIME, self.time.get());
        arena.write(baton::CHUNK, chunk.map_or(0, |chunk| chunk.index as u32 + 1));
        arena.publish(baton::HELD, 0);
        self.chunk.set(None);
        self.switch_off();
        self.arena.set(None);
        self.watched.set(&raw const STANDS);
        self.last.set(0);
    }

    /// Whether it has an arena.
    pub fn is_attached(&self) -> bool {
        self.arena.get().is_some()
    }

    /// Whether events are recorded now.
    pub fn is_recording(&self) -> bool {
        self.arena.get().is_some_and(|arena| !arena.is_stopped() && !arena.is_paused())
    }

    fn switch_off(&self) {
        self.state.set(State::Off);
        self.next.set(core::ptr::null_mut());
        self.end.set(core::ptr::null_mut());
    }

    /// The sites that the host has left to this image.
    fn open_window(&self, arena: &Arena, image: &Image) {
        let (first, sites) = (arena.read(baton::FIRST_SITE), arena.read(baton::SITES));
        let (first, sites) = if first == 0 { (FIRST_SITE, MAX_SITE) } else { (first, sites) };
        let first = first.clamp(FIRST_SITE, MAX_SITE);
        let room = (sites as usize).min((MAX_SITE - first) as usize + 1);
        self.low.set(image.low);
        self.sites.set(image.length.min(room));
        self.first_word.set(word::call(first));
    }

    /// Hands over what was summed while events could not be written.
    fn hand_over_sums(&self, arena: &Arena) {
        self.sums.hand_over(arena, self.who.get(), self.window());
    }

    fn window(&self) -> Window {
        Window { low: self.low.get(), sites: self.sites.get(), first_word: self.first_word.get() }
    }

    /// A call, of code that is compiled with `-pg`, which its hook does not count by itself.
    pub fn arc(&self, arcs: &'static Arcs, from: usize, to: usize) {
        let arena = self.arena.get().filter(|_| self.state.get() != State::Off);
        self.counted.call(arcs, arena.as_ref(), from, to);
    }

    /// Says what the image is, once in each arena. Where there is no room for it now, the next attaching says it.
    fn announce(&self, arena: &Arena, image: &Image) {
        let first_site = self.first_word.get() >> 1;
        if self.announced.get() == (arena.cookie, first_site) {
            return;
        }
        let window = compose::Window {
            opens: true,
            is_anchored: true,
            first_site,
            sites: self.sites.get() as u32,
            address: image.low.wrapping_sub(image.anchor).cast_signed() as u64,
            bias: 0,
        };
        let name = image.name.get(..word::module::MAX_PATH).unwrap_or(image.name);
        let fixed = compose::module(&window, 0, name.len());
        let count = fixed.len() + name.len().div_ceil(3);
        for _ in 0..2 {
            if self.room() >= count {
                self.put_all(&fixed);
                for bytes in name.chunks(3) {
                    self.put(word::pack_bytes(bytes));
                }
                self.announced.set((arena.cookie, first_site));
                return;
            }
            if !self.change_chunk(arena) {
                return;
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn event_slowly(&self, address: usize, kind: u32) {
        let Some(arena) = self.arena.get() else { return self.sums.event(None, address, kind) };
        if platform::always_sums() && self.state.get() == State::On {
            return self.sum(&arena, address, kind);
        }
        let is_written = self.is_running(&arena) && self.write_somewhere(&arena, address, kind);
        if !is_written && self.state.get() != State::Off {
            self.lose(&arena, kind);
        }
    }

    /// An event that is not to be written, with the arena's clock.
    fn sum(&self, arena: &Arena, address: usize, kind: u32) {
        if arena.is_stopped() {
            self.switch_off();
        } else if !arena.is_paused() {
            self.sums.event(Some(arena), address, kind);
        }
        // Every event comes here.
        self.end_hooks_room();
        self.last.set(self.watched_now());
    }

    /// Whether there is something to write into, as far as the host wishes.
    fn is_running(&self, arena: &Arena) -> bool {
        if arena.is_stopped() {
            self.switch_off();
            return false;
        }
        let is_paused = arena.is_paused();
        match self.state.get() {
            State::Off => false,
            State::On if is_paused => {
                self.pause(arena);
                false
            }
            State::On => true,
            State::Paused if is_paused => {
                self.last.set(self.watched_now());
                false
            }
            State::Paused => {
                match self.chunk.get() {
                    Some(chunk) => self.resume(arena, chunk),
                    None => self.state.set(State::On),
                }
                true
            }
            State::Dropping(reason) => {
                let watched = self.watched_now();
                let is_due =
                    watched != self.last.get() || self.losses.get().events.is_multiple_of(RETRY);
                self.last.set(watched);
                is_due && self.begin_chunk(arena, reason)
            }
        }
    }

    fn watched_now(&self) -> u32 {
        // SAFETY: as in `event`.
        unsafe { self.watched.get().read_volatile() }
    }

    fn lose(&self, arena: &Arena, kind: u32) {
        let mut losses = self.losses.get();
        losses.add(kind);
        self.losses.set(losses);
        if self.state.get() != State::Paused {
            arena.count_losses(self.who.get().serial, 1);
        }
    }

    fn pause(&self, arena: &Arena) {
        self.since.set(self.now(arena));
        if let Some(chunk) = self.chunk.get() {
            self.chunk.set(Some(Chunk { kept: chunk.used(arena, self.next.get()), ..chunk }));
        }
        self.next.set(self.end.get());
        self.last.set(self.watched_now());
        self.state.set(State::Paused);
    }

    /// Goes on in the chunk that was kept; says how long nothing was recorded.
    fn resume(&self, arena: &Arena, chunk: Chunk) {
        self.state.set(State::On);
        self.set_chunk(arena, chunk, chunk.kept);
        let now = self.now(arena);
        let losses = self.losses.take();
        let units = now.saturating_sub(self.since.get());
        let words = compose::gap(gap::PAUSED, losses.events, losses.popped, losses.pushed, units);
        let stamp = compose::stamp(now);
        if self.room() < words.len() + stamp.len() && !self.change_chunk(arena) {
            self.losses.set(losses);
            return;
        }
        self.put_all(&stamp);
        self.time.set(now);
        self.put_all(&words);
    }

    /// Writes the event in the chunk there is or in the next.
    fn write_somewhere(&self, arena: &Arena, address: usize, kind: u32) -> bool {
        for _ in 0..3 {
            if self.write(arena, address, kind) {
                return true;
            }
            if !self.change_chunk(arena) {
                return false;
            }
        }
        false
    }

    /// Writes the time, where it moved, and the event, if there is room for both.
    fn write(&self, arena: &Arena, address: usize, kind: u32) -> bool {
        let now = self.now(arena);
        let is_timed = arena.clock == ClockKind::Cycle;
        // Stamp, far address and time, and a gap.
        if self.room() < 4 + 6 + 8 {
            return false;
        }
        self.tell_nested();
        let moved = now.saturating_sub(self.time.get());
        if is_timed {
            if (now >> 32) != (self.time.get() >> 32) {
                self.put_all(&compose::stamp(now));
            }
        } else if moved > u64::from(MAX_ARG) {
            self.put_all(&compose::stamp(now));
        } else if moved > 0 {
            self.put(word::escape(code::TICK, moved as u32));
        }
        self.time.set(now.max(self.time.get()));
        self.last.set(now as u32);
        let site = address.wrapping_sub(self.low.get());
        if site < self.sites.get() {
            self.put(self.first_word.get().wrapping_add((site as u32) << 1 | kind));
        } else {
            self.put_all(&compose::far(address as u64, kind, is_timed));
        }
        if is_timed {
            self.put(now as u32 | 1);
            // No look at the watched word: every event comes here.
            self.end_hooks_room();
        }
        true
    }

    /// Writes what interrupts left out, where there is room for it.
    #[cfg(feature = "nested")]
    fn tell_nested(&self) {
        let mut nested = self.nested.get();
        if let Some(lost) = nested.take() {
            self.put_all(&compose::gap(gap::NESTED, lost.events, lost.popped, lost.pushed, 0));
            self.nested.set(nested);
        }
    }

    #[cfg(not(feature = "nested"))]
    fn tell_nested(&self) {}

    pub(crate) fn now(&self, arena: &Arena) -> u64 {
        match arena.clock {
            ClockKind::Tick => arena.tick(),
            ClockKind::Cycle => platform::counter(),
        }
    }

    /// Words that may still be written into the chunk.
    fn room(&self) -> usize {
        let Some((arena, chunk)) = self.arena.get().zip(self.chunk.get()) else { return 0 };
        let end = chunk.end(&arena);
        (end as usize).saturating_sub(self.next.get() as usize) / 4
    }

    /// With the `cycle` clock every event takes the slow path, which writes the time.
    fn end_hooks_room(&self) {
        self.end.set(self.next.get());
    }

    fn put(&self, word: u32) {
        let next = self.next.get();
        // SAFETY: `room` was asked first: a place of the thread's own chunk.
        unsafe { next.write_volatile(word) };
        self.next.set(next.wrapping_add(1));
    }

    fn put_all(&self, words: &[u32]) {
        for &word in words {
            self.put(word);
        }
    }

    /// Goes on in this chunk, of which so many words are written.
    pub(crate) fn set_chunk(&self, arena: &Arena, chunk: Chunk, used: usize) {
        self.chunk.set(Some(chunk));
        self.next.set(arena.place(chunk.offset, used));
        self.end.set(chunk.end(arena));
        self.watched.set(arena.tick_word());
        self.last.set(self.time.get() as u32);
        if arena.clock == ClockKind::Cycle || platform::always_sums() {
            self.end_hooks_room();
        }
    }

    /// Hands the present chunk over, if there is one, and begins the next; says whether there is one.
    fn change_chunk(&self, arena: &Arena) -> bool {
        let next = Chunk::take(arena, self.who.get());
        if let Some(chunk) = self.chunk.take() {
            chunk.hand_over(arena, self.next.get());
        }
        match next {
            Some(chunk) => {
                self.begin(arena, chunk, gap::DROPPED, 0);
                true
            }
            None => self.run_out(arena),
        }
    }

    /// No chunk is free: waits for one, if the host wants that and frees one soon, or goes without.
    fn run_out(&self, arena: &Arena) -> bool {
        self.next.set(core::ptr::null_mut());
        self.end.set(core::ptr::null_mut());
        self.watched.set(arena.tick_word());
        let reason = match arena.on_full {
            OnFull::Wait => match self.wait(arena) {
                Some((chunk, units)) => {
                    self.begin(arena, chunk, gap::STALLED, units);
                    return true;
                }
                None => gap::STALLED,
            },
            OnFull::Drop => gap::DROPPED,
            OnFull::Stop => {
                self.switch_off();
                return false;
            }
        };
        arena.want();
        self.state.set(State::Dropping(reason));
        self.last.set(self.watched_now());
        false
    }

    fn wait(&self, arena: &Arena) -> Option<(Chunk, u64)> {
        let begun = self.now(arena);
        // What the clock and the host's progress were when either was last seen to move.
        let (mut seen, mut progressed) = ((arena.progress(), begun), begun);
        let (mut rested, mut rested_since) = (0, 0);
        let (mut looks, mut looks_since) = (0, 0);
        while rested < LONGEST_US && looks < MOST_LOOKS && !arena.is_stopped() {
            arena.want();
            let rest = u64::from(platform::pause());
            rested += rest;
            looks += 1;
            let now = self.now(arena);
            if let Some(chunk) = Chunk::take(arena, self.who.get()) {
                return Some((chunk, now.saturating_sub(begun)));
            }
            let progress = arena.progress();
            if progress != seen.0 {
                progressed = now;
            }
            if (progress, now) != seen {
                seen = (progress, now);
                (rested_since, looks_since) = (rested, looks);
            }
            let is_still =
                rested - rested_since >= PATIENCE_US || looks - looks_since >= PATIENCE_LOOKS;
            if is_still || now.saturating_sub(progressed) >= arena.hz {
                return None;
            }
        }
        None
    }

    /// Looks for a chunk, for a thread that has none and counts its events for this reason.
    fn begin_chunk(&self, arena: &Arena, reason: u32) -> bool {
        let found = Chunk::take(arena, self.who.get());
        if let Some(chunk) = found {
            self.begin(arena, chunk, reason, 0);
        }
        found.is_some()
    }

    /// Makes a taken chunk the thread's own; says what is missing before it, and how long it waited.
    fn begin(&self, arena: &Arena, chunk: Chunk, reason: u32, waited: u64) {
        let now = self.now(arena);
        let mut who = self.who.get();
        who.sequence = who.sequence.wrapping_add(1);
        self.who.set(who);
        self.time.set(now);
        chunk.write_header(arena, who, now);
        self.state.set(State::On);
        self.set_chunk(arena, chunk, 0);
        if waited > 0 {
            self.put_all(&compose::gap(gap::WAITED, 0, 0, 0, waited));
        }
        if let Some(lost) = self.losses.take().take() {
            self.put_all(&compose::gap(reason, lost.events, lost.popped, lost.pushed, 0));
            arena.count_losses(who.serial, (lost.events as i64).wrapping_neg());
        }
    }
}

impl Default for Thread {
    fn default() -> Self {
        Self::new()
    }
}
