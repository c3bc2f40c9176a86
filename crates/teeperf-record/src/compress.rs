//! Words compressed by zstd, in one of two ways. Its fast search goes through the words of loops at
//! several gigabytes a second, and finds little in those of recursion. Its search for long
//! repetitions goes through these twice as fast, and makes files that are thirty times smaller. It
//! is slower where the fast one finds all.
//!
//! Which way is better for a thread, sizes tell. Now and then a chunk is compressed both ways.

use std::collections::HashMap;
use std::io;
use zstd::bulk::Compressor;
use zstd::zstd_safe::{CParameter, compress_bound};

/// The first of zstd's fast levels: of lua's and sqlite3's words 1 % more bytes than with level 1,
/// in a sixth less time. Higher levels gain a few percent and cost several times as much.
const LEVEL: i32 = -1;
/// Of `fib`'s words, these go through chunks of 64 KiB 1.5 times as fast as zstd's own choices, and
/// find a quarter more.
const LONG: [CParameter; 4] = [
    CParameter::EnableLongDistanceMatching(true),
    CParameter::LdmHashLog(14),
    CParameter::LdmHashRateLog(4),
    CParameter::LdmMinMatch(64),
];

/// The fast search is good enough where it makes words so many times smaller.
const GOOD: usize = 40;
/// The other one is better where it makes them so many times smaller than that.
const BETTER: usize = 3;
/// Chunks of a thread from one trial to the next, the first time and at most.
const TRIAL: u32 = 16;
const MOST: u32 = 256;
/// Below so many bytes there is no trial.
const WORTH_A_TRIAL: usize = 1 << 14;
/// Most threads that are told apart.
const MOST_THREADS: usize = 1 << 14;

/// A process and a thread in it, by their numbers.
pub(crate) type ThreadKey = (u32, u32);

pub(crate) struct Compression {
    fast: Compressor<'static>,
    long: Compressor<'static>,
    ways: HashMap<ThreadKey, Way>,
    /// Frame that the other way made.
    other: Vec<u8>,
}

/// How a thread's chunks are compressed.
#[derive(Clone, Copy)]
struct Way {
    is_long: bool,
    /// Chunks until the next trial, and from that to the one behind it.
    left: u32,
    next: u32,
}

impl Compression {
    pub(crate) fn new() -> io::Result<Self> {
        let (fast, mut long) = (Compressor::new(LEVEL)?, Compressor::new(LEVEL)?);
        LONG.into_iter().try_for_each(|parameter| long.set_parameter(parameter))?;
        Ok(Self { fast, long, ways: HashMap::new(), other: Vec::new() })
    }

    /// Appends the compressed data of a thread; false when that failed or is no gain.
    pub(crate) fn append(&mut self, thread: ThreadKey, data: &[u8], payload: &mut Vec<u8>) -> bool {
        if self.ways.len() >= MOST_THREADS && !self.ways.contains_key(&thread) {
            self.ways.clear();
        }
        let way = self.ways.entry(thread).or_insert(Way { is_long: false, left: 0, next: TRIAL });
        let is_trial = way.left == 0 && data.len() >= WORTH_A_TRIAL;
        way.left = way.left.saturating_sub(1);
        let start = payload.len();
        let (usual, unusual) = match way.is_long {
            true => (&mut self.long, &mut self.fast),
            false => (&mut self.fast, &mut self.long),
        };
        let Some(size) = append(usual, data, payload) else { return false };
        if is_trial {
            let is_tried = way.is_long || size.saturating_mul(GOOD) > data.len();
            self.other.clear();
            let other = if is_tried { append(unusual, data, &mut self.other) } else { None };
            let is_long = other.map_or(way.is_long, |other| {
                let (fast, long) = if way.is_long { (other, size) } else { (size, other) };
                fast.saturating_mul(GOOD) > data.len() && long.saturating_mul(BETTER) < fast
            });
            way.next = if is_long == way.is_long { (way.next * 2).min(MOST) } else { TRIAL };
            (way.is_long, way.left) = (is_long, way.next);
            if other.is_some_and(|other| other < size) {
                payload.truncate(start);
                payload.extend_from_slice(&self.other);
            }
        }
        payload.len() - start < data.len()
    }
}

/// Appends a frame; gives its size.
fn append(compressor: &mut Compressor<'_>, data: &[u8], to: &mut Vec<u8>) -> Option<usize> {
    let start = to.len();
    let mut frame = io::Cursor::new(to);
    frame.set_position(start as u64);
    // The cursor offers the vector's capacity behind its position.
    frame.get_mut().reserve(compress_bound(data.len()));
    compressor.compress_to_buffer(data, &mut frame).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calls and returns of `fib`, as words.
    fn recursion(depth: u32, out: &mut Vec<u8>) {
        out.extend(0x2000_u32.to_le_bytes());
        if depth > 1 {
            recursion(depth - 1, out);
            recursion(depth - 2, out);
        }
        out.extend(0x2001_u32.to_le_bytes());
    }

    fn loops(words: usize) -> Vec<u8> {
        (0..words as u32).flat_map(|n| (0x2000 + n % 14).to_le_bytes()).collect()
    }

    /// Size and way of each chunk of a thread.
    fn sizes(compression: &mut Compression, thread: u32, chunks: &[&[u8]]) -> Vec<(usize, bool)> {
        let each = |data: &&[u8]| {
            let mut payload = vec![7];
            assert!(compression.append((1, thread), data, &mut payload));
            assert_eq!(zstd::bulk::decompress(&payload[1..], data.len()).unwrap(), *data);
            (payload.len() - 1, compression.ways[&(1, thread)].is_long)
        };
        chunks.iter().map(each).collect()
    }

    #[test]
    fn recursion_is_searched_for_long_repetitions_and_loops_are_not() {
        let mut words = Vec::new();
        recursion(24, &mut words);
        let recursion: Vec<&[u8]> = words.chunks_exact(1 << 16).take(9).collect();
        let words = loops(1 << 18);
        let loops: Vec<&[u8]> = words.chunks_exact(1 << 16).collect();
        let mut compression = Compression::new().unwrap();
        let all = sizes(&mut compression, 1, &recursion);
        assert!(all.iter().all(|&(size, is_long)| is_long && size < 600), "{all:?}");
        let all = sizes(&mut compression, 2, &loops);
        assert!(all.iter().all(|&(_, is_long)| !is_long), "{all:?}");
        // A thread that goes over from one to the other.
        let mixed: Vec<&[u8]> =
            recursion.iter().chain(loops.iter().cycle().take(40)).copied().collect();
        let all = sizes(&mut compression, 3, &mixed);
        assert!(all[0].1 && !all[mixed.len() - 1].1, "{all:?}");
    }

    #[test]
    fn threads_without_end_are_forgotten() {
        let mut compression = Compression::new().unwrap();
        let data = loops(64);
        for thread in 0..MOST_THREADS as u32 + 9 {
            sizes(&mut compression, thread, &[&data]);
        }
        assert!(compression.ways.len() <= MOST_THREADS);
    }
}
