//! Running a program and keeping what is to be known of the run; medians and ratios.
//! Decides nothing about what is measured.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use crate::commands::line;

/// One run of a program that succeeded.
pub(crate) struct Ran {
    /// Wall time from start to end, seconds.
    pub(crate) seconds: f64,
    /// Its standard output.
    pub(crate) out: String,
    /// Its standard error.
    pub(crate) err: String,
    /// Most memory it had resident, MiB (`ru_maxrss`; of it or of a child it waited for).
    pub(crate) peak_mib: f64,
    /// When it had ended, seconds since 1970.
    pub(crate) ended: f64,
}

impl Ran {
    /// The number behind `key=` in what the program printed.
    pub(crate) fn number(&self, key: &str) -> Result<f64> {
        let mark = format!("{key}=");
        let words = self.out.split_whitespace().chain(self.err.split_whitespace());
        let found = words.filter_map(|word| word.strip_prefix(&mark)).next_back();
        let text = found.with_context(|| format!("no {mark} in: {} {}", self.out, self.err))?;
        text.trim_end_matches(['M', ',']).parse().with_context(|| format!("{mark}{text}"))
    }
}

/// Runs to the end with output kept in `scratch`; an error names the command and shows the
/// end of what it said.
pub(crate) fn run(command: &mut Command, scratch: &Path) -> Result<Ran> {
    run_into(&scratch.join("stdout"), command, scratch)
}

/// The same; what it prints goes into this file.
pub(crate) fn run_into(out: &Path, command: &mut Command, scratch: &Path) -> Result<Ran> {
    let err = scratch.join("stderr");
    command.stdin(Stdio::null()).stdout(File::create(out)?).stderr(File::create(&err)?);
    let start = Instant::now();
    let child = command.spawn().with_context(|| format!("cannot start {}", line(command)))?;
    let (status, peak_kib) = wait(child.id())?;
    let seconds = start.elapsed().as_secs_f64();
    let ended = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
    let text = |path: &Path| -> Result<String> {
        Ok(String::from_utf8_lossy(&std::fs::read(path)?).into_owned())
    };
    let ran =
        Ran { seconds, out: text(out)?, err: text(&err)?, peak_mib: peak_kib / 1024.0, ended };
    if !status.success() {
        let tail: String = ran.err.lines().rev().take(10).collect::<Vec<_>>().join("\n");
        bail!("{} ended with {status}\n{tail}", line(command));
    }
    Ok(ran)
}

/// Waits for a child and returns its status and its peak of resident memory in KiB.
fn wait(pid: u32) -> Result<(ExitStatus, f64)> {
    let mut status = 0;
    // SAFETY: rusage is a structure of integers, for which all bits zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live, writable variables of the types that wait4 fills;
    // the child was started by the caller and nobody else waits for it.
    let waited = unsafe { libc::wait4(pid as libc::pid_t, &mut status, 0, &mut usage) };
    if waited < 0 {
        return Err(std::io::Error::last_os_error()).context("wait4");
    }
    Ok((ExitStatus::from_raw(status), usage.ru_maxrss as f64))
}

/// The middle one; the mean of the two middle ones when their number is even.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

/// Median of the ratios of runs that were neighbours in time, which a machine whose speed
/// drifts disturbs less than the ratio of two medians.
pub(crate) fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a / b).collect();
    median(&ratios)
}

/// A figure with its bounds, least first: the median of each.
pub(crate) fn median_bounds(values: &[[f64; 3]]) -> [f64; 3] {
    [0, 1, 2].map(|bound| median(&values.iter().map(|value| value[bound]).collect::<Vec<_>>()))
}

/// How far the truth is outside of a figure's bounds.
pub(crate) fn outside([low, _, high]: [f64; 3], truth: f64) -> f64 {
    (low - truth).max(truth - high).max(0.0)
}

/// The name whose share is furthest apart between two sums by name, and how far, points; of those that have 1 % in either.
pub(crate) fn furthest(
    ours: &BTreeMap<String, f64>,
    theirs: &BTreeMap<String, f64>,
) -> Option<(String, f64)> {
    let share = |of: &BTreeMap<String, f64>, name: &str| {
        100.0 * of.get(name).copied().unwrap_or(0.0) / of.values().sum::<f64>()
    };
    let apart = ours.keys().chain(theirs.keys()).filter_map(|name| {
        let (a, b) = (share(ours, name), share(theirs, name));
        (a.max(b) >= 1.0).then(|| (name.clone(), (a - b).abs()))
    });
    apart.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Geometric mean.
pub(crate) fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

/// Something that is run and gives one figure.
pub(crate) type Trial<'a> = (&'static str, Box<dyn FnMut() -> Result<f64> + 'a>);

/// The figures of all trials, by name.
pub(crate) struct Trials(Vec<(&'static str, Vec<f64>)>);

impl Trials {
    /// Runs each in turn, `rounds` times over: A B C A B C …
    pub(crate) fn run(rounds: usize, mut trials: Vec<Trial<'_>>) -> Result<Self> {
        let mut figures: Vec<_> = trials.iter().map(|(name, _)| (*name, Vec::new())).collect();
        for _ in 0..rounds {
            for ((name, trial), (_, values)) in trials.iter_mut().zip(&mut figures) {
                values.push(trial().with_context(|| format!("trial {name}"))?);
            }
        }
        Ok(Self(figures))
    }

    /// Figures of a trial, in order.
    pub(crate) fn of(&self, name: &str) -> Option<&[f64]> {
        let found = self.0.iter().find(|(trial, _)| *trial == name);
        found.map(|(_, values)| values.as_slice())
    }

    /// Median of a trial.
    pub(crate) fn median(&self, name: &str) -> Option<f64> {
        self.of(name).map(median)
    }

    /// [`ratio`] of two trials; nothing when one was not run.
    pub(crate) fn ratio(&self, ours: &str, theirs: &str) -> Option<f64> {
        Some(ratio(self.of(ours)?, self.of(theirs)?))
    }

    /// By how much the median of one trial is above that of another; nothing when one was not run.
    pub(crate) fn above(&self, ours: &str, theirs: &str) -> Option<f64> {
        Some(self.median(ours)? - self.median(theirs)?)
    }

    /// `name 1.23 unit` for each trial in `names` that was run.
    pub(crate) fn medians(&self, names: &[&str], unit: &str) -> String {
        let told = names.iter().filter_map(|name| {
            let median = self.median(name)?;
            Some(format!("{name} {} {unit}", super::table::digits(median)))
        });
        told.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_even_and_odd() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn bounds_are_apart_from_their_figure() {
        let values = [[1.0, 5.0, 6.0], [2.0, 3.0, 9.0], [3.0, 4.0, 7.0]];
        assert_eq!(median_bounds(&values), [2.0, 4.0, 7.0]);
        assert_eq!(
            [1.5, 2.0, 7.0, 8.0].map(|truth| outside([2.0, 4.0, 7.0], truth)),
            [0.5, 0.0, 0.0, 1.0]
        );
    }

    #[test]
    fn ratio_is_of_neighbours() {
        assert_eq!(ratio(&[2.0, 20.0, 6.0], &[1.0, 10.0, 2.0]), 2.0);
    }

    #[test]
    fn number_is_the_last_of_its_key() {
        let ran = Ran {
            seconds: 0.0,
            out: "ns=1.5 ns=2.5\n".into(),
            err: "events=12.3M other".into(),
            peak_mib: 0.0,
            ended: 0.0,
        };
        assert_eq!(ran.number("ns").unwrap(), 2.5);
        assert_eq!(ran.number("events").unwrap(), 12.3);
        assert!(ran.number("missing").is_err());
    }
}
