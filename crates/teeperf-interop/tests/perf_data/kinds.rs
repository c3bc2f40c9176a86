//! What else perf records, in files that are written here: groups of events, folders, branches, and what is left out with a word.

use std::io::Cursor;

use teeperf_interop::perf_data::{Reader, write};
use teeperf_symbols::Search;
use teeperf_wire::body::map;

use crate::built::{
    Attr, BRANCH_STACK, CALLCHAIN, File, IDENTIFIER, IP, PERIOD, READ, SAMPLE_ID_ALL, TID, TIME,
};
use crate::seen::Seen;

/// `PERF_FORMAT_ID` and `PERF_FORMAT_GROUP`.
const GROUP_WITH_IDS: u64 = 4 | 8;
/// `precise_ip` of 2, in a file of the usual order.
const PRECISE: u64 = 2 << 15;

/// Process and thread of one number, in either order.
fn tid(id: u32) -> u64 {
    u64::from(id) << 32 | u64::from(id)
}

/// Guards: a sample of a group counts for each event of it, as much as that counted since the sample before.
#[test]
fn a_sample_of_a_group_counts_for_all_its_events() {
    for big in [false, true] {
        let attr = |id, read_format| Attr {
            sample_type: IDENTIFIER | IP | TID | TIME | READ,
            read_format,
            period: 1000,
            ids: vec![id],
            ..Attr::default()
        };
        let attrs = vec![attr(50, GROUP_WITH_IDS), attr(51, GROUP_WITH_IDS), attr(52, 4)];
        let mut file = File { big, attrs, ..File::default() };
        let id = tid(7);
        file.sample(&[50, 0x10, id, 100, 2, 5, 50, 30, 51]);
        // The second has counted nothing more.
        file.sample(&[50, 0x11, id, 200, 2, 12, 50, 30, 51]);
        // A count of its own, and one of an event that nobody named.
        file.sample(&[52, 0x12, id, 300, 40, 52]);
        file.sample(&[50, 0x13, id, 400, 2, 13, 50, 7, 99]);
        for seen in [Seen::file(&file.bytes()), Seen::piped(&file.piped()[..])] {
            let counted: Vec<_> = seen
                .samples
                .iter()
                .map(|sample| (sample.ip, sample.event, sample.period))
                .collect();
            let wanted = [(0x10, 1, 5), (0x10, 2, 30), (0x11, 1, 7), (0x12, 3, 40), (0x13, 1, 1)];
            assert_eq!(counted, wanted, "{big}");
            let [warning] = &seen.warnings[..] else { panic!("{:?}", seen.warnings) };
            assert!(warning.contains("events that the file does not name"), "{warning}");
        }
    }
}

/// Guards: counts are by thread where events are inherited.
#[test]
fn inherited_counts_are_those_of_a_thread() {
    let attr = Attr {
        sample_type: IDENTIFIER | IP | TID | TIME | READ,
        read_format: 4,
        // `inherit`.
        flags: 2,
        ids: vec![50],
        ..Attr::default()
    };
    let mut file = File::of(attr);
    for (thread, time, count) in [(7, 100, 5), (8, 200, 3), (7, 300, 6), (8, 400, 9)] {
        file.sample(&[50, 0x10, tid(thread), time, count, 50]);
    }
    let periods: Vec<_> = Seen::file(&file.bytes()).samples.iter().map(|s| s.period).collect();
    assert_eq!(periods, [5, 3, 1, 6]);
}

#[test]
fn what_is_not_read_has_a_name() {
    let attr = Attr { sample_type: IP | TID | TIME, flags: SAMPLE_ID_ALL, ..Attr::default() };
    let mut file = File::of(attr);
    let dump =
        file.out().u32(7).u32(7).all(&[0x1000, 0x1000, 0]).text("/home/u/.debug/jit-7.dump", 32);
    let dump = dump.all(&[tid(7), 100]);
    file.record(1, 2, dump);
    // No marker: it only looks like one.
    let other = file.out().u32(7).u32(7).all(&[0x3000, 0x1000, 0]).text("/opt/jit-x.dump", 16);
    let other = other.all(&[tid(7), 100]);
    file.record(1, 2, other);
    // AUXTRACE_INFO of Intel PT, AUX of 4096 bytes, a call chain that comes later.
    let info = file.out().u32(1).u32(0);
    file.record(70, 0, info);
    let aux = file.out().all(&[0, 4096, 0, tid(7), 110]);
    file.record(11, 0, aux);
    let deferred = file.out().all(&[1, 1, 0x10, tid(7), 120]);
    file.record(22, 0, deferred);
    file.sample(&[0x10, tid(7), 130]);
    let seen = Seen::file(&file.bytes());
    assert_eq!((seen.samples.len(), seen.maps.len()), (1, 2));
    let said = seen.warnings.join("\n");
    for wanted in [
        "1 processes tell of code",
        "jit-7.dump",
        "perf inject --jit",
        "4096 bytes that the processor traced by itself (Intel PT)",
        "1 records are call chains of programs that the kernel gives later",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
}

/// Guards: what `perf record --threads` wrote is one file.
#[test]
fn the_files_of_a_folder_are_one() {
    let attr = Attr { sample_type: IP | TID | TIME, flags: SAMPLE_ID_ALL, ..Attr::default() };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut head = File::of(attr.clone());
    let comm = head.out().u32(7).u32(7).text("prog", 8).all(&[tid(7), 1]);
    head.record(3, 0, comm);
    std::fs::write(at("data"), head.bytes()).unwrap();
    let mut expected = Vec::new();
    for (number, name) in ["data.0", "data.2", "data.10"].into_iter().enumerate() {
        let mut part = File::of(attr.clone());
        for step in 0..2000u64 {
            // Each has its own time, and every other sample of a part is the wrong way round.
            let time = 10 + 3 * (step ^ 1) + number as u64;
            part.sample(&[time, tid(7), time]);
            expected.push(time);
        }
        // A round that one of them finished says nothing of the others.
        let nothing = part.out();
        part.record(68, 0, nothing);
        part.record(68, 0, part.out());
        std::fs::write(at(name), &part.data).unwrap();
    }
    std::fs::write(at("data.old"), b"is none of them").unwrap();
    expected.sort_unstable();
    for share in [false, true] {
        let mut reader = Reader::of_folder("folder", folder.path()).unwrap();
        if share {
            teeperf_profile::Packets::share_samples(&mut reader);
        }
        let seen = Seen::of(&mut reader);
        let times: Vec<u64> = seen.samples.iter().map(|sample| sample.time).collect();
        assert_eq!(times, expected, "{share}");
        assert_eq!((seen.tasks.len(), seen.warnings.len()), (1, 0), "{:?}", seen.warnings);
        assert!(seen.end.is_some());
    }
    // One that was cut short is named.
    let cut = std::fs::read(at("data.2")).unwrap();
    std::fs::write(at("data.2"), &cut[..cut.len() - 5]).unwrap();
    let seen = Seen::of(&mut Reader::of_folder("folder", folder.path()).unwrap());
    assert!(seen.warnings[0].starts_with("data.2: the file ends at "), "{:?}", seen.warnings);
    assert!(seen.end.is_none());
}

/// Guards: in a file that came out of a pipe, build-ids may stand behind the code that they are of.
#[test]
fn what_a_pipe_says_late_is_known_from_the_beginning_on() {
    for big in [false, true] {
        let attr = Attr { sample_type: IP | TID | TIME, ..Attr::default() };
        let mut file = File { big, ..File::of(attr) };
        let kernel = file.out().u32(u32::MAX).u32(0).all(&[0x1000, 0x1000, 0x1000]);
        file.record(1, 1, kernel.text("[kernel.kallsyms]_text", 24));
        file.sample(&[0x1010, tid(7), 100]);
        // Data that is not counted in, which looks like a record.
        let trace = file.out().all(&[24, 0, 0, 0, 0]);
        file.record(71, 0, trace);
        let behind = file.out().all(&[u64::MAX; 3]).bytes;
        file.data.extend(behind);
        let id = file
            .out()
            .u32(u32::MAX)
            .raw(&[5; 20])
            .raw(&[20, 0, 0, 0])
            .text("/boot/vmlinux-5.10", 24);
        file.record(67, 1, id);
        let seen = Seen::file(&file.piped());
        assert_eq!(seen.maps[0].build_id, [5; 20], "{big}");
        assert_eq!((seen.maps[0].pid, seen.samples.len()), (map::KERNEL, 1));
    }
}

/// Guards: what branches are, and that samples are precise, is what a file says that is written again.
#[test]
fn branches_and_precision_are_kept() {
    let branches = |branch_type| {
        let attr = Attr {
            sample_type: IP | TID | TIME | PERIOD | CALLCHAIN | BRANCH_STACK,
            flags: PRECISE,
            branch_type,
            ..Attr::default()
        };
        let mut file = File::of(attr);
        let index: &[u64] = if branch_type >> 17 & 1 == 1 { &[0] } else { &[] };
        let counters: &[u64] = if branch_type >> 19 & 1 == 1 { &[9] } else { &[] };
        let before = [0x10, tid(7), 100, 5, 2, u64::MAX - 511, 0x10, 1];
        file.sample(&[&before[..], index, &[0x30, 0x40, 0], counters].concat());
        let mut written = Cursor::new(Vec::new());
        let mut reader = Reader::open("made", Cursor::new(file.bytes())).unwrap();
        write(&mut reader, "test", Search::nowhere_else(), &mut written).unwrap();
        let (first, again) = (Seen::file(&file.bytes()), Seen::file(written.get_ref()));
        assert_eq!(first.samples, again.samples);
        assert_eq!(again.samples[0].branches, [0x30, 0x40]);
        assert_eq!((first.events[0].precise, again.events[0].precise), (2, 2));
        assert_eq!(first.events[0].branches, branch_type);
        // A period of 0 is one that readers divide by.
        assert_eq!(again.events[0].period, 1);
        again.events[0].branches
    };
    // Any, of programs; calls that have not returned; with an index; with counters, which are not written.
    for kept in [1 | 1 << 3, 1 | 1 << 11, 1 | 1 << 11 | 1 << 17] {
        assert_eq!(branches(kept), kept);
    }
    assert_eq!(branches(1 | 1 << 3 | 1 << 19), 1 | 1 << 3);
}
