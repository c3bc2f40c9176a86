//! Text in cells of CSV. Whoever opens the file may do so on a terminal or in a spreadsheet, which takes text that begins
//! like a formula for one; and names are from recordings that anybody may have made. docs/json.md tells the rule.

use crate::names::{printable, steers};
use csv::{ErrorKind, Terminator, Writer, WriterBuilder};
use std::io::{self, Write};

/// What a formula begins with, in whichever width it is written.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];
/// What says that a cell is text.
const TEXT: char = '\'';

/// A writer of lines that end with CR LF (RFC 4180).
pub(crate) fn writer<W: Write>(out: W) -> Writer<W> {
    WriterBuilder::new().terminator(Terminator::CRLF).from_writer(out)
}

/// Writes a line. An error is the output's own: whoever reads it may have gone, which is none.
pub(crate) fn line<W: Write>(
    csv: &mut Writer<W>,
    cells: impl IntoIterator<Item: AsRef<[u8]>>,
) -> io::Result<()> {
    csv.write_record(cells).map_err(|error| match error.into_kind() {
        ErrorKind::Io(error) => error,
        kind => io::Error::other(format!("{kind:?}")),
    })
}

/// The text as a cell: characters that steer a terminal are spelt out, and one that begins like a formula, or with an
/// apostrophe, has an apostrophe in front.
pub(crate) fn text(text: &str) -> String {
    let text = printable(text);
    let mut out = String::with_capacity(text.len() + 1);
    if text.starts_with(TEXT) || begins_formula(&text) {
        out.push(TEXT);
    }
    for (at, c) in text.char_indices() {
        match c {
            // Some spreadsheets have it end a cell.
            ';' if begins_formula(&text[at + 1..]) => out.push_str("\\x3b"),
            _ => out.push(c),
        }
    }
    out
}

fn begins_formula(text: &str) -> bool {
    let blank = |c: char| c.is_whitespace() || steers(c) || c == '"' || c == '\u{200b}';
    text.trim_start_matches(blank).starts_with(FORMULA)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_a_formula_or_steers_a_terminal() {
        for (name, cell) in [
            ("main", "main"),
            ("a::operator=", "a::operator="),
            ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
            ("+[Foo bar]", "'+[Foo bar]"),
            ("-1+1", "'-1+1"),
            ("@SUM(1)", "'@SUM(1)"),
            ("\u{ff1d}1", "'\u{ff1d}1"),
            (" \u{a0}=1", "' \u{a0}=1"),
            ("\"=1", "'\"=1"),
            ("\t=1", "\\x09=1"),
            ("\r=1", "\\x0d=1"),
            ("a\x1b[31m\u{9b}2J\u{202e}", "a\\x1b[31m\\x9b2J\\u{202e}"),
            ("'a", "''a"),
            ("x;=1+1", "x\\x3b=1+1"),
            ("x; -1", "x\\x3b -1"),
            ("Ljava/lang/String;::f", "Ljava/lang/String;::f"),
            ("", ""),
        ] {
            assert_eq!(text(name), cell, "{name:?}");
        }
    }
}
