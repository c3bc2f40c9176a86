//! Files of code, and where they are put: where they lay in which process no profile knows, and perf wants to be told.

use std::collections::BTreeMap;
use std::path::Path;

use teeperf_profile::model::{Code, Place, Profile};
use teeperf_symbols::{Loaded, Part};

/// Where the first part is put.
const FIRST: u64 = 1 << 32;
/// Parts are mapped in whole pages.
const PAGE: u64 = 4096;

/// A file.
pub(super) struct Module<'a> {
    pub(super) place: &'a Place,
    pub(super) parts: Vec<Mapped>,
}

/// A part of it, as a system maps it.
pub(super) struct Mapped {
    /// Its first page.
    pub(super) address: u64,
    /// Bytes of its pages.
    pub(super) length: u64,
    /// Where in the file they begin.
    pub(super) offset: u64,
    part: Part,
}

impl Mapped {
    fn at(address: u64, part: Part) -> Self {
        let before = (part.address % PAGE).min(part.offset);
        let length = before.saturating_add(part.length).checked_next_multiple_of(PAGE);
        Self { address, length: length.unwrap_or(0), offset: part.offset - before, part }
    }

    /// Where a virtual address of the file is.
    fn address_of(&self, address: u64) -> Option<u64> {
        let within = address.checked_sub(self.part.address)?;
        let is_there = within < self.part.length;
        is_there.then(|| (self.address + (self.part.offset - self.offset)).checked_add(within))?
    }
}

impl Module<'_> {
    /// Where a virtual address of the file is.
    pub(super) fn address_of(&self, address: u64) -> Option<u64> {
        self.parts.iter().find_map(|mapped| mapped.address_of(address))
    }
}

/// All that functions of a profile are of; and paths of those whose files are not there any more, or were replaced.
pub(super) fn of(profile: &Profile) -> (Vec<Module<'_>>, Vec<String>) {
    let mut found: BTreeMap<(&str, &[u8]), (&Place, u64, u64)> = BTreeMap::new();
    for place in profile.functions.iter().filter_map(|function| function.place.as_ref()) {
        if place.code == Code::UnknownImage {
            continue;
        }
        let end = place.address.saturating_add(place.size.max(1));
        let (_, first, last) =
            found.entry((&place.path, &place.build_id)).or_insert((place, u64::MAX, 0));
        *first = place.address.min(*first);
        *last = end.max(*last);
    }
    let (mut modules, mut at, mut missing) = (Vec::new(), FIRST, Vec::new());
    for (place, first, last) in found.into_values() {
        let of_file = parts(place).unwrap_or_else(|| {
            missing.push(place.path.to_string());
            vec![Part { offset: first, length: last - first, address: first }]
        });
        let mut parts = Vec::new();
        for part in of_file {
            let mapped = Mapped::at(at, part);
            // A file that says it is larger than memory can be has its code where the next one's is.
            let end = at.checked_add(mapped.length).and_then(|end| end.checked_add(PAGE));
            at = end.unwrap_or(FIRST);
            parts.push(mapped);
        }
        modules.push(Module { place, parts });
    }
    (modules, missing)
}

/// Code of a file, if that is still there.
fn parts(place: &Place) -> Option<Vec<Part>> {
    let file = Loaded::open(Path::new(&*place.path)).ok()?;
    let is_it = place.build_id.is_empty() || file.build_id() == Some(&*place.build_id);
    let parts: Vec<Part> = file.code().collect();
    (is_it && !parts.is_empty()).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_mapped_in_whole_pages() {
        let mapped = Mapped::at(FIRST, Part { address: 0x40_1234, length: 0x2000, offset: 0x234 });
        assert_eq!((mapped.address, mapped.length, mapped.offset), (FIRST, 0x3000, 0));
        assert_eq!(mapped.address_of(0x40_1234), Some(FIRST + 0x234));
        assert_eq!(mapped.address_of(0x40_3233), Some(FIRST + 0x2233));
        assert_eq!((mapped.address_of(0x40_3234), mapped.address_of(0x40_1233)), (None, None));
        let endless = Mapped::at(!0xfff, Part { address: 0, length: u64::MAX, offset: 0 });
        assert_eq!((endless.length, endless.address_of(u64::MAX - 1)), (0, None));
    }
}
