//! JSON whose text neither steers a terminal nor ends the script that it stands in: what could is written as `\u`.

use crate::names::steers;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

/// Compact JSON; readers see no difference.
#[derive(Default)]
pub(crate) struct Harmless {
    /// It stands in a script of an HTML page.
    pub(crate) in_script: bool,
}

/// Writes a document and ends the line.
///
/// # Errors
///
/// Those of `out`.
pub fn write(document: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    document.serialize(&mut Serializer::with_formatter(&mut *out, Harmless::default()))?;
    writeln!(out)
}

impl Formatter for Harmless {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let special = |c: char| self.in_script && matches!(c, '<' | '>' | '&') || steers(c);
        let mut rest = fragment;
        while let Some(at) = rest.find(special) {
            let (plain, tail) = rest.split_at(at);
            out.write_all(plain.as_bytes())?;
            let c = tail.chars().next().unwrap_or_default();
            // All that steers is in the first plane of Unicode.
            write!(out, "\\u{:04x}", c as u32)?;
            rest = &tail[c.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_back_and_steers_nothing() {
        let text = "a\u{9b}31m\u{202e}\u{7f}\x1b</script>&\u{feff}\u{1f600}\"\\";
        for in_script in [false, true] {
            let mut out = Vec::new();
            let harmless = Harmless { in_script };
            text.serialize(&mut Serializer::with_formatter(&mut out, harmless)).unwrap();
            let out = String::from_utf8(out).unwrap();
            assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
            let ends = |c| matches!(c, '<' | '>' | '&');
            assert!(!out.contains(|c| steers(c) || in_script && ends(c)), "{out:?}");
        }
        assert!(!('\u{10000}'..=char::MAX).any(steers));
    }
}
