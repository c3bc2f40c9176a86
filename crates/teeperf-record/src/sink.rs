//! What every part of the drain writes to: packets, counters, and the lines to the ticker's
//! page and the symbols' thread.

use crate::clock::{ClockPage, Time};
use crate::encode::Encoder;
use crate::escapes::Module;
use crate::filter::desk::{FilterDesk, Job};
use crate::inside::path_at;
use crate::missing::Ledger;
use crate::packets::{self, Level};
use crate::segment::Copy;
use crate::stats::Stats;
use crate::symbols::{Symbols, WindowId};
use crate::writer::PacketWriter;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use teeperf_wire::body::chunk;
use teeperf_wire::packet::{HEADER_SIZE, kind};
use teeperf_wire::shared::ClockKind;

/// The recording under way. After an output error everything goes on, into nothing.
pub(crate) struct Sink {
    writer: PacketWriter,
    encoder: Encoder,
    /// The first error of the output.
    error: Option<io::Error>,
    /// Chunks that were counted, and are not in the output yet.
    on_their_way: VecDeque<OnItsWay>,
    /// Private memory for one chunk, lent to whoever reads one.
    pub(crate) copy: Option<Copy>,
    pub(crate) page: Arc<ClockPage>,
    pub(crate) time: Time,
    pub(crate) clock: ClockKind,
    pub(crate) stats: Arc<Stats>,
    pub(crate) symbols: Symbols,
    /// Where there may be filters.
    pub(crate) filters: Option<FilterDesk>,
    /// Who announces what, where somebody looks for the rest.
    pub(crate) ledger: Option<Arc<Ledger>>,
    /// For the user, besides the recording.
    notices: Vec<String>,
}

/// A chunk's payload that waits for its turn.
#[derive(Debug, Default)]
pub(crate) struct Encoded {
    payload: Vec<u8>,
    events: u64,
}

/// A chunk in the writer's buffer.
struct OnItsWay {
    /// Bytes of the recording behind it.
    end: u64,
    events: u64,
}

/// Most notices kept for the user; all are in the recording.
const MAX_NOTICES: usize = 100;

impl Sink {
    pub(crate) fn new(
        writer: PacketWriter,
        page: Arc<ClockPage>,
        time: Time,
        clock: ClockKind,
        stats: Arc<Stats>,
        symbols: Symbols,
    ) -> io::Result<Self> {
        let encoder = Encoder::new()?;
        let copy = Some(Copy::new());
        let (error, notices) = (None, Vec::new());
        let on_their_way = VecDeque::new();
        Ok(Self {
            writer,
            encoder,
            error,
            on_their_way,
            copy,
            page,
            time,
            clock,
            stats,
            symbols,
            filters: None,
            ledger: None,
            notices,
        })
    }

    /// A process has opened a window for a module.
    pub(crate) fn open(&self, window: WindowId, pid: u32, mut module: Module) {
        if module.path.is_empty() {
            module.path = path_at(pid, module.address).unwrap_or_default();
        }
        if let Some(filters) = &self.filters {
            let process = window.process;
            filters.ask(Job::Opened { pid, process, module: module.clone() });
        }
        if let Some(ledger) = &self.ledger {
            ledger.announced(pid, &module.path);
        }
        self.symbols.open(window, pid, module);
    }

    /// Writes a packet.
    pub(crate) fn packet(&mut self, kind: u16, payload: &[u8]) {
        let result = self.writer.packet(kind, payload);
        self.note(result);
    }

    /// Encodes a chunk, to be written now or later. Returns what [`Encoder::chunk`] does.
    pub(crate) fn encode(&mut self, header: chunk::Header, words: &[u32]) -> Option<&[u32]> {
        self.stats.words.add(words.len() as u64);
        self.encoder.chunk(header, words)
    }

    /// Writes the chunk that was encoded last, which has so many events.
    pub(crate) fn write_encoded(&mut self, events: u64) {
        self.count(self.encoder.payload().len(), events);
        let result = self.writer.packet(kind::CHUNK, self.encoder.payload());
        self.note(result);
    }

    /// The chunk that was encoded last, to be kept.
    pub(crate) fn take_encoded(&self, events: u64) -> Encoded {
        Encoded { payload: self.encoder.payload().to_vec(), events }
    }

    /// Writes chunks that were kept.
    pub(crate) fn write_kept(&mut self, kept: &mut Vec<Encoded>) {
        for Encoded { payload, events } in kept.drain(..) {
            self.count(payload.len(), events);
            self.packet(kind::CHUNK, &payload);
        }
    }

    /// Counts a chunk that is written next.
    fn count(&mut self, payload: usize, events: u64) {
        self.stats.chunks.add(1);
        self.stats.events.add(events);
        let end = self.writer.bytes() + (HEADER_SIZE + payload) as u64;
        self.on_their_way.push_back(OnItsWay { end, events });
    }

    /// Tells the user something: in the recording, and where that is not complete afterwards.
    pub(crate) fn notice(&mut self, level: Level, text: String, process: Option<u32>) {
        self.packet(kind::NOTICE, &packets::notice(level, &text, process));
        if level == Level::Warning && self.notices.len() < MAX_NOTICES {
            self.notices.push(text);
        }
    }

    /// Tells of so many processes with hooks that are not in the recording.
    pub(crate) fn tell_unrecorded(&mut self, text: String, processes: u32) {
        self.packet(kind::NOTICE, &packets::unrecorded(&text, processes));
        if self.notices.len() < MAX_NOTICES {
            self.notices.push(text);
        }
    }

    /// Writes what has waited long.
    pub(crate) fn flush_old(&mut self) {
        let result = self.writer.flush_old();
        self.note(result);
    }

    /// Writes everything.
    pub(crate) fn flush(&mut self) {
        let result = self.writer.flush();
        self.note(result);
    }

    /// Bytes of the recording.
    pub(crate) fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    /// Whether names and the end can still be written: of a disk that is full, a part is kept for them.
    pub(crate) fn takes_names(&self) -> bool {
        self.writer.takes_names()
    }

    /// Whether the output has failed.
    pub(crate) fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    /// The output's error, for whoever does not begin at all because of it; one that is borne
    /// stays, and ends the recording.
    pub(crate) fn take_error_unless(
        &mut self,
        is_borne: impl FnOnce(&io::Error) -> bool,
    ) -> Option<io::Error> {
        self.error.take_if(|error| !is_borne(error))
    }

    /// The output's error, if it had one, and what the user should know.
    pub(crate) fn close(self) -> (Option<io::Error>, Vec<String>) {
        (self.error, self.notices)
    }

    fn note(&mut self, result: io::Result<()>) {
        self.stats.bytes.set(self.writer.bytes());
        let taken = self.writer.taken();
        while self.on_their_way.front().is_some_and(|chunk| chunk.end <= taken) {
            self.on_their_way.pop_front();
        }
        if result.is_err() {
            for chunk in self.on_their_way.drain(..) {
                self.stats.chunks.take_back(1);
                self.stats.events.take_back(chunk.events);
            }
        }
        if let (Err(error), None) = (result, &self.error) {
            self.error = Some(error);
        }
    }
}
