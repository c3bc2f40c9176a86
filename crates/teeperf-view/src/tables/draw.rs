//! Tables for a terminal: numbers to the right, names last, no line wider than it.

use std::io::{self, Write};

use teeperf_profile::model::Function;

use super::{Cell, Column, Kind, Level, Table};
use crate::apart::Apart;
use crate::style::{Paint, Style};
use crate::{names, units};

/// Columns that have room for anything.
const MANY: usize = 1 << 20;
/// Columns of a bar.
const BAR: usize = 30;
/// Columns that a text has, where it needs as many and is not the last.
const TEXT: usize = 40;
/// Columns that the last text keeps as long as others can be made narrower.
const SOME: usize = 30;
/// Columns that each text has in any case.
const LEAST: usize = 16;

/// Writes the table with its title and notes.
///
/// # Errors
///
/// Those of `out`.
pub fn write(
    table: &Table,
    functions: &[Function],
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let apart = Apart::of(functions);
    writeln!(out)?;
    for line in crate::text::wrap(&table.title, style.columns()) {
        writeln!(out, "{}", style.paint(Paint::Heading, line))?;
    }
    writeln!(out)?;
    let shown: Vec<usize> = (0..table.columns.len())
        .filter(|&at| {
            let column = &table.columns[at];
            !column.heading.is_empty() && style.columns() >= column.from
        })
        .collect();
    let widths = widths(table, &apart, &shown, style);
    let line = |cells: &dyn Fn(usize) -> String| {
        let parts = shown.iter().zip(&widths).map(|(&at, &width)| {
            let text = cells(at);
            let room = width.saturating_sub(names::columns(&text));
            match table.columns[at].kind {
                Kind::Name | Kind::Text | Kind::List | Kind::Bar => text + &" ".repeat(room),
                _ => " ".repeat(room) + &text,
            }
        });
        parts.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let heading = line(&|at| heading(&table.columns[at]));
    writeln!(out, "{}", style.paint(Paint::Faint, heading))?;
    let has_heads = table.rows.iter().any(|row| row.level == Level::Head);
    for (number, row) in table.rows.iter().enumerate() {
        if row.level == Level::Head && number > 0 && has_heads {
            writeln!(out)?;
        }
        let text = line(&|at| {
            let place = shown.iter().position(|&other| other == at).unwrap_or_default();
            let column = &table.columns[at];
            written(&row.cells[at], column, table, &apart, widths[place], row.level)
        });
        let paint = if row.level == Level::Head { Paint::Heading } else { Paint::Plain };
        writeln!(out, "{}", style.paint(paint, text))?;
    }
    if !table.notes.is_empty() {
        writeln!(out)?;
    }
    for note in &table.notes {
        for line in crate::text::wrap(note, style.columns()) {
            writeln!(out, "{}", style.paint(Paint::Faint, line))?;
        }
    }
    Ok(())
}

/// Of the columns shown. The last has what the others leave.
fn widths(table: &Table, apart: &Apart, shown: &[usize], style: &Style) -> Vec<usize> {
    let natural = |at: usize| {
        let column = &table.columns[at];
        let cells = table.rows.iter().map(|row| {
            names::columns(&written(&row.cells[at], column, table, apart, MANY, row.level))
        });
        cells.max().unwrap_or(0).max(names::columns(&heading(column)))
    };
    let is_text =
        |at: &usize| matches!(table.columns[*at].kind, Kind::Name | Kind::Text | Kind::List);
    let last = shown.iter().rposition(is_text);
    let mut widths: Vec<usize> = shown.iter().map(|&at| natural(at)).collect();
    for (place, at) in shown.iter().enumerate() {
        if is_text(at) && Some(place) != last {
            widths[place] = widths[place].min(TEXT);
        }
    }
    if let Some(last) = last {
        let gaps = 2 * shown.len().saturating_sub(1);
        let mut give_way = |place: usize, least: usize| {
            let taken = widths.iter().sum::<usize>() + gaps;
            let excess = taken.saturating_sub(style.columns());
            widths[place] = widths[place].saturating_sub(excess).max(least.min(widths[place]));
        };
        // The last gives way first, then those before it, down to what is still read.
        give_way(last, SOME);
        for place in (0..last).filter(|&place| is_text(&shown[place])) {
            give_way(place, LEAST);
        }
        give_way(last, LEAST);
    }
    widths
}

fn heading(column: &Column) -> String {
    match column.kind {
        // Units stand below one another, and numbers before them.
        Kind::Time => format!("{} ", column.heading),
        _ => column.heading.to_owned(),
    }
}

fn written(
    cell: &Cell,
    column: &Column,
    table: &Table,
    apart: &Apart,
    width: usize,
    level: Level,
) -> String {
    let indent = if level == Level::Below && column.kind == Kind::Name { "  " } else { "" };
    let room = width.saturating_sub(indent.len());
    match cell {
        Cell::Empty if column.kind == Kind::Time => "–  ".into(),
        Cell::Empty => String::new(),
        Cell::Name(text, function) => indent.to_owned() + &apart.fit(*function, text, room),
        Cell::Text(text) if column.kind == Kind::Name => {
            indent.to_owned() + &names::fit(text, room)
        }
        Cell::Text(text) if column.kind == Kind::List => list(&names::printable(text), width),
        Cell::Text(text) => names::cut_middle(&names::printable(text), width),
        Cell::Count(count) => units::count(*count),
        Cell::Time(time) => units::time(table.unit, *time),
        Cell::Below(time) => format!("< {}", units::time(table.unit, *time).trim_start()),
        Cell::Share(share) if column.kind == Kind::Bar => bar(*share),
        Cell::Share(share) => units::percent(*share),
    }
}

/// As many of the names as there is room for, and how many there are besides.
fn list(text: &str, width: usize) -> String {
    if names::columns(text) <= width {
        return text.to_owned();
    }
    let all: Vec<&str> = text.split(", ").collect();
    for some in (1..all.len()).rev() {
        let shown = format!("{}, … {} more", all[..some].join(", "), all.len() - some);
        if names::columns(&shown) <= width {
            return shown;
        }
    }
    names::cut_middle(text, width)
}

/// In eighths of a column.
fn bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * (8 * BAR) as f64).round() as usize;
    // What there is can be seen.
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}
