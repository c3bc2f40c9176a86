//! Tables of abbreviations, which units of debug information name: how large they are before they are read.
//!
//! gimli keeps each table that units name. In an honest file these stand one behind the other. A hostile file can have
//! a table begin at each byte of one long table, and a megabyte of it would take gigabytes of memory.

use crate::sections::Slice;
use gimli::{
    Abbreviations, DebugAbbrev, DebugAbbrevOffset, Dwarf, Reader, Section, UnitHeader, constants,
};
use std::collections::HashMap;
use std::sync::Arc;

/// How often the bytes of the tables may be read in all. Linkers write each byte once.
const MOST_TIMES: u64 = 2;

/// Whether the tables that the units of a file name lie over one another.
pub(super) fn are_over_one_another(dwarf: &Dwarf<Slice>) -> bool {
    let mut offsets = Vec::new();
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        offsets.push(header.debug_abbrev_offset().0);
    }
    offsets.sort_unstable();
    offsets.dedup();
    let mut left = room(&dwarf.debug_abbrev);
    !offsets.into_iter().all(|offset| is_within(&dwarf.debug_abbrev, offset, &mut left))
}

/// Tables of a file whose units are read one by one.
pub(super) struct Tables {
    known: HashMap<usize, Arc<Abbreviations>>,
    left: u64,
}

impl Tables {
    /// None yet, of all that stands in a file's section.
    pub(super) fn new(section: &DebugAbbrev<Slice>) -> Self {
        Self { known: HashMap::new(), left: room(section) }
    }

    /// The table of a unit; nothing where it is wrong. `dwarf` has the section from byte `base` on.
    pub(super) fn of(
        &mut self,
        dwarf: &Dwarf<Slice>,
        base: usize,
        header: &UnitHeader<Slice>,
    ) -> Option<Arc<Abbreviations>> {
        let offset = header.debug_abbrev_offset();
        let place = base.checked_add(offset.0)?;
        if let Some(known) = self.known.get(&place) {
            return Some(known.clone());
        }
        if !is_within(&dwarf.debug_abbrev, offset.0, &mut self.left) {
            return None;
        }
        let table = Arc::new(dwarf.debug_abbrev.abbreviations(offset).ok()?);
        self.known.insert(place, table.clone());
        Some(table)
    }
}

fn room(section: &DebugAbbrev<Slice>) -> u64 {
    (section.reader().len() as u64).saturating_mul(MOST_TIMES)
}

/// Takes a table's bytes off what may still be read, where there are so many.
fn is_within(section: &DebugAbbrev<Slice>, offset: usize, left: &mut u64) -> bool {
    let mut rest = section.reader().clone();
    if rest.skip(DebugAbbrevOffset(offset).0).is_err() {
        // gimli tells that there is none.
        return true;
    }
    let whole = rest.len() as u64;
    let most = usize::try_from(*left).unwrap_or(usize::MAX).min(rest.len());
    let is_cut = most < rest.len();
    if rest.truncate(most).is_err() {
        return true;
    }
    let begun = rest.len();
    // What is wrong in a table ends it, as it does for gimli.
    let is_whole = each_attribute(&mut rest, |_, _, _| ()).is_ok();
    let read = (begun - rest.len()) as u64;
    *left -= read.min(*left);
    is_whole || !is_cut || read >= whole
}

/// Goes to the end of a table (DWARF 5, section 7.5.3), and tells each attribute, by the tag of its entry, its name, and what the
/// name begins at.
pub(super) fn each_attribute(
    rest: &mut Slice,
    mut note: impl FnMut(u64, u64, &Slice),
) -> gimli::Result<()> {
    while rest.read_uleb128()? != 0 {
        let (tag, _children) = (rest.read_uleb128()?, rest.read_u8()?);
        loop {
            let at = rest.clone();
            let (name, form) = (rest.read_uleb128()?, rest.read_uleb128()?);
            if form == u64::from(constants::DW_FORM_implicit_const.0) {
                rest.read_sleb128()?;
            }
            if (name, form) == (0, 0) {
                break;
            }
            note(tag, name, &at);
        }
    }
    Ok(())
}
