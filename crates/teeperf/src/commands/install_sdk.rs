//! `teeperf install-sdk`: what code without a system of its own is built with.

use crate::sdk::{self, Kind, Threads, target};
use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Writes header and library for enclaves, trusted applications and bare-metal images into a folder
///
/// The library is compiled for each target by the Rust compiler that is installed (RUSTC, else rustc in
/// PATH): include/teeperf_tee.h, lib/ARCHITECTURE/libteeperf_tee.a, optee/ for OP-TEE's development kit, and
/// the crate rust/teeperf-hooks for Rust code. It needs no system, no C library and no Rust at run time, so
/// bare and hosted targets serve alike; that of an architecture's targets is taken whose core library the
/// compiler has, and the first is the one that leaves floating-point registers alone.
#[derive(Args, Debug)]
#[command(after_help = sdk::target::help(), after_long_help = sdk::target::help())]
pub(crate) struct Arguments {
    /// Where to write it
    folder: PathBuf,
    /// An architecture, or one of its Rust targets [default: the architecture of this machine]
    #[arg(long, value_name = "TARGET", value_parser = target::parse)]
    target: Vec<target::Wanted>,
    /// Interrupts or signals may run hooked code in the midst of a hook: what they call is counted as left out
    #[arg(long)]
    nested: bool,
    /// How many threads run the code at a time
    #[arg(long, value_enum, value_name = "HOW", default_value_t = HowMany::Single)]
    threads: HowMany,
    /// For the Rust compiler: a folder with core libraries
    #[arg(long, value_name = "FOLDER")]
    sysroot: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum HowMany {
    /// One
    Single,
    /// Several, each with ELF thread-local storage
    Tls,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let wanted = match &arguments.target[..] {
        [] => vec![target::of_this_machine()?],
        wanted => wanted.to_vec(),
    };
    for (index, one) in wanted.iter().enumerate() {
        let name = one.architecture().name;
        let is_twice = wanted.iter().take(index).any(|other| other.architecture().name == name);
        ensure!(
            !is_twice,
            "two targets would both be lib/{name}: install each into a folder of its own"
        );
    }
    let kind = Kind {
        nested: arguments.nested,
        threads: match arguments.threads {
            HowMany::Single => Threads::Single,
            HowMany::Tls => Threads::Tls,
        },
    };
    let folder = std::path::absolute(&arguments.folder)?;
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let told = sdk::install(&folder, &wanted, kind, arguments.sysroot.as_deref())?;
    let next = format!(
        "{told}next: compile with -I{0}/include -finstrument-functions, and link with a library above\n",
        folder.display()
    );
    super::print(next.as_bytes())
}
