//! What a recording is to be like.

use crate::arena::Lent;
use crate::clock::{Choice, Period};
use crate::filter::Rules;
use crate::sample::Sampling;
use crate::sgx::Sgx;
use crate::stats::Stats;
use crate::writer::Output;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use teeperf_symbols::Search;
use teeperf_wire::shared::OnFull;

/// See the fields. [`Options::new`] has the usual values.
#[derive(Debug)]
pub struct Options {
    /// Where the recording goes.
    pub output: Output,
    /// What a person calls it, where it is no file.
    pub name: Option<String>,
    /// Which clock.
    pub clock: Choice,
    /// How the tick moves, where that is the clock; without, as often as costs little on the machine.
    pub period: Option<Period>,
    /// What a thread does when the drain is behind.
    pub on_full: OnFull,
    /// The recording ends once it has so many bytes; the program goes on.
    pub limit_size: Option<u64>,
    /// The recording ends after so long; the program goes on.
    pub limit_time: Option<Duration>,
    /// Whether the output keeps all of it. Where it does not, the recording does not say how many words it had.
    pub is_kept_whole: bool,
    /// Nothing is recorded until [`crate::control::Request::Resume`].
    pub paused: bool,
    /// Nothing is recorded until one of these functions is called, in whichever process, or it is asked to go on.
    pub trigger: Option<Rules>,
    /// Whether others find it and may ask it for something ([`crate::control`]), by its process id. Not where a process
    /// measures something of its own before what it was asked to record.
    pub is_found: bool,
    /// Which functions and threads are recorded at first.
    pub filter: Rules,
    /// Libraries to load into every program, before those that `LD_PRELOAD` names already.
    pub preload: Vec<PathBuf>,
    /// Whether hooks look at the stack pointer, and so notice stacks that a program switches by itself.
    pub stacks: StackWatch,
    /// Timers of CPU time interrupt threads, which write where they are among their calls.
    pub cpu_samples: bool,
    /// Calls and times are summed by call path, in place of writing events.
    pub tree: Option<Tree>,
    /// The command, and all that it starts, is sampled as well, with hooks or without.
    pub sample: Option<Sampling>,
    /// Hosts of SGX enclaves are sampled, within them and outside: in place of `sample`.
    pub sgx: Option<Sgx>,
    /// In place of a command, this process, which runs already: its enclaves are sampled, from outside.
    pub attach: Option<u32>,
    /// The library that samples a program from within, which `sgx` needs. It also takes the place of the kernel where that lets nothing
    /// be sampled.
    pub inside: Option<PathBuf>,
    /// It does so wherever it could.
    pub is_sampled_within: bool,
    /// Nothing but samples: no program is told of the recorder, so that none with hooks costs more than it does without.
    pub is_of_samples_alone: bool,
    /// Processors leave this system for another world while the program runs, and their timers stand still
    /// meanwhile: the tick moves on all of them.
    pub leaves_processors: bool,
    /// Memory for code that cannot ask for any.
    pub lent: Option<Lent>,
    /// Name and version of the program that records.
    pub writer: String,
    /// Where to look for symbols of stripped files.
    pub search: Search,
    /// Whether signals to this process are taken care of, as a command line tool must. A
    /// program with other things to do has its own way.
    pub signals: bool,
    /// Moved while recording.
    pub stats: Arc<Stats>,
}

/// Whether hooks look at the stack pointer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StackWatch {
    /// Where the program's code switches stacks by itself, or is seen to have done so.
    #[default]
    Auto,
    /// From the start.
    Watched,
    /// Never.
    Unwatched,
}

/// What trees are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Bytes for each thread: they bound how many call paths it can have.
    pub bytes: usize,
    /// Calls of functions that are open on the path stand in those.
    pub folds: bool,
    /// Trees are written out so often, for the time line; less often in long runs. And at the end.
    pub interval: Option<Duration>,
}

impl Tree {
    /// Least memory that a tree can have, and most.
    pub const BYTES: std::ops::RangeInclusive<usize> =
        (teeperf_wire::shared::PAGE)..=(teeperf_wire::shared::segment::MAX_TREE);
}

impl Default for Tree {
    /// 1 MiB, no folding, written at the end.
    fn default() -> Self {
        Self { bytes: 1 << 20, folds: false, interval: None }
    }
}

impl Options {
    /// Clock as it suits the machine, threads wait when the drain is behind, no limits.
    pub fn new(output: Output) -> Self {
        Self {
            output,
            name: None,
            clock: Choice::default(),
            period: None,
            on_full: OnFull::Wait,
            limit_size: None,
            limit_time: None,
            is_kept_whole: true,
            paused: false,
            trigger: None,
            filter: Rules::default(),
            is_found: true,
            preload: Vec::new(),
            stacks: StackWatch::default(),
            cpu_samples: false,
            tree: None,
            sample: None,
            sgx: None,
            attach: None,
            inside: None,
            is_sampled_within: false,
            is_of_samples_alone: false,
            leaves_processors: false,
            lent: None,
            writer: concat!("teeperf ", env!("CARGO_PKG_VERSION")).into(),
            search: Search::default(),
            signals: true,
            stats: Arc::default(),
        }
    }
}
