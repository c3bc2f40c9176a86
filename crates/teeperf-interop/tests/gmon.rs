//! Files of gprof: made by hand, of every layout, cut off anywhere, damaged; those of real programs that
//! fuzzing starts from; and what is written, read again.

use std::path::Path;

use proptest::prelude::*;
use teeperf_interop::fuzz::any_gmon;
use teeperf_interop::gmon::{self, Arc, Builder, Error, Gmon, Histogram, Layout, Names, Which};
use teeperf_profile::model::{
    Code, Function, FunctionId, Info, NoRoom, Node, Place, Profile, Thread, Time, Tree,
};

const LAYOUTS: [Layout; 4] = [
    Layout { little_endian: true, wide: true },
    Layout { little_endian: true, wide: false },
    Layout { little_endian: false, wide: true },
    Layout { little_endian: false, wide: false },
];

/// A file under construction, by docs/gmon.md.
struct File {
    layout: Layout,
    bytes: Vec<u8>,
    /// Where records end.
    ends: Vec<usize>,
}

impl File {
    fn new(layout: Layout) -> Self {
        let mut file = Self { layout, bytes: b"gmon".to_vec(), ends: Vec::new() };
        file.number(1);
        file.bytes.extend([0xEE; 12]);
        file.ends.push(file.bytes.len());
        file
    }

    fn number(&mut self, number: u32) {
        let little = self.layout.little_endian;
        self.bytes.extend(if little { number.to_le_bytes() } else { number.to_be_bytes() });
    }

    fn address(&mut self, address: u64) {
        match self.layout {
            Layout { wide: false, .. } => self.number(address as u32),
            Layout { little_endian: true, .. } => self.bytes.extend(address.to_le_bytes()),
            Layout { little_endian: false, .. } => self.bytes.extend(address.to_be_bytes()),
        }
    }

    fn histogram(mut self, low: u64, high: u64, hz: u32, bins: &[u16]) -> Self {
        self.bytes.push(0);
        self.address(low);
        self.address(high);
        self.number(bins.len() as u32);
        self.number(hz);
        self.bytes.extend(b"seconds\0\0\0\0\0\0\0\0s");
        for &bin in bins {
            let little = self.layout.little_endian;
            self.bytes.extend(if little { bin.to_le_bytes() } else { bin.to_be_bytes() });
        }
        self.ends.push(self.bytes.len());
        self
    }

    fn arc(mut self, from: u64, to: u64, calls: u32) -> Self {
        self.bytes.push(1);
        self.address(from);
        self.address(to);
        self.number(calls);
        self.ends.push(self.bytes.len());
        self
    }

    fn blocks(mut self, counts: &[(u64, u64)]) -> Self {
        self.bytes.push(2);
        self.number(counts.len() as u32);
        for &(address, count) in counts {
            self.address(address);
            self.address(count);
        }
        self.ends.push(self.bytes.len());
        self
    }

    fn read(&self) -> Gmon {
        gmon::read("file", self.bytes.as_slice(), None).unwrap()
    }
}

/// One of each record.
fn whole(layout: Layout) -> File {
    File::new(layout)
        .histogram(0x1000, 0x1010, 100, &[1, 0, 65535, 2])
        .arc(0x1004, 0x1008, 7)
        .blocks(&[(0x1000, 3), (0x1004, 4)])
        .arc(0, 0x1000, u32::MAX)
        .histogram(0x2000, 0x2008, 1000, &[5, 6])
}

fn histogram(low: u64, high: u64, hz: u32, bins: &[u32]) -> Histogram {
    Histogram { low, high, hz, parts: bins.len() as u32, bins: bins.to_vec() }
}

#[test]
fn each_layout_is_told_from_the_file_alone() {
    for layout in LAYOUTS {
        let gmon = whole(layout).read();
        assert_eq!(gmon.layout, layout);
        let arcs = [(0x1004, 0x1008, 7), (0, 0x1000, u32::MAX.into())];
        assert_eq!(gmon.arcs, arcs.map(|(from, to, calls)| Arc { from, to, calls }));
        assert_eq!(
            gmon.histograms,
            [
                histogram(0x1000, 0x1010, 100, &[1, 0, 65535, 2]),
                histogram(0x2000, 0x2008, 1000, &[5, 6])
            ]
        );
        let [blocks] = &gmon.warnings[..] else { panic!("{:?}", gmon.warnings) };
        assert!(blocks.starts_with("file: offset "), "{blocks}");
        assert!(blocks.ends_with(": counts of 2 basic blocks are left out"), "{blocks}");
    }
}

#[test]
fn calls_alone_tell_the_layout_too() {
    for layout in LAYOUTS {
        let gmon =
            File::new(layout).arc(0x40_1004, 0x40_1136, 1).arc(0x40_1009, 0x40_1150, 2).read();
        assert_eq!((gmon.layout, gmon.arcs.len()), (layout, 2));
    }
}

#[test]
fn a_file_that_is_cut_anywhere_gives_what_stands_before() {
    for layout in LAYOUTS {
        let file = whole(layout);
        for cut in 0..file.bytes.len() {
            let bytes = &file.bytes[..cut];
            any_gmon(bytes);
            let program = Some(("program", layout));
            let outcome = gmon::read("file", bytes, program);
            if cut < 20 {
                let said = outcome.unwrap_err().to_string();
                assert!(said.starts_with("file: offset "), "{said}");
                continue;
            }
            let gmon = outcome.unwrap_or_else(|error| panic!("{cut}: {error}"));
            let records = file.ends.iter().filter(|&&end| end <= cut).count() - 1;
            assert_eq!(gmon.arcs.len(), [0, 0, 1, 1, 2, 2][records], "{layout} {cut}");
            let is_cut = !file.ends.contains(&cut);
            let cuts = gmon.warnings.iter().filter(|warning| warning.contains("in the midst"));
            assert_eq!(cuts.count(), usize::from(is_cut), "{layout} {cut}: {:?}", gmon.warnings);
            let begin = file.ends.iter().rev().find(|&&end| end <= cut).unwrap();
            if is_cut {
                let last = gmon.warnings.last().unwrap();
                let told = format!("file: offset {begin}: the file ends at {cut}, ");
                assert!(last.starts_with(&told), "{last}");
            }
        }
    }
    // A histogram has its beginning.
    let file = whole(Layout::LITTLE_64);
    let gmon = gmon::read("file", &file.bytes[..file.ends[1] - 3], None).unwrap();
    let half = Histogram { bins: vec![1, 0], ..histogram(0x1000, 0x1010, 100, &[0; 4]) };
    assert_eq!(gmon.histograms, [half]);
}

#[test]
fn what_is_no_record_ends_the_reading_but_loses_nothing() {
    let mut file = whole(Layout::LITTLE_64);
    let end = file.bytes.len();
    file.bytes.extend([9, 1, 2, 3]);
    let gmon = file.read();
    assert_eq!((gmon.arcs.len(), gmon.histograms.len()), (2, 2));
    let told = format!(
        "file: offset {end}: 9 is no kind of record: the file is damaged, and what follows is not read"
    );
    assert_eq!(gmon.warnings.last(), Some(&told));
}

#[test]
fn a_claim_costs_nothing() {
    let mut file = File::new(Layout::LITTLE_64);
    file.bytes.push(0);
    file.address(0);
    file.address(u64::MAX);
    file.number(u32::MAX);
    file.number(100);
    file.bytes.extend(b"seconds\0\0\0\0\0\0\0\0s\x01\0");
    let gmon = file.read();
    assert_eq!(
        gmon.histograms,
        [Histogram { low: 0, high: u64::MAX, hz: 100, parts: u32::MAX, bins: vec![1] }]
    );
    let mut file = File::new(Layout::LITTLE_64);
    file.bytes.push(2);
    file.number(u32::MAX);
    assert_eq!(file.read().warnings.len(), 2);
}

#[test]
fn histograms_of_one_range_are_added_and_others_must_not_overlap() {
    let gmon = File::new(Layout::LITTLE_64)
        .histogram(0x1000, 0x1008, 100, &[65535, 1])
        .histogram(0x1000, 0x1008, 100, &[65535, 2])
        .histogram(0x1004, 0x100c, 100, &[1, 1])
        .histogram(0x0ffc, 0x1004, 100, &[1, 1])
        .histogram(0x1008, 0x1010, 100, &[4, 5])
        .histogram(0x1010, 0x1010, 100, &[9])
        .read();
    assert_eq!(
        gmon.histograms,
        [histogram(0x1000, 0x1008, 100, &[131070, 3]), histogram(0x1008, 0x1010, 100, &[4, 5])]
    );
    assert_eq!(gmon.warnings.len(), 3, "{:?}", gmon.warnings);
    assert!(gmon.warnings[0].ends_with(
        "a histogram from 0x1004 to 0x100c is left out: it overlaps another, from 0x1000 to 0x1008"
    ));
}

#[test]
fn what_is_no_such_file_is_said_with_the_next_step() {
    let said = |bytes: &[u8], program| gmon::read("f", bytes, program).unwrap_err().to_string();
    assert_eq!(said(b"", None), "f: offset 0: the file is empty");
    assert!(said(b"gmo", None).starts_with("f: offset 0: no gmon file"));
    assert!(said(&[0; 64], None).contains("`gprof -s PROGRAM f` rewrites it as gmon.sum"));
    assert_eq!(
        said(b"gmon\x01\0\0\0", None),
        "f: offset 8: the file ends in its header, which has 20 bytes"
    );
    let version = |version: u32| [&b"gmon"[..], &version.to_be_bytes(), &[0; 12]].concat();
    assert!(said(&version(7), None).starts_with("f: offset 4: version 0x7000000 is not known"));
    assert!(said(&version(0x1ffff), None).contains("`sprof LIBRARY f` reads it"));
    for layout in LAYOUTS {
        for other in LAYOUTS.into_iter().filter(|other| *other != layout) {
            let outcome = gmon::read("f", whole(layout).bytes.as_slice(), Some(("elf", other)));
            let Err(error @ Error::OtherProgram { .. }) = outcome else { panic!("{outcome:?}") };
            let told = format!("f: written by a program that is {layout}; elf is {other}.");
            assert!(error.to_string().starts_with(&told), "{error}");
        }
    }
}

/// Self times in samples, and calls, by name.
fn table(profile: &Profile) -> Vec<(String, f64, u64)> {
    let graph = profile.graph.as_ref().unwrap();
    let row = |v: &teeperf_profile::model::Vertex| {
        let name = profile.functions[v.function.0 as usize].name.clone();
        (name, (v.self_time.value / 1e7 * 1e6).round() / 1e6, v.calls)
    };
    let mut rows: Vec<_> = graph.functions.iter().map(row).collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    rows
}

#[test]
fn without_a_program_functions_are_where_calls_led() {
    // Parts of 6 bytes, so that the second has a third in one function and two in the other.
    let gmon = File::new(Layout::LITTLE_64)
        .histogram(0x1000, 0x1012, 100, &[1, 3, 10])
        .arc(0x1001, 0x1000, 4)
        .arc(0x1000, 0x1008, 5)
        .arc(0x5, 0x1008, 6)
        .read();
    let expected = [("0x1000".to_owned(), 2.0, 4), ("0x1008".to_owned(), 12.0, 11)];
    assert_eq!(table(&gmon::profile(&gmon, &Names::of_calls(&gmon, 0), 0)), expected);
    // The same, loaded elsewhere.
    let bias = 0x800;
    let moved = gmon::profile(&gmon, &Names::of_calls(&gmon, bias), bias);
    let expected = [("0x800".to_owned(), 2.0, 4), ("0x808".to_owned(), 12.0, 11)];
    assert_eq!(table(&moved), expected);
    assert!(moved.health.warnings.is_empty());
    let calls = Gmon { histograms: Vec::new(), ..gmon.clone() };
    let timeless = gmon::profile(&calls, &Names::of_calls(&calls, 0), 0);
    assert_eq!(
        timeless.health.warnings,
        ["there is no histogram: times are not known, only counts"]
    );
    // Without samples, as short runs have it, and OP-TEE where nobody interrupted the application.
    let rateless = "the histogram from 0x1000 to 0x1010 does not say its rate: 100 samples a second are assumed";
    let untimed = "no samples were taken: times are not known, only counts";
    for (hz, samples, said) in
        [(100, 0, &[untimed][..]), (0, 0, &[untimed]), (0, 1, &[rateless]), (100, 1, &[])]
    {
        let file = File::new(Layout::LITTLE_64).histogram(0x1000, 0x1010, hz, &[0, samples]);
        let gmon = file.arc(0x1001, 0x1000, 4).read();
        let profile = gmon::profile(&gmon, &Names::of_calls(&gmon, 0), 0);
        assert_eq!(profile.health.warnings, said, "{hz} {samples}");
    }
    let shifted = gmon::profile(&gmon, &Names::of_calls(&gmon, 0), bias);
    assert_eq!(shifted.health.warnings.len(), 2, "{:?}", shifted.health.warnings);
    assert!(shifted.health.warnings[0].starts_with("15 calls are left out, the first of 0x1000:"));
    assert!(
        shifted.health.warnings[1].starts_with("14.0 samples are left out, the first at 0x1000:")
    );
}

#[test]
fn files_that_programs_wrote_are_read() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/gmon");
    for entry in std::fs::read_dir(corpus).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        any_gmon(&bytes);
        // Each time cut off elsewhere, damaged elsewhere.
        for at in (0..bytes.len()).step_by(11) {
            any_gmon(&bytes[..at]);
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x5A;
            any_gmon(&damaged);
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        let wide = |little_endian| Layout { little_endian, wide: true };
        let narrow = |little_endian| Layout { little_endian, wide: false };
        let (layout, files) = match name {
            "optee" => {
                of_a_trusted_application(&gmon::read(name, bytes.as_slice(), None).unwrap());
                continue;
            }
            "x86_64" | "aarch64" => (wide(true), 1),
            "sum" => (wide(true), 2),
            "i686" | "arm" => (narrow(true), 1),
            "s390x" => (wide(false), 1),
            "powerpc" => (narrow(false), 1),
            _ => continue,
        };
        let gmon = gmon::read(name, bytes.as_slice(), None).unwrap();
        assert_eq!((gmon.layout, &gmon.warnings[..]), (layout, &[][..]), "{name}");
        // main calls even and product 300 times each, and work once; even and odd call work, and each
        // other until they are at 0; product calls itself.
        let calls: u64 = gmon.arcs.iter().map(|arc| arc.calls).sum();
        assert_eq!(calls, files * (300 * (12 + 12 + 5) + 1), "{name}");
        assert!(gmon.histograms.iter().all(|histogram| histogram.hz == 100), "{name}");
    }
}

/// What OP-TEE 4.10 wrote, which tells addresses 0x20 too high: `compute`, at 0x514, was called once, and all but all
/// the time was its own.
fn of_a_trusted_application(gmon: &Gmon) {
    assert_eq!((gmon.layout, &gmon.warnings[..]), (Layout::LITTLE_64, &[][..]));
    let calls: u64 = gmon.arcs.iter().map(|arc| arc.calls).sum();
    assert_eq!((gmon.arcs.len(), calls), (76, 111));
    let compute = 0x514..0x578;
    let profile = gmon::profile(gmon, &Names::of_calls(gmon, 0x20), 0x20);
    let timed: Vec<_> = table(&profile).into_iter().filter(|row| row.1 > 0.0).collect();
    let [(name, _, 1)] = &timed[..] else { panic!("{timed:?}") };
    let address = u64::from_str_radix(name.trim_start_matches("0x"), 16).unwrap();
    assert!(compute.contains(&address), "{name}");
    let [Histogram { low: 0x20, high: 0x620, hz: 2239, parts: 384, bins }] = &gmon.histograms[..]
    else {
        panic!("{:?}", gmon.histograms)
    };
    let sampled = bins.iter().enumerate().filter(|(_, samples)| **samples > 0);
    let sampled: Vec<(usize, u32)> = sampled.map(|(part, &samples)| (part, samples)).collect();
    assert_eq!(sampled, [(339, 1604), (345, 91)]);
}

fn exact(ns: f64) -> Time {
    Time { value: ns, low: ns, high: ns }
}

/// Two threads of a program with a library: `main` calls `help` (static, twice there by that name), which
/// calls `pack` of the library, which calls `compare` of the program.
fn recorded() -> Profile {
    let function = |name: &str, path: &str, address, size| Function {
        name: name.into(),
        module: path.rsplit('/').next().unwrap().into(),
        place: Some(Place {
            path: path.into(),
            build_id: [7][..].into(),
            address,
            size,
            code: Code::Process,
        }),
        ..Function::default()
    };
    let node = |parent, function, calls, ns| Node {
        parent,
        function: FunctionId(function),
        calls,
        self_time: exact(ns),
        total: exact(ns),
        extremes: None,
        spent: Default::default(),
    };
    let (program, library) = ("/bin/program", "/lib/libpack.so");
    let first = vec![
        node(0, 0, 0, 9e9),
        node(0, 0, 1, 1e6),
        node(1, 1, 3, 2e6),
        node(1, 2, 4, 3e6),
        node(3, 3, 5, 4e6),
        node(4, 4, 6, 5e6),
        node(0, 5, 1, 6e6),
    ];
    let second = vec![node(0, 0, 0, 0.0), node(0, 1, 10, 2e6)];
    let thread = |tid, nodes| Thread { tid, tree: Tree { nodes }, ..Thread::default() };
    Profile {
        info: Info { command: vec!["./program".into()], ..Info::default() },
        functions: vec![
            function("main", program, 0x1000, 0x10),
            function("help", program, 0x1010, 0x10),
            function("help", program, 0x1020, 0x10),
            function("pack", library, 0x2000, 0x100),
            function("compare", program, 0x1030, 0x10),
            Function { name: "[unknown]".into(), ..Function::default() },
        ],
        threads: vec![thread(1, first), thread(2, second)],
        ..Profile::default()
    }
}

/// What is known without call paths is in the file as well.
#[test]
fn calls_without_paths_become_a_file() {
    let mut profile = recorded();
    let times = [(FunctionId(0), 5e6), (FunctionId(3), 1e6)];
    let calls = [(None, FunctionId(0), 2), (Some(FunctionId(0)), FunctionId(4), 7)];
    let graph = teeperf_profile::model::CallGraph::new(times, calls);
    profile.graph = Some(graph.clone());
    let both = gmon::export(&profile, Which::Program, 1000).unwrap();
    profile.threads.clear();
    let alone = gmon::export(&profile, Which::Program, 1000).unwrap();
    assert_eq!(alone.left_out.ns, 1e6);
    let arcs = |export: &gmon::Export| -> Vec<_> {
        export.gmon.arcs.iter().map(|arc| (arc.from, arc.to, arc.calls)).collect()
    };
    assert_eq!(arcs(&alone), [(0, 0x1000, 2), (0x1000, 0x1030, 7)]);
    assert!(arcs(&both).contains(&(0x1000, 0x1030, 7)) && arcs(&both).contains(&(0, 0x1000, 3)));
    let samples = |export: &gmon::Export| -> u32 {
        export.gmon.histograms.iter().flat_map(|histogram| &histogram.bins).sum()
    };
    assert_eq!((samples(&alone), samples(&both)), (5, 18));
}

#[test]
fn a_module_of_a_recording_becomes_a_file() {
    let export = gmon::export(&recorded(), Which::Program, 1000).unwrap();
    assert_eq!(export.module, "/bin/program");
    let arcs: Vec<_> = export.gmon.arcs.iter().map(|arc| (arc.from, arc.to, arc.calls)).collect();
    assert_eq!(
        arcs,
        [(0, 0x1000, 1), (0, 0x1010, 10), (0, 0x1030, 6), (0x1000, 0x1010, 3), (0x1000, 0x1020, 4)]
    );
    let [histogram] = &export.gmon.histograms[..] else { panic!("{:?}", export.gmon.histograms) };
    assert_eq!((histogram.low, histogram.high, histogram.hz), (0x1000, 0x2000, 1000));
    let samples = |from: usize| histogram.bins[from / 2..][..8].iter().sum::<u32>();
    assert_eq!([0, 0x10, 0x20, 0x30].map(samples), [1, 4, 3, 5]);
    let left = &export.left_out;
    assert_eq!((left.ns, left.calls_by_others), (10e6, 6));
    assert_eq!((left.share * 23.0).round(), 10.0);
    assert_eq!(left.modules, ["/lib/libpack.so"]);

    let library = gmon::export(&recorded(), Which::Named("libpack.so"), 1000).unwrap();
    assert_eq!(library.gmon.arcs, [Arc { from: 0, to: 0x2000, calls: 5 }]);
    assert_eq!(library.left_out.modules, ["/bin/program"]);
}

/// That a file cannot be read does not make it another one.
#[test]
fn a_program_is_doubted_where_it_is_known_to_be_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program");
    let mut profile = recorded();
    for function in &mut profile.functions {
        function.place = function.place.take().filter(|place| &*place.path == "/bin/program");
        if let Some(place) = &mut function.place {
            place.path = path.to_str().unwrap().into();
        }
    }
    let doubt = || gmon::export(&profile, Which::Program, 1000).unwrap().doubt;
    assert!(doubt().unwrap().ends_with("/program: No such file or directory (os error 2)"));
    std::fs::write(&path, "#!/bin/sh\n").unwrap();
    assert!(doubt().unwrap().ends_with("/program: not an ELF file"));
    // The header is not whole.
    std::fs::write(&path, b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0").unwrap();
    assert_eq!(doubt(), None);
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("program", &path).unwrap();
    assert_eq!(doubt(), None);
}

/// Nobody elsewhere called what has no caller because there was no room for its path.
#[test]
fn calls_without_room_are_not_those_of_others() {
    let mut profile = recorded();
    profile.functions[5].name = "[no room]".into();
    let thread = &mut profile.threads[0];
    thread.tree.nodes.push(Node { parent: 6, calls: 8, ..thread.tree.nodes[2] });
    thread.no_room = Some(NoRoom { function: FunctionId(5), ..NoRoom::default() });
    let export = gmon::export(&profile, Which::Program, 1000).unwrap();
    let left = &export.left_out;
    assert_eq!((left.calls_without_room, left.calls_by_others), (8, 6));
    assert!(export.gmon.arcs.contains(&Arc { from: 0, to: 0x1010, calls: 18 }));
}

#[test]
fn which_module_is_meant_must_be_plain() {
    let said =
        |profile: &Profile, which| gmon::export(profile, which, 100).unwrap_err().to_string();
    let told =
        "nothing of libz.so was called; but of /bin/program, /lib/libpack.so: name one of them";
    assert_eq!(said(&recorded(), Which::Named("libz.so")), told);
    let mut wrapped = recorded();
    wrapped.info.command = vec!["sh".into(), "-c".into()];
    assert!(
        said(&wrapped, Which::Program).starts_with("nothing of sh was called; but of /bin/program")
    );
    let place = wrapped.functions[3].place.as_mut().unwrap();
    place.path = "/opt/program".into();
    let told =
        "several modules are called program: /bin/program, /opt/program. Name one by its path";
    assert_eq!(said(&wrapped, Which::Named("program")), told);
    let found = gmon::export(&wrapped, Which::Named("/opt/program"), 100).unwrap();
    assert_eq!(found.module, "/opt/program");
    // Where there is but one, it is meant.
    wrapped.functions[3].place = None;
    assert_eq!(gmon::export(&wrapped, Which::Program, 100).unwrap().module, "/bin/program");
    // Of images the file says how wide addresses are, and they need have no name.
    let place = wrapped.functions[0].place.as_mut().unwrap();
    (place.path, place.code) = ("".into(), Code::Image);
    let told =
        "nothing of sh was called; but of /bin/program, an image without a name: name one of them";
    assert_eq!(said(&wrapped, Which::Program), told);
    for function in &mut wrapped.functions {
        function.place = function.place.take().filter(|place| place.path.is_empty());
    }
    let told = "how wide the addresses of an image without a name are its file alone says: name that with --elf";
    assert_eq!(said(&wrapped, Which::Program), told);
    let empty = Profile::default();
    assert_eq!(said(&empty, Which::Program), "nothing of the program was called");
}

proptest! {
    #[test]
    fn any_bytes_are_answered(tail in prop::collection::vec(any::<u8>(), 0..200), big: bool) {
        let version = if big { 1u32.to_be_bytes() } else { 1u32.to_le_bytes() };
        any_gmon(&[&b"gmon"[..], &version, &[0; 12], &tail].concat());
    }

    /// What was put in comes out, however large: counts beyond the format's numbers stand in
    /// several records.
    #[test]
    fn what_is_written_is_read(
        layout in prop::sample::select(&LAYOUTS[..]),
        calls in prop::collection::vec((0u64..4, 1u64..4, 1u64..(1 << 34)), 1..8),
        times in prop::collection::vec((0u64..600, 1u64..40, 0u32..300), 0..8),
    ) {
        let mut builder = Builder::new(layout, 1000);
        let mut seconds = 0.0;
        for &(from, to, count) in &calls {
            builder.call(from * 0x1000, to * 0x1000, count);
        }
        for &(address, size, s) in &times {
            builder.time(0x1000 + 16 * address, size, f64::from(s) * 1e9);
            seconds += f64::from(s);
        }
        let gmon = builder.finish().unwrap();
        let mut bytes = Vec::new();
        gmon.write(&mut bytes).unwrap();
        let again = gmon::read("written", bytes.as_slice(), None).unwrap();
        prop_assert_eq!(again.layout, layout);
        prop_assert_eq!(&again.histograms, &gmon.histograms);
        prop_assert!(again.warnings.is_empty());
        let sum = |gmon: &Gmon| gmon.arcs.iter().map(|arc| arc.calls).sum::<u64>();
        prop_assert_eq!(sum(&again), sum(&gmon));
        let samples: f64 = gmon.histograms.iter().flat_map(|h| &h.bins).map(|&n| f64::from(n)).sum();
        prop_assert_eq!(samples, seconds * 1000.0);
    }
}
