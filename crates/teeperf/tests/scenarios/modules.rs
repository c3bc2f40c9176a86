//! Code that comes and goes, that runs before there is anything to run on, that replaces the
//! C library's own, and a great deal of it.

use crate::support::*;
use std::fmt::Write;
use std::path::PathBuf;

/// Two plugins whose functions lie at different offsets.
fn plugins(shop: &Workshop, compiler: Compiler) -> [PathBuf; 2] {
    let shared = ["-O2", "-shared", "-fPIC", "-Wl,--no-undefined"];
    let of = |own: &[&str]| {
        let flags: Vec<&str> = shared.iter().chain(own).copied().collect();
        shop.build("plugin.c", compiler, &flags)
    };
    [of(&["-DNAME=red"]), of(&["-DNAME=blue", "-DSIZE=5000"])]
}

/// What `rounds` loads of the two in turn call.
fn add_plugin_calls(told: &mut Told, rounds: u64) {
    told.add("plugin_run", rounds);
    for (name, rounds) in [("red", rounds.div_ceil(2)), ("blue", rounds / 2)] {
        told.add(&format!("{name}_loaded"), rounds);
        told.add(&format!("{name}_unloaded"), rounds);
        told.add(&format!("{name}_inner"), 4 * rounds);
    }
}

/// Guards: a file has its window again, and the next module at the same address gets its own
/// names.
#[test]
fn plugins_loaded_in_turn_many_times() {
    let shop = Workshop::new();
    for compiler in Compiler::tried() {
        let host = shop.build("plugin_host.c", compiler, &["-O2"]);
        let [red, blue] = plugins(&shop, compiler);
        let rounds = repeats(if compiler == Compiler::Gcc { 100_000 } else { 10_000 });
        let often = rounds.to_string();
        let arguments = [&often, red.to_str().unwrap(), blue.to_str().unwrap()];
        let recorded = shop.record(&[], &host, &arguments, 0);
        let mut told = recorded.outcome.told();
        add_plugin_calls(&mut told, rounds);
        assert_calls(&told, &recorded.report);
        recorded.report.expect_whole();
    }
}

/// Guards: `record` preloads the runtime for a program without hooks that loads libraries
/// with hooks.
#[test]
fn hooked_plugins_of_a_program_without_hooks() {
    let shop = Workshop::new();
    let host = shop.build_unhooked("plugin_host.c", Compiler::Gcc, &["-O2"]);
    let [red, blue] = plugins(&shop, Compiler::Gcc);
    let arguments = ["500", red.to_str().unwrap(), blue.to_str().unwrap()];
    let recorded = shop.record(&[], &host, &arguments, 0);
    assert!(recorded.outcome.told().calls.contains_key("one_round"));
    let mut told = Told::default();
    add_plugin_calls(&mut told, 500);
    assert_calls(&told, &recorded.report);
    recorded.report.expect_whole();
}

/// Guards: a library that calls nothing of the C library names none that it needs, so that its constructors come ahead of the C library's
/// own: the runtime does without that, or the whole process would be unrecorded.
#[test]
fn a_library_that_is_there_before_the_c_library() {
    let shop = Workshop::new();
    let shared = ["-O0", "-shared", "-fPIC", "-Wl,--as-needed"];
    let sources = [
        (
            "below.c",
            "int below_begins; __attribute__((constructor)) void begins(void) { below_begins++; }
             static int inner(int n) { return n; } int below(int n) { return inner(n) + inner(n); }",
        ),
        ("above.c", "int below(int); int above(int n) { return below(n) + below(n); }"),
        (
            "uses.c",
            "int above(int); int main(void) { return above(2) == 8 ? 0 : 1; }",
        ),
    ];
    for (name, text) in sources {
        std::fs::write(shop.path(name), text).unwrap();
    }
    for compiler in Compiler::tried() {
        let below = shop.build_own(&shop.path("below.c"), compiler, &shared);
        let needed = std::process::Command::new("readelf").arg("-d").arg(&below).output().unwrap();
        // clang ends --as-needed ahead of the C library.
        let needs_some = String::from_utf8_lossy(&needed.stdout).contains("(NEEDED)");
        assert_eq!(needs_some, compiler == Compiler::Clang);
        let below = below.to_str().unwrap();
        let above =
            shop.build_own(&shop.path("above.c"), compiler, &[&shared[..], &[below]].concat());
        // The other one comes through this one alone: behind the C library, so that it begins before that.
        let flags = ["-O0", above.to_str().unwrap()];
        for hooks in [true, false] {
            let no_hooks: &[&str] = if hooks { &[] } else { &["--teeperf-no-hooks"] };
            let uses =
                shop.build_own(&shop.path("uses.c"), compiler, &[&flags[..], no_hooks].concat());
            let mut told = Told::default();
            for (name, calls) in [("begins", 1), ("above", 1), ("below", 2), ("inner", 4)] {
                told.add(name, calls);
            }
            if hooks {
                told.add("main", 1);
            }
            let recorded = shop.record(&[], &uses, &[], 0);
            assert_calls(&told, &recorded.report);
            recorded.report.expect_whole();
        }
    }
}

/// Guards: without a recorder, and without a runtime in the process, hooked libraries load
/// and work.
#[test]
fn hooked_plugins_where_nobody_records() {
    let shop = Workshop::new();
    let host = shop.build_unhooked("plugin_host.c", Compiler::Gcc, &["-O2"]);
    let [red, blue] = plugins(&shop, Compiler::Gcc);
    let mut command = std::process::Command::new(&host);
    let outcome = run(command.arg("100").arg(&red).arg(&blue));
    assert_eq!(outcome.expect_code(0).told().calls["one_round"], 100);
}

/// Guards: one word, and not thread-local storage, is what a hook looks at first. A hooked
/// resolver of an ifunc in a static program runs before there is any.
#[test]
fn hooked_resolvers_before_the_program_begins() {
    let shop = Workshop::new();
    for compiler in Compiler::tried() {
        for flags in
            [&["-O2", "-static"][..], &["-O0", "-static"], &["-O2", "-static-pie"], &["-O2"]]
        {
            let program = shop.build("ifunc.c", compiler, flags);
            let mut recorded = shop.record(&[], &program, &[], 0);
            // Too early to be recorded, or just not: both are right.
            recorded.report.calls.remove("resolve");
            recorded.report.calls.remove("chooses");
            assert_calls(&recorded.outcome.told(), &recorded.report);
        }
    }
}

/// Guards: hooks allocate nothing, take no lock of the program's and call nothing of the C
/// library that a program may replace.
#[test]
fn a_program_with_its_own_malloc() {
    let shop = Workshop::new();
    for compiler in Compiler::tried() {
        // gcc takes what a system header declares for the system's own, clang inlines.
        let flags = ["-O0", "-fno-builtin", "--teeperf-system-headers"];
        let program = shop.build("interposes.c", compiler, &flags);
        let recorded = shop.record(&[], &program, &[], 0);
        let told = recorded.outcome.told();
        let before = Told::read(&recorded.outcome.stdout.replace("before ", "calls ")).calls;
        assert!(told.calls["allocates"] > 2000);
        for (name, &calls) in &told.calls {
            let seen = recorded.report.calls.get(name).copied().unwrap_or(0);
            assert!(
                (calls..=calls + before.get(name).unwrap_or(&0)).contains(&seen),
                "{name}: {seen}, told {calls}"
            );
        }
        assert_eq!(recorded.report.health("lost"), 0);
    }
}

/// Guards: nothing in reader, recorder or hook depends on there being few functions.
#[test]
fn ten_thousand_functions() {
    let shop = Workshop::new();
    let mut source = String::from("static volatile long sink;\n");
    let mut told = Told::default();
    for i in 0..10_000u64 {
        writeln!(source, "static __attribute__((noinline)) void f{i}(void) {{ sink++; }}").unwrap();
        told.add(&format!("f{i}"), i % 7 + 1);
    }
    source.push_str("static void (*const all[])(void) = {");
    for i in 0..10_000 {
        write!(source, "f{i},").unwrap();
    }
    source.push_str(
        "};\nint main(void) { for (int i = 0; i < 10000; i++) \
         for (int n = 0; n < i % 7 + 1; n++) all[i](); return 0; }\n",
    );
    told.add("main", 1);
    let path = shop.path("many.c");
    std::fs::write(&path, source).unwrap();
    let program = shop.build_own(&path, Compiler::Gcc, &["-O0"]);
    let recorded = shop.record(&[], &program, &[], 0);
    assert_calls(&told, &recorded.report);
    recorded.report.expect_whole();
}
