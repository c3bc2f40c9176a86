//! What it costs to keep the latest part of a recording alone, and how much of it is there.

use std::cell::Cell;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use anyhow::Result;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::measure::{Trial, Trials};
use crate::bench::table::{Limit, Row, digits};

pub(crate) const FIGURE: Figure = Figure {
    name: "rotate",
    title: "The latest part alone",
    method: "lua 5.4 with `bench/programs/work.lua`, every function hooked, recorded under the cycle clock, into \
             a file and, with `--rotate 8M`, into a folder: wall time of the whole command. Most bytes in the folder \
             are looked for every ten milliseconds.",
    measure,
};

/// What is granted.
const GRANTED: u64 = 8_000_000;
const LOOK: Duration = Duration::from_millis(10);

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let program = lab.lua(Hooks::Late)?;
    let script = lab.bench_file("programs/work.lua");
    let (file, folder) = (lab.scratch("whole.teeperf"), lab.scratch("kept.teeperf"));
    let most = Cell::new(0);
    let trials: Vec<Trial<'_>> = vec![
        (
            "--rotate",
            Box::new(|| {
                let size = format!("{GRANTED}");
                let mut command = lab.record(&folder, &["--clock", "cycle", "--rotate", &size]);
                command.arg(&program).arg(&script).arg("2");
                let (seconds, seen) = watched(&folder, || Ok(lab.run(&mut command)?.seconds))?;
                most.set(most.get().max(seen));
                Ok(seconds)
            }),
        ),
        (
            "a file",
            Box::new(|| {
                let mut command = lab.record(&file, &["--clock", "cycle"]);
                Ok(lab.run(command.arg(&program).arg(&script).arg("2"))?.seconds)
            }),
        ),
    ];
    let trials = Trials::run(lab.rounds(5), trials)?;
    let most = most.get() as f64 / GRANTED as f64;
    Ok(vec![
        Row::new("time", "time, beside a file", trials.medians(&["--rotate"], "s"))
            .beside(trials.medians(&["a file"], "s"))
            .limit(Limit::AtMost(1.2), trials.ratio("--rotate", "a file"), "×"),
        Row::new(
            "disk",
            "most on the disk, of what is granted",
            format!("{} MB", digits(most * 8.0)),
        )
        .limit(Limit::AtMost(1.0), Some(most), "×"),
    ])
}

/// What comes of some work, and the most bytes that were in a folder meanwhile.
pub(super) fn watched<T>(folder: &Path, work: impl FnOnce() -> Result<T>) -> Result<(T, u64)> {
    let (end, ended) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let watch = scope.spawn(move || {
            let mut most = 0;
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(LOOK) {
                most = most.max(size(folder));
            }
            most
        });
        let done = work();
        let _ = end.send(());
        let most = watch.join().unwrap_or_default();
        Ok((done?, most))
    })
}

/// Bytes in a folder.
pub(super) fn size(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}
