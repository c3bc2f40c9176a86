//! A real terminal, with keys that are typed.

use crate::support::*;
use std::path::Path;
use std::process::{Command, Stdio};

/// A terminal with a shell in it, of a tmux that nobody else uses.
struct Terminal {
    socket: std::path::PathBuf,
}

impl Terminal {
    /// Nothing, with the reason printed, where tmux is not installed.
    fn open(shop: &Workshop) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            eprintln!("skipped: tmux is not installed");
            return None;
        }
        let terminal = Self { socket: shop.path("tmux") };
        let mut command = terminal.tmux();
        command.args(["new-session", "-d", "-x", "180", "-y", "50", "-c"]).arg(shop.path(""));
        run(command.args(["env", "PS1=ready> ", "ENV=", "sh", "-i"])).expect_code(0);
        wait_until("a prompt", || terminal.screen().contains("ready>"));
        Some(terminal)
    }

    fn tmux(&self) -> Command {
        let mut command = Command::new("tmux");
        // Without anybody's settings.
        command.arg("-S").arg(&self.socket).args(["-f", "/dev/null"]);
        command.env_remove("TMUX").stdin(Stdio::null());
        command
    }

    /// Types a line.
    fn enter(&self, line: &str) {
        run(self.tmux().args(["send-keys", "-l", line])).expect_code(0);
        self.press("Enter");
    }

    fn press(&self, key: &str) {
        run(self.tmux().args(["send-keys", key])).expect_code(0);
    }

    /// What is to be seen, in whole lines, however wide the screen is.
    fn screen(&self) -> String {
        let seen = run(self.tmux().args(["capture-pane", "-p", "-J"])).stdout;
        seen.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// What a command typed now leaves in a file, whole lines only.
    fn answer(&self, shop: &Workshop, command: &str, name: &str) -> String {
        let file = shop.path(name);
        let text = || std::fs::read_to_string(&file).unwrap_or_default();
        self.enter(&format!("{command} > {name}"));
        wait_until(command, || text().ends_with('\n'));
        text()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A server that is gone needs no end.
        let _ = self.tmux().arg("kill-server").status();
    }
}

/// Types the recorder's command line and waits for the program to be at work.
fn record_at(terminal: &Terminal, shop: &Workshop, options: &str, program: &Path) -> Progress {
    let progress = Progress::new(shop, "progress");
    terminal.enter(&format!(
        "XDG_CACHE_HOME={} {TEEPERF} record {options} -o r.teeperf -- {} {} 100000000000",
        cache().display(),
        program.display(),
        progress.name(),
    ));
    wait_until("calls", || progress.calls() > 1_000_000);
    progress
}

/// Guards: Ctrl-C ends the program; the recorder, which gets it too, lives to finish the
/// recording, clears its line, and ends with the status that shells know.
#[test]
fn ctrl_c_typed() {
    let shop = Workshop::new();
    let Some(terminal) = Terminal::open(&shop) else { return };
    let program = shop.build("steady.c", Compiler::Gcc, &["-O1"]);
    for options in ["", "--clock cycle"] {
        let before = terminal.answer(&shop, "stty -a", "before");
        let progress = record_at(&terminal, &shop, options, &program);
        wait_until("the live line", || terminal.screen().contains("[teeperf "));
        terminal.press("C-c");
        let next = "; next: teeperf report r.teeperf";
        wait_until("the closing line", || terminal.screen().contains(next));
        assert_eq!(terminal.answer(&shop, "echo $?", "status"), "130\n");
        assert!(!progress.done());
        assert_eq!(terminal.answer(&shop, "stty -a", "after"), before);
        let screen = terminal.screen();
        assert!(!screen.contains("[teeperf "), "the live line is still there: {screen}");
        let closing = screen.lines().find(|line| line.contains(next)).unwrap();
        assert!(closing.starts_with("teeperf: ") && !closing.contains("early"), "{screen}");
        let report = Report::of(&shop.path("r.teeperf"));
        assert!(report.calls["leaf"].abs_diff(progress.calls()) <= 1);
        assert_eq!(report.signal, Some(libc::SIGINT.into()));
        assert_eq!((report.health("lost"), &report.warnings[..]), (0, &[][..]));
        for file in ["before", "status", "after", "r.teeperf"] {
            std::fs::remove_file(shop.path(file)).unwrap();
        }
        terminal.enter("clear");
        wait_until("a clear screen", || !terminal.screen().contains(next));
    }
}

/// Guards: Ctrl-Z stops program and recorder, `fg` has both go on, and the events are all there.
#[test]
fn ctrl_z_and_back() {
    let shop = Workshop::new();
    let Some(terminal) = Terminal::open(&shop) else { return };
    let program = shop.build("steady.c", Compiler::Gcc, &["-O1"]);
    let progress = record_at(&terminal, &shop, "", &program);
    terminal.press("C-z");
    wait_until("a prompt", || terminal.screen().trim_end().ends_with("ready>"));
    let calls = progress.calls();
    assert!(terminal.answer(&shop, "jobs", "jobs").contains("record"));
    assert_eq!(progress.calls(), calls, "the program runs on");
    terminal.enter("fg");
    wait_until("more calls", || progress.calls() > calls + 1_000_000);
    progress.stop();
    assert_eq!(terminal.answer(&shop, "echo $?", "status"), "5\n");
    let report = Report::of(&shop.path("r.teeperf"));
    assert_eq!(report.calls["leaf"], progress.calls());
    report.expect_whole();
}

/// Guards: what the program writes while the live line is there stands in lines of its own, scrolls
/// past it, and is all there; the line is gone in the end, and the last row scrolls again.
#[test]
fn output_beside_the_live_line() {
    let shop = Workshop::new();
    let Some(terminal) = Terminal::open(&shop) else { return };
    let program = shop.build("calls.c", Compiler::Gcc, &["-O1"]);
    let script = format!(
        "sleep 1.5; for i in $(seq 60); do echo line $i; sleep 0.02; done; sleep 0.5; {} 10",
        program.display()
    );
    terminal.enter(&format!(
        "XDG_CACHE_HOME={} {TEEPERF} record -o r.teeperf -- sh -c '{script}'",
        cache().display()
    ));
    // The line is the last row, whatever scrolls above it.
    wait_until("a live line below the last output", || {
        let screen = terminal.screen();
        let rows: Vec<&str> = screen.lines().collect();
        rows.contains(&"line 60") && rows.get(49).is_some_and(|row| row.starts_with("[teeperf "))
    });
    wait_until("the closing line", || terminal.screen().contains("next: teeperf report"));
    terminal.enter("seq 100 160");
    wait_until("more lines", || terminal.screen().contains("\n160\nready>"));
    assert!(!terminal.screen().contains("[teeperf "));
    let history = run(terminal.tmux().args(["capture-pane", "-p", "-S", "-"])).stdout;
    let written: Vec<&str> = history.lines().filter(|row| row.contains("line ")).collect();
    let expected: Vec<String> = (1..=60).map(|n| format!("line {n}")).collect();
    assert!(
        written.ends_with(&expected.iter().map(String::as_str).collect::<Vec<_>>()),
        "{history}"
    );
}
