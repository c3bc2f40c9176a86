//! Names of events as perf spells them, where the file does not say them.

use super::attr::Attr;

/// Names by `config`: `PERF_TYPE_HARDWARE`.
const HARDWARE: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];
/// `PERF_TYPE_SOFTWARE`.
const SOFTWARE: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];
/// `PERF_TYPE_HW_CACHE`: the cache, bits 0 to 7; what was done, bits 8 to 15; and whether it was there, bits 16 to 23.
const CACHES: [&str; 7] = ["L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"];
const DONE: [[&str; 2]; 3] =
    [["loads", "load-misses"], ["stores", "store-misses"], ["prefetches", "prefetch-misses"]];

/// The name of an event.
pub(super) fn of(attr: &Attr) -> String {
    let config = attr.config;
    // What kind of core it is of stands above the first 32 bits.
    let known = |names: &[&str]| {
        let at = usize::try_from(config & u64::from(u32::MAX)).unwrap_or(usize::MAX);
        names.get(at).map(|&name| name.to_owned())
    };
    let name = match attr.kind {
        0 => known(&HARDWARE).unwrap_or_else(|| "unknown-hardware".into()),
        1 => known(&SOFTWARE).unwrap_or_else(|| "unknown-software".into()),
        2 => format!("tracepoint:{config}"),
        3 => cache(config).unwrap_or_else(|| "unknown-cache".into()),
        4 => format!("raw {config:#x}"),
        5 => format!("mem:{:#x}", attr.address),
        kind => format!("type {kind} config {config:#x}"),
    };
    name + &attr.modifiers()
}

fn cache(config: u64) -> Option<String> {
    let byte = |at: u32| usize::from((config >> (8 * at)) as u8);
    let (cache, done) = (CACHES.get(byte(0))?, DONE.get(byte(1))?.get(byte(2))?);
    Some(format!("{cache}-{done}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_perf_spells_them() {
        let name = |kind, config| of(&Attr { kind, config, ..Attr::default() });
        // Guests count where nobody says otherwise; perf leaves them out, and then says nothing.
        assert_eq!(name(0, 1), "instructions:HG");
        assert_eq!(name(1, 0), "cpu-clock:HG");
        assert_eq!(name(3, 0x1_0003), "dTLB-load-misses:HG");
        assert_eq!(name(3, 0x100), "L1-dcache-stores:HG");
        assert_eq!(name(3, 0x77), "unknown-cache:HG");
        assert_eq!(name(4, 0x1a8), "raw 0x1a8:HG");
        assert_eq!(name(9, 1), "type 9 config 0x1:HG");
        // Precise, and of the host alone: bits 15, 16 and 20.
        let flags = |flags| of(&Attr { flags, ..Attr::default() });
        assert_eq!(flags(2 << 15 | 1 << 20), "cycles:ppH");
        assert_eq!(flags(2 << 15), "cycles:pp");
        assert_eq!(flags(1 << 20), "cycles");
        assert_eq!(flags(1 << 5 | 1 << 6 | 1 << 20), "cycles:uH");
    }
}
