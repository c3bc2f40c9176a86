//! From what a file says to a profile: functions instead of addresses, nanoseconds instead of samples.

use teeperf_profile::model::{CallGraph, FunctionId, Health, Info, Profile};

use super::{Gmon, Histogram, Names, UNIT};

/// Taken where a file does not say its rate: what gprof's files have since 4.3BSD.
const USUAL_HZ: u32 = 100;

/// The profile of a file, whose addresses are `bias` higher than those of the ELF file. What is in no
/// function is left out and said.
pub fn profile(gmon: &Gmon, names: &Names, bias: u64) -> Profile {
    let mut ns = vec![0.0; names.extents().len()];
    let mut warnings = gmon.warnings.clone();
    let mut period_ns = 0.0f64;
    let mut left_out = LeftOut::default();
    if gmon.histograms.is_empty() {
        warnings.push("there is no histogram: times are not known, only counts".into());
    }
    let is_empty = |histogram: &Histogram| histogram.bins.iter().all(|samples| *samples == 0);
    if !gmon.histograms.is_empty() && gmon.histograms.iter().all(is_empty) {
        warnings.push("no samples were taken: times are not known, only counts".into());
    }
    for histogram in &gmon.histograms {
        let hz = if histogram.hz == 0 { USUAL_HZ } else { histogram.hz };
        if histogram.hz == 0 && !is_empty(histogram) {
            let (low, high) = (histogram.low, histogram.high);
            warnings.push(format!(
                "the histogram from {low:#x} to {high:#x} does not say its rate: {USUAL_HZ} samples a second are assumed"
            ));
        }
        let each = 1e9 / f64::from(hz);
        period_ns = period_ns.max(each);
        let rest = shares(histogram, names, bias, |at, samples| ns[at] += samples * each);
        left_out.samples(rest);
    }
    let mut calls: Vec<(Option<usize>, usize, u64)> = Vec::with_capacity(gmon.arcs.len());
    for arc in &gmon.arcs {
        let own = |address: u64| names.at(address.wrapping_sub(bias));
        match own(arc.to) {
            Some(callee) => {
                let caller = if arc.from == 0 { None } else { own(arc.from) };
                calls.push((caller, callee, arc.calls));
            }
            None => left_out.call(arc.to, arc.calls),
        }
    }
    warnings.extend(left_out.said(names));
    let called = gmon.arcs.iter().map(|arc| arc.to);
    warnings.extend(crowd(called.map(|to| to.wrapping_sub(bias)), names));

    let mut numbers: Vec<Option<FunctionId>> = vec![None; ns.len()];
    let mut wanted: Vec<usize> = Vec::new();
    let called = calls.iter().flat_map(|&(caller, callee, _)| caller.into_iter().chain([callee]));
    let timed = ns.iter().enumerate().filter(|(_, ns)| **ns > 0.0).map(|(at, _)| at);
    for at in timed.chain(called) {
        numbers[at].get_or_insert_with(|| {
            wanted.push(at);
            FunctionId(wanted.len() as u32 - 1)
        });
    }
    let times = numbers.iter().zip(&ns).filter_map(|(number, &ns)| Some(((*number)?, ns)));
    let arcs = calls.iter().filter_map(|&(caller, callee, calls)| {
        Some((caller.and_then(|caller| numbers[caller]), numbers[callee]?, calls))
    });
    let graph = CallGraph::new(times, arcs);
    let (functions, warning) = names.functions(&wanted);
    warnings.extend(warning);
    let events = calls.iter().fold(0u64, |sum, call| sum.saturating_add(call.2));
    Profile {
        info: Info {
            command: names.program().map(|(path, _)| path.to_owned()).into_iter().collect(),
            clock: "samples".into(),
            clock_reason: "a gmon file".into(),
            period_ns,
            ..Info::default()
        },
        functions,
        graph: Some(graph),
        health: Health { events, only_sums: true, warnings, ..Health::default() },
        ..Profile::default()
    }
}

/// Gives each function, by index, its samples: those of a part that several share by how much of it is
/// theirs. Places are told apart by [`UNIT`]s, as in gprof, so that both come to the same; but of a part whose
/// size is a fraction gprof gives away a little more than all, or less. What is left for none: how many,
/// and the first address.
fn shares(
    histogram: &Histogram,
    names: &Names,
    bias: u64,
    mut give: impl FnMut(usize, f64),
) -> Option<(f64, u64)> {
    let extents = names.extents();
    let unit = |address: u64| i128::from(address / UNIT);
    let low = (i128::from(histogram.low) - i128::from(bias)).div_euclid(UNIT.into());
    let span = i128::from((histogram.high - histogram.low) / UNIT);
    let mut left: Option<(f64, u64)> = None;
    for (part, &samples) in (0i128..).zip(&histogram.bins).filter(|(_, samples)| **samples > 0) {
        let first = low + span * part / i128::from(histogram.parts);
        let behind = low + span * (part + 1) / i128::from(histogram.parts);
        // A part of less than a unit is taken for the whole.
        let behind = behind.max(first + 1);
        let share = |units: i128| f64::from(samples) * units as f64 / (behind - first) as f64;
        let mut rest = behind - first;
        let from = extents.partition_point(|extent| unit(extent.end) <= first);
        for (at, extent) in extents.iter().enumerate().skip(from) {
            if unit(extent.start) >= behind {
                break;
            }
            let overlap = behind.min(unit(extent.end)) - first.max(unit(extent.start));
            if overlap > 0 {
                rest -= overlap;
                give(at, share(overlap));
            }
        }
        if rest > 0 {
            let address = histogram.low.saturating_add((first - low) as u64 * UNIT);
            left.get_or_insert((0.0, address)).0 += share(rest);
        }
    }
    left
}

/// What to say where calls led to several places of one function. A function counts its calls at one, so the names are
/// those of another program; of one that lacks symbols they may be for a few.
fn crowd(called: impl Iterator<Item = u64>, names: &Names) -> Option<String> {
    let mut places: Vec<(usize, u64)> =
        called.filter_map(|address| Some((names.at(address)?, address))).collect();
    places.sort_unstable();
    places.dedup();
    let all = places.len();
    places.dedup_by_key(|&mut (function, _)| function);
    let too_many = all - places.len();
    let (path, _) = names.program().filter(|_| too_many > 0 && too_many * 4 >= all)?;
    Some(format!(
        "calls led to {all} places in {path}, {too_many} of them in functions that they led to at another place as well: it may not be the program that wrote the file, or lack symbols. Then names, callers and callees are wrong"
    ))
}

/// What is in no function.
#[derive(Default)]
struct LeftOut {
    calls: u64,
    samples: f64,
    /// The first address of a call, and of a sample.
    called: Option<u64>,
    sampled: Option<u64>,
}

impl LeftOut {
    fn call(&mut self, address: u64, calls: u64) {
        self.calls = self.calls.saturating_add(calls);
        self.called.get_or_insert(address);
    }

    fn samples(&mut self, left: Option<(f64, u64)>) {
        if let Some((samples, address)) = left {
            self.samples += samples;
            self.sampled.get_or_insert(address);
        }
    }

    fn said(&self, names: &Names) -> Vec<String> {
        let hint = match names.program() {
            Some((path, _)) => format!(
                "no function of {path} is there. Name the program that wrote the file, or, where it was loaded elsewhere than the ELF file says, --bias"
            ),
            None => "no call led there. Name the program with --elf".to_owned(),
        };
        let calls = self.called.map(|address| {
            format!("{} calls are left out, the first of {address:#x}: {hint}", self.calls)
        });
        let samples = self.sampled.map(|address| {
            format!("{:.1} samples are left out, the first at {address:#x}: {hint}", self.samples)
        });
        calls.into_iter().chain(samples).collect()
    }
}
