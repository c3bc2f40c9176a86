//! Functions that a compiler inlined into others, through DWARF's entries (DWARF 5, section 3.3.8).
//!
//! Entries of units that have functions asked for are gone through once, from front to end.

use crate::information::{At, EntryId, Information, Which, asked_for};
use crate::sections::Slice;
use gimli::{AttributeValue, Error, UnitRef, constants};
use std::collections::HashMap;

/// Most names given of one function.
const MAX_NAMES: usize = 1000;
/// What a name costs, where an entry costs 1.
const NAME_WORK: u64 = 16;

/// Names of what was inlined into the functions that start at these addresses, in the same order; each name once, at
/// whatever depth it was inlined. The size of all sections limits how long a hostile file can keep this at work.
pub(crate) fn find(information: &Information, starts: &[u64]) -> Result<Vec<Vec<String>>, Error> {
    let mut wanted = starts.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    let found = vec![Vec::new(); wanted.len()];
    let work = 8 * information.bytes;
    let mut search = Search { information, wanted: &wanted, found, names: HashMap::new(), work };
    information.each_unit(&wanted, |which, unit| {
        search.unit(which, unit);
    })?;
    let found = search.found;
    let place = |start| wanted.binary_search(start).ok();
    Ok(starts.iter().map(|start| place(start).map_or(Vec::new(), |at| found[at].clone())).collect())
}

struct Search<'d> {
    information: &'d Information,
    /// First addresses asked for, sorted.
    wanted: &'d [u64],
    found: Vec<Vec<String>>,
    /// Names by their entries.
    names: HashMap<EntryId, Option<String>>,
    /// Entries that may still be looked at. An honest file has fewer of them than bytes.
    work: u64,
}

impl Search<'_> {
    /// Looks through one unit; nothing when something is wrong in it.
    fn unit(&mut self, which: Which, unit: UnitRef<'_, Slice>) -> Option<()> {
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
                    let at = asked_for(unit, entry, self.wanted, &mut self.work);
                    outer = within;
                    within = Some((depth, at));
                }
                constants::DW_TAG_inlined_subroutine => {
                    let Some((_, Some(place))) = within else { continue };
                    let origin = entry.attr_value(constants::DW_AT_abstract_origin);
                    let at = At { which, unit, offset: entry.offset() };
                    let Some(name) = origin.and_then(|origin| self.name(at, &origin)) else {
                        continue;
                    };
                    let names = &mut self.found[place];
                    if names.len() < MAX_NAMES && !names.contains(&name) {
                        names.push(name);
                    }
                }
                _ => {}
            }
        }
        Some(())
    }

    /// Name of the function that an entry is of.
    fn name(&mut self, at: At<'_>, origin: &AttributeValue<Slice>) -> Option<String> {
        let entry = at.target(origin)?;
        if let Some(known) = self.names.get(&entry) {
            return known.clone();
        }
        self.spend(NAME_WORK)?;
        let name = self.information.name(at, origin);
        self.names.insert(entry, name.clone());
        name
    }

    fn spend(&mut self, work: u64) -> Option<()> {
        self.work = self.work.checked_sub(work)?;
        Some(())
    }
}
