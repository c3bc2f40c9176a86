//! Any bytes as pieces that code without a system has handed over, and the same with checksums that are right: what is
//! made of them the reader of recordings must read.

#![no_main]

use teeperf_wire::crc::Crc;
use teeperf_wire::piece::SYNC;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for pieces in [bytes.to_vec(), mended(bytes)] {
        if let Some(recording) = teeperf_record::fuzz::any_pieces(&pieces) {
            teeperf_profile::fuzz::any_recording(&recording);
        }
    }
});

/// Each stretch from the letters of a piece up to the next, but for the checksum and what comes behind that by its length,
/// with the length that it has and the checksum that belongs there.
fn mended(bytes: &[u8]) -> Vec<u8> {
    let starts = bytes.windows(4).enumerate().filter(|(_, window)| *window == SYNC);
    let starts: Vec<usize> = starts.map(|(at, _)| at).collect();
    let mut out = Vec::new();
    for (number, &start) in starts.iter().enumerate() {
        let end = starts.get(number + 1).copied().unwrap_or(bytes.len());
        let Some(body) = bytes[start..end]
            .get(8..)
            .and_then(|rest| rest.len().checked_sub(4).map(|end| &rest[..end]))
        else {
            continue;
        };
        out.extend(SYNC);
        out.extend((body.len() as u32 + 12).to_le_bytes());
        out.extend(body);
        out.extend(Crc::new().update(body).finish().to_le_bytes());
    }
    out
}
