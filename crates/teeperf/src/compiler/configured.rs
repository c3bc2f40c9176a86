//! The compiler that a folder was configured for. A build system asks the compiler what it is when it is configured, and
//! keeps the answer; the variables that chose the compiler it does not keep. Without them the same wrapper would stand in
//! for another compiler, which was never asked. So the choice is kept here, by folder, and holds wherever neither words nor
//! variables name a compiler.
//!
//! A configure script of autoconf's runs again by itself where its sources changed, without the
//! variables: that is no new choice.
//!
//! Kept are the calls by which CMake, Meson and autoconf find out what the compiler is, and no others: who once compiles by
//! hand has chosen nothing for the next time.

use super::options::Options;
use super::real::Driver;
use crate::bundle;
use anyhow::Result;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Folder of the choices, in the cache.
const CHOICES: &str = "configured";

/// A choice that a folder was configured with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// The folder.
    pub(super) folder: PathBuf,
    /// The compiler, as a variable had it.
    pub(super) compiler: OsString,
}

/// The choice that holds for this call: none where its words or the environment name a compiler. Keeps what they name where
/// a build is being configured.
pub(super) fn choice(
    driver: Driver,
    options: &Options,
    arguments: &[OsString],
) -> Result<Option<Choice>> {
    let by_options = Options::of_environment()?.compiler;
    if options.compiler.is_some() && options.compiler != by_options {
        return Ok(None);
    }
    let by_variable = std::env::var_os(driver.variable()).filter(|text| !text.is_empty());
    let asked = by_options.or(by_variable);
    // Without a folder to keep it in, or one to be in, nothing is kept: then the variables count alone.
    let (Ok(here), Ok(choices)) = (std::env::current_dir(), bundle::lasting(CHOICES)) else {
        return Ok(None);
    };
    let before = |here: &Path| {
        let found = here.ancestors().find_map(|folder| kept(&choices, folder, driver));
        found.filter(|choice| !choice.compiler.is_empty())
    };
    match (being_configured(&here, arguments), asked) {
        (Some(folder), None) if runs_again(std::os::unix::process::parent_id()) => {
            Ok(before(&folder))
        }
        (Some(folder), asked) => {
            let is_below = || folder.parent().and_then(before).is_some();
            // Nothing: what a folder above was configured with does not hold.
            let asked = asked.or_else(|| is_below().then(OsString::new));
            keep(&choices, &folder, driver, asked.as_deref());
            Ok(None)
        }
        (None, Some(_)) => Ok(None),
        (None, None) => Ok(before(&here)),
    }
}

/// Whether `config.status --recheck` runs the configure script that this process is one of. That
/// script is run with its first arguments, and with two of `config.status`'s own.
fn runs_again(process: u32) -> bool {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let has = |word: &[u8]| line.split(|&byte| byte == 0).any(|argument| argument == word);
    has(b"--no-create") && has(b"--no-recursion")
}

/// The folder that is being configured, where this call is one by which a build system finds out what the compiler is.
fn being_configured(here: &Path, arguments: &[OsString]) -> Option<PathBuf> {
    let name = here.file_name()?.as_bytes();
    let above = |folder: &str| here.ancestors().find(|path| path.ends_with(folder))?.parent();
    if name.starts_with(b"CompilerId") {
        return above("CMakeFiles").map(Path::to_owned);
    }
    let compiles = |start: &str| {
        let file = |word: &OsString| Path::new(word).file_name().map(OsStr::to_owned);
        let mut files = arguments.iter().filter_map(file);
        files.any(|file| file.as_bytes().starts_with(start.as_bytes()))
    };
    if name == b"meson-private" && compiles("sanitycheck") {
        return here.parent().map(Path::to_owned);
    }
    compiles("conftest.c").then(|| here.to_owned())
}

/// Keeps a choice; that nothing was chosen, by forgetting what was before.
fn keep(choices: &Path, folder: &Path, driver: Driver, asked: Option<&OsStr>) {
    let Some((file, identity)) = place(choices, folder, driver) else { return };
    // What cannot be kept is asked for again by who builds.
    let _ = match asked {
        Some(compiler) => {
            let text = [identity.as_bytes(), b"\n", compiler.as_bytes()].concat();
            bundle::write_atomically(&file, &text, 0o600).is_ok()
        }
        None => std::fs::remove_file(&file).is_ok(),
    };
}

fn kept(choices: &Path, folder: &Path, driver: Driver) -> Option<Choice> {
    let (file, identity) = place(choices, folder, driver)?;
    let text = std::fs::read(file).ok()?;
    let compiler = text.strip_prefix(identity.as_bytes())?.strip_prefix(b"\n")?;
    Some(Choice { folder: folder.to_owned(), compiler: OsString::from_vec(compiler.to_vec()) })
}

/// The file of a folder's choice, and what tells the folder from another one that is there later.
fn place(choices: &Path, folder: &Path, driver: Driver) -> Option<(PathBuf, String)> {
    let key = [driver.variable().as_bytes(), b"\0", folder.as_os_str().as_bytes()].concat();
    let file = choices.join(format!("{:032x}", bundle::fingerprint(&key)));
    let found = folder.metadata().ok()?;
    let born = found.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let born = born.unwrap_or_default().as_nanos();
    Some((file, format!("{} {} {born}", found.dev(), found.ino())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_find_out_what_the_compiler_is() {
        for (here, line, folder) in [
            ("/w/b/CMakeFiles/3.25.1/CompilerIdC", "a.c", Some("/w/b")),
            ("/w/b/CMakeFiles/CMakeScratch/TryCompile-a", "-c testCCompiler.c", None),
            ("/w/b/meson-private", "sanitycheckc.c -o x", Some("/w/b")),
            ("/w/b/meson-private/tmp1", "/w/b/meson-private/tmp1/testfile.c", None),
            ("/w/b/meson-private", "other.c", None),
            ("/w/b", "-o conftest conftest.c", Some("/w/b")),
            ("/w/b", "-c conftest.cpp", Some("/w/b")),
            ("/w/b", "-c a.c", None),
            ("/w/b", "sanitycheckc.c", None),
            ("/CompilerIdC", "a.c", None),
            ("/", "a.c", None),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let found = being_configured(Path::new(here), &words);
            assert_eq!(found, folder.map(PathBuf::from), "{here} {line}");
        }
    }

    #[test]
    fn a_choice_is_its_folders_own() {
        let base = tempfile::tempdir().unwrap();
        let [choices, folder] = ["choices", "folder"].map(|name| base.path().join(name));
        for path in [&choices, &folder] {
            std::fs::create_dir(path).unwrap();
        }
        let kept = |driver| kept(&choices, &folder, driver).map(|choice| choice.compiler);
        keep(&choices, &folder, Driver::C, Some(OsStr::new("ccache clang")));
        assert_eq!(kept(Driver::C), Some("ccache clang".into()));
        assert_eq!(kept(Driver::Cxx), None);
        // Another folder in its place.
        std::fs::rename(&folder, base.path().join("old")).unwrap();
        std::fs::create_dir(&folder).unwrap();
        assert_eq!(kept(Driver::C), None);
        keep(&choices, &folder, Driver::C, Some(OsStr::new("gcc")));
        assert_eq!(kept(Driver::C), Some("gcc".into()));
        keep(&choices, &folder, Driver::C, None);
        assert_eq!(kept(Driver::C), None);
    }
}
