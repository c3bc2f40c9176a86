//! `cargo xtask targets`: the runtime for code without a system, on every processor it is for: on this machine
//! itself, and emulated by `qemu-user`. The programs are those of `crates/teeperf-tee/conformance`, the host is
//! `teeperf serve-memory`. Then the image of `integrations/bare-metal` on an emulated machine without a system. What
//! cannot be had is skipped, with the reason.

mod bare_metal;
mod build;
mod cost;
mod host;
mod machine;
mod tests;

use anyhow::Result;

use crate::checks::Checks;
use build::{Kind, Workshop};
use machine::{MACHINES, Machine};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Writes the table of what the runtime costs into docs/porting.md
    #[arg(long, conflicts_with = "machines")]
    write: bool,
    /// Installs packages for a later run, and tests nothing
    #[arg(long, conflicts_with = "write")]
    fetch: bool,
    /// Processors; all if none is named
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(names()))]
    machines: Vec<String>,
}

fn names() -> impl Iterator<Item = &'static str> {
    MACHINES.iter().chain(&bare_metal::MACHINES).map(|machine| machine.name)
}

/// Builds and runs. The last line says how many checks passed, failed and were skipped; the exit status, whether
/// one failed.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut checks = Checks::default();
    let mut costs = Vec::new();
    let is_wanted = |machine: &Machine| {
        arguments.machines.is_empty() || arguments.machines.iter().any(|one| one == machine.name)
    };
    if arguments.fetch {
        let machines = MACHINES.iter().chain(&bare_metal::MACHINES);
        return machines.filter(|machine| is_wanted(machine)).try_for_each(build::fetch);
    }
    for machine in MACHINES.iter().filter(|machine| is_wanted(machine)) {
        checks.on(machine.name);
        match Workshop::open(machine, &Kind::ALL) {
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
    for machine in bare_metal::MACHINES.iter().filter(|machine| is_wanted(machine)) {
        bare_metal::run(machine, &mut checks);
    }
    checks.on("");
    let table = cost::table(&costs);
    if !costs.is_empty() {
        println!("\n{table}");
    }
    if arguments.write {
        checks.add("docs/porting.md is written", cost::write(&table));
    }
    if !checks.finish() {
        std::process::exit(1);
    }
    Ok(())
}
