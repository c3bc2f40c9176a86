//! How long the user waits after the program has ended.

use anyhow::Result;

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::measure::Trials;
use crate::bench::table::{Limit, Row};

pub(crate) const FIGURE: Figure = Figure {
    name: "prompt",
    title: "From the program's end to the prompt",
    method: "A shell under `teeperf record` runs the program and then `date`; the time is that \
             from there to the end of `teeperf record`. perf likewise, with the unhooked program.",
    measure,
};

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let arguments = format!("--size {} --memdb", lab.size("50", "2"));
    let [ours, plain] = [Hooks::Late, Hooks::None].map(|hooks| lab.speedtest(hooks));
    let (ours, plain) = (ours?, plain?);
    let recording = lab.scratch("prompt.teeperf");
    let data = lab.scratch("perf.data");
    let after = |mut command: std::process::Command, program: &std::path::Path| {
        let script = format!("{} {arguments}; date +ended=%s.%N", program.display());
        let ran = lab.run(command.args(["sh", "-c", &script]))?;
        Ok(ran.ended - ran.number("ended")?)
    };
    let trials = Trials::run(
        lab.rounds(5),
        vec![
            ("ours", Box::new(|| after(lab.record(&recording, &[]), &ours))),
            ("perf", Box::new(|| after(lab.perf(&data), &plain))),
        ],
    )?;
    Ok(vec![
        Row::new("sqlite3", "after sqlite3's speed test", trials.medians(&["ours"], "s"))
            .beside(trials.medians(&["perf"], "s"))
            .limit(Limit::AtMost(0.2), trials.median("ours"), "s"),
    ])
}
