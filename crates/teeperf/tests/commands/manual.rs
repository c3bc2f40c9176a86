//! Manual pages, as the programs that show them take them; and completions, in the shells that they are for.

use crate::support::{Folder, prepared, run, teeperf};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn is_there(program: &str, word: &str) -> bool {
    let mut command = Command::new(program);
    let works = command.arg(word).stdin(Stdio::null()).output().is_ok();
    if !works {
        eprintln!("skipped: {program} is not installed");
    }
    works
}

fn pages(folder: &Folder) -> Vec<(String, String)> {
    run(teeperf(folder).args(["man", "--dir", "pages"]));
    let entries = std::fs::read_dir(folder.path().join("pages")).unwrap();
    let read = |path: &Path| (path.display().to_string(), std::fs::read_to_string(path).unwrap());
    entries.map(|entry| read(&entry.unwrap().path())).collect()
}

#[test]
fn each_command_has_a_page_with_all_sections() {
    let folder = Folder::new();
    let pages = pages(&folder);
    assert!(pages.len() > 30, "{}", pages.len());
    for (path, text) in &pages {
        for section in [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "\"EXIT STATUS\"",
            "ENVIRONMENT",
            "FILES",
            "\"SEE ALSO\"",
        ] {
            let headings = text.matches(&format!("\n.SH {section}\n")).count();
            assert_eq!(headings, 1, "{path}: {section}");
        }
        let is_all = path.ends_with("/teeperf.1");
        assert!(is_all || text.contains("\n.SH EXAMPLES\n"), "{path}");
        assert_eq!(text.matches("\n\\fBNO_COLOR\\fR\n").count(), 1, "{path}");
    }
    for (command, file) in [
        ("record", "/teeperf-record.1"),
        ("cargo", "/teeperf-cargo.1"),
        ("cargo", "/cargo-teeperf.1"),
    ] {
        let printed = run(teeperf(&folder).args(["man", command]));
        let written = pages.iter().find(|(path, _)| path.ends_with(file)).unwrap();
        assert_eq!(printed, written.1);
    }
    assert!(run(teeperf(&folder).arg("man")).contains("TEEPERF 1 "));
    let refused = teeperf(&folder).args(["man", "nosuch"]).output().unwrap();
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(told.contains("there is no page teeperf-nosuch(1)"), "{told}");
}

#[test]
fn pages_are_shown_without_a_warning() {
    let folder = Folder::new();
    let pages = pages(&folder);
    if is_there("mandoc", "-h") {
        let mut lint = Command::new("mandoc");
        lint.args(["-T", "lint", "-W", "warning"]).args(pages.iter().map(|(path, _)| path));
        let told = lint.output().unwrap();
        assert_eq!(String::from_utf8_lossy(&told.stdout), "");
    }
    if is_there("man", "--version") {
        for (path, _) in &pages {
            let mut man = Command::new("man");
            man.args(["--warnings", "-l", path]).env("LC_ALL", "C.UTF-8").env("MANWIDTH", "100");
            let told = man.env("MANPAGER", "cat").stdin(Stdio::null()).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&told.stderr), "", "{path}");
            assert!(told.status.success() && !told.stdout.is_empty(), "{path}");
        }
    }
}

/// A shell in a terminal of its own, of a tmux that nobody else uses.
struct Shell<'a> {
    folder: &'a Folder,
}

impl Shell<'_> {
    fn tmux(&self) -> Command {
        let mut command = prepared(Command::new("tmux"), self.folder);
        command.arg("-S").arg(self.folder.path().join("tmux")).args(["-f", "/dev/null"]);
        command.env_remove("TMUX").env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
        command
    }

    fn screen(&self) -> String {
        run(self.tmux().args(["capture-pane", "-p"]))
    }

    /// Types, until the screen has what is expected: a shell may not be there yet.
    fn types_and_shows(&self, keys: &[&str], expected: &str) {
        let began = Instant::now();
        loop {
            run(self.tmux().arg("send-keys").args(keys));
            for _ in 0..20 {
                if self.screen().contains(expected) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "no {expected:?}: {}",
                self.screen()
            );
            // What was typed before may stand there still. Not by C-c: while bash completes, that is of no good to it.
            run(self.tmux().args(["send-keys", "C-u"]));
        }
    }
}

impl Shell<'_> {
    /// Recordings and folders where these are read, and no other file; any where there are none.
    fn offers_recordings(&self) {
        for (typed, completed) in [
            ("report spec", "report special.teeperf"),
            ("diff special.teeperf spec", "diff special.teeperf special.teeperf"),
            ("report --limit 3 nes", "--limit 3 nested/"),
            ("report gmo", "report gmon.out"),
            ("report tra", "report trace.log"),
        ] {
            run(self.tmux().args(["send-keys", "C-u"]));
            self.types_and_shows(&["-l", &format!("teeperf {typed}\t")], completed);
        }
    }
}

impl Drop for Shell<'_> {
    fn drop(&mut self) {
        // A server that is gone needs no end.
        let _ = self.tmux().arg("kill-server").status();
    }
}

/// Files that are there to be completed, and some that are not to be offered.
const OFFERED: [&str; 6] =
    ["special.teeperf", "special.txt", "nested/inner.teeperf", "gmon.out", "gmon.c", "trace.log"];

/// Starts a shell by these words, and has it complete commands, values of an option, and files.
fn completes(shell: &str, words: &[&str], setup: &str) {
    if !is_there(shell, "--version") || !is_there("tmux", "-V") {
        return;
    }
    let folder = Folder::new();
    run(teeperf(&folder).args(["completions", "--dir", "completions"]));
    for name in OFFERED {
        folder.write(name, "");
    }
    let shell = Shell { folder: &folder };
    let mut start = shell.tmux();
    start.args(["new-session", "-d", "-x", "180", "-y", "50"]).args(words);
    run(&mut start);
    shell.types_and_shows(&["-l", &format!("{setup}; echo rea''dy")], "echo rea''dy");
    shell.types_and_shows(&["Enter"], "\nready");
    shell.types_and_shows(&["-l", "teeperf install-w\t"], "install-wrappers");
    run(shell.tmux().args(["send-keys", "C-u"]));
    shell.types_and_shows(&["-l", "teeperf record --clock \t\t"], "ordered");
    run(shell.tmux().args(["send-keys", "C-u"]));
    shell.offers_recordings();
}

#[test]
fn bash_completes() {
    completes("bash", &["bash", "--norc", "-i"], "source completions/teeperf");
}

#[test]
fn zsh_completes() {
    let setup = "fpath=($PWD/completions $fpath); autoload -Uz compinit; compinit -u -D";
    completes("zsh", &["zsh", "-f", "-i"], setup);
}

#[test]
fn fish_completes() {
    completes("fish", &["fish", "--no-config", "-i"], "source completions/teeperf.fish");
}

#[test]
fn elvish_completes() {
    let folder = Folder::new();
    if !is_there("elvish", "-version") || !is_there("tmux", "-V") {
        return;
    }
    run(teeperf(&folder).args(["completions", "--dir", "completions"]));
    let shell = Shell { folder: &folder };
    let mut start = shell.tmux();
    let words = ["elvish", "-norc"];
    start
        .args(["new-session", "-d", "-x", "180", "-y", "50"])
        .args(words)
        .env("HOME", folder.path());
    run(&mut start);
    shell.types_and_shows(
        &["-l", "eval (slurp < completions/teeperf.elv); echo rea''dy"],
        "rea''dy",
    );
    shell.types_and_shows(&["Enter"], "\nready");
    shell.types_and_shows(&["-l", "teeperf install-w\t"], "install-wrappers");
    run(shell.tmux().args(["send-keys", "C-u"]));
    shell.types_and_shows(&["-l", "teeperf record --cloc\t"], "--clock");
    for name in OFFERED {
        folder.write(name, "");
    }
    shell.offers_recordings();
}

#[test]
fn completions_for_one_shell_are_printed() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish"] {
        let text = run(teeperf(&folder).args(["completions", shell]));
        assert!(text.contains("install-wrappers"), "{shell}");
        // Values are for those that show them.
        assert!(shell == "elvish" || text.contains("ordered"), "{shell}");
    }
    assert_eq!(teeperf(&folder).arg("completions").status().unwrap().code(), Some(2));
}
