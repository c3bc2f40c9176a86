//! Memory that a process keeps for its children of `fork` ([`teeperf_wire::heirs`]), and a slot of it
//! that a child claims which cannot ask the recorder for its own.
//!
//! The shape is read once, when the memory is mapped, and kept here: nothing in shared memory is an
//! address or a length.

use crate::clock;
use crate::platform::{self, File};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicUsize};
use teeperf_wire::heirs::{self, Shape, slot};
use teeperf_wire::shared::{MAGIC, segment};

/// Where it is mapped, 0: nowhere.
static ADDRESS: AtomicUsize = AtomicUsize::new(0);
static SHAPE: [AtomicU32; 5] = [const { AtomicU32::new(0) }; 5];
/// One more than the slot that this process has, or the one that it was forked from; 0: none.
static OWN: AtomicUsize = AtomicUsize::new(0);

/// A segment in a slot.
#[derive(Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) address: usize,
    pub(crate) chunk_size: usize,
    pub(crate) chunks: usize,
    pub(crate) of_trees: bool,
}

/// Maps the memory, where the recorder gave some, in place of that of the process that this one was forked
/// from. Where that cannot be, its children have a share in the older one.
pub(crate) fn keep(file: Option<&File>) {
    let Some(size) = file.and_then(platform::file_size) else { return };
    let Some(address) = file.and_then(|file| platform::map_shared(file, size, true, 0)) else {
        return;
    };
    let number = |at: usize| {
        // SAFETY: a number of the memory's first page: whatever was mapped is no shorter.
        unsafe { ((address + heirs::SHAPE + 4 * at) as *const u32).read_volatile() }
    };
    // SAFETY: as above.
    let magic = unsafe { ((address + heirs::MAGIC) as *const u64).read_volatile() };
    let shape = Shape::decode([0, 1, 2, 3, 4].map(number));
    let Some(shape) = shape.filter(|shape| shape.size() == Some(size) && magic == MAGIC) else {
        return platform::unmap(address, size);
    };
    forget();
    for (to, from) in SHAPE.iter().zip(shape.encode()) {
        to.store(from, Relaxed);
    }
    ADDRESS.store(address, Release);
}

/// Lets go of the memory of the process that this one was forked from. Where its chunks were in a slot,
/// what is left of its hooks writes into private memory from here on.
fn forget() {
    let (address, had_slot) = (ADDRESS.swap(0, Relaxed), OWN.swap(0, Relaxed) != 0);
    match shape().and_then(Shape::size) {
        Some(size) if address != 0 && had_slot => platform::cut_off(address, size),
        Some(size) if address != 0 => platform::unmap(address, size),
        _ => {}
    }
}

/// The recorder has drained nothing for as long as a thread of this process waits.
pub(crate) fn tell_stall() {
    if let Some(stalled) = number(heirs::STALLED) {
        stalled.store(clock::progress().wrapping_add(1), Relaxed);
    }
}

/// Whether a process in a slot has waited in vain, and nothing has been drained since.
fn is_stalled() -> bool {
    let stalled = number(heirs::STALLED).map_or(0, |stalled| stalled.load(Relaxed));
    stalled != 0 && stalled == clock::progress().wrapping_add(1)
}

/// Takes a slot, if one is free and somebody drains it, for a child of the process that had this id.
pub(crate) fn claim(pid: u32, parent: u32) -> Option<[Segment; 2]> {
    let shape = shape().filter(|_| !is_stalled())?;
    for index in 0..shape.slots as usize {
        let state = slot(index, slot::STATE)?;
        let is_free = state.load(Relaxed) == slot::FREE;
        if !is_free || state.compare_exchange(slot::FREE, slot::CLAIMED, AcqRel, Relaxed).is_err() {
            continue;
        }
        slot(index, slot::PID)?.store(pid, Relaxed);
        slot(index, slot::PARENT)?.store(parent, Relaxed);
        OWN.store(index + 1, Relaxed);
        state.store(slot::READY, Release);
        let [first, second] = shape.segments(index)?;
        let base = ADDRESS.load(Relaxed);
        let small = Segment {
            address: base + first,
            chunk_size: segment::SMALL_CHUNK,
            chunks: shape.small as usize,
            of_trees: false,
        };
        let large = Segment {
            address: base + second,
            chunk_size: shape.second_size as usize,
            chunks: shape.second as usize,
            of_trees: shape.of_trees,
        };
        return Some([small, large]);
    }
    None
}

/// Says that this process is not recorded, for one of [`heirs::reason`].
pub(crate) fn refuse(reason: usize, pid: u32) {
    let Some(count) = number(heirs::REFUSED + 4 * reason) else { return };
    let before = count.fetch_add(1, AcqRel) as usize;
    if let Some(place) = number(heirs::REFUSED_PIDS + 4 * (before % heirs::PIDS)) {
        place.store(pid, Release);
    }
}

fn shape() -> Option<Shape> {
    let numbers = [0, 1, 2, 3, 4].map(|at: usize| SHAPE[at].load(Relaxed));
    Shape::decode(numbers).filter(|_| ADDRESS.load(Acquire) != 0)
}

fn slot(index: usize, offset: usize) -> Option<&'static AtomicU32> {
    (index < heirs::MAX_SLOTS).then_some(())?;
    number(heirs::SLOTS + index * slot::SIZE + offset)
}

fn number(offset: usize) -> Option<&'static AtomicU32> {
    let address = ADDRESS.load(Acquire);
    // SAFETY: the offset is one of the first page, which stays mapped until the process is alone with
    // its first thread in the runtime, and aligned.
    (address != 0).then(|| unsafe { &*((address + offset) as *const AtomicU32) })
}
