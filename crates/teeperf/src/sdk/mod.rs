//! What `teeperf install-sdk` writes: for programs of this system what they are built with ([`host`]); for code without a system the
//! runtime, compiled from sources that travel inside this binary. Writes into the folder it is given and nowhere else.
//!
//! * [`target`]: architectures and the compiler's targets for them; [`library`]: how it is compiled;
//! * [`core_library`]: Rust's own core library where it is not installed; [`archive`]: `.a` files.

mod archive;
#[allow(unreachable_pub, reason = "others include the same file, and nobody uses it from outside")]
#[path = "../../../teeperf-rt/compile.rs"]
mod compile;
mod compiler;
mod core_library;
mod host;
mod library;
pub(crate) mod target;

use crate::bundle::write_atomically;
use anyhow::{Context, Result};
use compiler::Compiler;
use std::fmt::Write as _;
use std::path::Path;

/// Every file, by its place in a folder: those of `crates` are compiled, those of `host` are for programs of this system, the
/// others for code without one.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/sdk.rs"));
/// What is not for the user.
const SOURCES: &str = "crates/";
/// What is filled in first.
const HOST: &str = "host/";

/// Which of its forms the runtime has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// Interrupts or signals may run hooked code in the midst of a hook.
    pub(crate) nested: bool,
    pub(crate) threads: Threads,
}

/// How many threads run an image at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threads {
    Single,
    /// Several, with thread-local storage.
    Tls,
    /// Several, each with memory of its own, which the image brings.
    Apart,
}

/// Writes what programs of this system are built with. What was written, as lines to be told at the end: whoever reads
/// them may have gone by then.
pub(crate) fn install_for_programs(folder: &Path) -> Result<String> {
    host::install(folder)
}

/// Whether there is a Rust compiler, without which there is no library for code without a system.
pub(crate) fn has_compiler(sysroot: Option<&Path>) -> bool {
    Compiler::find(sysroot).is_ok()
}

/// Writes what code without a system is built with, a library for each target, whose name is told when it begins. What was written,
/// as above.
pub(crate) fn install(
    folder: &Path,
    wanted: &[target::Wanted],
    kind: Kind,
    sysroot: Option<&Path>,
    begins: &mut dyn FnMut(&str),
) -> Result<String> {
    let compiler = Compiler::find(sysroot)?;
    let work = tempfile::Builder::new().prefix(".teeperf-").tempdir_in(folder);
    let work = work.with_context(|| format!("cannot write into {}", folder.display()))?;
    for (name, contents) in FILES.iter().filter(|(name, _)| name.starts_with(SOURCES)) {
        put(work.path(), name.as_ref(), contents, 0o644)?;
    }
    let mut told = String::new();
    for one in wanted {
        begins(one.architecture().name);
        let built = library::build(&compiler, one, kind, work.path())?;
        let name = format!("lib/{}/libteeperf_tee.a", one.architecture().name);
        put(folder, name.as_ref(), &built.archive, 0o644)?;
        let (place, triple, code) = (folder.join(name), built.triple, built.code);
        writeln!(told, "{} for {triple}: {code} bytes of code", place.display())?;
    }
    let is_installed = |name: &str| !name.starts_with(SOURCES) && !name.starts_with(HOST);
    for (name, contents) in FILES.iter().filter(|(name, _)| is_installed(name)) {
        put(folder, name.as_ref(), contents, 0o644)?;
        told_of(&mut told, &folder.join(name));
    }
    Ok(told)
}

/// The Rust compiler that there is, with its version.
pub(crate) fn compiler() -> Result<String> {
    compiler::Compiler::find(None)?.version()
}

fn told_of(told: &mut String, path: &Path) {
    told.push_str(&path.display().to_string());
    told.push('\n');
}

fn put(folder: &Path, name: &Path, contents: &[u8], mode: u32) -> Result<()> {
    let path = folder.join(name);
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)
            .with_context(|| format!("cannot make {}", parent.display()))?;
    }
    write_atomically(&path, contents, mode)
}
