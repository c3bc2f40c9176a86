//! Which functions a function's code calls by name: other functions of its file, and those that the dynamic linker finds.
//!
//! Read from the machine's code, which is there without debug information: calls with a fixed distance, and on x86-64 those
//! through a slot of the global offset table (`-fno-plt`). Code is not taken apart into instructions, so bytes of a constant may look like
//! a call; what they lead to must then be the first byte of a function, out of four thousand million places. Calls through
//! other pointers are not found.

use crate::image::Image;
use crate::{Error, Functions, Search, plt};
use object::elf;
use std::path::Path;

/// Most code of a function that is looked at.
const MAX_CODE: u64 = 64 << 10;
/// Most names told of a function.
const MAX_NAMES: usize = 256;

/// The names of what functions call that start at these addresses, in the same order, each name once. On other processors than
/// x86-64 and AArch64 none.
///
/// # Errors
///
/// When the file cannot be read, is no ELF executable or shared library, is malformed, or is not of the build that `search`
/// asks for.
pub fn called(path: &Path, search: &Search, starts: &[u64]) -> Result<Vec<Vec<String>>, Error> {
    of(&search.open(path)?, search, starts)
}

/// The same of a file that is in memory; `path` is for errors, and to look for a debug file beside it.
///
/// # Errors
///
/// As for [`called`].
pub fn called_from_bytes(
    path: &Path,
    bytes: Vec<u8>,
    search: &Search,
    starts: &[u64],
) -> Result<Vec<Vec<String>>, Error> {
    of(&search.check(Image::from_bytes(path, bytes)?)?, search, starts)
}

fn of(image: &Image, search: &Search, starts: &[u64]) -> Result<Vec<Vec<String>>, Error> {
    let (slots, strings) = plt::slots(image)?;
    let functions = Functions::of(image, search)?;
    let find: fn(&[u8], u64, &mut dyn FnMut(Call)) = match image.machine {
        elf::EM_X86_64 => x86_64,
        elf::EM_AARCH64 => aarch64,
        _ => return Ok(vec![Vec::new(); starts.len()]),
    };
    let names = |start: &u64| {
        let mut names: Vec<String> = Vec::new();
        let size = functions.at(*start).map_or(0, |function| function.size);
        let Some(code) = code(image, *start, size) else { return names };
        find(&code, *start, &mut |call| {
            let name = match call {
                Call::To(address) => {
                    let there = functions.at(address).filter(|there| there.start == address);
                    there.map(|there| there.name.trim_end_matches("@plt").to_owned())
                }
                Call::Through(slot) => slots.get(&slot).map(|&at| {
                    String::from_utf8_lossy(crate::table::name_in(&strings, at)).into_owned()
                }),
            };
            let name = name.as_deref().map(as_in_source);
            if let Some(name) = name.filter(|name| names.iter().all(|known| known != name))
                && names.len() < MAX_NAMES
            {
                names.push(name.to_owned());
            }
        });
        names
    };
    Ok(starts.iter().map(names).collect())
}

/// The function that the source calls: the linker puts `__wrap_f` in the place of `f` (`--wrap=f`).
fn as_in_source(name: &str) -> &str {
    name.strip_prefix("__wrap_").unwrap_or(name)
}

/// The code from an address on; nothing where the file has none.
pub(crate) fn code(image: &Image, start: u64, size: u64) -> Option<Vec<u8>> {
    let holds = |range: std::ops::Range<u64>| range.contains(&start);
    let section = image.sections.iter().find(|section| section.code().is_some_and(holds))?;
    let before = start - section.address;
    let size = size.min(section.size - before).min(MAX_CODE);
    let is_there = section.kind != elf::SHT_NOBITS;
    is_there.then(|| image.read(section.offset.checked_add(before)?, size).ok()).flatten()
}

/// What is called.
#[derive(Debug, PartialEq, Eq)]
enum Call {
    /// What stands at this address.
    To(u64),
    /// Whatever the slot at this address holds.
    Through(u64),
}

/// `call rel32` (E8), `call *slot(%rip)` (FF /2 with RIP-relative addressing); Intel's manual, volume 2, CALL.
fn x86_64(code: &[u8], address: u64, found: &mut dyn FnMut(Call)) {
    for at in 0..code.len() {
        let (length, distance, is_slot) = match code[at..] {
            [0xE8, a, b, c, d, ..] => (5, [a, b, c, d], false),
            [0xFF, 0x15, a, b, c, d, ..] => (6, [a, b, c, d], true),
            _ => continue,
        };
        let next = address.wrapping_add(at as u64 + length);
        let to = next.wrapping_add_signed(i32::from_le_bytes(distance).into());
        found(if is_slot { Call::Through(to) } else { Call::To(to) });
    }
}

/// `bl`: bits 31 to 26 are 100101, the rest is the distance in words (Arm Architecture Reference Manual, C6.2, BL).
fn aarch64(code: &[u8], address: u64, found: &mut dyn FnMut(Call)) {
    for (at, word) in code.chunks_exact(4).enumerate() {
        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        if word & 0xFC00_0000 == 0x9400_0000 {
            let distance = i64::from((word << 6).cast_signed() >> 6) * 4;
            found(Call::To(address.wrapping_add(at as u64 * 4).wrapping_add_signed(distance)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn calls(find: fn(&[u8], u64, &mut dyn FnMut(Call)), code: &[u8], address: u64) -> Vec<Call> {
        let mut found = Vec::new();
        find(code, address, &mut |call| found.push(call));
        found
    }

    #[test]
    fn calls_of_x86_64() {
        // nop; call +0x10; call *-0x20(%rip); the beginning of one more.
        let code = [0x90, 0xE8, 0x10, 0, 0, 0, 0xFF, 0x15, 0xE0, 0xFF, 0xFF, 0xFF, 0xE8, 1, 2];
        assert_eq!(calls(x86_64, &code, 0x1000), [Call::To(0x1016), Call::Through(0xFEC)]);
        assert_eq!(calls(x86_64, &code[1..6], u64::MAX), [Call::To(0x14)]);
    }

    #[test]
    fn calls_of_aarch64() {
        // Assembled by clang 14 from: bl .+8; nop; bl .-8.
        let words: [u32; 3] = [0x9400_0002, 0xD503_201F, 0x97FF_FFFE];
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(calls(aarch64, &code, 0x4000), [Call::To(0x4008), Call::To(0x4000)]);
        calls(aarch64, &code[..7], u64::MAX - 3);
    }

    #[test]
    fn what_a_program_calls_is_found_however_it_is_linked() {
        let source = "#include <unistd.h>\n#include <time.h>\nint identity(void) { return getpid(); }\n\
                      int twice(void) { return identity() + identity() + (time(0) > 0); }\n\
                      int main(void) { return twice() < 0; }\n";
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.c");
        std::fs::write(&file, source).unwrap();
        for flags in [&["-fno-plt"][..], &["-no-pie"], &["-fcf-protection=full"], &["-static"]] {
            let program = folder.path().join("a");
            let mut gcc = Command::new("gcc");
            gcc.args(["-O1", "-fno-inline", "-fno-optimize-sibling-calls"]).args(flags);
            assert!(gcc.arg(&file).arg("-o").arg(&program).status().unwrap().success());
            let search = Search::default();
            let functions = Functions::open(&program, &search).unwrap();
            let start = |name| functions.named(name).unwrap().start;
            let starts = [start("twice"), start("identity"), 1];
            let found = called(&program, &search, &starts).unwrap();
            let [twice, identity, none] = &found[..] else { panic!("{found:?}") };
            assert_eq!(twice, &["identity", "time"], "{flags:?}");
            assert!(
                identity.len() == 1 && identity[0].ends_with("getpid"),
                "{flags:?}: {identity:?}"
            );
            assert!(none.is_empty());
        }
    }
}
