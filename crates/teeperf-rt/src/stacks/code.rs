//! Whether code switches stacks by itself: whether it loads the stack pointer from memory, or from a register in which
//! functions have arguments and results. What compilers make of functions does that from their own frame, or from
//! a register that keeps its value over calls. (The C library does so in `longjmp`: of a static program that is part.) Decides nothing but whether hooks look at the stack pointer.

use super::{MODE, UNWATCHED, WATCHED};
use crate::elf::Image;
use crate::maps;
use core::sync::atomic::Ordering::Relaxed;

/// Most code of a hooked module that is looked through, which takes some milliseconds.
const MOST: u64 = 16 << 20;
/// Largest code of a library without hooks that is: those that do little else than to switch stacks are small. The C
/// library and the unwinder, which jump as well, are not.
const SMALL: u64 = 32 << 10;

/// A hooked module: if its code switches stacks, they are watched from here on. Says whether that is new.
pub(crate) fn look_through(image: &Image) -> bool {
    let (low, high) = image.code;
    if MODE.load(Relaxed) != UNWATCHED || high - low > MOST {
        return false;
    }
    // SAFETY: a segment of code of a module that is loaded.
    found(unsafe { core::slice::from_raw_parts(low as *const u8, (high - low) as usize) })
}

/// The small libraries that are loaded.
pub(crate) fn look_through_libraries() {
    maps::each_code(|low, high| {
        if MODE.load(Relaxed) == UNWATCHED && high - low <= SMALL {
            // SAFETY: mapped from a file to be read and executed, as the loader has it; nothing is unloaded while the
            // process attaches.
            found(unsafe { core::slice::from_raw_parts(low as *const u8, (high - low) as usize) });
        }
    });
}

fn found(code: &[u8]) -> bool {
    let is_found = switches(code);
    if is_found {
        let _ = MODE.compare_exchange(UNWATCHED, WATCHED, Relaxed, Relaxed);
    }
    is_found
}

/// Intel SDM 2A, MOV: `REX 8B /4` loads rsp, `REX 89` with rsp as the other operand too.
fn switches(code: &[u8]) -> bool {
    const RSP: u8 = 4;
    const RBP: u8 = 5;
    code.windows(4).any(|bytes| {
        let &[rex, opcode, operands, base] = bytes else { return false };
        let (form, register, other) = (operands >> 6, operands >> 3 & 7, operands & 7);
        match (rex, opcode) {
            // From memory, but not from the frame or a global.
            (0x48, 0x8B) if form < 3 && register == RSP => match other {
                RSP => base & 7 != RSP && base & 7 != RBP,
                other => other != RBP,
            },
            (0x49, 0x8B) => form < 3 && register == RSP,
            // From rax, rcx, rdx, rsi or rdi, or r8 to r11.
            (0x48, 0x8B) => register == RSP && matches!(other, 0..=2 | 6 | 7),
            (0x48, 0x89) => form == 3 && other == RSP && matches!(register, 0..=2 | 6 | 7),
            (0x4C, 0x89) => form == 3 && other == RSP && register < 4,
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::switches;

    #[test]
    fn switches_are_told_from_what_compilers_do() {
        for code in [
            &[0x48, 0x89, 0xF4, 0x41][..],   // mov %rsi,%rsp
            &[0x90, 0x48, 0x89, 0xFC, 0x5D], // mov %rdi,%rsp
            &[0x48, 0x8B, 0x26, 0x5D],       // mov (%rsi),%rsp
            &[0x48, 0x8B, 0x62, 0x08],       // mov 8(%rdx),%rsp
            &[0x49, 0x8B, 0x20, 0x5D],       // mov (%r8),%rsp
            &[0x4C, 0x89, 0xC4, 0xFF],       // mov %r8,%rsp
        ] {
            assert!(switches(code), "{code:x?}");
        }
        for code in [
            &[0x48, 0x89, 0xEC, 0x5D][..],   // mov %rbp,%rsp
            &[0x48, 0x89, 0xDC, 0x5D],       // mov %rbx,%rsp
            &[0x4C, 0x89, 0xE4, 0x5D],       // mov %r12,%rsp
            &[0x48, 0x8B, 0x65, 0xC0],       // mov -64(%rbp),%rsp
            &[0x48, 0x8B, 0x64, 0x24, 0x08], // mov 8(%rsp),%rsp
            &[0x48, 0x89, 0xE6, 0x90],       // mov %rsp,%rsi
            &[0x48, 0x8B, 0x06],
            &[],
        ] {
            assert!(!switches(code), "{code:x?}");
        }
    }
}
