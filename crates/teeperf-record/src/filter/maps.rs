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
use teeperf_symbols::{Functions, Symbol, demangle, demangle_without_parameters};
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
        let is_listed = |function: &Symbol<'_>| {
            let name = &function.name;
            rules.has(&[name, &demangle(name), &demangle_without_parameters(name)]) != others_pass
        };
        let site = |function: Symbol<'_>| {
            let site = symbols::site_of(&self.module, function.start)?;
            is_listed(&function).then_some(site)
        };
        functions.iter().filter_map(site).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use teeperf_symbols::Search;
    use teeperf_wire::fields::read;

    #[inline(never)]
    fn chosen_by_a_filter() -> u64 {
        std::hint::black_box(3)
    }

    /// Of this program, as if its addresses were those of its file.
    fn own(sites: u32) -> (Maps, u32) {
        let path = std::env::current_exe().unwrap();
        let functions = Functions::open(&path, &Search::default()).unwrap();
        let chosen = functions.iter().find(|function| function.name.contains("chosen_by_a_filter"));
        let address = chosen.unwrap().start & !0xFFF;
        let chosen = 0x1000 + (chosen_address(&path) - address) as u32;
        let module = Module {
            first_site: 0x1000,
            sites,
            address,
            bias: 0,
            is_anchored: false,
            build_id: vec![],
            path: path.into_os_string().into_encoded_bytes(),
        };
        let window = WindowId { process: 7, first_site: 0x1000 };
        (Maps::create(window, module, Some(Arc::new(functions))).unwrap(), chosen)
    }

    fn chosen_address(path: &Path) -> u64 {
        assert_eq!(chosen_by_a_filter(), 3);
        let functions = Functions::open(path, &Search::default()).unwrap();
        let found = functions.iter().find(|function| function.name.contains("chosen_by_a_filter"));
        found.unwrap().start
    }

    fn filter(number: u32) -> Filter {
        Filter { number, is_on: true, is_of_threads: false }
    }

    fn passes(maps: &Maps, map: usize, site: u32) -> bool {
        let (word, bit) = place(site - 0x1000);
        maps.memory.numbers(map * maps.size(), maps.size() / 4)[word].load(Relaxed) & bit != 0
    }

    #[test]
    fn a_map_has_what_the_rules_have_and_the_packet_says_the_same() {
        let (maps, chosen) = own(0x2000);
        assert!(passes(&maps, 0, chosen) && passes(&maps, 1, chosen + 1), "all, at first");
        for (number, rule, is_in) in
            [(2, "only *chosen_by_a_filter*", true), (3, "exclude *chosen_by_a_filter*", false)]
        {
            let map = filter(number).map();
            let payloads = maps.draw(filter(number), &Rules::read(rule).unwrap());
            assert_eq!(passes(&maps, map, chosen), is_in, "{rule}");
            assert_eq!(passes(&maps, map, chosen + 1), !is_in, "{rule}: where no function begins");
            let [payload] = &payloads[..] else { panic!("{payloads:?}") };
            let field =
                |tag| read(payload).map(|field| field.unwrap()).find(|field| field.tag == tag);
            assert_eq!(field(filter::OTHERS_PASS).unwrap().number(), Some(u64::from(!is_in)));
            assert_eq!(field(filter::LIST).unwrap().value, chosen.to_le_bytes());
            assert_eq!(field(filter::PROCESS).unwrap().number(), Some(7));
        }
        // The one of the filter before stays as it was until it is opened.
        assert!(passes(&maps, 0, chosen) && !passes(&maps, 0, chosen + 1));
        maps.open(0);
        assert!(passes(&maps, 0, chosen + 1));
    }

    #[test]
    fn functions_beyond_the_window_have_no_bit() {
        let (maps, _) = own(1);
        let payloads = maps.draw(filter(1), &Rules::read("only *").unwrap());
        assert_eq!(payloads.len(), 1);
    }
}
