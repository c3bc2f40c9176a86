//! Programs in another mount namespace and below another root, as in containers: their files are
//! not those of the same path here.

use crate::support::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A root for processes, and a program that stands at the same path in it and outside, with
/// functions of other names.
struct Container {
    shop: Workshop,
    program: PathBuf,
    root: PathBuf,
}

impl Container {
    /// Of a program that is built twice; nothing where this system has no namespaces for the user.
    fn new(flags: &[&str]) -> Option<Self> {
        let build = |shop: &Workshop, flags: &[&str]| {
            shop.build_unhooked("contained.c", Compiler::Gcc, flags)
        };
        Self::of(build, flags)
    }

    /// The same of a program that is built in this way.
    fn of(build_it: impl Fn(&Workshop, &[&str]) -> PathBuf, flags: &[&str]) -> Option<Self> {
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "--pid", "--fork", "chroot", "/", "true"]);
        if !run(&mut unshare).success() {
            eprintln!("skipped: unshare and chroot are not permitted");
            return None;
        }
        let shop = Workshop::new();
        let build = |name: &str| {
            let work = format!("-DWORK={name}");
            let flags = [&["-O1", "-static", &work], flags].concat();
            build_it(&shop, &flags)
        };
        let root = shop.path("root");
        let program = shop.path("contained");
        let inside = root.join(program.strip_prefix("/").unwrap());
        fs::create_dir_all(inside.parent().unwrap()).unwrap();
        fs::create_dir_all(root.join("tmp")).unwrap();
        fs::rename(build("inner"), &inside).unwrap();
        fs::rename(build("decoy"), &program).unwrap();
        Some(Self { shop, program, root })
    }

    /// Records the program in it, by this command.
    #[track_caller]
    fn record(&self, arguments: &[&str]) -> Option<PathBuf> {
        let root = self.root.to_str().unwrap();
        let program = self.program.to_str().unwrap();
        let enter = ["--mount", "--pid", "--fork", "chroot", root, program];
        let words = [&enter[..], arguments].concat();
        let mut recording = self.shop.recording(&["--sample"], Path::new("unshare"), &words);
        let outcome = run(&mut recording.command);
        if !outcome.success() && outcome.stderr.contains("perf_event_open") {
            eprintln!("skipped: {}", outcome.stderr);
            return None;
        }
        outcome.expect_code(0);
        Some(recording.file)
    }
}

/// What the report has, as folded stacks.
fn folded(file: &Path, options: &[&str]) -> String {
    let mut flame = teeperf();
    flame.args(["flame", "--folded", "-o", "-"]).args(options).arg(file);
    run(&mut flame).expect_code(0).stdout.clone()
}

/// Guards: functions of a container's program have their names when the container is gone, and not
/// those of a program here.
#[test]
fn a_program_of_another_root() {
    for build_id in ["-Wl,--build-id=none", "-Wl,--build-id=sha1"] {
        let Some(container) = Container::new(&[build_id]) else { return };
        let Some(file) = container.record(&["400"]) else { return };
        fs::remove_dir_all(&container.root).unwrap();
        let paths = folded(&file, &[]);
        assert!(paths.contains(";main;inner ") && !paths.contains("decoy"), "{build_id}: {paths}");
        // What is made of the recording has them too.
        let cut = container.shop.path("cut.teeperf");
        run(teeperf().args(["cut", "--since", "50%"]).arg(&file).arg("-o").arg(&cut))
            .expect_code(0);
        assert!(folded(&cut, &[]).contains(";main;inner "), "{build_id}");
        let packed = container.shop.path("packed.tar.zst");
        run(teeperf().arg("pack").arg(&file).arg("-o").arg(&packed)).expect_code(0);
        let paths = folded(&packed, &[]);
        assert!(paths.contains(";main;inner ") && !paths.contains("decoy"), "{build_id}: {paths}");
    }
}

/// Guards: processes of a container that end at once have names too.
#[test]
fn processes_that_end_at_once() {
    let Some(container) = Container::new(&["-Wl,--build-id=none"]) else { return };
    let Some(file) = container.record(&["4", "60"]) else { return };
    fs::remove_dir_all(&container.root).unwrap();
    let paths = folded(&file, &[]);
    let count = |is_meant: &dyn Fn(&str) -> bool| -> u64 {
        let lines = paths.lines().filter(|line| is_meant(line));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    };
    let named = count(&|line| line.contains(";main;inner"));
    let nameless = count(&|line| line.contains("[contained]"));
    assert!(!paths.contains("decoy") && named > 20 * nameless, "{named} {nameless}: {paths}");
}

/// Guards: a hooked program in a container has the names of its own file, however soon it ends, or
/// none.
#[test]
fn a_hooked_program_of_another_root() {
    for build_id in ["-Wl,--build-id=none", "-Wl,--build-id=sha1"] {
        let build =
            |shop: &Workshop, flags: &[&str]| shop.build("contained.c", Compiler::Gcc, flags);
        let Some(container) = Container::of(build, &[build_id]) else { return };
        let root = container.root.to_str().unwrap();
        let proc = container.root.join("proc");
        fs::create_dir(&proc).unwrap();
        let mount = format!("--mount-proc={}", proc.to_str().unwrap());
        let program = container.program.to_str().unwrap();
        for milliseconds in ["1", "300"] {
            let words = ["--mount", "--pid", "--fork", &mount, "chroot", root, program];
            let words = [&words[..], &[milliseconds]].concat();
            let mut recording = container.shop.recording(&[], Path::new("unshare"), &words);
            run(&mut recording.command).expect_code(0);
            let paths = folded(&recording.file, &[]);
            assert!(!paths.contains("decoy"), "{build_id} {milliseconds}: {paths}");
            if milliseconds != "1" {
                assert!(paths.contains(";main;inner "), "{build_id}: {paths}");
            }
        }
    }
}

/// Guards: a private mount namespace alone changes no file, and nothing is copied.
#[test]
fn a_mount_namespace_with_the_same_files() {
    let Some(container) = Container::new(&["-Wl,--build-id=none"]) else { return };
    let program = container.program.to_str().unwrap();
    let words = ["--mount", program, "200"];
    let mut recording = container.shop.recording(&["--sample"], Path::new("unshare"), &words);
    let outcome = run(&mut recording.command);
    if !outcome.success() {
        eprintln!("skipped: {}", outcome.stderr);
        return;
    }
    assert!(folded(&recording.file, &[]).contains(";main;decoy "));
    let dump = run(teeperf().arg("dump").arg(&recording.file)).stdout;
    assert!(!dump.contains(" file="), "{dump}");
}

/// Guards: a program in a container tells of code that it made with the id and in the folder that
/// it has there.
#[cfg(target_arch = "x86_64")]
#[test]
fn code_that_was_made_in_a_container() {
    let Some(container) = Container::new(&[]) else { return };
    let flags = ["-O1", "-static", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"];
    let program = container.shop.build_unhooked("jitted.c", Compiler::Gcc, &flags);
    let inside = container.root.join(program.strip_prefix("/").unwrap());
    fs::copy(&program, inside).unwrap();
    let container = Container { program, ..container };
    let Some(file) = container.record(&["600"]) else { return };
    fs::remove_dir_all(&container.root).unwrap();
    let paths = folded(&file, &[]);
    assert!(paths.contains(";main;work;JS:*outer a.js:1:2;Large:::spin "), "{paths}");
    let told = run(teeperf().arg("info").arg(&file)).stdout;
    let copy = told.split_whitespace().find(|word| word.starts_with("/tmp/perf-")).expect(&told);
    fs::remove_file(copy).unwrap();
}
