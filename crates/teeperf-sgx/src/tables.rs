//! Tables of OCALLs, which a host gives along with each ECALL: a number, and as many functions (`ocall_table_…` in what edger8r
//! makes). The runtime gets one of the same length in its place, with an entry of ours for each function; which that is, the entry
//! knows by its own number, so that it is called from whatever thread, whenever the runtime likes: it may keep the table for
//! threads of its own.

use crate::entries;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Mutex, RwLock};
use teeperf_lender::windows::{self, Window};

/// Functions that have an entry. Others are called directly, and told of once.
pub(crate) const ENTRIES: usize = 512;
/// Longer tables are none.
const MOST_FUNCTIONS: usize = 1 << 16;

/// What is behind an entry.
struct Entry {
    function: AtomicUsize,
    number: AtomicUsize,
}

static TAKEN: [Entry; ENTRIES] =
    [const { Entry { function: AtomicUsize::new(0), number: AtomicUsize::new(0) } }; ENTRIES];
/// How many entries are taken.
static COUNT: Mutex<usize> = Mutex::new(0);

/// A host's table and what stands for it. Both stay: the runtime may have either.
struct Known {
    at: usize,
    functions: Vec<usize>,
    /// Its number of functions, and those.
    replaced: Box<[usize]>,
    window: Option<Window>,
}

static KNOWN: RwLock<Vec<&'static Known>> = RwLock::new(Vec::new());

/// A table for the runtime.
#[derive(Clone, Copy)]
pub(crate) struct Table {
    pub(crate) for_runtime: *const c_void,
    /// Of the enclave that it is for: each has its own.
    pub(crate) window: Option<Window>,
}

/// What the runtime gets in place of a host's table.
///
/// # Safety
/// A table, or null.
pub(crate) unsafe fn replaced(table: *const c_void) -> Table {
    let as_it_is = Table { for_runtime: table, window: None };
    if table.is_null() {
        return as_it_is;
    }
    // SAFETY: the caller's promise: a table begins with its number of functions.
    let count = unsafe { table.cast::<usize>().read() };
    if count > MOST_FUNCTIONS {
        return as_it_is;
    }
    // SAFETY: as many follow.
    let functions = unsafe { std::slice::from_raw_parts(table.cast::<usize>().add(1), count) };
    let of =
        |known: &Known| Table { for_runtime: known.replaced.as_ptr().cast(), window: known.window };
    let is_it = |known: &&&Known| known.at == table as usize && known.functions == functions;
    if let Some(known) = KNOWN.read().unwrap_or_else(|lock| lock.into_inner()).iter().find(is_it) {
        return of(known);
    }
    let mut all = KNOWN.write().unwrap_or_else(|lock| lock.into_inner());
    if let Some(known) = all.iter().find(is_it) {
        return of(known);
    }
    let entries = functions.iter().enumerate().map(|(number, &function)| entry(function, number));
    let known: &Known = Box::leak(Box::new(Known {
        at: table as usize,
        functions: functions.to_vec(),
        replaced: std::iter::once(count).chain(entries).collect(),
        window: windows::next(),
    }));
    all.push(known);
    of(known)
}

/// The address of an entry for a function with this number in its table; the function itself, where there is none left.
fn entry(function: usize, number: usize) -> usize {
    if function == 0 {
        return 0;
    }
    let mut count = COUNT.lock().unwrap_or_else(|lock| lock.into_inner());
    let is_it = |entry: &Entry| {
        entry.function.load(Relaxed) == function && entry.number.load(Relaxed) == number
    };
    let place = TAKEN.iter().take(*count).position(is_it);
    let place = place.unwrap_or_else(|| {
        let free = *count;
        if let Some(entry) = TAKEN.get(free) {
            entry.number.store(number, Relaxed);
            entry.function.store(function, Release);
        } else if free == ENTRIES {
            teeperf_lender::tell(format_args!(
                "more than {ENTRIES} OCALLs: those that come now are not recorded"
            ));
        }
        *count += 1;
        free
    });
    if place < ENTRIES { entries::of_ocall(place) } else { function }
}

/// The function behind an entry, and its number in its table.
pub(crate) fn behind(entry: usize) -> (usize, usize) {
    TAKEN
        .get(entry)
        .map_or((0, 0), |entry| (entry.function.load(Acquire), entry.number.load(Relaxed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, since entries are the process's.
    #[test]
    fn tables_are_replaced_by_entries_for_their_functions() {
        let replaced = |table: &[usize]| {
            let at = if table.is_empty() { std::ptr::null() } else { table.as_ptr().cast() };
            // SAFETY: the tables below, or null.
            unsafe { super::replaced(at) }
        };
        // SAFETY: places of such a table.
        let of = |table: Table, at| unsafe { table.for_runtime.cast::<usize>().add(at).read() };
        let first = [3usize, 0x1000, 0, 0x3000];
        let table = replaced(&first);
        assert_eq!((of(table, 0), of(table, 2)), (3, 0));
        let begin = entries::of_ocall(0);
        let places = [1, 3].map(|at| (of(table, at) - begin) / (entries::of_ocall(1) - begin));
        assert_eq!(places.map(behind), [(0x1000, 0), (0x3000, 2)]);
        let again = replaced(&first);
        assert_eq!((again.for_runtime, again.window), (table.for_runtime, table.window));
        // Another enclave's, with a function that is the same.
        let other = replaced(&[1, 0x1000]);
        assert_eq!(of(other, 1), of(table, 1));
        assert_ne!(other.window, table.window);
        // More than there are entries for.
        let functions = (1..=ENTRIES).map(|at| 0x10_0000 + at);
        let many: Vec<usize> = std::iter::once(ENTRIES).chain(functions).collect();
        let table = replaced(&many);
        assert_ne!(of(table, 1), many[1]);
        assert_eq!(of(table, ENTRIES), many[ENTRIES], "called directly");
        assert_eq!(*COUNT.lock().unwrap(), ENTRIES + 2);
        assert!(replaced(&[]).for_runtime.is_null());
        let garbage = [usize::MAX];
        assert_eq!(replaced(&garbage).for_runtime, garbage.as_ptr().cast());
    }
}
