//! Executables and shared libraries, loaded and unloaded, with and without a runtime.

use crate::support::host::{Host, Options, expect_success, finish};
use crate::support::words::{Item, Recording, window};
use crate::support::{Build, runtime};
use std::collections::BTreeSet;
use std::process::Stdio;
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word::code;

fn library(name: &str) -> std::path::PathBuf {
    Build::with(&["-O2", "-fPIC", "-shared", "-Wl,--no-undefined"]).program("library.c", name, &[])
}

/// Windows of a recording: first sites and addresses of the libraries', in order.
fn windows(recording: &Recording, opens: u32) -> Vec<(u32, u64)> {
    recording
        .items()
        .filter_map(|item| match item {
            Item::Escape(code::MODULE, _, payload) if payload[0] == opens => {
                let window = window(payload);
                Some((window.first, window.address))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn a_library_loaded_and_unloaded_again_and_again() {
    let library = library("lib-again.so");
    let program = Build::default().program("loads.c", "loads-again", &["-ldl"]);
    let host = Host::new(Options::default());
    expect_success(&host.run(&program, &[library.to_str().unwrap(), "2000"]));
    let recording = Recording::new(&host.finish());
    assert_eq!(recording.calls("library"), 2000);
    assert_eq!(recording.calls("in_library"), 4 * 2000);
    assert_eq!(recording.calls("goes"), 2000, "destructors run before the module is retired");
    assert_eq!(windows(&recording, 1).len(), 2001);
    assert_eq!(windows(&recording, 0).len(), 2000);
    let sites: BTreeSet<u32> = windows(&recording, 1).into_iter().map(|w| w.0).collect();
    assert_eq!(sites.len(), 2, "the same file has the same window again");
    assert!(recording.paths.contains(&library) && recording.paths.contains(&program));
}

#[test]
fn copies_of_a_library_loaded_at_once() {
    let library = library("lib-copied.so");
    let copy = library.with_file_name("lib-copy.so");
    std::fs::copy(&library, &copy).unwrap();
    let program = Build::default().program("loads.c", "loads-copies", &["-ldl"]);
    let host = Host::new(Options::default());
    let arguments = [library.to_str().unwrap(), "2", copy.to_str().unwrap()];
    expect_success(&host.run(&program, &arguments));
    let recording = Recording::new(&host.finish());
    let sites: Vec<u32> = windows(&recording, 1).into_iter().map(|w| w.0).collect();
    let [_, first, second, again, last] = sites[..] else { panic!("{sites:?}") };
    assert_ne!(first, second);
    assert_eq!((again, last), (second, first), "the copy has the copy's window again");
}

#[test]
fn a_library_in_a_program_without_hooks_or_runtime() {
    let library = library("lib-preload.so");
    let plain = Build { linked: false, hooked: false, ..Build::default() };
    let program = plain.program("loads.c", "loads-plain", &["-ldl"]);
    let host = Host::new(Options::default());
    let path = library.to_str().unwrap();
    expect_success(&host.run(&program, &[path]));
    assert_eq!(host.attached(), 0, "without a runtime its hooks do nothing");

    let mut command = host.command(&program);
    command.env("LD_PRELOAD", &runtime().preload).args([path, "5"]);
    expect_success(&finish(command.stdout(Stdio::piped()).stderr(Stdio::piped())));
    let recording = Recording::new(&host.finish());
    assert_eq!(recording.calls("in_library"), 4 * 5);
    assert_eq!(recording.paths, [library]);
}

#[test]
fn a_program_with_a_runtime_of_its_own_and_a_preloaded_one() {
    let library = library("lib-both.so");
    let program = Build::default().program("loads.c", "loads-both", &["-ldl"]);
    let host = Host::new(Options::default());
    let mut command = host.command(&program);
    command.env("LD_PRELOAD", &runtime().preload).args([library.to_str().unwrap(), "5"]);
    expect_success(&finish(command.stdout(Stdio::piped()).stderr(Stdio::piped())));
    assert_eq!(host.attached(), 1);
    let recording = Recording::new(&host.finish());
    assert_eq!(recording.calls("in_library"), 4 * 5);
    assert_eq!(recording.calls("main"), 1);
}

#[test]
fn a_hooked_resolver_in_programs_of_each_kind() {
    for (name, flags) in [
        ("ifunc", &["-O2"][..]),
        ("ifunc-static", &["-O2", "-static"]),
        ("ifunc-static-pie", &["-O2", "-static-pie", "-fPIE"]),
        ("ifunc-no-pie", &["-O2", "-no-pie", "-fno-pie"]),
        ("ifunc-lto", &["-O2", "-flto"]),
        ("ifunc-now", &["-O2", "-Wl,-z,now"]),
        ("ifunc-gold", &["-O2", "-fuse-ld=gold"]),
    ] {
        let program = Build::with(flags).program("ifunc.c", name, &[]);
        // Without a recorder first: hooks run before anything of the process is set up.
        expect_success(&finish(&mut std::process::Command::new(&program)));
        let host = Host::new(Options::default());
        expect_success(&host.run(&program, &[]));
        let recording = Recording::new(&host.finish());
        assert_eq!(recording.calls("main"), 1, "{name}");
        assert_eq!(recording.calls("real"), 100, "{name}");
        assert_eq!(recording.expect_nested(), 0, "{name}");
    }
}

#[test]
fn a_library_that_calls_a_function_of_the_program_by_its_own_name() {
    let library = library("lib-linked.so");
    let program = Build::with(&["-O2", "-rdynamic"]).program(
        "uses_library.c",
        "uses-library",
        &[library.to_str().unwrap(), "-Wl,-rpath,$ORIGIN"],
    );
    let host = Host::new(Options::default());
    expect_success(&host.run(&program, &[]));
    let recording = Recording::new(&host.finish());
    assert_eq!(recording.calls("library"), 1);
    assert_eq!(recording.calls("in_library"), 51, "the destructor's call included");
    assert_eq!(
        recording.calls("comes"),
        1,
        "constructors run before the program's own module is known"
    );
    assert_eq!(recording.expect_nested(), 0);
    let is_far = |item: &&Item| matches!(item, Item::Escape(code::FAR, ..));
    assert_eq!(recording.items().filter(is_far).count(), 0);
}

#[test]
fn an_address_of_no_module_is_written_whole() {
    for clock in [ClockKind::Tick, ClockKind::Cycle] {
        let program = Build::default().program("far.c", &format!("far-{clock:?}"), &[]);
        let host = Host::new(Options { clock, ..Options::default() });
        expect_success(&host.run(&program, &[]));
        let recording = Recording::new(&host.finish());
        assert_eq!(recording.calls("near"), 5000);
        let far: Vec<(u32, u64)> = recording
            .items()
            .filter_map(|item| match item {
                Item::Escape(code::FAR, kind, payload) => {
                    let wide = |at: usize| u64::from(payload[at]) << (31 * at);
                    Some((*kind, wide(0) | wide(1) | wide(2)))
                }
                _ => None,
            })
            .collect();
        assert_eq!(far, [(0, 0x1234_5678_9abc_def0), (1, 0x1234_5678_9abc_def0)].repeat(5000));
    }
}
