//! Where functions are defined: file and line.

use crate::image::{Image, Section};
use crate::{Error, Search, calls, decompress, definitions, inlined};
use gimli::{AbbreviationsCacheStrategy, Dwarf, DwarfSections, EndianSlice, RunTimeEndian};
use memmap2::{Mmap, MmapOptions};
use object::{Endianness, elf};
use std::ops::Deref;
use std::path::Path;

/// Sections larger than this are mapped, not read.
pub(crate) const MAX_READ: u64 = 64 << 20;

/// The line table of an executable or shared library.
///
/// Opening it looks at headers alone; the tables are read when they are asked, and held only
/// while they are. Works for programs compiled with `-gsplit-dwarf` too: what is split off
/// does not hold the line table. Strings that `dwz` has moved to a file shared by several
/// programs are not looked up.
///
/// Sections of more than 64 MiB are mapped into memory. If such a file is cut short while it
/// is read, the process ends with `SIGBUS`; linkers and package managers put a new file in
/// the old one's place, which does no harm.
pub struct Lines {
    /// The file that has debug information, if there is one.
    image: Option<Image>,
}

/// Where a function is defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Path of the source file as the compiler saw it, made absolute with the compiler's
    /// working directory; cut behind 4096 bytes.
    pub file: String,
    /// Line, from 1, where it is known.
    pub line: Option<u32>,
}

/// A place in a function's code from which it calls another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// Which of the functions asked for calls, by its place among them.
    pub caller: usize,
    /// Name of what is called, as the linker knows it where that is known.
    pub callee: String,
    /// Where the call stands in the source, where that is known.
    pub location: Option<Location>,
}

impl Lines {
    /// The line table of the file at `path`, or of its debug file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is no ELF executable or shared library, is malformed, or
    /// is not of the build that `search` asks for. That it has no debug information is none.
    pub fn open(path: &Path, search: &Search) -> Result<Self, Error> {
        Ok(Self::of(search.open(path)?, search))
    }

    /// The same of a file that is in memory. `path` is for errors, and to look for a debug
    /// file beside it.
    ///
    /// # Errors
    ///
    /// As for [`Lines::open`].
    pub fn from_bytes(path: &Path, bytes: Vec<u8>, search: &Search) -> Result<Self, Error> {
        Ok(Self::of(search.check(Image::from_bytes(path, bytes)?)?, search))
    }

    fn of(image: Image, search: &Search) -> Self {
        Self { image: with_section(image, b".debug_line", search) }
    }

    /// The file that the line table is in; nothing when there is none.
    pub fn path(&self) -> Option<&Path> {
        self.image.as_ref().map(|image| image.path.as_path())
    }

    /// Where the functions that start at these addresses are defined, in the same order. The
    /// tables are read for each call: ask for all at once.
    ///
    /// # Errors
    ///
    /// When the tables cannot be read. What is wrong in a part of them is passed over.
    pub fn definitions(&self, starts: &[u64]) -> Result<Vec<Option<Location>>, Error> {
        let found = self.read(starts, |dwarf, size| definitions::find(dwarf, size, starts))?;
        Ok(found.unwrap_or_else(|| vec![None; starts.len()]))
    }

    /// The highest line of the code of functions, which start at these addresses and have so many bytes, in the file that they are
    /// defined in, in the same order; of what was inlined into them as well.
    ///
    /// # Errors
    ///
    /// When the tables cannot be read. What is wrong in a part of them is passed over.
    pub fn last_lines(&self, functions: &[(u64, u64)]) -> Result<Vec<Option<u32>>, Error> {
        let starts: Vec<u64> = functions.iter().map(|function| function.0).collect();
        let found =
            self.read(&starts, |dwarf, size| definitions::last_lines(dwarf, size, functions))?;
        Ok(found.unwrap_or_else(|| vec![None; functions.len()]))
    }

    /// From where the functions that start at these addresses call others, as far as compilers say it: where they
    /// optimise, and of calls that are not made through pointers.
    ///
    /// # Errors
    ///
    /// When the tables cannot be read. What is wrong in a part of them is passed over.
    pub fn call_sites(&self, starts: &[u64]) -> Result<Vec<CallSite>, Error> {
        let found = self.read(starts, |dwarf, size| {
            let sites = calls::find(dwarf, size, starts)?;
            // A call stands before the address that it returns to.
            let places: Vec<u64> =
                sites.iter().map(|site| site.returns_to.wrapping_sub(1)).collect();
            let locations = definitions::find(dwarf, size, &places)?;
            let told = sites.into_iter().zip(locations).map(|(site, location)| CallSite {
                caller: site.caller,
                callee: site.callee,
                location,
            });
            Ok(told.collect())
        })?;
        Ok(found.unwrap_or_default())
    }

    /// Reads the tables, if there are any and something is asked of them.
    fn read<T>(
        &self,
        starts: &[u64],
        find: impl FnOnce(&Dwarf<EndianSlice<'_, RunTimeEndian>>, u64) -> Result<T, gimli::Error>,
    ) -> Result<Option<T>, Error> {
        let Some(image) = self.image.as_ref().filter(|_| !starts.is_empty()) else {
            return Ok(None);
        };
        let endian = match image.endian {
            Endianness::Little => RunTimeEndian::Little,
            Endianness::Big => RunTimeEndian::Big,
        };
        let mut size = 0;
        let sections = DwarfSections::load(|id| {
            let bytes = Bytes::of(image, image.section(id.name().as_bytes()), MAX_READ)?;
            size += bytes.len() as u64;
            Ok(bytes)
        })?;
        let mut dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, endian));
        dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
        let found = find(&dwarf, size);
        found.map(Some).map_err(|source| Error::Dwarf { path: image.path.clone(), source })
    }

    /// Names of the functions that the compiler inlined into those that start at these addresses, in the same order; each
    /// once, at whatever depth. Of files without debug information, and where that is split off, there are none.
    ///
    /// # Errors
    ///
    /// As for [`Lines::definitions`].
    pub fn inlined(&self, starts: &[u64]) -> Result<Vec<Vec<String>>, Error> {
        let found = self.read(starts, |dwarf, size| inlined::find(dwarf, size, starts))?;
        Ok(found.unwrap_or_else(|| vec![Vec::new(); starts.len()]))
    }
}

/// The file itself or its debug file, whichever has a section; nothing where neither has.
pub(crate) fn with_section(image: Image, name: &[u8], search: &Search) -> Option<Image> {
    let has =
        |image: &Image| image.section(name).is_some_and(|section| section.kind != elf::SHT_NOBITS);
    match has(&image) {
        true => Some(image),
        false => search.debug_file(&image).filter(has),
    }
}

/// The bytes of a section.
pub(crate) enum Bytes {
    Read(Vec<u8>),
    Mapped(Mmap),
}

impl Bytes {
    /// Those of a larger section are mapped.
    pub(crate) fn of(
        image: &Image,
        section: Option<&Section>,
        max_read: u64,
    ) -> Result<Self, Error> {
        let Some(section) = section else { return Ok(Self::Read(Vec::new())) };
        let bytes = match image.file() {
            Some(file) if section.size > max_read && section.kind != elf::SHT_NOBITS => {
                image.check_range(section.offset, section.size)?;
                let mut options = MmapOptions::new();
                options.offset(section.offset).len(section.size as usize);
                // SAFETY: the map is read as bytes alone, of which every value is valid. That
                // the file does not become shorter is not ours to promise: see `Lines`.
                let map = unsafe { options.map(file) };
                Self::Mapped(map.map_err(|source| Error::Io { path: image.path.clone(), source })?)
            }
            _ => Self::Read(image.content(section)?),
        };
        match section.flags & u64::from(elf::SHF_COMPRESSED) != 0 {
            true => decompress::decompress(image, section, &bytes).map(Self::Read),
            false => Ok(bytes),
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Read(bytes) => bytes,
            Self::Mapped(map) => map,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_the_same_read_and_mapped() {
        let image = Image::open(&std::env::current_exe().unwrap()).unwrap();
        let section = image.section(b".text").unwrap();
        let read = Bytes::of(&image, Some(section), section.size).unwrap();
        let mapped = Bytes::of(&image, Some(section), section.size - 1).unwrap();
        assert!(matches!((&read, &mapped), (Bytes::Read(_), Bytes::Mapped(_))));
        assert!(read.len() as u64 == section.size && read[..] == mapped[..]);
        let mut beyond = *section;
        beyond.size = u64::MAX;
        let error = Bytes::of(&image, Some(&beyond), 0).err().unwrap();
        assert!(matches!(error, Error::Malformed { .. }));
    }
}
