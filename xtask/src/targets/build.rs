//! Where programs for a processor are built: an SDK of each kind, the C compiler, the emulator.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::machine::Machine;
use crate::commands::{self, root, works};
use crate::cross::Toolchain;
use crate::optee::Lab;
use crate::packages::Unavailable;
use crate::{emulator, limited, sdk, tools};

const LIMIT: Duration = Duration::from_secs(60);

/// Which of its forms the runtime has.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Usual,
    Nested,
    Threads,
    /// Both of it.
    NestedThreads,
}

impl Kind {
    pub(super) const ALL: [Self; 4] =
        [Self::Usual, Self::Nested, Self::Threads, Self::NestedThreads];

    /// Of its folder.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Usual => "usual",
            Self::Nested => "nested",
            Self::Threads => "tls",
            Self::NestedThreads => "nested-tls",
        }
    }

    /// Options of `teeperf install-sdk`.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Usual => &[],
            Self::Nested => &["--nested"],
            Self::Threads => &["--threads", "tls"],
            Self::NestedThreads => &["--nested", "--threads", "tls"],
        }
    }
}

/// Installs the packages for a processor, and its emulator where that is a whole machine.
pub(super) fn fetch(machine: &Machine) -> Result<()> {
    if let Some(package) = machine.emulator_package {
        emulator::find(machine.emulator, package)?;
    }
    tools::install(machine.packages)
}

/// All that is needed for one processor.
pub(super) struct Workshop {
    pub(super) machine: &'static Machine,
    pub(super) teeperf: PathBuf,
    pub(super) emulator: PathBuf,
    folder: PathBuf,
}

impl Workshop {
    /// Installs and builds what is missing, with an SDK of each of these kinds.
    pub(super) fn open(machine: &'static Machine, kinds: &[Kind]) -> Result<Self> {
        if machine.triple.is_none() && !machine.is_here() {
            let why = format!("this machine is none; it has {}", std::env::consts::ARCH);
            return Err(Unavailable(why).into());
        }
        let emulator = match machine.emulator_package {
            Some(package) => emulator::find(machine.emulator, package)?,
            None => machine.emulator.into(),
        };
        let gcc = format!("{}gcc", machine.prefix);
        let missing = || {
            let runs = |tool: &&str| works(tool, &["--version"]);
            let of_linux = machine.emulator_package.is_none().then_some(machine.emulator);
            [gcc.as_str()].into_iter().chain(of_linux).find(|tool| !runs(tool))
        };
        if missing().is_some() {
            tools::install(machine.packages)?;
            // Other releases have it in other packages.
            if let Some(tool) = missing() {
                let why = format!("{tool} is not in {}", machine.packages.join(" "));
                return Err(Unavailable(why).into());
            }
        }
        let folder = commands::target()?.join("targets").join(machine.name);
        if folder.is_dir() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let workshop = Self { machine, teeperf: sdk::teeperf()?, emulator, folder };
        let toolchain = match machine.triple {
            Some(_) => Some(Toolchain::open(&Lab::open()?.path("rust"))?),
            None => None,
        };
        let target = machine.triple.unwrap_or(machine.architecture);
        for kind in kinds {
            let (to, log) = (workshop.path(kind.name()), workshop.path("sdk.log"));
            sdk::install(&to, &[(target, toolchain.as_ref())], kind.options(), &log)?;
        }
        Ok(workshop)
    }

    /// Something in its folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The library of a kind.
    pub(super) fn library(&self, kind: Kind) -> PathBuf {
        let place = format!("{}/lib/{}/libteeperf_tee.a", kind.name(), self.machine.architecture);
        self.path(&place)
    }

    /// A program of `conformance`, hooked and linked with the library of a kind, with further options for gcc.
    pub(super) fn program(&self, name: &str, kind: Kind, options: &[&str]) -> Result<PathBuf> {
        let library = self.library(kind);
        self.link(name, name, kind, &[options, &[&library.to_string_lossy()]].concat())
    }

    /// A program of this source, under another name, with all it is linked with.
    pub(super) fn link(
        &self,
        source: &str,
        name: &str,
        kind: Kind,
        with: &[&str],
    ) -> Result<PathBuf> {
        let program = self.path(name);
        let mut gcc = Command::new(format!("{}gcc", self.machine.prefix));
        gcc.args(["-O2", "-static", "-no-pie", "-fno-pie", "-Wall", "-Wextra", "-Werror"])
            .args(self.machine.flags);
        gcc.args(["-finstrument-functions", "-pthread", "-I"])
            .arg(self.path(kind.name()).join("include"));
        gcc.arg(conformance(source)).args(with).arg("-o").arg(&program);
        limited::run(&gcc, LIMIT, &self.path(&format!("{name}.log")))?;
        Ok(program)
    }

    /// A program of `conformance` compiled with `-pg` and these further flags: linked with the library of a kind, or with
    /// the C library's own counting.
    pub(super) fn count(&self, name: &str, kind: Option<Kind>, flags: &str) -> Result<PathBuf> {
        let program = self.path(name);
        let mut gcc = Command::new(format!("{}gcc", self.machine.prefix));
        gcc.args(["-pg", "-fno-toplevel-reorder", "-Wall", "-Wextra", "-Werror", "-Wno-psabi"])
            .args(["-static", "-Wl,--no-warn-execstack"])
            .args(self.machine.flags)
            .args(flags.split(' '))
            .arg(conformance(name));
        match kind {
            Some(kind) => {
                gcc.arg("-I").arg(self.path(kind.name()).join("include")).arg(self.library(kind))
            }
            None => gcc.arg("-DYARDSTICK"),
        };
        limited::run(gcc.arg("-o").arg(&program), LIMIT, &self.path(&format!("{name}.log")))?;
        Ok(program)
    }

    /// Runs a program of this processor, for no more than a minute.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("timeout");
        // What the C library writes at the end of programs that are compiled with -pg goes there, too.
        command.args(["--kill-after=5", "60"]).current_dir(&self.folder);
        if !self.machine.is_here() {
            command.arg(&self.emulator);
        }
        command.arg(program);
        command
    }

    /// What a program prints, which ends well.
    pub(super) fn output(&self, program: &Path, words: &[&OsStr]) -> Result<String> {
        commands::run_quietly(self.command(program).args(words))
    }
}

/// The source of a program.
pub(super) fn conformance(name: &str) -> PathBuf {
    root().join("crates/teeperf-tee/conformance").join(format!("{name}.c"))
}
