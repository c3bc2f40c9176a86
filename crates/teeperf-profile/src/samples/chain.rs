//! What a sample's call chain says of which function called which.
//!
//! A chain has parts: of the kernel and of the program, say. In each the first address is that of an instruction, and those behind it are
//! where calls return to. Two kinds of events have more to them:
//!
//! * Of a **precise** event the processor writes down where it is, and the kernel takes the chain when the interrupt comes, some
//!   instructions later. So the innermost address is that of the sample, and the chain tells of its callers.
//! * Of **call stacks of the processor** (LBR) the branches are the calls that have not returned. They take the place of what
//!   the kernel found by frame pointers, from the innermost function of the program on.

use teeperf_wire::body::sample::{self, Sample, mode};

/// Most bytes of an instruction: those of x86-64.
const MOST_INSTRUCTION: u64 = 15;

/// What is to know of an event, beside the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventTraits {
    /// `e_machine` of the code.
    pub(crate) machine: u16,
    pub(crate) is_precise: bool,
    /// Branches are calls that have not returned.
    pub(crate) has_call_stacks: bool,
    /// Bytes of stacks that samples were to have.
    pub(crate) stack: u64,
}

/// An address of a chain.
#[derive(Clone, Copy)]
struct Entry {
    mode: u8,
    address: u64,
    /// It is of an instruction, and not where a call returns to.
    is_first: bool,
}

impl Entry {
    fn instruction(self) -> u64 {
        if self.is_first { self.address } else { self.address.wrapping_sub(1) }
    }
}

/// Gives the mode and the instruction of each function of the chain to `each`, the innermost first.
pub(super) fn steps(sample: &Sample<'_>, event: EventTraits, mut each: impl FnMut(u8, u64)) {
    let entries = entries(sample);
    if event.is_precise && sample.ip != 0 {
        with_own_address(sample, entries, |entry| each(entry.mode, entry.instruction()));
    } else if event.has_call_stacks && !sample.branches.is_empty() {
        with_call_stack(sample, entries, |entry| each(entry.mode, entry.instruction()));
    } else {
        entries.for_each(|entry| each(entry.mode, entry.instruction()));
    }
}

fn entries<'a>(sample: &Sample<'a>) -> impl Iterator<Item = Entry> + use<'a> {
    let (mut mode, mut is_first) = (sample.mode, true);
    let mut is_number = false;
    sample.chain.iter().filter_map(move |address| {
        if std::mem::take(&mut is_number) {
            return None;
        }
        if address >= sample::CONTEXT_MAX {
            mode = mode_of(address);
            is_first = true;
            is_number = address == sample::CONTEXT_DEFERRED;
            return None;
        }
        Some(Entry { mode, address, is_first: std::mem::take(&mut is_first) })
    })
}

/// What addresses behind a marker are of.
fn mode_of(marker: u64) -> u8 {
    match marker {
        sample::CONTEXT_HYPERVISOR => mode::HYPERVISOR,
        sample::CONTEXT_KERNEL => mode::KERNEL,
        sample::CONTEXT_USER | sample::CONTEXT_DEFERRED => mode::USER,
        sample::CONTEXT_GUEST | sample::CONTEXT_GUEST_KERNEL => mode::GUEST_KERNEL,
        sample::CONTEXT_GUEST_USER => mode::GUEST_USER,
        _ => mode::UNKNOWN,
    }
}

/// The sample's own address is the innermost: of the part that is of its mode, the first address is where the same function was
/// when the interrupt came.
fn with_own_address(
    sample: &Sample<'_>,
    entries: impl Iterator<Item = Entry>,
    mut each: impl FnMut(Entry),
) {
    let mut entries = entries.peekable();
    let Some(&first) = entries.peek() else { return };
    each(Entry { mode: sample.mode, address: sample.ip, is_first: true });
    if first.mode != sample.mode && sample.mode == mode::KERNEL {
        // The kernel had returned by then: all of the chain called it.
        return entries.for_each(each);
    }
    // A program that had come into the kernel by then: what that did is later than the sample.
    let own = entries.by_ref().find(|entry| entry.mode == sample.mode);
    // The sample is at a call that had been made by then: the next in the chain is where it returns to.
    let is_own = |entry: &Entry| {
        let behind = entry.address.wrapping_sub(sample.ip);
        entry.mode == sample.mode && (1..=MOST_INSTRUCTION).contains(&behind)
    };
    if own.is_some() {
        entries.next_if(|entry| is_own(entry));
    }
    entries.for_each(each);
}

/// Calls that have not returned stand behind the innermost function of the program.
fn with_call_stack(
    sample: &Sample<'_>,
    entries: impl Iterator<Item = Entry>,
    mut each: impl FnMut(Entry),
) {
    let mut users = 0;
    for entry in entries {
        users += u32::from(entry.mode == mode::USER);
        if entry.mode != mode::USER || users == 1 {
            each(entry);
        }
    }
    if users == 0 {
        // The kernel says nothing of the program: nor is it known whether the calls are the program's.
        return;
    }
    // From and to in turn: where each call was made.
    for address in sample.branches.iter().step_by(2) {
        each(Entry { mode: mode::USER, address, is_first: true });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use teeperf_wire::body::sample::{CONTEXT_GUEST_USER, CONTEXT_KERNEL, CONTEXT_USER, Numbers};

    const PRECISE: EventTraits =
        EventTraits { machine: 0, is_precise: true, has_call_stacks: false, stack: 0 };
    const LBR: EventTraits =
        EventTraits { machine: 0, is_precise: false, has_call_stacks: true, stack: 0 };

    fn of(event: EventTraits, of: u8, ip: u64, chain: &[u64], branches: &[u64]) -> Vec<(u8, u64)> {
        let bytes = |list: &[u64]| list.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>();
        let (chain, branches) = (bytes(chain), bytes(branches));
        let sample = Sample {
            mode: of,
            ip,
            chain: Numbers::of(&chain),
            branches: Numbers::of(&branches),
            ..Sample::default()
        };
        let mut found = Vec::new();
        steps(&sample, event, |mode, address| found.push((mode, address)));
        found
    }

    const U: u8 = mode::USER;
    const K: u8 = mode::KERNEL;

    #[test]
    fn behind_a_marker_the_first_is_an_instruction() {
        let plain = EventTraits::default();
        let chain = [CONTEXT_KERNEL, 100, 200, CONTEXT_USER, 300, 400];
        assert_eq!(of(plain, K, 100, &chain, &[]), [(K, 100), (K, 199), (U, 300), (U, 399)]);
        // Without markers all is of the sample's mode.
        assert_eq!(of(plain, U, 1, &[1, 2], &[]), [(U, 1), (U, 1)]);
        let others = [CONTEXT_GUEST_USER, 5, sample::CONTEXT_HYPERVISOR, 6];
        assert_eq!(of(plain, U, 5, &others, &[]), [(mode::GUEST_USER, 5), (mode::HYPERVISOR, 6)]);
        // The number of a part that comes later is no address.
        let deferred = [CONTEXT_KERNEL, 100, sample::CONTEXT_DEFERRED, 77];
        assert_eq!(of(plain, K, 100, &deferred, &[]), [(K, 100)]);
    }

    #[test]
    fn precise_samples_are_where_they_say_and_the_chain_has_their_callers() {
        let chain = [CONTEXT_USER, 300, 400, 500];
        assert_eq!(of(PRECISE, U, 290, &chain, &[]), [(U, 290), (U, 399), (U, 499)]);
        // At a call, which was made by then: where it returns to is the same function.
        assert_eq!(of(PRECISE, U, 395, &chain, &[]), [(U, 395), (U, 499)]);
        // The interrupt came in the kernel, or behind it.
        let through = [CONTEXT_KERNEL, 100, 200, CONTEXT_USER, 300, 400];
        assert_eq!(of(PRECISE, U, 290, &through, &[]), [(U, 290), (U, 399)]);
        assert_eq!(of(PRECISE, K, 90, &through, &[]), [(K, 90), (K, 199), (U, 300), (U, 399)]);
        assert_eq!(of(PRECISE, K, 90, &chain, &[])[..2], [(K, 90), (U, 300)]);
        let kernels = [CONTEXT_KERNEL, 100, 200];
        assert_eq!(of(PRECISE, U, 290, &kernels, &[]), [(U, 290)]);
        // There is nothing to say of callers, and of a sample that has no address.
        assert_eq!(of(PRECISE, U, 290, &[], &[]), []);
        assert_eq!(of(PRECISE, U, 0, &chain, &[])[0], (U, 300));
    }

    #[test]
    fn call_stacks_of_the_processor_take_the_place_of_frame_pointers() {
        let chain = [CONTEXT_KERNEL, 100, 200, CONTEXT_USER, 300, 400];
        let calls = [1000, 290, 2000, 990];
        let wanted = [(K, 100), (K, 199), (U, 300), (U, 1000), (U, 2000)];
        assert_eq!(of(LBR, K, 100, &chain, &calls), wanted);
        assert_eq!(of(LBR, K, 100, &chain[..3], &calls), wanted[..2]);
        // Other branches are no callers.
        assert_eq!(of(EventTraits::default(), K, 100, &chain, &calls).len(), 4);
    }
}
