//! Stubs of the procedure linkage table: which function each leads to.
//!
//! No symbol says it. A stub jumps through a slot of the global offset table, and the
//! relocation of that slot names the function. So the stubs are found by their jumps, which
//! works for every linker's layout (`.plt`, `.plt.sec`, `.plt.got`), on x86-64 and AArch64;
//! on other machines stubs have no name.

use crate::Error;
use crate::functions::of_kind;
use crate::image::{Image, Section};
use crate::table::{Binding, Entry, Kind, name_in};
use object::Endianness;
use object::elf;
use object::pod::slice_from_all_bytes;
use object::read::elf::Sym;
use std::collections::HashMap;

/// A slot's relocation, as far as it names a function: offset of the name in the strings.
pub(crate) type Slots = HashMap<u64, u32>;

/// The stubs of a file, and the strings their names stand in.
pub(crate) fn stubs(image: &Image) -> Result<(Vec<Entry>, Vec<u8>), Error> {
    let find: fn(&[u8], u64, &mut dyn FnMut(Stub)) = match image.machine {
        elf::EM_X86_64 => x86_64,
        elf::EM_AARCH64 => aarch64,
        _ => return Ok(Default::default()),
    };
    let (slots, strings) = slots(image)?;
    let mut entries = Vec::new();
    if slots.is_empty() {
        return Ok((entries, strings));
    }
    // In a hostile file all sections may be the same bytes.
    let mut left = image.length;
    let names: [&[u8]; 3] = [b".plt", b".plt.sec", b".plt.got"];
    for section in image.sections.iter().filter(|section| section.code().is_some()) {
        if names.iter().any(|name| image.is_named(section, name)) {
            left = left.checked_sub(section.size).ok_or_else(|| {
                Error::malformed(&image.path, section.offset, "stubs lie over one another")
            })?;
            find(&image.content(section)?, section.address, &mut |stub| {
                entries.extend(slots.get(&stub.slot).map(|&name| Entry {
                    start: stub.start,
                    end: stub.end,
                    name,
                    kind: Kind::Plt,
                    binding: Binding::Local,
                }));
            });
        }
    }
    Ok((entries, strings))
}

/// Slots of the global offset table by address, from the dynamic relocations.
pub(crate) fn slots(image: &Image) -> Result<(Slots, Vec<u8>), Error> {
    let mut slots = Slots::new();
    let Some(dynamic) = of_kind(image, elf::SHT_DYNSYM).filter(|_| image.is_64) else {
        return Ok((slots, Vec::new()));
    };
    let strings = match image.sections.get(dynamic.link as usize) {
        Some(strings) => image.content(strings)?,
        None => return Ok((slots, Vec::new())),
    };
    let symbols = image.content(dynamic)?;
    let symbols = table::<elf::Sym64<Endianness>>(image, dynamic, &symbols)?;
    for section in image.sections.iter().filter(|section| section.kind == elf::SHT_RELA) {
        let names_dynamic = image.sections.get(section.link as usize);
        if names_dynamic.is_none_or(|linked| linked.offset != dynamic.offset) {
            continue;
        }
        let relocations = image.content(section)?;
        for relocation in table::<elf::Rela64<Endianness>>(image, section, &relocations)? {
            let symbol = relocation.r_sym(image.endian, false) as usize;
            let wanted = match image.machine {
                elf::EM_X86_64 => [elf::R_X86_64_JUMP_SLOT, elf::R_X86_64_GLOB_DAT],
                _ => [elf::R_AARCH64_JUMP_SLOT, elf::R_AARCH64_GLOB_DAT],
            };
            if let Some(symbol) = symbols.get(symbol)
                && wanted.contains(&relocation.r_type(image.endian, false))
                && !name_in(&strings, symbol.st_name(image.endian)).is_empty()
            {
                slots.insert(relocation.r_offset.get(image.endian), symbol.st_name(image.endian));
            }
        }
    }
    Ok((slots, strings))
}

fn table<'a, T: object::Pod>(
    image: &Image,
    section: &Section,
    bytes: &'a [u8],
) -> Result<&'a [T], Error> {
    let what = "the section's size is no multiple of an entry's";
    slice_from_all_bytes(bytes).map_err(|()| Error::malformed(&image.path, section.offset, what))
}

/// A stub found by its jump.
struct Stub {
    start: u64,
    end: u64,
    /// Address of the slot it jumps through.
    slot: u64,
}

/// `[endbr64] [bnd] jmp *slot(%rip)`, then anything up to the next multiple of 8 or 16 bytes.
fn x86_64(code: &[u8], address: u64, found: &mut dyn FnMut(Stub)) {
    const ENDBR64: [u8; 4] = [0xF3, 0x0F, 0x1E, 0xFA];
    for at in (0..code.len()).step_by(8) {
        let stub = &code[at..];
        let jump = stub.strip_prefix(&ENDBR64).unwrap_or(stub);
        let jump = jump.strip_prefix(&[0xF2]).unwrap_or(jump);
        if let [0xFF, 0x25, a, b, c, d, ..] = *jump {
            let next = address.wrapping_add((code.len() - jump.len() + 6) as u64);
            let slot = next.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into());
            let start = address.wrapping_add(at as u64);
            // `.plt.got` without endbr64 has stubs of 8 bytes, all others have 16.
            let size = if at % 16 == 8 || is_jump(code.get(at + 8..)) { 8 } else { 16 };
            found(Stub { start, end: start.saturating_add(size), slot });
        }
    }
}

fn is_jump(code: Option<&[u8]>) -> bool {
    code.is_some_and(|code| code.starts_with(&[0xFF, 0x25]))
}

/// `[bti c] adrp x16, page; ldr x17, [x16, #offset]; add …; br x17`, 16 or 24 bytes.
fn aarch64(code: &[u8], address: u64, found: &mut dyn FnMut(Stub)) {
    let words: Vec<u32> =
        code.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
    for (at, pair) in words.windows(2).enumerate() {
        let (adrp, ldr) = (pair[0], pair[1]);
        // A64: ADRP is op 1, fixed 10000; LDR (immediate, unsigned offset, 64-bit) scales by 8.
        if adrp & 0x9F00_001F != 0x9000_0010 || ldr & 0xFFC0_03FF != 0xF940_0211 {
            continue;
        }
        let here = address.wrapping_add(at as u64 * 4);
        let pages = (adrp >> 5 & 0x7_FFFF) << 2 | adrp >> 29 & 3;
        let pages = ((pages << 11) as i32 >> 11) as i64;
        let page = (here & !0xFFF).wrapping_add_signed(pages << 12);
        let slot = page.wrapping_add(u64::from(ldr >> 10 & 0xFFF) * 8);
        const BTI_C: u32 = 0xD503_245F;
        let before = here >= 4 && at.checked_sub(1).is_some_and(|before| words[before] == BTI_C);
        let start = if before { here - 4 } else { here };
        found(Stub { start, end: here.saturating_add(if before { 20 } else { 16 }), slot });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stubs_of(
        find: fn(&[u8], u64, &mut dyn FnMut(Stub)),
        code: &[u8],
        address: u64,
    ) -> Vec<(u64, u64, u64)> {
        let mut found = Vec::new();
        find(code, address, &mut |stub| found.push((stub.start, stub.end, stub.slot)));
        found
    }

    #[test]
    fn jumps_of_aarch64() {
        // Assembled by clang 14 from: adrp x16, 0x11000; ldr x17, [x16, #24];
        // add x16, x16, #24; br x17; bti c; adrp x16, -0x1000; ldr x17, [x16, #4088].
        let words: [u32; 7] = [
            0xB000_0090,
            0xF940_0E11,
            0x9100_6210,
            0xD61F_0220,
            0xD503_245F,
            0xF0FF_FFF0,
            0xF947_FE11,
        ];
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let found = stubs_of(aarch64, &code, 0x40_0460);
        let second = (0x40_0470, 0x40_0488, 0x3F_F000 + 4088);
        assert_eq!(found, [(0x40_0460, 0x40_0470, 0x41_1018), second]);
    }

    #[test]
    fn jumps_of_x86_64() {
        let mut code = vec![0xFF, 0x25, 0xFA, 0x0F, 0, 0, 0x66, 0x90];
        code.extend([0xFF, 0x25, 0xF0, 0xFF, 0xFF, 0xFF, 0x66, 0x90]);
        code.extend([0xF3, 0x0F, 0x1E, 0xFA, 0xF2, 0xFF, 0x25, 1, 0, 0, 0, 0x0F, 0x1F, 0x44, 0, 0]);
        assert_eq!(
            stubs_of(x86_64, &code, 0x1000),
            [(0x1000, 0x1008, 0x2000), (0x1008, 0x1010, 0xFFE), (0x1010, 0x1020, 0x101C)]
        );
    }

    #[test]
    fn code_that_ends_early_or_at_the_last_address() {
        for find in [x86_64, aarch64] {
            for code in [&[0xFF, 0x25, 0, 0, 0][..], &[0xFF, 0x25, 0, 0, 0, 0], &[0x90, 0, 0, 0xB0]]
            {
                stubs_of(find, code, u64::MAX - 2);
            }
        }
        let words = [0x9000_0010u32, 0xF940_0211];
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(stubs_of(aarch64, &code, u64::MAX - 7)[0].0, u64::MAX - 7);
        // The landing pad would lie behind all addresses, the rest before them.
        let words = [0xD503_245F, 0x9000_0010u32, 0xF940_0211];
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let (start, end, _) = stubs_of(aarch64, &code, u64::MAX - 3)[0];
        assert_eq!((start, end), (0, 16));
    }
}
