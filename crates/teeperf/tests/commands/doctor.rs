//! `teeperf doctor`: each verdict, by what a user may have before him.

use crate::support::{Compiler, Folder, prepared, run, teeperf};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

const PROGRAM: &str = "__attribute__((noinline)) int twice(int n) { return 2 * n; }\n\
    int main(int argc, char **argv) { int sum = 0; for (int i = 0; i < 1000; i++) sum += twice(i); return sum == argc; }\n";

fn with_program() -> Folder {
    let folder = Folder::new();
    folder.write("program.c", PROGRAM);
    run(teeperf(&folder).args(["cc", "-O1", "-g", "program.c", "-o", "program"]));
    folder
}

/// Its findings as `verdict text`, and its exit status.
fn findings(command: &mut Command) -> (Vec<String>, Option<i32>) {
    let output = command.output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let findings = told["findings"].as_array().unwrap().iter().map(|finding| {
        let text = |name: &str| finding[name].as_str().unwrap_or_default();
        format!("{} {}: {} => {}", text("verdict"), text("area"), text("text"), text("next"))
    });
    (findings.collect(), output.status.code())
}

fn doctor(folder: &Folder, words: &[&str]) -> (Vec<String>, Option<i32>) {
    findings(teeperf(folder).args(["doctor", "--json"]).args(words))
}

#[track_caller]
fn expect(told: &(Vec<String>, Option<i32>), begins: &str, contains: &str) {
    let fits = |line: &String| line.starts_with(begins) && line.contains(contains);
    assert!(told.0.iter().any(fits), "no {begins} … {contains} in {told:#?}");
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn this_machine_builds_records_and_reads_back() {
    let folder = Folder::new();
    let told = doctor(&folder, &[]);
    assert_eq!(told.1, Some(0), "{told:#?}");
    expect(&told, "ready compilers: ", "counts exact");
    expect(&told, "ready cache: ", ".cache/teeperf");
    expect(&told, "ready clock: ", "`record` would choose");
    expect(&told, "ready system: ", "memfd_create");
    expect(&told, "ready recordings: ", "are free");
    expect(&told, "note settings: ", "no file sets any option");
    // Nothing of it is left here.
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|of| of.unwrap().file_name()).collect();
    assert_eq!(left, [".cache"]);
    let shown = text(&teeperf(&folder).arg("doctor").output().unwrap());
    assert!(shown.contains("compilers\n  ready    ") && shown.contains("\n\n"), "{shown}");
}

#[test]
fn compilers_that_are_missing_broken_or_named_wrongly() {
    let folder = Folder::new();
    let with = |set: &[(&str, &str)]| {
        let mut command = teeperf(&folder);
        findings(command.args(["doctor", "--json"]).envs(set.iter().copied()))
    };
    folder.write("empty/x", "");
    let empty = folder.path().join("empty").display().to_string();
    let none = with(&[("PATH", &empty)]);
    assert_eq!(none.1, Some(1));
    expect(&none, "missing compilers: no C compiler", "apt install gcc");
    expect(&none, "note compilers: no C++ compiler", "g++");
    expect(&none, "note Rust: ", "only code without a system needs it");
    let broken = folder.program("broken/gcc", "#!/bin/sh\necho 'gcc: no headers' >&2\nexit 1\n");
    let folder_of_it = folder.path().join("broken").display().to_string();
    let told = with(&[("PATH", &format!("{folder_of_it}:/usr/bin/nowhere"))]);
    assert_eq!(told.1, Some(1));
    expect(&told, "warning compilers: gcc (", "gcc builds nothing");
    expect(&told, "missing compilers: ", "no C compiler builds programs with hooks");
    let named = with(&[("TEEPERF_CC", "/no/such/compiler")]);
    assert_eq!(named.1, Some(1));
    expect(&named, "missing compilers: TEEPERF_CC names no compiler", "/no/such/compiler");
    let named = with(&[("TEEPERF_CC", &broken)]);
    expect(&named, "warning compilers: ", "builds nothing");
    // One that builds no hooks, as it does not hand on the wrapper's words.
    let real = "#!/bin/sh\nfor word; do case $word in -specs=*|-B*) shift; continue;; esac; set -- \"$@\" \"$word\"; shift; done\n\
                exec gcc \"$@\"\n";
    let deaf = folder.program("deaf", real);
    let told = with(&[("TEEPERF_CC", &deaf)]);
    expect(&told, "warning compilers: ", "what ");
}

#[test]
fn places_that_are_not_fit() {
    let folder = Folder::new();
    let mut command = teeperf(&folder);
    command.args(["doctor", "--json"]).env("XDG_CACHE_HOME", folder.path().join("a b"));
    expect(&findings(&mut command), "warning cache: ", "a space or a colon");
    let script = "ulimit -f 100000; exec \"$0\" doctor --json";
    let mut shell = prepared(Command::new("bash"), &folder);
    shell.args(["-c", script, env!("CARGO_BIN_EXE_teeperf")]);
    expect(&findings(&mut shell), "warning limits: files may have 102.4 MB", "ulimit -f unlimited");
    folder.write("teeperf.toml", "[record]\nclokc = 'tick'\n");
    let told = doctor(&folder, &[]);
    assert_eq!(told.1, Some(1));
    expect(&told, "missing settings: ", "is `clock` meant?");
    folder.write("teeperf.toml", "[record]\nclock = 'tick'\n");
    expect(&doctor(&folder, &[]), "ready settings: ", "teeperf.toml (project)");
}

#[test]
fn programs_with_and_without_hooks() {
    let folder = with_program();
    let hooked = doctor(&folder, &["./program"]);
    assert_eq!(hooked.1, Some(0), "{hooked:#?}");
    expect(&hooked, "ready hooks: it has hooks, of interface ", "");
    expect(&hooked, "ready recording: it is linked dynamically, and has the runtime", "");
    expect(&hooked, "ready names: ", "functions have names");
    for (name, words, told) in [
        ("static", &["-static"][..], "ready recording: it is static"),
        ("stripped", &["-s"], "ready hooks: "),
        ("pie", &["-static-pie"], "ready hooks: "),
    ] {
        run(teeperf(&folder).args(["cc", "-O1", "program.c", "-o", name]).args(words));
        let found = doctor(&folder, &[&format!("./{name}")]);
        expect(&found, told, "");
        assert_eq!(found.1, Some(0), "{name}: {found:#?}");
    }
    expect(&doctor(&folder, &["./stripped"]), "warning names: it is stripped", ".build-id/");

    run(Command::new("gcc").current_dir(folder.path()).args(["-O1", "program.c", "-o", "plain"]));
    let plain = doctor(&folder, &["./plain"]);
    assert_eq!(plain.1, Some(1));
    expect(&plain, "missing hooks: it has no hooks", "teeperf cc");

    run(teeperf(&folder).args(["cc", "-O1", "-c", "program.c", "-o", "program.o"]));
    run(Command::new("gcc").current_dir(folder.path()).args(["program.o", "-o", "unlinked"]));
    expect(
        &doctor(&folder, &["./unlinked"]),
        "missing hooks: it was linked without",
        "link it with",
    );
    let words = ["cc", "--teeperf-hooks=source", "-O1", "-c", "program.c", "-o", "program.o"];
    run(teeperf(&folder).args(words));
    run(Command::new("gcc").current_dir(folder.path()).args(["program.o", "-o", "unlinked"]));
    expect(&doctor(&folder, &["./unlinked"]), "missing hooks: it calls hooks", "link it with");

    for (name, part) in
        [("no-such-program", "there is no program"), ("./program.c", "it is no program")]
    {
        let told = doctor(&folder, &[name]);
        assert_eq!(told.1, Some(1), "{told:#?}");
        expect(&told, "missing program: ", part);
    }
    folder.program("script", "#!/bin/sh\n./program\n");
    expect(&doctor(&folder, &["./script"]), "note program: ", "is a script for /bin/sh");
}

/// Functions whose depth grows with hooks are named with each compiler, and no others; the ways round that are told lead round.
#[test]
fn functions_that_need_stack_for_what_would_be_jumps() {
    const LAST: &str = "warning hooks: functions that call themselves or each other last";
    const POINTERS: &str = "note hooks: functions that call last through a pointer";
    const ATTRIBUTE: &str = "__attribute__((no_instrument_function))";
    let folder = Folder::with_project("tail-calls");
    let named = |told: &(Vec<String>, Option<i32>), begins: &str| {
        let line = told.0.iter().find(|line| line.starts_with(begins));
        let names =
            line.map(|line| line.split(" => ").next().unwrap().rsplit(": ").next().unwrap());
        let mut names: Vec<_> = names.unwrap_or_default().split(", ").map(str::to_owned).collect();
        names.sort();
        names.join(" ")
    };
    for compiler in Compiler::installed() {
        let build = |words: &[&str]| {
            let mut build = teeperf(&folder);
            build
                .args(["cc", "--teeperf-hooks=source", "p/handlers.c", "-o", "program"])
                .args(words);
            run(build.env("TEEPERF_CC", compiler.cc));
        };
        for level in
            ["-O2", "-O3", "-O2 -fno-omit-frame-pointer", "-O2 -static", "-O2 -no-pie -fno-pie"]
        {
            let levels: Vec<&str> = level.split(' ').collect();
            build(&[&levels[..], &["-DHANDLERS=", "-DSELVES="]].concat());
            let told = doctor(&folder, &["./program"]);
            assert_eq!(told.1, Some(0), "{told:#?}");
            assert_eq!(named(&told, LAST), "count even fold odd walk", "{compiler:?} {level}");
            assert_eq!(
                named(&told, POINTERS),
                "go_on op_add op_loop op_xor",
                "{compiler:?} {level}"
            );
            expect(&told, LAST, "--teeperf-no-hooks");
        }
        // What is said to lead round does, for a depth that overflows any stack otherwise.
        let runs =
            || Command::new(folder.path().join("program")).arg("far").status().unwrap().success();
        build(&["-O2", "-DHANDLERS=", "-DSELVES="]);
        assert!(!runs(), "{compiler:?}");
        build(&["-O2", "-DHANDLERS=", "-DSELVES=", "--teeperf-no-hooks"]);
        assert!(runs(), "{compiler:?}");
        let without = ["HANDLERS", "SELVES"].map(|name| format!("-D{name}={ATTRIBUTE}"));
        build(&["-O2", &without[0], &without[1], "-foptimize-sibling-calls"]);
        assert!(runs(), "{compiler:?}");
        let told = doctor(&folder, &["./program"]);
        assert!(!told.0.iter().any(|line| line.starts_with(LAST) || line.starts_with(POINTERS)));
    }
}

#[test]
fn hooks_of_libraries_and_of_other_versions() {
    let folder = with_program();
    folder.write("library.c", "int thrice(int n) { return 3 * n; }\n");
    folder.write("user.c", "int thrice(int n); int main(void) { return thrice(0); }\n");
    run(teeperf(&folder).args([
        "cc",
        "-O1",
        "-fPIC",
        "-shared",
        "library.c",
        "-o",
        "libthrice.so",
    ]));
    let link = ["user.c", "-L.", "-lthrice", "-Wl,-rpath,$ORIGIN", "-o", "user"];
    run(Command::new("gcc").current_dir(folder.path()).args(link));
    let user = doctor(&folder, &["./user"]);
    assert_eq!(user.1, Some(0), "{user:#?}");
    expect(&user, "note hooks: it has no hooks itself; libraries of it have some", "");
    expect(&user, "note hooks: 1 of its 2 libraries have hooks: libthrice.so", "");

    // By a folder that is named from here.
    let link = ["user.c", "-L.", "-lthrice", "-o", "user"];
    run(Command::new("gcc").current_dir(folder.path()).args(link));
    let mut command = teeperf(&folder);
    command.args(["doctor", "--json", "./user"]).env("LD_LIBRARY_PATH", ".");
    expect(
        &findings(&mut command),
        "note hooks: 1 of its 2 libraries have hooks: libthrice.so",
        "",
    );

    // A client of trusted applications needs none.
    run(Command::new("gcc").current_dir(folder.path()).args([
        "-shared",
        "-fPIC",
        "library.c",
        "-Wl,-soname,libteec.so.2",
        "-o",
        "libteec.so.2",
    ]));
    let link = ["user.c", "libteec.so.2", "-Wl,-rpath,$ORIGIN", "-o", "client"];
    run(Command::new("gcc").current_dir(folder.path()).args(link));
    let client = doctor(&folder, &["./client"]);
    assert_eq!(client.1, Some(0), "{client:#?}");
    expect(&client, "note hooks: it has no hooks itself; it is a client of trusted", "");
    expect(&client, "note hooks: of the libraries that it is linked with (2) none has", "");

    // The number that hooks announce, another.
    let path = folder.path().join("program");
    let mut bytes = std::fs::read(&path).unwrap();
    let store = [0xc7, 0x47, 0x20];
    let is_store = |at: &usize| {
        bytes[*at..].starts_with(&store) && bytes[at - 7..].starts_with(&[0x48, 0x8d, 0x3d])
    };
    let at = (7..bytes.len() - 8).find(is_store).unwrap();
    bytes[at + 3] = 1;
    std::fs::write(&path, &bytes).unwrap();
    let old = doctor(&folder, &["./program"]);
    assert_eq!(old.1, Some(1));
    expect(&old, "missing hooks: its hooks are of interface 1", "build it again");
}

#[test]
fn programs_that_a_recorder_does_not_get_into() {
    let folder = with_program();
    let path = folder.path().join("program");
    let mode =
        |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o4755);
    expect(&doctor(&folder, &["./program"]), "warning recording: it gets other rights", "cp");
    mode(0o644);
    expect(
        &doctor(&folder, &["./program"]),
        "missing recording: it may not be executed",
        "chmod +x",
    );
    run(teeperf(&folder).args([
        "cc",
        "-O1",
        "--teeperf-exclude=nosuch*",
        "program.c",
        "-o",
        "chosen",
    ]));
    expect(&doctor(&folder, &["./chosen"]), "warning hooks: patterns", "nosuch*");
}

#[test]
fn recordings_with_nothing_and_without_names() {
    let folder = with_program();
    let record = |words: &[&str]| {
        let output = teeperf(&folder).args(["record", "-q"]).args(words).output().unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    record(&["--", "./program"]);
    let whole = doctor(&folder, &["program.teeperf"]);
    assert_eq!(whole.1, Some(0), "{whole:#?}");
    expect(&whole, "ready contents: 2002 calls and returns", "processes: 1");
    expect(&whole, "ready names: ", "have names, and a line each");

    run(Command::new("gcc").current_dir(folder.path()).args(["-O1", "program.c", "-o", "plain"]));
    let said = record(&["-o", "nothing.teeperf", "--", "./plain"]);
    assert!(said.contains("teeperf doctor PROGRAM"), "{said}");
    let nothing = doctor(&folder, &["--recording", "nothing.teeperf"]);
    assert_eq!(nothing.1, Some(1));
    expect(&nothing, "missing contents: no process with hooks found the recorder", "");
    expect(&nothing, "missing hooks: it has no hooks", "");

    record(&["--paused", "-o", "paused.teeperf", "--", "./program"]);
    expect(&doctor(&folder, &["paused.teeperf"]), "missing contents: ", "teeperf resume");
    record(&["--only", "nosuch", "-o", "filtered.teeperf", "--", "./program"]);
    expect(&doctor(&folder, &["filtered.teeperf"]), "missing contents: ", "only nosuch");

    run(teeperf(&folder).args(["cc", "-O1", "-s", "program.c", "-o", "stripped"]));
    record(&["--", "./stripped"]);
    expect(
        &doctor(&folder, &["stripped.teeperf"]),
        "warning names: ",
        "stripped, and no debug file",
    );
    std::fs::copy(folder.path().join("program"), folder.path().join("stripped")).unwrap();
    expect(&doctor(&folder, &["stripped.teeperf"]), "warning names: ", "another build");
    std::fs::remove_file(folder.path().join("stripped")).unwrap();
    expect(&doctor(&folder, &["stripped.teeperf"]), "warning names: ", "not on this machine");

    let bytes = std::fs::read(folder.path().join("program.teeperf")).unwrap();
    std::fs::write(folder.path().join("cut.teeperf"), &bytes[..bytes.len() - 5]).unwrap();
    expect(&doctor(&folder, &["cut.teeperf"]), "warning file: ", "teeperf repair");
}

#[test]
fn recordings_of_samples_are_judged_by_these() {
    let folder = Folder::new();
    folder.write(
        "busy.c",
        "volatile int x; int main(void) { for (long i = 0; i < 400000000; i++) x++; }\n",
    );
    let build = |flags: &[&str]| {
        run(Command::new("gcc")
            .current_dir(folder.path())
            .args(flags)
            .args(["busy.c", "-o", "busy"]));
    };
    build(&["-O1", "-Wl,--build-id"]);
    let record = |words: &[&str]| {
        run(teeperf(&folder).args(["record", "-q", "--probe", "sample"]).args(words))
    };
    record(&["--", "./busy"]);
    let whole = doctor(&folder, &["busy.teeperf"]);
    assert_eq!(whole.1, Some(0), "{whole:#?}");
    expect(&whole, "ready samples: ", " samples of ");
    expect(&whole, "ready names: ", "are here");
    assert!(!whole.0.iter().any(|line| line.contains("hooks")), "{whole:#?}");

    build(&["-O2", "-g", "-Wl,--build-id"]);
    let rebuilt = doctor(&folder, &["busy.teeperf"]);
    assert_eq!(rebuilt.1, Some(1), "{rebuilt:#?}");
    expect(&rebuilt, "missing names: ", "build-id");
    expect(&rebuilt, "missing names: ", "--symfs");
    std::fs::remove_file(folder.path().join("busy")).unwrap();
    let gone = doctor(&folder, &["busy.teeperf"]);
    assert_eq!(gone.1, Some(1), "{gone:#?}");
    expect(&gone, "missing names: ", "teeperf pack");

    record(&["--paused", "-o", "nothing.teeperf", "--", "true"]);
    let nothing = doctor(&folder, &["nothing.teeperf"]);
    assert_eq!(nothing.1, Some(1), "{nothing:#?}");
    expect(&nothing, "missing samples: no sample of ", "teeperf resume");
}

#[test]
fn processes_that_are_not_recorded() {
    let folder = with_program();
    let told = doctor(&folder, &["--pid", &std::process::id().to_string()]);
    assert_eq!(told.1, Some(1));
    expect(&told, "missing process: it was not started by a recorder", "record -- PROGRAM");
    expect(&told, "missing hooks: none of its", "");
    expect(&doctor(&folder, &["--pid", "4194999"]), "missing process: there is no process", "");
    // A number that is no file is a process.
    expect(&doctor(&folder, &[&std::process::id().to_string()]), "missing process: ", "");
}

#[test]
fn what_there_is_for_enclaves_is_told_with_the_next_step() {
    let folder = Folder::new();
    let (found, code) = doctor(&folder, &["--sgx"]);
    let is_missing = found.iter().any(|line| line.starts_with("missing "));
    assert_eq!(code, Some(i32::from(is_missing)), "{found:#?}");
    for area in ["processor", "driver", "samples"] {
        assert!(found.iter().any(|line| line.contains(&format!(" {area}: "))), "{found:#?}");
    }
    let has_step = |line: &String| line.starts_with("ready ") || !line.ends_with("=> ");
    assert!(found.iter().all(has_step), "{found:#?}");
}
