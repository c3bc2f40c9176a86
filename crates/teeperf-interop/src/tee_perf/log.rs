//! A log as packets: read in pieces from its beginning to its end, whatever its size.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read};

use teeperf_profile::contents::{Body, End, Loss, Packet, Process, Start, Symbols};
use teeperf_profile::{Error as ReplayError, Packets};
use teeperf_wire::packet::{MAJOR, MINOR, kind};

use super::header::{HEADER, Header};
use super::{Error, is_log};
use crate::calls::{Calls, Event, PROCESS, Program};

/// Bytes asked of the file at once.
const STEP: usize = 1 << 20;
/// Bit of the first number that tells a return from a call, and measurement on from off.
const TOP: u64 = 1 << 63;
/// Latest time that recordings can tell. No counter comes there within centuries.
const LATEST: u64 = (1 << 62) - 1;
/// The function whose address the header has.
const MAP_INFO: &str = "__profiler_map_info";
/// Bits of an address within a page: programs are loaded at whole pages.
const IN_PAGE: u64 = 0xfff;

/// What the log does not say.
#[derive(Default)]
pub struct Options {
    /// The program that wrote it.
    pub program: Option<Program>,
    /// How much higher than its ELF file says the program was loaded, where the file cannot tell.
    pub bias: Option<u64>,
    /// How often the counter counts in a second, where that is known.
    pub counter_hz: Option<u64>,
}

/// A log.
pub struct Log<R> {
    name: String,
    stream: R,
    header: Header,
    calls: Calls,
    /// Path of the program; empty when it is not known.
    program: String,
    counter_hz: Option<u64>,
    stage: Stage,
    /// Bytes read and not yet used: `buffer[at..end]`.
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    /// Bytes of the file used.
    offset: u64,
    /// Entries not read yet.
    left: u64,
    /// Entries that were never written.
    unwritten: u64,
    symbols: VecDeque<Vec<u8>>,
    /// The packet given out last, where it has to stand somewhere.
    payload: Vec<u8>,
    sequence: u32,
    warnings: Vec<String>,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Start,
    Process,
    Entries,
    Threads,
    Symbols,
    Loss,
    End,
    Nothing,
}

impl<R: Read> Log<R> {
    /// Reads the header; `name` is for messages.
    ///
    /// # Errors
    ///
    /// When there is no whole header, or one of a version that is not known.
    pub fn new(name: &str, mut stream: R, options: Options) -> Result<Self, Error> {
        let mut start = Vec::with_capacity(HEADER);
        let outcome = (&mut stream).take(HEADER as u64).read_to_end(&mut start);
        outcome.map_err(|source| Error::Read {
            name: name.to_owned(),
            offset: start.len() as u64,
            source,
        })?;
        let header = Header::read(name, &start)?;
        let mut warnings = Vec::new();
        if !is_log(&start) {
            warnings.push("the header is damaged: it is not one that TEE-Perf writes".into());
        }
        let path = options.program.as_ref().map(|program| program.path().display().to_string());
        let program = place(options.program, options.bias, &header, &mut warnings);
        Ok(Self {
            name: name.to_owned(),
            stream,
            header,
            calls: Calls::new(program),
            program: path.unwrap_or_default(),
            counter_hz: options.counter_hz,
            stage: Stage::Start,
            buffer: Vec::new(),
            at: 0,
            end: 0,
            offset: HEADER as u64,
            left: header.begun.min(header.room()),
            unwritten: 0,
            symbols: VecDeque::new(),
            payload: Vec::new(),
            sequence: 0,
            warnings,
        })
    }

    /// Takes entries until there is a chunk. Nothing when there are no more entries.
    fn entries(&mut self) {
        loop {
            let is_ready = match self.header.has_threads {
                true => self.take_entries::<24>(),
                false => self.take_entries::<16>(),
            };
            if is_ready {
                return;
            }
            if self.left == 0 || !self.fill() {
                self.note_end();
                self.calls.finish();
                self.stage = Stage::Threads;
                return;
            }
        }
    }

    /// Takes those in the buffer; whether there is a chunk.
    fn take_entries<const N: usize>(&mut self) -> bool {
        let (entries, _) = self.buffer[self.at..self.end].as_chunks::<N>();
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let mut taken = 0;
        let mut is_ready = false;
        for entry in entries.iter().take(most) {
            let (numbers, _) = entry.as_chunks::<8>();
            let number = |at: usize| u64::from_le_bytes(numbers[at]);
            let (first, address) = (number(0), number(1));
            let time = (first & !TOP).min(LATEST);
            let offset = self.offset + (taken * N) as u64;
            taken += 1;
            if address == 0 {
                if first == 0 {
                    self.unwritten += 1;
                } else {
                    self.calls.switch(first & TOP != 0, time);
                }
                continue;
            }
            let thread = if N == 24 { number(2) } else { self.header.pid };
            let is_return = first & TOP != 0;
            if self.calls.take(Event { offset, thread, address, is_return, time }) {
                is_ready = true;
                break;
            }
        }
        self.at += taken * N;
        self.offset += (taken * N) as u64;
        self.left -= taken as u64;
        is_ready
    }

    /// Reads on; false when there is no whole entry more.
    fn fill(&mut self) -> bool {
        self.buffer.resize(STEP, 0);
        self.buffer.copy_within(self.at..self.end, 0);
        (self.at, self.end) = (0, self.end - self.at);
        while self.end < STEP {
            match self.stream.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(bytes) => self.end += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let offset = self.offset + self.end as u64;
                    self.warnings.push(format!("offset {offset}: cannot be read on: {error}"));
                    break;
                }
            }
        }
        self.end as u64 >= self.header.entry()
    }

    fn note_end(&mut self) {
        let Header { begun, .. } = self.header;
        let room = self.header.room();
        if begun > room {
            self.warnings.push(format!(
                "the log was full: {begun} entries were begun, and there was room for {room}. What came later is missing; \
                 record with a larger log, or fewer functions"
            ));
        }
        if self.left > 0 {
            self.warnings.push(format!(
                "the file ends at {}, {} entries before the end of the log",
                self.offset + (self.end - self.at) as u64,
                self.left
            ));
        }
        self.warnings.extend(self.calls.warnings());
    }

    /// Calls and returns that are not there.
    fn lost(&self) -> u64 {
        let beyond = self.header.begun.saturating_sub(self.header.room());
        [beyond, self.left, self.calls.left_out()]
            .into_iter()
            .fold(self.unwritten, u64::saturating_add)
    }

    fn start(&self) -> Start {
        let rate = match self.counter_hz {
            Some(_) => "",
            None => ", of no known rate (--counter-hz says it)",
        };
        Start {
            version: Some((MAJOR, MINOR)),
            hz: self.counter_hz.unwrap_or(0),
            clock_reason: format!("software counter of TEE-Perf{rate}"),
            arguments: Some(self.program.clone())
                .filter(|path| !path.is_empty())
                .into_iter()
                .collect(),
            ..Start::default()
        }
    }

    fn process(&self) -> Process {
        Process {
            id: PROCESS,
            pid: u32::try_from(self.header.pid).unwrap_or(0),
            executable: self.program.clone(),
            ..Process::default()
        }
    }

    /// Where the next packet stands, its kind, and what it says.
    fn next(&mut self) -> Option<(u64, u16, Body<'_>)> {
        loop {
            match self.stage {
                Stage::Start => {
                    self.stage = Stage::Process;
                    return Some((0, kind::START, Body::Start(Box::new(self.start()))));
                }
                Stage::Process => {
                    self.stage = Stage::Entries;
                    return Some((0, kind::PROCESS, Body::Process(self.process())));
                }
                // Not with `if let`: what it gives out may be borrowed from here no longer than it is there.
                Stage::Entries if self.calls.has_chunk() => break,
                Stage::Entries => self.entries(),
                Stage::Threads if self.calls.has_chunk() => break,
                Stage::Threads => {
                    if let Some(thread) = self.calls.thread(|id| format!("{id:#x}")) {
                        return Some((self.offset, kind::THREAD, thread));
                    }
                    self.symbols = self.calls.symbols().into();
                    self.stage = Stage::Symbols;
                }
                Stage::Symbols => match self.symbols.pop_front() {
                    Some(payload) => {
                        self.payload = payload;
                        let symbols = Symbols::decode(&self.payload);
                        return Some((self.offset, kind::SYMBOLS, Body::Symbols(symbols)));
                    }
                    None => self.stage = Stage::Loss,
                },
                Stage::Loss => {
                    self.stage = Stage::End;
                    if self.lost() > 0 {
                        let loss = Loss { process: PROCESS, events: self.lost() };
                        return Some((self.offset, kind::LOSS, Body::Loss(loss)));
                    }
                }
                Stage::End => {
                    self.stage = Stage::Nothing;
                    let time = self.calls.end().max(self.header.counter.min(LATEST));
                    let end = End { time, ..End::default() };
                    return Some((self.offset, kind::END, Body::End(end)));
                }
                Stage::Nothing => return None,
            }
        }
        let (offset, body) = self.calls.chunk()?;
        Some((offset, kind::CHUNK, body))
    }
}

impl<R: Read> Packets for Log<R> {
    fn name(&self) -> &str {
        &self.name
    }

    fn next_packet(&mut self) -> Result<Option<Packet<'_>>, ReplayError> {
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        Ok(self.next().map(|(offset, kind, body)| Packet {
            offset,
            kind,
            sequence,
            length: 0,
            cut_at: None,
            payload: &[],
            body,
        }))
    }

    fn offset(&self) -> u64 {
        self.offset
    }

    fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }
}

/// The program, where it was loaded; nothing where that cannot be told.
fn place(
    program: Option<Program>,
    bias: Option<u64>,
    header: &Header,
    warnings: &mut Vec<String>,
) -> Option<Program> {
    let Some(program) = program else {
        warnings.push("there are only addresses: name the program with --elf".into());
        return None;
    };
    let path = program.path().display();
    let told = program.named(MAP_INFO).filter(|_| header.map_info != 0);
    let bias = match (bias, told) {
        (Some(bias), _) => bias,
        (None, Some(address)) => {
            let bias = header.map_info.wrapping_sub(address);
            if bias & IN_PAGE != 0 || (bias != 0 && !program.is_relocatable()) {
                warnings.push(format!(
                    "{MAP_INFO} is at {:#x} in the log, and at {address:#x} in {path}: it is not the program that was \
                     run, and names are wrong. Name that with --elf",
                    header.map_info
                ));
            }
            bias
        }
        (None, None) if !program.is_relocatable() => 0,
        (None, None) => {
            warnings.push(format!(
                "{path} has no symbol {MAP_INFO}, so that it is not known where it was loaded, and there are only \
                 addresses: name the file with all its symbols, or say with --bias how much higher addresses are \
                 than the file's"
            ));
            return None;
        }
    };
    Some(program.loaded_at(bias))
}
