//! What a hook does when the clock moved, the chunk is full, recording is paused, or an address has no site.

use super::{State, Thread};
use crate::arena::Arena;
use crate::chunk::Chunk;
use crate::platform;
use teeperf_wire::arena::baton;
use teeperf_wire::compose;
use teeperf_wire::shared::{ClockKind, OnFull};
use teeperf_wire::word::{self, MAX_ARG, code, gap};

/// Events without a chunk until the next look for one, where the clock does not move.
const RETRY: u64 = 1024;
/// Longest rest of a wait in which neither the clock moves nor the host frees anything, microseconds; and most
/// looks, where the platform cannot rest.
const PATIENCE_US: u64 = 1_000_000;
const PATIENCE_LOOKS: u32 = if cfg!(miri) { 1 << 8 } else { 1 << 22 };
/// Longest wait of all, whatever the host's clock and progress say.
const LONGEST_US: u64 = 60_000_000;
const MOST_LOOKS: u32 = 1 << 26;
/// Words of an event at most: a stamp, a far address with its time, and a gap.
pub(super) const LONGEST: usize = 4 + 6 + 8;

impl Thread {
    #[cold]
    #[inline(never)]
    pub(super) fn event_slowly(&self, address: usize, kind: u32) {
        let Some(arena) = self.arena() else { return self.sums.event(None, address, kind) };
        if self.state.get() != State::Off && platform::always_sums() {
            self.sum(&arena, address, kind);
        } else if !self.is_running(&arena) || !self.write_somewhere(&arena, address, kind) {
            self.lose(&arena, kind);
        }
    }

    /// An event that is not to be written, with the arena's clock.
    fn sum(&self, arena: &Arena, address: usize, kind: u32) {
        if arena.is_stopped() {
            return self.switch_off();
        }
        self.answer(arena);
        if !arena.is_paused() {
            self.sums.event(Some(arena), address, kind);
        }
    }

    /// Whether there is something to write into, as far as the host wishes.
    pub(super) fn is_running(&self, arena: &Arena) -> bool {
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
            State::Paused | State::Dropping | State::Stalled if is_paused => false,
            State::Paused => {
                self.resume(arena);
                self.state.get() == State::On
            }
            State::Dropping => self.is_look_due(arena) && self.find(arena, gap::DROPPED),
            State::Stalled => self.is_look_due(arena) && self.find(arena, gap::STALLED),
        }
    }

    /// Whether a thread that counts its events is to look for a chunk again.
    fn is_look_due(&self, arena: &Arena) -> bool {
        let now = arena.tick() as u32;
        now != self.last.replace(now) || self.losses.get().events.is_multiple_of(RETRY)
    }

    fn switch_off(&self) {
        self.state.set(State::Off);
        self.close();
    }

    pub(super) fn lose(&self, arena: &Arena, kind: u32) {
        if self.state.get() == State::Off {
            return;
        }
        let mut losses = self.losses.get();
        losses.add(kind);
        self.losses.set(losses);
        if self.state.get() != State::Paused {
            arena.count_losses(self.who.get().serial, 1);
        }
    }

    pub(super) fn pause(&self, arena: &Arena) {
        self.since.set(self.now(arena));
        self.lost_before.set(self.losses.get().events);
        self.state.set(State::Paused);
        self.close();
    }

    /// Goes on in the chunk that there is; says how long nothing was recorded.
    pub(super) fn resume(&self, arena: &Arena) {
        self.state.set(State::On);
        let now = self.now(arena);
        let losses = self.losses.take();
        let (serial, before) = (self.who.get().serial, self.lost_before.get());
        let units = now.saturating_sub(self.since.get());
        let words = compose::gap(gap::PAUSED, losses.events, losses.popped, losses.pushed, units);
        let stamp = compose::stamp(now);
        if self.room() < words.len() + stamp.len() && !self.change_chunk(arena) {
            // They are said later, among those for which there was no chunk.
            self.losses.set(losses);
            arena.count_losses(serial, losses.events.wrapping_sub(before).cast_signed());
            return;
        }
        arena.count_losses(serial, before.wrapping_neg().cast_signed());
        self.put_all(&stamp);
        self.time.set(now);
        self.put_all(&words);
        self.open(arena);
    }

    /// Writes the event in the chunk there is or in the next.
    fn write_somewhere(&self, arena: &Arena, address: usize, kind: u32) -> bool {
        if self.room() < LONGEST && !self.change_chunk(arena) {
            return false;
        }
        self.write(arena, address, kind);
        true
    }

    /// Writes the time, where it moved, and the event. There is room for both.
    fn write(&self, arena: &Arena, address: usize, kind: u32) {
        let is_timed = arena.clock() == ClockKind::Cycle;
        let now = self.write_time(arena);
        let site = address.wrapping_sub(self.low.get());
        if site < self.window.get() {
            self.put(self.word(site, kind));
        } else {
            self.put_all(&compose::far(address as u64, kind, is_timed));
        }
        if is_timed {
            self.put(now as u32 | 1);
        }
    }

    /// Writes the time, where it moved; says what it is.
    pub(super) fn write_time(&self, arena: &Arena) -> u64 {
        let now = self.now(arena);
        let is_timed = arena.clock() == ClockKind::Cycle;
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
        now
    }

    /// Writes what interrupted hooks left out.
    #[cfg(feature = "nested")]
    fn tell_nested(&self) {
        if let Some(lost) = self.nested.take() {
            self.put_all(&compose::gap(gap::NESTED, lost.events, lost.popped, lost.pushed, 0));
        }
    }

    #[cfg(not(feature = "nested"))]
    fn tell_nested(&self) {}

    /// Goes on in this chunk, of which so many words are written.
    pub(super) fn set_chunk(&self, arena: &Arena, chunk: Chunk, used: usize) {
        self.chunk.set(chunk);
        self.next.set(arena.place(chunk.offset, used));
        self.end.set(chunk.end(arena));
        self.last.set(self.time.get() as u32);
        self.open(arena);
    }

    /// Hands the present chunk over, if there is one, and begins the next; says whether there is one.
    pub(super) fn change_chunk(&self, arena: &Arena) -> bool {
        let next = Chunk::take(arena, self.who.get());
        let stops = next.is_none() && arena.on_full() == OnFull::Stop;
        self.give_chunk(arena, stops.then_some(gap::STOPPED));
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
        arena.want();
        match arena.on_full() {
            OnFull::Wait => match self.wait(arena) {
                Some((chunk, units)) => {
                    self.begin(arena, chunk, gap::STALLED, units);
                    return true;
                }
                None => self.state.set(State::Stalled),
            },
            OnFull::Drop => self.state.set(State::Dropping),
            OnFull::Stop => self.switch_off(),
        }
        self.last.set(arena.tick() as u32);
        false
    }

    fn wait(&self, arena: &Arena) -> Option<(Chunk, u64)> {
        let (begun, hz) = (self.now(arena), arena.hz());
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
            if is_still || now.saturating_sub(progressed) >= hz {
                return None;
            }
        }
        None
    }

    /// A chunk for sums. Where none is free, one is waited for as for events, if the host wants that; not again, where
    /// that was in vain, until one is free.
    pub(crate) fn find_for_sums(&self, arena: &Arena) -> Option<Chunk> {
        let free = Chunk::take(arena, self.who.get());
        if free.is_some() {
            self.has_waited_in_vain.set(false);
            return free;
        }
        arena.want();
        let waits = arena.on_full() == OnFull::Wait
            && self.state.get() == State::On
            && !self.has_waited_in_vain.get();
        if waits || platform::always_sums() || self.counted.is_counting() {
            // There may be no other than the thread's own, in which the image was announced.
            self.give_chunk(arena, None);
        }
        if !waits {
            return None;
        }
        let found = self.wait(arena);
        self.has_waited_in_vain.set(found.is_none());
        found.map(|(chunk, _)| chunk)
    }

    /// Hands the present chunk over, if there is one.
    fn give_chunk(&self, arena: &Arena, reason: Option<u32>) {
        self.close();
        if let Some(chunk) = self.chunk() {
            chunk.hand_over(arena, self.next.get(), reason);
        }
        self.chunk.set(Chunk::NONE);
    }

    /// Looks for a chunk, for a thread that has none and counts its events for this reason.
    pub(super) fn find(&self, arena: &Arena, reason: u32) -> bool {
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
        if arena.read(baton::SERIAL) == who.serial {
            // For whoever goes on if this one ends without a word.
            arena.write(baton::SEQUENCE, who.sequence);
        }
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
