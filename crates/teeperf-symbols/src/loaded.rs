//! What a loader puts into memory: which parts of a file are code, and where its variables are.

use crate::Error;
use crate::functions::of_kind;
use crate::image::{Image, Load, Section};
use crate::table::{name_in, strings};
use object::Endianness;
use object::elf;
use object::pod::slice_from_all_bytes;
use object::read::elf::Sym;
use std::path::Path;

/// Pages of loaders.
const PAGE: u64 = 4096;

/// A file as a loader sees it.
pub struct Loaded(Image);

/// A part of a file, as it is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its first address, a virtual address of the file.
    pub address: u64,
    /// Bytes in memory.
    pub length: u64,
    /// Where in the file it begins.
    pub offset: u64,
}

impl Loaded {
    /// Of the file at `path`.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is no ELF executable or shared library, or is malformed.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Image::open(path).map(Self)
    }

    /// Parts that code may run from.
    pub fn code(&self) -> impl Iterator<Item = Part> + '_ {
        self.parts(true)
    }

    /// The others: tables, variables.
    pub fn data(&self) -> impl Iterator<Item = Part> + '_ {
        self.parts(false)
    }

    fn parts(&self, is_code: bool) -> impl Iterator<Item = Part> + '_ {
        let loads = self.0.loads.iter();
        let loads = loads.filter(move |load| load.is_code == is_code && load.memory > 0);
        loads.map(|load| Part { address: load.address, length: load.memory, offset: load.offset })
    }

    /// The page that the first part goes to: what lies there is the file's beginning, where it is loaded by its addresses.
    pub fn first(&self) -> u64 {
        let first = self.0.loads.iter().map(|load| load.address).min();
        first.unwrap_or(0) & !(PAGE - 1)
    }

    /// The virtual address of what a place of the file is loaded to.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        Load::address_in(&self.0.loads, offset)
    }

    /// The file's build-id, where it has one.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.0.build_id.as_deref()
    }

    /// The address of a variable, by its own symbols, or those that the dynamic linker sees.
    ///
    /// # Errors
    ///
    /// When a table of symbols is malformed.
    pub fn variable(&self, name: &str) -> Result<Option<u64>, Error> {
        if !self.0.is_64 {
            return Ok(None);
        }
        for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
            if let Some(section) = of_kind(&self.0, kind)
                && let Some(found) = self.variable_in(section, name)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn variable_in(&self, section: &Section, name: &str) -> Result<Option<u64>, Error> {
        let (bytes, strings) = (self.0.content(section)?, strings(&self.0, section)?);
        let what = "the symbol table's size is no multiple of a symbol's";
        let symbols = slice_from_all_bytes::<elf::Sym64<Endianness>>(&bytes)
            .map_err(|()| Error::malformed(&self.0.path, section.offset, what))?;
        let endian = self.0.endian;
        let found = symbols.iter().find(|symbol| {
            symbol.st_type() == elf::STT_OBJECT
                && symbol.st_shndx(endian) != elf::SHN_UNDEF
                && name_in(&strings, symbol.st_name(endian)) == name.as_bytes()
        });
        Ok(found.map(|symbol| symbol.st_value(endian)))
    }
}
