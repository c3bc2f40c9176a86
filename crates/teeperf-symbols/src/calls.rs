//! Where in its code a function calls others: DWARF's call sites (DWARF 5, 3.4.1 and 7.5.4), which compilers write
//! where they optimise (gcc and clang from -O1 on, with -g), and GNU's form of them before DWARF 5.
//!
//! Calls of which nothing is said there, as those through pointers, are not found; and code that was inlined calls
//! from where it stands in.

use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, Error, RunTimeEndian, Unit,
    UnitOffset, constants,
};

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

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

/// The sites in functions that start at these addresses. `bytes` is the size of all sections: it limits how long a
/// hostile file can keep this at work.
pub(crate) fn find(
    dwarf: &Dwarf<Slice<'_>>,
    bytes: u64,
    starts: &[u64],
) -> Result<Vec<Site>, Error> {
    let mut search = Search { dwarf, starts, found: Vec::new(), work: 8 * bytes };
    let mut units = dwarf.units();
    loop {
        match units.next() {
            // What is wrong in one unit says nothing of the next.
            Ok(Some(header)) => {
                if let Ok(unit) = dwarf.unit(header) {
                    search.unit(&unit);
                }
            }
            Ok(None) => return Ok(search.found),
            Err(error) if search.found.is_empty() => return Err(error),
            Err(_) => return Ok(search.found),
        }
        if search.work == 0 || search.found.len() >= MAX_SITES {
            return Ok(search.found);
        }
    }
}

struct Search<'d, 'a> {
    dwarf: &'d Dwarf<Slice<'a>>,
    starts: &'d [u64],
    found: Vec<Site>,
    /// Entries that may still be looked at.
    work: u64,
}

impl<'a> Search<'_, 'a> {
    /// Goes through a unit to its end, or to what is wrong in it.
    fn unit(&mut self, unit: &Unit<Slice<'a>>) -> Option<()> {
        let mut entries = unit.entries();
        // The function asked for that is open, and how deep it stands.
        let mut open: Option<(usize, isize)> = None;
        while entries.next_dfs().ok()?.is_some() {
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
                    let start = entry.attr_value(constants::DW_AT_low_pc);
                    let start = start.and_then(|value| self.address(unit, value));
                    let asked =
                        start.and_then(|start| self.starts.iter().position(|&s| s == start));
                    open = asked.map(|caller| (caller, depth)).or(open);
                }
                (
                    constants::DW_TAG_call_site | constants::DW_TAG_GNU_call_site,
                    Some((caller, _)),
                ) => {
                    if let Some(site) = self.site(unit, entry, caller) {
                        self.found.push(site);
                    }
                }
                _ => {}
            }
            if self.found.len() >= MAX_SITES {
                return None;
            }
        }
        Some(())
    }

    fn site(
        &self,
        unit: &Unit<Slice<'a>>,
        entry: &DebuggingInformationEntry<Slice<'a>>,
        caller: usize,
    ) -> Option<Site> {
        let either = |new, old| entry.attr_value(new).or_else(|| entry.attr_value(old));
        let returns = either(constants::DW_AT_call_return_pc, constants::DW_AT_low_pc)?;
        let origin = either(constants::DW_AT_call_origin, constants::DW_AT_abstract_origin)?;
        let returns_to = self.address(unit, returns)?;
        let AttributeValue::UnitRef(callee) = origin else { return None };
        Some(Site { caller, callee: self.name(unit, callee)?, returns_to })
    }

    /// The name of a function's entry, or of the one that it is another form of.
    fn name(&self, unit: &Unit<Slice<'a>>, mut at: UnitOffset) -> Option<String> {
        for _ in 0..4 {
            let entry = unit.entry(at).ok()?;
            let name = [constants::DW_AT_linkage_name, constants::DW_AT_name]
                .into_iter()
                .find_map(|name| entry.attr_value(name));
            if let Some(name) = name {
                let text = self.dwarf.attr_string(unit, name).ok()?;
                return Some(text.to_string_lossy().into_owned());
            }
            let origin = [constants::DW_AT_abstract_origin, constants::DW_AT_specification]
                .into_iter()
                .find_map(|origin| entry.attr_value(origin))?;
            let AttributeValue::UnitRef(next) = origin else { return None };
            at = next;
        }
        None
    }

    fn address(&self, unit: &Unit<Slice<'a>>, value: AttributeValue<Slice<'a>>) -> Option<u64> {
        self.dwarf.attr_address(unit, value).ok()?
    }
}
