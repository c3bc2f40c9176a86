//! Every fuzz target on its seeds, and on what some changes make of each: in seconds, and without a
//! nightly compiler. `cargo xtask fuzz` goes on from there, guided by what is reached: see
//! `fuzz/README.md`.

use std::fs;
use std::path::{Path, PathBuf};

// The targets' sources name the crate whose macro they use: here it is this one.
extern crate self as libfuzzer_sys;

/// A target, as a function of bytes.
#[macro_export]
macro_rules! fuzz_target {
    (|$bytes:ident: &[u8]| $body:expr) => {
        pub(crate) fn run($bytes: &[u8]) {
            $body
        }
    };
    (|$text:ident: &str| $body:expr) => {
        pub(crate) fn run(bytes: &[u8]) {
            if let Ok($text) = std::str::from_utf8(bytes) {
                $body
            }
        }
    };
}

/// A module, a test and a name for each target. So many changed inputs take a few seconds.
macro_rules! targets {
    ($($name:ident, $changed:literal in $path:literal)*) => {
        $(
            #[allow(unused_attributes)]
            #[path = $path]
            mod $name;
        )*

        /// As the files are called.
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        mod seeds_and_changes {
            $(
                #[test]
                fn $name() {
                    super::try_all(stringify!($name), $changed, super::$name::run);
                }
            )*
        }
    };
}

targets! {
    assembly, 150 in "../../../fuzz/fuzz_targets/assembly.rs"
    companions, 4_000 in "../../../fuzz/fuzz_targets/companions.rs"
    demangle, 30_000 in "../../../fuzz/fuzz_targets/demangle.rs"
    drain, 15_000 in "../../../fuzz/fuzz_targets/drain.rs"
    edit, 100 in "../../../fuzz/fuzz_targets/edit.rs"
    enclaves, 10_000 in "../../../fuzz/fuzz_targets/enclaves.rs"
    gmon, 4_000 in "../../../fuzz/fuzz_targets/gmon.rs"
    perf_data, 1_000 in "../../../fuzz/fuzz_targets/perf_data.rs"
    perf_map, 30_000 in "../../../fuzz/fuzz_targets/perf_map.rs"
    pieces, 150 in "../../../fuzz/fuzz_targets/pieces.rs"
    recording, 300 in "../../../fuzz/fuzz_targets/recording.rs"
    rings, 30_000 in "../../../fuzz/fuzz_targets/rings.rs"
    stacks, 15_000 in "../../../fuzz/fuzz_targets/stacks.rs"
    symbols, 15_000 in "../../../fuzz/fuzz_targets/symbols.rs"
    tee_perf, 40 in "../../../fuzz/fuzz_targets/tee_perf.rs"
    wire, 40_000 in "../../../fuzz/fuzz_targets/wire.rs"
    words, 200 in "../../../fuzz/fuzz_targets/words.rs"
}

/// So many times as many inputs with `cargo xtask test --thorough`.
const THOROUGH: usize = 20;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(name)
}

/// Paths of the files in a folder, by their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_target_is_tried() {
    let sources = files(&folder("fuzz_targets"));
    let names: Vec<_> =
        sources.iter().map(|source| source.file_stem().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, NAMES);
}

/// The seeds as they are, then each changed in turn.
fn try_all(name: &str, changed: usize, run: fn(&[u8])) {
    let seeds: Vec<Vec<u8>> =
        files(&folder("corpus").join(name)).iter().map(|seed| fs::read(seed).unwrap()).collect();
    seeds.iter().for_each(|seed| run(seed));
    let is_thorough = std::env::var_os("TEEPERF_TEST_THOROUGH").is_some();
    for round in 0..if is_thorough { THOROUGH * changed } else { changed } {
        let mut random = Random(round as u64);
        let mut bytes = seeds[round % seeds.len()].clone();
        for _ in 0..=random.below(4) {
            random.change(&mut bytes);
        }
        let tried = Tried { name, round, bytes: &bytes };
        run(tried.bytes);
    }
}

/// An input, which is kept where the target panics.
struct Tried<'a> {
    name: &'a str,
    round: usize,
    bytes: &'a [u8],
}

impl Drop for Tried<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { name, round, bytes } = self;
            let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{round}"));
            let _ = fs::write(&file, bytes);
            eprintln!("the input is kept in {}", file.display());
        }
    }
}

/// Numbers of a linear congruential generator (Knuth's MMIX), the same in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 29
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// Flips a bit, puts in a rare number, cuts off, takes out, or repeats.
    fn change(&mut self, bytes: &mut Vec<u8>) {
        const RARE: [u32; 6] = [0, 1, 0x7FFF_FFFF, 0x8000_0000, u32::MAX - 1, u32::MAX];
        let at = self.below(bytes.len());
        let until = (at + 1 + self.below(64)).min(bytes.len());
        match self.below(5) {
            _ if bytes.is_empty() => bytes.push(self.next() as u8),
            0 => bytes[at] ^= 1 << self.below(8),
            1 => {
                let rare = RARE[self.below(RARE.len())].to_le_bytes();
                bytes.iter_mut().skip(at & !3).zip(rare).for_each(|(byte, new)| *byte = new);
            }
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..until)),
            _ => {
                let again = bytes[at..until].to_vec();
                bytes.splice(at..at, again);
            }
        }
    }
}
