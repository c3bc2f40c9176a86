//! A tree's memory, which others may read, and perhaps write, at any time.

use core::cell::Cell;
use core::sync::atomic::{
    AtomicU32, Ordering::Relaxed, Ordering::Release, Ordering::SeqCst, fence,
};
#[cfg(not(target_pointer_width = "64"))]
use teeperf_wire::tree::header;
use teeperf_wire::tree::{self, NODE, PLACE, RECORD, WAY};

/// Memory that one thread writes. Indices given to it are checked here.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Memory {
    base: *mut u8,
    guesses: *const AtomicU32,
    /// One less than there are guesses.
    mask: u32,
    nodes: u32,
    ways: u32,
    records: u32,
}

/// Where fields are, for hooks.
pub(crate) mod layout {
    use super::Memory;
    use core::mem::offset_of;

    pub(crate) const BASE: usize = offset_of!(Memory, base);
    pub(crate) const GUESSES: usize = offset_of!(Memory, guesses);
    pub(crate) const MASK: usize = offset_of!(Memory, mask);
    pub(crate) const NODES: usize = offset_of!(Memory, nodes);
}

/// The clock as a thread last saw it. It never goes back, whatever signal handlers come in between.
#[repr(transparent)]
pub(crate) struct Now(Whole);

/// A number that changes at once, or not, whatever signal handlers come in between.
#[repr(transparent)]
pub(crate) struct Whole(Cell<u64>);

/// A node of the memory, of those that there is room for, or another place with fields: the header, a
/// way, a record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Node(*mut u8);

impl Memory {
    /// All of it, zeroed; with room for ways back where calls are folded.
    ///
    /// # Safety
    /// `bytes` bytes at `base`, which is a multiple of eight, stay there, and nobody else writes them who
    /// is believed.
    pub(crate) unsafe fn new(base: *mut u8, bytes: usize, folds: bool) -> Option<Self> {
        let nodes = tree::nodes_in(bytes)? as u32;
        let left = bytes - tree::behind_guesses(nodes as usize);
        let ways = if folds { left / 2 / WAY } else { 0 } as u32;
        let records = ((left - ways as usize * WAY) / RECORD) as u32;
        let is_usable = !base.is_null() && (base as usize).is_multiple_of(8);
        is_usable.then(|| Self {
            base,
            // SAFETY: within the memory: the guesses lie behind the table.
            guesses: unsafe { base.add(tree::behind_places(nodes as usize)) }.cast_const().cast(),
            mask: tree::guesses(nodes as usize) as u32 - 1,
            nodes,
            ways,
            records,
        })
    }

    /// How many nodes there is room for.
    pub(crate) fn nodes(self) -> u32 {
        self.nodes
    }

    /// The node of this index; of one that is too large the root.
    #[inline(always)]
    pub(crate) fn node(self, index: u32) -> Node {
        let index = if index < self.nodes { index as usize } else { 0 };
        // SAFETY: within the memory: behind the header there is room for so many nodes, and always for a root.
        Node(unsafe { self.base.add(NODE + index * NODE) })
    }

    /// Index of a node.
    #[inline(always)]
    pub(crate) fn index(self, node: Node) -> u32 {
        ((node.0 as usize - self.base as usize) / NODE - 1) as u32
    }

    /// A field of the header.
    pub(crate) fn header(self, offset: usize) -> Node {
        debug_assert!(offset < NODE);
        // SAFETY: within the header.
        Node(unsafe { self.base.add(offset) })
    }

    /// A place of the table, of twice as many as there are nodes: the child, and the node that it is called from.
    pub(crate) fn place(self, at: u32) -> (u32, u32) {
        let [child, parent] = self.halves(at);
        (child.load(Relaxed), parent.load(Relaxed))
    }

    /// Fills a place.
    pub(crate) fn fill(self, at: u32, child: u32, of: u32) {
        let [to_child, to_parent] = self.halves(at);
        to_parent.store(of, Relaxed);
        to_child.store(child, Relaxed);
    }

    fn halves(self, at: u32) -> &'static [AtomicU32; 2] {
        let at = if at < self.places() { at as usize } else { 0 };
        let offset = NODE + self.nodes as usize * NODE + at * PLACE;
        // SAFETY: within the memory, which stays: the table lies behind the nodes.
        unsafe { &*self.base.add(offset).cast() }
    }

    /// Where it is kept which node a call of this function from this frame is likely to be of.
    #[inline(always)]
    pub(crate) fn guess(self, address: u64, frame: usize) -> &'static AtomicU32 {
        let sum = (address as u32).wrapping_add(frame as u32);
        let hash = sum.wrapping_mul(tree::GUESS_FACTOR) >> tree::GUESS_SHIFT;
        // SAFETY: there are as many guesses as the mask has numbers.
        unsafe { &*self.guesses.add((hash & self.mask) as usize) }
    }

    /// A way back from a folded call, where there is room for so many.
    pub(crate) fn way(self, at: u32) -> Option<Node> {
        let offset = tree::behind_guesses(self.nodes as usize) + at as usize * WAY;
        // SAFETY: within the memory: the ways lie behind the guesses.
        (at < self.ways).then(|| Node(unsafe { self.base.add(offset) }))
    }

    /// A record, where there is room for so many.
    pub(crate) fn record(self, at: u32) -> Option<Node> {
        let ways = self.ways as usize * WAY;
        let offset = tree::behind_guesses(self.nodes as usize) + ways + at as usize * RECORD;
        // SAFETY: within the memory: the records lie behind the ways.
        (at < self.records).then(|| Node(unsafe { self.base.add(offset) }))
    }

    /// How many records there is room for.
    pub(crate) fn records(self) -> u32 {
        self.records
    }

    /// Places of the table.
    pub(crate) fn places(self) -> u32 {
        self.nodes * 2
    }

    /// Writes a half of a counter's sum that the other half depends on: readers wait meanwhile.
    #[cfg(not(target_pointer_width = "64"))]
    fn carry(self, write: impl FnOnce()) {
        let carry = self.header(header::CARRY).narrow(0);
        let before = carry.load(Relaxed);
        carry.store(before.wrapping_add(1), Relaxed);
        fence(SeqCst);
        write();
        carry.store(before.wrapping_add(2), Release);
    }

    /// Adds to a counter of a node.
    #[inline(always)]
    pub(crate) fn add(self, node: Node, offset: usize, more: u64) {
        #[cfg(target_arch = "x86_64")]
        node.add_at_once(offset, more);
        #[cfg(all(target_pointer_width = "64", not(target_arch = "x86_64")))]
        node.set(offset, node.wide(offset).wrapping_add(more));
        #[cfg(not(target_pointer_width = "64"))]
        {
            let (low, high) = (node.narrow(offset), node.narrow(offset + 4));
            let (sum, carries) = low.load(Relaxed).overflowing_add(more as u32);
            let more = (more >> 32) as u32 + u32::from(carries);
            if more == 0 {
                low.store(sum, Relaxed);
            } else {
                self.carry(|| {
                    low.store(sum, Relaxed);
                    high.store(high.load(Relaxed).wrapping_add(more), Relaxed);
                });
            }
        }
    }

    /// Raises a counter of a node to at least this.
    #[inline(always)]
    pub(crate) fn raise(self, node: Node, offset: usize, least: u64) {
        if node.wide(offset) < least {
            #[cfg(target_pointer_width = "64")]
            node.set(offset, least);
            #[cfg(not(target_pointer_width = "64"))]
            self.carry(|| node.set(offset, least));
        }
    }

    /// Says that all that was written before is there, by a number of the header.
    pub(crate) fn publish(self, offset: usize, value: u32) {
        fence(SeqCst);
        self.header(offset).narrow(0).store(value, Release);
    }
}

impl Now {
    pub(crate) const fn new(now: u64) -> Self {
        Self(Whole::new(now))
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> u64 {
        self.0.get()
    }

    /// Moves on to `now`; says by how much, if that was done here.
    #[inline(always)]
    pub(crate) fn advance(&self, now: u64) -> Option<u64> {
        let last = self.0.get();
        (now > last && self.0.replace(last, now)).then(|| now - last)
    }
}

impl Whole {
    pub(crate) const fn new(number: u64) -> Self {
        Self(Cell::new(number))
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> u64 {
        self.0.get()
    }

    /// In one instruction; not locked, since no other thread is concerned. Says whether it was done.
    #[inline(always)]
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    pub(crate) fn replace(&self, last: u64, next: u64) -> bool {
        let was: u64;
        // SAFETY: a number of this thread's own.
        unsafe {
            core::arch::asm!("cmpxchg qword ptr [{at}], {next}", at = in(reg) self.0.as_ptr(), next = in(reg) next,
                inout("rax") last => was, options(nostack));
        }
        was == last
    }

    /// Nearly at once: on processors where programs have no hooks yet, or no signals.
    #[inline(always)]
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    pub(crate) fn replace(&self, last: u64, next: u64) -> bool {
        let is_same = self.0.get() == last;
        if is_same {
            self.0.set(next);
        }
        is_same
    }
}

impl Node {
    #[inline(always)]
    fn narrow(self, offset: usize) -> &'static AtomicU32 {
        debug_assert!(offset.is_multiple_of(4));
        // SAFETY: a field of a node or of the header, within the memory; aligned, since that is.
        unsafe { &*self.0.add(offset).cast::<AtomicU32>() }
    }

    /// A field of four bytes.
    #[inline(always)]
    pub(crate) fn get(self, offset: usize) -> u32 {
        self.narrow(offset).load(Relaxed)
    }

    /// Sets a field of four bytes.
    #[inline(always)]
    pub(crate) fn put(self, offset: usize, value: u32) {
        self.narrow(offset).store(value, Relaxed);
    }

    /// A field of eight bytes.
    #[inline(always)]
    #[cfg(target_pointer_width = "64")]
    pub(crate) fn wide(self, offset: usize) -> u64 {
        self.double(offset).load(Relaxed)
    }

    /// Sets a field of eight bytes.
    #[inline(always)]
    #[cfg(target_pointer_width = "64")]
    pub(crate) fn set(self, offset: usize, value: u64) {
        self.double(offset).store(value, Relaxed);
    }

    #[inline(always)]
    #[cfg(target_pointer_width = "64")]
    fn double(self, offset: usize) -> &'static core::sync::atomic::AtomicU64 {
        debug_assert!(offset.is_multiple_of(8));
        // SAFETY: as in `narrow`.
        unsafe { &*self.0.add(offset).cast() }
    }

    /// A field of eight bytes.
    #[cfg(not(target_pointer_width = "64"))]
    pub(crate) fn wide(self, offset: usize) -> u64 {
        u64::from(self.get(offset)) | u64::from(self.get(offset + 4)) << 32
    }

    /// Sets a field of eight bytes.
    #[cfg(not(target_pointer_width = "64"))]
    pub(crate) fn set(self, offset: usize, value: u64) {
        self.put(offset, value as u32);
        self.put(offset + 4, (value >> 32) as u32);
    }

    /// Adds in one instruction, so that no signal handler comes in between.
    #[inline(always)]
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn add_at_once(self, offset: usize, more: u64) {
        // SAFETY: a field of eight bytes, as in `narrow`. An instruction that the compiler does not look
        // into may write what others read meanwhile.
        unsafe {
            core::arch::asm!("add qword ptr [{at}], {more}", at = in(reg) self.0.add(offset), more = in(reg) more,
                options(nostack));
        }
    }

    #[cfg(all(target_arch = "x86_64", miri))]
    fn add_at_once(self, offset: usize, more: u64) {
        self.set(offset, self.wide(offset).wrapping_add(more));
    }
}
