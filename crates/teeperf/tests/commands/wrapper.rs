//! `teeperf cc` against a compiler that only says how it was called: what is added when, and
//! that every other use arrives as it was typed.

use crate::support::{Folder, teeperf};
use std::os::unix::process::ExitStatusExt;

/// A compiler that prints its arguments, one a line, and answers `-E -v` like gcc or clang.
fn fake(folder: &Folder, family: &str) -> String {
    let system = folder.path().join("system/include");
    std::fs::create_dir_all(&system).unwrap();
    let script = format!(
        "#!/bin/sh\n\
         case \"$*\" in *'-E -v -x '*) echo '{family} version 99.1' >&2\n\
         echo '#include <...> search starts here:' >&2; echo ' {}' >&2\n\
         echo 'End of search list.' >&2; exit 0;; *-print-prog-name=as) echo as; exit 0;; esac\n\
         for word in \"$@\"; do printf '%s\\n' \"$word\"; done\n\
         exit \"${{FAKE_STATUS:-0}}\"\n",
        system.display()
    );
    folder.program(&format!("fake-{family}"), &script)
}

/// The compiler's arguments, for hooks of the source.
fn called(folder: &Folder, family: &str, driver: &str, line: &str) -> Vec<String> {
    let compiler = fake(folder, family);
    let output = teeperf(folder)
        .arg(driver)
        .args(line.split_whitespace())
        .env("TEEPERF_CC_OPTIONS", "--teeperf-hooks=source")
        .env("TEEPERF_CC", &compiler)
        .env("TEEPERF_CXX", &compiler)
        .output()
        .unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The words that were added; what was typed must be there unchanged, in one piece.
fn added(folder: &Folder, family: &str, driver: &str, line: &str) -> Vec<String> {
    let mut words = called(folder, family, driver, line);
    let typed: Vec<&str> = line.split_whitespace().collect();
    if !typed.is_empty() {
        let at = words.windows(typed.len()).position(|window| window == typed);
        words.drain(at.expect(line)..).take(typed.len()).for_each(drop);
    }
    words
}

fn has(words: &[String], part: &str) -> bool {
    words.iter().any(|word| word.contains(part))
}

#[test]
fn uses_that_make_no_code_arrive_as_typed() {
    let folder = Folder::new();
    for family in ["gcc", "clang"] {
        for line in [
            "",
            "--version",
            "-v",
            "-E a.c",
            "-E -",
            "-M a.c",
            "-MM -MG a.c",
            "-###",
            "-### a.c",
            "-fsyntax-only a.c",
            "-dumpmachine",
            "-dumpversion",
            "-print-search-dirs",
            "--help",
            "-print-file-name=libc.so",
            "-Wl,--version",
            "-cc1 -emit-obj a.c",
            "-E -dM -x c /dev/null",
            "-qversion",
            "-V",
            "--print-sysroot",
            "--target-help",
            "-dumpspecs",
            "--help=warnings",
        ] {
            for driver in ["cc", "c++"] {
                assert_eq!(
                    added(&folder, family, driver, line),
                    [""; 0],
                    "{family} {driver} {line}"
                );
            }
        }
    }
}

#[test]
fn code_gets_hooks() {
    let folder = Folder::new();
    for line in [
        "-c a.c",
        "-c a.c b.c",
        "-S a.c",
        "-x c -c -",
        "-O2 -g -c a.c -o a.o",
        "-c -MD -MF a.d a.c",
        "-x c-header a.h",
        "-flto -c a.c",
        "-flto=thin -c a.c",
        "-c -v a.c",
        "-c -pipe a.c -std=c11",
    ] {
        let words = added(&folder, "gcc", "cc", line);
        assert_eq!(words[0], "-finstrument-functions", "{line}");
        assert!(words[1].starts_with("-finstrument-functions-exclude-file-list="), "{line}");
        assert!(words[1].contains("system/include"), "{line}");
        assert!(!has(&words, ".o"), "nothing is linked: {line}");
        let words = added(&folder, "clang", "cc", line);
        assert_eq!(words[0], "-finstrument-functions-after-inlining", "{line}");
        assert!(!has(&words, "exclude") && !has(&words, ".o"), "{line}");
    }
}

#[test]
fn links_get_stub_and_runtime() {
    let folder = Folder::new();
    for (line, runtime) in [
        ("a.o -o a", true),
        ("-static a.o", true),
        ("-static-pie a.o", true),
        ("-pie a.o -lfoo", true),
        ("-flto a.o", true),
        ("-shared a.o -o liba.so", false),
        ("-shared -nostdlib a.o -o liba.so", false),
        ("-nostdlib a.o", false),
        ("-nostartfiles -T link.ld a.o", false),
        ("a.s -o a", true),
    ] {
        for family in ["gcc", "clang"] {
            let words = added(&folder, family, "cc", line);
            assert!(has(&words, "teeperf_stub.o"), "{line}");
            assert_eq!(has(&words, "teeperf_rt.o"), runtime, "{line}");
            assert!(!has(&words, "finstrument"), "{line}");
        }
    }
    assert_eq!(added(&folder, "gcc", "cc", "-r a.o b.o -o c.o"), [""; 0]);
    assert_eq!(added(&folder, "gcc", "cc", "-Wl,-r a.o b.o -o c.o"), [""; 0]);
    assert_eq!(added(&folder, "gcc", "cc", "-c a.s"), [""; 0]);
    assert_eq!(added(&folder, "gcc", "cc", "-c a.S b.s"), [""; 0]);
    let words = added(&folder, "gcc", "cc", "a.c -o a");
    assert!(has(&words, "-finstrument-functions") && has(&words, "teeperf_rt.o"));
}

#[test]
fn what_the_user_says_of_hooks_stands() {
    let folder = Folder::new();
    for line in [
        "-c a.c -fno-instrument-functions",
        "-c a.c -finstrument-functions",
        "-finstrument-functions-after-inlining -c a.c",
    ] {
        assert_eq!(added(&folder, "gcc", "cc", line), [""; 0], "{line}");
    }
    let words = added(&folder, "gcc", "cc", "a.c -fno-instrument-functions -o a");
    assert!(has(&words, "teeperf_stub.o") && !has(&words, "finstrument"));
}

#[test]
fn cxx_sources_of_clang_get_quiet_library_headers() {
    let folder = Folder::new();
    for (driver, line, quiet) in [
        ("c++", "-c a.cc", true),
        ("c++", "-c a.c", true),
        ("cc", "-c a.cpp", true),
        ("cc", "-c a.c", false),
        ("c++", "-fmodules -c a.cc", false),
    ] {
        assert_eq!(has(&added(&folder, "clang", driver, line), "clang-headers"), quiet, "{line}");
    }
    assert!(!has(&added(&folder, "gcc", "c++", "-c a.cc"), "clang-headers"));
}

#[test]
fn response_files_are_looked_into_and_handed_on() {
    let folder = Folder::new();
    folder.write("compile.rsp", "-c 'a.c' -o a.o");
    folder.write("nested.rsp", "-shared @objects.rsp");
    folder.write("objects.rsp", "a.o b.o");
    folder.write("check.rsp", "-E a.c");
    let words = added(&folder, "gcc", "cc", "@compile.rsp");
    assert!(has(&words, "-finstrument-functions") && !has(&words, ".o"));
    let words = added(&folder, "gcc", "cc", "@nested.rsp");
    assert!(has(&words, "teeperf_stub.o") && !has(&words, "teeperf_rt.o"));
    assert_eq!(added(&folder, "gcc", "cc", "@check.rsp"), [""; 0]);
}

#[test]
fn own_options_select_what_is_hooked() {
    let folder = Folder::new();
    let words = called(&folder, "gcc", "cc", "-c a.c --teeperf-exclude=tiny");
    assert!(has(&words, "-B") && has(&words, "/selection-") && !has(&words, "-g1"), "{words:?}");
    assert_eq!(words[words.len() - 2..], ["-c", "a.c"]);
    let words = called(&folder, "gcc", "cc", "-c a.c --teeperf-only=file:a.c");
    assert_eq!(words[words.len() - 4..], ["-c", "a.c", "-g1", "-dA"]);
    let words = called(&folder, "gcc", "cc", "-c a.c -g --teeperf-only=file:a.c");
    assert_eq!(words[words.len() - 4..], ["-c", "a.c", "-g", "-dA"]);
    // Whatever the user says of it: it would not be filtered.
    let words = called(&folder, "clang", "cc", "-c a.c -fintegrated-as --teeperf-only=file:a.c");
    assert_eq!(words[words.len() - 3..], ["-fintegrated-as", "-g1", "-fno-integrated-as"]);
    assert_eq!(called(&folder, "gcc", "cc", "-c a.c --teeperf-no-hooks"), ["-c", "a.c"]);
    assert!(!has(&called(&folder, "gcc", "cc", "-c a.c --teeperf-system-headers"), "exclude"));
    assert!(!has(&called(&folder, "gcc", "cc", "a.o --teeperf-only=f"), "selection-"));
}

#[test]
fn own_options_come_from_the_environment_too() {
    let folder = Folder::new();
    let output = teeperf(&folder)
        .args(["cc", "-c", "a.c"])
        .env("TEEPERF_CC", fake(&folder, "gcc"))
        .env("TEEPERF_CC_OPTIONS", "--teeperf-no-hooks")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "-c\na.c\n");
    let output = teeperf(&folder)
        .args(["cc", "-c", "a.c"])
        .env("TEEPERF_CC_OPTIONS", "-O2")
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("TEEPERF_CC_OPTIONS"));
}

#[test]
fn the_compiler_is_found_named_and_never_the_wrapper_itself() {
    let folder = Folder::new();
    let compiler = fake(&folder, "gcc");
    let run = |command: &mut std::process::Command| {
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr),
        )
    };
    let named = format!("--teeperf-compiler={compiler}");
    assert_eq!(
        run(teeperf(&folder).args(["cc", &named, "-E", "x.c"])),
        (Some(0), "-E\nx.c\n".into())
    );
    let words = format!("{compiler} -one");
    let (_, text) = run(teeperf(&folder).args(["cc", "-E", "x.c"]).env("TEEPERF_CC", words));
    assert_eq!(text, "-one\n-E\nx.c\n");

    // A PATH that leads to the wrapper first.
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_teeperf"), bin.join("cc")).unwrap();
    std::fs::copy(&compiler, bin.join("gcc")).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let (_, text) = run(teeperf(&folder)
        .args(["cc", "-E", "x.c"])
        .env("PATH", bin.display().to_string() + ":/bin"));
    assert!(!text.contains("teeperf"), "{text}");
    let (code, text) = run(teeperf(&folder)
        .args(["cc", "-E"])
        .env("PATH", path)
        .env("TEEPERF_CC", bin.join("cc")));
    assert_eq!(code, Some(1));
    assert!(text.contains("wrapper itself"), "{text}");

    let (code, text) = run(teeperf(&folder).arg("cc").env("TEEPERF_CC", "no-such-compiler"));
    assert_eq!(code, Some(1));
    assert!(text.contains("no-such-compiler"), "{text}");
    let (code, text) = run(teeperf(&folder).arg("cc").env("PATH", folder.path()));
    assert_eq!(code, Some(1));
    assert!(text.contains("no compiler found"), "{text}");
}

#[test]
fn the_exit_status_is_the_compilers() {
    let folder = Folder::new();
    let compiler = fake(&folder, "gcc");
    let status = |command: &mut std::process::Command| command.output().unwrap().status;
    let mut run = teeperf(&folder);
    run.args(["cc", "-c", "a.c"]).env("TEEPERF_CC", &compiler).env("FAKE_STATUS", "37");
    assert_eq!(status(&mut run).code(), Some(37));
    let killed = folder.program("killed", "#!/bin/sh\nkill -TERM $$\n");
    let mut run = teeperf(&folder);
    run.args(["cc", "-E", "a.c"]).env("TEEPERF_CC", killed);
    assert_eq!(status(&mut run).signal(), Some(15));
}

#[test]
fn a_compiler_that_is_neither_is_refused_only_when_it_matters() {
    let folder = Folder::new();
    let odd = folder.program("odd", "#!/bin/sh\necho \"$@\"\n");
    let run =
        |line: &[&str]| teeperf(&folder).arg("cc").args(line).env("TEEPERF_CC", &odd).output();
    assert!(run(&["-E", "a.c"]).unwrap().status.success());
    let output = run(&["-c", "a.c"]).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("neither gcc nor clang"));
}

#[test]
fn a_link_by_the_wrappers_name_is_the_wrapper() {
    let folder = Folder::new();
    let compiler = fake(&folder, "gcc");
    let made = teeperf(&folder).args(["install-wrappers", "wrappers"]).output().unwrap();
    assert!(made.status.success());
    let again = teeperf(&folder).args(["install-wrappers", "wrappers"]).output().unwrap();
    assert!(again.status.success(), "links are made anew");
    for (name, variable) in [("teeperf-cc", "TEEPERF_CC"), ("teeperf-c++", "TEEPERF_CXX")] {
        let output = crate::support::prepared(
            std::process::Command::new(folder.path().join("wrappers").join(name)),
            &folder,
        )
        .args(["--help", "-c", "a.c"])
        .env(variable, &compiler)
        .output()
        .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "--help\n-c\na.c\n");
    }
    folder.write("kept/teeperf-cc", "mine");
    let refused = teeperf(&folder).args(["install-wrappers", "kept"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(std::fs::read(folder.path().join("kept/teeperf-cc")).unwrap(), b"mine");
}
