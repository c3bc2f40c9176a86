//! Debian's mirror, as this machine's apt sources name it; none is known beside that. Entries for other
//! releases are written from it. The machine's own entries are only read.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::packages::Unavailable;

/// With which Debian signs; where it is not in this place, apt looks among the keys that it trusts.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Where Debian's releases, and their security updates, come from.
#[derive(Debug, PartialEq)]
pub(crate) struct Mirror {
    main: String,
    security: String,
}

impl Mirror {
    /// The first that apt would ask.
    pub(crate) fn of_this_machine() -> Result<Self> {
        let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
        if let Ok(entries) = fs::read_dir("/etc/apt/sources.list.d") {
            files.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
        }
        let is_read = |file: &&PathBuf| {
            file.extension().is_some_and(|extension| extension == "list" || extension == "sources")
        };
        let texts = files.iter().filter(is_read).filter_map(|file| fs::read_to_string(file).ok());
        let all = texts.collect::<Vec<_>>().join("\n");
        let why = "apt's sources on this machine name no mirror of Debian";
        Self::named_in(&all).ok_or_else(|| Unavailable(why.into()).into())
    }

    /// The mirror in entries of either style.
    fn named_in(text: &str) -> Option<Self> {
        let lines = || text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let named = |last: &str| {
            let mut words = lines().flat_map(str::split_whitespace);
            words.find_map(|word| {
                let address = word.trim_end_matches('/');
                let (_, path) = address.split_once("://")?;
                path.ends_with(last).then(|| address.to_owned())
            })
        };
        let main = named("/debian")?;
        let security = named("/debian-security").unwrap_or_else(|| format!("{main}-security"));
        Some(Self { main, security })
    }

    /// `deb trixie` as a line of a sources list.
    pub(crate) fn line(&self, entry: &str) -> String {
        let (kind, release) = entry.split_once(' ').unwrap_or(("deb", entry));
        let address = if release.ends_with("-security") { &self.security } else { &self.main };
        let key = if Path::new(KEYRING).is_file() {
            format!("[signed-by={KEYRING}] ")
        } else {
            String::new()
        };
        format!("{kind} {key}{address} {release} main\n")
    }
}

/// Entries for this machine's release, as [`crate::packages::Packages::open`] takes them.
pub(crate) fn own_entries() -> Result<[String; 2]> {
    let release = release()?;
    Ok([format!("deb {release}"), format!("deb {release}-security")])
}

/// The name of this machine's release.
fn release() -> Result<String> {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let why = "/etc/os-release does not name this machine's release";
    name.map(str::to_owned).ok_or_else(|| Unavailable(why.into()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_style_names_the_mirror() {
        let mirror = |security: &str| Mirror {
            main: "http://mirror.example/debian".into(),
            security: security.into(),
        };
        let deb822 = "Types: deb\n# http://old.example/debian\nURIs: http://mirror.example/debian/\n\
                      Suites: stable\n\nTypes: deb\nURIs: http://safe.example/debian-security\n";
        let both = mirror("http://safe.example/debian-security");
        assert_eq!(Mirror::named_in(deb822), Some(both));
        let line = "deb [arch=amd64] http://mirror.example/debian stable main\n";
        let one = mirror("http://mirror.example/debian-security");
        assert!(one.line("deb bookworm-security").contains("example/debian-security bookworm"));
        assert!(one.line("deb-src sid").starts_with("deb-src "));
        assert_eq!(Mirror::named_in(line), Some(one));
        let others = "deb http://other.example/ubuntu stable main\n# deb http://x.example/debian x";
        assert_eq!(Mirror::named_in(others), None);
    }
}
