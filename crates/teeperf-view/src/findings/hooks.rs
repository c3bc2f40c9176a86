//! Functions of whose time hooks have a large part.

use std::collections::HashMap;

use teeperf_profile::model::{FunctionId, Profile};

use super::{Finding, push};
use crate::names;

/// Share of CPU time that hooks in a function have at least where that is said.
const LEAST_HOOKS: f64 = 0.02;
/// Most functions named.
const MOST_NAMED: usize = 3;

/// Functions in which hooks took as much as all their code: there they change the program most.
pub(super) fn hooks(profile: &Profile, found: &mut Vec<Finding>) {
    if profile.info.timer_samples.is_none() {
        return;
    }
    let mut by_function: HashMap<FunctionId, (f64, f64)> = HashMap::new();
    for thread in &profile.threads {
        let nodes = &thread.tree.nodes;
        for (at, node) in nodes.iter().enumerate().skip(1) {
            // Code without hooks, and such as was inlined, is that of the function that called it.
            let mut whose = at;
            while nodes[whose].calls == 0 && nodes[whose].parent != 0 {
                whose = nodes[whose].parent as usize;
            }
            let (own, hooks) = by_function.entry(nodes[whose].function).or_default();
            *own += node.self_time.value;
            *hooks += node.spent.hooks_ns;
        }
    }
    let least = LEAST_HOOKS * (profile.framed_ns() + profile.hooks_ns());
    let mut most: Vec<(&str, f64)> = by_function
        .into_iter()
        .filter(|(_, (own, hooks))| hooks >= own && *hooks > least)
        .filter_map(|(function, (_, hooks))| {
            let function = profile.functions.get(function.0 as usize)?;
            // The next step is to build it without hooks.
            (!function.is_placeholder()).then_some((&*function.name, hooks))
        })
        .collect();
    most.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let names = most.iter().take(MOST_NAMED).map(|(name, _)| names::fit(name, 60));
    let names = names.collect::<Vec<_>>().join(", ");
    if names.is_empty() {
        return;
    }
    let others = match most.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let what = format!(
        "Hooks took as much CPU time as the code itself, or more, in {names}{others}. A processor \
         does the work of both at once, so times of such functions may be wrong: shares by some \
         points, or by tens where calls take few nanoseconds."
    );
    let next =
        "`teeperf suggest` names small busy functions that tell little, to be built without hooks.";
    push(found, false, what, next);
}
