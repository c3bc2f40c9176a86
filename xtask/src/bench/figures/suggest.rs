//! Whether what `teeperf suggest` leaves out takes the events away, and leaves the shares of the rest as they were.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::measure::{median, median_bounds, outside};
use crate::bench::table::{Limit, Row, digits};

pub(crate) const FIGURE: Figure = Figure {
    name: "suggest",
    title: "Functions left out of a build",
    method: "lua 5.4 with `bench/programs/work.lua`, and sqlite3's `speedtest1 --memdb`: recorded with all hooks, built \
             again without what `teeperf suggest` names, recorded again; and once more without what it then names of that \
             recording. The three in turn, medians of seven rounds. \
             Compared is the self time of each function that stays, in points of all time, and in the first recordings \
             with what was called from it and left out. Beside it is how far two recordings of the first program \
             are apart, the median of one half of the rounds from that of the other: below that nothing can be seen. Told too \
             is how far shares of the second are outside of the bounds that the first have, and how \
             much less shares change when nine tenths of what is left go as well.",
    measure,
};

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let script = lab.bench_file("programs/work.lua").display().to_string();
    let size = lab.size("20", "5");
    let mut rows = of(lab, "lua", Lab::lua, Lab::lua_without, &[&script, "2"])?;
    rows.extend(of(
        lab,
        "sqlite3",
        Lab::speedtest,
        Lab::speedtest_without,
        &["--size", size, "--memdb"],
    )?);
    Ok(rows)
}

type Build = fn(&Lab, Hooks) -> Result<PathBuf>;
type BuildWithout = fn(&Lab, &str) -> Result<PathBuf>;

fn of(
    lab: &Lab,
    name: &str,
    build: Build,
    without: BuildWithout,
    words: &[&str],
) -> Result<Vec<Row>> {
    let whole = build(lab, Hooks::Late)?;
    let recording = lab.scratch(&format!("{name}-whole.teeperf"));
    record(lab, &recording, &whole, words)?;
    let suggestion = Suggestion::of(lab, &recording)?;
    let part = without(lab, &suggestion.flags)?;
    // The next build has the same name.
    let kept = lab.scratch(&format!("{name}-part"));
    std::fs::copy(part, &kept)?;
    record(lab, &recording, &kept, words)?;
    let further = Suggestion::of(lab, &recording)?;
    let least = without(lab, &format!("{} {}", suggestion.flags, further.flags))?;
    let (mut first, mut second, mut third) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..lab.rounds(7) {
        first.push(record(lab, &recording, &whole, words)?);
        second.push(record(lab, &recording, &kept, words)?);
        third.push(record(lab, &recording, &least, words)?);
    }
    let out = &suggestion.out;
    let events = |runs: &[Recorded]| median(&runs.iter().map(|run| run.events).collect::<Vec<_>>());
    let removed = 100.0 * (1.0 - events(&second) / events(&first));
    let seconds =
        |runs: &[Recorded]| digits(median(&runs.iter().map(|run| run.seconds).collect::<Vec<_>>()));
    let before: Vec<Shares> = first.iter().map(|run| run.shares(out)).collect();
    let after: Vec<Shares> = second.iter().map(|run| run.shares(out)).collect();
    let (worst, points) = furthest(&before, &after, |[_, a, _], [_, b, _]| (a - b).abs());
    let (far, beyond) = furthest(&before, &after, |a, [_, b, _]| outside(a, b));
    let (even, odd): (Vec<_>, Vec<_>) =
        before.iter().cloned().enumerate().partition(|(at, _)| at % 2 == 0);
    let half =
        |part: Vec<(usize, Shares)>| part.into_iter().map(|(_, shares)| shares).collect::<Vec<_>>();
    let (_, noise) = furthest(&half(even), &half(odd), |[_, a, _], [_, b, _]| (a - b).abs());
    let of_rest = |runs: &[Recorded]| -> Vec<Shares> {
        runs.iter().map(|run| run.shares(&further.out)).collect()
    };
    let (last, later) =
        furthest(&of_rest(&second), &of_rest(&third), |[_, a, _], [_, b, _]| (a - b).abs());
    let gone = 100.0 * (1.0 - events(&third) / events(&second));
    Ok(vec![
        Row::new(
            &format!("{name}-events"),
            &format!("{name}: events that go"),
            format!(
                "{} functions, {} % of the time moves to callers",
                out.len(),
                digits(100.0 * suggestion.moved)
            ),
        )
        .beside(format!(
            "recorded in {} s with all, {} s without",
            seconds(&first),
            seconds(&second)
        ))
        .limit(Limit::AtLeast(90.0), Some(removed), "%"),
        Row::new(
            &format!("{name}-shares"),
            &format!("{name}: largest change of a share"),
            format!("{worst} {} points", digits(points)),
        )
        .beside(format!("the same program again {} points", digits(noise)))
        .limit(Limit::AtMost(1.0), Some(points), "points"),
        Row::new(
            &format!("{name}-bounds"),
            &format!("{name}: furthest outside of the bounds of a share"),
            format!("{far} {} points", digits(beyond)),
        )
        .limit(Limit::AtMost(1.0), Some(beyond), "points"),
        Row::new(
            &format!("{name}-further"),
            &format!("{name}: largest change of a share when {} % of the rest go", digits(gone)),
            format!("{last} {} points", digits(later)),
        )
        .limit(Limit::Told, Some(later), "points"),
    ])
}

/// What `teeperf suggest` says of a recording.
struct Suggestion {
    /// Functions to leave out.
    out: HashSet<String>,
    /// Part of the time that moves to callers.
    moved: f64,
    /// Options of the wrapper.
    flags: String,
}

impl Suggestion {
    fn of(lab: &Lab, recording: &Path) -> Result<Self> {
        let suggest = |form: &str| -> Result<String> {
            let mut command = Command::new(&lab.teeperf);
            Ok(lab.run(command.args(["suggest", form]).arg(recording))?.out)
        };
        let told: Value = serde_json::from_str(&suggest("--json")?)?;
        let list = told["functions"].as_array().context("no functions in the suggestion")?;
        Ok(Self {
            out: list.iter().filter_map(|f| Some(f["name"].as_str()?.to_owned())).collect(),
            moved: told["share_moved"].as_f64().unwrap_or(f64::NAN),
            flags: suggest("--flags")?.trim().to_owned(),
        })
    }
}

/// Points of all time by function: least, shown, most.
type Shares = BTreeMap<String, [f64; 3]>;

/// The function whose median shares are furthest apart, and by how much.
fn furthest(
    before: &[Shares],
    after: &[Shares],
    apart: impl Fn([f64; 3], [f64; 3]) -> f64,
) -> (String, f64) {
    let of = |runs: &[Shares], name: &str| {
        let shares = runs.iter().map(|shares| shares.get(name).copied().unwrap_or_default());
        median_bounds(&shares.collect::<Vec<_>>())
    };
    // Of several the first by name.
    let names: BTreeSet<&String> =
        before.iter().chain(after).flat_map(|shares| shares.keys()).collect();
    let apart = names
        .into_iter()
        .rev()
        .map(|name| (name.clone(), apart(of(before, name), of(after, name))));
    apart.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default()
}

/// A recording, as far as it matters.
struct Recorded {
    seconds: f64,
    events: f64,
    /// Paths of each thread.
    trees: Vec<Vec<CallPath>>,
}

/// A call path: caller, name, own time with its bounds.
type CallPath = (Option<usize>, String, [f64; 3]);

fn record(lab: &Lab, recording: &Path, program: &Path, words: &[&str]) -> Result<Recorded> {
    let seconds = lab.run(lab.record(recording, &[]).arg(program).args(words))?.seconds;
    let mut command = Command::new(&lab.teeperf);
    let ran = lab.run(command.args(["report", "--json", "--tree"]).arg(recording))?;
    let report: Value = serde_json::from_str(&ran.out).context("report --json")?;
    let node = |node: &Value| {
        let caller = node["caller"].as_u64().map(|caller| caller as usize);
        (
            caller,
            node["name"].as_str().unwrap_or_default().to_owned(),
            ["self_low", "self", "self_high"].map(|field| node[field].as_f64().unwrap_or(0.0)),
        )
    };
    let threads = report["threads"].as_array().context("no threads in the report")?;
    let tree = |thread: &Value| thread["tree"].as_array().into_iter().flatten().map(node).collect();
    let events = report["health"]["events"].as_f64().context("no events in the report")?;
    Ok(Recorded { seconds, events, trees: threads.iter().map(tree).collect() })
}

impl Recorded {
    /// Points of all time that functions have, with those of `out` below them.
    fn shares(&self, out: &HashSet<String>) -> Shares {
        let mut own = Shares::new();
        for tree in &self.trees {
            let mut holders: Vec<Option<usize>> = Vec::with_capacity(tree.len());
            for (at, (caller, name, time)) in tree.iter().enumerate() {
                let above = caller.and_then(|caller| holders.get(caller).copied().flatten());
                let holder = if out.contains(name) { above } else { Some(at) };
                holders.push(holder);
                let named = holder.map_or("none", |holder| &tree[holder].1);
                let sum = own.entry(named.to_owned()).or_default();
                *sum = [0, 1, 2].map(|bound| sum[bound] + time[bound]);
            }
        }
        let all = [0, 1, 2].map(|bound| own.values().map(|time| time[bound]).sum::<f64>());
        let share = |part: f64, rest: f64| 100.0 * part / (part + rest).max(f64::MIN_POSITIVE);
        // A share is least where all others have most.
        let shares = |[low, shown, high]: [f64; 3]| {
            [share(low, all[2] - high), share(shown, all[1] - shown), share(high, all[0] - low)]
        };
        own.into_iter().map(|(name, time)| (name, shares(time))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_its_callers() {
        let node = |caller, name: &str, own| (caller, name.to_owned(), own);
        let tree = vec![
            node(None, "main", [10.0; 3]),
            node(Some(0), "a", [20.0; 3]),
            node(Some(1), "b", [10.0, 30.0, 70.0]),
            node(Some(2), "c", [40.0; 3]),
        ];
        let run = Recorded { seconds: 0.0, events: 0.0, trees: vec![tree] };
        let shares = run.shares(&["a".to_owned(), "c".to_owned()].into());
        assert_eq!(shares["main"][1], 30.0);
        assert_eq!(shares["b"], [62.5, 70.0, 100.0 * 110.0 / 140.0]);
        let other: Shares = [("main".to_owned(), [40.0; 3]), ("b".to_owned(), [60.0; 3])].into();
        let (before, after) = ([shares], [other]);
        let (name, points) = furthest(&before, &after, |[_, a, _], [_, b, _]| (a - b).abs());
        assert!(["main", "b"].contains(&name.as_str()) && points == 10.0);
        assert_eq!(furthest(&before, &after, |a, [_, b, _]| outside(a, b)), ("b".to_owned(), 2.5));
    }
}
