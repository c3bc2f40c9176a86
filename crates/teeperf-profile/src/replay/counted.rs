//! Calls that the processor's counter times beside the tick: what a [`Summary`](super::summary::Summary) tells of them.
//!
//! As in [`super::timed`], a call is timed by its own return alone. Few calls are, so each open one stands here with its
//! depth: frames without a counter come and go between them and say nothing.

/// See the module. What the counter was is told as it stands in the words.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// Open frames of the present segment: depth in its forest, and the counter at their calls. Lowest first; those
    /// above where the segment is now are gone.
    begins: Vec<(u32, u64)>,
    /// Steps of the counter between call and return, with the function's word.
    pub(crate) lengths: Vec<(u32, u64)>,
    /// What the counter was at owed returns: which of them, in order.
    pub(crate) owed: Vec<(usize, u64)>,
    /// Frames that segments left open, with depths in their own: of all segments, lowest first.
    pub(crate) opened: Vec<(u32, u64)>,
    /// Of each segment: one behind its last in `opened`, and the counter at the return that ended it.
    pub(crate) segments: Vec<(usize, Option<u64>)>,
}

impl Counted {
    /// A call, the frame of which has this depth.
    pub(super) fn enter(&mut self, depth: u32, counter: u64) {
        self.fall_to(depth.saturating_sub(1));
        self.begins.push((depth, counter));
    }

    /// Depth of the topmost frame that is timed, or was before those above others were closed.
    #[inline(always)]
    pub(super) fn top(&self) -> u32 {
        self.begins.last().map_or(0, |begin| begin.0)
    }

    /// A return of the frame at this depth, which is on top.
    pub(super) fn leave(&mut self, depth: u32, word: u32, counter: Option<u64>) {
        self.fall_to(depth);
        if let Some(&(own, begin)) = self.begins.last()
            && own == depth
        {
            self.begins.pop();
            self.lengths.extend(counter.map(|end| (word, end.saturating_sub(begin))));
        }
    }

    /// No more frames are open than so many.
    pub(super) fn fall_to(&mut self, frames: u32) {
        while self.begins.last().is_some_and(|begin| begin.0 > frames) {
            self.begins.pop();
        }
    }

    /// A return of a frame below the segment came: that of this index.
    pub(super) fn owe(&mut self, index: usize, counter: Option<u64>) {
        self.begins.clear();
        self.owed.extend(counter.map(|counter| (index, counter)));
    }

    /// The segment ends with so many frames open, by a return at which the counter was so far, or otherwise.
    pub(super) fn end_segment(&mut self, frames: u32, counter: Option<u64>) {
        self.fall_to(frames);
        self.opened.append(&mut self.begins);
        self.segments.push((self.opened.len(), counter));
    }

    /// Empties it, keeps the memory.
    pub(super) fn clear(&mut self) {
        self.begins.clear();
        self.lengths.clear();
        self.owed.clear();
        self.opened.clear();
        self.segments.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_timed_by_their_own_returns() {
        let mut counted = Counted::default();
        counted.enter(1, 100);
        counted.enter(3, 110);
        counted.leave(3, 6, Some(115));
        // That of the frame at depth 3, which nobody timed, was gone before.
        counted.enter(2, 120);
        counted.leave(3, 6, Some(130));
        counted.leave(2, 4, None);
        counted.leave(1, 2, Some(150));
        assert_eq!(counted.lengths, [(6, 5), (2, 50)]);
        counted.enter(1, 160);
        counted.enter(2, 170);
        counted.fall_to(1);
        counted.end_segment(1, Some(9));
        assert_eq!((counted.opened, counted.segments), (vec![(1, 160)], vec![(1, Some(9))]));
    }
}
