//! What a hooked call and its return cost on this machine: measured before each recording, by
//! recording a small program that times the same calls with and without hooks
//! (`calibration/calibration.c`). How it is shared between caller and callee under a counter is in
//! the recording itself. A processor has states that last for seconds or minutes, in which a hook costs up to
//! twice as much as in others (its clock, or who else uses its parts), so what counts is the present;
//! but one measurement may be disturbed, so it must be like the others, which the cache folder has.

use crate::bundle::{self, Bundle};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::{Arc, Mutex, PoisonError};
use teeperf_profile::aggregate::{self, Row, Sort};
use teeperf_profile::{Options as Replay, Recording};
use teeperf_record::{Choice, ClockCost, Options, Output, Recorder};

/// Measurements that are kept.
const MOST: usize = 8;

/// The cost under a clock, as measured now, which takes a tenth of a second.
pub(crate) fn hook_cost(bundle: &Bundle, clock: Choice) -> Result<ClockCost> {
    let kept = bundle::folder()?.join(format!("hook-cost-{clock:?}").to_lowercase());
    let boot = boot();
    let mut costs = parse(&std::fs::read_to_string(&kept).unwrap_or_default(), &boot);
    match measure(bundle, clock) {
        Ok(cost) => {
            costs.push(cost);
            // Not kept, it is missing from the next comparison.
            let _ = bundle::write_atomically(&kept, print(&costs, &boot).as_bytes(), 0o600);
            Ok(believed(cost, costs))
        }
        Err(error) => costs.pop().ok_or(error),
    }
}

/// What was measured now, if it is within twice and half of the median; else that. How it is shared
/// does not change with the processor's state, so there the median counts.
fn believed(now: ClockCost, mut all: Vec<ClockCost>) -> ClockCost {
    let median = |all: &[ClockCost]| all.get(all.len().saturating_sub(1) / 2).copied();
    all.sort_unstable_by(|a, b| callee_part(a).total_cmp(&callee_part(b)));
    let part = median(&all).map_or(0.5, |cost| callee_part(&cost));
    all.sort_unstable_by_key(hot);
    let median = median(&all).unwrap_or(now);
    let is_alike = hot(&now) <= 2 * hot(&median) && hot(&median) <= 2 * hot(&now);
    let cost = if is_alike { now } else { median };
    let (hot, cold) = cost.hook_ps.split_at(4);
    shared([hot.iter().sum(), cold.iter().sum()], cost.least_ps, part)
}

/// Costs of a call and its return, hot and cold; the hooks of the two are the same code but for one
/// bit, so each costs half.
fn shared(costs: [u64; 2], least_ps: u64, callee_part: f64) -> ClockCost {
    let split = |cost: u64| {
        let callee = (cost as f64 / 2.0 * callee_part) as u64;
        let caller = (cost / 2).saturating_sub(callee);
        [caller, callee, callee, caller]
    };
    let ([a, b, c, d], [e, f, g, h]) = (split(costs[0]), split(costs[1]));
    ClockCost { hook_ps: [a, b, c, d, e, f, g, h], least_ps }
}

/// The callee's part of a call and its return.
fn callee_part(cost: &ClockCost) -> f64 {
    if hot(cost) == 0 { 0.5 } else { (cost.hook_ps[1] + cost.hook_ps[2]) as f64 / hot(cost) as f64 }
}

/// Picoseconds of a call and its return.
fn hot(cost: &ClockCost) -> u64 {
    cost.hook_ps[..4].iter().sum()
}

/// Tells one start of the machine from another; frequencies and neighbours change with it.
fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// A line that names the start of the machine, and one for each of the last measurements.
fn print(costs: &[ClockCost], boot: &str) -> String {
    let line = |cost: &ClockCost| -> String {
        let numbers = cost.hook_ps.iter().chain([&cost.least_ps]).map(u64::to_string);
        numbers.collect::<Vec<_>>().join(" ") + "\n"
    };
    let last = &costs[costs.len().saturating_sub(MOST)..];
    format!("{boot}\n{}", last.iter().map(line).collect::<String>())
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
    // What counts is the program's own clock. A counter also says where the time was charged; so
    // few ticks would not.
    let recording = (clock != Choice::Tick).then(Kept::default);
    let output: Box<dyn Write + Send> = match &recording {
        Some(recording) => Box::new(recording.clone()),
        None => Box::new(io::sink()),
    };
    let mut options = Options::new(Output::Writer(output));
    options.clock = clock;
    options.signals = false;
    let told = Told::new()?;
    let words = [bundle.calibration.clone().into(), told.path().into()];
    let unknown = "the hooks' cost is not known";
    let outcome = Recorder::new(options).run(&words).context(unknown)?;
    if !outcome.status.success() {
        bail!("{unknown}: {}: {}", bundle.calibration.display(), outcome.status);
    }
    let times = told.text().context(unknown)?;
    // The hooks of a call and of a return look at the tick at the same place: with the tick, what
    // lies before it has half of the cost, and what lies behind it the other.
    let part = recording.map_or(Ok(0.5), |recording| charged_to_callee(&recording.take()));
    costs(&times, part.context(unknown)?).context(unknown)
}

/// Which part of the time of calls without work was charged to the callee.
fn charged_to_callee(recording: &[u8]) -> Result<f64> {
    let mut replay = Replay { jobs: 1, ..Replay::default() };
    let profile = Recording::from_read(recording, "calibration").replay(&mut replay)?;
    let tree = aggregate::merged(&profile.threads);
    let rows = aggregate::rows(&tree, &profile.functions, Sort::Name);
    let time = |name: &str| {
        let is_named = |row: &&Row| profile.functions[row.function.0 as usize].name == name;
        rows.iter().find(is_named).map(|row| row.self_time.value)
    };
    let (callee, caller) = time("hot_callee").zip(time("hot_caller")).context("no calls of it")?;
    let both = callee + caller;
    if both > 0.0 { Ok(callee / both) } else { bail!("no time was seen in it") }
}

/// A recording in memory.
#[derive(Clone, Debug, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// From what the program wrote, and the callee's part of it all.
fn costs(times: &str, callee_part: f64) -> Option<ClockCost> {
    let cost = |name: &str| -> Option<u64> {
        times.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?.parse().ok()
    };
    let hot = cost("hot")?;
    // Caches that are cold make nothing faster; what says so is noise.
    let cold = cost("cold")?.max(hot);
    Some(shared([hot, cold], cost("least")?.min(hot), callee_part))
}

/// Where the program writes its times: standard output is not ours. The program inherits it.
struct Told(File);

impl Told {
    fn new() -> io::Result<Self> {
        // SAFETY: the name is a string that ends with 0.
        let descriptor = unsafe { libc::memfd_create(c"teeperf-hook-cost".as_ptr(), 0) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just opened, and nobody else has it.
        Ok(Self(unsafe { File::from_raw_fd(descriptor) }))
    }

    fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }

    fn text(mut self) -> io::Result<String> {
        let mut text = String::new();
        self.0.read_to_string(&mut text)?;
        Ok(text)
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
    fn a_measurement_unlike_the_others_is_not_believed() {
        let believed = |now: u64, others: &[u64]| {
            let all = others.iter().chain([&now]).map(|&hot| cost(hot)).collect();
            hot(&super::believed(cost(now), all))
        };
        assert_eq!(believed(4_000, &[]), 4_000);
        assert_eq!(believed(8_000, &[4_000, 4_400]), 8_000);
        assert_eq!(believed(4_000, &[8_000, 8_000]), 4_000);
        assert_eq!(believed(40_000, &[4_000]), 4_000);
        assert_eq!(believed(40_000, &[4_000, 5_000, 6_000]), 5_000);
        assert_eq!(believed(0, &[4_000, 8_000]), 4_000);
    }

    #[test]
    fn the_last_measurements_are_kept() {
        let costs: Vec<ClockCost> = (1..20).map(|n| cost(4_000 * n)).collect();
        assert_eq!(parse(&print(&costs, "boot"), "boot"), costs[costs.len() - MOST..]);
    }

    #[test]
    fn the_cost_is_what_the_program_says() {
        let cost = |times| costs(times, 0.25).map(|cost| (cost.hook_ps, cost.least_ps));
        let hook_ps = [1_500, 500, 500, 1_500, 3_000, 1_000, 1_000, 3_000];
        assert_eq!(cost("hot 4000\ncold 8000\nleast 3000\n"), Some((hook_ps, 3_000)));
        // Noise: hooks that cost less where caches are cold, and less than a part of them.
        let hook_ps = [1_500, 500, 500, 1_500, 1_500, 500, 500, 1_500];
        assert_eq!(cost("hot 4000\ncold 2000\nleast 5000\n"), Some((hook_ps, 4_000)));
        for text in ["", "hot 1\n", "hot x\ncold 1\nleast 1\n", "hot 1\ncold 1\n"] {
            assert_eq!(cost(text), None, "{text:?}");
        }
    }
}
