//! Functions.

use std::collections::HashMap;

use teeperf_profile::aggregate::{self, Sort};
use teeperf_profile::inlined::Inlined;
use teeperf_profile::model::{FunctionId, Profile};

use super::{Cell, Column, Kind, Row, Table, module_of, name_of, place_of};
use crate::units;

/// All functions with what is known of them, for programs.
pub fn functions(profile: &Profile, sort: Sort, limit: usize) -> Table {
    let rows = aggregate::table(profile, sort);
    let columns = vec![
        Column::new("FUNCTION", "function", Kind::Name),
        Column::new("MODULE", "module", Kind::Text),
        Column::hidden("file", Kind::Text),
        Column::hidden("line", Kind::Count),
        Column::new(units::calls_head(&profile.info), "calls", Kind::Count),
        Column::new("SELF", "self", Kind::Time),
        Column::hidden("self_low", Kind::Time),
        Column::hidden("self_high", Kind::Time),
        Column::new("TOTAL", "total", Kind::Time),
        Column::hidden("total_low", Kind::Time),
        Column::hidden("total_high", Kind::Time),
    ];
    let rows = rows.iter().take(limit).map(|row| {
        let id = Some(row.function);
        let [file, line] = place_of(profile, id);
        let mut cells = vec![name_of(profile, id, ""), module_of(profile, id), file, line];
        cells.push(Cell::Count(row.calls));
        for time in [&row.self_time, &row.total] {
            cells.extend([time.value, time.low, time.high].map(Cell::Time));
        }
        Row { cells, ..Row::default() }
    });
    Table { rows: rows.collect(), columns, unit: profile.info.unit, ..Table::default() }
}

/// Functions with where they are defined.
pub fn lines(profile: &Profile, sort: Sort, limit: usize) -> Table {
    let all = aggregate::table(profile, sort);
    let whole = super::whole(profile);
    let shown = &all[..all.len().min(limit)];
    let mut is_unknown = false;
    let rows = shown.iter().map(|row| {
        let id = Some(row.function);
        let place = place_of(profile, id);
        let at = match &place {
            [Cell::Text(file), Cell::Count(line)] => format!("{file}:{line}"),
            [Cell::Text(file), _] => file.clone(),
            _ => {
                is_unknown = true;
                String::new()
            }
        };
        let [file, line] = place;
        let cells = vec![
            Cell::Time(row.self_time.value),
            Cell::Share(units::share(row.self_time.value, whole)),
            Cell::Time(row.total.value),
            Cell::Count(row.calls),
            name_of(profile, id, ""),
            Cell::Text(at),
            file,
            line,
        ];
        Row { cells, ..Row::default() }
    });
    let rows = rows.collect();
    let columns = vec![
        Column::new("SELF", "self", Kind::Time),
        Column::new("SELF%", "self_share", Kind::Share),
        Column::new("TOTAL", "total", Kind::Time).from(100),
        Column::new(units::calls_head(&profile.info), "calls", Kind::Count),
        Column::new("FUNCTION", "function", Kind::Name),
        Column::new("DEFINED AT", "defined_at", Kind::Text),
        Column::hidden("file", Kind::Text),
        Column::hidden("line", Kind::Count),
    ];
    let title = format!("Functions and where they are defined: {} of {}", shown.len(), all.len());
    let text = "Where nothing stands there was no debug information (-g) when it was recorded";
    let notes = is_unknown.then(|| text.to_owned()).into_iter().collect();
    Table { title, columns, rows, notes, unit: profile.info.unit }
}

/// Functions with those that were inlined into them, as told of each.
pub fn inlined(profile: &Profile, told: &Inlined, sort: Sort) -> Table {
    let rows: HashMap<FunctionId, aggregate::Row> =
        aggregate::table(profile, sort).into_iter().map(|row| (row.function, row)).collect();
    let whole = super::whole(profile);
    let rows = told.functions.iter().filter_map(|(id, names)| {
        let row = rows.get(id)?;
        let cells = vec![
            Cell::Time(row.self_time.value),
            Cell::Share(units::share(row.self_time.value, whole)),
            Cell::Count(row.calls),
            name_of(profile, Some(*id), ""),
            Cell::Text(names.join(", ")),
        ];
        Some(Row { cells, ..Row::default() })
    });
    let mut notes = vec![
        "Time in inlined code is in the self time of the function that it is in, unless it has hooks: gcc gives them to \
         inlined functions too, and these have calls of their own"
            .to_owned(),
    ];
    notes
        .extend(told.unknown.iter().map(|why| format!("Of some functions it is not known: {why}")));
    let columns = vec![
        Column::new("SELF", "self", Kind::Time),
        Column::new("SELF%", "self_share", Kind::Share),
        Column::new(units::calls_head(&profile.info), "calls", Kind::Count),
        Column::new("FUNCTION", "function", Kind::Name),
        Column::new("INLINED INTO IT", "inlined", Kind::List),
    ];
    Table {
        title: "Functions and what the compiler inlined into them".into(),
        columns,
        rows: rows.collect(),
        notes,
        unit: profile.info.unit,
    }
}
