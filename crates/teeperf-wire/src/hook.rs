//! Binary interface between the **stub**, a small object linked into every hooked module,
//! and the **runtime**, of which one is active in a process. The two may come from different
//! versions of teeperf: a program built long ago may meet today's preloaded runtime. So what
//! stands here never changes under one [`VERSION`]; a runtime leaves a module that speaks
//! another version switched off.
//!
//! All offsets are bytes. The **module block** lies in the module's zeroed data and says
//! whether its hooks are on. Beside it are two pages. The **gate** is one that the runtime
//! asks the kernel to wipe on fork: then no address has a site, so that after any kind of
//! fork the first hook meets the runtime. The **clock** is one that the runtime replaces by the
//! recorder's clock page ([`crate::shared::clock`]), so that a hook reads it without looking
//! for it. The **thread block** lies in the thread-local storage of the runtime.
//!
//! A **late hook** stands in a function's own code, put there when the compiler's work was done. It
//! compares [`gate::LATE`] with [`gate::LATE_OFF`]. Where they differ it has r11 hold the
//! function's address, keeps the flags, and calls `teeperf_late_enter` or `teeperf_late_exit` of
//! its module. These keep all registers but r11 and the flags.

/// Version of the interface.
pub const VERSION: u32 = 12;

/// The module block. The runtime writes it, [`module::MODE`] last.
pub mod module {
    /// i64: 0, hooks are off. Negative, the clock is `tick`, and this is [`TLS`]. Positive, it
    /// is `cycle`, or `tick` with [`FILTERED`], [`TIMES`] or [`STACKS`]: bits say more.
    pub const MODE: usize = 0;
    /// In a positive [`MODE`]: the counter is read when all work before it is done.
    pub const ORDERED: i64 = 1;
    /// In a positive [`MODE`]: only functions that [`FILTER`] has are recorded.
    pub const FILTERED: i64 = 2;
    /// With [`FILTERED`], [`TIMES`] or [`STACKS`]: the clock is `tick`.
    pub const TICKS: i64 = 4;
    /// In a positive [`MODE`]: the clock is `cycle`.
    pub const CYCLES: i64 = 8;
    /// In a positive [`MODE`]: events of functions that [`TIMED`] has come to the runtime, which reads the counter.
    pub const TIMES: i64 = 16;
    /// In a positive [`MODE`]: an event whose stack pointer lies outside of the thread's window ([`super::thread::STACK_LOW`])
    /// comes to the runtime.
    pub const STACKS: i64 = 32;
    /// i64: where the thread block lies relative to the thread pointer.
    pub const TLS: usize = 8;
    /// u64: lowest address that has a site.
    pub const LOW: usize = 16;
    /// u32: twice the site of the lowest address, which is its word.
    pub const FIRST_WORD: usize = 24;
    /// u32: the word of a call is this and twice the function's address, modulo 2^32.
    pub const LATE_WORD: usize = 28;
    /// u32: [`super::VERSION`] of the stub.
    pub const VERSION: usize = 32;
    /// i32: where the module's enter hook lies relative to this block.
    pub const HOOK: usize = 36;
    /// Address of the gate.
    pub const GATE: usize = 40;
    /// Address of the clock.
    pub const CLOCK: usize = 48;
    /// Address of the module's ELF header in memory, 0 when it is not loaded.
    pub const HEADER: usize = 56;
    /// Address of a map ([`crate::filter`]) of the functions that are recorded, with [`FILTERED`].
    pub const FILTER: usize = 64;
    /// Address of the bits of the functions that are timed, with [`TIMES`].
    pub const TIMED: usize = 72;
    /// Address of the `rseq_cs` (rseq(2)) of `teeperf_late_enter`. The runtime keeps it, since the
    /// kernel may look at it when the module is unloaded.
    pub const ENTER_SEQUENCE: usize = 80;
    /// Address of the first byte of the module's hooks, which stand in the section `teeperf_code`.
    pub const CODE_START: usize = 88;
    /// Address behind the last.
    pub const CODE_END: usize = 96;
    /// As [`ENTER_SEQUENCE`], of `teeperf_late_exit`.
    pub const EXIT_SEQUENCE: usize = 104;
    /// Address of a table: of these two in order, where the restartable sequence begins, its bytes,
    /// and where it goes on when it was abandoned. i32 each, places in bytes from the table.
    pub const SEQUENCES: usize = 112;
    /// As [`ENTER_SEQUENCE`], of `__cyg_profile_func_enter`, `__cyg_profile_func_exit`, and of the
    /// hooks that late ones take in place of these.
    pub const HOOK_SEQUENCES: [usize; 4] = [120, 128, 136, 144];
    /// As [`SEQUENCES`], of these four.
    pub const HOOK_TABLE: usize = 152;
    /// Bytes: three lines of a cache, the first of which hooks need always.
    pub const SIZE: usize = 192;
}

/// The gate.
pub mod gate {
    /// Size and alignment: one page.
    pub const SIZE: usize = 4096;
    /// u64: bytes from [`super::module::LOW`] on that have sites. 0 while the program has paused
    /// recording.
    pub const WINDOW: usize = 0;
    /// u32: what late hooks look at first. [`LATE_OFF`]: they do nothing. [`LATE_OUT`]: the stub
    /// does what other hooks do. [`LATE_ON`]: it writes the event's word itself
    /// ([`super::module::LATE_WORD`]).
    pub const LATE: usize = 8;
    /// In [`LATE`]: what a page that the kernel wiped holds.
    pub const LATE_OUT: u32 = 0;
    /// In [`LATE`].
    pub const LATE_OFF: u32 = 1;
    /// In [`LATE`].
    pub const LATE_ON: u32 = 2;
}

/// The part of the thread block that hooks touch.
pub mod thread {
    /// u32: what the word that hooks watch was when this thread last looked:
    /// [`crate::shared::clock::TICK`], or [`crate::shared::clock::GENERATION`].
    pub const LAST: usize = 0;
    /// u32: high half of the counter at this thread's last stamp (`cycle`).
    pub const LAST_HIGH: usize = 4;
    /// u64: address of the next word, shifted left by 16, with a count of words below it.
    /// The count goes up with the address; from [`super::FULL`] on nothing is left. A hook
    /// adds [`super::STEP`] for each word, whole for every signal handler on this thread; the
    /// value before tells it where to write, and whether it may: no other look at the chunk is
    /// needed, so nothing can change between the look and the write.
    pub const CURSOR: usize = 8;
    /// i64: where the thread's `rseq_cs` (rseq(2)) lies relative to the thread pointer, for hooks to
    /// reserve by a restartable sequence; 0, by one instruction. A hook that finds 0 in that place
    /// goes to the runtime: the kernel took the thread off its processor, or interrupted it.
    pub const RSEQ: usize = 16;
    /// u64: lowest address of the part of the stack that the thread is known to be on.
    pub const STACK_LOW: usize = 24;
    /// u64: its size.
    pub const STACK_SIZE: usize = 32;
    /// u64: as [`LAST`], of the thread's tree ([`crate::tree`]), while hooks sum calls in that; else
    /// [`SUMS_NOT`].
    pub const TREE_LAST: usize = 40;
    /// Address of the tree's memory.
    pub const TREE: usize = 48;
    /// Address of its guesses.
    pub const TREE_GUESSES: usize = 56;
    /// u32: one less than there are guesses.
    pub const TREE_MASK: usize = 64;
    /// u32: nodes that there is room for.
    pub const TREE_NODES: usize = 68;
    /// u64: the time that the tree is at.
    pub const TREE_NOW: usize = 80;
    /// u32: index of the node on top.
    pub const TREE_TOP: usize = 88;
    /// u64: not 0 while calls are not as simple as hooks take them to be.
    pub const TREE_APART: usize = 96;

    /// In [`TREE_LAST`]: it is no tick's.
    pub const SUMS_NOT: u64 = u64::MAX;
}

/// What late hooks leave in code.
pub mod late {
    /// u32, eight bytes in front of a part of a function that stands apart from its beginning.
    /// Behind it, i32: how far the function's first byte is from the four bytes of this.
    pub const PART: u32 = 0x7061_7274;
}

/// What the wrapper of `__gxx_personality_v0` has on its stack while the unwinder walks the frames that an
/// exception leaves.
pub mod unwinding {
    /// u64: the frame where the exception goes, as `_Unwind_GetCFA` has it.
    pub const TARGET: usize = 0;
    /// Address of `_Unwind_GetCFA`.
    pub const GET_CFA: usize = 8;
    /// Address of `_Unwind_GetIP`.
    pub const GET_IP: usize = 16;
    /// Address of `_Unwind_FindEnclosingFunction`.
    pub const FIND_FUNCTION: usize = 24;
    /// Address of the module block.
    pub const BLOCK: usize = 32;
    /// Bytes.
    pub const SIZE: usize = 40;
}

/// Count in the low 16 bits of a cursor from which on the chunk is full.
pub const FULL: u64 = 0x8000;
/// What one word adds to a cursor.
pub const STEP: u64 = 4 << 16 | 1;

/// Stands before the place where an abandoned restartable sequence goes on (glibc's `RSEQ_SIG` for
/// x86).
pub const RSEQ_SIGNATURE: u32 = 0x5305_3053;
/// How far ahead of a store hooks ask for its line, bytes: of 512, 1024, 2048 and 4096 the cheapest
/// where two cores share no cache but the last.
pub const TICK_AHEAD: usize = 2048;

/// The interface that hooks announce in this code, in stripped files too: `lea rdi, [rip + teeperf_module]`, then
/// a store of its number (teeperf-stub/src/x86_64/module.rs).
pub fn announced(code: &[u8]) -> Option<u32> {
    const LOAD: [u8; 3] = [0x48, 0x8d, 0x3d];
    const STORE: [u8; 3] = [0xc7, 0x47, module::VERSION as u8];
    // The block's address in between.
    const BETWEEN: usize = 4;
    let places = code.windows(LOAD.len()).enumerate().filter(|(_, bytes)| *bytes == LOAD);
    let mut found = places.filter_map(|(at, _)| {
        let store = code.get(at + LOAD.len() + BETWEEN..)?;
        let number = store.strip_prefix(&STORE)?.first_chunk()?;
        Some(u32::from_le_bytes(*number))
    });
    // No interface had a number like this; any code may look like it.
    found.find(|number| (1..1 << 16).contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_announce_themselves() {
        let announces = [
            &[0x90, 0x48, 0x8d, 0x3d, 1, 2, 3, 4, 0xc7, 0x47, 0x20, 5, 0, 0, 0][..],
            &[0x48, 0x8d, 0x0d],
        ]
        .concat();
        assert_eq!(announced(&announces), Some(5));
        for cut in 0..15 {
            assert_eq!(announced(&announces[..cut]), None, "{cut}");
        }
        let mut other = announces;
        other[14] = 1;
        assert_eq!(announced(&other), None);
    }
}
