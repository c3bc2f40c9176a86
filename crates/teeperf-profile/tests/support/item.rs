//! What a thread does, item by item, and the words for it.

use teeperf_wire::body::chunk;
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word::{self, code};

/// One item of a chunk. `time` is that of the event, used by the cycle clock alone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    Call {
        site: u32,
        time: u64,
    },
    Return {
        site: u32,
        time: u64,
    },
    FarCall {
        address: u64,
        time: u64,
    },
    FarReturn {
        address: u64,
        time: u64,
    },
    Tick(u32),
    Stamp(u64),
    Hole,
    Pad,
    Mark(u32),
    Jump(u32),
    VforkBegin,
    VforkEnd,
    Catch(u32),
    Gap {
        reason: u32,
        lost: u64,
        popped: u32,
        pushed: u32,
        units: u64,
    },
    Switch {
        left: u64,
        entered: u64,
    },
    StackNew(u64),
    Stack(u64),
    Filter(u32),
    /// What the counter is at the event that is the next item.
    Timed(u64),
    Name(&'static str),
    Note(&'static str),
    Wait {
        site: u32,
        units: u64,
    },
    /// An escape of a code that nobody has given a meaning.
    Strange {
        code: u32,
        payload: u32,
    },
    /// A word that no writer makes: nothing behind it in the chunk is used.
    Invalid,
}

impl Item {
    /// Its words.
    pub(crate) fn words(&self, clock: ClockKind) -> Vec<u32> {
        let event = |word: u32, time: u64| match clock {
            ClockKind::Tick => vec![word],
            ClockKind::Cycle => vec![word, time as u32],
        };
        let escape = |code: u32, arg: u32, payload: &[u32]| {
            let mut words = vec![word::escape(code, arg)];
            if word::has_payload(code) {
                words.push(word::payload(payload.len() as u32));
                words.extend_from_slice(payload);
            }
            words
        };
        let far = |kind: u32, address: u64, time: u64| {
            let mut payload = word::split64(address).to_vec();
            if clock == ClockKind::Cycle {
                payload.push(time as u32);
            }
            escape(code::FAR, kind, &payload)
        };
        let text = |code: u32, text: &str| {
            let payload: Vec<u32> = text.as_bytes().chunks(3).map(word::pack_bytes).collect();
            escape(code, 0, &payload)
        };
        match *self {
            Self::Call { site, time } => event(word::call(site), time),
            Self::Return { site, time } => event(word::ret(site), time),
            Self::FarCall { address, time } => far(0, address, time),
            Self::FarReturn { address, time } => far(1, address, time),
            Self::Tick(units) => escape(code::TICK, units, &[]),
            Self::Stamp(time) => escape(code::STAMP, 0, &word::split62(time)),
            Self::Hole => escape(code::HOLE, 0, &[]),
            Self::Pad => escape(code::PAD, 0, &[]),
            Self::Mark(key) => escape(code::MARK, key, &[]),
            Self::Jump(key) => escape(code::JUMP, key, &[]),
            Self::VforkBegin => escape(code::VFORK_BEGIN, 0, &[]),
            Self::VforkEnd => escape(code::VFORK_END, 0, &[]),
            Self::Catch(site) => escape(code::CATCH, 0, &[word::payload(site)]),
            Self::Gap { reason, lost, popped, pushed, units } => {
                let ([a, b], [c, d]) = (word::split62(lost), word::split62(units));
                escape(
                    code::GAP,
                    reason,
                    &[a, b, word::payload(popped), word::payload(pushed), c, d],
                )
            }
            Self::Switch { left, entered } => {
                escape(code::SWITCH, 0, &[word::split62(left), word::split62(entered)].concat())
            }
            Self::Filter(number) => escape(code::FILTER, number, &[]),
            Self::Timed(counter) => escape(code::TIMED, 0, &word::split62(counter)),
            Self::Stack(id) => escape(code::STACK, 0, &word::split62(id)),
            Self::StackNew(id) => escape(code::STACK_NEW, 0, &word::split62(id)),
            Self::Name(name) => text(code::NAME, name),
            Self::Note(note) => text(code::NOTE, note),
            Self::Wait { site, units } => {
                let [low, high] = word::split62(units);
                escape(code::WAIT, 0, &[word::payload(site), low, high])
            }
            Self::Strange { code, payload } => {
                escape(code, 7, &vec![word::payload(1); payload as usize])
            }
            Self::Invalid => vec![1],
        }
    }
}

/// A chunk as items.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    pub(crate) thread: u32,
    pub(crate) sequence: u32,
    pub(crate) clock: ClockKind,
    pub(crate) time: u64,
    pub(crate) stack: u64,
    pub(crate) items: Vec<Item>,
}

impl Chunk {
    pub(crate) fn header(&self) -> chunk::Header {
        chunk::Header {
            process: 1,
            thread: self.thread,
            tid: 1000 + self.thread,
            sequence: self.sequence,
            time: self.time,
            cpu_ns: u64::MAX,
            stack: self.stack,
            clock: self.clock as u8,
            flags: chunk::WHOLE,
            ..chunk::Header::default()
        }
    }

    pub(crate) fn words(&self) -> Vec<u32> {
        self.items.iter().flat_map(|item| item.words(self.clock)).collect()
    }
}
