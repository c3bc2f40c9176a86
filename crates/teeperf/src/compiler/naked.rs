//! Naked functions where the compiler puts hooks into the source. gcc, and clang before version 17,
//! put hooks into naked functions too, and these hooks overwrite the arguments. The program then
//! computes wrong results without a word, so the wrapper warns.

use super::arguments::Request;
use super::probe::{Family, Known};
use std::path::Path;

/// clang from this version on puts no hooks into naked functions (LLVM, review D149721).
const SOUND_CLANG: u32 = 17;

/// A function with this attribute has no hooks.
const NO_HOOKS: &str = "no_instrument_function";

/// Warns for each source that seems to have naked functions. Headers are not looked at.
pub(super) fn warn(request: &Request, known: &Known) {
    if known.family == Family::Clang && known.version >= SOUND_CLANG {
        return;
    }
    for source in request.sources.iter().map(Path::new) {
        // The compiler says why it cannot read a file.
        let Ok(text) = std::fs::read(source) else { continue };
        if let Some(line) = line_of(&String::from_utf8_lossy(&text)) {
            eprintln!(
                "teeperf: warning: {}:{line}: hooks of the source break naked functions with this \
                 compiler: give them __attribute__(({NO_HOOKS}))",
                source.display()
            );
        }
    }
}

/// The first line, counted from 1, that has a name with `naked` in it. None where the source knows
/// the attribute that leaves hooks out.
fn line_of(source: &str) -> Option<usize> {
    if source.contains(NO_HOOKS) {
        return None;
    }
    let code = without_comments(source);
    code.lines().position(|line| line.to_ascii_lowercase().contains("naked")).map(|at| at + 1)
}

/// A source with the lines it has, but without comments and texts.
fn without_comments(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest[2..].find("*/").map_or(rest.len(), |end| end + 4),
            '"' => text_length(rest),
            _ => {
                code.push(first);
                rest = &rest[first.len_utf8()..];
                continue;
            }
        };
        let (skipped, behind) = rest.split_at(length);
        code.extend(skipped.matches('\n'));
        rest = behind;
    }
    code
}

/// Bytes of the text that begins here, with both quotes.
fn text_length(rest: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            b'\\' => is_escaped = !is_escaped,
            // A text ends with its line at the latest, so that one quote alone hides little.
            b'"' | b'\n' if !is_escaped => return at + 1,
            _ => is_escaped = false,
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naked_functions_are_found() {
        assert_eq!(line_of("int a;\n__attribute__((naked)) void f(void) {}\n"), Some(2));
        assert_eq!(line_of("/* of\ntwo */ [[gnu::__naked__]] int f();"), Some(2));
        assert_eq!(line_of("char *s = \"\\\"\"; NAKED int f();"), Some(1));
        for without in [
            "int f() { return 1; } // a naked pointer",
            "/* naked",
            "char *s = \"naked \\\" naked\";",
            "__attribute__((naked, no_instrument_function)) int f();",
            "",
        ] {
            assert_eq!(line_of(without), None, "{without:?}");
        }
    }
}
