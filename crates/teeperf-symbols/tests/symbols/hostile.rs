//! Files that lie: real programs with bytes changed, and files made by hand.

use crate::toolchain::Workshop;
use proptest::prelude::*;
use std::path::Path;
use std::sync::LazyLock;
use teeperf_symbols::{Functions, Lines, Search, called_from_bytes, demangle};

const SOURCE: &str = "
#include <stdio.h>
static __attribute__((noinline)) int inner(int x) { return x * 3; }
typedef int (*Choice)(int);
static __attribute__((used)) Choice choose(void) { return inner; }
int chosen(int x) __attribute__((ifunc(\"choose\")));
int main(int argc, char **argv) { puts(argv[0]); return inner(argc) + chosen(2); }
";

/// Small programs of several kinds, as bytes.
static PROGRAMS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let workshop = Workshop::new();
    [
        "gcc -g",
        "gcc -g -O2",
        "gcc -g -gz=zlib",
        "clang -gdwarf-4",
        "gcc -shared -fPIC -s",
        "gcc -g -m32 -nostdlib -shared -fPIC",
    ]
    .iter()
    .enumerate()
    .map(|(n, command)| match command.contains("-m32") {
        // No headers and no libc of the other class are needed for this.
        true => workshop.build(command, &format!("p{n}.c"), "int far(int x) { return x; }"),
        false => workshop.build(command, &format!("p{n}.c"), SOURCE),
    })
    .map(|file| std::fs::read(file).unwrap())
    .collect()
});

/// Reads everything there is to read.
fn read(bytes: Vec<u8>) {
    let path = Path::new("hostile");
    let search = Search::nowhere_else();
    let mut starts = vec![0, 0x1139, u64::MAX];
    match Functions::from_bytes(path, bytes.clone(), &search) {
        Ok(functions) => {
            for found in functions.iter() {
                starts.push(found.start);
                let end = found.start.checked_add(found.size).expect("a function ends");
                if let Some(other) = functions.at(end.saturating_sub(1)) {
                    assert!(other.start <= end);
                }
                demangle(&found.name);
            }
        }
        Err(error) => assert!(error.to_string().starts_with("hostile: ")),
    }
    match called_from_bytes(path, bytes.clone(), &search, &starts[..starts.len().min(50)]) {
        Ok(called) => assert_eq!(called.len(), starts.len().min(50)),
        Err(error) => assert!(error.to_string().starts_with("hostile: ")),
    }
    match Lines::from_bytes(path, bytes, &search) {
        Ok(lines) => {
            match lines.definitions(&starts) {
                Ok(found) => assert_eq!(found.len(), starts.len()),
                Err(error) => assert!(error.to_string().starts_with("hostile: ")),
            }
            match lines.call_sites(&starts) {
                Ok(sites) => assert!(sites.iter().all(|site| site.caller < starts.len())),
                Err(error) => assert!(error.to_string().starts_with("hostile: ")),
            }
        }
        Err(error) => assert!(error.to_string().starts_with("hostile: ")),
    }
}

/// The headers, of which each byte matters, or anywhere.
fn place() -> impl Strategy<Value = (u8, u32)> {
    (0u8..4, any::<u32>())
}

fn change(bytes: &mut [u8], (region, at): (u8, u32), value: u8) {
    let length = bytes.len();
    let headers = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    let headers = headers.min(length);
    let at = at as usize;
    let at = match region {
        0 => at % 64,
        1 | 2 if headers < length => headers + at % (length - headers),
        _ => at % length,
    };
    bytes[at] = value;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn changed_bytes(
        program in 0usize..5,
        changes in prop::collection::vec((place(), prop_oneof![any::<u8>(), Just(0xFF), Just(0)]), 1..12),
    ) {
        let mut bytes = PROGRAMS[program].clone();
        for (place, value) in changes {
            change(&mut bytes, place, value);
        }
        read(bytes);
    }

    #[test]
    fn cut_short(program in 0usize..5, length: u32) {
        let mut bytes = PROGRAMS[program].clone();
        bytes.truncate(length as usize % bytes.len());
        read(bytes);
    }

    #[test]
    fn moved_pieces(program in 0usize..5, from: u32, to: u32, size in 1usize..400) {
        let mut bytes = PROGRAMS[program].clone();
        let room = bytes.len() - size;
        let from = from as usize % room;
        bytes.copy_within(from..from + size, to as usize % room);
        read(bytes);
    }
}

#[test]
fn the_programs_themselves_are_read() {
    for bytes in PROGRAMS.iter() {
        let search = Search::nowhere_else();
        let functions = Functions::from_bytes(Path::new("p"), bytes.clone(), &search).unwrap();
        assert!(functions.iter().len() > 0);
    }
}

/// An ELF file of class 32 with one code section of 256 bytes at 0x8000 and these symbols:
/// value, size, `st_info`, name.
fn elf_32(big: bool, machine: u16, symbols: &[(u32, u32, u8, &str)]) -> Vec<u8> {
    let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut strings = vec![0];
    let mut table = vec![0; 16];
    for &(value, size, info, name) in symbols {
        table.extend([word(strings.len() as u32), word(value), word(size)].concat());
        table.extend([&[info, 0][..], &half(1)].concat());
        strings.extend([name.as_bytes(), b"\0"].concat());
    }
    let section = |kind: u32, flags: u32, address: u32, offset: usize, size: usize, link: u32| {
        [0, kind, flags, address, offset as u32, size as u32, link, 0, 4, 0].map(word).concat()
    };
    let at = 52 + 4 * 40;
    let mut file = [b"\x7fELF\x01", &[1 + u8::from(big), 1][..], &[0; 9]].concat();
    file.extend([half(3), half(machine)].concat());
    file.extend([1, 0, 0, 52, 0].map(word).concat());
    file.extend([52, 32, 0, 40, 4, 0].map(half).concat());
    file.extend(section(0, 0, 0, 0, 0, 0));
    file.extend(section(1, 2 | 4, 0x8000, 0, 256, 0));
    file.extend(section(2, 0, 0, at, table.len(), 3));
    file.extend(section(3, 0, 0, at + table.len(), strings.len(), 0));
    [file, table, strings].concat()
}

fn functions_of(bytes: Vec<u8>) -> Functions {
    Functions::from_bytes(Path::new("made"), bytes, &Search::default()).unwrap()
}

const EM_ARM: u16 = 40;
const EM_MIPS: u16 = 8;
const FUNC: u8 = 0x12;
const NOTYPE: u8 = 0;

#[test]
fn the_thumb_bit_is_no_part_of_an_address() {
    let symbols = [
        (0x8001, 16, FUNC, "thumb"),
        (0x8010, 16, FUNC, "arm"),
        (0x8000, 0, NOTYPE, "$t"),
        (0x8010, 0, NOTYPE, "$a"),
        (0x8018, 0, NOTYPE, "$d"),
    ];
    let functions = functions_of(elf_32(false, EM_ARM, &symbols));
    let listed: Vec<_> = functions.iter().map(|s| (s.start, s.size, s.name.into_owned())).collect();
    assert_eq!(listed, [(0x8000, 16, "thumb".to_owned()), (0x8010, 16, "arm".to_owned())]);
    for address in [0x8000, 0x8001, 0x800F] {
        assert_eq!(functions.at(address).unwrap().name, "thumb");
    }
    // No other machine has that bit.
    let functions = functions_of(elf_32(false, EM_MIPS, &symbols));
    assert_eq!(functions.at(0x8000), None);
}

#[test]
fn the_other_byte_order() {
    let symbols = [(0x8020, 8, FUNC, "first"), (0x8040, 0, FUNC, "last")];
    let functions = functions_of(elf_32(true, EM_MIPS, &symbols));
    assert_eq!(functions.at(0x8027).unwrap().name, "first");
    assert_eq!(functions.at(0x8028), None);
    assert_eq!(functions.at(0x80FF).unwrap().name, "last");
    assert_eq!(functions.at(0x8100), None);
}

#[test]
fn names_that_never_end_and_sizes_beyond_the_section() {
    let symbols = [(0x8000, u32::MAX, FUNC, "far"), (0x8FFF, 1, FUNC, "outside")];
    let mut bytes = elf_32(false, EM_MIPS, &symbols);
    let last = bytes.len() - 1;
    bytes[last] = b'!';
    let functions = functions_of(bytes);
    let listed: Vec<_> = functions.iter().map(|s| (s.start, s.size, s.name.into_owned())).collect();
    assert_eq!(listed, [(0x8000, 256, "far".to_owned())]);
}

#[test]
fn names_that_are_no_utf8_are_shown_as_far_as_they_are() {
    let mut bytes = elf_32(false, EM_MIPS, &[(0x8000, 4, FUNC, "caf?")]);
    let at = bytes.len() - 2;
    bytes[at] = 0xE9;
    assert_eq!(functions_of(bytes).at(0x8000).unwrap().name, "caf\u{FFFD}");
}

/// Guards: sections of stubs are read as far as a file has bytes for them.
#[test]
fn stubs_over_one_another_are_refused() {
    let mut bytes = PROGRAMS[0].clone();
    let number = |bytes: &[u8], at: usize, size: usize| {
        bytes[at..at + size].iter().rev().fold(0, |all, &byte| all << 8 | usize::from(byte))
    };
    // Class 64, little-endian (System V ABI, ELF header): e_shoff, e_shentsize, e_shnum.
    let (table, entry) = (number(&bytes, 0x28, 8), number(&bytes, 0x3A, 2));
    let headers = (0..number(&bytes, 0x3C, 2)).map(|index| table + index * entry);
    const SHF_EXECINSTR: usize = 4;
    let is_code = |at: &usize| number(&bytes, at + 8, 8) & SHF_EXECINSTR != 0;
    let code: Vec<usize> = headers.filter(is_code).collect();
    assert!(code.len() > 2 && functions_of(bytes.clone()).iter().len() > 0);
    // Behind .init comes .plt.
    let name = number(&bytes, code[1], 4) as u32;
    let half = bytes.len() as u64 / 2;
    for at in code {
        bytes[at..at + 4].copy_from_slice(&name.to_le_bytes());
        bytes[at + 24..at + 32].fill(0);
        bytes[at + 32..at + 40].copy_from_slice(&half.to_le_bytes());
    }
    let Err(error) = Functions::from_bytes(Path::new("made"), bytes, &Search::default()) else {
        panic!("they are read")
    };
    assert!(error.to_string().contains("stubs lie over one another"), "{error}");
}

/// Those that a fuzzer found, and some made by hand: sums and products of DWARF that are no numbers any more.
#[test]
fn inputs_of_the_fuzzers_are_answered() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/symbols");
    for entry in std::fs::read_dir(corpus).unwrap() {
        read(std::fs::read(entry.unwrap().path()).unwrap());
    }
}
