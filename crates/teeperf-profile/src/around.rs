//! A function with those that called it and those that it called.

use std::collections::HashMap;

use crate::aggregate::{self, Row, Sort};
use crate::model::{Arc, FunctionId, Profile, Time};
use crate::pattern::Found;

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Around {
    /// The function itself, over all its call paths.
    pub row: Row,
    /// Who called it: the calls, and their time in the function and in it with all it called. Most time first.
    pub callers: Vec<Neighbour>,
    /// What it called: the calls, and their time. Most time first.
    pub callees: Vec<Neighbour>,
}

/// Calls from one function to another, seen from one of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// The other one; nothing where nobody recorded called.
    pub function: Option<FunctionId>,
    /// Calls.
    pub calls: u64,
    /// Time of these calls. Of calls within calls of the same kind it counts once; what was called is without calls of
    /// the caller further down.
    pub total: Time,
    /// Time in the callee itself; nothing where calls have no paths, and totals are estimates.
    pub self_time: Option<Time>,
}

/// Functions that are wanted, most total time first, each with what is around it. Gives as many as `most`, and how many
/// there are.
pub fn around(profile: &Profile, wanted: &Found, most: usize) -> (Vec<Around>, usize) {
    let rows = aggregate::table(profile, Sort::Total);
    let found: Vec<Row> = rows.into_iter().filter(|row| wanted.has(row.function)).collect();
    let tree = aggregate::merged(&profile.threads);
    let of_tree = |list: Vec<(Option<FunctionId>, Row)>| -> Vec<Neighbour> {
        let each = |(function, row): (Option<FunctionId>, Row)| Neighbour {
            function,
            calls: row.calls,
            total: row.total,
            self_time: Some(row.self_time),
        };
        list.into_iter().map(each).collect()
    };
    let each = |row: &Row| {
        let function = row.function;
        let mut callers = of_tree(aggregate::callers(&tree, &profile.functions, function));
        let mut callees = of_tree(aggregate::callees(&tree, &profile.functions, function));
        if let Some(graph) = &profile.graph {
            let to_it = graph.arcs.iter().filter(|arc| arc.callee == function);
            add(&mut callers, to_it, |arc| arc.caller);
            add(&mut callees, graph.callees(function).iter(), |arc| Some(arc.callee));
        }
        Around { row: *row, callers, callees }
    };
    (found.iter().take(most).map(each).collect(), found.len())
}

/// Adds calls without paths.
fn add<'a>(
    list: &mut Vec<Neighbour>,
    arcs: impl Iterator<Item = &'a Arc>,
    other: impl Fn(&Arc) -> Option<FunctionId>,
) {
    let mut places: HashMap<Option<FunctionId>, usize> =
        list.iter().enumerate().map(|(at, known)| (known.function, at)).collect();
    for arc in arcs {
        let at = *places.entry(other(arc)).or_insert_with(|| {
            let function = other(arc);
            list.push(Neighbour { function, calls: 0, total: Time::default(), self_time: None });
            list.len() - 1
        });
        list[at].calls = list[at].calls.saturating_add(arc.calls);
        list[at].total += arc.total.into();
        list[at].self_time = None;
    }
    list.sort_by(|a, b| {
        let order = b.total.value.total_cmp(&a.total.value).then(b.calls.cmp(&a.calls));
        order.then(a.function.cmp(&b.function))
    });
}
