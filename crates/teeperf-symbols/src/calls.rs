//! Where in its code a function calls others: DWARF's call sites (DWARF 5, 3.4.1 and 7.5.4), which compilers write
//! where they optimise (gcc and clang from -O1 on, with -g), and GNU's form of them before DWARF 5.
//!
//! Calls of which nothing is said there, as those through pointers, are not found; and code that was inlined calls
//! from where it stands in.

use crate::information::{At, Information, Which, asked_for};
use crate::sections::Slice;
use gimli::{AttributeValue, DebuggingInformationEntry, Error, UnitRef, constants};

/// Deepest nesting of blocks that is looked into; C and C++ have some ten.
const MAX_DEPTH: isize = 256;
/// Most sites told.
const MAX_SITES: usize = 1 << 16;

/// A place in a function's code that calls another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    /// Which of the functions asked for calls.
    pub(crate) caller: usize,
    /// Name of what is called, as the linker knows it where that is known.
    pub(crate) callee: String,
    /// Where the call returns to.
    pub(crate) returns_to: u64,
}

/// The sites in functions that start at these addresses. The size of all sections limits how long a hostile file can keep
/// this at work.
pub(crate) fn find(information: &Information, starts: &[u64]) -> Result<Vec<Site>, Error> {
    let mut wanted = starts.to_vec();
    wanted.sort_unstable();
    let work = 8 * information.bytes;
    let mut search = Search { information, starts, wanted: &wanted, found: Vec::new(), work };
    information.each_unit(&wanted, |which, unit| {
        search.unit(which, unit);
    })?;
    Ok(search.found)
}

struct Search<'d> {
    information: &'d Information,
    starts: &'d [u64],
    /// The same, sorted.
    wanted: &'d [u64],
    found: Vec<Site>,
    /// Entries that may still be looked at.
    work: u64,
}

impl Search<'_> {
    /// Goes through a unit to its end, or to what is wrong in it.
    fn unit(&mut self, which: Which, unit: UnitRef<'_, Slice>) -> Option<()> {
        let mut entries = unit.entries();
        // The function asked for that is open, and how deep it stands.
        let mut open: Option<(usize, isize)> = None;
        while self.found.len() < MAX_SITES && entries.next_dfs().ok()?.is_some() {
            self.work = self.work.checked_sub(1)?;
            let Some(entry) = entries.current() else { continue };
            let depth = entry.depth();
            if open.is_some_and(|(_, outer)| depth <= outer) {
                open = None;
            }
            if depth > MAX_DEPTH {
                continue;
            }
            match (entry.tag(), open) {
                (constants::DW_TAG_subprogram, _) => {
                    let start = asked_for(unit, entry, self.wanted, &mut self.work);
                    let start = start.map(|at| self.wanted[at]);
                    let asked =
                        start.and_then(|start| self.starts.iter().position(|&s| s == start));
                    open = asked.map(|caller| (caller, depth)).or(open);
                }
                (
                    constants::DW_TAG_call_site | constants::DW_TAG_GNU_call_site,
                    Some((caller, _)),
                ) => {
                    if let Some(site) = self.site(which, unit, entry, caller) {
                        self.found.push(site);
                    }
                }
                _ => {}
            }
        }
        Some(())
    }

    fn site(
        &self,
        which: Which,
        unit: UnitRef<'_, Slice>,
        entry: &DebuggingInformationEntry<Slice>,
        caller: usize,
    ) -> Option<Site> {
        let either = |new, old| entry.attr_value(new).or_else(|| entry.attr_value(old));
        let returns = either(constants::DW_AT_call_return_pc, constants::DW_AT_low_pc)?;
        let origin = either(constants::DW_AT_call_origin, constants::DW_AT_abstract_origin)?;
        let returns_to = address(unit, returns)?;
        let at = At { which, unit, offset: entry.offset() };
        Some(Site { caller, callee: self.information.raw_name(at, &origin)?, returns_to })
    }
}

fn address(unit: UnitRef<'_, Slice>, value: AttributeValue<Slice>) -> Option<u64> {
    unit.attr_address(value).ok()?
}
