//! Functions as somebody names them: in the language of [`Wanted`], as filters and builds know it; and where no function is
//! called so, a plain name is taken for a part of one.

use crate::model::{Function, FunctionId, Thread};
use teeperf_select::{BadPattern, Wanted};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    wanted: Wanted,
}

/// Functions that were found by a pattern, of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// By number, whether it is one.
    pub fits: Vec<bool>,
    /// No function is called so: these have it in their name.
    pub is_part: bool,
}

impl Pattern {
    /// Of this text.
    ///
    /// # Errors
    ///
    /// When it is no pattern.
    pub fn new(text: &str) -> Result<Self, BadPattern> {
        Ok(Self { text: text.to_owned(), wanted: text.parse()? })
    }

    /// What it was made of.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a function fits.
    pub fn fits(&self, function: &Function) -> bool {
        self.wanted.fits(&function.name, function.file.as_deref(), &function.module)
    }

    /// Those of a list that fit; if none does and it is a name, those that have it in theirs.
    pub fn among(&self, functions: &[Function]) -> Found {
        let fits: Vec<bool> = functions.iter().map(|function| self.fits(function)).collect();
        match self.wanted.as_name() {
            Some(name) if !fits.contains(&true) => {
                let fits = functions.iter().map(|function| function.name.contains(name));
                let fits: Vec<bool> = fits.collect();
                let is_part = fits.contains(&true);
                Found { fits, is_part }
            }
            _ => Found { fits, is_part: false },
        }
    }

    /// Threads of this id or name; if there are none and it is no number, those that have it in theirs.
    pub(crate) fn threads(&self, threads: &[Thread]) -> Vec<bool> {
        let Some(pattern) = self.wanted.function() else { return vec![false; threads.len()] };
        let names = |thread: &Thread| [thread.tid.to_string(), thread.name.clone()];
        let is_it = |thread| pattern.fits_name(names(thread).iter().map(String::as_str));
        let fits: Vec<bool> = threads.iter().map(is_it).collect();
        match pattern.as_name() {
            Some(name) if !fits.contains(&true) && name.parse::<u32>().is_err() => {
                threads.iter().map(|thread| thread.name.contains(name)).collect()
            }
            _ => fits,
        }
    }
}

impl Found {
    /// Whether a function was found.
    pub fn has(&self, function: FunctionId) -> bool {
        self.fits.get(function.0 as usize).copied().unwrap_or(false)
    }

    /// Whether any was.
    pub fn any(&self) -> bool {
        self.fits.contains(&true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_part_of_one_where_nobody_is_called_so() {
        let function = |name: &str| Function { name: name.into(), ..Function::default() };
        let all = ["parse", "parse_all", "ns::find(int)"].map(function);
        let found = |text: &str| {
            let found = Pattern::new(text).unwrap().among(&all);
            (found.fits, found.is_part)
        };
        assert_eq!(found("parse"), (vec![true, false, false], false));
        assert_eq!(found("parse*"), (vec![true, true, false], false));
        assert_eq!(found("ns::find"), (vec![false, false, true], false));
        assert_eq!(found("ars"), (vec![true, true, false], true));
        assert_eq!(found("find"), (vec![false, false, true], true));
        assert_eq!(found("nobody"), (vec![false, false, false], false));
        assert_eq!(found("ars?"), (vec![false, false, false], false));
    }
}
