//! `perf_event_attr`: what an event is, and what its samples have. It grew over the years: what an older one lacks is 0, and
//! what a newer one has more is skipped.

use super::bytes::{Bytes, Order};

/// Bytes of the first version, which had the fields up to `config1`.
const FIRST_SIZE: usize = 64;

/// What samples have: `PERF_SAMPLE_…`.
pub(super) mod has {
    pub(in super::super) const IP: u64 = 1;
    pub(in super::super) const TID: u64 = 1 << 1;
    pub(in super::super) const TIME: u64 = 1 << 2;
    pub(in super::super) const ADDR: u64 = 1 << 3;
    pub(in super::super) const READ: u64 = 1 << 4;
    pub(in super::super) const CALLCHAIN: u64 = 1 << 5;
    pub(in super::super) const ID: u64 = 1 << 6;
    pub(in super::super) const CPU: u64 = 1 << 7;
    pub(in super::super) const PERIOD: u64 = 1 << 8;
    pub(in super::super) const STREAM_ID: u64 = 1 << 9;
    pub(in super::super) const RAW: u64 = 1 << 10;
    pub(in super::super) const BRANCH_STACK: u64 = 1 << 11;
    pub(in super::super) const REGS_USER: u64 = 1 << 12;
    pub(in super::super) const STACK_USER: u64 = 1 << 13;
    pub(in super::super) const IDENTIFIER: u64 = 1 << 16;
    /// Those known, the last of which is `PERF_SAMPLE_WEIGHT_STRUCT`.
    pub(in super::super) const ALL: u64 = (1 << 25) - 1;
}

/// Bits of the flags.
mod flag {
    pub(super) const INHERIT: u32 = 1;
    pub(super) const EXCLUDE_USER: u32 = 4;
    pub(super) const EXCLUDE_KERNEL: u32 = 5;
    pub(super) const EXCLUDE_HV: u32 = 6;
    pub(super) const FREQ: u32 = 10;
    pub(super) const PRECISE_IP: u32 = 15;
    pub(super) const SAMPLE_ID_ALL: u32 = 18;
    pub(super) const EXCLUDE_HOST: u32 = 19;
    pub(super) const EXCLUDE_GUEST: u32 = 20;
}

/// `PERF_SAMPLE_BRANCH_HW_INDEX`.
pub(super) const BRANCH_HW_INDEX: u64 = 1 << 17;
/// `PERF_SAMPLE_BRANCH_COUNTERS`.
const BRANCH_COUNTERS: u64 = 1 << 19;

/// What there is to know of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attr {
    pub(super) kind: u32,
    pub(super) config: u64,
    /// Period, or samples a second.
    pub(super) period: u64,
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
    pub(super) flags: u64,
    /// Address of a breakpoint, as `bp_addr`.
    pub(super) address: u64,
    pub(super) branch_type: u64,
    pub(super) registers: u64,
    pub(super) stack: u32,
}

impl Attr {
    /// Takes one off the beginning of some bytes; nothing where it is not whole.
    pub(super) fn read(bytes: &mut Bytes<'_>) -> Option<Self> {
        let mut head = *bytes;
        let (_, size) = (head.u32()?, head.u32()?);
        let size = if size == 0 { FIRST_SIZE } else { size as usize };
        if size < FIRST_SIZE {
            return None;
        }
        // Fields that are not there are read off zeroes.
        let mut whole = [0; 96];
        let given = bytes.take(size)?;
        let known = given.len().min(whole.len());
        whole[..known].copy_from_slice(&given[..known]);
        let mut fields = Bytes { rest: &whole, order: bytes.order };
        let kind = fields.u32()?;
        fields.u32()?;
        let (config, period) = (fields.u64()?, fields.u64()?);
        let (sample_type, read_format) = (fields.u64()?, fields.u64()?);
        let flags: [u8; 8] = fields.array()?;
        // They are a bit field in C, which begins at the other end of each byte on a machine of the other order.
        let flags = u64::from_le_bytes(match bytes.order {
            Order::Little => flags,
            Order::Big => flags.map(u8::reverse_bits),
        });
        fields.u64()?;
        let address = fields.u64()?;
        fields.u64()?;
        let (branch_type, registers, stack) = (fields.u64()?, fields.u64()?, fields.u32()?);
        Some(Self {
            kind,
            config,
            period,
            sample_type,
            read_format,
            flags,
            address,
            branch_type,
            registers,
            stack,
        })
    }

    fn is(&self, bit: u32) -> bool {
        self.flags >> bit & 1 == 1
    }

    pub(super) fn has(&self, what: u64) -> bool {
        self.sample_type & what != 0
    }

    /// Whether `period` is samples a second.
    pub(super) fn is_frequency(&self) -> bool {
        self.is(flag::FREQ)
    }

    /// Whether all records end with who, when and where.
    pub(super) fn has_trailers(&self) -> bool {
        self.is(flag::SAMPLE_ID_ALL)
    }

    pub(super) fn has_branch_index(&self) -> bool {
        self.branch_type & BRANCH_HW_INDEX != 0
    }

    pub(super) fn has_branch_counters(&self) -> bool {
        self.branch_type & BRANCH_COUNTERS != 0
    }

    /// `precise_ip`: how near the instruction is at which a sample is.
    pub(super) fn precise(&self) -> u8 {
        (self.flags >> flag::PRECISE_IP & 3) as u8
    }

    /// Whether counts are those of a thread.
    pub(super) fn counts_by_thread(&self) -> bool {
        self.is(flag::INHERIT) && self.has(has::TID)
    }

    /// What perf writes behind the name of an event: `:u` for that of programs alone.
    pub(super) fn modifiers(&self) -> String {
        let mut letters = String::new();
        let kinds =
            [(flag::EXCLUDE_KERNEL, 'k'), (flag::EXCLUDE_USER, 'u'), (flag::EXCLUDE_HV, 'h')];
        let is_part = kinds.iter().any(|&(bit, _)| self.is(bit));
        if is_part {
            letters.extend(kinds.iter().filter(|&&(bit, _)| !self.is(bit)).map(|&(_, of)| of));
        }
        let precise = self.precise();
        letters.extend((0..precise).map(|_| 'p'));
        // Without any of these guests are counted unless they are left out, and with one they are not (`evsel__add_modifiers` of
        // Linux's `tools/perf/util/evsel.c`).
        let is_usual = self.is(flag::EXCLUDE_GUEST) != (is_part || precise > 0);
        if self.is(flag::EXCLUDE_HOST) || !is_usual {
            letters.extend((!self.is(flag::EXCLUDE_HOST)).then_some('H'));
            letters.extend((!self.is(flag::EXCLUDE_GUEST)).then_some('G'));
        }
        if letters.is_empty() { letters } else { format!(":{letters}") }
    }
}
