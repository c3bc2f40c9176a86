//! A stretch of time of a recording, as users type it.

use super::amounts;
use super::reading::{self, Source, Unsaid};
use crate::recordings;
use anyhow::{Result, bail};
use clap::Args;
use std::path::Path;
use std::time::Duration;
use teeperf_edit::cut::{Cut, When, Window};
use teeperf_profile::Packets;
use teeperf_profile::contents::Body;
use teeperf_profile::info::Info;

/// From when to when.
#[derive(Args, Clone, Debug)]
#[group(skip)]
pub(crate) struct Arguments {
    /// From this time on: 1.5s, 50%, 2026-11-23T22:03:13Z; see `teeperf help cut`
    #[arg(long, value_name = "TIME", value_parser = when)]
    since: Option<When>,
    /// Before this time
    #[arg(long, value_name = "TIME", value_parser = when)]
    until: Option<When>,
}

impl Arguments {
    /// Whether it is all of the recording.
    pub(crate) fn is_all(&self) -> bool {
        self.since.is_none() && self.until.is_none()
    }

    /// As much of what was opened as is in the window; `path` is that of the file.
    pub(crate) fn packets(
        &self,
        source: Source,
        unsaid: &Unsaid,
        path: &Path,
    ) -> Result<Box<dyn Packets>> {
        if self.is_all() {
            return unsaid.packets(source);
        }
        match &source {
            Source::Log(_, name) => {
                bail!(
                    "{name} is a log of TEE-Perf: --since and --until are for recordings of teeperf"
                )
            }
            Source::PerfData(..) => {
                let bounds = if path.is_file() { bounds_of(path)? } else { None };
                let cut = Cut { bounds, ..self.cut() };
                return Ok(Box::new(Window::new(unsaid.packets(source)?, cut)?));
            }
            Source::Recording(..) | Source::Gmon(..) => {}
        }
        Ok(Box::new(Window::new(unsaid.packets(source)?, self.of(path)?)?))
    }

    /// What to cut out of a recording, and when that begins and ends, where it can be known before it is read.
    pub(crate) fn of(&self, path: &Path) -> Result<Cut> {
        let bounds = if recordings::is_plain(path) {
            Info::skim(path, &mut |_| {})?.bounds()
        } else if path.is_file() || path.is_dir() {
            let (again, _) = reading::open(path)?.recording()?;
            Info::check(again, &mut |_| {})?.bounds()
        } else {
            None
        };
        Ok(Cut { bounds, ..self.cut() })
    }

    fn cut(&self) -> Cut {
        Cut { since: self.since, until: self.until, ..Cut::default() }
    }

    /// In words, such as `from 1.5s`; empty when it is all.
    pub(crate) fn in_words(&self) -> Vec<String> {
        let since = self.since.map(|when| format!("from {}", told(when)));
        let until = self.until.map(|when| format!("until {}", told(when)));
        since.into_iter().chain(until).collect()
    }
}

/// When a file of perf begins and ends, on the clock of its packets; nothing where its end is missing.
fn bounds_of(path: &Path) -> Result<Option<(u64, u64)>> {
    let Source::PerfData(mut packets, _) = reading::open(path)? else { return Ok(None) };
    let (mut begin, mut end) = (0, None);
    while let Some(packet) = packets.next_packet()? {
        match packet.body {
            Body::Start(start) => begin = start.clock_start,
            Body::End(told) => end = Some(told.time),
            _ => {}
        }
    }
    Ok(end.map(|end| (begin, end)))
}

fn told(when: When) -> String {
    match when {
        When::Units(units) => units.to_string(),
        When::After(time) => format!("{time:?}"),
        When::Share(share) => format!("{} %", share * 100.0),
        When::Wall(ns) => {
            let time = std::time::UNIX_EPOCH + Duration::from_nanos(ns);
            humantime::format_rfc3339(time).to_string()
        }
    }
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
