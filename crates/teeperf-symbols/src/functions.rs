//! The function table of an ELF file.

use crate::image::{Image, Section};
use crate::plt;
use crate::sites::{Site, Sites};
use crate::table::{self, Binding, Code, Entry, Kind, Table};
use crate::{Error, Location, Search};
use object::{Endianness, elf};
use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The functions of an executable or shared library, by address.
///
/// Read whole when it is opened; nothing of the file is held afterwards. A program of
/// 200,000 functions takes some tens of milliseconds.
#[derive(Debug)]
pub struct Functions {
    table: Table,
    sites: Sites,
    build_id: Option<Vec<u8>>,
    origin: Origin,
    code: Range<u64>,
    is_relocatable: bool,
    is_arm: bool,
    is_64_bit: bool,
    is_little_endian: bool,
}

/// Where the functions were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The file's own symbol table.
    Own,
    /// The symbol table of this separate debug file.
    DebugFile(PathBuf),
    /// What the dynamic linker sees: functions that other modules may call, and no others.
    Dynamic,
    /// Nowhere: there are none but stubs.
    Nothing,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// First address, as a virtual address of the file.
    pub start: u64,
    /// Bytes. Where the symbol says nothing of its size: up to the next symbol, at most to
    /// the end of its section.
    pub size: u64,
    /// Name as the linker knows it, without version, bytes that are no UTF-8 replaced; of
    /// several for one address the most public, then the shortest, then the first in the
    /// alphabet. `name@plt` for a stub that leads to `name`. See `crate::demangle`. The site of a function of Rust is
    /// called as the function, and has nothing to demangle.
    pub name: Cow<'a, str>,
}

impl Functions {
    /// The functions of the file at `path`: from its own symbol table; if it was stripped,
    /// from its debug file; else those that the dynamic linker sees. A file that has none of
    /// these has no functions, which is no error.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is no ELF executable or shared library, is malformed, or
    /// is not of the build that `search` asks for.
    pub fn open(path: &Path, search: &Search) -> Result<Self, Error> {
        Self::of(&search.open(path)?, search)
    }

    /// The same of a file that is in memory. `path` is for errors, and to look for a debug
    /// file beside it.
    ///
    /// # Errors
    ///
    /// As for [`Functions::open`].
    pub fn from_bytes(path: &Path, bytes: Vec<u8>, search: &Search) -> Result<Self, Error> {
        Self::of(&search.check(Image::from_bytes(path, bytes)?)?, search)
    }

    /// Those of an image that is open.
    pub(crate) fn of(image: &Image, search: &Search) -> Result<Self, Error> {
        let code = Code::of(image);
        let (mut entries, mut strings, origin) = find(image, &code, search)?;
        let (stubs, plt_strings) = plt::stubs(image)?;
        entries.extend(stubs);
        let sites = Sites::of(image, &code)?;
        add_nameless(&sites, &mut entries, &mut strings);
        Ok(Self {
            table: Table::new(entries, strings, plt_strings, &code),
            sites,
            is_arm: image.machine == elf::EM_ARM,
            is_64_bit: image.is_64,
            is_little_endian: image.endian == Endianness::Little,
            build_id: image.build_id.clone(),
            origin,
            code: code.extent(),
            is_relocatable: image.is_relocatable,
        })
    }

    /// The function that an address belongs to. Where functions overlap, the one that starts
    /// last. On 32-bit Arm, bit 0 of the address, which tells Thumb code, is ignored.
    pub fn at(&self, address: u64) -> Option<Symbol<'_>> {
        let address = if self.is_arm { address & !1 } else { address };
        self.table.at(address).map(|entry| self.symbol(entry))
    }

    /// All functions, sorted by address.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Symbol<'_>> {
        self.table.entries.iter().map(|entry| self.symbol(entry))
    }

    /// The function that the linker knows by this name.
    pub fn named(&self, name: &str) -> Option<Symbol<'_>> {
        self.iter().find(|symbol| symbol.name == name)
    }

    /// Whether what starts there is no function, but a stretch of code that was given a name: a scope.
    pub fn is_scope(&self, start: u64) -> bool {
        self.sites.get(start).is_some_and(Site::is_scope)
    }

    /// Where the function that starts there is defined, as far as that is known without debug information: of a site of a
    /// function of Rust.
    pub fn definition(&self, start: u64) -> Option<Location> {
        self.sites.get(start)?.location()
    }

    /// The file's build-id, where it has one.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.build_id.as_deref()
    }

    /// Where there is code: from its first address to behind its last.
    pub fn code(&self) -> Range<u64> {
        self.code.clone()
    }

    /// Whether it may be loaded anywhere, as position-independent programs and libraries are; else it lies
    /// where its addresses say.
    pub fn is_relocatable(&self) -> bool {
        self.is_relocatable
    }

    /// Whether addresses have 64 bits, not 32.
    pub fn is_64_bit(&self) -> bool {
        self.is_64_bit
    }

    /// Whether numbers stand with their least byte first.
    pub fn is_little_endian(&self) -> bool {
        self.is_little_endian
    }

    /// Where they were found.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    fn symbol(&self, entry: &Entry) -> Symbol<'_> {
        let mut name = String::from_utf8_lossy(self.table.name(entry));
        if let Some(site) = self.sites.get(entry.start) {
            name = site.name(&name).into();
        }
        Symbol {
            start: entry.start,
            size: entry.end - entry.start,
            name: if entry.kind == Kind::Plt { name + "@plt" } else { name },
        }
    }
}

/// Sites of a file without symbols are functions all the same.
fn add_nameless(sites: &Sites, entries: &mut Vec<Entry>, strings: &mut Vec<u8>) {
    let mut starts: Vec<u64> = entries.iter().map(|entry| entry.start).collect();
    starts.sort_unstable();
    let missing = sites.addresses().filter(|address| starts.binary_search(address).is_err());
    let name = strings.len() as u32;
    strings.extend(b"?\0");
    entries.extend(missing.map(|start| Entry {
        start,
        end: start + 1,
        name,
        kind: Kind::Function,
        binding: Binding::Local,
    }));
}

/// Functions, the strings their names stand in, and where they are from.
fn find(
    image: &Image,
    code: &Code,
    search: &Search,
) -> Result<(Vec<Entry>, Vec<u8>, Origin), Error> {
    if let Some(own) = of_kind(image, elf::SHT_SYMTAB) {
        let (entries, strings) = table::functions(image, own, code)?;
        if !entries.is_empty() {
            return Ok((entries, strings, Origin::Own));
        }
    }
    if let Some(debug) = search.debug_file(image)
        && let Some(section) = of_kind(&debug, elf::SHT_SYMTAB)
        && let Ok((entries, strings)) = table::functions(&debug, section, code)
        && !entries.is_empty()
    {
        return Ok((entries, strings, Origin::DebugFile(debug.path)));
    }
    if let Some(dynamic) = of_kind(image, elf::SHT_DYNSYM) {
        let (entries, strings) = table::functions(image, dynamic, code)?;
        if !entries.is_empty() {
            return Ok((entries, strings, Origin::Dynamic));
        }
    }
    Ok((Vec::new(), Vec::new(), Origin::Nothing))
}

pub(crate) fn of_kind(image: &Image, kind: u32) -> Option<&Section> {
    image.sections.iter().find(|section| section.kind == kind)
}
