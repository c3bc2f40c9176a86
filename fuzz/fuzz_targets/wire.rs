//! The decoders of what crosses a boundary, each on the same bytes: what decodes and can be
//! encoded must come back.

#![no_main]

use teeperf_wire::body::chunk;
use teeperf_wire::body::sample::Sample;
use teeperf_wire::hello::{HELLO_SIZE, Hello, WELCOME_SIZE, Welcome};
use teeperf_wire::packet::{HEADER_SIZE, Header};
use teeperf_wire::shared::ChunkHeader;
use teeperf_wire::{fields, shared, word};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some(hello) = Hello::decode(bytes) {
        assert!(bytes.len() >= HELLO_SIZE);
        assert_eq!(Hello::decode(&hello.encode()), Some(hello));
    }
    if let Some(welcome) = Welcome::decode(bytes) {
        assert!(bytes.len() >= WELCOME_SIZE);
        assert_eq!(Welcome::decode(&welcome.encode()), Some(welcome));
    }
    if let Some((head, payload)) = bytes.split_first_chunk::<HEADER_SIZE>()
        && let Ok(header) = Header::decode(head)
        && header.fits(payload)
        && header.flags == 0
    {
        assert_eq!(Header::encode(header.kind, header.sequence, payload), *head);
    }
    if let Some((header, data)) = chunk::Header::decode(bytes) {
        assert_eq!([&header.encode()[..], data].concat(), bytes);
    }
    if let Some((sample, rest)) = Sample::decode(bytes) {
        assert!(sample.size() + rest.len() <= bytes.len());
        let again = sample.parts(&sample.heads()).concat();
        assert_eq!(Sample::decode(&again), Some((sample, &[][..])));
    }
    if let Some(head) = bytes.first_chunk::<{ shared::chunk::WORDS }>() {
        let _ = ChunkHeader::decode(head);
    }
    let mut used = 0;
    for field in fields::read(bytes) {
        match field {
            Ok(field) => used += fields::FIELD_HEADER + field.value.len(),
            Err(cut) => assert_eq!(cut.at, used),
        }
        assert!(used <= bytes.len());
    }
    for four in bytes.chunks_exact(4) {
        let one = u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
        if let word::Word::Escape { code, arg } = word::decode(one) {
            assert_eq!(word::escape(code, arg), one);
        }
    }
});
