//! Options of sampling: whether, how often, and what is kept of stacks.

use super::amounts;
use anyhow::{Result, bail};
use clap::Args;
use teeperf_record::{Rate, Sampling, Stacks};

/// How to sample.
#[derive(Args, Debug)]
#[group(skip)]
pub(crate) struct Arguments {
    /// Sample the program and all that it starts, with hooks or without: the kernel interrupts each thread so many times a
    /// second of the processor time that it takes, such as 4000 or 250Hz, or after such a time on average, such as 1ms;
    /// --sample alone: 999 times. Distances vary at random, so that nothing beats in step with them
    #[arg(
        long,
        value_name = "HZ|PERIOD",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "999",
        value_parser = rate
    )]
    sample: Option<Rate>,
    /// With --sample: what is kept of the stack. dwarf, or dwarf,SIZE: registers and a copy of it, of 8 KiB or so many bytes,
    /// for all programs; fp: return addresses by frame pointers, for those that have them (-fno-omit-frame-pointer), at
    /// less cost; none: only the place in the code [default: dwarf]
    #[arg(long, value_name = "HOW", value_parser = stacks)]
    call_graph: Option<Stacks>,
    /// With --sample: memory for each processor in which the kernel leaves samples until they are fetched, such as 16M
    /// [default: 4MiB]
    #[arg(long, value_name = "SIZE", value_parser = buffer)]
    sample_buffer: Option<u64>,
    /// With --sample: the same distance always. Programs that beat in step with it come out wrong
    #[arg(long, hide = true)]
    sample_constant: bool,
}

impl Arguments {
    /// What was asked for, where nothing else is recorded or where it is; an error where options do not go together.
    pub(crate) fn sampling(&self, is_alone: bool) -> Result<Option<Sampling>> {
        let usual = Sampling::default();
        let Some(rate) = self.sample.or(is_alone.then_some(usual.rate)) else {
            return match self.of_samples().iter().find(|(_, is_given)| *is_given) {
                Some((name, _)) => bail!("--{name} is about samples: give --sample as well"),
                None => Ok(None),
            };
        };
        Ok(Some(Sampling {
            rate,
            stacks: self.call_graph.unwrap_or(usual.stacks),
            is_constant: self.sample_constant,
            ring: self.sample_buffer.map_or(usual.ring, |bytes| bytes as usize),
        }))
    }

    /// Options that mean something where there are samples, and whether they are given.
    fn of_samples(&self) -> [(&'static str, bool); 3] {
        [
            ("call-graph", self.call_graph.is_some()),
            ("sample-buffer", self.sample_buffer.is_some()),
            ("sample-constant", self.sample_constant),
        ]
    }

    /// Whether an option means nothing beside the others.
    pub(crate) fn leaves_idle(&self, option: &str) -> bool {
        self.sample.is_none() && self.of_samples().iter().any(|(name, _)| *name == option)
    }
}

/// A number of samples a second, or the time between two.
fn rate(text: &str) -> Result<Rate, String> {
    let hz = text.strip_suffix("Hz").unwrap_or(text).trim_end();
    if let Ok(hz) = hz.parse::<u32>() {
        return match hz {
            1..=Rate::MOST => Ok(Rate::Frequency(hz)),
            _ => Err(format!("it is 1 at least and {} at most", Rate::MOST)),
        };
    }
    let time = amounts::time(text).map_err(|error| format!("{error}; or a number of Hz"))?;
    let shortest = Rate::Frequency(Rate::MOST).period_ns();
    match u64::try_from(time.as_nanos()) {
        Ok(ns) if (shortest..=1_000_000_000).contains(&ns) => Ok(Rate::Period(ns)),
        _ => Err(format!("it is {} us at least and 1 s at most", shortest / 1000)),
    }
}

/// As `perf record --call-graph` has it.
fn stacks(text: &str) -> Result<Stacks, String> {
    match text.split_once(',').unwrap_or((text, "")) {
        ("fp", "") => Ok(Stacks::FramePointers),
        ("none", "") => Ok(Stacks::None),
        ("dwarf", "") => Ok(Stacks::Copied(Stacks::USUAL)),
        ("dwarf", size) => {
            let bytes = amounts::bytes(size)?.next_multiple_of(8);
            match u16::try_from(bytes) {
                Ok(bytes) if bytes <= Stacks::MOST => Ok(Stacks::Copied(bytes)),
                _ => Err(format!("a copy has {} bytes at most", Stacks::MOST)),
            }
        }
        _ => Err("fp, dwarf, dwarf,SIZE or none".into()),
    }
}

fn buffer(text: &str) -> Result<u64, String> {
    match amounts::bytes(text)? {
        bytes @ 0..=0x4000_0000 => Ok(bytes),
        _ => Err("it is 1 GiB at most".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_frequencies_or_times() {
        assert_eq!(rate("4000"), Ok(Rate::Frequency(4000)));
        assert_eq!(rate("250Hz"), Ok(Rate::Frequency(250)));
        assert_eq!(rate("1ms"), Ok(Rate::Period(1_000_000)));
        assert_eq!(rate("0.5 ms"), Ok(Rate::Period(500_000)));
        for refused in ["0", "1000000", "1us", "2s", "often", ""] {
            assert!(rate(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn stacks_are_asked_for_as_of_perf() {
        assert_eq!(stacks("fp"), Ok(Stacks::FramePointers));
        assert_eq!(stacks("none"), Ok(Stacks::None));
        assert_eq!(stacks("dwarf"), Ok(Stacks::Copied(8192)));
        assert_eq!(stacks("dwarf,16KiB"), Ok(Stacks::Copied(16384)));
        assert_eq!(stacks("dwarf,1001"), Ok(Stacks::Copied(1008)));
        for refused in ["lbr", "fp,8192", "dwarf,64KiB", "dwarf,x", ""] {
            assert!(stacks(refused).is_err(), "{refused}");
        }
    }
}
