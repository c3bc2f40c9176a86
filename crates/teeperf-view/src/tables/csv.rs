//! Tables as CSV (RFC 4180): a header, lines that end with CR LF. Times are whole and fractions of what the column's name
//! ends with, shares are from 0 to 1; nothing is rounded.

use std::io::{self, Write};

use super::{Cell, Column, Kind, Table};
use crate::{cells, units};

/// Writes a table with all its columns.
///
/// # Errors
///
/// Those of `out`.
pub fn write(table: &Table, out: &mut impl Write) -> io::Result<()> {
    let mut csv = cells::writer(out);
    let is_told = |column: &&Column| column.kind != Kind::Bar;
    let unit = units::name(table.unit);
    let name = |column: &Column| match column.kind {
        Kind::Time => format!("{}_{unit}", column.name),
        _ => column.name.to_owned(),
    };
    cells::line(&mut csv, table.columns.iter().filter(is_told).map(name))?;
    for row in &table.rows {
        let shown = row.cells.iter().zip(&table.columns).filter(|(_, column)| is_told(column));
        cells::line(&mut csv, shown.map(|(cell, _)| told(cell)))?;
    }
    csv.flush()
}

fn told(cell: &Cell) -> String {
    match cell {
        // Of what is only known to be below something no number can be told.
        Cell::Empty | Cell::Below(_) => String::new(),
        Cell::Text(text) | Cell::Name(text, _) => cells::text(text),
        Cell::Count(count) => count.to_string(),
        Cell::Time(number) | Cell::Share(number) => {
            let finite = if number.is_finite() { *number } else { 0.0 };
            finite.to_string()
        }
    }
}
