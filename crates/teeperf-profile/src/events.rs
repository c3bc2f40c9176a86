//! The events of a chunk one by one, with their times: for `dump`, and for whoever wants to
//! look at words rather than at what came of them.

use teeperf_wire::body::chunk::Header;
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word::{self, Word};

use crate::chunks::{ChunkError, Decoder};
use crate::escape::{self, Escape};
use crate::replay;

/// A word with what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A function was entered.
    Call {
        /// Its site.
        site: u32,
    },
    /// A function was left.
    Return {
        /// Its site.
        site: u32,
    },
    /// Everything else.
    Escape(Escape<'a>),
    /// Words that cannot be read, to the chunk's end: how many.
    Unreadable(usize),
}

/// An item, where it stands and when it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Index of its first word in the chunk.
    pub word: u32,
    /// Clock units.
    pub time: u64,
    /// What it is.
    pub item: Item<'a>,
}

/// Events of a chunk.
#[derive(Clone, Debug)]
pub struct Events<'a> {
    words: &'a [u32],
    clock: ClockKind,
    first: u32,
    at: usize,
    time: u64,
    /// Upper half of the time that was last given whole.
    high: u64,
}

/// Decodes a chunk's data, which `decoder` keeps, and gives its events.
pub fn events<'a>(
    decoder: &'a mut Decoder,
    header: &Header,
    data: &[u8],
) -> Result<Events<'a>, ChunkError> {
    let (clock, words) = decoder.words(header, data)?;
    Ok(Events::of(header, clock, words))
}

impl<'a> Events<'a> {
    /// Of words that were decoded before.
    pub fn of(header: &Header, clock: ClockKind, words: &'a [u32]) -> Self {
        let (first, time) = (header.first, header.time);
        Self { words, clock, first, at: 0, time, high: replay::high_half(time) }
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        let start = self.at;
        let (item, next) = match word::decode(*self.words.get(start)?) {
            Word::Call { site } => (Some(Item::Call { site }), start + 1),
            Word::Return { site } => (Some(Item::Return { site }), start + 1),
            Word::Escape { .. } => match escape::read(self.words, start, self.clock) {
                Some((escape, next)) => (Some(Item::Escape(escape)), next),
                None => (None, start),
            },
            Word::End | Word::Invalid => (None, start),
        };
        let timed = matches!(item, Some(Item::Call { .. } | Item::Return { .. }))
            && self.clock == ClockKind::Cycle;
        let low = if timed { self.words.get(next) } else { None };
        let item = item.filter(|_| !timed || low.is_some());
        self.at = match item {
            Some(_) => next + usize::from(timed),
            None => self.words.len(),
        };
        match item {
            Some(Item::Escape(Escape::Tick(units))) => {
                self.time = self.time.saturating_add(units.into())
            }
            Some(Item::Escape(Escape::Stamp(time))) => {
                self.time = self.time.max(time);
                self.high = replay::high_half(time);
            }
            Some(Item::Escape(Escape::Far { time: Some(low), .. })) => self.step(low),
            _ => {}
        }
        if let Some(&low) = low {
            self.step(low);
        }
        Some(Event {
            word: self.first + start as u32,
            time: self.time,
            item: item.unwrap_or(Item::Unreadable(self.words.len() - start)),
        })
    }
}

impl Events<'_> {
    /// Time behind the events that were given.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Number of words, of those that these are of, that were given.
    pub fn words(&self) -> usize {
        self.at
    }

    /// Whether a piece may begin here: its header's time tells the upper half of times as they are told here.
    pub fn may_begin_here(&self) -> bool {
        self.high == replay::high_half(self.time)
    }

    fn step(&mut self, low: u32) {
        self.time = replay::event_time(self.time, self.high, low);
    }
}
