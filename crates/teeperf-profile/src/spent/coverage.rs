//! How often the bounds of functions hold the truth: in programs that are made up, with the samples
//! that events and the kernel's tick take of them.

use std::collections::HashMap;

use teeperf_symbols::Search;
use teeperf_wire::word;

use super::{How, Pools, Weights, put};
use crate::aggregate::{self, Row, Sort};
use crate::model::{FunctionId, Info, Node, Sampled, Spent, Time, Tree};
use crate::names::{Names, SymbolTables, Windows, far_name};
use crate::random::Random;
use crate::replay::{CallTree, Hits, Interrupted, Kinds, pseudo};

const MS: f64 = 1e6;
/// From one of the kernel's ticks to the next, milliseconds.
const TICK: f64 = 4.0;
/// From one event to the next in the mean, and how much less or more that may be, milliseconds.
const EVENT: f64 = 1.0;
const EVENT_SPREAD: f64 = 1.0 / 3.0;
/// Longest piece of a program that does one thing, milliseconds.
const LONGEST_PIECE: f64 = 0.6;
/// Part of a system call in which the kernel takes no interrupts: an event that falls due there
/// comes behind the call.
const WITHOUT_INTERRUPTS: f64 = 0.3;
/// Longest page fault, and longest time around a wait, milliseconds.
const LONGEST_FAULT: f64 = 0.02;
const LONGEST_WAIT: f64 = 0.03;

/// CPU time of a function, milliseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    user: f64,
    calls: f64,
    faults: f64,
    hooks: f64,
    /// Around waits.
    waits: f64,
}

impl Work {
    fn times(self, length: f64) -> Self {
        let Self { user, calls, faults, hooks, waits } = self;
        let all = [user, calls, faults, hooks, waits].map(|ms| length * ms);
        let [user, calls, faults, hooks, waits] = all;
        Self { user, calls, faults, hooks, waits }
    }

    /// All but that of hooks.
    fn own(self) -> f64 {
        self.user + self.calls + self.faults + self.waits
    }
}

/// A thread's work in a piece of its time.
#[derive(Clone, Copy, PartialEq)]
enum Doing {
    User,
    Call,
    Fault,
    Hook,
    Wait,
}

/// Pieces of a program in an order at random: each with its function and length.
fn pieces(program: &[Work], random: &mut Random) -> Vec<(usize, Doing, f64)> {
    let mut pieces = Vec::new();
    for (function, work) in program.iter().enumerate() {
        let Work { user, calls, faults, hooks, waits } = *work;
        let kinds = [
            (Doing::User, user),
            (Doing::Call, calls),
            (Doing::Fault, faults),
            (Doing::Hook, hooks),
            (Doing::Wait, waits),
        ];
        for (doing, mut left) in kinds {
            while left > 0.0 {
                let longest = match doing {
                    Doing::Fault => LONGEST_FAULT,
                    Doing::Wait => LONGEST_WAIT,
                    Doing::User | Doing::Call | Doing::Hook => LONGEST_PIECE,
                };
                let length = left.min(longest * random.uniform());
                pieces.push((function, doing, length));
                left -= length;
            }
        }
    }
    for at in (1..pieces.len()).rev() {
        pieces.swap(at, (random.uniform() * (at + 1) as f64) as usize);
    }
    pieces
}

/// Call word of a function, and its site.
fn site(function: usize) -> u32 {
    (pseudo::FAR >> 1) + function as u32
}

/// Ways by which a function is called: samples of it are in so many places.
const PATHS: usize = 20;

/// A thread that ran a program, and was sampled meanwhile.
fn run(program: &[Work], random: &mut Random) -> CallTree {
    let mut tree = CallTree::new(0);
    let callers: Vec<u32> =
        (0..PATHS).map(|at| tree.tree.child(0, word::call(site(program.len() + at)))).collect();
    let node = |tree: &mut CallTree, function, random: &mut Random| {
        let caller = callers[(random.uniform() * PATHS as f64) as usize];
        tree.tree.child(caller, word::call(site(function)))
    };
    let (mut now, mut until_tick) = (0.0, TICK * random.uniform());
    let mut until_event = EVENT * random.uniform();
    let mut has_faults = false;
    for (function, doing, length) in pieces(program, random) {
        let place = match doing {
            Doing::Hook => Interrupted::Hook(false),
            _ => Interrupted::Site(site(function), doing == Doing::Call),
        };
        let node = node(&mut tree, function, random);
        let kinds = tree.spent.hits.entry((node, place)).or_default();
        let is_user = matches!(doing, Doing::User | Doing::Hook);
        has_faults |= doing == Doing::Fault;
        if doing == Doing::Wait {
            // No tick comes here, and the thread may have waited for any time.
            now += length;
            *tree.spent.waits.entry(node).or_default() += 1;
            until_tick = TICK * random.uniform();
            continue;
        }
        let mut left = length;
        while left > 0.0 {
            let step = left.min(until_tick).min(if is_user { until_event } else { left });
            (left, until_tick) = (left - step, until_tick - step);
            now += step;
            until_event -= match doing {
                Doing::User | Doing::Hook => step,
                Doing::Call => WITHOUT_INTERRUPTS * step,
                Doing::Fault | Doing::Wait => 0.0,
            };
            if until_event <= 0.0 {
                kinds.events.add(Hits::of(1, EVENT * MS));
                until_event = EVENT * (1.0 + EVENT_SPREAD * (2.0 * random.uniform() - 1.0));
            }
            if until_tick <= 0.0 {
                kinds.timers.add(Hits::of(1, TICK * MS));
                if has_faults && doing != Doing::Call {
                    kinds.faults.add(Hits::of(1, TICK * MS));
                }
                (has_faults, until_tick) = (doing == Doing::Fault, TICK);
            }
        }
    }
    tree.spent.hits.retain(|_, kinds| *kinds != Kinds::default());
    tree.spent.cpu_ns = (now * MS) as u64;
    tree
}

/// Rows of a report of a thread, by function.
fn told(tree: &CallTree) -> HashMap<String, Row> {
    let nodes = tree.tree.nodes();
    let far = (0..nodes.len() as u64).collect();
    let search = Search::default();
    let mut names = Names::new(SymbolTables::default(), Windows::default(), far, false, search);
    let weights = Weights::of(tree, &Pools::of(&HashMap::new(), [tree].into_iter()));
    let all = nodes.iter().enumerate().map(|(at, node)| Node {
        parent: node.parent,
        function: if at == 0 { FunctionId(0) } else { names.function(0, node.word) },
        calls: 1,
        self_time: Time::default(),
        total: Time::default(),
        extremes: None,
        spent: Spent::default(),
    });
    let mut out = Tree { nodes: all.collect() };
    let numbers: Vec<u32> = (0..nodes.len() as u32).collect();
    let how = How { weights: &weights, with_inlined: false, is_sampled: true };
    put(tree, &numbers, &mut out.nodes, &mut names, 1.0, how);
    out.sum_up();
    let (functions, _) = names.into_functions();
    let mut rows = aggregate::rows(&out, &functions, Sort::Name);
    let info = Info { period_ns: EVENT * MS, timer_samples: Some(1), ..Info::default() };
    aggregate::add_sampling_error(&mut rows, &info, &Sampled::of(&out));
    let name = |row: &Row| functions[row.function.0 as usize].name.clone();
    rows.iter().map(|row| (name(row), *row)).collect()
}

/// Figures of a function over many runs of its program.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    /// Runs in which its bounds hold its true total.
    held: usize,
    /// Mean error of the total, and mean width of the bounds, as parts of the true total.
    bias: f64,
    width: f64,
    /// Root of the mean square of that error.
    deviation: f64,
}

const RUNS: usize = 100;

/// Figures of each function of a program.
fn figures(program: &[Work]) -> Vec<Figures> {
    let mut random = Random(20_261_130);
    let mut all = vec![Figures::default(); program.len()];
    for _ in 0..RUNS {
        let told = told(&run(program, &mut random));
        for (at, (work, figures)) in program.iter().zip(&mut all).enumerate() {
            let truth = work.own() * MS;
            let total = told.get(&far_name(at as u64)).map_or(Time::default(), |row| row.total);
            figures.held += usize::from(total.low <= truth && truth <= total.high);
            let error = (total.value - truth) / truth;
            figures.bias += error / RUNS as f64;
            figures.deviation = figures.deviation.hypot(error / (RUNS as f64).sqrt());
            figures.width += (total.high - total.low) / truth / RUNS as f64;
        }
    }
    all
}

/// A function without calls of the kernel.
fn user(user: f64) -> Work {
    Work { user, ..Work::default() }
}

/// Guards: bounds that miss the truth more often than once in twenty runs.
#[test]
fn bounds_hold_the_truth() {
    let calls = |user, calls| Work { user, calls, ..Work::default() };
    let faults = |user, faults| Work { user, faults, ..Work::default() };
    let hooks = |user, hooks| Work { user, hooks, ..Work::default() };
    let waits = |user, waits| Work { user, waits, ..Work::default() };
    // Those of one row differ in their length alone.
    let programs: &[(&[f64], &[Work])] = &[
        (&[1.0, 10.0, 100.0], &[user(10.0), user(6.0), user(3.0), user(1.0)]),
        (&[1.0, 10.0], &[user(10.0), calls(1.0, 9.0)]),
        (&[1.0, 10.0], &[user(19.0), calls(1.0, 2.0)]),
        (&[1.0, 10.0], &[user(5.0), faults(3.0, 16.0)]),
        (&[1.0, 10.0], &[user(15.0), faults(3.0, 2.0)]),
        (&[1.0, 10.0], &[user(5.0), faults(3.0, 10.0), faults(0.5, 1.5)]),
        (&[1.0, 10.0], &[user(10.0), hooks(5.0, 10.0)]),
        (&[1.0, 10.0], &[user(20.0), calls(5.0, 15.0), faults(5.0, 15.0)]),
        // One fault each tick and less.
        (&[1.0, 10.0], &[user(190.0), calls(10.0, 90.0), faults(10.0, 1.0)]),
        // It may be chance that one has more of the faults than the other.
        (&[10.0], &[faults(5.0, 5.0), faults(5.0, 5.0)]),
        (&[1.0, 10.0, 50.0], &[calls(1.0, 11.0), calls(1.0, 11.0), waits(0.3, 0.6)]),
        (&[1.0, 10.0], &[calls(1.0, 11.0), calls(1.0, 11.0), waits(0.3, 3.0)]),
        (&[1.0, 10.0], &[calls(10.0, 5.0), user(10.0), waits(3.0, 0.3)]),
        (&[10.0, 50.0], &[faults(10.0, 10.0), calls(1.0, 10.0), waits(1.0, 3.0)]),
    ];
    for (lengths, program) in programs {
        for length in *lengths {
            let program: Vec<Work> = program.iter().map(|work| work.times(*length)).collect();
            let all = figures(&program);
            let held: usize = all.iter().map(|figures| figures.held).sum();
            let held = 100.0 * held as f64 / (RUNS * all.len()) as f64;
            assert!(held >= 95.0, "{held} % of {program:?}: {all:?}");
        }
    }
}

/// Guards: time of page faults that functions without any have, and system calls.
#[test]
fn page_faults_belong_to_the_code_that_met_them() {
    let faults = |user, faults| Work { user, faults, ..Work::default() };
    let program = [user(50.0), faults(30.0, 160.0)];
    let biases = figures(&program).into_iter().map(|figures| figures.bias);
    assert!(biases.clone().all(|bias| bias.abs() < 0.06), "{:?}", biases.collect::<Vec<_>>());
    // Each is less than may be chance in a single run.
    let program =
        [user(20.0), Work { user: 5.0, calls: 15.0, ..Work::default() }, faults(5.0, 15.0)];
    let biases = figures(&program).into_iter().map(|figures| figures.bias);
    assert!(biases.clone().all(|bias| bias.abs() < 0.2), "{:?}", biases.collect::<Vec<_>>());
}

/// Guards: bounds that tell less than the samples do.
#[test]
fn bounds_of_user_code_are_as_narrow_as_samples_allow() {
    let program = [user(1000.0), user(600.0), user(300.0), user(100.0)];
    let all: f64 = program.iter().map(|work| work.user).sum();
    for (work, figures) in program.iter().zip(figures(&program)) {
        let share = work.user / all;
        let allowed = 2.0 * 1.96 * (share * (1.0 - share) * all).sqrt() / work.user;
        assert!(figures.width < 1.2 * allowed, "{work:?}: {figures:?}");
    }
}

/// Guards: system calls that have the time of few ticks in user code, and not their own.
#[test]
fn system_calls_beside_waits_keep_their_time() {
    let calls = Work { user: 50.0, calls: 550.0, ..Work::default() };
    let program = [calls, calls, Work { user: 15.0, waits: 150.0, ..Work::default() }];
    let all = figures(&program);
    assert!(all.iter().take(2).all(|figures| figures.deviation < 0.1), "{all:?}");
}

/// Guards: threads that begin at one tick and end before the next, whose page faults have no place.
#[test]
fn time_of_no_known_place_may_be_page_faults() {
    let mut tree = CallTree::new(0);
    let node = tree.tree.child(0, word::call(site(0)));
    let (events, timers) = (Hits::of(400, EVENT * MS), Hits::of(200, TICK * MS));
    let kinds = Kinds { events, timers, faults: timers, ..Kinds::default() };
    tree.spent.hits.insert((node, Interrupted::Site(site(0), false)), kinds);
    tree.spent.cpu_ns = (1600.0 * MS) as u64;
    tree.spent.waits.insert(node, 100);
    let total = told(&tree)[&far_name(0)].total;
    assert!(total.value < 900.0 * MS && total.high > 1200.0 * MS, "{total:?}");
}

/// Guards: bounds of a system call that has all the time of no known place, beside another one.
#[test]
fn time_of_no_known_place_may_be_that_of_one_system_call() {
    let mut tree = CallTree::new(0);
    for (at, samples) in [(0, 10), (1, 190)] {
        let node = tree.tree.child(0, word::call(site(at)));
        let kinds = |events, timers| Kinds { events, timers, ..Kinds::default() };
        let (user, call) = (Hits::of(50, EVENT * MS), Hits::of(samples, TICK * MS));
        tree.spent.hits.insert((node, Interrupted::Site(site(at), false)), kinds(user, call));
        tree.spent.hits.insert((node, Interrupted::Site(site(at), true)), kinds(user, call));
        tree.spent.waits.insert(node, 100);
    }
    tree.spent.cpu_ns = (2000.0 * MS) as u64;
    let rows = told(&tree);
    let unplaced = rows["[kernel]"].spent.unplaced_ns;
    assert!(unplaced > 500.0 * MS, "{unplaced}");
    let total = rows[&far_name(0)].total;
    assert!(total.high > total.value + unplaced, "{total:?}");
}
