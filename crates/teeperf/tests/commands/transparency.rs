//! `teeperf cc` beside the compiler itself, both real: every use that makes no code says and
//! writes exactly the same, and what is compiled differs in its hooks alone.

use crate::support::{Compiler, Folder, in_path, prepared, run};
use std::io::Write;
use std::process::{Command, Stdio};

const TEEPERF: &str = env!("CARGO_BIN_EXE_teeperf");
const SOURCE: &str = "#include <string.h>\n#include \"a.h\"\n\
    int length(const char *text) { return LENGTH(text); }\n";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("a.c", SOURCE);
    folder.write("a.h", "#define LENGTH(text) (int)strlen(text)\n");
    folder.write("a.s", ".globl there\nthere: ret\n.section .note.GNU-stack,\"\",@progbits\n");
    folder.write(
        "b.S",
        "#define NAME here\n.globl NAME\nNAME: ret\n.section .note.GNU-stack,\"\",@progbits\n",
    );
    folder.write("main.c", "int main(void) { return 0; }\n");
    folder.write("bad.c", "int f(void) { return undeclared; }\n");
    folder.write("words.rsp", "-E -DX='a b' a.c");
    folder
}

/// Status, output and errors of a compiler fed `input`, and what it wrote to `out`.
fn outcome(folder: &Folder, program: &str, first: &[&str], line: &str, real: &str) -> [String; 4] {
    let out = folder.path().join("out");
    let _ = std::fs::remove_file(&out);
    let mut child = prepared(Command::new(program), folder)
        .args(first)
        .args(line.split_whitespace())
        .env("TEEPERF_CC", real)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A compiler that does not read its input closes it early.
    let _ = child.stdin.take().unwrap().write_all(SOURCE.as_bytes());
    let done = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| masked(&String::from_utf8_lossy(bytes));
    let written = std::fs::read(&out).map(|bytes| text(&bytes)).unwrap_or_default();
    [done.status.to_string(), text(&done.stdout), text(&done.stderr), written]
}

/// Names of temporary files are never twice the same.
fn masked(text: &str) -> String {
    let mut parts = text.split("/tmp/");
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(part.len());
        masked += "/tmp/*";
        masked += &part[end..];
    }
    masked
}

#[test]
fn every_use_that_makes_no_code_is_the_compilers_own() {
    let folder = folder();
    for Compiler { cc: compiler, .. } in Compiler::tried() {
        for line in [
            "--version",
            "-v",
            "",
            "-E a.c",
            "-E - ",
            "-E -dM -x c /dev/null",
            "-E -P a.c -o out",
            "-M a.c",
            "-MM a.c",
            "-MM -MT x a.c",
            "-M -MG a.c",
            "-E -MD -MF out a.c",
            "-fsyntax-only a.c",
            "-fsyntax-only bad.c",
            "-dumpmachine",
            "-dumpversion",
            "-print-search-dirs",
            "-print-file-name=libc.so",
            "-print-prog-name=ld",
            "-print-libgcc-file-name",
            "--help",
            "-### -c a.c",
            "-Wl,--version",
            "-no-such-option -E a.c",
            "@words.rsp",
            "-fsyntax-only -x c -",
            "-print-multi-lib",
            "-print-sysroot",
            "-E b.S",
            "-E -v a.c",
        ] {
            let with = outcome(&folder, TEEPERF, &["cc"], line, compiler);
            let without = outcome(&folder, compiler, &[], line, compiler);
            assert_eq!(with, without, "{compiler} {line}");
        }
    }
}

#[test]
fn objects_without_functions_to_hook_are_the_same() {
    let folder = folder();
    for Compiler { cc: compiler, .. } in Compiler::tried() {
        for line in [
            "-c a.s -o out",
            "-c b.S -o out",
            "-c b.S -MD -MF out",
            "-c -x assembler a.s -o out",
            "-c a.c -fno-instrument-functions -o out",
            "-Werror -c a.s -o out",
        ] {
            if compiler.starts_with("clang") && line.contains("-fno-instrument") {
                continue; // clang knows no such option, and says so with and without us
            }
            let with = outcome(&folder, TEEPERF, &["cc"], line, compiler);
            assert_eq!(with, outcome(&folder, compiler, &[], line, compiler), "{compiler} {line}");
            assert!(with[0].contains("status: 0"), "{with:?}");
        }
        // An object made of objects.
        run(prepared(Command::new(compiler), &folder).args(["-c", "a.c", "main.c"]));
        let line = "-r -nostdlib a.o main.o -o out";
        let with = outcome(&folder, TEEPERF, &["cc"], line, compiler);
        assert_eq!(with, outcome(&folder, compiler, &[], line, compiler), "{compiler} {line}");
    }
}

#[test]
fn warnings_errors_and_dependencies_stay_the_same_when_code_is_made() {
    let folder = folder();
    for Compiler { cc: compiler, .. } in Compiler::tried() {
        for line in [
            "-c bad.c",
            "-c no-such-file.c",
            "-Wall -Wextra -Werror -pedantic -c a.c -MMD -MF out -o /dev/null",
            "-Wall -Werror -c a.c -MD -MF out -o /dev/null",
            "main.c no-such.o -o m",
            "main.c -lno-such-library",
            "-Wall -Werror main.c -o m",
            "-Wall -Werror -O2 -c -x c - -o /dev/null",
        ] {
            let [status, said, told, written] = outcome(&folder, TEEPERF, &["cc"], line, compiler);
            let without = outcome(&folder, compiler, &[], line, compiler);
            assert_eq!([status, said, told, written], without, "{compiler} {line}");
        }
    }
}

#[test]
fn programs_of_every_kind_link_and_run() {
    let folder = folder();
    let with_library = "-L. -Wl,-rpath,. main.c -la -o p";
    for Compiler { cc: compiler, .. } in Compiler::tried() {
        // Each clang looks for its own lld first, and comes without it on some systems; bfd is on all.
        let lld = format!("ld.lld{}", compiler.trim_start_matches("clang"));
        let has_lld = compiler.starts_with("clang") && in_path(&lld).is_some();
        let lld = has_lld.then_some("lld");
        for linker in std::iter::once("bfd").chain(lld) {
            for line in [
                "main.c a.c -o p",
                "-static main.c a.c -o p",
                "-static-pie main.c -o p",
                "-no-pie main.c -o p",
                "-shared -fPIC a.c -o liba.so",
                "-shared -fPIC -Wl,--no-undefined a.c -o liba.so",
                with_library,
                "-O2 -flto main.c a.c -o p",
                "-g3 -O3 main.c a.c -o p",
                "-Wl,--gc-sections -ffunction-sections main.c a.c -o p",
                "-Wl,-z,now -pie main.c -o p",
                "-fsanitize=address main.c a.c -o p",
                "-s main.c -o p",
                "-x c main.c -x none a.s -o p",
                "-Os -Wl,--as-needed main.c a.c -lm -lpthread -o p",
                "-rdynamic main.c -o p",
            ] {
                if line.contains("-fsanitize") && !has_sanitizers(compiler) {
                    eprintln!("{compiler} has no sanitizers, so was tried without");
                    continue;
                }
                let mut command = prepared(Command::new(TEEPERF), &folder);
                command.arg("cc").args(line.split_whitespace()).env("TEEPERF_CC", compiler);
                run(command.arg(format!("-fuse-ld={linker}")));
                if line.ends_with("-o p") {
                    run(&mut prepared(Command::new(folder.path().join("p")), &folder));
                    std::fs::remove_file(folder.path().join("p")).unwrap();
                }
            }
        }
    }
}

/// Whether what a program with sanitizers needs is installed. Versions of clang beside the usual one come without.
fn has_sanitizers(compiler: &str) -> bool {
    let library = ["-print-file-name=libclang_rt.asan-x86_64.a"];
    let told = run(Command::new(compiler).args(library));
    matches!(compiler, "gcc" | "clang") || !compiler.starts_with("clang") || told.contains('/')
}

#[test]
fn precompiled_headers_are_made_and_used() {
    let folder = folder();
    for Compiler { cc: compiler, .. } in Compiler::tried() {
        let pch = if compiler.starts_with("gcc") { "a.h.gch" } else { "a.h.pch" };
        let cc = |words: &[&str]| {
            run(prepared(Command::new(TEEPERF), &folder)
                .arg("cc")
                .args(words)
                .env("TEEPERF_CC", compiler))
        };
        cc(&["-x", "c-header", "a.h", "-o", pch]);
        folder.write("uses.c", "int length(const char *text) { return LENGTH(text); }\n");
        // A macro of the header is there though the source does not include it.
        let with =
            ["-Winvalid-pch", "-Werror", "-include", "a.h", "-include", "string.h", "-c", "uses.c"];
        cc(&with);
        std::fs::remove_file(folder.path().join(pch)).unwrap();
    }
}
