//! Partial units, which `dwz` makes of what several units have in common: addr2line takes those of DWARF 4 for units with
//! code, of all files that their table of lines has, since the header tells them apart in DWARF 5 alone.
//!
//! So it is given tables of abbreviations in which partial units name no table of lines.

use super::abbreviations;
use crate::sections::{Shared, Slice};
use gimli::{
    AbbreviationsCacheStrategy, DebugAbbrev, Dwarf, EndianReader, RangeLists, Reader, Section,
    constants,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A number that is no attribute's (DWARF 5, table 7.5), of as many bytes as `DW_AT_stmt_list` has: one.
const NOTHING: u8 = 0x04;

/// The same debug information for who looks up addresses.
pub(super) fn without_lines(dwarf: &Arc<Dwarf<Slice>>) -> Arc<Dwarf<Slice>> {
    let mut tables = BTreeSet::new();
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        if header.version() < 5 {
            tables.insert(header.debug_abbrev_offset().0);
        }
    }
    let section = dwarf.debug_abbrev.reader();
    let mut places = Vec::new();
    for table in tables {
        let mut rest = section.clone();
        if rest.skip(table).is_err() {
            continue;
        }
        let note = |tag, name, at: &Slice| {
            let is_lines = name == u64::from(constants::DW_AT_stmt_list.0);
            if tag == u64::from(constants::DW_TAG_partial_unit.0) && is_lines {
                places.push(at.offset_from(section));
            }
        };
        // What is wrong in a table ends it.
        let _ = abbreviations::each_attribute(&mut rest, note);
    }
    let Ok(bytes) = section.to_slice() else { return dwarf.clone() };
    if places.is_empty() {
        return dwarf.clone();
    }
    let mut bytes = bytes.into_owned();
    for place in places {
        // Written in more bytes than it takes, it is left as it is.
        if let Some(byte) = bytes.get_mut(place)
            && u16::from(*byte) == constants::DW_AT_stmt_list.0
        {
            *byte = NOTHING;
        }
    }
    let changed = EndianReader::new(Shared::from(bytes), section.endian());
    let (ranges, lists) = (dwarf.ranges.debug_ranges(), dwarf.ranges.debug_rnglists());
    let mut out = Dwarf {
        debug_abbrev: DebugAbbrev::from(changed),
        debug_addr: dwarf.debug_addr.clone(),
        debug_aranges: dwarf.debug_aranges.clone(),
        debug_info: dwarf.debug_info.clone(),
        debug_line: dwarf.debug_line.clone(),
        debug_line_str: dwarf.debug_line_str.clone(),
        debug_macinfo: dwarf.debug_macinfo.clone(),
        debug_macro: dwarf.debug_macro.clone(),
        debug_names: dwarf.debug_names.clone(),
        debug_str: dwarf.debug_str.clone(),
        debug_str_offsets: dwarf.debug_str_offsets.clone(),
        debug_types: dwarf.debug_types.clone(),
        locations: dwarf.locations.clone(),
        ranges: RangeLists::new(ranges.clone(), lists.clone()),
        file_type: dwarf.file_type,
        sup: dwarf.sup.clone(),
        abbreviations_cache: gimli::AbbreviationsCache::new(),
    };
    out.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
    Arc::new(out)
}
