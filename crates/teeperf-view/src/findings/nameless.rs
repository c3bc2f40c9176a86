//! Functions that are shown by their addresses: their files have no symbols.

use super::{Finding, push};
use crate::{names, units};
use std::collections::BTreeMap;
use teeperf_profile::model::Profile;

/// Least part of all time, or of all samples, that such functions have.
const LEAST_PART: f64 = 0.01;
/// Most files named.
const NAMED: usize = 3;

/// Functions of one file.
#[derive(Default)]
struct Module {
    functions: u64,
    own: f64,
}

/// Where functions without names have a part of the time that one would want to read.
pub(super) fn nameless(profile: &Profile, found: &mut Vec<Finding>) {
    if profile.graph.is_some() {
        return;
    }
    let (modules, all) = modules(profile);
    let own: f64 = modules.values().map(|module| module.own).sum();
    let share = units::share(own, all);
    let functions: u64 = modules.values().map(|module| module.functions).sum();
    if functions == 0 || all > 0.0 && share < LEAST_PART {
        return;
    }
    let mut modules: Vec<(&str, Module)> = modules.into_iter().collect();
    modules.sort_by(|a, b| b.1.own.total_cmp(&a.1.own));
    let named = modules.iter().take(NAMED).map(|(name, _)| names::fit(name, 40));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match modules.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {}", units::counted(more as u64, "more file")),
    };
    let what = format!(
        "{} of {named}{more} {} no symbols: {} of self time stands beside addresses.",
        units::counted(functions, "function"),
        if functions == 1 { "has" } else { "have" },
        units::percent_inline(share)
    );
    let next = "`teeperf doctor RECORDING` says of each file which one has its names; or build without \
                `-s`, and do not strip.";
    push(found, false, what, next);
}

/// Files with such functions that were called or sampled, and the self time of all functions.
fn modules(profile: &Profile) -> (BTreeMap<&str, Module>, f64) {
    let mut own = vec![None; profile.functions.len()];
    let mut all = 0.0;
    let nodes = profile.threads.iter().flat_map(|thread| thread.tree.nodes.iter().skip(1));
    for node in nodes {
        all += node.self_time.value;
        if let Some(own) = own.get_mut(node.function.0 as usize) {
            *own = Some(own.unwrap_or(0.0) + node.self_time.value);
        }
    }
    let mut modules: BTreeMap<&str, Module> = BTreeMap::new();
    for (function, own) in profile.functions.iter().zip(own) {
        if let Some(own) = own.filter(|_| function.is_nameless()) {
            let module = modules.entry(&function.module).or_default();
            module.functions += 1;
            module.own += own;
        }
    }
    (modules, all)
}
