//! Records other than samples: `PERF_RECORD_…`.

use super::bytes::{Bytes, Order, until_zero};
use teeperf_wire::body::map;

/// Types of records.
pub(super) mod kind {
    pub(in super::super) const MMAP: u32 = 1;
    pub(in super::super) const LOST: u32 = 2;
    pub(in super::super) const COMM: u32 = 3;
    pub(in super::super) const EXIT: u32 = 4;
    pub(in super::super) const FORK: u32 = 7;
    pub(in super::super) const SAMPLE: u32 = 9;
    pub(in super::super) const MMAP2: u32 = 10;
    pub(in super::super) const AUX: u32 = 11;
    pub(in super::super) const LOST_SAMPLES: u32 = 13;
    pub(in super::super) const NAMESPACES: u32 = 16;
    pub(in super::super) const KSYMBOL: u32 = 17;
    /// The last of the kernel's that is known, `PERF_RECORD_AUX_OUTPUT_HW_ID`.
    pub(in super::super) const LAST: u32 = 21;
    /// `PERF_RECORD_CALLCHAIN_DEFERRED`.
    pub(in super::super) const DEFERRED: u32 = 22;
    /// From here on they are perf's own.
    pub(in super::super) const FIRST_OF_PERF: u32 = 64;
    pub(in super::super) const HEADER_ATTR: u32 = 64;
    pub(in super::super) const TRACING_DATA: u32 = 66;
    pub(in super::super) const BUILD_ID: u32 = 67;
    pub(in super::super) const FINISHED_ROUND: u32 = 68;
    pub(in super::super) const AUXTRACE_INFO: u32 = 70;
    pub(in super::super) const AUXTRACE: u32 = 71;
    pub(in super::super) const EVENT_UPDATE: u32 = 78;
    pub(in super::super) const HEADER_FEATURE: u32 = 80;
    pub(in super::super) const COMPRESSED: u32 = 81;
    pub(in super::super) const COMPRESSED2: u32 = 83;
    /// The last of perf's that is known, `PERF_RECORD_BPF_METADATA`.
    pub(in super::super) const LAST_OF_PERF: u32 = 84;
}

/// Bits of `misc`.
pub(super) const MISC_MODE: u16 = 7;
pub(super) const MISC_MMAP_DATA: u16 = 1 << 13;
pub(super) const MISC_COMM_EXEC: u16 = 1 << 13;
pub(super) const MISC_MMAP_BUILD_ID: u16 = 1 << 14;
/// Of `mmap(2)`.
const PROT_READ: u32 = 1;
/// Longest build-id of a record.
pub(super) const MOST_BUILD_ID: usize = 20;
/// Flag of a kernel symbol: it is there no more.
const KSYMBOL_GONE: u16 = 1;

/// One record.
#[derive(Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) kind: u32,
    pub(super) misc: u16,
    /// Where it stands in the file.
    pub(super) offset: u64,
    /// What is behind its head of eight bytes.
    pub(super) body: &'a [u8],
    pub(super) order: Order,
}

impl<'a> Record<'a> {
    pub(super) fn bytes(&self) -> Bytes<'a> {
        Bytes { rest: self.body, order: self.order }
    }

    /// What the processor ran in, numbered as in packets.
    pub(super) fn mode(&self) -> u8 {
        (self.misc & MISC_MODE) as u8
    }
}

/// Code, or data, that a process has from now on.
pub(super) struct Map<'a> {
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) address: u64,
    pub(super) length: u64,
    pub(super) offset: u64,
    pub(super) protection: u32,
    pub(super) flags: u32,
    pub(super) path: &'a [u8],
    pub(super) build_id: &'a [u8],
}

impl<'a> Map<'a> {
    /// Of a record that says so; nothing when it is not whole.
    pub(super) fn read(record: &Record<'a>) -> Option<Self> {
        let mut bytes = record.bytes();
        if record.kind == kind::KSYMBOL {
            let (address, length) = (bytes.u64()?, bytes.u32()?);
            let (_, flags) = (bytes.u16()?, bytes.u16()?);
            return (flags & KSYMBOL_GONE == 0).then(|| Self {
                pid: u32::MAX,
                tid: 0,
                address,
                length: length.into(),
                offset: 0,
                protection: PROT_READ | map::PROT_EXEC,
                flags: 0,
                path: until_zero(bytes.rest),
                build_id: &[],
            });
        }
        let (pid, tid) = (bytes.u32()?, bytes.u32()?);
        let (address, length, offset) = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
        let is_data = record.misc & MISC_MMAP_DATA != 0;
        let mut protection = if is_data { PROT_READ } else { PROT_READ | map::PROT_EXEC };
        let (mut flags, mut build_id) = (0, &[][..]);
        if record.kind == kind::MMAP2 {
            let file = bytes.take(4 + MOST_BUILD_ID)?;
            if record.misc & MISC_MMAP_BUILD_ID != 0 {
                build_id = &file[4..][..usize::from(file[0]).min(MOST_BUILD_ID)];
            }
            (protection, flags) = (bytes.u32()?, bytes.u32()?);
        }
        let path = until_zero(bytes.rest);
        Some(Self { pid, tid, address, length, offset, protection, flags, path, build_id })
    }
}

/// What became of a thread.
pub(super) struct Task<'a> {
    pub(super) pid: u32,
    pub(super) tid: u32,
    /// Process and thread that it comes from.
    pub(super) parent: Option<(u32, u32)>,
    pub(super) name: Option<&'a [u8]>,
    pub(super) is_exec: bool,
    /// When, where the record itself says so.
    pub(super) time: u64,
}

impl<'a> Task<'a> {
    /// Of a record that says so; nothing when it is not whole.
    pub(super) fn read(record: &Record<'a>) -> Option<Self> {
        let mut bytes = record.bytes();
        if record.kind == kind::COMM {
            return Some(Self {
                pid: bytes.u32()?,
                tid: bytes.u32()?,
                parent: None,
                name: Some(until_zero(bytes.rest)),
                is_exec: record.misc & MISC_COMM_EXEC != 0,
                time: 0,
            });
        }
        let (pid, parent_pid) = (bytes.u32()?, bytes.u32()?);
        let (tid, parent_tid) = (bytes.u32()?, bytes.u32()?);
        let parent = Some((parent_pid, parent_tid));
        Some(Self { pid, tid, parent, name: None, is_exec: false, time: bytes.u64()? })
    }
}
