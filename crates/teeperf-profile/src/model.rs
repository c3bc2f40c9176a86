//! What replay makes of a recording, and what every view is drawn from: functions, and
//! for each thread a calling-context tree; or, from formats that know no call paths, a
//! [`CallGraph`]. Knows nothing of words, packets or files.

mod spent;

use std::sync::Arc as Shared;

use crate::lengths::Lengths;
pub(crate) use spent::sampled;
pub use spent::{Sampled, Spent};

/// Nanoseconds with what is known of their error. `value` lies between the other two, and is the one
/// to show. Never below zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Time {
    /// The figure to show, nanoseconds.
    pub value: f64,
    /// Least that it can be, nanoseconds.
    pub low: f64,
    /// Most that it can be, nanoseconds.
    pub high: f64,
}

impl Time {
    /// Whether the interval is wider than 30 % of the figure.
    pub fn is_uncertain(&self) -> bool {
        self.high - self.low > 0.3 * self.value
    }
}

impl From<f64> for Time {
    /// Nanoseconds that are known.
    fn from(ns: f64) -> Self {
        Self { value: ns, low: ns, high: ns }
    }
}

impl std::ops::AddAssign for Time {
    fn add_assign(&mut self, other: Self) {
        self.value += other.value;
        self.low += other.low;
        self.high += other.high;
    }
}

/// What times are in. Everywhere else they are called nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    #[default]
    Nanoseconds,
    /// Units of a clock whose rate is not known. Shares are as true of these.
    Counts,
}

/// Index into [`Profile::functions`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub u32);

/// A function that was called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Function {
    /// Demangled name; `module+0xoffset` when it has no symbol; `[…]` for what is no
    /// function, such as frames whose call was lost.
    pub name: String,
    /// File name of its module, without directory; empty when unknown.
    pub module: String,
    /// Path of its source file, where known.
    pub file: Option<String>,
    /// Line of its definition, where known.
    pub line: Option<u32>,
    /// Where its code stands, where functions are told apart by that and not by name and
    /// module alone.
    pub place: Option<Place>,
}

impl Function {
    /// Whether it is no function, such as frames whose call was lost.
    pub fn is_placeholder(&self) -> bool {
        self.name.starts_with('[')
    }

    /// Whether it has no symbol: its name is its module's, and an address.
    pub fn is_nameless(&self) -> bool {
        let rest = self.name.strip_prefix(&*self.module);
        !self.module.is_empty() && rest.is_some_and(|rest| rest.starts_with("+0x"))
    }
}

/// Where a function's code stands: what formats need that name functions by address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Path of the module's file.
    pub path: Shared<str>,
    /// Build-id of that file; empty when it has none.
    pub build_id: Shared<[u8]>,
    /// First address, as a virtual address of the file: without load bias.
    pub address: u64,
    /// Bytes of code, 0 when not known.
    pub size: u64,
    /// What the module is.
    pub code: Code,
}

/// What a module is: what it takes to know its addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// Code of a process, on the machine of the recorder.
    #[default]
    Process,
    /// An image that runs elsewhere, such as a trusted application: how wide addresses are there
    /// its file alone says.
    Image,
    /// Likewise, and no file of it was found: addresses are told from its `teeperf_anchor` on.
    UnknownImage,
}

/// A node of a calling-context tree: one call path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    /// Index of the caller's node, always smaller than this node's; 0 for the root itself.
    pub parent: u32,
    /// The function; meaningless in the root.
    pub function: FunctionId,
    /// Times it was entered on this path; of samples ([`Info::is_sampled`]) those with it as the innermost.
    pub calls: u64,
    /// Time in the function itself on this path (exclusive).
    pub self_time: Time,
    /// Time in it and all it called on this path (inclusive).
    pub total: Time,
    /// How long its calls on this path took, hooks included, where that was summed while the program ran.
    pub extremes: Option<Extremes>,
    /// Samples, waiting and hooks beside its CPU time; nothing where threads were not interrupted by
    /// timers.
    pub spent: Spent,
}

/// Length of the shortest and of the longest call, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extremes {
    /// Of the shortest.
    pub shortest_ns: f64,
    /// Of the longest.
    pub longest_ns: f64,
}

impl Extremes {
    /// Those of two sets of calls.
    pub fn of_both(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (Some(a), Some(b)) => Some(Self {
                shortest_ns: a.shortest_ns.min(b.shortest_ns),
                longest_ns: a.longest_ns.max(b.longest_ns),
            }),
            (a, b) => a.or(b),
        }
    }
}

/// A calling-context tree. `nodes[0]` is the root and stands for the thread; its self time
/// is time with no recorded frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// Parents before children.
    pub nodes: Vec<Node>,
}

impl Tree {
    /// Time in all of it, nanoseconds.
    pub fn total_ns(&self) -> f64 {
        self.nodes.first().map_or(0.0, |root| root.total.value)
    }

    /// CPU time of hooks in all of it, nanoseconds, where samples tell it.
    pub fn hooks_ns(&self) -> f64 {
        self.nodes.iter().map(|node| node.spent.hooks_ns).sum()
    }

    /// Makes the totals: each node's self time and the totals of its children.
    pub(crate) fn sum_up(&mut self) {
        for node in &mut self.nodes {
            node.total = node.self_time;
            node.spent = node.spent.of_leaf();
        }
        for at in (1..self.nodes.len()).rev() {
            let Node { parent, total, spent, .. } = self.nodes[at];
            self.nodes[parent as usize].total += total;
            self.nodes[parent as usize].spent.add_totals(&spent);
        }
    }
}

/// One thread, or threads merged under one name when there are very many.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Which of several files it is in, where these are read together: ids of one are not those of
    /// another.
    pub file: u32,
    /// Process id.
    pub pid: u32,
    /// Thread id; of merged threads, the first.
    pub tid: u32,
    /// Name; of the executable's file where the thread has none. The first thread of a process that gave itself a title has that.
    pub name: String,
    /// Threads merged into this one, 1 when it is a single thread.
    pub merged: u32,
    /// Calls and returns seen.
    pub events: u64,
    /// From its first to its last event, nanoseconds of wall time.
    pub wall_ns: u64,
    /// CPU time between the thread's first and last look at it, nanoseconds, where known. A thread
    /// looks when it begins a chunk, and at each sample. Where that is less than nine tenths of its
    /// wall time, and it tells when it was off its processor: its wall time less that, if that is
    /// more.
    pub cpu_ns: Option<u64>,
    /// Between these, nanoseconds of wall time.
    pub cpu_over_ns: u64,
    /// Time that gaps left out, such as pauses; not in any function's time.
    pub left_out_ns: u64,
    /// Slept until there was room for events; not in any function's time.
    pub waited_ns: u64,
    /// What the thread did.
    pub tree: Tree,
    /// The CPU time of all that it did, where the tree is a part of that.
    pub whole: Option<Sampled>,
    /// What found no room on its path, where something did.
    pub no_room: Option<NoRoom>,
    /// How long calls took, by function, in units of [`Profile::length_unit_ns`]; empty where calls were not timed. Hooks
    /// are in them, what gaps leave out is not. Calls that did not return by themselves have no length.
    pub lengths: Vec<(FunctionId, Lengths)>,
    /// Likewise of calls that the processor's counter timed beside the tick (`record --timed`), in picoseconds. Such calls are
    /// among [`Thread::lengths`] as well.
    pub counted: Vec<(FunctionId, Lengths)>,
}

impl Thread {
    /// Time off its processor within its events, nanoseconds, where it tells that.
    pub fn waiting_ns(&self) -> f64 {
        self.tree.nodes.iter().map(|node| node.spent.waiting_ns).sum()
    }

    /// CPU time of hooks, nanoseconds, where samples tell it.
    pub fn hooks_ns(&self) -> f64 {
        self.tree.hooks_ns()
    }

    /// The CPU time of all that it did, as samples tell it.
    pub fn sampled(&self) -> Sampled {
        self.whole.unwrap_or_else(|| Sampled::of(&self.tree))
    }

    /// Its CPU time, nanoseconds, if looks at it lie nine tenths of its wall time apart or more.
    pub fn whole_cpu_ns(&self) -> Option<u64> {
        const MOST_SEEN: f64 = 0.9;
        self.cpu_ns.filter(|_| self.cpu_over_ns as f64 >= MOST_SEEN * self.wall_ns as f64)
    }

    /// Has CPU time that no looks tell be what is left of the thread's time. The clock of a short
    /// thread may be late, so that less is left than looks tell.
    pub(crate) fn tell_cpu_by_waiting(&mut self) {
        if self.whole_cpu_ns().is_none() {
            let off = self.waiting_ns() as u64 + self.left_out_ns;
            let left_ns = self.wall_ns.saturating_sub(off);
            self.cpu_ns = self.cpu_ns.max((left_ns > 0).then_some(left_ns));
            self.cpu_over_ns = if self.cpu_ns.is_some() { self.wall_ns } else { 0 };
        }
    }

    /// Self time and total of a call path, with what they may lack because there was no room.
    pub fn times(&self, at: usize) -> (Time, Time) {
        let Node { parent, function, mut self_time, mut total, .. } = self.tree.nodes[at];
        if let Some(no_room) = self.no_room.as_ref().filter(|_| at > 0) {
            let is_without_room =
                parent > 0 && self.tree.nodes[parent as usize].function == no_room.function;
            let lack =
                if is_without_room { no_room.lack(function) } else { no_room.lack_above(function) };
            self_time.high += lack.self_ns;
            total.high += lack.total_ns;
        }
        (self_time, total)
    }
}

/// Time of calls for whose paths a thread's tree had no room. Functions stand side by side below `[no room]`, and
/// what they called stands beside them: so it is not in the totals of those that called it, and who these were
/// is not known. Where it is not known which of them goes on after a call, time is that of `[no room]` itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NoRoom {
    /// `[no room]`.
    pub function: FunctionId,
    /// All of it.
    pub total: Time,
    /// What is `[no room]`'s own: of which function it is is not known.
    pub nobodys: Time,
    /// All functions of the thread by number, each with the most that it has itself below `[no room]`, nanoseconds;
    /// nothing where all of its calls found room.
    pub functions: Vec<(FunctionId, Option<f64>)>,
    /// There was not even room for all functions: those that are missing may be any.
    pub is_nameless: bool,
}

/// How much more times may be, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lack {
    /// The self time.
    pub self_ns: f64,
    /// The total.
    pub total_ns: f64,
}

impl NoRoom {
    /// Of a function, over all its calls in the thread.
    pub fn lack(&self, function: FunctionId) -> Lack {
        match self.known(function) {
            _ if function == self.function => Lack::default(),
            Some(Some(own)) => Lack { self_ns: self.nobodys.high, total_ns: self.total.high - own },
            _ if self.is_nameless => Lack { self_ns: self.nobodys.high, total_ns: self.total.high },
            Some(None) => self.lack_above(function),
            None => Lack::default(),
        }
    }

    /// Of a path on which there was room: what it called may have found none.
    fn lack_above(&self, function: FunctionId) -> Lack {
        let is_above = function != self.function;
        Lack { self_ns: 0.0, total_ns: if is_above { self.total.high } else { 0.0 } }
    }

    /// Functions have other numbers.
    pub(crate) fn renumber(&mut self, number: impl Fn(FunctionId) -> FunctionId) {
        self.function = number(self.function);
        for (function, _) in &mut self.functions {
            *function = number(*function);
        }
        self.functions.sort_unstable_by_key(|&(function, _)| function);
    }

    fn known(&self, function: FunctionId) -> Option<Option<f64>> {
        let found = self.functions.binary_search_by_key(&function, |&(function, _)| function);
        found.ok().map(|at| self.functions[at].1)
    }
}

/// Stacks of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// Those that were followed.
    pub followed: u64,
    /// Of these, the ones that could not be followed to their first function: their callers are missing from totals.
    pub cut: u64,
    /// Of these, the ones that go on behind the end of a copy that is as long as was asked for.
    pub beyond: u64,
    /// And behind the end of a shorter one: the kernel copies no further than to a page that is not in memory.
    pub holed: u64,
    /// Call chains that samples have in their place.
    pub chains: u64,
    /// Of these, the ones in which nobody called the program's function.
    pub alone: u64,
}

impl std::ops::AddAssign for Stacks {
    fn add_assign(&mut self, other: Self) {
        let Self { followed, cut, beyond, holed, chains, alone } = other;
        self.followed += followed;
        self.cut += cut;
        self.beyond += beyond;
        self.holed += holed;
        self.chains += chains;
        self.alone += alone;
    }
}

/// Frames of a function that were mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mended {
    /// The function.
    pub function: FunctionId,
    /// Frames.
    pub frames: u64,
}

/// How whole the recording is, and what replay had to mend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Calls and returns seen.
    pub events: u64,
    /// Calls and returns known to be lost: dropped, nested in a chunk change, holes.
    pub lost: u64,
    /// Processes and libraries with hooks that are not in the recording.
    pub unrecorded: u64,
    /// Frames closed or skipped because a call or a return was not seen where it belongs.
    pub mended: u64,
    /// Of these, the frames of each function whose call or return that was, most first. Where calls were summed while the
    /// program ran, nobody knows.
    pub mended_in: Vec<Mended>,
    /// Frames still open at the end, of those whose calls and returns were recorded one by one.
    pub open: u64,
    /// There are none of these, only sums: which calls have returned is not known. Each stands for two events,
    /// but for one where no call paths are known.
    pub only_sums: bool,
    /// Returns from frames entered before recording began.
    pub unopened: u64,
    /// Of these, the ones on a coroutine's stack: calls there stand without their callers.
    pub unopened_in_coroutines: u64,
    /// Times a thread went on with a stack that another thread had left, of coroutines that change threads. Which of the two was
    /// first a recording does not say: callers on that stack may be wrong.
    pub taken_over: u64,
    /// Copies of stacks that samples have, and those of them that could not be followed to their first function.
    pub stacks: Stacks,
    /// Files of code that samples lead through and that are not here, or of another build: what functions have as their module, and why.
    pub missing: Vec<(String, String)>,
    /// Gaps by reason, as `(name, times, nanoseconds)`.
    pub gaps: Vec<(String, u64, u64)>,
    /// What the reader skipped and why: unknown packets, damaged stretches, missing
    /// numbers, a recording without end; each names its offset in the file.
    pub warnings: Vec<String>,
}

/// What is known of the run.
#[derive(Clone, Debug, Default)]
pub struct Info {
    /// Words of the command.
    pub command: Vec<String>,
    /// Host name.
    pub host: String,
    /// Operating system and release.
    pub system: String,
    /// Architecture.
    pub machine: String,
    /// Processor.
    pub processor: String,
    /// Processors the program could use.
    pub processors: u32,
    /// `tick`, `cycle` or `ordered`; `samples` where the program counter was sampled.
    pub clock: String,
    /// What was sampled, as perf names it; empty where nothing was.
    pub event: String,
    /// Why that clock.
    pub clock_reason: String,
    /// Another profiler recorded it.
    pub is_foreign: bool,
    /// Samples were taken from within the program, by a library in it.
    pub is_from_within: bool,
    /// What all times of the profile are in.
    pub unit: Unit,
    /// Mean time between ticks or samples, nanoseconds, 0 where none ticks: a call shorter than ten of
    /// them cannot be timed alone.
    pub period_ns: f64,
    /// What was asked for in its place, 0 where that is not known.
    pub asked_ns: f64,
    /// Bytes of stacks that samples were to have, 0 where they were to have none, or that is not known.
    pub asked_stack: u64,
    /// When it began, nanoseconds since 1970 UTC.
    pub started_ns: u64,
    /// From the recording's first to its last moment, nanoseconds.
    pub duration_ns: u64,
    /// Exit status of the command, where it ended by itself.
    pub exit_status: Option<i64>,
    /// Signal that ended it.
    pub signal: Option<i64>,
    /// Most calls were summed by call path while the program ran: what threads wait for is memory for that.
    pub summed: bool,
    /// Filters that held one after the other, each as its rules; one without rules recorded everything. Functions that
    /// they left out have no calls, and their time is that of their callers.
    pub filters: Vec<Vec<String>>,
    /// Patterns of functions whose calls the processor's counter timed beside the tick, at some time.
    pub timed: Vec<String>,
    /// Samples that threads' own timers wrote among the calls; CPU times are made of these. A short
    /// run may have none. Nothing where there were no timers, and times are those of the clock.
    pub timer_samples: Option<u64>,
}

impl Profile {
    /// CPU time of hooks, nanoseconds, where samples tell it; else 0.
    pub fn hooks_ns(&self) -> f64 {
        self.all_nodes().map(|node| node.spent.hooks_ns).sum()
    }

    /// For how long threads waited, nanoseconds, where samples tell CPU time; else 0.
    pub fn waiting_ns(&self) -> f64 {
        self.all_nodes().map(|node| node.spent.waiting_ns).sum()
    }

    fn all_nodes(&self) -> impl Iterator<Item = &Node> {
        self.threads.iter().flat_map(|thread| &thread.tree.nodes)
    }
}

impl Info {
    /// Whether this is of samples: then calls are numbers of samples with a function as the innermost, on that path.
    pub fn is_sampled(&self) -> bool {
        !self.event.is_empty()
    }

    /// What the run's duration is in, and what threads had of time: samples have times, whatever their event counts.
    pub fn unit_of_durations(&self) -> Unit {
        if self.is_sampled() { Unit::Nanoseconds } else { self.unit }
    }
}

/// How an async function waited: from one time that a future of it was polled to the next. Such time is no thread's and
/// no call's, since nothing of the function is on a stack, and many futures may wait at once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waits {
    /// The function.
    pub function: FunctionId,
    /// Times that a future of it went on.
    pub times: u64,
    /// Nanoseconds, over all of these.
    pub total_ns: f64,
    /// Of the longest one, nanoseconds.
    pub longest_ns: f64,
}

/// What the program put on the time line.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// When, nanoseconds since the recording began.
    pub at_ns: f64,
    /// What it is called; of a note its text.
    pub name: String,
    /// What it is.
    pub kind: PointKind,
}

/// What a [`Point`] is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PointKind {
    /// A moment.
    Mark,
    /// A text, which is its name.
    Note,
    /// The value of a counter.
    Integer(i64),
    /// The value of a counter.
    Real(f64),
}

/// A source line at which a function was sampled.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The function, or what was inlined there.
    pub function: FunctionId,
    /// Path of the source file.
    pub file: Shared<str>,
    /// Its line.
    pub line: u32,
    /// Samples there.
    pub samples: u64,
    /// What they stand for, nanoseconds.
    pub self_ns: f64,
}

/// Calls between functions where no call paths are known, as files of gprof have them: who
/// called whom, how often, and how long each function took itself. Totals are estimates, see
/// [`CallGraph::new`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallGraph {
    /// Functions that were called, that called others, or that have time, by number.
    pub functions: Vec<Vertex>,
    /// Calls, by the numbers of the two, the caller's first.
    pub arcs: Vec<Arc>,
    /// Functions that call each other round in circles. Functions' [`Vertex::cycle`] are
    /// indices of this.
    pub cycles: Vec<Cycle>,
}

/// A function of a [`CallGraph`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vertex {
    /// Which.
    pub function: FunctionId,
    /// Times called, by itself too.
    pub calls: u64,
    /// Times called by itself.
    pub own_calls: u64,
    /// Time in itself.
    pub self_time: Time,
    /// Estimate of the time in it and all it called; without what others of its cycle took.
    pub total: Time,
    /// The cycle it belongs to.
    pub cycle: Option<u32>,
}

/// Calls of one function by another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arc {
    /// Who called; nobody known where there is none.
    pub caller: Option<FunctionId>,
    /// Who was called.
    pub callee: FunctionId,
    /// How often.
    pub calls: u64,
    /// Estimate of the time of these calls, nanoseconds, with all that they called; 0 within a
    /// cycle and for calls of itself.
    pub total: f64,
}

/// Functions that call each other round in circles, seen as one.
#[derive(Clone, Debug, PartialEq)]
pub struct Cycle {
    /// Which, by number.
    pub members: Vec<FunctionId>,
    /// Calls of any of them from outside.
    pub calls: u64,
    /// Calls among them, and of one by itself.
    pub inner_calls: u64,
    /// Time in themselves.
    pub self_time: Time,
    /// Estimate of the time in them and all they called.
    pub total: Time,
}

/// The result of replay.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// What is known of the run.
    pub info: Info,
    /// Functions that were called. Two of one name and module are one function, unless they have
    /// places: then two of one name and place are.
    pub functions: Vec<Function>,
    /// Where the code of each stands, where that is known; of several of one name and module the first's. May be shorter.
    pub places: Vec<Option<Place>>,
    /// Threads, the one with most time first.
    pub threads: Vec<Thread>,
    /// Calls between functions of which no call paths are known; beside threads, where they are of some.
    pub graph: Option<CallGraph>,
    /// Async functions that waited, the one with most time first.
    pub waits: Vec<Waits>,
    /// What the program put on the time line, in order.
    pub points: Vec<Point>,
    /// How whole it is.
    pub health: Health,
    /// Of a part that was chosen of a profile: the time with a recorded frame in that, nanoseconds.
    pub part_of_ns: Option<f64>,
    /// The CPU time of threads that have nothing in the part, as samples tell it.
    pub left_out: Sampled,
    /// Nanoseconds of a unit of [`Thread::lengths`], where calls were timed.
    pub length_unit_ns: Option<f64>,
    /// Of samples, where that was asked for: which source lines functions had them at, in the order of functions and lines. Of all threads.
    pub lines: Vec<Line>,
    /// Profiles of the same run by other means: of each event that was sampled, beside calls or beside one another.
    pub beside: Vec<Profile>,
}

impl Tree {
    /// Time with a recorded frame, nanoseconds: that of the root itself, with no frame at all, is left out.
    pub fn framed_ns(&self) -> f64 {
        let first = self.nodes.iter().skip(1).filter(|node| node.parent == 0);
        first.map(|node| node.total.value).sum()
    }
}

impl Profile {
    /// Time with a recorded frame in all threads, nanoseconds.
    pub fn framed_ns(&self) -> f64 {
        self.threads.iter().map(|thread| thread.tree.framed_ns()).sum()
    }

    /// CPU time of all threads, as samples tell it: see [`sampled`].
    pub(crate) fn sampled(&self) -> Sampled {
        sampled(&self.threads, self.left_out)
    }

    /// How much more the times of a function may be, because there was no room for paths.
    pub fn lack(&self, function: FunctionId) -> Lack {
        let threads = self.threads.iter().filter_map(|thread| thread.no_room.as_ref());
        threads.map(|no_room| no_room.lack(function)).fold(Lack::default(), |sum, lack| Lack {
            self_ns: sum.self_ns + lack.self_ns,
            total_ns: sum.total_ns + lack.total_ns,
        })
    }
}
