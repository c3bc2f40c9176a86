//! Descriptors of ours stay open when the program closes all that there may be, as daemons do. To the program they are not there.

use crate::libc::{self, Next};
use std::ffi::{c_int, c_uint};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Those below this are told apart.
const MOST: usize = 4096;
const EBADF: c_int = 9;
const ENOSYS: c_int = 38;
/// Of `close_range`: they are closed by exec, as ours are anyhow.
const CLOSE_RANGE_CLOEXEC: c_int = 4;

type Close = unsafe extern "C" fn(c_int) -> c_int;
type CloseFrom = unsafe extern "C" fn(c_int);
type CloseRange = unsafe extern "C" fn(c_uint, c_uint, c_int) -> c_int;

static CLOSE: Next = Next::new(c"close");
static CLOSEFROM: Next = Next::new(c"closefrom");
static CLOSE_RANGE: Next = Next::new(c"close_range");
/// A bit for each.
static OURS: [AtomicU64; MOST / 64] = [const { AtomicU64::new(0) }; MOST / 64];

fn bit(file: c_int) -> Option<(&'static AtomicU64, u64)> {
    let file = usize::try_from(file).ok()?;
    Some((OURS.get(file / 64)?, 1 << (file % 64)))
}

/// This one is ours.
pub(crate) fn keep(file: c_int) {
    if let Some((word, bit)) = bit(file) {
        word.fetch_or(bit, Relaxed);
    }
}

/// It is not any more.
pub(crate) fn leave(file: c_int) {
    if let Some((word, bit)) = bit(file) {
        word.fetch_and(!bit, Relaxed);
    }
}

/// None is, in the child of a fork.
pub(crate) fn forget() {
    OURS.iter().for_each(|word| word.store(0, Relaxed));
}

fn is_ours(file: c_int) -> bool {
    bit(file).is_some_and(|(word, bit)| word.load(Relaxed) & bit != 0)
}

/// # Safety
/// As the C library has it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn close(file: c_int) -> c_int {
    if is_ours(file) {
        libc::set_error(EBADF);
        return -1;
    }
    // SAFETY: its type, and the caller's promise.
    unsafe { CLOSE.get::<Close>()(file) }
}

/// # Safety
/// As the C library has it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn closefrom(first: c_int) {
    let first = first.max(0);
    let ours = (first..MOST as c_int).rev().find(|&file| is_ours(file));
    // SAFETY: its type, and the caller's promise.
    unsafe {
        for file in ours.into_iter().flat_map(|last| first..=last) {
            close(file);
        }
        if let Some(closefrom) = CLOSEFROM.find::<CloseFrom>() {
            closefrom(ours.map_or(first, |last| last + 1));
        }
    }
}

/// # Safety
/// As the C library has it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // SAFETY: its type.
    let Some(close_range) = (unsafe { CLOSE_RANGE.find::<CloseRange>() }) else {
        libc::set_error(ENOSYS);
        return -1;
    };
    let mut from = first;
    if flags & CLOSE_RANGE_CLOEXEC == 0 {
        let most = last.min(MOST as c_uint - 1);
        for ours in (first..=most).filter(|&file| is_ours(file as c_int)) {
            if from < ours {
                // SAFETY: the caller's promise.
                let result = unsafe { close_range(from, ours - 1, flags) };
                if result != 0 {
                    return result;
                }
            }
            from = ours + 1;
        }
        if from > last && from > first {
            return 0;
        }
    }
    // SAFETY: the caller's promise.
    unsafe { close_range(from, last, flags) }
}
