//! Copies of stacks, made into call chains: for who writes samples with two stacks where there is room for one.

use std::sync::Arc;

use framehop::Module as Tables;
use teeperf_symbols::Search;
use teeperf_wire::body::sample::{CONTEXT_USER, Sample};

use super::module::Bytes;
use super::modules::{Location, Modules, View};
use super::spaces::Spaces;
use super::unwind::{End, Locate, Stacks, Top};
use super::worker::InSpace;
use crate::contents::{Map, Task};

/// Follows stacks of samples; keeps what stands where in processes.
pub struct Chains {
    spaces: Spaces,
    modules: Arc<Modules>,
    view: View,
    stacks: Stacks,
}

impl Chains {
    /// Of a recording that begins. Debug files are looked for as `search` says.
    pub fn new(search: Search) -> Self {
        let modules = Arc::new(Modules::new(search, false));
        let view = modules.view();
        Self { spaces: Spaces::default(), modules, view, stacks: Stacks::new() }
    }

    /// Code came into a process.
    pub fn map(&mut self, map: &Map<'_>) {
        self.spaces.map(map, &self.modules);
    }

    /// A process or thread began, changed or ended.
    pub fn task(&mut self, task: &Task<'_>) {
        self.spaces.task(task);
    }

    /// The call chain that a sample's registers and stack lead to, as perf has chains; nothing where they do not lead to the first
    /// function. `machine` is the `e_machine` of the code.
    pub fn of(&mut self, machine: u16, sample: &Sample<'_>) -> Option<Vec<[u8; 8]>> {
        let Self { spaces, view, stacks, .. } = self;
        let space = spaces.of(sample.pid);
        // A module's tables are there from the next time on.
        loop {
            let mut noted =
                Noted { found: InSpace::new(space, view), chain: vec![CONTEXT_USER.to_le_bytes()] };
            let mut last = Location::UNKNOWN;
            let each = |location| last = Location(location);
            let end = stacks.follow(machine, sample, Top::Interrupted, &mut noted, each);
            let Noted { found, chain } = noted;
            let new: Vec<Tables<Bytes>> = found.new;
            if new.is_empty() {
                let is_whole = end == End::Whole || view.is_entry(last);
                return is_whole.then_some(chain);
            }
            new.into_iter().for_each(|tables| stacks.add(tables));
        }
    }
}

/// Keeps what is looked for and found: the innermost instruction, and then what calls return to, of which one less is looked for.
struct Noted<'a> {
    found: InSpace<'a>,
    chain: Vec<[u8; 8]>,
}

impl Locate for Noted<'_> {
    fn locate(&mut self, address: u64) -> Option<u64> {
        let location = self.found.locate(address);
        if self.chain.len() == 1 {
            self.chain.push(address.to_le_bytes());
        } else if location.is_some() {
            self.chain.push(address.wrapping_add(1).to_le_bytes());
        }
        location
    }
}
