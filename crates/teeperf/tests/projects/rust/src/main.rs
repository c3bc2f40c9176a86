//! Calls of every kind, as often as the test says.
#![forbid(unsafe_code)]

extern crate teeperf as teeperf_hooks;

mod futures;
mod kinds;

use std::thread;

fn main() {
    let threads: Vec<_> = (0..3).map(|_| thread::spawn(kinds::run)).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    kinds::run_once();
    futures::run();
    println!("done");
}
