//! A small recorder for the runtime's tests: does the handshake, moves the tick, drains chunks into
//! memory, and takes the words apart. Beside it, what builds a C program with hooks.

#![allow(dead_code)]

#[allow(unreachable_pub, missing_docs)]
#[path = "../../../build_runtime.rs"]
pub(crate) mod build_runtime;
pub(crate) mod host;
mod sources;
pub(crate) mod words;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The built runtime. A runner of tests that gives each a process of its own would build it for each: it takes eight
/// seconds, so what one has built of the same sources by the same compiler serves the others.
pub(crate) fn runtime() -> &'static build_runtime::Outputs {
    static BUILT: OnceLock<build_runtime::Outputs> = OnceLock::new();
    BUILT.get_or_init(|| {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let name = format!("runtime-{:016x}", sources::hash(crates));
        let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        if !shared.is_dir() {
            let own = folder().join("runtime");
            std::fs::create_dir_all(&own).unwrap();
            build_runtime::build(crates, &own).unwrap();
            // Another process may have been faster.
            let moved = std::fs::rename(&own, &shared);
            assert!(moved.is_ok() || shared.is_dir(), "{moved:?}");
        }
        build_runtime::Outputs::below(&shared)
    })
}

/// A folder of this test process's own.
pub(crate) fn folder() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER
        .get_or_init(|| {
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!(
                "{}-{}",
                env!("CARGO_CRATE_NAME"),
                std::process::id()
            ));
            std::fs::create_dir_all(&folder).unwrap();
            folder
        })
        .clone()
}

/// Flags of `link_flags.txt` for an executable or a shared library.
pub(crate) fn link_flags(executable: bool) -> Vec<String> {
    include_str!("../../../../teeperf-stub/src/link_flags.txt")
        .lines()
        .filter_map(|line| match line.split_once(' ') {
            Some(("all", flag)) => Some(flag),
            Some(("executable", flag)) if executable => Some(flag),
            Some(("library", flag)) if !executable => Some(flag),
            _ => None,
        })
        .map(str::to_owned)
        .collect()
}

/// How a program is built.
#[derive(Clone, Debug)]
pub(crate) struct Build {
    pub(crate) compiler: &'static str,
    pub(crate) flags: Vec<&'static str>,
    /// Objects and flags of the runtime; without them hooks lead nowhere.
    pub(crate) linked: bool,
    pub(crate) hooked: bool,
}

impl Default for Build {
    fn default() -> Self {
        Self { compiler: "gcc", flags: vec!["-O2"], linked: true, hooked: true }
    }
}

impl Build {
    pub(crate) fn with(flags: &[&'static str]) -> Self {
        Self { flags: flags.to_vec(), ..Self::default() }
    }

    pub(crate) fn compiler(compiler: &'static str, flags: &[&'static str]) -> Self {
        Self { compiler, flags: flags.to_vec(), ..Self::default() }
    }

    /// Builds `tests/programs/<source>` as `name`; `more` are further arguments.
    pub(crate) fn program(&self, source: &str, name: &str, more: &[&str]) -> PathBuf {
        let runtime = runtime();
        let output = folder().join(name);
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut command = Command::new(self.compiler);
        command.args(&self.flags).arg("-g").arg("-I").arg(tests.join("include"));
        if self.hooked {
            command.arg("-finstrument-functions");
        }
        command.arg(tests.join("tests/programs").join(source)).arg("-o").arg(&output);
        if self.linked {
            let executable = !self.flags.contains(&"-shared");
            command.arg(&runtime.stub);
            if executable {
                command.arg(&runtime.runtime);
            }
            command.arg(&runtime.wrap).args(link_flags(executable));
        }
        let result = command.args(more).output().unwrap();
        let errors = String::from_utf8_lossy(&result.stderr);
        assert!(result.status.success(), "{command:?}\n{errors}");
        output
    }
}
