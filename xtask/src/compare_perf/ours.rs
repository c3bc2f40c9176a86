//! The samples that the command has of a file: those of `teeperf dump`, and what `teeperf report` counts.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Sample, Sums};
use crate::commands;

/// The samples of a file, with the names that threads have when they are taken.
pub(super) fn samples(teeperf: &Path, file: &Path) -> Result<Vec<Sample>> {
    let dump = commands::run_quietly(Command::new(teeperf).arg("dump").arg(file))?;
    let mut reader = Reader::default();
    dump.lines().for_each(|line| reader.line(line));
    Ok(reader.samples)
}

/// What the report counts: samples and periods by event and thread.
pub(super) fn reported(teeperf: &Path, file: &Path) -> Result<Sums> {
    let mut sums = Sums::new();
    let text = commands::run_quietly(Command::new(teeperf).args(["report", "--json"]).arg(file))?;
    let report: serde_json::Value = serde_json::from_str(&text).context("the report's JSON")?;
    let beside = report["beside"].as_array().cloned().unwrap_or_default();
    for report in std::iter::once(&report).chain(&beside) {
        let event = report["info"]["event"].as_str().unwrap_or_default();
        for thread in report["threads"].as_array().into_iter().flatten() {
            let id = |name: &str| thread[name].as_u64().unwrap_or(0) as u32;
            let (count, period) = sums.entry((event.into(), id("process"), id("id"))).or_default();
            *count += thread["events"].as_u64().unwrap_or(0);
            *period += thread["recorded"].as_f64().unwrap_or(0.0).round() as u128;
        }
    }
    Ok(sums)
}

/// Makes samples of lines; keeps what threads are called.
#[derive(Default)]
struct Reader {
    samples: Vec<Sample>,
    events: HashMap<String, String>,
    names: HashMap<u32, String>,
}

impl Reader {
    fn line(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let (_, kind) = (words.next(), words.next());
        let (pid, tid, time) = (words.next(), words.next(), words.next());
        let number = |word: Option<&str>| word.and_then(|word| word.parse::<u32>().ok());
        let (pid, tid) = (number(pid), number(tid));
        match kind {
            Some("sampled") => {
                if let (Some(event), Some(name)) = (value(line, "event"), text(line, "name")) {
                    self.events.insert(event.to_owned(), name);
                }
            }
            Some("task") => self.task(tid.unwrap_or(0), line),
            Some("sample") => {
                let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
                let tid = tid.unwrap_or(0);
                let event = value(line, "event").unwrap_or_default();
                let chain = value(line, "chain").into_iter().flat_map(|list| list.split(','));
                self.samples.push(Sample {
                    time: time.and_then(nanoseconds).unwrap_or(0),
                    pid: pid.unwrap_or(0),
                    tid,
                    ip: value(line, "ip").and_then(hex).unwrap_or(0),
                    event: self.events.get(event).cloned().unwrap_or_default(),
                    period: value(line, "period").and_then(|word| word.parse().ok()).unwrap_or(0),
                    comm: self.name(tid),
                    chain: chain.filter_map(hex).collect(),
                });
            }
            _ => {}
        }
    }

    /// Thread ids are told apart without the process, as perf has them.
    fn task(&mut self, tid: u32, line: &str) {
        match value(line, "what") {
            Some("fork") => {
                let parent = value(line, "parent").and_then(|both| both.split_once('/'));
                let parent = parent.and_then(|(_, tid)| tid.parse().ok());
                if let Some(parent) = parent {
                    self.names.insert(tid, self.name(parent));
                }
            }
            Some("name" | "exec") => {
                self.names.insert(tid, text(line, "name").unwrap_or_default());
            }
            _ => {}
        }
    }

    /// What perf calls a thread of which nothing is known too.
    fn name(&self, tid: u32) -> String {
        let unknown = || if tid == 0 { "swapper".into() } else { format!(":{}", tid as i32) };
        self.names.get(&tid).cloned().unwrap_or_else(unknown)
    }
}

/// The word behind `name=`.
fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let start = line.find(&format!(" {name}="))? + name.len() + 2;
    line[start..].split_whitespace().next()
}

/// The text in quotation marks behind `name=`.
fn text(line: &str, name: &str) -> Option<String> {
    let start = line.find(&format!(" {name}=\""))? + name.len() + 2;
    let mut values = serde_json::Deserializer::from_str(&line[start..]).into_iter::<String>();
    values.next()?.ok()
}

fn nanoseconds(seconds: &str) -> Option<u64> {
    let (seconds, rest) = seconds.split_once('.')?;
    Some(seconds.parse::<u64>().ok()? * 1_000_000_000 + rest.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_dump_become_samples() {
        let mut reader = Reader::default();
        let text = "0 sampled - - - - event=1 name=\"cycles:u\" period=0\n\
            816 task 7 8 - - what=name parent=0/0 name=\"a \\\"b\"\n\
            880 task 9 9 1.5 - what=fork parent=7/8 name=\"\"\n\
            936+0 sample 9 9 2.000000003 - event=1 cpu=- mode=user period=5 ip=0x10 chain=0xfe,0x10\n\
            936+1 sample 0 0 3.000000003 - event=1 cpu=- mode=user period=5 ip=0x10\n";
        text.lines().for_each(|line| reader.line(line));
        let [first, second] = &reader.samples[..] else { panic!("{:?}", reader.samples) };
        assert_eq!((first.time, &*first.event, &*first.comm), (2_000_000_003, "cycles:u", "a \"b"));
        assert_eq!((&first.chain[..], first.period, first.ip), (&[0xfe, 0x10][..], 5, 0x10));
        assert_eq!((&*second.comm, second.chain.len()), ("swapper", 0));
    }
}
