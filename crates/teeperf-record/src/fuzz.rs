//! One door for fuzzers: any words of a chunk, as the drain takes them out of shared memory, any
//! bytes on the recorder's socket, any bytes as pieces, and what a program that is sampled writes: where its samples are,
//! and into its runtime's lists of enclaves.

use crate::control::recorders_sockets;
use crate::enclaves;
use crate::encode::Encoder;
use crate::import::{self, Import, import};
use crate::memory::{SEAL_SIZE, SharedMemory};
use crate::process::{Telling, listen};
use crate::registry::{Decision, Registry};
use crate::seen::Seen;
use crate::sgx::{Counts, Found, Rings};
use crate::socket::Peer;
use crate::survey;
use crate::trust::Owner;
use crate::walk::{Walk, fill_holes, time_after};
use crate::writer::Output;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use teeperf_aex::threads::Threads;
use teeperf_symbols::Search;
use teeperf_wire::body::chunk::Header;
use teeperf_wire::body::sample::SAMPLE_HEADER;
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
            files: vec![import::File { name: "file".into(), bytes: bytes.to_vec() }],
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
        let decision =
            Registry::default().decide(bytes, Peer { pid: 2, uid }, Owner::of(OWN), || true);
        assert!(uid == OWN || matches!(decision, Decision::Ignore), "a stranger is answered");
        assert!(!matches!(decision, Decision::Segment { .. }), "nobody has a segment");
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert!(recorders_sockets(text).count() <= text.lines().count());
    }
}

/// Takes bytes as what a program writes to where its samples are, in rounds: where, how much, and that; the recorder takes
/// what is there after each. Never panics, and finds no more than there is room for: so many samples.
pub fn any_rings(bytes: &[u8]) -> u64 {
    const PLACES: usize = 2;
    const CAPACITY: usize = 4096;
    const PROCESS: u32 = 7;
    let length = Threads::bytes(PLACES, CAPACITY);
    let Ok(memory) = SharedMemory::create(c"rings", length, SEAL_SIZE) else { return 0 };
    // SAFETY: of this length, new, whole pages, and it outlives the threads.
    let threads = unsafe { Threads::new(memory.start(), PLACES, CAPACITY) };
    let mut rings = Rings::new(threads, CAPACITY, PROCESS);
    let words = memory.wides(0, length);
    let mut numbers = bytes.as_chunks::<8>().0.iter().map(|&eight| u64::from_le_bytes(eight));
    let mut samples = 0;
    while let Some(round) = numbers.next() {
        let (place, count) = (round as u32 as usize % words.len(), round >> 32);
        for word in words[place..].iter().take(count as usize) {
            let Some(number) = numbers.next() else { break };
            word.store(number, Relaxed);
        }
        let before = samples;
        rings.drain(&mut |found| {
            if let Found::Sample(sample) = found {
                assert_eq!(sample.pid, PROCESS, "a sample is another process's");
                samples += 1;
            }
        });
        assert!(samples - before <= (PLACES * CAPACITY / SAMPLE_HEADER) as u64);
        assert!(rings.threads().count() <= PLACES);
    }
    let Counts { inside, unreadable, outside, .. } = rings.counts();
    assert_eq!(samples, inside + unreadable + outside);
    samples
}

/// Takes bytes as the memory of a program, from address 0 on: first where its runtime's list of enclaves begins, then where an
/// enclave does, and how large that is. Never panics, and finds nothing outside of the enclave: of each runtime so many files.
pub fn any_lists(bytes: &[u8]) -> [usize; 3] {
    let Some(&[_, start, size]) = bytes.as_chunks::<8>().0.first_chunk() else { return [0; 3] };
    let start = u64::from_le_bytes(start);
    let enclave = start..start.saturating_add(u64::from_le_bytes(size));
    // Memory is whole pages.
    let length = bytes.len().next_multiple_of(4096);
    let Ok(memory) = SharedMemory::create(c"memory", length, SEAL_SIZE) else { return [0; 3] };
    let Ok(file) = memory.file().try_clone_to_owned().map(File::from) else { return [0; 3] };
    match file.write_all_at(bytes, 0) {
        Ok(()) => enclaves::any_lists(file, &enclave),
        Err(_) => [0; 3],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(name: &str) -> Vec<u8> {
        std::fs::read(format!("../../fuzz/corpus/{name}")).unwrap()
    }

    /// What fuzzers begin with is what a program writes.
    #[test]
    fn seeds_are_samples_and_lists() {
        for (name, samples) in [("chain", 2), ("threads", 5), ("nonsense", 0)] {
            assert_eq!(any_rings(&seed(&format!("rings/{name}"))), samples, "{name}");
        }
        // Numbers may be an entry of another runtime as well.
        for (name, files) in
            [("intel", [1, 0, 0]), ("open-enclave", [0, 2, 0]), ("gramine", [1, 0, 2])]
        {
            assert_eq!(any_lists(&seed(&format!("enclaves/{name}"))), files, "{name}");
        }
    }
}
