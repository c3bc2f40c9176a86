//! `teeperf collect` and those who mean it harm: who says nothing, who has no secret, who sends without end.

use crate::support::{Folder, run, teeperf};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = "__attribute__((noinline)) static int twice(int n) { return 2 * n; }\n\
    int main(void) { int sum = 0; for (int i = 0; i < 100; i++) sum += twice(i); return sum & 1; }\n";

/// A folder with a program and a recording of it.
fn recorded() -> Folder {
    let folder = Folder::new();
    folder.write("program.c", PROGRAM);
    run(teeperf(&folder).args(["cc", "-O1", "-g", "program.c", "-o", "program"]));
    run(teeperf(&folder).args(["record", "-q", "-o", "own.teeperf", "--", "./program"]));
    folder
}

/// A collector, and where it listens.
struct Collector {
    child: Child,
    place: String,
    told: BufReader<std::process::ChildStderr>,
}

impl Collector {
    fn start(folder: &Folder, words: &[&str]) -> Self {
        let mut command = teeperf(folder);
        command.args(["collect", "--listen", "tcp:127.0.0.1:0", "-o", "taken"]).args(words);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("listening at ") {
            line.clear();
            assert!(told.read_line(&mut line).unwrap() > 0, "it does not listen");
        }
        let place = line.split("listening at ").nth(1).unwrap();
        let place = place.split(';').next().unwrap().to_owned();
        Self { child, place, told }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.place.strip_prefix("tcp:").unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    fn sends(&self, folder: &Folder, words: &[&str]) -> Output {
        let mut command: Command = teeperf(folder);
        command.args(["record", "--clock", "tick", "--to", &self.place]).args(words);
        command.args(["--", "./program"]).output().unwrap()
    }

    /// Ends it; what else it said.
    fn end(mut self) -> String {
        let _ = self.child.kill();
        self.child.wait().unwrap();
        let mut said = String::new();
        self.told.read_to_string(&mut said).unwrap();
        said
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Guards: places that are held for ever. Two senders begin, say no more, and keep nobody out for longer than `--idle`.
#[test]
fn senders_that_say_nothing_more_give_way() {
    let folder = recorded();
    let collector = Collector::start(&folder, &["--senders", "2", "--idle", "1s"]);
    let recording = std::fs::read(folder.path().join("own.teeperf")).unwrap();
    // The first packet: its head of 20 bytes has the length behind sequence and kind.
    let mut silent: Vec<TcpStream> = (0..2).map(|_| collector.connect()).collect();
    for stream in &mut silent {
        stream.write_all(&recording[..recording.len() / 2]).unwrap();
    }
    std::thread::sleep(Duration::from_millis(500));
    let refused = collector.sends(&folder, &[]);
    assert!(text(&refused).contains("2 send already"), "{}", text(&refused));
    std::thread::sleep(Duration::from_millis(1500));
    let sent = collector.sends(&folder, &[]);
    assert!(text(&sent).contains("all of it kept there"), "{}", text(&sent));
    let said = collector.end();
    assert!(said.contains("another wanted its place"), "{said}");
}

/// Guards: the same of connections that never say what they are for, by the hundred.
#[test]
fn many_that_connect_and_say_nothing_keep_nobody_out() {
    let folder = recorded();
    let collector = Collector::start(&folder, &[]);
    let silent: Vec<TcpStream> = (0..300).map(|_| collector.connect()).collect();
    let begun = Instant::now();
    let sent = collector.sends(&folder, &[]);
    assert!(text(&sent).contains("all of it kept there"), "{}", text(&sent));
    assert!(begun.elapsed() < Duration::from_secs(60));
    drop(silent);
    let said = collector.end();
    assert!(said.lines().count() < 40, "nobody fills its log: {said}");
}

/// Guards: the disk. Each recording is within its own limit, and all together are not.
#[test]
fn all_recordings_together_have_a_limit() {
    let folder = recorded();
    let collector = Collector::start(&folder, &["--limit-total", "3k"]);
    let said: Vec<String> = (0..6).map(|_| text(&collector.sends(&folder, &[]))).collect();
    assert!(said[0].contains("all of it kept there"), "{said:?}");
    let last = said.last().unwrap();
    assert!(last.contains("together"), "{said:?}");
    collector.end();
    let taken = std::fs::read_dir(folder.path().join("taken")).unwrap().flatten();
    let bytes: u64 = taken.map(|file| file.metadata().unwrap().len()).sum();
    assert!(bytes < 5 << 10, "{bytes}");
}

#[test]
fn a_secret_is_needed_where_there_is_one() {
    let folder = recorded();
    let collector = Collector::start(&folder, &["--secret", "key"]);
    let sent = collector.sends(&folder, &["--secret", "key"]);
    assert!(text(&sent).contains("all of it kept there"), "{}", text(&sent));
    let without = collector.sends(&folder, &[]);
    assert!(text(&without).contains("--secret FILE"), "{}", text(&without));
    let other = "5".repeat(64);
    folder.write("other", &other);
    let other = folder.path().join("other");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&other, mode).unwrap();
    let wrong = collector.sends(&folder, &["--secret", "other"]);
    assert!(text(&wrong).contains("another one"), "{}", text(&wrong));
    // A recording without a greeting, and what is none.
    let recording = std::fs::read(folder.path().join("own.teeperf")).unwrap();
    for bytes in [&recording[..], b"teeperf-secret 1\xff\xff", b"GET / HTTP/1.1\r\n\r\n"] {
        let mut stream = collector.connect();
        stream.write_all(bytes).unwrap();
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        assert_eq!(said, b"", "{:?}", String::from_utf8_lossy(&said));
    }
    collector.end();
    assert_eq!(std::fs::read_dir(folder.path().join("taken")).unwrap().count(), 1);
}

/// Guards: traces that go over a network as they are, because nobody thought of it.
#[test]
fn beyond_this_machine_nothing_goes_without_a_secret() {
    let folder = recorded();
    for words in [
        &["collect", "--listen", "tcp:0.0.0.0:0", "-o", "taken"][..],
        &["collect", "--listen", "tcp:[::]:0", "-o", "taken"],
        &["record", "--to", "tcp:192.0.2.1:7377", "--", "./program"],
    ] {
        let said = teeperf(&folder).args(words).output().unwrap();
        assert!(!said.status.success() && text(&said).contains("--insecure"), "{}", text(&said));
    }
    folder.write("teeperf.toml", "[record]\ninsecure = true\n");
    let said = teeperf(&folder).args(["record", "--", "./program"]).output().unwrap();
    assert!(text(&said).contains("is the user's to say"), "{}", text(&said));
}
