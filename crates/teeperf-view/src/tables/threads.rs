//! Threads, for programs.

use teeperf_profile::model::Profile;

use super::{Cell, Column, Kind, Row, Table};

/// All threads.
pub fn threads(profile: &Profile, limit: usize) -> Table {
    let mut columns = vec![
        Column::new("PROCESS", "process", Kind::Count),
        Column::new("ID", "thread", Kind::Count),
        Column::new("THREAD", "name", Kind::Text),
        Column::new("MERGED", "merged", Kind::Count),
        Column::new("EVENTS", "events", Kind::Count),
        Column::new("RECORDED", "recorded", Kind::Time),
        Column::new("WALL", "wall", Kind::Time),
        Column::new("CPU", "cpu", Kind::Time),
        Column::new("FOR ROOM", "waited", Kind::Time),
    ];
    let tells_waiting = profile.info.timer_samples.is_some();
    if tells_waiting {
        columns.push(Column::new("WAITED", "waiting", Kind::Time));
        columns.push(Column::new("HOOKS", "hooks", Kind::Time));
    }
    let rows = profile.threads.iter().take(limit).map(|thread| {
        let mut cells = vec![
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
        if tells_waiting {
            cells.extend([thread.waiting_ns(), thread.hooks_ns()].map(Cell::Time));
        }
        Row { cells, ..Row::default() }
    });
    Table { rows: rows.collect(), columns, unit: profile.info.unit, ..Table::default() }
}
