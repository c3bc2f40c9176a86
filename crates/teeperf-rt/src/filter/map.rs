//! The maps of one module: of the filter that holds, and of another, the one before it or the one to come.
//!
//! A map never changes, but for what the recorder adds when the next filter holds ([`teeperf_wire::filter`]). The
//! next takes the place in memory of the one before the present: so a hook that lost its processor while it was about
//! to look at that looks at a later filter's, which its thread tells of before anything else.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use teeperf_wire::filter::{Filter, half_size, place};

/// A map, and which filter's it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Map {
    at: usize,
    /// Bytes up to the bits of functions that are timed.
    half: usize,
    pub(crate) filter: Filter,
}

impl Map {
    /// Where the bits of functions that pass begin.
    pub(crate) fn passing(self) -> usize {
        self.at
    }

    /// Where those of functions that are timed do.
    pub(crate) fn timed(self) -> usize {
        self.at + self.half
    }
}

/// See the module.
pub(crate) struct Maps {
    /// Where they lie, 0 as long as there is none.
    places: [AtomicUsize; 2],
    /// Where that of the present filter lies, 0 where there is none.
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

    /// The map of a filter that has been in effect before the process was forked, and is still.
    pub(crate) fn kept(&self, filter: Filter, sites: u32) -> Option<Map> {
        let at = Some(self.present.load(Relaxed)).filter(|&at| at != 0)?;
        Some(Map { at, half: half_size(sites), filter })
    }

    /// Goes on to another filter of a window of so many sites, whose map `ask` maps at a place, or anywhere where that is 0, and
    /// says where. Gives where hooks are to look, nothing where all functions pass and none is timed: so it is where no map can
    /// be had.
    pub(crate) fn change(
        &self,
        filter: Filter,
        sites: u32,
        ask: impl FnOnce(usize) -> Option<usize>,
    ) -> Option<Map> {
        let present = self.present.load(Relaxed);
        let spare = usize::from(present != 0 && self.places[0].load(Relaxed) == present);
        let map = if filter.has_maps() { ask(self.places[spare].load(Relaxed)) } else { None };
        if let Some(map) = map {
            self.places[spare].store(map, Relaxed);
        }
        self.present.store(map.unwrap_or(0), Relaxed);
        map.map(|at| Map { at, half: half_size(sites), filter })
    }

    /// Whether the function passes that begins so many bytes behind the window's first.
    pub(crate) fn pass(&self, offset: u32) -> bool {
        self.bit(0, offset).unwrap_or(true)
    }

    /// Whether it is timed, in a window of so many sites.
    pub(crate) fn time(&self, sites: u32, offset: u32) -> bool {
        self.bit(half_size(sites), offset).unwrap_or(false)
    }

    /// The bit of a function among those that begin so many bytes behind the map, where there is one.
    fn bit(&self, from: usize, offset: u32) -> Option<bool> {
        let map = self.present.load(Acquire);
        if map == 0 {
            return None;
        }
        let (word, bit) = place(offset);
        // SAFETY: a word of a map that stays mapped and has one for each 32 bytes of the window, twice. The recorder
        // writes it, so it is read as an atomic.
        let word = unsafe { &*((map + from + 4 * word) as *const AtomicU32) };
        Some(word.load(Acquire) & bit != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON: Filter = Filter {
        number: 1,
        is_on: true,
        is_of_threads: false,
        is_timed: true,
        is_without_points: false,
    };
    /// Of a window whose bits are half of the maps here.
    const SITES: u32 = 512;

    #[test]
    fn the_next_map_takes_the_place_of_the_one_before_the_present() {
        let map = |bits| [const { AtomicU32::new(0) }; 32].map(|_| AtomicU32::new(bits));
        let (one, two) = (map(5), map(6));
        let at = |map: &[AtomicU32; 32]| map.as_ptr() as usize;
        let of = |map| Some(Map { at: at(map), half: half_size(SITES), filter: ON });
        let maps = Maps::none();
        assert!(maps.pass(1) && !maps.time(SITES, 1), "there is no filter");
        one[16].store(2, Relaxed);
        assert_eq!(maps.change(ON, SITES, |place| (place == 0).then_some(at(&one))), of(&one));
        assert!(maps.pass(0) && !maps.pass(1));
        assert!(!maps.time(SITES, 0) && maps.time(SITES, 1));
        assert_eq!(maps.change(ON, SITES, |place| (place == 0).then_some(at(&two))), of(&two));
        assert!(!maps.pass(0) && maps.pass(1));
        for map in [&one, &two, &one] {
            assert_eq!(
                maps.change(ON, SITES, |place| (place == at(map)).then_some(place)),
                of(map)
            );
        }
        assert_eq!(maps.change(ON, SITES, |_| None), None, "the recorder has none");
        assert!(maps.pass(1));
        let off = Filter { is_on: false, is_timed: false, ..ON };
        assert_eq!(maps.change(off, SITES, |_| panic!("nobody asks")), None);
        maps.forget();
        assert_eq!(maps.change(ON, SITES, |place| (place == 0).then_some(at(&two))), of(&two));
    }
}
