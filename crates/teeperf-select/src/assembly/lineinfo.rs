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
            // What says something of symbols holds for the file, wherever it stands.
            Line::Directive(name, rest) if says_of_symbols(name) && !rest.starts_with(".L") => {}
            Line::Directive(..) | Line::Label(_) if is_debug => edits.delete(at),
            _ => {}
        }
    }
}

fn says_of_symbols(name: &str) -> bool {
    const SAY: [&str; 17] = [
        ".ident",
        ".addrsig",
        ".addrsig_sym",
        ".globl",
        ".global",
        ".weak",
        ".weakref",
        ".set",
        ".type",
        ".size",
        ".hidden",
        ".protected",
        ".internal",
        ".local",
        ".comm",
        ".lcomm",
        ".symver",
    ];
    SAY.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::super::text::lines;
    use super::*;

    #[test]
    fn lines_go_and_symbols_stay() {
        let text = b"\t.file\t\"a.c\"\n\t.file 1 \"a.c\"\nf:\n\t.loc 1 1 1\n\tret\n\t.section\t.debug_info,\"\",@progbits\n\
            .Linfo:\n\t.long\t5\n\t.set .Lset0, .Linfo-1\n\t.globl\tg\n\t.set\tg, f\n\t.ident\t\"c\"\n\t.section\t.rodata\n\t.long\t7\n";
        let mut edits = Edits::default();
        drop(&lines(text), &mut edits);
        let left = String::from_utf8(edits.apply(text)).unwrap();
        assert_eq!(
            left,
            "\t.file\t\"a.c\"\nf:\n\tret\n\t.globl\tg\n\t.set\tg, f\n\t.ident\t\"c\"\n\t.section\t.rodata\n\t.long\t7\n"
        );
    }
}
