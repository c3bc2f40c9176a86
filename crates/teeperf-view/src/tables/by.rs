//! Functions by thread, process, module or file.

use teeperf_profile::groups::{By, Group};
use teeperf_profile::model::Profile;

use super::whole;
use super::{Cell, Column, Kind, Level, Row, Table, module_of, name_of};
use crate::units;

/// Most functions of a group that people are shown.
const MOST: usize = 10;

/// The groups, each with its functions below it. `limit` holds for groups, and for the functions of each; people see ten
/// at most.
pub fn by(profile: &Profile, groups: &[Group], by: By, limit: usize, is_for_people: bool) -> Table {
    let whole = whole(profile);
    let word = match by {
        By::Thread => "thread",
        By::Process => "process",
        By::Module => "module",
        By::File => "file",
    };
    let columns = vec![
        Column::new("SELF", "self", Kind::Time),
        Column::new("SELF%", "self_share", Kind::Share),
        Column::new("TOTAL", "total", Kind::Time),
        Column::new("TOTAL%", "total_share", Kind::Share).from(80),
        Column::new(units::calls_head(&profile.info), "calls", Kind::Count),
        Column::new("FUNCTION", "function", Kind::Name),
        Column::hidden("function_module", Kind::Text),
        Column::hidden(word, Kind::Text),
        Column::hidden("process_id", Kind::Count),
        Column::hidden("thread_id", Kind::Count),
    ];
    let ids = |group: &Group| {
        let number = |id: Option<u32>| id.map_or(Cell::Empty, |id| Cell::Count(id.into()));
        [Cell::Text(group.name.clone()), number(group.process), number(group.thread)]
    };
    let times = |own: f64, total: f64, calls: u64| {
        [
            Cell::Time(own),
            Cell::Share(units::share(own, whole)),
            Cell::Time(total),
            Cell::Share(units::share(total, whole)),
            Cell::Count(calls),
        ]
    };
    let mut rows = Vec::new();
    for group in groups.iter().take(limit) {
        let mut cells = times(group.self_time.value, group.total.value, group.calls).to_vec();
        let (name, level) = if is_for_people {
            (described(group), Level::Head)
        } else {
            (String::new(), Level::Plain)
        };
        cells.extend([Cell::Text(name), Cell::Empty]);
        cells.extend(ids(group));
        rows.push(Row { cells, level });
        let most = if is_for_people { limit.min(MOST) } else { usize::MAX };
        for row in group.functions.iter().take(most) {
            let mut cells = times(row.self_time.value, row.total.value, row.calls).to_vec();
            let id = Some(row.function);
            cells.extend([name_of(profile, id, ""), module_of(profile, id)]);
            cells.extend(ids(group));
            let level = if is_for_people { Level::Below } else { Level::Plain };
            rows.push(Row { cells, level });
        }
        let more = group.functions.len().saturating_sub(most);
        if more > 0 {
            let mut cells = vec![Cell::Empty; columns.len()];
            // No time stands there: it is not known to be none.
            cells[0] = Cell::Text(String::new());
            cells[2] = Cell::Text(String::new());
            cells[5] = Cell::Text(format!("… {} more", units::count(more as u64)));
            rows.push(Row { cells, level: Level::Below });
        }
    }
    let s = if word == "process" { "es" } else { "s" };
    let shown = groups.len().min(limit);
    let title = format!(
        "Functions by {word}: {} of {} {word}{s}; shares are of {}",
        units::count(shown as u64),
        units::count(groups.len() as u64),
        units::time_inline(profile.info.unit, whole),
    );
    Table { title, columns, rows, notes: Vec::new(), unit: profile.info.unit }
}

fn described(group: &Group) -> String {
    let name = match group.name.as_str() {
        "" => "[not known]",
        name => name,
    };
    match (group.process, group.thread) {
        (Some(process), Some(thread)) => format!("{name}, thread {thread} of process {process}"),
        (Some(process), None) => format!("{name}, process {process}"),
        _ => name.to_owned(),
    }
}
