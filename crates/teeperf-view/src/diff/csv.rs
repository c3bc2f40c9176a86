//! The differences as comma-separated values (RFC 4180): a line for each function, times in nanoseconds.

use super::{Sort, function, presence, sorted};
use crate::cells;
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
    let mut csv = cells::writer(out);
    cells::line(&mut csv, &head)?;
    for change in sorted(diff, sort) {
        let function = function(diff, change);
        let mut row = vec![cells::text(&function.name), cells::text(&function.module)];
        row.push(presence(change.presence).to_owned());
        for figure in [&change.calls, &change.self_time, &change.total] {
            let Figure { before, after, margin, is_change, .. } = figure;
            let numbers = [*before, *after, figure.difference(), *margin];
            row.extend(numbers.map(|number| number.to_string()));
            row.push(is_change.to_string());
        }
        cells::line(&mut csv, &row)?;
    }
    csv.flush()
}
