//! What `teeperf install-sdk` writes: the runtime for code without a system, compiled from sources that travel
//! inside this binary. Writes into the folder it is given and nowhere else.
//!
//! * [`target`]: architectures and the compiler's targets for them; [`library`]: how it is compiled;
//! * [`core_library`]: Rust's own core library where it is not installed; [`archive`]: `.a` files.

mod archive;
#[allow(unreachable_pub, reason = "others include the same file, and nobody uses it from outside")]
#[path = "../../../teeperf-rt/compile.rs"]
mod compile;
mod compiler;
mod core_library;
mod library;
pub(crate) mod target;

use crate::bundle::write_atomically;
use anyhow::{Context, Result};
use compiler::Compiler;
use std::fmt::Write as _;
use std::path::Path;

/// Every file, by its place in a folder: those of `crates` are compiled, the others are for the user.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/sdk.rs"));
/// What is not for the user.
const SOURCES: &str = "crates/";

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
}

/// Writes all of it, with a library for each target. What was written, as lines to be told at the end: whoever reads
/// them may have gone by then.
pub(crate) fn install(
    folder: &Path,
    wanted: &[target::Wanted],
    kind: Kind,
    sysroot: Option<&Path>,
) -> Result<String> {
    let compiler = Compiler::find(sysroot)?;
    let work = tempfile::Builder::new().prefix(".teeperf-").tempdir_in(folder);
    let work = work.with_context(|| format!("cannot write into {}", folder.display()))?;
    for (name, contents) in FILES.iter().filter(|(name, _)| name.starts_with(SOURCES)) {
        put(work.path(), name, contents)?;
    }
    let mut told = String::new();
    for one in wanted {
        let built = library::build(&compiler, one, kind, work.path())?;
        let name = format!("lib/{}/libteeperf_tee.a", one.architecture().name);
        put(folder, &name, &built.archive)?;
        let (place, triple, code) = (folder.join(name), built.triple, built.code);
        writeln!(told, "{} for {triple}: {code} bytes of code", place.display())?;
    }
    for (name, contents) in FILES.iter().filter(|(name, _)| !name.starts_with(SOURCES)) {
        put(folder, name, contents)?;
        writeln!(told, "{}", folder.join(name).display())?;
    }
    Ok(told)
}

fn put(folder: &Path, name: &str, contents: &[u8]) -> Result<()> {
    let path = folder.join(name);
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)
            .with_context(|| format!("cannot make {}", parent.display()))?;
    }
    write_atomically(&path, contents, 0o644)
}
