//! Line information, taken out of a file.

use super::edit::Edits;
use super::text::{Line, operands, unquoted};

/// Drops what tells of files and lines, and all other debug information. Labels in code stay: they make no bytes.
pub(super) fn drop(lines: &[Line<'_>], edits: &mut Edits) {
    let mut is_debug = false;
    for (at, line) in lines.iter().enumerate() {
        match line {
            Line::Directive(".section" | ".pushsection", rest) => {
                let name = operands(rest).next().map_or("", unquoted);
                is_debug = name.starts_with(".debug_");
                if is_debug {
                    edits.delete(at);
                }
            }
            Line::Directive(".text" | ".data" | ".bss" | ".previous" | ".popsection", _) => {
                is_debug = false
            }
            // The first names the source; those with numbers are of lines.
            Line::Directive(".file", rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
                edits.delete(at)
            }
            Line::Directive(".loc" | ".loc_mark_labels", _) => edits.delete(at),
            Line::Directive(".ident" | ".addrsig" | ".addrsig_sym", _) => {}
            Line::Directive(..) | Line::Label(_) if is_debug => edits.delete(at),
            _ => {}
        }
    }
}
