//! The parts of the space of sites. The first is the library's own; whoever comes later gets the next.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use teeperf_wire::word::MAX_SITE;

/// The part of the space of sites that one image may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First of them.
    pub first_site: u32,
    /// How many there are.
    pub sites: u32,
}

/// Sites of one image.
const ROOM: u32 = 0x0400_0000;

/// The next window; nothing: there are no more.
pub fn next() -> Option<Window> {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let most = (MAX_SITE - ROOM) / ROOM;
    let take = |taken| (taken < most).then_some(taken + 1);
    let before = TAKEN.fetch_update(Relaxed, Relaxed, take).ok()?;
    Some(Window { first_site: (before + 1) * ROOM, sites: ROOM })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_do_not_overlap_and_come_to_an_end() {
        let all: Vec<_> = std::iter::from_fn(next).take(1000).collect();
        assert!((20..1000).contains(&all.len()), "{}", all.len());
        assert!(all.windows(2).all(|two| two[0].first_site + two[0].sites <= two[1].first_site));
        assert!(all.iter().all(|window| window.first_site + (window.sites - 1) <= MAX_SITE));
        assert_eq!(next(), None);
    }
}
