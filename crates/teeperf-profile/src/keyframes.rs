//! Keyframes ([`teeperf_wire::body::keyframe`]): what replay knows of a thread, or of stacks that nobody is on, at one
//! moment. Taken apart with hard limits, whatever they claim; and made, as many packets as it takes.

use std::io::Read;

use teeperf_wire::body::keyframe::{self as tag, MARK_BYTES, MAX_BYTES, VFORK, frame};
use teeperf_wire::fields::{FIELD_HEADER, Field, Writer};
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word::{self, ESCAPE_BASE, code, module};

use crate::escape::{self, Escape};
pub use crate::names::Window;
use crate::replay::VFORK_MARK;

/// What a keyframe says. Numbers that are missing are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keyframe {
    /// Number of the process.
    pub process: u32,
    /// Serial of the thread; 0: it is of the process alone.
    pub thread: u32,
    /// Thread id.
    pub tid: u32,
    /// Latest time that the thread has told, clock units.
    pub time: u64,
    /// Id of the stack.
    pub stack: u64,
    /// Clock units charged since its last event.
    pub recent: u64,
    /// Clock units not to be charged before its next.
    pub debt: u64,
    /// Frames that keyframes before this one told of.
    pub below: u64,
    /// Open frames, the lowest first, and how many of each stand in a row.
    pub frames: Vec<(Frame, u64)>,
    /// Whether there are frames that cannot be read.
    pub is_cut: bool,
    /// Marks: key, id of the stack, frames of it.
    pub marks: Vec<(u32, u64, u64)>,
    /// Windows of modules.
    pub windows: Vec<Window>,
    /// Number of the chunk, and the word in it, with which the thread goes on.
    pub goes_on: Option<(u32, u32)>,
    /// The filter that the thread's events stand under, and how many of its open frames, the lowest, are of calls before
    /// that.
    pub filter: Option<(u32, u64)>,
    /// Whether the stack is one that nobody is on.
    pub is_left: bool,
    /// Whether nothing is kept of it.
    pub is_gone: bool,
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Of a function that is not known.
    Unknown,
    /// Of a function with a site: the word of a call.
    Call(u32),
    /// Of the function at an address outside every window.
    Far(u64),
}

/// Bytes of frames in a packet that is made here.
const FRAMES: usize = 192 << 10;
/// Marks in a packet that is made here.
const MARKS: usize = 4096;
/// Fewer bytes are not worth a zstd frame.
const WORTH_IT: usize = 64;

impl Keyframe {
    pub(crate) fn read<'a>(fields: impl Iterator<Item = Field<'a>>) -> Self {
        let mut out = Self::default();
        let (mut sequence, mut first) = (None, 0);
        let (mut filter, mut floor) = (None, 0);
        for field in fields {
            let number = field.number().unwrap_or(0);
            // What is larger is no number this recording can have meant.
            let number32 = u32::try_from(number).unwrap_or(0);
            match field.tag {
                tag::PROCESS => out.process = number32,
                tag::THREAD => out.thread = number32,
                tag::TID => out.tid = number32,
                tag::TIME => out.time = number,
                tag::STACK => out.stack = number,
                tag::RECENT => out.recent = number,
                tag::DEBT => out.debt = number,
                tag::BELOW => out.below = number,
                tag::FRAMES => out.take_frames(field.value),
                tag::FRAMES_ZSTD => match decompressed(field.value) {
                    Some(bytes) => out.take_frames(&bytes),
                    None => out.is_cut = true,
                },
                tag::MARK => out.marks.extend(mark(field.value)),
                tag::MODULE => out.windows.extend(window(field.value)),
                tag::SEQUENCE => sequence = Some(number32),
                tag::FIRST => first = number32,
                tag::FILTER => filter = Some(number32),
                tag::FLOOR => floor = number,
                tag::LEFT => (out.is_left, out.is_gone) = (number != 0, number == tag::GONE),
                _ => {}
            }
        }
        out.goes_on = sequence.map(|sequence| (sequence, first));
        out.filter = filter.map(|number| (number, floor));
        out
    }

    fn take_frames(&mut self, mut bytes: &[u8]) {
        self.frames.clear();
        while !bytes.is_empty() {
            match run(&mut bytes) {
                Some(run) => self.frames.push(run),
                None => return self.is_cut = true,
            }
        }
    }

    /// Payloads of the packets that say this, one at least.
    pub fn encode(&self) -> Vec<Vec<u8>> {
        let mut rows = rows(&self.frames).into_iter();
        let mut marks = self.marks.chunks(MARKS);
        let mut windows = self.windows.iter();
        let mut below = self.below;
        let mut out = Vec::new();
        loop {
            let row = rows.next();
            let some_marks = marks.next();
            let some_windows: Vec<&Window> = windows.by_ref().take(64).collect();
            let is_empty = row.is_none() && some_marks.is_none() && some_windows.is_empty();
            if is_empty && !out.is_empty() {
                return out;
            }
            let (row, frames) = row.unwrap_or_default();
            out.push(self.packet(below, &row, some_marks.unwrap_or_default(), &some_windows));
            below = below.saturating_add(frames);
        }
    }

    fn packet(
        &self,
        below: u64,
        row: &[u8],
        marks: &[(u32, u64, u64)],
        windows: &[&Window],
    ) -> Vec<u8> {
        let mut out = Vec::new();
        let numbers = [
            (tag::PROCESS, u64::from(self.process)),
            (tag::THREAD, self.thread.into()),
            (tag::TID, self.tid.into()),
            (tag::TIME, self.time),
            (tag::STACK, self.stack),
            (tag::RECENT, self.recent),
            (tag::DEBT, self.debt),
            (tag::BELOW, below),
            (tag::LEFT, if self.is_gone { tag::GONE } else { self.is_left.into() }),
        ];
        for (tag, number) in numbers.into_iter().filter(|(_, number)| *number != 0) {
            push(&mut out, tag, &number.to_le_bytes());
        }
        if let Some((sequence, first)) = self.goes_on {
            push(&mut out, tag::SEQUENCE, &u64::from(sequence).to_le_bytes());
            push(&mut out, tag::FIRST, &u64::from(first).to_le_bytes());
        }
        if let Some((number, floor)) = self.filter {
            push(&mut out, tag::FILTER, &u64::from(number).to_le_bytes());
            push(&mut out, tag::FLOOR, &floor.to_le_bytes());
        }
        let packed = (row.len() > WORTH_IT).then(|| zstd::bulk::compress(row, 1).ok()).flatten();
        match packed.filter(|packed| packed.len() < row.len()) {
            Some(packed) => push(&mut out, tag::FRAMES_ZSTD, &packed),
            None if row.is_empty() => {}
            None => push(&mut out, tag::FRAMES, row),
        }
        for (key, stack, depth) in marks {
            let key = if *key == VFORK_MARK { VFORK } else { *key };
            let mark = [&key.to_le_bytes()[..], &stack.to_le_bytes(), &depth.to_le_bytes()];
            push(&mut out, tag::MARK, &mark.concat());
        }
        for window in windows {
            let words: Vec<u8> = words_of(window).into_iter().flat_map(u32::to_le_bytes).collect();
            push(&mut out, tag::MODULE, &words);
        }
        out
    }
}

/// Frames as rows of bytes, each with how many frames are in it.
fn rows(frames: &[(Frame, u64)]) -> Vec<(Vec<u8>, u64)> {
    let mut out: Vec<(Vec<u8>, u64)> = Vec::new();
    for &(frame, count) in frames {
        if out.last().is_none_or(|(row, _)| row.len() > FRAMES) {
            out.push((Vec::new(), 0));
        }
        let Some((row, sum)) = out.last_mut() else { break };
        match frame {
            Frame::Unknown => push_leb128(row, frame::UNKNOWN),
            Frame::Call(word) => push_leb128(row, word.into()),
            Frame::Far(address) => {
                push_leb128(row, frame::FAR);
                push_leb128(row, address);
            }
        }
        push_leb128(row, count);
        *sum = sum.saturating_add(count);
    }
    out
}

fn run(bytes: &mut &[u8]) -> Option<(Frame, u64)> {
    let frame = match leb128(bytes)? {
        frame::UNKNOWN => Frame::Unknown,
        frame::FAR => Frame::Far(leb128(bytes)?),
        word => {
            let word = u32::try_from(word).ok()?;
            // That of a return, or an escape, is no call's.
            (word & 1 == 0 && word < ESCAPE_BASE).then_some(Frame::Call(word))?
        }
    };
    Some((frame, leb128(bytes)?))
}

fn mark(value: &[u8]) -> Option<(u32, u64, u64)> {
    let value: &[u8; MARK_BYTES] = value.try_into().ok()?;
    let (key, rest) = value.split_first_chunk()?;
    let (stack, rest) = rest.split_first_chunk()?;
    let key = match u32::from_le_bytes(*key) {
        VFORK => VFORK_MARK,
        key if key <= word::MAX_ARG => key,
        _ => return None,
    };
    Some((key, u64::from_le_bytes(*stack), u64::from_le_bytes(rest.try_into().ok()?)))
}

fn window(value: &[u8]) -> Option<Window> {
    let (words, rest) = value.as_chunks::<4>();
    if !rest.is_empty() || words.len() > word::MAX_PAYLOAD as usize {
        return None;
    }
    let head = [word::escape(code::MODULE, 0), word::payload(words.len() as u32)];
    let words = words.iter().map(|word| u32::from_le_bytes(*word));
    let words: Vec<u32> = head.into_iter().chain(words).collect();
    match escape::read(&words, 0, ClockKind::Tick) {
        Some((Escape::Module(module), _)) => Some(Window::of(&module)),
        _ => None,
    }
}

/// Payload words of the escape that opens it.
fn words_of(window: &Window) -> Vec<u32> {
    let kind = if window.is_anchored { module::ANCHORED } else { module::OPENED };
    let mut words = [kind, window.first_site, window.sites].map(word::payload).to_vec();
    words.extend(word::split64(window.file_address.wrapping_add(window.bias)));
    words.extend(word::split64(window.bias));
    words.push(word::payload(window.build_id.len() as u32));
    words.extend(window.build_id.chunks(3).map(word::pack_bytes));
    words.extend(window.path.as_bytes().chunks(3).map(word::pack_bytes));
    words
}

/// What one zstd frame holds, if it is no more than may be.
fn decompressed(data: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let decoder = zstd::stream::read::Decoder::new(data).ok()?.single_frame();
    // Grows with what is there, not with what the frame claims.
    decoder.take(MAX_BYTES as u64 + 1).read_to_end(&mut out).ok()?;
    (out.len() <= MAX_BYTES).then_some(out)
}

fn push(out: &mut Vec<u8>, tag: u16, value: &[u8]) {
    let start = out.len();
    out.resize(start + FIELD_HEADER + value.len(), 0);
    // There is room for exactly this.
    let _ = Writer::new(&mut out[start..]).bytes(tag, value);
}

fn push_leb128(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// An unsigned LEB128 number of at most 64 bits, taken off.
fn leb128(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (i, &byte) in bytes.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7F);
        if i == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * i);
        if byte & 0x80 == 0 {
            *bytes = &bytes[i + 1..];
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use teeperf_wire::fields;

    fn read(payload: &[u8]) -> Keyframe {
        Keyframe::read(fields::read(payload).map_while(Result::ok))
    }

    fn frame() -> impl Strategy<Value = (Frame, u64)> {
        let frame = prop_oneof![
            Just(Frame::Unknown),
            (0x1000u32..0x2000).prop_map(|site| Frame::Call(site << 1)),
            any::<u64>().prop_map(Frame::Far),
        ];
        (frame, prop_oneof![Just(1u64), 1u64..1 << 40])
    }

    proptest! {
        #[test]
        fn it_comes_back(numbers: [u32; 3], wide: [u64; 4], frames in proptest::collection::vec(frame(), 0..200), is_left: bool,
                         marks in proptest::collection::vec((0u32..=word::MAX_ARG, any::<u64>(), any::<u64>()), 0..5)) {
            let [process, thread, tid] = numbers;
            let [time, stack, recent, debt] = wide;
            let window = Window {
                first_site: 0x1000, sites: 7, file_address: 9, bias: u64::MAX, is_anchored: is_left,
                path: "/bin/a".into(), build_id: [1, 2][..].into(),
            };
            let told = Keyframe {
                process, thread: thread | 1, tid, time, stack, recent, debt, frames, marks, is_left,
                windows: vec![window], goes_on: Some((3, 4)), ..Keyframe::default()
            };
            let packets = told.encode();
            prop_assert_eq!(packets.len(), 1);
            prop_assert_eq!(read(&packets[0]), told);
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            read(&bytes);
        }
    }

    #[test]
    fn what_is_long_takes_several_packets() {
        let frames: Vec<_> =
            (0..200_000u32).map(|n| (Frame::Call((0x1000 + n % 999) << 1), 1)).collect();
        let told =
            Keyframe { process: 1, thread: 1, frames: frames.clone(), ..Keyframe::default() };
        let parts: Vec<Keyframe> = told.encode().iter().map(|payload| read(payload)).collect();
        assert!(parts.len() > 1);
        let mut below = 0;
        for part in &parts {
            assert_eq!(part.below, below);
            below += part.frames.len() as u64;
        }
        assert_eq!(parts.into_iter().flat_map(|part| part.frames).collect::<Vec<_>>(), frames);
    }
}
