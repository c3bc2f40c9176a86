//! Builds what travels inside the binary (see `src/bundle`): the runtime in its forms. Needs the
//! Rust compiler and gcc, and writes nowhere but into cargo's output folder. For processors without hooks there is no runtime, and `cfg(hooks)`
//! is not set; the library for clients of trusted applications is for all, that for hosts of enclaves for those that have them.

#[path = "src/bundle/fingerprint.rs"]
mod fingerprint;
#[path = "../teeperf-rt/build_runtime.rs"]
#[allow(unreachable_pub, reason = "it is included here, and nobody uses it from outside")]
mod runtime;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Processors that `teeperf-stub` and `teeperf-rt` are written for.
const HOOKED: &[&str] = &["x86_64"];
/// The library for clients of trusted applications, by its name in the output folder.
const OPTEE: &str = "libteeperf_optee.so";
/// The library for hosts of enclaves, likewise, and the processor that has enclaves.
const SGX: &str = "libteeperf_sgx.so";
const WITH_SGX: &str = "x86_64";
/// The library that samples programs from within, by its name in the output folder, and the processors that it is for.
const INSIDE: &str = "libteeperf_inside.so";
const SAMPLED: &[&str] = &["x86_64", "aarch64"];
/// What `teeperf install-sdk` builds from, by the folder it unpacks it into: whole folders, and files. The crate for Rust
/// code has a manifest of its own there, without crates that a TEE's build would have to fetch.
const SDK: &[(&str, &str)] = &[
    ("crates/teeperf-wire/src", "../teeperf-wire/src"),
    ("crates/teeperf-tally/src", "../teeperf-tally/src"),
    ("crates/teeperf-tee/src", "../teeperf-tee/src"),
    ("crates/teeperf-tee/port", "../teeperf-tee/port"),
    ("crates/teeperf-tee/mcount", "../teeperf-tee/mcount"),
    ("host", "sdk"),
    ("include", "../teeperf-tee/include"),
    ("optee", "../../integrations/optee/sdk"),
    ("sgx", "../../integrations/sgx/sdk"),
    ("rust/teeperf-hooks/src", "../teeperf-hooks/src"),
    ("rust/teeperf-hooks/Cargo.toml", "../teeperf-hooks/sdk/Cargo.toml"),
];
/// Everything else that is embedded, likewise.
const EMBEDDED: &[&str] = &[
    "teeperf_stub.o",
    "libteeperf_wrap.a",
    "teeperf_rt.o",
    "libteeperf.so",
    "teeperf.h",
    "link_flags.txt",
];

fn main() {
    if let Err(error) = build() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn build() -> Result<(), String> {
    let variable = |name: &str| {
        std::env::var_os(name).map(PathBuf::from).ok_or(format!("cargo has not set {name}"))
    };
    let out = variable("OUT_DIR")?;
    let own = variable("CARGO_MANIFEST_DIR")?;
    let crates = own.join("..");
    for name in ["wire", "tally", "rt", "stub", "tee", "lender", "optee", "sgx", "aex", "inside"] {
        println!("cargo::rerun-if-changed=../teeperf-{name}");
    }
    let (rt, stub) = (crates.join("teeperf-rt"), crates.join("teeperf-stub"));
    println!("cargo::rerun-if-changed=src/bundle/fingerprint.rs");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(hooks)");
    println!("cargo::rustc-check-cfg=cfg(inside)");
    copy(&stub.join("src/link_flags.txt"), &out.join("link_flags.txt"))?;
    sdk(&own, &out)?;
    let processor = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let is_sampled = SAMPLED.contains(&processor.as_str());
    let mut lenders = vec![OPTEE];
    if processor == WITH_SGX {
        lenders.push(SGX);
    }
    preloads(&crates, &out, &lenders, is_sampled)?;
    let mut embedded = lenders;
    if is_sampled {
        println!("cargo::rustc-cfg=inside");
        copy(&crates.join("teeperf-inside/include/teeperf_aex.h"), &out.join("teeperf_aex.h"))?;
        embedded.extend([INSIDE, "teeperf_aex.h"]);
    }
    if HOOKED.contains(&processor.as_str()) {
        println!("cargo::rustc-cfg=hooks");
        runtime::build(&crates, &out)?;
        copy(&rt.join("include/teeperf.h"), &out.join("teeperf.h"))?;
        embedded.extend(EMBEDDED);
    }

    let mut whole = Vec::new();
    for name in embedded {
        let path = out.join(name);
        whole.extend(std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?);
    }
    println!("cargo::rustc-env=TEEPERF_BUNDLE={:032x}", fingerprint::fingerprint(&whole));
    Ok(())
}

/// Lists the files of [`SDK`] as a table of names and contents, which the command includes.
fn sdk(own: &Path, out: &Path) -> Result<(), String> {
    let mut table = String::from("&[\n");
    for (to, from) in SDK {
        println!("cargo::rerun-if-changed={from}");
        let folder = own.join(from);
        let root =
            folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
        embed(&root, to, &mut table)?;
    }
    table.push(']');
    let path = out.join("sdk.rs");
    std::fs::write(&path, table).map_err(|error| format!("{}: {error}", path.display()))
}

fn embed(path: &Path, to: &str, table: &mut String) -> Result<(), String> {
    if path.is_dir() {
        return list(path, to, table);
    }
    writeln!(table, "({to:?}, include_bytes!({:?})),", path.display().to_string())
        .map_err(|error| error.to_string())
}

fn list(folder: &Path, to: &str, table: &mut String) -> Result<(), String> {
    let told = |error| format!("{}: {error}", folder.display());
    let entries: Result<Vec<_>, _> = std::fs::read_dir(folder).map_err(told)?.collect();
    let mut paths: Vec<PathBuf> =
        entries.map_err(told)?.iter().map(std::fs::DirEntry::path).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        embed(&path, &format!("{to}/{name}"), table)?;
    }
    Ok(())
}

/// Libraries that are preloaded into programs: for whatever processor and system the command itself is built for, as cargo builds it.
fn preloads(crates: &Path, out: &Path, lenders: &[&str], is_sampled: bool) -> Result<(), String> {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    let mut flags: Vec<&str> = flags.split('\x1f').filter(|flag| !flag.is_empty()).collect();
    let (linker, target) = (variable("RUSTC_LINKER"), variable("TARGET"));
    let linker = format!("-Clinker={linker}");
    if linker != "-Clinker=" {
        flags.push(&linker);
    }
    flags.extend(["-Cstrip=debuginfo", "--target", &target]);
    // Apart from the runtime's, which are for the machine that builds.
    let folder = out.join("preloads");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let build = runtime::Build { crates, out: &folder, flags: &flags };
    build.library("teeperf_wire", &[])?;
    build.library("teeperf_tally", &["teeperf_wire"])?;
    build.library("teeperf_tee", &["teeperf_wire", "teeperf_tally"])?;
    build.library("teeperf_lender", &["teeperf_wire", "teeperf_tee"])?;
    let uses = ["teeperf_wire", "teeperf_lender"];
    for file in lenders {
        let name = file.trim_start_matches("lib").trim_end_matches(".so");
        build.rustc(name, &uses, &out.join(file), &["--crate-type=cdylib"])?;
    }
    if !is_sampled {
        return Ok(());
    }
    build.library("teeperf_aex", &["teeperf_wire"])?;
    let uses = ["teeperf_wire", "teeperf_aex"];
    build.rustc("teeperf_inside", &uses, &out.join(INSIDE), &["--crate-type=cdylib"])
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    std::fs::copy(from, to).map(drop).map_err(|error| format!("{}: {error}", from.display()))
}
