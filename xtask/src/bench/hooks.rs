//! Which hooks a program is built with, and the compilers that do it: the real ones, the
//! wrapper under test, and small scripts that add a yardstick's hook when they link.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::lab::Lab;
use crate::commands::run_quietly;

/// What is called at a function's entry and exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hooks {
    /// Nothing.
    None,
    /// Ours, put into the assembly when the compiler has done its work: the default of `teeperf cc`.
    Late,
    /// Ours, put in by the compiler before it inlines.
    Source,
    /// Functions that return at once.
    Empty,
    /// `word_hook.c`.
    Word,
    /// `cycle_hook.c`.
    Cycle,
    /// `drain_hook.c`.
    Drain,
    /// `-pg`: gprof, and uftrace too.
    Gprof,
    /// Those of the original TEE-Perf's form that tests have: they write a log.
    Log,
}

/// As the wrapper leaves them out.
const SYSTEM_HEADERS: &str = "-finstrument-functions-exclude-file-list=/usr/include,/usr/lib";

impl Hooks {
    /// Name of the folder with its builds.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Late => "late",
            Self::Source => "source",
            Self::Empty => "empty",
            Self::Word => "word_hook",
            Self::Cycle => "cycle_hook",
            Self::Drain => "drain_hook",
            Self::Gprof => "gprof",
            Self::Log => "log",
        }
    }

    /// Its file among the yardsticks.
    pub(crate) fn yardstick(self) -> Option<&'static str> {
        match self {
            Self::Word => Some("word_hook.c"),
            Self::Cycle => Some("cycle_hook.c"),
            Self::Drain => Some("drain_hook.c"),
            _ => None,
        }
    }

    /// What its hook needs when it is linked.
    pub(crate) fn libraries(self) -> &'static [&'static str] {
        match self {
            Self::Word | Self::Log => &["-lpthread"],
            Self::Drain => &["-lpthread", "-llz4", "-lzstd"],
            _ => &[],
        }
    }
}

/// A C and a C++ compiler.
pub(crate) struct Compilers {
    /// Words of the C compiler, fit for `CC=`.
    pub(crate) cc: String,
    /// Words of the C++ compiler, fit for `CXX=`.
    pub(crate) cxx: String,
}

impl Compilers {
    /// Starts the C compiler, or for C++ sources the C++ compiler.
    pub(crate) fn command(&self, cxx: bool) -> Command {
        let mut words = if cxx { &self.cxx } else { &self.cc }.split(' ');
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        command
    }

    /// The same with one more word for each.
    pub(crate) fn with(&self, word: &str) -> Self {
        Self { cc: format!("{} {word}", self.cc), cxx: format!("{} {word}", self.cxx) }
    }
}

impl Lab {
    /// Compilers that hook what they compile.
    pub(crate) fn compilers(&self, hooks: Hooks) -> Result<Compilers> {
        let both = |cc: String, cxx: String| Ok(Compilers { cc, cxx });
        let teeperf = self.teeperf.display();
        match hooks {
            Hooks::None => both("gcc".into(), "g++".into()),
            Hooks::Source => both(
                format!("{teeperf} cc --teeperf-hooks=source"),
                format!("{teeperf} c++ --teeperf-hooks=source"),
            ),
            Hooks::Late => both(
                format!("{teeperf} cc --teeperf-hooks=late"),
                format!("{teeperf} c++ --teeperf-hooks=late"),
            ),
            Hooks::Gprof => both("gcc -pg".into(), "g++ -pg".into()),
            _ => {
                let object = self.hook_object(hooks, &["-fPIE"])?;
                let folder = self.work.join("compilers").join(hooks.name());
                let libraries = hooks.libraries().join(" ");
                let cc = script(&folder.join("cc"), "gcc", &object, &libraries)?;
                let cxx = script(&folder.join("c++"), "g++", &object, &libraries)?;
                both(cc, cxx)
            }
        }
    }

    /// The hook's object file. `flags` tell apart one for programs and one for libraries.
    pub(crate) fn hook_object(&self, hooks: Hooks, flags: &[&str]) -> Result<PathBuf> {
        let source = match hooks.yardstick() {
            Some(file) => self.yardstick(file)?,
            None if hooks == Hooks::Log => {
                self.root.join("crates/teeperf/tests/programs/tee_perf_log.c")
            }
            None => self.bench_file("programs/empty_hook.c"),
        };
        let folder = self.work.join("compilers").join(hooks.name());
        fs::create_dir_all(&folder)?;
        let object = folder.join(format!("hook{}.o", flags.concat()));
        let mut command = Command::new("gcc");
        command.args(["-O2", "-c"]).args(flags).arg(&source).arg("-o").arg(&object);
        run_quietly(&mut command)?;
        Ok(object)
    }

    /// `target/bench/<hooks>/<name>`, made by `build` unless it is newer than the command
    /// under test and all of `inputs`.
    pub(crate) fn built(
        &self,
        hooks: Hooks,
        name: &str,
        inputs: &[&Path],
        build: impl FnOnce(&Compilers, &Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let folder = self.work.join(hooks.name());
        let out = folder.join(name);
        let mut inputs = inputs.to_vec();
        if matches!(hooks, Hooks::Late | Hooks::Source) {
            inputs.push(&self.teeperf);
        }
        if is_newer(&out, &inputs) {
            return Ok(out);
        }
        eprintln!("building {name} with hooks: {}", hooks.name());
        fs::create_dir_all(&folder)?;
        build(&self.compilers(hooks)?, &out)
            .with_context(|| format!("building {name} with hooks: {}", hooks.name()))?;
        Ok(out)
    }

    /// A program of one source in `bench/`, at -O2 unless `flags` say otherwise.
    pub(crate) fn program(&self, hooks: Hooks, source: &str, flags: &[&str]) -> Result<PathBuf> {
        let path = self.bench_file(source);
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let cxx = path.extension().is_some_and(|e| e == "cpp");
        self.built(hooks, &format!("{stem}{}", flags.concat()), &[&path], |compilers, out| {
            let mut command = compilers.command(cxx);
            command.arg("-O2").args(flags).arg(&path).arg("-o").arg(out).args(["-pthread", "-lm"]);
            run_quietly(&mut command).map(drop)
        })
    }
}

/// A compiler that hooks functions and links `object` into programs; a library's hooks are
/// found in the program.
fn script(path: &Path, compiler: &str, object: &Path, libraries: &str) -> Result<String> {
    let text = format!(
        "#!/bin/sh\n\
         hook='-rdynamic {object} {libraries}'\n\
         for word; do\n\
         \tcase $word in -c|-S|-E|-M|-MM|-shared|-v|-V|--version|-dump*|-print*) hook= ;; esac\n\
         done\n\
         exec {compiler} -finstrument-functions {SYSTEM_HEADERS} \"$@\" $hook\n",
        object = object.display(),
    );
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    Ok(path.display().to_string())
}

/// Whether the file is there and no input is newer.
fn is_newer(file: &Path, inputs: &[&Path]) -> bool {
    let time = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let Some(made) = time(file) else { return false };
    inputs.iter().all(|input| time(input).is_some_and(|changed| changed <= made))
}
