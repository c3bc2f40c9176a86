//! Which compiler the wrapper stands in for. Never the wrapper itself.

use super::options::Options;
use super::response;
use anyhow::{Result, bail};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The language of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Driver {
    /// `cc`
    C,
    /// `c++`
    Cxx,
}

impl Driver {
    /// Variable that names the compiler.
    pub(crate) fn variable(self) -> &'static str {
        match self {
            Self::C => "TEEPERF_CC",
            Self::Cxx => "TEEPERF_CXX",
        }
    }

    fn names(self) -> [&'static str; 3] {
        match self {
            Self::C => ["cc", "gcc", "clang"],
            Self::Cxx => ["c++", "g++", "clang++"],
        }
    }
}

/// The compiler's file, and words that come before all others (as in `ccache gcc`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RealCompiler {
    /// Its file.
    pub(crate) path: PathBuf,
    /// What it is called by: it prints this, and finds its own parts by it.
    pub(crate) name: OsString,
    /// Words to put in front.
    pub(crate) words: Vec<OsString>,
}

/// Finds the compiler: the option, the variable, or the first of the usual names in `PATH`.
pub(crate) fn find(driver: Driver, options: &Options) -> Result<RealCompiler> {
    let own = std::env::current_exe().ok().and_then(|path| path.canonicalize().ok());
    let asked = options.compiler.clone().or_else(|| std::env::var_os(driver.variable()));
    let Some(asked) = asked.filter(|text| !text.is_empty()) else {
        for name in driver.names() {
            if let Some((path, name)) = in_path(OsStr::new(name), own.as_deref()) {
                return Ok(RealCompiler { path, name, words: Vec::new() });
            }
        }
        bail!(
            "no compiler found: none of {} is in PATH; install gcc or clang, or name one in {}",
            driver.names().join(", "),
            driver.variable()
        );
    };
    let mut words = response::split(asked.as_bytes()).into_iter();
    let name = words.next().unwrap_or_default();
    let found = if name.as_bytes().contains(&b'/') {
        Some((PathBuf::from(&name), name.clone())).filter(|(path, _)| is_program(path))
    } else {
        in_path(&name, own.as_deref())
    };
    let Some((path, called)) = found else { bail!("the compiler {name:?} was not found") };
    if own.is_some() && path.canonicalize().ok() == own {
        bail!("{name:?} is the wrapper itself; name the compiler it stands in for");
    }
    Ok(RealCompiler { path, name: called, words: words.collect() })
}

/// Compilers that there are for a language, each by what it is called and its file: what the variable names, then the usual
/// names in `PATH`. Where the variable names none, that is said.
pub(crate) fn candidates(driver: Driver) -> Vec<std::result::Result<(OsString, PathBuf), String>> {
    let asked = std::env::var_os(driver.variable()).filter(|text| !text.is_empty());
    let asked = asked.map(|text| match find(driver, &Options::default()) {
        Ok(found) => Ok((text, found.path)),
        Err(error) => Err(format!("{} names no compiler: {error:#}", driver.variable())),
    });
    let own = std::env::current_exe().ok().and_then(|path| path.canonicalize().ok());
    let usual = driver.names().into_iter().filter_map(|name| {
        let (path, _) = in_path(OsStr::new(name), own.as_deref())?;
        Some(Ok((name.into(), path)))
    });
    asked.into_iter().chain(usual).collect()
}

/// First program of this name in `PATH` that is not `own`, and what to call it by: the name
/// alone when a shell would find the same file by it.
fn in_path(name: &OsStr, own: Option<&Path>) -> Option<(PathBuf, OsString)> {
    let folders = std::env::var_os("PATH")?;
    let mut passed_over = false;
    for folder in std::env::split_paths(&folders) {
        let folder = if folder.as_os_str().is_empty() { ".".into() } else { folder };
        let path = folder.join(name);
        if !is_program(&path) {
            continue;
        }
        if own.is_some() && path.canonicalize().ok().as_deref() == own {
            passed_over = true;
            continue;
        }
        let called = if passed_over { path.clone().into() } else { name.to_owned() };
        return Some((path, called));
    }
    None
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
