//! When the words of a chunk that was handed over may be read, and whether the chunk may go
//! back to the process.
//!
//! A thread may be interrupted between reserving the room for a word and writing it, by a
//! signal handler that logs until the chunk is full and hands it over. The interrupted
//! write comes when the handler returns. Until then the chunk must not be given to another
//! thread, whose words it would overwrite. A handler that leaves by a jump never returns.

use std::time::Duration;

/// After this long a word that is missing is given up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
/// The chunk is given up only after its thread has handed over so many more.
const FURTHER: u32 = 2;
/// After so many more it is given up at once: what waits for it is kept, and that has an end.
const FAR_BEHIND: u32 = 128;

/// What is known of a chunk that was handed over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// Words are missing before the last one.
    pub(crate) holes: bool,
    /// Chunks that its thread has handed over since.
    pub(crate) further: u32,
    /// How long ago the hole was found.
    pub(crate) waited: Duration,
    /// The thread is gone, nobody will write.
    pub(crate) dead: bool,
}

/// What to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Look again later.
    Leave,
    /// Read it and give it back.
    Take,
    /// Read it, and never give it back while the process lives.
    Retire,
}

impl Facts {
    /// The rules, in order.
    pub(crate) fn verdict(&self) -> Verdict {
        if self.dead || !self.holes {
            Verdict::Take
        } else if self.further >= FURTHER && self.waited >= PATIENCE || self.further >= FAR_BEHIND {
            Verdict::Retire
        } else {
            Verdict::Leave
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(holes: bool, further: u32, seconds: u64, dead: bool) -> Verdict {
        Facts { holes, further, waited: Duration::from_secs(seconds), dead }.verdict()
    }

    #[test]
    fn whole_chunks_and_those_of_the_dead_go_back_at_once() {
        assert_eq!(verdict(false, 0, 0, false), Verdict::Take);
        assert_eq!(verdict(true, 0, 0, true), Verdict::Take);
    }

    #[test]
    fn a_hole_is_given_up_only_after_time_and_chunks_have_passed() {
        for (further, seconds) in [(0, 9), (1, 9), (2, 0)] {
            assert_eq!(verdict(true, further, seconds, false), Verdict::Leave);
        }
        assert_eq!(verdict(true, 2, 1, false), Verdict::Retire);
        assert_eq!(verdict(true, FAR_BEHIND - 1, 0, false), Verdict::Leave);
        assert_eq!(verdict(true, FAR_BEHIND, 0, false), Verdict::Retire);
    }
}
