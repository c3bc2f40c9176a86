//! A folder for one test, and programs built in it: with hooks by `teeperf cc`, or without.

use super::run::{are_late, are_thorough, run, teeperf};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A family of compilers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compiler {
    Gcc,
    Clang,
}

impl Compiler {
    /// gcc, and clang where it is installed.
    pub(crate) fn installed() -> Vec<Self> {
        match Command::new("clang").arg("--version").output() {
            Ok(_) => vec![Self::Gcc, Self::Clang],
            Err(_) => vec![Self::Gcc],
        }
    }

    /// Those that a test tries: all when tests are thorough, else one by the test's name, and the
    /// other with late hooks.
    pub(crate) fn tried() -> Vec<Self> {
        let installed = Self::installed();
        let test = std::thread::current().name().unwrap_or_default().to_owned();
        let name = test.bytes().map(usize::from).sum::<usize>();
        match are_thorough() {
            true => installed,
            false => vec![installed[(name + usize::from(are_late())) % installed.len()]],
        }
    }

    fn command(self, cxx: bool) -> &'static str {
        match (self, cxx) {
            (Self::Gcc, false) => "gcc",
            (Self::Gcc, true) => "g++",
            (Self::Clang, false) => "clang",
            (Self::Clang, true) => "clang++",
        }
    }
}

/// A folder that goes when the test ends.
pub(crate) struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder for the test") }
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Builds `source`, a file of `tests/programs`, with hooks. The program's name says how
    /// it was built.
    pub(crate) fn build(&self, source: &str, compiler: Compiler, flags: &[&str]) -> PathBuf {
        let program = self.program(source, compiler, flags, "hooked");
        let cxx = source.ends_with(".cc");
        let mut command = teeperf();
        command
            .arg(if cxx { "c++" } else { "cc" })
            .arg(format!("--teeperf-compiler={}", compiler.command(cxx)));
        compile(command, &source_path(source), &as_written(compiler, flags), &program);
        program
    }

    /// As [`Workshop::build`], without any of it.
    pub(crate) fn build_unhooked(
        &self,
        source: &str,
        compiler: Compiler,
        flags: &[&str],
    ) -> PathBuf {
        let program = self.program(source, compiler, flags, "plain");
        let command = Command::new(compiler.command(source.ends_with(".cc")));
        compile(command, &source_path(source), &as_written(compiler, flags), &program);
        program
    }

    /// Builds a source that the test wrote itself into the folder.
    pub(crate) fn build_own(&self, source: &Path, compiler: Compiler, flags: &[&str]) -> PathBuf {
        let program = source.with_extension("hooked");
        let mut command = teeperf();
        command.arg("cc").arg(format!("--teeperf-compiler={}", compiler.command(false)));
        compile(command, source, &as_written(compiler, flags), &program);
        program
    }

    fn program(&self, source: &str, compiler: Compiler, flags: &[&str], kind: &str) -> PathBuf {
        let stem = source.split('.').next().unwrap_or(source);
        let how: String = flags.concat().chars().filter(|c| c.is_ascii_alphanumeric()).collect();
        self.path(&format!("{stem}-{compiler:?}-{how}-{kind}"))
    }
}

/// The folder of the programs.
fn source_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// Whether the compiler makes hooks of the kind that is tested: clang's `-flto` makes no assembly.
pub(crate) fn is_hooked(compiler: Compiler, flags: &[&str]) -> bool {
    !(are_late() && compiler == Compiler::Clang && flags.contains(&"-flto"))
}

/// With late hooks calls are those of the machine: what has these be those of the source, but for
/// functions that are always inlined. clang hooks no call that it inlined either.
fn as_written<'a>(compiler: Compiler, flags: &[&'a str]) -> Vec<&'a str> {
    const ALL: [&str; 2] = ["-fno-inline", "-fno-optimize-sibling-calls"];
    const GCC: [&str; 4] = ["-fno-ipa-cp", "-fno-ipa-sra", "-fno-ipa-icf", "-fno-partial-inlining"];
    let mut all = flags.to_vec();
    if are_late() || compiler == Compiler::Clang {
        all.push("-DINLINED_IS_NO_CALL");
    }
    if are_late() {
        all.extend(ALL);
        all.extend(GCC.iter().filter(|_| compiler == Compiler::Gcc));
    }
    all
}

fn compile(mut command: Command, source: &Path, flags: &[&str], program: &Path) {
    // Options for the linker stand behind what they are for.
    command.arg("-o").arg(program).arg(source).args(flags).args(["-lpthread", "-ldl", "-w"]);
    // Compilers leave files where they run: of `-gsplit-dwarf`, of `--coverage`.
    command.current_dir(program.parent().unwrap_or(Path::new("/")));
    let outcome = run(&mut command);
    assert!(outcome.success(), "building {}: {}", source.display(), outcome.stderr);
}
