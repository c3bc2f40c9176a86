//! Functions that a compiler inlined into others, through DWARF's entries (DWARF 5, section 3.3.8).
//!
//! Entries of all units are gone through once, from front to end. Of split debug information
//! (`-gsplit-dwarf`) the entries stand elsewhere, and nothing is found.

use crate::demangle;
use gimli::{
    AttributeValue, Dwarf, EndianSlice, Error, Format, RunTimeEndian, Unit, UnitHeader, UnitOffset,
    constants,
};
use std::collections::HashMap;

/// Most names given of one function.
const MAX_NAMES: usize = 1000;
/// Bytes of a name, at most.
const MAX_NAME: usize = 4096;
/// Entries followed from one to another for a name, at most.
const MAX_STEPS: usize = 8;
/// What a name costs, where an entry costs 1.
const NAME_WORK: u64 = 16;

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// Names of what was inlined into the functions that start at these addresses, in the same order; each name once, at
/// whatever depth it was inlined. `bytes` is the size of all sections: it limits how long a hostile file can keep this
/// at work.
pub(crate) fn find(
    dwarf: &Dwarf<Slice<'_>>,
    bytes: u64,
    starts: &[u64],
) -> Result<Vec<Vec<String>>, Error> {
    let mut wanted = starts.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    let mut headers = Vec::new();
    let mut units = dwarf.units();
    // What is wrong behind a unit says nothing of that.
    while let Some(header) =
        units.next().or_else(|e| if headers.is_empty() { Err(e) } else { Ok(None) })?
    {
        headers.push(header);
    }
    let found = vec![Vec::new(); wanted.len()];
    let mut search =
        Search { dwarf, headers, wanted, found, names: HashMap::new(), work: 8 * bytes };
    for at in 0..search.headers.len() {
        search.unit(search.headers[at]);
    }
    let Search { wanted, found, .. } = search;
    let place = |start| wanted.binary_search(start).ok();
    Ok(starts.iter().map(|start| place(start).map_or(Vec::new(), |at| found[at].clone())).collect())
}

struct Search<'d, 'a> {
    dwarf: &'d Dwarf<Slice<'a>>,
    /// In the order of their offsets.
    headers: Vec<UnitHeader<Slice<'a>>>,
    /// First addresses asked for, sorted.
    wanted: Vec<u64>,
    found: Vec<Vec<String>>,
    /// Names by the place of their entries in `.debug_info`.
    names: HashMap<usize, Option<String>>,
    /// Entries that may still be looked at. An honest file has fewer of them than bytes.
    work: u64,
}

impl<'a> Search<'_, 'a> {
    /// Looks through one unit; nothing when something is wrong in it.
    fn unit(&mut self, header: UnitHeader<Slice<'a>>) -> Option<()> {
        let unit = self.dwarf.unit(header).ok()?;
        let mut entries = unit.entries();
        // The function that we are in, and the depth of its entry; a function within it is not looked at.
        let mut within: Option<(isize, Option<usize>)> = None;
        let mut outer: Option<(isize, Option<usize>)> = None;
        while let Some(entry) = entries.next_dfs().ok()? {
            self.spend(1)?;
            let depth = entry.depth();
            if within.is_some_and(|(begun, _)| depth <= begun) {
                within = outer.take().filter(|(begun, _)| depth > *begun);
            }
            match entry.tag() {
                constants::DW_TAG_subprogram => {
                    let low = entry.attr_value(constants::DW_AT_low_pc);
                    let ranges = entry.attr_value(constants::DW_AT_ranges);
                    let at = self.place(&unit, low, ranges);
                    outer = within;
                    within = Some((depth, at));
                }
                constants::DW_TAG_inlined_subroutine => {
                    let Some((_, Some(at))) = within else { continue };
                    let origin = entry.attr_value(constants::DW_AT_abstract_origin);
                    let Some(name) = origin.and_then(|origin| self.name(&unit, origin)) else {
                        continue;
                    };
                    let names = &mut self.found[at];
                    if names.len() < MAX_NAMES && !names.contains(&name) {
                        names.push(name);
                    }
                }
                _ => {}
            }
        }
        Some(())
    }

    /// Which of the functions asked for this is.
    fn place(
        &mut self,
        unit: &Unit<Slice<'a>>,
        low: Option<AttributeValue<Slice<'a>>>,
        ranges: Option<AttributeValue<Slice<'a>>>,
    ) -> Option<usize> {
        if let Some(low) = low {
            let start = self.dwarf.attr_address(unit, low).ok()??;
            return self.wanted.binary_search(&start).ok();
        }
        let ranges = ranges?;
        let is_index = matches!(ranges, AttributeValue::DebugRngListsIndex(_));
        if is_index && unit.encoding().format == Format::Dwarf64 {
            // Such an index leads to an offset of 64 bits, which gimli adds to another without a look.
            return None;
        }
        // The parts of a function that stand apart, such as its cold one.
        let mut ranges = self.dwarf.attr_ranges(unit, ranges).ok()??;
        while let Some(range) = ranges.next().ok()? {
            self.spend(1)?;
            if let Ok(at) = self.wanted.binary_search(&range.begin) {
                return Some(at);
            }
        }
        None
    }

    /// Name of the function that an entry is of.
    fn name(&mut self, unit: &Unit<Slice<'a>>, of: AttributeValue<Slice<'a>>) -> Option<String> {
        let place = match of {
            AttributeValue::UnitRef(offset) => offset.to_debug_info_offset(&unit.header)?.0,
            AttributeValue::DebugInfoRef(offset) => offset.0,
            _ => return None,
        };
        if let Some(known) = self.names.get(&place) {
            return known.clone();
        }
        self.spend(NAME_WORK)?;
        let name = match of {
            AttributeValue::UnitRef(offset) => self.name_in(unit, offset),
            _ => self.name_elsewhere(place),
        };
        self.names.insert(place, name.clone());
        name
    }

    /// Of an entry in another unit, as link-time optimisation has them.
    fn name_elsewhere(&mut self, place: usize) -> Option<String> {
        let begins = |header: &UnitHeader<Slice<'a>>| header.offset().0;
        let at = self.headers.partition_point(|header| begins(header) <= place).checked_sub(1)?;
        let header = self.headers[at];
        let unit = self.dwarf.unit(header).ok()?;
        let offset = gimli::DebugInfoOffset(place).to_unit_offset(&header)?;
        self.name_in(&unit, offset)
    }

    fn name_in(&self, unit: &Unit<Slice<'a>>, mut offset: UnitOffset) -> Option<String> {
        for _ in 0..MAX_STEPS {
            let entry = unit.entry(offset).ok()?;
            let text = |name| {
                let text = self.dwarf.attr_string(unit, entry.attr_value(name)?).ok()?;
                let text = text.slice().get(..MAX_NAME.min(text.len()))?;
                Some(String::from_utf8_lossy(text).into_owned())
            };
            if let Some(mangled) = text(constants::DW_AT_linkage_name) {
                return Some(demangle(&mangled).into_owned());
            }
            let next = entry
                .attr_value(constants::DW_AT_abstract_origin)
                .or_else(|| entry.attr_value(constants::DW_AT_specification));
            match next {
                Some(AttributeValue::UnitRef(next)) => offset = next,
                // C has no other names.
                _ => return text(constants::DW_AT_name),
            }
        }
        None
    }

    fn spend(&mut self, work: u64) -> Option<()> {
        self.work = self.work.checked_sub(work)?;
        Some(())
    }
}
