//! Callers and callees of functions.

use teeperf_profile::around::{Around, Neighbour};
use teeperf_profile::model::{CallGraph, Profile, Time};

use super::{Cell, Column, Kind, Row, Table, module_of, name_of, text_of};
use crate::apart::Apart;
use crate::units;

/// What percentages are of: time with a recorded frame, in all threads, and of calls without paths.
pub(crate) fn whole(profile: &Profile) -> f64 {
    profile.graph.as_ref().map_or(0.0, CallGraph::time) + profile.framed_ns()
}

/// Most columns of a function's name in a heading.
const HEADING: usize = 400;

/// Which side of a function is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Callers,
    Callees,
}

/// One function: a table of its callers, if asked for, and one of its callees.
pub fn around(
    profile: &Profile,
    around: &Around,
    callers: bool,
    callees: bool,
    limit: usize,
) -> Vec<Table> {
    let mut tables = Vec::new();
    if callers {
        tables.push(side(profile, around, Side::Callers, limit));
    }
    if callees {
        tables.push(side(profile, around, Side::Callees, limit));
    }
    tables
}

/// All functions in one table, for programs: a row for each caller and callee.
pub fn neighbours(profile: &Profile, list: &[Around], callers: bool, callees: bool) -> Table {
    let mut columns = vec![
        Column::hidden("function", Kind::Name),
        Column::hidden("module", Kind::Text),
        Column::hidden("relation", Kind::Text),
    ];
    columns.extend(COLUMNS);
    columns.push(Column::hidden("other_module", Kind::Text));
    let mut rows = Vec::new();
    for around in list {
        let sides = [(callers, Side::Callers), (callees, Side::Callees)];
        for (_, side) in sides.into_iter().filter(|(is_wanted, _)| *is_wanted) {
            let (neighbours, word) = match side {
                Side::Callers => (&around.callers, "caller"),
                Side::Callees => (&around.callees, "callee"),
            };
            for neighbour in neighbours {
                let id = Some(around.row.function);
                let mut cells = vec![name_of(profile, id, ""), module_of(profile, id)];
                cells.push(Cell::Text(word.into()));
                cells.extend(row(profile, around, neighbour, ""));
                cells.push(module_of(profile, neighbour.function));
                rows.push(Row { cells, ..Row::default() });
            }
        }
    }
    Table { columns, rows, unit: profile.info.unit, ..Table::default() }
}

const COLUMNS: [Column; 5] = [
    Column::new("TOTAL", "total", Kind::Time),
    Column::new("TOTAL%", "share", Kind::Share),
    Column::new("SELF", "self", Kind::Time),
    Column::new("CALLS", "calls", Kind::Count),
    Column::new("FUNCTION", "other", Kind::Name),
];

fn side(profile: &Profile, around: &Around, side: Side, limit: usize) -> Table {
    let unit = profile.info.unit;
    let (list, heading, nobody) = match side {
        Side::Callers => (&around.callers, "CALLER", "[none recorded]"),
        Side::Callees => (&around.callees, "CALLEE", ""),
    };
    let mut columns = COLUMNS.to_vec();
    columns[3].heading = units::calls_head(&profile.info);
    columns[4].heading = heading;
    let rows = list
        .iter()
        .take(limit)
        .map(|neighbour| Row { cells: row(profile, around, neighbour, nobody), ..Row::default() });
    let rows = rows.collect();
    let apart = Apart::of(&profile.functions);
    let name = text_of(profile, around.row.function);
    // Lines are broken, so that parameters, which tell overloads apart, have room.
    let name = apart.fit(around.row.function, &name, HEADING);
    let total = units::time_inline(unit, around.row.total.value);
    let title = match side {
        Side::Callers => {
            let share = units::percent_inline(units::share(around.row.total.value, whole(profile)));
            format!(
                "{name}: {total} in {}, {} in itself; {share} of all time. Who called it",
                units::counted(
                    around.row.calls,
                    if profile.info.is_sampled() { "sample" } else { "call" }
                ),
                units::time_inline(unit, around.row.self_time.value),
            )
        }
        Side::Callees => {
            format!("{name}: what it called in these {total}, without its own calls further down")
        }
    };
    let mut notes = Vec::new();
    let more = list.len().saturating_sub(limit);
    if more > 0 {
        notes.push(format!("… {} more; --limit shows more", units::count(more as u64)));
    }
    if list.iter().any(|neighbour| neighbour.function == Some(around.row.function)) {
        notes.push("Time of calls of it by itself counts once, in its own".into());
    }
    if list.is_empty() {
        notes.push("Nothing that was recorded".into());
    }
    if list.iter().any(|neighbour| neighbour.self_time.is_none()) {
        notes.push("– of calls without paths times are estimates, and those of the callee itself not known".into());
    }
    Table { title, columns, rows, notes, unit }
}

/// Percentages are of the function's total.
fn row(profile: &Profile, around: &Around, neighbour: &Neighbour, nobody: &str) -> Vec<Cell> {
    let own = |time: Time| Cell::Time(time.value);
    vec![
        Cell::Time(neighbour.total.value),
        Cell::Share(units::share(neighbour.total.value, around.row.total.value)),
        neighbour.self_time.map_or(Cell::Empty, own),
        Cell::Count(neighbour.calls),
        name_of(profile, neighbour.function, nobody),
    ]
}
