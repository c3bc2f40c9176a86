//! Words that are no ordinary call or return: escapes, returns that do not match the top,
//! words that no writer makes. What the open frames of the segment can settle is settled
//! here; the rest ends the segment and is settled when summaries are put together.
//!
//! The rules, for one stack seen whole (what replay does is the same, in pieces):
//!
//! * A return matches the nearest frame of its function, or a frame that is `[unknown]`.
//!   Frames above that one are closed too, and counted as mended. A return that matches
//!   none changes nothing.
//! * A jump closes frames down to its mark's depth, never opens any.
//! * A catch closes the frames above the nearest one of its function; if there is none,
//!   it changes nothing.

use teeperf_wire::shared::ClockKind;
use teeperf_wire::word::{ESCAPE_BASE, call};

use super::VFORK_MARK;
use super::hits;
use super::points::Point;
use super::summarise::{State, event_time, high_half};
use super::summary::{Mark, Op};
use super::timed::Watch;
use super::tree::pseudo;
use crate::escape::{self, Escape, Module};
use crate::names::Window;

impl State {
    /// Takes the word `words[at]`, and those that belong to it. Gives the index behind them.
    #[cold]
    pub(super) fn settle(
        &mut self,
        clock: ClockKind,
        words: &[u32],
        at: usize,
        offset: u64,
    ) -> usize {
        let word = words[at];
        if word >= ESCAPE_BASE {
            return match escape::read(words, at, clock) {
                Some((escape, next)) => {
                    self.other_words += (next - at) as u64;
                    let counter = match escape {
                        Escape::Timed(counter) => Some(counter),
                        Escape::Far { .. } => self.counter,
                        _ => None,
                    };
                    self.counter = counter;
                    self.escape(escape, at, next);
                    match words.get(next) {
                        // What it times is the next item.
                        Some(&word) if counter.is_some() && (2..ESCAPE_BASE).contains(&word) => {
                            self.settle(clock, words, next, offset)
                        }
                        _ => next,
                    }
                }
                None => self.give_up(words, at, offset, "an escape is cut short"),
            };
        }
        if word < 2 {
            return self.give_up(words, at, offset, "a word that no writer makes");
        }
        match clock {
            ClockKind::Tick => {
                self.event(word, at, at + 1);
                at + 1
            }
            ClockKind::Cycle => match words.get(at + 1) {
                Some(&low) => {
                    self.low_time_is(low, at);
                    self.event(word, at, at + 2);
                    at + 2
                }
                None => self.give_up(words, at, offset, "the last event has no time"),
            },
        }
    }

    /// The rest of the chunk cannot be read.
    fn give_up(&mut self, words: &[u32], at: usize, offset: u64, why: &str) -> usize {
        self.other_words += (words.len() - at) as u64;
        self.summary.lost += (words.len() - at) as u64;
        self.summary.warnings.add(|| {
            format!(
                "chunk at offset {offset}: word {at}: {why}; {} words are not used",
                words.len() - at
            )
        });
        words.len()
    }

    /// Time of an event at word `at`, of which only the low half is known.
    fn low_time_is(&mut self, low: u32, at: usize) {
        self.time_is(event_time(self.now, self.high, low), at, at);
    }

    /// A call, or a return.
    fn event(&mut self, word: u32, at: usize, next: usize) {
        let counter = self.counter.take();
        if word & 1 == 0 {
            self.at = self.summary.tree.child(self.at, word);
            let node = &mut self.summary.tree.nodes_mut()[self.at as usize];
            node.calls += 1;
            if let Some(timed) = &mut self.summary.timed {
                timed.enter(self.now);
                if let Some(counter) = counter {
                    timed.counted.enter(node.depth, counter);
                }
            }
        } else if self.at == self.root {
            self.summary.owed.push(word);
            if let Some(timed) = &mut self.summary.timed {
                timed.owe(self.now);
                timed.counted.owe(self.summary.owed.len() - 1, counter);
            }
            self.root = self.summary.tree.add_root();
            self.at = self.root;
        } else {
            match self.frame_of(word & !1) {
                Some((frame, above)) => {
                    if above > 0 {
                        self.mend_above(frame);
                    }
                    if let Some(timed) = &mut self.summary.timed {
                        let depth = self.summary.tree.nodes()[frame as usize].depth;
                        timed.fall_to(depth);
                        timed.counted.leave(depth, word & !1, counter);
                        timed.leave(frame, word & !1, self.now);
                    }
                    self.at = self.summary.tree.nodes()[frame as usize].parent;
                }
                None => {
                    self.counter = counter;
                    self.end_segment(Op::Return(word), at, next);
                    self.counter = None;
                }
            }
            return;
        }
        self.leading = false;
    }

    /// The returns of the frames above this one were not seen.
    fn mend_above(&mut self, frame: u32) {
        let nodes = self.summary.tree.nodes();
        let mut at = self.at;
        while at != frame {
            let node = &nodes[at as usize];
            *self.summary.mended.entry(node.word).or_default() += 1;
            at = node.parent;
        }
    }

    /// Nearest open frame of the segment with this call word, and how many are above it.
    fn frame_of(&self, word: u32) -> Option<(u32, u64)> {
        let nodes = self.summary.tree.nodes();
        let (mut at, mut above) = (self.at, 0);
        while at != self.root {
            let node = &nodes[at as usize];
            if node.word == word {
                return Some((at, above));
            }
            at = node.parent;
            above += 1;
        }
        None
    }

    fn escape(&mut self, escape: Escape<'_>, at: usize, next: usize) {
        match escape {
            Escape::Tick(units) => {
                return self.time_is(self.now.saturating_add(units.into()), at, next);
            }
            Escape::Stamp(time) => {
                self.high = high_half(time);
                return self.time_is(time, at, next);
            }
            Escape::Jump(key) => return self.jump(key, at, next),
            Escape::VforkEnd => return self.jump(VFORK_MARK, at, next),
            Escape::Catch(site) => return self.catch(call(site), at, next),
            Escape::Gap(gap) => {
                self.summary.sampled.leave_out(gap.units);
                return self.end_segment(Op::Gap(gap), at, next);
            }
            Escape::Sample(sample) => {
                if sample.is_clocked {
                    self.summary.sampled.is_clocked();
                    return;
                }
                let ns_per_unit = self.ns_per_unit;
                self.summary.looked_at_cpu(self.now, sample.cpu_ns);
                self.summary.sampled.take(self.at, sample, ns_per_unit);
            }
            Escape::OffCpu { units, waits } => {
                let waits = waits.unwrap_or_else(|| hits::waits(units, self.ns_per_unit));
                self.summary.sampled.was_off(self.at, units, waits);
            }
            Escape::Filter(number) => return self.end_segment(Op::Filter(number), at, next),
            Escape::Switch { left, entered } => {
                self.end_segment(Op::Switch { left, entered }, at, next);
                self.stack = Some(entered);
                return;
            }
            Escape::Stack(id) if self.stack == Some(id) => {}
            Escape::Stack(id) => {
                self.end_segment(Op::Resume(id), at, next);
                self.stack = Some(id);
                return;
            }
            Escape::StackNew(id) => return self.end_segment(Op::StackNew(id), at, next),
            Escape::Far { is_return, address, time } => {
                return self.far(is_return, address, time, at, next);
            }
            Escape::Hole => self.summary.lost += 1,
            Escape::Mark(key) => self.mark(key),
            Escape::VforkBegin => self.mark(VFORK_MARK),
            Escape::Module(module) => self.module(module),
            Escape::Name(name) => self.summary.name = Some(name.to_string()),
            Escape::Wait { site, units } => {
                self.summary.waits.entry(call(site)).or_default().add(units);
            }
            Escape::Note(text) => {
                // A note tells no time of its own, and points before it may tell more than the clock has.
                let points = &mut self.summary.points;
                let time = points.last().map_or(0, Point::time).max(self.now);
                points.push(Point::note(time, text.to_string()));
            }
            Escape::Point { kind, site, time, value } => {
                self.summary.points.extend(Point::named(call(site), kind, time, value));
            }
            Escape::Pad | Escape::Timed(_) => {}
            Escape::Unknown(code) | Escape::Malformed(code) => {
                self.summary.warnings.add(|| format!("an escape of code {code} was skipped"));
            }
        }
        // None of these is an event: what was quiet stays quiet.
        if self.quiet_to == at {
            self.quiet_to = next;
        }
    }

    fn mark(&mut self, key: u32) {
        let mark = Mark { key, node: self.at, root: self.root };
        let marks = &mut self.summary.marks;
        let known = self.marks.get(&key).copied().filter(|&index| index >= self.segment_marks);
        match known {
            Some(index) => marks[index] = mark,
            None => {
                self.marks.insert(key, marks.len());
                marks.push(mark);
            }
        }
    }

    fn jump(&mut self, key: u32, at: usize, next: usize) {
        let known = self.marks.get(&key).copied().filter(|&index| index >= self.segment_marks);
        let mark = known.map(|index| self.summary.marks[index]);
        // Where owed returns came since, how deep the mark was is known below only.
        let Some(mark) = mark.filter(|mark| mark.root == self.root) else {
            self.end_segment(Op::Jump(key), at, next);
            self.stack = None;
            return;
        };
        let nodes = self.summary.tree.nodes();
        let depth = nodes[mark.node as usize].depth;
        while nodes[self.at as usize].depth > depth {
            self.at = nodes[self.at as usize].parent;
        }
        if let Some(timed) = &mut self.summary.timed {
            timed.fall_to(depth.min(nodes[self.at as usize].depth));
        }
        self.leading = false;
    }

    fn catch(&mut self, word: u32, at: usize, next: usize) {
        match self.frame_of(word) {
            Some((frame, _)) => {
                self.at = frame;
                if let Some(timed) = &mut self.summary.timed {
                    timed.fall_to(self.summary.tree.nodes()[frame as usize].depth);
                }
                self.leading = false;
            }
            None => self.end_segment(Op::Catch(word), at, next),
        }
    }

    fn far(&mut self, is_return: bool, address: u64, time: Option<u32>, at: usize, next: usize) {
        if let Some(low) = time {
            self.low_time_is(low, at);
        }
        let addresses = &mut self.summary.far;
        let index = *self.far.entry(address).or_insert_with(|| {
            addresses.push(address);
            addresses.len() as u32 - 1
        });
        self.summary.events += 1;
        self.event(pseudo::FAR + 2 * index + u32::from(is_return), at, next);
    }

    fn module(&mut self, module: Module<'_>) {
        self.summary.windows.push(Window::of(&module));
    }
}
