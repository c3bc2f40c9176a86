//! Which functions are at an address: the one that the code is of, and those that were inlined into it there.

use crate::definitions::{cut, push};
use crate::image::Image;
use crate::lines::{Bytes, MAX_READ, with_section};
use crate::{Error, Location, Search, demangle};
use addr2line::Context;
use gimli::{
    AttributeValue, CloneStableDeref, Dwarf, DwarfSections, EndianReader, Reader, RunTimeEndian,
    SectionId, StableDeref, UnitOffset, UnitRef, constants,
};
use object::Endianness;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

/// Entries followed from one to another for a declaration, at most.
const MAX_STEPS: usize = 8;
/// Most functions that are inlined into one another at an address. Compilers come to some dozens.
const MAX_DEPTH: usize = 256;

/// Sections of which nobody asks here, where variables are and what macros are: large, and to be decompressed.
const UNUSED: [SectionId; 4] =
    [SectionId::DebugLoc, SectionId::DebugLocLists, SectionId::DebugMacinfo, SectionId::DebugMacro];

/// Functions by any address of their code, through debug information. Of a unit it is read when an address in it is first
/// asked for, and kept.
///
/// Of split debug information (`-gsplit-dwarf`) the entries stand elsewhere, and nothing is found.
pub struct Frames {
    context: Context<Slice>,
    /// Where what was inlined is declared, by the place of its entry in `.debug_info`.
    declared: RefCell<HashMap<usize, Option<Location>>>,
}

type Slice = EndianReader<RunTimeEndian, Shared>;

/// A function at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its name as programmers write it; nothing where debug information has none.
    pub name: Option<String>,
    /// Path of the source file that the code is from, and its line.
    pub line: Option<(String, u32)>,
    /// Its entry in the unit that the address is of.
    entry: Option<UnitOffset>,
}

impl Frames {
    /// Those of the file at `path`, or of its debug file; nothing where there is no debug information.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is no ELF executable or shared library, is malformed, or is not of the build that
    /// `search` asks for.
    pub fn open(path: &Path, search: &Search) -> Result<Option<Self>, Error> {
        let image = search.open(path)?;
        with_section(image, b".debug_info", search).map(|image| Self::of(&image)).transpose()
    }

    /// The same of a file that is in memory. `path` is for errors, and to look for a debug file beside it.
    ///
    /// # Errors
    ///
    /// As for [`Frames::open`].
    pub fn from_bytes(path: &Path, bytes: Vec<u8>, search: &Search) -> Result<Option<Self>, Error> {
        let image = search.check(Image::from_bytes(path, bytes)?)?;
        with_section(image, b".debug_info", search).map(|image| Self::of(&image)).transpose()
    }

    fn of(image: &Image) -> Result<Self, Error> {
        let endian = match image.endian {
            Endianness::Little => RunTimeEndian::Little,
            Endianness::Big => RunTimeEndian::Big,
        };
        let sections = DwarfSections::load(|id| {
            let section = image.section(id.name().as_bytes()).filter(|_| !UNUSED.contains(&id));
            let bytes = Bytes::of(image, section, MAX_READ)?;
            Ok::<_, Error>(Shared(Arc::new(bytes)))
        })?;
        let dwarf: Dwarf<_> = sections.borrow(|bytes| EndianReader::new(bytes.clone(), endian));
        let context = Context::from_dwarf(dwarf)
            .map_err(|source| Error::Dwarf { path: image.path.clone(), source })?;
        Ok(Self { context, declared: RefCell::default() })
    }

    /// The functions at an address, the innermost first. Where debug information is wrong there are none.
    pub fn at(&self, address: u64) -> Vec<Frame> {
        let Ok(mut found) = self.context.find_frames(address).skip_all_loads() else {
            return Vec::new();
        };
        let mut frames = Vec::new();
        while let Ok(Some(frame)) = found.next() {
            let name = frame.function.and_then(|name| {
                let raw = name.raw_name().ok()?;
                Some(demangle(&raw).into_owned())
            });
            let line = frame.location.and_then(|at| Some((at.file?.to_owned(), at.line?)));
            frames.push(Frame { name, line, entry: frame.dw_die_offset });
            if frames.len() == MAX_DEPTH {
                break;
            }
        }
        frames
    }

    /// Where a function is declared that was inlined at an address; where its entry is another unit's (`-flto`), the file alone.
    pub fn declared(&self, address: u64, frame: &Frame) -> Option<Location> {
        let here = || Some(Location { file: frame.line.as_ref()?.0.clone(), line: None });
        let origin = || {
            let unit = self.context.find_dwarf_and_unit(address).skip_all_loads()?;
            let entry = unit.entry(frame.entry?).ok()?;
            match entry.attr_value(constants::DW_AT_abstract_origin)? {
                AttributeValue::UnitRef(origin) => Some((unit, origin)),
                _ => None,
            }
        };
        let Some((unit, origin)) = origin() else { return here() };
        let Some(place) = origin.to_debug_info_offset(&unit.header) else { return here() };
        let mut declared = self.declared.borrow_mut();
        declared.entry(place.0).or_insert_with(|| declaration(unit, origin)).clone().or_else(here)
    }
}

/// What an entry says of where its function is declared, or those that it refers to.
fn declaration(unit: UnitRef<'_, Slice>, mut offset: UnitOffset) -> Option<Location> {
    let (mut file, mut line) = (None, None);
    for _ in 0..MAX_STEPS {
        let entry = unit.entry(offset).ok()?;
        if let Some(AttributeValue::FileIndex(index)) = entry.attr_value(constants::DW_AT_decl_file)
        {
            file = file.or(Some(index));
        }
        let at = entry.attr_value(constants::DW_AT_decl_line).and_then(|line| line.udata_value());
        line = line.or(at.and_then(|line| u32::try_from(line).ok()));
        let next = entry
            .attr_value(constants::DW_AT_abstract_origin)
            .or_else(|| entry.attr_value(constants::DW_AT_specification));
        match next {
            Some(AttributeValue::UnitRef(next)) if file.is_none() || line.is_none() => {
                offset = next;
            }
            _ => break,
        }
    }
    let header = unit.line_program.as_ref()?.header();
    let named = header.file(file?)?;
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
    Some(Location { file: path, line })
}

/// Bytes of a section that several readers hold.
#[derive(Clone)]
struct Shared(Arc<Bytes>);

impl Deref for Shared {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

// SAFETY: the bytes stand on the heap or in a map, where they stay while any `Arc` of them is there, wherever
// `Shared` itself goes; nobody has them mutably.
unsafe impl StableDeref for Shared {}

// SAFETY: a clone is another `Arc` of the same bytes.
unsafe impl CloneStableDeref for Shared {}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn outer(n: &str) -> usize {
        inner(n) + 1
    }

    #[inline(always)]
    fn inner(n: &str) -> usize {
        std::hint::black_box(n).len()
    }

    #[test]
    fn what_was_inlined_stands_in_what_it_was_inlined_into() {
        assert_eq!(outer("ab"), 3);
        let path = std::env::current_exe().unwrap();
        let search = Search::default();
        let functions = crate::Functions::open(&path, &search).unwrap();
        let outer = functions.iter().find(|f| demangle(&f.name).ends_with("frames::tests::outer"));
        let outer = outer.unwrap();
        let frames = Frames::open(&path, &search).unwrap().unwrap();
        let inlined =
            (outer.start..outer.start + outer.size).map(|at| frames.at(at)).find(|found| {
                found
                    .first()
                    .is_some_and(|f| f.name.as_deref().is_some_and(|n| n.ends_with("inner")))
            });
        let inlined = inlined.expect("some address in outer is of inner");
        assert_eq!(inlined.len(), 2, "{inlined:?}");
        assert!(inlined[1].name.as_deref().unwrap().ends_with("outer"));
        assert!(inlined.iter().all(|f| f.line.as_ref().unwrap().0.ends_with("frames.rs")));
        let is_it = |at: &u64| frames.at(*at).first() == inlined.first();
        let at = (outer.start..outer.start + outer.size).find(is_it).unwrap();
        let declared = frames.declared(at, &inlined[0]).unwrap();
        // Tables of lines alone, which tests are built with, have no declarations.
        assert_eq!((declared.file, declared.line), (inlined[0].line.clone().unwrap().0, None));
        assert_eq!(frames.at(u64::MAX / 2), []);
    }

    #[test]
    fn a_file_without_debug_information_has_none() {
        let none = Search::nowhere_else();
        let stripped = Path::new("/bin/true");
        if stripped.exists() {
            assert!(Frames::open(stripped, &none).unwrap().is_none());
        }
    }
}
