//! Replays a recording and prints how fast that was and how much memory it took.
//!
//! `replay RECORDING [JOBS [BATCH_CHUNKS]]`

use std::time::Instant;

use teeperf_profile::{Options, Recording};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let Some(path) = arguments.get(1) else {
        return Err("usage: replay RECORDING [JOBS [BATCH_CHUNKS]]".into());
    };
    let number = |at: usize| arguments.get(at).map_or(Ok(0), |text| text.parse::<usize>());
    let (jobs, batch_chunks) = (number(2)?, number(3)?);
    let begin = Instant::now();
    let mut options = Options { jobs, batch_chunks, ..Options::default() };
    let profile = Recording::open(path)?.replay(&mut options)?;
    let seconds = begin.elapsed().as_secs_f64();
    let paths: usize = profile.threads.iter().map(|thread| thread.tree.nodes.len() - 1).sum();
    let events = profile.health.events as f64;
    println!(
        "events={:.1}M paths={paths} threads={} Mevents/s={:.0} seconds={seconds:.3} peak={} MB",
        events / 1e6,
        profile.threads.len(),
        events / seconds / 1e6,
        peak_memory_mb(),
    );
    println!("{:?}", profile.health);
    Ok(())
}

/// Most memory that this process had, from `/proc`.
fn peak_memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}
