//! Records as the kernel leaves them in a ring, taken apart: perf_event_open(2), `linux/perf_event.h`.
//!
//! ```text
//! 0  4  type
//! 4  2  misc
//! 6  2  size, header included
//! ```

use super::attr::{Attr, sample};
use teeperf_wire::body::sample::{MAX_CHAIN, NO_CPU, Numbers, Sample, mode};

/// `PERF_RECORD_…`.
mod kind {
    pub(super) const LOST: u32 = 2;
    pub(super) const COMM: u32 = 3;
    pub(super) const EXIT: u32 = 4;
    pub(super) const THROTTLE: u32 = 5;
    pub(super) const FORK: u32 = 7;
    pub(super) const SAMPLE: u32 = 9;
    pub(super) const MMAP2: u32 = 10;
}

/// `PERF_RECORD_MISC_…`.
mod misc {
    pub(super) const MODE: u16 = 7;
    pub(super) const COMM_EXEC: u16 = 1 << 13;
    pub(super) const BUILD_ID: u16 = 1 << 14;
}

/// What stands at the end of all records but samples (`sample_id_all`): thread, time, processor.
const TRAILER: usize = 24;

/// One record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Record<'a> {
    Sample(Sample<'a>),
    /// So many records found no room.
    Lost(u64),
    /// The kernel has stopped an event until the next tick, since it took too much time.
    Throttled,
    Map(Map<'a>),
    Named {
        pid: u32,
        tid: u32,
        name: &'a [u8],
        is_exec: bool,
    },
    Forked(Kin),
    Exited(Kin),
}

/// A thread and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kin {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) parent_pid: u32,
    pub(crate) parent_tid: u32,
}

/// Code that was mapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Map<'a> {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) address: u64,
    pub(crate) length: u64,
    pub(crate) offset: u64,
    pub(crate) protection: u32,
    pub(crate) flags: u32,
    pub(crate) mode: u8,
    pub(crate) path: &'a [u8],
    pub(crate) build_id: &'a [u8],
    /// Of the file, where the kernel tells that and no build-id; else 0. The device is major and minor.
    pub(crate) inode: u64,
    pub(crate) device: [u32; 2],
    /// Number of the file in the recording, where the process sees other files than the recorder;
    /// else 0.
    pub(crate) file: u64,
}

/// Gives the records of a ring one by one, but for samples.
pub(super) fn each(bytes: &[u8], attr: &Attr, give: &mut dyn FnMut(Record<'_>)) {
    let mut at = 0;
    while let Some(end) = end(bytes, at) {
        let record = &bytes[at..end];
        at = end;
        if Fields(record).u32() != Some(kind::SAMPLE)
            && let Some(read) = read(record, attr)
        {
            give(read);
        }
    }
}

/// Where a record ends, where it begins there.
pub(super) fn end(bytes: &[u8], at: usize) -> Option<usize> {
    let size: [u8; 2] = bytes.get(at + 6..at + 8)?.try_into().ok()?;
    let size = usize::from(u16::from_le_bytes(size));
    let end = at + size;
    (size >= 8 && end <= bytes.len()).then_some(end)
}

/// When it was written, nanoseconds; nothing where it does not say, which is now.
pub(crate) fn time(record: &[u8]) -> Option<u64> {
    let mut fields = Fields(record);
    let at = match fields.u32()? {
        // IP and thread are before it.
        kind::SAMPLE => 24,
        _ => record.len().checked_sub(TRAILER - 8)?,
    };
    Fields(record.get(at..)?).u64()
}

/// What a record says, but for when and where; of one that is no sample.
pub(super) fn content(record: &[u8]) -> &[u8] {
    let end = match Fields(record).u32() {
        // Behind its threads it has the time once more.
        Some(kind::FORK | kind::EXIT) => 24,
        _ => record.len().saturating_sub(TRAILER),
    };
    record.get(..end).unwrap_or(record)
}

/// Whether two records with the same content are about the same thing.
pub(super) fn is_told_once(record: &[u8]) -> bool {
    let kind = Fields(record).u32();
    !matches!(kind, Some(kind::LOST | kind::THROTTLE))
}

/// Takes a record apart that events of this attr leave; nothing where it is of another kind or not whole.
pub(crate) fn read<'a>(record: &'a [u8], attr: &Attr) -> Option<Record<'a>> {
    let mut fields = Fields(record);
    let (kind, misc) = (fields.u32()?, fields.u16()?);
    fields.u16()?;
    if kind == kind::SAMPLE {
        return read_sample(fields, misc, attr).map(Record::Sample);
    }
    let before = fields.0.len().checked_sub(TRAILER)?;
    fields.0 = &fields.0[..before];
    Some(match kind {
        kind::LOST => {
            fields.u64()?;
            Record::Lost(fields.u64()?)
        }
        kind::THROTTLE => Record::Throttled,
        kind::COMM => Record::Named {
            pid: fields.u32()?,
            tid: fields.u32()?,
            name: fields.text(),
            is_exec: misc & misc::COMM_EXEC != 0,
        },
        kind::FORK | kind::EXIT => {
            let [pid, parent_pid, tid, parent_tid] =
                [fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?];
            let kin = Kin { pid, tid, parent_pid, parent_tid };
            if kind == kind::FORK { Record::Forked(kin) } else { Record::Exited(kin) }
        }
        kind::MMAP2 => {
            let (pid, tid) = (fields.u32()?, fields.u32()?);
            let (address, length, offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
            // Device and inode of the file, or its build-id.
            let file = fields.bytes(24)?;
            let mut parts = Fields(file);
            let (build_id, device, inode) = match misc & misc::BUILD_ID {
                0 => (&[][..], [parts.u32()?, parts.u32()?], parts.u64()?),
                _ => (file[4..].get(..file[0].into()).unwrap_or_default(), [0; 2], 0),
            };
            Record::Map(Map {
                pid,
                tid,
                address,
                length,
                offset,
                protection: fields.u32()?,
                flags: fields.u32()?,
                mode: (misc & misc::MODE) as u8,
                path: fields.text(),
                build_id,
                inode,
                device,
                file: 0,
            })
        }
        _ => return None,
    })
}

fn read_sample<'a>(mut fields: Fields<'a>, misc: u16, attr: &Attr) -> Option<Sample<'a>> {
    let has = |part| attr.sample_type & part != 0;
    let ip = fields.u64()?;
    let (pid, tid) = (fields.u32()?, fields.u32()?);
    let time_ns = fields.u64()?;
    let cpu = fields.u32()?;
    fields.u32()?;
    let period = fields.u64()?;
    let mut sample = Sample { ip, pid, tid, time_ns, cpu, period, ..Sample::default() };
    sample.mode = (misc & misc::MODE) as u8;
    if sample.mode > mode::GUEST_USER {
        sample.mode = mode::UNKNOWN;
    }
    if sample.cpu == u32::MAX {
        sample.cpu = NO_CPU;
    }
    if has(sample::CALLCHAIN) {
        let count = usize::try_from(fields.u64()?).ok()?;
        let bytes = fields.bytes(count.checked_mul(8)?)?;
        sample.chain = Numbers::of(&bytes[..8 * count.min(MAX_CHAIN)]);
    }
    if has(sample::REGISTERS_USER) {
        // 0: a thread of the kernel, which has none.
        sample.abi = fields.u64()? as u8;
        if sample.abi != 0 {
            sample.mask = attr.registers;
            let count = attr.registers.count_ones() as usize;
            sample.registers = Numbers::of(fields.bytes(8 * count)?);
        }
    }
    if has(sample::STACK_USER) {
        let room = usize::try_from(fields.u64()?).ok()?;
        if room > 0 {
            let bytes = fields.bytes(room)?;
            let written = usize::try_from(fields.u64()?).ok()?;
            sample.stack = &bytes[..written.min(room)];
        }
    }
    Some(sample)
}

/// What is left of a record.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }

    fn u16(&mut self) -> Option<u16> {
        self.bytes(2)?.try_into().ok().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.bytes(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    /// Up to the first 0.
    fn text(&self) -> &'a [u8] {
        self.0.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::attr::{CPU_CLOCK, REGISTERS};
    use super::super::options::Stacks;
    use super::*;
    use proptest::prelude::*;

    fn attr() -> Attr {
        Attr::new(CPU_CLOCK).sampling(Stacks::Copied(64), true)
    }

    /// Header, body and, unless it is a sample, a trailer of thread 1/2, this time, processor 3.
    fn record(kind: u32, misc: u16, body: &[u8], time: u64) -> Vec<u8> {
        let mut bytes = [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &[0, 0], body].concat();
        if kind != kind::SAMPLE {
            bytes.extend([1, 0, 0, 0, 2, 0, 0, 0]);
            bytes.extend(time.to_le_bytes());
            bytes.extend([3, 0, 0, 0, 0, 0, 0, 0]);
        }
        let size = bytes.len() as u16;
        bytes[6..8].copy_from_slice(&size.to_le_bytes());
        bytes
    }

    fn wide(numbers: &[u64]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn sample() -> Vec<u8> {
        let count = u64::from(REGISTERS.count_ones());
        let registers: Vec<u64> = (0..count).collect();
        let parts = [
            // ip, pid and tid, time, processor, period, two addresses, registers of 64 bits
            wide(&[0x1234, 8 << 32 | 7, 99, 3, 1_000_000, 2, 11, 12, 2]),
            wide(&registers),
            // Room for 16 bytes, of which 9 were written.
            wide(&[16, 0x0807_0605_0403_0201, 9, 9]),
        ];
        record(kind::SAMPLE, 2, &parts.concat(), 0)
    }

    #[test]
    fn a_sample_has_its_parts() {
        let bytes = sample();
        let Some(Record::Sample(sample)) = read(&bytes, &attr()) else { panic!("no sample") };
        assert_eq!((sample.ip, sample.pid, sample.tid, sample.time_ns), (0x1234, 7, 8, 99));
        assert_eq!(
            (sample.cpu, sample.period, sample.mode, sample.abi),
            (3, 1_000_000, mode::USER, 2)
        );
        assert_eq!(sample.chain.iter().collect::<Vec<_>>(), [11, 12]);
        assert_eq!(sample.registers.len(), REGISTERS.count_ones() as usize);
        assert_eq!(sample.stack, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!((time(&bytes), end(&bytes, 0)), (Some(99), Some(bytes.len())));
    }

    #[test]
    fn what_is_told_beside_samples() {
        let kin = record(kind::FORK, 0, &wide(&[5 << 32 | 4, 7 << 32 | 6, 50]), 50);
        let expected = Kin { pid: 4, tid: 6, parent_pid: 5, parent_tid: 7 };
        assert_eq!(read(&kin, &attr()), Some(Record::Forked(expected)));
        let name = [&wide(&[7 << 32 | 6])[..], b"sh\0\0\0\0\0\0"].concat();
        let named = record(kind::COMM, misc::COMM_EXEC, &name, 60);
        let expected = Record::Named { pid: 6, tid: 7, name: b"sh", is_exec: true };
        assert_eq!(read(&named, &attr()), Some(expected));
        assert_eq!(time(&named), Some(60));
        let lost = record(kind::LOST, 0, &wide(&[1, 17]), 70);
        assert_eq!(read(&lost, &attr()), Some(Record::Lost(17)));
        let id = [&[3, 0, 0, 0, 0xa, 0xb, 0xc][..], &[0; 17]].concat();
        let map = [
            &wide(&[7 << 32 | 6, 0x1000, 0x2000, 0x3000])[..],
            &id,
            &wide(&[2 << 32 | 5]),
            b"/lib/x\0\0",
        ];
        let map = record(kind::MMAP2, misc::BUILD_ID | 2, &map.concat(), 80);
        let Some(Record::Map(map)) = read(&map, &attr()) else { panic!("no map") };
        assert_eq!((map.address, map.length, map.offset), (0x1000, 0x2000, 0x3000));
        assert_eq!((map.protection, map.flags, map.path), (5, 2, &b"/lib/x"[..]));
        assert_eq!(map.build_id, [0xa, 0xb, 0xc]);
        assert_eq!(read(&record(99, 0, &[], 1), &attr()), None);
    }

    /// Guards: both events of a turn tell the same at times that differ.
    #[test]
    fn the_same_has_the_same_content() {
        let fork = |time| record(kind::FORK, 0, &wide(&[5 << 32 | 4, 7 << 32 | 6, time]), time);
        assert_eq!(content(&fork(50)), content(&fork(51)));
        let name = |time| record(kind::COMM, 0, &wide(&[7, 0x6873]), time);
        assert_eq!(content(&name(50)), content(&name(51)));
        assert_ne!(content(&name(50)), content(&record(kind::COMM, 0, &wide(&[8, 0x6873]), 50)));
        assert!(!is_told_once(&record(kind::LOST, 0, &wide(&[1, 17]), 70)));
    }

    proptest! {
        #[test]
        fn any_bytes_end(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), kind in 0u32..12, length in 0usize..300) {
            let _ = read(&bytes, &attr());
            let whole = sample();
            let _ = read(&whole[..length.min(whole.len())], &attr());
            if let Some(first) = bytes.first_chunk_mut() {
                *first = kind.to_le_bytes();
            }
            let _ = (read(&bytes, &attr()), time(&bytes), content(&bytes), end(&bytes, 0));
        }
    }
}
