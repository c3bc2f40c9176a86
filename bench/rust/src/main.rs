//! `bench/programs/calls.c` in Rust, for one thread: Fibonacci by recursion, in bursts with pauses in which whoever drains
//! can catch up. Prints the nanoseconds of one call and its return within the bursts, by the wall clock and by the
//! thread's processor time.

use std::env;
use std::hint::black_box;
use std::thread::sleep;
use std::time::Duration;

#[inline(never)]
#[teeperf_hooks::profile]
fn fib(n: u32) -> u64 {
    if n < 2 { n.into() } else { fib(n - 1) + fib(n - 2) }
}

/// usage: calls n [bursts]
fn main() {
    let argument = |at: usize| env::args().nth(at).and_then(|word| word.parse().ok());
    let (n, bursts): (u32, u32) = (argument(1).unwrap_or(24), argument(2).unwrap_or(1));
    black_box(fib(10)); // the first events set things up
    let (mut wall, mut processor, mut result) = (0.0, 0.0, 0);
    for burst in 0..bursts {
        if burst > 0 {
            sleep(Duration::from_millis(5));
        }
        let before = (now(MONOTONIC), now(THREAD));
        result = fib(black_box(n));
        processor += now(THREAD) - before.1;
        wall += now(MONOTONIC) - before.0;
    }
    // fib(n) makes 2 Fib(n+1) - 1 calls.
    let next = (0..n).fold((0u64, 1u64), |(a, b), _| (b, a + b)).1;
    let calls = (2 * next - 1) as f64 * f64::from(bursts);
    let (wall, processor) = (wall / calls, processor / calls);
    println!("result={result} calls={calls:.0} wall_ns={wall:.3} cpu_ns={processor:.3}");
}

const MONOTONIC: i32 = 1;
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
fn now(clock: i32) -> f64 {
    let mut time = Time { seconds: 0, nanoseconds: 0 };
    // SAFETY: as time.h declares it, on 64-bit Linux.
    unsafe { clock_gettime(clock, &mut time) };
    time.seconds as f64 * 1e9 + time.nanoseconds as f64
}
