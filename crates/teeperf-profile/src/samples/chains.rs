//! Copies of stacks, made into call chains: for who writes samples with two stacks where there is room for one.

use std::sync::Arc;

use teeperf_symbols::Search;
use teeperf_wire::body::sample::{CONTEXT_USER, Sample};

use super::follow::{Code, follow};
use super::modules::{Modules, View};
use super::spaces::History;
use super::unwind::{End, Stacks, Top, machine};
use crate::contents::{Map, Task};

/// Follows stacks of samples; keeps what stands where in processes.
pub struct Chains {
    history: History,
    modules: Arc<Modules>,
    view: View,
    stacks: Stacks,
    machine: u16,
}

impl Chains {
    /// Of a recording that begins, made on a machine as `uname -m` names it. Files of code are looked for as `search` says.
    pub fn new(search: Search, machine: &str) -> Self {
        let modules = Arc::new(Modules::of_tables(search));
        let view = modules.view();
        let machine = machine::of(machine);
        Self { history: History::default(), modules, view, stacks: Stacks::new(), machine }
    }

    /// Code came into a process.
    pub fn map(&mut self, map: &Map<'_>) {
        self.history.map(map, &self.modules);
    }

    /// A process or thread began, changed or ended.
    pub fn task(&mut self, task: &Task<'_>) {
        self.history.task(task);
    }

    /// The call chain that a sample's registers and stack lead to, as perf has chains; nothing where they do not lead to the first
    /// function. `machine` is the `e_machine` of the code; 0: the recording's.
    pub fn of(&mut self, machine: u16, sample: &Sample<'_>) -> Option<Vec<[u8; 8]>> {
        let machine = if machine == 0 { self.machine } else { machine };
        let Self { history, view, stacks, .. } = self;
        let code = Code { machine, space: history.now().of(sample.pid), view };
        let mut found = Vec::new();
        let end = follow(sample, Top::Interrupted, code, stacks, &mut found, |_, address| address);
        // Of callers the chain has where calls return to.
        let callers = found.iter().skip(1).map(|address| address.wrapping_add(1));
        let chain = [CONTEXT_USER].into_iter().chain(found.first().copied()).chain(callers);
        (end == End::Whole).then(|| chain.map(u64::to_le_bytes).collect())
    }
}
