//! C++ whose time is in the standard library, with default settings.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::measure::Trials;
use crate::bench::table::{Limit, Row};
use crate::commands::run_quietly;

pub(crate) const FIGURE: Figure = Figure {
    name: "sort",
    title: "C++ that lives in std::sort, default settings",
    method: "`bench/programs/sort.cpp`, seconds of its own work: built with `teeperf c++` and \
             recorded, beside unhooked. Told too: with the library's functions hooked as well, \
             by a hook that returns at once.",
    measure,
};

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let source = "programs/sort.cpp";
    let [ours, plain] = [Hooks::Late, Hooks::None].map(|h| lab.program(h, source, &[]));
    let (ours, plain) = (ours?, plain?);
    let all = with_library_hooked(lab, source)?;
    let recording = lab.scratch("sort.teeperf");
    let seconds = |command: &mut Command| lab.run(command)?.number("seconds");
    let trials = Trials::run(
        lab.rounds(5),
        vec![
            ("ours", Box::new(|| seconds(lab.record(&recording, &[]).arg(&ours)))),
            ("unhooked", Box::new(|| seconds(&mut Command::new(&plain)))),
            ("all hooked, empty hook", Box::new(|| seconds(&mut Command::new(&all)))),
        ],
    )?;
    Ok(vec![
        Row::new("sort", "std::sort and kin", trials.medians(&["ours"], "s"))
            .beside(trials.medians(&["unhooked", "all hooked, empty hook"], "s"))
            .limit(Limit::AtMost(1.2), trials.ratio("ours", "unhooked"), "×"),
    ])
}

fn with_library_hooked(lab: &Lab, source: &str) -> Result<PathBuf> {
    let (hooks, path) = (Hooks::Empty, lab.bench_file(source));
    lab.built(hooks, "sort-all", &[&path], |_, out| {
        let mut command = Command::new("g++");
        command.args(["-O2", "-finstrument-functions"]).arg(&path).arg("-o").arg(out);
        run_quietly(command.arg(lab.hook_object(hooks, &["-fPIE"])?)).map(drop)
    })
}
