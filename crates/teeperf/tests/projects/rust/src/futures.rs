//! Async functions, run by an executor of one thread that goes round its tasks, and between threads.

use std::cell::RefCell;
use std::fmt::Debug;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Ready when it was polled so often, and once more.
async fn turns(count: u32) {
    let mut left = count;
    poll_fn(|context| {
        context.waker().wake_by_ref();
        match left {
            0 => Poll::Ready(()),
            _ => {
                left -= 1;
                Poll::Pending
            }
        }
    })
    .await
}

#[derive(Debug)]
struct Refused;

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("refused")
    }
}

impl std::error::Error for Refused {}

/// Its error is converted twice: once by `?`, once as it is returned.
#[teeperf::profile]
async fn fetch<T: Debug + Clone>(what: &T, waits: u32) -> Result<T, Box<dyn std::error::Error>> {
    turns(waits).await;
    if waits == 7 {
        return Err(Box::new(Refused));
    }
    let _number: u32 = "1".parse()?;
    Ok(what.clone())
}

struct Client {
    name: String,
}

trait Ask {
    async fn ask(&self, times: u32) -> usize;
}

#[teeperf::profile]
impl Ask for Client {
    async fn ask(&self, times: u32) -> usize {
        let mut sum = 0;
        for _ in 0..times {
            sum += fetch(&self.name, 2).await.unwrap().len();
        }
        sum
    }
}

/// Says that it is dropped.
struct Loud<'a>(&'a str, &'a RefCell<Vec<String>>);

impl Drop for Loud<'_> {
    fn drop(&mut self) {
        self.1.borrow_mut().push(self.0.to_owned());
    }
}

/// Some of its arguments are used, and one is changed.
#[teeperf::profile]
async fn ordered<'a>(a: Loud<'a>, _b: Loud<'a>, mut c: Loud<'a>, _: Loud<'a>, (e, _f): (Loud<'a>, Loud<'a>)) {
    let _local = Loud("local", a.1);
    c.0 = "changed";
    turns(1).await;
    drop(e);
}

/// As they would be without the attribute.
fn drops() {
    let said = RefCell::new(Vec::new());
    let loud = |name| Loud(name, &said);
    let arguments = (loud("a"), loud("b"), loud("c"), loud("d"), (loud("e"), loud("f")));
    all(vec![Box::pin(ordered(arguments.0, arguments.1, arguments.2, arguments.3, arguments.4))]);
    assert_eq!(*said.borrow(), ["e", "local", "f", "d", "changed", "b", "a"]);
}

/// Polls each in turn until all are ready.
fn all<'a>(mut tasks: Vec<Pin<Box<dyn Future<Output = ()> + 'a>>>) {
    let mut context = Context::from_waker(Waker::noop());
    while !tasks.is_empty() {
        tasks.retain_mut(|task| task.as_mut().poll(&mut context).is_pending());
    }
}

pub fn run() {
    drops();
    // Three futures at once: 2 + 1, 2 + 1 polls, and an error.
    all(vec![
        Box::pin(async { assert_eq!(fetch(&1u8, 2).await.unwrap(), 1) }),
        Box::pin(async { assert_eq!(fetch(&2u8, 2).await.unwrap(), 2) }),
        Box::pin(async { assert_eq!(fetch(&3u8, 7).await.unwrap_err().to_string(), "refused") }),
    ]);
    // Two of 3 times 2 + 1 polls.
    let client = || async {
        let client = Client { name: "abc".into() };
        assert_eq!(client.ask(3).await, 9);
    };
    all(vec![Box::pin(client()), Box::pin(client())]);
    // One that goes on on another thread, and one that is dropped while it waits.
    let mut moved = Box::pin(teeperf::future!("moved", async { turns(1).await }));
    let mut dropped = Box::pin(fetch(&"never", 100));
    let mut context = Context::from_waker(Waker::noop());
    assert!(moved.as_mut().poll(&mut context).is_pending());
    assert!(dropped.as_mut().poll(&mut context).is_pending());
    drop(dropped);
    std::thread::sleep(std::time::Duration::from_millis(20));
    std::thread::spawn(move || {
        assert!(moved.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    })
    .join()
    .unwrap();
}
