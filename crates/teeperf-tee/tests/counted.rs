//! A program that is compiled with `-pg` and linked with the library: whether calls are counted as the program
//! counts them itself, and as the C library does, and whether every argument comes through.

#[path = "../../teeperf-rt/build_runtime.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "it is included here for the building of crates alone"
)]
mod runtime;

use runtime::{Build, run, tool};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The functions that the image may bring itself.
const PORT: [&str; 7] = ["is_outside", "pause", "counter", "name", "tree", "sums", "arcs"];

/// The library, built into a folder for the processor that this runs on.
fn library(out: &Path) -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let build = Build { crates: &crates, out, flags: &[] };
    let uses = ["teeperf_wire", "teeperf_tally"];
    let object = ["--crate-type=lib", "--emit=obj"];
    build.library("teeperf_wire", &[]).unwrap();
    build.library("teeperf_tally", &uses[..1]).unwrap();
    let runtime = out.join("libteeperf_tee.a");
    let whole = ["--crate-type=staticlib", "-Clto=fat", "--cfg=feature=\"object\""];
    build.rustc("teeperf_tee", &uses, &runtime, &whole).unwrap();
    let mut members = Vec::new();
    let mut member = |source: &str, name: String, feature: Option<&str>| {
        let output = out.join(format!("{name}.o"));
        let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
        command
            .arg(crates.join("teeperf-tee").join(source))
            .args(["--edition=2024", "-Cpanic=abort"]);
        command.args(object).args(["-Copt-level=3", "-L"]).arg(out);
        command
            .arg(format!("--extern=teeperf_tally={}", out.join("libteeperf_tally.rlib").display()));
        command.args(feature.map(|feature| format!("--cfg=feature=\"{feature}\"")));
        run(command.arg("-o").arg(&output)).unwrap();
        members.push(output);
    };
    member("mcount/mcount.rs", "mcount".into(), None);
    PORT.iter().for_each(|part| member("port/port.rs", format!("port_{part}"), Some(part)));
    run(tool("ar").arg("rs").arg(&runtime).args(&members)).unwrap();
    runtime
}

fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/counted.c")
}

/// What a program prints, and ends well.
fn printed(program: &Path) -> String {
    let output = Command::new(program).current_dir(program.parent().unwrap()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{program:?}: {}\n{text}", output.status);
    text
}

#[test]
fn calls_are_counted_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let library = library(folder.path());
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    for flags in ["-O2", "-O2 -mfentry", "-O2 -fPIC", "-O2 -fno-pie -no-pie", "-O0", "-O3 -mavx"] {
        let built = folder.path().join("counted");
        let mut compile = tool("cc");
        compile.args(["-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-fno-toplevel-reorder", "-pg"]);
        compile.args(["-Wl,--no-warn-execstack", "-I"]).arg(&include).args(flags.split(' '));
        run(compile.arg(program()).arg(&library).arg("-o").arg(&built)).unwrap();
        let text = printed(&built);
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            assert!(words.len() == 3 && words[1] == words[2], "{flags}: {line} in\n{text}");
        }
        assert_eq!(text.lines().count(), 14, "{text}");
    }
}

/// The same program under the C library's own counting: what it counts is what the program says.
#[test]
fn the_c_library_counts_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let built = folder.path().join("yardstick");
    let mut compile = tool("cc");
    compile.args(["-O2", "-pg", "-DYARDSTICK", "-fno-toplevel-reorder", "-no-pie", "-fno-pie"]);
    run(compile.args(["-Wl,--no-warn-execstack", "-o"]).arg(&built).arg(program())).unwrap();
    let told = printed(&built);
    let told: BTreeMap<&str, u64> = told
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(name, calls)| (name, calls.parse().unwrap()))
        .collect();
    let mut gprof = Command::new("gprof");
    gprof.args(["-b", "-q"]).arg(&built).arg(folder.path().join("gmon.out"));
    let shown = String::from_utf8(gprof.output().unwrap().stdout).unwrap();
    // Of a recursion gprof shows calls by others, and behind a + those by itself.
    for (name, calls) in told {
        let row = shown
            .lines()
            .find(|line| line.starts_with('[') && line.contains(&format!(" {name} [")));
        let found: u64 = row
            .and_then(|row| row.split_whitespace().nth(4))
            .map(|calls| calls.split('+').map(|part| part.parse::<u64>().unwrap()).sum())
            .unwrap_or_else(|| panic!("no {name} in\n{shown}"));
        // A nested function stands behind `apply`, and has its own row.
        let inner = if name == "apply" { calls / 4 * 3 } else { 0 };
        assert_eq!(found, calls - inner, "{name} in\n{shown}");
    }
}
