//! The parameter: an arena in a slot that the client leaves free, for the time of one call.

use crate::teec::{MEMREF_WHOLE, NONE, Operation, Parameter, SLOTS, SharedMemory};

/// A slot that is taken. The operation itself is used, not a copy: the client may ask for the call to be
/// cancelled by its address.
pub(crate) struct Slot {
    operation: *mut Operation,
    index: u32,
    before: [Parameter; SLOTS],
}

/// Puts memory into the last free slot: the first ones are those that applications look at.
///
/// # Safety
/// `operation` is an operation that nobody else changes until [`Slot::take_back`].
pub(crate) unsafe fn lend(operation: *mut Operation, memory: *mut SharedMemory) -> Option<Slot> {
    // SAFETY: the caller's promise.
    let there = unsafe { &mut *operation };
    let types = there.types;
    let index = (0..SLOTS as u32).rev().find(|index| types >> (index * 4) & 0xF == NONE)?;
    let lent = Parameter { parent: memory, size: 0, offset: 0 };
    let before = there.parameters;
    *there.parameters.get_mut(index as usize)? = lent;
    there.types |= MEMREF_WHOLE << (index * 4);
    Some(Slot { operation, index, before })
}

impl Slot {
    /// The slot is as it was.
    pub(crate) fn take_back(&self) {
        // SAFETY: the promise of who made it.
        let there = unsafe { &mut *self.operation };
        there.types &= !(0xF << (self.index * 4));
        let at = self.index as usize;
        if let Some((slot, before)) = there.parameters.get_mut(at).zip(self.before.get(at)) {
            *slot = *before;
        }
    }

    /// All parameters are as they were, too. An application that refuses a call may have changed them, and the
    /// size of memory that is too short is then what it should be: more than there is.
    pub(crate) fn undo(&self) {
        // SAFETY: as above.
        unsafe { (*self.operation).parameters = self.before };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_as_it_was_behind_a_call() {
        let mut operation = Operation::empty();
        operation.types = 0x0_1C3;
        operation.parameters[3].size = 7;
        let memory = 64 as *mut SharedMemory;
        // SAFETY: the operation above.
        let slot = unsafe { lend(&raw mut operation, memory) }.unwrap();
        assert_eq!((operation.types, operation.parameters[3].parent), (0xC1C3, memory));
        operation.parameters[0].size = 9;
        slot.take_back();
        assert_eq!((operation.types, operation.parameters[3].size), (0x01C3, 7));
        assert_eq!(operation.parameters[0].size, 9);
        slot.undo();
        assert_eq!([0, 3].map(|at| operation.parameters[at].size), [0, 7]);
    }

    #[test]
    fn where_all_slots_are_taken_nothing_is_lent() {
        let mut operation = Operation::empty();
        operation.types = 0x1111;
        // SAFETY: the operation above.
        assert!(unsafe { lend(&raw mut operation, 64 as *mut SharedMemory) }.is_none());
        assert_eq!(operation.types, 0x1111);
    }
}
