//! What the kernel tells of the programs that begin and end, and of the code that these map: events of
//! perf_event_open(2) that count nothing, one on each processor.
//!
//! The kernel grants such events to root (`CAP_PERFMON`), and to all where `kernel.perf_event_paranoid` is
//! below 1. Events that children inherit are granted to more recorders, but cost each child some 100 µs.

use crate::machine::monotonic_ns;
use crate::sample::attr::{Attr, Kind, flag};
use crate::sample::{Order, Record, Ring, online, read_record, time_of_record};
use std::fs::File;

/// `PERF_TYPE_SOFTWARE`, `PERF_COUNT_SW_DUMMY`.
const NOTHING: Kind = Kind { kind: 1, config: 9, name: "dummy", is_time: false };

/// Bytes of one processor's ring: all processes of the machine leave records there.
const RING: usize = 1 << 20;

/// The rings of all processors.
pub(super) struct News {
    attr: Attr,
    /// An event leaves its records for as long as it is open.
    processors: Vec<(File, Ring)>,
    order: Order,
}

impl News {
    /// Nothing where the kernel does not grant it.
    pub(super) fn open() -> Option<Self> {
        let mut attr = Attr::new(NOTHING).telling();
        attr.flags &= !(flag::DISABLED | flag::INHERIT | flag::BUILD_ID);
        attr.flags |= flag::EXCLUDE_KERNEL | flag::EXCLUDE_HYPERVISOR;
        let open = |processor| {
            let event = attr.open(-1, processor).ok()?;
            // The kernel grants users without rights less memory (perf_event_mlock_kb).
            let ring =
                [RING, Ring::LEAST].into_iter().find_map(|size| Ring::map(&event, size).ok());
            Some((event, ring?))
        };
        let processors = online().into_iter().map(open).collect::<Option<Vec<_>>>()?;
        Some(Self { attr, processors, order: Order::default() })
    }

    /// Gives the records that are complete, in the order of time, with their times by `CLOCK_MONOTONIC`.
    pub(super) fn take(&mut self, give: &mut dyn FnMut(u64, Record<'_>)) {
        let began = monotonic_ns();
        for (_, ring) in &self.processors {
            let mut bytes = Vec::new();
            ring.take(&mut bytes);
            self.order.add(bytes, began);
        }
        let attr = &self.attr;
        self.order.round(began, &mut |bytes| read(bytes, attr, give));
    }

    /// Gives all that are left.
    pub(super) fn finish(&mut self, give: &mut dyn FnMut(u64, Record<'_>)) {
        self.take(give);
        let attr = &self.attr;
        self.order.finish(&mut |bytes| read(bytes, attr, give));
    }
}

fn read(bytes: &[u8], attr: &Attr, give: &mut dyn FnMut(u64, Record<'_>)) {
    if let (Some(time), Some(record)) = (time_of_record(bytes), read_record(bytes, attr)) {
        give(time, record);
    }
}
