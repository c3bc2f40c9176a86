//! Which functions were recorded, by the filters of a recording ([`teeperf_wire::body::filter`]).

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::contents::Filter;
use crate::warnings::Warnings;

/// Most filters of one process that a thread is told of at once; of more, the last.
const MOST_AT_ONCE: usize = 64;
/// Most sites listed of one recording, and most windows.
const MAX_LISTED: usize = 1 << 24;
const MAX_WINDOWS: usize = 1 << 18;

/// What the filters let pass, by process, number and window.
#[derive(Debug, Default)]
pub(crate) struct Filters {
    /// By process, and by number, windows by their first site.
    processes: HashMap<u32, BTreeMap<u32, BTreeMap<u32, Window>>>,
    listed: usize,
    windows: usize,
    is_full: bool,
}

#[derive(Debug)]
struct Window {
    sites: u32,
    others_pass: bool,
    listed: HashSet<u32>,
}

impl Filters {
    /// Takes what a packet says of a window.
    pub(crate) fn add(&mut self, filter: &Filter<'_>, warnings: &mut Warnings) {
        let sites: Vec<u32> = filter.listed().collect();
        if self.listed + sites.len() > MAX_LISTED || self.windows >= MAX_WINDOWS {
            if !std::mem::replace(&mut self.is_full, true) {
                warnings.add(|| {
                    "the filters have more functions than are read: frames that one of them closed may stay open".into()
                });
            }
            return;
        }
        self.listed += sites.len();
        let filters = self.processes.entry(filter.process).or_default();
        let windows = filters.entry(filter.number).or_default();
        let window = windows.entry(filter.first_site).or_insert_with(|| {
            self.windows += 1;
            let (sites, others_pass) = (filter.sites, filter.others_pass);
            Window { sites, others_pass, listed: HashSet::new() }
        });
        window.listed.extend(sites);
    }

    /// The numbers of those that came to a process between two others, in order.
    pub(crate) fn between(&self, process: u32, after: u32, before: u32) -> Vec<u32> {
        let filters = self.processes.get(&process).filter(|_| before > after);
        let numbers = filters.map(|filters| filters.range(after + 1..before).rev());
        let mut last: Vec<u32> =
            numbers.into_iter().flatten().map(|(&number, _)| number).take(MOST_AT_ONCE).collect();
        last.reverse();
        last
    }

    /// Whether a function passes a filter. One of which nothing is known does.
    pub(crate) fn pass(&self, process: u32, number: u32, site: u32) -> bool {
        let windows = self.processes.get(&process).and_then(|filters| filters.get(&number));
        let below = windows.and_then(|windows| windows.range(..=site).next_back());
        let window = below.filter(|(first_site, window)| site - **first_site < window.sites);
        window.is_none_or(|(_, window)| window.listed.contains(&site) != window.others_pass)
    }
}
