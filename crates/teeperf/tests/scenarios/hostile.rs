//! A peer that means harm, beside a program that means none. Nothing it does may end the
//! recorder, block the other, or spoil what was recorded of it.

use crate::support::*;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Records a good program and the hostile one together, and returns what the latter said.
fn beside_a_good_program(how: &str) -> (Outcome, Report) {
    let shop = Workshop::new();
    let hostile = shop.build_unhooked("hostile.c", Compiler::Gcc, &["-O2"]);
    let good = shop.build("calls.c", Compiler::Gcc, &["-O2"]);
    let script = format!(
        "{} {how} & enemy=$!; {} 20000; good=$?; wait $enemy; echo enemy $?; exit $good",
        hostile.display(),
        good.display()
    );
    let recorded = shop.record(&[], Path::new("/bin/sh"), &["-c", &script], 0);
    let told = recorded.outcome.told();
    for (name, &calls) in &told.calls {
        let found = recorded.report.calls.get(name);
        assert_eq!(found, Some(&calls), "{name} beside {how}: {:?}", recorded.report.warnings);
    }
    assert!(recorded.outcome.stdout.contains("enemy 0\n"), "{:#?}", recorded.outcome);
    (recorded.outcome, recorded.report)
}

/// Guards: seals. Without them a peer's `ftruncate` kills the recorder with SIGBUS.
#[test]
fn one_that_truncates() {
    beside_a_good_program("truncate");
}

/// Guards: limits on every number that comes from shared memory.
#[test]
fn one_that_writes_random_words() {
    beside_a_good_program("random 1000000");
}

/// Guards: whoever connects and says nothing, or nonsense, keeps nobody waiting.
#[test]
fn one_that_greets_strangely() {
    let (outcome, _) = beside_a_good_program("greetings");
    assert!(outcome.stdout.contains("hostile: greetings done"), "{outcome:#?}");
}

/// Guards: full chunks without words, from a thread that never was.
#[test]
fn one_that_hands_over_nothing() {
    let (_, report) = beside_a_good_program("silent");
    let refused = |warning: &String| warning.contains("made no sense");
    assert!(report.warnings.iter().any(refused), "{report:?}");
}

/// Guards: what comes out of lent memory is believed in nothing: not in where chunks are, whose, how long, of what kind, nor in what
/// trees, calls, windows and files they tell of. The recorder comes to its end with no more memory than it has for any
/// other, and what it has written is read.
#[test]
fn one_that_lies_in_lent_memory() {
    let some = [("64KiB", "anything", "tick"), ("64KiB", "chunks", "cycle")];
    let others = [("1MiB", "anything", "cycle"), ("1MiB", "chunks", "tick")];
    for (size, kind, clock) in some.into_iter().chain(others) {
        lies(size, kind, clock);
        // Without it each pair of two of these.
        if are_thorough() {
            lies(size, kind, if clock == "tick" { "cycle" } else { "tick" });
        }
    }
}

fn lies(size: &str, kind: &str, clock: &str) {
    let shop = Workshop::new();
    let liar = shop.build_unhooked("lies.c", Compiler::Gcc, &["-O2"]);
    let (memory, recording) = (shop.path("memory"), shop.path("lies.teeperf"));
    let mut serves = in_little_memory();
    serves.arg("serve-memory").arg(&memory).args(["--size", size, "--clock", clock]);
    serves.args(["--limit-size", "16M", "-o"]).arg(&recording).arg("--").arg(liar);
    let served = run(serves.arg(&memory).args([kind, "700"]));
    served.expect_code(0);
    let what = format!("{size} of {kind}, {clock}");
    assert!(served.stderr.contains("made no sense"), "{what}: {served:#?}");
    // Behind the limit come the chunks that were found at once, of which each is a few packets.
    let written = std::fs::metadata(&recording).unwrap().len();
    assert!(written < 24 << 20, "{what}: {written} bytes");
    for words in
        [&["report"][..], &["report", "--json", "--tree"], &["dump"], &["flame", "-o", "-"]]
    {
        let read = run(in_little_memory().args(words).arg(&recording));
        assert!(read.success() && !read.stdout.is_empty(), "{what}, {words:?}: {read:#?}");
    }
    let exported =
        run(in_little_memory().args(["export", "--to", "gmon", "-o", "-"]).arg(&recording));
    assert!(matches!(exported.status.code(), Some(0 | 1)), "{what}: {exported:#?}");
}

/// The command, which ends where it wants more than two gigabytes.
fn in_little_memory() -> Command {
    let mut command = teeperf();
    // SAFETY: only calls setrlimit.
    unsafe {
        command.pre_exec(|| {
            let most = libc::rlimit { rlim_cur: 2 << 30, rlim_max: 2 << 30 };
            match libc::setrlimit(libc::RLIMIT_AS, &most) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        })
    };
    command
}
