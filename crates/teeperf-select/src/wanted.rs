//! Functions by all that may be said of them in one text: a pattern for their name or file, and behind an `@` one for
//! their module.

use crate::pattern::split_module;
use crate::{BadPattern, Pattern};
use std::fmt::{self, Display};
use std::str::FromStr;
use teeperf_symbols::spellings;

/// Some functions: a [`Pattern`], `@` and a pattern for the module's file name or path; either may be missing, but not
/// both.
///
/// ```
/// # use teeperf_select::Wanted;
/// let wanted: Wanted = "inflate*@libz.so*".parse().unwrap();
/// assert!(wanted.fits("inflate_fast", None, "/lib/libz.so.1") && !wanted.fits("inflate_fast", None, "program"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    function: Option<Pattern>,
    module: Option<Pattern>,
}

impl Wanted {
    /// Of the functions of just this name.
    pub fn of_name(name: &str) -> Self {
        Self { function: Some(Pattern::of_name(name)), module: None }
    }

    /// What functions have to fit; nothing where all do.
    pub fn function(&self) -> Option<&Pattern> {
        self.function.as_ref()
    }

    /// Whether functions of a module may fit: of one of this path, or of which only the file name is known.
    pub fn is_of_module(&self, path: &str) -> bool {
        let file = path.rsplit('/').next().unwrap_or(path);
        self.module.as_ref().is_none_or(|module| module.fits_name([file, path]))
    }

    /// Whether a function of this name, demangled, and file fits, which is in this module. [`spellings`] of the name count.
    pub fn fits(&self, name: &str, file: Option<&str>, module: &str) -> bool {
        let is_it = |pattern: &Pattern| match pattern.is_of_files() {
            true => file.is_some_and(|file| pattern.fits_file(file)),
            false => pattern.fits_name(spellings(name).iter().map(AsRef::as_ref)),
        };
        self.is_of_module(module) && self.function.as_ref().is_none_or(is_it)
    }

    /// The text, where it is a name and nothing that stands for other text.
    pub fn as_name(&self) -> Option<&str> {
        self.function.as_ref().filter(|_| self.module.is_none())?.as_name()
    }
}

impl FromStr for Wanted {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Self, BadPattern> {
        let (function, module) = split_module(text);
        let is_all = function.is_empty() && module.is_some();
        let function = if is_all { None } else { Some(function.parse()?) };
        Ok(Self { function, module: module.map(of_path).transpose()? })
    }
}

/// A pattern for a module: one that begins as a path does is a glob of paths, not half a regular expression.
fn of_path(text: &str) -> Result<Pattern, BadPattern> {
    let is_path = text.starts_with('/') && !text.ends_with('/');
    if is_path { format!("\\{text}").parse() } else { text.parse() }
}

impl Display for Wanted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(function) = &self.function {
            write!(out, "{function}")?;
        }
        if let Some(module) = &self.module {
            write!(out, "@{module}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(text: &str, name: &str, file: Option<&str>, module: &str) -> bool {
        text.parse::<Wanted>().unwrap().fits(name, file, module)
    }

    #[test]
    fn names_files_and_modules() {
        for (text, name, expected) in [
            ("parse", "parse", true),
            ("parse", "parse.constprop.0", true),
            ("parse", "parse_all", false),
            ("parse*", "parse_all", true),
            ("/arse/", "parse_all", true),
            ("ns::find", "int* ns::find<int>(int)", true),
            ("ns::find<int>", "int* ns::find<int>(int)", true),
            ("ns::find<int>(int)", "int* ns::find<int>(int)", true),
            ("ns::find(int)", "int* ns::find<int>(int)", true),
            ("ns::find<char>", "int* ns::find<int>(int)", false),
            ("find", "int* ns::find<int>(int)", false),
            ("*::find", "int* ns::find<int>(int)", true),
            ("file:b.c", "parse", true),
            ("file:src/", "parse", true),
            ("file:a.c", "parse", false),
            ("parse@program", "parse", true),
            ("parse@lib*", "parse", false),
            ("@program", "anything", true),
            ("file:b.c@lib*", "parse", false),
            ("/x@program/", "x@program", true),
            (r"x\@program", "x@program", true),
        ] {
            assert_eq!(fits(text, name, Some("/p/src/b.c"), "program"), expected, "{text} {name}");
        }
        assert!(!fits("file:b.c", "f", None, "program"));
        assert!(fits("@/usr/*", "f", None, "/usr/lib/x.so") && !fits("@/usr/*", "f", None, "x.so"));
    }

    #[test]
    fn texts_come_back() {
        for text in ["parse", "a@b", "@/usr/lib/*", "/x@y/", "file:src/@lib*", r"f(char\*)"] {
            assert_eq!(text.parse::<Wanted>().unwrap().to_string().replace("@\\/", "@/"), text);
        }
        for text in ["", "a@", "/x", "file:"] {
            assert!(text.parse::<Wanted>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_name_is_one() {
        let name = |text: &str| text.parse::<Wanted>().unwrap().as_name().map(str::to_owned);
        assert_eq!(name("parse").as_deref(), Some("parse"));
        assert_eq!(name(r"f(char\*)").as_deref(), Some("f(char*)"));
        for text in ["parse*", "/parse/", "file:parse", "parse@program"] {
            assert_eq!(name(text), None, "{text}");
        }
    }
}
