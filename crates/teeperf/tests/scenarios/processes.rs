//! Processes: fork in all its forms, exec, daemons, and what a process does to itself.

use crate::support::*;
use std::path::Path;

/// Records the program from every compiler, and looks at each recording.
fn each(how: &str, look: impl Fn(&Told, &Report)) {
    let shop = Workshop::new();
    for compiler in Compiler::tried() {
        for flags in [&["-O2"][..], &["-O0", "-static"]] {
            let program = shop.build("processes.c", compiler, flags);
            let recorded = shop.record(&[], &program, &[how], 0);
            let told = recorded.outcome.told();
            assert_calls(&told, &recorded.report);
            assert_eq!(recorded.report.health("lost"), 0, "{how} {compiler:?} {flags:?}");
            look(&told, &recorded.report);
        }
    }
}

/// Guards: the gate that a fork wipes. A child that went on in its parent's chunk would write
/// over it.
#[test]
fn fork_without_exec() {
    each("fork", |_, report| assert_eq!(report.processes(), 10));
}

/// Guards: as above while other threads are inside hooks and inside the runtime.
#[test]
fn fork_while_other_threads_call() {
    each("threads", |_, report| assert_eq!(report.processes(), 31));
}

/// Guards: threads wait for the one that attaches their process. What they called meanwhile was dropped.
#[test]
fn threads_that_call_at_once_behind_a_fork() {
    each("together", |_, report| assert_eq!(report.processes(), 41));
}

/// Guards: as above where calls are summed.
#[test]
fn threads_that_are_summed_at_once_behind_a_fork() {
    let shop = Workshop::new();
    let program = shop.build("processes.c", Compiler::Gcc, &["-O2"]);
    let recorded = shop.record(&["--probe", "tree"], &program, &["together"], 0);
    assert_calls(&recorded.outcome.told(), &recorded.report);
    assert_eq!(recorded.report.health("lost"), 0);
}

/// Guards: the depth kept at `vfork`: the child's frames are not the parent's.
#[test]
fn vfork_and_exec() {
    each("vfork-exec", |told, report| {
        assert_eq!(told.calls["main"], 11);
        assert_eq!(report.calls_below("in_vfork", "main"), 0);
        assert_eq!(report.calls_directly_below("vforks", "work"), 20);
    });
}

/// Guards: as above with `_exit`.
#[test]
fn vfork_and_exit() {
    each("vfork-exit", |_, report| {
        assert_eq!(report.processes(), 1);
        // None of the twenty calls after the child's end lies below the child's frames.
        assert_eq!(report.calls_below("in_vfork", "in_vfork"), 0);
        assert_eq!(report.calls_directly_below("vforks", "work"), 20);
    });
}

/// Guards: the address in the environment survives exec.
#[test]
fn posix_spawn_and_system() {
    each("spawn", |told, _| assert_eq!(told.calls["main"], 3));
}

/// Guards: a page wiped on fork notices what no handler of `pthread_atfork` sees.
#[test]
fn raw_clone() {
    each("clone", |_, report| assert_eq!(report.processes(), 7));
}

/// Guards: exec keeps the process id and everything else begins anew.
#[test]
fn exec_of_a_hooked_program() {
    each("exec", |told, report| {
        assert_eq!(told.calls["main"], 2);
        assert_eq!(report.health("open"), 2);
    });
}

/// Guards: what was called before exec of a program without hooks is not lost.
#[test]
fn exec_of_a_program_without_hooks() {
    each("unhooked", |_, report| assert_eq!(report.health("open"), 2));
}

/// Guards: no descriptor is kept that a daemon could close, and the recorder stays for those
/// who outlive the command.
#[test]
fn a_daemon_that_closes_everything() {
    let shop = Workshop::new();
    for flags in [&["-O2"][..], &["-O0", "-static"]] {
        let program = shop.build("processes.c", Compiler::Gcc, flags);
        let said = shop.path("daemon-said");
        let recorded = shop.record(&[], &program, &["daemon", said.to_str().unwrap()], 0);
        let mut told = recorded.outcome.told();
        for (name, calls) in Told::read(&std::fs::read_to_string(&said).unwrap()).calls {
            told.add(&name, calls);
        }
        // The one in the middle has closed its output.
        for (name, calls) in [("is_daemon", 1), ("work", 1), ("leaf", 50)] {
            told.add(name, calls);
        }
        assert_calls(&told, &recorded.report);
        assert_eq!(recorded.report.health("lost"), 0);
        assert_eq!(recorded.report.processes(), 3);
        std::fs::remove_file(&said).unwrap();
    }
}

/// Guards: the recorder stays for a child that was forked and has not called anything yet, whoever
/// else is gone, and says what it waits for.
#[test]
fn a_process_whose_first_call_comes_after_all_others_have_ended() {
    let shop = Workshop::new();
    for flags in [&["-O2"][..], &["-O0", "-static"]] {
        let program = shop.build("processes.c", Compiler::Gcc, flags);
        let recorded = shop.record(&[], &program, &["left"], 0);
        let mut told = recorded.outcome.told();
        // The one in the middle does not print.
        told.add("is_left", 1);
        let says_so = |line: &&str| line.contains("Ctrl-C ends the recording");
        assert_eq!(recorded.outcome.stderr.lines().filter(says_so).count(), 1);
        assert_calls(&told, &recorded.report);
        assert_eq!(recorded.report.health("lost"), 0);
        assert_eq!(recorded.report.processes(), 3);
    }
}

/// Guards: a program that was left behind has time to find the recorder.
#[test]
fn a_program_that_a_shell_leaves_behind() {
    let shop = Workshop::new();
    let program = shop.build("processes.c", Compiler::Gcc, &["-O2"]);
    let script = format!("'{}' work &", program.display());
    let recorded = shop.record(&[], Path::new("/bin/sh"), &["-c", &script], 0);
    assert_calls(&recorded.outcome.told(), &recorded.report);
    assert!(!recorded.outcome.stderr.contains("Ctrl-C"));
}

/// Guards: it does not stay for one that has become a program without hooks.
#[test]
fn a_process_that_leaves_a_program_without_hooks() {
    let shop = Workshop::new();
    let program = shop.build("processes.c", Compiler::Gcc, &["-O2"]);
    let end = shop.path("end");
    let recorded = shop.record(&[], &program, &["left-exec", end.to_str().unwrap()], 0);
    // The other program goes on until now.
    std::fs::write(end, "").unwrap();
    assert_eq!(recorded.report.processes(), 2);
}

/// A program that changes the world it runs in, and calls through many chunks afterwards.
fn surroundings(how: &[&str]) {
    surroundings_told(how, &[]);
}

/// One of which warnings with these words tell.
fn surroundings_told(how: &[&str], told: &[&str]) {
    let shop = Workshop::new();
    for flags in [&["-O2"][..], &["-O2", "-static"]] {
        let program = shop.build("surroundings.c", Compiler::Gcc, flags);
        let recording = shop.recording(&[], &program, how);
        let Some(recorded) = recording.run_with_rights() else { return };
        let Recorded { outcome, report, .. } = recorded;
        assert_calls(&outcome.told(), &report);
        report.expect_whole_but_told(told);
    }
}

/// Guards: processes are known by number and not by name.
#[test]
fn a_program_that_changes_its_name() {
    surroundings(&["name"]);
}

/// Guards: after the start the runtime has no descriptor (programs of all kinds here look for one), and
/// needs none.
#[test]
fn a_program_that_closes_every_descriptor() {
    surroundings(&["close"]);
}

/// Guards: full chunks change hands without a system call that a sandbox forbids.
#[test]
fn a_program_that_forbids_itself_system_calls() {
    surroundings_told(&["seccomp"], &["the program filters its system calls"]);
}

/// Guards: the recorder needs no right over the program after the start.
#[test]
fn a_program_that_gives_up_root() {
    surroundings(&["user"]);
}

/// Guards: a program at its limits has room for what the runtime needs.
#[test]
fn a_program_with_limits() {
    surroundings(&["limits"]);
}

/// Guards: nothing is opened by path after the start.
#[test]
fn a_program_in_an_empty_root() {
    let shop = Workshop::new();
    surroundings(&["root", shop.path("").to_str().unwrap()]);
}
