//! `cargo xtask targets`: the runtime for code without a system, on every processor it is for: on this machine
//! itself, and emulated by `qemu-user`. The programs are those of `crates/teeperf-tee/conformance`, the host is
//! `teeperf serve-memory`. What cannot be had is skipped, with the reason.

mod build;
mod cost;
mod host;
mod machine;
mod tests;

use anyhow::Result;

use crate::checks::Checks;
use build::Workshop;
use machine::MACHINES;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Writes the table of what the runtime costs into docs/porting.md
    #[arg(long)]
    write: bool,
    /// Processors; all if none is named
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(MACHINES.map(|machine| machine.name)))]
    machines: Vec<String>,
}

/// Builds and runs. The last line says how many checks passed, failed and were skipped; the exit status, whether
/// one failed.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut checks = Checks::default();
    let mut costs = Vec::new();
    for machine in &MACHINES {
        if !arguments.machines.is_empty() && !arguments.machines.iter().any(|m| m == machine.name) {
            continue;
        }
        checks.on(machine.name);
        match Workshop::open(machine) {
            Ok(workshop) => {
                tests::run(&workshop, &mut checks);
                match cost::measure(&workshop) {
                    Ok(cost) => {
                        checks.add("what it costs", cost.check());
                        costs.push(cost);
                    }
                    Err(error) => checks.add("what it costs", Err(error)),
                }
            }
            Err(error) => checks.add("all", Err(error)),
        }
    }
    checks.on("");
    let table = cost::table(&costs);
    println!("\n{table}");
    if arguments.write {
        checks.add("docs/porting.md is written", cost::write(&table));
    }
    if !checks.finish() {
        std::process::exit(1);
    }
    Ok(())
}
