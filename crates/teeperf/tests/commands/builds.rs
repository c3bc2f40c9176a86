//! Whole builds with `teeperf cc` in the compiler's place: each tool that starts compilers in
//! its own way, with a real project of its own in `projects/`. The programs run alone as they
//! would without hooks, and recorded they show each call.

use crate::support::{Compiler, Folder, in_path, prepared, run, teeperf};
use std::path::Path;
use std::process::Command;

const TEEPERF: &str = env!("CARGO_BIN_EXE_teeperf");
const GCC: Compiler = Compiler::FAMILIES[0];
const CLANG: Compiler = Compiler::FAMILIES[1];

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
    fn sh(&self, compiler: Compiler, line: &str) -> String {
        run(self.shell(line).env("TEEPERF_CC", compiler.cc).env("TEEPERF_CXX", compiler.cxx))
    }

    /// A shell line in the project, with the wrapper in the compiler's place.
    fn shell(&self, line: &str) -> Command {
        let mut command = prepared(Command::new("sh"), &self.folder);
        command
            .current_dir(self.folder.path().join("p"))
            .args(["-e", "-c", line])
            .env("CC", format!("{TEEPERF} cc"))
            .env("CXX", format!("{TEEPERF} c++"))
            .env("CCACHE_DISABLE", "1");
        command
    }

    /// Records a program of the project; calls of each function by name.
    fn calls(&self, compiler: Compiler, program: &str) -> Calls {
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
    for compiler in Compiler::FAMILIES {
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
        GCC,
        "printf '#include <setjmp.h>\njmp_buf place; int far(int n) { return setjmp(place) ? 0 : n; }' >far.c
         printf 'int far(int); int main(void) { return far(3); }' >near.c
         gcc -O1 -fPIC -c far.c && gcc -shared -nostdlib far.o -o libfar.so",
    );
    for compiler in Compiler::FAMILIES {
        project.sh(compiler, "$CC near.c ./libfar.so -o near; ./near || test $? = 3");
    }
}

/// A program has wrappers of its own: it goes on with a library that has none.
#[test]
fn with_a_library_that_loses_its_hooks() {
    let project = Project::copy("make");
    project.sh(
        GCC,
        "printf '#include <setjmp.h>\njmp_buf place; int far(int n) { return setjmp(place) ? 0 : n; }' >far.c
         printf '#include <setjmp.h>\nint far(int); jmp_buf here; int main(void) { return setjmp(here) ? 1 : far(3); }' >near.c",
    );
    for compiler in Compiler::FAMILIES {
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
    for compiler in Compiler::FAMILIES {
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
            GCC,
            "export CCACHE_DIR=$PWD/ccache TEEPERF_CC='ccache gcc'; unset CCACHE_DISABLE; \
             rm -f *.o; make CC=\"$CC\"",
        );
    }
    project.calls(GCC, "program").assert("root_of", "program", 1000);
}

#[test]
fn cmake() {
    for compiler in Compiler::by_name_of_test() {
        let project = Project::copy("cmake");
        let configured =
            project.sh(compiler, "cmake -G Ninja -B build -D CMAKE_BUILD_TYPE=RelWithDebInfo 2>&1");
        let family = if compiler.is_clang() { "Clang" } else { "GNU" };
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
    project.sh(GCC, &format!("{TEEPERF} install-wrappers bin"));
    project.sh(
        GCC,
        "unset CC CXX; cmake -G 'Unix Makefiles' -B build -D CMAKE_C_COMPILER=$PWD/bin/teeperf-cc \
         -D CMAKE_CXX_COMPILER=$PWD/bin/teeperf-c++ 2>&1; cmake --build build 2>&1",
    );
    project.calls(GCC, "build/program").assert("next_number(int)", "program", 500);
}

#[test]
fn autoconf_automake_and_libtool() {
    for compiler in Compiler::by_name_of_test() {
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
    for compiler in Compiler::by_name_of_test() {
        let project = Project::copy("meson");
        let text = project.sh(compiler, "meson setup build 2>&1");
        let family = if compiler.is_clang() { "clang" } else { "gcc" };
        assert!(
            text.contains(&format!("compiler for the host machine: {TEEPERF} cc ({family}")),
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
    for compiler in Compiler::by_name_of_test() {
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
        GCC,
        &format!(
            "unset CC; make CC=gcc CFLAGS=\"$({TEEPERF} flags --cflags)\" \
             LDLIBS=\"$({TEEPERF} flags --libs) -lm\" program"
        ),
    );
    project.calls(GCC, "program").assert("root_of", "program", 1000);
    let output = teeperf(&project.folder)
        .args(["flags", "--cflags", "--clang"])
        .env("TEEPERF_CC", "clang")
        .env("TEEPERF_CC_OPTIONS", "--teeperf-hooks=source")
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

/// The compiler is what it was when the build was configured, whatever the environment says later; a build that is
/// configured anew without a choice has none.
#[test]
fn the_choice_of_a_configuration_holds() {
    let project = Project::copy("cmake");
    let builds = [
        ("cmake -G Ninja -B ninja", "cmake --build ninja", "ninja/program", &["", "/*"][..]),
        ("cmake -G 'Unix Makefiles' -B make", "cmake --build make", "make/program", &["/*"]),
    ];
    for (configure, build, program, gone) in builds {
        chosen_once(&project, configure, build, program, gone);
    }
    let meson = Project::copy("meson");
    chosen_once(&meson, "meson setup b", "ninja -C b", "b/program", &["", "/*"]);
}

/// Guards: the same of a configuration by autoconf.
#[test]
fn the_choice_of_a_configuration_by_autoconf_holds() {
    let project = Project::copy("autotools");
    // Without libtool, which asks most of what a configuration asks.
    let program = "bin_PROGRAMS = program\nprogram_SOURCES = main.c digits.c\n\
        check_PROGRAMS = selftest\nselftest_SOURCES = selftest.c digits.c\nTESTS = selftest\n";
    std::fs::write(project.folder.path().join("p/Makefile.am"), program).unwrap();
    run(&mut project.shell("sed -i '/AM_PROG_AR/d; /LT_INIT/d' configure.ac"));
    chosen_once(
        &project,
        "test -e configure || autoreconf -i; mkdir -p b; cd b; ../configure",
        "make -C b check",
        "b/program",
        &["/*"],
    );
}

/// Configures with clang, and builds without a word of it. Then the same without a choice, which
/// the compiler's family shows, where these parts of the folder are gone.
#[track_caller]
fn chosen_once(project: &Project, configure: &str, build: &str, program: &str, gone: &[&str]) {
    let is_clangs = || {
        let comment = project.shell(&format!("readelf -p .comment {program}")).output().unwrap();
        String::from_utf8_lossy(&comment.stdout).contains("clang")
    };
    let folder = program.split('/').next().unwrap();
    project.sh(CLANG, &format!("{configure} 2>&1"));
    run(&mut project.shell(&format!("{build} 2>&1")));
    assert!(is_clangs(), "{configure}");
    // A build that configures itself again, since its description changed, chooses nothing.
    let description = "CMakeLists.txt meson.build configure.ac";
    let change = format!("for file in {description} *.c; do test -e $file && touch $file; done");
    run(&mut project.shell(&format!("sleep 1; {change}; {build} 2>&1")));
    assert!(is_clangs(), "{configure}, again");
    let default = in_path("cc").unwrap();
    let is_default = default.to_string_lossy().contains("clang");
    for (again, gone) in gone.iter().enumerate() {
        if again > 0 {
            project.sh(CLANG, &format!("rm -r {folder}/*; {configure} 2>&1"));
        }
        run(&mut project.shell(&format!("rm -r {folder}{gone}; {configure} 2>&1")));
        run(&mut project.shell(&format!("{build} 2>&1")));
        assert_eq!(is_clangs(), is_default, "{configure}, {gone:?}");
    }
}

/// A build below a configured folder does not take that folder's compiler.
#[test]
fn a_configuration_below_another_chooses_for_itself() {
    let project = Project::copy("cmake");
    project.sh(CLANG, "cmake -B outer 2>&1");
    let inner = "cmake -B outer/inner >&2; cmake --build outer/inner >&2; \
                 readelf -p .comment outer/inner/program";
    let comment = run(&mut project.shell(inner));
    let is_default = in_path("cc").unwrap().to_string_lossy().contains("clang");
    assert_eq!(comment.contains("clang"), is_default, "{comment}");
}

/// Meson has Rust's compiler link by the C compiler, of which it takes words for options of the link.
#[test]
fn meson_with_rust() {
    let project = Project::copy("meson-rust");
    project.sh(GCC, &format!("{TEEPERF} install-wrappers bin"));
    for cc in ["$CC", "$PWD/bin/teeperf-cc", "$CC --teeperf-compiler=clang"] {
        project.sh(
            GCC,
            &format!("rm -rf build; CC=\"{cc}\" meson setup build 2>&1; ninja -C build 2>&1"),
        );
        assert_eq!(project.sh(GCC, "build/rust"), "42\n", "{cc}");
        project.calls(GCC, "build/rust").assert("answer", "rust", 1);
    }
}

/// Coroutines that hand on to each other: gcc before version 15 has to be told how.
#[test]
fn coroutines_that_hand_on() {
    let project = Project::copy("coroutines");
    for compiler in Compiler::FAMILIES {
        let plain = format!("{} -std=c++20 -fsyntax-only handing.cpp", compiler.cxx);
        if !project.shell(&plain).output().unwrap().status.success() {
            eprintln!("{} knows no coroutines of this library, so it was not tried", compiler.cxx);
            assert_ne!(compiler, GCC);
            continue;
        }
        for level in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
            project.sh(compiler, &format!("$CXX -std=c++20 {level} handing.cpp -o handing"));
            assert_eq!(project.sh(compiler, "./handing"), "100\n", "{compiler:?} {level}");
            let calls = project.calls(compiler, "handing");
            calls.assert("work()", "handing", 100);
            calls.assert("main", "handing", 1);
        }
    }
}

/// A static C++ library calls system calls by their number, from behind the archive of wrappers; split stacks do.
#[test]
fn libraries_that_the_compiler_adds() {
    let project = Project::copy("make");
    let source = "#include <cstdio>\n#include <future>\nint work() { return 3; }\n\
                  extern \"C\" int get() { return std::async(std::launch::async, work).get(); }\n";
    let main = "extern \"C\" int get(); int main() { return get() - 3; }\n";
    project.folder.write("p/future.cc", source);
    project.folder.write("p/main.cc", main);
    for line in [
        "$CXX -O1 -static-libstdc++ future.cc main.cc -o future",
        "$CXX -O1 -static future.cc main.cc -o future",
        "$CXX -O1 -shared -fPIC -static-libstdc++ future.cc -o libfuture.so && \
         $CXX -O1 main.cc ./libfuture.so -o future",
        "$CXX -O1 -fsplit-stack future.cc main.cc -o future",
    ] {
        project.sh(GCC, line);
        let calls = project.calls(GCC, "future");
        let module = if line.contains("-shared") { "libfuture.so" } else { "future" };
        calls.assert("work()", module, 1);
    }
    // A library without the C library has none of its functions to wrap.
    project.folder.write("p/bare_library.c", "void work(void) {}\n");
    project.sh(GCC, "$CC -shared -fPIC -nostdlib -Wl,-z,defs bare_library.c -o libbare.so");
}

/// A static C library refers to ways out that the program does not use, from behind the archive of wrappers.
#[test]
fn static_programs_of_each_c_library() {
    let project = Project::copy("make");
    let libraries = [("gcc", true), ("musl-gcc", false)];
    project.folder.write(
        "p/timer.c",
        "#include <signal.h>\n#include <time.h>\n#include <stdio.h>\n\
         static void quiet(union sigval value) { (void)value; }\n\
         int main(void) { timer_t timer; struct sigevent event = {0}; event.sigev_notify = SIGEV_THREAD;\n\
         event.sigev_notify_function = quiet; printf(\"%d\\n\", timer_create(CLOCK_MONOTONIC, &event, &timer));\n\
         return 0; }\n",
    );
    project.folder.write(
        "p/named.c",
        "#define _GNU_SOURCE\n#include <pthread.h>\n\
         int main(void) { return pthread_setname_np(pthread_self(), \"named\"); }\n",
    );
    project.folder.write("p/bare.c", "void work(void) {} int main(void) { work(); return 0; }\n");
    for (cc, is_needed) in libraries {
        if in_path(cc).is_none() {
            assert!(!is_needed, "{cc} is not installed");
            eprintln!("not installed, so not tried: {cc}");
            continue;
        }
        for source in ["bare", "timer", "named"] {
            for how in ["", "-static", "-static-pie", "-static --teeperf-no-hooks"] {
                let line = format!("$CC -O1 {how} {source}.c -o {source}; ./{source}");
                let output = project.shell(&line).env("TEEPERF_CC", cc).output().unwrap();
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{cc} {source} {how}: {said}");
            }
        }
        project.calls(GCC, "bare");
    }
}
