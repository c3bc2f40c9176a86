//! Builds the simulated machine and its programs, runs a host with the sampler in it, and reads what was sampled.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use teeperf_aex::layout::Registers;
use teeperf_aex::sampler::event;
use teeperf_aex::threads::Threads;
use teeperf_wire::body::sample::{CONTEXT_USER, Samples};

/// As the preloaded library has them.
const PLACES: usize = 8;
const CAPACITY: usize = 4 << 20;

/// Where the machine, its host and its enclave are.
pub(crate) fn machine() -> &'static Path {
    static BUILT: OnceLock<tempfile::TempDir> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simulator");
        let cc = |arguments: &str| {
            let mut command = Command::new("cc");
            command.current_dir(&source).args(["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer"]);
            let folder = folder.path().to_str().unwrap();
            let is_built = command.args(arguments.split(' ').map(|word| word.replace("OUT", folder))).status();
            assert!(is_built.unwrap().success(), "cc {arguments}");
        };
        cc("-fPIC -shared device.c processor.c signals.c inline.c -o OUT/libmachine.so -ldl");
        cc("host.c urts.c urts_enter.S -o OUT/host -LOUT -lmachine -Wl,-rpath,$ORIGIN -pthread");
        cc("-fno-stack-protector -nostdlib -ffreestanding -fPIC -shared -Wl,-Bsymbolic -Wl,-e,enclave_entry \
            enclave.c trts.S -o OUT/enclave.so");
        cc("-fno-stack-protector -fno-builtin -nostdlib -ffreestanding -fPIC -shared -Wl,-Bsymbolic \
            -Wl,-e,enclave_entry zstd_enclave.c trts.S -o OUT/zstd.so -l:libzstd.a");
        folder
    })
    .path()
}

/// The library that tests preload. Cargo builds it with them only where all targets are tested: here it is built as they were.
fn preload() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().unwrap().parent().unwrap();
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "-q", "-p", "teeperf-aex", "--example", "aex_preload", "--target-dir"]);
    build.arg(profile.parent().unwrap());
    if profile.ends_with("release") {
        build.arg("--release");
    }
    assert!(build.status().unwrap().success(), "{build:?}");
    profile.join("examples/libaex_preload.so")
}

/// A sample of the test's.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) event: u16,
    pub(crate) thread: u32,
    pub(crate) ip: u64,
    pub(crate) period: u64,
    /// Names of functions, innermost first; the enclave's alone.
    pub(crate) chain: Vec<String>,
    pub(crate) stack: Vec<u8>,
    /// Of a host that called an enclave: where it goes on, and its stack.
    pub(crate) host: Option<(u64, Vec<u8>)>,
}

/// What a host did.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) output: Output,
    pub(crate) samples: Vec<Taken>,
    pub(crate) lost: u64,
    pub(crate) reads: u64,
    pub(crate) words: u64,
    /// Bases of its enclaves, one after the other.
    pub(crate) bases: Vec<u64>,
    /// The enclave's functions, by where they begin.
    functions: Vec<(u64, String)>,
}

/// Functions of an enclave's file: where each begins.
fn functions(enclave: &str) -> Vec<(u64, String)> {
    let output = Command::new("nm")
        .args(["-n", "--defined-only"])
        .arg(machine().join(enclave))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let symbols = text.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
        matches!(kind, "t" | "T")
            .then(|| (u64::from_str_radix(address, 16).unwrap(), name.to_owned()))
    });
    symbols.collect()
}

/// Runs the host with these options and the sampler in it, with these settings.
pub(crate) fn run(options: &str, settings: &[(&str, &str)]) -> Run {
    run_with("enclave.so", options, settings)
}

/// The same, with another enclave.
pub(crate) fn run_with(enclave: &str, options: &str, settings: &[(&str, &str)]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let rings = folder.path().join("rings");
    let length = Threads::bytes(PLACES, CAPACITY);
    std::fs::File::create(&rings).unwrap().set_len(length as u64).unwrap();
    let mut command = Command::new(machine().join("host"));
    command.arg(machine().join(enclave)).args(options.split(' '));
    command.env("LD_PRELOAD", preload()).env("AEX_RINGS", &rings).envs(settings.iter().copied());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    // What cannot be preloaded is told here, and the host runs without.
    let is_preloaded = !String::from_utf8_lossy(&output.stderr).contains("ld.so");
    assert!(output.status.success() && said.ends_with("done\n") && is_preloaded, "{output:?}");
    let bases = said.lines().filter_map(|line| line.strip_prefix("enclave ")?.split(' ').next());
    let bases = bases.map(|base| u64::from_str_radix(base, 16).unwrap()).collect();
    let bytes = std::fs::read(&rings).unwrap();
    let mut run = Run {
        output,
        samples: Vec::new(),
        lost: 0,
        reads: 0,
        words: 0,
        bases,
        functions: functions(enclave),
    };
    let mut rings = Rings::of(&bytes);
    // SAFETY: the memory outlives it, and is as long.
    run.read(&unsafe { Threads::new(rings.start(), PLACES, CAPACITY) });
    assert!(!run.samples.is_empty(), "{:x?} {:?}", &bytes[..80], run.output);
    run
}

/// Memory of rings, aligned as they are.
struct Rings(Vec<Page>);

#[derive(Clone)]
#[repr(align(4096))]
struct Page([u8; 4096]);

impl Rings {
    fn new() -> Self {
        Self(vec![Page([0; 4096]); Threads::bytes(PLACES, CAPACITY) / 4096])
    }

    fn of(bytes: &[u8]) -> Self {
        let mut rings = Self::new();
        assert_eq!(bytes.len(), rings.0.len() * 4096);
        for (page, bytes) in rings.0.iter_mut().zip(bytes.as_chunks().0) {
            page.0 = *bytes;
        }
        rings
    }

    fn start(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

impl Run {
    fn read(&mut self, threads: &Threads) {
        for place in 0..PLACES {
            let (ring, head) = (threads.ring(place).unwrap(), threads.head(place).unwrap());
            let count = |count: &std::sync::atomic::AtomicU64| {
                count.load(std::sync::atomic::Ordering::Relaxed)
            };
            let mut all = vec![0; CAPACITY];
            let length = ring.take(&mut all).unwrap();
            all.truncate(length);
            let mut samples = Samples { rest: &all };
            let before = self.samples.len();
            for sample in samples.by_ref() {
                self.samples.push(Taken {
                    event: sample.event,
                    thread: sample.tid,
                    ip: sample.ip,
                    period: sample.period,
                    chain: sample
                        .chain
                        .iter()
                        .filter(|&at| at != CONTEXT_USER)
                        .map(|at| self.name(at))
                        .collect(),
                    stack: sample.stack.to_vec(),
                    host: sample
                        .outer
                        .register(Registers::IP)
                        .map(|ip| (ip, sample.outer.stack.to_vec())),
                });
            }
            assert!(samples.rest.is_empty(), "all of a ring is samples");
            let taken = count(&head.inside) + count(&head.outside) + count(&head.unreadable);
            self.lost += ring.lost();
            assert!((self.samples.len() - before) as u64 + ring.lost() >= taken);
            self.reads += count(&head.reads);
            self.words += count(&head.words);
        }
    }

    /// The function at an address of one of the enclaves.
    pub(crate) fn name(&self, address: u64) -> String {
        let base = self.bases.iter().find(|&&base| address.wrapping_sub(base) < 4 << 20);
        let offset = base.map(|base| address - base);
        let found = offset
            .and_then(|offset| self.functions.iter().rev().find(|(begin, _)| *begin <= offset));
        found.map_or_else(|| format!("{address:#x}"), |(_, name)| name.clone())
    }

    /// Samples of an event.
    pub(crate) fn of(&self, event: u16) -> impl Iterator<Item = &Taken> {
        self.samples.iter().filter(move |sample| sample.event == event)
    }

    /// Percent of the time in samples of an event in which `is_meant`.
    pub(crate) fn percent(&self, event: u16, is_meant: impl Fn(&Taken) -> bool) -> f64 {
        let time = |samples: &mut dyn Iterator<Item = &Taken>| {
            samples.map(|sample| sample.period).sum::<u64>()
        };
        let all = time(&mut self.of(event));
        100.0 * time(&mut self.of(event).filter(|sample| is_meant(sample))) as f64 / all as f64
    }
}

/// The work that functions of the enclave share is told, but for chance, which as many samples with these periods leave. What the
/// simulated processor takes to enter and leave, which a real one would not, is left out. Gives the greatest difference, in points.
pub(crate) fn assert_shares(run: &Run) -> f64 {
    const SHARES: [(&str, f64); 3] = [("half", 0.5), ("three_tenths", 0.3), ("fifth", 0.2)];
    let (mut times, mut all, mut squares) = ([0.0; 3], 0.0, 0.0);
    for sample in run.of(event::INSIDE) {
        let name = run.name(sample.ip);
        if let Some(place) = SHARES.iter().position(|(function, _)| *function == name) {
            let period = sample.period as f64;
            times[place] += period;
            all += period;
            squares += period * period;
        }
    }
    let mut greatest = 0.0f64;
    for ((function, share), time) in SHARES.into_iter().zip(times) {
        let (sampled, deviation) = (time / all, (share * (1.0 - share) * squares).sqrt() / all);
        assert!(
            (sampled - share).abs() < 4.5 * deviation,
            "{function}: {sampled}, not {share}, within {deviation}"
        );
        greatest = greatest.max(100.0 * (sampled - share).abs());
    }
    greatest
}
