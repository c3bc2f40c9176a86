//! What is shown of work that takes long, what is left of it when it is interrupted, and what becomes of output that nobody reads.

use crate::support::{Folder, prepared, run, teeperf};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const PROGRAM: &str = "#include <stdlib.h>\n__attribute__((noinline)) int twice(int n) { return 2 * n; }\n\
    int main(int argc, char **argv) { long count = argc > 1 ? atol(argv[1]) : 1000; int sum = 0;\n\
    for (long i = 0; i < count; i++) sum += twice(i);\n\
    return sum == 1; }\n";

/// A folder with `program.teeperf`, of so many calls.
fn with_recording(calls: &str) -> Folder {
    let folder = Folder::new();
    folder.write("program.c", PROGRAM);
    run(teeperf(&folder).args(["cc", "-O1", "-g", "program.c", "-o", "program"]));
    run(teeperf(&folder).args(["record", "-q", "--", "./program", calls]));
    folder
}

/// One that takes seconds to be read, on a quick machine too.
fn large() -> &'static Folder {
    static LARGE: OnceLock<Folder> = OnceLock::new();
    LARGE.get_or_init(|| {
        const ENOUGH: f64 = 4.0;
        let calls = 20_000_000;
        let folder = with_recording(&calls.to_string());
        let began = Instant::now();
        run(teeperf(&folder).arg("report"));
        let more = ENOUGH / began.elapsed().as_secs_f64();
        if more > 1.0 {
            let calls = (f64::from(calls) * more.min(20.0)) as u64;
            run(teeperf(&folder).args(["record", "-q", "--", "./program", &calls.to_string()]));
        }
        folder
    })
}

/// The master's side of a terminal, and the other.
fn terminal() -> (std::fs::File, OwnedFd) {
    let (mut master, mut slave) = (0, 0);
    // SAFETY: both numbers are written; no name, settings or size are asked for or given.
    let answer =
        unsafe { libc::openpty(&mut master, &mut slave, null_mut(), null_mut(), null_mut()) };
    assert_eq!(answer, 0);
    // SAFETY: both were just opened, and nobody else has them.
    unsafe {
        (std::os::fd::FromRawFd::from_raw_fd(master), std::os::fd::FromRawFd::from_raw_fd(slave))
    }
}

/// A command whose errors are on a terminal.
struct OnTerminal {
    child: Child,
    screen: std::fs::File,
    seen: String,
}

impl OnTerminal {
    fn start(folder: &Folder, words: &[&str]) -> Self {
        let (screen, slave) = terminal();
        let mut command = teeperf(folder);
        let child = command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(slave);
        Self { child: child.spawn().unwrap(), screen, seen: String::new() }
    }

    /// Reads what is written there, until `enough` of it, or the end.
    fn read(&mut self, enough: impl Fn(&str) -> bool) -> &str {
        let mut bytes = [0; 4096];
        while !enough(&self.seen) {
            match self.screen.read(&mut bytes) {
                // The other side is closed.
                Ok(0) | Err(_) => break,
                Ok(read) => self.seen += &String::from_utf8_lossy(&bytes[..read]),
            }
        }
        &self.seen
    }
}

const CLEARED: &str = "\r\x1b[K";

#[test]
fn how_far_it_is_is_shown_on_a_terminal_and_taken_away() {
    let folder = large();
    for (words, what) in [
        (&["report"][..], "reading"),
        (&["dump"], "reading names"),
        (&["info", "--check"], "reading"),
        (&["cut", "--since", "1%", "-o", "/dev/null", "--force"], "cutting"),
        (&["repair", "program.teeperf", "-o", "/dev/null", "--force"], "repairing"),
    ] {
        let mut running = OnTerminal::start(folder, words);
        // A line tells bytes, share and time; what is fast enough has none.
        let expected = format!("\rteeperf: {what}: ");
        let shown = running
            .read(|seen| seen.contains(&expected) && seen.contains(" left\x1b[K"))
            .to_owned();
        if words[0] == "dump" {
            running.child.kill().unwrap();
            running.child.wait().unwrap();
            assert!(shown.contains(" MB, ") && shown.contains(" %, "), "{words:?}: {shown:?}");
            continue;
        }
        let shown = running.read(|_| false).to_owned();
        assert!(running.child.wait().unwrap().success(), "{words:?}: {shown}");
        if let Some(at) = shown.rfind(&expected) {
            assert!(shown.contains(" MB, ") && shown.contains(" %, "), "{words:?}: {shown:?}");
            assert!(shown[at..].contains(CLEARED), "{words:?}: {shown:?}");
        } else {
            assert!(words[0] != "report", "nothing was shown: {shown:?}");
        }
    }
    let piped = teeperf(folder).arg("report").output().unwrap();
    assert!(piped.stderr.is_empty(), "{piped:?}");
}

/// Compilers take as long as they do.
#[test]
fn what_is_under_way_is_shown_on_a_terminal_and_taken_away() {
    let folder = Folder::new();
    for (words, steps) in [
        (&["doctor"][..], &["trying cc"][..]),
        (&["install-sdk", "sdk"], &["building the library for x86_64"]),
    ] {
        let mut running = OnTerminal::start(&folder, words);
        let shown = running.read(|_| false).to_owned();
        running.child.wait().unwrap();
        for step in steps {
            assert!(shown.contains(&format!("\rteeperf: {step}\x1b[K")), "{words:?}: {shown:?}");
        }
        assert!(shown.ends_with(CLEARED), "{words:?}: {shown:?}");
    }
    let piped = teeperf(&folder).args(["install-sdk", "sdk"]).output().unwrap();
    assert!(piped.status.success() && piped.stderr.is_empty(), "{piped:?}");
}

/// What comes from elsewhere, as fast as that is.
#[test]
fn what_has_come_is_shown_on_a_terminal_and_taken_away() {
    let folder = with_recording("1000");
    let socket = format!("unix:{}", folder.path().join("socket").display());
    let words = ["collect", "--listen", &socket, "-o", "taken", "--count", "1"];
    let mut collecting = OnTerminal::start(&folder, &words);
    collecting.read(|seen| seen.contains("listening at"));
    // As long as it says nothing as well.
    let mut sends = teeperf(&folder)
        .args(["record", "-q", "--to", &socket, "--", "sh", "-c", "./program; read line"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let shown = collecting.read(|seen| seen.matches("\rteeperf: receiving: 0 MB").count() > 1);
    assert!(shown.contains(" sends taken/"), "{shown:?}");
    drop(sends.stdin.take());
    sends.wait().unwrap();
    let shown = collecting.read(|_| false).to_owned();
    assert!(collecting.child.wait().unwrap().success(), "{shown:?}");
    let (_, end) = shown.rsplit_once("\rteeperf: receiving: 0 MB\x1b[K").unwrap();
    assert!(
        end.starts_with(&format!("{CLEARED}teeperf: ")) && end.contains("next: teeperf report"),
        "{shown:?}"
    );

    let (screen, slave) = terminal();
    let mut command = teeperf(&folder);
    command.args(["import", "-", "-o", "made.teeperf"]).stdin(Stdio::piped()).stderr(slave);
    let child = command.spawn().unwrap();
    // The terminal's other side is the child's alone.
    drop(command);
    let mut importing = OnTerminal { child, screen, seen: String::new() };
    let mut console = importing.child.stdin.take().unwrap();
    let expected = "\rteeperf: reading: 0 MB";
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(2) {
        console.write_all(b"booting\n").unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(console);
    let shown = importing.read(|_| false).to_owned();
    assert!(!importing.child.wait().unwrap().success(), "nothing is in it: {shown:?}");
    let (_, end) = shown.rsplit_once(expected).unwrap();
    assert!(end.contains(&format!("{CLEARED}teeperf: there are no pieces")), "{shown:?}");
}

#[test]
fn an_interrupt_leaves_nothing_half_made() {
    let folder = large();
    let names = || -> BTreeSet<_> {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        // Another test writes into the cache, and this one's own files begin so.
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.contains("made-")).collect()
    };
    for words in [
        &["report"][..],
        &["flame", "-o", "made-flame.html"],
        &["export", "--to", "gmon", "-o", "made-gmon.out"],
        &["diff", "program.teeperf", "program.teeperf", "--html", "made-diff.html"],
        &["cut", "--since", "1%", "-o", "made-cut.teeperf"],
        &["repair", "program.teeperf", "-o", "made-repair.teeperf"],
        &["merge", "program.teeperf", "-o", "made-merge.teeperf"],
        &["pack", "program.teeperf", "-o", "made-pack.tar.zst"],
    ] {
        let mut running = OnTerminal::start(folder, words);
        let pid = running.child.id().cast_signed();
        // In the midst of it, whether that shows or not.
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(if words[0] == "report" { 1500 } else { 300 })
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        // SAFETY: a process that this test has started.
        unsafe { libc::kill(pid, libc::SIGINT) };
        let status = running.child.wait().unwrap();
        let shown = running.read(|_| false).to_owned();
        let is_done = status.success();
        assert!(is_done || status.signal() == Some(libc::SIGINT), "{words:?}: {status:?}: {shown}");
        if shown.contains("\rteeperf: ") {
            assert!(shown.ends_with(CLEARED) || is_done, "{words:?}: {shown:?}");
        }
        if !is_done {
            assert_eq!(names(), BTreeSet::new(), "{words:?}");
        }
        for name in names() {
            std::fs::remove_file(folder.path().join(name)).unwrap();
        }
    }
}

/// Words for each command that prints something; none for one that prints nothing of its own.
fn printing(name: &str) -> Option<&'static [&'static [&'static str]]> {
    Some(match name {
        "cc" => &[&["cc", "--teeperf-help"]],
        "c++" => &[&["c++", "--teeperf-help"]],
        "flags" => &[&["flags", "--cflags"], &["flags", "--libs"]],
        "selection" => &[&["selection", "program"]],
        "report" => &[
            &["report"],
            &["report", "--tree"],
            &["report", "--json"],
            &["report", "--csv"],
            &["report", "--around", "twice"],
            &["report", "--by", "thread"],
            &["report", "--lengths"],
            &["report", "--histogram", "twice"],
            &["report", "--time-line"],
        ],
        "annotate" => &[&["annotate", "twice"], &["annotate", "twice", "--json"]],
        "diff" => &[
            &["diff", "program.teeperf", "program.teeperf"],
            &["diff", "--json", "program.teeperf", "program.teeperf"],
            &["diff", "--csv", "program.teeperf", "program.teeperf"],
            &["diff", "--html", "-", "program.teeperf", "program.teeperf"],
        ],
        "suggest" => {
            &[&["suggest"], &["suggest", "--json"], &["suggest", "--toml"], &["suggest", "--flags"]]
        }
        "flame" => &[
            &["flame", "-o", "-"],
            &["flame", "--svg", "-o", "-"],
            &["flame", "--folded", "-o", "-"],
        ],
        "export" => &[&["export", "--to", "gmon", "-o", "-"]],
        "dump" => &[&["dump"], &["dump", "--packets"]],
        "info" => &[&["info"], &["info", "--json"], &["info", "--check"]],
        "doctor" => &[
            &["doctor", "./program"],
            &["doctor", "--json", "./program"],
            &["doctor", "program.teeperf"],
        ],
        "config" => &[&["config"], &["config", "record"], &["config", "--json"]],
        "completions" => &[&["completions", "bash"], &["completions", "zsh"]],
        "man" => &[&["man"], &["man", "record"]],
        "patterns" => &[&["patterns"]],
        "version" => &[&["version"], &["--version"]],
        "help" => &[&["help"], &["help", "record"], &["--help"], &["record", "--help"]],
        _ => return None,
    })
}

/// Runs it with an output that nobody reads.
fn unread(folder: &Folder, words: &[&str]) -> Output {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = prepared(Command::new(env!("CARGO_BIN_EXE_teeperf")), folder);
    let child = command.args(words).stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
    child.spawn().unwrap().wait_with_output().unwrap()
}

#[test]
fn what_nobody_reads_is_no_error() {
    let folder = with_recording("1000");
    let help = run(teeperf(&folder).arg("--help"));
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    let names: Vec<&str> = listed.filter_map(|line| line.split_whitespace().next()).collect();
    // These print no text but messages, or are a recording's other end.
    let silent: BTreeSet<&str> = [
        "install-wrappers",
        "install-sdk",
        "record",
        "serve-memory",
        "import",
        "cut",
        "repair",
        "merge",
        "pack",
        "collect",
        "demo",
        "cargo",
        "pause",
        "resume",
        "ctl",
    ]
    .into();
    for name in names {
        let Some(all) = printing(name) else {
            assert!(silent.contains(name), "{name} is neither said to print nor not to");
            continue;
        };
        for words in all {
            let output = unread(&folder, words);
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                !told.contains("panicked") && !told.contains("Broken pipe"),
                "{words:?}: {told}"
            );
            assert_eq!(output.status.code(), Some(0), "{words:?}: {told}");
        }
    }
}

#[test]
fn a_recording_that_nobody_takes_is_an_error_and_no_panic() {
    let folder = with_recording("1000");
    for words in [
        &["cut", "-o", "-"][..],
        &["repair", "program.teeperf", "-o", "-"],
        &["merge", "program.teeperf", "-o", "-"],
        &["record", "-q", "-o", "-", "--", "./program"],
    ] {
        let output = unread(&folder, words);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !told.contains("panicked") && output.status.signal().is_none(),
            "{words:?}: {told}"
        );
    }
}
