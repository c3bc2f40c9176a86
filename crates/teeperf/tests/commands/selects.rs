//! Hooks in some functions alone: with each compiler, a program that is built with a selection shows the calls that it
//! shows without one, less those of the functions that were left out, and does what it did.

use crate::support::{Compiler, Folder, prepared, run};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const TEEPERF: &str = env!("CARGO_BIN_EXE_teeperf");

/// The project, and a compiler behind the wrapper.
struct Project {
    folder: Folder,
    compiler: &'static str,
}

type Calls = BTreeMap<String, u64>;

impl Project {
    fn new(compiler: &'static str) -> Self {
        let folder = Folder::new();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/projects/select");
        let copied = Command::new("cp").arg("-rT").arg(source).arg(folder.path()).status();
        assert!(copied.unwrap().success());
        Self { folder, compiler }
    }

    fn command(&self, line: &str) -> Command {
        let cxx = self.compiler.replace("gcc", "g++").replace("clang", "clang++");
        let mut command = prepared(Command::new("sh"), &self.folder);
        command
            .args(["-e", "-c", line])
            .env("T", TEEPERF)
            .env("CC", self.compiler)
            .env("CXX", &cxx);
        command.env("TEEPERF_CC", self.compiler).env("TEEPERF_CXX", cxx).env("CCACHE_DISABLE", "1");
        // Calls are those of the source.
        command.env("TEEPERF_CC_OPTIONS", "--teeperf-hooks=source");
        command
    }

    fn sh(&self, line: &str) -> String {
        run(&mut self.command(line))
    }

    /// What a command that fails says.
    #[track_caller]
    fn refused(&self, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        assert!(!output.status.success(), "{line}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Builds with these flags and options of the wrapper; calls by function, once it has run as it should.
    fn calls(&self, flags: &str, options: &str) -> Calls {
        self.sh(&format!(
            "rm -f *.o; $T cc {flags} {options} -c first.c second.c
             $T c++ {flags} {options} main.cc shapes.cc first.o second.o -o program
             $T record -q --force -o r.teeperf -- ./program >out"
        ));
        assert_eq!(self.sh("cat out"), "80307\n", "{} {flags} {options}", self.compiler);
        let report: serde_json::Value =
            serde_json::from_str(&self.sh("$T report --json r.teeperf")).unwrap();
        assert_eq!(
            (&report["health"]["mended"], &report["health"]["open"]),
            (&0.into(), &0.into())
        );
        let mut calls = Calls::new();
        for function in report["functions"].as_array().unwrap() {
            let made = function["calls"].as_u64().unwrap();
            if made > 0 {
                *calls.entry(function["name"].as_str().unwrap().to_owned()).or_default() += made;
            }
        }
        calls
    }
}

/// A selection, and what it leaves of a function's calls, if any of them.
type Case = (&'static str, fn(&str, u64) -> u64);

fn is_of_shapes_h(name: &str) -> bool {
    name.starts_with("Round::")
}

const CASES: [Case; 11] = [
    ("--teeperf-exclude=nosuch --teeperf-min-size=1", |_, calls| calls),
    ("--teeperf-exclude=helper", |name, calls| if name == "helper" { 0 } else { calls }),
    ("--teeperf-exclude='/^(Round|Shape)::(Round|Shape)/'", |name, calls| {
        if name.starts_with("Round::Round") || name.starts_with("Shape::Shape") { 0 } else { calls }
    }),
    ("--teeperf-exclude='Round::operator+'", |name, calls| {
        if name.starts_with("Round::operator+") { 0 } else { calls }
    }),
    (
        "--teeperf-exclude='twice<int>'",
        |name, calls| if name.starts_with("int twice<int>") { 0 } else { calls },
    ),
    ("--teeperf-exclude='(anonymous namespace)::*'", |name, calls| {
        if name.starts_with("(anonymous namespace)") { 0 } else { calls }
    }),
    ("--teeperf-only=main --teeperf-only=thrower", |name, calls| {
        if name == "main" || name == "thrower(int)" { calls } else { 0 }
    }),
    // Of two functions of one name that of the other file stays.
    ("--teeperf-exclude=file:second.c", |name, calls| match name {
        "second" => 0,
        "helper" => 20,
        _ => calls,
    }),
    ("--teeperf-exclude=file:shapes.h", |name, calls| if is_of_shapes_h(name) { 0 } else { calls }),
    ("--teeperf-only=file:small.h -g", |name, calls| {
        if name == "here" || name == "elsewhere" { calls } else { 0 }
    }),
    ("--teeperf-exclude=file:*.c --teeperf-exclude='/lambda|[$]_0|thrower/'", |name, calls| {
        let is_out = ["first", "second", "helper"].contains(&name);
        if is_out || name.contains("lambda") || name.contains("$_0") || name.contains("thrower") {
            0
        } else {
            calls
        }
    }),
];

#[test]
fn what_is_left_out_is_what_is_missing() {
    for compiler in Compiler::tried().into_iter().map(|compiler| compiler.cc) {
        let project = Project::new(compiler);
        // Further versions of a compiler do without optimisation as the first does.
        let is_further = compiler.contains('-');
        let flags = if is_further { &["-O2 -fPIC"][..] } else { &["-O0", "-O2 -fPIC"] };
        for flags in flags {
            let all = project.calls(flags, "");
            assert_eq!(all["main"], 1);
            for (options, left) in CASES {
                let expected: Calls = all
                    .iter()
                    .map(|(name, &calls)| (name.clone(), left(name, calls)))
                    .filter(|(_, calls)| *calls > 0)
                    .collect();
                assert_eq!(project.calls(flags, options), expected, "{compiler} {flags} {options}");
            }
        }
        // Addresses of hooks are in registers.
        let mut all = project.calls("-O1 -mcmodel=large", "");
        assert!(all.remove("helper").is_some());
        assert_eq!(project.calls("-O1 -mcmodel=large", "--teeperf-exclude=helper"), all);
        // What gcc inlines is hooked where it is, though its code be elsewhere.
        let expected = if compiler.starts_with("gcc") { (20, 30) } else { (0, 0) };
        let inlined = project.calls("-O2", "--teeperf-only=file:small.h");
        let of = |name: &str| inlined.get(name).copied().unwrap_or(0);
        assert_eq!((of("elsewhere"), of("here")), expected);
    }
}

#[test]
fn small_functions_are_left_out() {
    for compiler in Compiler::tried().into_iter().map(|compiler| compiler.cc) {
        let project = Project::new(compiler);
        let all = project.calls("-O1", "");
        let large = project.calls("-O1", "--teeperf-min-size=25");
        assert!(large.contains_key("main") && !large.contains_key("helper"), "{large:?}");
        assert!(large.iter().all(|(name, calls)| all.get(name) == Some(calls)), "{large:?}");
        // gcc hooks inlined functions that have no code there, and so no size.
        let none = project.calls("-O1", "--teeperf-min-size=100000");
        assert!(
            none.keys().all(|name| compiler.starts_with("gcc") && name == "elsewhere"),
            "{none:?}"
        );
    }
}

/// Every way to an object leads past it, and leaves the files that it would.
#[test]
fn files_are_those_of_the_compiler() {
    for compiler in Compiler::tried().into_iter().map(|compiler| compiler.cc) {
        let project = Project::new(compiler);
        let options = "--teeperf-only=first --teeperf-only=file:nosuch.c";
        for line in [
            "-c first.c",
            "-c first.c second.c",
            "-c -pipe first.c -o x.o",
            "-c -save-temps first.c",
            "-c -MD -MF d first.c",
            "-c -MMD first.c",
            "-c -x c - -o x.o <first.c",
            "-c -g first.c -gsplit-dwarf",
            "-c -g3 -O2 first.c",
            "-c -gdwarf-4 first.c",
            "-c -fsanitize=address,undefined -O1 first.c",
            "-S first.c second.c",
            "-S -g first.c -o x.s",
            "-c -ffunction-sections -fstack-usage first.c",
            "--coverage -c first.c",
            "@words",
        ] {
            let made = |words: &str| {
                let files = format!(
                    "rm -rf made; mkdir made; cp *.c *.h made; cd made; echo -c first.c >words
                     {words} {line} >said 2>&1; cat said; ls
                     for object in *.o; do test -f $object || continue; objdump -h $object | \
                     awk '/^ *[0-9]+ \\.debug/ {{print $2}}'; done"
                );
                project.sh(&files)
            };
            let with = made(&format!("$T cc {options}"));
            assert_eq!(with, made("$T cc"), "{compiler} {line}");
            project.sh(&format!("cd made; $T cc {options} {line} >said 2>&1"));
            let hooked = project.sh(
                "cd made; test -f first.o || test ! -f first.s || $CC -c first.s; test ! -f x.s || $CC -c x.s -o x.o
                 for object in first.o x.o; do test -f $object || continue; objdump -dr $object; done",
            );
            assert_eq!(
                hooked.matches("__cyg_profile_func_enter").count(),
                1,
                "{compiler} {line}: {hooked}"
            );
            assert_eq!(
                hooked.matches("__cyg_profile_func_exit").count(),
                1,
                "{compiler} {line}: {hooked}"
            );
        }
        assert_eq!(
            project
                .sh(&format!("$T cc {options} -S first.c -o - | grep -c 'cyg_profile_func_enter'"))
                .lines()
                .next(),
            Some(if compiler.starts_with("gcc") { "1" } else { "2" })
        );
        // A compiler that fails does so as ever.
        let said = project.refused(&format!("$T cc {options} -S nosuch.c"));
        assert_eq!(said, project.refused("$T cc -S nosuch.c"));
    }
}

#[test]
fn what_cannot_be_is_said() {
    for compiler in Compiler::tried().into_iter().map(|compiler| compiler.cc) {
        let project = Project::new(compiler);
        let said = project.refused("$T cc --teeperf-only=first -flto -c first.c");
        assert!(said.contains("-fno-lto") && said.contains("no_instrument_function"), "{said}");
        let has_lists = said.contains("gcc's own -finstrument-functions-exclude-file-list");
        assert_eq!(has_lists, compiler.starts_with("gcc"), "{said}");
        project.sh("$T cc --teeperf-only=first -flto -fno-lto -c first.c; $T cc -flto -c first.c");
        let said = project.refused("$T cc --teeperf-only=first -m32 -c first.c");
        assert!(said.contains("-m32"), "{said}");
        let said = project.refused("$T cc --teeperf-only=first -masm=intel -c first.c");
        assert!(said.contains("Intel"), "{said}");
        project.sh("$T cc -masm=intel -c first.c; $T cc --teeperf-only=first -m32 -E first.c");
    }
    let gcc = Project::new("gcc");
    let said = gcc.refused("$T cc --teeperf-after-inlining -c first.c");
    assert!(said.contains("clang") && said.contains("--teeperf-hooks=source"), "{said}");
    Project::new("clang").sh("$T cc --teeperf-after-inlining -c first.c");
}

#[test]
fn a_project_says_it_in_a_file() {
    let project = Project::new("gcc");
    let all = project.calls("-O1", "");
    project.folder.write("teeperf.toml", "[build]\nexclude = [\n    \"helper\",\n]\n");
    let some = project.calls("-O1", "--teeperf-exclude=first");
    assert_eq!(some.len() + 2, all.len());
    assert!(!some.contains_key("helper") && !some.contains_key("first"));
    // From a folder below, too; and not where another file is named.
    let hooks = "objdump -dr x.o | grep -c 'cyg_profile_func_enter'";
    assert_eq!(project.sh(&format!("mkdir b; cd b; $T cc -c ../second.c -o x.o; {hooks}")), "3\n");
    assert_eq!(project.sh(&format!("TEEPERF_CONFIG= $T cc -c second.c -o x.o; {hooks}")), "4\n");
    // One that everybody may write is anybody's.
    let said =
        project.sh(&format!("chmod o+w .; $T cc -c second.c -o x.o 2>&1; chmod o-w .; {hooks}"));
    assert!(said.contains("teeperf.toml is not used") && said.ends_with("\n4\n"), "{said}");
    // Options are seen where the compiler's are.
    project.folder.write("inner", "--teeperf-only=nosuch");
    project.folder.write("words", "@inner -c second.c");
    assert_eq!(project.sh(&format!("$T cc @words -o x.o; {hooks} || true")), "0\n");
    project.folder.write("other.toml", "[build]\nmin-sise = 3\n");
    let said = project.refused("TEEPERF_CONFIG=other.toml $T cc -c second.c");
    assert!(
        said.contains("other.toml") && said.contains("line 2") && said.contains("min-sise"),
        "{said}"
    );
    let said = project.refused("TEEPERF_CONFIG=no.toml $T cc -c second.c");
    assert!(said.contains("no.toml"), "{said}");
    project.sh(
        "TEEPERF_CONFIG=no.toml $T cc -E second.c; TEEPERF_CONFIG=no.toml $T cc second.o -r -o x.o",
    );
}

#[test]
fn plain_compilers_take_the_same_words() {
    for (compiler, option) in [("gcc", ""), ("clang", "--clang")] {
        let project = Project::new(compiler);
        let objects = project.sh(&format!(
            "export TEEPERF_CC_OPTIONS='--teeperf-hooks=source --teeperf-only=first'
             $CC -O1 $($T flags --cflags {option}) -c first.c; objdump -dr first.o"
        ));
        assert_eq!(objects.matches("__cyg_profile_func_enter").count(), 1, "{objects}");
    }
}

/// Each object knows of its own functions alone; what fits in any of a program's is said of none.
#[test]
fn patterns_that_fit_nothing_are_said_once() {
    for compiler in Compiler::tried().into_iter().map(|compiler| compiler.cc) {
        let project = Project::new(compiler);
        let options = "--teeperf-exclude=helper --teeperf-exclude=nosuch --teeperf-only=file:*.c --teeperf-only='/a\"b/'";
        project.sh(&format!(
            "$T cc {options} -c first.c second.c; $T c++ main.cc shapes.cc first.o second.o -o program
             $T cc -S {options} second.c"
        ));
        for files in ["first.o second.o", "program", "program first.o"] {
            let output = project.command(&format!("$T selection {files}")).output().unwrap();
            let told = String::from_utf8(output.stdout).unwrap();
            let expected = "fits              exclude helper\nfits no function  exclude nosuch\n\
                            fits no function  only /a\"b/\nfits              only file:*.c\n";
            assert_eq!((told.as_str(), output.status.code()), (expected, Some(1)), "{compiler}");
        }
        let plain = project.sh("$T cc -c first.c -o plain.o; $T selection plain.o 2>&1");
        assert!(plain.contains("no patterns"), "{plain}");
        let told = project.sh(
            "$T record -q -o r.teeperf --only main --exclude nothing --only @none.so -- ./program 2>&1 >out",
        );
        let told: Vec<_> = told.lines().collect();
        let of_filter = |rule: &str| {
            format!("teeperf: the filter {rule:?} has fitted no function that was seen")
        };
        // Of the build's patterns one line tells.
        assert_eq!(told.len(), 3, "{told:?}");
        assert_eq!(told[..2], ["only @none.so", "exclude nothing"].map(of_filter), "{told:?}");
        assert!(
            told[2].contains(
                r#""exclude nosuch", "only /a\"b/", with which ./program was built, fit no"#
            ),
            "{told:?}"
        );
    }
}

/// Who keeps objects makes another one when something else is wanted.
#[test]
fn with_ccache_in_front() {
    let project = Project::new("gcc");
    for (options, hooks) in
        [("", "4"), ("--teeperf-exclude=helper", "3"), ("--teeperf-only=first", "0")]
    {
        for _ in 0..2 {
            let found = project.sh(&format!(
                "export CCACHE_DIR=$PWD/ccache TEEPERF_CC='ccache gcc'; unset CCACHE_DISABLE
                 $T cc {options} -c second.c; objdump -dr second.o | grep -c cyg_profile_func_enter || true"
            ));
            assert_eq!(found.trim(), hooks, "{options}");
        }
    }
}

/// What is suggested takes most events away, in a build with it.
#[test]
fn a_suggestion_is_followed() {
    let project = Project::new("gcc");
    let all: u64 = project.calls("-O1", "").values().sum();
    let table = project.sh("$T suggest r.teeperf --events 60%");
    assert!(table.contains("of the events are gone"), "{table}");
    assert!(table.contains("Next: `teeperf suggest --write`"), "{table}");
    let told: serde_json::Value =
        serde_json::from_str(&project.sh("$T suggest r.teeperf --events 60% --json")).unwrap();
    let gone = told["events_removed"].as_f64().unwrap();
    assert!(gone >= 0.6, "{told}");
    project.sh("$T suggest r.teeperf --events 60% --toml >teeperf.toml; $T suggest r.teeperf --events 60% --flags >flags");
    let left: u64 = project.calls("-O1", "").values().sum();
    assert!((left as f64 - (1.0 - gone) * all as f64).abs() < 0.5, "{left} of {all}: {told}");
    let once = project.sh("cat teeperf.toml");
    project.sh("$T suggest r.teeperf --events 60% --write");
    // It is of the functions that are left; what was there stays.
    project.folder.write("teeperf.toml", "# Ours.\n[build]\nexclude = ['nosuch'] # none\n");
    project
        .sh("$T suggest r.teeperf --events 60% --write; $T suggest r.teeperf --events 60% --write");
    let written = project.sh("cat teeperf.toml");
    assert!(written.starts_with("# Ours.\n[build]\nexclude = ['nosuch',\n"), "{written}");
    assert!(
        once.contains("--write") && project.calls("-O1", "").values().sum::<u64>() < all,
        "{written}"
    );
    project.sh("mv teeperf.toml other");
    let flags = project.sh("cat flags");
    let project_flags = project
        .sh("export TEEPERF_CC_OPTIONS=\"$(cat flags)\"; $T flags --cflags >/dev/null; echo read");
    assert_eq!((project_flags.as_str(), flags.is_empty()), ("read\n", false));
}
