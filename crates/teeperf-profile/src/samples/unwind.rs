//! From registers and a copy of the stack to the addresses of callers.
//!
//! By DWARF's call frame information where files have it, else by frame pointers. framehop does so for x86-64 and 64-bit
//! Arm; of other processors frame pointers alone are followed, where there is a convention for them.

use std::cell::Cell;

use framehop::aarch64::{CacheAarch64, UnwindRegsAarch64, UnwinderAarch64};
use framehop::x86_64::{CacheX86_64, Reg, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{Error, FrameAddress, Module as Tables, Unwinder};
use teeperf_symbols::Rbx;
use teeperf_wire::body::sample::{Sample, abi};

use super::module::Bytes;
use super::registers::{Callees, Registers};

/// `e_machine` of processors (ELF gABI, chapter 4).
pub(crate) mod machine {
    pub(crate) const I386: u16 = 3;
    pub(crate) const ARM: u16 = 40;
    pub(crate) const X86_64: u16 = 62;
    pub(crate) const AARCH64: u16 = 183;
    pub(crate) const RISCV: u16 = 243;

    /// That of a machine as `uname -m` names it; 0 where it is none of these.
    pub(crate) fn of(name: &str) -> u16 {
        match name {
            "x86_64" => X86_64,
            "i386" | "i486" | "i586" | "i686" => I386,
            "aarch64" | "arm64" => AARCH64,
            "riscv64" => RISCV,
            name if name.starts_with("arm") => ARM,
            _ => 0,
        }
    }
}

/// Most frames of a stack that are followed. perf stops at 127 unless it is told otherwise.
pub(crate) const MAX_FRAMES: usize = 1024;

/// What became of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It was followed to its first function.
    Whole,
    /// Nobody knows where it goes on.
    Cut,
    /// It goes on behind the end of the copy.
    Beyond,
    /// There is a call chain in its place, which ends where frame pointers do: that says nothing of how far it is.
    Chain,
    /// Likewise, and it has one function of the program.
    Alone,
}

/// How a stack's innermost function stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Top {
    /// It was interrupted, at any instruction.
    Interrupted,
    /// In the midst, as behind a call: without a table it has a frame, and is none that calls nobody.
    Called,
}

/// A stack's reader; keeps rules of addresses that it has seen.
pub(crate) struct Stacks {
    x86_64: (UnwinderX86_64<Bytes>, Caches<CacheX86_64>),
    aarch64: (UnwinderAarch64<Bytes>, Caches<CacheAarch64>),
    /// Bytes of the stack that the latest sample took.
    reach: usize,
    /// Those of the latest sample.
    callees: Callees,
}

/// Rules of addresses. One of framehop's caches has 509 of them, too few for a program's: addresses are shared out among several.
struct Caches<C>(Vec<C>);

/// How many, as a power of two. Together they take 160 KiB.
const CACHES: u32 = 4;

impl<C> Caches<C> {
    fn new(new: impl FnMut() -> C) -> Self {
        Self(std::iter::repeat_with(new).take(1 << CACHES).collect())
    }

    /// The one that has an address. (Fibonacci hashing: by the multiplier all bits have their part in the upper ones.)
    fn of(&mut self, address: u64) -> &mut C {
        let hash = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - CACHES);
        &mut self.0[hash as usize]
    }
}

/// Says where in all modules an address is: see [`super::modules::Location`]; nothing where no code is. 0 is an address in no module.
pub(crate) trait Locate {
    /// `address` is one of the process, of an instruction.
    fn locate(&mut self, address: u64) -> Option<u64>;

    /// Whether what was located last is code that was made in memory, and has no tables.
    fn is_jitted(&self) -> bool {
        false
    }

    /// Whether what was located last may have its frame told from RBX, which framehop does not follow.
    fn is_by_rbx(&self) -> bool {
        false
    }

    /// What RBX has to do with the frame at a location.
    fn rbx(&mut self, _location: u64) -> Option<Rbx> {
        None
    }
}

impl Stacks {
    pub(crate) fn new() -> Self {
        Self {
            x86_64: (UnwinderX86_64::new(), Caches::new(CacheX86_64::new)),
            aarch64: (UnwinderAarch64::new(), Caches::new(CacheAarch64::new)),
            reach: 0,
            callees: Callees::default(),
        }
    }

    /// A module whose tables are to be used from now on.
    pub(crate) fn add(&mut self, tables: Tables<Bytes>) {
        self.x86_64.0.add_module(tables.clone());
        self.aarch64.0.add_module(tables);
    }

    /// Gives the locations of a sample's user stack, the innermost first, to `each`.
    pub(crate) fn follow(
        &mut self,
        machine: u16,
        sample: &Sample<'_>,
        top: Top,
        locate: &mut impl Locate,
        each: impl FnMut(u64),
    ) -> End {
        let register = |number| sample.register(number);
        let machine = match (machine, sample.abi) {
            (machine::X86_64, abi::BITS_32) => machine::I386,
            (machine::AARCH64, abi::BITS_32) => machine::ARM,
            (machine, _) => machine,
        };
        let stack = |sp| Stack { sp, bytes: sample.stack };
        match machine {
            machine::X86_64 => {
                let Some(registers) = of_x86_64(sample) else { return End::Cut };
                let (ip, sp) = (registers.ip(), registers.sp());
                let (unwinder, caches) = &mut self.x86_64;
                let reach = &mut self.reach;
                let callees = &mut self.callees;
                let walker = Walker { unwinder, caches, reach, callees };
                walker.walk((ip, top), registers, stack(sp), locate, each)
            }
            machine::AARCH64 => {
                let (Some(fp), Some(lr), Some(sp), Some(ip)) =
                    (register(29), register(30), register(31), register(32))
                else {
                    return End::Cut;
                };
                // Of user addresses bits 48 to 63 are the signature (Arm ARM, D8.8), or 0.
                let mask = framehop::aarch64::PtrAuthMask(0x0000_ffff_ffff_ffff);
                let registers = UnwindRegsAarch64::new_with_ptr_auth_mask(mask, lr, sp, fp);
                let (unwinder, caches) = &mut self.aarch64;
                let reach = &mut self.reach;
                let callees = &mut self.callees;
                let walker = Walker { unwinder, caches, reach, callees };
                walker.walk((ip, top), registers, stack(sp), locate, each)
            }
            // Where a frame pointer's frame has the caller's and the return address, in words from where it points.
            machine::I386 => {
                chain((register(6), register(7), register(8)), 4, (0, 1), stack, locate, each)
            }
            machine::RISCV => {
                chain((register(8), register(2), register(0)), 8, (-2, -1), stack, locate, each)
            }
            machine::ARM => {
                // Compilers do not agree on frame pointers: who called is known of the innermost alone.
                let addresses = [register(15), register(14).map(|lr| (lr & !1).wrapping_sub(1))];
                addresses.into_iter().flatten().filter_map(|at| locate.locate(at)).for_each(each);
                End::Cut
            }
            _ => End::Cut,
        }
    }
}

/// Registers of a sample; nothing where one is missing that every stack needs.
fn of_x86_64(sample: &Sample<'_>) -> Option<UnwindRegsX86_64> {
    let [bp, sp, ip] = [6, 7, 8].map(|number| sample.register(number));
    let mut registers = UnwindRegsX86_64::new(ip?, sp?, bp?);
    for (number, value) in sample.numbered() {
        if let Some(&Some(name)) = OTHERS.get(number as usize) {
            registers.set(name, value);
        }
    }
    Some(registers)
}

/// The others, by perf's number.
const OTHERS: [Option<Reg>; 24] = {
    let mut names = [None; 24];
    (names[0], names[1], names[2]) = (Some(Reg::RAX), Some(Reg::RBX), Some(Reg::RCX));
    (names[3], names[4], names[5]) = (Some(Reg::RDX), Some(Reg::RSI), Some(Reg::RDI));
    (names[16], names[17], names[18]) = (Some(Reg::R8), Some(Reg::R9), Some(Reg::R10));
    (names[19], names[20], names[21]) = (Some(Reg::R11), Some(Reg::R12), Some(Reg::R13));
    (names[22], names[23]) = (Some(Reg::R14), Some(Reg::R15));
    names
};

/// A copy of the part of a stack that is in use.
#[derive(Clone, Copy)]
struct Stack<'a> {
    sp: u64,
    bytes: &'a [u8],
}

/// Bytes of a stack, unless its size was set: what Linux gives a program, and glibc a thread.
const MOST_STACK: u64 = 8 << 20;

/// Bytes that a processor fetches at once.
const CACHE_LINE: usize = 64;

impl Stack<'_> {
    /// Has the processor fetch the first bytes, all at once. Callers' frames are read one behind the other, since each says where the
    /// next is, and each would wait for memory.
    fn fetch(&self, bytes: usize) {
        let lines = self.bytes[..bytes.min(self.bytes.len())].iter().step_by(CACHE_LINE);
        std::hint::black_box(lines.fold(0, |all, &one| all | one));
    }

    /// Whether an address is not in the copy, and may still be of the stack.
    fn is_soon_behind(&self, address: u64) -> bool {
        let at = address.wrapping_sub(self.sp);
        let end = self.bytes.len() as u64;
        at.saturating_add(8) > end && at < end + MOST_STACK
    }

    fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.sp)?).ok()?;
        let bytes = self.bytes.get(at..)?.first_chunk()?;
        Some(u64::from_le_bytes(*bytes))
    }

    fn word_of(&self, address: u64, size: u64) -> Option<u64> {
        if size == 8 {
            return self.word(address);
        }
        let at = usize::try_from(address.checked_sub(self.sp)?).ok()?;
        let bytes = self.bytes.get(at..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes).into())
    }
}

/// What follows a stack by tables.
struct Walker<'a, U: Unwinder> {
    unwinder: &'a U,
    caches: &'a mut Caches<U::Cache>,
    /// Bytes of the stack that the sample before took.
    reach: &'a mut usize,
    callees: &'a mut Callees,
}

impl<U: Unwinder<UnwindRegs: Registers>> Walker<'_, U> {
    fn walk(
        self,
        (ip, top): (u64, Top),
        mut registers: U::UnwindRegs,
        stack: Stack<'_>,
        locate: &mut impl Locate,
        mut each: impl FnMut(u64),
    ) -> End {
        stack.fetch(std::mem::take(self.reach));
        let is_beyond = Cell::new(false);
        let mut read = |address: u64| {
            let at = usize::try_from(address.wrapping_sub(stack.sp)).unwrap_or(usize::MAX);
            if at < stack.bytes.len() {
                *self.reach = at.max(*self.reach);
            }
            let word = stack.word(address);
            if word.is_none() {
                is_beyond.set(stack.is_soon_behind(address));
            }
            word.ok_or(())
        };
        // What called through a wrong pointer stands on the stack's top, and tables of no file know that.
        let location = locate.locate(ip);
        each(location.unwrap_or(0));
        let called = location
            .and_then(|location| FrameAddress::from_return_address(location.wrapping_add(1)));
        let mut at = match called.filter(|_| top == Top::Called) {
            Some(called) => called,
            None => FrameAddress::from_instruction_pointer(location.unwrap_or(0)),
        };
        // What was interrupted and has no table in a file that has some, such as V8's own functions in node's, is taken for one without a
        // frame. Where that leads to no code, it has one.
        let mut framed =
            called.filter(|_| top == Top::Interrupted).map(|at| (at, registers.clone()));
        let mut here = location.unwrap_or(0);
        self.callees.clear();
        for _ in 1..MAX_FRAMES {
            let cache = self.caches.of(at.address());
            let is_jitted = at.is_return_address() && locate.is_jitted();
            let before = is_jitted.then(|| registers.clone());
            let by_rbx = match locate.is_by_rbx() {
                true => registers.by_rbx(here, self.callees, locate, &mut read),
                false => None,
            };
            let mut caller = match by_rbx {
                Some(address) => Ok(Some(address)),
                None => self.unwinder.unwind_frame(at, &mut registers, cache, &mut read),
            };
            // The call stands before the address that it returns to.
            let mut location = match caller {
                Ok(Some(address)) => locate.locate(address.wrapping_sub(1)),
                _ => None,
            };
            if location.is_none()
                && let Some(mut before) = before
                && let Some(address) = before.past_a_word(&mut read)
                && let Some(there) = locate.locate(address.wrapping_sub(1))
            {
                (caller, location, registers) = (Ok(Some(address)), Some(there), before);
            }
            if let Some((framed, interrupted)) = framed.take()
                && location.is_none()
                && caller.is_ok()
            {
                (at, registers) = (framed, interrupted);
                continue;
            }
            match caller {
                Ok(Some(_)) => {
                    let Some(location) = location else { return End::Cut };
                    self.callees.add(here, registers.stack_pointer());
                    here = location;
                    each(location);
                    let Some(next) = FrameAddress::from_return_address(location.wrapping_add(1))
                    else {
                        return End::Cut;
                    };
                    at = next;
                }
                Ok(None) => return End::Whole,
                // The loader's first function has no table, and framehop does not ask everywhere whether there is a frame above.
                Err(Error::FramepointerUnwindingMovedBackwards)
                    if at.is_return_address() && registers.frame_pointer() == 0 =>
                {
                    return End::Whole;
                }
                Err(_) => return if is_beyond.get() { End::Beyond } else { End::Cut },
            }
        }
        End::Cut
    }
}

/// Follows a chain of frame pointers; `frame` says where a frame has the caller's, and the return address.
fn chain<'a>(
    (fp, sp, ip): (Option<u64>, Option<u64>, Option<u64>),
    word: u64,
    frame: (i64, i64),
    stack: impl Fn(u64) -> Stack<'a>,
    locate: &mut impl Locate,
    mut each: impl FnMut(u64),
) -> End {
    let (Some(mut fp), Some(sp), Some(ip)) = (fp, sp, ip) else { return End::Cut };
    let stack = stack(sp);
    let Some(location) = locate.locate(ip) else { return End::Cut };
    each(location);
    for _ in 1..MAX_FRAMES {
        if fp == 0 {
            return End::Whole;
        }
        let at = |words: i64| fp.wrapping_add_signed(words * word as i64);
        let (Some(next), Some(address)) =
            (stack.word_of(at(frame.0), word), stack.word_of(at(frame.1), word))
        else {
            let beyond = stack.is_soon_behind(at(frame.0)) || stack.is_soon_behind(at(frame.1));
            return if beyond { End::Beyond } else { End::Cut };
        };
        if address == 0 {
            return End::Whole;
        }
        let Some(location) = locate.locate(address.wrapping_sub(1)) else { return End::Cut };
        each(location);
        // Frames of callers lie above.
        if next != 0 && next <= fp {
            return End::Cut;
        }
        fp = next;
    }
    End::Cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use teeperf_wire::body::sample::Numbers;

    #[test]
    fn each_register_is_where_its_number_says() {
        let mask = 0xff_01ff;
        let values: Vec<[u8; 8]> =
            (0u64..24).filter(|at| mask >> at & 1 == 1).map(u64::to_le_bytes).collect();
        let registers = Numbers::of(values.as_flattened());
        let sample = Sample { mask, registers, ..Sample::default() };
        let registers = of_x86_64(&sample).unwrap();
        let first =
            [Reg::RAX, Reg::RBX, Reg::RCX, Reg::RDX, Reg::RSI, Reg::RDI, Reg::RBP, Reg::RSP];
        let last = [Reg::R8, Reg::R9, Reg::R10, Reg::R11, Reg::R12, Reg::R13, Reg::R14, Reg::R15];
        assert_eq!(first.map(|name| registers.get(name)), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(registers.ip(), 8);
        assert_eq!(last.map(|name| registers.get(name)), [16, 17, 18, 19, 20, 21, 22, 23]);
        assert!(of_x86_64(&Sample { mask: 0x40, ..sample }).is_none());
    }

    /// Code stands from 0x1000 to 0x2000; the last part was made.
    struct Code(u64);

    impl Locate for Code {
        fn locate(&mut self, address: u64) -> Option<u64> {
            self.0 = address;
            (0x1000..0x2000).contains(&address).then_some(address)
        }

        fn is_jitted(&self) -> bool {
            self.0 >= 0x1800
        }

        fn is_by_rbx(&self) -> bool {
            (0x1400..0x1480).contains(&self.0)
        }

        fn rbx(&mut self, location: u64) -> Option<Rbx> {
            match location {
                0x1100 => Some(Rbx { cfa: None, saved: Some(-0x18) }),
                0x1120 => Some(Rbx { cfa: None, saved: None }),
                0x1400..0x1480 => Some(Rbx { cfa: Some(0x18), saved: Some(-0x18) }),
                _ => None,
            }
        }
    }

    fn followed(machine: u16, abi: u8, registers: &[(u32, u64)], stack: &[u8]) -> (Vec<u64>, End) {
        let top = Top::Interrupted;
        followed_by(&mut Stacks::new(), (machine, abi), top, registers, stack)
    }

    fn followed_by(
        stacks: &mut Stacks,
        (machine, abi): (u16, u8),
        top: Top,
        registers: &[(u32, u64)],
        stack: &[u8],
    ) -> (Vec<u64>, End) {
        let mut sorted = registers.to_vec();
        sorted.sort_unstable();
        let mask = sorted.iter().fold(0, |mask, (number, _)| mask | 1 << number);
        let bytes: Vec<u8> = sorted.iter().flat_map(|(_, value)| value.to_le_bytes()).collect();
        let registers = Numbers::of(&bytes);
        let sample = Sample { abi, mask, registers, stack, ..Sample::default() };
        let mut found = Vec::new();
        let end =
            stacks.follow(machine, &sample, top, &mut Code(0), |location| found.push(location));
        (found, end)
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn frame_pointers_where_there_are_no_tables() {
        // At 0x100: something, then frames of two callers, the last without another.
        let stack = words(&[7, 0x120, 0x1200, 9, 0, 0x1300, 0, 0]);
        let x86 = [(6, 0x108), (7, 0x100), (8, 0x1100)];
        let (found, _) = followed(machine::X86_64, abi::BITS_64, &x86, &stack);
        assert_eq!(found, [0x1100, 0x11ff, 0x12ff]);
        let arm = [(29, 0x108), (30, 0x1180), (31, 0x100), (32, 0x1100)];
        let (found, _) = followed(machine::AARCH64, abi::BITS_64, &arm, &stack);
        assert_eq!(found[..2], [0x1100, 0x11ff]);
        let riscv = [(8, 0x118), (2, 0x100), (0, 0x1100)];
        let stack = words(&[7, 0x128, 0x1200, 0, 0x1300]);
        let (found, _) = followed(machine::RISCV, abi::BITS_64, &riscv, &stack);
        assert_eq!(found, [0x1100, 0x11ff, 0x12ff]);
    }

    #[test]
    fn narrow_words() {
        let stack: Vec<u8> =
            [7u32, 0x10c, 0x1200, 0, 0x1300].iter().flat_map(|w| w.to_le_bytes()).collect();
        let registers = [(6, 0x104), (7, 0x100), (8, 0x1100)];
        let found = followed(machine::X86_64, abi::BITS_32, &registers, &stack);
        assert_eq!(found, (vec![0x1100, 0x11ff, 0x12ff], End::Whole));
    }

    /// Call frame information of code from 0x1000 to 0x1100: the return address is on the stack's top.
    fn table() -> Vec<u8> {
        let cie = [0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0];
        let mut bytes = [&16u32.to_le_bytes()[..], &cie].concat();
        bytes.extend([20u32, 24].iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend([0x1000u64, 0x100].iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend([0; 4]);
        bytes
    }

    /// With that table of the code.
    fn with_table() -> Stacks {
        let sections = framehop::ExplicitModuleSectionInfo {
            text_svma: Some(0x1000..0x2000),
            eh_frame_svma: Some(0x3000..0x4000),
            eh_frame: Some(Bytes::from(table())),
            ..framehop::ExplicitModuleSectionInfo::default()
        };
        let mut stacks = Stacks::new();
        stacks.add(Tables::new("loader".into(), 0x1000..0x2000, 0, sections));
        stacks
    }

    const X86_64: (u16, u8) = (machine::X86_64, abi::BITS_64);

    #[test]
    fn a_first_function_without_a_table_is_the_first() {
        let stack = words(&[0x1500, 7, 7]);
        // No frame is above, and one that would be below.
        for (bp, end) in [(0, End::Whole), (0x50, End::Cut)] {
            let registers = [(6, bp), (7, 0x100), (8, 0x1010)];
            let top = Top::Interrupted;
            let found = followed_by(&mut with_table(), X86_64, top, &registers, &stack);
            assert_eq!(found, (vec![0x1010, 0x14ff], end));
        }
    }

    #[test]
    fn what_stands_as_behind_a_call_has_a_frame() {
        // Code without a table, which has pushed something on the stack since it was called from 0x1200.
        let stack = words(&[0x1700, 0, 0x1200, 0]);
        let registers = [(6, 0x108), (7, 0x100), (8, 0x1500)];
        let found = |top| followed_by(&mut with_table(), X86_64, top, &registers, &stack).0;
        assert_eq!(found(Top::Called), [0x1500, 0x11ff]);
        assert_eq!(found(Top::Interrupted)[..2], [0x1500, 0x16ff]);
    }

    #[test]
    fn what_was_made_may_have_a_word_and_no_frame() {
        // The first returns to code that was made, which returns to 0x1200: that has a frame. The frame pointer is somebody's own.
        let stack = words(&[0x1900, 7, 0x1200, 0, 0x1300, 0]);
        for (bp, made) in [(0, 0x1900), (0x7000, 0x1900), (0x110, 0x1900), (0x7000, 0x1700)] {
            let stack = [&words(&[made]), &stack[8..]].concat();
            let registers = [(6, bp), (7, 0x100), (8, 0x1010)];
            let top = Top::Interrupted;
            let (found, _) = followed_by(&mut with_table(), X86_64, top, &registers, &stack);
            let whole = [0x1010, made - 1, 0x11ff];
            assert!(found.starts_with(&whole[..2]), "{bp:x}");
            assert_eq!(found.get(2), (made == 0x1900).then_some(&whole[2]), "{bp:x}");
        }
    }

    #[test]
    fn a_frame_is_told_from_rbx_wherever_callees_saved_that() {
        // Of what stands at 0x1410 the frame ends at 0x158, 0x18 from where RBX points.
        let stack = [0x140, 0, 0x1410, 7, 7, 7, 7, 7, 7, 7, 0x1200, 0, 0];
        for (ip, rbx, is_found) in
            [(0x1100, 0, true), (0x1120, 0x140, true), (0x1120, 0, false), (0x1130, 0x140, false)]
        {
            let registers = [(1, rbx), (6, 0x108), (7, 0x100), (8, ip)];
            let (found, _) = followed(machine::X86_64, abi::BITS_64, &registers, &words(&stack));
            assert_eq!(found[..2], [ip, 0x140f]);
            assert_eq!(found.get(2) == Some(&0x11ff), is_found, "{ip:x} {rbx:x}: {found:x?}");
        }
    }

    #[test]
    fn what_was_interrupted_has_a_frame_where_its_stack_begins_with_no_code() {
        let registers = [(6, 0x108), (7, 0x100), (8, 0x1500)];
        for first in [0, 0x7000] {
            let stack = words(&[first, 0, 0x1200, 0]);
            let top = Top::Interrupted;
            let (found, _) = followed_by(&mut with_table(), X86_64, top, &registers, &stack);
            assert_eq!(found, [0x1500, 0x11ff], "{first:x}");
        }
    }

    #[test]
    fn a_stack_that_goes_round_ends() {
        let stack = words(&[0x100, 0x1200, 0x100, 0x1200]);
        for machine in
            [machine::X86_64, machine::AARCH64, machine::I386, machine::RISCV, machine::ARM, 0]
        {
            let registers: Vec<(u32, u64)> = (0..33).map(|number| (number, 0x100)).collect();
            let (found, _) = followed(machine, abi::BITS_64, &registers, &stack);
            assert!(found.len() <= MAX_FRAMES);
        }
    }

    #[test]
    fn missing_registers_are_no_stack() {
        for machine in [machine::X86_64, machine::AARCH64, machine::I386, machine::RISCV] {
            assert_eq!(followed(machine, abi::BITS_64, &[], &[]), (vec![], End::Cut));
        }
    }
}
