//! Programs in Rust, built by cargo with `#[profile]` and nothing else, and recorded by the command: each call counts, by
//! the name and at the line that the source has, whatever the compiler and the linker make of it.

use crate::support::{Folder, prepared, run, teeperf};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// A copy of the project. What is built is kept between runs, apart for each variant of it: tests run at once.
struct Project {
    folder: Folder,
    built: PathBuf,
}

impl Project {
    fn new(variant: &str) -> Self {
        let folder = Folder::with_project("rust");
        let manifest = folder.path().join("p/Cargo.toml");
        let text = std::fs::read_to_string(&manifest).unwrap();
        let hooks = Path::new(env!("CARGO_MANIFEST_DIR")).join("../teeperf-hooks");
        let hooks = hooks.canonicalize().unwrap();
        std::fs::write(&manifest, text.replace("HOOKS", hooks.to_str().unwrap())).unwrap();
        let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rust").join(variant);
        Self { folder, built }
    }

    fn cargo(&self, words: &[&str], settings: &[(&str, &str)]) -> Command {
        let mut command = prepared(Command::new("cargo"), &self.folder);
        command.current_dir(self.folder.path().join("p")).args(words);
        // With a target named, flags are for the program alone, and not for what runs in the compiler.
        command.env("CARGO_BUILD_TARGET", TARGET).env("CARGO_TARGET_DIR", &self.built);
        command.env_remove("RUSTFLAGS").envs(settings.iter().copied());
        command
    }

    /// Builds a program of it with hooks.
    fn build(&self, profile: &str, settings: &[(&str, &str)], program: &str) -> PathBuf {
        let words = ["build", "-q", "--profile", profile, "--bin", program, "--features"];
        let features = if program == "server" { "on,tokio" } else { "on" };
        run(self.cargo(&words, settings).arg(features));
        let folder = if profile == "dev" { "debug" } else { profile };
        self.built.join(TARGET).join(folder).join(program)
    }

    /// Runs it without the recorder, then records it.
    fn report(&self, program: &Path) -> Report {
        let alone = run(&mut prepared(Command::new(program), &self.folder));
        let mut record = teeperf(&self.folder);
        record.args(["record", "-q", "-o", "r.teeperf", "--"]).arg(program);
        assert_eq!(run(&mut record), alone);
        let text = run(teeperf(&self.folder).args(["report", "--json", "r.teeperf"]));
        Report(serde_json::from_str(&text).unwrap())
    }
}

struct Report(Value);

impl Report {
    /// Calls, file and line of all functions with hooks, by name. Samples may find others.
    fn functions(&self) -> Vec<(String, u64, String)> {
        let functions = self.0["functions"].as_array().unwrap().iter();
        let mut found: Vec<_> = functions
            .filter(|function| function["calls"] != 0)
            .map(|f| {
                let place = format!("{}:{}", f["file"].as_str().unwrap_or("?"), f["line"]);
                (f["name"].as_str().unwrap().to_owned(), f["calls"].as_u64().unwrap(), place)
            })
            .collect();
        found.sort();
        found
    }

    #[track_caller]
    fn assert_whole(&self) {
        for what in ["lost", "mended", "open", "unopened"] {
            assert_eq!(self.0["health"][what], 0, "{what}");
        }
    }

    /// How often an async function went on, and how long it had waited, in ns.
    fn waits(&self, name: &str) -> (u64, f64) {
        let waits = self.0["waits"].as_array().unwrap().iter();
        let found = waits.clone().find(|waits| waits["name"] == name).unwrap();
        (found["times"].as_u64().unwrap(), found["total"].as_f64().unwrap())
    }
}

/// What `main.rs` calls, how often, and the source line, as a text that only the function's own line has.
const CALLED: &[(&str, u64, &str, &str)] = &[
    (
        "<program::futures::Client as program::futures::Ask>::ask",
        2,
        "futures.rs",
        "impl Ask for Client {\n    async fn ask",
    ),
    (
        "<program::futures::Client as program::futures::Ask>::ask [polled again]",
        12,
        "futures.rs",
        "impl Ask for Client {\n    async fn ask",
    ),
    ("<program::kinds::Square as program::kinds::Doubling>::twice", 30, "kinds.rs", "fn twice"),
    (
        "<program::kinds::Square as program::kinds::Shape>::area",
        60,
        "kinds.rs",
        "fn area(&self) -> u32 {",
    ),
    (
        "<program::kinds::Square as program::kinds::Shape>::doubled",
        30,
        "kinds.rs",
        "fn doubled(&self) -> u32 {",
    ),
    ("a \"name\" {of} its \\ own", 1, "kinds.rs", "fn named"),
    ("a round", 6, "kinds.rs", "scope!(\"a round\")"),
    ("in a closure", 6, "kinds.rs", "scope!(\"in a closure\")"),
    ("moved", 1, "futures.rs", "future!(\"moved\""),
    ("moved [polled again]", 1, "futures.rs", "future!(\"moved\""),
    ("program::futures::fetch::<&str>", 1, "futures.rs", "async fn fetch"),
    ("program::futures::fetch::<alloc::string::String>", 6, "futures.rs", "async fn fetch"),
    (
        "program::futures::fetch::<alloc::string::String> [polled again]",
        12,
        "futures.rs",
        "async fn fetch",
    ),
    ("program::futures::fetch::<u8>", 3, "futures.rs", "async fn fetch"),
    ("program::futures::fetch::<u8> [polled again]", 11, "futures.rs", "async fn fetch"),
    ("program::futures::ordered", 1, "futures.rs", "async fn ordered"),
    ("program::futures::ordered [polled again]", 1, "futures.rs", "async fn ordered"),
    ("program::kinds::Holder<&str>::get", 30, "kinds.rs", "fn get"),
    ("program::kinds::Holder<u32>::get", 30, "kinds.rs", "fn get"),
    ("program::kinds::both::of_macro", 1, "kinds.rs", "pub fn $name"),
    ("program::kinds::caller", 2, "kinds.rs", "fn caller"),
    ("program::kinds::closed::<u8>", 2, "kinds.rs", "fn closed"),
    ("program::kinds::closed::<u16>", 1, "kinds.rs", "fn closed"),
    ("program::kinds::fibonacci", 450, "kinds.rs", "fn fibonacci"),
    ("program::kinds::first", 1, "kinds.rs", "fn first"),
    ("program::kinds::for_c", 1, "kinds.rs", "extern \"C\" fn for_c"),
    ("program::kinds::inner::deeper::leaf", 30, "kinds.rs", "fn leaf"),
    ("program::kinds::inner::never", 1, "kinds.rs", "fn never"),
    ("program::kinds::panics", 12, "kinds.rs", "fn panics"),
    ("program::kinds::parse::<alloc::string::String>", 30, "kinds.rs", "fn parse"),
    ("program::kinds::parse::<i32>", 30, "kinds.rs", "fn parse"),
    ("program::kinds::parse::<u32>", 30, "kinds.rs", "fn parse"),
    ("program::kinds::run", 3, "kinds.rs", "pub fn run()"),
    ("program::kinds::stop", 4, "kinds.rs", "fn stop"),
];

/// The same, with lines in place of texts.
fn called() -> Vec<(String, u64, String)> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/projects/rust/src");
    let lines = |&(name, calls, file, text): &(&str, u64, &str, &str)| {
        let source = std::fs::read_to_string(source.join(file)).unwrap();
        let at = source.find(text).unwrap_or_else(|| panic!("{text} in {file}"));
        let line = 1 + source[..at + text.len()].matches('\n').count();
        (name.to_owned(), calls, format!("src/{file}:{line}"))
    };
    let mut called: Vec<_> = CALLED.iter().map(lines).collect();
    called.sort();
    called
}

#[test]
fn each_call_by_its_name_and_line() {
    let project = Project::new("plain");
    for profile in ["release", "dev"] {
        let report = project.report(&project.build(profile, &[], "program"));
        assert_eq!(report.functions(), called(), "{profile}");
        report.assert_whole();
        let (times, waited) = report.waits("moved");
        assert!(times == 1 && waited > 0.0, "{times}, {waited} ns");
        assert_eq!(report.waits("program::futures::fetch::<u8>").0, 11);
    }
}

/// The other mangling and the other linker; functions with the same code as one; and a program without symbols, which
/// knows no types.
#[test]
fn whatever_compiler_and_linker_make_of_it() {
    let project = Project::new("others");
    for settings in [
        &[("RUSTFLAGS", "-Csymbol-mangling-version=v0 -Clink-arg=-fuse-ld=bfd")][..],
        &[("RUSTFLAGS", "-Clink-arg=-Wl,--icf=all"), ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "s")],
    ] {
        let report = project.report(&project.build("release", settings, "program"));
        assert_eq!(report.functions(), called(), "{settings:?}");
        report.assert_whole();
    }

    let stripped = &[("CARGO_PROFILE_RELEASE_STRIP", "symbols")];
    let report = project.report(&project.build("release", stripped, "program"));
    let functions = report.functions();
    for (name, calls) in [
        ("program::kinds::parse", 90),
        ("program::kinds::Holder::get", 60),
        ("<program::kinds::Square as Shape>::area", 60),
        ("program::futures::fetch [polled again]", 23),
        ("a round", 6),
    ] {
        let found = functions.iter().find(|function| function.0 == name);
        assert_eq!(found.map(|function| function.1), Some(calls), "{name} in {functions:#?}");
    }
    report.assert_whole();
}

/// Where C in the same program has hooks, its linker brings what the crate brings; everything in one piece, too. And a
/// static program, into which nothing can be loaded.
#[test]
fn with_the_wrapper_as_linker() {
    let project = Project::new("linked");
    let wrappers = project.folder.path().join("bin");
    run(teeperf(&project.folder).arg("install-wrappers").arg(&wrappers));
    let linker = wrappers.join("teeperf-cc");
    let linker = ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", linker.to_str().unwrap());
    for settings in [
        [linker, ("CARGO_PROFILE_RELEASE_LTO", "fat")],
        [linker, ("RUSTFLAGS", "-Ctarget-feature=+crt-static")],
    ] {
        let report = project.report(&project.build("release", &settings, "program"));
        assert_eq!(report.functions(), called(), "{settings:?}");
        report.assert_whole();
    }
}

#[test]
fn tasks_of_tokio() {
    let project = Project::new("plain-tokio");
    let report = project.report(&project.build("release", &[], "server"));
    let functions = report.functions();
    let calls = |name: &str| functions.iter().find(|found| found.0 == name).unwrap().1;
    // Three tasks of fifty ask for 7, as the third, the second and the first key.
    assert_eq!(calls("server::request"), 50);
    assert_eq!(calls("server::look_up"), 47 * 3 + 3 + 2 + 1);
    assert_eq!(calls("server::hash"), 47 * 3 + 2 + 1);
    assert_eq!(calls("server::never"), 1);
    let (times, waited) = report.waits("server::look_up");
    assert_eq!(times, calls("server::look_up [polled again]"));
    // Each slept at least 2 ms, and looks at a clock that ticks. They waited at once: it is more than the run took.
    let duration = report.0["info"]["duration"].as_f64().unwrap();
    assert!(times >= 147 && waited > duration, "{times} times, {waited} ns of {duration}");
    report.assert_whole();
}

/// Without the feature, the machine's code is that of a program without a word of ours.
#[test]
fn off_is_nothing() {
    let project = Project::new("off");
    let assembly = || {
        let words = ["rustc", "-q", "--release", "--bin=off"];
        let mut command = project.cargo(&words, &[("CARGO_PROFILE_RELEASE_DEBUG", "0")]);
        run(command.args(["--", "--emit=asm", "-Ccodegen-units=1"]));
        let folder = project.built.join(TARGET).join("release/deps");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut files = files.filter(|path| path.extension().is_some_and(|end| end == "s"));
        let file = files.next().unwrap();
        assert!(files.next().is_none());
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(file).unwrap();
        text
    };
    let with = assembly();
    let source = project.folder.path().join("p/src/bin/off.rs");
    let text = std::fs::read_to_string(&source).unwrap();
    let is_ours =
        |line: &&str| line.trim_start().starts_with(['#', 't']) && line.contains("teeperf::");
    assert_eq!(text.lines().filter(is_ours).count(), 6);
    // Panics know their lines.
    let bare = text.lines().map(|line| if is_ours(&line) { "" } else { line });
    std::fs::write(source, bare.map(|line| line.to_owned() + "\n").collect::<String>()).unwrap();
    assert!(with == assembly());
}

#[test]
fn what_it_does_not_go_with_is_said() {
    let project = Project::new("errors");
    let words = ["check", "--bin=errors", "--features=errors", "--message-format=short"];
    let output = project.cargo(&words, &[]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    for (line, text) in [
        (9, "a `const fn` cannot be recorded"),
        (14, "`#[profile]` goes with functions, `impl` blocks, traits and inline modules"),
        (16, "no `loudly` here: `skip`, `name = \"…\"` or `crate = path`"),
        (19, "a name is one function's"),
        (26, "without a body there is nothing to record"),
        (40, "`nowhere`"),
    ] {
        let place = format!("errors.rs:{line}:");
        let is_said = |message: &str| message.contains(&place) && message.contains(text);
        assert!(said.lines().any(is_said), "{place} {text} in {said}");
    }
    assert!(said.contains("future cannot be sent between threads safely"), "{said}");
    assert!(!said.contains("fine"), "{said}");
}

/// What macros write into a program is no matter for those who look at its source: clippy at its strictest, documentation that
/// must be there.
#[test]
fn lints_of_the_program_see_nothing_of_it() {
    if !Command::new("cargo")
        .args(["clippy", "--version"])
        .output()
        .is_ok_and(|output| output.status.success())
    {
        eprintln!("skipped: there is no clippy");
        return;
    }
    let project = Project::new("lints");
    let source = r#"//! A library.
#![deny(warnings, missing_docs, unsafe_code, clippy::pedantic, clippy::shadow_unrelated, clippy::redundant_locals)]
extern crate teeperf as teeperf_hooks;
use teeperf::profile;

/// Counts.
#[profile]
#[must_use]
pub fn length(text: &str) -> usize {
    teeperf::scope!("counting");
    text.len()
}

/// Waits.
///
/// # Errors
/// None.
#[profile]
pub async fn waits(mut number: u32, (first, _second): (u32, u32), _: &str) -> Result<u32, std::fmt::Error> {
    number += first;
    std::future::ready(()).await;
    Ok(teeperf::future!("inner", async move { number }).await)
}

/// A stack.
#[derive(Debug, Default)]
pub struct Stack<T>(Vec<T>);

#[profile]
impl<T: Clone> Stack<T> {
    /// Puts one on top.
    #[inline]
    pub fn push(&mut self, value: T) {
        self.0.push(value);
    }

    /// All there are.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }
}

teeperf::profile_all! {
    /// Twice as much.
    #[must_use]
    pub fn doubled(number: u32) -> u32 {
        2 * number
    }
}
"#;
    project.folder.write("p/src/lib.rs", source);
    for features in ["", "on"] {
        run(project
            .cargo(&["clippy", "-q", "--lib", "--features", features], &[])
            .stdin(std::process::Stdio::null()));
    }
}

/// Each set of features builds without a warning, for code with and without a standard library.
#[test]
fn each_set_of_features_builds() {
    let project = Project::new("features");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../teeperf-hooks/Cargo.toml");
    for features in [
        "",
        "attributes",
        "on",
        "hooks",
        "attributes,on",
        "attributes,hooks",
        "on,hooks",
        "attributes,on,hooks",
    ] {
        let words = [
            "check",
            "-q",
            "--lib",
            "--no-default-features",
            "--features",
            features,
            "--manifest-path",
        ];
        let mut command = project.cargo(&words, &[]);
        run(command.arg(&manifest).env("RUSTFLAGS", "-Dwarnings"));
    }
}

/// Crates as they would be published, in the order in which each finds those that it uses.
#[test]
fn packages_are_whole() {
    let project = Project::new("packages");
    let mut command =
        project.cargo(&["package", "-q", "--offline", "--allow-dirty", "--manifest-path"], &[]);
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml"))
        .env_remove("CARGO_BUILD_TARGET");
    run(command.args(["-pteeperf-wire", "-pteeperf-stub", "-pteeperf-macros", "-pteeperf-hooks"]));
    for name in ["wire", "stub", "macros", "hooks"] {
        let version = env!("CARGO_PKG_VERSION");
        let package = project.built.join(format!("package/teeperf-{name}-{version}.crate"));
        let list = run(Command::new("tar").arg("tzf").arg(package));
        for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "src/lib.rs"] {
            assert!(
                list.contains(&format!("teeperf-{name}-{version}/{file}\n")),
                "{file} in {list}"
            );
        }
    }
}

/// For code without a system: no other crate, and no network.
#[test]
fn the_copy_in_the_sdk_needs_nothing_else() {
    let folder = Folder::new();
    run(teeperf(&folder).args(["install-sdk", "sdk"]));
    folder.write(
        "Cargo.toml",
        "[workspace]\n[package]\nname = \"image\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"staticlib\"]\n\
         [dependencies]\nteeperf-hooks = { path = \"sdk/rust/teeperf-hooks\" }\n\
         [features]\nhooks = [\"teeperf-hooks/hooks\"]\n[profile.release]\npanic = \"abort\"\n",
    );
    folder.write(
        "src/lib.rs",
        "#![no_std]\n#![deny(warnings)]\n#[panic_handler]\n\
         fn panic(_: &core::panic::PanicInfo<'_>) -> ! { loop {} }\n\
         #[unsafe(no_mangle)]\npub extern \"C\" fn work(n: u32) -> u32 {\n    teeperf_hooks::scope!(work);\n    \
         teeperf_hooks::scope!(\"rest of it\");\n    teeperf_hooks::scope!();\n    n + 1\n}\n",
    );
    for (feature, calls) in [("", false), ("hooks", true)] {
        let mut build = prepared(Command::new("cargo"), &folder);
        build.args(["build", "-q", "--release", "--offline", "--features", feature]);
        build.env("CARGO_TARGET_DIR", folder.path().join("target")).env_remove("RUSTFLAGS");
        run(&mut build);
        let library = std::fs::read(folder.path().join("target/release/libimage.a")).unwrap();
        let called = b"__cyg_profile_func_enter";
        assert_eq!(library.windows(called.len()).any(|part| part == called), calls, "{feature}");
    }
}
