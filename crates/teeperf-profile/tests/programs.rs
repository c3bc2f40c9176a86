//! Random programs: run here by an interpreter that keeps its own books of who was called
//! and who ran how long, and writes words as hooks would. Replay of the words must come to
//! the same books.

mod support;

use proptest::prelude::*;
use std::collections::BTreeMap;
use support::Builder;
use support::item::{Chunk, Item};
use teeperf_profile::{Options, Recording};
use teeperf_wire::shared::ClockKind;

/// What a function does.
#[derive(Clone, Debug)]
enum Step {
    Work(u8),
    /// Calls one of the functions, unless the stack is deep.
    Call(u8),
    /// `setjmp` here, then a call, from within which the program may come back.
    Guarded(u8),
    /// `longjmp` to the innermost `setjmp` whose function is still running.
    Jump,
    /// Calls, and catches what is thrown from within.
    Try(u8),
    /// Throws to the innermost `try`.
    Throw,
    /// Recording pauses for a time, in which calls begin that nobody sees; they end seen.
    Unseen {
        pushed: u8,
        time: u8,
    },
}

/// How a function was left.
enum Left {
    Returned,
    Jumped(usize),
    Thrown(usize),
    Ended,
}

struct Machine<'a> {
    functions: &'a [Vec<Step>],
    clock: ClockKind,
    time: u64,
    told: u64,
    fuel: u32,
    items: Vec<Item>,
    stack: Vec<u32>,
    /// Depth of each `setjmp` and of each `try` under way.
    marks: Vec<usize>,
    catches: Vec<usize>,
    books: BTreeMap<Vec<u32>, (u64, u64)>,
}

const HIDDEN: u32 = u32::MAX;

impl Machine<'_> {
    fn pass(&mut self, time: u64) {
        self.time += time;
        let mut path = self.stack.clone();
        path.dedup_by(|a, b| *a == HIDDEN && *b == HIDDEN);
        self.books.entry(path).or_default().1 += time;
    }

    /// The time is written, where it moved.
    fn tell(&mut self) {
        if self.time > self.told {
            self.items.push(match self.clock {
                ClockKind::Tick => Item::Tick((self.time - self.told) as u32),
                ClockKind::Cycle => Item::Stamp(self.time),
            });
            self.told = self.time;
        }
    }

    /// An event is written, with its time.
    fn event(&mut self, item: Item) {
        match self.clock {
            ClockKind::Tick => self.tell(),
            ClockKind::Cycle => self.told = self.time,
        }
        self.items.push(item);
    }

    fn call(&mut self, function: u32) -> Left {
        if self.fuel == 0 || self.stack.len() > 30 {
            return Left::Returned;
        }
        self.fuel -= 1;
        let (site, time) = (0x1000 + function, self.time);
        self.event(Item::Call { site, time });
        self.stack.push(function);
        let mut path = self.stack.clone();
        path.dedup_by(|a, b| *a == HIDDEN && *b == HIDDEN);
        self.books.entry(path).or_default().0 += 1;
        let left = self.body(function);
        if matches!(left, Left::Returned) {
            let time = self.time;
            self.event(Item::Return { site, time });
            self.stack.pop();
        }
        left
    }

    fn body(&mut self, function: u32) -> Left {
        let depth = self.stack.len();
        for step in self.functions[function as usize % self.functions.len()].clone() {
            let left = match step {
                Step::Work(time) => {
                    self.pass(time.into());
                    Left::Returned
                }
                Step::Call(callee) => self.call(callee.into()),
                Step::Guarded(callee) => {
                    let key = self.marks.len() as u32;
                    self.items.push(Item::Mark(key));
                    self.marks.push(depth);
                    let left = self.call(callee.into());
                    let number = self.marks.len() - 1;
                    self.marks.pop();
                    match left {
                        Left::Jumped(mark) if mark == number => Left::Returned,
                        other => other,
                    }
                }
                Step::Jump => match self.marks.len().checked_sub(1) {
                    Some(mark) => {
                        // Time until the jump is that of who jumps.
                        self.tell();
                        self.stack.truncate(self.marks[mark]);
                        self.items.push(Item::Jump(mark as u32));
                        // Whoever guards from within a `try` takes that along.
                        let depth = self.marks[mark];
                        self.catches.retain(|&catch| catch <= depth);
                        Left::Jumped(mark)
                    }
                    None => Left::Returned,
                },
                Step::Try(callee) => {
                    self.catches.push(depth);
                    let number = self.catches.len() - 1;
                    let left = self.call(callee.into());
                    self.catches.truncate(number);
                    match left {
                        Left::Thrown(catch) if catch == number => Left::Returned,
                        other => other,
                    }
                }
                Step::Throw => match self.catches.last().copied() {
                    // Which of several frames of one function caught is not in the words.
                    Some(depth) if !self.stack[depth..].contains(&self.stack[depth - 1]) => {
                        self.tell();
                        self.stack.truncate(depth);
                        let site = 0x1000 + self.stack[depth - 1];
                        self.items.push(Item::Catch(site));
                        Left::Thrown(self.catches.len() - 1)
                    }
                    _ => Left::Returned,
                },
                Step::Unseen { pushed, time } => {
                    self.tell();
                    self.time += u64::from(time);
                    // The clock goes on while nothing is recorded: its word is before the gap.
                    self.tell();
                    let (events, units) = (pushed.into(), time.into());
                    self.items.push(Item::Gap {
                        reason: 1,
                        lost: events,
                        popped: 0,
                        pushed: pushed.into(),
                        units,
                    });
                    for _ in 0..pushed {
                        self.stack.push(HIDDEN);
                    }
                    self.pass(3);
                    // They return, seen.
                    for _ in 0..pushed {
                        let time = self.time;
                        self.event(Item::Return { site: 0x7777, time });
                        self.stack.pop();
                    }
                    Left::Returned
                }
            };
            if !matches!(left, Left::Returned) {
                return left;
            }
            if self.fuel == 0 {
                return Left::Ended;
            }
        }
        Left::Returned
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u8..50).prop_map(Step::Work),
        8 => (0u8..6).prop_map(Step::Call),
        1 => (0u8..6).prop_map(Step::Guarded),
        1 => Just(Step::Jump),
        1 => (0u8..6).prop_map(Step::Try),
        1 => Just(Step::Throw),
        1 => (0u8..3, 0u8..90).prop_map(|(pushed, time)| Step::Unseen { pushed, time }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn replay_comes_to_the_programs_own_books(
        functions in proptest::collection::vec(proptest::collection::vec(step(), 0..6), 6),
        clock in prop_oneof![Just(ClockKind::Tick), Just(ClockKind::Cycle)],
        cut in 1usize..200,
        jobs in 1usize..4,
        batch_chunks in 1usize..4,
        fuel in 1u32..3000,
    ) {
        let mut machine = Machine {
            functions: &functions, clock, time: 1_000_000, told: 1_000_000, fuel, items: vec![], stack: vec![],
            marks: vec![], catches: vec![], books: BTreeMap::new(),
        };
        for function in 0..6 {
            machine.marks.clear();
            machine.catches.clear();
            machine.call(function);
            if machine.fuel == 0 {
                break;
            }
            // Whoever jumped or threw out of everything is where it began.
            prop_assert!(machine.stack.is_empty());
        }
        // What passed since the last event is seen by nobody.
        let unseen = machine.time - machine.told;
        let mut path = machine.stack.clone();
        path.dedup_by(|a, b| *a == HIDDEN && *b == HIDDEN);
        let items = machine.items;
        let mut books = machine.books;
        if unseen > 0 {
            books.get_mut(&path).unwrap().1 -= unseen;
        }

        let mut builder = Builder::new();
        let mut time = 1_000_000u64;
        for (number, piece) in items.chunks(cut).enumerate() {
            let chunk = Chunk { thread: 1, sequence: number as u32 + 1, clock, time, stack: 0, items: piece.to_vec() };
            builder.chunk(chunk.header(), &chunk.words(), number % 3 > 0);
            for item in piece {
                match *item {
                    Item::Tick(units) => time += u64::from(units),
                    Item::Stamp(at) => time = at,
                    Item::Call { time: at, .. } | Item::Return { time: at, .. } if clock == ClockKind::Cycle => time = at,
                    _ => {}
                }
            }
        }
        if items.is_empty() {
            return Ok(());
        }
        let mut options = Options { jobs, batch_chunks, ..Options::default() };
        let profile = Recording::from_read(&builder.end()[..], "test").replay(&mut options).unwrap();
        prop_assert_eq!(profile.health.mended, 0);
        prop_assert_eq!(profile.health.unopened, 0);

        let mut told: BTreeMap<Vec<u32>, (u64, u64)> = BTreeMap::new();
        let mut paths: Vec<Vec<u32>> = vec![];
        for (at, node) in profile.threads[0].tree.nodes.iter().enumerate() {
            let mut path = if at == 0 { vec![] } else { paths[node.parent as usize].clone() };
            if at > 0 {
                let name = &profile.functions[node.function.0 as usize].name;
                let site = name.strip_prefix("[unknown module]+0x").map(|site| u32::from_str_radix(site, 16).unwrap());
                path.push(site.map_or(HIDDEN, |site| site - 0x1000));
            }
            told.insert(path.clone(), (node.calls, node.self_time.value as u64));
            paths.push(path);
        }
        told.retain(|_, counts| *counts != (0, 0));
        books.retain(|_, counts| *counts != (0, 0));
        prop_assert_eq!(told, books);
    }
}
