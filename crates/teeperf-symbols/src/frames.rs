//! Which functions are at an address: the one that the code is of, and those that were inlined into it there.

use crate::image::Image;
use crate::information::{At, EntryId, Information, Wanted, Which};
use crate::sections::{Slice, with_section};
use crate::{Error, Location, Search, demangle};
use addr2line::{Context, LookupContinuation, LookupResult};
use gimli::{DwarfFileType, UnitOffset, constants};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Most functions that are inlined into one another at an address. Compilers come to some dozens.
const MAX_DEPTH: usize = 256;

/// Functions by any address of their code, through debug information. Of a unit it is read when an address in it is first
/// asked for, and kept; so is what the compiler split off it.
pub struct Frames {
    context: Context<Slice>,
    information: Information,
    /// The file that was asked for.
    program: PathBuf,
    /// Where functions are declared, by their entries.
    declared: RefCell<HashMap<EntryId, Option<Location>>>,
}

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
        Self::of(search.open(path)?, search)
    }

    /// The same of a file that is in memory. `path` is for errors, and to look for a debug file beside it.
    ///
    /// # Errors
    ///
    /// As for [`Frames::open`].
    pub fn from_bytes(path: &Path, bytes: Vec<u8>, search: &Search) -> Result<Option<Self>, Error> {
        Self::of(search.check(Image::from_bytes(path, bytes)?)?, search)
    }

    fn of(image: Image, search: &Search) -> Result<Option<Self>, Error> {
        let program = image.path.clone();
        let Some(image) = with_section(image, ".debug_info", search) else { return Ok(None) };
        let information = Information::of(&image, &program, search, true)?;
        let context = Context::from_arc_dwarf(information.for_lookup())
            .map_err(|source| Error::Dwarf { path: image.path.clone(), source })?;
        Ok(Some(Self { context, information, program, declared: RefCell::default() }))
    }

    /// Which of the files were not here that have a part of the debug information that was asked for, in a line that names
    /// this file and what to do; nothing where all were.
    pub fn missing(&self) -> Option<String> {
        self.information.missing().text(&self.program)
    }

    /// The functions at an address, the innermost first. Where debug information is wrong there is a line at most.
    pub fn at(&self, address: u64) -> Vec<Frame> {
        let Ok(mut found) = self.loaded(self.context.find_frames(address)) else {
            self.information.note_damaged();
            let line = self.context.find_location(address).ok().flatten();
            let line = line.and_then(|at| Some((at.file?.to_owned(), at.line?)));
            return line.map_or_else(Vec::new, |line| {
                vec![Frame { name: None, line: Some(line), entry: None }]
            });
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

    /// Where a function at an address is declared; the file that its code is of alone, where nothing more is known.
    pub fn declared(&self, address: u64, frame: &Frame) -> Option<Location> {
        let here = || Some(Location { file: frame.line.as_ref()?.0.clone(), line: None });
        let told = || {
            let unit = self.loaded(self.context.find_dwarf_and_unit(address))?;
            let which = match unit.dwarf.file_type {
                DwarfFileType::Main => Which::Main,
                DwarfFileType::Dwo => Which::Split(unit.dwo_id?.0),
            };
            let at = At { which, unit, offset: frame.entry? };
            let entry = unit.entry(at.offset).ok()?;
            // What was inlined at many places is one function.
            let origin = entry.attr_value(constants::DW_AT_abstract_origin);
            let id = origin.and_then(|origin| at.target(&origin)).unwrap_or_else(|| at.id());
            let mut declared = self.declared.borrow_mut();
            declared.entry(id).or_insert_with(|| self.information.declaration(at)).clone()
        };
        told().or_else(here)
    }

    /// The end of a search, for which what was split off is read.
    fn loaded<L: LookupContinuation<Buf = Slice>>(&self, mut found: LookupResult<L>) -> L::Output {
        loop {
            match found {
                LookupResult::Output(output) => return output,
                LookupResult::Load { load, continuation } => {
                    let wanted = Wanted { id: load.dwo_id, folder: load.comp_dir, name: load.path };
                    found = continuation.resume(self.information.split(&wanted));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn outer(n: &str) -> usize {
        inner(n) + 1
    }

    #[inline(always)]
    fn inner(n: &str) -> usize {
        // A call that stays one, however this is optimised.
        n.len() + usize::from(std::process::id() == 0)
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
