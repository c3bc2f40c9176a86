//! Escapes, written through a thread's cursor. Places are reserved all at once, so that what
//! belongs together stays together whatever a signal handler writes; in chunks of the `cycle`
//! clock they are even in number, so that an event and its time are one aligned store.

use crate::clock;
use crate::process;
use crate::sums;
use crate::thread::{Losses, Thread};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use teeperf_wire::compose;
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word::{self, code};

/// Reserved places of a chunk, filled from the front.
pub(crate) struct Places {
    next: *mut u32,
    left: usize,
}

impl Places {
    /// `count` places of the thread's chunk, and one more when the clock asks for even numbers.
    /// Nothing when they are not left.
    pub(crate) fn reserve(thread: &Thread, count: usize) -> Option<Self> {
        let count = match clock::kind() {
            ClockKind::Tick => count,
            ClockKind::Cycle => count.next_multiple_of(2),
        };
        let next = thread.cursor.reserve(count as u64);
        // The places would be the parent's, which may write other words there.
        next.filter(|_| !thread.is_of_parent()).map(|next| Self { next, left: count })
    }

    /// Places that the thread has without reserving them.
    ///
    /// # Safety
    /// They lie in a taken chunk, and nobody else writes them.
    pub(crate) unsafe fn at(next: *mut u32, left: usize) -> Self {
        Self { next, left }
    }

    /// Ends a chunk here: one last word, the places behind it stay empty.
    pub(crate) fn end(mut self) {
        self.put(word::escape(code::PAD, 0));
        self.left = 0;
    }

    /// Writes the next word; words without a place are left out.
    pub(crate) fn put(&mut self, word: u32) {
        if self.left == 0 {
            return;
        }
        // SAFETY: a reserved place of a taken chunk. Segments stay mapped, and the recorder may read
        // the word at any time, so it is written as an atomic.
        unsafe { AtomicU32::from_ptr(self.next) }.store(word, Relaxed);
        self.next = self.next.wrapping_add(1);
        self.left -= 1;
    }

    /// Writes several.
    pub(crate) fn put_all(&mut self, words: &[u32]) {
        for &word in words {
            self.put(word);
        }
    }
}

impl Drop for Places {
    /// No place stays empty: a reader stops at an empty one.
    fn drop(&mut self) {
        while self.left > 0 {
            self.put(word::escape(code::PAD, 0));
        }
    }
}

/// An escape with its payload words; says whether there was room.
pub(crate) fn escape(thread: &Thread, code: u32, arg: u32, payload: &[u32]) -> bool {
    let count = if word::has_payload(code) { 2 } else { 1 } + payload.len();
    let Some(mut places) = Places::reserve(thread, count) else { return false };
    places.put(word::escape(code, arg));
    if word::has_payload(code) {
        places.put(word::payload(payload.len() as u32));
        places.put_all(payload);
    }
    true
}

/// Words that belong together; says whether there was room.
pub(crate) fn words(thread: &Thread, words: &[u32]) -> bool {
    let Some(mut places) = Places::reserve(thread, words.len()) else { return false };
    places.put_all(words);
    true
}

/// A gap; `units` of time are to be left out. Says whether there was room.
pub(crate) fn gap(thread: &Thread, reason: u32, losses: Losses, units: u64) -> bool {
    if !words(thread, &gap_words(reason, losses, units)) {
        return false;
    }
    sums::miss(thread, losses.popped, losses.pushed);
    true
}

/// The words of a gap. Where there are trees, these are told what became of frames.
pub(crate) fn gap_words(reason: u32, losses: Losses, units: u64) -> [u32; 8] {
    let has_trees = process::has_trees();
    let (popped, pushed) = if has_trees { (0, 0) } else { (losses.popped, losses.pushed) };
    compose::gap(reason, losses.events, popped, pushed, units)
}

/// Text, at most [`MAX_TEXT`] bytes of it.
pub(crate) fn text(thread: &Thread, code: u32, text: &[u8]) -> bool {
    let text = &text[..text.len().min(MAX_TEXT)];
    let count = text.len().div_ceil(3);
    let Some(mut places) = Places::reserve(thread, 2 + count) else { return false };
    places.put(word::escape(code, 0));
    places.put(word::payload(count as u32));
    for bytes in text.chunks(3) {
        places.put(word::pack_bytes(bytes));
    }
    true
}

/// Longest text in one escape.
pub(crate) const MAX_TEXT: usize = word::MAX_PAYLOAD as usize * 3;
