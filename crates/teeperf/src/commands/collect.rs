//! `teeperf collect`: takes recordings that are sent.

use super::transport::Place;
use super::{amounts, live};
use crate::shell;
use anyhow::{Context, Result};
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use teeperf_edit::collect::receive;

/// Takes recordings that `teeperf record --to` sends, each into a file of its own
///
/// Several may send at once. A connection that breaks leaves a valid recording, cut off there. Ends with Ctrl-C, or
/// behind so many recordings (--count).
///
/// What is sent tells the way that programs went, and goes unencrypted: listen where nobody else can connect, or
/// through a tunnel.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf collect -o taken                                 on this machine alone, tcp:127.0.0.1:7377
  teeperf collect --listen tcp:0.0.0.0:7377 -o taken       from other machines too
  teeperf record --to tcp:collector:7377 -- ./program      sends")]
pub(crate) struct Arguments {
    /// Where to listen: tcp:HOST:PORT or unix:PATH; port 0 is any that is free
    #[arg(long, value_name = "PLACE", value_parser = Place::parse, default_value = "tcp:127.0.0.1:7377")]
    listen: Place,
    /// The folder for recordings
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    /// Most bytes of one recording
    #[arg(long, value_name = "SIZE", value_parser = amounts::bytes, default_value = "10G")]
    limit_size: u64,
    /// Most that send at once; others are turned away
    #[arg(long, value_name = "N", default_value_t = 64)]
    senders: usize,
    /// End behind so many recordings
    #[arg(long, value_name = "N")]
    count: Option<usize>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    std::fs::create_dir_all(&arguments.output)
        .with_context(|| format!("cannot write {}", arguments.output.display()))?;
    let (listener, place) = arguments.listen.listen()?;
    eprintln!("teeperf: listening at {place}; send with: teeperf record --to {place} -- PROGRAM");
    let busy = Arc::new(AtomicUsize::new(0));
    let mut threads = Vec::new();
    let mut taken = 0;
    while arguments.count.is_none_or(|count| taken < count) {
        let (stream, from) = match listener.accept() {
            Ok(connection) => connection,
            Err(error) => {
                // Such as too many open files: those that send may end.
                eprintln!("teeperf: a connection was not taken: {error}");
                std::thread::sleep(std::time::Duration::from_millis(100));
                continue;
            }
        };
        if busy.load(Ordering::Relaxed) >= arguments.senders {
            eprintln!("teeperf: {from} was turned away: {} send already", arguments.senders);
            continue;
        }
        busy.fetch_add(1, Ordering::Relaxed);
        taken += 1;
        let (folder, limit, busy) = (arguments.output.clone(), arguments.limit_size, busy.clone());
        let serve = move || {
            serve(stream, &from, &folder, limit);
            busy.fetch_sub(1, Ordering::Relaxed);
        };
        threads.retain(|thread: &std::thread::JoinHandle<()>| !thread.is_finished());
        threads.push(std::thread::Builder::new().spawn(serve).context("a thread")?);
    }
    for thread in threads {
        let _ = thread.join();
    }
    if let Place::Unix(path) = &place {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

fn serve(stream: impl std::io::Read, from: &str, folder: &Path, limit: u64) {
    let begun = |path: &Path| eprintln!("teeperf: {from} sends {}", path.display());
    match receive(stream, folder, limit, begun) {
        Err(error) => eprintln!("teeperf: {from}: {error}"),
        Ok(received) => {
            let cut = match received.is_whole {
                true => String::new(),
                false => format!(", cut off: {}", received.why),
            };
            eprintln!(
                "teeperf: {} from {from}{cut}; next: teeperf report {}",
                live::bytes(received.bytes),
                shell::typed(&received.path),
            );
        }
    }
}
