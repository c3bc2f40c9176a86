//! Who makes an ECALL: by the code that edger8r makes for the host, a function of the ECALL's name that calls `sgx_ecall`.
//! Often that is the last thing that it does, and then it is a jump: the function has left the stack, and what is there is who
//! called it.

use std::collections::HashMap;
use std::sync::RwLock;

static KNOWN: RwLock<Option<HashMap<usize, usize>>> = RwLock::new(None);

/// An address in the function that makes a call which returns here, of a function that lies at `entry`.
pub(crate) fn caller(returns_to: usize, entry: usize) -> usize {
    let known = KNOWN.read().unwrap_or_else(|lock| lock.into_inner());
    if let Some(&caller) = known.as_ref().and_then(|known| known.get(&returns_to)) {
        return caller;
    }
    drop(known);
    // SAFETY: code that returns from the call to this address has called from right before it.
    let caller = unsafe { jumper(returns_to, entry) }.unwrap_or(returns_to - 1);
    let mut known = KNOWN.write().unwrap_or_else(|lock| lock.into_inner());
    known.get_or_insert_default().insert(returns_to, caller);
    caller
}

/// What was called that is neither the function nor leads right to it, where the call says so: `call rel32` (E8; Intel SDM,
/// volume 2A).
///
/// # Safety
/// The address behind a call, in code that can be read.
unsafe fn jumper(returns_to: usize, entry: usize) -> Option<usize> {
    // SAFETY: the instruction before, of which a call has at least two bytes, and code before that, or the file's head.
    let call: [u8; 5] = unsafe { ((returns_to - 5) as *const [u8; 5]).read_unaligned() };
    let [0xE8, distance @ ..] = call else { return None };
    let called = returns_to.wrapping_add_signed(i32::from_le_bytes(distance) as isize);
    // SAFETY: code that was called.
    (called != entry && !unsafe { leads_to(called, entry) }).then_some(called)
}

/// Whether what lies here is an entry of the procedure linkage table for a function: `[endbr64] [bnd] jmp *slot(%rip)`.
///
/// # Safety
/// Code.
unsafe fn leads_to(code: usize, entry: usize) -> bool {
    // SAFETY: an entry of the table has 16 bytes, and a function that is called has more than none before the end of its page.
    let bytes: [u8; 11] = unsafe { (code as *const [u8; 11]).read_unaligned() };
    let (at, rest) = match bytes {
        [0xF3, 0x0F, 0x1E, 0xFA, ..] => (4, &bytes[4..]),
        _ => (0, &bytes[..]),
    };
    let (at, rest) = match rest {
        [0xF2, rest @ ..] => (at + 1, rest),
        _ => (at, rest),
    };
    let [0xFF, 0x25, a, b, c, d, ..] = *rest else { return false };
    let behind = code + at + 6;
    let slot = behind.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]) as isize);
    // SAFETY: the instruction, which was run, reads it.
    unsafe { (slot as *const usize).read_unaligned() == entry }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code as it lies in memory, and the place of a slot behind it.
    fn code(bytes: &[u8]) -> Box<[u8; 64]> {
        let mut code = Box::new([0x90; 64]);
        code[..bytes.len()].copy_from_slice(bytes);
        code
    }

    #[test]
    fn entries_of_the_linkage_table_are_known() {
        let slot_at = 40;
        for head in [&[][..], &[0xF3, 0x0F, 0x1E, 0xFA], &[0xF3, 0x0F, 0x1E, 0xFA, 0xF2], &[0xF2]] {
            let mut bytes = head.to_vec();
            bytes.extend([0xFF, 0x25]);
            let behind = bytes.len() + 4;
            bytes.extend(((slot_at - behind) as i32).to_le_bytes());
            let mut code = code(&bytes);
            code[slot_at..slot_at + 8].copy_from_slice(&0x1234usize.to_le_bytes());
            let at = code.as_ptr() as usize;
            // SAFETY: the bytes above.
            unsafe {
                assert!(leads_to(at, 0x1234), "{bytes:x?}");
                assert!(!leads_to(at, 0x1235));
            }
        }
    }

    #[test]
    fn who_jumped_is_what_was_called() {
        let mut code = code(&[0xE8, 27, 0, 0, 0]);
        let returns_to = code.as_ptr() as usize + 5;
        // SAFETY: the bytes above.
        unsafe {
            assert_eq!(jumper(returns_to, 0x1234), Some(returns_to + 27));
            assert_eq!(jumper(returns_to, returns_to + 27), None, "it was called itself");
            code[0] = 0xFF;
            assert_eq!(jumper(returns_to, 0x1234), None, "through a pointer");
        }
    }
}
