//! Sites of Rust programs: functions that nobody calls, each for an instantiation of a function that is recorded, which
//! may be inlined and have no code of its own. Notes say what they stand for (docs/format.md, section 8).

use crate::image::Image;
use crate::table::Code;
use crate::{Error, Location, demangle};
use object::Endianness;
use object::elf;
use object::read::elf::NoteIterator;
use std::collections::BTreeMap;

const SECTION: &[u8] = b".note.teeperf";
/// Name and type of the notes.
const OWNER: &[u8] = b"TeePerf";
const SITE: u32 = 1;
/// What the type of a site is called, in the symbol of the function that drops it.
const MARKER: &str = "teeperf_site<";

/// What sites stand for, by address.
#[derive(Debug, Default)]
pub(crate) struct Sites(BTreeMap<u64, Site>);

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Site {
    /// How many closures the type in the symbol has around the function's name; 0: `name` is the name.
    depth: u8,
    line: u32,
    name: String,
    suffix: String,
    file: String,
}

impl Sites {
    /// Those of a file, up to the first note that is not whole.
    pub(crate) fn of(image: &Image, code: &Code) -> Result<Self, Error> {
        let Some(section) = image.section(SECTION) else { return Ok(Self::default()) };
        let content = image.content(section)?;
        let mut sites = BTreeMap::new();
        for (address, site) in read(&content, image.is_64, image.endian) {
            // What the linker has left out stands elsewhere.
            if code.end_of(address).is_some() {
                sites.entry(address).or_insert(site);
            }
        }
        Ok(Self(sites))
    }

    pub(crate) fn get(&self, address: u64) -> Option<&Site> {
        self.0.get(&address)
    }

    /// Their addresses, sorted.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = u64> {
        self.0.keys().copied()
    }
}

impl Site {
    /// The name of the function, given the symbol of the site.
    pub(crate) fn name(&self, symbol: &str) -> String {
        let typed = (self.depth > 0).then(|| function(&demangle(symbol), self.depth)).flatten();
        typed.unwrap_or_else(|| self.name.clone()) + &self.suffix
    }

    /// Whether it stands for a stretch of code that was given a name, and not for a function.
    pub(crate) fn is_scope(&self) -> bool {
        self.depth == 0
    }

    /// Where the function is defined.
    pub(crate) fn location(&self) -> Option<Location> {
        let line = (self.line != 0).then_some(self.line);
        (!self.file.is_empty()).then(|| Location { file: self.file.clone(), line })
    }
}

/// The function in the type of a site: what stands in `…teeperf_site<NAME::{closure}>>`, written as a function is.
fn function(symbol: &str, depth: u8) -> Option<String> {
    let (_, marked) = symbol.split_once(MARKER)?;
    let mut name = marked.strip_suffix(">>")?;
    for _ in 0..depth {
        let (function, closure) = name.rsplit_once("::")?;
        if !closure.starts_with('{') {
            return None;
        }
        name = function;
    }
    Some(as_function(bare(name)))
}

/// `Type<T>::method` of `<Type<T>>::method`, as one of the manglings has it.
fn bare(name: &str) -> std::borrow::Cow<'_, str> {
    let mut depth = 0_usize;
    for (at, letter) in name.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' if !name[..at].ends_with('-') => depth = depth.saturating_sub(1),
            // That of a trait's implementation.
            ' ' if depth == 1 && name[at..].starts_with(" as ") => break,
            _ => {}
        }
        if depth == 0 {
            return match name[..at].strip_prefix('<') {
                Some(of) => format!("{of}{}", &name[at + 1..]).into(),
                None => name.into(),
            };
        }
    }
    name.into()
}

/// `function::<T>` of `function<T>`.
fn as_function(name: std::borrow::Cow<'_, str>) -> String {
    let mut depth = 0_usize;
    let found = name.rmatch_indices(['<', '>']).find(|&(at, bracket)| {
        match bracket {
            ">" if name[..at].ends_with('-') => {}
            ">" => depth += 1,
            _ => depth = depth.saturating_sub(1),
        }
        bracket == "<" && depth == 0
    });
    match found {
        Some((at, _)) if at > 0 && name.ends_with('>') && !name[..at].ends_with("::") => {
            format!("{}::{}", &name[..at], &name[at..])
        }
        _ => name.into_owned(),
    }
}

/// The sites in notes, which are alike in both classes.
fn read(content: &[u8], is_64: bool, endian: Endianness) -> Vec<(u64, Site)> {
    type Notes<'a> = NoteIterator<'a, elf::FileHeader64<Endianness>>;
    let Ok(mut notes) = Notes::new(endian, 4, content) else { return Vec::new() };
    let mut sites = Vec::new();
    while let Ok(Some(note)) = notes.next() {
        if note.name() == OWNER && note.n_type(endian) == SITE {
            let is_little = endian == Endianness::Little;
            sites.extend(Reader { rest: note.desc(), is_64, is_little }.site());
        }
    }
    sites
}

struct Reader<'a> {
    rest: &'a [u8],
    is_64: bool,
    is_little: bool,
}

impl Reader<'_> {
    fn site(&mut self) -> Option<(u64, Site)> {
        let address = self.number(if self.is_64 { 8 } else { 4 })?;
        let line = self.number(4)? as u32;
        let depth = self.number(1)? as u8;
        let [name, suffix, file] = [self.text()?, self.text()?, self.text()?];
        Some((address, Site { depth, line, name, suffix, file }))
    }

    fn number(&mut self, size: usize) -> Option<u64> {
        let (bytes, rest) = self.rest.split_at_checked(size)?;
        self.rest = rest;
        let add = |sum: u64, &byte: &u8| sum << 8 | u64::from(byte);
        Some(match self.is_little {
            true => bytes.iter().rev().fold(0, add),
            false => bytes.iter().fold(0, add),
        })
    }

    /// Up to the zero behind it.
    fn text(&mut self) -> Option<String> {
        let end = self.rest.iter().position(|&byte| byte == 0)?;
        let (bytes, rest) = self.rest.split_at(end);
        self.rest = &rest[1..];
        Some(String::from_utf8_lossy(bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_those_of_functions_with_either_mangling() {
        // Demangled symbols of rustc 1.95, legacy and v0.
        for (symbol, depth, name) in [
            ("core::ptr::drop_in_place<p::f::teeperf_site<p::f::{{closure}}>>", 1, "p::f"),
            ("core::ptr::drop_in_place::<p::f::teeperf_site<p::f::{closure#0}>>", 1, "p::f"),
            (
                "core::ptr::drop_in_place<p::f::teeperf_site<p::f<alloc::vec::Vec<u8>>::{{closure}}>>",
                1,
                "p::f::<alloc::vec::Vec<u8>>",
            ),
            (
                "core::ptr::drop_in_place<p::Foo<T>::own::teeperf_site<p::Foo<&str>::own::{{closure}}>>",
                1,
                "p::Foo<&str>::own",
            ),
            (
                "core::ptr::drop_in_place::<<p::Foo<_>>::own::teeperf_site<<p::Foo<&str>>::own::{closure#1}>>",
                1,
                "p::Foo<&str>::own",
            ),
            (
                "core::ptr::drop_in_place::<<p::Foo<_> as p::Tr>::m::teeperf_site<<p::Foo<u8> as p::Tr>::m<3>::{closure#0}>>",
                1,
                "<p::Foo<u8> as p::Tr>::m::<3>",
            ),
            (
                "core::ptr::drop_in_place<p::af::{{closure}}::teeperf_site<p::af<u8>::{{closure}}::{{closure}}>>",
                2,
                "p::af::<u8>",
            ),
            (
                "core::ptr::drop_in_place::<p::f::teeperf_site<p::f<fn(u8) -> u8>::{closure#0}>>",
                1,
                "p::f::<fn(u8) -> u8>",
            ),
            (
                "core::ptr::drop_in_place::<<fn(u8) -> u8 as p::Tr>::m::teeperf_site<<fn(u8) -> u8 as p::Tr>::m::{closure#0}>>",
                1,
                "<fn(u8) -> u8 as p::Tr>::m",
            ),
        ] {
            assert_eq!(function(symbol, depth).as_deref(), Some(name), "{symbol}");
        }
    }

    #[test]
    fn what_is_no_site_has_the_name_that_the_section_says() {
        let site = Site {
            depth: 2,
            line: 3,
            name: "p::f".into(),
            suffix: " (again)".into(),
            file: String::new(),
        };
        for symbol in ["", "main", "x::teeperf_site<p::f::{{closure}}>>", "x::teeperf_site<>>"] {
            assert_eq!(site.name(symbol), "p::f (again)");
        }
        assert_eq!(site.location(), None);
    }

    fn note(owner: &[u8], kind: u32, address: u64, is_64: bool, endian: Endianness) -> Vec<u8> {
        let number = |value: u64, size: usize| match endian {
            Endianness::Little => value.to_le_bytes()[..size].to_vec(),
            Endianness::Big => value.to_be_bytes()[8 - size..].to_vec(),
        };
        let address = number(address, if is_64 { 8 } else { 4 });
        let site = [address, number(258, 4), b"\x02p::f\0\0a.rs\0".to_vec()].concat();
        let sizes = [owner.len() as u64 + 1, site.len() as u64, kind.into()];
        let head: Vec<u8> = sizes.iter().flat_map(|&size| number(size, 4)).collect();
        let mut bytes = [&head, owner, b"\0", &site].concat();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn notes_are_read_in_either_class_and_order_up_to_what_is_not_whole() {
        for (is_64, endian) in [
            (true, Endianness::Little),
            (true, Endianness::Big),
            (false, Endianness::Little),
            (false, Endianness::Big),
        ] {
            let made = |owner, kind, address| note(owner, kind, address, is_64, endian);
            let ours = made(OWNER, SITE, 0x1234);
            let others = [made(b"Teeperf", SITE, 1), made(OWNER, SITE + 1, 2)].concat();
            let bytes = [&*ours, &others, &made(OWNER, SITE, 0x5678)].concat();
            let found = |bytes: &[u8]| -> Vec<u64> {
                let sites = read(bytes, is_64, endian);
                for (_, site) in &sites {
                    assert_eq!((site.depth, site.line, &*site.name), (2, 258, "p::f"));
                    assert_eq!(site.location().unwrap().file, "a.rs");
                }
                sites.iter().map(|site| site.0).collect()
            };
            assert_eq!(found(&bytes), [0x1234, 0x5678]);
            for length in ours.len() + 1..bytes.len() - 4 {
                assert_eq!(found(&bytes[..length]), [0x1234], "{length}");
            }
        }
    }

    #[test]
    fn a_site_that_is_cut_short_is_none() {
        let whole = note(OWNER, SITE, 0x1234, true, Endianness::Little);
        for size in 0..23u8 {
            let mut bytes = whole.clone();
            bytes[4] = size;
            bytes.truncate(20 + usize::from(size).next_multiple_of(4));
            assert!(read(&bytes, true, Endianness::Little).is_empty(), "{size}");
        }
    }

    proptest! {
        #[test]
        fn any_symbol_has_some_name(symbol in "[<>:{} a-]{0,40}", depth in 0u8..4) {
            let _ = function(&format!("teeperf_site<{symbol}>>"), depth);
        }
    }
}
