//! What is written: read by our reader, by another, and by perf itself, which has to say nothing against it and print what it prints of
//! its own file.

use std::io::Cursor;
use std::path::Path;
use std::process::{Command, Output};

use teeperf_interop::perf_data::{Reader, WriteError, Written, write};
use teeperf_profile::{Packets, Recording};
use teeperf_symbols::Search;
use teeperf_wire::body::sample::CONTEXT_USER;
use teeperf_wire::packet::Header;

use crate::built::{
    Attr, BRANCH_STACK, CALLCHAIN, File, IP, REGS_USER, SAMPLE_ID_ALL, STACK_USER, TID, TIME,
};
use crate::real::others;
use crate::seen::{Seen, folder, real, real_file};

fn written(packets: &mut dyn Packets) -> (Vec<u8>, Written) {
    let mut out = Cursor::new(Vec::new());
    let written = write(packets, "teeperf", Search::default(), &mut out).unwrap();
    (out.into_inner(), written)
}

fn again(bytes: &[u8]) -> (Vec<u8>, Written) {
    written(&mut Reader::open("bytes", Cursor::new(bytes)).unwrap())
}

/// As far as a file that we write can say it: whose periods are known otherwise, and names of tracepoints are names alone.
fn common(mut seen: Seen) -> Seen {
    seen.packets = 0;
    seen.warnings.clear();
    seen.end = None;
    for event in &mut seen.events {
        event.perf = None;
    }
    // Registers that nobody has are those of no ABI.
    for map in &mut seen.maps {
        if map.protection == 0 {
            map.protection = 1;
        }
    }
    seen
}

#[test]
fn what_is_written_is_what_was_read() {
    for (name, bytes) in real() {
        let (copy, told) = again(&bytes);
        let (before, after) = (Seen::file(&bytes), Seen::file(&copy));
        assert_eq!(after.warnings, [""; 0], "{name}");
        assert_eq!(told, Written { samples: before.samples.len() as u64, ..Written::default() });
        let (before, after) = (common(before), common(after));
        assert_eq!(before.start, after.start, "{name}");
        assert_eq!(before.events, after.events, "{name}");
        assert_eq!(before.maps, after.maps, "{name}");
        assert_eq!(before.tasks, after.tasks, "{name}");
        assert_eq!(before.samples, after.samples, "{name}");
        // And again the same bytes.
        assert_eq!(again(&copy).0, copy, "{name}");
        // Another reader finds what we do.
        let theirs = others("copy", &copy);
        let ours: Vec<_> = after.samples.iter().map(crate::real::common).collect();
        assert_eq!(theirs, ours, "{name}");
    }
}

/// A recording that has samples is written as they are, whoever took them.
#[test]
fn recordings_are_written() {
    for (name, bytes) in real() {
        let mut recording = Vec::new();
        let mut reader = Reader::open("bytes", Cursor::new(&bytes)).unwrap();
        while let Some(packet) = reader.next_packet().unwrap() {
            let head = Header::encode(packet.kind, packet.sequence, packet.payload);
            recording.extend(head);
            recording.extend(packet.payload);
        }
        let (copy, _) = written(&mut Recording::from_read(&*recording, &*name));
        assert_eq!(copy, again(&bytes).0, "{name}");
    }
}

/// Call stacks of last branch records.
#[test]
fn branches_are_written() {
    let attr = Attr {
        sample_type: IP | TID | TIME | CALLCHAIN | BRANCH_STACK,
        flags: SAMPLE_ID_ALL,
        ..Attr::default()
    };
    let mut file = File::of(attr);
    file.sample(&[0x1010, 7, 300, 1, 0x1010, 2, 0x1020, 0x1030, 5, 0x1040, 0x1050, 6]);
    let lost = file.out().all(&[1, 44, 7, 400]);
    file.record(2, 0, lost);
    let seen = Seen::file(&again(&file.bytes()).0);
    assert_eq!(seen.samples[0].branches, [0x1020, 0x1030, 0x1040, 0x1050]);
    assert_eq!(seen.lost, [(44, 1)]);
}

/// A chain of the user's, and a stack that goes on behind it.
#[test]
fn outer_stacks_are_written() {
    let attr = Attr {
        sample_type: IP | TID | TIME | CALLCHAIN | REGS_USER | STACK_USER,
        flags: SAMPLE_ID_ALL,
        registers: 0b1_1100_0000,
        stack: 16,
        ..Attr::default()
    };
    let mut file = File::of(attr);
    let out = file.out().all(&[0x1010, 7, 300, 2, CONTEXT_USER, 0x1010, 2, 0x11, 0x22, 0x33]);
    let out = out.u64(16).raw(b"stack of a host.").u64(16);
    file.record(9, 2, out);
    let (copy, told) = again(&file.bytes());
    let seen = Seen::file(&copy);
    assert_eq!(seen.samples, Seen::file(&file.bytes()).samples);
    let [sample] = &seen.samples[..] else { panic!("{seen:?}") };
    assert_eq!((&*sample.chain, sample.mask), (&[CONTEXT_USER, 0x1010][..], 0));
    let outer = (0b1_1100_0000, vec![0x11, 0x22, 0x33], b"stack of a host.".to_vec());
    assert_eq!((&sample.outer, told.shortened), (&outer, 0));
    assert_eq!(again(&copy).0, copy);
}

#[test]
fn what_has_no_samples_is_not_written() {
    let mut file = File::of(Attr { sample_type: IP, ..Attr::default() });
    let comm = file.out().u32(1).u32(1).text("name", 8);
    file.record(3, 0, comm);
    let mut reader = Reader::open("none", Cursor::new(file.bytes())).unwrap();
    let error =
        write(&mut reader, "", Search::default(), &mut Cursor::new(Vec::new())).unwrap_err();
    assert!(matches!(error, WriteError::NoSamples { .. }), "{error}");
    let mut recording = Recording::from_read(&b""[..], "empty");
    assert!(write(&mut recording, "", Search::default(), &mut Cursor::new(Vec::new())).is_err());
}

/// Rounds are finished, so that perf need not hold all; and they are in order.
#[test]
fn rounds_are_finished() {
    let mut file = File::of(Attr { sample_type: IP | TID | TIME, ..Attr::default() });
    for time in 1..60_000u64 {
        file.sample(&[time, 7, (time ^ 1) + 5]);
    }
    let (copy, told) = again(&file.bytes());
    assert_eq!((told.samples, told.late), (59_999, 0));
    let round = [68, 0, 0, 0, 0, 0, 8, 0];
    assert!(copy.windows(8).filter(|bytes| *bytes == round).count() >= 3);
    let seen = Seen::file(&copy);
    assert!(seen.times.is_sorted() && seen.samples.len() == 59_999);
    assert_eq!(seen.warnings, [""; 0]);
}

fn perf(arguments: &[&str], file: &Path) -> Output {
    let mut perf = Command::new("perf");
    perf.args(arguments).arg("-f").arg("-i").arg(file).env("PAGER", "cat").output().unwrap()
}

fn is_there() -> bool {
    let there = Command::new("perf").arg("--version").output().is_ok();
    if !there {
        eprintln!("perf is not installed: what it makes of a file is not looked at");
    }
    there
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What perf has against a file, but for the kernel that it was recorded on, which another one may run in the place of now.
fn said(output: &Output) -> String {
    let text = text(&output.stderr);
    let lines =
        text.lines().filter(|line| !line.starts_with("No kallsyms or vmlinux with build-id"));
    lines.map(|line| format!("{line}\n")).collect()
}

/// What a file says of itself, and not of what was recorded.
fn lines(output: &Output) -> Vec<String> {
    let differs = [
        "# (Tip:",
        "# captured on",
        "# data offset",
        "# data size",
        "# feat offset",
        "# header version",
    ];
    let text = text(&output.stdout);
    let lines = text.lines().filter(|line| !differs.iter().any(|start| line.starts_with(start)));
    lines.map(str::to_owned).collect()
}

#[test]
fn perf_makes_the_same_of_it_as_of_its_own() {
    if !is_there() {
        return;
    }
    let folder_of_copies = tempfile::tempdir().unwrap();
    for (name, bytes) in real() {
        let copy = folder_of_copies.path().join(&name);
        std::fs::write(&copy, again(&bytes).0).unwrap();
        let own = folder().join(&name);
        let has_time = name != "per-thread.data";
        // Without call chains perf refuses to draw some.
        let has_chain = Seen::file(&bytes).events.iter().any(|event| event.has_chain);
        let chain = if has_chain { "caller" } else { "none" };
        let fields = if has_time {
            "comm,pid,tid,time,period,event,ip,sym"
        } else {
            "comm,pid,tid,period,event,ip,sym"
        };
        for arguments in [
            &["script", "--ns", "-F", fields][..],
            &[
                "report",
                "--stdio",
                "--no-group",
                "--no-children",
                "-g",
                "none",
                "--sort",
                "comm,pid,dso",
            ],
            &["report", "--stdio", "--no-group", "--children", "-g", chain],
        ] {
            let (ours, theirs) = (perf(arguments, &copy), perf(arguments, &own));
            let said = said(&ours);
            assert!(ours.status.success(), "{name}: {arguments:?}: {said}");
            assert_eq!(said, "", "{name}: {arguments:?}");
            // Of a file that was not closed it makes little, and of a pipe's it sums no children.
            let is_measure = match &*name {
                "killed.data" => false,
                "pipe.data" => !arguments.contains(&"--children"),
                _ => true,
            };
            if is_measure {
                assert_eq!(lines(&ours), lines(&theirs), "{name}: {arguments:?}");
            }
        }
        for arguments in [
            &["script", "-D"][..],
            &["script", "--header-only"],
            &["evlist", "-v"],
            &["buildid-list"],
        ] {
            let ours = perf(arguments, &copy);
            assert!(ours.status.success(), "{name}: {arguments:?}: {}", text(&ours.stderr));
            assert_eq!(said(&ours), "", "{name}: {arguments:?}");
        }
        // Without the program, or on another kernel, it has something against perf's own file too.
        let annotate = |file: &Path| {
            let output = perf(&["annotate", "--stdio", "-s", "leaf"], file);
            let said = said(&output).replace(file.to_str().unwrap(), "FILE");
            (output.status, said, lines(&output))
        };
        if name != "killed.data" {
            assert_eq!(annotate(&copy), annotate(&own), "{name}");
        }
        let injected = folder_of_copies.path().join("injected");
        let to = injected.to_str().unwrap();
        let output = perf(&["inject", "-b", "-o", to], &copy);
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        let before: usize = Seen::file(&std::fs::read(&copy).unwrap()).samples.len();
        assert_eq!(Seen::file(&std::fs::read(&injected).unwrap()).samples.len(), before);
    }
    let (one, other) =
        (folder_of_copies.path().join("fp.data"), folder_of_copies.path().join("events.data"));
    let diff = Command::new("perf").args(["diff", "-f"]).args([&one, &other]).output().unwrap();
    assert!(diff.status.success() && said(&diff).is_empty(), "{}", said(&diff));
    assert!(text(&diff.stdout).contains("calls"), "{}", text(&diff.stdout));
}

/// Samples that others than the kernel took: nothing is known of it, and perf does not miss it. The second is of Gramine's form.
#[test]
fn perf_misses_no_kernel() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for sample_type in [IP | TID | TIME | CALLCHAIN | BRANCH_STACK, IP | TID | CALLCHAIN] {
        let mut file = File::of(Attr { kind: 1, sample_type, ..Attr::default() });
        let comm = file.out().u32(7).u32(7).text("enclave", 8);
        file.record(3, 0, comm);
        let mmap = file.out().u32(7).u32(7).all(&[0x1000, 0x2000, 0]).text("/no/such/file", 16);
        file.record(1, 2, mmap);
        for time in 1..100 {
            let who = 7 | 7 << 32;
            match sample_type & TIME {
                0 => file.sample(&[0x1010, who, 2, CONTEXT_USER, 0x1010]),
                _ => {
                    file.sample(&[0x1010, who, time, 2, CONTEXT_USER, 0x1010, 1, 0x1020, 0x1030, 5])
                }
            };
        }
        let copy = folder.path().join("copy");
        std::fs::write(&copy, again(&file.bytes()).0).unwrap();
        for arguments in [
            &["script"][..],
            &["report", "--stdio"],
            &["script", "-D"],
            &["report", "--stdio", "--no-children"],
        ] {
            let output = perf(arguments, &copy);
            assert!(output.status.success(), "{arguments:?}");
            assert_eq!(text(&output.stderr), "", "{arguments:?}");
            assert!(text(&output.stdout).contains("enclave"), "{arguments:?}");
        }
    }
}

/// What a file is of, as perf tells it.
#[test]
fn perf_tells_the_run() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    std::fs::write(&copy, again(&real_file("fp.data")).0).unwrap();
    let header = text(&perf(&["script", "--header-only"], &copy).stdout);
    for line in [
        "# hostname : demo",
        "# perf version : 6.1.187",
        "# arch : x86_64",
        "# cmdline : /usr/bin/perf record",
    ] {
        assert!(header.contains(line), "{line}: {header}");
    }
    assert!(header.contains("# event : name = cpu-clock"), "{header}");
    let ids = text(&perf(&["buildid-list"], &copy).stdout);
    assert!(ids.lines().any(|line| line.ends_with(" /demo/calls")), "{ids}");
}
