//! Whether a function is a naked one: its code is by hand, and so is its convention. Nothing in the
//! assembly says so; its lines tell.

use super::super::instruction::{Flow, flow};
use super::super::text::Line;
use super::super::values::is_local;
use super::part::stands_first;

/// Parts of symbols that only counters and checks name, as compilers put them even into naked
/// functions: gcc's `-fstack-protector-all`, and `--coverage` and profiles of both.
const OF_CHECKS: [&str; 5] =
    ["_gcov", "__prof", "__llvm_prof", "__stack_chk_fail", "__sanitizer_cov"];

/// A function's code, as far as it tells a naked function.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Code {
    /// The compiler wrote some of it.
    is_compiled: bool,
    /// The compiler wrote a return, or a jump to another function.
    leaves: bool,
    /// The compiler wrote a frame.
    has_frame: bool,
    /// The compiler wrote counters or checks.
    is_checked: bool,
    /// Assembly in the source returns, or jumps.
    leaves_by_hand: bool,
}

impl Code {
    /// Takes the next line, which is not the mark.
    pub(super) fn step(&mut self, line: Line<'_>) {
        match line {
            Line::Instruction(mnemonic, rest) => {
                self.is_compiled |= !stands_first(mnemonic, rest) && mnemonic != "ud2";
                self.leaves |= match flow(mnemonic, rest) {
                    Flow::End => mnemonic.starts_with("ret"),
                    Flow::Jump(target) | Flow::Branch(target) => !is_local(target),
                    Flow::Next | Flow::Call(_) => false,
                };
                self.has_frame |= mnemonic.starts_with("push") || rest.ends_with(", %rsp");
                self.is_checked |= OF_CHECKS.iter().any(|part| rest.contains(part));
            }
            Line::Foreign(text) => self.leaves_by_hand |= text.split(';').any(leaves),
            _ => {}
        }
    }

    /// The compiler wrote nothing, or nothing but counters and checks around assembly that leaves.
    pub(super) fn is_naked(self) -> bool {
        let is_whole = self.leaves || self.has_frame || !self.leaves_by_hand;
        !self.is_compiled || self.is_checked && !is_whole
    }
}

/// Whether a statement of assembly by hand returns or jumps.
fn leaves(statement: &str) -> bool {
    let mut words = statement.split_whitespace().skip_while(|word| word.ends_with(':'));
    words.next().is_some_and(|word| {
        ["ret", "jmp", "iret", "sysret"].iter().any(|exit| word.starts_with(exit))
    })
}
