//! What a thread leaves out, and what that did to its stack.

/// Events that were not written since the last gap that said so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    pub(crate) events: u64,
    /// Frames of the time before that were left.
    pub(crate) popped: u32,
    /// Frames entered since and still open.
    pub(crate) pushed: u32,
}

impl Losses {
    /// One more, a call (kind 0) or a return (1).
    pub(crate) fn add(&mut self, kind: u32) {
        self.events = self.events.wrapping_add(1);
        if kind == 0 {
            self.pushed = self.pushed.wrapping_add(1);
        } else if self.pushed > 0 {
            self.pushed -= 1;
        } else {
            self.popped = self.popped.wrapping_add(1);
        }
    }

    /// Those before, and behind them these.
    pub(crate) fn then(self, later: Self) -> Self {
        let met = self.pushed.min(later.popped);
        Self {
            events: self.events.wrapping_add(later.events),
            popped: self.popped.wrapping_add(later.popped - met),
            pushed: (self.pushed - met).wrapping_add(later.pushed),
        }
    }

    pub(crate) fn take(&mut self) -> Option<Self> {
        (self.events > 0).then(|| core::mem::take(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_close_what_was_called_within_before_what_was_before() {
        let mut losses = Losses::default();
        for kind in [0, 0, 1, 1, 1, 0] {
            losses.add(kind);
        }
        assert_eq!(losses, Losses { events: 6, popped: 1, pushed: 1 });
        assert_eq!(losses.take(), Some(Losses { events: 6, popped: 1, pushed: 1 }));
        assert_eq!(losses.take(), None);
    }

    #[test]
    fn one_who_comes_later_leaves_frames_that_another_entered() {
        let before = Losses { events: 3, popped: 1, pushed: 2 };
        let later = Losses { events: 4, popped: 3, pushed: 1 };
        assert_eq!(before.then(later), Losses { events: 7, popped: 2, pushed: 1 });
    }
}
