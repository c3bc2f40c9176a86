//! One door for fuzzers: any words of a chunk, as the drain takes them out of shared memory, any
//! bytes on the recorder's socket, and any bytes as pieces.

use crate::control::recorders_sockets;
use crate::encode::Encoder;
use crate::import::{File, Import, import};
use crate::process::{Telling, listen};
use crate::registry::{Decision, Registry};
use crate::seen::Seen;
use crate::socket::Peer;
use crate::survey;
use crate::walk::{Walk, fill_holes, time_after};
use crate::writer::Output;
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, Mutex};
use teeperf_symbols::Search;
use teeperf_wire::body::chunk::Header;
use teeperf_wire::shared::ClockKind;

/// What the drain makes of a chunk's words.
#[derive(Debug)]
pub struct Taken {
    /// Payload of the packet.
    pub payload: Vec<u8>,
    /// The words that it must give again: those that were used, their holes filled.
    pub words: Vec<u32>,
}

/// Takes words as those of a chunk that was handed over. Never panics, whatever they are; nothing when
/// the system has no memory for it.
pub fn any_words(words: &[u32], clock: ClockKind) -> Option<Taken> {
    let is_cycle = clock == ClockKind::Cycle;
    let mut words = words[..survey::used(words)].to_vec();
    assert_eq!(survey::holes(&words), words.iter().filter(|&&word| word == 0).count());
    fill_holes(&mut words, is_cycle);
    assert_eq!(survey::holes(&words), 0);
    let mut time = 0;
    for item in Walk::new(&words, is_cycle) {
        let before = time;
        time = time_after(before, &item);
        assert!(before <= time, "time falls");
    }
    let mut encoder = Encoder::new().ok()?;
    let header = Header {
        process: 1,
        thread: 1,
        tid: 1,
        sequence: 1,
        clock: clock as u8,
        ..Header::default()
    };
    let untimed = encoder.chunk(header, &words).unwrap_or(&words);
    let mut seen = Seen::default();
    let survey = seen.mark(untimed);
    assert!(survey.events <= untimed.len());
    let told = listen(untimed, &mut BTreeSet::new());
    assert!(told.is_empty() || survey.telling, "an escape was passed over");
    for telling in told {
        if let Telling::Module(module) = telling {
            seen.open(&module);
            let new = seen.take_new(&module);
            assert!(seen.take_new(&module).is_empty(), "{new:?} is reported twice");
        }
    }
    Some(Taken { payload: encoder.payload().to_vec(), words })
}

/// Imports bytes as a file of pieces, or of lines with some. Never panics, and takes time and memory in proportion to
/// them; the recording, where there is a piece.
pub fn any_pieces(bytes: &[u8]) -> Option<Vec<u8>> {
    let recording = Arc::<Mutex<Vec<u8>>>::default();
    let imported = import(
        Import {
            files: vec![File { name: "file".into(), bytes: bytes.to_vec() }],
            hz: Some(1000),
            search: Search::default(),
            writer: "fuzz".into(),
            output: Output::Writer(Box::new(Kept(Arc::clone(&recording)))),
        },
        &mut |_| {},
    );
    let imported = imported.ok()?;
    assert!(imported.pieces as usize <= bytes.len() && imported.threads <= imported.pieces);
    Some(std::mem::take(&mut *recording.lock().ok()?))
}

/// What is written is kept.
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut kept = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Takes bytes as a message from a process that nobody knows yet, and text as the system's list of
/// sockets. Never panics; only a hello and a request get anything.
pub fn any_message(bytes: &[u8]) {
    const OWN: u32 = 1000;
    for uid in [OWN, 0] {
        let decision = Registry::default().decide(bytes, Peer { pid: 2, uid }, OWN);
        assert!(uid == OWN || matches!(decision, Decision::Ignore), "a stranger is answered");
        assert!(!matches!(decision, Decision::Segment { .. }), "nobody has a segment");
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert!(recorders_sockets(text).count() <= text.lines().count());
    }
}
