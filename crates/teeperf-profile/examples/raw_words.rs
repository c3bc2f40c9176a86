//! Makes a recording of bare words of one thread, 32 bits each, as the yardstick hook
//! `drain_hook` writes them with `CODEC=raw`: calls and returns as in ours, and
//! `0xffffffff` with a 64-bit time behind it. For measuring replay beside `replay_loop`.
//!
//! `raw_words WORDS RECORDING [THREADS]`: the same words for each of so many threads.

use std::io::{BufReader, BufWriter, Read, Write};

use teeperf_wire::body::{chunk, start};
use teeperf_wire::fields::Writer;
use teeperf_wire::packet::{Header, MAJOR, kind};
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word;

struct Out<W> {
    file: W,
    sequence: u32,
}

impl<W: Write> Out<W> {
    fn packet(&mut self, packet_kind: u16, payload: &[u8]) -> std::io::Result<()> {
        self.file.write_all(&Header::encode(packet_kind, self.sequence, payload))?;
        self.sequence += 1;
        self.file.write_all(payload)
    }

    fn chunk(
        &mut self,
        thread: u32,
        sequence: u32,
        time: u64,
        words: &[u32],
    ) -> std::io::Result<()> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let data = zstd::bulk::compress(&bytes, 1)?;
        let header = chunk::Header {
            process: 1,
            thread,
            tid: thread,
            sequence,
            count: words.len() as u32,
            time,
            cpu_ns: u64::MAX,
            clock: ClockKind::Tick as u8,
            encoding: chunk::encoding::ZSTD,
            flags: chunk::WHOLE,
            ..chunk::Header::default()
        };
        self.packet(kind::CHUNK, &[&header.encode()[..], &data].concat())
    }
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, from, to, more @ ..] = &arguments[..] else {
        eprintln!("usage: raw_words WORDS RECORDING [THREADS]");
        std::process::exit(2);
    };
    let threads: u32 = more.first().map_or(1, |n| n.parse().expect("a number of threads"));
    let mut input = BufReader::with_capacity(1 << 20, std::fs::File::open(from)?);
    let mut out = Out { file: BufWriter::new(std::fs::File::create(to)?), sequence: 0 };
    let mut room = [0; 100];
    let mut fields = Writer::new(&mut room);
    fields.bytes(start::VERSION, &u32::from(MAJOR).to_le_bytes()).expect("room");
    fields.number(start::HZ, 1_000_000_000).expect("room");
    out.packet(kind::START, fields.finish())?;
    let mut next = || {
        let mut word = [0; 4];
        input.read_exact(&mut word).ok().map(|()| u32::from_le_bytes(word))
    };
    let (mut words, mut sequence, mut time, mut begin) = (Vec::new(), 1, 0u64, 0u64);
    loop {
        let next_word = next();
        let full = words.len() + 8 > chunk::MAX_WORDS;
        if full || (next_word.is_none() && !words.is_empty()) {
            for thread in 1..=threads {
                out.chunk(thread, sequence, begin, &words)?;
            }
            (sequence, begin) = (sequence + 1, time);
            words.clear();
        }
        match next_word {
            None => break,
            Some(u32::MAX) => {
                let (low, high) = (next().unwrap_or(0), next().unwrap_or(0));
                let now = u64::from(low) | u64::from(high) << 32;
                if time == 0 {
                    begin = now;
                }
                time = now;
                words.extend([word::escape(word::code::STAMP, 0), word::payload(2)]);
                words.extend(word::split62(now));
            }
            Some(event) => words.push(event & 0xBFFF_FFFF),
        }
    }
    out.packet(kind::END, &[])?;
    out.file.flush()
}
