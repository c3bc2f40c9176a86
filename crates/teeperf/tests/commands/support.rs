//! What tests of the command share: a folder of its own for each, and the command prepared
//! so that nothing of the user's settings or cache gets in.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder that is gone when the test ends.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// With a copy of one of `tests/projects` in it, a project of cargo, as `p`. Its crates have the same versions as here, which
    /// are at hand.
    pub(crate) fn with_project(name: &str) -> Self {
        let folder = Self::new();
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let copy = folder.path().join("p");
        let source = own.join("tests/projects").join(name);
        assert!(Command::new("cp").arg("-r").arg(source).arg(&copy).status().unwrap().success());
        std::fs::copy(own.join("../../Cargo.lock"), copy.join("Cargo.lock")).unwrap();
        folder
    }

    /// A file with this text; folders on the way are made.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// An executable file with this text; returns its path.
    pub(crate) fn program(&self, name: &str, text: &str) -> String {
        self.write(name, text);
        let path = self.path().join(name);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// The command, to be run in this folder.
pub(crate) fn teeperf(folder: &Folder) -> Command {
    prepared(Command::new(env!("CARGO_BIN_EXE_teeperf")), folder)
}

/// Any command, to be run in this folder, with a cache of its own.
pub(crate) fn prepared(mut command: Command, folder: &Folder) -> Command {
    command.current_dir(folder.path()).env("XDG_CACHE_HOME", folder.path().join(".cache"));
    command.env("XDG_CONFIG_HOME", folder.path().join(".config"));
    for variable in [
        "TEEPERF_CC",
        "TEEPERF_CXX",
        "TEEPERF_CC_OPTIONS",
        "TEEPERF_CONFIG",
        "TEEPERF_SOCKET",
        "COLUMNS",
        "NO_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
    ] {
        command.env_remove(variable);
    }
    command
}

/// A compiler, as it is called for C and for C++.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compiler {
    pub(crate) cc: &'static str,
    pub(crate) cxx: &'static str,
}

impl Compiler {
    /// All that hooked programs are built with in tests.
    const ALL: [Self; 12] = [
        Self { cc: "gcc", cxx: "g++" },
        Self { cc: "clang", cxx: "clang++" },
        Self { cc: "gcc-11", cxx: "g++-11" },
        Self { cc: "gcc-12", cxx: "g++-12" },
        Self { cc: "gcc-13", cxx: "g++-13" },
        Self { cc: "gcc-14", cxx: "g++-14" },
        Self { cc: "gcc-15", cxx: "g++-15" },
        Self { cc: "clang-14", cxx: "clang++-14" },
        Self { cc: "clang-16", cxx: "clang++-16" },
        Self { cc: "clang-18", cxx: "clang++-18" },
        Self { cc: "clang-19", cxx: "clang++-19" },
        Self { cc: "clang-20", cxx: "clang++-20" },
    ];

    /// One of each family: a build system starts further versions of it as it starts the first.
    pub(crate) const FAMILIES: [Self; 2] = [Self::ALL[0], Self::ALL[1]];

    /// Those that are installed, each file once; says which are not. gcc and clang by these names have to be.
    pub(crate) fn installed() -> Vec<Self> {
        let (mut found, mut files, mut without) = (Vec::new(), Vec::new(), Vec::new());
        for compiler in Self::ALL {
            match [compiler.cc, compiler.cxx].map(in_path) {
                [Some(cc), Some(_)] if !files.contains(&cc) => {
                    files.push(cc);
                    found.push(compiler);
                }
                [Some(_), Some(_)] => {}
                _ => without.push(compiler.cc),
            }
        }
        eprintln!("not installed, so not tried: {}", without.join(" "));
        for name in ["gcc", "clang"] {
            assert!(found.iter().any(|compiler| compiler.cc == name), "{name} is not installed");
        }
        found
    }

    /// One of each family and the newest that is installed; all when tests are thorough.
    pub(crate) fn tried() -> Vec<Self> {
        let mut tried = Self::installed();
        if !are_thorough() {
            let wanted = Self::FAMILIES.map(|one| one.cc);
            let newest = tried.last().map(|one| one.cc);
            tried.retain(|one| wanted.contains(&one.cc) || newest == Some(one.cc));
        }
        tried
    }

    /// One family by the test's name, so that tests of build systems share them; both when tests
    /// are thorough.
    pub(crate) fn by_name_of_test() -> Vec<Self> {
        let test = std::thread::current().name().unwrap_or_default().to_owned();
        let one = test.bytes().map(usize::from).sum::<usize>() % Self::FAMILIES.len();
        if are_thorough() { Self::FAMILIES.to_vec() } else { vec![Self::FAMILIES[one]] }
    }

    /// Whether it is one of LLVM's.
    pub(crate) fn is_clang(self) -> bool {
        self.cc.starts_with("clang")
    }
}

/// Whether tests repeat what takes long, with each compiler.
fn are_thorough() -> bool {
    std::env::var_os("TEEPERF_TEST_THOROUGH").is_some()
}

/// The file that a name of a program stands for.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).find_map(|folder| folder.join(name).canonicalize().ok())
}

/// Runs a command that has to succeed; what it printed.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}\n{errors}", output.status);
    text
}
