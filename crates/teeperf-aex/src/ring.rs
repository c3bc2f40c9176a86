//! Samples of one thread, on their way to the recorder: a ring of bytes in shared memory, with one writer, which is the thread's
//! signal handler, and one reader. Neither waits; a sample that finds no room is counted.

use core::sync::atomic::{AtomicU64, Ordering::*};

/// What stands before a ring's bytes.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Ends {
    /// Bytes that were ever written.
    written: AtomicU64,
    /// Bytes that were ever read.
    read: AtomicU64,
    /// Samples that found no room.
    lost: AtomicU64,
}

/// A ring.
#[derive(Clone, Copy, Debug)]
pub struct Ring<'a> {
    ends: &'a Ends,
    bytes: *mut u8,
    /// A power of two.
    capacity: u64,
}

impl<'a> Ring<'a> {
    /// # Safety
    /// `capacity` bytes from `bytes` on, a power of two, are the ring's as long as `ends` is.
    pub unsafe fn new(ends: &'a Ends, bytes: *mut u8, capacity: usize) -> Self {
        debug_assert!(capacity.is_power_of_two());
        Self { ends, bytes, capacity: capacity as u64 }
    }

    /// The writer's: one sample, in parts. Whether there was room.
    pub fn push(&self, parts: &[&[u8]]) -> bool {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let mut at = self.ends.written.load(Relaxed);
        let used = at.wrapping_sub(self.ends.read.load(Acquire));
        if used > self.capacity || self.capacity - used < length as u64 {
            self.ends.lost.fetch_add(1, Relaxed);
            return false;
        }
        for part in parts {
            let place = (at & (self.capacity - 1)) as usize;
            let first = part.len().min(self.capacity as usize - place);
            // SAFETY: both parts lie within the ring, by the masks, and are free, by the look above.
            unsafe {
                self.bytes.add(place).copy_from_nonoverlapping(part.as_ptr(), first);
                self.bytes.copy_from_nonoverlapping(part[first..].as_ptr(), part.len() - first);
            }
            at += part.len() as u64;
        }
        self.ends.written.store(at, Release);
        true
    }

    /// The reader's: copies what there is, as far as `into` goes, and says how much; nothing when the ends
    /// contradict each other, as whoever has the memory may have written.
    pub fn take(&self, into: &mut [u8]) -> Option<usize> {
        let at = self.ends.read.load(Relaxed);
        let used = self.ends.written.load(Acquire).wrapping_sub(at);
        if used > self.capacity {
            return None;
        }
        let length = into.len().min(used as usize);
        let place = (at & (self.capacity - 1)) as usize;
        let first = length.min(self.capacity as usize - place);
        // SAFETY: both parts lie within the ring, and the writer leaves them alone until `read` has passed them.
        unsafe {
            self.bytes.add(place).copy_to_nonoverlapping(into.as_mut_ptr(), first);
            self.bytes.copy_to_nonoverlapping(into[first..].as_mut_ptr(), length - first);
        }
        self.ends.read.store(at.wrapping_add(length as u64), Release);
        Some(length)
    }

    /// Samples that found no room.
    pub fn lost(&self) -> u64 {
        self.ends.lost.load(Relaxed)
    }

    /// Empty, for another thread.
    pub(crate) fn clear(&self) {
        for end in [&self.ends.written, &self.ends.read, &self.ends.lost] {
            end.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    // SAFETY: for the test below: one end each, as the ring has it.
    struct Shared<'a>(Ring<'a>);
    // SAFETY: as above.
    unsafe impl Sync for Shared<'_> {}

    impl Shared<'_> {
        fn ring(&self) -> &Ring<'_> {
            &self.0
        }
    }

    #[test]
    fn what_is_pushed_comes_out_in_order_and_what_has_no_room_is_counted() {
        let (ends, mut bytes) = (Ends::default(), vec![0; 16]);
        // SAFETY: the bytes outlive the ring.
        let ring = unsafe { Ring::new(&ends, bytes.as_mut_ptr(), 16) };
        let mut out = [0; 32];
        for round in 0..50u8 {
            assert!(ring.push(&[&[round, 1], &[2, 3, 4]]));
            assert!(ring.push(&[&[5, 6, 7, 8, 9, 10, 11]]));
            assert!(!ring.push(&[&[0; 5]]));
            assert_eq!(ring.take(&mut out[..3]), Some(3));
            assert_eq!(ring.take(&mut out[3..]), Some(9));
            assert_eq!(out[..12], [round, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
            assert_eq!(ring.take(&mut out), Some(0));
        }
        assert_eq!(ring.lost(), 50);
        ring.clear();
        assert_eq!(ring.lost(), 0);
        assert!(ring.push(&[&[1; 16]]));
    }

    #[test]
    fn ends_that_contradict_each_other_are_not_followed() {
        let (ends, mut bytes) = (Ends::default(), vec![0; 16]);
        // SAFETY: the bytes outlive the ring.
        let ring = unsafe { Ring::new(&ends, bytes.as_mut_ptr(), 16) };
        for (written, read) in [(17, 0), (0, 1), (u64::MAX, 3)] {
            ends.written.store(written, Relaxed);
            ends.read.store(read, Relaxed);
            assert_eq!(ring.take(&mut [0; 16]), None);
            assert!(!ring.push(&[&[1]]));
        }
    }

    #[test]
    fn a_reader_at_the_same_time_gets_all() {
        let (ends, mut bytes) = (Ends::default(), vec![0; 64]);
        // SAFETY: the bytes outlive the ring.
        let shared = Shared(unsafe { Ring::new(&ends, bytes.as_mut_ptr(), 64) });
        let mut all = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut number = 0u16;
                while number < 20_000 {
                    number += u16::from(
                        shared.ring().push(&[&number.to_le_bytes(), &number.to_be_bytes()]),
                    );
                }
            });
            let mut out = [0; 24];
            while all.len() < 80_000 {
                let count = shared.ring().take(&mut out).unwrap();
                all.extend_from_slice(&out[..count]);
            }
        });
        for (number, sample) in all.chunks(4).enumerate() {
            let number = number as u16;
            assert_eq!(sample, [number.to_le_bytes(), number.to_be_bytes()].as_flattened());
        }
    }
}
