//! Words to the payload of a chunk packet. The same few patterns over and over make tick
//! words compress by fifty and more; the times of cycle words are taken out first.

use crate::compress::Compression;
use crate::walk::{Item, Walk};
use teeperf_wire::body::chunk::{HEADER, Header, MAX_BYTES, encoding};
use teeperf_wire::shared::ClockKind;
use zstd::zstd_safe::compress_bound;

/// Below so many words a frame is no smaller than what it holds.
const WORTH_IT: usize = 16;

/// Memory for one chunk after another.
pub struct Encoder {
    compression: Compression,
    planes: Planes,
    payload: Vec<u8>,
}

impl Encoder {
    /// Takes the memory it will need.
    pub fn new() -> std::io::Result<Self> {
        let compression = Compression::new()?;
        let payload = Vec::with_capacity(HEADER + compress_bound(MAX_BYTES));
        Ok(Self { compression, planes: Planes::default(), payload })
    }

    /// Makes the payload of the packet for these words: the header as given, but for
    /// `count`, `encoding` and `words_bytes`, which are filled in. Returns the words without
    /// the time words, where those were taken out.
    pub fn chunk(&mut self, mut header: Header, words: &[u32]) -> Option<&[u32]> {
        header.count = words.len() as u32;
        header.words_bytes = 0;
        let cycle = header.clock == ClockKind::Cycle as u8;
        let untimed = cycle && self.planes.split(header.time, words);
        let (code, data) = if untimed {
            header.words_bytes = size_of_val(&self.planes.words[..]) as u32;
            (encoding::CYCLE_ZSTD, self.planes.joined())
        } else {
            (encoding::ZSTD, as_bytes(words))
        };
        self.payload.clear();
        self.payload.resize(HEADER, 0);
        header.encoding = code;
        let thread = (header.process, header.thread);
        let is_worth_it = words.len() >= WORTH_IT;
        if !is_worth_it || !self.compression.append(thread, data, &mut self.payload) {
            header.encoding = encoding::PLAIN;
            header.words_bytes = 0;
            self.payload.truncate(HEADER);
            self.payload.extend_from_slice(as_bytes(words));
        }
        self.payload[..HEADER].copy_from_slice(&header.encode());
        untimed.then_some(&self.planes.words[..])
    }

    /// The payload that was made last.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }
}

/// The two planes of a cycle chunk.
#[derive(Default)]
struct Planes {
    words: Vec<u32>,
    times: Vec<u8>,
    joined: Vec<u8>,
}

impl Planes {
    /// False when the words are not items to the last: then they stay together.
    fn split(&mut self, time: u64, words: &[u32]) -> bool {
        self.words.clear();
        self.times.clear();
        let mut last = time as u32;
        let mut walk = Walk::new(words, true);
        let mut start = 0;
        while let Some(item) = walk.next() {
            match item {
                Item::Event { word, time: Some(time) } => {
                    self.words.push(word);
                    push_leb128(&mut self.times, time.wrapping_sub(last));
                    last = time;
                }
                _ => self.words.extend_from_slice(&words[start..walk.at()]),
            }
            start = walk.at();
        }
        walk.at() == words.len()
    }

    /// Both, one behind the other.
    fn joined(&mut self) -> &[u8] {
        self.joined.clear();
        self.joined.extend_from_slice(as_bytes(&self.words));
        self.joined.extend_from_slice(&self.times);
        &self.joined
    }
}

fn push_leb128(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Words as they stand in memory, which is little-endian ([`crate::memory`]).
fn as_bytes(words: &[u32]) -> &[u8] {
    // SAFETY: any memory may be read as bytes; length and lifetime are those of the words.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use teeperf_wire::word::{Word, call, code, decode, escape, has_payload, payload, ret};

    fn numbers(bytes: &[u8]) -> Vec<u32> {
        assert_eq!(bytes.len() % 4, 0);
        bytes.chunks(4).map(|four| u32::from_le_bytes(four.try_into().unwrap())).collect()
    }

    /// As the format's description has it, written apart from the encoder.
    fn words_of(payload: &[u8]) -> Vec<u32> {
        let (header, data) = Header::decode(payload).unwrap();
        if header.encoding == encoding::PLAIN {
            return numbers(data);
        }
        let data = zstd::bulk::decompress(data, MAX_BYTES).unwrap();
        if header.encoding == encoding::ZSTD {
            return numbers(&data);
        }
        let (first, mut times) = data.split_at(header.words_bytes as usize);
        let mut last = header.time as u32;
        let mut next_time = || {
            let mut value = 0u32;
            for shift in (0..35).step_by(7) {
                let byte = times[0];
                times = &times[1..];
                value |= ((byte & 0x7F) as u32) << shift;
                if byte < 0x80 {
                    break;
                }
            }
            last = last.wrapping_add(value);
            last
        };
        let first = numbers(first);
        let (mut words, mut at) = (vec![], 0);
        while at < first.len() {
            match decode(first[at]) {
                Word::Call { .. } | Word::Return { .. } => {
                    words.extend([first[at], next_time()]);
                    at += 1;
                }
                Word::Escape { code, .. } if has_payload(code) => {
                    let end = at + 2 + (first[at + 1] & 0x7FFF_FFFF) as usize;
                    words.extend(&first[at..end]);
                    at = end;
                }
                _ => {
                    words.push(first[at]);
                    at += 1;
                }
            }
        }
        assert!(times.is_empty());
        words
    }

    fn header(clock: ClockKind, time: u64) -> Header {
        Header { process: 1, thread: 2, clock: clock as u8, time, ..Header::default() }
    }

    fn item() -> impl Strategy<Value = Vec<u32>> {
        prop_oneof![
            6 => (0x1000u32..0x1100, any::<bool>(), any::<u32>()).prop_map(|(site, returns, time)| {
                vec![if returns { ret(site) } else { call(site) }, time | 1]
            }),
            1 => Just(vec![escape(code::STAMP, 0), payload(2), payload(3), payload(4)]),
            1 => Just(vec![escape(code::MARK, 3)]),
            1 => any::<u32>().prop_map(|word| vec![word.max(1)]),
        ]
    }

    proptest! {
        #[test]
        fn words_come_back(items in proptest::collection::vec(item(), 0..300), cycle: bool, time: u64) {
            let words = items.concat();
            let clock = if cycle { ClockKind::Cycle } else { ClockKind::Tick };
            let mut encoder = Encoder::new().unwrap();
            for _ in 0..2 {
                encoder.chunk(header(clock, time), &words);
                let payload = encoder.payload();
                let (decoded, _) = Header::decode(payload).unwrap();
                prop_assert_eq!(decoded.count as usize, words.len());
                prop_assert_eq!((decoded.thread, decoded.time), (2, time));
                prop_assert_eq!(words_of(payload), words.clone());
            }
        }
    }

    #[test]
    fn calls_take_a_fraction_of_a_byte_and_cycles_few() {
        let pairs = |time: bool| -> Vec<u32> {
            let calls = (0..4_000u32).flat_map(|n| {
                let site = 0x1000 + n % 7 * 16;
                [call(site), (n * 900) | 1, ret(site), (n * 900 + 50) | 1]
            });
            calls.enumerate().filter(|(at, _)| time || at % 2 == 0).map(|(_, word)| word).collect()
        };
        let mut encoder = Encoder::new().unwrap();
        encoder.chunk(header(ClockKind::Tick, 0), &pairs(false));
        let tick = encoder.payload().len();
        assert!(tick < 8_000 / 20, "{tick} bytes for 8,000 events");
        let untimed = encoder.chunk(header(ClockKind::Cycle, 0), &pairs(true));
        assert_eq!(untimed, Some(&pairs(false)[..]));
        let cycle = encoder.payload().len();
        assert!(cycle < 8_000 * 2, "{cycle} bytes for 8,000 events");
    }

    #[test]
    fn the_longest_chunk_fits_a_packet() {
        let mut noise = 1u32;
        let words: Vec<u32> = std::iter::repeat_with(|| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            [call(0x1000 + noise % 0x1000_0000), noise | 1]
        })
        .flatten()
        .take(teeperf_wire::body::chunk::MAX_WORDS)
        .collect();
        let mut encoder = Encoder::new().unwrap();
        encoder.chunk(header(ClockKind::Cycle, 0), &words);
        let payload = encoder.payload();
        assert!(payload.len() <= teeperf_wire::packet::MAX_PAYLOAD);
        assert_eq!(words_of(payload), words);
    }
}
