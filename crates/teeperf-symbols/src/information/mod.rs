//! The debug information of a file, with what of it stands in other files: what the compiler split off ([`split`]), and what
//! `dwz` moved to a file of several programs ([`supplement`]).

mod abbreviations;
mod missing;
mod origins;
mod partial;
mod split;
mod supplement;

use crate::image::Image;
use crate::sections::{self, Slice};
use crate::{Error, Search};
use gimli::{
    AbbreviationsCacheStrategy, AttributeValue, DebuggingInformationEntry, Dwarf, DwarfSections,
    DwoId, EndianReader, Format, Section, Unit, UnitHeader, UnitOffset, UnitRef, UnitType,
    constants,
};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use missing::Missing;
pub(crate) use origins::{At, EntryId};
use split::Split;
pub(crate) use split::Wanted;

/// Which of its files something stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Which {
    /// The one that has `.debug_info`.
    Main,
    /// What `dwz` moved there.
    Supplement,
    /// What was split off the unit with this identifier.
    Split(u64),
}

/// Debug information of a file.
pub(crate) struct Information {
    pub(crate) dwarf: Arc<Dwarf<Slice>>,
    /// Bytes of all sections of the file: a limit for what an honest file gives work for.
    pub(crate) bytes: u64,
    split: Split,
    /// The file that `dwz` moved a part to.
    moved_to: Option<PathBuf>,
    missing: RefCell<Missing>,
    /// Headers of units, in the order of their offsets.
    main: OnceCell<Vec<UnitHeader<Slice>>>,
    supplement: OnceCell<Vec<UnitHeader<Slice>>>,
    /// Units that others refer to.
    units: RefCell<HashMap<(Which, usize), KnownUnit>>,
    /// Numbers of units that something was split off, by its identifier.
    skeletons: OnceCell<HashMap<u64, usize>>,
}

/// A unit that was read; nothing where it is wrong.
type KnownUnit = Option<Arc<Unit<Slice>>>;

impl Information {
    /// That of the program at a path, which `image` has. `is_kept`: units are asked for again and again.
    pub(crate) fn of(
        image: &Image,
        program: &Path,
        search: &Search,
        is_kept: bool,
    ) -> Result<Self, Error> {
        let endian = sections::endian(image);
        let borrow = |sections: &DwarfSections<sections::Shared>| {
            sections.borrow(|bytes| EndianReader::new(bytes.clone(), endian))
        };
        let mut missing = Missing::default();
        let mut dwarf = borrow(&sections::of(image, |id| Some(id.name()))?);
        let bytes = size(&dwarf);
        prepare(&mut dwarf, image)?;
        let mut moved_to = None;
        if let Some((place, sections)) = supplement::of(image, search, &mut missing) {
            moved_to = Some(place);
            let mut supplement = borrow(&sections);
            prepare(&mut supplement, image)?;
            dwarf.set_sup(supplement);
        }
        Ok(Self {
            dwarf: Arc::new(dwarf),
            bytes,
            split: Split::new(image, program, search, is_kept),
            moved_to,
            missing: RefCell::new(missing),
            main: OnceCell::new(),
            supplement: OnceCell::new(),
            units: RefCell::default(),
            skeletons: OnceCell::new(),
        })
    }

    /// The same for addr2line.
    pub(crate) fn for_lookup(&self) -> Arc<Dwarf<Slice>> {
        partial::without_lines(&self.dwarf)
    }

    /// What was looked for in vain.
    pub(crate) fn missing(&self) -> Missing {
        self.missing.borrow().clone()
    }

    /// Notes that what it says of an address cannot be read.
    pub(crate) fn note_damaged(&self) {
        self.missing.borrow_mut().damaged();
    }

    /// What was split off a unit.
    pub(crate) fn split(&self, wanted: &Wanted) -> Option<Arc<Dwarf<Slice>>> {
        self.split.of(wanted, &self.dwarf, &mut self.missing.borrow_mut())
    }

    /// Goes through the units that have code at some of these addresses, which are sorted; what was split off a unit stands for
    /// it. What is wrong in one unit says nothing of the next.
    pub(crate) fn each_unit(
        &self,
        wanted: &[u64],
        mut visit: impl FnMut(Which, UnitRef<'_, Slice>),
    ) -> Result<(), gimli::Error> {
        let mut work = 8 * self.bytes;
        let headers = self.headers(Which::Main);
        if headers.is_empty() {
            self.dwarf.units().next()?;
        }
        for header in headers {
            let Ok(unit) = self.dwarf.unit(header.clone()) else { continue };
            let unit_ref = UnitRef::new(&self.dwarf, &unit);
            if !concerns(unit_ref, wanted, &mut work).unwrap_or(true) {
                continue;
            }
            let Some(id) = unit.dwo_id else {
                visit(Which::Main, unit_ref);
                continue;
            };
            match self.split(&wanted_of(unit_ref, id)).and_then(|dwarf| whole(dwarf, &unit)) {
                Some((dwarf, split)) => visit(Which::Split(id.0), UnitRef::new(&dwarf, &split)),
                // It may have some itself (`-fsplit-dwarf-inlining`).
                None => visit(Which::Main, unit_ref),
            }
        }
        Ok(())
    }

    /// Other files that have a part of it: each is what it is taken for, as its identifier tells, wherever a path in a
    /// program leads.
    pub(crate) fn companions(&self) -> Vec<PathBuf> {
        for header in self.headers(Which::Main) {
            let Ok(unit) = self.dwarf.unit(header.clone()) else { continue };
            if let Some(id) = unit.dwo_id {
                self.split(&wanted_of(UnitRef::new(&self.dwarf, &unit), id));
            }
        }
        self.split.used().into_iter().chain(self.moved_to.clone()).collect()
    }

    fn headers(&self, which: Which) -> &[UnitHeader<Slice>] {
        let of = |dwarf: &Dwarf<Slice>| {
            let mut headers = Vec::new();
            let mut units = dwarf.units();
            while let Ok(Some(header)) = units.next() {
                headers.push(header);
            }
            headers
        };
        match which {
            Which::Main => self.main.get_or_init(|| of(&self.dwarf)),
            Which::Supplement => {
                self.supplement.get_or_init(|| self.dwarf.sup().map_or_else(Vec::new, of))
            }
            Which::Split(_) => &[],
        }
    }

    /// The unit of what stands at a place in `.debug_info`, and where in it.
    fn unit_at(&self, which: Which, place: usize) -> Option<(Arc<Unit<Slice>>, UnitOffset)> {
        let headers = self.headers(which);
        let begins = |header: &UnitHeader<Slice>| header.offset().0;
        let at = headers.partition_point(|header| begins(header) <= place).checked_sub(1)?;
        let offset = gimli::DebugInfoOffset(place).to_unit_offset(&headers[at])?;
        Some((self.unit(which, at)?, offset))
    }

    /// A unit by its number.
    fn unit(&self, which: Which, at: usize) -> Option<Arc<Unit<Slice>>> {
        let header = self.headers(which).get(at)?;
        let mut units = self.units.borrow_mut();
        let unit = units.entry((which, at)).or_insert_with(|| {
            let dwarf = match which {
                Which::Supplement => self.dwarf.sup()?,
                _ => &self.dwarf,
            };
            dwarf.unit(header.clone()).ok().map(Arc::new)
        });
        unit.clone()
    }

    /// The unit that something was split off.
    fn skeleton(&self, id: u64) -> Option<Arc<Unit<Slice>>> {
        let skeletons = self.skeletons.get_or_init(|| {
            let mut found = HashMap::new();
            for (at, header) in self.headers(Which::Main).iter().enumerate() {
                let id = match header.type_() {
                    UnitType::Skeleton(id) => Some(id),
                    _ if header.version() < 5 => {
                        self.dwarf.unit(header.clone()).ok().and_then(|unit| unit.dwo_id)
                    }
                    _ => None,
                };
                if let Some(id) = id {
                    found.entry(id.0).or_insert(at);
                }
            }
            found
        });
        self.unit(Which::Main, *skeletons.get(&id)?)
    }
}

fn size(dwarf: &Dwarf<Slice>) -> u64 {
    use gimli::Reader;
    let sections = [
        dwarf.debug_abbrev.reader().len(),
        dwarf.debug_addr.reader().len(),
        dwarf.debug_aranges.reader().len(),
        dwarf.debug_info.reader().len(),
        dwarf.debug_line.reader().len(),
        dwarf.debug_line_str.reader().len(),
        dwarf.debug_str.reader().len(),
        dwarf.debug_str_offsets.reader().len(),
        dwarf.debug_types.reader().len(),
        dwarf.ranges.debug_ranges().reader().len(),
        dwarf.ranges.debug_rnglists().reader().len(),
    ];
    sections.into_iter().fold(0, |sum, bytes| sum + bytes as u64)
}

/// Reads tables of abbreviations that several units share once.
fn prepare(dwarf: &mut Dwarf<Slice>, image: &Image) -> Result<(), Error> {
    if abbreviations::are_over_one_another(dwarf) {
        let offset = image.debug_section(".debug_abbrev").map_or(0, |section| section.offset);
        let what = "tables of abbreviations lie over one another";
        return Err(Error::malformed(&image.path, offset, what));
    }
    dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
    Ok(())
}

fn wanted_of(unit: UnitRef<'_, Slice>, id: DwoId) -> Wanted {
    let name = unit.dwo_name().ok().flatten();
    let name = name.and_then(|name| unit.attr_string(name).ok());
    Wanted { id, folder: unit.comp_dir.clone(), name }
}

/// The unit that was split off another.
fn whole(
    dwarf: Arc<Dwarf<Slice>>,
    skeleton: &Unit<Slice>,
) -> Option<(Arc<Dwarf<Slice>>, Unit<Slice>)> {
    let header = dwarf.units().next().ok()??;
    let mut unit = dwarf.unit(header).ok()?;
    unit.copy_relocated_attributes(skeleton);
    Some((dwarf, unit))
}

/// Whether a unit has code at one of these addresses, which are sorted. One that names no ranges may have any. Not by gimli's
/// `unit_ranges`, which adds a size to an address without a look whether the sum is one. `work` goes down with each range.
pub(crate) fn concerns(unit: UnitRef<'_, Slice>, wanted: &[u64], work: &mut u64) -> Option<bool> {
    let is_asked_for = |begin: u64, end: u64| {
        let at = wanted.partition_point(|&start| start < begin);
        wanted.get(at).is_some_and(|&start| start < end)
    };
    let mut entries = unit.entries();
    entries.next_dfs().ok()?;
    let root = entries.current()?;
    if let Some(value) = root.attr_value(constants::DW_AT_ranges) {
        let mut ranges = ranges_of(unit, value)?;
        let mut is_empty = true;
        while let Some(range) = ranges.next().ok()? {
            *work = work.checked_sub(1)?;
            is_empty = false;
            if is_asked_for(range.begin, range.end) {
                return Some(true);
            }
        }
        return Some(is_empty);
    }
    let begin = unit.attr_address(root.attr_value(constants::DW_AT_low_pc)?).ok()??;
    let end = match root.attr_value(constants::DW_AT_high_pc)? {
        AttributeValue::Udata(size) => begin.checked_add(size)?,
        end => unit.attr_address(end).ok()??,
    };
    Some(is_asked_for(begin, end))
}

/// Which of the functions that start at these addresses, which are sorted, an entry is of.
pub(crate) fn asked_for(
    unit: UnitRef<'_, Slice>,
    entry: &DebuggingInformationEntry<Slice>,
    wanted: &[u64],
    work: &mut u64,
) -> Option<usize> {
    if let Some(low) = entry.attr_value(constants::DW_AT_low_pc) {
        let start = unit.attr_address(low).ok()??;
        return wanted.binary_search(&start).ok();
    }
    let ranges = entry.attr_value(constants::DW_AT_ranges)?;
    let mut ranges = ranges_of(unit, ranges)?;
    // The parts of a function that stand apart, such as its cold one.
    while let Some(range) = ranges.next().ok()? {
        *work = work.checked_sub(1)?;
        if let Ok(at) = wanted.binary_search(&range.begin) {
            return Some(at);
        }
    }
    None
}

/// Ranges that an attribute refers to; nothing where an index of 64 bits leads to them: gimli adds such an offset to another
/// without a look whether the sum is one.
fn ranges_of(
    unit: UnitRef<'_, Slice>,
    value: AttributeValue<Slice>,
) -> Option<gimli::RngListIter<Slice>> {
    let is_index = matches!(value, AttributeValue::DebugRngListsIndex(_));
    if is_index && unit.encoding().format == Format::Dwarf64 {
        return None;
    }
    unit.attr_ranges(value).ok()?
}
