//! What a reader must know before believing the figures: what the recording lacks, what
//! was mended, and what to do about it. In plain words, most important first; every view
//! shows the same.

mod hooks;
mod nameless;
mod outside;
mod single;
mod unsampled;

use teeperf_profile::model::{Profile, Stacks};
use teeperf_wire::body::sample::MAX_STACK;

use crate::units::{self, count, counted};

/// Share of events lost or frames mended above which it is a warning.
const TOO_MANY: f64 = 0.001;
/// Share of call chains without callers above which it is a warning, where there are so many at least.
const MOST_ALONE: f64 = 0.5;
const FEWEST_CHAINS: u64 = 20;
/// Share of stacks cut short above which it is a warning.
const MOST_CUT: f64 = 0.01;
/// Least bytes of longer copies that are advised.
const LEAST_LONGER: u64 = 32768;
/// Share of waiting above which it is said.
const MOST_WAITING: f64 = 0.5;
/// Most functions that are named with frames that were mended.
const MOST_FUNCTIONS: usize = 3;
/// How the recorder's warning of a pause begins.
const PAUSED: &str = "recording was paused";
/// What a recording says that was cut out of another where nothing happened.
const WINDOW: &str = "is in the window that was cut out";
/// Most of the reader's own warnings that are shown.
const MOST_WARNINGS: usize = 20;

/// One thing to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether figures may be wrong because of it; otherwise it explains them.
    pub warning: bool,
    /// What is so, a sentence or two.
    pub what: String,
    /// What to do next; empty when there is nothing to do.
    pub next: String,
}

/// Everything worth saying about how whole a profile is.
pub fn of(profile: &Profile) -> Vec<Finding> {
    let mut found = Vec::new();
    if profile.graph.is_some() {
        estimated(profile, &mut found);
    } else {
        nothing_recorded(profile, &mut found);
        nothing_timed(profile, &mut found);
    }
    filtered(profile, &mut found);
    lost(profile, &mut found);
    mended(profile, &mut found);
    stacks(profile, &mut found);
    chains(profile, &mut found);
    nameless::nameless(profile, &mut found);
    gaps(profile, &mut found);
    reader(profile, &mut found);
    waiting(profile, &mut found);
    outside::outside(profile, &mut found);
    single::single(profile, &mut found);
    hooks::hooks(profile, &mut found);
    unsampled::unsampled(profile, &mut found);
    ends(profile, &mut found);
    // Stable: within warnings and notes the order above stays.
    found.sort_by_key(|finding| !finding.warning);
    found
}

fn push(found: &mut Vec<Finding>, warning: bool, what: String, next: &str) {
    found.push(Finding { warning, what, next: next.into() });
}

fn estimated(profile: &Profile, found: &mut Vec<Finding>) {
    let what = if profile.threads.is_empty() {
        "There are no call paths, only who called whom how often"
    } else {
        "Of some code there are no call paths, only who called whom how often; time in it is in that of \
         whoever called into it as well"
    };
    let what = format!(
        "{what}: total times, and the times of callers and callees, are estimates. Each call of a function is \
         taken to have cost the same, whoever made it, as gprof does."
    );
    push(found, false, what, "");
}

fn nothing_recorded(profile: &Profile, found: &mut Vec<Finding>) {
    if profile.health.events > 0 {
        return;
    }
    let (what, next) = if profile.info.is_sampled() && is_paused(profile) {
        (
            "No sample was taken: recording was paused.",
            "Resume it while the program works: `teeperf resume`.",
        )
    } else if profile.info.is_foreign {
        let next = if profile.info.is_sampled() {
            "perf keeps them in memory until that is half full, or until it ends: end it with Ctrl-C, and record for \
             longer or take more, such as `perf record -F 10000`."
        } else {
            ""
        };
        ("There is no sample and no call in this file.", next)
    } else if profile.info.is_from_within {
        (
            "No sample was taken: the program took hardly any time of a processor, or could not be sampled from within, since \
             it is linked statically, or handles SIGURG by system calls of its own, as Go's runtime does.",
            "Let it run for longer, or take samples more often, such as `--sample=10000`; if it took time, record it from \
             another process: `--sgx=outside`.",
        )
    } else if profile.info.is_sampled() {
        (
            "No sample was taken: the program took hardly any time of a processor.",
            "Let it run for longer, or take samples more often, such as `--sample=10000`.",
        )
    } else if is_paused(profile) {
        (
            "No call was recorded: recording was paused.",
            "Resume it while the program works: `teeperf resume`.",
        )
    } else if is_a_window(profile) {
        (
            "No call and no return is in this part of a recording.",
            "What is shown was open all the while; cut a part in which more happens, by `--since` and `--until`.",
        )
    } else if profile.health.unrecorded > 0 {
        (
            "No call was recorded: another warning says which process with hooks is missing, \
             and why.",
            "",
        )
    } else {
        (
            "No call was recorded.",
            "Build the program with `teeperf cc` or `teeperf c++` in place of the compiler, \
             and record it again. Code that is not built so has no hooks; under valgrind none are \
             recorded.",
        )
    };
    push(found, true, what.into(), next);
}

/// Whether it was cut out of a recording, or has frames that were open when it began.
fn is_a_window(profile: &Profile) -> bool {
    let is_said = profile.health.warnings.iter().any(|warning| warning.contains(WINDOW));
    is_said || profile.threads.iter().any(|thread| thread.tree.nodes.len() > 1)
}

/// Whether threads say so, or the recorder: no thread can say it of a pause that never ended.
fn is_paused(profile: &Profile) -> bool {
    let health = &profile.health;
    health.gaps.iter().any(|(reason, ..)| reason == "paused")
        || health.warnings.iter().any(|warning| warning.starts_with(PAUSED))
}

fn nothing_timed(profile: &Profile, found: &mut Vec<Finding>) {
    // A single sample has a weight and no duration; so have all of a file that says no times.
    if profile.info.is_sampled() {
        return;
    }
    let timed = |thread: &teeperf_profile::model::Thread| thread.wall_ns > 0;
    if profile.health.events > 0 && !profile.threads.iter().any(timed) {
        let next = if profile.info.period_ns > 0.0 {
            "The program ran for too short a time, or the recorder got no processor. Record it \
             again, for longer or with --clock cycle."
        } else {
            "Nothing ticked. Where sums were imported, the code has no counter, or does not say how \
             fast it goes, which `teeperf import --hz` does."
        };
        push(
            found,
            false,
            "The clock never moved between two events: times are not known, only counts.".into(),
            next,
        );
    }
}

fn stacks(profile: &Profile, found: &mut Vec<Finding>) {
    let stacks = profile.health.stacks;
    let share = units::share(stacks.cut as f64, stacks.followed as f64);
    if share <= MOST_CUT {
        return;
    }
    let what = format!(
        "{} of the stacks could not be followed to their first function: callers are missing from totals.",
        units::percent_inline(share)
    );
    let next = cut_stacks(&stacks, profile.info.asked_stack);
    push(found, true, what, &next);
}

/// Advice for stacks that are cut short, by the end of most of them. `asked`: bytes that the user had copied
/// of each stack. The advice never repeats that.
pub fn cut_stacks(stacks: &Stacks, asked: u64) -> String {
    let Stacks { cut, beyond, holed, .. } = *stacks;
    let others = cut.saturating_sub(beyond).saturating_sub(holed);
    if holed >= beyond && holed >= others && holed > 0 {
        return "The kernel copies a stack up to the first page that nobody has written to, as in a large array: longer copies do not \
                help. Build with -fstack-clash-protection, which writes to each page of a frame; or with \
                -fno-omit-frame-pointer, and record `--call-graph fp`."
            .into();
    }
    if others > beyond {
        return "Code without tables for unwinding, such as assembly, cannot be followed; nor can that of files that are not here."
            .into();
    }
    let longer = asked.max(LEAST_LONGER / 2).saturating_mul(2).min(MAX_STACK as u64);
    if longer <= asked {
        return "Functions have more on the stack than the kernel copies: build with -fno-omit-frame-pointer, and record \
                `--call-graph fp`."
            .into();
    }
    format!(
        "Functions have much on the stack, and copies of it were too short: record longer ones, such as \
         `--call-graph dwarf,{longer}`."
    )
}

fn chains(profile: &Profile, found: &mut Vec<Finding>) {
    let stacks = profile.health.stacks;
    let share = units::share(stacks.alone as f64, stacks.chains as f64);
    if share <= MOST_ALONE || stacks.chains < FEWEST_CHAINS {
        return;
    }
    let what = format!(
        "In {} of the call chains nobody called the function: frame pointers lead nowhere, and callers are missing from totals.",
        units::percent_inline(share)
    );
    let next =
        "Build with -fno-omit-frame-pointer, or record copies of stacks: `--call-graph dwarf`.";
    push(found, true, what, next);
}

fn filtered(profile: &Profile, found: &mut Vec<Finding>) {
    let filters = &profile.info.filters;
    let Some(last) = filters.iter().rfind(|rules| !rules.is_empty()) else { return };
    let rules = last.join(", ");
    let others = match filters.len() {
        1 => String::new(),
        several => format!(", the last of {several} filters that held one after the other"),
    };
    let what = format!(
        "Not everything was recorded: {rules}{others}. What is left out has no calls, and its time is that of its \
         callers."
    );
    push(found, false, what, "");
}

fn lost(profile: &Profile, found: &mut Vec<Finding>) {
    let health = &profile.health;
    if health.lost == 0 {
        return;
    }
    let share =
        units::share(health.lost as f64, (health.lost.saturating_add(health.events)) as f64);
    let happened = |name: &str| health.gaps.iter().any(|(gap, times, _)| gap == name && *times > 0);
    let next = if happened("stalled") && profile.info.summed {
        "Threads that began were given no memory for a second: give the recorder a free processor, \
         or record with a smaller --tree-size, with which more threads have room at once."
    } else if happened("stalled") {
        "The recorder stood still for a second: look whether the disk is full or slow, or \
         write to another one with -o."
    } else if happened("dropped") {
        "Record with --on-full wait, which lets the program wait for room instead."
    } else if profile.info.is_sampled() {
        "Take fewer of them, or shorter copies of stacks."
    } else {
        ""
    };
    let what = if profile.info.is_sampled() {
        let lost = subject(health.lost, "sample was", "samples were");
        format!(
            "{lost} lost, {} of all: times are too short by as much.",
            units::percent_inline(share)
        )
    } else {
        format!(
            "{} lost, {} of all: call counts are too low by as much.",
            subject(health.lost, "call or return was", "calls or returns were"),
            units::percent_inline(share),
        )
    };
    push(found, share > TOO_MANY, what, next);
}

fn mended(profile: &Profile, found: &mut Vec<Finding>) {
    let health = &profile.health;
    if health.mended > 0 {
        let share = units::share(health.mended as f64, health.events as f64);
        let what = format!(
            "{} mended because a call or a return was not seen where it belongs: {} of all events{}.",
            subject(health.mended, "frame was", "frames were"),
            units::percent_inline(share),
            most_mended(profile),
        );
        let next = if share > TOO_MANY {
            "Call paths around them may be wrong. Look for code that leaves functions or \
             changes stacks in a way of its own, and for lost events."
        } else {
            ""
        };
        push(found, share > TOO_MANY, what, next);
    }
    if health.unopened > 0 {
        let has_forked = health.gaps.iter().any(|(reason, ..)| reason == "forked");
        let what = format!(
            "{} from calls made before recording began{}.",
            subject(health.unopened, "return is", "returns are"),
            if has_forked { ", or before a process was forked" } else { "" },
        );
        push(found, false, what, "");
    }
    if health.unopened_in_coroutines > 0 {
        let what = format!(
            "On stacks of coroutines, {} from calls that nobody saw begin. Calls there stand \
             without their callers until these return.",
            subject(health.unopened_in_coroutines, "return is", "returns are"),
        );
        let next = "Where the program's code does not show that it switches stacks, have hooks \
                    look at the stack pointer from the start: `teeperf record --stacks always`.";
        push(found, true, what, next);
    }
    if health.taken_over > 0 {
        let what = format!(
            "Threads went on {} with a coroutine's stack that another thread had left. A recording does not say which of \
             two threads was first there: callers in coroutines may be wrong.",
            counted(health.taken_over, "time"),
        );
        let next = "Counts of functions are right. For callers, run the coroutines in one thread.";
        push(found, true, what, next);
    }
}

/// The functions whose frames these are, as the end of a sentence; nothing where nobody knows.
fn most_mended(profile: &Profile) -> String {
    let mended = &profile.health.mended_in;
    let shown = mended.iter().take(MOST_FUNCTIONS).filter_map(|mended| {
        let function = profile.functions.get(mended.function.0 as usize)?;
        Some(format!("{} ({})", function.name, count(mended.frames)))
    });
    let shown: Vec<String> = shown.collect();
    match (shown.is_empty(), mended.len() > MOST_FUNCTIONS) {
        (true, _) => String::new(),
        (false, false) => format!(", of {}", shown.join(", ")),
        (false, true) => format!(", most of {}", shown.join(", ")),
    }
}

fn gaps(profile: &Profile, found: &mut Vec<Finding>) {
    for (name, times, ns) in &profile.health.gaps {
        let times = counted(*times, "time");
        let long = units::time_inline(profile.info.unit, *ns as f64);
        let what = match name.as_str() {
            "paused" => paused(profile, &times, *ns),
            "waited" => format!(
                "Threads waited {times} for room in memory, {long} in all; no function's time has it."
            ),
            "dropped" if *ns == 0 => format!("Memory was full {times}; events were dropped."),
            "dropped" => format!("Memory was full {times}; events were dropped for {long} in all."),
            "stalled" if *ns == 0 => format!(
                "Waiting for room ended without any {times}, as the recorder took nothing for a \
                 second; events were dropped."
            ),
            "stalled" => format!(
                "Waiting for room ended without any {times}; events were dropped for {long} in all."
            ),
            "nested" => {
                format!(
                    "What signal handlers or interrupts called in the midst of a hook was left out {times}."
                )
            }
            "filtered" => format!("Functions were left out on purpose {times}."),
            "forked" => format!(
                "{times} a process began by fork: what its parent had open is not its own time."
            ),
            // A notice says it of the process.
            "stopped" => continue,
            other => format!("Gap `{}`: {times}, {long} in all.", crate::names::printable(other)),
        };
        let next = match name.as_str() {
            "waited" if *ns > profile.info.duration_ns / 20 && profile.info.summed => {
                "Threads that begin wait for memory that the recorder has to make, or to take back \
                 from others that have ended: give it a free processor."
            }
            "waited" if *ns > profile.info.duration_ns / 20 => {
                "The recorder could not keep up: give it a free processor and a faster disk, or \
                 leave small busy functions without hooks, which `teeperf suggest` names."
            }
            _ => "",
        };
        push(found, false, what, next);
    }
}

/// Pauses as threads met them. What one met before its first call has no length.
fn paused(profile: &Profile, times: &str, ns: u64) -> String {
    let long = match ns {
        0 => String::new(),
        ns => format!(", {} in all", units::time_inline(profile.info.unit, ns as f64)),
    };
    let nameless = if profile.functions.iter().any(|function| function.name == "[unknown]") {
        " What was called meanwhile and had not returned when it went on is `[unknown]`."
    } else {
        ""
    };
    format!("Recording was paused {times}{long}.{nameless}")
}

fn reader(profile: &Profile, found: &mut Vec<Finding>) {
    let warnings = &profile.health.warnings;
    for warning in warnings.iter().take(MOST_WARNINGS) {
        push(found, true, crate::names::printable(warning), "");
    }
    if let Some(more) = warnings.len().checked_sub(MOST_WARNINGS).filter(|more| *more > 0) {
        let what = format!("{} like these.", counted(more as u64, "further warning"));
        push(found, true, what, "");
    }
}

/// Where times are those of the clock, and threads had no processor for most of them.
fn waiting(profile: &Profile, found: &mut Vec<Finding>) {
    if profile.info.timer_samples.is_some() {
        return;
    }
    let known = profile.threads.iter().filter_map(|thread| Some((thread.cpu_ns?, thread)));
    let (mut waited, mut all) = (0u64, 0u64);
    for (cpu_ns, thread) in known {
        waited = waited.saturating_add(thread.cpu_over_ns.saturating_sub(cpu_ns));
        all = all.saturating_add(thread.cpu_over_ns);
    }
    if all == 0 || waited as f64 <= MOST_WAITING * all as f64 {
        return;
    }
    let part = units::percent_inline(units::share(waited as f64, all as f64));
    let what = format!("Threads had no processor for {part} of the time, which is in these times.");
    push(
        found,
        false,
        what,
        "Samples of CPU time, which `teeperf record` takes by default, tell it apart.",
    );
}

fn ends(profile: &Profile, found: &mut Vec<Finding>) {
    if let Some(signal) = profile.info.signal {
        let what = format!("The command was ended by {}.", signal_name(signal));
        push(found, false, what, "");
    }
    if profile.health.open > 0 && !profile.health.only_sums {
        let what = format!(
            "{} not returned at the end; time counts up to there.",
            subject(profile.health.open, "call had", "calls had"),
        );
        push(found, false, what, "");
    }
}

/// A count with subject and verb.
fn subject(n: u64, one: &str, several: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { several })
}

/// A signal as people know it (POSIX.1-2017, signal.h; numbers of Linux on x86 and Arm).
pub(crate) fn signal_name(signal: i64) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal}, {name}")
}
