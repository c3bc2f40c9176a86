//! An ELF file: its headers, taken apart once for both classes and byte orders, and ranges
//! of its bytes on demand. Never maps the file, and holds none of its content.

use crate::Error;
use object::elf;
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader};
use object::{Endianness, ReadCache, ReadRef};
use std::fs::{File, OpenOptions};
use std::io::{Cursor, Read, Seek};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Largest table that is read. The largest programs known have a tenth of it.
const MAX_TABLE: u64 = 1 << 30;
/// Most notes looked at for the build-id.
const MAX_NOTES: usize = 64;
/// Most bytes read of a section or segment of notes.
const MAX_NOTE_BYTES: u64 = 1 << 16;
/// How the names of sections begin that binutils compressed before `SHF_COMPRESSED` was there
/// (`ld --compress-debug-sections=zlib-gnu`).
const ZLIB_GNU: &str = ".zdebug_";
/// Linux, fcntl.h, of all processors that teeperf records on: to open a pipe does not wait.
const O_NONBLOCK: i32 = 0o4000;
/// Longest build-id believed; SHA-256 has 32 bytes.
const MAX_BUILD_ID: usize = 64;

/// An ELF file with its headers taken apart.
pub(crate) struct Image {
    pub(crate) path: PathBuf,
    source: Source,
    /// Bytes of the file when it was opened.
    pub(crate) length: u64,
    pub(crate) is_64: bool,
    /// Whether it is linked for any address.
    pub(crate) is_relocatable: bool,
    /// `ET_…`.
    kind: u16,
    pub(crate) endian: Endianness,
    /// `EM_…`.
    pub(crate) machine: u16,
    /// Where it is entered; 0: nowhere.
    pub(crate) entry: u64,
    pub(crate) sections: Vec<Section>,
    /// What is loaded into memory.
    pub(crate) loads: Vec<Load>,
    /// Content of the section that holds the sections' names.
    names: Vec<u8>,
    pub(crate) build_id: Option<Vec<u8>>,
}

enum Source {
    File(File),
    Memory(Vec<u8>),
}

/// A part of the file that is loaded into memory: `PT_LOAD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    /// Where it is in the file.
    pub(crate) offset: u64,
    /// Bytes of the file.
    pub(crate) size: u64,
    /// Where it goes.
    pub(crate) address: u64,
    /// Bytes there.
    pub(crate) memory: u64,
    /// Whether code may run from it.
    pub(crate) is_code: bool,
}

impl Load {
    /// The virtual address of what stands at an offset of the file, where one of these has that loaded.
    pub(crate) fn address_in(all: &[Self], offset: u64) -> Option<u64> {
        let load = all.iter().find(|load| {
            // Pages are mapped whole: what is before a part on its first page has addresses too.
            let begin = load.offset & !0xfff;
            (begin..load.offset.saturating_add(load.size)).contains(&offset)
        })?;
        Some(load.address.wrapping_add(offset.wrapping_sub(load.offset)))
    }
}

/// A section header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    name: u32,
    /// `SHT_…`.
    pub(crate) kind: u32,
    /// `SHF_…`.
    pub(crate) flags: u64,
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) link: u32,
}

impl Section {
    /// The addresses of a section that code runs from.
    pub(crate) fn code(&self) -> Option<Range<u64>> {
        let wanted = u64::from(elf::SHF_ALLOC | elf::SHF_EXECINSTR);
        (self.flags & wanted == wanted && self.size > 0)
            .then(|| self.address..self.address.saturating_add(self.size))
    }
}

impl Image {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        Self::at(path, path)
    }

    /// What stands at `place` for the file at `path`.
    pub(crate) fn at(path: &Path, place: &Path) -> Result<Self, Error> {
        let image = Self::of_any_kind(path, place)?;
        image.check_kind()?;
        Ok(image)
    }

    /// The same, which may also be what compilers and `dwz` write beside programs: `.dwo`, `.dwp`.
    pub(crate) fn of_any_kind(path: &Path, place: &Path) -> Result<Self, Error> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        // Before it is opened: a pipe would not open until somebody writes to it.
        if !std::fs::metadata(place).map_err(io)?.is_file() {
            return Err(Error::NotAFile { path: path.to_owned() });
        }
        // Another file may stand there by now.
        let file =
            OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(place).map_err(io)?;
        let about = file.metadata().map_err(io)?;
        if !about.is_file() {
            return Err(Error::NotAFile { path: path.to_owned() });
        }
        Self::new(path, Source::File(file), about.len())
    }

    /// `path` is for errors, and to look for a debug file beside it.
    pub(crate) fn from_bytes(path: &Path, bytes: Vec<u8>) -> Result<Self, Error> {
        let length = bytes.len() as u64;
        let image = Self::new(path, Source::Memory(bytes), length)?;
        image.check_kind()?;
        Ok(image)
    }

    fn check_kind(&self) -> Result<(), Error> {
        if matches!(self.kind, elf::ET_EXEC | elf::ET_DYN) {
            return Ok(());
        }
        let what = "an ELF file, but neither an executable nor a shared library";
        Err(Error::NotAModule { path: self.path.clone(), what })
    }

    fn new(path: &Path, source: Source, length: u64) -> Result<Self, Error> {
        let headers = match &source {
            Source::File(file) => Headers::read(path, &ReadCache::new(file)),
            Source::Memory(bytes) => Headers::read(path, &ReadCache::new(Cursor::new(bytes))),
        }?;
        let mut image = Self {
            path: path.to_owned(),
            source,
            length,
            is_64: headers.is_64,
            is_relocatable: headers.kind == elf::ET_DYN,
            kind: headers.kind,
            endian: headers.endian,
            machine: headers.machine,
            entry: headers.entry,
            sections: headers.sections,
            loads: headers.loads,
            names: Vec::new(),
            build_id: None,
        };
        if let Some(&names) = image.sections.get(headers.names) {
            image.names = image.content(&names)?;
        }
        image.build_id = image.find_build_id(&headers.notes);
        Ok(image)
    }

    /// Bytes of the file.
    pub(crate) fn read(&self, offset: u64, size: u64) -> Result<Vec<u8>, Error> {
        let end = self.check_range(offset, size)?;
        if size > MAX_TABLE {
            return Err(Error::malformed(&self.path, offset, "this part is too large"));
        }
        match &self.source {
            Source::File(file) => {
                let mut bytes = vec![0; size as usize];
                file.read_exact_at(&mut bytes, offset).map_err(|source| match source.kind() {
                    std::io::ErrorKind::UnexpectedEof => self.beyond(offset),
                    _ => Error::Io { path: self.path.clone(), source },
                })?;
                Ok(bytes)
            }
            Source::Memory(bytes) => Ok(bytes[offset as usize..end as usize].to_vec()),
        }
    }

    /// Where a range of the file ends, if it lies in the file.
    pub(crate) fn check_range(&self, offset: u64, size: u64) -> Result<u64, Error> {
        let end = offset.checked_add(size).filter(|&end| end <= self.length);
        end.ok_or_else(|| self.beyond(offset))
    }

    fn beyond(&self, offset: u64) -> Error {
        Error::malformed(&self.path, offset, "the file ends before the end of this part")
    }

    /// What stands in a section; nothing for one that takes no room in the file.
    pub(crate) fn content(&self, section: &Section) -> Result<Vec<u8>, Error> {
        match section.kind {
            elf::SHT_NOBITS => Ok(Vec::new()),
            _ => self.read(section.offset, section.size),
        }
    }

    /// The first section of this name.
    pub(crate) fn section(&self, name: &[u8]) -> Option<&Section> {
        self.sections.iter().find(|section| self.is_named(section, name))
    }

    /// The section of debug information of this name, which begins with `.debug_`, or the one that
    /// older linkers compressed: `.zdebug_…`. Nothing for one that takes no room in the file.
    pub(crate) fn debug_section(&self, name: &str) -> Option<&Section> {
        let section = self.section(name.as_bytes()).or_else(|| {
            let rest = name.strip_prefix(".debug_")?;
            self.section(format!("{ZLIB_GNU}{rest}").as_bytes())
        });
        section.filter(|section| section.kind != elf::SHT_NOBITS)
    }

    /// Whether older linkers compressed a section, as its name tells.
    pub(crate) fn is_zlib_gnu(&self, section: &Section) -> bool {
        let rest = self.names.get(section.name as usize..);
        rest.is_some_and(|rest| rest.starts_with(ZLIB_GNU.as_bytes()))
    }

    /// Whether a section has this name.
    pub(crate) fn is_named(&self, section: &Section, name: &[u8]) -> bool {
        let rest = self.names.get(section.name as usize..);
        rest.and_then(|rest| rest.strip_prefix(name)).is_some_and(|rest| rest.first() == Some(&0))
    }

    /// CRC-32 of the whole file, as `.gnu_debuglink` has it.
    pub(crate) fn checksum(&self) -> Result<u32, Error> {
        const STEP: u64 = 1 << 20;
        let mut crc = crc32fast::Hasher::new();
        for offset in (0..self.length).step_by(STEP as usize) {
            crc.update(&self.read(offset, STEP.min(self.length - offset))?);
        }
        Ok(crc.finalize())
    }

    /// The file itself, to be mapped; nothing when it is in memory already.
    pub(crate) fn file(&self) -> Option<&File> {
        match &self.source {
            Source::File(file) => Some(file),
            Source::Memory(_) => None,
        }
    }

    /// In a section of notes, or where those were stripped in a segment.
    fn find_build_id(&self, segments: &[Notes]) -> Option<Vec<u8>> {
        let sections = self.sections.iter().filter(|section| section.kind == elf::SHT_NOTE);
        let sections = sections.map(|section| Notes { offset: section.offset, size: section.size });
        sections.chain(segments.iter().copied()).take(MAX_NOTES).find_map(|notes| {
            let bytes = self.read(notes.offset, notes.size.min(MAX_NOTE_BYTES)).ok()?;
            build_id(self.endian, &bytes)
        })
    }
}

/// A range of the file that holds notes.
#[derive(Clone, Copy)]
struct Notes {
    offset: u64,
    size: u64,
}

/// Notes are alike in both classes. Alignment 4 is right for every build-id: the sizes of its
/// name and of what stands before it are multiples of 4.
fn build_id(endian: Endianness, bytes: &[u8]) -> Option<Vec<u8>> {
    type Notes<'a> = NoteIterator<'a, elf::FileHeader64<Endianness>>;
    let mut notes = Notes::new(endian, 4, bytes).ok()?.flatten();
    let found = notes
        .find(|n| n.name() == elf::ELF_NOTE_GNU && n.n_type(endian) == elf::NT_GNU_BUILD_ID)?;
    (1..=MAX_BUILD_ID).contains(&found.desc().len()).then(|| found.desc().to_vec())
}

/// The headers of either class, as far as they are needed.
struct Headers {
    is_64: bool,
    /// `ET_…`.
    kind: u16,
    endian: Endianness,
    machine: u16,
    entry: u64,
    sections: Vec<Section>,
    /// Index of the section that holds the sections' names.
    names: usize,
    notes: Vec<Notes>,
    loads: Vec<Load>,
}

impl Headers {
    fn read<R: Read + Seek>(path: &Path, cache: &ReadCache<R>) -> Result<Self, Error> {
        let no_module = |what| Err(Error::NotAModule { path: path.to_owned(), what });
        let Ok(ident) = cache.read_bytes_at(0, 16) else { return no_module("not an ELF file") };
        if ident[..4] != elf::ELFMAG {
            return no_module("not an ELF file");
        }
        match ident[4] {
            elf::ELFCLASS64 => Self::of::<elf::FileHeader64<Endianness>, R>(path, cache),
            elf::ELFCLASS32 => Self::of::<elf::FileHeader32<Endianness>, R>(path, cache),
            _ => no_module("an ELF file of unknown class"),
        }
    }

    fn of<Elf, R>(path: &Path, cache: &ReadCache<R>) -> Result<Self, Error>
    where
        Elf: FileHeader<Endian = Endianness>,
        R: Read + Seek,
    {
        let malformed = |offset, what| Error::malformed(path, offset, what);
        let header = Elf::parse(cache).map_err(|_| malformed(0, "the ELF header is not whole"))?;
        let endian = header.endian().map_err(|_| malformed(5, "unknown byte order"))?;
        let at = header.e_shoff(endian).into();
        let sections = header
            .section_headers(endian, cache)
            .map_err(|_| malformed(at, "the section headers are not whole"))?;
        let names = header.section_strings_index(endian, cache).map_or(0, |index| index.0);
        let at = header.e_phoff(endian).into();
        let segments = header
            .program_headers(endian, cache)
            .map_err(|_| malformed(at, "the program headers are not whole"))?;
        Ok(Self {
            is_64: header.is_type_64(),
            kind: header.e_type(endian),
            endian,
            machine: header.e_machine(endian),
            entry: header.e_entry(endian).into(),
            sections: sections
                .iter()
                .map(|section| Section {
                    name: section.sh_name(endian),
                    kind: section.sh_type(endian),
                    flags: section.sh_flags(endian).into(),
                    address: section.sh_addr(endian).into(),
                    offset: section.sh_offset(endian).into(),
                    size: section.sh_size(endian).into(),
                    link: section.sh_link(endian),
                })
                .collect(),
            names,
            notes: segments
                .iter()
                .filter(|segment| segment.p_type(endian) == elf::PT_NOTE)
                .map(|segment| Notes {
                    offset: segment.p_offset(endian).into(),
                    size: segment.p_filesz(endian).into(),
                })
                .collect(),
            loads: segments
                .iter()
                .filter(|segment| segment.p_type(endian) == elf::PT_LOAD)
                .map(|segment| Load {
                    offset: segment.p_offset(endian).into(),
                    size: segment.p_filesz(endian).into(),
                    address: segment.p_vaddr(endian).into(),
                    memory: segment.p_memsz(endian).into(),
                    is_code: segment.p_flags(endian) & elf::PF_X != 0,
                })
                .collect(),
        })
    }
}
