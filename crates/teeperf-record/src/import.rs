//! A recording of what code without a system has summed, and handed over in pieces ([`teeperf_wire::piece`]).
//!
//! `stream`: pieces found in files, among whatever else, by their `checksums`; `twice`: those that came before;
//! `rounds`: pieces of a round made into packets; `image`: the images that they are of.
//!
//! Believes nothing: what cannot be read is told, and all else is kept. Work and memory are in proportion to the
//! files.

mod checksums;
mod image;
mod rounds;
mod stream;
mod twice;

use crate::drain::Event;
use crate::packets::{self, Level, Payload};
use crate::symbols::Symbols;
use crate::writer::{Output, PacketWriter};
use image::Images;
use rounds::Rounds;
use std::io;
use std::sync::mpsc::channel;
use stream::Stream;
use teeperf_symbols::Search;
use teeperf_wire::body::{end, start};
use teeperf_wire::packet::{MAJOR, MINOR, kind};
use teeperf_wire::piece::Piece;
use teeperf_wire::shared::ClockKind;
use twice::Seen;

/// A file with pieces, or with lines of a console that have some.
#[derive(Debug)]
pub struct File {
    /// For people.
    pub name: String,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// What is to be imported, and how.
#[derive(Debug)]
pub struct Import {
    /// In the order in which they were written.
    pub files: Vec<File>,
    /// Clock units in a second, for pieces that do not say; without, these have no times.
    pub hz: Option<u64>,
    /// Where names of functions are looked for.
    pub search: Search,
    /// What writes the recording.
    pub writer: String,
    /// Where it goes.
    pub output: Output,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Imported {
    /// Pieces that were read.
    pub pieces: u64,
    /// Threads that they are of.
    pub threads: u64,
    /// Calls in them.
    pub calls: u64,
    /// What could not be read, or is not there.
    pub damage: Vec<String>,
    /// What else the user should know.
    pub notices: Vec<String>,
}

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// No file has a piece that can be read.
    #[error("there are no pieces in {files}{}", damage.first().map_or(String::new(), |first| format!("; {first}")))]
    NoPieces {
        /// Names of all.
        files: String,
        /// What is wrong.
        damage: Vec<String>,
    },
    /// The recording cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
}

/// Most messages of one kind; what is more is counted.
const MOST_TOLD: usize = 100;

/// Imports; meanwhile says how many bytes of the files have been searched for pieces.
///
/// # Errors
///
/// When there is nothing to import, or nowhere to write it. What is damaged is told in what is returned.
pub fn import(import: Import, progress: &mut dyn FnMut(u64)) -> Result<Imported, ImportError> {
    let mut told = Imported::default();
    let mut streams: Vec<Stream<'_>> = Vec::new();
    let mut before = 0;
    for file in &import.files {
        streams.push(Stream::of(file, &mut |at| progress(before + at as u64)));
        before += file.bytes.len() as u64;
    }
    let mut found: Vec<(usize, usize, Piece<'_>)> = Vec::new();
    let mut seen = Seen::default();
    for (number, stream) in streams.iter().enumerate() {
        let pieces = seen.leave_out(number, stream, stream.pieces(&mut told.damage), &mut told);
        found.extend(pieces.into_iter().map(|(at, piece)| (number, at, piece)));
        // What is gone through once more needs no other figure.
        progress(before);
    }
    if found.is_empty() {
        let files: Vec<&str> = import.files.iter().map(|file| file.name.as_str()).collect();
        return Err(ImportError::NoPieces { files: files.join(", "), damage: told.damage });
    }
    let images = Images::of(found.iter().map(|(.., piece)| piece));
    let clock = Clock::of(found.iter().map(|(.., piece)| piece), import.hz);
    let mut rounds = Rounds::new(&images, clock);
    for (number, at, piece) in &found {
        let place = || streams[*number].place(*at);
        rounds.add(piece, &place, &mut told);
    }
    rounds.end(&mut told);
    told.pieces = found.len() as u64;
    told.threads = rounds.threads();
    let mut untimed = found.iter().map(|(.., piece)| &piece.header).filter(|header| header.hz == 0);
    if import.hz.is_none() && untimed.any(|header| header.end > header.begin) {
        told.notices.push(
            "some pieces do not say how fast their clock goes: they have calls without times, unless --hz says it".into(),
        );
    }
    cut(&mut told.damage);
    cut(&mut told.notices);
    let writer = PacketWriter::open(import.output)?;
    write(writer, &import.writer, import.search, &images, clock, &rounds, &told)?;
    Ok(told)
}

fn cut(told: &mut Vec<String>) {
    if told.len() > MOST_TOLD {
        let more = told.len() - MOST_TOLD;
        told.truncate(MOST_TOLD);
        told.push(format!("and {more} more of that kind"));
    }
}

/// What the recording's clock is.
#[derive(Clone, Copy, Debug)]
struct Clock {
    /// Units in a second; 0: nobody knows, and there are no times.
    hz: u64,
    /// Of pieces that do not say.
    usual: Option<u64>,
}

impl Clock {
    /// That of the first piece that says, so that its times stay as they are.
    fn of<'a>(mut pieces: impl Iterator<Item = &'a Piece<'a>>, usual: Option<u64>) -> Self {
        let said = pieces.find_map(|piece| Some(piece.header.hz).filter(|&hz| hz > 0));
        Self { hz: said.or(usual).unwrap_or(0), usual }
    }

    /// Times of a piece in this clock's units.
    fn times(self, piece: &Piece<'_>) -> impl Fn(u64) -> u64 + use<> {
        let hz = if piece.header.hz > 0 { piece.header.hz } else { self.usual.unwrap_or(0) };
        move |units| match hz {
            0 => 0,
            same if same == self.hz => units,
            hz => {
                let scaled = u128::from(units) * u128::from(self.hz) / u128::from(hz);
                u64::try_from(scaled).unwrap_or(u64::MAX)
            }
        }
    }
}

fn write(
    mut writer: PacketWriter,
    name: &str,
    search: Search,
    images: &Images,
    clock: Clock,
    rounds: &Rounds<'_>,
    told: &Imported,
) -> io::Result<()> {
    let (begin, end) = rounds.span();
    let (kind_of_clock, why) = match clock.hz {
        0 => (ClockKind::Tick, &b"no times were told"[..]),
        _ => (ClockKind::Cycle, &b"a counter of the image's own"[..]),
    };
    let first = Payload::default()
        .bytes(start::VERSION, &[MAJOR.to_le_bytes(), MINOR.to_le_bytes()].concat())
        .bytes(start::WRITER, name.as_bytes())
        .number(start::CLOCK, kind_of_clock as u64)
        .number(start::HZ, clock.hz.max(1))
        .bytes(start::CLOCK_REASON, why)
        .number(start::CLOCK_START, begin)
        .list(start::ARGUMENT, images.names());
    writer.packet(kind::START, &first.finish())?;
    let words = images.write(&mut writer, begin, kind_of_clock)?;
    for (kind, payload) in rounds.packets() {
        writer.packet(*kind, payload)?;
    }
    let notices = told.damage.iter().map(|text| (Level::Warning, text));
    for (level, text) in notices.chain(told.notices.iter().map(|text| (Level::Information, text))) {
        writer.packet(kind::NOTICE, &packets::notice(level, text, None))?;
    }
    if !search.images.is_empty() {
        write_symbols(&mut writer, search, images)?;
    }
    images.end(&mut writer, end)?;
    let last = Payload::default().number(end::TIME, end).number(end::WORDS, words);
    writer.packet(kind::END, &last.finish())?;
    writer.flush()
}

/// Symbols of what was called, from the files that the user has named.
fn write_symbols(writer: &mut PacketWriter, search: Search, images: &Images) -> io::Result<()> {
    let (answers, inbox) = channel();
    let symbols = Symbols::start(search, answers)?;
    images.ask(&symbols);
    symbols.finish();
    for answer in inbox {
        match answer {
            Event::Packet(kind, payload) => writer.packet(kind, &payload)?,
            Event::Notice { level, text, process } => {
                writer.packet(kind::NOTICE, &packets::notice(level, &text, Some(process)))?;
            }
            Event::SymbolsDone => break,
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
