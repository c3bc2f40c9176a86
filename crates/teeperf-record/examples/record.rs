//! Records a command with the usual options, and says what it came to: for measuring the
//! recorder without the command line tool around it.
//!
//! `record FILE COMMAND [ARGUMENT…]`

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use teeperf_record::{Choice, Options, Output, Recorder, file_limit_is_an_error};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let Some(file) = words.next() else {
        eprintln!("record FILE COMMAND [ARGUMENT…]");
        return ExitCode::from(2);
    };
    let command: Vec<OsString> = words.collect();
    let mut options = Options::new(Output::File(file.into()));
    if std::env::var_os("CYCLE").is_some() {
        options.clock = Choice::Cycle;
    }
    if let Err(error) = file_limit_is_an_error() {
        eprintln!("{error}");
    }
    let stats = Arc::clone(&options.stats);
    match Recorder::new(options).run(&command) {
        Ok(outcome) => {
            let snapshot = stats.snapshot();
            let bytes = snapshot.bytes as f64 / snapshot.events.max(1) as f64;
            eprintln!("{snapshot:?}, {bytes:.4} bytes an event, {:?}", outcome.notices);
            ExitCode::from(outcome.exit_code())
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
