//! Tables of a report: what is in one is said once, and drawn for a terminal or written as CSV.

mod around;
mod by;
mod crossings;
mod csv;
mod draw;
mod functions;
mod histogram;
mod lengths;
pub(crate) mod points;
mod threads;

pub(crate) use around::whole;
pub use around::{around, neighbours};
pub use by::by;
pub use crossings::crossings;
pub use csv::write as write_csv;
pub use draw::write as write_text;
pub use functions::{functions, inlined, lines};
pub use histogram::histogram;
pub use lengths::{Order, lengths};
pub(crate) use lengths::{Percentiles, lengths_by_function, resolution, step};
pub use points::{by_name as marks, time_line};
pub use threads::threads;

use teeperf_profile::model::{Function, FunctionId, Profile, Unit};

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// What it is, above it.
    pub title: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// What is to be known of it, below it, one thing each.
    pub notes: Vec<String>,
    /// What times are in.
    pub unit: Unit,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its heading for people; empty: programs alone see it.
    pub heading: &'static str,
    /// Its name for programs, without a unit.
    pub name: &'static str,
    /// What is in it.
    pub kind: Kind,
    /// Columns of a terminal from which there is room for it.
    pub from: usize,
}

/// What is in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A time.
    Time,
    /// A number.
    Count,
    /// A part of something, from 0 to 1.
    Share,
    /// A name of code: shortened so that it can still be told.
    Name,
    /// Other text, such as a path: shortened in its middle.
    Text,
    /// Names with `, ` between them: of those for which there is no room it is said how many they are.
    List,
    /// A bar, as long as this part, from 0 to 1. Programs do not see it.
    Bar,
}

/// A row.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// As many as there are columns.
    pub cells: Vec<Cell>,
    /// Where it stands among others.
    pub level: Level,
}

/// Whether a row stands alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// As all others.
    #[default]
    Plain,
    /// Above those that follow.
    Head,
    /// Below a head.
    Below,
}

/// What stands in a column of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing.
    Empty,
    /// A text.
    Text(String),
    /// The name of a function, which people see told apart from others of its name.
    Name(String, FunctionId),
    /// A number.
    Count(u64),
    /// A time.
    Time(f64),
    /// A time that is not known, but to be below this one.
    Below(f64),
    /// A part.
    Share(f64),
}

impl Column {
    const fn new(heading: &'static str, name: &'static str, kind: Kind) -> Self {
        Self { heading, name, kind, from: 0 }
    }

    /// Only where there is room.
    const fn from(self, from: usize) -> Self {
        Self { from, ..self }
    }

    /// Only for programs.
    const fn hidden(name: &'static str, kind: Kind) -> Self {
        Self::new("", name, kind)
    }
}

fn function(profile: &Profile, id: FunctionId) -> Option<&Function> {
    profile.functions.get(id.0 as usize)
}

/// Name of a function, of none `none`.
fn name_of(profile: &Profile, id: Option<FunctionId>, none: &str) -> Cell {
    match id {
        Some(id) => Cell::Name(text_of(profile, id), id),
        None => Cell::Text(none.to_owned()),
    }
}

fn text_of(profile: &Profile, id: FunctionId) -> String {
    function(profile, id).map_or("[unknown]", |known| &known.name).to_owned()
}

fn module_of(profile: &Profile, id: Option<FunctionId>) -> Cell {
    let known = id.and_then(|id| function(profile, id));
    Cell::Text(known.map(|known| known.module.clone()).unwrap_or_default())
}

/// A path and a line, as far as they are known.
fn place_of(profile: &Profile, id: Option<FunctionId>) -> [Cell; 2] {
    let known = id.and_then(|id| function(profile, id));
    let file = known.and_then(|known| known.file.clone()).map_or(Cell::Empty, Cell::Text);
    let line =
        known.and_then(|known| known.line).map_or(Cell::Empty, |line| Cell::Count(line.into()));
    [file, line]
}
