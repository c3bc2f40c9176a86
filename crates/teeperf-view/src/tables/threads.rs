//! Threads, for programs.

use teeperf_profile::model::Profile;

use super::{Cell, Column, Kind, Row, Table};

/// All threads.
pub fn threads(profile: &Profile, limit: usize) -> Table {
    let columns = vec![
        Column::new("PROCESS", "process", Kind::Count),
        Column::new("ID", "thread", Kind::Count),
        Column::new("THREAD", "name", Kind::Text),
        Column::new("MERGED", "merged", Kind::Count),
        Column::new("EVENTS", "events", Kind::Count),
        Column::new("RECORDED", "recorded", Kind::Time),
        Column::new("WALL", "wall", Kind::Time),
        Column::new("CPU", "cpu", Kind::Time),
        Column::new("WAITED", "waited", Kind::Time),
    ];
    let rows = profile.threads.iter().take(limit).map(|thread| {
        let cells = vec![
            Cell::Count(thread.pid.into()),
            Cell::Count(thread.tid.into()),
            Cell::Text(thread.name.clone()),
            Cell::Count(thread.merged.into()),
            Cell::Count(thread.events),
            Cell::Time(thread.tree.framed_ns()),
            Cell::Time(thread.wall_ns as f64),
            thread.cpu_ns.map_or(Cell::Empty, |ns| Cell::Time(ns as f64)),
            Cell::Time(thread.waited_ns as f64),
        ];
        Row { cells, ..Row::default() }
    });
    Table { rows: rows.collect(), columns, unit: profile.info.unit, ..Table::default() }
}
