//! Sources of real programs, as Debian has them: fetched with apt, which checks their
//! signatures and checksums, into a folder under the target folder. The machine's own apt
//! configuration and package lists are read, never changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::commands::run_quietly;

/// Folder of the unpacked source of `package`, fetched when it is not there yet.
pub(crate) fn source(package: &str, folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    if let Some(there) = unpacked(package, folder)? {
        return Ok(there);
    }
    let apt = Apt::new(&folder.join("apt"))?;
    if !folder.join("apt/updated").is_file() {
        apt.get(folder, &["update"])?;
        fs::write(folder.join("apt/updated"), "")?;
    }
    // A mirror may lack the newest, a security update's, and have that of the release.
    let release = release().map(|name| format!("{package}/{name}"));
    apt.get(folder, &["source", package])
        .or_else(|error| apt.get(folder, &["source", release.as_deref().ok_or(error)?]))
        .with_context(|| format!("Debian source package {package}"))?;
    unpacked(package, folder)?.with_context(|| format!("apt unpacked no {package}"))
}

/// Code name of the system's release.
fn release() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="))?;
    Some(name.trim_matches('"').to_owned())
}

/// `package-version` that apt unpacked, if it is there and patched.
fn unpacked(package: &str, folder: &Path) -> Result<Option<PathBuf>> {
    let prefix = format!("{package}-");
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let version = name.strip_prefix(&prefix).unwrap_or_default();
        if version.starts_with(|c: char| c.is_ascii_digit())
            && path.join("debian/control").is_file()
        {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// An apt that knows the machine's mirrors as mirrors of sources, and keeps its state apart.
struct Apt {
    options: Vec<String>,
}

impl Apt {
    fn new(state: &Path) -> Result<Self> {
        let (parts, lists) = (state.join("sources.d"), state.join("lists"));
        fs::create_dir_all(&parts)?;
        fs::create_dir_all(lists.join("partial"))?;
        write_sources(&parts)?;
        let options = [
            "Dir::Etc::sourcelist=/dev/null".to_owned(),
            format!("Dir::Etc::sourceparts={}", parts.display()),
            format!("Dir::State::lists={}", lists.display()),
            "Dir::Cache::pkgcache=".to_owned(),
            "Dir::Cache::srcpkgcache=".to_owned(),
            "APT::Sandbox::User=root".to_owned(),
        ];
        Ok(Self { options: options.into() })
    }

    fn get(&self, folder: &Path, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new("apt-get");
        for option in &self.options {
            command.args(["-o", option]);
        }
        run_quietly(command.args(arguments).current_dir(folder)).map(drop)
    }
}

/// Copies the machine's entries for Debian itself, with `deb` turned into `deb-src`.
fn write_sources(parts: &Path) -> Result<()> {
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    if let Ok(entries) = fs::read_dir("/etc/apt/sources.list.d") {
        files.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
    }
    let mut found = false;
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let Some(extension) = file.extension().and_then(|e| e.to_str()) else { continue };
        let sources = match extension {
            "sources" => stanzas(&text),
            "list" => lines(&text),
            _ => continue,
        };
        if !sources.is_empty() {
            let name = file.file_name().context("a file without a name")?;
            fs::write(parts.join(name), sources)?;
            found = true;
        }
    }
    if !found {
        bail!("no Debian mirror in /etc/apt: the real programs come from Debian's sources");
    }
    Ok(())
}

/// Stanzas with the component `main`, which is Debian's and not a single vendor's.
fn stanzas(text: &str) -> String {
    let ours = text.split("\n\n").filter(|stanza| {
        let mut fields = stanza.lines().filter_map(|line| line.strip_prefix("Components:"));
        let main = fields.any(|value| value.split_whitespace().any(|word| word == "main"));
        main && stanza.contains("debian")
    });
    ours.map(|stanza| stanza.replace("Types: deb\n", "Types: deb-src\n") + "\n\n").collect()
}

fn lines(text: &str) -> String {
    let ours = text.lines().filter(|line| {
        line.starts_with("deb ")
            && line.contains("debian")
            && line.split_whitespace().any(|word| word == "main")
    });
    ours.map(|line| line.replacen("deb ", "deb-src ", 1) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_become_sources() {
        let text = "Types: deb\nURIs: http://mirror.example/debian\nSuites: stable\nComponents: main\n\n\
                    Types: deb\nURIs: http://vendor.example/\nSuites: x\nComponents: vendor\n";
        let sources = stanzas(text);
        assert!(sources.starts_with("Types: deb-src\nURIs: http://mirror.example/debian\n"));
        assert!(!sources.contains("vendor"));
        assert_eq!(
            lines(
                "deb http://mirror.example/debian stable main\ndeb http://vendor.example x main\n"
            ),
            "deb-src http://mirror.example/debian stable main\n"
        );
    }
}
