//! Damaged files: whatever the bytes, there is an end, and what stands before the damage is read.

use std::io::Cursor;

use teeperf_interop::fuzz::any_perf_data;
use teeperf_interop::perf_data::Reader;

use crate::seen::{Seen, real};

#[test]
fn a_file_that_is_cut_has_what_stands_before() {
    for (name, bytes) in real() {
        let whole = Seen::file(&bytes);
        let step = (bytes.len() / 300).max(1);
        let mut before = 0;
        for length in (0..bytes.len()).step_by(step) {
            let cut = &bytes[..length];
            let Ok(mut reader) = Reader::open("cut", Cursor::new(cut)) else {
                assert!(length < 104, "{name} of {length}");
                continue;
            };
            let seen = Seen::of(&mut reader);
            assert!(seen.samples.len() <= whole.samples.len() && seen.samples.len() >= before);
            // Samples may go in another order where a round is not finished, but are the same.
            assert!(seen.samples.iter().all(|sample| {
                whole
                    .samples
                    .iter()
                    .any(|other| other.ip == sample.ip && other.stack == sample.stack)
            }));
            before = seen.samples.len();
            let is_marked = !seen.warnings.is_empty() || seen.end.is_some();
            assert!(is_marked || name == "pipe.data", "{name} of {length}");
        }
        assert!(before >= whole.samples.len() / 2, "{name}: nearly all");
    }
}

#[test]
fn bits_that_are_wrong_do_no_harm() {
    for (_, bytes) in real() {
        let step = (bytes.len() / 40).max(1);
        for at in (0..bytes.len()).step_by(step) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << (at % 8);
            any_perf_data(&bytes);
            bytes[at] = !bytes[at];
            any_perf_data(&bytes);
        }
        // The head and the attributes decide most.
        for at in (0..300.min(bytes.len())).step_by(3) {
            let mut bytes = bytes.clone();
            bytes[at] = 0xff;
            any_perf_data(&bytes);
        }
    }
}
