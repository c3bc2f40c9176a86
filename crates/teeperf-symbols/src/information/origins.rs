//! What entries of debug information say of functions, or those that they are another form of: in the same unit, in
//! another one (link-time optimisation), or in the file that `dwz` moved them to.

use super::{Information, Which};
use crate::definitions::{cut, push};
use crate::sections::Slice;
use crate::{Location, demangle};
use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, Reader, Unit, UnitOffset, UnitRef, constants,
};
use std::sync::Arc;

/// Entries followed from one to another, at most. Compilers come to three, and `dwz` adds none.
const MAX_STEPS: usize = 16;
/// Bytes of a name, at most.
const MAX_NAME: usize = 4096;

type Entry = DebuggingInformationEntry<Slice>;

/// What is asked of each.
type Ask<'a, T> = dyn FnMut(Which, UnitRef<'_, Slice>, &Entry) -> Option<T> + 'a;

/// An entry, by what it is known in all units and files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EntryId(Which, usize);

/// An entry of a unit.
#[derive(Clone, Copy)]
pub(crate) struct At<'u> {
    pub(crate) which: Which,
    pub(crate) unit: UnitRef<'u, Slice>,
    pub(crate) offset: UnitOffset,
}

impl At<'_> {
    /// The entry itself.
    pub(crate) fn id(&self) -> EntryId {
        let within = match self.which {
            Which::Split(_) => Some(self.offset.0),
            _ => self.offset.to_debug_info_offset(&self.unit.header).map(|offset| offset.0),
        };
        EntryId(self.which, within.unwrap_or(usize::MAX))
    }

    /// What an attribute refers to.
    pub(crate) fn target(&self, value: &AttributeValue<Slice>) -> Option<EntryId> {
        match value {
            AttributeValue::UnitRef(offset) => Some(Self { offset: *offset, ..*self }.id()),
            AttributeValue::DebugInfoRef(offset) => match self.which {
                Which::Split(_) => None,
                which => Some(EntryId(which, offset.0)),
            },
            AttributeValue::DebugInfoRefSup(offset) => Some(EntryId(Which::Supplement, offset.0)),
            _ => None,
        }
    }
}

impl Information {
    /// The readable name of the function that an attribute refers to.
    pub(crate) fn name(&self, from: At<'_>, value: &AttributeValue<Slice>) -> Option<String> {
        self.raw_name(from, value).map(|name| demangle(&name).into_owned())
    }

    /// The same as the linker knows it, where that is known.
    pub(crate) fn raw_name(&self, from: At<'_>, value: &AttributeValue<Slice>) -> Option<String> {
        let mut plain = None;
        let linkage = self.step(from, value, |unit, entry| {
            let text = |name| {
                let text = unit.attr_string(entry.attr_value(name)?).ok()?;
                let text = text.to_slice().ok()?;
                let text = text.get(..MAX_NAME.min(text.len()))?;
                Some(String::from_utf8_lossy(text).into_owned())
            };
            plain = plain.take().or_else(|| text(constants::DW_AT_name));
            text(constants::DW_AT_linkage_name).or_else(|| text(constants::DW_AT_MIPS_linkage_name))
        });
        // C has no other names.
        linkage.or(plain)
    }

    /// Where the function is declared that an entry is of.
    pub(crate) fn declaration(&self, at: At<'_>) -> Option<Location> {
        let (mut file, mut line) = (None, None);
        let mut ask = |which, unit: UnitRef<'_, Slice>, entry: &Entry| {
            if file.is_none()
                && let Some(AttributeValue::FileIndex(index)) =
                    entry.attr_value(constants::DW_AT_decl_file)
            {
                file = self.file(which, unit, index);
            }
            let told = entry.attr_value(constants::DW_AT_decl_line);
            let told = told.and_then(|line| u32::try_from(line.udata_value()?).ok());
            line = line.or(told);
            (file.is_some() && line.is_some()).then_some(())
        };
        self.walk(at, &mut ask);
        Some(Location { file: file?, line })
    }

    /// Asks what an attribute refers to, and so on, until one answers.
    fn step<T>(
        &self,
        from: At<'_>,
        value: &AttributeValue<Slice>,
        mut ask: impl FnMut(UnitRef<'_, Slice>, &Entry) -> Option<T>,
    ) -> Option<T> {
        let mut ask = |_, unit: UnitRef<'_, Slice>, entry: &Entry| ask(unit, entry);
        if let AttributeValue::UnitRef(offset) = value {
            return self.walk(At { offset: *offset, ..from }, &mut ask);
        }
        let EntryId(which, place) = from.target(value)?;
        let (unit, offset) = self.unit_at(which, place)?;
        let unit = UnitRef::new(self.file_of(which)?, &unit);
        self.walk(At { which, unit, offset }, &mut ask)
    }

    fn walk<T>(&self, start: At<'_>, ask: &mut Ask<'_, T>) -> Option<T> {
        let At { mut which, mut offset, .. } = start;
        let mut held: Option<Arc<Unit<Slice>>> = None;
        for _ in 0..MAX_STEPS {
            let unit = match &held {
                Some(unit) => UnitRef::new(self.file_of(which)?, unit),
                None => start.unit,
            };
            let entry = unit.entry(offset).ok()?;
            if let Some(answer) = ask(which, unit, &entry) {
                return Some(answer);
            }
            let next = entry
                .attr_value(constants::DW_AT_abstract_origin)
                .or_else(|| entry.attr_value(constants::DW_AT_specification))?;
            if let AttributeValue::UnitRef(next) = next {
                offset = next;
                continue;
            }
            let EntryId(next, place) = At { which, unit, offset }.target(&next)?;
            let (unit, within) = self.unit_at(next, place)?;
            (which, offset, held) = (next, within, Some(unit));
        }
        None
    }

    /// The sections that an entry of another unit stands in.
    fn file_of(&self, which: Which) -> Option<&Dwarf<Slice>> {
        match which {
            Which::Main => Some(&self.dwarf),
            Which::Supplement => self.dwarf.sup(),
            Which::Split(_) => None,
        }
    }

    /// Path of a file by its number in a unit's table of lines.
    fn file(&self, which: Which, unit: UnitRef<'_, Slice>, index: u64) -> Option<String> {
        // What was split off has the table of the unit that it was split off.
        let whole;
        let unit = match which {
            Which::Split(id) => {
                whole = self.skeleton(id)?;
                UnitRef::new(&self.dwarf, &whole)
            }
            _ => unit,
        };
        let header = unit.line_program.as_ref()?.header();
        let named = header.file(index)?;
        let text = |value| Some(unit.attr_string(value).ok()?.to_string_lossy().ok()?.into_owned());
        let mut path = match &unit.comp_dir {
            Some(folder) => folder.to_string_lossy().ok()?.into_owned(),
            None => String::new(),
        };
        // The first is the one that the compiler worked in.
        if named.directory_index() != 0
            && let Some(folder) = named.directory(header)
        {
            push(&mut path, &text(folder)?);
        }
        push(&mut path, &text(named.path_name())?);
        cut(&mut path);
        Some(path)
    }
}
