//! What was inlined into functions, by both compilers.

use crate::toolchain::{Workshop, address_of};
use std::path::Path;
use teeperf_symbols::{Frames, Lines, Search};

const SOURCE: &str = "
static volatile int sink;
static inline __attribute__((always_inline)) int inmost(int x) { sink = x; return x * 3; }
static inline __attribute__((always_inline)) int inner(int x) { return inmost(x) + inmost(x + 1); }
__attribute__((noinline)) int plain(int x) { return x + 1; }
__attribute__((noinline)) int outer(int x) { return inner(plain(x)) + inmost(x); }
int main(int argc, char **argv) { (void)argv; return outer(argc); }
";

fn inlined(file: &Path, names: &[&str]) -> Vec<Vec<String>> {
    let starts: Vec<u64> = names.iter().map(|name| address_of(file, name)).collect();
    let mut found = Lines::open(file, &Search::default()).unwrap().inlined(&starts).unwrap();
    found.iter_mut().for_each(|names| names.sort());
    found
}

#[test]
fn names_at_whatever_depth() {
    let workshop = Workshop::new();
    for (name, command, is_told) in [
        ("gcc", "gcc -g -O2", true),
        ("clang", "clang -g -O2", true),
        ("dwarf4", "gcc -gdwarf-4 -O2", true),
        ("lto", "gcc -g -O2 -flto", true),
        ("fixed", "clang -g -O1 -no-pie", true),
        ("few", "gcc -g1 -O2", true),
        ("split", "gcc -g -O2 -gsplit-dwarf", true),
        ("none", "gcc -O2", false),
    ] {
        let file = workshop.build(command, &format!("{name}.c"), SOURCE);
        let [outer, plain] = &inlined(&file, &["outer", "plain"])[..] else { panic!("{name}") };
        let expected: &[&str] = if is_told { &["inmost", "inner"] } else { &[] };
        assert_eq!(outer, expected, "{name}");
        assert!(plain.is_empty(), "{name}: {plain:?}");
    }
}

#[test]
fn names_of_cxx_are_demangled() {
    let workshop = Workshop::new();
    let source = "
struct Box { int v; __attribute__((always_inline)) int twice(int x) const { return v * x; } };
namespace n { __attribute__((noinline)) int f(const Box &b) { return b.twice(4); } }
extern \"C\" __attribute__((noinline)) int call(Box &b) { return n::f(b); }
int main(int c, char **) { Box b{c}; return call(b); }
";
    for compiler in ["g++", "clang++"] {
        let file =
            workshop.build(&format!("{compiler} -g -O1"), &format!("{compiler}.cpp"), source);
        assert_eq!(inlined(&file, &["_ZN1n1fERK3Box"]), [["Box::twice(int) const"]], "{compiler}");
    }
}

/// A function that is inlined is of the file that it is declared in, and not of the one that calls it.
#[test]
fn where_they_are_declared() {
    let workshop = Workshop::new();
    let source = "
static volatile int sink;
#line 70 \"other.h\"
static inline __attribute__((always_inline))
int inmost(int x) { sink = x; return x * 3; }
#line 6 \"caller.c\"
__attribute__((noinline)) int outer(int x) { return inmost(x + 1) + inmost(x); }
int main(int argc, char **argv) { (void)argv; return outer(argc); }
";
    for (name, command, line) in [
        ("gcc", "gcc -g -O2", 71),
        ("clang", "clang -g -O2", 71),
        ("dwarf4", "gcc -gdwarf-4 -O2", 71),
        // The entry is another unit's.
        ("lto", "gcc -g -O2 -flto", 71),
        ("split", "gcc -g -O2 -gsplit-dwarf", 71),
        ("split4", "clang -gdwarf-4 -O2 -gsplit-dwarf", 71),
    ] {
        let file = workshop.build(command, &format!("{name}.c"), source);
        let frames = Frames::open(&file, &Search::default()).unwrap().unwrap();
        let outer = address_of(&file, "outer");
        let inmost = (outer..outer + 64).find_map(|at| {
            let innermost = frames.at(at).into_iter().next()?;
            (innermost.name.as_deref() == Some("inmost")).then_some((at, innermost))
        });
        let (at, inmost) = inmost.expect(name);
        let declared = frames.declared(at, &inmost).expect(name);
        assert!(declared.file.ends_with("/other.h"), "{name}: {declared:?}");
        assert_eq!(declared.line, Some(line), "{name}");
    }
}
