//! Where functions are defined, for every way of writing debug information.

use crate::toolchain::{Workshop, address_of};
use std::path::Path;
use teeperf_symbols::{Lines, Location, Search};

const SOURCE: &str = "
static __attribute__((noinline)) int inner(int x) {
    return x * 3;
}

int outer(int x) {
    return inner(x) + 1;
}

int main(int argc, char **argv) {
    (void)argv;
    return outer(argc);
}
";

fn definitions(file: &Path, names: &[&str]) -> Vec<Option<Location>> {
    let starts: Vec<u64> = names.iter().map(|name| address_of(file, name)).collect();
    Lines::open(file, &Search::default()).unwrap().definitions(&starts).unwrap()
}

#[test]
fn file_and_line_of_each_function() {
    let workshop = Workshop::new();
    for (name, command) in [
        ("plain", "gcc -g"),
        ("optimised", "gcc -g -O2"),
        ("dwarf4", "gcc -gdwarf-4"),
        ("clang", "clang -g -O1"),
        ("fixed", "gcc -g -no-pie -fno-pie"),
        ("static", "gcc -g -static"),
        ("library", "gcc -g -shared -fPIC"),
        ("sections", "gcc -g -ffunction-sections -Wl,--gc-sections"),
        ("lto", "gcc -g -O1 -flto -fno-inline"),
        ("zlib", "gcc -g -gz=zlib"),
        ("split", "gcc -g -gsplit-dwarf"),
        ("little", "gcc -g1"),
    ] {
        let file = workshop.build(command, &format!("{name}.c"), SOURCE);
        let found = definitions(&file, &["inner", "outer", "main"]);
        let source = file.parent().unwrap().join(format!("{name}.c"));
        for (found, line) in found.into_iter().zip([2, 6, 10]) {
            let wanted = Location { file: source.display().to_string(), line: Some(line) };
            assert_eq!(found, Some(wanted), "{name}");
        }
    }
}

#[test]
fn a_relative_build_is_made_absolute() {
    let workshop = Workshop::new();
    std::fs::create_dir_all(workshop.path("header_c/include")).unwrap();
    let header = "static __attribute__((noinline)) int far(int x) { return x; }\n";
    std::fs::write(workshop.path("header_c/include/far.h"), header).unwrap();
    let source =
        "#include \"include/far.h\"\nint main(int c, char **v) { (void)v; return far(c); }\n";
    let file = workshop.build("gcc -g", "header.c", source);
    let found = definitions(&file, &["far"]).remove(0).unwrap();
    assert_eq!(found.line, Some(1));
    assert_eq!(Path::new(&found.file), workshop.path("header_c/include/far.h"));
}

#[test]
fn a_rust_program() {
    let workshop = Workshop::new();
    let source = "#[unsafe(no_mangle)]\n#[inline(never)]\npub extern \"C\" fn far(x: u32) -> u32 {\n    x ^ 1\n}\n\nfn main() { std::process::exit(far(1) as i32) }\n";
    let file = workshop.build("rustc -g --edition 2024", "far.rs", source);
    let found = definitions(&file, &["far"]).remove(0).unwrap();
    assert_eq!(found.line, Some(3));
    assert!(found.file.ends_with("far.rs"));
}

#[test]
fn without_debug_information_there_is_nothing() {
    let workshop = Workshop::new();
    let file = workshop.build("gcc", "bare.c", SOURCE);
    assert_eq!(definitions(&file, &["inner", "main"]), [None, None]);
    let lines = Lines::open(&file, &Search::default()).unwrap();
    assert_eq!(lines.path(), None);
}

#[test]
fn addresses_of_nothing_have_no_line() {
    let workshop = Workshop::new();
    let file = workshop.build("gcc -g", "odd.c", SOURCE);
    let lines = Lines::open(&file, &Search::default()).unwrap();
    let main = address_of(&file, "main");
    let found = lines.definitions(&[0, main, u64::MAX, main]).unwrap();
    assert_eq!((&found[0], &found[2]), (&None, &None));
    assert_eq!(found[1], found[3]);
    assert_eq!(found[1].as_ref().unwrap().line, Some(10));
    assert_eq!(lines.definitions(&[]).unwrap(), []);
}

/// Guards: each function may have a path of its own, however long the file says it is.
#[test]
fn paths_without_end_are_cut() {
    let workshop = Workshop::new();
    let source = format!("#line 3 \"/{}\"\n{SOURCE}", "é".repeat(5000));
    let file = workshop.build("gcc -g", "long.c", &source);
    let found = definitions(&file, &["main"]).remove(0).unwrap();
    assert_eq!(found.file, format!("/{}", "é".repeat(2047)));
}

/// Guards: a size in the file is not trusted to give an address.
#[test]
fn a_unit_that_would_end_beyond_all_addresses_is_looked_at() {
    let workshop = Workshop::new();
    let file = workshop.build("gcc -gdwarf-4", "endless.c", SOURCE);
    let mut bytes = std::fs::read(&file).unwrap();
    // First address and size stand side by side in the unit, DW_FORM_addr and DW_FORM_data8, and in tables
    // that do not matter here.
    let first = address_of(&file, "inner").to_le_bytes();
    for at in 8..bytes.len() - 8 {
        if bytes[at - 8..at] == first && (1..0x1000).contains(&number(&bytes[at..])) {
            bytes[at..at + 8].fill(0xff);
        }
    }
    let lines = Lines::from_bytes(&file, bytes, &Search::default()).unwrap();
    let found = lines.definitions(&[address_of(&file, "outer")]).unwrap().remove(0);
    assert_eq!(found.unwrap().line, Some(6));
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().unwrap())
}
