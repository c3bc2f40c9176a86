//! Simulated enclaves, sampled from another process: the host makes its system calls by itself, so no library sees what it asks
//! of the driver, and the enclave is found from an exit.

use crate::outside::Machine;
use crate::support;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use teeperf_aex::attached::Stop;
use teeperf_aex::debug_read::{DebugRead, MemoryFile, Refused};
use teeperf_aex::enclaves::Enclaves;
use teeperf_aex::probe::{Exit, probe};
use teeperf_aex::sampler::{Clock, Sampler, Settings, event};
use teeperf_aex::state::{MOST_CHAIN, MOST_STACK, Room, Wanted};
use teeperf_aex::threads::Threads;

/// A host whose enclave is made, and what it said of it: base, size, TCSs.
fn start(options: &str) -> (Child, BufReader<impl Read>, [u64; 2], Vec<u64>) {
    let mut command = Command::new(support::machine().join("host"));
    command.arg(support::machine().join("enclave.so")).args(options.split(' ')).args(["tcs=2"]);
    let mut host = command.env("MACHINE_INLINE", "1").stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(host.stdout.take().unwrap());
    let mut numbers = Vec::new();
    while numbers.len() < 4 {
        let mut line = String::new();
        assert!(said.read_line(&mut line).unwrap() > 0);
        numbers.extend(
            line.split_whitespace().skip(1).map(|word| u64::from_str_radix(word, 16).unwrap()),
        );
    }
    (host, said, [numbers[0], numbers[1]], numbers[2..].to_vec())
}

/// The range that a file of this name is mapped at, in a process.
fn mapped(process: u32, name: &str) -> Option<(u64, u64)> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    let ranges = maps.lines().filter(|line| line.contains(name)).map(|line| {
        let (low, rest) = line.split_once('-').unwrap();
        let high = rest.split(' ').next().unwrap();
        (u64::from_str_radix(low, 16).unwrap(), u64::from_str_radix(high, 16).unwrap())
    });
    ranges.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
}

/// Processor time that a thread had, in nanoseconds.
fn processor_time(process: u32, thread: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/schedstat")).ok()?;
    text.split(' ').next()?.parse().ok()
}

/// Memory of a host; of its enclave only when that is a debug enclave.
struct Memory {
    file: MemoryFile,
    refused: (u64, u64),
}

impl DebugRead for Memory {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<usize, Refused> {
        if (self.refused.0..self.refused.1).contains(&at) {
            Err(Refused)
        } else {
            self.file.read(at, into)
        }
    }
}

/// Samples the host's first thread until it ends: what was sampled, and the sizes of frames that were found.
fn sample(options: &str, frame_pages: u64, is_debug: bool) -> (support::Run, Vec<u64>) {
    let (host, mut said, [base, size], tcss) = start(options);
    let process = host.id();
    let mut machine = Machine::new(process, base, size, 4096 * frame_pages, tcss);
    machine.ptrace.seize(process).expect("a child may be traced");
    let file = std::fs::File::open(format!("/proc/{process}/mem")).unwrap();
    let mut memory = support::Rings::new();
    let sampler = Sampler {
        enclaves: Enclaves::new(),
        memory: Memory {
            file: MemoryFile::of_descriptor(file.as_raw_fd()),
            refused: if is_debug { (0, 0) } else { (base, base + size) },
        },
        // SAFETY: the memory is as long, and outlives it.
        threads: unsafe { Threads::new(memory.start(), support::PLACES, support::CAPACITY) },
        settings: Settings {
            clock: Clock::Passing,
            period_ns: 1_000_000,
            is_constant: false,
            has_enclaves: true,
            wanted: Wanted::Chain,
            signal: 0,
            process,
        },
    };
    let place = sampler.place_of(process).unwrap();
    let mut room = Room { chain: [[0; 8]; MOST_CHAIN], stack: [0; MOST_STACK] };
    let (mut since, mut frames) = (0, Vec::new());
    'lives: loop {
        // Each ENCLU is a signal here, for which the thread stands until it is handed on.
        for _ in 0..20 {
            std::thread::sleep(std::time::Duration::from_micros(20));
            if !machine.ptrace.serve(process) {
                break 'lives;
            }
        }
        let Some(stopped) = machine.stop(process) else { break };
        let now = processor_time(process, process).unwrap_or(since);
        // An enclave that nobody has heard of.
        let exit = Exit { tcs: stopped.shown.bx, sp: stopped.sp, bp: stopped.bp };
        if let Some((low, high)) = mapped(process, "sgx_enclave").filter(|range| {
            (range.0..range.1).contains(&exit.tcs) && sampler.enclaves.of_tcs(exit.tcs).is_none()
        }) && let Some(secs) = probe(&sampler.memory, &exit, low, high)
        {
            frames.push(secs.frame);
            sampler.enclaves.found(secs);
        }
        sampler.stopped(place, &mut room, &stopped.shown, now - since);
        since = now;
        machine.go_on(process);
    }
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "done\n");
    (support::Run::of_host("enclave.so", vec![base], memory), frames)
}

#[test]
fn functions_have_the_share_of_their_work() {
    let (run, frames) = sample("rounds=30000", 1, true);
    assert_eq!(frames, [4096]);
    assert!(run.of(event::INSIDE).count() > 500, "{}", run.samples.len());
    support::assert_shares(&run);
    let whole = run.percent(event::INSIDE, |sample| {
        sample.chain.last().is_some_and(|name| name == "enclave_entry")
    });
    assert!(whole > 97.0, "{whole}");
}

#[test]
fn larger_frames_are_found_and_results_are_right() {
    // The host compares what the enclave worked out, through exits, OCALLs and signals.
    let (run, frames) = sample("call=3 rounds=300000 frame=4", 4, true);
    assert_eq!(frames, [4 * 4096]);
    assert!(run.of(event::INSIDE).count() > 50);
    let (run, _) = sample("call=1 rounds=2000", 1, true);
    let counts = [event::OUTSIDE, event::INSIDE].map(|event| run.of(event).count());
    assert!(counts.iter().all(|&count| count > 5), "{counts:?}");
}

#[test]
fn production_enclaves_are_counted() {
    let (run, _) = sample("rounds=3000 debug=0", 1, false);
    assert_eq!(run.of(event::INSIDE).count(), 0);
    assert!(run.of(event::UNREADABLE).count() > 50);
}
