//! Files that perf wrote: `tests/data/perf/README.md` says how.

use std::io::{Cursor, Read};
use std::process::Command;

use linux_perf_data::linux_perf_event_reader::EventRecord;
use linux_perf_data::{PerfFile, PerfFileReader, PerfFileRecord, PerfRecordIter};
use teeperf_wire::body::sample::{CONTEXT_USER, NO_TIME, abi, mode};
use teeperf_wire::body::{map, task};

use crate::seen::{Sample, Seen, folder, real, real_file};

/// Another reader's samples, as far as it tells them.
pub(crate) fn others(name: &str, bytes: &[u8]) -> Vec<Sample> {
    if name == "pipe.data" {
        let mut reader = PerfFileReader::parse_pipe(bytes).unwrap();
        return rest(&mut reader.record_iter, &mut reader.perf_file);
    }
    let mut reader = PerfFileReader::parse_file(Cursor::new(bytes)).unwrap();
    rest(&mut reader.record_iter, &mut reader.perf_file)
}

fn rest(records: &mut PerfRecordIter<impl Read>, file: &mut PerfFile) -> Vec<Sample> {
    let mut samples = Vec::new();
    while let Some(record) = records.next_record(file).unwrap() {
        let PerfFileRecord::EventRecord { attr_index, record } = record else { continue };
        let EventRecord::Sample(sample) = record.parse().unwrap() else { continue };
        let (stack, valid) = sample.user_stack.map_or((Vec::new(), 0), |(stack, valid)| {
            (stack.as_slice().into_owned(), valid as usize)
        });
        let registers = |regs: linux_perf_data::linux_perf_event_reader::Regs<'_>| {
            (0..64).filter_map(|number| regs.get(number)).collect()
        };
        samples.push(Sample {
            event: attr_index as u16 + 1,
            mode: sample.cpu_mode as u8,
            pid: sample.pid.unwrap() as u32,
            tid: sample.tid.unwrap() as u32,
            time: sample.timestamp.unwrap_or(NO_TIME),
            cpu: sample.cpu.unwrap_or(u32::MAX),
            ip: sample.ip.unwrap(),
            period: sample.period.unwrap(),
            chain: sample.callchain.map_or(Vec::new(), |chain| {
                (0..chain.len()).map(|at| chain.get(at).unwrap()).collect()
            }),
            registers: sample.user_regs.map_or(Vec::new(), registers),
            stack: stack[..valid.min(stack.len())].to_vec(),
            ..Sample::default()
        });
    }
    samples
}

/// As far as the other reader tells it.
pub(crate) fn common(sample: &Sample) -> Sample {
    let mut sample = sample.clone();
    (sample.abi, sample.mask) = (0, 0);
    sample
}

#[test]
fn another_reader_sees_the_same() {
    for (name, bytes) in real() {
        if name == "killed.data" {
            // It takes the size of the data for what it says.
            continue;
        }
        let seen = Seen::file(&bytes);
        let ours: Vec<Sample> = seen.samples.iter().map(common).collect();
        let others = others(&name, &bytes);
        assert_eq!(ours.len(), others.len(), "{name}");
        for (number, (ours, others)) in ours.iter().zip(&others).enumerate() {
            assert_eq!(ours, others, "{name}, sample {number}");
        }
    }
}

#[test]
fn all_is_in_order_and_whole() {
    for (name, bytes) in real() {
        let seen = Seen::file(&bytes);
        assert!(seen.times.is_sorted(), "{name}");
        assert_eq!(seen.lost, [], "{name}");
        if name == "killed.data" {
            assert_eq!(seen.end, None);
            assert!(seen.warnings[0].contains("perf did not close this file"));
            continue;
        }
        assert_eq!(seen.warnings, [""; 0], "{name}");
        // Where samples have no times, those that begin and end threads do, and no more.
        let (zero, end) = (seen.events[0].zero_ns, seen.end.unwrap().time);
        match (name == "per-thread.data", &seen.times[..]) {
            (false, [first, .., last]) => assert_eq!((zero, end), (*first, *last), "{name}"),
            _ => assert_eq!((zero, end), (0, 0)),
        }
    }
}

/// What is read through a pipe is the same but for what stands at the end.
#[test]
fn a_pipe_tells_the_same() {
    /// Gives a byte at a time.
    struct Slow<'a>(&'a [u8]);
    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let length = into.len().min(1);
            self.0.read(&mut into[..length])
        }
    }
    for (name, bytes) in real() {
        let (file, mut piped) = (Seen::file(&bytes), Seen::piped(Slow(&bytes)));
        assert_eq!(file.samples, piped.samples, "{name}");
        assert_eq!(file.tasks, piped.tasks, "{name}");
        let without = |seen: &Seen| {
            let mut maps = seen.maps.clone();
            maps.iter_mut().for_each(|map| map.build_id.clear());
            maps
        };
        assert_eq!(without(&file), without(&piped), "{name}");
        if !["pipe.data", "killed.data"].contains(&&*name) {
            let warning = piped.warnings.remove(0);
            assert!(warning.contains("through a pipe"), "{warning}");
        }
        assert_eq!(piped.warnings, file.warnings, "{name}");
    }
}

#[test]
fn the_run_is_told() {
    for name in ["fp.data", "pipe.data", "compressed.data"] {
        let seen = Seen::file(&real_file(name));
        let start = seen.start.unwrap();
        assert_eq!(start.writer, "perf 6.1.187", "{name}");
        assert_eq!((&*start.host, &*start.machine, start.hz), ("demo", "x86_64", 1_000_000_000));
        assert!(start.system.starts_with("Linux ") && start.processor.starts_with("AMD"), "{name}");
        assert!(start.processors > 0);
        assert_eq!(start.arguments[..2], ["/usr/bin/perf", "record"], "{name}");
        assert!(start.arguments.contains(&"./calls".to_owned()), "{name}");
        let [event] = &seen.events[..] else { panic!("one event: {:?}", seen.events) };
        assert_eq!((&*event.name, event.unit, event.machine), ("cpu-clock", 1, 62), "{name}");
        assert!(event.has_chain && event.perf == Some((1, 0)), "{name}");
    }
    let seen = Seen::file(&real_file("fp.data"));
    assert_eq!((seen.events[0].frequency, seen.events[0].period), (500, 0));
    let program = seen.maps.iter().find(|map| map.path == "/demo/calls").unwrap();
    assert_eq!((program.build_id.len(), program.mode, program.protection), (20, mode::USER, 5));
    let kernel = seen.maps.iter().find(|map| map.path.starts_with("[kernel")).unwrap();
    assert_eq!((kernel.pid, kernel.mode, kernel.time), (map::KERNEL, mode::KERNEL, None));
    let what = |what| seen.tasks.iter().filter(|task| task.what == what).count();
    assert_eq!((what(task::what::EXEC), what(task::what::FORK), what(task::what::EXIT)), (1, 2, 3));
    assert!(seen.tasks.iter().any(|task| task.name == "worker" && task.ids[0] != task.ids[1]));
    assert!(seen.samples.iter().any(|sample| sample.chain[0] == CONTEXT_USER));
}

/// A clock that perf was told to use has a time of day beside it.
#[test]
fn the_time_of_day_is_told() {
    let start = |name| Seen::file(&real_file(name)).start.unwrap();
    let wall = start("parts.data").wall_ns;
    let year_2000 = 946_684_800_000_000_000;
    assert!(wall > year_2000, "{wall}");
    assert_eq!(start("fp.data").wall_ns, 0);
}

#[test]
fn stacks_and_registers_are_whole() {
    for (name, size, asked) in [("dwarf.data", 1024, 1024), ("parts.data", 256, 256)] {
        let seen = Seen::file(&real_file(name));
        let event = &seen.events[0];
        assert_eq!((event.stack, event.registers), (asked, 0xff_0fff), "{name}");
        let of_programs =
            seen.samples.iter().filter(|sample| sample.abi == abi::BITS_64).collect::<Vec<_>>();
        assert!(!of_programs.is_empty());
        for sample in of_programs {
            assert_eq!((sample.mask, sample.registers.len()), (0xff_0fff, 20), "{name}");
            assert!(sample.stack.len() <= size, "{name}");
            if sample.mode == mode::USER {
                // asm/perf_regs.h: the instruction pointer has number 8.
                assert_eq!(sample.registers[8], sample.ip, "{name}");
            }
        }
        assert!(seen.samples.iter().any(|sample| sample.stack.len() > size / 2), "{name}");
    }
}

#[test]
fn samples_are_of_their_events() {
    let seen = Seen::file(&real_file("events.data"));
    let names: Vec<&str> = seen.events.iter().map(|event| &*event.name).collect();
    assert_eq!(names, ["cpu-clock", "page-faults", "sched:sched_switch"]);
    assert_eq!(seen.events.iter().map(|event| event.unit).collect::<Vec<_>>(), [1, 2, 2]);
    for event in 1..=3 {
        assert!(seen.samples.iter().any(|sample| sample.event == event), "{event}");
    }
    let parts = Seen::file(&real_file("parts.data"));
    assert_eq!(parts.events[0].period, 3_000_000);
    // --buildid-mmap: the kernel wrote them into the records.
    assert!(parts.maps.iter().any(|map| map.path == "/demo/calls" && map.build_id.len() == 20));
}

/// perf itself, where it is installed: each sample as it prints it.
#[test]
fn perf_prints_the_same() {
    let Ok(version) = Command::new("perf").arg("--version").output() else {
        eprintln!("perf is not installed: what it prints is not compared");
        return;
    };
    eprintln!("{}", String::from_utf8_lossy(&version.stdout).trim_end());
    for (name, bytes) in real() {
        let seen = Seen::file(&bytes);
        let has_time = seen.samples.iter().all(|sample| sample.time != NO_TIME);
        let fields =
            if has_time { "pid,tid,time,period,event,ip" } else { "pid,tid,period,event,ip" };
        let output = Command::new("perf")
            .args(["script", "--ns", "-G", "-F", fields, "-i"])
            .arg(folder().join(&name))
            // Files of root are read by root alone, without this.
            .arg("-f")
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let theirs: Vec<String> =
            printed.lines().map(words).filter(|line| !line.is_empty()).collect();
        let ours: Vec<String> = seen
            .samples
            .iter()
            .map(|sample| {
                let time = match has_time {
                    true => format!(
                        "{}.{:09}: ",
                        sample.time / 1_000_000_000,
                        sample.time % 1_000_000_000
                    ),
                    false => String::new(),
                };
                let event = &seen.events[usize::from(sample.event) - 1].name;
                let (pid, tid) = (sample.pid as i32, sample.tid as i32);
                format!("{pid}/{tid} {time}{} {event}: {:x}", sample.period, sample.ip)
            })
            .collect();
        if name == "killed.data" && theirs.is_empty() {
            // It does not read what has no size.
            continue;
        }
        assert_eq!(ours, theirs, "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
