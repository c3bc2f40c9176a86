//! The wrapper's own options, `--teeperf-…`: taken out of the compiler's command line, and
//! read from the environment for builds whose command line cannot be reached.

use super::response;
use anyhow::{Context, Result, bail};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Options for all calls of the wrapper, in front of those on the command line.
pub(crate) const VARIABLE: &str = "TEEPERF_CC_OPTIONS";

/// What the user asked of the wrapper.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// The compiler to stand in for.
    pub(crate) compiler: Option<OsString>,
    /// Parts of file names whose functions are not hooked.
    pub(crate) exclude_files: Vec<OsString>,
    /// Parts of function names that are not hooked.
    pub(crate) exclude_functions: Vec<OsString>,
    /// Hook nothing; linking is as it would be with hooks.
    pub(crate) no_hooks: bool,
    /// Hook functions of system headers too.
    pub(crate) system_headers: bool,
}

impl Options {
    /// Takes the wrapper's options out of a command line. Returns them and what remains for
    /// the compiler.
    pub(crate) fn take(arguments: Vec<OsString>) -> Result<(Self, Vec<OsString>)> {
        let mut options = Self::default();
        if let Some(text) = std::env::var_os(VARIABLE) {
            for word in response::split(text.as_bytes()) {
                if !options.apply(&word)? {
                    bail!("{VARIABLE} has {word:?}, which is none of the wrapper's options");
                }
            }
        }
        let mut rest = Vec::with_capacity(arguments.len());
        for word in arguments {
            if !options.apply(&word)? {
                rest.push(word);
            }
        }
        Ok((options, rest))
    }

    /// Whether the word is one of the wrapper's own.
    fn apply(&mut self, word: &OsStr) -> Result<bool> {
        let Some(name) = word.as_bytes().strip_prefix(b"--teeperf-") else { return Ok(false) };
        let (name, value) = match name.iter().position(|&byte| byte == b'=') {
            Some(at) => (&name[..at], Some(&name[at + 1..])),
            None => (name, None),
        };
        let given = || {
            value
                .filter(|value| !value.is_empty())
                .map(|value| OsString::from_vec(value.to_vec()))
                .with_context(|| format!("{word:?} needs a value behind `=`"))
        };
        match name {
            b"compiler" => self.compiler = Some(given()?),
            b"exclude-file" => self.exclude_files.push(given()?),
            b"exclude-function" => self.exclude_functions.push(given()?),
            b"no-hooks" if value.is_none() => self.no_hooks = true,
            b"system-headers" if value.is_none() => self.system_headers = true,
            _ => {
                bail!("{word:?} is none of the wrapper's options; see `teeperf cc --teeperf-help`")
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(words: &[&str]) -> Result<(Options, Vec<OsString>)> {
        Options::take(words.iter().map(OsString::from).collect())
    }

    #[test]
    fn own_options_are_taken_out_and_others_stay() {
        let (options, rest) = take(&[
            "-c",
            "--teeperf-exclude-file=a/b",
            "--teeperf-exclude-file=c",
            "a.c",
            "--teeperf-exclude-function=f",
            "--teeperf-no-hooks",
            "--teeperf-system-headers",
            "--teeperf-compiler=clang",
        ])
        .unwrap();
        assert_eq!(rest, ["-c", "a.c"]);
        assert_eq!(options.exclude_files, ["a/b", "c"]);
        assert_eq!(options.exclude_functions, ["f"]);
        assert_eq!(options.compiler, Some("clang".into()));
        assert!(options.no_hooks && options.system_headers);
    }

    #[test]
    fn a_mistyped_option_is_said() {
        assert!(take(&["--teeperf-exclude-files=x"]).is_err());
        assert!(take(&["--teeperf-compiler"]).is_err());
        assert!(take(&["--teeperf-no-hooks=1"]).is_err());
    }
}
