//! Samples of perf, as samples of packets.

use teeperf_wire::body::sample::{
    CONTEXT_MAX, CONTEXT_USER, MAX_CHAIN, MAX_STACK, NO_CPU, NO_TIME, Numbers, Outer, Sample, abi,
    mode,
};

use super::attr::{Attr, has};
use super::bytes::{Bytes, Order};
use super::record::Record;

/// Bytes of an entry of the branch stack: from, to, flags.
const BRANCH: usize = 24;
/// Of what an event counted, `PERF_FORMAT_…`.
const FORMAT_TOTAL_TIME_ENABLED: u64 = 1;
const FORMAT_TOTAL_TIME_RUNNING: u64 = 1 << 1;
const FORMAT_ID: u64 = 1 << 2;
const FORMAT_GROUP: u64 = 1 << 3;
const FORMAT_LOST: u64 = 1 << 4;

/// A sample of perf: what packets have of it, its numbers in the order of the file.
pub(super) struct Read<'a> {
    sample: Sample<'a>,
    branches: &'a [[u8; BRANCH]],
    /// What events have counted up to it, as it stands there.
    counts: &'a [u8],
    order: Order,
}

/// Reads one, of an event's number in packets. Nothing where it is not whole.
pub(super) fn read<'a>(attr: &Attr, event: u16, record: &Record<'a>) -> Option<Read<'a>> {
    let mut bytes = record.bytes();
    let order = record.order;
    let mut sample = Sample {
        event,
        mode: record.mode(),
        time_ns: NO_TIME,
        cpu: NO_CPU,
        period: attr.period,
        ..Sample::default()
    };
    if attr.has(has::IDENTIFIER) {
        bytes.u64()?;
    }
    if attr.has(has::IP) {
        sample.ip = bytes.u64()?;
    }
    if attr.has(has::TID) {
        (sample.pid, sample.tid) = (bytes.u32()?, bytes.u32()?);
    }
    if attr.has(has::TIME) {
        sample.time_ns = bytes.u64()?;
    }
    for what in [has::ADDR, has::ID, has::STREAM_ID] {
        if attr.has(what) {
            bytes.u64()?;
        }
    }
    if attr.has(has::CPU) {
        sample.cpu = bytes.u32()?;
        bytes.u32()?;
    }
    if attr.has(has::PERIOD) {
        sample.period = bytes.u64()?;
    }
    let mut counted: &[u8] = &[];
    if attr.has(has::READ) {
        counted = counts(attr.read_format, &mut bytes)?;
    }
    if attr.has(has::CALLCHAIN) {
        let count = bytes.u64()?;
        sample.chain = Numbers::of(bytes.row(count, 8)?);
    }
    if attr.has(has::RAW) {
        let length = bytes.u32()?;
        bytes.row(length.into(), 1)?;
    }
    let mut branches: &[[u8; BRANCH]] = &[];
    if attr.has(has::BRANCH_STACK) {
        let count = bytes.u64()?;
        if attr.has_branch_index() {
            bytes.u64()?;
        }
        branches = bytes.row(count, BRANCH)?.as_chunks().0;
        if attr.has_branch_counters() {
            bytes.row(count, 8)?;
        }
    }
    if attr.has(has::REGS_USER) {
        let given = bytes.u64()?;
        if given != u64::from(abi::NONE) {
            sample.abi = if given == 1 { abi::BITS_32 } else { abi::BITS_64 };
            sample.mask = attr.registers;
            sample.registers = Numbers::of(bytes.row(attr.registers.count_ones().into(), 8)?);
        }
    }
    if attr.has(has::STACK_USER) {
        let size = bytes.u64()?;
        if size > 0 {
            let copied = bytes.row(size, 1)?;
            let valid = usize::try_from(bytes.u64()?).unwrap_or(usize::MAX);
            sample.stack = &copied[..valid.min(copied.len()).min(MAX_STACK)];
        }
    }
    // The rest, from `PERF_SAMPLE_WEIGHT` on and what later kernels put behind it, is nothing that packets have.
    sample.chain = Numbers::of(&sample.chain.bytes()[..8 * sample.chain.len().min(MAX_CHAIN)]);
    // As perf has it, what is found on a stack stands behind the chain: the callers of its outermost function.
    if !sample.stack.is_empty() && sample.mask != 0 && has_users(&sample, order) {
        let Sample { mask, registers, stack, .. } = sample;
        let outer = Outer { mask, registers, stack };
        sample = Sample { mask: 0, registers: Numbers::default(), stack: &[], outer, ..sample };
    }
    Some(Read { sample, branches, counts: counted, order })
}

/// Whether a call chain has addresses of the user.
fn has_users(sample: &Sample<'_>, order: Order) -> bool {
    let mut in_user = sample.mode == mode::USER;
    sample.chain.iter().any(|entry| {
        let entry = if order == Order::Big { entry.swap_bytes() } else { entry };
        let is_context = entry >= CONTEXT_MAX;
        in_user = if is_context { entry == CONTEXT_USER } else { in_user };
        in_user && !is_context
    })
}

impl<'a> Read<'a> {
    /// The same for another part of what its event counts.
    pub(super) fn with_period(self, period: u64) -> Self {
        Self { sample: Sample { period, ..self.sample }, ..self }
    }

    /// The thread it is of.
    pub(super) fn tid(&self) -> u32 {
        self.sample.tid
    }

    /// What events have counted up to it: its own, or all of its group.
    pub(super) fn counts(&self, attr: &Attr) -> impl Iterator<Item = Count> + use<'a> {
        let format = attr.read_format;
        let is_there = move |bits: u64| usize::from(format & bits != 0);
        let times = is_there(FORMAT_TOTAL_TIME_ENABLED) + is_there(FORMAT_TOTAL_TIME_RUNNING);
        let each = 1 + is_there(FORMAT_ID) + is_there(FORMAT_LOST);
        let words = self.counts.as_chunks::<8>().0;
        let order = self.order;
        let one = move |value: Option<&[u8; 8]>, id: Option<&[u8; 8]>| {
            let id = id.filter(|_| format & FORMAT_ID != 0).map(|&id| order.u64(id));
            Some(Count { id, value: order.u64(*value?) })
        };
        // Of one event: its count, the times, and what belongs to it. Of a group: how many there are, the times, and then each.
        let is_group = format & FORMAT_GROUP != 0;
        let alone = one(words.first(), words.get(1 + times)).filter(|_| !is_group);
        let group = if is_group { words.get(1 + times..).unwrap_or_default() } else { &[] };
        let group = group.chunks_exact(each).filter_map(move |part| one(part.first(), part.get(1)));
        alone.into_iter().chain(group)
    }

    /// Its time, 0 where it has none.
    pub(super) fn time(&self) -> u64 {
        if self.sample.time_ns == NO_TIME { 0 } else { self.sample.time_ns }
    }

    /// As it is in packets; nothing where it has to be put into another order first.
    pub(super) fn as_it_stands(&self) -> Option<&Sample<'a>> {
        (self.order == Order::Little && self.branches.is_empty()).then_some(&self.sample)
    }

    /// Bytes that it takes in a packet.
    pub(super) fn len(&self) -> usize {
        self.with_branches().size()
    }

    /// With as many branches: their flags are left out, so they do not stand in a row.
    fn with_branches(&self) -> Sample<'a> {
        let room = &self.branches.as_flattened()[..16 * self.branches.len()];
        Sample { branches: Numbers::of(room), ..self.sample }
    }

    /// Puts it behind what is there.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let order = self.order;
        let sample = self.with_branches();
        let heads = sample.heads();
        let [head, chain, registers, stack, filling, _, outer, outers, outer_stack, outer_filling] =
            sample.parts(&heads);
        out.extend(head);
        numbers(chain, order, out);
        numbers(registers, order, out);
        out.extend(stack);
        out.extend(filling);
        for branch in self.branches {
            numbers(&branch[..16], order, out);
        }
        out.extend(outer);
        numbers(outers, order, out);
        out.extend(outer_stack);
        out.extend(outer_filling);
    }
}

fn numbers(bytes: &[u8], order: Order, out: &mut Vec<u8>) {
    match order {
        Order::Little => out.extend_from_slice(bytes),
        Order::Big => {
            out.extend(bytes.as_chunks::<8>().0.iter().flat_map(|number| {
                let mut number = *number;
                number.reverse();
                number
            }));
        }
    }
}

/// Takes off what events have counted up to a sample, which stands at the beginning of some bytes.
fn counts<'a>(format: u64, bytes: &mut Bytes<'a>) -> Option<&'a [u8]> {
    let wide = |bits: u64| u64::from((format & bits).count_ones());
    let times = wide(FORMAT_TOTAL_TIME_ENABLED | FORMAT_TOTAL_TIME_RUNNING);
    let each = 1 + wide(FORMAT_ID | FORMAT_LOST);
    let whole = *bytes;
    let values = match format & FORMAT_GROUP {
        0 => each,
        _ => bytes.u64()?.checked_mul(each)?,
    };
    bytes.row(times.checked_add(values)?, 8)?;
    whole.rest.get(..whole.rest.len() - bytes.rest.len())
}

/// What an event has counted, and its id where that is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) id: Option<u64>,
    pub(super) value: u64,
}

/// The id of a sample's event, which says which it is of; nothing where samples have none.
pub(super) fn id(attr: &Attr, mut bytes: Bytes<'_>) -> Option<u64> {
    if attr.has(has::IDENTIFIER) {
        return bytes.u64();
    }
    if !attr.has(has::ID) {
        return None;
    }
    let before = has::IP | has::TID | has::TIME | has::ADDR;
    bytes.row((attr.sample_type & before).count_ones().into(), 8)?;
    bytes.u64()
}

/// What records that are no samples say at their end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Trailer {
    /// Nanoseconds; 0: not known.
    pub(super) time: u64,
    pub(super) id: Option<u64>,
}

/// Of the last bytes of a record.
pub(super) fn trailer(attr: &Attr, record: &Record<'_>) -> Option<Trailer> {
    let fields = [has::TID, has::TIME, has::ID, has::STREAM_ID, has::CPU, has::IDENTIFIER];
    let there = fields.iter().filter(|&&what| attr.has(what));
    let length = 8 * there.clone().count();
    let rest = &record.body[record.body.len().checked_sub(length)?..];
    let mut bytes = Bytes { rest, order: record.order };
    let mut trailer = Trailer::default();
    for &what in there {
        let number = bytes.u64()?;
        match what {
            has::TIME => trailer.time = if number == NO_TIME { 0 } else { number },
            has::ID | has::IDENTIFIER => trailer.id = Some(number),
            _ => {}
        }
    }
    Some(trailer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_of_one_event_or_of_its_group() {
        for order in [Order::Little, Order::Big] {
            let counts = |format: u64, words: &[u64]| {
                let number = |word: &u64| match order {
                    Order::Little => word.to_le_bytes(),
                    Order::Big => word.to_be_bytes(),
                };
                let body: Vec<u8> = words.iter().flat_map(number).collect();
                let attr = Attr { sample_type: has::READ, read_format: format, ..Attr::default() };
                let record = Record { kind: 9, misc: 0, offset: 0, body: &body, order };
                let read = read(&attr, 1, &record)?;
                Some(read.counts(&attr).map(|count| (count.id, count.value)).collect::<Vec<_>>())
            };
            let (times, id, group, lost) = (3, 4, 8, 16);
            assert_eq!(counts(0, &[7]), Some(vec![(None, 7)]));
            assert_eq!(counts(times | id, &[7, 1, 2, 50]), Some(vec![(Some(50), 7)]));
            assert_eq!(counts(id | lost, &[7, 50, 9]), Some(vec![(Some(50), 7)]));
            let two = Some(vec![(Some(50), 7), (Some(51), 8)]);
            assert_eq!(counts(group | id, &[2, 7, 50, 8, 51]), two);
            assert_eq!(counts(group | times | id | lost, &[2, 1, 2, 7, 50, 0, 8, 51, 0]), two);
            assert_eq!(counts(group, &[2, 7, 8]), Some(vec![(None, 7), (None, 8)]));
            // More than there is, and more than can be.
            assert_eq!(counts(group | id, &[3, 7, 50, 8, 51]), None);
            assert_eq!(counts(group | id, &[u64::MAX, 7]), None);
        }
    }
}
