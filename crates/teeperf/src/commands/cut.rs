//! `teeperf cut`: a window of a recording.

use super::progress::Progress;
use super::reading;
use super::{amounts, made};
use crate::recordings;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use teeperf_edit::cut::{Cut, When, cut};
use teeperf_profile::info::Info;

/// Makes a recording of a part of another: what was between two times, of some threads or processes
///
/// It reads as the whole does between these times: what is open where it begins stands in call paths, and counts no
/// calls; what passes at its borders is shared out between both sides. Parts that follow one another add up to
/// the whole.
#[derive(Args, Debug)]
#[command(after_help = "\
Times are from the recording's start on (1.5s, 200ms, 2m), shares of it (50%), or times of the clock on the wall in
UTC (2026-11-23T22:03:13.5Z).

Examples:
  teeperf cut program.teeperf --since 10s --until 12s -o slow.teeperf
  teeperf cut --since 90% -o end.teeperf          the last tenth of the newest recording here
  teeperf cut --process 4711 -o child.teeperf     one process")]
pub(crate) struct Arguments {
    /// The recording; - is standard input [default: the newest *.teeperf in this folder]
    recording: Option<PathBuf>,
    /// From this time on
    #[arg(long, value_name = "TIME", value_parser = when)]
    since: Option<When>,
    /// Before this time
    #[arg(long, value_name = "TIME", value_parser = when)]
    until: Option<When>,
    /// Only threads of this id
    #[arg(long, value_name = "TID")]
    thread: Vec<u32>,
    /// Only processes of this id
    #[arg(long, value_name = "PID")]
    process: Vec<u32>,
    #[command(flatten)]
    made: made::Arguments,
}

fn when(text: &str) -> Result<When, String> {
    if let Some(share) = text.strip_suffix('%') {
        let share: f64 = share.trim().parse().map_err(|_| "not a number".to_owned())?;
        return match (0.0..=100.0).contains(&share) {
            true => Ok(When::Share(share / 100.0)),
            false => Err("a share is from 0% to 100%".into()),
        };
    }
    if let Some(wall) = amounts::wall(text) {
        return wall.map(When::Wall);
    }
    // The beginning is a time as well.
    if text.trim_end_matches(|c: char| c.is_alphabetic()).parse() == Ok(0.0) {
        return Ok(When::After(std::time::Duration::ZERO));
    }
    amounts::time(text).map(When::After)
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let path = arguments.made.recording(arguments.recording.as_deref())?;
    let recording = reading::open(&path)?.recording()?.0;
    let target = arguments.made.target(&[&path])?;
    let mut progress = Progress::of("cutting", &path);
    let bounds = if recordings::is_plain(&path) {
        Info::skim(&path, &mut |_| {})?.bounds()
    } else if path.is_file() || path.is_dir() {
        let (again, _) = reading::open(&path)?.recording()?;
        Info::check(again, &mut |_| {})?.bounds()
    } else {
        None
    };
    let wanted = Cut {
        since: arguments.since,
        until: arguments.until,
        bounds,
        threads: arguments.thread.clone(),
        processes: arguments.process.clone(),
    };
    let name = arguments.made.name();
    let cut = cut(recording, &wanted, target.output(), &name, &mut |bytes| progress.at(bytes))?;
    target.finish()?;
    drop(progress);
    for text in cut.warnings.iter().chain(&cut.notices) {
        eprintln!("teeperf: {text}");
    }
    if cut.words == 0 && cut.sums == 0 {
        eprintln!(
            "teeperf: no thread that is wanted has called anything in this time, or returned"
        );
    }
    let s = if cut.threads == 1 { "" } else { "s" };
    let sums = match cut.sums {
        0 => String::new(),
        sums => format!(" and {sums} packets of sums"),
    };
    let made = format!("{} words{sums} of {} thread{s}", cut.words, cut.threads);
    arguments.made.tell(&made, cut.bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_read() {
        assert_eq!(when("50%"), Ok(When::Share(0.5)));
        assert_eq!(when("1.5s"), Ok(When::After(Duration::from_millis(1500))));
        assert_eq!(when("0"), Ok(When::After(Duration::ZERO)));
        assert_eq!(when("0s"), Ok(When::After(Duration::ZERO)));
        let wall = 1_795_471_393_500_000_000;
        assert_eq!(when("2026-11-23T22:03:13.5Z"), Ok(When::Wall(wall)));
        assert_eq!(when("2026-11-23 22:03:13.5"), Ok(When::Wall(wall)));
        for text in ["", "101%", "x%", "-1s", "2026-13-01T00:00:00Z", "2026-11-23T22:03"] {
            assert!(when(text).is_err(), "{text}");
        }
    }
}
