//! What is known of a run, as pairs of a word and a text: the text report's header and
//! the page's "Recording" say the same.

use std::collections::HashMap;
use teeperf_profile::model::{FunctionId, Info, Profile, Unit};
use teeperf_wire::body::notice;

use crate::command;
use crate::findings::signal_name;
use crate::names::printable;
use crate::units::{self, count, counted};

/// How far samples are from what was asked for, as a part of it, until that is told as well.
const NEAR: f64 = 0.1;

/// The facts, most wanted first; what is not known is left out.
pub(crate) fn of(profile: &Profile) -> Vec<(&'static str, String)> {
    let info = &profile.info;
    let is_of_counts = profile.graph.is_some() && profile.threads.is_empty();
    let facts = [
        ("Command", command::line(&info.command)),
        ("Ended", ended(info)),
        (
            "Duration",
            if info.duration_ns > 0 {
                units::time_inline(info.unit_of_durations(), info.duration_ns as f64)
            } else {
                String::new()
            },
        ),
        ("Started", started(info.started_ns)),
        ("Clock", clock(info)),
        ("CPU time", cpu_time(profile)),
        ("Waiting", waiting(profile)),
        (if info.is_sampled() { "Samples" } else { "Events" }, events(profile)),
        ("Health", if is_of_counts { String::new() } else { health(profile) }),
        ("Machine", machine(info)),
    ];
    facts.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

/// Those of another profile of the same run.
pub(crate) fn beside(profile: &Profile) -> Vec<(&'static str, String)> {
    let mut facts = of(profile);
    facts.retain(|(what, _)| matches!(*what, "Clock" | "Samples" | "Health"));
    facts
}

fn ended(info: &Info) -> String {
    match (info.signal, info.exit_status) {
        (Some(signal), _) => format!("by {}", signal_name(signal)),
        (None, Some(status)) => format!("with exit status {status}"),
        (None, None) => String::new(),
    }
}

fn clock(info: &Info) -> String {
    let mut text = printable(&info.clock);
    let is_sampled = text == "samples";
    if info.period_ns > 0.0 && info.timer_samples.is_none() {
        text.push_str(&format!(", {} apart", units::time_inline(info.unit, info.period_ns)));
        // Periods that are drawn at random have no mean to the digit.
        if (info.period_ns - info.asked_ns).abs() > info.asked_ns * NEAR && info.asked_ns > 0.0 {
            let asked = units::time_inline(info.unit, info.asked_ns);
            text.push_str(&format!(" where {asked} was asked for"));
        }
    }
    let reason = printable(&info.clock_reason);
    match text.is_empty() {
        // Of what is no clock of ours there is no more to say.
        true => text = reason,
        false if !reason.is_empty() => text.push_str(&format!(" ({reason})")),
        false => {}
    }
    if !text.is_empty() && !is_sampled {
        text.push_str(match info.unit {
            Unit::Nanoseconds if info.timer_samples.is_some() => "; it tells waiting",
            Unit::Nanoseconds => "; times are wall time, with waiting and what hooks took",
            Unit::Counts => "; times are its counts",
        });
    }
    text
}

/// Of what CPU times are made, and what hooks had beside.
fn cpu_time(profile: &Profile) -> String {
    let info = &profile.info;
    let Some(samples) = info.timer_samples else { return String::new() };
    let time = |ns| units::time_inline(Unit::Nanoseconds, ns);
    let (hooks, framed) = (profile.hooks_ns(), profile.framed_ns());
    if samples == 0 && framed > 0.0 {
        return format!("{}, told by the clock alone: no thread was sampled", time(framed));
    }
    if samples == 0 {
        let cpu_ns = profile.threads.iter().filter_map(|thread| thread.cpu_ns);
        let all = time(cpu_ns.fold(0, u64::saturating_add) as f64);
        return format!("{all}, which is too short for samples: no function's share is known");
    }
    format!(
        "{} {} {} of a thread's CPU time in the mean; hooks took {} of {} ({})",
        units::count(samples),
        if samples == 1 { "sample," } else { "samples, each" },
        time(info.period_ns),
        time(hooks),
        time(hooks + framed),
        units::percent_inline(units::share(hooks, hooks + framed)),
    )
}

/// How long threads waited, and where most.
fn waiting(profile: &Profile) -> String {
    let ns = profile.waiting_ns();
    if ns <= 0.0 {
        return String::new();
    }
    let mut by_function: HashMap<FunctionId, f64> = HashMap::new();
    for node in profile.threads.iter().flat_map(|thread| thread.tree.nodes.iter().skip(1)) {
        *by_function.entry(node.function).or_default() += node.spent.waiting_ns;
    }
    let most = by_function.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
    let most = most.filter(|&(_, most)| most > 0.0).and_then(|(function, most)| {
        let function = profile.functions.get(function.0 as usize)?;
        let part = units::percent_inline(units::share(most, ns));
        Some(format!(", {part} of it in {}", crate::names::fit(&function.name, 60)))
    });
    let all = units::time_inline(Unit::Nanoseconds, ns);
    format!("threads waited {all} beside that{}", most.unwrap_or_default())
}

fn events(profile: &Profile) -> String {
    let mut events = profile.health.events;
    let mut without_paths = String::new();
    if let Some(graph) = &profile.graph {
        let calls = graph.functions.iter().fold(0u64, |sum, f| sum.saturating_add(f.calls));
        let between = format!(
            "{} between {}",
            counted(calls, "call"),
            counted(graph.functions.len() as u64, "function")
        );
        if profile.threads.is_empty() {
            return between;
        }
        without_paths = format!("; without their paths {between}");
        events = events.saturating_sub(calls);
    }
    let threads: u64 = profile.threads.iter().map(|thread| u64::from(thread.merged.max(1))).sum();
    let mut what = match events {
        1 => "1 call or return".into(),
        _ => format!("{} calls and returns", count(events)),
    };
    if profile.info.is_sampled() {
        what = counted(events, "sample");
    } else if profile.health.only_sums {
        // Not all have returned, it may be.
        events /= 2;
        what = counted(events, "call");
    }
    let mut text = format!("{what} in {}", counted(threads, "thread"));
    let seconds = profile.info.duration_ns as f64 / 1e9;
    if seconds > 0.0 && events > 0 && profile.info.unit == Unit::Nanoseconds {
        let rate = events as f64 / seconds;
        let rate =
            if rate >= 1e6 { format!("{:.1} million", rate / 1e6) } else { count(rate as u64) };
        text.push_str(&format!(", {rate} a second"));
    }
    text + &without_paths
}

fn health(profile: &Profile) -> String {
    let health = &profile.health;
    if profile.info.is_sampled() {
        let stacks = health.stacks;
        let cut = match stacks.cut {
            0 => String::new(),
            cut => format!(", {} of {} stacks cut short", count(cut), count(stacks.followed)),
        };
        return format!("{} lost{cut}", count(health.lost));
    }
    let mended = format!("{} mended", count(health.mended));
    let may_miss = health.warnings.iter().any(|warning| warning.ends_with(notice::MAY_MISS));
    let mut text = match (health.unrecorded, health.lost) {
        (0, lost) if may_miss => {
            format!("processes may be missing, {} lost of the others, {mended}", count(lost))
        }
        (0, lost) => format!("{} lost, {mended}", count(lost)),
        (some, 0) => {
            format!("{} not recorded, none lost of the others, {mended}", unrecorded(some))
        }
        (some, lost) => {
            format!(
                "{} not recorded, {} lost of the others, {mended}",
                unrecorded(some),
                count(lost)
            )
        }
    };
    if !health.only_sums {
        text.push_str(&format!(", {} still open", count(health.open)));
    }
    text
}

/// So many processes or libraries.
pub(crate) fn unrecorded(number: u64) -> String {
    match number {
        1 => "1 process or library with hooks".into(),
        several => format!("{} processes or libraries with hooks", count(several)),
    }
}

fn machine(info: &Info) -> String {
    let processors = match info.processors {
        0 => String::new(),
        n => counted(n.into(), "processor"),
    };
    let parts = [&info.host, &info.system, &info.machine, &info.processor, &processors];
    let known: Vec<String> =
        parts.into_iter().filter(|part| !part.is_empty()).map(|part| printable(part)).collect();
    known.join(", ")
}

/// Nanoseconds since 1970 as `2026-11-21 08:42:39 UTC`; empty for 0.
pub(crate) fn started(ns: u64) -> String {
    if ns == 0 {
        return String::new();
    }
    let seconds = ns / 1_000_000_000;
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    // Days to year, month, day in the proleptic Gregorian calendar, with years that begin
    // in March so that leap days come last.
    let day = day + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let date = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{date:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_as_date_prints_them() {
        // Expectations from `date -u -d @SECONDS`.
        for (seconds, expected) in [
            (1, "1970-01-01 00:00:01 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_795_250_559, "2026-11-21 08:42:39 UTC"),
            (4_107_542_399, "2100-02-28 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(started(seconds * 1_000_000_000), expected);
        }
        assert_eq!(started(0), "");
    }
}
