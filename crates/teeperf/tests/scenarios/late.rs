//! Late hooks: put into a compiler's assembly, where code has every shape that a compiler gives it.
//! What a program counts and prints is the same with them as without, whether it is recorded or
//! not.

mod conventions;
mod generated;
mod labels;

use crate::support::*;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The wrapper, with late hooks.
fn late(compiler: Compiler) -> Command {
    wrapper("late", if compiler == Compiler::Gcc { "gcc" } else { "clang" })
}

/// The wrapper of a compiler of this name, with hooks of this kind.
fn wrapper(hooks: &str, compiler: &str) -> Command {
    let mut command = teeperf();
    let options = [format!("--teeperf-hooks={hooks}"), format!("--teeperf-compiler={compiler}")];
    command.arg("cc").args(options);
    command
}

/// Compilers of these names that are installed.
fn installed(names: &[&'static str]) -> Vec<&'static str> {
    let answers = |name: &&&str| {
        Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success())
    };
    names.iter().filter(answers).copied().collect()
}

/// Versions of clang.
const CLANGS: [&str; 4] = ["clang", "clang-14", "clang-16", "clang-19"];

fn succeed(command: &mut Command) -> Outcome {
    let outcome = run(command);
    assert!(outcome.success(), "{command:?}: {outcome:#?}");
    outcome
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// Records a program that one compiler builds with these flags, and that prints what it prints
/// without hooks.
fn recorded_alike(shop: &Workshop, compiler: &str, flags: &[&str], file: &str) -> Recorded {
    let [plain, hooked] = ["plain", "hooked"].map(|name| shop.path(name));
    succeed(Command::new(compiler).args(flags).arg("-o").arg(&plain).arg(source(file)));
    let mut command = wrapper("late", compiler);
    succeed(command.args(flags).arg("-o").arg(&hooked).arg(source(file)));
    let recorded = shop.record(&[], &hooked, &[], 0);
    let expected = succeed(&mut Command::new(&plain)).stdout;
    assert_eq!(recorded.outcome.stdout, expected, "{compiler} {flags:?}");
    recorded
}

/// `shapes.c`, built with these flags, has exact counts, and does and prints what it does without
/// hooks.
fn shapes(shop: &Workshop, compiler: Compiler, flags: &[&str]) {
    let plain = shop.build_unhooked("shapes.c", compiler, flags);
    let hooked = shop.path("hooked");
    let mut command = late(compiler);
    command.arg("-o").arg(&hooked).arg(source("shapes.c")).args(flags).arg("-w");
    succeed(command.current_dir(shop.path("")));
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
    for compiler in Compiler::installed() {
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
        &["-fstack-protector-all"],
        &["--coverage"],
    ] {
        for compiler in Compiler::installed() {
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
        for compiler in Compiler::installed() {
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
    for compiler in Compiler::installed() {
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
    for compiler in Compiler::installed() {
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
    for compiler in Compiler::installed() {
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
    for compiler in Compiler::installed() {
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
    if Compiler::installed().contains(&Compiler::Clang) {
        shapes(&Workshop::new(), Compiler::Clang, &["-O2", "-fno-integrated-as"]);
    }
}

/// Guards: sources with and without checksums, of which one has the name of the first.
#[test]
fn debug_information_of_every_clang() {
    let shop = Workshop::new();
    for name in installed(&CLANGS) {
        for options in [&["-g"][..], &["-g", "-O2"], &["-g", "-save-temps=obj"]] {
            let mut command = wrapper("late", name);
            command.args(options).arg("-c").arg("-o");
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
        (Compiler::Clang, "-mllvm -x86-asm-syntax=intel"),
    ] {
        if !Compiler::installed().contains(&compiler) {
            continue;
        }
        let mut command = late(compiler);
        command.args(option.split(' ')).args(["-c", "-o"]);
        let outcome = run(command.arg(&object).arg(source("shapes.c")));
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
    assert_eq!(hooks_of(&object), [true, false]);
}

/// Whether an object has hooks of the source, and late ones.
fn hooks_of(object: &Path) -> [bool; 2] {
    let bytes = std::fs::read(object).unwrap();
    let has = |name: &str| bytes.windows(name.len()).any(|window| window == name.as_bytes());
    ["__cyg_profile_func_enter", "teeperf_late_enter"].map(has)
}

/// Guards: builds that name no kind of hooks: each compiler makes late ones.
#[test]
fn hooks_are_late_where_nobody_says() {
    let shop = Workshop::new();
    let object = shop.path("object.o");
    let with_clang = Compiler::installed().contains(&Compiler::Clang);
    for (language, variable, compiler, name) in [
        ("cc", "TEEPERF_CC", "gcc", "shapes.c"),
        ("c++", "TEEPERF_CXX", "g++", "unwinding.cc"),
        ("cc", "TEEPERF_CC", "clang", "shapes.c"),
        ("c++", "TEEPERF_CXX", "clang++", "unwinding.cc"),
    ] {
        if compiler.starts_with("clang") && !with_clang {
            continue;
        }
        for level in ["-O0", "-O2"] {
            let mut command = teeperf();
            command.env_remove("TEEPERF_CC_OPTIONS").env(variable, compiler);
            command.args([language, level, "-w", "-c", "-o"]).arg(&object).arg(source(name));
            succeed(&mut command);
            assert_eq!(hooks_of(&object), [false, true], "{compiler} {level}");
        }
    }
}

/// Guards: values that gcc leaves in registers which a callee does not touch, and its hooks do.
#[test]
fn callers_know_nothing_of_the_registers_of_callees() {
    let shop = Workshop::new();
    for flags in [&["-O2"][..], &["-O2", "-flto"], &["-O2", "-pg"]] {
        let plain = shop.build_unhooked("registers.c", Compiler::Gcc, flags);
        let expected = succeed(&mut Command::new(plain)).stdout;
        let program = build(&shop, Compiler::Gcc, "registers.c", flags);
        assert_eq!(succeed(&mut Command::new(&program)).stdout, expected, "{flags:?}");
        let recorded = shop.record(&[], &program, &[], 0);
        assert_eq!(recorded.outcome.stdout, expected, "{flags:?}");
        assert_eq!(recorded.report.calls["counts"], 1000, "{flags:?}");
    }
}

/// A program with late hooks.
fn build(shop: &Workshop, compiler: Compiler, name: &str, flags: &[&str]) -> PathBuf {
    let program = shop.path(name).with_extension("late");
    succeed(late(compiler).args(["-g", "-w", "-o"]).arg(&program).arg(source(name)).args(flags));
    program
}

/// The chain of calls in `chain.c`, from its end on.
const CHAIN: [&str; 5] = ["works", "inner", "middle", "outer", "main"];

/// Whether names of frames, from the innermost on, have that chain whole from one function on.
fn has_chain(names: &[&str], from: usize) -> bool {
    let chain = &CHAIN[from..];
    names.windows(chain.len()).any(|window| window == chain)
}

/// Guards: the C library knows all callers, also where a signal interrupts a hook.
#[test]
fn backtrace_of_the_c_library() {
    let shop = Workshop::new();
    for compiler in Compiler::installed() {
        let program = build(&shop, compiler, "chain.c", &["-O2", "-rdynamic"]);
        // `inner` is whose callers it tells, or whose callee a timer interrupts.
        for (what, from) in [("tell", 1), ("interrupt", 0)] {
            let alone = succeed(Command::new(&program).arg(what)).stdout;
            let recorded = shop.record(&[], &program, &[what], 0).outcome.stdout;
            for told in [alone, recorded] {
                let chains: Vec<&str> = told.trim_end().split("\n\n").collect();
                assert!(chains.len() > 10 || what == "tell", "{compiler:?}: {told}");
                for chain in chains {
                    // `program(name+0x12)[0x1234]`
                    let names = chain.lines().filter_map(|line| line.split(['(', '+']).nth(1));
                    let names: Vec<&str> = names.collect();
                    assert!(has_chain(&names, from), "{compiler:?} {what}: {chain}");
                }
            }
        }
    }
}

/// Symbols of the frames of samples, as perf has them, each sample from its innermost on.
fn stacks_of(data: &Path) -> Vec<Vec<String>> {
    let mut script = Command::new("perf");
    let script = succeed(script.args(["script", "--no-inline", "-F", "ip,sym", "-i"]).arg(data));
    let symbol = |line: &str| line.split_whitespace().nth(1).map(str::to_owned);
    let stacks = script.stdout.split("\n\n");
    let stacks = stacks.map(|stack| stack.lines().filter_map(symbol).collect::<Vec<_>>());
    stacks.filter(|stack| !stack.is_empty()).collect()
}

/// Guards: perf knows all callers by copied stacks, of functions and of their hooks.
#[test]
fn perf_knows_the_callers() {
    let shop = Workshop::new();
    let data = shop.path("perf.data");
    let words = ["record", "-q", "-F", "999", "-e", "cpu-clock:u", "--call-graph", "dwarf"];
    let words = [&words[..], &["-o", data.to_str().unwrap()]].concat();
    match Command::new("perf").args(&words).arg("true").output() {
        Ok(output) if output.status.success() => {}
        other => return eprintln!("skipped: {other:?}"),
    }
    let is_whole = |stack: &&Vec<String>| {
        let names: Vec<&str> = stack.iter().map(String::as_str).collect();
        has_chain(&names, 0)
    };
    for compiler in Compiler::installed() {
        let program = build(&shop, compiler, "chain.c", &["-O2"]);
        let words = [&words[..], &["--", program.to_str().unwrap()]].concat();
        succeed(Command::new("perf").args(&words));
        let alone = stacks_of(&data);
        shop.record(&["--no-cpu-samples"], Path::new("perf"), &words, 0);
        let recorded = stacks_of(&data);
        for (stacks, name) in [(&alone, "leaf"), (&recorded, "leaf"), (&recorded, "teeperf_late_")]
        {
            let of_it = stacks.iter().filter(|stack| stack[0].starts_with(name));
            let of_it: Vec<&Vec<String>> = of_it.collect();
            let whole = of_it.iter().copied().filter(is_whole).count();
            // Of some 300 samples in all.
            let all = of_it.len();
            assert!(all > 10 && whole * 20 > all * 19, "{compiler:?} {name}: {whole} of {all}");
        }
    }
}

/// gdb's words: it takes no settings of the user's, asks nothing and leaves no core. None where gdb
/// cannot run a program.
fn gdb() -> Option<Vec<&'static str>> {
    let quiet = ["maint set internal-error quit yes", "maint set internal-error corefile no"];
    let mut words = vec!["-nx", "-batch"];
    words.extend(quiet.iter().flat_map(|setting| ["-iex", setting]));
    let mut probe = Command::new("gdb");
    probe.args(&words).args(["-ex", "run", "-ex", "python print('has Python')", "true"]);
    match probe.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout);
            let can = said.contains("exited normally") && said.contains("has Python");
            if !can {
                eprintln!("skipped: gdb: {output:?}");
            }
            can.then_some(words)
        }
        Err(error) => {
            eprintln!("skipped: gdb: {error}");
            None
        }
    }
}

/// Steps through `unwound.c`, with and without what `-DKEEPS_R11` adds, while nobody records and
/// while a recorder does.
fn step_through(compiler: Compiler) {
    let (shop, script) = (Workshop::new(), source("unwound.py"));
    let Some(mut words) = gdb() else { return };
    let program = shop.path("unwound.late");
    words.extend(["-x", script.to_str().unwrap(), program.to_str().unwrap()]);
    let alone = |late: Option<&str>| {
        let mut gdb = Command::new("gdb");
        gdb.args(&words).envs(late.map(|word| ("LATE", word)));
        gdb
    };
    let recorded = |clock: &str| {
        let options = ["--no-cpu-samples", "--clock", clock];
        shop.recording(&options, Path::new("gdb"), &words).command
    };
    for (flags, clock) in [(&["-O2"][..], "tick"), (&["-O2", "-DKEEPS_R11"], "cycle")] {
        build(&shop, compiler, "unwound.c", flags);
        for (mut command, hooks) in [
            (alone(None), &[][..]),
            (alone(Some("0")), &["enter", "exit", "hook_enter", "hook_exit"]),
            (recorded(clock), &["enter", "exit", "out_enter", "out_exit", "event"]),
        ] {
            let told = succeed(&mut command).stderr;
            assert!(!told.contains("WRONG"), "{command:?}: {told}");
            let saw = told.lines().find_map(|line| line.strip_prefix("saw "));
            let saw: Vec<&str> = saw.expect("what was seen").split(' ').collect();
            let own = ["chooses", "frame", "grows", "leaf", "many", "stepped", "tail", "through"];
            let hooks = hooks.iter().map(|name| format!("teeperf_late_{name}"));
            for name in own.map(String::from).into_iter().chain(hooks) {
                assert!(saw.contains(&&*name), "{command:?}: {name} is not among {saw:?}");
            }
        }
    }
}

/// Guards: unwind information of hooks and of the stub, at each instruction.
#[test]
fn callers_at_each_instruction_of_hooks_in_code_by_gcc() {
    step_through(Compiler::Gcc);
}

/// Guards: the same, where a compiler says otherwise what it does to frames.
#[test]
fn callers_at_each_instruction_of_hooks_in_code_by_clang() {
    if Compiler::installed().contains(&Compiler::Clang) {
        step_through(Compiler::Clang);
    }
}

/// Guards: a debugger that ends by what the recorder loads into the program.
#[test]
fn a_debugger_shows_callers_where_a_program_is_recorded() {
    let shop = Workshop::new();
    let Some(mut words) = gdb() else { return };
    let program = build(&shop, Compiler::Gcc, "unwound.c", &["-O2"]);
    words.extend(["-ex", "break leaf", "-ex", "run", "-ex", "backtrace", "-ex", "kill"]);
    words.push(program.to_str().unwrap());
    let mut recording = shop.recording(&["--no-cpu-samples"], Path::new("gdb"), &words);
    let told = succeed(&mut recording.command).stdout;
    for frame in ["leaf", "frame", "stepped", "main"] {
        let is_of = |line: &str| line.starts_with('#') && line.contains(&format!(" {frame} ("));
        assert_eq!(told.lines().filter(|line| is_of(line)).count(), 1, "{frame}: {told}");
    }
}

/// Guards: a step over the end of a function that stops in the stub.
#[test]
fn a_debugger_steps_from_line_to_line_where_a_program_is_recorded() {
    let shop = Workshop::new();
    let Some(first) = gdb() else { return };
    for (compiler, level) in
        Compiler::installed().iter().flat_map(|&compiler| [(compiler, "-O0"), (compiler, "-O2")])
    {
        let program = build(&shop, compiler, "unwound.c", &["-g", level]);
        for step in ["next", "step"] {
            let mut words = first.clone();
            words.extend(["-ex", "break leaf", "-ex", "run"]);
            (0..5).for_each(|_| words.extend(["-ex", step]));
            words.extend(["-ex", "backtrace 1", "-ex", "kill", program.to_str().unwrap()]);
            let mut recording = shop.recording(&["--no-cpu-samples"], Path::new("gdb"), &words);
            let told = succeed(&mut recording.command).stdout;
            assert!(!told.contains("teeperf_late"), "{compiler:?} {level} {step}: {told}");
            assert!(told.contains("unwound.c:"), "{compiler:?} {level} {step}: {told}");
        }
    }
}

/// Guards: inline assembly of another syntax, and the code around it. Whoever writes it for gcc
/// says where it ends, and clang reads each block for itself.
#[test]
fn inline_assembly_of_intels_syntax() {
    let shop = Workshop::new();
    let file = shop.path("intel.c");
    let program = shop.path("intel");
    for (compiler, end) in
        [("gcc", "\\n\\t.att_syntax")].into_iter().chain(CLANGS.map(|name| (name, "")))
    {
        if installed(&[compiler]).is_empty() {
            continue;
        }
        let code = format!(
            "__attribute__((noinline)) int five(void) {{
                int five;
                __asm__(\".intel_syntax noprefix\\n\\tmov eax, 5{end}\" : \"=a\"(five));
                return five;
            }}
            int main(void) {{ return five() - 5; }}"
        );
        std::fs::write(&file, code).unwrap();
        succeed(wrapper("late", compiler).args(["-O1", "-o"]).arg(&program).arg(&file));
        let recorded = shop.record(&[], &program, &[], 0);
        let expected = [("five".into(), 1), ("main".into(), 1)].into();
        assert_eq!(recorded.report.calls, expected, "{compiler}");
    }
}
