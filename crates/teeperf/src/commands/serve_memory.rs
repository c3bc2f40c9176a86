//! `teeperf serve-memory`: the host's side of memory that code without a system records into.

use super::{amounts, writing};
use crate::recordings;
use anyhow::{Result, ensure};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use teeperf_record::{Choice, Lent, Outcome};

/// Records what an enclave, a trusted application or a bare-metal image writes into shared memory
///
/// Lays the memory out, moves the clock in it and drains it. The code inside calls
/// teeperf_attach() with the address at which it has the same memory. A program can be started beside
/// it, such as the emulator; without one, Ctrl-C ends the recording.
#[derive(Args, Debug)]
#[command(mut_arg("force", |force| force.help(
    "Overwrite a file that is no recording, or, as memory, one that is"
)))]
#[command(after_help = "\
Examples:
  teeperf serve-memory /dev/shm/enclave                  makes 16 MiB that others map as well
  teeperf serve-memory /dev/shm/enclave -- ./host-app    as long as the program runs
  teeperf serve-memory /dev/uio0 --size 1MiB --elf image.elf    a device, names from image.elf
  teeperf serve-memory /dev/shm/board --clock cycle --counter-hz 10MHz    times by the board's counter

How code is brought to record into it: docs/porting.md.")]
pub(crate) struct Arguments {
    /// A file or device that both sides map; a file that is not there is made
    memory: PathBuf,
    /// Bytes of it to use [default: all there are; of a file that is made, 16 MiB]
    #[arg(long, value_name = "SIZE", value_parser = amounts::bytes)]
    size: Option<u64>,
    /// With --clock cycle: how fast the counter runs that the code inside reads, where that is not this
    /// machine's own. Hooked programs of this machine are not to be recorded beside it
    #[arg(long, value_name = "HZ", value_parser = amounts::frequency)]
    counter_hz: Option<u64>,
    #[command(flatten)]
    writing: writing::Arguments,
    /// A program to run meanwhile, and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM", value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

impl Arguments {
    /// Whether an option means nothing beside the others.
    pub(crate) fn leaves_idle(&self, option: &str) -> bool {
        self.writing.leaves_idle(option)
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    recordings::may_be_lent(&arguments.memory, arguments.writing.force)?;
    let usual = || recordings::name_for(arguments.memory.as_os_str());
    let path = arguments.writing.path(usual)?;
    let (mut options, sender) = arguments.writing.options(&path)?;
    ensure!(
        arguments.counter_hz.is_none() || options.clock == Choice::Cycle,
        "--counter-hz is for --clock cycle: no other clock reads a counter of the code inside"
    );
    ensure!(
        !arguments.writing.is_of_samples_alone(),
        "--probe sample is for programs of this machine, with teeperf record"
    );
    // Beside it, programs with hooks may run.
    ensure!(
        options.tree.is_none() || !arguments.command.is_empty(),
        "--probe tree is for hooked programs of this machine: code inside decides itself to sum, by \
         teeperf_port_sums(), see docs/porting.md"
    );
    options.lent = Some(Lent {
        path: arguments.memory.clone(),
        length: arguments.size,
        counter_hz: arguments.counter_hz,
    });
    arguments.writing.record((options, sender), &arguments.command, &path, tell_of_nothing)
}

/// Why nothing was recorded, where nothing has said so yet.
fn tell_of_nothing(outcome: &Outcome) {
    if outcome.error.is_none() {
        note!(
            "teeperf: nothing was recorded: no code attached this memory; next: see what teeperf_attach() \
             returned, and what docs/porting.md says to that; teeperf doctor tells of this machine"
        );
    }
}
