//! The ends of a function's code: calls behind which nothing comes but the exit hook (Intel's manual, volume 2).

/// Most instructions between a call and the return.
const MOST: usize = 48;
/// Registers by number: what returns a value, and those that a call may change (System V ABI, AMD64).
const RAX: u8 = 0;
const RSP: u8 = 4;
const RBP: u8 = 5;
const CHANGED: [u8; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];

/// What a call in tail position calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Called {
    /// What stands at this address.
    To(u64),
    /// What a register or memory has the address of.
    Pointer,
}

/// A function's code.
pub(super) struct Ends<'a> {
    pub(super) code: &'a [u8],
    /// Its address.
    pub(super) start: u64,
    /// The address of the exit hook.
    pub(super) hook: u64,
}

/// What the code behind a call does.
#[derive(Clone, Copy)]
enum Step {
    /// Copies one register to another.
    Copy {
        from: u8,
        to: u8,
    },
    /// Gives a register another value.
    Set(u8),
    /// Keeps a register in this place on the stack.
    Keep {
        from: u8,
        place: u8,
    },
    /// Gives it from there.
    Give {
        to: u8,
        place: u8,
    },
    /// Neither changes registers that matter, nor goes elsewhere.
    Pass,
    /// Goes on there.
    Jump(u64),
    /// Calls this.
    Call(u64),
    Return,
}

impl Ends<'_> {
    /// What is called last, with the function's result as its own.
    pub(super) fn calls(&self) -> Vec<Called> {
        if self.lends_stack() {
            return Vec::new();
        }
        let starts = 0..self.code.len();
        let calls = starts.filter_map(|at| {
            let (called, length) = self.call(at)?;
            (called != Called::To(self.hook) && self.ends(at + length)).then_some(called)
        });
        calls.collect()
    }

    /// `call rel32`, or through a register or memory, but for a slot of the global offset table, which leads to another module.
    fn call(&self, at: usize) -> Option<(Called, usize)> {
        match *self.code.get(at..)? {
            [0xE8, ..] => Some((Called::To(self.target(at + 1, 4)?), 5)),
            [0xFF, modrm, ..] if modrm >> 3 & 7 == 2 && modrm & 0xC7 != 0x05 => {
                Some((Called::Pointer, 1 + operand(&self.code[at + 1..])?))
            }
            _ => None,
        }
    }

    /// Whether an address on the stack is made: `lea` from the stack pointer or a frame pointer, or a copy of the stack pointer.
    fn lends_stack(&self) -> bool {
        const FRAME: [u8; 4] = [0x55, 0x48, 0x89, 0xE5];
        let has_frame = self.code.windows(FRAME.len()).take(16).any(|bytes| bytes == FRAME);
        self.code.windows(4).any(|bytes| match *bytes {
            [0x48 | 0x4C, 0x8D, modrm, sib] if modrm >> 6 == 1 || modrm >> 6 == 2 => {
                let to_stack = bytes[0] == 0x48 && modrm >> 3 & 7 == RSP;
                let from_stack = modrm & 7 == RSP && sib & 7 == RSP;
                !to_stack && (from_stack || has_frame && modrm & 7 == RBP)
            }
            [0x48 | 0x4C, 0x8D, modrm, sib] => modrm & 0xC7 == RSP && sib & 7 == RSP,
            // Into a frame pointer it is none.
            [0x48, 0x89, modrm, _] => modrm & 0xF8 == 0xE0 && modrm & 7 != RBP,
            [0x49, 0x89, modrm, _] => modrm & 0xF8 == 0xE0,
            _ => false,
        })
    }

    /// Whether the function ends from here on with the result of the call before.
    fn ends(&self, mut at: usize) -> bool {
        // Registers that hold the result, by bit.
        let mut result: u16 = 1 << RAX;
        // Places on the stack that do.
        let mut kept: Vec<u8> = Vec::new();
        let mut is_hooked = false;
        let mut is_set = false;
        for _ in 0..MOST {
            let Some((step, length)) = self.step(at) else { return false };
            at += length;
            match step {
                Step::Pass => {}
                Step::Copy { from, to } => {
                    is_set |= is_hooked && to == RAX;
                    let has = result >> from & 1;
                    result = result & !(1 << to) | has << to;
                }
                Step::Keep { from, place } => {
                    kept.retain(|&other| other != place);
                    if result >> from & 1 == 1 {
                        kept.push(place);
                    }
                }
                Step::Give { to, place } => {
                    is_set |= is_hooked && to == RAX;
                    let has = u16::from(kept.contains(&place));
                    result = result & !(1 << to) | has << to;
                }
                Step::Set(to) => {
                    is_set |= is_hooked && to == RAX;
                    result &= !(1 << to);
                }
                Step::Jump(to) if to == self.hook => return !is_hooked,
                Step::Jump(to) => match self.inside(to) {
                    Some(place) => at = place,
                    None => return false,
                },
                Step::Call(to) if to == self.hook && !is_hooked => {
                    is_hooked = true;
                    CHANGED.iter().for_each(|register| result &= !(1 << register));
                }
                Step::Call(_) => return false,
                // Where nothing sets it, the function returns no value.
                Step::Return => return is_hooked && (!is_set || result & 1 << RAX != 0),
            }
        }
        false
    }

    /// The instruction there, and its length; nothing for one that a function's end does not have.
    fn step(&self, at: usize) -> Option<(Step, usize)> {
        let bytes = self.code.get(at..)?;
        let (rex, opcode) = match *bytes.first()? {
            rex @ 0x40..=0x4F => (rex, &bytes[1..]),
            _ => (0, bytes),
        };
        let before = bytes.len() - opcode.len();
        let wide = (rex & 1) << 3;
        let (step, length) = match *opcode {
            [0xC3, ..] => (Step::Return, 1),
            [0xC9 | 0x90, ..] => (Step::Pass, 1),
            [pop @ 0x58..=0x5F, ..] => (Step::Set(pop & 7 | wide), 1),
            [0xEB, ..] => (Step::Jump(self.target(at + before + 1, 1)?), 2),
            [0xE9, ..] => (Step::Jump(self.target(at + before + 1, 4)?), 5),
            [0xE8, ..] => (Step::Call(self.target(at + before + 1, 4)?), 5),
            // Of constants the hook's arguments alone: %edi, %esi.
            [0xBE | 0xBF, ..] if rex == 0 => (Step::Pass, 5),
            [0x83, 0xC4, ..] if rex == 0x48 => (Step::Pass, 3),
            [0x81, 0xC4, ..] if rex == 0x48 => (Step::Pass, 6),
            [0xC7, 0xC6 | 0xC7, ..] if rex == 0x48 => (Step::Pass, 6),
            [0x89, modrm, ..] if modrm >> 6 == 3 => {
                let from = modrm >> 3 & 7 | (rex & 4) << 1;
                (Step::Copy { from, to: modrm & 7 | wide }, 2)
            }
            [0x8B, modrm, ..] if modrm >> 6 == 3 => {
                let to = modrm >> 3 & 7 | (rex & 4) << 1;
                (Step::Copy { from: modrm & 7 | wide, to }, 2)
            }
            // To the stack, and from it.
            [kind @ (0x89 | 0x8B), modrm, 0x24, place, ..] if modrm & 0xC7 == 0x44 => {
                let register = modrm >> 3 & 7 | (rex & 4) << 1;
                match kind {
                    0x89 => (Step::Keep { from: register, place }, 4),
                    _ => (Step::Give { to: register, place }, 4),
                }
            }
            // A load, or an address, such as the function's own for the hook.
            [0x8B | 0x8D, modrm, ..] => {
                let to = modrm >> 3 & 7 | (rex & 4) << 1;
                (Step::Set(to), 1 + operand(&opcode[1..])?)
            }
            [0x0F, 0x1F, ..] => (Step::Pass, 2 + operand(&opcode[2..])?),
            // A result in a vector register, kept on the stack: movups, movaps.
            [0x0F, 0x10 | 0x11 | 0x28 | 0x29, ..] => (Step::Pass, 2 + operand(&opcode[2..])?),
            // A result in a vector register, kept in another: movq.
            [0x0F, 0x6E, modrm, ..] if modrm >> 6 == 3 => (Step::Pass, 3),
            [0x0F, 0x7E, modrm, ..] if modrm >> 6 == 3 => (Step::Set(modrm & 7 | wide), 3),
            // The same with a prefix, and longer forms of what does nothing.
            [0x66 | 0xF2 | 0xF3 | 0x2E, ..] if rex == 0 => {
                let (step, length) = self.step(at + 1)?;
                (step, 1 + length)
            }
            // vzeroupper
            [0xC5, 0xF8, 0x77, ..] if rex == 0 => (Step::Pass, 3),
            _ => return None,
        };
        (before + length <= bytes.len()).then_some((step, before + length))
    }

    /// Where a distance leads that stands there, in so many bytes, which are the instruction's last.
    fn target(&self, at: usize, size: usize) -> Option<u64> {
        let bytes = self.code.get(at..at + size)?;
        let distance = match *bytes {
            [a] => i64::from(a.cast_signed()),
            [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
            _ => return None,
        };
        Some(self.start.wrapping_add((at + size) as u64).wrapping_add_signed(distance))
    }

    /// The place of an address in this code.
    fn inside(&self, address: u64) -> Option<usize> {
        let place = usize::try_from(address.checked_sub(self.start)?).ok()?;
        (place < self.code.len()).then_some(place)
    }
}

/// Bytes of an operand: ModR/M, SIB and displacement (volume 2, 2.1.5).
fn operand(bytes: &[u8]) -> Option<usize> {
    let modrm = *bytes.first()?;
    let (kind, base) = (modrm >> 6, modrm & 7);
    if kind == 3 {
        return Some(1);
    }
    let (sib, base) = match base {
        RSP => (1, bytes.get(1)? & 7),
        _ => (0, base),
    };
    let displacement = match kind {
        0 if base == RBP => 4,
        0 => 0,
        1 => 1,
        _ => 4,
    };
    Some(1 + sib + displacement)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START: u64 = 0x1000;
    const HOOK: u64 = 0x2000;

    fn calls(code: &[u8]) -> Vec<Called> {
        Ends { code, start: START, hook: HOOK }.calls()
    }

    /// The pieces, with a call or jump of the hook for each empty one.
    fn with_hook(opcode: u8, pieces: &[&[u8]]) -> Vec<u8> {
        let mut code = Vec::new();
        for piece in pieces {
            if piece.is_empty() {
                let next = START + code.len() as u64 + 5;
                code.push(opcode);
                code.extend(((HOOK - next) as u32).to_le_bytes());
            }
            code.extend(*piece);
        }
        code
    }

    const THROUGH_TABLE: &[u8] = &[0xFF, 0x14, 0xC8];
    const KEEP: &[u8] = &[0x48, 0x89, 0xC3];
    const GIVE: &[u8] = &[0x48, 0x89, 0xD8];

    #[test]
    fn ends_of_each_form() {
        let found = |pieces: &[&[u8]]| calls(&with_hook(0xE8, pieces));
        // gcc: mov 0x28(%rsp),%rsi; mov %r13,%rdi; mov %rax,%rbx; hook; add $8,%rsp; mov %rbx,%rax; pop %rbx; ret
        let arguments = &[0x48, 0x8B, 0x74, 0x24, 0x28, 0x4C, 0x89, 0xEF];
        let rest = &[0x48, 0x83, 0xC4, 8];
        let end = &[0x5B, 0x41, 0x5C, 0xC3];
        assert_eq!(
            found(&[THROUGH_TABLE, arguments, KEEP, &[], rest, GIVE, end]),
            [Called::Pointer]
        );
        // A function without a result, whose hook is jumped to.
        let jumps = with_hook(0xE9, &[&[0xFF, 0xD0], arguments, &[0x5B], &[]]);
        assert_eq!(calls(&jumps), [Called::Pointer]);
        // Itself, then a jump back to a common end.
        let own = with_hook(
            0xE8,
            &[GIVE, &[], GIVE, &[0x5B, 0xC3], &[0xE8, 0xEE, 0xFF, 0xFF, 0xFF], KEEP, &[0xEB, 0xEC]],
        );
        assert_eq!(calls(&own), [Called::To(START)]);
        // gcc -Os: mov %rax,8(%rsp); hook; mov 8(%rsp),%rax.
        let (kept, given) = (&[0x48, 0x89, 0x44, 0x24, 8], &[0x48, 0x8B, 0x44, 0x24, 8]);
        assert_eq!(found(&[THROUGH_TABLE, kept, &[], given, &[0xC3]]), [Called::Pointer]);
        // A double: movq %xmm0,%r14; hook; movq %r14,%xmm0.
        let (kept, given) = (&[0x66, 0x49, 0x0F, 0x7E, 0xC6], &[0x66, 0x49, 0x0F, 0x6E, 0xC6]);
        assert_eq!(found(&[THROUGH_TABLE, kept, &[], given, &[0xC3]]), [Called::Pointer]);
        // A double: movsd %xmm0,8(%rsp); hook; movsd 8(%rsp),%xmm0.
        let (kept, given) =
            (&[0xF2, 0x0F, 0x11, 0x44, 0x24, 8], &[0xF2, 0x0F, 0x10, 0x44, 0x24, 8]);
        assert_eq!(found(&[&[0x41, 0xFF, 0xD4], kept, &[], given, &[0xC3]]), [Called::Pointer]);
    }

    #[test]
    fn what_is_no_end() {
        let found = |pieces: &[&[u8]]| calls(&with_hook(0xE8, pieces));
        for (pieces, why) in [
            (&[THROUGH_TABLE, KEEP, &[], &[0x48, 0x89, 0xE8], &[0xC3]][..], "another value"),
            (&[THROUGH_TABLE, KEEP, &[0x83, 0xC3, 1], &[], GIVE, &[0xC3]], "a sum"),
            (&[THROUGH_TABLE, KEEP, &[], &[], GIVE, &[0xC3]], "two hooks"),
            (
                &[THROUGH_TABLE, KEEP, &[], &[0x48, 0x8B, 0x44, 0x24, 8], &[0xC3]],
                "what the stack had",
            ),
            (&[&[0x48, 0x89, 0xE7], THROUGH_TABLE, KEEP, &[], GIVE, &[0xC3]], "the stack itself"),
            (&[THROUGH_TABLE, KEEP, GIVE, &[0xC3]], "no hook"),
            (&[THROUGH_TABLE, KEEP, &[], GIVE], "no return"),
            (&[THROUGH_TABLE, KEEP, &[0xEB, 0xFE]], "a loop"),
            (&[&[0xFF, 0x15, 0, 1, 0, 0], KEEP, &[], GIVE, &[0xC3]], "another module's"),
            (
                &[&[0x48, 0x8D, 0x7C, 0x24, 8], THROUGH_TABLE, KEEP, &[], GIVE, &[0xC3]],
                "what the stack holds",
            ),
            (
                &[
                    &[0x55, 0x48, 0x89, 0xE5, 0x48, 0x8D, 0x7D, 0xF8],
                    THROUGH_TABLE,
                    KEEP,
                    &[],
                    GIVE,
                    &[0xC3],
                ],
                "what the frame holds",
            ),
        ] {
            assert_eq!(found(pieces), [], "{why}");
        }
        // Without a frame pointer that register is like others.
        let code = [&[0x48, 0x8D, 0x7D, 0xFF][..], THROUGH_TABLE, KEEP, &[], GIVE, &[0xC3]];
        assert_eq!(found(&code), [Called::Pointer]);
    }

    proptest! {
        #[test]
        fn any_code_has_an_answer(code in proptest::collection::vec(any::<u8>(), 0..200), start: u64, hook: u64) {
            let found = Ends { code: &code, start, hook }.calls();
            prop_assert!(found.len() <= code.len());
        }
    }
}
