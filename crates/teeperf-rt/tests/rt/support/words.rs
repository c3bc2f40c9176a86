//! What was drained, taken apart: items of each thread, names by the program's own symbols.

use super::host::Chunk;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word::{self, Word, code};

/// One thing a thread wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Call(String),
    Return(String),
    /// Code, argument, payload values.
    Escape(u32, u32, Vec<u32>),
    /// A place that was reserved and not written.
    Hole,
}

/// A gap as written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) reason: u32,
    pub(crate) lost: u64,
    pub(crate) popped: u32,
    pub(crate) pushed: u32,
    pub(crate) units: u64,
}

/// All threads: (process, serial) to items.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    pub(crate) threads: BTreeMap<(usize, u32), Vec<Item>>,
    /// Times of each thread's events, `cycle` clock.
    pub(crate) times: BTreeMap<(usize, u32), Vec<u64>>,
    pub(crate) paths: Vec<PathBuf>,
}

/// A module's window in one process.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) address: u64,
    pub(crate) bias: u64,
    pub(crate) path: PathBuf,
    pub(crate) build_id: Vec<u8>,
}

impl Recording {
    pub(crate) fn new(chunks: &[Chunk]) -> Self {
        let mut raw: BTreeMap<(usize, u32), Vec<(Raw, u64)>> = BTreeMap::new();
        let mut sequences: HashMap<(usize, u32), u32> = HashMap::new();
        let mut behind: HashMap<(usize, u32), u64> = HashMap::new();
        for chunk in chunks {
            let thread = (chunk.process, chunk.header.serial);
            let sequence = sequences.entry(thread).or_default();
            *sequence += 1;
            assert_eq!(chunk.header.sequence, *sequence, "a chunk of {thread:?} is missing");
            let (items, end) = take_apart(chunk);
            let behind = behind.entry(thread).or_default();
            assert!(*behind <= chunk.header.time, "the time of {thread:?} ran ahead of the clock");
            *behind = end;
            raw.entry(thread).or_default().extend(items);
        }
        let mut windows: HashMap<usize, Vec<Window>> = HashMap::new();
        for (&(process, _), items) in &raw {
            let windows = windows.entry(process).or_default();
            for (item, _) in items {
                match item {
                    Raw::Escape(code::MODULE, _, payload) if payload[0] == 1 => {
                        windows.push(window(payload));
                    }
                    _ => {}
                }
            }
        }
        let mut symbols = Symbols::default();
        let mut recording = Self::default();
        for (thread, items) in raw {
            let mut names = Names {
                symbols: &mut symbols,
                windows: &windows[&thread.0],
                known: HashMap::new(),
            };
            let items = items.into_iter().map(|(item, time)| {
                if matches!(item, Raw::Call(_) | Raw::Return(_)) {
                    recording.times.entry(thread).or_default().push(time);
                }
                match item {
                    Raw::Call(site) => Item::Call(names.name(site)),
                    Raw::Return(site) => Item::Return(names.name(site)),
                    Raw::Escape(code, arg, payload) => Item::Escape(code, arg, payload),
                    Raw::Hole => Item::Hole,
                }
            });
            let items = items.collect();
            recording.threads.insert(thread, items);
        }
        let all = windows.into_values().flatten();
        recording.paths = all.map(|window| window.path).collect();
        recording.paths.sort();
        recording.paths.dedup();
        recording
    }

    pub(crate) fn items(&self) -> impl Iterator<Item = &Item> {
        self.threads.values().flatten()
    }

    pub(crate) fn calls(&self, name: &str) -> u64 {
        self.items().filter(|item| matches!(item, Item::Call(n) if n == name)).count() as u64
    }

    pub(crate) fn returns(&self, name: &str) -> u64 {
        self.items().filter(|item| matches!(item, Item::Return(n) if n == name)).count() as u64
    }

    pub(crate) fn events(&self) -> u64 {
        let is_event = |item: &&Item| matches!(item, Item::Call(_) | Item::Return(_));
        self.items().filter(is_event).count() as u64
    }

    pub(crate) fn gaps(&self) -> Vec<Gap> {
        self.items().filter_map(gap).collect()
    }

    pub(crate) fn lost(&self) -> u64 {
        self.gaps().iter().map(|gap| gap.lost).sum()
    }

    pub(crate) fn holes(&self) -> usize {
        self.items().filter(|item| **item == Item::Hole).count()
    }

    /// Calls and returns of one thread: `+name`, `-name`.
    pub(crate) fn events_of(&self, thread: (usize, u32)) -> Vec<String> {
        let items = self.threads.get(&thread).into_iter().flatten();
        items
            .filter_map(|item| match item {
                Item::Call(name) => Some(format!("+{name}")),
                Item::Return(name) => Some(format!("-{name}")),
                _ => None,
            })
            .collect()
    }

    /// Every return belongs to the innermost open call, in every thread, with what gaps say of the stack;
    /// says how many calls are left open.
    pub(crate) fn expect_nested(&self) -> usize {
        let mut open = 0;
        for (thread, items) in &self.threads {
            let mut stack = Vec::new();
            for item in items {
                match item {
                    Item::Call(name) => stack.push(Some(name)),
                    Item::Return(name) => {
                        let top = stack.pop().unwrap_or_else(|| panic!("{name} in {thread:?}"));
                        assert_eq!(top.unwrap_or(name), name, "in thread {thread:?}");
                    }
                    Item::Escape(..) => {
                        let gap = gap(item).unwrap_or_default();
                        stack.truncate(stack.len().saturating_sub(gap.popped as usize));
                        stack.extend((0..gap.pushed).map(|_| None));
                    }
                    Item::Hole => {}
                }
            }
            open += stack.len();
        }
        open
    }
}

pub(crate) fn gap(item: &Item) -> Option<Gap> {
    let Item::Escape(code::GAP, reason, payload) = item else { return None };
    let join = |at: usize| u64::from(payload[at]) | u64::from(payload[at + 1]) << 31;
    Some(Gap {
        reason: *reason,
        lost: join(0),
        popped: payload[2],
        pushed: payload[3],
        units: join(4),
    })
}

enum Raw {
    Call(u32),
    Return(u32),
    Escape(u32, u32, Vec<u32>),
    Hole,
}

/// Items with the times of events, where they have some, and the time that the words reach.
fn take_apart(chunk: &Chunk) -> (Vec<(Raw, u64)>, u64) {
    let kind = ClockKind::from_u32(chunk.header.clock).expect("a clock");
    let mut items = Vec::new();
    let mut words = chunk.words.iter().copied().peekable();
    let mut now = chunk.header.time;
    let mut high = now & !0xFFFF_FFFF;
    while let Some(next) = words.next() {
        match word::decode(next) {
            Word::End => items.push((Raw::Hole, 0)),
            Word::Invalid => panic!("word 1"),
            Word::Call { site } | Word::Return { site } => {
                let mut time = 0;
                if kind == ClockKind::Cycle {
                    let low = words.next().expect("a time word");
                    assert_eq!(low & 1, 1, "a time word is odd");
                    time = high | u64::from(low);
                    now = now.max(time);
                }
                items.push((if next & 1 == 0 { Raw::Call(site) } else { Raw::Return(site) }, time));
            }
            Word::Escape { code: code::PAD, .. } => {}
            Word::Escape { code, arg } => {
                let mut payload = Vec::new();
                if word::has_payload(code) {
                    // A jump may leave one unfinished.
                    let Some(count) = words.next_if(|&count| count != 0) else {
                        items.push((Raw::Hole, 0));
                        continue;
                    };
                    let count = word::payload_value(count).expect("a count");
                    assert!(count <= word::MAX_PAYLOAD);
                    if words.clone().take(count as usize).any(|word| word == 0) {
                        words.by_ref().take(count as usize).for_each(drop);
                        items.push((Raw::Hole, 0));
                        continue;
                    }
                    for at in 0..count {
                        let next = words.next().expect("payload");
                        if code == code::FAR && kind == ClockKind::Cycle && at == 3 {
                            payload.push(next);
                        } else {
                            payload.push(word::payload_value(next).expect("payload"));
                        }
                    }
                }
                if code == code::TICK {
                    now += u64::from(arg);
                }
                if code == code::STAMP {
                    now = u64::from(payload[0]) | u64::from(payload[1]) << 31;
                    high = now & !0xFFFF_FFFF;
                }
                items.push((Raw::Escape(code, arg, payload), 0));
            }
        }
    }
    (items, now)
}

pub(crate) fn window(payload: &[u32]) -> Window {
    let wide = |at: usize| {
        u64::from(payload[at]) | u64::from(payload[at + 1]) << 31 | u64::from(payload[at + 2]) << 62
    };
    let bytes: Vec<[u8; 3]> = payload[10..].iter().map(|&word| word::unpack_bytes(word)).collect();
    let build_id_length = payload[9] as usize;
    let (build_id, path) = bytes.split_at(build_id_length.div_ceil(3));
    let build_id = build_id.concat()[..build_id_length].to_vec();
    let path = path.concat();
    let length = path.iter().position(|&byte| byte == 0).unwrap_or(path.len());
    Window {
        first: payload[1],
        count: payload[2],
        address: wide(3),
        bias: wide(6),
        path: String::from_utf8(path[..length].to_vec()).unwrap().into(),
        build_id,
    }
}

/// Names by `nm`: files' symbols by address.
type Symbols = HashMap<PathBuf, BTreeMap<u64, String>>;

/// Names of the sites that one thread met.
struct Names<'a> {
    symbols: &'a mut Symbols,
    windows: &'a [Window],
    known: HashMap<u32, String>,
}

impl Names<'_> {
    fn name(&mut self, site: u32) -> String {
        let found = || name(self.symbols, self.windows, site);
        self.known.entry(site).or_insert_with(found).clone()
    }
}

fn name(symbols: &mut Symbols, windows: &[Window], site: u32) -> String {
    let window = windows
        .iter()
        .find(|window| site.wrapping_sub(window.first) < window.count)
        .unwrap_or_else(|| panic!("site {site:#x} is in no window of {windows:?}"));
    let address = window.address.wrapping_sub(window.bias) + u64::from(site - window.first);
    let symbols = symbols.entry(window.path.clone()).or_insert_with(|| nm(&window.path));
    let name = symbols.get(&address);
    name.unwrap_or_else(|| panic!("no symbol at {address:#x} of {:?}", window.path)).clone()
}

fn nm(file: &Path) -> BTreeMap<u64, String> {
    let output = Command::new("nm").args(["-C", "--defined-only"]).arg(file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut symbols = BTreeMap::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ' ');
        let (Some(address), Some(kind), Some(name)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        if "tTwWi".contains(kind) {
            let address = u64::from_str_radix(address, 16).unwrap();
            let name = name.split('(').next().unwrap();
            symbols.entry(address).or_insert_with(|| name.to_owned());
        }
    }
    symbols
}
