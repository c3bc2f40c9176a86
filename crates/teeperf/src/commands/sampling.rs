//! Options of sampling: whether, of what, how often, and what is kept of stacks.

use super::amounts;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use teeperf_record::{GivenModule, Rate, Sampling, Sgx, Stacks};

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
    /// The program is a host of SGX enclaves: sample it inside of them as well, at asynchronous exits, whatever they were built with.
    /// Of debug enclaves there are functions and stacks, of others how much time. inside: by a library that is preloaded into
    /// the program and all that it starts; outside: from another process, for hosts that ask the kernel without the C library, as
    /// Gramine does. How often, --sample=HZ|PERIOD says. Also records the host's calls into enclaves and theirs out of them (ECALLs and
    /// OCALLs) where it makes them by the runtime of Intel's SDK, and enclaves that were built with hooks
    #[arg(
        long,
        value_enum,
        value_name = "FROM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "inside"
    )]
    sgx: Option<Front>,
    /// With --sgx: a file that is loaded in enclaves, where no list of a runtime's says so, such as
    /// enclave.signed.so; at this address, or, without one, where the enclave begins
    #[arg(long, value_name = "FILE[@ADDRESS]", value_parser = module)]
    module: Vec<GivenModule>,
    /// With --sample: what is kept of the stack. dwarf, or dwarf,SIZE: registers and a copy of it, of 8 KiB or so many bytes,
    /// for all programs; fp: return addresses by frame pointers, for those that have them (-fno-omit-frame-pointer), at
    /// less cost; none: only the place in the code [default: dwarf; with --sgx fp]
    #[arg(long, value_name = "HOW", value_parser = stacks)]
    call_graph: Option<Stacks>,
    /// With --sample: memory for each processor in which the kernel leaves samples until they are fetched, such as 16M
    /// [default: 4MiB]
    #[arg(long, value_name = "SIZE", value_parser = buffer)]
    sample_buffer: Option<u64>,
    /// With --sample: the same distance always. Programs that beat in step with it come out wrong
    #[arg(long, hide = true)]
    sample_constant: bool,
    /// With --sample: by timers within the program, as where the kernel permits nothing else
    #[arg(long, hide = true)]
    pub(crate) sample_within: bool,
}

/// Who samples enclaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Front {
    /// A library in the program
    Inside,
    /// Another process
    Outside,
}

impl Arguments {
    /// What was asked for, where nothing else is recorded or where it is; an error where options do not go together.
    pub(crate) fn sampling(&self, is_alone: bool) -> Result<Option<Sampling>> {
        let usual = Sampling::default();
        let is_alone = is_alone || self.sgx.is_some();
        if self.sgx.is_none() && !self.module.is_empty() {
            bail!("--module is about enclaves: give --sgx as well");
        }
        let Some(rate) = self.sample.or(is_alone.then_some(usual.rate)) else {
            return match self.of_samples().iter().find(|(_, is_given)| *is_given) {
                Some((name, _)) => bail!("--{name} is about samples: give --sample as well"),
                None => Ok(None),
            };
        };
        let stacks = if self.sgx.is_some() { Stacks::FramePointers } else { usual.stacks };
        Ok(Some(Sampling {
            rate,
            stacks: self.call_graph.unwrap_or(stacks),
            is_constant: self.sample_constant,
            ring: self.sample_buffer.map_or(usual.ring, |bytes| bytes as usize),
        }))
    }

    /// Whether another process samples.
    pub(crate) fn is_from_outside(&self) -> bool {
        self.sgx == Some(Front::Outside)
    }

    /// The same, of a host of enclaves.
    pub(crate) fn sgx(&self, how: Sampling) -> Option<Sgx> {
        let front = match self.sgx? {
            Front::Inside => teeperf_record::Front::Inside,
            Front::Outside => teeperf_record::Front::Outside,
        };
        Some(Sgx { how, front, modules: self.module.clone() })
    }

    /// Whether the program is a host of enclaves.
    pub(crate) fn is_of_enclaves(&self) -> bool {
        self.sgx.is_some()
    }

    /// Options that mean something where there are samples, and whether they are given.
    fn of_samples(&self) -> [(&'static str, bool); 3] {
        [
            ("call-graph", self.call_graph.is_some()),
            ("sample-buffer", self.sample_buffer.is_some()),
            ("sample-constant", self.sample_constant),
        ]
    }

    /// Whether an option means nothing beside the others, where nothing else is recorded or where it is.
    pub(crate) fn leaves_idle(&self, option: &str, is_alone: bool) -> bool {
        if option == "module" {
            return self.sgx.is_none();
        }
        let has_samples = is_alone || self.sample.is_some() || self.sgx.is_some();
        !has_samples && self.of_samples().iter().any(|(name, _)| *name == option)
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

/// A file, and the address behind the last @ if there is one.
fn module(text: &str) -> Result<GivenModule, String> {
    let Some((path, address)) = text.rsplit_once('@') else {
        return Ok(GivenModule { path: text.into(), base: None });
    };
    let digits = address.strip_prefix("0x").unwrap_or(address);
    match u64::from_str_radix(digits, 16) {
        Ok(base) if !path.is_empty() => {
            Ok(GivenModule { path: PathBuf::from(path), base: Some(base) })
        }
        _ => Err(format!("{address} is no hexadecimal address")),
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
    fn modules_are_files_with_addresses() {
        let given = |path: &str, base| Ok(GivenModule { path: path.into(), base });
        assert_eq!(module("a/enclave.so"), given("a/enclave.so", None));
        assert_eq!(module("a@b.so@7f00"), given("a@b.so", Some(0x7f00)));
        assert_eq!(module("e.so@0x7f00"), given("e.so", Some(0x7f00)));
        for refused in ["a@b.so", "@7f00", "e.so@"] {
            assert!(module(refused).is_err(), "{refused}");
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
