//! Debian's packages of any release and processor, unpacked into a folder: an apt with lists, state and
//! sources of its own fetches them from the mirror that this machine's apt names, and checks their
//! signatures. Installs nothing, and never touches the machine's own lists.

use std::cell::Cell;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::commands::{line, run_quietly, works};
use crate::mirror::Mirror;

/// Waits between tries of what comes over the network, in seconds.
const WAITS: [u64; 3] = [5, 15, 30];

/// Packages cannot be had here, for this reason: no failure of what was to be done with them.
#[derive(Debug)]
pub(crate) struct Unavailable(pub(crate) String);

impl fmt::Display for Unavailable {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

impl std::error::Error for Unavailable {}

/// Runs what needs the network, up to four times; the error is [`Unavailable`].
pub(crate) fn persistently(command: &mut Command) -> Result<String> {
    for wait in WAITS {
        match run_quietly(command) {
            Ok(text) => return Ok(text),
            Err(error) => {
                eprintln!("{}; once more in {wait} s", apt_error(&error));
                sleep(Duration::from_secs(wait));
            }
        }
    }
    run_quietly(command).map_err(|error| {
        let words: Vec<_> = command.get_args().filter(|word| !word.is_empty()).collect();
        let last = words.last().map(|word| word.to_string_lossy()).unwrap_or_default();
        let program = command.get_program().to_string_lossy();
        Unavailable(format!("{program} … {last} failed: {}", apt_error(&error))).into()
    })
}

/// What apt calls an error, of all that it has printed.
pub(crate) fn apt_error(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    let told = text.lines().find(|line| line.starts_with("E: ")).or(text.lines().next());
    told.unwrap_or_default().trim_start_matches("E: ").to_owned()
}

/// A package, or the part of it that is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// Its folder's name here.
    pub(crate) name: &'a str,
    /// As apt knows it: with `/release`, `=version` or `:architecture` where that matters.
    pub(crate) package: &'a str,
    /// A pattern of tar's; everything if there is none.
    pub(crate) only: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    /// All of it, under its own name.
    pub(crate) const fn whole(package: &'a str) -> Self {
        Self { name: package, package, only: None }
    }
}

/// A folder of unpacked packages.
pub(crate) struct Packages {
    folder: PathBuf,
    architecture: &'static str,
    entries: Vec<String>,
    is_updated: Cell<bool>,
}

impl Packages {
    /// From `entries` such as `deb bookworm` and `deb-src sid`, for the processor that Debian calls
    /// `architecture`. Asks nobody for anything yet.
    pub(crate) fn open(folder: PathBuf, architecture: &'static str, entries: &[&str]) -> Self {
        let entries = entries.iter().map(|&entry| entry.to_owned()).collect();
        Self { folder, architecture, entries, is_updated: Cell::new(false) }
    }

    /// Where a package is unpacked.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Whether it is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.folder(name).is_dir()
    }

    /// What is unpacked there: name, version and processor.
    pub(crate) fn version(&self, name: &str) -> Result<String> {
        let file = self.folder.join(format!("{name}.version"));
        fs::read_to_string(&file).with_context(|| file.display().to_string())
    }

    /// Unpacks those that are not there.
    pub(crate) fn unpack(&self, wanted: &[Wanted<'_>]) -> Result<()> {
        let missing: Vec<_> = wanted.iter().filter(|wanted| !self.has(wanted.name)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        self.update()?;
        let incoming = self.empty("incoming")?;
        let mut download = self.apt("apt-get")?;
        download.current_dir(&incoming).arg("download");
        persistently(download.args(missing.iter().map(|wanted| wanted.package)))?;
        for wanted in missing {
            let prefix = format!("{}_", bare(wanted.package));
            let file = find(&incoming, |name| name.starts_with(&prefix) && name.ends_with(".deb"))?;
            self.keep(wanted.name, &file, |to| extract(&file, wanted.only, to))?;
        }
        fs::remove_dir_all(&incoming).with_context(|| incoming.display().to_string())
    }

    /// Unpacks a package into a folder, with all that it needs and that is not installed on this machine. What is
    /// installed may be at odds with it.
    pub(crate) fn unpack_beside(&self, package: &str) -> Result<PathBuf> {
        let folder = self.folder(package);
        if folder.is_dir() {
            return Ok(folder);
        }
        self.update()?;
        let archives = self.empty("apt/cache/archives")?;
        fs::create_dir(archives.join("partial"))?;
        let mut download = self.apt("apt-get")?;
        // Nothing is installed, so that nobody has to be kept from it.
        download.args(["-oDir::State::status=/var/lib/dpkg/status", "-oDebug::NoLocking=true"]);
        download.args(["install", "-y", "--download-only", "--no-install-recommends", package]);
        persistently(&mut download)?;
        let itself = find(&archives, |name| name.starts_with(&format!("{package}_")))?;
        self.keep(package, &itself, |to| {
            for entry in fs::read_dir(&archives)? {
                let file = entry?.path();
                if file.extension().is_some_and(|extension| extension == "deb") {
                    extract(&file, None, to)?;
                }
            }
            Ok(())
        })?;
        fs::remove_dir_all(&archives).with_context(|| archives.display().to_string())?;
        Ok(folder)
    }

    /// The sources of a package, patched. `package` names the release.
    pub(crate) fn source(&self, name: &str, package: &str) -> Result<PathBuf> {
        let folder = self.folder(name);
        if folder.is_dir() {
            return Ok(folder);
        }
        self.update()?;
        let incoming = self.download_source(package)?;
        let description = find(&incoming, |name| name.ends_with(".dsc"))?;
        self.keep(name, &description, |to| {
            // It wants to make the folder itself.
            fs::remove_dir(to)?;
            let mut unpack = Command::new("dpkg-source");
            run_quietly(unpack.args(["--no-check", "-x"]).arg(&description).arg(to)).map(drop)
        })?;
        fs::remove_dir_all(&incoming).with_context(|| incoming.display().to_string())?;
        Ok(folder)
    }

    /// The newest that can be had: a mirror's lists may name a version that it does not have.
    fn download_source(&self, package: &str) -> Result<PathBuf> {
        let download = |package: &str| -> Result<(Command, PathBuf)> {
            let incoming = self.empty("incoming")?;
            let mut command = self.apt("apt-get")?;
            command.current_dir(&incoming).args(["source", "--download-only", package]);
            Ok((command, incoming))
        };
        let name = bare(package);
        let shown = run_quietly(self.apt("apt-cache")?.args(["showsrc", name])).unwrap_or_default();
        let versions = shown.lines().filter_map(|line| line.strip_prefix("Version: "));
        let versions = versions.map(|version| format!("{name}={version}"));
        for wanted in std::iter::once(package.to_owned()).chain(versions) {
            let (mut command, incoming) = download(&wanted)?;
            if run_quietly(&mut command).is_ok() {
                return Ok(incoming);
            }
        }
        let (mut command, incoming) = download(package)?;
        persistently(&mut command).map(|_| incoming)
    }

    /// What `apt-cache show` says.
    pub(crate) fn show(&self, package: &str) -> Result<String> {
        self.update()?;
        run_quietly(self.apt("apt-cache")?.args(["show", package])).map_err(|_| {
            Unavailable(format!("the mirror's lists have no package {package}")).into()
        })
    }

    /// Once a run, and only when something is to be downloaded: what older lists name may be gone.
    fn update(&self) -> Result<()> {
        if self.is_updated.get() {
            return Ok(());
        }
        if !works("apt-get", &["--version"]) || !works("dpkg-deb", &["--version"]) {
            return Err(Unavailable("apt-get is not on this machine".into()).into());
        }
        let mirror = Mirror::of_this_machine()?;
        let lines: String = self.entries.iter().map(|entry| mirror.line(entry)).collect();
        fs::create_dir_all(self.folder.join("apt/lists/partial"))?;
        fs::create_dir_all(self.folder.join("apt/cache/archives/partial"))?;
        fs::write(self.folder.join("apt/status"), "")?;
        fs::write(self.folder.join("apt/sources.list"), lines)?;
        // A list that cannot be had is an error for us, and for apt only a warning.
        persistently(self.apt("apt-get")?.args(["-o", "APT::Update::Error-Mode=any", "update"]))?;
        self.is_updated.set(true);
        Ok(())
    }

    /// An apt command that knows nothing of the machine but how it reaches the network.
    fn apt(&self, program: &str) -> Result<Command> {
        let apt = std::path::absolute(self.folder.join("apt"))?;
        let mut command = Command::new(program);
        for (option, value) in [
            ("Dir::State::Lists", apt.join("lists")),
            ("Dir::State::status", apt.join("status")),
            ("Dir::Etc::SourceList", apt.join("sources.list")),
            ("Dir::Cache", apt.join("cache")),
            ("Dir::Etc::SourceParts", "/dev/null".into()),
            ("Dir::Etc::Preferences", "/dev/null".into()),
            ("Dir::Etc::PreferencesParts", "/dev/null".into()),
        ] {
            command.arg(format!("-o{option}={}", value.display()));
        }
        command.arg(format!("-oAPT::Architecture={}", self.architecture));
        command.arg(format!("-oAPT::Architectures={}", self.architecture));
        command.args(["-oAPT::Sandbox::User=root", "-oAPT::Default-Release=", "-qq"]);
        command.args(["-oAcquire::Languages=none", "-oAcquire::http::Timeout=60"]);
        command.arg("-oAcquire::IndexTargets::deb::DEP-11::DefaultEnabled=false");
        command.env("LC_ALL", "C");
        Ok(command)
    }

    /// Fills a folder and gives it its name at the end, so that what is there is whole.
    fn keep(&self, name: &str, file: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let to = self.empty("unpacking")?;
        fill(&to)?;
        let version = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        fs::write(self.folder.join(format!("{name}.version")), version)?;
        let place = self.folder(name);
        fs::rename(&to, &place).with_context(|| format!("cannot make {}", place.display()))
    }

    fn empty(&self, name: &str) -> Result<PathBuf> {
        let folder = std::path::absolute(self.folder.join(name))?;
        if folder.is_dir() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(folder)
    }
}

/// A package's name alone.
fn bare(package: &str) -> &str {
    package.split(['/', '=', ':']).next().unwrap_or(package)
}

fn find(folder: &Path, is_it: impl Fn(&str) -> bool) -> Result<PathBuf> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_name().and_then(|name| name.to_str()).is_some_and(&is_it) {
            return Ok(path);
        }
    }
    bail!("apt has left nothing that was asked for in {}", folder.display())
}

fn extract(file: &Path, only: Option<&str>, to: &Path) -> Result<()> {
    let mut open = Command::new("dpkg-deb");
    open.arg("--fsys-tarfile").arg(file).stdout(Stdio::piped());
    let mut open = open.spawn().context("cannot start dpkg-deb")?;
    let archive = open.stdout.take().context("dpkg-deb has no output")?;
    let mut tar = Command::new("tar");
    tar.args(["-x", "--no-same-owner", "-C"]).arg(to).stdin(archive);
    if let Some(pattern) = only {
        tar.args(["--wildcards", pattern]);
    }
    let unpacked = tar.status().with_context(|| format!("cannot start {}", line(&tar)))?;
    let opened = open.wait()?;
    if !unpacked.success() || !opened.success() {
        bail!("cannot unpack {}: is the disk full?", file.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_has_a_name_before_all_else() {
        for package in ["libc6", "libc6/trixie", "libc6=2.41-1", "libc6:arm64"] {
            assert_eq!(bare(package), "libc6");
        }
    }

    #[test]
    fn of_what_apt_prints_the_error_is_told() {
        let error = anyhow::anyhow!("apt-get … ended\nW: old\nE: Unable to locate x\nE: more");
        assert_eq!(apt_error(&error), "Unable to locate x");
        assert_eq!(apt_error(&anyhow::anyhow!("cannot start\nit")), "cannot start");
    }
}
