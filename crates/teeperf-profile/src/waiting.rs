//! Time in which threads waited, taken out of a profile: wall time that was none of a processor's.
//!
//! What is recorded is wall time. But threads look at their CPU time now and then, when they begin a chunk, so that it is
//! known how long a thread waited between two such looks, though not in which functions. These are taken to be:
//!
//! - functions that are known to wait, by name: [`KNOWN`], and what the user says;
//! - functions that have so much of a thread's time that most of it must have been waiting: more than half of it would
//!   have been if all the rest of the thread's time had been waiting too.
//!
//! What a thread waited is taken off the own time of these, in proportion; what they cannot bear is in other functions,
//! nobody knows which, and stays. Where a thread's CPU time is not known, as of one that waits all through a window,
//! functions of the first kind lose all their time, and those of the second kind of other threads.

use std::collections::HashMap;

use crate::cost::sum_up;
use crate::model::{Function, FunctionId, Profile, Thread, Time, Tree};
use crate::pattern::Pattern;
use teeperf_symbols::spellings;

/// Functions that wait: of C libraries, of C++ and Rust, and where loops of well-known libraries wait for events.
pub const KNOWN: [&str; 44] = [
    "poll",
    "ppoll",
    "__poll",
    "select",
    "pselect",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "accept",
    "accept4",
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_cond_clockwait",
    "pthread_join",
    "pthread_barrier_wait",
    "sem_wait",
    "sem_timedwait",
    "sem_clockwait",
    "sigwait",
    "sigwaitinfo",
    "sigtimedwait",
    "sigsuspend",
    "pause",
    "sleep",
    "usleep",
    "nanosleep",
    "clock_nanosleep",
    "wait",
    "wait3",
    "wait4",
    "waitpid",
    "waitid",
    "std::condition_variable::wait",
    "std::condition_variable::wait_for",
    "std::this_thread::sleep_for",
    "std::thread::join",
    "std::thread::sleep",
    "std::thread::park",
    "aeApiPoll",
    "uv__io_poll",
    "epoll_dispatch",
    "poll_dispatch",
    "select_dispatch",
    "mio::poll::Poll::poll",
];
/// Of a thread of whose time less than this part lies between looks at its CPU time nothing is said.
const LEAST_SEEN: f64 = 0.1;

/// What was taken out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeftOut {
    /// Functions and the time that they lost, most first, nanoseconds.
    pub functions: Vec<(FunctionId, f64)>,
    /// What threads waited besides, in functions that nobody knows, nanoseconds.
    pub elsewhere_ns: f64,
    /// Of some threads their CPU time is not known.
    pub is_partial: bool,
}

impl LeftOut {
    /// All that was taken out, nanoseconds.
    pub fn ns(&self) -> f64 {
        self.functions.iter().map(|(_, ns)| ns).sum()
    }
}

/// Takes it out of all threads; `more` are functions that wait, beside those that are known.
pub fn leave_out(profile: &mut Profile, more: &[Pattern]) -> LeftOut {
    let found = find(profile, more);
    let mut lost: HashMap<FunctionId, f64> = HashMap::new();
    let mut out = LeftOut::default();
    for (thread, found) in profile.threads.iter_mut().zip(found) {
        for node in thread.tree.nodes.iter_mut().skip(1) {
            if let Some(left) = found.functions.get(&node.function) {
                let was = node.self_time.value;
                left.apply(&mut node.self_time);
                *lost.entry(node.function).or_default() += was - node.self_time.value;
            }
        }
        out.elsewhere_ns += found.elsewhere_ns;
        out.is_partial |= found.is_unknown;
        sum_up(&mut thread.tree);
    }
    out.functions = lost.into_iter().filter(|(_, ns)| *ns > 0.0).collect();
    out.functions.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    out
}

/// What waiting there is in a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// What [`leave_out`] would take out, nanoseconds.
    pub off_ns: f64,
    /// What threads waited in functions that nobody knows, nanoseconds.
    pub elsewhere_ns: f64,
    /// The function that would lose most.
    pub most: Option<FunctionId>,
}

/// What would be taken out, and what would not.
pub fn seen(profile: &Profile) -> Seen {
    let mut lost: HashMap<FunctionId, f64> = HashMap::new();
    let mut out = Seen::default();
    for found in find(profile, &[]) {
        out.elsewhere_ns += found.elsewhere_ns;
        for (function, left) in found.functions {
            *lost.entry(function).or_default() += left.off_ns;
            out.off_ns += left.off_ns;
        }
    }
    let most = lost.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
    out.most = most.filter(|(_, ns)| *ns > 0.0).map(|(function, _)| function);
    out
}

/// What is known of each thread.
fn find(profile: &Profile, more: &[Pattern]) -> Vec<Found> {
    if profile.info.timer_samples > 0 {
        // Times are CPU times: there is nothing to be left out.
        return profile.threads.iter().map(|_| Found::default()).collect();
    }
    let mut waits = known(profile, more);
    let of = |waits: &[bool]| -> Vec<Found> {
        profile.threads.iter().map(|thread| Found::of(thread, waits)).collect()
    };
    let found = of(&waits);
    if found.iter().all(|found| !found.is_unknown) {
        return found;
    }
    // What waits in one thread does in another.
    for function in found.iter().flat_map(|found| &found.must_wait) {
        if let Some(waits) = waits.get_mut(function.0 as usize) {
            *waits = true;
        }
    }
    let again = of(&waits);
    let both = found.into_iter().zip(again);
    both.map(|(found, again)| if found.is_unknown { again } else { found }).collect()
}

/// By number, whether a function is known to wait.
fn known(profile: &Profile, more: &[Pattern]) -> Vec<bool> {
    let is_known = |function: &Function| {
        spellings(&function.name).iter().any(|name| KNOWN.contains(&name.as_ref()))
    };
    let mut out: Vec<bool> = profile.functions.iter().map(is_known).collect();
    for pattern in more {
        let fits = pattern.among(&profile.functions).fits;
        out.iter_mut().zip(fits).for_each(|(is_it, fits)| *is_it |= fits);
    }
    out
}

/// What is left of a function's own time: parts of its figure and of its bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Left {
    value: f64,
    low: f64,
    high: f64,
    /// What goes, nanoseconds.
    off_ns: f64,
}

impl Left {
    fn apply(&self, time: &mut Time) {
        let high = time.high * self.high;
        time.value = (time.value * self.value).min(high);
        time.low = (time.low * self.low).min(time.value);
        time.high = high;
    }
}

/// What is known of one thread.
#[derive(Default)]
struct Found {
    functions: HashMap<FunctionId, Left>,
    /// Those whose time must have been waiting for the most part, with names that say nothing.
    must_wait: Vec<FunctionId>,
    elsewhere_ns: f64,
    is_unknown: bool,
}

impl Found {
    fn of(thread: &Thread, waits: &[bool]) -> Self {
        let own = own_times(&thread.tree);
        let is_named =
            |function: FunctionId| waits.get(function.0 as usize).copied().unwrap_or(false);
        let Some(waited) = waited(thread) else {
            let named = own.iter().filter(|(function, _)| is_named(**function));
            let gone = |time: &Time| Left { off_ns: time.value, ..Left::default() };
            let functions = named.map(|(&function, time)| (function, gone(time))).collect();
            let has_time = thread.tree.framed_ns() > 0.0;
            return Self {
                functions,
                must_wait: Vec::new(),
                elsewhere_ns: 0.0,
                is_unknown: has_time,
            };
        };
        let mut whole = Time::default();
        thread.tree.nodes.iter().for_each(|node| whole += node.self_time);
        // Had all the rest waited as well, the function still would have for so long.
        let surely = |of: f64, all: f64, own: f64| (of - (all - own).max(0.0)).max(0.0);
        let must_wait =
            |time: &Time| surely(waited.value, whole.value, time.value) > time.value / 2.0;
        let chosen: Vec<(FunctionId, Time)> = own
            .into_iter()
            .filter(|(function, time)| is_named(*function) || must_wait(time))
            .collect();
        let must = chosen.iter().map(|(function, _)| *function);
        let must_wait = must.filter(|function| !is_named(*function)).collect();
        let all: f64 = chosen.iter().map(|(_, time)| time.value).sum();
        let part = if all > 0.0 { (waited.value / all).min(1.0) } else { 0.0 };
        let functions = chosen.into_iter().map(|(function, time)| {
            let left =
                |own: f64, off: f64| if own > 0.0 { (1.0 - off / own).max(0.0) } else { 0.0 };
            let left = Left {
                value: 1.0 - part,
                low: left(time.low, waited.high),
                high: left(time.high, surely(waited.low, whole.high, time.high)),
                off_ns: part * time.value,
            };
            (function, left)
        });
        let elsewhere_ns = (waited.value - all).max(0.0);
        // Of what has no recorded frame it is nobody's.
        let nobodys = thread.tree.nodes.first().map_or(0.0, |root| root.self_time.value);
        let functions = functions.collect();
        let elsewhere_ns = (elsewhere_ns - nobodys).max(0.0);
        Self { functions, must_wait, elsewhere_ns, is_unknown: false }
    }
}

/// What each function of a thread has itself, over all paths.
fn own_times(tree: &Tree) -> HashMap<FunctionId, Time> {
    let mut out: HashMap<FunctionId, Time> = HashMap::new();
    for node in tree.nodes.iter().skip(1) {
        *out.entry(node.function).or_default() += node.self_time;
    }
    out
}

/// How long a thread waited, where enough is known of its CPU time. What lies between the last look at that and the
/// thread's end may be anything, and is taken to be as what is before.
fn waited(thread: &Thread) -> Option<Time> {
    let (cpu, seen, wall) =
        (thread.cpu_ns? as f64, thread.cpu_over_ns as f64, thread.wall_ns as f64);
    if seen <= 0.0 || seen < LEAST_SEEN * wall {
        return None;
    }
    // What gaps leave out is in no function's time, whatever the thread did meanwhile.
    let off = thread.left_out_ns as f64;
    let low = (seen - off - cpu).max(0.0);
    Some(Time { low, value: (low * (wall / seen).max(1.0)).min(wall), high: (wall - cpu).max(low) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Node;

    /// A thread whose root calls functions one after the other, each with so many nanoseconds.
    fn thread(own: &[f64], cpu_ns: Option<u64>, cpu_over_ns: u64) -> Thread {
        let node = |parent, function, ns| Node {
            parent,
            function: FunctionId(function),
            calls: 1,
            self_time: Time::from(ns),
            total: Time::from(ns),
            extremes: None,
            spent: Default::default(),
        };
        let mut nodes = vec![node(0, 0, 0.0)];
        nodes.extend(own.iter().zip(0..).map(|(ns, function)| node(0, function, *ns)));
        let wall_ns = own.iter().sum::<f64>() as u64;
        Thread { wall_ns, cpu_ns, cpu_over_ns, tree: Tree { nodes }, ..Thread::default() }
    }

    fn left(names: &[&str], thread: Thread, more: &[&str]) -> (Vec<f64>, LeftOut, Profile) {
        let function = |name: &&str| Function { name: (*name).into(), ..Function::default() };
        let mut profile = Profile {
            functions: names.iter().map(function).collect(),
            threads: vec![thread],
            ..Profile::default()
        };
        let more: Vec<Pattern> = more.iter().map(|text| Pattern::new(text).unwrap()).collect();
        let out = leave_out(&mut profile, &more);
        let nodes = &profile.threads[0].tree.nodes;
        (nodes.iter().skip(1).map(|node| node.self_time.value.round()).collect(), out, profile)
    }

    #[test]
    fn what_was_no_processors_time_goes_where_it_must_have_been() {
        // Of 1000 ns 100 were a processor's; `serve` alone has more than those.
        let (own, out, profile) =
            left(&["serve", "work"], thread(&[950.0, 50.0], Some(100), 1000), &[]);
        assert_eq!((own, out.functions), (vec![50.0, 50.0], vec![(FunctionId(0), 900.0)]));
        assert_eq!((out.elsewhere_ns, out.is_partial), (0.0, false));
        let root = &profile.threads[0].tree.nodes[0].total;
        assert_eq!(root.value.round(), 100.0);
        // It waited for 850 at least, had `work` waited all along.
        let serve = &profile.threads[0].tree.nodes[1].self_time;
        assert_eq!((serve.low.round(), serve.high.round()), (50.0, 100.0));
    }

    #[test]
    fn what_may_have_been_anywhere_stays_and_is_told() {
        let (own, out, _) = left(&["a", "b"], thread(&[500.0, 500.0], Some(500), 1000), &[]);
        assert_eq!((own, out.elsewhere_ns), (vec![500.0, 500.0], 500.0));
        let (own, out, _) = left(&["a", "b"], thread(&[500.0, 500.0], Some(500), 1000), &["b"]);
        assert_eq!((own, out.elsewhere_ns), (vec![500.0, 0.0], 0.0));
        // A name is no proof: of what a processor did nothing goes.
        let (own, out, _) = left(&["poll", "b"], thread(&[600.0, 400.0], Some(900), 1000), &[]);
        assert_eq!((own, out.ns()), (vec![500.0, 400.0], 100.0));
    }

    #[test]
    fn what_is_known_of_a_part_is_taken_for_all() {
        let (own, out, profile) = left(&["a", "b"], thread(&[990.0, 10.0], Some(10), 500), &[]);
        assert_eq!((own[0].round(), own[1]), (10.0, 10.0));
        assert_eq!(out.ns().round(), 980.0);
        // But 500 more may have been a processor's.
        assert_eq!(profile.threads[0].tree.nodes[1].self_time.high.round(), 510.0);
    }

    #[test]
    fn what_waits_in_one_thread_waits_in_one_of_which_nothing_is_known() {
        let function = |name: &str| Function { name: name.into(), ..Function::default() };
        let profile = |first: Option<u64>| Profile {
            functions: vec![function("serve"), function("work")],
            threads: vec![
                thread(&[900.0, 100.0], first, 1000),
                // Open all the while, with no look at its CPU time.
                thread(&[1000.0], None, 0),
            ],
            ..Profile::default()
        };
        let mut both = profile(Some(100));
        assert_eq!(
            seen(&both),
            Seen { off_ns: 1900.0, elsewhere_ns: 0.0, most: Some(FunctionId(0)) }
        );
        let out = leave_out(&mut both, &[]);
        assert_eq!((out.ns(), out.is_partial), (1900.0, true));
        assert_eq!(both.threads[1].tree.nodes[1].self_time.value, 0.0);
        // In a thread that had a processor it shows nothing.
        assert_eq!(seen(&profile(Some(950))).off_ns, 0.0);
    }

    #[test]
    fn what_is_not_known_to_be_anywhere_is_told_apart() {
        let function = |name: &str| Function { name: name.into(), ..Function::default() };
        let profile = Profile {
            functions: vec![function("a"), function("b")],
            threads: vec![thread(&[500.0, 500.0], Some(400), 1000)],
            ..Profile::default()
        };
        assert_eq!(seen(&profile), Seen { off_ns: 0.0, elsewhere_ns: 600.0, most: None });
    }

    #[test]
    fn without_cpu_time_names_alone_tell() {
        for (cpu, seen) in [(None, 0), (Some(1), 99)] {
            let (own, out, _) = left(&["poll", "b"], thread(&[600.0, 400.0], cpu, seen), &[]);
            assert_eq!((own, out.is_partial), (vec![0.0, 400.0], true));
        }
    }
}
