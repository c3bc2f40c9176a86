//! `teeperf install-sdk`: what programs, and code without a system of its own, are built with.

use super::progress::Steps;
use crate::bundle;
use crate::sdk::{self, Kind, Threads, target};
use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Writes into a folder what programs, and code without a system, are built with
///
/// For C and C++ programs of Linux on x86-64 (--programs): include/teeperf.h; the hooks, and the runtime as an
/// object and as a library; and files for pkg-config, CMake (find_package(teeperf)) and Meson, with an example
/// each. README.md there says how. The folder can be moved, and is removed by removing it.
///
/// For enclaves, trusted applications and bare-metal images (--target) a library is compiled for each target by
/// the Rust compiler that is installed (RUSTC, else rustc in PATH): include/teeperf_tee.h,
/// lib/ARCHITECTURE/libteeperf_tee.a, optee/ for OP-TEE's development kit, sgx/ for enclaves, and the crate
/// rust/teeperf-hooks for Rust code. It needs no system, no C library and no Rust at run time, so bare and hosted targets serve alike;
/// that of an architecture's targets is taken whose core library the compiler has, and the first is the one that
/// leaves floating-point registers alone.
///
/// Without either both are written, as far as this machine goes.
#[derive(Args, Debug)]
#[command(after_help = sdk::target::help(), after_long_help = sdk::target::help())]
pub(crate) struct Arguments {
    /// Where to write it
    folder: PathBuf,
    /// For programs of this system
    #[arg(long)]
    programs: bool,
    /// For code without a system: an architecture, or one of its Rust targets
    #[arg(long, value_name = "TARGET", value_parser = target::parse)]
    target: Vec<target::Wanted>,
    /// Interrupts or signals may run hooked code in the midst of a hook: what they call is counted as left out
    #[arg(long)]
    nested: bool,
    /// How many threads run code without a system at a time
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
    /// Several, each of which attaches memory of its own and has its data where the code says: enclaves of SGX
    Apart,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let is_all = !arguments.programs && arguments.target.is_empty();
    let sysroot = arguments.sysroot.as_deref();
    let mut left_out = Vec::new();
    let with_programs = arguments.programs || is_all;
    if with_programs && let Err(error) = bundle::needs_hooks() {
        let next = "--target, of code without a system, takes other architectures: see --help";
        ensure!(is_all, "{error}; {next}");
        left_out.push(format!("for programs: {error}"));
    }
    let targets = match &arguments.target[..] {
        [] if !is_all => Vec::new(),
        [] if !sdk::has_compiler(sysroot) && bundle::HAS_HOOKS => {
            left_out.push(
                "for code without a system: no Rust compiler was found (RUSTC, rustc in PATH); install one from \
                 https://rustup.rs, and say --target"
                    .into(),
            );
            Vec::new()
        }
        [] => vec![target::of_this_machine()?],
        wanted => wanted.to_vec(),
    };
    for (index, one) in targets.iter().enumerate() {
        let name = one.architecture().name;
        let is_twice = targets.iter().take(index).any(|other| other.architecture().name == name);
        ensure!(
            !is_twice,
            "two targets would both be lib/{name}: install each into a folder of its own"
        );
    }
    ensure!(
        !(arguments.nested && arguments.threads == HowMany::Apart),
        "--nested: what interrupts hooks of threads apart is not kept out of them yet"
    );
    let kind = Kind {
        nested: arguments.nested,
        threads: match arguments.threads {
            HowMany::Single => Threads::Single,
            HowMany::Tls => Threads::Tls,
            HowMany::Apart => Threads::Apart,
        },
    };
    let folder = std::path::absolute(&arguments.folder)?;
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let mut told = String::new();
    if !targets.is_empty() {
        let mut steps = Steps;
        let mut begins = |name: &str| steps.at(&format!("building the library for {name}"));
        told = sdk::install(&folder, &targets, kind, sysroot, &mut begins)?;
        told += &format!(
            "next, for code without a system: compile with -I{0}/include -finstrument-functions, and link with a \
             library above\n",
            folder.display()
        );
    }
    if with_programs && bundle::HAS_HOOKS {
        told += &sdk::install_for_programs(&folder)?;
        told += &format!("next, for programs: {}\n", folder.join("README.md").display());
    }
    for what in left_out {
        told += &format!("left out {what}\n");
    }
    super::print(told.as_bytes())
}
