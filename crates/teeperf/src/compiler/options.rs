//! The wrapper's own options, `--teeperf-…`: taken out of the compiler's command line, and
//! read from the environment for builds whose command line cannot be reached.

use super::response;
use super::settings::Build;
use anyhow::{Context, Result, bail};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use teeperf_select::{Pattern, Selection};

/// Options for all calls of the wrapper, in front of those on the command line.
pub(crate) const VARIABLE: &str = "TEEPERF_CC_OPTIONS";

/// How they begin.
const OWN: &[u8] = b"--teeperf-";

/// Where hooks are put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Hooks {
    /// Into the assembly, when the compiler's work is done: calls are those of the machine.
    Late,
    /// By the compiler, into the functions as they are written.
    Source,
}

/// What the user asked of the wrapper.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// The compiler to stand in for.
    pub(crate) compiler: Option<OsString>,
    /// Which functions are hooked.
    pub(crate) selection: Selection,
    /// Hook what is left when functions have been inlined.
    pub(crate) after_inlining: bool,
    /// Where hooks are put; nothing where the user does not say.
    pub(crate) hooks: Option<Hooks>,
    /// Hook nothing; linking is as it would be with hooks.
    pub(crate) no_hooks: bool,
    /// Hook functions of system headers too.
    pub(crate) system_headers: bool,
}

impl Options {
    /// Whether hooks are put into assembly where there is any.
    pub(crate) fn may_be_late(&self) -> bool {
        self.hooks != Some(Hooks::Source)
    }

    /// Takes the wrapper's options out of a command line. Returns them and what remains for
    /// the compiler.
    pub(crate) fn take(arguments: Vec<OsString>) -> Result<(Self, Vec<OsString>)> {
        let mut options = Self::of_environment()?;
        let mut rest = Vec::with_capacity(arguments.len());
        let is_own = |word: &OsStr| word.as_bytes().starts_with(OWN);
        for word in response::opened(arguments, is_own) {
            if !options.apply(&word)? {
                rest.push(word);
            }
        }
        Ok((options, rest))
    }

    /// Those of the environment alone.
    pub(crate) fn of_environment() -> Result<Self> {
        let mut options = Self::default();
        if let Some(text) = std::env::var_os(VARIABLE) {
            for word in response::split(text.as_bytes()) {
                if !options.apply(&word)? {
                    bail!("{VARIABLE} has {word:?}, which is none of the wrapper's options");
                }
            }
        }
        Ok(options)
    }

    /// Adds what the project's settings say: patterns of both count, and a number of the settings where there is
    /// no other.
    pub(crate) fn add(&mut self, build: Build) -> Result<()> {
        for (own, more) in
            [(&mut self.selection.only, build.only), (&mut self.selection.exclude, build.exclude)]
        {
            for text in more {
                own.push(Pattern::of_build(&text)?);
            }
        }
        if self.selection.min_size == 0 {
            self.selection.min_size = build.min_size;
        }
        self.after_inlining |= build.after_inlining;
        self.hooks = self.hooks.or(build.hooks);
        self.system_headers |= build.system_headers;
        Ok(())
    }

    /// Whether the word is one of the wrapper's own.
    fn apply(&mut self, word: &OsStr) -> Result<bool> {
        let Some(name) = word.as_bytes().strip_prefix(OWN) else { return Ok(false) };
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
        let text = || {
            let value = given()?.into_string();
            value.map_err(|value| anyhow::anyhow!("{word:?}: {value:?} is no UTF-8"))
        };
        match name {
            b"compiler" => self.compiler = Some(given()?),
            b"only" => self.selection.only.push(Pattern::of_build(&text()?)?),
            b"exclude" => self.selection.exclude.push(Pattern::of_build(&text()?)?),
            b"min-size" => {
                let size = text()?.parse();
                self.selection.min_size =
                    size.with_context(|| format!("{word:?} needs a number of instructions"))?;
            }
            b"after-inlining" if value.is_none() => self.after_inlining = true,
            b"hooks" => {
                self.hooks = Some(match text()?.as_str() {
                    "late" => Hooks::Late,
                    "source" => Hooks::Source,
                    other => bail!("{word:?}: hooks are `late` or `source`, not {other:?}"),
                });
            }
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
            "--teeperf-exclude=file:a/b",
            "--teeperf-exclude=get_*",
            "a.c",
            "--teeperf-only=f",
            "--teeperf-min-size=12",
            "--teeperf-after-inlining",
            "--teeperf-hooks=late",
            "--teeperf-no-hooks",
            "--teeperf-system-headers",
            "--teeperf-compiler=clang",
        ])
        .unwrap();
        assert_eq!(rest, ["-c", "a.c"]);
        let selection = "only f\nexclude file:a/b\nexclude get_*\nmin-size 12\n";
        assert_eq!(options.selection.to_string(), selection);
        assert_eq!(options.compiler, Some("clang".into()));
        assert_eq!(options.hooks, Some(Hooks::Late));
        assert!(options.no_hooks && options.system_headers && options.after_inlining);
    }

    #[test]
    fn settings_are_added() {
        let (mut options, _) = take(&["--teeperf-only=f", "--teeperf-min-size=12"]).unwrap();
        let only = vec!["g".to_owned()];
        options.add(Build { only, min_size: 5, system_headers: true, ..Build::default() }).unwrap();
        assert_eq!(options.selection.to_string(), "only f\nonly g\nmin-size 12\n");
        assert!(options.system_headers && !options.after_inlining);
        let exclude = vec!["/(/".to_owned()];
        assert!(options.add(Build { exclude, ..Build::default() }).is_err());
    }

    #[test]
    fn a_mistyped_option_is_said() {
        for word in [
            "--teeperf-exclude-files=x",
            "--teeperf-compiler",
            "--teeperf-no-hooks=1",
            "--teeperf-hooks=early",
            "--teeperf-only=",
            "--teeperf-exclude=/usr/include",
            "--teeperf-min-size=many",
            "--teeperf-after-inlining=1",
        ] {
            assert!(take(&[word]).is_err(), "{word}");
        }
    }
}
