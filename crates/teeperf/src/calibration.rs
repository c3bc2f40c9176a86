//! What a hooked call and its return cost on this machine: measured by recording a small
//! program that times the same calls with and without hooks (`calibration/calibration.c`), once
//! for each clock and start of the machine, and kept in the cache folder.

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
    Ok(HookCost { tick: cost(Choice::Tick)?, cycle: cost(Choice::Cycle)? })
}

/// As kept, or measured now, which takes a tenth of a second.
fn kept_or_measured(bundle: &Bundle, clock: Choice) -> Result<ClockCost> {
    let kept = bundle::folder()?.join(format!("hook-cost-{clock:?}").to_lowercase());
    let boot = boot();
    if let Some(cost) = std::fs::read_to_string(&kept).ok().and_then(|text| parse(&text, &boot)) {
        return Ok(cost);
    }
    let cost = measure(bundle, clock)?;
    // Not kept, it is measured again next time.
    let _ = bundle::write_atomically(&kept, print(&cost, &boot).as_bytes(), 0o600);
    Ok(cost)
}

/// Tells one start of the machine from another; frequencies and neighbours change with it.
fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

fn print(cost: &ClockCost, boot: &str) -> String {
    let all = cost.hook_ps.iter().chain([&cost.least_ps]);
    let numbers: Vec<String> = all.map(u64::to_string).collect();
    format!("{boot}\n{}\n", numbers.join(" "))
}

fn parse(text: &str, boot: &str) -> Option<ClockCost> {
    let (kept, numbers) = text.strip_suffix('\n')?.split_once('\n')?;
    let numbers: Option<Vec<u64>> = numbers.split(' ').map(|number| number.parse().ok()).collect();
    let [hook_ps @ .., least_ps] = <[u64; 9]>::try_from(numbers?).ok()?;
    (kept == boot).then_some(ClockCost { hook_ps, least_ps })
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

    #[test]
    fn the_cost_is_kept_for_one_start_of_the_machine() {
        let cost = ClockCost { hook_ps: [1, 2, 3, 4, 5, 6, 7, 8], least_ps: 9 };
        let text = print(&cost, "boot");
        assert_eq!(parse(&text, "boot"), Some(cost));
        assert_eq!(parse(&text, "another"), None);
        for cut in 0..text.len() {
            assert_eq!(parse(&text[..cut], "boot"), None);
        }
        assert_eq!(parse("boot\n1 2 3\n", "boot"), None);
        assert_eq!(parse("boot\n1 2 3 4 5 6 7 8 x\n", "boot"), None);
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
