//! What the runtime reads from a module's own ELF headers in memory: where its code lies,
//! how far from the addresses in the file, and its build-id.
//!
//! Layouts: System V ABI, "Program Header" and "Note Section", for 64-bit files.

use teeperf_wire::word::module::MAX_BUILD_ID;

const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const PF_X: u32 = 1;
const NT_GNU_BUILD_ID: u32 = 3;
/// More program headers than any linker writes.
const MAX_HEADERS: usize = 64;

/// The start of the file, as loaded.
#[repr(C)]
struct FileHeader {
    magic: [u8; 16],
    kind: u16,
    machine: u16,
    version: u32,
    entry: u64,
    program_headers: u64,
    section_headers: u64,
    flags: u32,
    size: u16,
    program_header_size: u16,
    program_header_count: u16,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct ProgramHeader {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    physical: u64,
    file_size: u64,
    memory_size: u64,
    alignment: u64,
}

/// A module's image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// Lowest address of executable memory.
    pub(crate) low: u64,
    /// Bytes from there to the end of the last executable segment.
    pub(crate) size: u64,
    /// Address less the file's own virtual address.
    pub(crate) bias: u64,
    /// Bounds of the first executable segment.
    pub(crate) code: (u64, u64),
    /// First bytes of the build-id.
    pub(crate) build_id: [u8; MAX_BUILD_ID],
    /// How many, 0 when there is none.
    pub(crate) build_id_length: usize,
}

/// Describes the module whose ELF header is loaded at `header`.
///
/// # Safety
/// `header` is the address of the header of a module that is loaded and stays so for the
/// call: program headers and the segments they describe are mapped.
pub(crate) unsafe fn image(header: usize) -> Option<Image> {
    // SAFETY: the caller's promise; the header is aligned to its page.
    let file = unsafe { &*(header as *const FileHeader) };
    let well_known = file.magic[..5] == [0x7F, b'E', b'L', b'F', 2]
        && usize::from(file.program_header_size) == size_of::<ProgramHeader>();
    let count = usize::from(file.program_header_count).min(MAX_HEADERS);
    if !well_known || count == 0 {
        return None;
    }
    let table = (header + file.program_headers as usize) as *const ProgramHeader;
    // SAFETY: the caller's promise; linkers align the table to eight bytes.
    let table = unsafe { core::slice::from_raw_parts(table, count) };
    let first = table.iter().find(|part| part.kind == PT_LOAD && part.offset == 0)?;
    let bias = (header as u64).wrapping_sub(first.address);
    let code = || table.iter().filter(|part| part.kind == PT_LOAD && part.flags & PF_X != 0);
    let low = code().map(|part| part.address).min()?;
    let high = code().map(|part| part.address.saturating_add(part.memory_size)).max()?;
    let (mut build_id, mut build_id_length) = ([0; MAX_BUILD_ID], 0);
    for part in table.iter().filter(|part| part.kind == PT_NOTE) {
        let start = bias.wrapping_add(part.address) as *const u8;
        // SAFETY: the caller's promise; notes lie in a loaded segment.
        let notes = unsafe { core::slice::from_raw_parts(start, part.memory_size as usize) };
        if let Some(id) = find_build_id(notes, part.alignment) {
            build_id_length = id.len().min(MAX_BUILD_ID);
            for (to, from) in build_id.iter_mut().zip(id) {
                *to = *from;
            }
            break;
        }
    }
    let part = code().next()?;
    let start = bias.wrapping_add(part.address);
    let code = (start, start.saturating_add(part.file_size));
    Some(Image {
        code,
        low: bias.wrapping_add(low),
        size: high - low,
        bias,
        build_id,
        build_id_length,
    })
}

/// The GNU build-id among notes; `alignment` as the program header has it.
fn find_build_id(notes: &[u8], alignment: u64) -> Option<&[u8]> {
    let round = |length: usize| {
        let unit = if alignment == 8 { 8 } else { 4 };
        length.checked_add(unit - 1).map(|sum| sum & !(unit - 1))
    };
    let mut rest = notes;
    while let Some((head, body)) = rest.split_at_checked(12) {
        let number = |at: usize| {
            u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize
        };
        let (name_size, size, kind) = (number(0), number(4), number(8));
        let start = round(name_size)?;
        let id = body.get(start..start.checked_add(size)?)?;
        if kind == NT_GNU_BUILD_ID as usize && body.get(..4) == Some(b"GNU\0") {
            return Some(id);
        }
        rest = body.get(start.checked_add(round(size)?)?..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(kind: u32, name: &[u8], id: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for number in [name.len() as u32, id.len() as u32, kind] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for part in [name, id] {
            out.extend_from_slice(part);
            out.resize(out.len().next_multiple_of(4), 0);
        }
        out
    }

    #[test]
    fn the_build_id_is_found_behind_other_notes() {
        let mut notes = note(1, b"GNU\0", &[9; 16]);
        notes.extend(note(NT_GNU_BUILD_ID, b"GNU\0", &[1, 2, 3, 4, 5]));
        assert_eq!(find_build_id(&notes, 4), Some(&[1u8, 2, 3, 4, 5][..]));
    }

    #[test]
    fn notes_that_lie_about_their_length_end() {
        let mut notes = note(NT_GNU_BUILD_ID, b"GNU\0", &[7; 20]);
        notes[4] = 0xFF;
        assert_eq!(find_build_id(&notes, 4), None);
        for length in 0..notes.len() {
            assert_eq!(find_build_id(&notes[..length], 4), None);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "reads this program's own header, by assembly")]
    fn this_program_is_described() {
        let header = crate::arch::own_header();
        // SAFETY: the header of the running test.
        let image = unsafe { image(header) }.unwrap();
        let code = image.low..image.low + image.size;
        assert!(code.contains(&(this_program_is_described as *const () as u64)));
    }
}
