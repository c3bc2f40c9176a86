//! Calls in the code of a real program, by line.

use crate::toolchain::Workshop;
use teeperf_symbols::{Functions, Lines, Search, demangle};

/// `outer` calls `twice` from two lines, `once` from another, and what a pointer points to.
const SOURCE: &str = "\
volatile int sink;
__attribute__((noinline)) void once(int n) { sink += n; }
__attribute__((noinline)) void twice(int n) { sink *= n; }
void (*volatile pointer)(int) = once;
__attribute__((noinline)) void outer(int n) {
    twice(n);
    if (n > 3)
        once(n);
    twice(n + 1);
    pointer(n);
    sink++;
}
int main(int n, char **w) { (void)w; outer(n); sink++; return 0; }
";

fn sites(compiler: &str, options: &str) -> Vec<(String, u32)> {
    let workshop = Workshop::new();
    let file = workshop.build(&format!("{compiler} {options}"), "calls.c", SOURCE);
    let search = Search::nowhere_else();
    let functions = Functions::open(&file, &search).unwrap();
    let outer = functions.iter().find(|f| f.name == "outer").unwrap().start;
    let sites = Lines::open(&file, &search).unwrap().call_sites(&[outer]).unwrap();
    let mut found: Vec<(String, u32)> = sites
        .into_iter()
        .map(|site| {
            let location = site.location.unwrap();
            assert!(site.caller == 0 && location.file.ends_with("calls.c"));
            (demangle(&site.callee).into_owned(), location.line.unwrap())
        })
        .collect();
    found.sort();
    found
}

#[test]
fn calls_stand_where_the_source_has_them() {
    let expected = [("once", 8), ("twice", 6), ("twice", 9)];
    let expected = expected.map(|(name, line)| (name.to_owned(), line));
    for options in ["-O1 -g", "-O2 -g", "-O2 -gdwarf-4", "-O2 -g -gdwarf64"] {
        assert_eq!(sites("gcc", options), expected, "{options}");
    }
    assert_eq!(sites("clang", "-O2 -g"), expected);
    // Without optimisation compilers do not say it.
    assert_eq!(sites("gcc", "-O0 -g"), []);
    assert_eq!(sites("gcc", "-O2"), []);
}
