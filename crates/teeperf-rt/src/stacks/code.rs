//! Whether code switches stacks by itself: whether it loads the stack pointer from memory, or from
//! a register in which functions have arguments and results, or exchanges it. What compilers make
//! of functions does that from their own frame, or from a register that keeps its value over calls.
//! (The C library does so in `longjmp`: of a static program that is part.) Decides nothing but
//! whether hooks look at the stack pointer.

use super::{MODE, UNWATCHED, WATCHED};
use crate::elf::Image;
use crate::maps;
use core::sync::atomic::Ordering::Relaxed;

/// Most code of a hooked module that is looked through, which takes a millisecond or two.
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

/// Whether one of these instructions is there. A program that is executed again and again has its code looked
/// through each time, so the places that cannot have one are passed over many at once.
fn switches(code: &[u8]) -> bool {
    let mut at = 0;
    while let Some(places) = code.get(at..).and_then(<[u8]>::first_chunk) {
        if has_candidates(places) && (at..at + PLACES).any(|at| is_switch_at(code, at)) {
            return true;
        }
        at += PLACES;
    }
    (at..code.len()).any(|at| is_switch_at(code, at))
}

fn is_switch_at(code: &[u8], at: usize) -> bool {
    let bytes = code.get(at..).and_then(<[u8]>::first_chunk);
    bytes.is_some_and(|bytes| is_switch(bytes) && !is_displacement(code, at, *bytes))
}

/// Whether these bytes are how far a call or jump goes within the code, or how far away a global
/// lies: programs of some megabytes have some that look like a change of the stack pointer.
fn is_displacement(code: &[u8], at: usize, bytes: [u8; 4]) -> bool {
    let distance = i32::from_le_bytes(bytes) as isize;
    let target = at.wrapping_add(bytes.len()).wrapping_add_signed(distance);
    let is_global_near = matches!(bytes[3], 0 | 0xFF);
    match code.get(..at) {
        // CALL, JMP, Jcc (0F 80 to 0F 8F).
        Some([.., 0xE8 | 0xE9] | [.., 0x0F, 0x80..=0x8F]) => target < code.len(),
        // ModRM of an operand of which a global is the place.
        Some([.., operands]) => operands & 0xC7 == 0x05 && is_global_near,
        _ => false,
    }
}

const PLACES: usize = 32;

/// Whether prefix, opcode and register are those of a change of the stack pointer in one of the
/// first places. Without branches and in bytes alone: of that the compiler makes vectors, which
/// take a tenth of the time.
fn has_candidates(bytes: &[u8; PLACES + 2]) -> bool {
    let mut any = 0;
    for at in 0..PLACES {
        let (prefix, opcode, operands) = (bytes[at], bytes[at + 1], bytes[at + 2]);
        // Of each, no bit where it is one.
        let load = (opcode ^ 0x8B) | (operands & 0x38 ^ 0x20) | (prefix & 0xFE ^ 0x48);
        let copy = (opcode ^ 0x89) | (operands & 0xC7 ^ 0xC4) | (prefix & 0xFB ^ 0x48);
        let of_either = (operands & 0xF8 ^ 0xE0).min(operands & 0xC7 ^ 0xC4);
        let exchange = (opcode ^ 0x87) | (prefix & 0xFA ^ 0x48) | of_either;
        any |= u8::from(load == 0) | u8::from(copy == 0) | u8::from(exchange == 0);
    }
    any != 0
}

/// Intel SDM 2A and 2B. MOV: `REX 8B /4` loads rsp, `REX 89` with rsp as the other operand too.
/// XCHG: `REX 87` with rsp as either operand. (POP of rsp is a byte that is found everywhere.)
fn is_switch(&[rex, opcode, operands, base]: &[u8; 4]) -> bool {
    const RSP: u8 = 4;
    const RBP: u8 = 5;
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
        (0x48, 0x87) if register == RSP => form == 3 && matches!(other, 0..=2 | 6 | 7),
        (0x48, 0x89 | 0x87) => form == 3 && other == RSP && matches!(register, 0..=2 | 6 | 7),
        (0x4C, 0x89 | 0x87) => form == 3 && other == RSP && register < 4,
        (0x49, 0x87) => form == 3 && register == RSP && other < 4,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{is_switch_at, switches};

    #[test]
    fn switches_are_told_from_what_compilers_do() {
        for code in [
            &[0x48, 0x89, 0xF4, 0x41][..],   // mov %rsi,%rsp
            &[0x90, 0x48, 0x89, 0xFC, 0x5D], // mov %rdi,%rsp
            &[0x48, 0x8B, 0x26, 0x5D],       // mov (%rsi),%rsp
            &[0x48, 0x8B, 0x62, 0x08],       // mov 8(%rdx),%rsp
            &[0x49, 0x8B, 0x20, 0x5D],       // mov (%r8),%rsp
            &[0x4C, 0x89, 0xC4, 0xFF],       // mov %r8,%rsp
            &[0x48, 0x87, 0xF4, 0xC3],       // xchg %rsi,%rsp
            &[0x48, 0x87, 0xE6, 0xC3],       // xchg %rsp,%rsi
            &[0x4C, 0x87, 0xC4, 0xC3],       // xchg %r8,%rsp
            &[0x49, 0x87, 0xE0, 0xC3],       // xchg %rsp,%r8
            &[0xE8, 0x48, 0x89, 0xFC, 0xC3], // one behind mov %rbp,%rax
            &[0xE8, 0x48, 0x89, 0xD4, 0xFF], // between that and jmp *%rcx
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
            &[0x48, 0x87, 0x07, 0xC3],       // xchg %rax,(%rdi)
            &[0x48, 0x87, 0xF7, 0xC3],       // xchg %rsi,%rdi
            &[0x48, 0x87, 0xDC, 0x5D],       // xchg %rbx,%rsp
            &[0x48, 0x8B, 0x06],
            &[],
            &[0x48, 0x8D, 0x3D, 0x48, 0x8B, 0x23, 0x00], // lea 0x238b48(%rip),%rdi
        ] {
            assert!(!switches(code), "{code:x?}");
        }
    }

    /// Of postgres, cmake and python3.11 of Debian 12.
    #[test]
    fn how_far_calls_go_is_no_switch() {
        const END: usize = if cfg!(miri) { 64 } else { 4 << 20 };
        for (bytes, is_far) in [
            (&[0xE8, 0x48, 0x89, 0xFC, 0xFF][..], true),
            (&[0xE9, 0x49, 0x8B, 0x22, 0x00], true),
            (&[0x0F, 0x84, 0x48, 0x8B, 0xE0, 0xFF], true),
            (&[0x0F, 0x44, 0x48, 0x8B, 0xE0, 0xFF], false),
        ] {
            for at in [16, END / 2, END - 16] {
                let mut code = vec![0x90; END];
                code[at..at + bytes.len()].copy_from_slice(bytes);
                let low = &bytes[bytes.len() - 4..];
                let distance = i64::from(i32::from_le_bytes(low.try_into().unwrap()));
                let target = (at + bytes.len()) as i64 + distance;
                let is_call = is_far && (0..END as i64).contains(&target);
                assert_eq!(switches(&code), !is_call, "{bytes:x?} at {at}");
            }
        }
    }

    /// Of code of any length, with the instruction at any place.
    #[test]
    fn switches_are_found_at_every_place() {
        // Miri looks at every access, and the code of other lengths is the same.
        let (end, step) = if cfg!(miri) { (40, 7) } else { (80, 1) };
        for length in (4..end).step_by(step) {
            for at in 0..length - 3 {
                let mut code = vec![0x48; length];
                code[at..at + 4].copy_from_slice(&[0x49, 0x8B, 0x20, 0x5D]);
                assert!(switches(&code), "{at} of {length}");
                code[at + 2] = 0xE0;
                assert!(!switches(&code), "{at} of {length}");
            }
        }
    }

    /// Guards: no instruction is passed over where many places are looked at together.
    #[test]
    fn many_places_at_once_are_as_each_alone() {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as usize
        };
        for _ in 0..if cfg!(miri) { 20 } else { 20_000 } {
            let likely =
                [0x48, 0x49, 0x4C, 0x8B, 0x89, 0x87, 0x20, 0x24, 0x65, 0xC4, 0xE0, 0xF4, 0x04];
            let code: Vec<u8> = (0..next() % 64).map(|_| likely[next() % likely.len()]).collect();
            let each = (0..code.len()).any(|at| is_switch_at(&code, at));
            assert_eq!(switches(&code), each, "{code:x?}");
        }
    }
}
