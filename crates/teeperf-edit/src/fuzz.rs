//! One door for fuzzers: any bytes as a recording that is cut, repaired and merged, and as an archive of one;
//! and as what comes over a connection.

use std::io::{self, Cursor, Read, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use teeperf_profile::{Options, Recording, packets};
use teeperf_record::writing::Output;
use teeperf_symbols::Unpacked;

use crate::cut::{Cut, When, Window, cut};
use crate::greeting::{self, Stream};
use crate::merge::{Input, merge};
use crate::pack;
use crate::repair::repair;
use crate::secured::{Secret, Secured};

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().map_err(|_| io::Error::other("poisoned"))?.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Memory {
    fn output(&self) -> Output {
        Output::Writer(Box::new(self.clone()))
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.lock().map(|bytes| bytes.clone()).unwrap_or_default()
    }
}

/// A connection on which somebody has said this.
struct Said(Cursor<Vec<u8>>);

impl Read for Said {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Write for Said {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Said {
    fn again(&self) -> io::Result<Box<dyn Stream>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn patience(&self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn end(&self) -> io::Result<()> {
        Ok(())
    }

    fn cut(&self) -> io::Result<()> {
        Ok(())
    }
}

/// What one side of a connection says, as the other hears it. Never panics.
pub fn any_greeting(bytes: &[u8]) {
    const SOON: Duration = Duration::from_secs(9);
    let said = || Said(Cursor::new(bytes.to_vec()));
    let _ = greeting::hear(&mut said(), Instant::now() + SOON);
    let _ = greeting::greet(&mut said(), SOON);
    let secret = Secret::parse(&"5".repeat(64)).expect("64 digits");
    let _ = greeting::secured(Box::new(said()), &secret, Instant::now() + SOON);
    let _ = Secured::offer(Box::new(said()), &secret, SOON);
    let _ = greeting::told(&mut said(), SOON);
}

fn read(bytes: &[u8]) -> Recording<&[u8]> {
    Recording::from_read(bytes, "bytes")
}

/// Cuts in the middle of what times there are, replays windows as what was cut out reads, repairs, merges with itself; what comes of it is read. What was
/// repaired is whole. Never panics, and takes time and memory in proportion to the words that the bytes stand for.
pub fn any_recording(bytes: &[u8]) {
    let replayed = |bytes: &[u8]| {
        let mut options = Options { jobs: 1, most_paths: 1000, ..Options::default() };
        read(bytes).replay(&mut options).ok()
    };
    let mut quiet = |_| {};
    let bounds = teeperf_profile::info::Info::check(read(bytes), &mut quiet)
        .ok()
        .and_then(|info| info.bounds());
    for (since, until) in [(None, Some(0.5)), (Some(0.5), None), (Some(0.2), Some(0.7))] {
        let [since, until] = [since, until].map(|share| share.map(When::Share));
        let wanted = Cut { since, until, bounds, ..Cut::default() };
        let out = Memory::default();
        if cut(read(bytes), &wanted, out.output(), "out", &mut quiet).is_ok() {
            let cut = replayed(&out.bytes()).map(|profile| profile.health.events);
            let mut options =
                Options { jobs: 1, most_paths: 1000, lengths: true, ..Options::default() };
            let window = Window::new(read(bytes), wanted)
                .ok()
                .and_then(|mut window| packets::replay(&mut window, &mut options).ok());
            assert_eq!(window.map(|profile| profile.health.events), cut);
        }
    }
    let out = Memory::default();
    if repair(read(bytes), out.output(), "out", &mut quiet).is_ok() {
        let again = Memory::default();
        let repaired = repair(read(&out.bytes()), again.output(), "out", &mut quiet);
        assert!(repaired.is_ok());
    }
    // Twice is refused where processes can be told apart.
    for count in [1, 2] {
        let inputs = (0..count).map(|_| Input { recording: read(bytes), name: "bytes".into() });
        let out = Memory::default();
        if merge(inputs.collect(), out.output(), "out", &mut quiet).is_ok() {
            replayed(&out.bytes());
        }
    }
    if let Ok(recording) = pack::open(Cursor::new(bytes.to_vec())) {
        let _ = io::copy(&mut recording.take(1 << 20), &mut io::sink());
    }
    let _ = pack::unpack_from(bytes, pack::Of::Any, 1 << 20, &mut Unpacked::default(), &mut quiet);
}
