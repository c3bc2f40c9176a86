//! The differences as comma-separated values (RFC 4180): a line for each function, times in nanoseconds.

use super::{Sort, function, presence, sorted};
use std::io::{self, Write};
use teeperf_profile::diff::{Diff, Figure};

/// Writes a line of names, and one for each function.
pub fn write(diff: &Diff, sort: Sort, out: &mut impl Write) -> io::Result<()> {
    let mut head = vec!["function".to_owned(), "module".into(), "presence".into()];
    for figure in ["calls", "self", "total"] {
        for column in ["before", "after", "difference", "margin", "is_change"] {
            head.push(format!("{figure}_{column}"));
        }
    }
    write!(out, "{}\r\n", head.join(","))?;
    for change in sorted(diff, sort) {
        let function = function(diff, change);
        write!(
            out,
            "{},{},{}",
            field(&function.name),
            field(&function.module),
            presence(change.presence)
        )?;
        for figure in [&change.calls, &change.self_time, &change.total] {
            let Figure { before, after, margin, is_change, .. } = figure;
            write!(out, ",{before},{after},{},{margin},{is_change}", figure.difference())?;
        }
        write!(out, "\r\n")?;
    }
    Ok(())
}

fn field(text: &str) -> String {
    if text.contains(['"', ',', '\r', '\n']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.into()
}
