//! Files written here number by number: what perf on this machine does not write.

use std::io::{Cursor, Read};
use std::os::unix::fs::MetadataExt;

use teeperf_interop::perf_data::{Error, Reader, is_perf_data};
use teeperf_profile::Packets;
use teeperf_wire::body::sample::{CONTEXT_KERNEL, CONTEXT_USER, NO_CPU, NO_TIME, abi, mode};
use teeperf_wire::body::{map, task};

use crate::built::{
    ADDR, Attr, BRANCH_STACK, CALLCHAIN, CPU, File, ID, IDENTIFIER, IP, Out, PERIOD, RAW, READ,
    REGS_USER, SAMPLE_ID_ALL, STACK_USER, TID, TIME,
};
use crate::seen::{Sample, Seen};

/// Two numbers of four bytes where one of eight stands.
fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// The same in a file of the other order.
fn pair_of(file: &File, first: u32, second: u32) -> u64 {
    if file.big { pair(second, first) } else { pair(first, second) }
}

/// An event of a program with all that stands before the stack.
fn full() -> Attr {
    Attr {
        kind: 1,
        period: 1_000_000,
        sample_type: IP | TID | TIME | ADDR | CPU | PERIOD | READ | CALLCHAIN | RAW | BRANCH_STACK | REGS_USER
            | STACK_USER | IDENTIFIER
            // Weight and what comes behind it.
            | 0x7f << 18,
        // A group, with both times, ids and losses.
        read_format: 31,
        // perf's index of the hardware's.
        branch_type: 1 << 17,
        registers: 0b1_0000_0100,
        stack: 16,
        ids: vec![77, 78],
        ..Attr::default()
    }
}

fn full_sample(file: &File) -> Out {
    let out = file.out().all(&[77, 0x40_1234]).u32(10).u32(11).u64(5_000).u64(0xdead);
    let out = out.u32(3).u32(0).u64(999);
    // Two members of the group: how much each has counted. The second has nothing yet.
    let out = out.all(&[2, 100, 100, 999, 77, 0, 0, 78, 0]);
    let out = out.all(&[4, CONTEXT_KERNEL, 0xffff_ffff_8100_0000, CONTEXT_USER, 0x40_1234]);
    let out = out.u32(12).raw(b"tracepoint's");
    let out = out.all(&[2, 0, 0x40_0001, 0x40_0002, 9, 0x40_0003, 0x40_0004, 9]);
    let out = out.all(&[2, 0x1111, 0x2222]);
    let out = out.u64(16).raw(b"stack of a prog.").u64(12);
    // Weight and all that is behind it is nothing that packets have.
    out.all(&[1, 2, 3])
}

fn full_seen() -> Sample {
    Sample {
        event: 1,
        mode: mode::USER,
        pid: 10,
        tid: 11,
        time: 5_000,
        cpu: 3,
        ip: 0x40_1234,
        period: 999,
        chain: vec![CONTEXT_KERNEL, 0xffff_ffff_8100_0000, CONTEXT_USER, 0x40_1234],
        abi: abi::BITS_64,
        mask: 0,
        registers: Vec::new(),
        stack: Vec::new(),
        branches: vec![0x40_0001, 0x40_0002, 0x40_0003, 0x40_0004],
        // The chain has addresses of the user, and perf puts what it finds on the stack behind them.
        outer: (0b1_0000_0100, vec![0x1111, 0x2222], b"stack of a p".to_vec()),
    }
}

#[test]
fn all_parts_are_stepped_over() {
    for big in [false, true] {
        let mut file = File { big, ..File::of(full()) };
        let body = full_sample(&file);
        file.record(9, 2, body);
        for seen in [Seen::file(&file.bytes()), Seen::piped(&*file.piped())] {
            assert_eq!(seen.samples, [full_seen()], "{big}");
            assert_eq!(seen.warnings, [""; 0]);
            assert_eq!((seen.events[0].period, seen.events[0].frequency), (1_000_000, 0));
            assert!(seen.end.is_some());
        }
    }
}

/// As `perf record --call-graph dwarf` has it: the chain is the kernel's alone, or of no address, and the stack the user's.
#[test]
fn a_stack_behind_the_kernels_chain_is_the_samples_own() {
    for chain in [&[2, CONTEXT_KERNEL, 0xffff_ffff_8100_0000][..], &[1, CONTEXT_USER], &[0]] {
        for big in [false, true] {
            let attr = Attr {
                sample_type: IP | TID | CALLCHAIN | REGS_USER | STACK_USER,
                registers: 0b1_0000_0100,
                stack: 16,
                ..Attr::default()
            };
            let mut file = File { big, ..File::of(attr) };
            let out = file.out().u64(0x1234).u32(1).u32(2).all(chain).all(&[2, 0x1111, 0x2222]);
            let out = out.u64(16).raw(b"stack of a prog.").u64(16);
            file.record(9, 2, out);
            let [sample] = &Seen::file(&file.bytes()).samples[..] else { panic!("one") };
            assert_eq!((sample.mask, &*sample.registers), (0b1_0000_0100, &[0x1111, 0x2222][..]));
            assert_eq!((&*sample.stack, sample.outer.0), (&b"stack of a prog."[..], 0));
        }
    }
}

/// Call stacks of Intel's last branch records: the branches are the chain.
#[test]
fn a_file_of_the_other_order_is_the_same() {
    let written = |big| {
        let attr = Attr {
            sample_type: IP | TID | TIME | CALLCHAIN | BRANCH_STACK,
            // Frequency, ids at each record's end, and what samples are of.
            flags: SAMPLE_ID_ALL | 1 << 10 | 1 << 5 | 1 << 6,
            kind: 0,
            period: 4000,
            ..Attr::default()
        };
        let mut file = File { big, ..File::of(attr) };
        let of = |file: &File, pid, tid| pair_of(file, pid, tid);
        let trailer = [of(&file, 7, 8), 100];
        let comm = file.out().u32(7).u32(8).text("name", 8).all(&trailer);
        file.record(3, 0, comm);
        let mmap = file.out().u32(7).u32(8).all(&[0x1000, 0x2000, 0x3000]).text("/a/b", 8);
        let mmap = mmap.all(&[of(&file, 7, 8), 200]);
        file.record(1, 2, mmap);
        let sample = [0x1010, of(&file, 7, 8), 300, 1, 0x1010, 1, 0x1020, 0x1030, 5];
        file.sample(&sample);
        file.features.push((3, file.out().u32(8).text("elsewhe", 8).bytes));
        file.features.push((6, file.out().u32(8).text("s390x", 8).bytes));
        Seen::file(&file.bytes())
    };
    let (little, big) = (written(false), written(true));
    assert_eq!(little, big);
    assert_eq!(little.samples[0].branches, [0x1020, 0x1030]);
    assert_eq!((little.samples[0].chain.len(), little.tasks.len(), little.maps.len()), (1, 1, 1));
    assert_eq!(little.times, [100, 200, 300]);
    let start = little.start.unwrap();
    assert_eq!((&*start.host, &*start.machine), ("elsewhe", "s390x"));
    let event = &little.events[0];
    assert_eq!((&*event.name, event.frequency, event.machine), ("cycles:u", 4000, 22));
}

/// As Gramine's SGX profiler writes them: MMAP, sizes that are no multiple of eight, no times, no ids, and a size of the
/// attributes without the place of ids.
#[test]
fn files_of_gramine_are_read() {
    let attr = Attr {
        kind: 1,
        sample_type: IP | TID | PERIOD | CALLCHAIN | REGS_USER | STACK_USER,
        registers: 0xff_01ff,
        size: 128,
        ..Attr::default()
    };
    let mut file = File::of(attr);
    let comm = file.out().u32(5).u32(5).raw(b"prog\0");
    file.record(3, 0, comm);
    let mmap = file.out().u32(5).u32(5).all(&[0x1000, 0x2000, 0]).raw(b"/usr/lib/libfoo.so\0");
    file.record(1, 0, mmap);
    let registers: Vec<u64> = (100..117).collect();
    let stack = vec![9; 8192];
    let sample = file.out().u64(0x1010).u32(5).u32(6).all(&[1000, 0, 2]);
    let sample = sample.all(&registers).u64(8192).raw(&stack).u64(8192);
    file.record(9, 2, sample);
    file.features.push((6, file.out().u32(7).text("x86_64", 7).bytes));
    let mut bytes = file.bytes();
    // It says 128 of what takes 144.
    bytes[16..24].copy_from_slice(&128u64.to_le_bytes());
    let seen = Seen::file(&bytes);
    assert_eq!(seen.warnings, [""; 0]);
    let sample = Sample {
        event: 1,
        mode: mode::USER,
        pid: 5,
        tid: 6,
        time: NO_TIME,
        cpu: NO_CPU,
        ip: 0x1010,
        period: 1000,
        abi: abi::BITS_64,
        mask: 0xff_01ff,
        registers,
        stack,
        ..Sample::default()
    };
    assert_eq!(seen.samples, [sample]);
    assert_eq!((&*seen.maps[0].path, seen.maps[0].time), ("/usr/lib/libfoo.so", None));
    assert_eq!((&*seen.tasks[0].name, seen.tasks[0].what), ("prog", task::what::NAME));
    assert_eq!((seen.events[0].machine, seen.start.unwrap().machine), (62, "x86_64".into()));
}

#[test]
fn attributes_of_every_size_are_read() {
    for size in [64, 72, 80, 96, 104, 112, 120, 128, 136, 200] {
        let attr = Attr { sample_type: IP | TID, config: 1, size, ..Attr::default() };
        let mut file = File::of(attr);
        file.sample(&[0x10, pair(1, 2)]);
        let seen = Seen::file(&file.bytes());
        assert_eq!((seen.samples[0].ip, seen.samples[0].tid), (0x10, 2), "{size}");
        assert_eq!(seen.events[0].perf, Some((0, 1)));
        assert_eq!(seen.warnings, [""; 0], "{size}");
    }
}

#[test]
fn ids_tell_events_apart() {
    for id in [IDENTIFIER, ID] {
        let attr = |config, ids| Attr {
            kind: 1,
            config,
            sample_type: IP | TID | TIME | id,
            flags: SAMPLE_ID_ALL,
            ids,
            ..Attr::default()
        };
        let attrs = vec![attr(0, vec![1, 2]), attr(2, vec![3])];
        let mut file = File { attrs, ..File::default() };
        for (time, number) in [(1u64, 3u64), (2, 1), (3, 2), (4, 9)] {
            let who = pair(1, 1);
            match id {
                IDENTIFIER => file.sample(&[number, 0x10, who, time]),
                _ => file.sample(&[0x10, who, time, number]),
            };
        }
        // Lost: of the first event; then samples of the second, by the trailer.
        let lost = file.out().all(&[2, 50, pair(1, 1), 5, 2]);
        file.record(2, 0, lost);
        let lost = file.out().all(&[60, pair(1, 1), 6, 3]);
        file.record(13, 0, lost);
        let seen = Seen::file(&file.bytes());
        assert_eq!(seen.samples.iter().map(|sample| sample.event).collect::<Vec<_>>(), [2, 1, 1]);
        assert_eq!(seen.lost, [(50, 1), (60, 2)]);
        let [warning] = &seen.warnings[..] else { panic!("{:?}", seen.warnings) };
        assert!(warning.starts_with("1 records are samples of events that the file does not name"));
    }
}

#[test]
fn what_becomes_of_tasks_and_maps_is_told() {
    let attr = Attr { sample_type: IP | TID | TIME, flags: SAMPLE_ID_ALL, ..Attr::default() };
    let mut file = File::of(attr);
    let trailer = |out: Out, time| out.u64(pair(1, 2)).u64(time);
    let exec = trailer(file.out().u32(1).u32(2).text("new", 8), 10);
    file.record(3, 1 << 13, exec);
    let fork = trailer(file.out().u32(3).u32(1).u32(4).u32(2).u64(11), 11);
    file.record(7, 0, fork);
    let build_id = [7; 20];
    let map2 = file.out().u32(1).u32(2).all(&[0x1000, 0x2000, 0x3000]);
    let map2 = map2.raw(&[20, 0, 0, 0]).raw(&build_id).u32(7).u32(2).text("/x", 8);
    let map2 = trailer(map2, 12);
    file.record(10, 2 | 1 << 14, map2);
    let data = trailer(file.out().u32(1).u32(2).all(&[0x9000, 0x1000, 0]).text("//anon", 8), 13);
    file.record(1, 2 | 1 << 13, data);
    let ksymbol = file.out().u64(0xffff_0000).u32(100).u16(1).u16(0).text("bpf_prog_x", 16);
    let ksymbol = trailer(ksymbol, 14);
    file.record(17, 1, ksymbol);
    let gone = file.out().u64(0xffff_0000).u32(100).u16(1).u16(1).text("bpf_prog_x", 16);
    let gone = trailer(gone, 15);
    file.record(17, 1, gone);
    let exit = trailer(file.out().u32(3).u32(1).u32(4).u32(2).u64(16), 16);
    file.record(4, 0, exit);
    let seen = Seen::file(&file.bytes());
    let what: Vec<_> = seen.tasks.iter().map(|task| (task.what, task.ids, task.time)).collect();
    assert_eq!(
        what,
        [
            (task::what::EXEC, [1, 2, 0, 0], Some(10)),
            (task::what::FORK, [3, 4, 1, 2], Some(11)),
            (task::what::EXIT, [3, 4, 1, 2], Some(16)),
        ]
    );
    assert_eq!(seen.tasks[0].name, "new");
    let maps: Vec<_> =
        seen.maps.iter().map(|map| (&*map.path, map.protection, map.mode, map.pid)).collect();
    assert_eq!(
        maps,
        [
            ("/x", 7, mode::USER, 1),
            ("//anon", 1, mode::USER, 1),
            ("bpf_prog_x", 5, mode::KERNEL, map::KERNEL)
        ]
    );
    assert_eq!(seen.maps[0].build_id, build_id);
}

/// A build-id stands in a table, of a length or of twenty bytes; the kernel's map has more in its path.
#[test]
fn build_ids_are_those_of_the_table() {
    let attr = Attr { sample_type: IP | TID, ..Attr::default() };
    let mut file = File::of(attr);
    for path in ["/x", "[kernel.kallsyms]_text", "/none"] {
        let mmap = file.out().u32(1).u32(1).all(&[0x1000, 0x2000, 0]).text(path, 24);
        file.record(1, 2, mmap);
    }
    let entry = |misc, length, path| {
        let out = file.out().u32(0).u16(misc).u16(36 + 24).u32(1).raw(&[5; 20]);
        out.raw(&[length, 0, 0, 0]).text(path, 24).bytes
    };
    let table = [entry(1 << 15, 8, "/x"), entry(0, 0, "[kernel.kallsyms]")].concat();
    file.features.push((2, table));
    file.features.push((3, file.out().u32(8).text("host", 8).bytes));
    let seen = Seen::file(&file.bytes());
    let lengths: Vec<_> = seen.maps.iter().map(|map| map.build_id.len()).collect();
    assert_eq!(lengths, [8, 20, 0]);
}

#[test]
fn data_that_is_not_counted_in_is_skipped() {
    let attr = Attr { sample_type: IP | TID, ..Attr::default() };
    for cut in [false, true] {
        let mut file = File::of(attr.clone());
        let auxtrace = file.out().all(&[3_000_000, 0, 0, 0, 0]);
        file.record(71, 0, auxtrace);
        file.data.resize(file.data.len() + 3_000_000, 0xee);
        let tracing = file.out().u32(100);
        file.record(66, 0, tracing);
        file.data.resize(file.data.len() + 100, 0xee);
        file.sample(&[0x10, pair(1, 2)]);
        if cut {
            let auxtrace = file.out().all(&[u64::MAX, 0, 0, 0, 0]);
            file.record(71, 0, auxtrace);
            file.data.push(1);
        }
        let seen = Seen::file(&file.bytes());
        assert_eq!(seen.samples.len(), 1);
        assert_eq!((seen.warnings.len(), seen.end.is_some()), (usize::from(cut), !cut));
    }
}

#[test]
fn records_are_put_in_the_order_of_time() {
    let attr = Attr { sample_type: IP | TID | TIME, flags: SAMPLE_ID_ALL, ..Attr::default() };
    let mut file = File::of(attr);
    let round = |file: &mut File, times: &[u64]| {
        for &time in times {
            file.sample(&[time, pair(1, 1), time]);
        }
        let nothing = file.out();
        file.record(68, 0, nothing);
    };
    round(&mut file, &[10, 20, 30, 15, 25]);
    round(&mut file, &[28, 40, 35, 5]);
    round(&mut file, &[50, 33, 45]);
    // It tells of an earlier time than what has gone by now.
    round(&mut file, &[60, 31]);
    let seen = Seen::file(&file.bytes());
    assert_eq!(seen.times, [5, 10, 15, 20, 25, 28, 30, 33, 35, 40, 31, 45, 50, 60]);
    let [warning] = &seen.warnings[..] else { panic!("{:?}", seen.warnings) };
    assert!(warning.starts_with("1 records come too late"), "{warning}");
}

#[test]
fn a_new_field_hides_no_old_one() {
    let attr = Attr { sample_type: IP | TID | 1 << 40, ..Attr::default() };
    let mut file = File::of(attr);
    file.sample(&[0x10, pair(1, 2), 5, 6, 7]);
    let nothing = file.out();
    file.record(60, 0, nothing.clone());
    file.record(99, 0, nothing);
    let seen = Seen::file(&file.bytes());
    assert_eq!(seen.samples.len(), 1);
    assert!(seen.warnings[0].contains("0x10000000000"), "{:?}", seen.warnings);
    assert!(seen.warnings[1].starts_with("2 records are of types that are not known"));
}

#[test]
fn what_is_not_whole_is_left_out_and_said() {
    let mut file = File::of(full());
    let sample = full_sample(&file);
    file.record(9, 2, sample.clone());
    for length in 0..sample.bytes.len() - 24 {
        let body = file.out().raw(&sample.bytes[..length]);
        file.record(9, 2, body);
    }
    let first = file.data.len();
    let seen = Seen::file(&file.bytes());
    assert_eq!(seen.samples, [full_seen()]);
    let count = sample.bytes.len() - 24;
    let [warning] = &seen.warnings[..] else { panic!("{:?}", seen.warnings) };
    assert!(warning.starts_with(&format!("{count} records are shorter than they should be")));
    assert!(first > 0 && seen.end.is_some());

    // A record of no bytes ends all.
    let zeroes = [0; 32];
    file.data.extend(zeroes);
    let seen = Seen::file(&file.bytes());
    assert_eq!((seen.samples.len(), seen.end), (1, None));
    assert!(seen.warnings[1].contains("a record has 0 bytes"), "{:?}", seen.warnings);
}

#[test]
fn what_cannot_be_read_at_all_is_an_error() {
    let file = File::of(full()).bytes();
    for length in [0, 7, 15, 16, 50, 103] {
        let opened = Reader::open("name", Cursor::new(&file[..length])).err().unwrap();
        let piped = Reader::from_read("name", &file[..length]).err().unwrap();
        for error in [opened, piped] {
            let told = error.to_string();
            assert!(
                told.starts_with(&format!("name: offset {}", if length < 8 { 0 } else { length })),
                "{told}"
            );
            assert!(matches!(error, Error::Head { .. }));
        }
    }
    assert!(is_perf_data(&file) && is_perf_data(b"2ELIFREP") && !is_perf_data(b"PERFFILE"));
}

/// What a length claims is not believed before it is there.
#[test]
fn lengths_that_cannot_be_take_no_memory() {
    let mut file = File::of(full());
    let sample = full_sample(&file);
    file.record(9, 2, sample);
    file.features.push((3, file.out().u32(u32::MAX).bytes));
    file.features.push((11, file.out().u32(u32::MAX).bytes));
    file.features.push((12, file.out().u32(u32::MAX).u32(u32::MAX).bytes));
    let mut bytes = file.bytes();
    let seen = Seen::file(&bytes);
    assert_eq!((seen.samples.len(), seen.warnings.len()), (1, 3));
    // The sections' sizes, in the list of the features and in the head.
    let list = bytes.len() - 16 - 3 * 16;
    for at in [list + 8, 32, 48] {
        let mut bytes = bytes.clone();
        bytes[at..at + 8].copy_from_slice(&(1u64 << 46).to_le_bytes());
        assert!(!Seen::file(&bytes).warnings.is_empty());
    }
    bytes[40..48].copy_from_slice(&(1u64 << 46).to_le_bytes());
    assert!(Reader::from_read("name", &*bytes).is_err());
    assert!(Reader::open("name", Cursor::new(&bytes)).is_err());
}

/// Packets are large, and memory does not grow with the file.
#[test]
fn many_samples_are_few_packets() {
    let attr = Attr { sample_type: IP | TID | TIME, ..Attr::default() };
    let mut file = File::of(attr);
    for time in 1..100_000 {
        file.sample(&[time, pair(1, 1), time]);
        if time % 1000 == 0 {
            let nothing = file.out();
            file.record(68, 0, nothing);
        }
    }
    let bytes = file.bytes();
    let seen = Seen::file(&bytes);
    assert_eq!(seen.samples.len(), 99_999);
    // 16,383 samples of 64 bytes go into one; START, SAMPLED and END are three more.
    assert_eq!(seen.packets, 7 + 3);
}

#[test]
fn a_stream_that_fails_has_what_came_before() {
    struct Failing<'a>(&'a [u8]);
    impl Read for Failing<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            match self.0.read(into)? {
                0 => Err(std::io::Error::other("torn")),
                bytes => Ok(bytes),
            }
        }
    }
    let mut file = File::of(Attr { sample_type: IP | TID, ..Attr::default() });
    file.sample(&[0x10, pair(1, 2)]).sample(&[0x20, pair(1, 2)]);
    let mut bytes = file.bytes();
    bytes.truncate(bytes.len() - 3);
    let mut reader = Reader::from_read("torn", Failing(&bytes)).unwrap();
    assert_eq!(reader.name(), "torn");
    let seen = Seen::of(&mut reader);
    assert_eq!((seen.samples.len(), seen.end), (1, None));
    assert!(seen.warnings[0].ends_with("cannot be read on: torn"), "{:?}", seen.warnings);
    let offset = bytes.len();
    assert!(seen.warnings[0].starts_with(&format!("offset {offset}:")), "{:?}", seen.warnings);
}

/// Compressed data is one stream over all records, and records begin in one and end in another.
#[test]
fn what_is_compressed_goes_on_from_record_to_record() {
    let attr = Attr { sample_type: IP | TID, ..Attr::default() };
    for kind in [81, 83] {
        let mut plain = File::of(attr.clone());
        for number in 0..5000 {
            plain.sample(&[number, pair(1, 2)]);
        }
        let packed = zstd::bulk::compress(&plain.data, 1).unwrap();
        let mut file = File::of(attr.clone());
        for part in packed.chunks(1001) {
            let body = match kind {
                81 => file.out().raw(part),
                // How long it is, and zeroes up to a multiple of eight.
                _ => {
                    let filled = part.len().next_multiple_of(8);
                    let mut body = file.out().u64(part.len() as u64).raw(part);
                    body.bytes.resize(8 + filled, 0);
                    body
                }
            };
            file.record(kind, 0, body);
            let nothing = file.out();
            file.record(68, 0, nothing);
        }
        let seen = Seen::file(&file.bytes());
        assert_eq!(seen.warnings, [""; 0], "{kind}");
        assert!(seen.samples.iter().map(|sample| sample.ip).eq(0..5000), "{kind}");

        // What follows is nothing that was compressed: what stands before it counts.
        for _ in 0..2 {
            let body = file.out().u64(8).raw(&[0xff; 8]);
            file.record(kind, 0, body);
        }
        let seen = Seen::file(&file.bytes());
        let [warning] = &seen.warnings[..] else { panic!("{:?}", seen.warnings) };
        assert!(warning.contains("what is compressed cannot be read from here on"), "{warning}");
        assert_eq!((seen.end, seen.samples.len()), (None, 5000));
    }
}

/// A few bytes that become very many are no data of perf's.
#[test]
fn what_becomes_too_much_is_left_out() {
    let mut file = File::of(Attr { sample_type: IP | TID, ..Attr::default() });
    let rounds = [68, 0, 0, 0, 0, 0, 8, 0].repeat(16 << 20);
    let packed = zstd::bulk::compress(&rounds, 19).unwrap();
    assert!(packed.len() < 50_000);
    let packed = file.out().raw(&packed);
    file.record(81, 0, packed);
    file.sample(&[0x10, pair(1, 2)]);
    let seen = Seen::file(&file.bytes());
    assert_eq!((seen.samples.len(), seen.end), (1, None));
    assert!(seen.warnings[0].ends_with("it becomes too much"), "{:?}", seen.warnings);
}

/// In a pipe names come in records of their own, and so may events.
#[test]
fn names_and_events_come_in_a_pipe() {
    let attr = |config, ids| Attr {
        kind: 1,
        config,
        sample_type: IP | TID | TIME | IDENTIFIER,
        ids,
        ..Attr::default()
    };
    let attrs = vec![attr(0, vec![1]), attr(2, vec![2])];
    let mut file = File { attrs, ..File::default() };
    let update = file.out().u64(2).u64(2).text("faults!", 8);
    file.record(78, 0, update);
    // A unit, and a name of an event that is not there.
    let other = file.out().u64(0).u64(1).text("unit", 8);
    file.record(78, 0, other);
    let other = file.out().u64(2).u64(9).text("none", 8);
    file.record(78, 0, other);
    file.sample(&[2, 0x10, pair(1, 1), 5]);
    let late = attr(9, vec![3]);
    let late = file.out().raw(&file.attr(&late)).u64(3);
    file.record(64, 0, late);
    file.sample(&[3, 0x10, pair(1, 1), 6]);
    let seen = Seen::piped(&*file.piped());
    let names: Vec<_> = seen.events.iter().map(|event| &*event.name).collect();
    assert_eq!(names, ["cpu-clock:HG", "faults!", "dummy:HG"]);
    assert_eq!(seen.samples.iter().map(|sample| sample.event).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(seen.warnings, [""; 0]);
}

/// `PERF_RECORD_NAMESPACES`: a process is in a mount namespace of this inode.
fn in_namespace(file: &File, pid: u32, inode: u64) -> Out {
    let kinds = (0..7).flat_map(|kind| [4, if kind == 5 { inode } else { 1 }]);
    file.out().u32(pid).u32(pid).u64(7).all(&kinds.collect::<Vec<_>>())
}

/// Guards: files of a process in another mount namespace are not those of the same path here.
#[test]
fn files_of_another_mount_namespace_have_a_number() {
    let own = std::fs::metadata("/proc/self/ns/mnt").unwrap().ino();
    let mut file = File::of(Attr { sample_type: IP | TID, ..Attr::default() });
    for (pid, inode) in [(1, own), (2, own + 1)] {
        let record = in_namespace(&file, pid, inode);
        file.record(16, 0, record);
    }
    let cut = file.out().u32(3).u32(3).u64(1).all(&[4, 1]);
    file.record(16, 0, cut);
    for pid in [1, 2, 3] {
        let mmap = file.out().u32(pid).u32(pid).all(&[0x1000, 0x2000, 0]).text("/x", 8);
        file.record(1, 2, mmap);
    }
    let seen = Seen::file(&file.bytes());
    let numbers: Vec<_> = seen.maps.iter().map(|map| (map.pid, map.file)).collect();
    assert_eq!(numbers, [(1, 0), (2, u64::MAX), (3, 0)]);
    assert!(
        seen.warnings.len() == 1 && seen.warnings[0].contains("shorter"),
        "{:?}",
        seen.warnings
    );
}

/// Guards: it is said where a build-id comes through a pipe when the samples have been read.
#[test]
fn build_ids_that_come_late_in_a_pipe() {
    let mut file = File::of(Attr { sample_type: IP | TID | TIME, ..Attr::default() });
    for path in ["/x", "/y", "/none"] {
        let mmap = file.out().u32(1).u32(1).all(&[0x1000, 0x2000, 0]).text(path, 8);
        file.record(1, 2, mmap);
    }
    file.sample(&[0x1010, pair(1, 1), 5]);
    for _ in 0..2 {
        file.record(68, 0, file.out());
    }
    let early = Seen::piped(&*file.piped());
    assert_eq!(early.warnings, [""; 0]);
    for path in ["/x", "/y", "/unmapped"] {
        let body = file.out().u32(1).raw(&[5; 20]).raw(&[20, 0, 0, 0]).text(path, 16);
        file.record(67, 1 << 15 | 2, body);
    }
    let late = Seen::piped(&*file.piped());
    assert_eq!(late.warnings.len(), 1, "{:?}", late.warnings);
    let text = &late.warnings[0];
    assert!(text.contains("of 2 files, the first of them /x,") && text.contains("perf record -o"));
    let lengths = |seen: &Seen| seen.maps.iter().map(|map| map.build_id.len()).collect::<Vec<_>>();
    assert_eq!((lengths(&early), lengths(&late)), (vec![0; 3], vec![0; 3]));
}

/// All processors in turn, of a machine's guests too.
#[test]
fn modes_are_kept() {
    let mut file = File::of(Attr { sample_type: IP | TID | CPU, ..Attr::default() });
    for misc in 0..8 {
        let body = file.out().u64(0x10).u32(1).u32(1).u32(misc.into()).u32(0);
        file.record(9, misc | 1 << 14, body);
    }
    let seen = Seen::file(&file.bytes());
    let modes: Vec<_> = seen.samples.iter().map(|sample| (sample.mode, sample.cpu)).collect();
    assert_eq!(modes, (0..8).map(|misc| (misc, u32::from(misc))).collect::<Vec<_>>());
    assert_eq!(seen.samples[4].mode, mode::GUEST_KERNEL);
}
