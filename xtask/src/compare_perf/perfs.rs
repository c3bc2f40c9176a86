//! The samples that perf has of a file: `perf script -D` tells what a record says and, behind it, what perf makes of it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::Sample;

/// The samples of a file, or the last line that perf said when it gave up.
pub(super) fn samples(file: &Path) -> Result<Result<Vec<Sample>, String>> {
    // Files without periods are asked for once more without these.
    match script(file, "period,event")? {
        Err(said) if said.contains("'period'") => script(file, "event"),
        outcome => Ok(outcome),
    }
}

fn script(file: &Path, fields: &str) -> Result<Result<Vec<Sample>, String>> {
    let mut perf = Command::new("perf");
    perf.args(["script", "--dump-raw-trace", "--force", "--fields", fields, "--input"]).arg(file);
    perf.env("PERF_PAGER", "cat").stdin(Stdio::null());
    perf.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = perf.spawn().context("cannot start perf")?;
    let mut said = child.stderr.take().context("perf has no stderr")?;
    let listener = std::thread::spawn(move || {
        let mut text = Vec::new();
        // A perf that can say nothing has failed in another way too.
        let _ = std::io::Read::read_to_end(&mut said, &mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let mut parser = Parser::default();
    let mut out = BufReader::new(child.stdout.take().context("perf has no stdout")?);
    let mut line = Vec::new();
    while out.read_until(b'\n', &mut line)? > 0 {
        parser.line(String::from_utf8_lossy(&line).trim_end_matches('\n'));
        line.clear();
    }
    let status = child.wait()?;
    let said = listener.join().unwrap_or_default();
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no word");
    Ok(if status.success() { Ok(parser.samples) } else { Err(last.trim().to_owned()) })
}

/// Makes samples of lines.
#[derive(Default)]
struct Parser {
    samples: Vec<Sample>,
    /// The record that lines are of, where it is a sample.
    record: Option<Sample>,
    /// Whether the lines that come are addresses of its call chain.
    in_chain: bool,
    /// Whether perf has said which thread the record is of: what it prints of the sample comes next.
    is_told: bool,
}

impl Parser {
    fn line(&mut self, line: &str) {
        if line.starts_with("0x") && line.contains(": event: ") {
            *self = Self { samples: std::mem::take(&mut self.samples), ..Self::default() };
        } else if line.contains(": PERF_RECORD_SAMPLE(IP, ") {
            self.record = head(line);
        } else if let Some(record) = &mut self.record {
            let trimmed = line.trim_start();
            if trimmed.starts_with("... FP chain: nr:") {
                (self.in_chain, record.chain) = (true, Vec::new());
            } else if self.in_chain && trimmed.starts_with("..... ") {
                let address = trimmed.rsplit(' ').next().unwrap_or_default();
                record.chain.extend(u64::from_str_radix(address, 16));
            } else if let Some(thread) = trimmed.strip_prefix("... thread: ") {
                let comm = thread.rsplit_once(':').map_or(thread, |(comm, _)| comm);
                record.comm = comm.to_owned();
                (self.in_chain, self.is_told) = (false, true);
            } else if self.is_told && !trimmed.starts_with("...") && !trimmed.is_empty() {
                self.samples.push(printed(record, trimmed));
                self.is_told = false;
            } else if !trimmed.starts_with(".....") {
                self.in_chain = false;
            }
        }
    }
}

/// What perf prints of a record: processor and time, where it stands, then who, where, and how much.
fn head(line: &str) -> Option<Sample> {
    let (before, rest) = line.split_once(": PERF_RECORD_SAMPLE(IP, ")?;
    let words: Vec<&str> = before.split_whitespace().take_while(|w| !w.starts_with("0x")).collect();
    // Files have both, or either; no machine has as many processors as nanoseconds pass.
    let time = words.last().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    let time = if words.len() < 2 && time < 1 << 16 { 0 } else { time };
    let (_, rest) = rest.split_once("): ")?;
    let (ids, rest) = rest.split_once(": ")?;
    let (pid, tid) = ids.split_once('/')?;
    let mut rest = rest.split_whitespace();
    let ip = u64::from_str_radix(rest.next()?.strip_prefix("0x").unwrap_or("0"), 16).ok()?;
    let period = rest.nth(1)?.parse().ok()?;
    let id = |text: &str| text.parse::<i64>().ok().map(|id| id as u32);
    Some(Sample { time, pid: id(pid)?, tid: id(tid)?, ip, period, ..Sample::default() })
}

/// A sample as perf prints it: the period, where that was asked for, and the event.
fn printed(record: &Sample, line: &str) -> Sample {
    let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
    let (period, event) = match first.parse() {
        Ok(period) => (period, rest),
        Err(_) => (record.period, line),
    };
    let event = event.trim().trim_end_matches(':').to_owned();
    Sample { period, event, ..record.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_and_what_perf_makes_of_it_become_samples() {
        let mut parser = Parser::default();
        let text = "\n0x2d80@a.data [0x38]: event: 9\n.\n. ... raw event: size 56 bytes\n.  0000:  09 00\n\
            0 4414951075183 0x2d80 [0x38]: PERF_RECORD_SAMPLE(IP, 0x2): 7/8: 0x7f3b7fd81950 period: 20 addr: 0\n\
            ... FP chain: nr:2\n.....  0: fffffffffffffe00\n.....  1: 00007f3b7fd81950\n\
            \x20... thread: a:b c:8\n ...... dso: <not found>\n         5 cycles:u: \n\
            \x20... thread: a:b c:8\n ...... dso: <not found>\n         6 instructions:u: \n\
            0x2db8@a.data [0x38]: event: 3\n";
        text.lines().for_each(|line| parser.line(line));
        let [first, second] = &parser.samples[..] else { panic!("{:?}", parser.samples) };
        assert_eq!((first.time, first.pid, first.tid), (4_414_951_075_183, 7, 8));
        assert_eq!((first.period, &*first.event, &*first.comm), (5, "cycles:u", "a:b c"));
        assert_eq!(first.chain, [u64::MAX - 511, 0x7f3b_7fd8_1950]);
        assert_eq!((second.period, &*second.event), (6, "instructions:u"));
        let alone = "77 0x2d80 [0x38]: PERF_RECORD_SAMPLE(IP, 0x2): -1/-1: 0 period: 20 addr: 0";
        assert_eq!(head(alone).map(|sample| (sample.time, sample.pid)), Some((0, u32::MAX)));
    }
}
