//! Names as the linker knows them to names as programmers write them.
//!
//! Mangled names are a compressed language: a few hundred hostile bytes can describe a name
//! of gigabytes, or one that nests until the stack runs out. So depth and length have
//! limits, and a name beyond them stays as it is.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Longest mangled name that is looked at, in bytes.
const MAX_MANGLED: usize = 1 << 14;
/// Longest name that is made, in bytes.
const MAX_NAME: usize = 1 << 16;
/// Deepest nesting of a C++ name while it is read and while it is written. At these depths
/// the worst name takes 0.7 MiB of stack in an optimised build; a thread has 2 MiB.
const MAX_READ_DEPTH: u32 = 96;
const MAX_WRITE_DEPTH: u32 = 128;

/// `name` as written in Rust (legacy and v0 mangling, without the hash) or C++ (Itanium ABI);
/// as it is, if it is neither or too much. What stands behind an `@` stays: `_Znwm@plt` is
/// `operator new(unsigned long)@plt`.
///
/// ```
/// assert_eq!(teeperf_symbols::demangle("_ZN3foo3barEi"), "foo::bar(int)");
/// assert_eq!(teeperf_symbols::demangle("_RNvC3foo3bar"), "foo::bar");
/// assert_eq!(teeperf_symbols::demangle("main"), "main");
/// ```
pub fn demangle(name: &str) -> Cow<'_, str> {
    let (mangled, rest) = name.split_at(name.find('@').unwrap_or(name.len()));
    // Both languages' names begin with this, after the underscores that some systems put first.
    let bare = mangled.trim_start_matches('_');
    if bare.len() == mangled.len() || !bare.starts_with(['Z', 'R']) || name.len() > MAX_MANGLED {
        return Cow::Borrowed(name);
    }
    match rust(mangled).or_else(|| cpp(mangled)) {
        Some(readable) => Cow::Owned(readable + rest),
        None => Cow::Borrowed(name),
    }
}

fn rust(mangled: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(mangled).ok()?;
    let mut out = Bounded(String::new());
    write!(out, "{name:#}").ok()?;
    Some(out.0)
}

fn cpp(mangled: &str) -> Option<String> {
    let parse = cpp_demangle::ParseOptions::default().recursion_limit(MAX_READ_DEPTH);
    let symbol = cpp_demangle::Symbol::new_with_options(mangled, &parse).ok()?;
    let mut out = Bounded(String::new());
    let options = cpp_demangle::DemangleOptions::new().recursion_limit(MAX_WRITE_DEPTH);
    symbol.structured_demangle(&mut out, &options).ok()?;
    Some(out.0)
}

/// Refuses to grow beyond [`MAX_NAME`].
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.0.len() + part.len() > MAX_NAME {
            return Err(fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_as_written() {
        // Mangled by gcc 12, clang 14 and rustc 1.95; the right side from the sources.
        for (mangled, written) in [
            ("main", "main"),
            ("_start", "_start"),
            ("_Z3addii", "add(int, int)"),
            (
                "_ZN5shape4Area3sumERKSt6vectorIiSaIiEE",
                "shape::Area::sum(std::vector<int, std::allocator<int> > const&)",
            ),
            ("_ZNK5shape4AreacvbEv", "shape::Area::operator bool() const"),
            ("_Z4swapIiEvRT_S1_", "void swap<int>(int&, int&)"),
            ("_ZN4core3fmt9Formatter3pad17h5b1a7f0d2c3e4f56E", "core::fmt::Formatter::pad"),
            (
                "_ZN36_$LT$T$u20$as$u20$core..any..Any$GT$7type_id17h0123456789abcdefE",
                "<T as core::any::Any>::type_id",
            ),
            ("_RNvCs4fqI2P2rA04_7mycrate3foo", "mycrate::foo"),
            ("_Znwm@plt", "operator new(unsigned long)@plt"),
            ("memcpy@plt", "memcpy@plt"),
        ] {
            assert_eq!(demangle(mangled), written);
        }
    }

    #[test]
    fn what_is_no_mangled_name_stays() {
        for name in
            ["", "_", "_Z", "_R", "_ZN", "Z3addii", "_Zebra", "_ZN5shape", "@", "_Z@", "ünï", "_Zü"]
        {
            assert_eq!(demangle(name), name);
        }
    }

    #[test]
    fn a_name_that_explodes_stays() {
        // Each argument is a pair of the one before, twice: 2^40 times the first.
        let bomb = (0..40).fold("_Z1fSt4pairIiiE".to_owned(), |bomb, n| {
            bomb + &format!("S_IS{0}_S{0}_E", base36(n))
        });
        assert_eq!(demangle(&bomb), bomb);
        let small = "_Z1fSt4pairIiiES_IS0_S0_E";
        let pair = "std::pair<int, int>";
        assert_eq!(demangle(small), format!("f({pair}, std::pair<{pair}, {pair} >)"));
        let deep = format!("_Z1f{}i", "P".repeat(10_000));
        assert_eq!(demangle(&deep), deep);
        let deep = format!("_RMC0{}u", "R".repeat(10_000));
        assert!(demangle(&deep).len() <= MAX_NAME);
    }

    fn base36(n: u32) -> String {
        let digit = |d: u32| char::from_digit(d, 36).unwrap().to_ascii_uppercase();
        if n < 36 { digit(n).to_string() } else { format!("{}{}", digit(n / 36), digit(n % 36)) }
    }

    proptest! {
        #[test]
        fn any_name_ends(tail in "[A-Za-z0-9_$.@]{0,80}", start in prop::sample::select(vec!["_Z", "_R", "_ZN", "_RNv", ""])) {
            let name = format!("{start}{tail}");
            prop_assert!(demangle(&name).len() <= MAX_NAME + name.len());
        }
    }
}
