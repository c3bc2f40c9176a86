//! The maps of one module: of the filter that holds, and of another, the one before it or the one to come.
//!
//! A map never changes, but for what the recorder adds when the next filter holds ([`teeperf_wire::filter`]). The
//! next takes the place in memory of the one before the present: so a hook that lost its processor while it was about
//! to look at that looks at a later filter's, which its thread tells of before anything else.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use teeperf_wire::filter::{Filter, place};

/// See the module.
pub(crate) struct Maps {
    /// Where they lie, 0 as long as there is none.
    places: [AtomicUsize; 2],
    /// Where that of the present filter lies, 0 where everything passes.
    present: AtomicUsize,
}

impl Maps {
    pub(crate) const fn none() -> Self {
        Self { places: [const { AtomicUsize::new(0) }; 2], present: AtomicUsize::new(0) }
    }

    /// Those of the process that this one was forked from stay where they are: a hook may be about to look there.
    pub(crate) fn forget(&self) {
        for place in self.places.iter().chain([&self.present]) {
            place.store(0, Relaxed);
        }
    }

    /// Goes on to another filter, whose map `ask` maps at a place, or anywhere where that is 0, and says where. Gives where hooks are to look,
    /// nothing where all functions pass: so they do where no map can be had.
    pub(crate) fn change(
        &self,
        filter: Filter,
        ask: impl FnOnce(usize) -> Option<usize>,
    ) -> Option<usize> {
        let present = self.present.load(Relaxed);
        let spare = usize::from(present != 0 && self.places[0].load(Relaxed) == present);
        let map = if filter.is_on { ask(self.places[spare].load(Relaxed)) } else { None };
        if let Some(map) = map {
            self.places[spare].store(map, Relaxed);
        }
        self.present.store(map.unwrap_or(0), Relaxed);
        map
    }

    /// Whether the function passes that begins so many bytes behind the window's first.
    pub(crate) fn pass(&self, offset: u32) -> bool {
        let map = self.present.load(Acquire);
        if map == 0 {
            return true;
        }
        let (word, bit) = place(offset);
        // SAFETY: a word of a map that stays mapped and has one for each 32 bytes of the window. The recorder writes it, so
        // it is read as an atomic.
        unsafe { &*((map + 4 * word) as *const AtomicU32) }.load(Acquire) & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON: Filter = Filter { number: 1, is_on: true, is_of_threads: false };

    #[test]
    fn the_next_map_takes_the_place_of_the_one_before_the_present() {
        let map = |bits| [const { AtomicU32::new(0) }; 16].map(|_| AtomicU32::new(bits));
        let (one, two) = (map(5), map(6));
        let at = |map: &[AtomicU32; 16]| map.as_ptr() as usize;
        let maps = Maps::none();
        assert!(maps.pass(1), "there is no filter");
        assert_eq!(maps.change(ON, |place| (place == 0).then_some(at(&one))), Some(at(&one)));
        assert!(maps.pass(0) && !maps.pass(1));
        assert_eq!(maps.change(ON, |place| (place == 0).then_some(at(&two))), Some(at(&two)));
        assert!(!maps.pass(0) && maps.pass(1));
        for map in [&one, &two, &one] {
            assert_eq!(maps.change(ON, |place| (place == at(map)).then_some(place)), Some(at(map)));
        }
        assert_eq!(maps.change(ON, |_| None), None, "the recorder has none");
        assert!(maps.pass(1));
        let off = Filter { is_on: false, ..ON };
        assert_eq!(maps.change(off, |_| panic!("nobody asks")), None);
        maps.forget();
        assert_eq!(maps.change(ON, |place| (place == 0).then_some(at(&two))), Some(at(&two)));
    }
}
