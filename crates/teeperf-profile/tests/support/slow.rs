//! What replay must come to, worked out in the slowest and plainest way: one item after the
//! other, a list of names as the stack, a map from whole paths to counts. Knows nothing of
//! how the crate does it, and takes items, not words.

use super::item::{Chunk, Item};
use std::collections::BTreeMap;
use teeperf_wire::shared::ClockKind;
use teeperf_wire::shared::chunk::STACK_NOT_TOLD;
use teeperf_wire::word::{ABANDONED, gap};

/// A frame: a site, an address of far code, or this.
const UNKNOWN: u64 = u64::MAX;
const VFORK: u32 = u32::MAX;

/// Calls and self time by path.
pub(crate) type Paths = BTreeMap<Vec<String>, (u64, u64)>;

/// Thread and function to how long calls took, in their order.
pub(crate) type Lengths = BTreeMap<(u32, String), Vec<u64>>;

/// Of each frame, when it began, how much had been left out by then, and the counter, where that times it.
type Begins = Vec<(u64, u64, Option<u64>)>;

/// What comes out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) threads: BTreeMap<u32, Paths>,
    pub(crate) events: u64,
    pub(crate) lost: u64,
    pub(crate) mended: u64,
    /// Those frames by function.
    pub(crate) mended_in: BTreeMap<String, u64>,
    pub(crate) unopened: u64,
    pub(crate) open: u64,
    pub(crate) waited: BTreeMap<u32, u64>,
    /// Times and units by reason.
    pub(crate) gaps: BTreeMap<u32, (u64, u64)>,
}

impl Outcome {
    fn mend(&mut self, frame: u64) {
        self.mended += 1;
        *self.mended_in.entry(name(frame)).or_default() += 1;
    }
}

#[derive(Default)]
struct Thread {
    stack: Vec<u64>,
    begins: Begins,
    left_out: u64,
    lengths: BTreeMap<u64, Vec<u64>>,
    /// Those by the counter, in its steps, which are as long as clock units.
    counted: BTreeMap<u64, Vec<u64>>,
    /// What the counter is at the next item.
    counter: Option<u64>,
    stack_id: u64,
    resting: BTreeMap<u64, (Vec<u64>, Begins)>,
    marks: BTreeMap<u32, (u64, usize)>,
    now: u64,
    /// The time that was last given whole.
    whole: u64,
    recent: u64,
    debt: u64,
    filter: Option<u32>,
    /// Frames of before the filter.
    floor: usize,
    paths: BTreeMap<Vec<u64>, (u64, u64)>,
}

fn name(frame: u64) -> String {
    if frame == UNKNOWN { "[unknown]".into() } else { format!("[unknown module]+{frame:#x}") }
}

/// Whether a function passes a filter: number 0 has all, number *n* leaves out every site that it divides, but for
/// far code.
pub(crate) fn passes(number: u32, frame: u64) -> bool {
    number == 0 || frame >= 1 << 31 || !frame.is_multiple_of(u64::from(number + 1))
}

/// The outcome of chunks in the order of each thread.
pub(crate) fn outcome(chunks: &[Chunk]) -> Outcome {
    run(chunks).0
}

/// The length of each call that returned by itself: time between the two, without what gaps left out.
#[allow(dead_code, reason = "not each test asks")]
pub(crate) fn lengths(chunks: &[Chunk]) -> Lengths {
    run(chunks).1
}

/// Likewise by the counter, of calls that it times.
#[allow(dead_code, reason = "not each test asks")]
pub(crate) fn counted(chunks: &[Chunk]) -> Lengths {
    run(chunks).2
}

fn run(chunks: &[Chunk]) -> (Outcome, Lengths, Lengths) {
    let (mut lengths, mut counted) = (Lengths::new(), Lengths::new());
    let mut out = Outcome::default();
    let mut threads: BTreeMap<u32, Thread> = BTreeMap::new();
    for chunk in chunks {
        let thread = threads.entry(chunk.thread).or_insert_with(|| Thread {
            now: chunk.time,
            paths: BTreeMap::from([(vec![], (0, 0))]),
            ..Thread::default()
        });
        thread.begins_at(chunk.time);
        if chunk.stack != STACK_NOT_TOLD {
            thread.resume(chunk.stack);
        }
        for (at, item) in chunk.items.iter().enumerate() {
            if *item == Item::Invalid {
                let rest =
                    chunk.items[at..].iter().map(|item| item.words(chunk.clock).len() as u64);
                out.lost += rest.sum::<u64>();
                // There may have been events among them.
                thread.settle();
                break;
            }
            thread.item(item, chunk, &mut out);
            thread.close_left_out();
            thread.begins.truncate(thread.stack.len());
            assert_eq!(thread.begins.len(), thread.stack.len());
        }
    }
    for (number, thread) in threads {
        out.open += thread.stack.len() as u64;
        out.open += thread.resting.values().map(|stack| stack.0.len() as u64).sum::<u64>();
        lengths.extend(thread.lengths.into_iter().map(|(f, all)| ((number, name(f)), all)));
        counted.extend(thread.counted.into_iter().map(|(f, all)| ((number, name(f)), all)));
        let named = |(path, counts): (Vec<u64>, _)| (path.into_iter().map(name).collect(), counts);
        out.threads.insert(number, thread.paths.into_iter().map(named).collect());
    }
    (out, lengths, counted)
}

impl Thread {
    /// The open frames; frames that are not known stand as one where they follow each other.
    fn path(&self) -> Vec<u64> {
        let mut path = self.stack.clone();
        path.dedup_by(|a, b| *a == UNKNOWN && *b == UNKNOWN);
        path
    }

    /// The time in the header of a piece, which is the present one in any case.
    fn begins_at(&mut self, time: u64) {
        self.time_is(time);
        self.now = time;
        self.whole = time;
        self.counter = None;
    }

    fn time_is(&mut self, time: u64) {
        let passed = time.saturating_sub(self.now);
        self.now += passed;
        let left_out = passed.min(self.debt);
        self.debt -= left_out;
        self.left_out += left_out;
        self.recent += passed - left_out;
        self.paths.entry(self.path()).or_default().1 += passed - left_out;
    }

    fn low_time_is(&mut self, time: u64, clock: ClockKind) {
        if clock == ClockKind::Cycle {
            // Of the whole time the words have the low half.
            self.time_is((self.whole >> 32 << 32) + time % (1 << 32));
        }
    }

    /// What passed up to here belongs to whoever was on top.
    fn settle(&mut self) {
        self.recent = 0;
        self.debt = 0;
    }

    fn item(&mut self, item: &Item, chunk: &Chunk, out: &mut Outcome) {
        let clock = chunk.clock;
        let is_far = matches!(item, Item::FarCall { .. } | Item::FarReturn { .. });
        if !is_far && !matches!(item, Item::Call { .. } | Item::Return { .. }) {
            self.counter = None;
        }
        match *item {
            Item::Call { site, time } => self.call(site.into(), time, clock, out),
            Item::Return { site, time } => self.close(site.into(), time, clock, out),
            Item::FarCall { address, time } => self.call(address, time, clock, out),
            Item::FarReturn { address, time } => self.close(address, time, clock, out),
            Item::Tick(units) => self.time_is(self.now + u64::from(units)),
            Item::Stamp(time) => {
                self.time_is(time);
                self.whole = time;
            }
            Item::Hole => out.lost += 1,
            Item::Mark(key) => drop(self.marks.insert(key, (self.stack_id, self.stack.len()))),
            Item::VforkBegin => drop(self.marks.insert(VFORK, (self.stack_id, self.stack.len()))),
            Item::Jump(key) => self.jump(key),
            Item::VforkEnd => self.jump(VFORK),
            Item::Catch(site) => {
                let is_left_out = !passes(self.filter.unwrap_or(0), site.into());
                let lowest = if is_left_out { self.floor } else { 0 };
                let found = self.stack.iter().rposition(|frame| *frame == u64::from(site));
                if let Some(at) = found.filter(|&at| at >= lowest) {
                    self.stack.truncate(at + 1);
                }
                self.settle();
            }
            Item::Gap { reason, lost, popped, pushed, units } => {
                if [gap::DROPPED, gap::NESTED, gap::WAITED, gap::STALLED].contains(&reason) {
                    out.lost += lost;
                }
                let entry = out.gaps.entry(reason).or_default();
                entry.0 += 1;
                entry.1 += units;
                if reason == gap::WAITED || reason == gap::STALLED {
                    *out.waited.entry(chunk.thread).or_default() += units;
                }
                let before = units.min(self.recent);
                self.paths.entry(self.path()).or_default().1 -= before;
                self.recent -= before;
                self.left_out += before;
                self.debt += units - before;
                for _ in 0..popped {
                    if self.stack.pop().is_none() && self.filter.is_none() {
                        out.unopened += 1;
                    }
                    self.close_left_out();
                }
                self.begins.truncate(self.stack.len());
                for _ in 0..pushed {
                    self.begins.push((0, 0, None));
                    self.stack.push(UNKNOWN);
                }
                if popped + pushed > 0 {
                    self.recent = 0;
                }
            }
            Item::Switch { left, entered } => {
                self.switch(left, entered);
                self.settle();
            }
            Item::Filter(number) => {
                self.floor = self.stack.len();
                let before = self.stack.len();
                for number in self.filter.unwrap_or(0) + 1..=number.max(self.filter.unwrap_or(0)) {
                    self.filter = Some(number);
                    self.close_left_out();
                }
                self.filter = Some(number);
                self.close_left_out();
                if self.stack.len() < before {
                    self.recent = 0;
                }
            }
            Item::Timed(counter) => self.counter = Some(counter),
            Item::Stack(id) => self.resume(id),
            Item::StackNew(id) => {
                if id == self.stack_id {
                    self.stack.clear();
                } else {
                    self.resting.remove(&id);
                }
                self.settle();
            }
            Item::Pad
            | Item::Name(_)
            | Item::Note(_)
            | Item::Wait { .. }
            | Item::Strange { .. }
            | Item::Invalid => {}
        }
    }

    fn call(&mut self, frame: u64, time: u64, clock: ClockKind, out: &mut Outcome) {
        self.low_time_is(time, clock);
        out.events += 1;
        self.stack.push(frame);
        self.begins.push((self.now, self.left_out, self.counter.take()));
        self.paths.entry(self.path()).or_default().0 += 1;
        self.settle();
    }

    fn close(&mut self, frame: u64, time: u64, clock: ClockKind, out: &mut Outcome) {
        self.low_time_is(time, clock);
        out.events += 1;
        let counter = self.counter.take();
        if self.filter.is_some() && self.stack.len() <= self.floor {
            if self.stack.last().is_some_and(|&top| top == frame || top == UNKNOWN) {
                self.stack.pop();
                self.close_left_out();
            }
            return self.settle();
        }
        match self.stack.iter().rposition(|&open| open == frame || open == UNKNOWN) {
            Some(at) => {
                for &above in &self.stack[at + 1..] {
                    out.mend(above);
                }
                if self.stack[at] == frame {
                    let (begin, left_out, counted) = self.begins[at];
                    let left_out = (self.left_out - left_out) as i64;
                    let length = self.now as i64 - begin as i64 - left_out;
                    self.lengths.entry(frame).or_default().push(length.max(0) as u64);
                    if let Some((begin, end)) = counted.zip(counter) {
                        let steps = end.saturating_sub(begin) as i64 - left_out;
                        if left_out == 0 || steps > 0 {
                            self.counted.entry(frame).or_default().push(steps as u64);
                        }
                    }
                }
                self.stack.truncate(at);
            }
            None if self.stack.is_empty() => out.unopened += 1,
            None => out.mend(frame),
        }
        self.settle();
    }

    /// Of calls before the filter, what it leaves out is not on top.
    fn close_left_out(&mut self) {
        let Some(number) = self.filter else { return };
        self.floor = self.floor.min(self.stack.len());
        while self.stack.len() == self.floor
            && self.stack.last().is_some_and(|&frame| !passes(number, frame))
        {
            self.stack.pop();
            self.floor -= 1;
        }
        self.begins.truncate(self.stack.len());
    }

    fn jump(&mut self, key: u32) {
        if let Some(&(stack, depth)) = self.marks.get(&key) {
            if stack != self.stack_id && self.resting.contains_key(&stack) {
                let left = self.stack_id;
                self.switch(left, stack);
            }
            self.stack.truncate(depth);
        }
        self.settle();
    }

    fn resume(&mut self, stack: u64) {
        if stack != self.stack_id {
            let left = self.stack_id;
            self.switch(left, stack);
            self.settle();
        }
    }

    fn switch(&mut self, left: u64, entered: u64) {
        self.begins.truncate(self.stack.len());
        let stack = (std::mem::take(&mut self.stack), std::mem::take(&mut self.begins));
        if left != ABANDONED {
            self.resting.insert(left, stack);
        }
        (self.stack, self.begins) = self.resting.remove(&entered).unwrap_or_default();
        self.stack_id = entered;
        self.floor = self.stack.len();
        self.close_left_out();
        self.begins.truncate(self.stack.len());
    }
}
