//! What programs put on the time line: all of it in order, and by name.

use std::collections::BTreeMap;

use teeperf_profile::model::{Point, PointKind, Profile};

use super::{Cell, Column, Kind, Row, Table};

/// The time line: marks, values of counters, and notes, in order.
pub fn time_line(profile: &Profile, limit: usize) -> Table {
    let columns = vec![
        Column::new("AT", "at", Kind::Time),
        Column::hidden("process", Kind::Count),
        Column::new("THREAD", "thread", Kind::Count),
        Column::new("WHAT", "what", Kind::Text),
        Column::new("VALUE", "value", Kind::Text),
        Column::new("NAME", "name", Kind::Name),
    ];
    let row = |point: &Point| Row {
        cells: vec![
            Cell::Time(point.at_ns),
            Cell::Count(point.pid.into()),
            Cell::Count(point.tid.into()),
            Cell::Text(what(point.kind).into()),
            value(point.kind).map_or(Cell::Empty, |value| Cell::Text(value.to_string())),
            Cell::Text(point.name.clone()),
        ],
        ..Row::default()
    };
    let shown = profile.points.len().min(limit);
    let notes = match profile.points.len() - shown {
        0 => Vec::new(),
        more => vec![format!("… {more} more; --limit shows more")],
    };
    Table {
        title: format!("Time line: {shown} of {} points", profile.points.len()),
        columns,
        rows: profile.points.iter().take(limit).map(row).collect(),
        notes,
        unit: profile.info.unit,
    }
}

/// Marks and counters by name: how many, and between which values.
pub fn by_name(profile: &Profile, limit: usize) -> Table {
    let columns = vec![
        Column::new("TIMES", "times", Kind::Count),
        Column::new("FIRST", "first", Kind::Time),
        Column::new("LAST", "last", Kind::Time),
        Column::new("LEAST", "least", Kind::Text),
        Column::new("MEAN", "mean", Kind::Text).from(90),
        Column::new("MOST", "most", Kind::Text),
        Column::new("NAME", "name", Kind::Name),
    ];
    let mut names: BTreeMap<(&str, bool), Sum> = BTreeMap::new();
    for point in profile.points.iter().filter(|point| point.kind != PointKind::Note) {
        let value = value(point.kind);
        names.entry((&point.name, value.is_some())).or_default().add(point.at_ns, value);
    }
    let mut rows: Vec<_> = names.into_iter().collect();
    rows.sort_by(|(_, a), (_, b)| a.first.total_cmp(&b.first));
    let all = rows.len();
    let row = |((name, has_values), sum): ((&str, bool), Sum)| {
        let value = |value: f64| {
            if has_values { Cell::Text(value.to_string()) } else { Cell::Empty }
        };
        let cells = vec![
            Cell::Count(sum.times),
            Cell::Time(sum.first),
            Cell::Time(sum.last),
            value(sum.least),
            value(rounded(sum.values / sum.times as f64)),
            value(sum.most),
            Cell::Text(name.to_owned()),
        ];
        Row { cells, ..Row::default() }
    };
    let rows: Vec<Row> = rows.into_iter().take(limit).map(row).collect();
    Table {
        title: format!("Marks and counters: {} of {all}", rows.len()),
        columns,
        rows,
        notes: vec!["--time-line shows each".into()],
        unit: profile.info.unit,
    }
}

/// Of one name.
#[derive(Default)]
struct Sum {
    times: u64,
    first: f64,
    last: f64,
    least: f64,
    most: f64,
    values: f64,
}

impl Sum {
    fn add(&mut self, at: f64, value: Option<f64>) {
        let value = value.unwrap_or_default();
        if self.times == 0 {
            (self.first, self.least, self.most) = (at, value, value);
        }
        self.times += 1;
        self.last = at;
        self.least = self.least.min(value);
        self.most = self.most.max(value);
        self.values += value;
    }
}

/// What a point is called.
pub(crate) fn what(kind: PointKind) -> &'static str {
    match kind {
        PointKind::Mark => "mark",
        PointKind::Note => "note",
        PointKind::Integer(_) | PointKind::Real(_) => "counter",
    }
}

/// The value of a counter; integers of more than 53 bits are rounded.
fn value(kind: PointKind) -> Option<f64> {
    match kind {
        PointKind::Mark | PointKind::Note => None,
        PointKind::Integer(value) => Some(value as f64),
        PointKind::Real(value) => Some(value),
    }
}

/// To four digits, which a mean is good for.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10_f64.powi(3 - value.abs().log10().floor() as i32);
    if scale.is_finite() && scale > 0.0 { (value * scale).round() / scale } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> Profile {
        let point =
            |at_ns, name: &str, kind| Point { pid: 1, tid: 2, at_ns, name: name.into(), kind };
        let points = vec![
            point(1e6, "frame", PointKind::Mark),
            point(2e6, "queue", PointKind::Integer(-3)),
            point(2e6, "it begins", PointKind::Note),
            point(3e6, "queue", PointKind::Integer(9)),
            point(4e6, "load", PointKind::Real(0.25)),
            point(5e6, "frame", PointKind::Mark),
        ];
        Profile { points, ..Profile::default() }
    }

    #[test]
    fn the_time_line_has_all_in_order() {
        let table = time_line(&profile(), 5);
        let names: Vec<_> = table.rows.iter().map(|row| row.cells[5].clone()).collect();
        let expected = ["frame", "queue", "it begins", "queue", "load"];
        assert_eq!(names, expected.map(|name| Cell::Text(name.into())));
        assert_eq!(table.rows[1].cells[4], Cell::Text("-3".into()));
        assert_eq!(table.rows[2].cells[4], Cell::Empty);
        assert!(table.notes[0].contains("1 more") && table.title.contains("5 of 6"));
    }

    #[test]
    fn names_have_their_values() {
        let table = by_name(&profile(), 9);
        let cells = |at: usize| table.rows[at].cells.clone();
        let text = |text: &str| Cell::Text(text.into());
        assert_eq!(table.rows.len(), 3);
        assert_eq!(cells(0)[..4], [Cell::Count(2), Cell::Time(1e6), Cell::Time(5e6), Cell::Empty]);
        assert_eq!(cells(1)[3..], [text("-3"), text("3"), text("9"), text("queue")]);
        assert_eq!(cells(2)[3..], [text("0.25"), text("0.25"), text("0.25"), text("load")]);
    }

    #[test]
    fn means_have_four_digits() {
        assert_eq!(
            [1.0 / 3.0, -12345.6, 0.0, f64::NAN].map(|n| rounded(n).to_string()),
            ["0.3333", "-12350", "0", "NaN"]
        );
    }
}
