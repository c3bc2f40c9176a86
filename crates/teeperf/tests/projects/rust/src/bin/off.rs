//! Every kind of macro, each on a line of its own, which the test takes away.

extern crate teeperf as teeperf_hooks;

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

#[teeperf::profile]
fn sum<T: Copy + Into<u64>>(numbers: &[T]) -> u64 {
    teeperf::scope!("sum");
    teeperf::scope!();
    numbers.iter().map(|&number| number.into()).sum()
}

struct Counter(u64);

#[teeperf::profile]
impl Counter {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
    #[teeperf::profile(skip)]
    fn reset(&mut self) {
        self.0 = 0;
    }
}

#[teeperf::profile]
async fn later(number: u32) -> u32 {
    std::future::ready(number).await
}

fn main() {
    let mut counter = Counter(sum(&[1u8, 2]) + sum(&[3u32]));
    let next = counter.next();
    counter.reset();
    let mut context = Context::from_waker(Waker::noop());
    let done = pin!(later(next as u32)).poll(&mut context);
    println!("{done:?}");
}
