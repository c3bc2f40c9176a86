//! What `teeperf install-sdk` writes for programs: installed into a folder with spaces in its name, moved, and its examples
//! built as their comments say, with gcc and clang. Each is recorded, and each of its calls counts.

use crate::support::{Folder, prepared, run, teeperf};
use std::path::{Path, PathBuf};
use std::process::Command;

const TEEPERF: &str = env!("CARGO_BIN_EXE_teeperf");

/// An SDK that lies elsewhere than where it was installed.
struct Sdk {
    folder: Folder,
    place: PathBuf,
}

impl Sdk {
    fn moved() -> Self {
        let folder = Folder::new();
        run(teeperf(&folder).args(["install-sdk", "--programs", "first place/sdk"]));
        let place = folder.path().join("other place/my sdk");
        std::fs::create_dir(place.parent().unwrap()).unwrap();
        std::fs::rename(folder.path().join("first place/sdk"), &place).unwrap();
        Self { folder, place }
    }

    /// Runs a shell line in an example.
    #[track_caller]
    fn sh(&self, example: &str, settings: &[(&str, &str)], line: &str) -> String {
        let mut command = prepared(Command::new("sh"), &self.folder);
        command.current_dir(self.place.join("examples").join(example)).args(["-e", "-c", line]);
        command.env_remove("PKG_CONFIG_PATH").env_remove("CFLAGS").env("CCACHE_DISABLE", "1");
        run(command.env("TEEPERF", TEEPERF).envs(settings.iter().copied()))
    }

    /// Records a program of an example: calls by name, parameters left out, in the order of names.
    #[track_caller]
    fn calls(&self, example: &str, program: &str) -> Vec<(String, u64)> {
        let line = format!(
            "\"$TEEPERF\" record -q --force -o r.teeperf -- ./{program} >out; \"$TEEPERF\" report --json r.teeperf"
        );
        let report: serde_json::Value =
            serde_json::from_str(&self.sh(example, &[], &line)).unwrap();
        for what in ["lost", "mended", "open", "unopened"] {
            assert_eq!(report["health"][what], 0, "{program}: {what}");
        }
        let functions = report["functions"].as_array().unwrap().iter().map(|function| {
            let name = function["name"].as_str().unwrap();
            let name = name.split('(').next().unwrap().to_owned();
            (name, function["calls"].as_u64().unwrap())
        });
        // Samples may find functions without hooks. Compilers make others of the headers' static
        // objects.
        let mut calls: Vec<_> = functions
            .filter(|(name, calls)| *calls > 0 && !name.starts_with("_GLOBAL_"))
            .filter(|(name, _)| !name.starts_with("__"))
            .collect();
        calls.sort();
        calls
    }

    #[track_caller]
    fn assert_calls(&self, example: &str, program: &str, expected: &[(&str, u64)]) {
        let expected: Vec<_> =
            expected.iter().map(|&(name, calls)| (name.to_owned(), calls)).collect();
        assert_eq!(self.calls(example, program), expected, "{program}");
    }
}

#[test]
fn make_and_pkg_config() {
    let sdk = Sdk::moved();
    for compiler in ["gcc", "clang"] {
        let text = sdk.sh("make", &[], &format!("make CC={compiler} 2>&1"));
        assert!(!text.contains("warning"), "{text}");
        for program in ["program", "program-static", "program-shared"] {
            let calls = [("count", 3), ("count_primes", 3), ("is_prime", 600), ("main", 1)];
            sdk.assert_calls("make", program, &calls);
            assert_eq!(sdk.sh("make", &[], "cat out"), "133\n", "{program}");
        }
        // One runtime each: its own, or the SDK's.
        let runtime =
            |program: &str| sdk.sh("make", &[], &format!("ldd {program} | grep teeperf || true"));
        assert_eq!(runtime("program"), "");
        let place = sdk.place.canonicalize().unwrap();
        let library = runtime("program-shared");
        assert!(library.contains(place.to_str().unwrap()), "{library}");
        let plain = sdk.sh("make", &[], "./plain; nm plain");
        assert!(plain.starts_with("133\n") && !plain.contains("teeperf"), "{plain}");
        sdk.sh("make", &[], "make clean");
    }
}

#[test]
fn pkg_config_of_a_library_and_of_scopes() {
    let sdk = Sdk::moved();
    let source =
        "#include <teeperf.h>\nint work(int n) { TEEPERF_SCOPE(\"part\"); return n + 1; }\n";
    std::fs::write(sdk.place.join("examples/make/work.c"), source).unwrap();
    let main = "int work(int); int main(void) { return work(work(1)) - 3; }\n";
    std::fs::write(sdk.place.join("examples/make/main.c"), main).unwrap();
    let module = |name: &str| {
        format!("$(PKG_CONFIG_PATH=../../lib/pkgconfig pkg-config --cflags --libs {name})")
    };
    // The shell reads what pkg-config prints, as make does.
    for (compiler, suffix) in [("gcc", ""), ("clang", "-clang")] {
        let library = module(&format!("teeperf-library{suffix}"));
        sdk.sh(
            "make",
            &[],
            &format!(
                "eval \"{compiler} -fPIC -shared work.c -o libwork.so {library}\"
                 {compiler} main.c ./libwork.so -o loads
                 eval \"{compiler} main.c work.c -o scopes {}\"",
                module("teeperf-scopes")
            ),
        );
        sdk.assert_calls("make", "loads", &[("part", 2), ("work", 2)]);
        sdk.assert_calls("make", "scopes", &[("part", 2)]);
    }
}

#[test]
fn cmake() {
    let sdk = Sdk::moved();
    for compiler in ["g++", "clang++"] {
        let text = sdk.sh(
            "cmake",
            &[("CXX", compiler)],
            "rm -rf build; { cmake -B build && cmake --build build; } 2>&1",
        );
        assert!(!text.to_lowercase().contains("warning"), "{text}");
        for program in ["build/program", "build/program-shared"] {
            sdk.assert_calls(
                "cmake",
                program,
                &[("add", 6), ("length_of", 5), ("main", 1), ("one text", 5), ("words_of", 5)],
            );
            assert_eq!(sdk.sh("cmake", &[], "cat out"), "22 2\n", "{program}");
        }
        sdk.assert_calls("cmake", "build/scopes", &[("one text", 5)]);
        let library = sdk.sh("cmake", &[], "ldd build/program-shared | grep libteeperf.so");
        assert!(library.contains("my sdk/lib/libteeperf.so"), "{library}");
    }
}

/// Versions that do not go with this one, parts that there are none of, and other systems.
#[test]
fn cmake_says_what_does_not_go() {
    let sdk = Sdk::moved();
    let project = |line: &str, more: &str| {
        let folder = sdk.place.join("examples/other");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let text = format!(
            "cmake_minimum_required(VERSION 3.18)\nproject(x C)\n{more}\n{line}\nmessage(\"found ${{teeperf_FOUND}}\")\n"
        );
        std::fs::write(folder.join("CMakeLists.txt"), text).unwrap();
        sdk.sh("other", &[], "cmake -B build -D CMAKE_PREFIX_PATH=\"$PWD/../..\" 2>&1 || true")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let arm = "set(CMAKE_SYSTEM_PROCESSOR aarch64)";
    for (line, more, said) in [
        ("find_package(teeperf 0.1)", "", "found 1"),
        ("find_package(teeperf COMPONENTS hooks api)", "", "found 1"),
        ("find_package(teeperf 0.2)", "", "considered but not accepted"),
        ("find_package(teeperf 1)", "", "considered but not accepted"),
        ("find_package(teeperf COMPONENTS soup)", "", "its components are api and hooks"),
        (
            "find_package(teeperf)",
            arm,
            "ask for the header alone with find_package(teeperf COMPONENTS api)",
        ),
        ("find_package(teeperf COMPONENTS api)", arm, "found 1"),
    ] {
        let text = project(line, more);
        assert!(text.contains(said), "{line}: {text}");
    }
}

#[test]
fn meson() {
    let sdk = Sdk::moved();
    let calls = [("branch", 127), ("leaf", 64), ("main", 1)];
    let build = "{ meson setup build && meson compile -C build; } 2>&1";
    // Of the project's compilers one alone is clang.
    for compiler in ["gcc", "clang"] {
        let wrap = "mkdir -p subprojects && ln -sfn ../../.. subprojects/teeperf && cp ../../meson/teeperf.wrap subprojects/";
        sdk.sh("meson", &[("CC", compiler)], &format!("{wrap}; rm -rf build; {build}"));
        for program in ["build/program", "build/program-shared"] {
            sdk.assert_calls("meson", program, &calls);
            assert_eq!(sdk.sh("meson", &[], "cat out"), "32\n");
        }
    }
    let setup =
        build.replace("setup build", "setup build --pkg-config-path \"$PWD/../../lib/pkgconfig\"");
    sdk.sh("meson", &[("CC", "gcc")], &format!("rm -rf build subprojects; {setup}"));
    sdk.assert_calls("meson", "build/program", &calls);
}

#[test]
fn meson_with_cxx() {
    let sdk = Sdk::moved();
    sdk.sh("cmake", &[], "mkdir subprojects; ln -s ../../.. subprojects/teeperf; cp ../../meson/teeperf.wrap subprojects/");
    let text = "project('words', 'cpp', default_options: ['buildtype=debugoptimized', 'cpp_std=c++17'])\n\
                counting = shared_library('counting', 'counting.cc', dependencies: dependency('teeperf-library-cxx'))\n\
                executable('program', 'main.cc', link_with: counting, dependencies: dependency('teeperf-cxx'))\n";
    std::fs::write(sdk.place.join("examples/cmake/meson.build"), text).unwrap();
    for compiler in ["g++", "clang++"] {
        sdk.sh(
            "cmake",
            &[("CXX", compiler)],
            "rm -rf build; { meson setup build && meson compile -C build; } 2>&1",
        );
        sdk.assert_calls(
            "cmake",
            "build/program",
            &[("add", 6), ("length_of", 5), ("main", 1), ("one text", 5), ("words_of", 5)],
        );
    }
}

/// Everything that it has, in both languages, with the warnings that people turn on; with and without TEEPERF_DISABLE.
#[test]
fn the_header_is_clean() {
    let folder = Folder::new();
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../teeperf-rt/include");
    let source = r#"
        #include <teeperf.h>
        static int work(int n)
        {
            unsigned long length = 3;
            unsigned char small = 7;
            double load = 0.5;
            TEEPERF_SCOPE("whole");
            TEEPERF_MARK("frame");
            TEEPERF_COUNTER("queue", length);
            TEEPERF_COUNTER("small", small);
            TEEPERF_COUNTER("negative", -n);
            TEEPERF_COUNTER_REAL("load", load);
            {
                TEEPERF_SCOPE("one");
                TEEPERF_SCOPE("two");
                teeperf_note("text");
            }
            TEEPERF_BEGIN(part, "part");
            n += teeperf_recording();
            TEEPERF_END(part);
            teeperf_pause();
            teeperf_resume();
            teeperf_stack_new(1);
            teeperf_stack_switch(1, 0);
            n += teeperf_version() != 0;
            return n;
        }
        int main(void) { return work(2) != 2; }
"#;
    folder.write("all.c", source);
    folder.write("all.cc", source);
    let common = [
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Wconversion",
        "-Wsign-conversion",
        "-Wshadow",
        "-Wundef",
        "-Werror",
    ];
    let c = ["-Wstrict-prototypes", "-Wmissing-prototypes", "-Wcast-qual"];
    let cxx = ["-Wold-style-cast", "-Wzero-as-null-pointer-constant"];
    for (compiler, file, standards, more) in [
        ("gcc", "all.c", &["c99", "c11", "gnu17"], &c[..]),
        ("clang", "all.c", &["c99", "c11", "gnu17"], &c),
        ("g++", "all.cc", &["c++11", "c++17", "c++20"], &cxx),
        ("clang++", "all.cc", &["c++11", "c++17", "c++20"], &cxx),
    ] {
        for standard in standards {
            for disabled in [false, true] {
                let mut command = prepared(Command::new(compiler), &folder);
                command.arg(format!("-std={standard}")).args(common).args(more).arg("-O1");
                command.args(["-o", "all", file, "-I"]).arg(&header);
                if disabled {
                    command.arg("-DTEEPERF_DISABLE");
                }
                run(&mut command);
                run(&mut prepared(Command::new("./all"), &folder));
                let symbols = run(prepared(Command::new("nm"), &folder).arg("all"));
                assert_eq!(symbols.contains("teeperf_rt_"), !disabled, "{compiler} {standard}");
            }
        }
    }
}

#[test]
fn without_a_rust_compiler_programs_have_theirs() {
    let folder = Folder::new();
    let mut command = teeperf(&folder);
    let text = run(command.args(["install-sdk", "sdk"]).env("RUSTC", "/nowhere/rustc"));
    assert!(
        text.contains("sdk/README.md\nleft out for code without a system: no Rust compiler"),
        "{text}"
    );
    assert!(folder.path().join("sdk/lib/pkgconfig/teeperf.pc").exists());
    assert!(!folder.path().join("sdk/include/teeperf_tee.h").exists());
    let readme = std::fs::read_to_string(folder.path().join("sdk/README.md")).unwrap();
    assert!(readme.contains(concat!("# SDK of teeperf ", env!("CARGO_PKG_VERSION"))), "{readme}");
    // Who asks for it is told that it cannot be.
    let mut command = teeperf(&folder);
    command.args(["install-sdk", "sdk", "--target", "x86_64"]).env("RUSTC", "/nowhere/rustc");
    assert_eq!(command.output().unwrap().status.code(), Some(1));
}
