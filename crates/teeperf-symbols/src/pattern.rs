//! Patterns for names of functions, as users write them.

use regex_lite::{Regex, RegexBuilder};
use std::fmt;

/// Which names are meant:
///
/// * `/regular expression/`: names in which it is found;
/// * with `*`, `?` or `[…]` in it: a glob, for whole names;
/// * anything else: that name.
///
/// The second and the third also mean C++ functions by their names without parameters: `parse`, `ns::parse` and
/// `operator()` mean all overloads.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Name,
    Glob(Regex),
    Regex(Regex),
}

/// Why a pattern is none.
#[derive(Debug, thiserror::Error)]
#[error("{pattern:?} is no pattern: {why}")]
pub struct PatternError {
    pattern: String,
    why: String,
}

/// Most bytes that a compiled expression may take.
const MOST_BYTES: usize = 1 << 20;
/// Longest pattern.
const LONGEST: usize = 4096;

impl Pattern {
    /// Reads one.
    ///
    /// # Errors
    ///
    /// When it is empty, no regular expression, or too long.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        let refuse = |why: &str| PatternError { pattern: text.into(), why: why.into() };
        if text.is_empty() || text.len() > LONGEST {
            return Err(refuse("it is empty, or longer than 4,096 bytes"));
        }
        let compile = |expression: &str| {
            let compiled = RegexBuilder::new(expression).size_limit(MOST_BYTES).build();
            compiled.map_err(|error| refuse(&error.to_string()))
        };
        let inner = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        let kind = match inner {
            Some(expression) if !expression.is_empty() => Kind::Regex(compile(expression)?),
            _ if text.contains(['*', '?', '[']) => Kind::Glob(compile(&as_expression(text))?),
            _ => Kind::Name,
        };
        Ok(Self { text: text.to_owned(), kind })
    }

    /// Whether a demangled name is meant.
    pub fn means(&self, name: &str) -> bool {
        match &self.kind {
            Kind::Regex(expression) => expression.is_match(name),
            Kind::Glob(expression) => {
                expression.is_match(name) || expression.is_match(without_parameters(name))
            }
            Kind::Name => self.text == name || self.text == without_parameters(name),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

/// A glob as a regular expression. A bracket that is not closed stands for itself.
fn as_expression(glob: &str) -> String {
    let mut expression = String::from("^(?s:");
    let mut rest = glob;
    while let Some(next) = rest.chars().next() {
        let mut taken = next.len_utf8();
        match next {
            '*' => expression.push_str(".*"),
            '?' => expression.push('.'),
            '[' => match rest[1..].char_indices().skip(1).find(|&(_, c)| c == ']') {
                Some((end, _)) => {
                    let set = &rest[1..=end];
                    let (is_not, set) = match set.strip_prefix('!') {
                        Some(set) if !set.is_empty() => ("^", set),
                        _ => ("", set),
                    };
                    let set = set.replace('\\', "\\\\").replace('[', "\\[").replace('^', "\\^");
                    let set = set.replace('&', "\\&").replace('~', "\\~");
                    expression.push_str(&format!("[{is_not}{set}]"));
                    taken = end + 2;
                }
                None => expression.push_str("\\["),
            },
            other => expression.push_str(&regex_lite::escape(other.encode_utf8(&mut [0; 4]))),
        }
        rest = &rest[taken..];
    }
    expression + ")$"
}

/// A C++ function's name without its parameters and what stands behind them; without its return type, where it is
/// a template's. Any other name as it is.
fn without_parameters(name: &str) -> &str {
    let mut depth = 0_u32;
    let mut begins = 0;
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'(' if depth == 0 => {
                let (before, rest) = (&name[begins..at], &name[at..]);
                // `(anonymous namespace)` and `operator()` are parts of names.
                if rest.starts_with("(anonymous namespace)") || before.ends_with("operator") {
                    depth += 1;
                } else {
                    return before;
                }
            }
            b'<' | b'(' | b'[' | b'{' if !is_of_operator(name, at) => depth += 1,
            b'>' | b')' | b']' | b'}' if !is_of_operator(name, at) => {
                depth = depth.saturating_sub(1)
            }
            // In front of it stands a return type, unless it is `operator new` or a conversion.
            b' ' if depth == 0 && !name[begins..at].ends_with("operator") => begins = at + 1,
            _ => {}
        }
    }
    name
}

/// Whether a sign is of the name of an operator, such as `operator<<` or `operator->`.
fn is_of_operator(name: &str, at: usize) -> bool {
    let before = name[..at].trim_end_matches(['<', '>', '-', '=']);
    before.ends_with("operator") && at - before.len() < 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn means(pattern: &str, name: &str) -> bool {
        Pattern::new(pattern).unwrap().means(name)
    }

    #[test]
    fn names_globs_and_expressions() {
        assert!(means("parse", "parse") && !means("parse", "parse_all"));
        assert!(means("parse*", "parse_all") && !means("parse*", "my_parse"));
        assert!(means("p?rse", "parse") && !means("p?rse", "prse"));
        assert!(means("[a-c]x", "bx") && !means("[a-c]x", "dx"));
        assert!(means("[!a-c]x", "dx") && !means("[!a-c]x", "bx"));
        assert!(means("[x", "[x") || !means("[x", "x"));
        assert!(means("/^par|end$/", "the_end") && !means("/^par|end$/", "ending"));
        assert!(means("a.b", "a.b") && !means("a.*", "axb"));
    }

    #[test]
    fn functions_of_cpp_are_meant_without_their_parameters() {
        let sum = "shape::Area::sum(std::vector<int, std::allocator<int> > const&) const";
        assert!(means("shape::Area::sum", sum) && means("shape::*", sum) && means(sum, sum));
        assert!(!means("sum", sum));
        assert!(means("swap<int>", "void swap<int>(int&, int&)"));
        assert!(means("(anonymous namespace)::f", "(anonymous namespace)::f(int)"));
        assert!(means("A::operator()", "A::operator()(int) const"));
        assert!(means("operator<<", "operator<<(std::ostream&, A const&)"));
        assert!(means("A::operator->", "A::operator->()"));
        assert!(means("operator new", "operator new(unsigned long)"));
        assert!(means("A::operator bool", "A::operator bool() const"));
        assert!(means("<T as core::any::Any>::type_id", "<T as core::any::Any>::type_id"));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        assert!(Pattern::new("").is_err());
        assert!(Pattern::new("/(/").unwrap_err().to_string().contains("/(/"));
        assert!(Pattern::new("[z-a]").is_err());
        assert!(Pattern::new(&"x".repeat(LONGEST + 1)).is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_a_pattern_or_none(text in "[ -~]{0,20}", name in "[ -~]{0,30}") {
            if let Ok(pattern) = Pattern::new(&text) {
                pattern.means(&name);
            }
            without_parameters(&name);
        }

        #[test]
        fn a_name_means_itself(name in "[a-z_][a-z0-9_:<>, ]{0,20}") {
            prop_assert!(means(&name, &name));
        }
    }
}
