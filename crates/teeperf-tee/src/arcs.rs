//! Calls of code that is compiled with `-pg`, counted in memory of the trusted side's own
//! ([`teeperf_tally::arcs`]), and handed over in chunks of an arena whenever the thread leaves it. While nothing is
//! attached they are counted as well.
//!
//! Time is that of the arena's tick. While nothing is attached, and with the clock `cycle`, which a hook would have
//! to read each time, calls alone are counted.

use crate::arena::Arena;
use crate::chunk::Chunk;
use crate::platform;
use crate::sums::Window;
use crate::thread::{Thread, Who};
use core::cell::Cell;
use teeperf_tally::arcs::{Arcs, Growth, Kind, NOBODY};
use teeperf_wire::shared::ClockKind;

static STANDS: u32 = 0;

/// A thread's arcs.
#[derive(Clone, Copy)]
pub(crate) struct Table {
    pub(crate) arcs: &'static Arcs,
    /// Hands over what was counted, as the time is now; says how many calls are left for the next time. Named where
    /// calls are counted alone: so an image that has no such calls is linked without it.
    pub(crate) hand_over: HandOver,
}

type HandOver = fn(&Thread, &'static Arcs, &Arena, u64, Who, Window) -> u64;

impl Table {
    fn of(arcs: &'static Arcs) -> Self {
        Self { arcs, hand_over: entry::HAND_OVER }
    }
}

/// Where processors look that pointers to functions lead to marked places alone, such a place.
#[cfg(all(feature = "object", any(target_arch = "aarch64", target_arch = "x86_64")))]
mod entry {
    use super::{Arcs, Arena, HandOver, Thread, Who, Window};

    pub(super) const HAND_OVER: HandOver = teeperf_tee_items;

    unsafe extern "Rust" {
        safe fn teeperf_tee_items(
            thread: &Thread,
            arcs: &'static Arcs,
            arena: &Arena,
            now: u64,
            who: Who,
            window: Window,
        ) -> u64;
    }

    #[cfg(target_arch = "aarch64")]
    macro_rules! branch {
        () => {
            // BTI c.
            "hint #34\nb {items}"
        };
    }
    #[cfg(target_arch = "x86_64")]
    macro_rules! branch {
        () => {
            "endbr64\njmp {items}"
        };
    }

    core::arch::global_asm!(
        "
    .pushsection .text.teeperf_tee_items, \"ax\", %progbits
    .p2align 2
    .globl  teeperf_tee_items
    .hidden teeperf_tee_items
    .type   teeperf_tee_items, %function
teeperf_tee_items:
        ",
        branch!(),
        "
    .size   teeperf_tee_items, . - teeperf_tee_items
    .popsection
        ",
        items = sym Thread::hand_over_items,
    );
}

#[cfg(not(all(feature = "object", any(target_arch = "aarch64", target_arch = "x86_64"))))]
mod entry {
    pub(super) const HAND_OVER: super::HandOver = super::Thread::hand_over_items;
}

/// What a thread has counted, from its first such call on.
pub(crate) struct Counted {
    table: Cell<Option<Table>>,
    /// Whether what is counted is for the attached arena: not where recording has ended there.
    is_lent: Cell<bool>,
    /// Whether time is that arena's.
    follows: Cell<bool>,
    /// Time from which on what was counted has not been handed over.
    since: Cell<u64>,
}

/// What a hook does with a call that it does not find in the thread's table, or when the clock has moved: an address
/// behind the call, and one in the function that was called.
///
/// # Safety
/// `arcs` is the calling thread's table.
#[cfg(feature = "object")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn teeperf_tee_arc(arcs: *const Arcs, from: usize, to: usize) {
    // SAFETY: the caller's promise; a thread's table stays as long as the thread.
    platform::thread().arc(unsafe { &*arcs }, from, to);
}

impl Counted {
    pub(crate) const fn new() -> Self {
        Self {
            table: Cell::new(None),
            is_lent: Cell::new(false),
            follows: Cell::new(false),
            since: Cell::new(0),
        }
    }

    /// With arcs of a test's, which have memory.
    #[cfg(test)]
    pub(crate) fn of(arcs: &'static Arcs) -> Self {
        Self { table: Cell::new(Some(Table::of(arcs))), ..Self::new() }
    }

    /// See `teeperf_tee_arc`. `now` tells the time of an arena.
    pub(crate) fn call(
        &self,
        arcs: &'static Arcs,
        arena: Option<&Arena>,
        (from, to): (usize, usize),
        now: impl FnOnce(&Arena) -> u64,
    ) {
        if !arcs.has_memory() {
            if self.is_counting() {
                // It was given memory that will not do.
                return arcs.miss(1);
            }
            let Some((base, bytes)) = platform::arcs_memory() else { return };
            // SAFETY: the platform's promise: memory for this alone, zeroed.
            let has_begun = unsafe { arcs.begin(base, bytes, &raw const STANDS) };
            self.table.set(Some(Table::of(arcs)));
            if let Some(arena) = arena {
                self.follow(arena, now(arena));
            }
            if !has_begun {
                return arcs.miss(1);
            }
        }
        arcs.set_epoch(platform::epoch());
        arcs.call(from, to, arena.filter(|_| self.follows.get()).map(Arena::tick));
    }

    /// Whether there are calls that are counted, or were.
    pub(crate) fn is_counting(&self) -> bool {
        self.table.get().is_some()
    }

    /// What was counted and not handed over, if anything was, and from which time on.
    pub(crate) fn grown(&self) -> Option<(&'static Arcs, u64)> {
        let Table { arcs, .. } = self.table.get()?;
        let has_grown = arcs.has_grown(&mut 0) || arcs.has_missed();
        has_grown.then_some((arcs, self.since.get()))
    }

    /// What threads have counted that are no more, and nobody has taken.
    pub(crate) fn take_left(&self) {
        if let Some(Table { arcs, .. }) = self.table.get() {
            arcs.miss(platform::take_left());
        }
    }

    /// The thread ends, and nobody takes what it has counted, of which so many calls were told as lost before.
    #[cfg(feature = "threads")]
    pub(crate) fn leave_behind(&self, told: u64) {
        let Some(Table { arcs, .. }) = self.table.get() else { return };
        let (mut next, (mut calls, _)) = (0, arcs.take_lost());
        while let Some(growth) = arcs.take(&mut next) {
            if growth.kind == Kind::Arc {
                calls += growth.count;
            }
        }
        platform::leave_behind(calls.saturating_sub(told));
    }

    /// The table, if what is counted is for the attached arena.
    pub(crate) fn lent(&self) -> Option<Table> {
        self.table.get().filter(|_| self.is_lent.get())
    }

    /// From now on what is counted is for this arena, and time is its.
    pub(crate) fn follow(&self, arena: &Arena, now: u64) {
        let Some(Table { arcs, .. }) = self.table.get() else { return };
        if !self.is_lent.replace(true) {
            platform::counts(true);
        }
        // A clock that nobody reads moves with what the host asks for.
        let is_tick = arena.clock() == ClockKind::Tick;
        self.follows.set(is_tick);
        let watched = if is_tick { arena.tick_word() } else { arena.word_of_requests() };
        // SAFETY: the arena can be read until it is left, which `let_go` is told before.
        unsafe { arcs.watch(watched, now) };
        let has_grown = arcs.has_grown(&mut 0);
        self.since.set(if has_grown { self.since.get().min(now) } else { now });
    }

    /// Nothing of the arena is looked at any more. What was counted stays for the next.
    pub(crate) fn let_go(&self) {
        self.follows.set(false);
        if let Some(table) = self.table.get().filter(|_| self.is_lent.replace(false)) {
            // SAFETY: a word of our own.
            unsafe { table.arcs.watch(&raw const STANDS, 0) };
            platform::counts(false);
        }
    }

    /// Up to now, when the arena is left, the thread was somewhere behind its last call.
    pub(crate) fn leave(&self, now: u64) {
        if let Some(table) = self.table.get().filter(|_| self.follows.get()) {
            table.arcs.spent(0, now);
        }
    }

    /// Calls go on behind a hand-over, of whose time nothing is theirs.
    pub(crate) fn go_on(&self, arena: &Arena, now: u64) {
        let Some(Table { arcs, .. }) = self.lent() else { return };
        if self.follows.get() {
            arcs.skip_to(now);
        } else {
            // SAFETY: as in `follow`.
            unsafe { arcs.watch(arena.word_of_requests(), 0) };
        }
    }
}

impl Thread {
    /// See [`Table`]: as far as there are chunks.
    fn hand_over_items(
        &self,
        arcs: &'static Arcs,
        arena: &Arena,
        now: u64,
        who: Who,
        window: Window,
    ) -> u64 {
        let since = &self.counted.since;
        if !arcs.has_memory() {
            // They will never be more than a number.
            let (lost, _) = arcs.take_lost();
            arena.count_losses(self.who.get().serial, lost.cast_signed());
            return 0;
        }
        let mut next = 0;
        loop {
            if !arcs.has_grown(&mut next) {
                since.set(now);
                break;
            }
            let Some(chunk) = self.find_for_sums(arena) else { break };
            let (lost, lost_time) = arcs.take_lost();
            let (mut count, mut of_arcs) = (0, 0);
            let room = arena.items_of_chunk() as u32;
            // The last place is for time that found none.
            while count < room - 1
                && let Some(growth) = arcs.take(&mut next)
            {
                of_arcs += u32::from(growth.kind == Kind::Arc);
                put(&chunk, arena, count, &growth, window);
                count += 1;
            }
            if lost_time > 0 {
                let span = Growth { kind: Kind::Span, from: 0, to: 0, count: lost_time };
                put(&chunk, arena, count, &span, window);
                count += 1;
            }
            chunk.hand_over_items(arena, who, (of_arcs, count), (since.get(), now), lost);
        }
        arcs.calls_from(next)
    }
}

/// Addresses of both places; 0: nobody's. Those behind calls become those of the calls: a call may be the last that its
/// function has.
pub(crate) fn places(growth: &Growth) -> (usize, usize) {
    match growth.kind {
        Kind::Arc if growth.from == NOBODY => (0, growth.to),
        Kind::Arc => (growth.from.saturating_sub(1), growth.to),
        Kind::Span => (growth.from, growth.to.saturating_sub(1)),
    }
}

fn put(chunk: &Chunk, arena: &Arena, at: u32, growth: &Growth, window: Window) {
    let (from, to) = places(growth);
    let place = |address: usize| match window.word(address as u64) {
        _ if address == 0 => (0, 0),
        0 => (0, address as u64),
        word => (word, 0),
    };
    let ((from_word, from), (to_word, to)) = (place(from), place(to));
    chunk.put_item(arena, at as usize, [from_word, to_word], [from, to, growth.count]);
}
