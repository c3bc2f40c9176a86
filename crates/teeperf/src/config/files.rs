//! Where settings stand: `teeperf.toml` in the current folder or the nearest above it that has one, or what the environment
//! names in its place; and the user's own file. A file that somebody else may have written is not used.

use anyhow::{Context, Result, bail, ensure};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Variable that names a file in place of the project's; empty, there is none, and no user's either.
pub(crate) const VARIABLE: &str = "TEEPERF_CONFIG";
/// A project's file.
pub(crate) const NAME: &str = "teeperf.toml";
/// A user's, below `$XDG_CONFIG_HOME`, else `~/.config`.
const OWN_NAME: &str = "teeperf/config.toml";

/// Whose settings a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A project's: it came with its sources.
    Project,
    /// Named by the environment, in place of a project's.
    Named,
    /// The user's.
    User,
}

impl Role {
    /// For messages, and as JSON has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Named => "named",
            Self::User => "user",
        }
    }
}

/// A file that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) role: Role,
    /// Why it is not used.
    pub(crate) distrusted: Option<String>,
}

impl Found {
    fn at(path: PathBuf, role: Role) -> Self {
        // What was named is trusted by that.
        let distrusted = if role == Role::Named { None } else { distrusted(&path) };
        Self { path, role, distrusted }
    }

    /// What is in it.
    pub(crate) fn text(&self) -> Result<String> {
        let text = std::fs::read_to_string(&self.path)
            .with_context(|| format!("cannot read {}", self.path.display()));
        if self.role == Role::Named {
            return text.with_context(|| format!("named in {VARIABLE}"));
        }
        text
    }

    /// The message where it is not used.
    pub(crate) fn unused(&self) -> Option<String> {
        let why = self.distrusted.as_ref()?;
        let path = self.path.display();
        let next = match self.role {
            Role::User => format!("chmod go-w {path} and its folder"),
            _ => {
                format!("{VARIABLE}={} uses it, {VARIABLE}= none", crate::shell::typed(&self.path))
            }
        };
        Some(format!("{path} is not used: {why}; next: {next}"))
    }
}

/// The project's file, or the one that the environment names.
pub(crate) fn project() -> Option<Found> {
    match std::env::var_os(VARIABLE) {
        Some(name) if name.is_empty() => None,
        Some(name) => Some(Found::at(name.into(), Role::Named)),
        None => nearest().map(|path| Found::at(path, Role::Project)),
    }
}

/// All there are; what stands in the first counts.
pub(crate) fn all() -> Vec<Found> {
    let is_off = std::env::var_os(VARIABLE).is_some_and(|name| name.is_empty());
    let own = own().filter(|path| !is_off && path.is_file());
    project().into_iter().chain(own.map(|path| Found::at(path, Role::User))).collect()
}

/// Where the project's settings stand that hold here, or would.
pub(crate) fn place() -> Result<PathBuf> {
    match std::env::var_os(VARIABLE) {
        Some(name) => {
            ensure!(!name.is_empty(), "{VARIABLE} is empty: no file holds here");
            Ok(name.into())
        }
        None => match project() {
            Some(Found { path, distrusted: Some(why), .. }) => {
                bail!("{} would not be used: {why}", path.display())
            }
            Some(Found { path, .. }) => Ok(path),
            None => Ok(NAME.into()),
        },
    }
}

/// Where the user's file is, or would be.
pub(crate) fn own() -> Option<PathBuf> {
    let absolute = |variable: &str| {
        std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
    };
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    Some(folder?.join(OWN_NAME))
}

fn nearest() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    here.ancestors().map(|folder| folder.join(NAME)).find(|path| path.is_file())
}

/// Why a file that nobody has named is not to say what is done: it may be anybody's.
fn distrusted(path: &Path) -> Option<String> {
    // SAFETY: no memory is involved.
    let own = unsafe { libc::geteuid() };
    let about = |path: &Path| path.metadata().ok();
    let (file, folder) = (about(path)?, path.parent().and_then(about)?);
    let is_trusted = |owner: u32| owner == own || owner == 0;
    if !is_trusted(file.uid()) {
        return Some(format!("it is user {}'s, and you are {own}", file.uid()));
    }
    if !is_trusted(folder.uid()) {
        return Some(format!("its folder is user {}'s, and you are {own}", folder.uid()));
    }
    let is_open = [&file, &folder].iter().any(|about| about.mode() & 0o002 != 0);
    is_open.then(|| "everybody may write to it, or to its folder".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_anybody_may_have_written_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        fs::write(&path, "").unwrap();
        assert_eq!(distrusted(&path), None);
        for (path, mode) in [(folder.path(), 0o1777), (folder.path(), 0o777), (&path, 0o666)] {
            let before = path.metadata().unwrap().permissions();
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
            assert!(distrusted(&folder.path().join(NAME)).is_some());
            fs::set_permissions(path, before).unwrap();
        }
        // Only root can give files away.
        if std::os::unix::fs::chown(&path, Some(12345), None).is_ok() {
            assert!(distrusted(&path).unwrap().contains("12345"));
        }
    }
}
