//! What a thread's tree had no room for: see [`NoRoom`].

use std::collections::BTreeMap;

use crate::model::{Function, FunctionId, NoRoom, Tree};
use crate::names::{NO_ROOM, UNKNOWN};

/// The node that functions without room stand below.
fn node(tree: &Tree, functions: &[Function]) -> Option<u32> {
    let mut nodes = tree.nodes.iter().zip(0..).skip(1);
    let is = |function| is_pseudo(functions, function, NO_ROOM);
    nodes.find(|(node, _)| node.parent == 0 && is(node.function)).map(|(_, at)| at)
}

/// What a tree says of it, whose totals are known.
pub(crate) fn of(tree: &Tree, functions: &[Function]) -> Option<NoRoom> {
    let at = node(tree, functions)?;
    let there = tree.nodes[at as usize];
    let mut found: BTreeMap<FunctionId, Option<f64>> = BTreeMap::new();
    for node in tree.nodes.iter().skip(1) {
        let known = found.entry(node.function).or_default();
        if node.parent == at {
            *known = Some(node.self_time.high);
        } else if is_pseudo(functions, node.function, UNKNOWN) {
            // Where there is no room, frames that nobody saw have no node.
            known.get_or_insert_default();
        }
    }
    Some(NoRoom {
        function: there.function,
        total: there.total,
        nobodys: there.self_time,
        functions: found.into_iter().collect(),
        is_nameless: there.calls > 0,
    })
}

fn is_pseudo(functions: &[Function], function: FunctionId, name: &str) -> bool {
    let known = functions.get(function.0 as usize);
    known.is_some_and(|known| known.module.is_empty() && known.name == name)
}
