//! Any bytes as the words of a chunk that a hostile program hands over: what the recorder writes of them
//! the reader must give again. And any bytes as a message to the recorder. The first byte chooses the
//! clock.

#![no_main]

use teeperf_profile::chunks::Decoder;
use teeperf_wire::body::chunk::{Header, MAX_WORDS};
use teeperf_wire::shared::ClockKind;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    teeperf_record::fuzz::any_message(bytes);
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    let clock = if choice & 1 == 0 { ClockKind::Tick } else { ClockKind::Cycle };
    let (words, _) = bytes.as_chunks::<4>();
    let words: Vec<u32> =
        words.iter().take(MAX_WORDS).map(|&word| u32::from_le_bytes(word)).collect();
    let Some(taken) = teeperf_record::fuzz::any_words(&words, clock) else { return };
    let (header, data) = Header::decode(&taken.payload).expect("a header");
    let mut decoder = Decoder::new().expect("memory");
    let (_, read) = decoder.words(&header, data).expect("the recorder's own words");
    assert_eq!(read, taken.words);
});
