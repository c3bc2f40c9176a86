//! The function table of programs as compilers and linkers make them, against `nm` and
//! `objdump`.

use crate::toolchain::{Workshop, address_of, nm};
use std::collections::BTreeMap;
use std::path::Path;
use teeperf_symbols::{Functions, Origin, Search, demangle};

const C: &str = r#"
#include <stdio.h>
#include <string.h>
static __attribute__((noinline)) int inner(int x) { return x * 3 + 1; }
__attribute__((noinline)) int outer(int x) { return inner(x) ^ 5; }
__attribute__((noinline, visibility("hidden"))) int concealed(int x) { return outer(x) + 2; }
int alias_with_a_long_name(int x) __attribute__((alias("outer")));
static int weak_alias_of_it(int x) __attribute__((alias("concealed"), used));
static int plain(int x) { return x + 1; }
typedef int (*Choice)(int);
static __attribute__((used)) Choice choose(void) { return plain; }
int chosen(int x) __attribute__((ifunc("choose")));
int main(int argc, char **argv) {
    printf("%d %zu\n", concealed(argc) + chosen(argc), strlen(argv[0]));
    puts("done");
    return 0;
}
"#;

const CXX: &str = r#"
#include <vector>
namespace shape {
template <typename T> struct Sum {
    T total = 0;
    __attribute__((noinline)) void add(T value) { total += value; }
};
struct Area { Area(); explicit operator bool() const; };
__attribute__((noinline)) Area::Area() { asm volatile(""); }
__attribute__((noinline)) Area::operator bool() const { asm volatile(""); return true; }
}
int main(int argc, char **) {
    shape::Sum<double> doubles; doubles.add(argc);
    shape::Sum<std::vector<int>*> *pointers = nullptr; (void)pointers;
    shape::Area area;
    return static_cast<bool>(area) ? static_cast<int>(doubles.total) : 1;
}
"#;

fn open(file: &Path) -> Functions {
    Functions::open(file, &Search::default()).unwrap()
}

/// Everything that `nm` lists as code is found, from its first byte to its last, under one of
/// the names that `nm` has for it; and nothing else is there but stubs.
fn agrees_with_nm(functions: &Functions, symbols: &BTreeMap<u64, (Vec<String>, u64)>) {
    assert!(symbols.len() > 2, "nm lists too little: {symbols:?}");
    for (&address, (names, size)) in symbols {
        for at in [address, address + size.saturating_sub(1)] {
            let found =
                functions.at(at).unwrap_or_else(|| panic!("{names:?} at {at:#x} is missing"));
            assert_eq!(found.start, address, "{names:?}, {found:?}");
            assert!(names.contains(&found.name.into_owned()), "{names:?} at {at:#x}");
            assert!(*size == 0 || found.size == *size, "{names:?}: {} not {size}", found.size);
        }
    }
    let others: Vec<_> = functions
        .iter()
        .filter(|found| !found.name.ends_with("@plt") && !symbols.contains_key(&found.start))
        .collect();
    assert!(others.is_empty(), "nm does not list {others:?}");
}

#[test]
fn every_kind_of_program_agrees_with_nm() {
    let workshop = Workshop::new();
    for (name, options) in [
        ("pie", "-O1 -fPIE -pie"),
        ("fixed", "-O1 -fno-pie -no-pie"),
        ("library", "-O1 -fPIC -shared"),
        ("gold", "-O1 -fPIE -pie -fuse-ld=gold"),
        ("old_hash", "-O2 -g -Wl,--hash-style=sysv,-z,now"),
        ("sections", "-O0 -ffunction-sections -Wl,--gc-sections"),
    ] {
        let file = workshop.build(&format!("gcc {options}"), &format!("{name}.c"), C);
        let functions = open(&file);
        assert_eq!(functions.origin(), &Origin::Own, "{name}");
        agrees_with_nm(&functions, &nm(&file, ""));
    }
    let file = workshop.build("g++ -O1", "shapes.cc", CXX);
    agrees_with_nm(&open(&file), &nm(&file, ""));
}

#[test]
fn a_static_program_with_the_whole_of_libc() {
    let workshop = Workshop::new();
    let file = workshop.build("gcc -O1 -static", "static.c", C);
    let functions = open(&file);
    let symbols = nm(&file, "");
    assert!(symbols.len() > 500);
    for (&address, (names, _)) in &symbols {
        // Hand-written assembler has labels inside functions, and entries inside others.
        let found = functions.at(address).unwrap_or_else(|| panic!("{names:?} is missing"));
        assert!((found.start..found.start + found.size).contains(&address));
    }
    assert_eq!(functions.at(address_of(&file, "inner")).unwrap().name, "inner");
    assert_eq!(functions.at(address_of(&file, "malloc")).unwrap().name, "malloc");
}

#[test]
fn of_several_names_the_public_then_the_short_one() {
    let workshop = Workshop::new();
    let file = workshop.build("gcc -O1", "names.c", C);
    let functions = open(&file);
    let name = |symbol: &str| functions.at(address_of(&file, symbol)).unwrap().name;
    assert_eq!(name("alias_with_a_long_name"), "outer");
    // In a program the hidden function is local, and so is its alias: the shorter name.
    assert_eq!(name("weak_alias_of_it"), "concealed");
    // At an ifunc's address stands the function that chooses.
    assert_eq!(name("chosen"), "choose");
}

#[test]
fn between_functions_there_is_nothing() {
    let workshop = Workshop::new();
    let file = workshop.build("gcc -O1 -falign-functions=64", "gaps.c", C);
    let functions = open(&file);
    let outer = functions.at(address_of(&file, "outer")).unwrap();
    assert_eq!(outer.start % 64, 0);
    assert_eq!(functions.at(outer.start + outer.size), None);
    assert_eq!(functions.at(outer.start - 1), None);
    assert_eq!(functions.at(0), None);
    assert_eq!(functions.at(u64::MAX), None);
}

#[test]
fn stubs_have_the_names_that_objdump_gives_them() {
    let workshop = Workshop::new();
    for (name, options) in [
        ("lazy", "-O1"),
        ("endbr", "-O1 -fcf-protection=full -Wl,-z,ibtplt"),
        ("now", "-O1 -Wl,-z,now"),
        ("fixed", "-O1 -no-pie -fno-pie"),
        ("gold", "-O1 -fuse-ld=gold"),
        ("clang", "-O1"),
    ] {
        let compiler = if name == "clang" { "clang" } else { "gcc" };
        let file = workshop.build(&format!("{compiler} {options}"), &format!("{name}.c"), C);
        let functions = open(&file);
        let listing = workshop.run("objdump -d --no-show-raw-insn out", file.parent().unwrap());
        let mut seen = 0;
        for line in listing.lines().filter(|line| line.ends_with("@plt>:")) {
            let (address, stub) = line.split_once(" <").unwrap();
            let address = u64::from_str_radix(address, 16).unwrap();
            let stub = stub.trim_end_matches(">:");
            if stub.starts_with('*') {
                continue; // objdump's name for a stub of an ifunc, which has no symbol.
            }
            let found = functions.at(address).unwrap_or_else(|| panic!("{name}: no {stub}"));
            assert_eq!((found.name.as_ref(), found.start), (stub, address), "{name}");
            seen += 1;
        }
        assert!(seen >= 2, "{name}: {listing}");
    }
}

#[test]
fn names_in_cxx_and_rust_are_those_of_the_source() {
    let workshop = Workshop::new();
    let names = |file: &Path| -> Vec<String> {
        open(file).iter().map(|found| demangle(&found.name).into_owned()).collect()
    };
    let cxx = names(&workshop.build("g++ -O1", "shapes.cc", CXX));
    for wanted in [
        "shape::Sum<double>::add(double)",
        "shape::Area::Area()",
        "shape::Area::operator bool() const",
    ] {
        assert!(cxx.iter().any(|name| name == wanted), "no {wanted} in {cxx:?}");
    }
    let source = "mod shape { pub struct Sum<T>(pub T); impl Sum<f64> { #[inline(never)]
        pub fn add(&mut self, by: f64) { self.0 += by } } }
        fn main() { let mut sum = shape::Sum(1.0); sum.add(2.0); println!(\"{}\", sum.0) }";
    for version in ["legacy", "v0"] {
        // Legacy mangling is no longer stable on its own, but was the default for long.
        let options = match version {
            "v0" => "-C symbol-mangling-version=v0",
            _ => "",
        };
        let file = workshop.build(&format!("rustc {options}"), &format!("{version}.rs"), source);
        let names = names(&file);
        let found = names.iter().any(|name| {
            name.contains("shape::Sum<f64>") && name.ends_with("::add") && !name.contains("_R")
        });
        assert!(found, "{version}");
        assert!(!names.iter().any(|name| name.starts_with("_ZN") || name.starts_with("_RNv")));
    }
}

#[test]
fn a_stripped_library_has_what_others_may_call() {
    let workshop = Workshop::new();
    let file = workshop.build("gcc -O1 -fPIC -shared", "library.c", C);
    let stripped = workshop.stripped(&file, "stripped.so");
    let functions = open(&stripped);
    assert_eq!(functions.origin(), &Origin::Dynamic);
    agrees_with_nm(&functions, &nm(&stripped, "-D"));
    assert_eq!(functions.at(address_of(&file, "outer")).unwrap().name, "outer");
    assert_eq!(functions.at(address_of(&file, "concealed")), None);
    assert_eq!(functions.at(address_of(&file, "inner")), None);
}

#[test]
fn a_stripped_static_program_has_no_functions() {
    let workshop = Workshop::new();
    let file = workshop.build("gcc -static", "nothing.c", C);
    let functions = open(&workshop.stripped(&file, "nothing"));
    assert_eq!(functions.origin(), &Origin::Nothing);
    assert_eq!(functions.iter().len(), 0);
}

#[test]
fn versions_are_taken_off() {
    let workshop = Workshop::new();
    let options = format!("-shared -fPIC -Wl,--version-script={}", workshop.path("map").display());
    let source = "int outer_one(int x) { return x; } int outer(int x) { return x + 1; }
        __asm__(\".symver outer_one, outer@OLD\");";
    std::fs::write(workshop.path("map"), "OLD { }; ONE { global: outer; local: *; } OLD;\n")
        .unwrap();
    let file = workshop.build(&format!("gcc {options}"), "versions.c", source);
    assert!(
        open(&file).iter().all(|found| !found.name.contains('@') || found.name.ends_with("@plt"))
    );
    let names: Vec<_> = open(&file).iter().map(|found| found.name.into_owned()).collect();
    assert!(names.contains(&"outer".to_owned()), "{names:?}");
}

/// What `fuzz/make-corpus.sh` says: two functions of Rust, of which one has a symbol with types.
#[test]
fn sites_of_rust_stand_for_functions() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/symbols/sites");
    let functions = Functions::open(&file, &Search::default()).unwrap();
    for name in ["p::f::<u8> [polled again]", "g [polled again]"] {
        let site = functions.named(name).unwrap();
        let found = functions.at(site.start).unwrap();
        assert_eq!((&*found.name, &*demangle(&found.name)), (name, name));
        let place = functions.definition(site.start).unwrap();
        assert_eq!((&*place.file, place.line), ("src/a.rs", Some(7)));
    }
}
