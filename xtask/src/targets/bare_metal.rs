//! `integrations/bare-metal` on an emulated RISC-V machine without any system, as its README has it: the image
//! is built, and recorded through the memory of a device, by the tick and by the machine's own counter.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::build::{Kind, Workshop};
use super::host::Recorded;
use super::machine::Machine;
use crate::checks::Checks;
use crate::commands::root;
use crate::limited;

/// The machine, for which the image is compiled as it stands in its makefile.
const USUAL: Machine = Machine {
    name: "riscv64-bare-metal",
    architecture: "riscv64",
    triple: Some("riscv64gc-unknown-none-elf"),
    prefix: "riscv64-linux-gnu-",
    flags: &[],
    counting: &[],
    emulator: "qemu-system-riscv64",
    emulator_package: Some("qemu-system-misc"),
    packages: &["gcc-riscv64-linux-gnu", "make"],
};

/// One whose processor has neither atomic instructions nor floating-point numbers.
const PLAIN: Machine = Machine {
    name: "riscv64-without-atomics",
    triple: Some("riscv64im-unknown-none-elf"),
    flags: &["MARCH=rv64im_zicsr", "MABI=lp64", "CPU=rv64,a=off,f=off,d=off,c=off"],
    ..USUAL
};

/// Both of them: their flags are `make`'s.
pub(super) static MACHINES: [Machine; 2] = [USUAL, PLAIN];

/// The whole of a run takes a second or two.
const LIMIT: Duration = Duration::from_secs(60);
/// As often as another program that has the processors may spoil its times.
const TRIALS: usize = 3;
/// Calls that are known beforehand, and their sum.
const CALLS: [(&str, u64); 6] = [
    ("waits", 1),
    ("long_wait", 10),
    ("short_wait", 10),
    ("rounds", 1),
    ("round", 20_000),
    ("middle", 60_000),
];
const LEAVES: u64 = 300_000;
/// Calls of an interrupt: `beat`, and `leaf` below it.
const OF_INTERRUPT: u64 = 2;

/// Builds it once, and records it by each clock.
pub(super) fn run(machine: &'static Machine, checks: &mut Checks) {
    checks.on(machine.name);
    match Workshop::open(machine, &[Kind::Nested]) {
        Ok(shop) => {
            checks.add("calls and times by the tick", record(&shop, ""));
            let counter = "--clock cycle --counter-hz 10MHz";
            checks.add("calls and times by a counter of its own", record(&shop, counter));
        }
        Err(error) => checks.add("all", Err(error)),
    }
}

fn record(shop: &Workshop, options: &str) -> Result<()> {
    let mut trial = 1;
    loop {
        let (printed, recorded) = make(shop, options)?;
        calls(&printed, &recorded).with_context(|| printed.clone())?;
        match times(&recorded) {
            Err(_) if trial < TRIALS => trial += 1,
            result => return result,
        }
    }
}

/// What its README says to type; what that printed, and what was recorded.
fn make(shop: &Workshop, options: &str) -> Result<(String, Recorded)> {
    let log = shop.path("make.log");
    let mut make = Command::new("make");
    make.arg("--no-print-directory").arg("-C").arg(root().join("integrations/bare-metal"));
    make.arg("record").arg(format!("OUT={}", shop.path("").display()));
    make.arg(format!("SDK={}", shop.path(Kind::Nested.name()).display()));
    make.arg(format!("TEEPERF={}", shop.teeperf.display())).arg(format!("OPTIONS={options}"));
    make.arg(format!("QEMU={}", shop.emulator.display()));
    make.args(shop.machine.flags);
    limited::run(&make, LIMIT, &log)?;
    let printed = std::fs::read_to_string(&log)?;
    Ok((printed, Recorded::read(&shop.teeperf, &shop.path("image.teeperf"))?))
}

/// All that was called, whatever an interrupt met: what it called stands in the recording, or is known to be lost.
fn calls(printed: &str, recorded: &Recorded) -> Result<()> {
    let line = printed.lines().find_map(|line| line.strip_prefix("interrupts: "));
    let interrupts: u64 =
        line.context("it does not say how many interrupts there were")?.parse()?;
    let mut found = recorded.calls();
    let beats = found.remove("beat").unwrap_or(0);
    let lost = 2 * OF_INTERRUPT * interrupts.saturating_sub(beats);
    let told = format!("{interrupts} interrupts, {beats} calls by them");
    ensure!(beats > 0 && beats < interrupts, "{told}");
    ensure!(recorded.health("lost") == lost, "{told}; {} lost", recorded.health("lost"));
    for figure in ["mended", "open", "unopened"] {
        ensure!(recorded.health(figure) == 0, "{figure}: {}", recorded.health(figure));
    }
    let known = CALLS.into_iter().chain([("leaf", LEAVES + beats)]);
    let known = known.map(|(name, calls)| (name.to_owned(), calls)).collect();
    ensure!(found == known, "calls: {found:?}, and not {known:?}");
    Ok(())
}

/// Ten waits of 30 ms each, and ten of 10 ms.
fn times(recorded: &Recorded) -> Result<()> {
    for (name, ms) in [("long_wait", 300.0), ("short_wait", 100.0)] {
        let found = recorded.self_ns(name) / 1e6;
        // The tick may be late, and what is meanwhile falls to the function before; the emulator may have to wait.
        ensure!((ms * 0.7..ms * 3.0).contains(&found), "{name}: {found} ms, and not {ms}");
    }
    Ok(())
}
