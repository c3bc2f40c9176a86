//! What a hooked call and its return cost on this machine: measured by recording a small
//! program that times the same calls with and without hooks (`calibration/calibration.c`), for
//! each clock, and kept in the cache folder. A machine that is busy gives costs that are too
//! high, so the first recordings behind a start of the machine measure anew, and the least counts.

use crate::bundle::{self, Bundle};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use teeperf_record::{Choice, ClockCost, HookCost, Options, Output, Recorder};

/// The cost under the clock that is asked for, or under both where the recorder chooses.
pub(crate) fn hook_cost(bundle: &Bundle, clock: Choice) -> Result<HookCost> {
    let cost = |kind| {
        let wanted = clock == Choice::Auto || clock == kind;
        wanted.then(|| kept_or_measured(bundle, kind)).transpose()
    };
    let counter = if clock == Choice::Ordered { Choice::Ordered } else { Choice::Cycle };
    Ok(HookCost { tick: cost(Choice::Tick)?, cycle: cost(counter)? })
}

/// Measured so often that the least is likely what hooks cost on an idle machine.
const ENOUGH: usize = 3;
/// Measured no more often, however little the measurements agree.
const MOST: usize = 8;

/// As kept, or measured now, which takes a tenth of a second.
fn kept_or_measured(bundle: &Bundle, clock: Choice) -> Result<ClockCost> {
    let kept = bundle::folder()?.join(format!("hook-cost-{clock:?}").to_lowercase());
    let boot = boot();
    let text = std::fs::read_to_string(&kept).unwrap_or_default();
    let mut costs = parse(&text, &boot);
    if !is_settled(&costs) {
        match measure(bundle, clock) {
            Ok(cost) => costs.push(cost),
            Err(error) if costs.is_empty() => return Err(error),
            Err(_) => {}
        }
        // Not kept, it is measured again next time.
        let _ = bundle::write_atomically(&kept, print(&costs, &boot).as_bytes(), 0o600);
    }
    costs.into_iter().min_by_key(hot).context("the hooks' cost is not known")
}

/// Whether as many as need be agree, within a fifth, on the least.
fn is_settled(costs: &[ClockCost]) -> bool {
    let least = costs.iter().map(hot).min().unwrap_or(0);
    let agree = costs.iter().filter(|cost| hot(cost) <= least + least / 5).count();
    agree >= ENOUGH || costs.len() >= MOST
}

/// Picoseconds of a call and its return.
fn hot(cost: &ClockCost) -> u64 {
    cost.hook_ps[..4].iter().sum()
}

/// Tells one start of the machine from another; frequencies and neighbours change with it.
fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// A line that names the start of the machine, and one for each measurement.
fn print(costs: &[ClockCost], boot: &str) -> String {
    let line = |cost: &ClockCost| -> String {
        let numbers = cost.hook_ps.iter().chain([&cost.least_ps]).map(u64::to_string);
        numbers.collect::<Vec<_>>().join(" ") + "\n"
    };
    format!("{boot}\n{}", costs.iter().map(line).collect::<String>())
}

/// Measurements of this start of the machine. A line that is cut off is none.
fn parse(text: &str, boot: &str) -> Vec<ClockCost> {
    let Some(lines) = text.strip_prefix(boot).and_then(|rest| rest.strip_prefix('\n')) else {
        return Vec::new();
    };
    let line = |line: &str| -> Option<ClockCost> {
        let numbers = line.strip_suffix('\n')?.split(' ').map(|number| number.parse().ok());
        let numbers: [u64; 9] = numbers.collect::<Option<Vec<_>>>()?.try_into().ok()?;
        let [hook_ps @ .., least_ps] = numbers;
        Some(ClockCost { hook_ps, least_ps })
    };
    lines.split_inclusive('\n').filter_map(line).take(MOST).collect()
}

fn measure(bundle: &Bundle, clock: Choice) -> Result<ClockCost> {
    // What counts is the program's own clock; its events are taken as ever, and thrown away.
    let mut options = Options::new(Output::Writer(Box::new(std::io::sink())));
    options.clock = clock;
    options.signals = false;
    let told = Told::new()?;
    let words = [bundle.calibration.clone().into(), told.path.clone().into()];
    let unknown = "the hooks' cost is not known";
    let outcome = Recorder::new(options).run(&words).context(unknown)?;
    if !outcome.status.success() {
        bail!("{unknown}: {}: {}", bundle.calibration.display(), outcome.status);
    }
    let times = std::fs::read_to_string(&told.path).context(unknown)?;
    costs(&times).context(unknown)
}

/// From what the program wrote.
fn costs(times: &str) -> Option<ClockCost> {
    let cost = |name: &str| -> Option<u64> {
        times.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?.parse().ok()
    };
    let hot = cost("hot")?;
    // Caches that are cold make nothing faster; what says so is noise.
    let cold = cost("cold")?.max(hot);
    // The hooks of a call and of a return are the same code but for one bit, and look at the
    // clock at the same place. So what lies before the look at the call, and falls to the
    // caller, lies before it at the return too, and falls to the callee: each has half.
    let hook_ps = std::array::from_fn(|at| if at < 4 { hot / 4 } else { cold / 4 });
    Some(ClockCost { hook_ps, least_ps: cost("least")?.min(hot) })
}

/// Where the program writes its times: standard output is not ours. Removed when dropped.
#[derive(Debug)]
struct Told {
    path: PathBuf,
}

impl Told {
    fn new() -> Result<Self> {
        Ok(Self { path: bundle::folder()?.join(format!("calibration-{}", std::process::id())) })
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        // What remains is a small file in our own folder.
        let _ = std::fs::remove_file(Path::new(&self.path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(hot: u64) -> ClockCost {
        let quarter = hot / 4;
        ClockCost { hook_ps: [quarter, quarter, quarter, quarter, 5, 6, 7, 8], least_ps: 9 }
    }

    #[test]
    fn costs_are_kept_for_one_start_of_the_machine() {
        let costs = [cost(4_000), cost(8_000)];
        let text = print(&costs, "boot");
        assert_eq!(parse(&text, "boot"), costs);
        assert_eq!(parse(&text, "another"), []);
        for cut in 0..text.len() {
            let left = parse(&text[..cut], "boot");
            assert!(left.len() < 2 && left == costs[..left.len()], "{left:?}");
        }
        assert_eq!(parse("boot\n1 2 3\n1 2 3 4 5 6 7 8 x\n", "boot"), []);
    }

    #[test]
    fn it_is_measured_until_measurements_agree() {
        let settled =
            |costs: &[u64]| is_settled(&costs.iter().map(|&hot| cost(hot)).collect::<Vec<_>>());
        assert!(!settled(&[]) && !settled(&[4_000, 4_000]) && !settled(&[9_000, 4_000, 4_100]));
        assert!(settled(&[9_000, 4_000, 4_100, 4_700]) && settled(&[0, 0, 0]));
        assert!(settled(&[1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000, 8_000]));
    }

    #[test]
    fn the_cost_is_what_the_program_says() {
        let cost =
            |times| costs(times).map(|cost| (cost.hook_ps[0], cost.hook_ps[7], cost.least_ps));
        assert_eq!(cost("hot 4000\ncold 8000\nleast 3000\n"), Some((1_000, 2_000, 3_000)));
        // Noise: hooks that cost less where caches are cold, and less than a part of them.
        assert_eq!(cost("hot 4000\ncold 2000\nleast 5000\n"), Some((1_000, 1_000, 4_000)));
        for text in ["", "hot 1\n", "hot x\ncold 1\nleast 1\n", "hot 1\ncold 1\n"] {
            assert_eq!(cost(text), None, "{text:?}");
        }
    }
}
