//! Which stack a page of memory belongs to. A table of two levels for addresses below 2^47, and the stacks that it names by
//! number: both are there when they are needed first, and take memory for what was seen alone. Written by any thread;
//! who reads finds what was there before or behind.

use super::Place;
use crate::platform;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

/// Bytes of a page.
pub(super) const PAGE: u64 = 4096;
/// Pages that a table of the lower level has, as a power of two, and tables that there are.
const LOWER: u32 = 18;
const TABLES: usize = 1 << (47 - 12 - LOWER);
/// Most stacks; those that come then are not told from where they began.
const MOST: u32 = 1 << 18;
/// Most pages that are claimed at once.
const MOST_PAGES: u64 = 1 << 18;

/// Addresses of the tables, of that of the stacks, and how many there are.
static UPPER: AtomicUsize = AtomicUsize::new(0);
static STACKS: AtomicUsize = AtomicUsize::new(0);
static USED: AtomicU32 = AtomicU32::new(0);

#[repr(C)]
struct Stack {
    id: AtomicU64,
    /// Of the first call that was seen on it: the upper end of its frame, its stack pointer, its function.
    base_frame: AtomicU64,
    base_pointer: AtomicU64,
    base_address: AtomicU64,
}

/// A stack in the table.
pub(super) struct Record {
    number: u32,
    stack: &'static Stack,
}

impl Record {
    /// The number that the recording has for it.
    pub(super) fn id(&self) -> u64 {
        self.stack.id.load(Relaxed)
    }

    /// The first call on it is this one.
    pub(super) fn set_base(&self, place: &Place, frame: u64) {
        self.stack.base_frame.store(frame, Relaxed);
        self.stack.base_pointer.store(place.pointer, Relaxed);
        self.stack.base_address.store(place.address, Relaxed);
    }

    /// The program says when it begins anew: no call tells. What is open on it may be from before anybody looked.
    pub(super) fn is_told(&self) {
        self.stack.base_frame.store(u64::MAX, Relaxed);
    }

    /// Whether nothing can be open below this call: it lies above the first one, or in its place. A function that is inlined
    /// into the first one has its frame.
    pub(super) fn begins_anew(&self, place: &Place, frame: u64) -> bool {
        let base = self.stack.base_frame.load(Relaxed);
        let is_pointer = place.pointer == self.stack.base_pointer.load(Relaxed);
        let is_function = place.address == self.stack.base_address.load(Relaxed);
        let is_anew = frame > base || frame == base && is_pointer == is_function;
        if is_anew {
            self.set_base(place, frame);
        }
        is_anew && base != 0
    }
}

/// A stack of this id.
pub(super) fn begin(id: u64) -> Option<Record> {
    let size = MOST as usize * size_of::<Stack>();
    table(&STACKS, size)?;
    let number = USED.fetch_update(Relaxed, Relaxed, |used| (used + 1 < MOST).then_some(used + 1));
    let record = record(number.ok()? + 1)?;
    record.stack.id.store(id, Relaxed);
    Some(record)
}

/// The stack that the page of an address belongs to, if one is known.
pub(super) fn owner(address: u64) -> Option<Record> {
    record(entry(address, false)?.load(Acquire))
}

/// The pages from one address up to before another belong to a stack.
pub(super) fn claim(from: u64, to: u64, record: &Record) {
    let last = to.saturating_sub(1) / PAGE;
    for page in (from / PAGE..=last).take(MOST_PAGES as usize) {
        if let Some(entry) = entry(page * PAGE, true) {
            entry.store(record.number, Relaxed);
        }
    }
}

/// Bounds of the pages of a stack that lie in a row around an address, at most so many above and below.
pub(super) fn around(address: u64, record: &Record, most: u64) -> (u64, u64) {
    let is_its_own =
        |page: u64| owner(page * PAGE).is_some_and(|other| other.number == record.number);
    let page = address / PAGE;
    let below =
        (1..most).take_while(|&n| page.checked_sub(n).is_some_and(is_its_own)).count() as u64;
    let above = (1..most).take_while(|&n| is_its_own(page + n)).count() as u64;
    ((page - below) * PAGE, (page + above + 1) * PAGE)
}

fn record(number: u32) -> Option<Record> {
    let stacks = STACKS.load(Acquire);
    if stacks == 0 || number == 0 || number >= MOST {
        return None;
    }
    // SAFETY: within the table, which is zeroed when it is made, aligned to a page, and stays.
    let stack = unsafe { &*(stacks as *const Stack).add(number as usize) };
    Some(Record { number, stack })
}

/// The place of a page, in a table that is made if that is asked for.
fn entry(address: u64, is_made: bool) -> Option<&'static AtomicU32> {
    let page = address / PAGE;
    let upper =
        if is_made { table(&UPPER, TABLES * size_of::<usize>())? } else { UPPER.load(Acquire) };
    let number = usize::try_from(page >> LOWER).ok().filter(|&number| number < TABLES)?;
    if upper == 0 {
        return None;
    }
    // SAFETY: within the table, which is zeroed when it is made, aligned to a page, and stays.
    let lower = unsafe { &*(upper as *const AtomicUsize).add(number) };
    let size = size_of::<AtomicU32>() << LOWER;
    let lower = if is_made { table(lower, size)? } else { lower.load(Acquire) };
    if lower == 0 {
        return None;
    }
    // SAFETY: likewise.
    Some(unsafe { &*(lower as *const AtomicU32).add((page & ((1 << LOWER) - 1)) as usize) })
}

/// The memory that a word names, made if there is none.
fn table(word: &AtomicUsize, size: usize) -> Option<usize> {
    let known = word.load(Acquire);
    if known != 0 {
        return Some(known);
    }
    let made = platform::reserve(size)?;
    match word.compare_exchange(0, made, AcqRel, Acquire) {
        Ok(_) => Some(made),
        Err(other) => {
            platform::unmap(made, size);
            Some(other)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn pages_belong_to_whoever_claimed_them_last() {
        let base = 0x5555_0000_0000;
        assert!(owner(base).is_none());
        let (one, other) = (begin(7).unwrap(), begin(9).unwrap());
        claim(base + 10, base + 3 * PAGE, &one);
        claim(base + 2 * PAGE, base + 2 * PAGE + 1, &other);
        let id = |address| owner(address).map(|record| record.id());
        assert_eq!((id(base), id(base + PAGE), id(base + 2 * PAGE)), (Some(7), Some(7), Some(9)));
        assert_eq!((id(base - 1), id(base + 3 * PAGE)), (None, None));
        assert_eq!(around(base + PAGE, &one, 64), (base, base + 2 * PAGE));
        assert_eq!(around(base + 2 * PAGE, &other, 64), (base + 2 * PAGE, base + 3 * PAGE));
        assert!(owner(u64::MAX).is_none());
        claim(u64::MAX - 1, u64::MAX, &one);
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn a_stack_begins_anew_where_its_first_function_is_called_again() {
        let place = |pointer, address| Place { pointer, address, site: 1, is_call: true };
        let record = begin(5).unwrap();
        assert!(!record.begins_anew(&place(0x100, 8), 0x180), "nothing was known");
        assert!(!record.begins_anew(&place(0x80, 9), 0xC0), "it is below");
        assert!(!record.begins_anew(&place(0x100, 9), 0x180), "inlined into the first");
        assert!(record.begins_anew(&place(0x100, 8), 0x180), "the same once more");
        assert!(record.begins_anew(&place(0xF0, 9), 0x180), "another in its place");
        assert!(record.begins_anew(&place(0x100, 7), 0x190), "above it");
        record.is_told();
        assert!(!record.begins_anew(&place(0x100, 7), 0x200), "the program says so");
    }
}
