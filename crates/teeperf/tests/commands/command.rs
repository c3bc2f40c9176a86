//! The command as a user types it: help, errors that name the next step, exit statuses, files,
//! and what appears on a terminal and what does not.

use crate::support::{Folder, prepared, run, teeperf};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsRawFd;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const PROGRAM: &str = "#include <stdio.h>\n\
    __attribute__((noinline)) static int twice(int n) { return 2 * n; }\n\
    int main(int argc, char **argv) { int sum = 0; for (int i = 0; i < 1000; i++) sum += twice(i);\n\
    printf(\"%d\\n\", sum); return argc > 1 ? argv[1][0] - '0' : 0; }\n";

/// A folder with a hooked program in it.
fn with_program() -> Folder {
    let folder = Folder::new();
    folder.write("program.c", PROGRAM);
    run(teeperf(&folder).args(["cc", "-O1", "-g", "program.c", "-o", "program"]));
    folder
}

/// A folder with `program.teeperf` in it.
fn with_recording() -> Folder {
    let folder = with_program();
    run(teeperf(&folder).args(["record", "-q", "--", "./program"]));
    folder
}

/// The same with a time for each call: between two ticks the program has long ended.
fn with_timed_recording() -> Folder {
    let folder = with_program();
    run(teeperf(&folder).args(["record", "-q", "--clock", "cycle", "--", "./program"]));
    folder
}

fn output(folder: &Folder, words: &[&str]) -> Output {
    teeperf(folder).args(words).output().unwrap()
}

/// What comes of a line of the shell; `$0` is the command.
fn in_bash(folder: &Folder, line: &str) -> Output {
    let mut shell = prepared(Command::new("bash"), folder);
    shell.args(["-c", line, env!("CARGO_BIN_EXE_teeperf")]).output().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

#[test]
fn the_command_has_the_limits_that_the_recorder_was_started_with() {
    let folder = Folder::new();
    let script = "ulimit -Sn 64; exec \"$0\" record -q -o it.teeperf -- sh -c 'ulimit -Sn'";
    assert_eq!(stdout(&in_bash(&folder, script)), "64\n");
}

#[test]
fn folded_stacks_are_not_inverted() {
    let folder = with_recording();
    let refused = output(&folder, &["flame", "--folded", "--inverted", "-o", "-"]);
    assert_eq!((refused.status.code(), stdout(&refused)), (Some(1), ""));
    assert!(stderr(&refused).contains("--inverted is for pages and pictures"));
}

#[test]
fn a_counters_speed_is_for_the_clock_that_reads_one() {
    let folder = Folder::new();
    for clock in [&[][..], &["--clock", "tick"], &["--clock", "ordered"]] {
        let words = ["serve-memory", "memory", "--counter-hz", "10MHz"];
        let refused = output(&folder, &[&words[..], clock].concat());
        assert!(stderr(&refused).contains("--counter-hz is for --clock cycle"), "{refused:?}");
        assert_eq!(refused.status.code(), Some(1));
    }
    assert!(!folder.path().join("memory").exists());
}

#[test]
fn sums_are_not_asked_of_code_that_decides_itself() {
    let folder = Folder::new();
    let words = ["serve-memory", "memory", "--size", "64KiB", "--quiet", "--probe", "tree"];
    let refused = output(&folder, &words);
    assert!(stderr(&refused).contains("teeperf_port_sums()"), "{refused:?}");
    assert_eq!(refused.status.code(), Some(1));
    assert!(!folder.path().join("memory").exists());
    // A program beside it may have hooks.
    let served = output(&folder, &[&words[..], &["--", "true"]].concat());
    assert!(served.status.success(), "{served:?}");
}

#[test]
fn memory_that_nobody_attached_is_told() {
    let folder = Folder::new();
    let words = ["serve-memory", "memory", "--size", "64KiB", "--quiet", "--", "true"];
    let served = output(&folder, &words);
    assert!(stderr(&served).contains("no code attached this memory"), "{served:?}");
    assert!(served.status.success() && !folder.path().join("memory").exists());
}

#[test]
fn memory_that_is_too_small_or_too_large_is_not_made() {
    let folder = Folder::new();
    for (size, why) in [("4KiB", "12288 bytes at least, this one 4096"), ("4000000TiB", "has free")]
    {
        let served = output(&folder, &["serve-memory", "memory", "--size", size, "--", "true"]);
        assert!(stderr(&served).contains(why), "{served:?}");
        assert!(!served.status.success() && !folder.path().join("memory").exists());
    }
}

#[test]
fn memory_that_there_is_no_room_for_is_not_made() {
    let folder = Folder::new();
    let in_memory = tempfile::tempdir_in("/dev/shm").unwrap();
    for path in [folder.path(), in_memory.path()].map(|folder| folder.join("memory")) {
        // Were it laid out all the same, this would keep it from being written.
        let limited = "ulimit -v 4000000; exec \"$0\" serve-memory \"$@\" --size 1024TiB -- true";
        let mut shell = prepared(Command::new("bash"), &folder);
        shell.args(["-c", limited, env!("CARGO_BIN_EXE_teeperf")]).arg(&path);
        let served = shell.output().unwrap();
        let told = stderr(&served);
        assert!(told.contains("1125899906842624 bytes are more than its file system"), "{told}");
        assert!(told.contains("say less with --size"), "{told}");
        assert!(!served.status.success() && !path.exists(), "{served:?}");
    }
}

#[test]
fn memory_that_cannot_be_mapped_leaves_nothing_behind() {
    let folder = Folder::new();
    // Sparse, so that the file can be made where there is room for it.
    let limited = "ulimit -v 1000000; exec \"$0\" serve-memory memory --size 1200MiB -- true";
    let served = in_bash(&folder, limited);
    assert!(stderr(&served).starts_with("teeperf: memory: Cannot allocate memory"), "{served:?}");
    assert_eq!(served.status.code(), Some(1));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

    // What was there stays.
    let file = std::fs::File::create(folder.path().join("memory")).unwrap();
    file.set_len(1200 << 20).unwrap();
    assert!(!in_bash(&folder, limited).status.success());
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap).collect();
    assert!(names.len() == 1 && names[0].file_name() == "memory", "{names:?}");
}

#[test]
fn a_recording_is_no_memory() {
    let folder = Folder::new();
    let recording = [b"TPRF".to_vec(), vec![1; 65_536]].concat();
    let path = folder.path().join("old.teeperf");
    std::fs::write(&path, &recording).unwrap();
    let words = ["serve-memory", "old.teeperf", "--quiet"];
    let refused = output(&folder, &[&words[..], &["--", "true"]].concat());
    let told = "old.teeperf is a recording, and would be overwritten: the memory is named first";
    assert!(stderr(&refused).contains(told), "{refused:?}");
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(std::fs::read(&path).unwrap(), recording);
    assert!(output(&folder, &[&words[..], &["--force", "--", "true"]].concat()).status.success());
    assert_ne!(std::fs::read(&path).unwrap(), recording);
    let help = output(&folder, &["help", "serve-memory"]);
    assert!(stdout(&help).contains("or, as memory, one that is"), "{}", stdout(&help));
}

#[test]
fn memory_that_is_not_used_is_not_taken() {
    let folder = Folder::new();
    let words = ["serve-memory", "memory", "--size", "256MiB", "--quiet", "--"];
    let served = output(&folder, &[&words[..], &["stat", "-c", "%s %b", "memory"]].concat());
    let numbers: Vec<u64> =
        stdout(&served).split_whitespace().map(|number| number.parse().unwrap()).collect();
    assert!(numbers[0] == 256 << 20 && numbers[1] * 512 < 1 << 20, "{served:?}");
}

#[test]
fn a_file_that_is_empty_is_said_to_be() {
    let folder = Folder::new();
    folder.write("empty", "");
    folder.write("gmon.out", "gmon");
    for (words, name) in [
        (&["report", "empty"][..], "empty"),
        (&["report", "empty", "gmon.out"], "empty"),
        (&["dump", "empty"], "empty"),
        (&["flame", "empty"], "empty"),
        (&["export", "--to", "gmon", "empty"], "empty"),
        (&["report", "-"], "/dev/stdin"),
    ] {
        let refused = teeperf(&folder).args(words).stdin(Stdio::null()).output().unwrap();
        let told = format!("teeperf: {name}: the file is empty: nothing was recorded into it");
        assert!(stderr(&refused).starts_with(&told), "{refused:?}");
        assert_eq!(refused.status.code(), Some(1));
    }
}

#[test]
fn a_standard_output_that_cannot_be_written_is_named() {
    let folder = with_recording();
    for words in [
        &["report"][..],
        &["report", "--json"],
        &["dump"],
        &["flame", "-o", "-"],
        &["export", "--to", "gmon", "-o", "-"],
        &["version"],
        &["cc", "--teeperf-help"],
    ] {
        let full = std::fs::File::create("/dev/full").unwrap();
        let refused = teeperf(&folder).args(words).stdout(full).output().unwrap();
        let told = "teeperf: standard output: No space left on device";
        // Where a sample fell into the kernel, the file cannot tell of it, which is said before.
        let mut lines = stderr(&refused).lines();
        let first = lines.find(|line| !line.ends_with("but of functions without an address"));
        assert!(first.is_some_and(|line| line.starts_with(told)), "{words:?}: {refused:?}");
        assert_eq!(refused.status.code(), Some(1));
    }
}

#[test]
fn help_has_the_limits_of_a_trees_memory() {
    let folder = Folder::new();
    let help = output(&folder, &["record", "--help"]);
    let words: Vec<&str> = stdout(&help).split_whitespace().collect();
    assert!(words.join(" ").contains("memory for each thread, 4 KiB to 1 GiB,"), "{help:?}");
    for (size, is_right) in [("4095", false), ("4KiB", true), ("1GiB", true), ("1025MiB", false)] {
        let words = ["record", "-q", "--probe", "tree", "--tree-size", size, "--", "true"];
        let recorded = output(&folder, &words);
        assert_eq!(recorded.status.success(), is_right, "{recorded:?}");
    }
}

#[test]
fn each_command_has_help_with_examples() {
    let folder = Folder::new();
    let help = output(&folder, &["--help"]);
    let listed: Vec<&str> = stdout(&help)
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(listed.len() >= 13, "{listed:?}");
    for name in listed.iter().filter(|name| !["help", "version"].contains(name)) {
        let help = output(&folder, &["help", name]);
        assert!(stdout(&help).contains("Examples:\n  "), "{name}: {}", stdout(&help));
        assert!(help.status.success());
    }
    let wrapper = output(&folder, &["cc", "--teeperf-help"]);
    assert!(stdout(&wrapper).contains("--teeperf-exclude"), "{}", stdout(&wrapper));
}

#[test]
fn what_is_mistyped_is_said_and_ends_with_2() {
    let folder = Folder::new();
    for words in [
        &["reprot"][..],
        &["record"],
        &["record", "--clock", "sundial", "--", "true"],
        &["record", "--period", "soon", "--", "true"],
        &["record", "--limit-size", "big", "--", "true"],
        &["report", "--no-such-option"],
        &["flame", "--svg", "--folded"],
    ] {
        let output = output(&folder, words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(stderr(&output).starts_with("error: "), "{words:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn without_a_recording_the_next_step_is_told() {
    let folder = Folder::new();
    for command in ["report", "flame", "dump"] {
        let none = output(&folder, &[command]);
        assert_eq!(none.status.code(), Some(1));
        assert!(stderr(&none).contains("teeperf record --"), "{}", stderr(&none));
        let absent = output(&folder, &[command, "absent.teeperf"]);
        assert!(stderr(&absent).contains("absent.teeperf: "), "{}", stderr(&absent));
        assert!(stderr(&absent).contains("teeperf record --"));
        folder.write("other.txt", "this is no recording, and long enough to hold a header");
        let other = output(&folder, &[command, "other.txt"]);
        assert_eq!(other.status.code(), Some(1), "{command}");
        assert!(stderr(&other).contains("other.txt"), "{}", stderr(&other));
        assert!(!stderr(&other).contains("panicked"));
    }
}

#[test]
fn a_recording_is_named_after_the_program_and_the_newest_is_read() {
    let folder = with_recording();
    assert!(folder.path().join("program.teeperf").exists());
    let flat = run(teeperf(&folder).arg("report"));
    let line = flat.lines().find(|line| line.contains("  twice")).expect(&flat);
    assert!(line.contains("1,000") || line.contains("1000"), "{line}");
    std::thread::sleep(std::time::Duration::from_millis(20));
    run(teeperf(&folder).args(["record", "-q", "-o", "newer.teeperf", "--", "./program"]));
    run(teeperf(&folder).arg("flame"));
    let page = std::fs::read_to_string(folder.path().join("flame.html")).unwrap();
    assert!(page.starts_with("<!") && page.contains("twice"));
}

#[test]
fn only_recordings_are_replaced() {
    let folder = with_program();
    folder.write("program.teeperf", "a letter to my grandmother, of some length");
    let refused = output(&folder, &["record", "--", "./program"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("--force"), "{}", stderr(&refused));
    assert!(refused.stdout.is_empty(), "the program has not run");
    run(teeperf(&folder).args(["record", "-q", "--force", "--", "./program"]));
    run(teeperf(&folder).args(["record", "-q", "--", "./program"]));
    let unwritable = output(&folder, &["record", "-o", "no/such/folder/x", "--", "./program"]);
    assert_eq!(unwritable.status.code(), Some(1));
    assert!(stderr(&unwritable).contains("no/such/folder/x"));
}

#[test]
fn a_program_is_not_recorded_over_itself() {
    let folder = with_program();
    let before = std::fs::read(folder.path().join("program")).unwrap();
    let path = std::env::join_paths([folder.path(), "/usr/bin".as_ref()]).unwrap();
    for program in ["./program", "program"] {
        let mut command = teeperf(&folder);
        command.args(["record", "--force", "-o", "program", "--", program]).env("PATH", &path);
        let refused = command.output().unwrap();
        assert_eq!((refused.status.code(), stdout(&refused)), (Some(1), ""));
        let text = "teeperf: program is the program itself; name another with -o\n";
        assert_eq!(stderr(&refused), text);
    }
    assert!(std::fs::read(folder.path().join("program")).unwrap() == before);
}

#[test]
fn a_file_that_is_recorded_into_is_refused() {
    let folder = with_program();
    let outer = "\"$0\" record -q -o it.teeperf -- ./program 7; echo $?; ./program 3";
    let mut command = teeperf(&folder);
    command.args(["record", "-q", "-o", "it.teeperf", "--", "sh", "-c", outer]);
    let both = command.arg(env!("CARGO_BIN_EXE_teeperf")).output().unwrap();
    assert_eq!((both.status.code(), stdout(&both)), (Some(3), "1\n999000\n"));
    let text = "teeperf: it.teeperf is being recorded into; name another with -o\n";
    assert_eq!(stderr(&both), text);
    run(teeperf(&folder).args(["report", "it.teeperf"]));
}

#[test]
fn the_programs_exit_status_and_output_are_passed_through() {
    let folder = with_program();
    let seven = output(&folder, &["record", "--", "./program", "7"]);
    assert_eq!(seven.status.code(), Some(7));
    assert_eq!(stdout(&seven), "999000\n");
    let killed = output(&folder, &["record", "--", "sh", "-c", "kill -TERM $$"]);
    assert_eq!(killed.status.code(), Some(128 + 15));
    let absent = output(&folder, &["record", "--", "./no-such-program"]);
    assert_eq!(absent.status.code(), Some(127));
    assert!(stderr(&absent).contains("no-such-program"), "{}", stderr(&absent));
    folder.write("not-executable", "x");
    let refused = output(&folder, &["record", "--", "./not-executable"]);
    assert_eq!(refused.status.code(), Some(126));
}

#[test]
fn the_end_of_a_recording_tells_the_next_step() {
    let folder = with_program();
    let recorded = output(&folder, &["record", "--", "./program"]);
    let text = stderr(&recorded);
    assert!(text.contains("program.teeperf") && text.contains("teeperf report"), "{text}");
    assert_eq!(text.lines().count(), 1, "one line, no live line: {text:?}");
    assert!(!text.contains('\x1b') && !text.contains('\r'), "{text:?}");
    let quiet = output(&folder, &["record", "-q", "--", "./program"]);
    assert_eq!(stderr(&quiet), "");
}

#[test]
fn a_program_without_hooks_gets_a_hint() {
    let folder = Folder::new();
    let recorded = output(&folder, &["record", "--", "true"]);
    assert_eq!(recorded.status.code(), Some(0));
    assert!(stderr(&recorded).contains("CC=\"teeperf cc\""), "{}", stderr(&recorded));
    assert!(stderr(&recorded).contains("network namespace"), "{}", stderr(&recorded));
    // Nor of trusted applications, nor in memory that is lent.
    for words in [["record", "--optee", "--"], ["serve-memory", "memory", "--"]] {
        let recorded = output(&folder, &[&words[..], &["true"]].concat());
        let told = stderr(&recorded);
        assert!(told.contains("nothing was recorded") && told.contains("teeperf doctor"), "{told}");
    }
}

/// Where a recording cannot be written, another place is the next step.
#[test]
fn a_place_that_cannot_be_written_is_said() {
    let folder = with_program();
    folder.write("file", "");
    for words in [
        &["-o", "file/x.teeperf"][..],
        &["-o", "/proc/x.teeperf"],
        &["--rotate", "4M", "-o", "file/x"],
    ] {
        let refused = output(&folder, &[&["record"], words, &["--", "./program"]].concat());
        let told = stderr(&refused);
        assert_eq!((refused.status.code(), stdout(&refused)), (Some(1), ""), "{told}");
        assert!(told.contains(words[words.len() - 1]) && told.contains("; name another"), "{told}");
    }
}

/// What ended the recording is said, not that the program may have no hooks.
#[test]
fn a_recording_that_ended_before_the_program_began_says_why() {
    let folder = with_program();
    let line = "sleep 0.3; exec ./program";
    for (limit, said) in [
        (["--limit-size", "1"], "the size limit was reached"),
        (["--limit-time", "100ms"], "the time limit was reached"),
    ] {
        let words = [&["record"], &limit[..], &["--", "sh", "-c", line]].concat();
        let recorded = output(&folder, &words);
        assert_eq!(stdout(&recorded), "999000\n");
        let text = format!("nothing was recorded: {said} before");
        assert!(stderr(&recorded).contains(&text), "{}", stderr(&recorded));
        assert!(!stderr(&recorded).contains("CC="), "{}", stderr(&recorded));
    }
}

#[test]
fn the_next_step_can_be_typed() {
    let folder = with_program();
    let recorded = output(&folder, &["record", "-o", "-x.teeperf", "--", "./program"]);
    let text = stderr(&recorded);
    assert!(text.ends_with("; next: teeperf report ./-x.teeperf\n"), "{text}");
    let piped = output(&folder, &["record", "-o", "-", "--", "./program"]);
    assert!(!stderr(&piped).contains("next:"), "{}", stderr(&piped));
}

#[test]
fn forms_of_the_flame_graph() {
    let folder = with_timed_recording();
    run(teeperf(&folder).args(["flame", "--svg"]));
    let svg = std::fs::read_to_string(folder.path().join("flame.svg")).unwrap();
    assert!(svg.contains("<svg") && svg.contains("twice"));
    let folded = run(teeperf(&folder).args(["flame", "--folded", "-o", "-"]));
    assert!(folded.lines().any(|line| line.contains("main;twice ")), "{folded}");
    run(teeperf(&folder).args(["flame", "--inverted", "-o", "turned.html"]));
    assert!(folder.path().join("turned.html").exists());
}

#[test]
fn a_graph_is_not_drawn_over_something_else() {
    let folder = with_timed_recording();
    let before = std::fs::read(folder.path().join("program.teeperf")).unwrap();
    folder.write("precious.c", "int x;\n");
    for form in ["html", "svg", "folded"] {
        for file in ["program.teeperf", "precious.c"] {
            let words = ["flame", "--format", form, "-o", file, "program.teeperf"];
            let refused = output(&folder, &words);
            assert_eq!(refused.status.code(), Some(1), "{words:?}");
            assert!(stderr(&refused).contains("--force"), "{}", stderr(&refused));
        }
        // What it drew itself it draws again.
        for _ in 0..2 {
            let name = format!("graph.{form}");
            run(teeperf(&folder).args(["flame", "--format", form, "-o", &name, "program.teeperf"]));
        }
    }
    assert_eq!(std::fs::read(folder.path().join("program.teeperf")).unwrap(), before);
    run(teeperf(&folder).args(["flame", "--force", "-o", "precious.c", "program.teeperf"]));
}

/// Half a page is of no use, and would be taken for something else the next time.
#[test]
fn a_graph_that_cannot_be_written_leaves_no_file() {
    let folder = with_recording();
    // The page is longer than a file may get there.
    let line = "trap '' XFSZ; ulimit -f 4; exec \"$0\" flame -o page.html program.teeperf";
    let failed = in_bash(&folder, line);
    assert!(!failed.status.success());
    assert!(stderr(&failed).contains("cannot write page.html"), "{}", stderr(&failed));
    assert!(!folder.path().join("page.html").exists());
}

#[test]
fn a_recording_comes_through_a_pipe() {
    let folder = with_program();
    let teeperf_path = env!("CARGO_BIN_EXE_teeperf");
    let line =
        format!("{teeperf_path} record -q -o - -- ./program | {teeperf_path} report --json -");
    let mut shell = prepared(Command::new("sh"), &folder);
    let json: serde_json::Value = serde_json::from_str(&run(shell.args(["-c", &line]))).unwrap();
    assert_eq!(json["health"]["lost"], 0);
    assert!(json["functions"].as_array().unwrap().iter().any(|f| f["name"] == "twice"));
}

/// The program limits the recorder, which then has its shared memory already.
#[test]
fn a_file_that_may_grow_no_further_ends_the_recording_and_not_the_recorder() {
    let folder = Folder::new();
    let limits = "#define _GNU_SOURCE\n#include <sys/resource.h>\n#include <unistd.h>\n";
    let limit = "struct rlimit limit = {100000, 100000}; int sum = 0;\n\
        if (prlimit(getppid(), RLIMIT_FSIZE, &limit, 0)) return 99;";
    let text = PROGRAM.replace("int sum = 0;", limit).replace("i < 1000;", "i < 4000000;");
    folder.write("program.c", &format!("{limits}{text}"));
    run(teeperf(&folder).args(["cc", "-O1", "program.c", "-o", "program"]));
    let recorded = output(&folder, &["record", "--clock", "cycle", "--", "./program", "7"]);
    assert_eq!(recorded.status.code(), Some(7), "{}", stderr(&recorded));
    let text = stderr(&recorded);
    assert!(text.contains("File too large") && text.contains("the recording ends there"), "{text}");
    let written = std::fs::metadata(folder.path().join("program.teeperf")).unwrap().len();
    assert!((1..=100_000).contains(&written), "{written}");
    run(teeperf(&folder).arg("report"));
}

#[test]
fn a_file_limit_below_the_shared_memory_is_named() {
    let folder = with_recording();
    let line = "ulimit -f 50; \"$0\" record -o it.teeperf -- ./program 7";
    let recorded = in_bash(&folder, line);
    assert_eq!(recorded.status.code(), Some(7), "{}", stderr(&recorded));
    let text = stderr(&recorded);
    assert!(text.contains("`ulimit -f` allows") && !text.contains("CC="), "{text}");
}

/// Forty threads at once want more trees than one file may hold; there may be several files.
#[test]
fn trees_are_made_in_smaller_steps_below_a_file_limit() {
    let folder = Folder::new();
    let threads = "#include <pthread.h>\n\
        static pthread_barrier_t all;\n\
        static void *run(void *to) { pthread_barrier_wait(&all); return to; }\n\
        int main(void) {\n\
            pthread_t threads[40];\n\
            pthread_barrier_init(&all, 0, 40);\n\
            for (int i = 0; i < 40; i++) pthread_create(&threads[i], 0, run, 0);\n\
            for (int i = 0; i < 40; i++) pthread_join(threads[i], 0);\n\
            return 0;\n\
        }\n";
    folder.write("threads.c", threads);
    run(teeperf(&folder).args(["cc", "-O1", "threads.c", "-o", "threads", "-pthread"]));
    let line = "ulimit -f 20000; exec \"$0\" record -q --probe tree -o it.teeperf -- ./threads";
    let recorded = in_bash(&folder, line);
    assert_eq!((recorded.status.code(), stderr(&recorded)), (Some(0), ""));
    let report = run(teeperf(&folder).args(["report", "--json", "it.teeperf"]));
    let json: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(json["health"]["lost"], 0);
    let of_run = json["functions"].as_array().unwrap().iter().find(|f| f["name"] == "run").unwrap();
    assert_eq!(of_run["calls"], 40);
}

/// A program started by the recorder dies of the signal, as it would have.
#[test]
fn the_signal_of_a_file_limit_is_the_programs() {
    let folder = Folder::new();
    let killed = output(&folder, &["record", "-q", "--", "sh", "-c", "kill -XFSZ $$"]);
    assert_eq!(killed.status.code(), Some(128 + 25));
}

/// As when the reader goes away later.
#[test]
fn a_pipe_that_nobody_reads_any_more_does_not_keep_the_program_from_running() {
    let folder = with_program();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = teeperf(&folder);
    command.args(["record", "-o", "-", "--", "./program", "7"]).stdout(writer);
    let recorded = command.output().unwrap();
    assert_eq!(recorded.status.code(), Some(7));
    let text = stderr(&recorded);
    assert!(text.contains("999000\n"), "{text}");
    assert!(text.contains("; the recording ends there") && !text.contains("CC="), "{text}");
}

/// Guards: it said that the recording cannot begin.
#[test]
fn a_recording_that_cannot_be_finished_is_given_up_at_the_third_interrupt() {
    let folder = with_program();
    let (reader, writer) = std::io::pipe().unwrap();
    // SAFETY: no pointers are involved.
    unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, 4096) };
    let mut command = teeperf(&folder);
    let many = "i=0; while [ $i -lt 30 ]; do ./program 0; i=$((i+1)); done; echo done >&2";
    command.args(["record", "-o", "-", "--", "sh", "-c", many]);
    let mut recorder = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(recorder.stderr.take().unwrap());
    let mut line = String::new();
    while line != "done\n" {
        line.clear();
        assert_ne!(said.read_line(&mut line).unwrap(), 0, "it ended");
    }
    while recorder.try_wait().unwrap().is_none() {
        // SAFETY: kill only takes numbers; the recorder has not been waited for.
        unsafe { libc::kill(recorder.id() as i32, libc::SIGINT) };
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(recorder.wait().unwrap().code(), Some(1));
    let mut text = String::new();
    said.read_to_string(&mut text).unwrap();
    assert!(text.contains("was not finished") && !text.contains("cannot begin"), "{text}");
    drop(reader);
}

#[test]
fn what_fits_nothing_is_said() {
    let folder = with_timed_recording();
    for words in [&["report", "--focus", "nowhere"][..], &["flame", "--thread", "nobody"]] {
        let refused = output(&folder, words);
        assert_eq!(refused.status.code(), Some(1), "{words:?}");
        assert!(stderr(&refused).contains(words[2]), "{}", stderr(&refused));
    }
}

/// The words are put into a line by a shell, which takes no quotes out of them.
#[test]
fn flags_by_hand_build_a_program() {
    let folder = Folder::new();
    folder
        .write("hand.c", "int twice(int n) { return 2 * n; } int main(void) { return twice(2); }");
    let teeperf_path = env!("CARGO_BIN_EXE_teeperf");
    for linking in ["", "--static"] {
        let line = format!(
            "gcc $({teeperf_path} flags --cflags) -c hand.c && \
             gcc hand.o $({teeperf_path} flags --libs {linking}) -o hand && \
             {teeperf_path} record -q -- ./hand"
        );
        let done = in_bash(&folder, &line);
        assert_eq!(done.status.code(), Some(4), "{}", stderr(&done));
    }
}

#[test]
fn forms_of_the_report() {
    let folder = with_timed_recording();
    let json: serde_json::Value =
        serde_json::from_str(&run(teeperf(&folder).args(["report", "--json"]))).unwrap();
    let twice =
        json["functions"].as_array().unwrap().iter().find(|f| f["name"] == "twice").unwrap();
    assert_eq!(twice["calls"], 1000);
    assert_eq!(twice["module"], "program");
    // On a busy machine main's own time may leave all else below the tree's limit.
    let words = ["report", "--tree", "--focus", "twice"];
    let tree = run(teeperf(&folder).args(words));
    assert!(tree.find("  main\n").unwrap() < tree.find("  · twice\n").unwrap(), "{tree}");
    let threads = run(teeperf(&folder).args(["report", "--threads"]));
    assert!(threads.contains("program"), "{threads}");
    let one = run(teeperf(&folder).args(["report", "--sort", "calls", "--limit", "1"]));
    assert!(one.contains("1 of 2") && one.contains("twice"), "most calls: {one}");
    for words in [&["--sort", "total"][..], &["--sort", "name"], &["--focus", "twice"]] {
        assert!(run(teeperf(&folder).arg("report").args(words)).contains("twice"), "{words:?}");
    }
    let without = run(teeperf(&folder).args(["report", "--ignore", "twice"]));
    assert!(without.contains("without \"twice\""), "{without}");
    assert_eq!(without.lines().filter(|line| line.contains("twice")).count(), 1, "{without}");
}

#[test]
fn dumps_grep_well() {
    let folder = with_recording();
    let dump = run(teeperf(&folder).arg("dump"));
    assert!(dump.lines().count() > 2000, "a line for each event");
    assert_eq!(
        dump.lines().filter(|line| line.contains("call") && line.contains("twice")).count(),
        1000
    );
}

#[test]
fn dumps_name_what_has_no_symbol_as_reports_do() {
    let folder = with_program();
    run(prepared(Command::new("strip"), &folder).arg("program"));
    run(teeperf(&folder).args(["record", "-q", "--", "./program"]));
    let report: serde_json::Value =
        serde_json::from_str(&run(teeperf(&folder).args(["report", "--json"]))).unwrap();
    let dump = run(teeperf(&folder).arg("dump"));
    let mut calls = Vec::new();
    // Samples may find functions without hooks.
    let functions = report["functions"].as_array().unwrap().iter();
    for function in functions.filter(|function| function["calls"] != 0) {
        let name = function["name"].as_str().unwrap();
        assert!(name.starts_with("program+0x"), "{name}");
        let is_call = |line: &&str| line.contains(" call ") && line.ends_with(&format!(" {name}"));
        assert_eq!(dump.lines().filter(is_call).count() as u64, function["calls"], "{name}");
        calls.push(function["calls"].as_u64().unwrap());
    }
    calls.sort_unstable();
    assert_eq!(calls, [1, 1000]);
}

#[test]
fn whoever_stops_reading_is_not_complained_about() {
    let folder = with_recording();
    let mut child =
        teeperf(&folder).arg("dump").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut start = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(stderr(&output), "");
    assert!(output.status.success());
}

/// Runs a line on a terminal of its own; what appears there.
fn on_a_terminal(folder: &Folder, line: &str) -> String {
    let mut command = prepared(Command::new("script"), folder);
    command.args(["-q", "-e", "-c", line, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::null());
    run(&mut command)
}

#[test]
fn colour_and_live_line_only_on_a_terminal() {
    let folder = with_recording();
    let teeperf_path = env!("CARGO_BIN_EXE_teeperf");
    assert!(!run(teeperf(&folder).arg("report")).contains('\x1b'));
    assert!(on_a_terminal(&folder, &format!("{teeperf_path} report")).contains("\x1b["));
    let plain = on_a_terminal(&folder, &format!("NO_COLOR=1 {teeperf_path} report"));
    assert!(!plain.contains('\x1b'), "{plain}");
    let line = format!("{teeperf_path} record -- sh -c 'sleep 0.7; ./program'");
    let shown = on_a_terminal(&folder, &line);
    assert!(shown.contains("[teeperf 0."), "{shown:?}");
    assert!(shown.contains("999000"), "{shown:?}");
    let line = format!("{teeperf_path} record -q -- sh -c 'sleep 0.5; ./program'");
    assert_eq!(on_a_terminal(&folder, &line), "999000\r\n");
}

#[test]
fn versions_are_told() {
    let folder = Folder::new();
    let number = env!("CARGO_PKG_VERSION");
    assert_eq!(run(teeperf(&folder).arg("--version")), format!("teeperf {number}\n"));
    let long = run(teeperf(&folder).arg("version"));
    assert!(long.starts_with(&format!("teeperf {number}\nrecordings: format 1.")), "{long}");
}

/// A pipe has no width: names are cut to what `COLUMNS` leaves of a line, and whole where it leaves enough.
#[test]
fn tables_in_pipes_are_as_wide_as_columns_says() {
    let folder = Folder::new();
    let name = "one_of_those_names_".repeat(8);
    folder.write("long.c", &format!("void {name}(void) {{}} int main(void) {{ {name}(); }}"));
    run(teeperf(&folder).args(["cc", "long.c", "-o", "long"]));
    run(teeperf(&folder).args(["record", "-q", "--", "./long"]));
    let report = |columns: &str| run(teeperf(&folder).arg("report").env("COLUMNS", columns));
    let widest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap();
    let narrow = report("80");
    assert!(!narrow.contains(&name) && widest(&narrow) <= 80, "{narrow}");
    assert!(report("250").contains(&name));
    for strange in ["", "0", "-1", "wide", "99999999999999999999", "18446744073709551615"] {
        assert!(widest(&report(strange)) <= 1000, "{strange}");
    }
}

#[test]
fn the_demo_goes_the_whole_way() {
    let folder = Folder::new();
    let text = run(teeperf(&folder).arg("demo"));
    for command in ["$ teeperf cc ", "$ teeperf record ", "$ teeperf report ", "$ teeperf flame "] {
        assert!(text.contains(command), "{command} in {text}");
    }
    assert!(text.contains("strcmp"), "the busiest function in {text}");
    let made = folder.path().join("teeperf-demo");
    let page = std::fs::read_to_string(made.join("flame.html")).unwrap();
    let recording = made.join("library.teeperf");
    let report = run(teeperf(&folder).args(["report", "--json"]).arg(recording));
    // Every function, however little of the time is its own on this machine.
    for function in ["main", "index_book", "find_entry", "next_word"] {
        assert!(page.contains(function), "{function} in the page");
        assert!(report.contains(&format!("\"{function}\"")), "{function} in {report}");
    }
}

/// Whoever names no recording is told which of several it is.
#[test]
fn of_several_recordings_the_newest_is_named() {
    let folder = with_recording();
    let said = || stderr(&output(&folder, &["report"])).to_owned();
    assert_eq!(said(), "");
    let first = folder.path().join("program.teeperf");
    let second = folder.path().join("second.teeperf");
    std::fs::copy(&first, &second).unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(9);
    std::fs::File::options().append(true).open(second).unwrap().set_modified(later).unwrap();
    assert_eq!(said(), "teeperf: second.teeperf, the newest of 2 recordings here\n");
    let named = output(&folder, &["report", "program.teeperf"]);
    assert_eq!(stderr(&named), "");
}
