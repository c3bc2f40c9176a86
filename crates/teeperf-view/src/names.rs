//! Function names on a terminal: made harmless, and short enough. A name comes from a
//! recording that anybody may have made, so nothing in it may steer the terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns that a printable text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// The text with control characters, line ends and marks that turn the direction of
/// writing spelt out as `\x1b` or `\u{202e}`.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if !steers(c) {
            out.push(c);
        } else if (c as u32) < 0x100 {
            out.push_str(&format!("\\x{:02x}", c as u32));
        } else {
            out.push_str(&format!("\\u{{{:x}}}", c as u32));
        }
    }
    out
}

/// The same of each line.
pub fn printable_lines(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

/// Whether a character would move the cursor, colour the terminal or reorder the line:
/// Unicode's control characters, line and paragraph separators, bidirectional controls.
pub(crate) fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            | '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{feff}')
}

/// A printable name in at most `width` columns. What tells two C++ functions apart is
/// kept longest: first parameters give way to `(…)`, then template arguments to `<…>`,
/// then the middle to `…`. Of two methods of Rust it is type and trait: the modules that these
/// are in go first.
pub(crate) fn fit(name: &str, width: usize) -> String {
    let name = printable(name);
    if columns(&name) <= width {
        return name;
    }
    if let Some(short) = without_modules(&name).filter(|short| columns(short) <= width) {
        return short;
    }
    // Of a namespace that has no name nothing is lost.
    let name = name.replace("(anonymous namespace)::", "");
    let bare = collapse(&name, '(', ')');
    if columns(&bare) <= width {
        return bare;
    }
    let bare = collapse(&bare, '<', '>');
    cut_middle(&bare, width)
}

/// `<Type as Trait>::method` of `<a::Type as b::Trait>::method`.
fn without_modules(name: &str) -> Option<String> {
    let (types, method) = name.strip_prefix('<')?.rsplit_once(">::")?;
    let mut out = String::from("<");
    let mut rest = types;
    while let Some(at) = rest.find("::") {
        let begin = |c: char| !(c.is_alphanumeric() || c == '_');
        let path = rest[..at]
            .rfind(begin)
            .map_or(0, |before| before + rest[before..].chars().next().map_or(1, char::len_utf8));
        out.push_str(&rest[..path]);
        rest = &rest[at + 2..];
    }
    Some(out + rest + ">::" + method)
}

/// A name for a frame of `width` columns. What says least about the function goes first:
/// parameters, template arguments and return type, then the scopes around it, then its end.
pub(crate) fn label(name: &str, width: usize) -> String {
    let name = printable(name);
    if columns(&name) <= width {
        return name;
    }
    let bare = bare(&name);
    let mut rest = bare.as_str();
    while let Some((_, inner)) = rest.split_once("::").filter(|_| columns(rest) > width) {
        rest = inner;
    }
    if columns(rest) <= width { rest.into() } else { cut_end(rest, width) }
}

/// The name without parameters, template arguments and return type; as it is where
/// brackets do not match, or are part of the name.
fn bare(name: &str) -> String {
    if name.contains("operator") || name.starts_with('[') {
        return name.into();
    }
    let mut bare = String::with_capacity(name.len());
    let mut depth = 0usize;
    for c in name.replace("(anonymous namespace)::", "").chars() {
        match c {
            '(' | '<' => depth += 1,
            ')' | '>' => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return name.into(),
            },
            c if depth == 0 => bare.push(c),
            _ => {}
        }
    }
    let bare = bare.trim_end_matches(" const").trim();
    let bare = bare.rsplit(' ').next().unwrap_or_default().trim_start_matches("::");
    if depth > 0 || bare.is_empty() { name.into() } else { bare.into() }
}

/// A text as it is where it has room, else its first columns and `…`.
pub(crate) fn cut_end(name: &str, width: usize) -> String {
    if columns(name) <= width {
        return name.into();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in name.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        out.push(c);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// Every outermost bracketed part that holds something replaced by `…`; as it was where
/// the brackets do not match (as in `operator<`, `operator->`).
fn collapse(name: &str, open: char, close: char) -> String {
    let mut out = String::with_capacity(name.len());
    let mut depth = 0usize;
    for c in name.chars() {
        if c == open {
            depth += 1;
            if depth == 1 {
                out.push(open);
            }
        } else if c == close {
            let Some(less) = depth.checked_sub(1) else { return name.into() };
            depth = less;
            if depth == 0 {
                out.push(close);
            }
        } else if depth == 0 {
            out.push(c);
        } else if depth == 1 && out.ends_with(open) {
            out.push('…');
        }
    }
    if depth == 0 { out } else { name.into() }
}

/// A printable text as it is where it has room, else its first and last columns with `…`
/// between; the tail, where a function's own name stands, gets the larger half.
pub(crate) fn cut_middle(name: &str, width: usize) -> String {
    if columns(name) <= width {
        return name.into();
    }
    let Some(room) = width.checked_sub(1) else { return String::new() };
    let head_room = room * 2 / 5;
    let mut used = 0;
    let mut out = String::new();
    for c in name.chars() {
        used += c.width().unwrap_or(0);
        if used > head_room {
            break;
        }
        out.push(c);
    }
    out.push('…');
    let mut used = 0;
    let mut tail = name.len();
    for (at, c) in name.char_indices().rev() {
        used += c.width().unwrap_or(0);
        if used > room - head_room {
            break;
        }
        tail = at;
    }
    out.push_str(&name[tail..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn terminal_sequences_are_spelt_out() {
        assert_eq!(printable("a\x1b[31mb\n"), "a\\x1b[31mb\\x0a");
        assert_eq!(printable("x\u{202e}y"), "x\\u{202e}y");
        assert_eq!(printable("größe"), "größe");
    }

    #[test]
    fn parameters_go_first_then_arguments_then_the_middle() {
        let name = "std::vector<int, std::allocator<int>>::push_back(int const&)";
        assert_eq!(fit(name, 60), name);
        assert_eq!(fit(name, 59), "std::vector<int, std::allocator<int>>::push_back(…)");
        assert_eq!(fit(name, 40), "std::vector<…>::push_back(…)");
        assert_eq!(fit(name, 16), "std::v…h_back(…)");
        assert_eq!(fit("a::(anonymous namespace)::find(int)", 12), "a::find(…)");
    }

    #[test]
    fn types_and_traits_of_methods_are_kept_before_their_modules() {
        let name =
            "<program::kinds::Holder<core::num::Wrapping<u8>> as program::kinds::Shape>::area::<3>";
        assert_eq!(fit(name, 90), name);
        assert_eq!(fit(name, 50), "<Holder<Wrapping<u8>> as Shape>::area::<3>");
        assert_eq!(fit(name, 20), "<…>::area::<…>");
        assert_eq!(fit("<größe::B as c::D>::e", 15), "<B as D>::e");
    }

    #[test]
    fn labels_keep_the_functions_own_name() {
        let name = "void ns::Table<int, std::less<int> >::find(int const&) const";
        assert_eq!(label(name, 60), name);
        assert_eq!(label(name, 59), "ns::Table::find");
        assert_eq!(label(name, 12), "Table::find");
        assert_eq!(label(name, 10), "find");
        assert_eq!(label(name, 3), "fi…");
        assert_eq!(label("a::(anonymous namespace)::f(int)", 8), "a::f");
        assert_eq!(label("<crate::T as Trait>::go", 10), "go");
        assert_eq!(label("x::operator()(int)", 12), "operator()(…");
        assert_eq!(label("[call lost]", 5), "[cal…");
    }

    #[test]
    fn empty_brackets_stay_empty() {
        assert_eq!(
            fit("function_object::operator()(int, int)", 32),
            "function_object::operator()(…)"
        );
    }

    #[test]
    fn unmatched_brackets_are_left() {
        assert_eq!(collapse("operator->", '<', '>'), "operator->");
        assert_eq!(collapse("operator<", '<', '>'), "operator<");
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(columns("漢字"), 4);
        assert_eq!(columns(&fit("漢字漢字漢字", 7)), 7);
    }

    proptest! {
        #[test]
        fn never_wider_than_asked(name in ".{0,80}", width in 0usize..90) {
            prop_assert!(columns(&fit(&name, width)) <= width);
            prop_assert!(columns(&label(&name, width)) <= width);
        }
    }
}
