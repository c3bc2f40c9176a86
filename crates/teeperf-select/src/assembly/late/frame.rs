//! A function's frame, line by line, as its unwind information tells it.

use super::super::text::operands;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Frame {
    /// Nothing outside of a function, or where it has no unwind information.
    now: Option<Place>,
    remembered: Vec<Place>,
}

/// Where the caller's frame is said to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    /// So many bytes above the stack pointer; nothing where it is told otherwise.
    above_stack: Option<i64>,
    offset: i64,
}

impl Place {
    /// Where a function begins, with its return address on the stack.
    const BARE: Self = Self { above_stack: Some(8), offset: 8 };

    fn at(is_stack: bool, offset: i64) -> Self {
        Self { above_stack: is_stack.then_some(offset), offset }
    }
}

impl Frame {
    pub(super) fn is_told(&self) -> bool {
        self.now.is_some()
    }

    /// Whether it is as it was where the function began.
    pub(super) fn is_bare(&self) -> Option<bool> {
        self.now.map(|now| now.above_stack == Some(8))
    }

    /// After a directive. Gives the register that it says is kept somewhere, as it names it.
    pub(super) fn step<'a>(&mut self, name: &str, rest: &'a str) -> Option<&'a str> {
        if name == ".cfi_startproc" {
            *self = Self { now: Some(Place::BARE), remembered: Vec::new() };
            return None;
        }
        if name == ".cfi_endproc" {
            *self = Self::default();
        }
        let now = self.now?;
        let mut words = operands(rest);
        let first = words.next().unwrap_or("");
        let number = |text: &str| text.parse().unwrap_or(i64::MIN);
        let is_stack = |text: &str| matches!(text, "7" | "%rsp" | "rsp");
        let next = match name {
            ".cfi_def_cfa" => Place::at(is_stack(first), number(words.next().unwrap_or(""))),
            ".cfi_def_cfa_register" => Place::at(is_stack(first), now.offset),
            ".cfi_def_cfa_offset" => Place::at(now.above_stack.is_some(), number(first)),
            ".cfi_adjust_cfa_offset" => {
                let offset = now.offset.wrapping_add(number(first));
                Place::at(now.above_stack.is_some(), offset)
            }
            ".cfi_remember_state" => {
                self.remembered.push(now);
                now
            }
            ".cfi_restore_state" => self.remembered.pop().unwrap_or(now),
            // DW_CFA_def_cfa_expression (DWARF 5, 6.4.2.2).
            ".cfi_escape" if matches!(first, "0xf" | "0x0f") => Place::at(false, now.offset),
            // DW_CFA_expression: of a register.
            ".cfi_escape" if first == "0x10" => return words.next(),
            ".cfi_offset" | ".cfi_rel_offset" | ".cfi_register" => return Some(first),
            _ => now,
        };
        self.now = Some(next);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_bare_where_a_function_begins_and_ends() {
        let mut frame = Frame::default();
        assert_eq!(frame.is_bare(), None);
        let mut bare = |text: &str| {
            let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
            frame.step(name, rest);
            frame.is_bare()
        };
        assert_eq!(bare(".cfi_startproc"), Some(true));
        assert_eq!(bare(".cfi_def_cfa_offset 16"), Some(false));
        assert_eq!(bare(".cfi_offset 6, -16"), Some(false));
        assert_eq!(bare(".cfi_remember_state"), Some(false));
        assert_eq!(bare(".cfi_adjust_cfa_offset -8"), Some(true));
        assert_eq!(bare(".cfi_restore_state"), Some(false));
        assert_eq!(bare(".cfi_def_cfa_register %rbp"), Some(false));
        assert_eq!(bare(".cfi_def_cfa_offset 8"), Some(false));
        assert_eq!(bare(".cfi_def_cfa 7, 8"), Some(true));
        assert_eq!(bare(".cfi_escape 0xf,0x3,0x76,0x58,0x6"), Some(false));
        assert_eq!(bare(".cfi_endproc"), None);
    }

    #[test]
    fn registers_that_are_kept() {
        let mut frame = Frame::default();
        frame.step(".cfi_startproc", "");
        assert_eq!(frame.step(".cfi_offset", "%rbx, -16"), Some("%rbx"));
        assert_eq!(frame.step(".cfi_escape", "0x10,0x6,0x2,0x76,0"), Some("0x6"));
        assert_eq!(frame.step(".cfi_escape", "0x2e,0x10"), None);
    }
}
