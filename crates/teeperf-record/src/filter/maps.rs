//! The two maps of one module: memory that its process looks at, and what stands in it.

use super::{ModuleRules, Rules};
use crate::escapes::Module;
use crate::memory::{SEAL_READ_ONLY, SharedMemory};
use crate::packets::Payload;
use crate::symbols::{self, WindowId};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use teeperf_symbols::{Functions, demangle};
use teeperf_wire::body::filter;
use teeperf_wire::filter::{Filter, map_size, place};

/// See the module.
#[derive(Debug)]
pub(super) struct Maps {
    pub(super) window: WindowId,
    module: Module,
    /// Where its file could be read.
    functions: Option<Arc<Functions>>,
    memory: SharedMemory,
}

/// Sites in a packet: its list has four bytes for each.
const MOST_LISTED: usize = 200_000;

impl Maps {
    /// Those of a module, in which everything passes.
    pub(super) fn create(
        window: WindowId,
        module: Module,
        functions: Option<Arc<Functions>>,
    ) -> io::Result<Self> {
        let size = map_size(module.sites);
        let memory = SharedMemory::create(c"teeperf-filter", 2 * size, SEAL_READ_ONLY)?;
        let maps = Self { window, module, functions, memory };
        maps.open(0);
        maps.open(1);
        Ok(maps)
    }

    /// Whether this is the module.
    pub(super) fn is_of(&self, window: WindowId, module: &Module) -> bool {
        self.window == window && self.module == *module
    }

    /// To be sent to the process.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.memory.file()
    }

    /// Bytes of one of them.
    pub(super) fn size(&self) -> usize {
        map_size(self.module.sites)
    }

    /// Has everything pass by this one of the two.
    pub(super) fn open(&self, map: usize) {
        self.fill(map, u32::MAX);
    }

    /// Has this filter's map say what passes; payloads of packets that say the same.
    pub(super) fn draw(&self, filter: Filter, rules: &Rules) -> Vec<Vec<u8>> {
        let path = String::from_utf8_lossy(&self.module.path);
        let rules = rules.of_module(&path);
        let others_pass = rules.has_others();
        self.fill(filter.map(), if others_pass { u32::MAX } else { 0 });
        let listed = self.listed(&rules, others_pass);
        let map = self.memory.numbers(filter.map() * self.size(), self.size() / 4);
        for site in &listed {
            let (word, bit) = place(site - self.module.first_site);
            // Only this thread writes it.
            map[word].store(map[word].load(Relaxed) ^ bit, Relaxed);
        }
        self.payloads(filter, others_pass, &listed)
    }

    /// Sites of functions of which the rules say something else than of others.
    fn listed(&self, rules: &ModuleRules<'_>, others_pass: bool) -> Vec<u32> {
        let Some(functions) = self.functions.as_ref().filter(|_| !rules.is_of_no_name()) else {
            return Vec::new();
        };
        let functions =
            functions.iter().filter(|function| rules.has(&demangle(&function.name)) != others_pass);
        functions.filter_map(|function| symbols::site_of(&self.module, function.start)).collect()
    }

    fn payloads(&self, filter: Filter, others_pass: bool, listed: &[u32]) -> Vec<Vec<u8>> {
        let payload = |sites: &[u32]| {
            let list: Vec<u8> = sites.iter().flat_map(|site| site.to_le_bytes()).collect();
            Payload::default()
                .number(filter::NUMBER, filter.number.into())
                .number(filter::PROCESS, self.window.process.into())
                .number(filter::FIRST_SITE, self.window.first_site.into())
                .number(filter::SITES, self.module.sites.into())
                .number(filter::OTHERS_PASS, others_pass.into())
                .bytes(filter::LIST, &list)
                .finish()
        };
        if listed.is_empty() {
            return vec![payload(&[])];
        }
        listed.chunks(MOST_LISTED).map(payload).collect()
    }

    fn fill(&self, map: usize, with: u32) {
        for word in self.memory.numbers(map * self.size(), self.size() / 4) {
            word.store(with, Relaxed);
        }
    }
}
