//! Whose a function is, by its symbol: of the crate that has its definition in it, whatever types it is made for (rustc book, v0
//! Symbol Format).

/// The crate that a symbol's function is defined in; none where it is no symbol of this form. Glue that the compiler makes between
/// functions is nobody's: then the name is empty.
pub(super) fn owner(symbol: &str) -> Option<String> {
    let mut rest = symbol.strip_prefix("_R")?;
    if rest.starts_with("NS") {
        return Some(String::new());
    }
    loop {
        let tag = rest.chars().next()?;
        rest = &rest[tag.len_utf8()..];
        match tag {
            // A crate; what was behind it is within.
            'C' => return Some(identifier(rest)),
            // What is in something: `a::b`; with a letter for what it is.
            'N' => rest = rest.get(1..)?,
            // With types: `a::<T>`.
            'I' => {}
            // In an `impl`, whose place is said first.
            'M' | 'X' => rest = behind_number(rest),
            // A trait's own function, for a type, which is said first: the trait is told once all is readable.
            'Y' => return Some(trait_of(&teeperf_symbols::demangle(symbol))),
            _ => return Some(String::new()),
        }
    }
}

/// Whether a symbol that names no crate is one of those that the compiler makes by itself.
pub(super) fn is_compilers(symbol: &str) -> bool {
    symbol == "main"
        || ["_ZN", "__rust", "rust_", "llvm.", "__rdl_", "__rg_"]
            .iter()
            .any(|start| symbol.starts_with(start))
}

/// Behind what tells names that are alike apart: `s`, a number, `_`.
fn behind_number(text: &str) -> &str {
    match text.strip_prefix('s').and_then(|rest| rest.split_once('_')) {
        Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_alphanumeric()) => rest,
        _ => text,
    }
}

/// The name that stands there: its length, and itself.
fn identifier(text: &str) -> String {
    let text = behind_number(text);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let length: usize = text[..digits].parse().unwrap_or(0);
    let name = &text[digits..];
    // So one that begins with a digit or with this itself is kept apart from its length.
    let name = name.strip_prefix('_').unwrap_or(name);
    name.get(..length).unwrap_or_default().to_owned()
}

/// The crate of the trait in `<T as a::Trait>::f`.
fn trait_of(readable: &str) -> String {
    let mut depth = 0;
    let bytes = readable.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' | b')' | b']' | b'}' => depth -= 1,
            b' ' if depth == 1 && readable[at..].starts_with(" as ") => {
                let rest = &readable[at + 4..];
                let end =
                    rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                return rest[..end].to_owned();
            }
            _ => {}
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_functions_are() {
        for (symbol, crate_name) in [
            ("_RNvCs6xxl1lAjzDf_1a4main", "a"),
            ("_RNCNvCs6xxl1lAjzDf_1a4main0B3_", "a"),
            ("_RINvCs6xxl1lAjzDf_1a3genhEB2_", "a"),
            ("_RNvMCs6xxl1lAjzDf_1aNtB2_5Stack4push", "a"),
            ("_RNvXs_Cs6xxl1lAjzDf_1aNtB4_6SquareNtB4_5Shape4area", "a"),
            ("_RINvNtCsgEmfK2I1SDS_4core3ptr13drop_in_placeNtCs6xxl1lAjzDf_1a3FooEB1_", "core"),
            ("_RNvCs1234_7_9lives_4main", "9lives_"),
            ("_RNSvYNCNvCs1_1a1f0INtNtNtCs2_4core3ops8function6FnOnceuE9call_once6vtableBe_", ""),
            ("_RNvYNtCs1_1a6SquareNtCs2_1b8Doubling5twiceB4_", "b"),
        ] {
            assert_eq!(owner(symbol).as_deref(), Some(crate_name), "{symbol}");
        }
        assert_eq!(owner("for_c"), None);
        assert_eq!(trait_of("<fn(a::B) -> <c::D as e::F>::G as h::I<j>>::k"), "h");
    }

    #[test]
    fn whatever_stands_there() {
        for symbol in [
            "_R",
            "_RN",
            "_RNv",
            "_RNvC",
            "_RNvCs",
            "_RNvC99999999999999999999a",
            "_RNé",
            "_RXs_",
            "_RY",
        ] {
            let _ = owner(symbol);
        }
    }
}
