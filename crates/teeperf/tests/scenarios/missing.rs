//! Programs with hooks that a recorder might not hear of: they are recorded, or told of.

use crate::support::*;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

/// A program with hooks, one that is linked statically, and one without hooks that launches them.
fn programs(shop: &Workshop) -> ([PathBuf; 2], PathBuf) {
    let build = |flags: &[&str]| shop.build("lingers.c", Compiler::Gcc, flags);
    let hooked = [build(&["-O2"]), build(&["-O1", "-static"])];
    (hooked, shop.build_unhooked("launches.c", Compiler::Gcc, &["-O2"]))
}

/// How a program ends that is launched in this way, which stays for so many milliseconds, and what is known of it.
fn launched(shop: &Workshop, how: &str, milliseconds: &str) -> Vec<(Told, Report, Outcome)> {
    let (programs, launcher) = programs(shop);
    let record = |program: &PathBuf| {
        let words = [how, program.to_str().unwrap(), milliseconds];
        let mut recording = shop.recording(&[], &launcher, &words);
        let outcome = run(&mut recording.command);
        outcome.expect_code(0);
        (outcome.told(), Report::of(&recording.file), outcome)
    };
    programs.iter().map(record).collect()
}

/// All is recorded, and nobody is said to be missing.
fn expect_recorded(how: &str) {
    for (told, report, outcome) in launched(&Workshop::new(), how, "0") {
        assert_calls(&told, &report);
        assert_eq!((report.health("lost"), report.processes()), (0, 1), "{how}");
        assert!(!outcome.stderr.contains("not recorded"), "{}", outcome.stderr);
    }
}

/// It has run to its end, and the recording and the recorder say that it is missing.
fn expect_missing(report: &Report, outcome: &Outcome, why: &str) {
    assert_eq!(report.unrecorded(), 1, "{}", outcome.stderr);
    let says_so = |text: &str| text.contains("not recorded") && text.contains(why);
    assert!(report.warnings.iter().any(|warning| says_so(warning)), "{:?}", report.warnings);
    assert!(says_so(&outcome.stderr), "{}", outcome.stderr);
}

fn expect_told(how: &str, why: &str) {
    for (told, report, outcome) in launched(&Workshop::new(), how, "1500") {
        assert_eq!(told.calls["work"], 100);
        assert!(outcome.stderr.contains("lingers-Gcc"), "{}", outcome.stderr);
        expect_missing(&report, &outcome, why);
    }
}

/// Guards: a program finds the recorder that is its parent, though its environment is empty.
#[test]
fn executed_by_the_command_without_an_environment() {
    let shop = Workshop::new();
    for program in programs(&shop).0 {
        let words = ["-i", program.to_str().unwrap()];
        let recorded = shop.record(&[], Path::new("env"), &words, 0);
        assert_calls(&recorded.outcome.told(), &recorded.report);
        assert_eq!(recorded.report.health("lost"), 0);
    }
}

#[test]
fn executed_without_an_environment_where_all_ancestors_have_ended() {
    expect_told("orphan", "TEEPERF_SOCKET");
}

/// Guards: a program that is launched as ever is not said to be missing while it starts.
#[test]
fn executed_as_ever() {
    expect_recorded("plainly");
}

/// Guards: the user of this recorder is not the program's, which shows itself to root and its own user alone.
#[test]
fn executed_as_another_user() {
    if !is_root() {
        return;
    }
    let shop = Workshop::new();
    let (programs, launcher) = programs(&shop);
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open(&shop.path("."), 0o777);
    open(&launcher, 0o4755);
    for program in programs {
        let Recording { mut command, file } =
            shop.recording(&[], &launcher, &["root", program.to_str().unwrap()]);
        command.env("XDG_CACHE_HOME", shop.path("cache-of-another")).uid(1000).gid(1000);
        let outcome = run(&mut command);
        if outcome.status.code() == Some(77) {
            eprintln!("skipped: this test needs programs that are root's by their file's rights");
            return;
        }
        outcome.expect_code(0);
        let report = Report::of(&file);
        expect_missing(&report, &outcome, "another user");
    }
}

/// A user without rights records this command. Gives what it has told, and the report.
fn recorded_by_a_user(shop: &Workshop, program: &Path, words: &[&str]) -> (Outcome, Report) {
    std::fs::set_permissions(shop.path("."), std::fs::Permissions::from_mode(0o777)).unwrap();
    let Recording { mut command, file } = shop.recording(&[], program, words);
    command.env("XDG_CACHE_HOME", shop.path("cache-of-another")).uid(1000).gid(1000);
    let outcome = run(&mut command);
    outcome.expect_code(0);
    let report = Report::of(&file);
    (outcome, report)
}

/// The same of a shell's command, whose `$0` is a program that takes on rights; nothing without
/// root's rights, which it takes to make one.
fn recorded_with_rights(shell: &str, command: &str) -> Option<(Outcome, Report)> {
    let shop = is_root().then(Workshop::new)?;
    let program = programs(&shop).0[0].clone();
    set_user_id(&program).unwrap();
    let words = ["-c", command, program.to_str().unwrap()];
    Some(recorded_by_a_user(&shop, Path::new(shell), &words))
}

fn set_user_id(program: &Path) -> std::io::Result<()> {
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o4755))
}

/// Gives a file the capability `CAP_NET_RAW`: `struct vfs_cap_data` of linux/capability.h.
fn give_capability(program: &Path) -> std::io::Result<()> {
    const REVISION_2_EFFECTIVE: u32 = 0x0200_0001;
    const NET_RAW: u32 = 1 << 13;
    let path = CString::new(program.as_os_str().as_bytes()).unwrap();
    let words = [REVISION_2_EFFECTIVE, NET_RAW, 0, 0, 0].map(u32::to_le);
    let name = c"security.capability".as_ptr();
    let (value, size) = (words.as_ptr().cast(), size_of_val(&words));
    // SAFETY: two strings that end with 0, and as many bytes as are told.
    let result = unsafe { libc::setxattr(path.as_ptr(), name, value, size, 0) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Guards: a process that took on rights does not show what it has mapped to the user that records.
#[test]
fn executed_with_more_rights_below_a_users_recorder() {
    if !is_root() {
        return;
    }
    let shop = Workshop::new();
    let program = programs(&shop).0[0].clone();
    set_user_id(&program).unwrap();
    let (outcome, report) = recorded_by_a_user(&shop, &program, &["700"]);
    expect_missing(&report, &outcome, "more rights");
}

/// Guards: a program that took on rights stays until a user's recorder has seen it, whatever the
/// process ran before.
#[test]
fn executed_with_more_rights_below_a_users_recorder_and_ended_at_once() {
    if !is_root() {
        return;
    }
    for give_rights in [set_user_id, give_capability] {
        let shop = Workshop::new();
        let (programs, launcher) = programs(&shop);
        let attached = shop.build("launches.c", Compiler::Gcc, &["-O2"]);
        for program in programs {
            if let Err(error) = give_rights(&program) {
                eprintln!("skipped: the folder of tests takes no such rights: {error}");
                return;
            }
            let path = program.to_str().unwrap();
            for (starter, words) in [
                (&program, &["0"][..]),
                (&launcher, &["plainly", path, "0"]),
                (&attached, &["plainly", path, "0"]),
            ] {
                let (outcome, report) = recorded_by_a_user(&shop, starter, words);
                expect_missing(&report, &outcome, "more rights");
            }
        }
    }
}

/// Guards: the program's path is one below the folder that its starter went to.
#[test]
fn executed_with_more_rights_in_another_folder() {
    let command = "cd \"${0%/*}\" && \"./${0##*/}\" 0; true";
    let Some((outcome, report)) = recorded_with_rights("sh", command) else { return };
    expect_missing(&report, &outcome, "more rights");
}

/// Guards: a process that shows neither its code nor a file by its arguments is not left out
/// without a word.
#[test]
fn executed_with_more_rights_under_another_name() {
    // The second name leads to a program without hooks, which is not the one that runs.
    for name in ["another", "/usr/bin/env"] {
        let command = format!("exec -a {name} \"$0\" 0");
        let Some((_, report)) = recorded_with_rights("bash", &command) else { return };
        let is_told = |warning: &String| warning.contains("neither their code nor");
        assert!(report.warnings.iter().any(is_told), "{name}: {:?}", report.warnings);
    }
}

/// Guards: a process that is looked at while it executes the program is looked at again.
#[test]
fn many_that_are_executed_with_more_rights_at_once() {
    let command = "for i in $(seq 40); do \"$0\" 0 >&2 & done; wait";
    let Some((outcome, report)) = recorded_with_rights("sh", command) else { return };
    assert_eq!(report.unrecorded(), 40, "{}", outcome.stderr);
}

/// Guards: hooks make no system call that may end the program, and the recorder tells of it.
#[test]
fn executed_under_a_filter_that_kills() {
    expect_told("kills", "seccomp");
    expect_told("kills-clone", "seccomp");
}

/// Guards: a child tries the calls where that is known to be harmless, and nobody sees it end.
#[test]
fn executed_under_a_filter_that_kills_which_its_parent_has_as_well() {
    expect_told("kills-behind", "seccomp");
}

/// Guards: programs in containers are recorded, whose filters refuse calls with an error.
#[test]
fn executed_under_a_filter_that_refuses() {
    expect_recorded("refuses-behind");
    expect_told("refuses", "seccomp");
}

/// Guards: the recorder's own filters are known to let its calls pass.
#[test]
fn recorded_under_a_filter() {
    let shop = Workshop::new();
    for program in programs(&shop).0 {
        let mut recording = shop.recording(&[], &program, &[]);
        let outcome = run(without_perf_event_open(&mut recording.command));
        outcome.expect_code(0);
        let report = Report::of(&recording.file);
        assert_calls(&outcome.told(), &report);
        assert_eq!((report.health("lost"), report.processes()), (0, 1));
    }
}

/// Guards: the recorder has answered the process, which cannot take what it was given.
#[test]
fn executed_with_few_descriptors_or_little_memory() {
    expect_told("files", "RLIMIT_NOFILE");
    let shop = Workshop::new();
    let (programs, launcher) = programs(&shop);
    let words = ["memory", programs[0].to_str().unwrap()];
    let Recording { mut command, file } = shop.recording(&[], &launcher, &words);
    let outcome = run(&mut command);
    outcome.expect_code(0);
    expect_missing(&Report::of(&file), &outcome, "RLIMIT_AS");
}

fn is_root() -> bool {
    // SAFETY: no pointers are involved.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !is_root {
        eprintln!("skipped: this test needs root");
    }
    is_root
}

/// What the kernel tells of programs to root alone, or where everybody may hear it.
fn kernel_tells() -> bool {
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    // SAFETY: no pointers are involved.
    let is_root = unsafe { libc::geteuid() } == 0;
    let tells = level.trim().parse::<i32>().is_ok_and(|level| is_root || level < 1);
    if !tells {
        eprintln!("skipped: the kernel does not tell this user of programs");
    }
    tells
}

/// Runs this command of the shell. Gives how many are told to be missing, and how often `work` was called.
fn counted(command: &str) -> (u64, u64) {
    let shop = Workshop::new();
    let (programs, launcher) = programs(&shop);
    let [program, _] = programs;
    let paths = [&launcher, &program].map(|path| path.to_str().unwrap());
    let words = ["-c", command, "sh", paths[0], paths[1]];
    let Recording { mut command, file } = shop.recording(&[], Path::new("sh"), &words);
    let outcome = run(&mut command);
    outcome.expect_code(0);
    let report = Report::of(&file);
    let missing = report.unrecorded();
    assert_eq!(missing > 0, outcome.stderr.contains("not recorded"), "{}", outcome.stderr);
    (missing, report.calls.get("work").copied().unwrap_or(0))
}

/// Guards: none of these lives long enough to be looked at.
#[test]
fn many_that_are_executed_under_a_filter_and_end_at_once() {
    if !kernel_tells() {
        return;
    }
    for how in ["kills", "kills-behind"] {
        let all = format!("for i in $(seq 50); do \"$1\" {how} \"$2\" 0 >&2; done");
        assert_eq!(counted(&all), (50, 0), "{how}");
    }
}

/// Guards: a program is looked at by its path, as lists of mappings have it.
#[test]
fn executed_under_a_filter_from_a_file_that_is_gone_or_has_a_line_end_in_its_name() {
    let gone = "cp \"$2\" \"$0-x\"; \"$1\" kills \"$0-x\" 700 >&2 & sleep 0.2; rm \"$0-x\"; wait";
    let strange = "x=\"$0
x\"; cp \"$2\" \"$x\"; \"$1\" kills \"$x\" 300 >&2";
    for command in [gone, strange] {
        let shop = Workshop::new();
        let (programs, launcher) = programs(&shop);
        let copy = shop.path("copy");
        let paths = [&copy, &launcher, &programs[0]].map(|path| path.to_str().unwrap());
        let words = ["-c", command, paths[0], paths[1], paths[2]];
        let Recording { mut command, file } = shop.recording(&[], Path::new("sh"), &words);
        let outcome = run(&mut command);
        outcome.expect_code(0);
        expect_missing(&Report::of(&file), &outcome, "seccomp");
    }
}

/// Guards: a process that is looked at while it attaches, or while it executes, is not said to be missing.
#[test]
fn many_that_are_recorded() {
    let many = "for i in $(seq 40); do \"$2\" 60 >&2 & done; wait";
    assert_eq!(counted(many), (0, 4000));
    let brief = "for i in $(seq 60); do \"$2\" 0 >&2; done";
    assert_eq!(counted(brief), (0, 6000));
}

/// Guards: root's cache folder is root's alone, and what it preloads lies elsewhere.
#[test]
fn a_library_of_a_program_of_another_users() {
    if !is_root() {
        return;
    }
    let shop = Workshop::new();
    let (_, launcher) = programs(&shop);
    let flags = ["-O2", "-shared", "-fPIC", "-DNAME=red"];
    let library = shop.build("plugin.c", Compiler::Gcc, &flags);
    let program = shop.build_unhooked("namespaces.c", Compiler::Gcc, &["-O2", "-ldl"]);
    std::fs::set_permissions(shop.path("."), std::fs::Permissions::from_mode(0o755)).unwrap();
    let paths = [&program, &library].map(|path| path.to_str().unwrap());
    let words = ["nobody", paths[0], "same", paths[1], "0"];
    let Recording { mut command, file } = shop.recording(&[], &launcher, &words);
    let outcome = run(command.env("XDG_CACHE_HOME", shop.path("cache-of-root")));
    outcome.expect_code(0);
    assert!(!outcome.stderr.contains("ld.so"), "{}", outcome.stderr);
    let report = Report::of(&file);
    assert_eq!((report.unrecorded(), report.processes()), (0, 1));
}

/// Guards: a library that code without hooks loads into a namespace of its own is told of.
#[test]
fn a_library_that_code_without_hooks_loads_into_a_namespace_of_its_own() {
    let shop = Workshop::new();
    let flags = ["-O2", "-shared", "-fPIC", "-DNAME=red"];
    let library = shop.build("plugin.c", Compiler::Gcc, &flags);
    let program = shop.build_unhooked("namespaces.c", Compiler::Gcc, &["-O2", "-ldl"]);
    let words = ["own", library.to_str().unwrap(), "1500"];
    let mut recording = shop.recording(&[], &program, &words);
    let outcome = run(&mut recording.command);
    outcome.expect_code(0);
    expect_missing(&Report::of(&recording.file), &outcome, "dlopen");
}

/// Guards: anybody may make a link in `/tmp` that a program without an environment looks for. One of another user leads nowhere.
#[test]
fn a_link_that_another_user_made() {
    use std::os::unix::fs::{MetadataExt, lchown, symlink};
    let phases = Phases::start(&[]);
    let namespace = std::fs::metadata("/proc/self/ns/pid").unwrap().ino();
    let link_of = |pid: u32| format!("/tmp/.teeperf-of-{namespace}-{pid}");
    let of_recorder = link_of(phases.running.pid().cast_unsigned());
    let recorder = || std::fs::read_link(&of_recorder).unwrap_or_default();
    wait_until("its link", || recorder().to_string_lossy().starts_with("teeperf-"));
    let recorder = recorder();
    let shop = Workshop::new();
    let [program, _] = programs(&shop).0;
    let own = link_of(std::process::id());
    let run_it = || {
        let status = std::process::Command::new(&program).arg("0").env_clear().status().unwrap();
        assert_eq!(status.code(), Some(0));
    };
    symlink(&recorder, &own).unwrap();
    let is_root = lchown(&own, Some(65534), None).is_ok();
    run_it();
    std::fs::remove_file(&own).unwrap();
    // As it is without the other user, so that there is something to refuse.
    symlink(&recorder, &own).unwrap();
    run_it();
    std::fs::remove_file(&own).unwrap();
    let (_, report, _shop) = phases.end();
    let recorded = if is_root { 1 } else { 2 };
    assert_eq!(report.processes(), 1 + recorded, "{report:?}");
}
