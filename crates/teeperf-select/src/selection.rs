//! What is wanted: functions of some patterns, without those of others, of some size at least.

use crate::{BadPattern, Pattern};
use std::fmt::{self, Display};
use std::str::FromStr;

/// Which functions get hooks. It is written as lines and read back from them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only functions of one of these; all where there is none.
    pub only: Vec<Pattern>,
    /// No functions of any of these.
    pub exclude: Vec<Pattern>,
    /// Least number of instructions.
    pub min_size: u64,
}

/// A function, to be asked for.
#[derive(Clone, Copy, Debug)]
pub struct Function<'a> {
    /// Its names: as the linker knows it, and [`spellings`](teeperf_symbols::spellings) of that.
    pub names: &'a [&'a str],
    /// Paths of its file, where it is known: as the compiler spells it, and with links followed.
    pub files: &'a [String],
    /// Its instructions, where they are there to be counted.
    pub size: Option<u64>,
}

impl Selection {
    /// Whether all functions are wanted.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it takes to know functions' files.
    pub fn needs_files(&self) -> bool {
        self.only.iter().chain(&self.exclude).any(Pattern::is_of_files)
    }

    /// Its patterns, as lines: `only a`, `exclude b`.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let only = self.only.iter().map(|pattern| format!("only {pattern}"));
        only.chain(self.exclude.iter().map(|pattern| format!("exclude {pattern}")))
    }

    /// Notes which of its patterns, in the order of [`Selection::lines`], a function fits.
    pub fn note(&self, function: &Function<'_>, met: &mut Vec<bool>) {
        met.resize(self.only.len() + self.exclude.len(), false);
        for (pattern, met) in self.only.iter().chain(&self.exclude).zip(met) {
            *met = *met || pattern.fits(function);
        }
    }

    /// Whether the function is wanted. One of unknown file fits no pattern of files; one of unknown size is
    /// large enough.
    pub fn wants(&self, function: &Function<'_>) -> bool {
        let fits = |pattern: &Pattern| pattern.fits(function);
        (self.only.is_empty() || self.only.iter().any(fits))
            && !self.exclude.iter().any(fits)
            && function.size.is_none_or(|size| size >= self.min_size)
    }
}

impl Display for Selection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.lines() {
            writeln!(out, "{line}")?;
        }
        writeln!(out, "min-size {}", self.min_size)
    }
}

impl FromStr for Selection {
    type Err = BadPattern;

    /// What [`Display`] wrote; lines of others are passed over.
    fn from_str(text: &str) -> Result<Self, BadPattern> {
        let mut selection = Self::default();
        for line in text.lines() {
            match line.split_once(' ') {
                Some(("only", pattern)) => selection.only.push(pattern.parse()?),
                Some(("exclude", pattern)) => selection.exclude.push(pattern.parse()?),
                Some(("min-size", number)) => selection.min_size = number.parse().unwrap_or(0),
                _ => {}
            }
        }
        Ok(selection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(only: &[&str], exclude: &[&str], min_size: u64) -> Selection {
        let patterns = |list: &[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
        Selection { only: patterns(only), exclude: patterns(exclude), min_size }
    }

    fn wants(selection: &Selection, name: &str, file: Option<&str>, size: Option<u64>) -> bool {
        let files: Vec<String> = file.map(str::to_owned).into_iter().collect();
        selection.wants(&Function { names: &[name], files: &files, size })
    }

    #[test]
    fn exclude_wins_over_only() {
        let some = selection(&["get_*", "file:a.c"], &["get_x"], 0);
        assert!(wants(&some, "get_y", Some("/b.c"), None));
        assert!(wants(&some, "set", Some("/a.c"), None));
        assert!(!wants(&some, "get_x", Some("/a.c"), None));
        assert!(!wants(&some, "set", None, None));
        assert!(wants(&selection(&[], &["file:a.c"], 0), "set", None, None));
    }

    #[test]
    fn small_functions_are_not_wanted() {
        let large = selection(&["get*"], &[], 10);
        assert!(wants(&large, "get", None, Some(10)) && wants(&large, "get", None, None));
        assert!(!wants(&large, "get", None, Some(9)) && !wants(&large, "set", None, Some(10)));
    }

    #[test]
    fn it_comes_back_from_its_lines() {
        let all = selection(&["file:a b.c"], &["operator new(unsigned long)", "/^a b/"], 7);
        assert_eq!(all.to_string().parse(), Ok(all));
        assert_eq!(
            "only \nother".parse::<Selection>().unwrap_err().to_string(),
            "\"\" is no pattern: it is empty"
        );
    }
}
