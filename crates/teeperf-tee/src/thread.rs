//! One thread's recording: the few fields that every hook looks at, and what is done when the clock
//! moved, the chunk is full, or an address has no site.
//!
//! A thread is used by one caller at a time. Where interrupts may run hooked code in the midst of a
//! hook, it is built with the feature `nested`: what comes meanwhile is counted as left out.
//!
//! `attach`: coming to an arena and leaving it; `slow`: what a hook does once in a while; `crossing`: what the other
//! side writes besides, from where calls lead in.

mod attach;
#[cfg(not(feature = "object"))]
mod crossing;
mod slow;
#[cfg(test)]
mod tests;

use crate::arcs::Counted;
use crate::arena::Arena;
use crate::chunk::Chunk;
use crate::losses::Losses;
#[cfg(feature = "nested")]
use crate::nested::Nested;
use crate::platform;
use crate::sums::Sums;
use crate::taking::Taking;
use core::cell::Cell;
use teeperf_wire::shared::ClockKind;

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

/// See the module. Its first fields are those of the hook, in the order in which it wants them. All of it is
/// numbers and pointers, and a new one is all zero, so that it can lie in thread-local storage that nobody
/// has set up.
#[repr(C)]
pub struct Thread {
    /// The word that moves with the tick.
    watched: Cell<*const u32>,
    /// Lowest address that has a site, and how many there are; none while every event is to go the long way
    /// round. Where there are some, `watched` can be read, and `next` lies in the thread's own chunk up
    /// to `end`.
    low: Cell<usize>,
    sites: Cell<usize>,
    /// Where the next word goes, and where there is no more room.
    next: Cell<*mut u32>,
    end: Cell<*mut u32>,
    /// Word of a call at the lowest address.
    first_word: Cell<u32>,
    /// Value of the watched word at the last look.
    last: Cell<u32>,
    #[cfg(feature = "nested")]
    pub(crate) nested: Nested,
    /// Sites that there are.
    window: Cell<usize>,
    arena: Cell<Arena>,
    state: Cell<State>,
    /// The present chunk, or the one that was left.
    chunk: Cell<Chunk>,
    kept: Cell<Kept>,
    /// Time up to which the chunk's words reach.
    time: Cell<u64>,
    pub(crate) who: Cell<Who>,
    losses: Cell<Losses>,
    /// Events that were summed, and count as lost in the arena until they are handed over.
    owed: Cell<u64>,
    /// Value of [`teeperf_wire::arena::request::ASKED`] at the last hand-over.
    asked: Cell<u32>,
    /// A chunk for sums was waited for in vain, and none was free since.
    has_waited_in_vain: Cell<bool>,
    /// Time when the present pause began, and how many events counted as lost by then.
    since: Cell<u64>,
    lost_before: Cell<u64>,
    /// Cookie and first site of the arena that the image was announced in.
    announced: Cell<(u64, u32)>,
    pub(crate) sums: Sums,
    pub(crate) counted: Counted,
    pub(crate) taking: Taking,
}

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum State {
    /// It has no arena, or recording has ended there.
    Off = 0,
    /// It writes, as soon as it has a chunk.
    On = 1,
    /// Recording is paused; the chunk is kept.
    Paused = 2,
    /// There is no free chunk, and events are counted.
    Dropping = 3,
    /// Likewise, since the host freed none for long.
    Stalled = 4,
}

/// What a thread knows of the arena that it left.
#[derive(Clone, Copy, Debug)]
struct Kept {
    cookie: u64,
    /// Words in its chunk there.
    used: usize,
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

impl Thread {
    /// Off.
    pub const fn new() -> Self {
        Self {
            watched: Cell::new(core::ptr::null()),
            low: Cell::new(0),
            sites: Cell::new(0),
            next: Cell::new(core::ptr::null_mut()),
            end: Cell::new(core::ptr::null_mut()),
            first_word: Cell::new(0),
            last: Cell::new(0),
            #[cfg(feature = "nested")]
            nested: Nested::new(),
            window: Cell::new(0),
            arena: Cell::new(Arena::NONE),
            state: Cell::new(State::Off),
            chunk: Cell::new(Chunk::NONE),
            kept: Cell::new(Kept { cookie: 0, used: 0 }),
            time: Cell::new(0),
            who: Cell::new(Who { pid: 0, tid: 0, serial: 0, sequence: 0 }),
            losses: Cell::new(Losses { events: 0, popped: 0, pushed: 0 }),
            owed: Cell::new(0),
            asked: Cell::new(0),
            has_waited_in_vain: Cell::new(false),
            since: Cell::new(0),
            lost_before: Cell::new(0),
            announced: Cell::new((0, 0)),
            sums: Sums::new(),
            counted: Counted::new(),
            taking: Taking::new(),
        }
    }

    /// What a hook does: a call (kind 0) or a return (1) of the function at this address.
    #[inline(always)]
    pub fn event(&self, address: usize, kind: u32) {
        #[cfg(feature = "nested")]
        if !self.nested.begin() {
            self.nested.count(kind);
            return;
        }
        let site = address.wrapping_sub(self.low.get());
        // Two of the three at once: a branch less.
        if site >= self.sites.get() || self.has_moved() | (self.next.get() == self.end.get()) {
            self.event_slowly(address, kind);
        } else {
            self.put(self.word(site, kind));
        }
        #[cfg(feature = "nested")]
        self.nested.end();
    }

    /// Whether the clock is another than at the last look. Asked only while there are sites.
    #[inline(always)]
    fn has_moved(&self) -> bool {
        // SAFETY: there are sites, so it is the tick of an arena that is attached.
        let now = unsafe { self.watched.get().read_volatile() };
        now != self.last.get()
    }

    /// Word of a call or return at a site.
    #[inline(always)]
    fn word(&self, site: usize, kind: u32) -> u32 {
        self.first_word.get().wrapping_add((site as u32) << 1 | kind)
    }

    /// Whether it has an arena.
    pub fn is_attached(&self) -> bool {
        self.arena().is_some()
    }

    /// Whether events are recorded now.
    pub fn is_recording(&self) -> bool {
        let is_on = self.state.get() != State::Off;
        self.arena().is_some_and(|arena| is_on && !arena.is_stopped() && !arena.is_paused())
    }

    pub(crate) fn arena(&self) -> Option<Arena> {
        self.arena.get().some()
    }

    fn chunk(&self) -> Option<Chunk> {
        self.chunk.get().some()
    }

    /// Lets hooks write by themselves, where they may.
    fn open(&self, arena: &Arena) {
        let may = self.state.get() == State::On
            && self.chunk().is_some()
            && arena.clock() == ClockKind::Tick
            && !platform::always_sums();
        self.sites.set(if may { self.window.get() } else { 0 });
    }

    /// Sends every event the long way round.
    fn close(&self) {
        self.sites.set(0);
    }

    /// Words that may still be written into the chunk.
    fn room(&self) -> usize {
        if self.chunk().is_none() {
            return 0;
        }
        (self.end.get() as usize).saturating_sub(self.next.get() as usize) / 4
    }

    #[inline(always)]
    fn put(&self, word: u32) {
        let next = self.next.get();
        // SAFETY: a place of the thread's own chunk: it is below the end, or `room` was asked first.
        unsafe { next.write_volatile(word) };
        self.next.set(next.wrapping_add(1));
    }

    fn put_all(&self, words: &[u32]) {
        for &word in words {
            self.put(word);
        }
    }

    fn now(&self, arena: &Arena) -> u64 {
        match arena.clock() {
            ClockKind::Tick => arena.tick(),
            ClockKind::Cycle => platform::counter(),
        }
    }
}

impl Default for Thread {
    fn default() -> Self {
        Self::new()
    }
}
