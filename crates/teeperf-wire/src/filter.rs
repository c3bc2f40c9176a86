//! Filters: which functions are recorded, and which of them are timed by the processor's counter beside the tick, decided
//! while the program runs.
//!
//! The recorder gives each filter a number, from 1, and resolves it to a **map** for each file: one bit for each byte
//! of what is mapped of it, in words of 32 bits, which is 1 where a function begins there that passes. Behind these
//! ([`map_size`]) stand as many bits again, which are 1 where a function begins that is timed. A process asks for
//! the map of each of its modules when it puts the filter into effect ([`crate::hello::want::FILTER`]).
//!
//! ```text
//! recorder: maps of n ─► FILTER = n ─► a tick ─► FILTER_DUE = n ─► all bits of the maps of n - 1
//! process:                                        first event ─► asks for its maps ─► n is in effect
//! ```
//!
//! After the tick no thread is on a hook's fast way without having seen [`crate::shared::clock::FILTER`]; the last step
//! brings threads to the runtime that call nothing but what the filter before left out. So a thread's events stand under
//! one filter up to the word [`crate::word::code::FILTER`], and under the next behind it. But for that step a map never
//! changes: a process that sleeps while filters come and go looks at that of its own filter, whenever it wakes.

/// Largest number of a filter: that of an escape's argument.
pub const MAX_NUMBER: u32 = crate::word::MAX_ARG;

/// A filter as it stands in [`crate::shared::clock::FILTER`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Its number, 0 where there never was one.
    pub number: u32,
    /// Whether it leaves functions out.
    pub is_on: bool,
    /// Whether it leaves threads out: each has to ask ([`crate::hello::want::THREAD`]).
    pub is_of_threads: bool,
    /// Whether functions are timed by the counter.
    pub is_timed: bool,
    /// Whether it leaves out what programs put on the time line: marks, counters and notes.
    pub is_without_points: bool,
}

impl Filter {
    /// As a word of the clock page.
    pub const fn encode(self) -> u32 {
        self.number << 4
            | (self.is_without_points as u32) << 3
            | (self.is_timed as u32) << 2
            | (self.is_of_threads as u32) << 1
            | self.is_on as u32
    }

    /// From a word of the clock page.
    pub const fn decode(word: u32) -> Self {
        Self {
            number: word >> 4 & MAX_NUMBER,
            is_on: word & 1 != 0,
            is_of_threads: word & 2 != 0,
            is_timed: word & 4 != 0,
            is_without_points: word & 8 != 0,
        }
    }

    /// Whether there are maps of it.
    pub const fn has_maps(self) -> bool {
        self.is_on || self.is_timed
    }
}

/// Bytes of a map of a window of so many sites.
pub const fn map_size(sites: u32) -> usize {
    2 * half_size(sites)
}

/// Where in it the bits of functions that are timed begin. A multiple of 64, which whole words and lines are.
pub const fn half_size(sites: u32) -> usize {
    (sites as usize).div_ceil(8).next_multiple_of(64)
}

/// Where the bit of a site stands, counted from the window's first: the word, and the bit in it.
pub const fn place(offset: u32) -> (usize, u32) {
    ((offset / 32) as usize, 1 << (offset % 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_come_back() {
        for filter in [
            Filter::default(),
            Filter { number: 1, is_on: true, ..Filter::default() },
            Filter { number: MAX_NUMBER, is_of_threads: true, ..Filter::default() },
            Filter { number: MAX_NUMBER, is_timed: true, ..Filter::default() },
            Filter { number: MAX_NUMBER, is_without_points: true, ..Filter::default() },
        ] {
            assert_eq!(Filter::decode(filter.encode()), filter);
        }
    }

    #[test]
    fn every_site_of_a_window_has_a_bit() {
        for sites in [1, 31, 32, 512, 513, 0x6FFF_FFFF] {
            let (word, _) = place(sites - 1);
            assert!((word + 1) * 4 <= half_size(sites));
        }
        assert_eq!((place(0), place(33)), ((0, 1), (1, 2)));
    }
}
