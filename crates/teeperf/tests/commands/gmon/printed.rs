//! What gprof prints, and whether a report of the same file says the same. It stands in a file of its own because
//! the tests on emulated machines ask it as well.

use serde_json::Value;

/// Calls by caller and callee, as often as the pair stands there: two functions may have one name.
pub(crate) type Arcs = Vec<(String, String, u64)>;

/// What `gprof -p` prints: self seconds and calls by others, by name.
pub(crate) fn flat(text: &str) -> Vec<(String, f64, u64)> {
    let mut rows = Vec::new();
    for line in text.lines().skip_while(|line| !line.trim_start().starts_with("time ")).skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [_, _, own, name] => rows.push((name.to_owned(), seconds(own), 0)),
            [_, _, own, calls, _, _, name] => {
                rows.push((name.to_owned(), seconds(own), calls.parse().unwrap()));
            }
            _ => break,
        }
    }
    rows.sort_by(|a, b| a.partial_cmp(b).unwrap());
    rows
}

/// What `gprof -q` prints: calls, and self and total seconds of each entry by name. Calls are taken from the lines
/// above each callee's, since a caller that was neither called nor seen has none of its own.
pub(crate) fn graph(text: &str) -> (Arcs, Vec<(String, f64, f64)>) {
    let (mut arcs, mut totals) = (Arcs::new(), Vec::new());
    let mut callers: Option<Vec<(String, u64)>> = Some(Vec::new());
    for line in text.lines().skip_while(|line| !line.starts_with("index ")).skip(1) {
        if line.starts_with("Index by") {
            break;
        }
        if line.starts_with("---") {
            callers = Some(Vec::new());
            continue;
        }
        let bare = line.split(" <cycle ").next().unwrap();
        // Behind a name stands the number of its entry, in brackets, or in parentheses where it has none.
        let words: Vec<&str> =
            bare.split_whitespace().filter(|word| !word.ends_with([']', ')'])).collect();
        let Some(&name) = words.last() else { continue };
        if line.starts_with('[') {
            // Of an entry: % time, self, children, and calls where there are any.
            let at = |at: usize| seconds(words[at]);
            let callers = callers.take().unwrap_or_default();
            if line.contains("as a whole") {
                totals.push(("cycle".to_owned(), at(1), at(1) + at(2)));
            } else {
                totals.push((name.to_owned(), at(1), at(1) + at(2)));
                arcs.extend(
                    callers.into_iter().map(|(from, calls)| (from, name.to_owned(), calls)),
                );
            }
        } else if let Some(callers) = callers.as_mut().filter(|_| name != "<spontaneous>") {
            let calls = words[words.len() - 2].split('/').next().unwrap();
            callers.push((name.to_owned(), calls.parse().unwrap()));
        }
    }
    arcs.sort();
    totals.sort_by(|a, b| a.partial_cmp(b).unwrap());
    (arcs, totals)
}

/// Without a sample it prints what a division by 0 gives.
fn seconds(word: &str) -> f64 {
    let seconds: f64 = word.parse().unwrap();
    if seconds.is_nan() { 0.0 } else { seconds }
}

/// The arcs of a report.
pub(crate) fn arcs(report: &Value) -> Arcs {
    let name = |at: &Value| {
        at.as_u64().map(|at| report["functions"][at as usize]["name"].as_str().unwrap().to_owned())
    };
    let list = report["arcs"].as_array().unwrap().iter();
    let mut arcs: Arcs = list
        .filter_map(|arc| {
            Some((name(&arc["caller"])?, name(&arc["callee"])?, arc["calls"].as_u64().unwrap()))
        })
        .collect();
    arcs.sort();
    arcs
}

/// The stubs that lead to libraries' functions stand behind it, and are in no function here.
const STUBS: &str = "_init";

/// What counts calls: gprof leaves it out, with its time (`default_excluded_list` in binutils' `gprof/gprof.c`).
const COUNTERS: [&str; 6] =
    ["_gprof_mcount", "mcount", "_mcount", "__mcount", "__mcount_internal", "__mcleanup"];

fn is_left_out(name: &str) -> bool {
    name == STUBS || name.ends_with("@plt") || COUNTERS.contains(&name)
}

/// Whether a report of a gmon file says what gprof prints of it with `-p` and with `-q`; if not, what differs.
pub(crate) fn agree(report: &Value, flat_text: &str, graph_text: &str) -> Result<(), String> {
    let functions = report["functions"].as_array().unwrap();
    let own_calls = |at: usize| -> u64 {
        let own = report["arcs"].as_array().unwrap().iter();
        own.filter(|arc| arc["caller"] == at && arc["callee"] == at)
            .map(|arc| arc["calls"].as_u64().unwrap())
            .sum()
    };
    let mut rows: Vec<(String, f64, u64)> = functions
        .iter()
        .enumerate()
        .map(|(at, function)| {
            let calls = function["calls"].as_u64().unwrap() - own_calls(at);
            let own = function["self"].as_f64().unwrap() / 1e9;
            (function["name"].as_str().unwrap().to_owned(), own, calls)
        })
        .filter(|(name, own, calls)| (*own > 0.0 || *calls > 0) && !is_left_out(name))
        .collect();
    rows.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let mut theirs = flat(flat_text);
    theirs.retain(|row| !is_left_out(&row.0));
    let calls = |rows: &[(String, f64, u64)]| -> Vec<(String, u64)> {
        let mut calls: Vec<_> =
            rows.iter().map(|(name, _, calls)| (name.clone(), *calls)).collect();
        calls.sort();
        calls
    };
    same(&calls(&rows), &calls(&theirs), flat_text)?;
    // gprof rounds to hundredths, and credits up to a part in two hundred too much.
    let near = |a: f64, b: f64| (a - b).abs() <= 0.0051 + 0.005 * b;
    for ((name, own, _), (_, their_own, _)) in rows.iter().zip(&theirs) {
        if !near(*own, *their_own) {
            return Err(format!("{name}: {own} s, not {their_own}, in\n{flat_text}"));
        }
    }
    let (their_arcs, mut their_totals) = graph(graph_text);
    their_totals.retain(|total| total.0 != STUBS);
    same(&arcs(report), &their_arcs, graph_text)?;
    let mut totals: Vec<(String, f64)> = functions
        .iter()
        .map(|function| {
            let name = function["name"].as_str().unwrap().to_owned();
            (name, function["total"].as_f64().unwrap() / 1e9)
        })
        // Without an entry: what was neither called nor seen, nor called what was.
        .filter(|(name, total)| {
            let has_entry = *total > 0.0 && !is_left_out(name);
            has_entry || their_totals.iter().any(|theirs| theirs.0 == *name)
        })
        .collect();
    let cycles = report["cycles"].as_array().unwrap().iter();
    totals.extend(cycles.map(|cycle| ("cycle".into(), cycle["total"].as_f64().unwrap() / 1e9)));
    totals.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let mut their_totals: Vec<(String, f64)> =
        their_totals.into_iter().map(|(name, _, total)| (name, total)).collect();
    their_totals.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let names = |totals: &[(String, f64)]| -> Vec<String> {
        totals.iter().map(|(name, _)| name.clone()).collect()
    };
    same(&names(&totals), &names(&their_totals), graph_text)?;
    for ((name, total), (_, their_total)) in totals.iter().zip(&their_totals) {
        // The sum of two that are rounded.
        if (total - their_total).abs() > 0.011 + 0.005 * total {
            return Err(format!("{name}: {total} s, not {their_total}, in\n{graph_text}"));
        }
    }
    Ok(())
}

/// Shows what only one of two lists has.
fn same<T: PartialEq + std::fmt::Debug>(
    ours: &[T],
    theirs: &[T],
    text: &str,
) -> Result<(), String> {
    if ours == theirs {
        return Ok(());
    }
    let only = |these: &[T], those: &[T]| {
        let only: Vec<&T> = these.iter().filter(|one| !those.contains(one)).collect();
        format!("{only:?}")
    };
    let (ours, theirs) = (only(ours, theirs), only(theirs, ours));
    Err(format!("only here: {ours}; only there: {theirs}; of\n{text}"))
}
