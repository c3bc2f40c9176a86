//! Memory that a process has for children of `fork` that cannot reach the recorder
//! ([`teeperf_wire::heirs`]), as the recorder sees it. Any process that has it may write there: what it
//! says is a claim, which the drain has the system confirm (`family`).

use crate::memory::{SEAL_SIZE, SharedMemory};
use crate::segment::{Class, Segment};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use teeperf_wire::heirs::{self, Shape, reason, slot};
use teeperf_wire::shared::{MAGIC, segment};

/// See the module.
#[derive(Debug)]
pub(crate) struct Heirs {
    memory: Arc<SharedMemory>,
    shape: Shape,
}

/// What a process says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) slot: usize,
    /// Its id as it knows itself.
    pub(crate) pid: u32,
    /// That of the process that it was forked from, likewise.
    pub(crate) parent: u32,
}

/// Name of the memory, as lists of mappings have it.
pub(crate) const NAME: &std::ffi::CStr = c"teeperf-heirs";
/// Slots, and what is in each: some 8 MiB of addresses in all, of which none is used at first.
const SLOTS: u32 = 16;
const SMALL: u32 = 31;
const LARGE: u32 = 6;
/// Most bytes of trees, and how many in a slot.
const TREES: usize = 32 << 20;
const TREES_EACH: u32 = 4;

impl Heirs {
    /// For a process whose threads have trees of so many bytes, or chunks. Where memory is limited
    /// (`ulimit -f`), it has no slots, and only says what is not recorded.
    pub(crate) fn create(tree: Option<usize>) -> io::Result<Self> {
        let shape = shape(tree);
        Self::with(shape).or_else(|_| Self::with(Shape { slots: 0, ..shape }))
    }

    fn with(shape: Shape) -> io::Result<Self> {
        let size = shape.size().ok_or(io::ErrorKind::InvalidInput)?;
        let memory = SharedMemory::create(NAME, size, SEAL_SIZE)?;
        for (at, number) in shape.encode().into_iter().enumerate() {
            memory.number(heirs::SHAPE + 4 * at).store(number, Relaxed);
        }
        memory.wide(heirs::MAGIC).store(MAGIC, Release);
        Ok(Self { memory: Arc::new(memory), shape })
    }

    /// To be sent to the process, so that [`Heirs::is_lent`] can tell.
    pub(crate) fn lend(&self) -> io::Result<OwnedFd> {
        self.memory.lend()
    }

    /// To be sent to the process.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.memory.file()
    }

    /// Whether a process has it.
    pub(crate) fn is_lent(&self) -> bool {
        self.memory.is_lent()
    }

    /// Number of its file, as lists of mappings have it.
    pub(crate) fn inode(&self) -> io::Result<u64> {
        // SAFETY: a struct of numbers, for which zeros are a value.
        let mut about: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the address is that of a stat.
        let result = unsafe { libc::fstat(self.memory.file().as_raw_fd(), &mut about) };
        crate::memory::checked(result)?;
        Ok(about.st_ino)
    }

    /// What processes claim.
    pub(crate) fn claims(&self) -> impl Iterator<Item = Claim> + '_ {
        (0..self.shape.slots as usize).filter_map(|slot| {
            let number = |offset| self.number(slot, offset).load(Acquire);
            (number(slot::STATE) == slot::READY).then(|| Claim {
                slot,
                pid: number(slot::PID),
                parent: number(slot::PARENT),
            })
        })
    }

    /// The segments in a slot.
    pub(crate) fn segments(&self, slot: usize) -> Option<Vec<Arc<Segment>>> {
        let [first, second] = self.shape.segments(slot)?;
        let small =
            Class::OfHeir { chunk_size: segment::SMALL_CHUNK, chunks: self.shape.small as usize };
        let (size, count) = (self.shape.second_size as usize, self.shape.second as usize);
        let large = match self.shape.of_trees {
            true => Class::Trees { bytes: size, trees: count },
            false => Class::OfHeir { chunk_size: size, chunks: count },
        };
        let of = |at, class| Arc::new(Segment::inside(Arc::clone(&self.memory), at, class));
        Some(vec![of(first, small), of(second, large)])
    }

    /// Gives a slot back whose process is gone.
    pub(crate) fn give_back(&self, slot: usize) {
        let places = (self.shape.segments(slot), self.shape.slot_size());
        let (Some([first, _]), Some(bytes)) = places else { return };
        self.memory.forget(first, bytes);
        for offset in [slot::PID, slot::PARENT] {
            self.number(slot, offset).store(0, Relaxed);
        }
        self.number(slot, slot::STATE).store(slot::FREE, Release);
    }

    /// How many processes have said that they are not recorded, by reason.
    pub(crate) fn refused(&self) -> [u32; reason::COUNT] {
        std::array::from_fn(|at| self.memory.number(heirs::REFUSED + 4 * at).load(Acquire))
    }

    /// Ids of some of them, as they know themselves.
    pub(crate) fn refused_pids(&self) -> Vec<u32> {
        let pids = self.memory.numbers(heirs::REFUSED_PIDS, heirs::PIDS);
        pids.iter().map(|pid| pid.load(Acquire)).filter(|&pid| pid != 0).collect()
    }

    fn number(&self, slot: usize, offset: usize) -> &std::sync::atomic::AtomicU32 {
        self.memory.number(heirs::SLOTS + slot * slot::SIZE + offset)
    }
}

fn shape(tree: Option<usize>) -> Shape {
    match tree {
        Some(bytes) => Shape {
            slots: (TREES / bytes / TREES_EACH as usize).clamp(1, SLOTS as usize) as u32,
            small: SMALL,
            second_size: bytes as u32,
            second: TREES_EACH,
            of_trees: true,
        },
        None => Shape {
            slots: SLOTS,
            small: SMALL,
            second_size: segment::LARGE_CHUNK as u32,
            second: LARGE,
            of_trees: false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_zeroed_when_it_is_given_back() {
        for tree in [None, Some(1 << 20), Some(1 << 30)] {
            let heirs = Heirs::create(tree).unwrap();
            let last = heirs.shape.slots as usize - 1;
            assert_eq!(heirs.claims().next(), None);
            heirs.number(last, slot::PID).store(7, Relaxed);
            heirs.number(last, slot::PARENT).store(3, Relaxed);
            heirs.number(last, slot::STATE).store(slot::READY, Relaxed);
            let claim = Claim { slot: last, pid: 7, parent: 3 };
            assert_eq!(heirs.claims().collect::<Vec<_>>(), [claim]);
            let segments = heirs.segments(last).unwrap();
            assert_eq!(segments.len(), 2);
            heirs.give_back(last);
            assert_eq!(heirs.claims().next(), None);
            assert_eq!(heirs.number(last, slot::PID).load(Relaxed), 0);
        }
    }

    #[test]
    fn it_is_lent_until_nobody_has_it() {
        let heirs = Heirs::create(None).unwrap();
        let lent = heirs.lend().unwrap();
        assert!(heirs.is_lent());
        drop(lent);
        assert!(!heirs.is_lent());
    }
}
