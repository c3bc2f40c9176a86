//! What it takes to find the callers of an address on a stack: DWARF's call frame information (DWARF 5, section 6.4; the
//! LSB's `.eh_frame` and `.eh_frame_hdr`), and where a file's parts are loaded.

use crate::image::{Image, Load};
use crate::sections::{Bytes, MAX_READ, with_section};
use crate::{Error, Search};
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry,
    RegisterRule, RunTimeEndian, UnwindContext, UnwindSection, X86_64,
};
use object::Endianness;
use std::ops::Range;
use std::path::Path;

/// A file as a stack's frames need it.
pub struct Unwinding {
    /// `EM_…` of the file.
    pub machine: u16,
    /// Where the file is entered; 0: nowhere.
    pub entry: u64,
    /// Build-id of the file; empty when it has none.
    pub build_id: Vec<u8>,
    /// `.eh_frame`.
    pub eh_frame: Option<Table>,
    /// `.eh_frame_hdr`: the index of it.
    pub eh_frame_hdr: Option<Table>,
    /// `.debug_frame`, of the file or of its debug file; only where there is no `.eh_frame`.
    pub debug_frame: Option<Table>,
    /// Addresses of `.text`.
    pub text: Option<Range<u64>>,
    /// Addresses of `.got`.
    pub got: Option<Range<u64>>,
    endian: Endianness,
    is_64: bool,
    loads: Vec<Load>,
}

/// A table, and the addresses where it is loaded.
pub struct Table {
    /// File's own virtual addresses.
    pub addresses: Range<u64>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// What RBX has to do with a frame, as its table has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rbx {
    /// The frame is told from RBX: its canonical frame address (DWARF 5, section 6.4) is that and so many bytes.
    pub cfa: Option<i64>,
    /// The caller's RBX was saved so many bytes from there; else it is the same.
    pub saved: Option<i64>,
}

impl Unwinding {
    /// That of the file at `path`.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is no ELF executable or shared library, is malformed, or is not of the build that
    /// `search` asks for.
    pub fn open(path: &Path, search: &Search) -> Result<Self, Error> {
        Self::of(search.open(path)?, search)
    }

    /// The same of a file that is in memory. `path` is for errors, and to look for a debug file beside it.
    ///
    /// # Errors
    ///
    /// As for [`Unwinding::open`].
    pub fn from_bytes(path: &Path, bytes: Vec<u8>, search: &Search) -> Result<Self, Error> {
        Self::of(search.check(Image::from_bytes(path, bytes)?)?, search)
    }

    fn of(image: Image, search: &Search) -> Result<Self, Error> {
        let range = |name: &[u8]| {
            let section = image.section(name)?;
            Some(section.address..section.address.checked_add(section.size)?)
        };
        let mut out = Self {
            machine: image.machine,
            entry: image.entry,
            build_id: image.build_id.clone().unwrap_or_default(),
            eh_frame: table(&image, ".eh_frame")?,
            eh_frame_hdr: table(&image, ".eh_frame_hdr")?,
            debug_frame: None,
            text: range(b".text"),
            got: range(b".got"),
            endian: image.endian,
            is_64: image.is_64,
            loads: image.loads.clone(),
        };
        if out.eh_frame.is_none()
            && let Some(debug) = with_section(image, ".debug_frame", search)
        {
            out.debug_frame = table(&debug, ".debug_frame")?;
        }
        Ok(out)
    }

    /// The file's own virtual address of what stands at an offset in it, where that is loaded.
    pub fn address(&self, offset: u64) -> Option<u64> {
        Load::address_in(&self.loads, offset)
    }

    /// Where the function begins that an address is in, as far as the tables tell functions apart: of code without symbols.
    pub fn function(&self, address: u64) -> Option<u64> {
        let (_, _, found) = self.entry_of(address)?;
        Some(found.initial_address())
    }

    /// What RBX has to do with the frame of code at an address, of x86-64; nothing where no table has the address.
    pub fn rbx(&self, address: u64) -> Option<Rbx> {
        let (table, bases, found) = self.entry_of(address)?;
        let mut context = UnwindContext::new();
        let row = found.unwind_info_for_address(&table, &bases, &mut context, address).ok()?;
        let cfa = match *row.cfa() {
            CfaRule::RegisterAndOffset { register: X86_64::RBX, offset } => Some(offset),
            _ => None,
        };
        let saved = match row.register(X86_64::RBX) {
            Some(RegisterRule::Offset(offset)) => Some(offset),
            None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => None,
            Some(_) => return None,
        };
        Some(Rbx { cfa, saved })
    }

    /// Functions of x86-64 that keep in RBX where their frame is, such as those of glibc's loader that find what a call is of when it is made first
    /// (`_dl_runtime_resolve_xsavec`).
    pub fn by_rbx(&self) -> Vec<Range<u64>> {
        let Some((table, bases)) = self.table() else { return Vec::new() };
        let (mut found, mut context) = (Vec::new(), UnwindContext::new());
        let mut entries = table.entries(&bases);
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(entry) = entry else { continue };
            let Ok(entry) = entry.parse(EhFrame::cie_from_offset) else { continue };
            let Ok(mut rows) = entry.rows(&table, &bases, &mut context) else { continue };
            while let Ok(Some(row)) = rows.next_row() {
                if matches!(row.cfa(), CfaRule::RegisterAndOffset { register: X86_64::RBX, .. }) {
                    found.push(entry.initial_address()..entry.end_address());
                    break;
                }
            }
        }
        found
    }

    fn table(&self) -> Option<(EhFrame<Slice<'_>>, BaseAddresses)> {
        let begin = |table: &Option<Table>| table.as_ref().map_or(0, |table| table.addresses.start);
        let bases = BaseAddresses::default()
            .set_eh_frame_hdr(begin(&self.eh_frame_hdr))
            .set_eh_frame(begin(&self.eh_frame))
            .set_text(self.text.as_ref().map_or(0, |text| text.start))
            .set_got(self.got.as_ref().map_or(0, |got| got.start));
        let mut table = EhFrame::new(&self.eh_frame.as_ref()?.bytes, self.endian());
        table.set_address_size(self.width());
        Some((table, bases))
    }

    fn endian(&self) -> RunTimeEndian {
        match self.endian {
            Endianness::Little => RunTimeEndian::Little,
            Endianness::Big => RunTimeEndian::Big,
        }
    }

    fn width(&self) -> u8 {
        if self.is_64 { 8 } else { 4 }
    }

    /// The entry of the function that an address is in, by the index.
    fn entry_of(
        &self,
        address: u64,
    ) -> Option<(EhFrame<Slice<'_>>, BaseAddresses, FrameDescriptionEntry<Slice<'_>>)> {
        let (table, bases) = self.table()?;
        let index = &self.eh_frame_hdr.as_ref()?.bytes;
        let index = EhFrameHdr::new(index, self.endian()).parse(&bases, self.width()).ok()?;
        let cie = EhFrame::cie_from_offset;
        let found = index.table()?.fde_for_address(&table, &bases, address, cie).ok()?;
        found.contains(address).then_some((table, bases, found))
    }

    /// The addresses from the first that is loaded to behind the last.
    pub fn extent(&self) -> Range<u64> {
        let begin = self.loads.iter().map(|load| load.address & !0xfff).min().unwrap_or(0);
        let end = self.loads.iter().map(|load| load.address.saturating_add(load.size)).max();
        begin..end.unwrap_or(0).max(begin)
    }
}

fn table(image: &Image, name: &str) -> Result<Option<Table>, Error> {
    let Some(section) = image.debug_section(name) else { return Ok(None) };
    let bytes = match Bytes::of(image, Some(section), MAX_READ)? {
        Bytes::Read(bytes) => bytes,
        Bytes::Mapped(map) => map.to_vec(),
    };
    let addresses = section.address..section.address.saturating_add(section.size);
    Ok(Some(Table { addresses, bytes }).filter(|table| !table.bytes.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_tables_and_addresses() {
        let path = std::env::current_exe().unwrap();
        let own = Unwinding::open(&path, &Search::default()).unwrap();
        let eh_frame = own.eh_frame.as_ref().unwrap();
        assert!(own.eh_frame_hdr.is_some() && own.debug_frame.is_none());
        assert!(own.extent().contains(&eh_frame.addresses.start));
        let image = Image::open(&path).unwrap();
        let text = image.section(b".text").unwrap();
        assert_eq!(own.address(text.offset), Some(text.address));
        assert_eq!(own.address(text.offset + 5), Some(text.address + 5));
        assert_eq!(own.address(u64::MAX), None);
        let functions = crate::Functions::open(&path, &Search::default()).unwrap();
        let known = functions.iter().find(|f| f.name.contains("9Unwinding4open")).unwrap();
        assert_eq!(own.function(known.start + known.size / 2), Some(known.start));
        assert_eq!(own.function(u64::MAX), None);
        assert_eq!(own.text, Some(text.address..text.address + text.size));
    }
}
