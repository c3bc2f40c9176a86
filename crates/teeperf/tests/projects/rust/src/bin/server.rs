//! Tasks of tokio's on four threads: each asks a store that answers late, and gives up where that takes too long.

extern crate teeperf as teeperf_hooks;

use std::time::Duration;

use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

#[teeperf::profile]
async fn request(number: u64) -> Result<u64, &'static str> {
    let mut sum = 0;
    for part in 0..3 {
        sum += look_up(number + part).await?;
    }
    Ok(sum)
}

#[teeperf::profile]
async fn look_up(key: u64) -> Result<u64, &'static str> {
    sleep(Duration::from_millis(2)).await;
    if key == 7 { Err("no such key") } else { Ok(hash(key)) }
}

#[teeperf::profile]
async fn never() {
    std::future::pending::<()>().await
}

#[teeperf::profile]
fn hash(key: u64) -> u64 {
    (0..2000).fold(key, |sum, step| std::hint::black_box(sum.rotate_left(5) ^ step))
}

fn main() {
    let runtime = Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    let failed = runtime.block_on(async {
        let tasks: Vec<_> = (0..50).map(|number| tokio::spawn(request(number))).collect();
        let mut failed = 0;
        for task in tasks {
            failed += u32::from(task.await.unwrap().is_err());
        }
        assert!(timeout(Duration::from_millis(5), never()).await.is_err());
        failed
    });
    println!("{failed} failed");
}
