//! `record --sgx=outside` and `--attach`: hosts of enclaves on a simulated machine, which ask the kernel by themselves, sampled from
//! another process. What that one sees of the machine is simulated too (`tracer.c` there).
#![cfg(target_arch = "x86_64")]

use crate::support::*;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Functions that every stack of an ECALL has, of the host and of the enclave.
const WHOLE: &str = ";run;urts_ecall;urts_enter;enclave_entry;ecall;main_loop;";

/// With frame pointers, by which stacks are followed.
const FLAGS: [&str; 2] = ["-O1", "-fno-omit-frame-pointer"];

struct Machine {
    shop: Workshop,
    host: PathBuf,
    enclave: PathBuf,
}

impl Machine {
    fn new() -> Self {
        let shop = Workshop::new();
        let [host, enclave] = shop.enclave();
        Self { shop, host, enclave }
    }

    fn words<'a>(&'a self, arguments: &'a str) -> Vec<&'a str> {
        std::iter::once(self.enclave.to_str().unwrap()).chain(arguments.split(' ')).collect()
    }

    /// The recorder, which sees what a tracer sees of the machine.
    fn seeing(&self, command: &mut Command) {
        command.env("LD_PRELOAD", self.shop.path("libtracer.so")).env("MACHINE_INLINE", "1");
    }

    /// Records a host from its start.
    fn record(&self, options: &[&str], arguments: &str) -> Run {
        let options = [&["--probe", "sample", "--sgx=outside"], options].concat();
        let mut recording = self.shop.recording(&options, &self.host, &self.words(arguments));
        self.seeing(&mut recording.command);
        let outcome = run(&mut recording.command);
        assert!(outcome.stdout.ends_with("done\n"), "{outcome:?}");
        outcome.expect_code(0);
        Run { outcome, file: recording.file }
    }

    /// A host that has said where its enclave is.
    fn running(&self, arguments: &str) -> Running {
        let mut command = Command::new(&self.host);
        command.args(self.words(arguments)).env("MACHINE_INLINE", "1").stdin(Stdio::null());
        let running = Running::start(&mut command);
        wait_until("an enclave", || running.stdout_so_far().contains("tcs"));
        running
    }

    fn attach(&self, pid: i32, options: &[&str]) -> (Running, PathBuf) {
        let file = self.shop.path("attached.teeperf");
        let mut command = teeperf();
        command.args(["record", "--sgx", "--attach", &pid.to_string()]).args(options);
        command.arg("-o").arg(&file);
        self.seeing(&mut command);
        (Running::start(&mut command), file)
    }
}

/// A recording of a host.
struct Run {
    outcome: Outcome,
    file: PathBuf,
}

impl Run {
    /// Call paths of an event with their weight.
    fn paths(&self, event: &str) -> Vec<(String, u64)> {
        folded(&self.file, event)
    }

    fn percent(&self, event: &str, fits: impl Fn(&str) -> bool) -> f64 {
        percent(&self.paths(event), fits)
    }
}

/// Whether a process is traced; by which thread the system says.
fn is_traced(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    line.is_some_and(|tracer| tracer.trim() != "0")
}

fn assert_shares(paths: &[(String, u64)]) {
    let whole = percent(paths, |path| path.contains(WHOLE));
    assert!(whole > 97.0, "{whole}: {paths:?}");
    for (function, share) in [("half", 50.0), ("three_tenths", 30.0), ("nested_once;fifth", 20.0)] {
        let seen = percent(paths, |path| path.contains(function));
        assert!((seen - share).abs() < 7.0, "{function}: {seen}, not {share}: {paths:?}");
    }
}

/// Guards: the gate, the enclave that nobody saw made, its modules by the runtime's list, stacks, weights.
#[test]
fn a_command_is_sampled_from_its_first_instruction_on() {
    let machine = Machine::new();
    let run = machine.record(&[], "rounds=30000");
    assert_shares(&run.paths("sgx"));
    assert!(
        run.outcome.stderr.contains("samples of enclaves and their hosts"),
        "{:?}",
        run.outcome
    );
    assert!(!run.outcome.stderr.contains("is not known"), "{}", run.outcome.stderr);
    assert!(report(&run.file).contains("Health     0 lost"));
}

/// Guards: what is outside has a stack too, by frame pointers and by copies; time outside is not the enclave's.
#[test]
fn time_outside_is_told_apart_and_has_stacks() {
    let machine = Machine::new();
    for (how, outer) in [("fp", "run;urts_ecall;outside"), ("dwarf", "main;run;urts_ecall;outside")]
    {
        let run = machine.record(&["--call-graph", how], "call=1 rounds=15000");
        let (inside, mut outside) = (run.paths("sgx"), run.paths("outside-sgx"));
        // The simulated machine enters and leaves by signals. What these take is not the host's, and more where others run.
        outside.retain(|(path, _)| !path.contains(";interrupted"));
        let whole = percent(&inside, |path| {
            path.contains("main;run;urts_ecall;urts_enter;enclave_entry;ecall;")
        });
        assert!(whole > 60.0, "{how}: {whole}: {inside:?}");
        let share = percent(&outside, |path| path.contains(outer));
        assert!(share > 50.0, "{how}: {share}: {outside:?}");
        outside.retain(|(path, _)| path.contains("outside_work"));
        let whole = percent(&outside, |path| path.contains(outer));
        assert!(whole > 90.0, "{how}: {whole}: {outside:?}");
    }
}

/// Guards: the host's stack is read too, and stands below what has no frame pointers.
#[test]
fn a_library_inside_is_called_by_main() {
    let mut machine = Machine::new();
    machine.enclave = machine.shop.zstd_enclave();
    let run = machine.record(&["--call-graph", "dwarf"], "rounds=300");
    let paths = run.paths("sgx");
    let zstd = percent(&paths, |path| path.contains(";ZSTD_"));
    assert!(zstd > 50.0, "{zstd}: {paths:?}");
    let path = "main;run;urts_ecall;urts_enter;enclave_entry;ecall;one_round;";
    let joined = percent(&paths, |one| one.contains(path) && one.contains(";ZSTD_"));
    assert!(joined > zstd * 0.95, "{joined} of {zstd}: {paths:?}");
}

/// Guards: threads of a process that runs, each with its own time, and its end.
#[test]
fn four_threads_of_a_host_that_runs_already() {
    let machine = Machine::new();
    let host = machine.running("rounds=15000 tcs=2 threads=4");
    let (recorder, file) = machine.attach(host.pid(), &[]);
    let host = host.wait();
    host.expect_code(0);
    assert!(host.stdout.ends_with("done\n"), "{host:?}");
    let outcome = recorder.wait();
    outcome.expect_code(0);
    // Its end is no reason to end early.
    assert!(!outcome.stderr.contains("ended early"), "{}", outcome.stderr);
    assert_shares(&folded(&file, "sgx"));
    let report = report(&file);
    assert!(report.contains("Threads: 4 of 4"), "{report}");
    // As who started it said.
    assert!(
        report.lines().any(|line| line.starts_with("Command ") && line.contains("/host")),
        "{report}"
    );
}

/// Guards: threads and enclaves that come and go; one of an earlier address is looked for again.
#[test]
fn threads_and_enclaves_come_and_go() {
    let machine = Machine::new();
    let run = machine.record(&[], "lives=8 threads=4 tcs=4 rounds=1200");
    let whole = run.percent("sgx", |path| path.contains(WHOLE));
    assert!(whole > 97.0, "{whole}: {:?}", run.paths("sgx"));
    let mut info = teeperf();
    let info = crate::support::run(info.arg("info").arg(&run.file)).expect_code(0).stdout.clone();
    assert!(info.contains(" 0 inside some that could not be read"), "{info}");
}

/// Guards: where the kernel grants no events, the recorder looks at threads' times itself, and says what that means.
#[test]
fn without_events_of_the_kernel_shares_are_the_same() {
    let machine = Machine::new();
    let options = ["--probe", "sample", "--sgx=outside", "--sample=250"];
    let words = machine.words("rounds=40000 tcs=2 threads=2");
    let mut recording = machine.shop.recording(&options, &machine.host, &words);
    machine.seeing(&mut recording.command);
    let outcome = run(recording.command.env("MACHINE_WITHOUT_EVENTS", "1"));
    outcome.expect_code(0);
    let said = "the kernel permits no events";
    assert_eq!(outcome.stderr.matches(said).count(), 1, "{}", outcome.stderr);
    let paths = folded(&recording.file, "sgx");
    let whole = percent(&paths, |path| path.contains(WHOLE));
    assert!(whole > 97.0, "{whole}: {paths:?}");
    let (_, said) = outcome.stderr.rsplit_once("teeperf: ").unwrap();
    let samples: u64 = said.split(' ').next().unwrap().parse().unwrap();
    assert!(samples > 60, "{said}");
    let half = percent(&paths, |path| path.contains("half"));
    assert!((38.0..62.0).contains(&half), "{half}: {paths:?}");
}

/// Guards: children are traced, and have their parent's code; who waits for them hears of their end.
#[test]
fn children_end_as_they_would() {
    let machine = Machine::new();
    let run = machine.record(&[], "fork=1 lives=3 rounds=4000");
    assert_shares(&run.paths("sgx"));
}

/// Guards: of a library that is there since a moment ago, and that a copied stack leads through, the recording has the code.
#[test]
fn callers_in_a_library_that_was_just_loaded() {
    assert_late_library_is_known("--sgx=outside");
}

/// Guards: a thread that is asked to stop while it forks is sampled all the same.
#[test]
fn who_forks_all_the_time_is_sampled() {
    let shop = Workshop::new();
    let forks = "i=0; while [ $i -lt 1000 ]; do (:); i=$((i + 1)); done";
    let options = ["--probe", "sample", "--sgx=outside"];
    let mut recording = shop.recording(&options, Path::new("/bin/sh"), &["-c", forks]);
    run(&mut recording.command).expect_code(0);
    let mut dump = teeperf();
    let dump = run(dump.arg("dump").arg(&recording.file)).expect_code(0).stdout.clone();
    let periods: Vec<u64> = dump
        .split(" period=")
        .skip(1)
        .filter_map(|rest| rest.split(' ').next()?.parse().ok())
        .collect();
    let (most, all) = (periods.iter().max().unwrap(), periods.iter().sum::<u64>());
    assert!(periods.len() > 20 && 2 * most < all, "{most} of {all}: {periods:?}");
}

/// Guards: exits, OCALLs and exceptions under a tracer leave registers as they were.
#[test]
fn results_are_right_through_exceptions_and_floating_point() {
    let machine = Machine::new();
    for arguments in ["call=2 rounds=4000 apart=1", "call=3 rounds=200000 frame=4"] {
        let run = machine.record(&["--sample=2000"], arguments);
        assert!(!run.paths("sgx").is_empty(), "{arguments}");
    }
}

/// Guards: what cannot be read is told once, and counted.
#[test]
fn a_production_enclave_is_told_of_and_its_time_counted() {
    let machine = Machine::new();
    let run = machine.record(&[], "debug=0 rounds=4000 threads=2");
    let said = "is a production enclave, whose memory nobody can read";
    assert_eq!(run.outcome.stderr.matches(said).count(), 1, "{}", run.outcome.stderr);
    let share = run.percent("sgx-unreadable", |path| {
        path.contains(";run;urts_ecall;urts_enter;[enclave at 0x")
    });
    assert!(share > 99.0, "{:?}", run.paths("sgx-unreadable"));
}

/// Guards: an enclave that was read before and cannot be any more is no production enclave.
#[test]
fn an_enclave_that_is_lost_is_told_of_at_the_end() {
    let machine = Machine::new();
    let options = ["--probe", "sample", "--sgx=outside"];
    let words = machine.words("rounds=8000");
    let mut recording = machine.shop.recording(&options, &machine.host, &words);
    machine.seeing(&mut recording.command);
    let outcome = run(recording.command.env("MACHINE_SLEEPS", "600"));
    outcome.expect_code(0);
    let said = "could not be read any more, ";
    assert_eq!(outcome.stderr.matches(said).count(), 1, "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("is a production enclave"), "{}", outcome.stderr);
    let counts = ["sgx", "sgx-unreadable"].map(|event| folded(&recording.file, event).len());
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
}

/// Guards: files that the user names, where there is no list.
#[test]
fn modules_are_as_the_user_names_them() {
    let machine = Machine::new();
    // Another name for the same file: what the user says counts.
    let other = machine.shop.path("other.so");
    std::fs::copy(&machine.enclave, &other).unwrap();
    let run = machine.record(&["--module", other.to_str().unwrap()], "rounds=4000");
    let whole = run.percent("sgx", |path| path.contains(WHOLE));
    assert!(whole > 97.0, "{whole}: {:?}", run.paths("sgx"));
    let mut dump = teeperf();
    let dump = crate::support::run(dump.arg("dump").arg(&run.file)).expect_code(0).stdout.clone();
    let maps: Vec<_> = dump.lines().filter(|line| line.contains(" map ")).collect();
    let is_there = |name: &str| maps.iter().any(|line| line.contains(name));
    assert!(is_there("/other.so") && !is_there("/enclave.so"), "{dump}");
}

/// Guards: a limit, and signals, let the process go on as if nobody had been there.
#[test]
fn a_process_that_is_left_goes_on() {
    let machine = Machine::new();
    let host = machine.running("rounds=25000 tcs=2 threads=2");
    let (recorder, file) = machine.attach(host.pid(), &["--limit-time", "300ms"]);
    let outcome = recorder.wait();
    outcome.expect_code(0);
    assert!(outcome.stderr.contains("the time limit was reached"), "{}", outcome.stderr);
    assert!(!is_traced(host.pid()));
    assert!(!folded(&file, "sgx").is_empty());
    std::fs::remove_file(&file).unwrap();
    let (recorder, file) = machine.attach(host.pid(), &[]);
    wait_until("a tracer", || is_traced(host.pid()));
    std::thread::sleep(std::time::Duration::from_millis(200));
    recorder.signal(libc::SIGTERM);
    let outcome = recorder.wait();
    assert!(outcome.stderr.contains("it was interrupted"), "{}", outcome.stderr);
    assert!(!folded(&file, "sgx").is_empty());
    let host = host.wait();
    host.expect_code(0);
    assert!(host.stdout.ends_with("done\n"), "{host:?}");
}

/// Guards: no option of ptrace takes the process along.
#[test]
fn a_recorder_that_is_killed_leaves_the_host_and_the_recording() {
    let machine = Machine::new();
    let host = machine.running("rounds=25000 tcs=2 threads=3");
    let (recorder, file) = machine.attach(host.pid(), &[]);
    wait_until("samples", || std::fs::metadata(&file).is_ok_and(|file| file.len() > 8000));
    recorder.signal(libc::SIGKILL);
    assert_eq!(signal_of(recorder.wait().status), Some(libc::SIGKILL));
    let host = host.wait();
    host.expect_code(0);
    assert!(host.stdout.ends_with("done\n"), "{host:?}");
    assert!(report(&file).contains("the recording has no end"));
    let whole = percent(&folded(&file, "sgx"), |path| path.contains(WHOLE));
    assert!(whole > 97.0, "{whole}");
}

/// Guards: all that a thread is told of otherwise comes to it as it would have.
#[test]
fn signals_stops_and_executions_are_as_without_a_tracer() {
    let machine = Machine::new();
    let program = machine.shop.build_unhooked("traced.c", Compiler::Gcc, &FLAGS);
    let alone = run(Command::new(&program).arg("all"));
    alone.expect_code(0);
    let options = ["--probe", "sample", "--sgx=outside", "--sample=4000"];
    let mut recording = machine.shop.recording(&options, &program, &["all"]);
    let outcome = run(&mut recording.command);
    outcome.expect_code(0);
    assert_eq!(outcome.stdout, alone.stdout);
    let paths = folded(&recording.file, "outside-sgx");
    // The program that is executed at the end has libraries of its own.
    for path in ["children;work_of_child", "__libc_start_call_main;main;work_of_program"] {
        let share = percent(&paths, |one| one.contains(path));
        assert!(share > 5.0, "{path}: {share}: {paths:?}");
    }
    // A program that a signal ends, ends by that signal.
    let mut recording = machine.shop.recording(&options, &program, &["killed"]);
    std::fs::remove_file(&recording.file).unwrap();
    assert_eq!(signal_of(run(&mut recording.command).status), Some(libc::SIGUSR2));
}

/// Guards: a group that stands by SIGSTOP stands under a tracer too, and goes on by SIGCONT.
#[test]
fn a_process_that_is_stopped_stands_until_it_is_continued() {
    let machine = Machine::new();
    let host = machine.running("rounds=30000 tcs=2 threads=2");
    let (recorder, _) = machine.attach(host.pid(), &[]);
    wait_until("a tracer", || is_traced(host.pid()));
    host.signal(libc::SIGSTOP);
    let stat = || std::fs::read_to_string(format!("/proc/{}/stat", host.pid())).unwrap();
    let times = || {
        let stat = stat();
        let words: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        (words[0].to_owned(), words[11].to_owned())
    };
    // Longer than to be sampled.
    wait_until("a stop, or its end", || {
        let before = times();
        std::thread::sleep(std::time::Duration::from_millis(50));
        matches!(before.0.as_str(), "T" | "t" | "Z") && before == times()
    });
    let (state, before) = times();
    assert_ne!(state, "Z");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(times(), (state, before));
    host.signal(libc::SIGCONT);
    let host = host.wait();
    host.expect_code(0);
    assert!(host.stdout.ends_with("done\n"), "{host:?}");
    recorder.wait().expect_code(0);
}

/// Guards: each error says what to do next.
#[test]
fn processes_that_cannot_be_traced() {
    let machine = Machine::new();
    let refused = |pid: i32, expected: &str| {
        let (recorder, file) = machine.attach(pid, &[]);
        let outcome = recorder.wait();
        assert!(!outcome.success() && outcome.stderr.contains(expected), "{}", outcome.stderr);
        assert!(!file.exists());
    };
    refused(0x3f_ffff, "there is no process 4194303; next: ");
    let host = machine.running("rounds=15000");
    let (first, _) = machine.attach(host.pid(), &["--quiet"]);
    wait_until("a tracer", || is_traced(host.pid()));
    let mut second = teeperf();
    second.args(["record", "--sgx", "--attach", &host.pid().to_string(), "-o", "-"]);
    let second = run(&mut second);
    let expected = format!("process {} is traced by process {} already", host.pid(), first.pid());
    assert!(second.stderr.contains(&expected), "{}", second.stderr);
    host.wait().expect_code(0);
    first.wait().expect_code(0);
    let mut without = teeperf();
    without.args(["record", "--attach", "1"]);
    let without = run(&mut without);
    assert!(
        without.stderr.contains("--attach is for hosts of enclaves, with --sgx"),
        "{without:?}"
    );
}

/// Guards: a process without enclaves is sampled all the same, and it is said.
#[test]
fn a_process_without_enclaves() {
    let machine = Machine::new();
    let program = machine.shop.build_unhooked("traced.c", Compiler::Gcc, &FLAGS);
    let mut command = Command::new(&program);
    let busy = Running::start(command.arg("busy"));
    wait_until("its work", || busy.stdout_so_far().contains("busy"));
    let (recorder, file) = machine.attach(busy.pid(), &["--limit-time", "500ms"]);
    let outcome = recorder.wait();
    outcome.expect_code(0);
    assert!(outcome.stderr.contains("no thread was found inside an enclave"), "{}", outcome.stderr);
    let share = percent(&folded(&file, "outside-sgx"), |path| path.contains("work_of_program"));
    assert!(share > 90.0, "{share}");
    busy.signal(libc::SIGTERM);
    assert_eq!(signal_of(busy.wait().status), Some(libc::SIGTERM));
}
