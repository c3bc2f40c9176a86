//! Calls between worlds: ECALLs and OCALLs of SGX enclaves, sessions and commands of trusted applications. What they are a library
//! has recorded that stands between the two; what the kernel counted in ECALLs, it has put on the time line.

use std::collections::{BTreeSet, HashMap};

use teeperf_profile::aggregate::{self, Sort};
use teeperf_profile::model::{Function, FunctionId, PointKind, Profile};

use super::{Cell, Column, Kind, Percentiles, Row, Table, lengths_by_function, name_of};

/// Libraries that record crossings, as their files begin.
const LIBRARIES: [&str; 2] = ["libteeperf_sgx.", "libteeperf_optee."];
/// How ECALLs and OCALLs are named, without or with their number.
const ECALLS: [&str; 2] = ["ECALL", "switchless ECALL"];
const OCALLS: [&str; 2] = ["OCALL", "switchless OCALL"];
/// What is counted in an ECALL, as it is named before its name.
const FAULTS: &str = "page faults in ";
const SWITCHES: &str = "context switches in ";

/// Each kind of crossing: how often, how long, and what happened in it.
pub fn crossings(profile: &Profile, sort: Sort, limit: usize) -> Table {
    let columns = vec![
        Column::new("CALLS", "calls", Kind::Count),
        Column::new("TOTAL", "total", Kind::Time),
        Column::new("MEAN", "mean", Kind::Time),
        Column::new("FAULTS", "page_faults", Kind::Count),
        Column::new("SWITCHES", "context_switches", Kind::Count),
        Column::new("CROSSING", "crossing", Kind::Name),
        Column::new("FUNCTION", "function", Kind::List),
    ];
    let rows = aggregate::table(profile, sort);
    let rows: Vec<_> = rows.iter().filter(|row| is_crossing(profile, row.function)).collect();
    let (lengths, partners) = (lengths_by_function(profile), partners(profile));
    let counted = |what: &str, name: &str| match sum(profile, what, name) {
        0 if kind_of(name) != Some(Side::Ecall) => Cell::Empty,
        sum => Cell::Count(sum),
    };
    let row = |row: &&aggregate::Row| {
        let name = &profile.functions[row.function.0 as usize].name;
        let known = lengths.get(&row.function).filter(|known| known.by_counter);
        let timed = known.and_then(|known| Percentiles::of(known, profile));
        let (total, mean) = match timed {
            Some(timed) if timed.timed == row.calls => (timed.mean * row.calls as f64, timed.mean),
            Some(timed) => (row.total.value, timed.mean),
            None => (row.total.value, row.total.value / row.calls.max(1) as f64),
        };
        let beside = partners.get(&row.function).into_iter().flatten();
        let beside: Vec<&str> =
            beside.map(|id| profile.functions[id.0 as usize].name.as_str()).collect();
        let cells = vec![
            Cell::Count(row.calls),
            Cell::Time(total),
            Cell::Time(mean),
            counted(FAULTS, name),
            counted(SWITCHES, name),
            name_of(profile, Some(row.function), ""),
            Cell::Text(beside.join(", ")),
        ];
        Row { cells, ..Row::default() }
    };
    Table {
        title: format!("Crossings: {} of {}", rows.len().min(limit), rows.len()),
        columns,
        rows: rows.iter().take(limit).map(row).collect(),
        notes: vec![
            "FUNCTION: who makes an ECALL, and what an OCALL is, where that is known".into(),
            "Page faults and context switches are those inside, without OCALLs; each is an asynchronous exit, as are interrupts, \
             which nobody counts outside"
                .into(),
        ],
        unit: profile.info.unit,
    }
}

fn is_crossing(profile: &Profile, id: FunctionId) -> bool {
    let is =
        |function: &Function| LIBRARIES.iter().any(|library| function.module.starts_with(library));
    profile.functions.get(id.0 as usize).is_some_and(is)
}

/// On which side of a crossing the host's function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Ecall,
    Ocall,
}

fn kind_of(name: &str) -> Option<Side> {
    let of = |names: [&str; 2]| {
        let kind = name.strip_prefix("another ").unwrap_or(name);
        let kind = kind.trim_end_matches(|letter: char| letter.is_ascii_digit()).trim_end();
        names.contains(&kind)
    };
    match name {
        _ if of(ECALLS) => Some(Side::Ecall),
        _ if of(OCALLS) => Some(Side::Ocall),
        _ => None,
    }
}

/// The functions of the host beside each: those above ECALLs, those below OCALLs.
fn partners(profile: &Profile) -> HashMap<FunctionId, BTreeSet<FunctionId>> {
    let mut partners: HashMap<FunctionId, BTreeSet<FunctionId>> = HashMap::new();
    for thread in &profile.threads {
        for node in thread.tree.nodes.iter().skip(1).filter(|node| node.parent > 0) {
            let parent = thread.tree.nodes[node.parent as usize].function;
            for (label, side, beside) in
                [(node.function, Side::Ecall, parent), (parent, Side::Ocall, node.function)]
            {
                let name = profile.functions.get(label.0 as usize).map(|label| &*label.name);
                let is_label = is_crossing(profile, label) && name.and_then(kind_of) == Some(side);
                if is_label && !is_crossing(profile, beside) {
                    partners.entry(label).or_default().insert(beside);
                }
            }
        }
    }
    partners
}

/// What the kernel counted in all calls of this name.
fn sum(profile: &Profile, what: &str, name: &str) -> u64 {
    let values = profile.points.iter().filter_map(|point| match point.kind {
        PointKind::Integer(value) if point.name.strip_prefix(what) == Some(name) => {
            u64::try_from(value).ok()
        }
        _ => None,
    });
    values.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use teeperf_profile::model::{Node, Point, Thread, Tree};

    #[test]
    fn names_tell_kinds() {
        let kinds =
            ["ECALL 3", "another ECALL", "switchless ECALL 199", "OCALL 0", "RECALL 1", "ECALL"];
        let (ecall, ocall) = (Some(Side::Ecall), Some(Side::Ocall));
        assert_eq!(kinds.map(kind_of), [ecall, ecall, ecall, ocall, None, ecall]);
        assert_eq!(kind_of("another switchless OCALL"), ocall);
    }

    /// main, which makes one ECALL twice through its proxy, with an OCALL in each.
    fn profile() -> Profile {
        let function = |name: &str, module: &str| Function {
            name: name.into(),
            module: module.into(),
            ..Function::default()
        };
        let functions = vec![
            function("ecall_work", "host"),
            function("ECALL 3", "libteeperf_sgx.so"),
            function("inside", "enclave.so"),
            function("OCALL 0", "libteeperf_sgx.so"),
            function("enclave_ocall", "host"),
        ];
        let node = |parent, function, total: f64| Node {
            parent,
            function: FunctionId(function),
            calls: 2,
            self_time: 0.0.into(),
            total: total.into(),
            extremes: None,
            spent: Default::default(),
        };
        let nodes = vec![
            node(0, 0, 0.0),
            node(0, 0, 9000.0),
            node(1, 1, 8000.0),
            node(2, 2, 7000.0),
            node(3, 3, 1000.0),
            node(4, 4, 1000.0),
        ];
        let tree = Tree { nodes };
        let point = |name: &str, value| Point {
            pid: 1,
            tid: 2,
            at_ns: 0.0,
            name: name.into(),
            kind: PointKind::Integer(value),
        };
        Profile {
            functions,
            threads: vec![Thread { tree, ..Thread::default() }],
            points: vec![
                point("page faults in ECALL 3", 7),
                point("page faults in ECALL 33", 100),
                point("page faults in ECALL 3", 5),
                point("queue", 1000),
            ],
            ..Profile::default()
        }
    }

    #[test]
    fn a_crossing_has_its_calls_times_faults_and_functions() {
        let table = crossings(&profile(), Sort::Total, 9);
        let cells = |at: usize| table.rows[at].cells.clone();
        assert_eq!(table.rows.len(), 2);
        let text = |text: &str| Cell::Text(text.into());
        let name = |text: &str, id| Cell::Name(text.into(), FunctionId(id));
        let ecall = [
            Cell::Count(2),
            Cell::Time(8000.0),
            Cell::Time(4000.0),
            Cell::Count(12),
            Cell::Count(0),
            name("ECALL 3", 1),
            text("ecall_work"),
        ];
        assert_eq!(cells(0), ecall);
        let ocall = [
            Cell::Count(2),
            Cell::Time(1000.0),
            Cell::Time(500.0),
            Cell::Empty,
            Cell::Empty,
            name("OCALL 0", 3),
            text("enclave_ocall"),
        ];
        assert_eq!(cells(1), ocall);
        assert!(crossings(&profile(), Sort::Total, 1).title.contains("1 of 2"));
    }
}
