//! What stands in a file's sections: read or mapped, and decompressed.

use crate::decompress::decompress;
use crate::image::{Image, Section};
use crate::{Error, Search};
use gimli::{CloneStableDeref, DwarfSections, EndianReader, RunTimeEndian, SectionId, StableDeref};
use memmap2::{Mmap, MmapOptions};
use object::{Endianness, elf};
use std::ops::Deref;
use std::sync::Arc;

/// Sections larger than this are mapped, not read.
pub(crate) const MAX_READ: u64 = 64 << 20;

/// By what debug information is read.
pub(crate) type Slice = EndianReader<RunTimeEndian, Shared>;

/// Sections of which nobody asks: where variables are, what macros are, and indexes. They are large, and to be decompressed.
const UNUSED: [SectionId; 5] = [
    SectionId::DebugLoc,
    SectionId::DebugLocLists,
    SectionId::DebugMacinfo,
    SectionId::DebugMacro,
    SectionId::DebugNames,
];

/// The sections of debug information by the names that `name` has for them; those that a file does not have are empty.
pub(crate) fn of(
    image: &Image,
    name: impl Fn(SectionId) -> Option<&'static str>,
) -> Result<DwarfSections<Shared>, Error> {
    DwarfSections::load(|id| match name(id).filter(|_| !UNUSED.contains(&id)) {
        Some(name) => one(image, name),
        None => Ok(Shared::default()),
    })
}

/// One of them by its name.
pub(crate) fn one(image: &Image, name: &str) -> Result<Shared, Error> {
    Ok(Shared(Arc::new(Bytes::of_all(image, name, MAX_READ)?)))
}

/// The byte order of a file, as gimli has it.
pub(crate) fn endian(image: &Image) -> RunTimeEndian {
    match image.endian {
        Endianness::Little => RunTimeEndian::Little,
        Endianness::Big => RunTimeEndian::Big,
    }
}

/// The file itself or its debug file, whichever has a section; nothing where neither has.
pub(crate) fn with_section(image: Image, name: &str, search: &Search) -> Option<Image> {
    let has = |image: &Image| image.debug_section(name).is_some();
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
    /// Those of all sections of a name, one behind the other: an object has more than one where types stand in groups
    /// (`-fdebug-types-section`).
    fn of_all(image: &Image, name: &str, max_read: u64) -> Result<Self, Error> {
        let first = image.debug_section(name);
        let mut all =
            image.sections.iter().filter(|section| image.is_named(section, name.as_bytes()));
        if first.is_none() || all.clone().nth(1).is_none() {
            return Self::of(image, first, max_read);
        }
        let (mut bytes, mut room) = (Vec::new(), image.length);
        all.try_for_each(|section| {
            // Sections of a hostile file may lie over one another.
            room = room.checked_sub(section.size).ok_or_else(|| {
                Error::malformed(&image.path, section.offset, "sections lie over one another")
            })?;
            bytes.extend_from_slice(&Self::of(image, Some(section), u64::MAX)?);
            Ok(())
        })?;
        Ok(Self::Read(bytes))
    }

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
                // the file does not become shorter is not ours to promise: see `crate::Lines`.
                let map = unsafe { options.map(file) };
                Self::Mapped(map.map_err(|source| Error::Io { path: image.path.clone(), source })?)
            }
            _ => Self::Read(image.content(section)?),
        };
        Ok(decompress(image, section, &bytes)?.map_or(bytes, Self::Read))
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

/// Bytes of a section that several readers hold.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Bytes>);

impl From<Vec<u8>> for Shared {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Bytes::Read(bytes)))
    }
}

impl Default for Shared {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

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
