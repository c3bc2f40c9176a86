//! What the runtime is built from, as a number.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::process::Command;

/// Of the compiler, and of all files that it may read.
pub(crate) fn hash(crates: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    Command::new(compiler).arg("-vV").output().unwrap().stdout.hash(&mut hasher);
    for name in ["build_runtime.rs", "compile.rs"] {
        std::fs::read(crates.join("teeperf-rt").join(name)).unwrap().hash(&mut hasher);
    }
    for name in ["teeperf-wire", "teeperf-tally", "teeperf-rt", "teeperf-stub"] {
        below(&crates.join(name).join("src"), &mut hasher);
    }
    hasher.finish()
}

/// Of the files in a folder, in the order of their names.
fn below(folder: &Path, hasher: &mut DefaultHasher) {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        path.hash(hasher);
        match path.is_dir() {
            true => below(&path, hasher),
            false => std::fs::read(&path).unwrap().hash(hasher),
        }
    }
}
