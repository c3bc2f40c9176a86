//! Instructions of hooks that stand in a function's own code: those that late hooks put there
//! (`teeperf-select/src/assembly/late/write.rs`), and calls of hooks.

use super::late::{COMPARISON, looks_at, relative};

/// Bytes of `leaq function(%rip), %r11`, and of a call or jump.
const ADDRESS: usize = 7;
const CALL: usize = 5;
/// Bytes of the branch behind a comparison, to a place nearby and to one that is not.
const BRANCH: usize = 2;
const FAR_BRANCH: usize = 6;
const PAGE: usize = 4096;

/// Whether a thread that was interrupted at `address` spent its time in a hook. `gate` is the
/// address of the word that late hooks compare, and `is_hook` knows addresses of hooks that are
/// functions.
///
/// A processor is interrupted behind the instruction that took the time: the oldest one that had
/// not ended. So a hook's comparison stands for the instruction before it, and what follows a hook
/// for the hook; a call of a hook that a compiler wrote stands for the code before it as well. The
/// branch stands for the comparison, which waits for nothing: its value is known by then. Where it
/// took time, the processor fetched the function's own code, as behind a jump that it had not
/// foreseen.
///
/// # Safety
///
/// There is an instruction of a module with hooks, whose code can be read.
pub(crate) unsafe fn is_of_hook(
    address: usize,
    gate: usize,
    is_hook: impl Fn(usize) -> bool,
) -> bool {
    // Another page may not be there, or not have code.
    let (page, offset) = (address & !(PAGE - 1), address % PAGE);
    // SAFETY: on the page of an instruction that is read.
    let page = unsafe { &*(page as *const [u8; PAGE]) };
    let (before, from) = page.split_at(offset);
    let calls = |at: usize, code: &[u8]| match *code {
        [0xe8 | 0xe9, a, b, c, d, ..] => is_hook(relative(at + CALL, [a, b, c, d])),
        _ => false,
    };
    let looks = |before: usize| {
        let look = offset.checked_sub(before).and_then(|start| page.get(start..));
        look.is_some_and(|code| looks_at(address - before, code, gate))
    };
    let is_behind_branch = match before {
        [.., 0x75, _] => looks(COMPARISON + BRANCH),
        [.., 0x0f, 0x85, _, _, _, _] => looks(COMPARISON + FAR_BRANCH),
        _ => false,
    };
    let is_behind_call = match before {
        [.., 0xe8, a, b, c, d] => is_hook(relative(address, [*a, *b, *c, *d])),
        _ => false,
    };
    // A tail loads the function's address. Compilers' arguments of a call are the function's code.
    let is_of_tail = match (before, from) {
        (_, [0x4c, 0x8d, 0x1d, _, _, _, _, call @ ..]) => calls(address + ADDRESS, call),
        ([.., 0x4c, 0x8d, 0x1d, _, _, _, _], call) => calls(address, call),
        _ => false,
    };
    is_behind_branch || is_behind_call || is_of_tail
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code on a page of its own, from its middle on, and the addresses of its instructions.
    #[repr(align(4096))]
    struct Page([u8; PAGE]);

    fn told(code: &[&[u8]], gate: isize, hook: isize) -> Vec<bool> {
        let mut page = Box::new(Page([0x90; PAGE]));
        let (mut at, mut starts) = (PAGE / 2, Vec::new());
        for instruction in code {
            starts.push(at);
            page.0[at..][..instruction.len()].copy_from_slice(instruction);
            at += instruction.len();
        }
        let base = page.0.as_ptr() as usize;
        let begin = base + PAGE / 2;
        let [gate, hook] = [gate, hook].map(|offset| begin.wrapping_add_signed(offset));
        // SAFETY: these are bytes of the page.
        let is_it = |at| unsafe { is_of_hook(base + at, gate, |target| target == hook) };
        starts.into_iter().map(is_it).collect()
    }

    #[test]
    fn instructions_of_late_hooks_are_known() {
        let compare = [0x83, 0x3d, 0xf9, 0x0f, 0, 0, 1];
        let code: [&[u8]; 13] = [
            &compare,
            &[0x75, 0x10],
            &[0x48, 0x89, 0xf8],
            &[0x4c, 0x8d, 0x1d, 0, 0, 0, 0],
            &[0xe8, 0xe8, 0x1f, 0, 0],
            &[0xeb, 0xf0],
            &[0x4c, 0x8d, 0x1d, 0, 0, 0, 0],
            &[0xe9, 0xda, 0x1f, 0, 0],
            &[0xe8, 0, 0, 0, 0],
            &[0xe9, 0, 0, 0, 0],
            &[0xc3],
            &[0xe8, 0xca, 0x1f, 0, 0],
            &[0xc3],
        ];
        // The gate is 0x1000 behind the first instruction, and the hook 0x2000.
        let known =
            [false, false, true, true, true, true, true, true, false, false, false, false, true];
        assert_eq!(told(&code, 0x1000, 0x2000), known);
        assert_eq!(told(&code, 0x1004, 0x2004), [false; 13]);
    }

    #[test]
    fn a_pages_ends_are_looked_at_no_further() {
        let page = Box::new(Page([0xe8; PAGE]));
        let base = page.0.as_ptr() as usize;
        // A call in front would be whole at 5, and one behind has no address in front of it.
        for (at, expected) in [(0, false), (4, false), (5, true), (PAGE - 1, true)] {
            // SAFETY: these are bytes of the page.
            assert_eq!(unsafe { is_of_hook(base + at, 0, |_| true) }, expected, "{at}");
        }
    }
}
