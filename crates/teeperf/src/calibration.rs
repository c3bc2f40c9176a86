//! What a hooked call and its return cost on this machine: measured before each recording, by
//! recording a small program that times the same calls with and without hooks
//! (`calibration/calibration.c`). How it is shared between caller and callee under a counter is in
//! the recording itself. A processor has states that last for seconds or minutes, in which a hook costs up to
//! twice as much as in others (its clock, or who else uses its parts), so what counts is the present;
//! but one measurement may be disturbed, so it must be like the others, which the cache folder has. What
//! is added even to work with room beside it is the least that was measured: a processor may find the
//! room in one run and not in the next (1.7 or 8 to 12 ns of 17 for two readings of a counter, on an
//! EPYC), in streaks of many calls; what was added in the better ones is added in all.

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

/// What was measured of a call and its return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Measured {
    /// Picoseconds with caches and predictors hot, then cold.
    hot_ps: u64,
    cold_ps: u64,
    /// Picoseconds that are added even to work that leaves the processor room for other work.
    least_ps: u64,
    /// Of all that, what falls into the callee's time: parts in a million.
    callee_ppm: u64,
}

impl Measured {
    /// The hooks of a call and of a return are the same code but for one bit, so each costs half.
    fn cost(self) -> ClockCost {
        let split = |cost: u64| {
            let callee = (u128::from(cost) * u128::from(self.callee_ppm) / 2_000_000) as u64;
            let caller = (cost / 2).saturating_sub(callee);
            [caller, callee, callee, caller]
        };
        let ([a, b, c, d], [e, f, g, h]) = (split(self.hot_ps), split(self.cold_ps));
        ClockCost { hook_ps: [a, b, c, d, e, f, g, h], least_ps: self.least_ps }
    }
}

/// The cost under a clock, as measured now, which takes a tenth of a second.
pub(crate) fn hook_cost(bundle: &Bundle, clock: Choice) -> Result<ClockCost> {
    let kept = bundle::folder()?.join(format!("hook-cost-{clock:?}").to_lowercase());
    let boot = boot();
    let mut all = parse(&std::fs::read_to_string(&kept).unwrap_or_default(), &boot);
    match measure(bundle, clock) {
        Ok(measured) => {
            all.push(measured);
            // Not kept, it is missing from the next comparison.
            let _ = bundle::write_atomically(&kept, print(&all, &boot).as_bytes(), 0o600);
        }
        Err(error) if all.is_empty() => return Err(error),
        Err(_) => {}
    }
    let last = all.last().copied().context("no measurement")?;
    Ok(believed(last, &all).cost())
}

/// What was measured now, if it is within twice and half of the median; else that. How it is shared
/// does not change with the processor's state, so there the median counts; nor does which part of it
/// is added to work with room beside it, of which the least counts, whichever way this one went.
fn believed(now: Measured, all: &[Measured]) -> Measured {
    let median_by = |key: fn(&Measured) -> u64| {
        let mut all = all.to_vec();
        all.sort_unstable_by_key(key);
        all.get(all.len().saturating_sub(1) / 2).copied().unwrap_or(now)
    };
    let median = median_by(|measured| measured.hot_ps);
    let is_alike = now.hot_ps <= 2 * median.hot_ps && median.hot_ps <= 2 * now.hot_ps;
    let callee_ppm = median_by(|measured| measured.callee_ppm).callee_ppm;
    let believed = if is_alike { now } else { median };
    let least_of = |measured: &Measured| {
        let part = u128::from(measured.least_ps) * u128::from(believed.hot_ps);
        part.checked_div(u128::from(measured.hot_ps))
            .map(|ps| ps.min(believed.hot_ps.into()) as u64)
    };
    let least_ps = all.iter().filter_map(least_of).min().unwrap_or(believed.least_ps);
    Measured { callee_ppm, least_ps, ..believed }
}

/// Tells one start of the machine from another; frequencies and neighbours change with it.
fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// A line that names the start of the machine, and one for each of the last measurements.
fn print(all: &[Measured], boot: &str) -> String {
    let line =
        |of: &Measured| format!("{} {} {} {}\n", of.hot_ps, of.cold_ps, of.least_ps, of.callee_ppm);
    let last = &all[all.len().saturating_sub(MOST)..];
    format!("{boot}\n{}", last.iter().map(line).collect::<String>())
}

/// Measurements of this start of the machine. A line that is cut off is none.
fn parse(text: &str, boot: &str) -> Vec<Measured> {
    let Some(lines) = text.strip_prefix(boot).and_then(|rest| rest.strip_prefix('\n')) else {
        return Vec::new();
    };
    let line = |line: &str| -> Option<Measured> {
        // Of a time that no clock can tell, twice is still a number.
        let number = |text: &str| text.parse().ok().filter(|&number: &u64| number < 1 << 60);
        let numbers = line.strip_suffix('\n')?.split(' ').map(number);
        let [hot_ps, cold_ps, least_ps, callee_ppm] =
            numbers.collect::<Option<Vec<_>>>()?.try_into().ok()?;
        let measured = Measured { hot_ps, cold_ps, least_ps, callee_ppm };
        (callee_ppm <= 1_000_000).then_some(measured)
    };
    lines.split_inclusive('\n').filter_map(line).take(MOST).collect()
}

fn measure(bundle: &Bundle, clock: Choice) -> Result<Measured> {
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
    options.is_found = false;
    let told = Told::new()?;
    let words = [bundle.calibration.clone().into(), told.path().into()];
    let unknown = "the hooks' cost is not known";
    let outcome = Recorder::new(options).run(&words).context(unknown)?;
    if let Some(status) = outcome.status.filter(|status| !status.success()) {
        bail!("{unknown}: {}: {status}", bundle.calibration.display());
    }
    let times = told.text().context(unknown)?;
    // The hooks of a call and of a return look at the tick at the same place: with the tick, what
    // lies before it has half of the cost, and what lies behind it the other.
    let part = recording.map_or(Ok(0.5), |recording| charged_to_callee(&recording.take()));
    measured(&times, part.context(unknown)?).context(unknown)
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
fn measured(times: &str, callee_part: f64) -> Option<Measured> {
    let cost = |name: &str| -> Option<u64> {
        times.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?.parse().ok()
    };
    let hot_ps = cost("hot")?;
    Some(Measured {
        hot_ps,
        // Caches that are cold make nothing faster; what says so is noise.
        cold_ps: cost("cold")?.max(hot_ps),
        least_ps: cost("least")?.min(hot_ps),
        callee_ppm: (callee_part * 1e6) as u64,
    })
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

    fn taking(hot_ps: u64) -> Measured {
        Measured { hot_ps, cold_ps: 26, least_ps: 9, callee_ppm: 500_000 }
    }

    #[test]
    fn costs_are_kept_for_one_start_of_the_machine() {
        let all = [taking(4_000), taking(8_000)];
        let text = print(&all, "boot");
        assert_eq!(parse(&text, "boot"), all);
        assert_eq!(parse(&text, "another"), []);
        for cut in 0..text.len() {
            let left = parse(&text[..cut], "boot");
            assert!(left.len() < 2 && left == all[..left.len()], "{left:?}");
        }
        let no_measurements = format!("boot\n1 2 3\n1 2 3 x\n{} 2 3 4\n1 2 3 1000001\n", u64::MAX);
        assert_eq!(parse(&no_measurements, "boot"), []);
    }

    #[test]
    fn a_measurement_unlike_the_others_is_not_believed() {
        let believed = |now: u64, others: &[u64]| {
            let all: Vec<_> = others.iter().chain([&now]).map(|&hot| taking(hot)).collect();
            super::believed(taking(now), &all).hot_ps
        };
        assert_eq!(believed(4_000, &[]), 4_000);
        assert_eq!(believed(8_000, &[4_000, 4_400]), 8_000);
        assert_eq!(believed(4_000, &[8_000, 8_000]), 4_000);
        assert_eq!(believed(40_000, &[4_000]), 4_000);
        assert_eq!(believed(40_000, &[4_000, 5_000, 6_000]), 5_000);
        assert_eq!(believed(0, &[4_000, 8_000]), 4_000);
    }

    #[test]
    fn of_what_is_never_hidden_the_least_part_counts() {
        let measured = |hot_ps, least_ps| Measured { least_ps, ..taking(hot_ps) };
        // A tenth, a half, two thirds: a tenth of what it costs now.
        let all = [measured(17_000, 1_700), measured(16_000, 8_000), measured(18_000, 12_000)];
        assert_eq!(believed(all[2], &all), measured(18_000, 1_800));
        assert_eq!(believed(all[0], &all), all[0]);
        // In a state in which all takes twice as long, so does that.
        let all = [measured(17_000, 1_700), measured(34_000, 20_000)];
        assert_eq!(believed(all[1], &all), measured(34_000, 3_400));
        // Where nothing was seen of the hooks, nothing is said of parts of it.
        let all = [measured(17_000, 1_700), measured(0, 0), measured(16_000, 8_000)];
        assert_eq!(believed(all[2], &all), measured(16_000, 1_600));
        assert_eq!(believed(all[1], &all[1..2]), measured(0, 0));
    }

    #[test]
    fn how_the_cost_is_shared_is_the_median_in_any_case() {
        let all =
            [100_000, 300_000, 700_000].map(|callee_ppm| Measured { callee_ppm, ..taking(4_000) });
        for now in all {
            assert_eq!(believed(now, &all).callee_ppm, 300_000);
        }
    }

    #[test]
    fn the_last_measurements_are_kept() {
        let all: Vec<Measured> = (1..20).map(|n| taking(4_000 * n)).collect();
        assert_eq!(parse(&print(&all, "boot"), "boot"), all[all.len() - MOST..]);
    }

    #[test]
    fn the_cost_is_what_the_program_says() {
        let cost = |times| {
            measured(times, 0.25).map(Measured::cost).map(|cost| (cost.hook_ps, cost.least_ps))
        };
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
