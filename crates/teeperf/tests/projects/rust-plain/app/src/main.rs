//! Calls of every kind, without a word of a profiler.

use shapes::{largest, Area, Circle, Square};
use std::future::Future;
use std::panic::catch_unwind;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

fn fibonacci(n: u32) -> u32 {
    if n < 2 {
        n
    } else {
        fibonacci(n - 1) + fibonacci(n - 2)
    }
}

#[no_mangle]
extern "C" fn for_c(n: i32) -> i32 {
    n + 1
}

struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        std::hint::black_box(());
    }
}

fn guarded(depth: u32) {
    let _guard = Guard;
    if depth == 0 {
        std::panic::resume_unwind(Box::new(()));
    }
    guarded(depth - 1);
}

fn fallible(text: &str) -> Result<u32, std::num::ParseIntError> {
    let number: u32 = text.parse()?;
    Ok(number + 1)
}

/// Goes on so many times.
async fn steps(count: u32) -> u32 {
    let mut left = count;
    std::future::poll_fn(move |_| {
        left = left.wrapping_sub(1);
        if left == u32::MAX {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    count
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

fn main() {
    let mut sum: u32 = (0..10).map(|side| Square(side).doubled()).sum();
    for radius in 0..5 {
        sum += Circle(radius).doubled();
    }
    for _ in 0..3 {
        sum += Square(0).unit().len() as u32;
    }
    for _ in 0..4 {
        sum += Circle(0).unit().len() as u32;
    }
    for _ in 0..2 {
        sum += largest(&[1u32, 2]).unwrap();
        sum += largest(&["a", "bc", ""]).unwrap().len() as u32;
    }
    sum += largest::<&str>(&["a"]).unwrap().len() as u32;
    for n in 0..6 {
        sum += for_c(n) as u32;
    }
    for _ in 0..2 {
        assert!(catch_unwind(|| guarded(3)).is_err());
    }
    for text in ["1", "x", "3"] {
        sum += fallible(text).unwrap_or(0);
    }
    sum += fibonacci(5);
    sum += std::thread::spawn(|| fibonacci(4)).join().unwrap();
    sum += block_on(steps(3));
    println!("{sum}");
}
