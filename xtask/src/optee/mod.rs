//! `cargo xtask optee`: OP-TEE on an emulated Arm machine, from Debian's packages alone, and our trusted
//! applications, their client and the command on it. What is fetched and built is kept in one folder.
//! Whatever cannot be had is skipped, with the reason; only what fails here is a failure.

mod added;
mod applications;
mod boot;
mod command;
mod fetch;
mod firmware;
mod initramfs;
mod lab;
mod source;
mod targets;
mod tests;

use std::time::Instant;

use anyhow::Result;

use crate::checks::Checks;
use crate::cross::Toolchain;
use crate::emulator;
use crate::tools;
use fetch::Kit;
use firmware::Firmware;
pub(crate) use lab::Lab;

/// Debian packages on this machine: compilers, and what builds firmware and file systems.
const TOOLS: [&str; 14] = [
    "gcc-aarch64-linux-gnu",
    "libc6-dev-arm64-cross",
    "gcc",
    "libc6-dev",
    "libssl-dev",
    "make",
    "device-tree-compiler",
    "python3-cryptography",
    "python3-pyelftools",
    "cpio",
    "xz-utils",
    "kmod",
    "dpkg-dev",
    "zlib1g-dev",
];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Builds OP-TEE from Debian's newest source too, with gprof and ftrace, and tests on both
    #[arg(long)]
    from_source: bool,
    /// Fetches packages for a later run, and tests nothing
    #[arg(long, conflicts_with_all = ["from_source", "groups"])]
    fetch: bool,
    /// Groups of tests to run; all if none is named, `xtest-whole` only with --from-source
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(tests::names()))]
    groups: Vec<String>,
}

/// Fetches, builds, boots and tests. The last line says how many checks passed, failed and were skipped; the
/// exit status, whether one failed.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.fetch {
        return fetch_all();
    }
    let mut checks = Checks::default();
    let start = Instant::now();
    if let Err(error) = all(arguments, &mut checks) {
        checks.on("");
        checks.add("OP-TEE in QEMU", Err(error));
    }
    println!("{:7.1} s  in all", start.elapsed().as_secs_f64());
    if !checks.finish() {
        std::process::exit(1);
    }
    Ok(())
}

/// Packages for a later run: those of the machine, zlib's sources, and Rust for other processors.
fn fetch_all() -> Result<()> {
    let lab = Lab::open()?;
    open_kit(&lab)?;
    timed("zlib's sources", || fetch::zlib(&lab))?;
    timed("Rust", || Toolchain::open(&lab.path("rust"))?.fetch())
}

/// Installs tools and the emulator, and fetches what the machine is made of.
fn open_kit(lab: &Lab) -> Result<Kit> {
    timed("tools", || tools::install(&TOOLS))?;
    let emulator = timed("emulator", || emulator::find("qemu-system-aarch64", "qemu-system-arm"))?;
    timed("packages", || fetch::fetch(lab, emulator))
}

fn all(arguments: &Arguments, checks: &mut Checks) -> Result<()> {
    let lab = Lab::open()?;
    let kit = open_kit(&lab)?;
    let packaged = timed("firmware", || Firmware::packaged(&lab, &kit))?;
    tests::run(&lab, &kit, &packaged, arguments, checks)?;
    if arguments.groups.is_empty() {
        checks.on("");
        targets::check(&lab, checks);
    }
    if arguments.from_source {
        let from_source = timed("OP-TEE from source", || source::build(&lab, &kit));
        match from_source {
            Ok(firmware) => tests::run(&lab, &kit, &firmware, arguments, checks)?,
            Err(error) => {
                checks.on("");
                checks.add("OP-TEE from source", Err(error));
            }
        }
    } else {
        checks.on("");
        checks.skip("OP-TEE from source", "it takes minutes to build; --from-source does");
    }
    Ok(())
}

/// Says how long it took, where that is worth a line.
fn timed<T>(what: &str, step: impl FnOnce() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    let result = step();
    println!("{:7.1} s  {what}", start.elapsed().as_secs_f64());
    result
}
