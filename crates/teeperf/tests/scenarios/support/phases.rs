//! A program that does what it is told line by line, under a recorder.

use super::{Compiler, Outcome, Report, Running, Workshop, run, teeperf, wait_until};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Stdio};

/// See the module.
pub(crate) struct Phases {
    pub(crate) running: Running,
    pub(crate) file: PathBuf,
    input: ChildStdin,
    /// Lines it has answered.
    done: usize,
    shop: Workshop,
}

impl Phases {
    /// `phases.c`.
    pub(crate) fn start(options: &[&str]) -> Self {
        let shop = Workshop::new();
        let program = shop.build("phases.c", Compiler::Gcc, &["-O1", "-pthread"]);
        Self::of(shop, &program, options)
    }

    /// Another that answers each line with "done".
    pub(crate) fn of(shop: Workshop, program: &Path, options: &[&str]) -> Self {
        let mut recording = shop.recording(options, program, &[]);
        recording.command.stdin(Stdio::piped());
        let mut running = Running::start(&mut recording.command);
        let input = running.child.stdin.take().expect("a pipe");
        Self { running, file: recording.file, input, done: 0, shop }
    }

    /// Has it do these, and waits until they are done.
    #[track_caller]
    pub(crate) fn does(&mut self, lines: &[&str]) {
        for line in lines {
            writeln!(self.input, "{line}").expect("a program that reads");
            self.done += 1;
        }
        let done = |running: &Running| running.stdout_so_far().matches("done\n").count();
        wait_until("an answer", || done(&self.running) >= self.done);
    }

    /// `teeperf ctl PID …`, as from another terminal; what it printed.
    #[track_caller]
    pub(crate) fn asks(&self, words: &[&str]) -> String {
        let outcome = run(teeperf().arg("ctl").arg(self.running.pid().to_string()).args(words));
        outcome.expect_code(0);
        outcome.stdout
    }

    /// Ends it by this line; what it and the recorder said, and what was seen of its calls.
    #[track_caller]
    pub(crate) fn end_by(mut self, line: &str, status: i32) -> (Outcome, Report, Workshop) {
        writeln!(self.input, "{line}").expect("a program that reads");
        let outcome = self.running.wait();
        outcome.expect_code(status);
        (outcome, Report::of(&self.file), self.shop)
    }

    /// Ends `phases.c` with status 7.
    #[track_caller]
    pub(crate) fn end(self) -> (Outcome, Report, Workshop) {
        self.end_by("end 7", 7)
    }
}
