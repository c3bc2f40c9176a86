//! `teeperf.toml`: what holds for a project, in its folder. The file is found in the current folder or the nearest above
//! it that has one, unless somebody else may have written it; or it is named by the environment.

use crate::shell;
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Variable that names the file; empty, there is none.
pub(crate) const VARIABLE: &str = "TEEPERF_CONFIG";
/// Its name elsewhere.
pub(crate) const NAME: &str = "teeperf.toml";

/// The file: a section for each thing that is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Settings {
    /// How programs are built.
    pub(crate) build: Build,
}

/// `[build]`: as the wrapper's options of the same names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Build {
    /// Patterns of functions that are hooked.
    pub(crate) only: Vec<String>,
    /// Patterns of functions that are not.
    pub(crate) exclude: Vec<String>,
    /// Least number of instructions.
    pub(crate) min_size: u64,
    /// Hook what is left when functions have been inlined.
    pub(crate) after_inlining: bool,
    /// Hook functions of system headers too.
    pub(crate) system_headers: bool,
}

impl Settings {
    /// Those that hold here; where there is no file, those of an empty one.
    pub(crate) fn here() -> Result<Self> {
        match std::env::var_os(VARIABLE) {
            Some(name) if name.is_empty() => Ok(Self::default()),
            Some(name) => {
                Self::read(Path::new(&name)).with_context(|| format!("named in {VARIABLE}"))
            }
            None => match nearest() {
                Some(path) => match distrusted(&path) {
                    None => Self::read(&path),
                    Some(why) => {
                        eprintln!(
                            "teeperf: {} is not used: {why}; next: {VARIABLE}={} uses it, {VARIABLE}= none",
                            path.display(),
                            shell::typed(&path)
                        );
                        Ok(Self::default())
                    }
                },
                None => Ok(Self::default()),
            },
        }
    }

    /// Where those stand that hold here, or would.
    pub(crate) fn place() -> Result<PathBuf> {
        match std::env::var_os(VARIABLE) {
            Some(name) => {
                ensure!(!name.is_empty(), "{VARIABLE} is empty: no file holds here");
                Ok(name.into())
            }
            None => match nearest() {
                Some(path) => match distrusted(&path) {
                    None => Ok(path),
                    Some(why) => bail!("{} would not be used: {why}", path.display()),
                },
                None => Ok(NAME.into()),
            },
        }
    }

    fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        toml::from_str(&text).with_context(|| path.display().to_string())
    }
}

fn nearest() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    here.ancestors().map(|folder| folder.join(NAME)).find(|path| path.is_file())
}

/// Why a file that nobody has named is not to say how programs are built: it may be anybody's.
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

    #[test]
    fn all_that_can_be_said() {
        let text = "[build]\nonly = ['file:src/', \"main\"]\nexclude = []\nmin-size = 10\nafter-inlining = true\n\
                    system-headers = true\n";
        let read: Settings = toml::from_str(text).unwrap();
        let build = Build {
            only: vec!["file:src/".into(), "main".into()],
            exclude: Vec::new(),
            min_size: 10,
            after_inlining: true,
            system_headers: true,
        };
        assert_eq!(read, Settings { build });
        assert_eq!(toml::from_str::<Settings>("").unwrap(), Settings::default());
    }

    #[test]
    fn what_is_not_known_is_said_with_its_line() {
        for text in ["[build]\n\nexcluded = []\n", "[build]\n\nmin-size = -1\n", "#\n#\n[built]\n"]
        {
            let error = toml::from_str::<Settings>(text).unwrap_err().to_string();
            assert!(error.contains("line 3"), "{error}");
        }
    }
}
