//! Functions of Rust with hooks, called in batches that the thread's clock times: iterators, a
//! generic function, one behind a trait object, and a short and a long chain of work.
//!
//! usage: truth batches ROUNDS. Prints what `truth.h` says, of a build without hooks the truth.

use std::env;
use std::hint::black_box;
use std::ops::Mul;

#[inline(never)]
#[teeperf_hooks::profile]
fn short_chain(x: u64) -> u64 {
    chain(x, 8)
}

#[inline(never)]
#[teeperf_hooks::profile]
fn long_chain(x: u64) -> u64 {
    chain(x, 8000)
}

#[inline(always)]
fn chain(mut x: u64, units: u32) -> u64 {
    for _ in 0..units {
        x = black_box(x.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1));
    }
    x
}

#[inline(never)]
#[teeperf_hooks::profile]
fn sum_of_squares(x: u64) -> u64 {
    let numbers = (0..200u64).map(|i| black_box(i + (x & 7)));
    numbers.filter(|i| i % 3 != 0).map(|i| i.wrapping_mul(i)).fold(x, u64::wrapping_add)
}

#[inline(never)]
#[teeperf_hooks::profile]
fn power<T: Mul<Output = T> + Copy>(base: T, times: u32) -> T {
    (0..times).fold(base, |product, _| black_box(product * base))
}

#[inline(never)]
fn powers(x: u64) -> u64 {
    x ^ power(1.000_001 + (x & 1) as f64 / 1e9, 40).to_bits()
}

trait Mixer {
    fn mix(&self, x: u64) -> u64;
}

struct Rotate(u32);

impl Mixer for Rotate {
    #[inline(never)]
    #[teeperf_hooks::profile]
    fn mix(&self, x: u64) -> u64 {
        (0..20).fold(x, |x, _| black_box(x.rotate_left(self.0).wrapping_mul(5)))
    }
}

fn mixed(x: u64) -> u64 {
    let mixer: &dyn Mixer = black_box(&Rotate(13));
    mixer.mix(x)
}

/// Name in the report, what calls it, and how often in a round.
type Part = (&'static str, fn(u64) -> u64, u32);

const PARTS: [Part; 5] = [
    ("truth::short_chain", short_chain, 50_000),
    ("truth::long_chain", long_chain, 100),
    ("truth::sum_of_squares", sum_of_squares, 1_500),
    ("truth::power::<f64>", powers, 8_000),
    ("<truth::Rotate as truth::Mixer>::mix", mixed, 30_000),
];

fn main() {
    let rounds: u32 = env::args().nth(2).and_then(|word| word.parse().ok()).unwrap_or(10);
    let (start, mut spent, mut x) = (now(PROCESS), [0; PARTS.len()], 1);
    for _ in 0..rounds {
        for ((_, work, times), spent) in PARTS.iter().zip(&mut spent) {
            let start = now(THREAD);
            x = (0..*times).fold(x, |x, _| work(x));
            *spent += now(THREAD) - start;
        }
    }
    black_box(x);
    for ((name, ..), spent) in PARTS.iter().zip(spent) {
        println!("truth {name} {spent}");
    }
    println!("cpu {}", now(PROCESS) - start);
}

const PROCESS: i32 = 2;
const THREAD: i32 = 3;

#[repr(C)]
struct Time {
    seconds: i64,
    nanoseconds: i64,
}

unsafe extern "C" {
    fn clock_gettime(clock: i32, time: *mut Time) -> i32;
}

/// Nanoseconds.
fn now(clock: i32) -> i64 {
    let mut time = Time { seconds: 0, nanoseconds: 0 };
    // SAFETY: as time.h declares it, on 64-bit Linux.
    unsafe { clock_gettime(clock, &mut time) };
    time.seconds * 1_000_000_000 + time.nanoseconds
}
