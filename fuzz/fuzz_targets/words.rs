//! Any bytes as the words of one chunk, in packets whose checksums are right: what the fuzzer
//! of whole recordings finds only by chance. The first byte chooses the clock, and how the words
//! are cut into pieces.

#![no_main]

use teeperf_wire::body::chunk::{Header, MAX_WORDS, encoding};
use teeperf_wire::body::{process, start};
use teeperf_wire::fields::Writer;
use teeperf_wire::packet::{self, kind};

fn packet(out: &mut Vec<u8>, kind: u16, sequence: u32, payload: &[u8]) {
    out.extend(packet::Header::encode(kind, sequence, payload));
    out.extend(payload);
}

fn fields(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut room = [0; 256];
    let mut writer = Writer::new(&mut room);
    write(&mut writer);
    writer.finish().to_vec()
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    let clock = 1 + (choice & 1);
    let mut out = Vec::new();
    let begin = fields(|writer| {
        for (tag, value) in [(start::CLOCK, clock.into()), (start::HZ, 1_000_000)] {
            writer.number(tag, value).expect("there is room");
        }
    });
    packet(&mut out, kind::START, 0, &begin);
    let attached = fields(|writer| writer.number(process::ID, 1).expect("there is room"));
    packet(&mut out, kind::PROCESS, 1, &attached);
    let piece_words = 1 + usize::from(choice >> 1) * 4;
    let words = &bytes[..bytes.len().min(MAX_WORDS * 4) & !3];
    let mut first = 0;
    for (number, piece) in words.chunks(piece_words * 4).enumerate() {
        let header = Header {
            process: 1,
            thread: 1,
            tid: 1,
            sequence: 1,
            first,
            count: piece.len() as u32 / 4,
            time: u64::from(first) << 20,
            cpu_ns: u64::MAX,
            clock,
            encoding: encoding::PLAIN,
            ..Header::default()
        };
        first += header.count;
        packet(&mut out, kind::CHUNK, number as u32 + 2, &[&header.encode(), piece].concat());
    }
    teeperf_profile::fuzz::any_recording(&out);
});
