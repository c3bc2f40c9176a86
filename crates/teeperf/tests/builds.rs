//! Whole builds with `teeperf cc` in the compiler's place: each tool that starts compilers in
//! its own way, with a real project of its own in `projects/`. The programs run alone as they
//! would without hooks, and recorded they show each call.

mod support;

use std::path::Path;
use std::process::Command;
use support::{Folder, prepared, run, teeperf};

const TEEPERF: &str = env!("CARGO_BIN_EXE_teeperf");

/// A copy of a project, and the environment in which its build finds our compilers.
struct Project {
    folder: Folder,
}

impl Project {
    fn copy(name: &str) -> Self {
        let folder = Folder::new();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/projects").join(name);
        let copied = Command::new("cp").arg("-r").arg(source).arg(folder.path().join("p")).status();
        assert!(copied.unwrap().success());
        Self { folder }
    }

    /// Runs a shell line in the project, with this compiler behind the wrapper.
    fn sh(&self, compiler: &str, line: &str) -> String {
        let (cc, cxx) = match compiler {
            "gcc" => ("gcc", "g++"),
            _ => ("clang", "clang++"),
        };
        let mut command = prepared(Command::new("sh"), &self.folder);
        command
            .current_dir(self.folder.path().join("p"))
            .args(["-e", "-c", line])
            .env("CC", format!("{TEEPERF} cc"))
            .env("CXX", format!("{TEEPERF} c++"))
            .env("TEEPERF_CC", cc)
            .env("TEEPERF_CXX", cxx)
            .env("CCACHE_DISABLE", "1");
        run(&mut command)
    }

    /// Records a program of the project; calls of each function by name.
    fn calls(&self, compiler: &str, program: &str) -> Calls {
        self.sh(compiler, &format!("{TEEPERF} record -q -o r.teeperf -- ./{program}"));
        let text = self.sh(compiler, &format!("{TEEPERF} report --json r.teeperf"));
        Calls(serde_json::from_str(&text).unwrap())
    }
}

/// A report, to be asked for calls.
struct Calls(serde_json::Value);

impl Calls {
    #[track_caller]
    fn assert(&self, function: &str, module: &str, calls: u64) {
        let functions = self.0["functions"].as_array().unwrap();
        let found: Vec<_> = functions.iter().filter(|f| f["name"] == function).collect();
        assert_eq!(found.len(), 1, "{function} in {functions:#?}");
        assert_eq!(found[0]["calls"], calls, "{function}");
        assert_eq!(found[0]["module"], module, "{function}");
    }

    #[track_caller]
    fn assert_none_has(&self, part: &str) {
        let names: Vec<_> = self.0["functions"].as_array().unwrap().iter().collect();
        let with = names.iter().filter(|f| f["name"].as_str().unwrap().contains(part)).count();
        assert_eq!(with, 0, "{part} in {names:#?}");
    }
}

#[test]
fn make() {
    for compiler in ["gcc", "clang"] {
        let project = Project::copy("make");
        project.sh(compiler, "make -j2 CC=\"$CC\"");
        for program in ["program", "static"] {
            assert_eq!(project.sh(compiler, &format!("./{program}")), "21097.456\n");
            let calls = project.calls(compiler, program);
            calls.assert("main", program, 1);
            calls.assert("sum_of_roots", program, 1);
            calls.assert("root_of", program, 1000);
        }
        // Dependency files are what they would be: a second run has nothing to do, and a
        // changed header is noticed.
        assert!(project.sh(compiler, "make CC=\"$CC\"").contains("Nothing to be done"));
        assert!(project.sh(compiler, "touch sums.h; make CC=\"$CC\"").contains("sums.c"));
    }
}

/// What a shared library without hooks refers to has no version where it was linked without naming the library
/// that has it: the linker takes that for a reference to the wrapper.
#[test]
fn with_a_library_that_names_no_other() {
    let project = Project::copy("make");
    project.sh(
        "gcc",
        "printf '#include <setjmp.h>\njmp_buf place; int far(int n) { return setjmp(place) ? 0 : n; }' >far.c
         printf 'int far(int); int main(void) { return far(3); }' >near.c
         gcc -O1 -fPIC -c far.c && gcc -shared -nostdlib far.o -o libfar.so",
    );
    for compiler in ["gcc", "clang"] {
        project.sh(compiler, "$CC near.c ./libfar.so -o near; ./near || test $? = 3");
    }
}

/// A program has wrappers of its own: it goes on with a library that has none.
#[test]
fn with_a_library_that_loses_its_hooks() {
    let project = Project::copy("make");
    project.sh(
        "gcc",
        "printf '#include <setjmp.h>\njmp_buf place; int far(int n) { return setjmp(place) ? 0 : n; }' >far.c
         printf '#include <setjmp.h>\nint far(int); jmp_buf here; int main(void) { return setjmp(here) ? 1 : far(3); }' >near.c",
    );
    for compiler in ["gcc", "clang"] {
        project.sh(
            compiler,
            "$CC -fPIC -shared far.c -o libfar.so; $CC near.c ./libfar.so -o near; ./near || test $? = 3
             gcc -fPIC -shared far.c -o libfar.so; ./near || test $? = 3",
        );
    }
}

/// Both count: `gmon.out` is there as well.
#[test]
fn make_with_pg() {
    for compiler in ["gcc", "clang"] {
        let project = Project::copy("make");
        project.sh(compiler, "make CC=\"$CC\" CFLAGS='-O2 -pg' LDFLAGS=-pg program");
        let calls = project.calls(compiler, "program");
        calls.assert("main", "program", 1);
        calls.assert("root_of", "program", 1000);
        project.sh(compiler, "gprof -b -p ./program gmon.out | grep -w 1000 | grep -w root_of");
    }
}

#[test]
fn make_with_ccache_in_front() {
    let project = Project::copy("make");
    for _ in 0..2 {
        project.sh(
            "gcc",
            "export CCACHE_DIR=$PWD/ccache TEEPERF_CC='ccache gcc'; unset CCACHE_DISABLE; \
             rm -f *.o; make CC=\"$CC\"",
        );
    }
    project.calls("gcc", "program").assert("root_of", "program", 1000);
}

#[test]
fn cmake() {
    for compiler in ["gcc", "clang"] {
        let project = Project::copy("cmake");
        let configured =
            project.sh(compiler, "cmake -G Ninja -B build -D CMAKE_BUILD_TYPE=RelWithDebInfo 2>&1");
        let family = if compiler == "gcc" { "GNU" } else { "Clang" };
        assert!(
            configured.contains(&format!("C compiler identification is {family}")),
            "{configured}"
        );
        project.sh(compiler, "cmake --build build 2>&1");
        assert_eq!(project.sh(compiler, "build/program"), "211\n");
        let calls = project.calls(compiler, "build/program");
        calls.assert("main", "program", 1);
        calls.assert("next_number(int)", "program", 500);
        let count = "count_distinct(std::vector<std::__cxx11::basic_string<char, std::char_traits<char>, \
                     std::allocator<char> >, std::allocator<std::__cxx11::basic_string<char, \
                     std::char_traits<char>, std::allocator<char> > > >)";
        calls.assert(count, "libcounting.so", 1);
        calls.assert_none_has("__introsort");
        calls.assert_none_has("push_back");
        project.calls(compiler, "build/whole").assert("next_number(int)", "whole", 500);
    }
}

#[test]
fn cmake_with_make_and_wrappers_by_name() {
    let project = Project::copy("cmake");
    project.sh("gcc", &format!("{TEEPERF} install-wrappers bin"));
    project.sh(
        "gcc",
        "unset CC CXX; cmake -G 'Unix Makefiles' -B build -D CMAKE_C_COMPILER=$PWD/bin/teeperf-cc \
         -D CMAKE_CXX_COMPILER=$PWD/bin/teeperf-c++ 2>&1; cmake --build build 2>&1",
    );
    project.calls("gcc", "build/program").assert("next_number(int)", "program", 500);
}

#[test]
fn autoconf_automake_and_libtool() {
    for compiler in ["gcc", "clang"] {
        let project = Project::copy("autotools");
        project.sh(
            compiler,
            "autoreconf -i 2>&1; mkdir b; cd b; ../configure 2>&1; make -j2 check 2>&1",
        );
        assert_eq!(project.sh(compiler, "b/program"), "45\n");
        let calls = project.calls(compiler, "b/program");
        calls.assert("main", "program", 1);
        calls.assert("digit_sum", "libdigits.so.1.0.0", 10);
    }
}

#[test]
fn meson() {
    for compiler in ["gcc", "clang"] {
        let project = Project::copy("meson");
        let text = project.sh(compiler, "meson setup build 2>&1");
        assert!(
            text.contains(&format!("compiler for the host machine: {TEEPERF} cc ({compiler}")),
            "{text}"
        );
        project.sh(compiler, "ninja -C build 2>&1; meson test -C build 2>&1");
        let calls = project.calls(compiler, "build/program");
        calls.assert("area_of", "libarea.so", 3);
        calls.assert("total_area()", "program", 1);
        calls.assert_none_has("std::");
    }
}

#[test]
fn cargo_with_the_cc_crate() {
    for compiler in ["gcc", "clang"] {
        let project = Project::copy("cargo");
        // Rust's own link brings the runtime in when it goes through the wrapper too.
        project.sh(
            compiler,
            &format!(
                "{TEEPERF} install-wrappers bin; export CARGO_TARGET_DIR=$PWD/target; unset RUSTFLAGS; \
                 CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=$PWD/bin/teeperf-cc cargo build 2>&1"
            ),
        );
        assert_eq!(project.sh(compiler, "target/debug/program"), "112\n");
        let calls = project.calls(compiler, "target/debug/program");
        calls.assert("collatz_length", "program", 1);
        calls.assert("step", "program", 111);
    }
}

#[test]
fn flags_set_by_hand() {
    let project = Project::copy("make");
    project.sh(
        "gcc",
        &format!(
            "unset CC; make CC=gcc CFLAGS=\"$({TEEPERF} flags --cflags)\" \
             LDLIBS=\"$({TEEPERF} flags --libs) -lm\" program"
        ),
    );
    project.calls("gcc", "program").assert("root_of", "program", 1000);
    let output = teeperf(&project.folder)
        .args(["flags", "--cflags", "--clang"])
        .env("TEEPERF_CC", "clang")
        .output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(
        text.starts_with(
            "-finstrument-functions-after-inlining -fno-optimize-sibling-calls -isystem "
        ),
        "{text}"
    );
    let output = teeperf(&project.folder)
        .args(["flags", "--cflags", "--clang"])
        .env("TEEPERF_CC", "gcc")
        .output();
    assert_eq!(output.unwrap().status.code(), Some(1));
    assert_eq!(teeperf(&project.folder).arg("flags").output().unwrap().status.code(), Some(2));
}
