//! The map of one file by one filter: memory that processes look at, and what stands in it. All that have mapped the
//! file share it.

use super::unused::Unused;
use super::{Events, ModuleRules, Rules};
use crate::escapes::Module;
use crate::memory::{SEAL_READ_ONLY, SharedMemory};
use crate::packets::Payload;
use crate::symbols::WindowId;
use std::collections::HashSet;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use teeperf_symbols::{Functions, demangle, spellings};
use teeperf_wire::body::filter;
use teeperf_wire::filter::{Filter, half_size, map_size, place};

/// Path and build-id.
pub(super) type FileId = (Vec<u8>, Vec<u8>);

/// What has the same map: a file, and which part of it lies where in a window.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Layout {
    path: Vec<u8>,
    build_id: Vec<u8>,
    /// The file's own address of the window's first byte.
    start: u64,
    sites: u32,
}

impl Layout {
    pub(super) fn of(module: &Module) -> Self {
        Self {
            path: module.path.clone(),
            build_id: module.build_id.clone(),
            start: module.address.wrapping_sub(module.bias),
            sites: module.sites,
        }
    }

    pub(super) fn file(&self) -> FileId {
        (self.path.clone(), self.build_id.clone())
    }

    pub(super) fn path(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }

    /// Bytes of a map.
    pub(super) fn size(&self) -> usize {
        map_size(self.sites)
    }

    /// How far behind the window's first byte an address of the file is, if it lies there.
    fn offset(&self, address: u64) -> Option<u32> {
        let offset = address.wrapping_sub(self.start);
        (offset < self.sites.into()).then_some(offset as u32)
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Map {
    filter: Filter,
    others_pass: bool,
    /// Of functions of which the rules say something else than of others, how far behind the window's first byte they begin.
    listed: Vec<u32>,
    memory: SharedMemory,
    /// Words of bits of functions that pass; behind them stand those of functions that are timed.
    half: usize,
    /// Windows of which a packet has told.
    told: HashSet<WindowId>,
}

/// Sites in a packet: its list has four bytes for each.
const MOST_LISTED: usize = 200_000;

impl Map {
    /// Draws it. Where the file's functions are not known, these are none. Rules that fit something are no longer `unused`.
    pub(super) fn draw(
        layout: &Layout,
        functions: Option<&Functions>,
        filter: Filter,
        rules: &Rules,
        unused: &mut Unused<'_>,
    ) -> io::Result<Self> {
        let path = layout.path();
        let (passing, timing) = (rules.of_module(&path), rules.timing_of_module(&path));
        let mut differing = |rules: &ModuleRules<'_>, kinds: Events| {
            unused.see_module(rules);
            functions
                .map_or(Vec::new(), |functions| listed(layout, functions, (rules, kinds), unused))
        };
        let kinds = rules.kinds();
        let (listed, timed) = (differing(&passing, kinds), differing(&timing, Events::ALL));
        let others_pass = passing.has_others() && kinds.calls;
        let memory = SharedMemory::create(c"teeperf-filter", layout.size(), SEAL_READ_ONLY)?;
        let half = half_size(layout.sites) / 4;
        let map = Self { filter, others_pass, listed, memory, half, told: HashSet::new() };
        let (passes, times) = map.words().split_at(half);
        draw(passes, others_pass, &map.listed);
        if filter.is_timed {
            draw(times, timing.has_others(), &timed);
        }
        Ok(map)
    }

    /// To be sent to a process.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.memory.file()
    }

    /// Has everything pass: the next filter holds.
    pub(super) fn open(&self) {
        fill(&self.words()[..self.half]);
    }

    /// Payloads of packets that tell a window of it, the first time.
    pub(super) fn tell(&mut self, window: WindowId, sites: u32) -> Vec<Vec<u8>> {
        if !self.filter.is_on || !self.told.insert(window) {
            return Vec::new();
        }
        let payload = |offsets: &[u32]| {
            let site = |offset: &u32| (window.first_site + offset).to_le_bytes();
            let list: Vec<u8> = offsets.iter().flat_map(site).collect();
            Payload::default()
                .number(filter::NUMBER, self.filter.number.into())
                .number(filter::PROCESS, window.process.into())
                .number(filter::FIRST_SITE, window.first_site.into())
                .number(filter::SITES, sites.into())
                .number(filter::OTHERS_PASS, self.others_pass.into())
                .bytes(filter::LIST, &list)
                .finish()
        };
        if self.listed.is_empty() {
            return vec![payload(&[])];
        }
        self.listed.chunks(MOST_LISTED).map(payload).collect()
    }

    /// The process is gone.
    pub(super) fn forget(&mut self, process: u32) {
        self.told.retain(|window| window.process != process);
    }

    fn words(&self) -> &[AtomicU32] {
        self.memory.numbers(0, self.memory.length() / 4)
    }
}

fn fill(words: &[AtomicU32]) {
    words.iter().for_each(|word| word.store(u32::MAX, Relaxed));
}

/// Bits that are set where others are and these are not, or the other way round. Only this thread writes them.
fn draw(words: &[AtomicU32], others_are: bool, these: &[u32]) {
    if others_are {
        fill(words);
    }
    for &offset in these {
        let (word, bit) = place(offset);
        words[word].store(words[word].load(Relaxed) ^ bit, Relaxed);
    }
}

/// Where functions and scopes begin of which the rules say something else than of other functions.
fn listed(
    layout: &Layout,
    functions: &Functions,
    (rules, kinds): (&ModuleRules<'_>, Events),
    unused: &mut Unused<'_>,
) -> Vec<u32> {
    let no_name_counts = rules.is_of_no_name();
    let no_kind_counts = kinds.calls == kinds.marks;
    if no_kind_counts && (rules.are_none() || no_name_counts && unused.is_empty()) {
        return Vec::new();
    }
    let others_pass = rules.has_others() && kinds.calls;
    let mut listed = Vec::new();
    for function in functions.iter() {
        let Some(offset) = layout.offset(function.start) else { continue };
        let is_of_kind = if functions.is_scope(function.start) { kinds.marks } else { kinds.calls };
        if rules.are_none() {
            listed.extend((is_of_kind != others_pass).then_some(offset));
            continue;
        }
        let name = &function.name;
        let written = demangle(name);
        let spellings = spellings(&written);
        let names: Vec<&str> =
            std::iter::once(&**name).chain(spellings.iter().map(AsRef::as_ref)).collect();
        unused.see(rules, &names);
        if (is_of_kind && rules.has(&names)) != others_pass {
            listed.push(offset);
        }
    }
    listed
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

    /// Of this program, as if its addresses were those of its file; how far behind the beginning a function is.
    fn own(sites: u32) -> (Layout, Functions, u32) {
        let path = std::env::current_exe().unwrap();
        let functions = Functions::open(&path, &Search::default()).unwrap();
        let address = chosen_address(&path);
        let layout = Layout {
            path: path.into_os_string().into_encoded_bytes(),
            build_id: vec![],
            start: address & !0xFFF,
            sites,
        };
        (layout, functions, (address & 0xFFF) as u32)
    }

    fn chosen_address(path: &Path) -> u64 {
        assert_eq!(chosen_by_a_filter(), 3);
        let functions = Functions::open(path, &Search::default()).unwrap();
        let found = functions.iter().find(|function| function.name.contains("chosen_by_a_filter"));
        found.unwrap().start
    }

    fn draw(layout: &Layout, functions: &Functions, number: u32, rule: &str) -> (Map, Vec<String>) {
        let rules = Rules::read(rule).unwrap();
        let filter = Filter {
            number,
            is_on: rules.is_of_functions(),
            is_timed: rules.are_of_timing(),
            ..Filter::default()
        };
        let mut unused = Unused::of(&rules);
        let map = Map::draw(layout, Some(functions), filter, &rules, &mut unused).unwrap();
        (map, unused.lines())
    }

    fn passes(map: &Map, offset: u32) -> bool {
        let (word, bit) = place(offset);
        map.words()[word].load(Relaxed) & bit != 0
    }

    #[test]
    fn a_map_has_what_the_rules_have_and_the_packet_says_the_same() {
        let (layout, functions, chosen) = own(0x2000);
        for (number, rule, is_in) in
            [(2, "only *chosen_by_a_filter*", true), (3, "exclude *chosen_by_a_filter*", false)]
        {
            let (mut map, unused) = draw(&layout, &functions, number, rule);
            assert_eq!(unused, [""; 0]);
            assert_eq!(passes(&map, chosen), is_in, "{rule}");
            assert_eq!(passes(&map, chosen + 1), !is_in, "{rule}: where no function begins");
            let window = WindowId { process: 7, first_site: 0x3000 };
            let payloads = map.tell(window, 0x2000);
            let [payload] = &payloads[..] else { panic!("{payloads:?}") };
            let field =
                |tag| read(payload).map(|field| field.unwrap()).find(|field| field.tag == tag);
            assert_eq!(field(filter::OTHERS_PASS).unwrap().number(), Some(u64::from(!is_in)));
            assert_eq!(field(filter::LIST).unwrap().value, (0x3000 + chosen).to_le_bytes());
            assert_eq!(field(filter::PROCESS).unwrap().number(), Some(7));
            assert!(map.tell(window, 0x2000).is_empty(), "it was told");
            map.forget(7);
            assert!(!map.tell(window, 0x2000).is_empty());
            map.open();
            assert!(passes(&map, chosen) && passes(&map, chosen + 1));
        }
    }

    #[test]
    fn what_is_timed_stands_behind_what_passes() {
        let (layout, functions, chosen) = own(0x2000);
        let is_timed = |map: &Map, offset| {
            let (word, bit) = place(offset);
            map.words()[map.half..][word].load(Relaxed) & bit != 0
        };
        let (mut map, unused) =
            draw(&layout, &functions, 1, "timed *chosen_by_a_filter*\ntimed nobody");
        assert_eq!(unused, ["timed nobody"]);
        assert!(is_timed(&map, chosen) && !is_timed(&map, chosen + 1));
        assert!(passes(&map, chosen) && passes(&map, chosen + 1));
        assert!(map.tell(WindowId { process: 7, first_site: 0x3000 }, 0x2000).is_empty());
        let (map, _) = draw(&layout, &functions, 2, "timed @*\nexclude *chosen_by_a_filter*");
        assert!(is_timed(&map, chosen) && is_timed(&map, chosen + 1) && !passes(&map, chosen));
        map.open();
        assert!(passes(&map, chosen));
        let (map, _) = draw(&layout, &functions, 3, "only *chosen_by_a_filter*");
        map.open();
        assert!(!is_timed(&map, chosen));
    }

    #[test]
    fn functions_beyond_the_window_have_no_bit() {
        let (layout, functions, _) = own(1);
        let (mut map, _) = draw(&layout, &functions, 1, "only *");
        assert_eq!(map.tell(WindowId { process: 1, first_site: 1 }, 1).len(), 1);
    }

    #[test]
    fn rules_that_fit_nothing_are_known() {
        let (layout, functions, _) = own(0x2000);
        let rules = "only *chosen_by_a_filter*\nonly nobody\nexclude @libnone*\nexclude *@/*";
        assert_eq!(draw(&layout, &functions, 1, rules).1, ["only nobody", "exclude @libnone*"]);
    }
}
