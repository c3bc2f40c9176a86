//! `cargo teeperf`: programs in Rust whose source says nothing of a profiler. Each call counts, whatever the compiler inlines, as
//! one would count them in the source.

use crate::support::{Folder, prepared, run, teeperf};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A copy of the project; what is built is kept between runs.
struct Project {
    folder: Folder,
    built: PathBuf,
}

impl Project {
    fn new(variant: &str) -> Self {
        let folder = Folder::with_project("rust-plain");
        let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cargo").join(variant);
        Self { folder, built }
    }

    /// Where `cargo teeperf` builds.
    fn hooked(&self, path: &str) -> PathBuf {
        self.built.join("teeperf").join(path)
    }

    /// Cargo, which finds its subcommand in `PATH`.
    fn cargo(&self, words: &[&str]) -> Command {
        let mut command = prepared(Command::new("cargo"), &self.folder);
        let place = Path::new(env!("CARGO_BIN_EXE_cargo-teeperf")).parent().unwrap();
        let path = format!("{}:{}", place.display(), std::env::var("PATH").unwrap());
        command.current_dir(self.folder.path().join("p")).args(words).env("PATH", path);
        for variable in [
            "RUSTFLAGS",
            "RUSTC_WRAPPER",
            "RUSTC_WORKSPACE_WRAPPER",
            "CARGO_PROFILE_DEV_DEBUG",
            "CARGO",
        ] {
            command.env_remove(variable);
        }
        command.env("CARGO_TARGET_DIR", &self.built);
        command
    }

    /// What cargo says on standard error.
    #[track_caller]
    fn said(&self, words: &[&str]) -> String {
        let output = self.cargo(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}: {said}");
        said
    }

    /// Calls by name of what is recorded of a program.
    #[track_caller]
    fn calls(&self, program: &Path) -> Vec<(String, u64)> {
        let mut record = teeperf(&self.folder);
        record.args(["record", "-q", "--force", "-o", "r.teeperf", "--"]).arg(program);
        run(&mut record);
        let text = run(teeperf(&self.folder).args(["report", "--json", "r.teeperf"]));
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        for what in ["lost", "open", "unopened"] {
            assert_eq!(report["health"][what], 0, "{}: {what}", program.display());
        }
        let functions = report["functions"].as_array().unwrap().iter();
        // Samples may find functions without hooks.
        let mut calls: Vec<_> = functions
            .filter(|function| function["calls"] != 0)
            .map(|function| {
                let file = function["file"].as_str().unwrap_or_default();
                assert!(file.ends_with(".rs") && function["line"].is_u64(), "{function}");
                (function["name"].as_str().unwrap().to_owned(), function["calls"].as_u64().unwrap())
            })
            .collect();
        calls.sort();
        calls
    }
}

/// What `app` calls.
const CALLED: &[(&str, u64)] = &[
    ("<app::Guard as core::ops::drop::Drop>::drop", 8),
    ("<shapes::Circle as shapes::Area>::area", 5),
    ("<shapes::Circle as shapes::Area>::doubled", 5),
    ("<shapes::Circle as shapes::Area>::unit", 4),
    ("<shapes::Square as shapes::Area>::area", 10),
    ("<shapes::Square as shapes::Area>::doubled", 10),
    ("<shapes::Square as shapes::Area>::unit", 3),
    ("app::block_on::<app::steps::{closure#0}>", 1),
    ("app::fallible", 3),
    ("app::fibonacci", 15 + 9),
    ("app::guarded", 8),
    ("app::main", 1),
    ("app::main::{closure#0}", 10),
    ("app::main::{closure#1}", 1),
    ("app::main::{closure#2}", 2),
    ("app::steps", 1),
    ("app::steps::{closure#0}", 4),
    ("app::steps::{closure#0}::{closure#0}", 4),
    ("for_c", 6),
    ("shapes::largest::<&str>", 3),
    ("shapes::largest::<u32>", 2),
    ("shapes::square", 15),
];

fn owned(calls: &[(&str, u64)]) -> Vec<(String, u64)> {
    calls.iter().map(|&(name, calls)| (name.to_owned(), calls)).collect()
}

#[test]
fn all_functions_of_the_workspace_whatever_the_profile() {
    let project = Project::new("plain");
    for (profile, folder) in
        [("dev", "debug"), ("release", "release"), ("fat", "fat"), ("small", "small")]
    {
        let said = project.said(&["teeperf", "build", "--bin=app", "--profile", profile]);
        assert!(said.contains("functions have hooks in app"), "{said}");
        let program = project.hooked(folder).join("app");
        assert_eq!(run(&mut Command::new(&program)), "811\n", "{profile}");
        assert_eq!(project.calls(&program), owned(CALLED), "{profile}");
    }
    // Without, nothing is left of it; and neither takes what the other has built, or puts its own in the other's place.
    project.said(&["build", "--bin=app", "--release"]);
    assert_eq!(project.calls(&project.hooked("release/app")), owned(CALLED));
    let symbols = run(Command::new("nm").arg(project.built.join("release/app")));
    assert!(!symbols.contains("cyg_profile"), "{symbols}");
    let said = project.said(&["teeperf", "build", "--bin=app", "--release"]);
    assert!(!said.contains("Compiling"), "{said}");
    assert!(said.contains(&format!("is in {}", project.built.join("teeperf").display())), "{said}");
    assert_eq!(project.calls(&project.hooked("release/app")), owned(CALLED));
    let symbols = run(Command::new("nm").arg(project.built.join("release/app")));
    assert!(!symbols.contains("cyg_profile"), "{symbols}");
    // Who names a folder has it.
    let named = project.built.join("named");
    let place = format!("--target-dir={}", named.display());
    let said = project.said(&["teeperf", "build", "--bin=app", "--release", &place]);
    assert!(!said.contains("what is built is in"), "{said}");
    assert_eq!(project.calls(&named.join("release/app")), owned(CALLED));
}

/// By name and by file, as `teeperf.toml` says.
#[test]
fn some_functions_alone() {
    let project = Project::new("some");
    let file = project.folder.path().join("p/teeperf.toml");
    let text = "[build]\nonly = ['file:shapes/src/', 'app::fib*']\nexclude = ['*::unit']\n";
    std::fs::write(&file, text).unwrap();
    let said = project.said(&["teeperf", "build", "--bin=app", "--release"]);
    assert!(said.contains("in shapes") || said.contains("in app"), "{said}");
    let wanted = |call: &&(&str, u64)| {
        let is_shape = call.0.contains("shapes::") && !call.0.ends_with("::unit");
        is_shape || call.0 == "app::fibonacci"
    };
    let expected: Vec<_> = CALLED.iter().filter(wanted).copied().collect();
    assert_eq!(project.calls(&project.hooked("release/app")), owned(&expected));
    // Nobody says that it has no choice.
    let mut selection = teeperf(&project.folder);
    let told = selection.arg("selection").arg(project.hooked("release/app")).output().unwrap();
    let told = String::from_utf8_lossy(&told.stderr);
    assert!(told.contains("`cargo teeperf` does not tell"), "{told}");
    // Another choice is another build.
    std::fs::write(&file, "[build]\nonly = ['app::main']\n").unwrap();
    project.said(&["teeperf", "build", "--bin=app", "--release"]);
    assert_eq!(project.calls(&project.hooked("release/app")), owned(&[("app::main", 1)]));
    // What is left when all is inlined: less, and nothing that is not there otherwise.
    std::fs::write(&file, "[build]\nafter-inlining = true\n").unwrap();
    project.said(&["teeperf", "build", "--bin=app", "--release"]);
    let left = project.calls(&project.hooked("release/app"));
    assert!(
        left.iter()
            .all(|(name, calls)| CALLED.iter().any(|call| call.0 == name && call.1 >= *calls)),
        "{left:?}"
    );
    assert!(
        left.iter().any(|(name, _)| name == "app::main") && left.len() < CALLED.len(),
        "{left:?}"
    );
}

/// A crate of other people's, by name. Without optimisation each call of the source is one of the machine's; with it there are
/// as many.
#[test]
fn a_dependency_of_other_peoples() {
    let project = Project::new("dependency");
    let build = |words: &[&str]| {
        let mut command =
            project.cargo(&["teeperf", "--dependency=regex-lite", "build", "--bin=finds"]);
        let output = command.args(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        assert!(said.contains("functions have hooks in regex_lite"), "{said}");
        let place = said
            .lines()
            .find_map(|line| line.strip_prefix("teeperf: what is built is in "))
            .unwrap();
        PathBuf::from(place)
    };
    let plain = project.calls(&build(&[]).join("debug/finds"));
    let optimised = project.calls(&build(&["--release"]).join("release/finds"));
    let calls = |name: &str| plain.iter().find(|call| call.0 == name).map(|call| call.1);
    assert_eq!(calls("finds::numbers"), Some(3));
    assert_eq!(calls("<regex_lite::string::Regex>::new"), Some(3));
    assert_eq!(calls("<regex_lite::string::Regex>::find_iter"), Some(3));
    assert_eq!(
        calls("<regex_lite::string::Matches as core::iter::traits::iterator::Iterator>::count"),
        Some(3)
    );
    assert!(plain.len() > 50, "{plain:#?}");
    let different: Vec<_> = plain.iter().filter(|call| !optimised.contains(call)).collect();
    assert_eq!(optimised, plain, "{different:#?}");
}

#[test]
fn what_does_not_go_is_said() {
    let project = Project::new("errors");
    for (words, code, said) in [
        (&["teeperf", "check"][..], 1, "check makes no program: say one of build"),
        (&["teeperf"], 2, "CARGO ARGUMENTS"),
        (&["teeperf", "build", "--manifest-path", "none/Cargo.toml"], 1, "none/Cargo.toml"),
    ] {
        let output = project.cargo(words).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && text.contains(said), "{words:?}: {text}");
    }
    // A compiler that knows nothing of it.
    let fake = project.folder.program("rustc", "#!/bin/sh\nexit 0\n");
    let output = project.cargo(&["teeperf", "build"]).env("RUSTC", &fake).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("--attributes records the functions that have"), "{text}");
    // What does not compile is said once, by the compiler.
    std::fs::write(project.folder.path().join("p/app/src/main.rs"), "fn main() { nowhere() }\n")
        .unwrap();
    let output = project.cargo(&["teeperf", "build", "--bin=app"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert_eq!(text.matches("cannot find function `nowhere`").count(), 1, "{text}");
}

/// The feature of the attribute's crate, for compilers that know of nothing else.
#[test]
fn with_attributes_alone() {
    let project = Project::new("attributes");
    let hooks =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../teeperf-hooks").canonicalize().unwrap();
    project.folder.write(
        "p/Cargo.toml",
        &format!(
            "[workspace]\n[package]\nname = \"few\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\n\
             teeperf-hooks = {{ path = \"{}\" }}\n",
            hooks.display()
        ),
    );
    let source =
        "#[teeperf_hooks::profile]\nfn work() {}\nfn main() { for _ in 0..3 { work() } }\n";
    project.folder.write("p/src/main.rs", source);
    let said = project.said(&["teeperf", "--attributes", "build", "--release"]);
    assert!(said.contains("functions that have #[profile]"), "{said}");
    assert_eq!(project.calls(&project.hooked("release/few")), owned(&[("few::work", 3)]));
}

/// Wrappers have the name that cargo looks for.
#[test]
fn as_a_wrapper() {
    let project = Project::new("errors");
    run(teeperf(&project.folder).args(["install-wrappers", "bin"]));
    let path = format!(
        "{}:{}",
        project.folder.path().join("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let output = project.cargo(&["teeperf", "fetch"]).env("PATH", path).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("fetch makes no program"), "{text}");
}
