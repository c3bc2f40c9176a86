//! What is asked of the sampler within processes.

use crate::sample::{Sampling, Stacks};
use std::path::PathBuf;
use std::sync::Arc;
use teeperf_aex::sampler::Settings;
use teeperf_aex::state::MOST_STACK;
use teeperf_wire::sampling::{Terms, VERSION, clock, kept};

/// Samples of hosts of SGX enclaves.
#[derive(Clone, Debug)]
pub struct Sgx {
    /// How.
    pub how: Sampling,
    /// Who takes them.
    pub front: Front,
    /// Modules of enclaves where no runtime's list of them is found.
    pub modules: Vec<GivenModule>,
}

/// A file that the user says lies in an enclave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenModule {
    /// An ELF file, as it is here.
    pub path: PathBuf,
    /// Where its first byte lies; nothing: at the beginning of each enclave.
    pub base: Option<u64>,
}

/// Who takes samples of enclaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// A library that is preloaded.
    Inside,
    /// Another process, by ptrace.
    Outside,
}

/// What is sampled within processes.
#[derive(Clone, Debug)]
pub(crate) struct Within {
    pub(crate) how: Sampling,
    /// Enclaves, and not only threads.
    pub(crate) has_enclaves: bool,
    pub(crate) modules: Arc<[GivenModule]>,
}

/// Threads of a process at one time.
pub(super) const PLACES: usize = 256;

impl Within {
    /// Bytes of a thread's ring: a power of two, with room for some samples.
    pub(super) fn capacity(&self) -> usize {
        self.how.ring.clamp(64 << 10, 64 << 20).next_power_of_two()
    }

    /// As the library is told.
    pub(super) fn terms(&self, process: u32) -> Terms {
        let (kept, stack) = match self.how.stacks {
            Stacks::None => (kept::NOTHING, 0),
            Stacks::FramePointers => (kept::CHAIN, 0),
            Stacks::Copied(bytes) => (kept::STACK, usize::from(bytes).min(MOST_STACK)),
        };
        Terms {
            version: VERSION,
            process,
            places: PLACES as u32,
            capacity: self.capacity() as u32,
            // Of timers that tick with the kernel, programs that are not hosts of enclaves have been told.
            clock: if self.has_enclaves { clock::EVENT } else { clock::PROCESSOR },
            kept,
            stack: stack as u32,
            period_ns: self.how.rate.period_ns(),
            is_constant: self.how.is_constant,
            has_enclaves: self.has_enclaves,
        }
    }

    /// As the recording is told.
    pub(crate) fn settings(&self) -> Settings {
        Settings::of(&self.terms(0), 0)
    }
}
