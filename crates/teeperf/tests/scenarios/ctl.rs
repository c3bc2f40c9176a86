//! Which recording is asked: by a number of the recorder, or of a program that it records, or the only one there is.

use crate::support::*;
use std::process::{Command, Stdio};

/// A program under a recorder, which has written over its environment.
fn titled() -> Phases {
    let shop = Workshop::new();
    let program = shop.build("titles.c", Compiler::Gcc, &["-O1"]);
    let phases = Phases::of(shop, &program, &[]);
    wait_until("its title", || phases.running.stdout_so_far().contains("done\n"));
    phases
}

fn ctl(words: &[&str]) -> Outcome {
    run(teeperf().arg("ctl").args(words))
}

/// Guards: the recorder whose clock the program has mapped.
#[test]
fn a_program_that_has_written_over_its_environment() {
    let phases = titled();
    let program = child_of(phases.running.pid()).to_string();
    let environment = std::fs::read_to_string(format!("/proc/{program}/environ")).unwrap();
    assert!(!environment.contains("TEEPERF_SOCKET"), "{environment}");
    let status = ctl(&[&program, "status"]);
    status.expect_code(0);
    assert!(status.stdout.contains(&format!("program: {program} titles-")), "{status:?}");
    assert!(status.stdout.contains("waited: 0.000\n"), "{status:?}");
    let json: serde_json::Value =
        serde_json::from_str(&ctl(&[&program, "status", "--json"]).stdout).unwrap();
    let name = json["programs"][0]["name"].as_str().unwrap();
    assert!(name.starts_with("titles-"), "{name}");
    for word in ["pause", "resume"] {
        run(teeperf().args([word, &program])).expect_code(0);
    }
    let (_, report, _shop) = phases.end_by("end", 7);
    assert_eq!(report.calls["main"], 1);
}

/// Guards: processes of one program are known by the titles that they give themselves, as workers of servers do.
#[test]
fn a_process_that_gives_itself_a_title() {
    let mut phases = titled();
    phases.does(&["title"]);
    let title = b"titles: at work";
    wait_until("its title in the recording", || {
        let bytes = std::fs::read(&phases.file).unwrap_or_default();
        bytes.windows(title.len()).any(|part| part == title)
    });
    let (_, report, _shop) = phases.end_by("end", 7);
    assert_eq!(report.calls["main"], 1);
    assert_eq!(report.calls["writes"], 1);
    let shown = run(teeperf().args(["report", "--threads"]).arg(report.recording()));
    assert!(shown.stdout.contains("  titles: at work\n"), "{shown:?}");
}

/// Guards: where several recordings run, they are told apart; who is none of them hears which there are.
#[test]
fn one_of_several() {
    let both = [titled(), titled()];
    for words in [&["status"][..], &["pause"], &["1", "status"]] {
        let outcome = ctl(words);
        outcome.expect_code(1);
        for phases in &both {
            let recorder = phases.running.pid();
            let line = format!("  {recorder} teeperf record, into ");
            let program = format!(", of {} titles\n", child_of(recorder));
            let has = |line: &str| outcome.stderr.contains(line);
            assert!(has(&line) && (has(&program) || has(program.trim_end())), "{outcome:?}");
        }
        assert!(outcome.stderr.contains("; next: "), "{outcome:?}");
    }
    for phases in both {
        phases.end_by("end", 7);
    }
}

/// Guards: the only one need not be named, and that there is none is said with what to do. In a network namespace of its
/// own, where no others are.
#[test]
fn the_only_one() {
    let shop = Workshop::new();
    let program = shop.build("titles.c", Compiler::Gcc, &["-O1"]);
    let script = format!(
        "{TEEPERF} ctl status; echo none $?
         mkfifo {pipe}
         {TEEPERF} record -q -o {file} -- {program} < {pipe} > {out} &
         exec 3> {pipe}
         until grep -q done {out}; do sleep 0.05; done
         {TEEPERF} ctl status && {TEEPERF} ctl pause && {TEEPERF} ctl status && {TEEPERF} resume && echo asked
         echo end >&3
         wait $!; echo ended $?",
        pipe = shop.path("pipe").display(),
        file = shop.path("recording.teeperf").display(),
        program = program.display(),
        out = shop.path("out").display(),
    );
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "sh", "-c", &script]);
    command.env("XDG_CACHE_HOME", cache()).stdin(Stdio::null());
    let outcome = run(&mut command);
    if outcome.stderr.contains("unshare failed") {
        eprintln!("skipped: no namespace can be made here: {}", outcome.stderr);
        return;
    }
    let said = &outcome.stdout;
    assert!(said.contains("none 1\n") && said.contains("asked\nended 7\n"), "{outcome:?}");
    assert!(said.contains("state: recording\n") && said.contains("state: paused\n"), "{said}");
    assert!(outcome.stderr.contains("nothing is being recorded; next: teeperf record"), "{said}");
}

/// Guards: patterns without an option are answered with the options that there are.
#[test]
fn patterns_without_an_option() {
    for (words, answers) in [
        (&["filter", "x*"][..], &["ctl filter --only 'x*'", "ctl filter --exclude 'x*'"][..]),
        (&["filter", "parse", "--all"], &["ctl filter --only 'parse'", "--exclude 'parse'"]),
        (&["events", "x*"], &["\"x*\" is no kind of events", "(--only, --exclude)"]),
        (&["timed", "--only", "x*"], &["unexpected argument '--only'", "timed"]),
    ] {
        let outcome = run(Command::new(TEEPERF).arg("ctl").args(words));
        assert!(!outcome.success(), "{words:?}");
        for answer in answers {
            assert!(outcome.stderr.contains(answer), "{words:?}: {}", outcome.stderr);
        }
    }
}
