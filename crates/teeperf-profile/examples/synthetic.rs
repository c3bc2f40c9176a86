//! Makes a recording of as many events as wanted, from a pattern that repeats: for measuring
//! that memory does not grow with the recording.
//!
//! `synthetic EVENTS SHAPE`, to standard output. Shapes:
//! * `calls`: some thousand call paths, over and over;
//! * `deep`: calls that never return;
//! * `wide`: a million call paths;
//! * `threads`: a new thread for each chunk of a thousand events.

use std::io::{BufWriter, Write};

use teeperf_wire::body::{chunk, start};
use teeperf_wire::fields::Writer;
use teeperf_wire::packet::{Header, MAJOR, kind};
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word::{FIRST_SITE, call, code, escape, ret};

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, events, shape] = &arguments[..] else {
        eprintln!("usage: synthetic EVENTS calls|deep|wide|threads");
        std::process::exit(2);
    };
    let events: u64 = events.parse().expect("a number of events");
    let mut file = BufWriter::new(std::io::stdout().lock());
    let mut packets = 0;
    let mut packet = |packet_kind: u16, payload: &[u8]| {
        file.write_all(&Header::encode(packet_kind, packets, payload))?;
        packets += 1;
        file.write_all(payload)
    };
    let mut room = [0; 100];
    let mut fields = Writer::new(&mut room);
    fields.bytes(start::VERSION, &u32::from(MAJOR).to_le_bytes()).expect("room");
    fields.number(start::HZ, 1_000_000_000).expect("room");
    packet(kind::START, fields.finish())?;

    let (mut done, mut number) = (0, 0u32);
    while done < events {
        let words = match &shape[..] {
            "deep" => vec![call(FIRST_SITE); chunk::MAX_WORDS],
            "wide" => wide(number % 64),
            "threads" => paths(number % 8)[..1000].to_vec(),
            _ => paths(number % 8),
        };
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let thread = if shape == "threads" { number + 1 } else { 1 };
        let header = chunk::Header {
            process: 1,
            thread,
            tid: thread,
            sequence: if shape == "threads" { 1 } else { number + 1 },
            count: words.len() as u32,
            time: 1_000_000 * u64::from(number),
            cpu_ns: u64::MAX,
            clock: ClockKind::Tick as u8,
            encoding: chunk::encoding::ZSTD,
            flags: chunk::WHOLE,
            ..chunk::Header::default()
        };
        let data = zstd::bulk::compress(&bytes, 1)?;
        packet(kind::CHUNK, &[&header.encode()[..], &data].concat())?;
        done += words.len() as u64;
        number += 1;
    }
    packet(kind::END, &[])?;
    file.flush()
}

/// Calls of functions of functions, ten deep; which ones depends on `seed`. All return.
fn paths(seed: u32) -> Vec<u32> {
    let (mut words, mut open, mut state) = (Vec::new(), Vec::new(), seed + 1);
    while words.len() + open.len() + 1 < chunk::MAX_WORDS - 1 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if open.len() < 10 && state >> 31 == 0 {
            let site = FIRST_SITE + 16 * (state >> 24 & 15);
            words.push(call(site));
            open.push(site);
        } else if let Some(site) = open.pop() {
            words.push(ret(site));
        }
        if state >> 20 & 0x3FF == 0 {
            words.push(escape(code::TICK, 50_000));
        }
    }
    while let Some(site) = open.pop() {
        words.push(ret(site));
    }
    words
}

/// Eight thousand paths that differ from those of every other `part`.
fn wide(part: u32) -> Vec<u32> {
    (0..chunk::MAX_WORDS as u32 / 4)
        .flat_map(|i| {
            let (outer, inner) = (FIRST_SITE + 16 * part, FIRST_SITE + 0x10000 + 16 * i);
            [call(outer), call(inner), ret(inner), ret(outer)]
        })
        .collect()
}
