//! What a program is linked with brings nothing that could clash with it, and needs nothing.

use crate::support::{build_runtime, link_flags, runtime};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Kind and name of each symbol.
fn symbols(file: &Path) -> Vec<(char, String)> {
    let output = Command::new("nm").arg(file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .filter_map(|line| {
            let mut parts = line.split_whitespace().rev();
            let name = parts.next()?.to_owned();
            Some((parts.next()?.chars().next()?, name))
        })
        .collect()
}

#[test]
fn the_runtime_exports_its_interface_and_refers_to_nothing_strongly() {
    let symbols = symbols(&runtime().runtime);
    let of = |kinds: &str| -> BTreeSet<&str> {
        let found = symbols.iter().filter(|(kind, _)| kinds.contains(*kind));
        found.map(|(_, name)| name.as_str()).collect()
    };
    assert_eq!(of("TDBRVW"), BTreeSet::from(build_runtime::EXPORTED));
    assert_eq!(of("U"), BTreeSet::new());
    // A linker tells the bounds of the code.
    let code = ["__start_teeperf_code", "__stop_teeperf_code"];
    let known = ["__ehdr_start", "__rseq_offset", "__rseq_size", "environ"].into_iter().chain(code);
    let keys = ["pthread_key_create", "pthread_setspecific"];
    assert_eq!(of("w"), known.chain(keys).collect());
}

/// The Rust compiler has proven every index and every subtraction: the object has no code for what
/// would come of a wrong one.
#[test]
fn the_runtime_cannot_panic() {
    for (_, name) in symbols(&runtime().runtime) {
        assert!(!name.contains("panic") && !name.contains("fail"), "{name}");
    }
}

#[test]
fn the_stub_is_the_modules_own_and_refers_to_nothing_strongly() {
    for (kind, name) in symbols(&runtime().stub) {
        assert_ne!(kind, 'U', "{name}");
    }
    let output = Command::new("readelf").args(["-sW"]).arg(&runtime().stub).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (mut hidden, mut protected) = (0, 0);
    for line in text.lines().filter(|line| line.contains(" GLOBAL ")) {
        // GNU ld takes what a shared library refers to for a reference to the wrapper.
        let is_wrapper = line.contains(" __wrap_");
        assert!(line.contains(if is_wrapper { " PROTECTED " } else { " HIDDEN " }), "{line}");
        *if is_wrapper { &mut protected } else { &mut hidden } += 1;
    }
    assert_eq!(
        hidden, 16,
        "two hooks, as scopes call them too, block, gate, clock, what tells of waits; what late hooks \
         call, with what registers kept, and tables of all sequences"
    );
    assert_eq!(
        protected, 4,
        "wrappers of catches, and of what exceptions, clean-ups and panics unwind by"
    );
}

#[test]
fn flags_and_wrappers_are_the_same() {
    let flags = link_flags(true);
    let wrapped: BTreeSet<&str> =
        flags.iter().filter_map(|flag| flag.strip_prefix("-Wl,--wrap=")).collect();
    let mut built = BTreeSet::from(build_runtime::WRAPPED);
    built.insert("__cxa_begin_catch");
    assert_eq!(wrapped, built);
    assert!(build_runtime::EXPORTED.iter().all(|name| name.starts_with("teeperf_rt_")));
}
