//! How a function may be called by those who look for it: with or without parameters, template arguments, and what
//! compilers put behind the names of copies.

use std::borrow::Cow;

/// What may stand behind parameters.
const QUALIFIERS: [&str; 6] = [" const", " volatile", " noexcept", " &&", " &", "&"];

/// The name itself, which is demangled, and what else it is known by, each once:
///
/// - without what compilers put behind it, see [`without_copy`];
/// - in C++ without the type that is returned, which names of templates have;
/// - without parameters;
/// - without template or generic arguments, with parameters and without.
///
/// ```
/// let names = teeperf_symbols::spellings("void ns::Table<int>::find<char>(char) const");
/// assert!(names.contains(&"ns::Table<int>::find<char>".into()) && names.contains(&"ns::Table::find".into()));
/// ```
pub fn spellings(name: &str) -> Vec<Cow<'_, str>> {
    let mut all: Vec<Cow<'_, str>> = vec![name.into()];
    let mut add = |spelling: Cow<'_, str>| {
        if !all.contains(&spelling) {
            all.push(Cow::Owned(spelling.into_owned()));
        }
    };
    let plain = without_copy(name);
    add(plain.into());
    let (called, parameters) = match parameters(plain) {
        Some(at) => (without_type(&plain[..at]), &plain[at..]),
        None => (plain, ""),
    };
    let bare = without_arguments(called);
    for head in [called, &bare] {
        add(format!("{head}{parameters}").into());
        add(head.into());
    }
    all
}

/// A name without what compilers put behind it for copies of a function (gcc: `.constprop.0`, `.isra.0`, `.part.0`,
/// `.cold`, `.lto_priv.0`; LLVM: `.llvm.1234`; demangled: ` [clone .cold]`) and without Rust's legacy hash (`::h` and 16
/// hexadecimal digits).
pub fn without_copy(name: &str) -> &str {
    const COPIES: [&str; 6] = ["constprop", "isra", "part", "cold", "lto_priv", "llvm"];
    let mut name = name.split(" [clone ").next().unwrap_or(name);
    while let Some((before, last)) = name.rsplit_once('.') {
        let number = !last.is_empty() && last.bytes().all(|c| c.is_ascii_digit());
        let (before, kind) = match before.rsplit_once('.').filter(|_| number) {
            Some((before, kind)) => (before, kind),
            None => (before, last),
        };
        if before.is_empty() || !COPIES.contains(&kind) {
            break;
        }
        name = before;
    }
    match name.rsplit_once("::h") {
        Some((before, hash)) if hash.len() == 16 && hash.bytes().all(|c| c.is_ascii_hexdigit()) => {
            before
        }
        _ => name,
    }
}

/// Where the parameters begin, if there are any.
fn parameters(name: &str) -> Option<usize> {
    let mut end = name;
    while let Some(shorter) = QUALIFIERS.iter().find_map(|word| end.strip_suffix(word)) {
        end = shorter;
    }
    if !end.ends_with(')') {
        return None;
    }
    let mut depth = 0usize;
    let open = end.char_indices().rev().find(|&(_, c)| {
        match c {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    let at = open?.0;
    // Of `operator()` and `(anonymous namespace)` the brackets are the name's.
    let is_name = at == 0
        || (end.ends_with("operator()") && at + 2 == end.len())
        || &end[at..] == "(anonymous namespace)";
    (!is_name).then_some(at)
}

/// Whether `operator` stands here, as a word.
fn is_operator(name: &str, at: usize) -> bool {
    const WORD: &str = "operator";
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    name[at..].strip_prefix(WORD).is_some_and(|rest| !rest.starts_with(is_letter))
        && !name[..at].ends_with(is_letter)
}

/// A name in front of parameters without the type of what is returned.
fn without_type(head: &str) -> &str {
    let (mut depth, mut begin) = (0usize, 0);
    for (at, c) in head.char_indices() {
        match c {
            'o' if depth == 0 && is_operator(head, at) => break,
            '<' | '(' | '{' | '[' => depth += 1,
            '>' | ')' | '}' | ']' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 => begin = at + 1,
            _ => {}
        }
    }
    &head[begin..]
}

/// A name without its arguments of templates, `<…>`, or generics, `::<…>`. A type that a method is of, such as
/// `<T as Trait>::f` begins with, is part of the name; so is what follows `operator`.
fn without_arguments(head: &str) -> String {
    let mut out = String::with_capacity(head.len());
    let (mut depth, mut kept) = (0usize, false);
    let mut before = ' ';
    for (at, c) in head.char_indices() {
        match c {
            'o' if depth == 0 && is_operator(head, at) => return out + &head[at..],
            '<' => {
                if depth == 0 {
                    kept = out.is_empty() || head[at..].starts_with("<impl ");
                    if !kept && out.ends_with("::") {
                        out.truncate(out.len() - 2);
                    }
                }
                depth += 1;
                if kept {
                    out.push(c);
                }
            }
            '>' if before != '-' && depth > 0 => {
                depth -= 1;
                if kept {
                    out.push(c);
                }
            }
            _ if depth == 0 || kept => out.push(c),
            _ => {}
        }
        before = c;
    }
    // Brackets that do not match are part of the name.
    if depth == 0 { out } else { head.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demangle;
    use proptest::prelude::*;

    #[test]
    fn copies_are_the_function_itself() {
        for (name, expected) in [
            ("parse", "parse"),
            ("parse.constprop.0", "parse"),
            ("parse.isra.0.constprop.12", "parse"),
            ("parse.cold", "parse"),
            ("a::b.llvm.123456", "a::b"),
            ("f(int) [clone .isra.0]", "f(int)"),
            ("a::b::h0123456789abcdef", "a::b"),
            ("a::b::h0123", "a::b::h0123"),
            ("step.2", "step.2"),
            (".cold", ".cold"),
            ("program+0x12", "program+0x12"),
        ] {
            assert_eq!(without_copy(name), expected, "{name}");
        }
    }

    #[test]
    fn a_function_is_known_by_its_names() {
        // Mangled by gcc 12 and rustc 1.95, where they begin with `_`.
        for (name, expected) in [
            ("main", &["main"][..]),
            ("_Z3addii", &["add(int, int)", "add"]),
            ("_Z3addii.constprop.0", &["add(int, int)", "add"]),
            (
                "_Z4swapIiEvRT_S1_",
                &[
                    "void swap<int>(int&, int&)",
                    "swap<int>(int&, int&)",
                    "swap<int>",
                    "swap(int&, int&)",
                    "swap",
                ],
            ),
            (
                "_ZNK5shape4AreacvbEv",
                &["shape::Area::operator bool() const", "shape::Area::operator bool"],
            ),
            ("_ZN1AclEi", &["A::operator()(int)", "A::operator()"]),
            ("_Znwm", &["operator new(unsigned long)", "operator new"]),
            (
                "_ZN12_GLOBAL__N_14anonEi",
                &["(anonymous namespace)::anon(int)", "(anonymous namespace)::anon"],
            ),
            ("ns::(anonymous namespace)", &["ns::(anonymous namespace)"]),
            (
                "std::vector<int, std::allocator<int> > ns::g<int>()",
                &["ns::g<int>()", "ns::g<int>", "ns::g()", "ns::g"],
            ),
            (
                "f(int)::{lambda(char)#1}::operator()(char) const",
                &["f(int)::{lambda(char)#1}::operator()"],
            ),
            (
                "bool operator< <int>(A<int> const&)",
                &["operator< <int>(A<int> const&)", "operator< <int>"],
            ),
            ("_RNvCs4fqI2P2rA04_7mycrate3foo", &["mycrate::foo"]),
            ("a::B<c::D>::f::<fn(u8) -> u8>", &["a::B::f"]),
            ("<a::B<c> as d::E>::f::<u8>", &["<a::B<c> as d::E>::f"]),
            ("a::<impl b::C for d::E<u8>>::f", &["a::<impl b::C for d::E<u8>>::f"]),
            ("f [polled again]", &["f [polled again]"]),
            ("[no room]", &["[no room]"]),
        ] {
            let name = demangle(name);
            let found = spellings(&name);
            for expected in expected {
                assert!(found.iter().any(|name| name == expected), "{expected} of {found:?}");
            }
            if found.len() > 1 {
                assert!(!found.iter().any(|name| name.is_empty()), "{found:?}");
            }
        }
        assert_eq!(spellings("main"), ["main"]);
        assert_eq!(spellings("f [polled again]"), ["f [polled again]"]);
    }

    proptest! {
        #[test]
        fn any_name_has_names(name in r"[ a-o<>(){}:&~.\[\]*-]{0,60}|(operator|::|<|>|\(|\)| |ö|\[clone ){0,20}") {
            prop_assert_eq!(&*spellings(&name)[0], name.as_str());
        }
    }
}
