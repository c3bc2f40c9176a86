//! Events and ways out, written with the time before them, through a thread's cursor. A signal handler may come in
//! between any two instructions, and write as well.

use super::Event;
use crate::arch;
use crate::clock;
use crate::filter;
use crate::module;
use crate::off_cpu::{self, Untold};
use crate::process;
use crate::thread::Thread;
use crate::writer::Places;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::compiler_fence;
use teeperf_wire::compose;
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word::{self, MAX_ARG, code};

/// What is written behind the time.
#[derive(Clone, Copy)]
pub(crate) enum Told<'a> {
    /// A call or return.
    Event(Event),
    /// A way out of functions that no hook sees, as an escape: what passed before it is time of the function that is left.
    Leap(&'a [u32]),
}

/// Writes the time where it moved, and what is told, as one; says whether there was room.
pub(crate) fn write(thread: &Thread, told: Told<'_>) -> bool {
    match clock::kind() {
        ClockKind::Tick => write_tick(thread, told),
        ClockKind::Cycle => write_cycle(thread, told),
    }
}

/// A signal handler may come in anywhere: it may write the same move of the clock, or a later one, or
/// change the chunk. So the thread's time is moved by compare-and-exchange. Where the chunk is not the
/// one that the move was meant for, nothing is said of it: the new chunk began with the time. And where the
/// time was moved on before this move had its place, it is written whole.
fn write_tick(thread: &Thread, told: Told<'_>) -> bool {
    let sequence = thread.sequence.load(Relaxed);
    let now = clock::now();
    let last = thread.time.load(Relaxed);
    let moved = claims_move(thread, last, now);
    let off_cpu = off_cpu(thread, moved);
    if matches!(told, Told::Event(_)) {
        thread.last.store(now as u32, Relaxed);
    }
    let mut words = Words::default();
    match now.wrapping_sub(last) {
        _ if !moved => {}
        delta if delta <= u64::from(MAX_ARG) => words.push(word::escape(code::TICK, delta as u32)),
        _ => words.push_stamp(now),
    }
    let of_time = words.count;
    off_cpu.iter().for_each(|untold| words.push_all(&untold.words()));
    let until_event = words.count;
    words.push_told(thread, told);
    let Some(mut places) = Places::reserve(thread, words.count) else {
        off_cpu.iter().for_each(|_| off_cpu::tell_later(thread));
        return false;
    };
    compiler_fence(SeqCst);
    if thread.sequence.load(Relaxed) != sequence {
        words.words[..of_time].fill(word::escape(code::PAD, 0));
    } else if moved && thread.time.load(Relaxed) != now {
        drop(places);
        return write_stamped(thread, told);
    }
    if !off_cpu.is_none_or(|untold| untold.is_claimed(thread)) {
        words.words[of_time..until_event].fill(word::escape(code::PAD, 0));
    }
    words.read_counter();
    places.put_all(words.used());
    true
}

/// Time that the thread was off its processor since its last event, where it is to be told.
fn off_cpu(thread: &Thread, has_moved: bool) -> Option<Untold> {
    // Always: hooks come here as long as it says so.
    let was_switched = off_cpu::was_switched(thread);
    let is_due = (has_moved || was_switched) && process::wants_samples();
    is_due.then(|| off_cpu::untold(thread)).flatten()
}

/// Writes what is told with the thread's time, which nobody moves on between the look at it and the place that
/// it has; without it where the chunk was changed meanwhile, or handlers come all the time.
fn write_stamped(thread: &Thread, told: Told<'_>) -> bool {
    let mut tries_left = 3;
    loop {
        let sequence = thread.sequence.load(Relaxed);
        let time = thread.time.load(Relaxed);
        let mut words = Words::default();
        words.push_stamp(time);
        let of_time = words.count;
        words.push_told(thread, told);
        let Some(mut places) = Places::reserve(thread, words.count) else { return false };
        compiler_fence(SeqCst);
        let is_same_chunk = thread.sequence.load(Relaxed) == sequence;
        if !is_same_chunk || thread.time.load(Relaxed) != time {
            if is_same_chunk && tries_left > 0 {
                tries_left -= 1;
                continue;
            }
            words.words[..of_time].fill(word::escape(code::PAD, 0));
        }
        words.read_counter();
        places.put_all(words.used());
        return true;
    }
}

/// Moves the thread's time, last seen as `last`; says whether it was this caller who did.
fn claims_move(thread: &Thread, last: u64, now: u64) -> bool {
    now > last && thread.time.compare_exchange(last, now, Relaxed, Relaxed).is_ok()
}

/// As for the tick; the counter's high half is stamped when it changed, and a way out has a stamp always. A signal
/// handler may come in behind that look and stamp another: then all is written anew.
fn write_cycle(thread: &Thread, told: Told<'_>) -> bool {
    let generation = clock::watched().load(Relaxed);
    let last_high = thread.last_high.load(Relaxed);
    let now = clock::now();
    let high = (now >> 32) as u32;
    let mut words = Words::default();
    if last_high != high || matches!(told, Told::Leap(_)) {
        words.push_stamp(now);
    }
    match told {
        Told::Event(event) => words.push_event(event, Some(now)),
        Told::Leap(leap) => words.push_all(leap),
    }
    let Some(mut places) = Places::reserve(thread, words.count) else { return false };
    compiler_fence(SeqCst);
    if thread.last_high.load(Relaxed) != last_high {
        drop(places);
        return write_cycle(thread, told);
    }
    places.put_all(words.used());
    if matches!(told, Told::Event(_)) {
        thread.last.store(generation, Relaxed);
    }
    thread.last_high.store(high, Relaxed);
    thread.time.store(now, Relaxed);
    true
}

/// Most words at once: a stamp, time off the processor, and a sample or a timed event of code outside
/// every window.
const MOST_WORDS: usize = 19;

/// Words of what is told, in the order they are written.
#[derive(Default)]
struct Words {
    words: [u32; MOST_WORDS],
    count: usize,
    /// Where the counter is to stand, which is read last.
    counter_at: Option<usize>,
}

impl Words {
    fn push(&mut self, word: u32) {
        if let Some(place) = self.words.get_mut(self.count) {
            *place = word;
            self.count += 1;
        }
    }

    /// An event, with the time where the clock is `cycle`.
    fn push_event(&mut self, event: Event, time: Option<u64>) {
        match module::site_of(event.address) {
            Some(site) => self.push(word::call(site) | u32::from(event.is_return)),
            None => {
                self.push_all(&compose::far(event.address, event.is_return.into(), time.is_some()));
            }
        }
        if let Some(time) = time {
            self.push(time as u32 | 1);
        }
    }

    /// What is told under the tick.
    fn push_told(&mut self, thread: &Thread, told: Told<'_>) {
        match told {
            Told::Event(event) => self.push_timed_event(thread, event),
            Told::Leap(leap) => self.push_all(leap),
        }
    }

    /// An event under the tick, and before it what the counter was, if its function is timed.
    fn push_timed_event(&mut self, thread: &Thread, event: Event) {
        if filter::is_timed(thread, event.address) {
            self.counter_at = event.counter.is_none().then_some(self.count);
            self.push_all(&compose::timed(event.counter.unwrap_or(0)));
        }
        self.push_event(event, None);
    }

    /// Reads the counter, where it is to stand before the event: what this hook did so far is no part of a call.
    #[inline(always)]
    fn read_counter(&mut self) {
        let places = self.counter_at.and_then(|at| self.words.get_mut(at..at + 4));
        if let Some(places) = places {
            places.copy_from_slice(&compose::timed(arch::counter_in_order()));
        }
    }

    fn push_stamp(&mut self, time: u64) {
        self.push_all(&compose::stamp(time));
    }

    fn push_all(&mut self, words: &[u32]) {
        for &word in words {
            self.push(word);
        }
    }

    fn used(&self) -> &[u32] {
        &self.words[..self.count.min(self.words.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A handler that comes between a look at the thread's time and the claim writes the move, or
    /// one that goes further: it must not be written again, and time does not go back.
    #[test]
    fn a_move_of_the_clock_is_written_by_one() {
        let thread = Thread::default();
        assert!(claims_move(&thread, 0, 5));
        for by_handler in [8, 9] {
            let last = thread.time.load(Relaxed);
            assert!(claims_move(&thread, last, by_handler));
            assert!(!claims_move(&thread, last, 8));
            assert_eq!(thread.time.load(Relaxed), by_handler);
        }
        assert!(!claims_move(&thread, 9, 9), "it has not moved");
    }
}
