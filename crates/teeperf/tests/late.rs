//! Late hooks: put into a compiler's assembly, where code has every shape that a compiler gives it.
//! What a program counts and prints is the same with them as without, whether it is recorded or
//! not.

mod generated;
mod scenario;

use scenario::*;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The wrapper, with late hooks.
fn late(compiler: Compiler) -> Command {
    let mut command = teeperf();
    command.args(["cc", "--teeperf-hooks=late"]).arg(match compiler {
        Compiler::Gcc => "--teeperf-compiler=gcc",
        Compiler::Clang => "--teeperf-compiler=clang",
    });
    command
}

fn succeed(command: &mut Command) -> Outcome {
    let outcome = run(command);
    assert!(outcome.success(), "{command:?}: {outcome:#?}");
    outcome
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// `shapes.c`, built with these flags, has exact counts, and does and prints what it does without
/// hooks.
fn shapes(shop: &Workshop, compiler: Compiler, flags: &[&str]) {
    let plain = shop.build_unhooked("shapes.c", compiler, flags);
    let hooked = shop.path("hooked");
    succeed(late(compiler).arg("-o").arg(&hooked).arg(source("shapes.c")).args(flags).arg("-w"));
    let expected = succeed(&mut Command::new(&plain)).stdout;
    assert_eq!(succeed(&mut Command::new(&hooked)).stdout, expected, "{compiler:?} {flags:?}");
    let recorded = shop.record(&[], &hooked, &[], 0);
    assert_eq!(recorded.outcome.stdout, expected, "{compiler:?} {flags:?}");
    assert_calls(&recorded.outcome.told(), &recorded.report);
    recorded.report.expect_whole();
}

/// Guards: time of a load told as that of the hook behind it: processors are interrupted one
/// instruction later.
#[test]
fn instructions_beside_hooks_have_their_time() {
    let shop = Workshop::new();
    for (compiler, level) in [(Compiler::Gcc, "-O1"), (Compiler::Gcc, "-Os")] {
        let program = shop.path(level);
        succeed(
            late(compiler).arg("-o").arg(&program).arg(source("awaited.c")).args([level, "-w"]),
        );
        let report = shop.record(&[], &program, &[], 0).report;
        for name in ["fetch", "turn"] {
            let [own, hooks] = ["self", "hooks"].map(|figure| report.time(name, figure));
            assert!(own > 20e6, "{level}, {name}: {own}");
            assert!(hooks < 0.3 * own, "{level}, {name}: hooks {hooks} beside {own}");
        }
    }
}

/// Guards: cold parts, jumps in the place of calls, tables of jumps, `goto *`, variable arguments,
/// nested functions, naked ones, assembly that calls, conventions that keep most registers,
/// `setjmp`, `vfork`, handlers.
#[test]
fn functions_of_every_shape_at_every_level() {
    let shop = Workshop::new();
    for compiler in Compiler::all() {
        for level in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
            shapes(&shop, compiler, &[level]);
        }
    }
}

/// Guards: what else an option has stand at a function's beginning or end, or takes away.
#[test]
fn functions_of_every_shape_with_what_options_add() {
    let shop = Workshop::new();
    for flags in [
        &["-fcf-protection=full"][..],
        &["-fpatchable-function-entry=5,2"],
        &["-fno-asynchronous-unwind-tables", "-fno-exceptions"],
        &["-mcmodel=medium"],
        &["-static"],
        &["-fno-plt", "-fPIE", "-pie"],
        &["-fno-pic", "-no-pie"],
        &["-pg"],
        &["-g", "-gsplit-dwarf", "-ffile-prefix-map=/tmp=."],
        &["-ffunction-sections", "-Wl,--gc-sections"],
        &["-fno-omit-frame-pointer"],
        &["-fsanitize=address,undefined"],
    ] {
        for compiler in Compiler::all() {
            shapes(&shop, compiler, &[&["-O2"], flags].concat());
        }
    }
}

/// Guards: jumps by way of code that speculation cannot pass, returns likewise; registers that are
/// cleared at the end; code that is made at the link.
#[test]
fn functions_of_every_shape_with_what_options_of_gcc_add() {
    let shop = Workshop::new();
    for flags in [
        &["-mindirect-branch=thunk", "-mfunction-return=thunk", "-fcf-protection=none"][..],
        &["-fzero-call-used-regs=all"],
        &["-flto"],
        &["-fno-reorder-blocks-and-partition", "-Wa,-defsym,ANY=1"],
    ] {
        shapes(&shop, Compiler::Gcc, &[&["-O2"], flags].concat());
    }
}

/// Guards: registers of arguments and of results, of every type and in any number.
#[test]
fn arguments_and_results_of_every_type() {
    let shop = Workshop::new();
    for seed in 0..2 {
        for compiler in Compiler::all() {
            let file = shop.path("generated.c");
            std::fs::write(&file, generated::program(seed, compiler == Compiler::Clang)).unwrap();
            for level in ["-O0", "-O2"] {
                let [plain, hooked] = ["plain", "hooked"].map(|name| shop.path(name));
                let mut unhooked = Command::new(match compiler {
                    Compiler::Gcc => "gcc",
                    Compiler::Clang => "clang",
                });
                succeed(unhooked.args([level, "-w", "-o"]).arg(&plain).arg(&file));
                succeed(late(compiler).args([level, "-w", "-o"]).arg(&hooked).arg(&file));
                let expected = succeed(&mut Command::new(&plain)).stdout;
                assert_eq!(succeed(&mut Command::new(&hooked)).stdout, expected);
                let recorded = shop.record(&[], &hooked, &[], 0);
                assert_eq!(recorded.outcome.stdout, expected, "{seed} {compiler:?} {level}");
                recorded.report.expect_whole();
            }
        }
    }
}

/// Guards: a part of a function that stands apart says whose it is, so that a frame that an
/// exception leaves there is known.
#[test]
fn exceptions_that_leave_parts_that_stand_apart() {
    let shop = Workshop::new();
    let hooked = shop.path("hooked");
    let flags = ["-fno-inline", "-fno-optimize-sibling-calls", "-fno-ipa-cp", "-fno-ipa-sra", "-w"];
    for more in [&[][..], &["-static"], &["-flto"], &["-flto", "-fPIC"]] {
        let mut command = teeperf();
        command.args(["c++", "--teeperf-hooks=late", "--teeperf-compiler=g++", "-O2"]);
        command.args(flags).args(more);
        succeed(command.arg("-o").arg(&hooked).arg(source("unwinding.cc")));
        let recorded = shop.record(&[], &hooked, &[], 0);
        assert_paths(&recorded.outcome.told(), &recorded.report);
        recorded.report.expect_whole();
    }
}

/// Guards: what a project's file says holds where the program is linked, too.
#[test]
fn a_projects_file_holds_for_the_link() {
    let shop = Workshop::new();
    let [file, object, program] = ["teeperf.toml", "one.o", "program"].map(|name| shop.path(name));
    std::fs::write(&file, "[build]\nhooks = 'late'\n").unwrap();
    let compiler = || {
        let mut command = teeperf();
        command.args(["c++", "--teeperf-compiler=g++"]).env("TEEPERF_CONFIG", &file);
        command
    };
    let flags = ["-O2", "-fno-inline", "-fno-optimize-sibling-calls", "-fno-ipa-cp", "-w"];
    succeed(compiler().args(flags).arg("-c").arg(source("unwinding.cc")).arg("-o").arg(&object));
    succeed(compiler().arg(&object).arg("-o").arg(&program));
    let recorded = shop.record(&[], &program, &[], 0);
    assert_paths(&recorded.outcome.told(), &recorded.report);
    recorded.report.expect_whole();
}

/// Guards: the C++ library is there for programs whose frames are left by the end of a thread, and which ask it for nothing.
#[test]
fn a_thread_that_ends_in_the_midst_of_frames() {
    let shop = Workshop::new();
    let [file, program] = ["ends.cc", "program"].map(|name| shop.path(name));
    let text = "#include <pthread.h>\n#include <unistd.h>\nstruct Told { ~Told() { write(1, \"gone\\n\", 5); } };\n\
        __attribute__((noinline)) static void ends() { Told told; pthread_exit(nullptr); }\n\
        static void *thread(void *) { ends(); return nullptr; }\n\
        int main() { pthread_t other; pthread_create(&other, nullptr, thread, nullptr); pthread_join(other, nullptr); }\n";
    std::fs::write(&file, text).unwrap();
    for compiler in Compiler::all() {
        let mut command = teeperf();
        command.args(["c++", "--teeperf-hooks=late"]).arg(match compiler {
            Compiler::Gcc => "--teeperf-compiler=g++",
            Compiler::Clang => "--teeperf-compiler=clang++",
        });
        succeed(command.args(["-O2", "-w", "-pthread", "-o"]).arg(&program).arg(&file));
        assert_eq!(succeed(&mut Command::new(&program)).stdout, "gone\n", "{compiler:?}");
        assert_eq!(shop.record(&[], &program, &[], 0).outcome.stdout, "gone\n", "{compiler:?}");
    }
}

/// Guards: objects bring what they need where nobody knows of hooks.
#[test]
fn objects_that_are_linked_without_the_wrapper() {
    let shop = Workshop::new();
    let [object, program] = ["shapes.o", "program"].map(|name| shop.path(name));
    for compiler in Compiler::all() {
        succeed(
            late(compiler).args(["-O2", "-w", "-c", "-o"]).arg(&object).arg(source("shapes.c")),
        );
        succeed(Command::new("gcc").arg("-o").arg(&program).arg(&object));
        assert!(succeed(&mut Command::new(&program)).stdout.starts_with("sum "));
    }
}

/// Guards: hooks that the compiler's output has are not put in once more; a file by hand is left as
/// it is.
#[test]
fn assembly_is_hooked_once() {
    let shop = Workshop::new();
    for compiler in Compiler::all() {
        let [assembly, program] = ["shapes.s", "program"].map(|name| shop.path(name));
        succeed(
            late(compiler).args(["-O2", "-w", "-S", "-o"]).arg(&assembly).arg(source("shapes.c")),
        );
        succeed(late(compiler).arg("-o").arg(&program).arg(&assembly));
        let recorded = shop.record(&[], &program, &[], 0);
        assert_calls(&recorded.outcome.told(), &recorded.report);
        recorded.report.expect_whole();
    }
}

/// Guards: functions that the user chooses, by name, file and size, have hooks and no others.
#[test]
fn some_functions_have_hooks() {
    let shop = Workshop::new();
    let program = shop.path("program");
    for compiler in Compiler::all() {
        for (option, name, is_there) in [
            ("--teeperf-only=leaf", "leaf", true),
            ("--teeperf-only=leaf", "even", false),
            ("--teeperf-exclude=leaf", "leaf", false),
            ("--teeperf-exclude=leaf", "even", true),
            ("--teeperf-only=file:shapes.c", "leaf", true),
            ("--teeperf-exclude=file:shapes.c", "leaf", false),
            ("--teeperf-min-size=60", "leaf", false),
            ("--teeperf-min-size=60", "main", true),
        ] {
            let mut command = late(compiler);
            succeed(
                command.args([option, "-O2", "-w", "-o"]).arg(&program).arg(source("shapes.c")),
            );
            let recorded = shop.record(&[], &program, &[], 0);
            let has = recorded.report.calls.contains_key(name);
            assert_eq!(has, is_there, "{compiler:?} {option} {name}");
        }
    }
}

/// Guards: a clang that is told to have an assembler make its objects.
#[test]
fn an_assembler_of_its_own() {
    if Compiler::all().contains(&Compiler::Clang) {
        shapes(&Workshop::new(), Compiler::Clang, &["-O2", "-fno-integrated-as"]);
    }
}

/// Guards: sources with and without checksums, of which one has the name of the first.
#[test]
fn debug_information_of_every_clang() {
    let shop = Workshop::new();
    for name in ["clang", "clang-14", "clang-16", "clang-19"] {
        if !Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success()) {
            continue;
        }
        for options in [&["-g"][..], &["-g", "-O2"], &["-g", "-save-temps=obj"]] {
            let mut command = teeperf();
            command.args(["cc", "--teeperf-hooks=late"]);
            command.arg(format!("--teeperf-compiler={name}")).args(options).arg("-c").arg("-o");
            let outcome = run(command.arg(shop.path("varies.o")).arg(source("varies.c")));
            assert!(outcome.success(), "{name} {options:?}: {}", outcome.stderr);
            assert_eq!(outcome.stderr, "", "{name} {options:?}");
        }
    }
}

/// Guards: what late hooks cannot be together with is said, with what to do.
#[test]
fn what_cannot_be_is_said() {
    let shop = Workshop::new();
    let object = shop.path("shapes.o");
    for (compiler, option) in [
        (Compiler::Gcc, "-masm=intel"),
        (Compiler::Gcc, "-mcmodel=large"),
        (Compiler::Clang, "-flto"),
    ] {
        if !Compiler::all().contains(&compiler) {
            continue;
        }
        let mut command = late(compiler);
        let outcome = run(command.args([option, "-c", "-o"]).arg(&object).arg(source("shapes.c")));
        assert!(!outcome.success());
        assert!(outcome.stderr.contains(option), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("--teeperf-hooks=source"), "{}", outcome.stderr);
    }
}

/// Guards: where late hooks cannot be and nobody asked for them, a build that breaks.
#[test]
fn where_they_cannot_be_the_compiler_hooks_the_source() {
    let shop = Workshop::new();
    let mut command = teeperf();
    let object = shop.path("shapes.o");
    command.env_remove("TEEPERF_CC_OPTIONS").args([
        "cc",
        "--teeperf-compiler=gcc",
        "-mcmodel=large",
    ]);
    let outcome = run(command.args(["-c", "-o"]).arg(&object).arg(source("shapes.c")));
    assert!(outcome.success(), "{outcome:#?}");
    let bytes = std::fs::read(&object).unwrap();
    let has = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
    assert!(has(b"__cyg_profile_func_enter") && !has(b"teeperf_late_enter"));
}

/// Guards: inline assembly of another syntax, and the code around it.
#[test]
fn inline_assembly_of_intels_syntax() {
    let shop = Workshop::new();
    let file = shop.path("intel.c");
    let code = r#"__attribute__((noinline)) int five(void) {
        int five;
        __asm__(".intel_syntax noprefix\n\tmov %0, 5\n\t.att_syntax" : "=r"(five));
        return five;
    }
    int main(void) { return five() - 5; }"#;
    std::fs::write(&file, code).unwrap();
    let program = shop.path("intel");
    succeed(late(Compiler::Gcc).args(["-O1", "-o"]).arg(&program).arg(&file));
    let recorded = shop.record(&[], &program, &[], 0);
    assert_eq!(recorded.report.calls, [("five".into(), 1), ("main".into(), 1)].into());
}
