//! What an object says of the patterns that it was made with: which of them fitted a function in it. No object knows of the
//! others, so it takes all those of a program to know that one fits nothing; the linker puts together what they say.
//!
//! The section is not loaded. It has texts, each with a 0 behind it: `+` or `-`, for whether one fits, and the pattern as
//! [`Selection`] writes it.

use crate::Selection;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The section's name.
pub const SECTION: &str = ".teeperf.selection";
/// Most patterns that are taken out of a section, and bytes of it that are looked at.
const MOST: usize = 1 << 14;
const MOST_BYTES: usize = 16 << 20;

/// Assembly of the section; `met` has one for each of the selection's patterns, in their order.
pub fn assembly(selection: &Selection, met: &[bool]) -> String {
    let mut text = format!("\t.section\t{SECTION},\"MS\",@progbits,1\n");
    for (line, met) in selection.lines().zip(met) {
        text += "\t.string\t\"";
        text.push(if *met { '+' } else { '-' });
        for byte in line.bytes() {
            match byte {
                b'"' | b'\\' | 0x7F.. | ..0x20 => _ = write!(text, "\\{byte:03o}"),
                _ => text.push(byte.into()),
            }
        }
        text += "\"\n";
    }
    text
}

/// Patterns by how they are written, such as `exclude get_*`, and whether any function fitted, as sections of several objects
/// or programs say. Anything may stand in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told(BTreeMap<String, bool>);

impl Told {
    /// Adds what a section says.
    pub fn add(&mut self, section: &[u8]) {
        let section = &section[..section.len().min(MOST_BYTES)];
        for text in section.split(|&byte| byte == 0) {
            let (sign, text) = match text {
                [sign @ (b'+' | b'-'), text @ ..] => (*sign, String::from_utf8_lossy(text)),
                _ => continue,
            };
            let is_known = self.0.contains_key(&*text);
            if is_known || self.0.len() < MOST {
                *self.0.entry(text.into_owned()).or_default() |= sign == b'+';
            }
        }
    }

    /// Patterns, and whether they fit a function.
    pub fn patterns(&self) -> impl Iterator<Item = (&str, bool)> {
        self.0.iter().map(|(text, fits)| (&**text, *fits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_any_object_says_counts() {
        let mut told = Told::default();
        told.add(b"-only a\0-exclude b\0");
        told.add(b"+only a\0\0-only a\0no\0-");
        let patterns: Vec<_> = told.patterns().collect();
        assert_eq!(patterns, [("", false), ("exclude b", false), ("only a", true)]);
    }

    #[test]
    fn it_is_written_as_assemblers_read_it() {
        let selection: Selection = "only a\\*\"é\nexclude b\n".parse().unwrap();
        let text = assembly(&selection, &[false, true]);
        assert_eq!(
            text,
            "\t.section\t.teeperf.selection,\"MS\",@progbits,1\n\t.string\t\"-only a\\134*\\042\\303\\251\"\n\t.string\t\"+exclude b\"\n"
        );
    }
}
