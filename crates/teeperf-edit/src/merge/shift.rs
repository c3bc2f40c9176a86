//! The words of a chunk at other times: so many clock units later or earlier.
//!
//! Events of the cycle clock have the low half of their time alone; where the upper half of the new time is another than
//! the words before tell, a piece ends, and the header of the next tells it. No word is added, none is left out.

use teeperf_wire::body::chunk::{self, Header};
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word::{self, Word, code};

/// How times become those of another recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// So many clock units later.
    pub(super) by: i64,
    /// Steps in a second of the counter that times calls beside the tick, as they are to be, and as they are: where these
    /// are others.
    pub(super) counter: Option<(u64, u64)>,
}

impl Change {
    /// Whether all stays as it is.
    pub(super) fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// The chunk as pieces, at other times. Words that cannot be read stay as they are.
pub(super) fn shifted(
    header: &Header,
    clock: ClockKind,
    words: &[u32],
    Change { by, counter }: Change,
) -> Vec<(Header, Vec<u32>)> {
    let time = header.time.saturating_add_signed(by);
    let mut shift = Shift {
        by,
        counter,
        now: header.time,
        high: high_half(header.time),
        new_high: high_half(time),
        pieces: vec![(Header { time, ..*header }, Vec::with_capacity(words.len()))],
    };
    let mut at = 0;
    while at < words.len() {
        at += match shift.item(&words[at..], clock) {
            Some(taken) => taken,
            None => {
                shift.push(&words[at..]);
                words.len() - at
            }
        };
    }
    let mut first = header.first;
    let last = shift.pieces.len() - 1;
    for (number, (piece, words)) in shift.pieces.iter_mut().enumerate() {
        piece.first = first;
        piece.count = words.len() as u32;
        first += piece.count;
        if number < last {
            piece.flags &= !(chunk::WHOLE | chunk::CUT);
        }
    }
    shift.pieces
}

struct Shift {
    by: i64,
    counter: Option<(u64, u64)>,
    /// Latest time, and the upper half of that given whole last, as they were.
    now: u64,
    high: u64,
    /// The latter as it is now.
    new_high: u64,
    pieces: Vec<(Header, Vec<u32>)>,
}

impl Shift {
    /// Takes the first item; nothing when it cannot be read. Gives its words.
    fn item(&mut self, words: &[u32], clock: ClockKind) -> Option<usize> {
        let first = words[0];
        match word::decode(first) {
            Word::Call { .. } | Word::Return { .. } => {
                if clock == ClockKind::Tick {
                    self.push(&[first]);
                    return Some(1);
                }
                let low = self.low(*words.get(1)?);
                self.push(&[first, low]);
                Some(2)
            }
            Word::Escape { code: known, arg } if !word::has_payload(known) => {
                if known == code::TICK {
                    self.now = self.now.saturating_add(arg.into());
                }
                self.push(&[first]);
                Some(1)
            }
            Word::Escape { code: known, .. } => {
                let count = word::payload_value(*words.get(1)?)? as usize;
                let payload = words.get(2..)?.get(..count)?;
                match (known, payload) {
                    (code::STAMP, [low, high, rest @ ..]) => {
                        let time = word::join(&[*low, *high])?;
                        self.now = self.now.max(time);
                        self.high = high_half(time);
                        let time = time.saturating_add_signed(self.by);
                        self.new_high = high_half(time);
                        self.push(&[&words[..2], &word::split62(time), rest].concat());
                    }
                    (code::FAR, [address @ .., low])
                        if clock == ClockKind::Cycle && address.len() == 3 =>
                    {
                        let low = self.low(*low);
                        self.push(&[&words[..2], address, &[low]].concat());
                    }
                    (code::TIMED, [low, high, rest @ ..])
                        if let Some((to, from)) = self.counter =>
                    {
                        let counter = u128::from(word::join(&[*low, *high])?);
                        let counter = counter * u128::from(to) / u128::from(from.max(1));
                        self.push(&[&words[..2], &word::split62(counter as u64), rest].concat());
                    }
                    _ => self.push(&words[..2 + count]),
                }
                Some(2 + count)
            }
            Word::End | Word::Invalid => None,
        }
    }

    /// The low half of an event's new time, behind words that tell its upper half.
    fn low(&mut self, low: u32) -> u32 {
        let before = self.now;
        self.now = self.now.max(self.high | u64::from(low));
        let time = self.now.saturating_add_signed(self.by);
        if high_half(time) != self.new_high {
            // A time that is not behind this event's, nor before the one before.
            let begins = high_half(time).max(before.saturating_add_signed(self.by));
            self.new_high = high_half(time);
            let header = Header { time: begins, ..self.pieces[self.pieces.len() - 1].0 };
            self.pieces.push((header, Vec::new()));
        }
        time as u32
    }

    fn push(&mut self, words: &[u32]) {
        if let Some((_, piece)) = self.pieces.last_mut() {
            piece.extend_from_slice(words);
        }
    }
}

fn high_half(time: u64) -> u64 {
    time & !u64::from(u32::MAX)
}
