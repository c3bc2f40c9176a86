//! Patterns: functions by name, or by the file that they stand in.

use crate::Function;
use regex_lite::{Regex, RegexBuilder};
use std::fmt::{self, Display};
use std::str::FromStr;

/// In front of what names files.
const FILE: &str = "file:";

/// Some functions.
///
/// | pattern | functions |
/// | --- | --- |
/// | `parse` | of this name: in C++ all of it, or with parameters, `parse(int)`, and template arguments, `parse<int>` |
/// | `ns::*`, `get_?` | a glob: `*` stands for any text, `?` for one character; `\` takes what it stands for away |
/// | `/^get_[xy]/` | a regular expression, which has to be found in the name |
/// | `file:a.c` | of each file of this name |
/// | `file:src/a.c` | of files whose path ends so, whole names of folders compared; of one file where it begins with `/` |
/// | `file:third_party/` | of files below a folder of this name |
/// | `file:src/**/*.h` | a glob: `*` and `?` stay within a name, `**` does not |
///
/// ```
/// # use teeperf_select::Pattern;
/// let pattern: Pattern = "file:src/*.c".parse().unwrap();
/// assert!(pattern.fits_file("/home/me/project/src/a.c") && !pattern.fits_file("/src/deep/a.c"));
/// ```
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    is_file: bool,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    /// This text alone.
    Exact(String),
    Regex(Regex),
}

/// Text that is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no pattern: {why}")]
pub struct BadPattern {
    text: String,
    why: String,
}

impl Pattern {
    /// Of the function of just this name.
    pub fn of_name(name: &str) -> Self {
        let mut text = String::new();
        for (at, c) in name.char_indices() {
            let means_something = matches!(c, '*' | '?' | '\\' | '@')
                || (at == 0 && (c == '/' || name.starts_with(FILE)));
            if means_something {
                text.push('\\');
            }
            text.push(c);
        }
        Self { text, is_file: false, test: Test::Exact(name.to_owned()) }
    }

    /// Of functions with this text in their name: not in arguments, and not in a mangled name.
    ///
    /// # Errors
    ///
    /// When the text has more than one line.
    pub fn of_part(part: &str) -> Result<Self, BadPattern> {
        format!("/^(_?|([^_(]|_[^Z(])[^(]*){}/", regex_lite::escape(part)).parse()
    }

    /// Of this text, for a build.
    ///
    /// # Errors
    ///
    /// When it is none; and where it names a module, which is not known when code is compiled.
    pub fn of_build(text: &str) -> Result<Self, BadPattern> {
        match split_module(text) {
            (_, None) => text.parse(),
            (_, Some(_)) => Err(BadPattern {
                text: text.to_owned(),
                why: "which module code will be in (@) is not known when it is compiled; \\@ is the sign itself".into(),
            }),
        }
    }

    /// Whether it is of files.
    pub fn is_of_files(&self) -> bool {
        self.is_file
    }

    /// The name that it is, where nothing in it stands for other text.
    pub fn as_name(&self) -> Option<&str> {
        match &self.test {
            Test::Exact(name) => Some(name),
            Test::Regex(_) => None,
        }
    }

    /// Whether this function fits.
    pub fn fits(&self, function: &Function<'_>) -> bool {
        self.fits_name(function.names.iter().copied())
            || function.files.iter().any(|path| self.fits_file(path))
    }

    /// Whether a function fits that has any of these names: as the linker knows it, and
    /// [`spellings`](teeperf_symbols::spellings) of that.
    pub fn fits_name<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> bool {
        !self.is_file && names.into_iter().any(|name| self.test.is_met(name))
    }

    /// Whether functions of the file fit: a path from the root on, without `.` and `..`.
    pub fn fits_file(&self, path: &str) -> bool {
        self.is_file && self.test.is_met(path)
    }
}

impl Test {
    fn is_met(&self, text: &str) -> bool {
        match self {
            Self::Exact(wanted) => wanted == text,
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

impl FromStr for Pattern {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Self, BadPattern> {
        let bad = |why: String| BadPattern { text: text.to_owned(), why };
        // Patterns stand in lines, of plans and of messages.
        if text.contains(['\n', '\r', '\0']) {
            return Err(bad("it has more than one line".into()));
        }
        let compiled = |regex: &str| {
            let built = RegexBuilder::new(regex).dot_matches_new_line(true).build();
            built.map_err(|error| bad(error.to_string()))
        };
        let file = text.strip_prefix(FILE);
        let is_regex = text.len() > 1 && text.starts_with('/') && text.ends_with('/');
        let test = match file {
            Some("" | "/") => return Err(bad(format!("{FILE} needs a path"))),
            Some(path) => Test::Regex(compiled(&path_regex(path))?),
            None if text.is_empty() => return Err(bad("it is empty".into())),
            None if is_regex => Test::Regex(compiled(&text[1..text.len() - 1])?),
            None if text.starts_with('/') => {
                return Err(bad(format!(
                    "a regular expression ends with /, a file begins with {FILE}"
                )));
            }
            None => match unescaped(text) {
                Some(name) => Test::Exact(name),
                None => Test::Regex(compiled(&format!("^{}$", glob_regex(text, ".", ".*")))?),
            },
        };
        Ok(Self { text: text.to_owned(), is_file: file.is_some(), test })
    }
}

impl Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

/// A pattern, and what stands behind an `@`: of a regular expression, which ends in a slash, it is its own, and behind a
/// `\` as well.
pub(crate) fn split_module(text: &str) -> (&str, Option<&str>) {
    if text.len() > 1 && text.ends_with('/') && text.starts_with('/') {
        return (text, None);
    }
    let (mut is_taken, mut found) = (false, None);
    for (at, c) in text.char_indices() {
        match c {
            '\\' => is_taken = !is_taken,
            '@' if !is_taken => found = Some(at),
            _ => is_taken = false,
        }
    }
    found.map_or((text, None), |at| (&text[..at], Some(&text[at + 1..])))
}

/// The name that a glob without `*` and `?` is.
fn unescaped(glob: &str) -> Option<String> {
    let mut name = String::new();
    let mut chars = glob.chars();
    while let Some(c) = chars.next() {
        match c {
            '*' | '?' => return None,
            '\\' => name.push(chars.next().unwrap_or('\\')),
            _ => name.push(c),
        }
    }
    Some(name)
}

/// A path that is not from the root on may begin below any folder; one that ends with `/` is a folder.
fn path_regex(path: &str) -> String {
    let (start, path) = match path.strip_prefix('/') {
        Some(rest) => ("^/", rest),
        None => ("(^|/)", path),
    };
    let path = path.strip_prefix("./").unwrap_or(path);
    match path.strip_suffix('/') {
        Some(folder) => format!("{start}{}/", glob_regex(folder, "[^/]", "[^/]*")),
        None => format!("{start}{}$", glob_regex(path, "[^/]", "[^/]*")),
    }
}

/// A regular expression for a glob, of what `?` and `*` stand for.
fn glob_regex(glob: &str, one: &str, any: &str) -> String {
    let mut regex = String::new();
    let mut rest = glob;
    while let Some(c) = rest.chars().next() {
        let (part, length) = match c {
            _ if any != ".*" && rest.starts_with("**/") => ("(.*/)?".to_owned(), 3),
            _ if rest.starts_with("**") => (".*".to_owned(), 2),
            '*' => (any.to_owned(), 1),
            '?' => (one.to_owned(), 1),
            '\\' => {
                let taken = rest[1..].chars().next();
                let literal = taken.unwrap_or('\\').to_string();
                (regex_lite::escape(&literal), 1 + taken.map_or(0, char::len_utf8))
            }
            _ => (regex_lite::escape(&c.to_string()), c.len_utf8()),
        };
        regex += &part;
        rest = &rest[length..];
    }
    regex
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
    }

    #[test]
    fn names() {
        for (text, fits, not) in [
            ("get", &["get"][..], &["get_x", "target", "Get"][..]),
            ("get_?", &["get_x"], &["get_", "get_xy"]),
            ("ns::*", &["ns::f(int)", "ns::a::b"], &["f", "other::ns::f"]),
            ("operator[]", &["operator[]"], &["operator[", "operator]"]),
            (r"f(char\*)", &["f(char*)"], &["f(char const*)"]),
            (r"f(char*)", &["f(char*)", "f(char const*)"], &["f(int)"]),
            ("/^get_[xy]/", &["get_x", "get_yes"], &["forget_x", "get_z"]),
            ("/a|b/", &["xax"], &["c"]),
            ("operator/", &["operator/"], &["operator"]),
            (r"memcpy\@plt", &["memcpy@plt"], &["memcpy"]),
        ] {
            for name in fits {
                assert!(pattern(text).fits_name([*name]), "{text} {name}");
                assert!(!pattern(text).fits_file(name));
            }
            for name in not {
                assert!(!pattern(text).fits_name([*name]), "{text} {name}");
            }
        }
    }

    #[test]
    fn files() {
        for (text, fits, not) in [
            ("a.c", &["/x/a.c", "/a.c"][..], &["/x/aa.c", "/x/a.c/b.c", "/x/axc"][..]),
            ("src/a.c", &["/p/src/a.c"], &["/p/othersrc/a.c", "/src/b/a.c"]),
            ("./src/a.c", &["/p/src/a.c"], &["/p/a.c"]),
            ("/p/a.c", &["/p/a.c"], &["/x/p/a.c"]),
            (
                "third_party/",
                &["/p/third_party/x/y.c"],
                &["/p/my_third_party/y.c", "/p/third_party"],
            ),
            ("/p/", &["/p/x/y.c"], &["/x/p/y.c"]),
            ("*.h", &["/p/a.h"], &["/p/a.hh"]),
            ("src/*.c", &["/p/src/a.c"], &["/p/src/deep/a.c"]),
            ("src/**/*.c", &["/p/src/a.c", "/p/src/deep/er/a.c"], &["/p/a.c"]),
            ("build*/", &["/p/build-1/a.c"], &["/p/rebuild/a.c"]),
        ] {
            let pattern = pattern(&format!("file:{text}"));
            for path in fits {
                assert!(pattern.fits_file(path), "{text} {path}");
                assert!(!pattern.fits_name([*path]));
            }
            for path in not {
                assert!(!pattern.fits_file(path), "{text} {path}");
            }
        }
    }

    #[test]
    fn what_is_no_pattern_is_said() {
        for text in ["", "file:", "file:/", "/usr/include", "/a(/", "/", "a\nb"] {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
            assert!(Pattern::of_build(text).is_err(), "{text}");
        }
        assert!(Pattern::of_build("f@lib.so").unwrap_err().to_string().contains("not known"));
        for text in [r"f\@x", "/a@b/", "f"] {
            assert!(Pattern::of_build(text).is_ok(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_name_makes_a_pattern_of_itself(name in "[^\r\n\0]{1,20}", other in ".{0,20}") {
            let made = Pattern::of_name(&name);
            let read = pattern(&made.to_string());
            prop_assert!(read.fits_name([name.as_str()]));
            prop_assert_eq!(read.fits_name([other.as_str()]), name == other);
        }

        #[test]
        fn any_text_is_a_pattern_or_an_error(text in ".{0,40}", name in ".{0,20}") {
            if let Ok(pattern) = text.parse::<Pattern>() {
                pattern.fits_name([name.as_str()]);
                pattern.fits_file(&name);
            }
        }
    }
}
