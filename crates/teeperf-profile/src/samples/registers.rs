//! Registers of processors, and how callers are found where framehop does not find them.

use framehop::aarch64::UnwindRegsAarch64;
use framehop::x86_64::{Reg, UnwindRegsX86_64};

use super::unwind::Locate;

/// Reads a word of the stack.
pub(super) type Read<'a> = dyn FnMut(u64) -> Result<u64, ()> + 'a;

/// Registers, as stacks are followed by.
pub(super) trait Registers: Clone {
    fn frame_pointer(&self) -> u64;

    /// Behind a step, the canonical frame address of the frame that was left.
    fn stack_pointer(&self) -> u64;

    /// The caller of what has one word on the stack and no frame pointer, as code has that does nothing but call other code: CPython's
    /// trampolines, one for each function, by which samplers know the function (Python/asm_trampoline.S).
    fn past_a_word(&mut self, _read: &mut Read<'_>) -> Option<u64> {
        None
    }

    /// The caller of what stands at a location, with a frame that is told from RBX; `callees` are the frames that were left, the innermost first.
    fn by_rbx(
        &mut self,
        _location: u64,
        _callees: &Callees,
        _locate: &mut impl Locate,
        _read: &mut Read<'_>,
    ) -> Option<u64> {
        None
    }
}

impl Registers for UnwindRegsX86_64 {
    fn frame_pointer(&self) -> u64 {
        self.bp()
    }

    fn stack_pointer(&self) -> u64 {
        self.sp()
    }

    fn past_a_word(&mut self, read: &mut Read<'_>) -> Option<u64> {
        let sp = self.sp();
        let address = read(sp.checked_add(8)?).ok()?;
        self.set_sp(sp.checked_add(16)?);
        self.set_ip(address);
        Some(address)
    }

    fn by_rbx(
        &mut self,
        location: u64,
        callees: &Callees,
        locate: &mut impl Locate,
        read: &mut Read<'_>,
    ) -> Option<u64> {
        let offset = locate.rbx(location)?.cfa?;
        // framehop leaves it as it was in the innermost frame.
        let mut rbx = self.get(Reg::RBX);
        for &(callee, cfa) in callees.all()? {
            if let Some(saved) = locate.rbx(callee)?.saved {
                rbx = read(cfa.checked_add_signed(saved)?).ok()?;
            }
        }
        let cfa = rbx.checked_add_signed(offset)?;
        let address = read(cfa.checked_sub(8)?).ok()?;
        self.set_sp(cfa);
        self.set_ip(address);
        Some(address)
    }
}

impl Registers for UnwindRegsAarch64 {
    fn frame_pointer(&self) -> u64 {
        self.fp()
    }

    fn stack_pointer(&self) -> u64 {
        self.sp()
    }
}

/// Locations of frames that were left, and their canonical frame addresses: those of the innermost, where so many are enough.
pub(super) struct Callees {
    list: [(u64, u64); MAX_CALLEES],
    count: usize,
}

/// Between a call that is made first and what finds out what it is of there are hardly more.
const MAX_CALLEES: usize = 32;

impl Default for Callees {
    fn default() -> Self {
        Self { list: [(0, 0); MAX_CALLEES], count: 0 }
    }
}

impl Callees {
    /// Another stack begins.
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    pub(super) fn add(&mut self, location: u64, cfa: u64) {
        if let Some(place) = self.list.get_mut(self.count) {
            *place = (location, cfa);
        }
        self.count += 1;
    }

    /// Nothing where there were too many.
    fn all(&self) -> Option<&[(u64, u64)]> {
        self.list.get(..self.count)
    }
}
