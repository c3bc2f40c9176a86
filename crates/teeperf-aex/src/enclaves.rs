//! What is known of the process's enclaves. `ioctl`s and `munmap` write, one at a time; signal handlers read, and never wait: an
//! entry that is being written, which may be by the thread that the signal interrupted, is none to them.

use crate::layout::{PAGE, Secs};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*, fence};

/// Enclaves at one time.
const MOST: usize = 64;
/// TCS pages of an enclave that are remembered.
const MOST_THREADS: usize = 128;

/// An enclave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enclave {
    /// Where it is, what its frames are.
    pub secs: Secs,
    /// Its number, from 1 in the order of creation.
    pub number: u32,
    /// TCS pages that were added to it.
    pub threads: u32,
    /// Whether the driver has finished it.
    pub is_initialised: bool,
}

impl Enclave {
    /// Whether it has an address.
    pub fn has(&self, address: u64) -> bool {
        address.wrapping_sub(self.secs.base) < self.secs.size
    }
}

#[derive(Debug)]
struct Entry {
    /// Odd while it is written.
    version: AtomicU32,
    /// 0: the entry is free.
    number: AtomicU32,
    size: AtomicU64,
    base: AtomicU64,
    frame: AtomicU64,
    is_debug: AtomicBool,
    is_initialised: AtomicBool,
    file: AtomicU32,
    threads: AtomicU32,
    pages: [AtomicU32; MOST_THREADS],
}

impl Entry {
    const fn new() -> Self {
        Self {
            version: AtomicU32::new(0),
            number: AtomicU32::new(0),
            size: AtomicU64::new(0),
            base: AtomicU64::new(0),
            frame: AtomicU64::new(0),
            is_debug: AtomicBool::new(false),
            is_initialised: AtomicBool::new(false),
            file: AtomicU32::new(0),
            threads: AtomicU32::new(0),
            pages: [const { AtomicU32::new(0) }; MOST_THREADS],
        }
    }

    fn write(&self, change: impl FnOnce(&Self)) {
        self.version.fetch_add(1, Relaxed);
        fence(Release);
        change(self);
        self.version.fetch_add(1, Release);
    }

    /// What `look` sees, if nobody wrote meanwhile.
    fn read<T>(&self, look: impl FnOnce(&Self) -> T) -> Option<T> {
        let version = self.version.load(Acquire);
        let seen = look(self);
        fence(Acquire);
        (version.is_multiple_of(2) && self.version.load(Relaxed) == version).then_some(seen)
    }

    fn enclave(&self) -> Option<Enclave> {
        let secs = Secs {
            size: self.size.load(Relaxed),
            base: self.base.load(Relaxed),
            frame: self.frame.load(Relaxed),
            is_debug: self.is_debug.load(Relaxed),
        };
        let enclave = Enclave {
            secs,
            number: self.number.load(Relaxed),
            threads: self.threads.load(Relaxed),
            is_initialised: self.is_initialised.load(Relaxed),
        };
        (enclave.number != 0).then_some(enclave)
    }

    fn may_enter_by(&self, tcs: u64) -> bool {
        let page = (tcs.wrapping_sub(self.base.load(Relaxed)) / PAGE) as u32;
        let threads = self.threads.load(Relaxed) as usize;
        // Of those added later than there was room for nothing is known.
        threads > MOST_THREADS
            || self.pages[..threads].iter().any(|known| known.load(Relaxed) == page)
    }
}

/// All enclaves of a process.
#[derive(Debug)]
pub struct Enclaves {
    entries: [Entry; MOST],
    is_written: AtomicBool,
    made: AtomicU32,
    left_out: AtomicU32,
}

impl Default for Enclaves {
    fn default() -> Self {
        Self::new()
    }
}

impl Enclaves {
    /// None.
    pub const fn new() -> Self {
        Self {
            entries: [const { Entry::new() }; MOST],
            is_written: AtomicBool::new(false),
            made: AtomicU32::new(0),
            left_out: AtomicU32::new(0),
        }
    }

    /// One writer at a time; they are few, and none runs in a signal handler.
    fn write<T>(&self, change: impl FnOnce() -> T) -> T {
        while self.is_written.swap(true, Acquire) {
            core::hint::spin_loop();
        }
        let result = change();
        self.is_written.store(false, Release);
        result
    }

    /// The driver made one for an open file. What was in its range before is gone.
    pub fn created(&self, file: i32, secs: Secs) {
        self.gone(secs.base, secs.size);
        self.write(|| {
            let number = self.made.fetch_add(1, Relaxed) + 1;
            let Some(free) = self.entries.iter().find(|entry| entry.number.load(Relaxed) == 0)
            else {
                self.left_out.fetch_add(1, Relaxed);
                return;
            };
            free.write(|entry| {
                entry.size.store(secs.size, Relaxed);
                entry.base.store(secs.base, Relaxed);
                entry.frame.store(secs.frame, Relaxed);
                entry.is_debug.store(secs.is_debug, Relaxed);
                entry.is_initialised.store(false, Relaxed);
                entry.file.store(file as u32, Relaxed);
                entry.threads.store(0, Relaxed);
                entry.number.store(number, Relaxed);
            });
        });
    }

    /// One was found that nobody saw made: any of its pages may be a TCS.
    pub fn found(&self, secs: Secs) {
        const NO_FILE: i32 = -1;
        self.created(NO_FILE, secs);
        self.write(|| {
            let Some(entry) = self.of_file(NO_FILE) else { return };
            entry.write(|entry| {
                entry.threads.store(MOST_THREADS as u32 + 1, Relaxed);
                entry.is_initialised.store(true, Relaxed);
            });
        });
    }

    /// The one that a file's pages are being added to.
    fn of_file(&self, file: i32) -> Option<&Entry> {
        self.entries.iter().find(|entry| {
            let is_there = entry.number.load(Relaxed) != 0 && !entry.is_initialised.load(Relaxed);
            is_there && entry.file.load(Relaxed) == file as u32
        })
    }

    /// TCS pages were added, from an offset on.
    pub fn threads_added(&self, file: i32, offset: u64, length: u64) {
        self.write(|| {
            let Some(entry) = self.of_file(file) else { return };
            let size = entry.size.load(Relaxed);
            if offset >= size || length > size - offset {
                return;
            }
            entry.write(|entry| {
                for page in offset / PAGE..(offset + length) / PAGE {
                    let count = entry.threads.load(Relaxed);
                    if let Some(place) = entry.pages.get(count as usize) {
                        place.store(page as u32, Relaxed);
                    }
                    // One more than are remembered says that there are others.
                    entry.threads.store((count + 1).min(MOST_THREADS as u32 + 1), Relaxed);
                }
            });
        });
    }

    /// The driver finished the one of a file.
    pub fn initialised(&self, file: i32) -> Option<Enclave> {
        self.write(|| {
            let entry = self.of_file(file)?;
            entry.write(|entry| entry.is_initialised.store(true, Relaxed));
            entry.enclave()
        })
    }

    /// Memory is no longer what it was: enclaves that began in it are gone.
    pub fn gone(&self, base: u64, length: u64) {
        self.write(|| {
            for entry in &self.entries {
                let begin = entry.base.load(Relaxed);
                let size = entry.size.load(Relaxed);
                let overlaps =
                    begin < base.saturating_add(length) && base < begin.saturating_add(size);
                if entry.number.load(Relaxed) != 0 && overlaps {
                    entry.write(|entry| entry.number.store(0, Relaxed));
                }
            }
        });
    }

    /// The one that a TCS is of. Never waits.
    pub fn of_tcs(&self, tcs: u64) -> Option<Enclave> {
        self.entries.iter().find_map(|entry| {
            let found = entry
                .read(|entry| entry.enclave().map(|enclave| (enclave, entry.may_enter_by(tcs))));
            let (enclave, is_thread) = found.flatten()?;
            (enclave.has(tcs) && is_thread && enclave.is_initialised).then_some(enclave)
        })
    }

    /// One that has some of this memory. Never waits.
    pub fn overlapping(&self, base: u64, length: u64) -> Option<Enclave> {
        self.entries.iter().find_map(|entry| {
            if entry.number.load(Relaxed) == 0 {
                return None;
            }
            let enclave = entry.read(Entry::enclave)??;
            let Secs { base: begin, size, .. } = enclave.secs;
            let overlaps = begin < base.saturating_add(length) && base < begin.saturating_add(size);
            overlaps.then_some(enclave)
        })
    }

    /// How many there was no room for.
    pub fn left_out(&self) -> u32 {
        self.left_out.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn secs(base: u64) -> Secs {
        Secs { size: 1 << 20, base, frame: 4096, is_debug: true }
    }

    fn with_thread(enclaves: &Enclaves, file: i32, base: u64) {
        enclaves.created(file, secs(base));
        enclaves.threads_added(file, 0x5000, 0x1000);
        enclaves.initialised(file);
    }

    #[test]
    fn a_tcs_belongs_to_an_enclave_that_is_finished() {
        let enclaves = Enclaves::new();
        enclaves.created(3, secs(1 << 20));
        enclaves.threads_added(3, 0x5000, 0x2000);
        assert_eq!(enclaves.of_tcs((1 << 20) + 0x5000), None);
        let expected = Enclave { secs: secs(1 << 20), number: 1, threads: 2, is_initialised: true };
        assert_eq!(enclaves.initialised(3), Some(expected));
        assert_eq!(enclaves.of_tcs((1 << 20) + 0x5000), Some(expected));
        assert_eq!(enclaves.of_tcs((1 << 20) + 0x6000), Some(expected));
        assert_eq!(enclaves.of_tcs((1 << 20) + 0x7000), None);
        assert_eq!(enclaves.of_tcs(0x5000), None);
    }

    #[test]
    fn destroyed_enclaves_are_gone_and_numbers_are_not_used_again() {
        let enclaves = Enclaves::new();
        with_thread(&enclaves, 3, 1 << 20);
        with_thread(&enclaves, 4, 2 << 20);
        let number =
            |base, length| enclaves.overlapping(base, length).map(|enclave| enclave.number);
        assert_eq!([number(0, 1 << 20), number(0, (1 << 20) + 1)], [None, Some(1)]);
        assert_eq!([number((3 << 20) - 1, 1), number(3 << 20, u64::MAX)], [Some(2), None]);
        enclaves.gone(1 << 20, 1 << 20);
        assert_eq!(number(1 << 20, 1), None);
        assert_eq!(enclaves.of_tcs((1 << 20) + 0x5000), None);
        assert!(enclaves.of_tcs((2 << 20) + 0x5000).is_some());
        // A new one in the range of an older one takes its place, though nobody saw that go.
        with_thread(&enclaves, 5, 4 << 20);
        with_thread(&enclaves, 6, 2 << 20);
        with_thread(&enclaves, 7, 4 << 20);
        assert_eq!(enclaves.of_tcs((2 << 20) + 0x5000).map(|enclave| enclave.number), Some(4));
        assert_eq!(enclaves.of_tcs((4 << 20) + 0x5000).map(|enclave| enclave.number), Some(5));
        enclaves.gone(0, u64::MAX);
        assert_eq!(enclaves.of_tcs((2 << 20) + 0x5000), None);
        enclaves.found(secs(2 << 20));
        assert!(enclaves.of_tcs((2 << 20) + 0x9000).is_some());
    }

    #[test]
    fn offsets_out_of_range_are_left_out() {
        let enclaves = Enclaves::new();
        enclaves.created(3, secs(0));
        for (offset, length) in
            [(1 << 20, 4096), (0, (1 << 20) + 4096), (u64::MAX, 4096), (4096, u64::MAX)]
        {
            enclaves.threads_added(3, offset, length);
        }
        assert_eq!(enclaves.initialised(3).map(|enclave| enclave.threads), Some(0));
    }

    #[test]
    fn more_than_there_is_room_for_are_counted() {
        let enclaves = Enclaves::new();
        for number in 1..=MOST as u64 + 2 {
            with_thread(&enclaves, number as i32, number << 20);
        }
        assert_eq!(enclaves.left_out(), 2);
        enclaves.created(100, secs(200 << 20));
        assert_eq!(enclaves.left_out(), 3);
        // Of one with more TCSs than are remembered any page may be one.
        let enclaves = Enclaves::new();
        enclaves.created(3, secs(1 << 20));
        enclaves.threads_added(3, 0, 0x1000 * (MOST_THREADS as u64 + 1));
        enclaves.initialised(3);
        assert!(enclaves.of_tcs((1 << 20) + 0xf_f000).is_some());
    }

    #[test]
    fn readers_see_no_mixture_while_enclaves_come_and_go() {
        let enclaves = Enclaves::new();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for round in 0..20_000u64 {
                    // Base and frame belong together.
                    let number = 1 + round % 2;
                    let secs = Secs { frame: 4096 * number, ..secs(number << 20) };
                    enclaves.created(3, secs);
                    enclaves.threads_added(3, 0x5000, 0x1000);
                    enclaves.initialised(3);
                    enclaves.gone(number << 20, 1);
                }
            });
            let mut seen = Vec::new();
            while !writer.is_finished() {
                seen.extend((1..=2).filter_map(|number| enclaves.of_tcs((number << 20) + 0x5000)));
                for enclave in seen.drain(..) {
                    assert_eq!(enclave.secs.frame, 4096 * (enclave.secs.base >> 20));
                }
            }
        });
        assert_eq!(enclaves.left_out(), 0);
    }
}
