//! The command, built of the last commit in a folder of its own, so that nothing of this machine gets into it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::{Release, tools};
use crate::commands::{line, root, run, run_quietly};

/// The command, and what cargo runs as `cargo teeperf`.
pub(super) const PROGRAMS: [&str; 2] = ["teeperf", "cargo-teeperf"];

/// As in `[package.metadata.deb]`.
const MAINTAINER: &str = "teeperf authors <teeperf@users.noreply.github.com>";

/// A build.
pub(super) struct Built {
    /// The sources.
    pub(super) sources: PathBuf,
    /// Cargo's target folder.
    pub(super) target: PathBuf,
    /// Where cargo keeps the sources of crates, and Rust its libraries.
    foreign: Vec<(PathBuf, &'static str)>,
    /// The version of the command.
    pub(super) version: String,
    /// The processor and system that it is for, as Rust names them.
    pub(super) triple: String,
    /// When the commit was made, seconds since 1970.
    pub(super) epoch: String,
}

impl Built {
    /// Builds in this folder below the release's.
    pub(super) fn make(release: &Release, name: &str) -> Result<Self> {
        let sources = release.folder.join(name).join("source");
        let target = release.folder.join(name).join("target");
        let built = Self {
            triple: triple()?,
            epoch: git(&["log", "-1", "--format=%ct"])?,
            version: version()?,
            foreign: vec![
                (cargo_home()?, "/build/cargo"),
                (PathBuf::from(said("rustc", &["--print", "sysroot"])?), "/build/rust"),
            ],
            sources,
            target,
        };
        built.unpack()?;
        let mut build = Command::new("cargo");
        if tools::is_there("auditable") {
            build.arg("auditable");
        } else {
            ensure!(
                !release.is_complete,
                "cargo-auditable is not installed; --install-tools installs it"
            );
            println!(
                "cargo-auditable is not installed: the command does not say what it is made of"
            );
        }
        build.args(["build", "--release", "--locked", "--package", "teeperf"]);
        run(built.prepared(&mut build))?;
        Ok(built)
    }

    /// The sources of the last commit, as new as they are unpacked: cargo goes by the times of files.
    fn unpack(&self) -> Result<()> {
        if self.sources.is_dir() {
            fs::remove_dir_all(&self.sources)?;
        }
        fs::create_dir_all(&self.sources)?;
        if !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty() {
            println!("what is not committed is not packaged");
        }
        let mut archive = Command::new("git");
        archive.args(["archive", "HEAD"]).current_dir(root()).stdout(Stdio::piped());
        let mut archive = archive.spawn().context("cannot start git")?;
        let mut unpack = Command::new("tar");
        unpack.args(["-x", "-m", "-C"]).arg(&self.sources);
        let unpacked =
            unpack.stdin(archive.stdout.take().context("git has no output")?).status()?;
        ensure!(archive.wait()?.success() && unpacked.success(), "{} failed", line(&unpack));
        Ok(())
    }

    /// A command of cargo in the sources, which gets no path of this machine into what it builds.
    pub(super) fn prepared<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let own =
            [(self.sources.clone(), "/build/teeperf"), (self.target.clone(), "/build/target")];
        let all = || own.iter().chain(&self.foreign);
        let rust = all().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
        let c = all().map(|(from, to)| format!("-ffile-prefix-map={}={to}", from.display()));
        command.current_dir(&self.sources).env("CARGO_TARGET_DIR", &self.target);
        command.env("CARGO_ENCODED_RUSTFLAGS", rust.collect::<Vec<_>>().join("\x1f"));
        command.env("CFLAGS", c.collect::<Vec<_>>().join(" "));
        command.env("SOURCE_DATE_EPOCH", &self.epoch);
        for (variable, value) in [("DEBUG", "false"), ("STRIP", "symbols"), ("CODEGEN_UNITS", "4")]
        {
            command.env(format!("CARGO_PROFILE_RELEASE_{variable}"), value);
        }
        command
    }

    /// The command.
    pub(super) fn binary(&self) -> PathBuf {
        self.target.join("release").join(PROGRAMS[0])
    }

    /// All that is built: [`PROGRAMS`].
    pub(super) fn programs(&self) -> [PathBuf; 2] {
        PROGRAMS.map(|name| self.target.join("release").join(name))
    }

    /// Looks for paths of this machine in what was built.
    pub(super) fn has_no_paths(&self) -> Result<()> {
        for program in self.programs() {
            let bytes = fs::read(&program)?;
            let own = [&self.sources, &self.target];
            for path in own.into_iter().chain(self.foreign.iter().map(|(path, _)| path)) {
                let path = path.display().to_string();
                if let Some(at) = position(&bytes, path.as_bytes()) {
                    let end = bytes.len().min(at + 120);
                    let found = String::from_utf8_lossy(&bytes[at..end]);
                    bail!("{} has {path}: {found:?}", program.display());
                }
            }
        }
        Ok(())
    }

    /// Manual pages and completions, which the command writes itself, in a folder of the sources.
    pub(super) fn documents(&self) -> Result<()> {
        for (name, folder) in [("man", "man"), ("completions", "completions")] {
            let mut write = Command::new(self.binary());
            run_quietly(write.args([name, "--dir"]).arg(self.folder().join(folder)))?;
        }
        let (pages, completions) = (self.folder().join("man"), self.folder().join("completions"));
        let there =
            [pages.join("teeperf.1"), pages.join("teeperf-record.1"), completions.join("_teeperf")];
        for path in there {
            ensure!(path.is_file(), "{} was not written", path.display());
        }
        let date = said("date", &["--utc", "--rfc-email", "--date", &format!("@{}", self.epoch)])?;
        let changes = debian_changes(&self.version, &date);
        fs::write(self.folder().join("changelog"), changes)?;
        Ok(())
    }

    /// Where [`Self::documents`] are.
    pub(super) fn folder(&self) -> PathBuf {
        self.sources.join("crates/teeperf/dist")
    }

    /// As files of this build are called.
    pub(super) fn name(&self) -> String {
        format!("teeperf-{}-{}", self.version, self.triple)
    }
}

/// The packaging's own changes, as Debian's policy wants them told (12.7): those of the software stand in CHANGELOG.md.
fn debian_changes(version: &str, date: &str) -> String {
    format!(
        "teeperf ({version}-1) unstable; urgency=medium\n\n  * Version {version}: see changelog.gz.\n\n \
         -- {MAINTAINER}  {date}\n"
    )
}

fn position(all: &[u8], wanted: &[u8]) -> Option<usize> {
    all.windows(wanted.len().max(1)).position(|part| part == wanted)
}

fn cargo_home() -> Result<PathBuf> {
    let home = || Some(Path::new(&std::env::var_os("HOME")?).join(".cargo"));
    std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(home)
        .context("no CARGO_HOME, and no HOME")
}

/// The host's, as Rust names it.
fn triple() -> Result<String> {
    let told = said("rustc", &["-vV"])?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not name its host")?.to_owned())
}

/// The workspace's.
fn version() -> Result<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
    Ok(line
        .and_then(|line| line.split('"').next())
        .context("Cargo.toml has no version")?
        .to_owned())
}

fn git(words: &[&str]) -> Result<String> {
    let mut git = Command::new("git");
    Ok(run_quietly(git.args(words).current_dir(root()))?.trim().to_owned())
}

fn said(program: &str, words: &[&str]) -> Result<String> {
    Ok(run_quietly(Command::new(program).args(words))?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_found_wherever_it_stands() {
        assert_eq!(position(b"xx/home/me/src", b"/home/me"), Some(2));
        assert_eq!(position(b"/home/m", b"/home/me"), None);
        assert_eq!(version().unwrap(), env!("CARGO_PKG_VERSION"));
    }
}
