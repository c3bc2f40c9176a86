//! What functions are called: packets of symbols, and modules that chunks tell of.

use crate::support::Builder;
use crate::{function, header, module, replay};
use teeperf_profile::{Options, Recording};
use teeperf_wire::word::{call, payload, ret};

#[test]
fn names_come_from_symbols_modules_and_offsets() {
    let mut builder = Builder::new();
    builder.process(1, 4242, "/opt/bin/program");
    // A program linked at a fixed address, its window from 0x400000 on; a library whose text
    // begins 0x3000 into the file.
    let mut words = module(0x1000, 0x40_0000, 0, "/opt/bin/program");
    words.extend(module(0x20000, 0x7FFF_0000_3000, 0x7FFF_0000_0000, "/usr/lib/libone.so.1"));
    words.extend([call(0x1100), call(0x20040), ret(0x20040), call(0x20080), ret(0x20080)]);
    words.extend([call(0x50000), ret(0x50000), ret(0x1100)]);
    builder.chunk(header(1, 1, 10), &words, true);
    // Symbols come after the chunks that need them, in pieces.
    builder.symbols(1, 0x1000, &[(0x1100, 32, 7, "main", "/src/main.c")]);
    builder.symbols(
        1,
        0x20000,
        &[(0x20000, 0x40, 0, "_Z5otheri", ""), (0x20040, 16, 0, "_ZN3one3twoEv", "")],
    );
    let profile = replay(&builder.end());

    let main = function(&profile, "main");
    assert_eq!(
        (&main.module[..], main.file.as_deref(), main.line),
        ("program", Some("/src/main.c"), Some(7))
    );
    assert_eq!(function(&profile, "one::two()").module, "libone.so.1");
    assert_eq!(function(&profile, "libone.so.1+0x3080").module, "libone.so.1");
    assert_eq!(function(&profile, "[unknown module]+0x50000").module, "");
    assert_eq!(profile.functions.len(), 4);
    assert_eq!(profile.threads[0].name, "program");
    assert_eq!((profile.threads[0].pid, profile.threads[0].tid), (4242, 501));
    assert_eq!(profile.health.warnings, Vec::<String>::new());
}

#[test]
fn functions_are_told_apart_by_place_when_asked() {
    // Two functions of one name; another process, elsewhere in memory and with other sites, has the same file.
    let mut words = module(0x1000, 0x5555_0000_1000, 0x5555_0000_0000, "/opt/program");
    words.extend([call(0x1110), call(0x1200), ret(0x1200), call(0x1300), ret(0x1300), ret(0x1110)]);
    let mut builder = Builder::new();
    builder.chunk(header(1, 1, 10), &words, false);
    let step = |site| (site, 32, 7, "step", "");
    builder.symbols(1, 0x1000, &[step(0x1100), step(0x1200)]);
    let mut words = module(0x3000, 0x7777_0000_1000, 0x7777_0000_0000, "/opt/program");
    words.extend([call(0x3100), ret(0x3100), call(0x50000), ret(0x50000)]);
    builder.chunk(header(2, 1, 10), &words, false);
    builder.symbols(2, 0x3000, &[step(0x3100)]);
    let bytes = builder.end();
    let of = |by_place| {
        let mut options = Options { jobs: 1, by_place, ..Options::default() };
        let profile = Recording::from_read(&bytes[..], "test").replay(&mut options).unwrap();
        let place = |f: &teeperf_profile::model::Function| {
            f.place.as_ref().map(|place| {
                assert_eq!((&*place.path, &*place.build_id), ("/opt/program", &[0xAB, 0xCD][..]));
                (place.address, place.size)
            })
        };
        let mut found: Vec<_> =
            profile.functions.iter().map(|f| (f.name.clone(), place(f))).collect();
        found.sort();
        found
    };
    let named = |name: &str, place| (name.to_owned(), place);
    assert_eq!(
        of(true),
        [
            named("[unknown module]+0x50000", None),
            named("program+0x1300", Some((0x1300, 0))),
            named("step", Some((0x1100, 32))),
            named("step", Some((0x1200, 32))),
        ]
    );
    assert_eq!(
        of(false),
        [
            named("[unknown module]+0x50000", None),
            named("program+0x1300", None),
            named("step", None)
        ]
    );
}

#[test]
fn a_function_has_its_name_without_its_window() {
    let mut builder = Builder::new();
    let words = [call(0x1008), ret(0x1008), call(0x1040), ret(0x1040)];
    builder.chunk(header(1, 1, 0), &words, false);
    builder.symbols(1, 0x1000, &[(0x1000, 16, 3, "work", "/a.c")]);
    // Another process's symbols, and one without a name, are of no use.
    builder.symbols(2, 0x1000, &[(0x1040, 16, 0, "other", "")]);
    builder.symbols(1, 0x1000, &[(0x1040, 16, 0, "", "")]);
    let profile = replay(&builder.end());
    let work = function(&profile, "work");
    assert_eq!((&work.module[..], work.file.as_deref(), work.line), ("", Some("/a.c"), Some(3)));
    function(&profile, "[unknown module]+0x1040");
}

#[test]
fn a_name_does_not_depend_on_what_its_packet_says_of_the_window() {
    let mut builder = Builder::new();
    let words = [module(0x1000, 0x1000, 0, "/bin/one"), vec![call(0x1010), call(0x1050)]].concat();
    builder.chunk(header(1, 1, 0), &words, false);
    builder.symbols(1, 0x2000, &[(0x1000, 0x40, 0, "wide", ""), (0x1010, 16, 0, "early", "")]);
    // Of those that begin at a site or before it the last counts, of several there the latest.
    builder.symbols(1, 0, &[(0x1010, 8, 0, "work", ""), (0x1008, 0x100, 0, "far", "")]);
    let profile = replay(&builder.end());
    assert_eq!(function(&profile, "work").module, "one");
    // "work" begins last before it and does not reach as far.
    function(&profile, "one+0x1050");
}

#[test]
fn a_window_is_known_by_the_module_that_retires_it() {
    let mut words = vec![call(0x1010), ret(0x1010)];
    let mut retired = module(0x1000, 0x1000, 0, "/lib/plugin.so");
    retired[2] = payload(0);
    words.extend(retired);
    let mut builder = Builder::new();
    builder.chunk(header(1, 1, 0), &words, false);
    builder.symbols(1, 0x1000, &[(0x1010, 9, 0, "work", "")]);
    assert_eq!(function(&replay(&builder.end()), "work").module, "plugin.so");
}

#[test]
fn the_same_site_is_another_function_in_another_process() {
    let mut builder = Builder::new();
    for (process, path) in [(1, "/bin/one"), (2, "/bin/two")] {
        builder.process(process, 100 + process, path);
        let words = [module(0x1000, 0x1000, 0, path), vec![call(0x1010), ret(0x1010)]].concat();
        builder.chunk(header(process, 1, 0), &words, false);
        builder.symbols(process, 0x1000, &[(0x1010, 9, 0, "work", "")]);
    }
    let profile = replay(&builder.end());
    let mut modules: Vec<_> =
        profile.functions.iter().map(|f| (&f.name[..], &f.module[..])).collect();
    modules.sort_unstable();
    assert_eq!(modules, [("work", "one"), ("work", "two")]);
}

#[test]
fn two_sites_of_one_name_are_one_path() {
    let mut builder = Builder::new();
    let mut words = module(0x1000, 0x1000, 0, "/bin/one");
    words.extend([
        call(0x1010),
        ret(0x1010),
        call(0x1020),
        call(0x1010),
        ret(0x1010),
        ret(0x1020),
        call(0x1030),
        ret(0x1030),
    ]);
    builder.chunk(header(1, 1, 0), &words, false);
    builder.symbols(
        1,
        0x1000,
        &[(0x1010, 9, 0, "work", ""), (0x1020, 9, 0, "work", ""), (0x1030, 9, 0, "rest", "")],
    );
    let profile = replay(&builder.end());
    let nodes = &profile.threads[0].tree.nodes;
    let paths: Vec<(u32, u32, u64)> =
        nodes[1..].iter().map(|n| (n.parent, n.function.0, n.calls)).collect();
    let (work, rest) = if profile.functions[0].name == "work" { (0, 1) } else { (1, 0) };
    assert_eq!(paths, [(0, work, 2), (1, work, 1), (0, rest, 1)]);
}

#[test]
fn windows_that_name_two_files_are_said_to() {
    let mut builder = Builder::new();
    let words = [
        module(0x1000, 0, 0, "/a"),
        module(0x1000, 0, 0, "/a"),
        module(0x1000, 0, 0, "/b"),
        vec![call(0x1008)],
    ]
    .concat();
    builder.chunk(header(1, 1, 0), &words, false);
    let profile = replay(&builder.end());
    assert_eq!(profile.functions[0].name, "a+0x8");
    let warnings = profile.health.warnings.join("\n");
    assert!(warnings.contains("are those of /a and, later, of /b"), "{warnings}");
    assert_eq!(profile.health.open, 1);
}
