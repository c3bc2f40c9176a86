//! Damaged files: whatever the bytes, there is an end, and what stands before the damage is read.

use std::io::Cursor;

use teeperf_interop::fuzz::any_perf_data;
use teeperf_interop::perf_data::Reader;

use crate::seen::{Seen, real, real_file};

#[test]
fn a_file_that_is_cut_has_what_stands_before() {
    for (name, bytes) in real() {
        let whole = Seen::file(&bytes);
        let step = (bytes.len() / 300).max(1);
        let mut before = 0;
        for length in (0..bytes.len()).step_by(step) {
            let cut = &bytes[..length];
            let mut reader = match Reader::open("cut", Cursor::new(cut)) {
                Ok(reader) => reader,
                Err(error) => {
                    let is_in_head = length < 104 || error.to_string().contains("offset 40: ");
                    assert!(is_in_head && before == 0, "{name} of {length}");
                    continue;
                }
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

/// What is missing because a file ends too early is said once, with where it ends; what the head has wrong, with where that stands.
#[test]
fn what_is_missing_is_said_in_a_line() {
    let bytes = real_file("fp.data");
    let warnings = |bytes: &[u8]| Seen::file(bytes).warnings;
    let ends = |line: &&String| line.contains("what it is to have behind that is missing: ");
    let cut = warnings(&bytes[..2000]);
    let [line] = cut.iter().filter(ends).collect::<Vec<_>>()[..] else { panic!("{cut:?}") };
    assert!(line.starts_with("offset 2000: ") && line.contains("host, system, "), "{cut:?}");
    assert_eq!(cut.len(), 2, "{cut:?}");
    // The last one alone.
    let lengths = (0..bytes.len()).rev().step_by(8);
    let cut = lengths.map(|length| warnings(&bytes[..length])).find(|cut| !cut.is_empty()).unwrap();
    let [line] = &cut[..] else { panic!("{cut:?}") };
    assert!(ends(&line) && line.matches(", ").count() == 1, "{cut:?}");
    let with = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at..at + 8].fill(0xff);
        bytes
    };
    let attributes = warnings(&with(24));
    assert!(attributes[0].starts_with("offset 24: the attributes"), "{attributes:?}");
    let Err(error) = Reader::open("bad", Cursor::new(with(40))) else { panic!() };
    assert_eq!(
        error.to_string(),
        "bad: offset 40: the data is to begin behind the end of the file"
    );
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
