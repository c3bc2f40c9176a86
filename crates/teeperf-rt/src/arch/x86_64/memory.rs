//! The C library's functions that compiled Rust calls by itself. The runtime brings its own, local
//! to its object, because the program's may be hooked, or not be relocated yet.

use core::arch::asm;

/// `memcpy` of C.
///
/// # Safety
/// As in C.
// SAFETY: the name is made local to the runtime's object, so it meets no other.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    // SAFETY: the direction flag is clear in every function (System V ABI); the caller
    // answers for the ranges.
    unsafe {
        asm!("rep movsb", inout("rdi") to => _, inout("rsi") from => _,
            inout("rcx") count => _, options(nostack, preserves_flags));
    }
    to
}

/// `memmove` of C.
///
/// # Safety
/// As in C.
// SAFETY: the name is made local to the runtime's object, so it meets no other.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, count: usize) -> *mut u8 {
    if (to as usize).wrapping_sub(from as usize) >= count {
        // SAFETY: the destination does not begin within the source.
        return unsafe { memcpy(to, from, count) };
    }
    // SAFETY: backwards, from the last byte; the direction flag is clear again after.
    unsafe {
        asm!("std", "rep movsb", "cld", inout("rdi") to.add(count).wrapping_sub(1) => _,
            inout("rsi") from.add(count).wrapping_sub(1) => _, inout("rcx") count => _,
            options(nostack));
    }
    to
}

/// `memset` of C.
///
/// # Safety
/// As in C.
// SAFETY: the name is made local to the runtime's object, so it meets no other.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, value: i32, count: usize) -> *mut u8 {
    // SAFETY: the direction flag is clear; the caller answers for the range.
    unsafe {
        asm!("rep stosb", inout("rdi") to => _, in("al") value as u8,
            inout("rcx") count => _, options(nostack, preserves_flags));
    }
    to
}

/// `memcmp` of C.
///
/// # Safety
/// As in C.
// SAFETY: the name is made local to the runtime's object, so it meets no other.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, count: usize) -> i32 {
    for at in 0..count {
        // SAFETY: within both ranges; volatile, so that the loop is not made a call of
        // this very function.
        let (x, y) = unsafe { (a.add(at).read_volatile(), b.add(at).read_volatile()) };
        if x != y {
            return i32::from(x) - i32::from(y);
        }
    }
    0
}

/// `strlen` of C.
///
/// # Safety
/// As in C.
// SAFETY: the name is made local to the runtime's object, so it meets no other.
#[unsafe(no_mangle)]
unsafe extern "C" fn strlen(string: *const u8) -> usize {
    let mut length = 0;
    // SAFETY: the string ends in a zero byte; volatile as in `memcmp`.
    while unsafe { string.add(length).read_volatile() } != 0 {
        length += 1;
    }
    length
}

/// `bcmp` of C.
///
/// # Safety
/// As in C.
// SAFETY: the name is made local to the runtime's object, so it meets no other.
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, count: usize) -> i32 {
    // SAFETY: the same contract.
    unsafe { memcmp(a, b, count) }
}
