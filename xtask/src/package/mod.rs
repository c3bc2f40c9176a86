//! `cargo xtask package`: what a release consists of, made of the last commit and looked at: the command, an archive, a Debian
//! package, a list of what is in it (SBOM), checksums. The release workflow runs nothing else, so that it can be tried here.

mod archive;
mod build;
mod deb;
mod sbom;
mod sums;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::commands::{run_quietly, target};
use crate::steps::{Outcome, Steps};
use build::Built;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Builds once, and does not look whether two builds are alike
    #[arg(long)]
    once: bool,
    /// Installs cargo-deb, cargo-cyclonedx and cargo-auditable below the target folder, where they are missing
    #[arg(long)]
    install_tools: bool,
    /// Takes a missing tool for an error, as for a release
    #[arg(long)]
    complete: bool,
}

/// What the steps have in common.
struct Release {
    /// Where all of this is done.
    folder: PathBuf,
    /// What is made for others.
    dist: PathBuf,
    /// Whether what is missing is an error.
    is_complete: bool,
}

impl Release {
    /// For a step that cannot be done without a tool.
    fn without(&self, tool: &str) -> Result<Outcome> {
        let why = format!("{tool} is not installed; --install-tools installs it");
        ensure!(!self.is_complete, "{why}");
        Ok(Outcome::Skipped(why))
    }
}

/// Makes and checks everything; an error when a step failed.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let folder = target()?.join("package");
    let dist = folder.join("dist");
    if dist.is_dir() {
        fs::remove_dir_all(&dist)?;
    }
    fs::create_dir_all(&dist).with_context(|| dist.display().to_string())?;
    let release = Release { folder, dist, is_complete: arguments.complete };
    tools::find(&release.folder, arguments.install_tools)?;
    let mut steps = Steps::default();
    let mut built: Option<Built> = None;
    steps.run("build", || {
        built = Some(Built::make(&release, "a")?);
        Ok(Outcome::Passed)
    });
    let Some(built) = built else { return steps.finish() };
    steps.run("no path of this machine in it", || built.has_no_paths().map(passed));
    if !arguments.once {
        steps.run("the same bytes from another folder", || {
            let other = Built::make(&release, "b/deeper/still")?;
            for (one, other) in built.programs().iter().zip(other.programs()) {
                ensure_same(one, &other)?;
            }
            Ok(Outcome::Passed)
        });
    }
    steps.run("manual pages and completions", || built.documents().map(passed));
    steps.run("archive", || archive::make(&release, &built).map(passed));
    steps.run("Debian package", || deb::make(&release, &built));
    steps.run("list of what is in it (SBOM)", || sbom::make(&release, &built));
    steps.run("checksums", || sums::make(&release).map(passed));
    steps.run("workflows", || crate::workflows::check(arguments.complete));
    println!("\nin {}:", release.dist.display());
    for name in names(&release.dist)? {
        println!("  {name}");
    }
    steps.finish()
}

fn passed((): ()) -> Outcome {
    Outcome::Passed
}

/// Names of the files in a folder, in order.
fn names(folder: &Path) -> Result<Vec<String>> {
    let entries: std::io::Result<Vec<_>> = fs::read_dir(folder)?.collect();
    let mut names: Vec<String> =
        entries?.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

fn ensure_same(one: &Path, other: &Path) -> Result<()> {
    let (first, second) = (fs::read(one)?, fs::read(other)?);
    let differs = first.iter().zip(&second).position(|(a, b)| a != b);
    match differs {
        None if first.len() == second.len() => Ok(()),
        None => bail!(
            "{} has {} bytes, {} {}",
            one.display(),
            first.len(),
            other.display(),
            second.len()
        ),
        Some(at) => bail!("{} and {} differ from byte {at:#x} on", one.display(), other.display()),
    }
}

/// Runs the bundled demo by a command that was installed somewhere: it builds, records, reports and draws.
/// And has cargo find `cargo teeperf` beside it.
fn demonstrate(command: &Path, work: &Path) -> Result<()> {
    let folder = work.join("demo");
    let mut demo = Command::new(command);
    demo.args(["demo", "--folder"]).arg(&folder);
    let shown = run_quietly(demo.env("XDG_CACHE_HOME", work.join("cache")))?;
    ensure!(shown.contains("Functions by self time"), "the demo shows no report:\n{shown}");
    ensure!(folder.join("flame.html").is_file(), "the demo has drawn nothing");
    let beside = command.parent().unwrap_or(Path::new("/"));
    let mut path = beside.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut cargo = Command::new("cargo");
    let told = run_quietly(cargo.args(["teeperf", "--help"]).env("PATH", path))?;
    ensure!(told.contains("cargo teeperf build"), "cargo teeperf --help tells:\n{told}");
    Ok(())
}

/// An empty folder below the release's.
fn empty(release: &Release, name: &str) -> Result<PathBuf> {
    let folder = release.folder.join(name);
    if folder.is_dir() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_differ_are_told_apart() {
        let folder = std::env::temp_dir().join(format!("xtask-same-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let (one, same) = (file("one", "abc"), file("same", "abc"));
        assert!(ensure_same(&one, &same).is_ok());
        let error = ensure_same(&one, &file("other", "abd")).unwrap_err().to_string();
        assert!(error.ends_with("from byte 0x2 on"), "{error}");
        assert!(ensure_same(&one, &file("longer", "abcd")).is_err());
        assert_eq!(names(&folder).unwrap(), ["longer", "one", "other", "same"]);
        fs::remove_dir_all(folder).unwrap();
    }
}
