//! A recording: the way in. Gives its packets one by one, or replays it whole.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use teeperf_symbols::Search;
use teeperf_wire::packet::{MAJOR, MINOR};

use crate::contents::{self, Body, Packet};
use crate::error::Error;
use crate::finish::Gathered;
use crate::framing::{Framing, RawPacket};
use crate::model::Profile;
use crate::replay::{self, Settings};

/// Chunks that are summarised at once. More of them make less work twice, fewer take less
/// memory and share better among workers.
const BATCH_CHUNKS: usize = 128;
/// Call paths of a profile, at most, where [`Options::most_paths`] says nothing else. Each takes
/// some hundred bytes of memory.
pub const MAX_PATHS: usize = 1 << 22;

/// A recording in a file or a stream.
pub struct Recording<R> {
    framing: Framing<R>,
    name: String,
}

/// How to replay.
#[derive(Default)]
pub struct Options<'a> {
    /// Threads that work; 0: as many as there are processors.
    pub jobs: usize,
    /// Called now and then with what was done so far.
    pub progress: Option<&'a mut dyn FnMut(Progress)>,
    /// Leave the cost of hooks in the times.
    pub keep_hook_cost: bool,
    /// Tell functions apart by where their code stands, and say so in
    /// [`Function::place`](crate::model::Function::place); else those of one name and module are one.
    pub by_place: bool,
    /// Files of images whose symbols the recording may not have. Taken by replay.
    pub search: Search,
    /// Chunks in a batch; 0: what is best. The result does not depend on it.
    pub batch_chunks: usize,
    /// Most call paths, in all threads; 0: [`MAX_PATHS`]. Calls on later ones are counted by
    /// function, below `[too deep]`.
    pub most_paths: usize,
}

/// What replay has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the recording read.
    pub bytes: u64,
    /// Calls and returns replayed.
    pub events: u64,
}

impl Recording<File> {
    /// Opens a file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let name = path.as_ref().display().to_string();
        match File::open(&path) {
            Ok(file) => Ok(Self::from_read(file, name)),
            Err(source) => Err(Error::Open { name, source }),
        }
    }
}

impl<R: Read> Recording<R> {
    /// Of a stream, which is read in large pieces and never sought in; `name` is for messages.
    pub fn from_read(stream: R, name: impl Into<String>) -> Self {
        let name = name.into();
        Self { framing: Framing::new(stream, name.clone()), name }
    }

    /// The next packet, or nothing at the end. Refuses recordings of a later major version.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, Error> {
        let Some(raw) = self.framing.next()? else { return Ok(None) };
        let (body, cut_at) = contents::decode(raw.header.kind, raw.payload);
        if let Body::Start(start) = &body
            && let Some((major, minor)) = start.version
            && major > MAJOR
        {
            return Err(Error::Version {
                name: self.name.clone(),
                offset: raw.offset,
                major,
                minor,
            });
        }
        Ok(Some(Packet {
            offset: raw.offset,
            kind: raw.header.kind,
            sequence: raw.header.sequence,
            length: raw.header.length,
            cut_at,
            payload: raw.payload,
            body,
        }))
    }

    /// The next packet as it stands, whatever it is.
    pub fn next_raw(&mut self) -> Result<Option<RawPacket<'_>>, Error> {
        self.framing.next()
    }

    /// Bytes read so far.
    pub fn offset(&self) -> u64 {
        self.framing.offset()
    }

    /// What was skipped so far, and why. Takes the list.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.framing.warnings).into_vec()
    }

    /// The profile. What is damaged is left out and said in its health.
    pub fn replay(mut self, options: &mut Options<'_>) -> Result<Profile, Error> {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        let settings = Settings {
            jobs: if options.jobs == 0 { processors() } else { options.jobs },
            batch_chunks: if options.batch_chunks == 0 {
                BATCH_CHUNKS
            } else {
                options.batch_chunks
            },
            paths: if options.most_paths == 0 { MAX_PATHS } else { options.most_paths },
        };
        let mut gathered = Gathered::default();
        let name = self.name.clone();
        let fed = replay::run(settings, |driver| self.feed(driver, &mut gathered, options));
        let (fed, threads) = fed.map_err(|source| Error::Workers { name, source })?;
        fed?;
        gathered.warnings.append(&mut self.framing.warnings);
        let search = std::mem::take(&mut options.search);
        Ok(gathered.finish(threads, options.keep_hook_cost, options.by_place, search))
    }

    fn feed(
        &mut self,
        driver: &mut replay::Driver,
        gathered: &mut Gathered,
        options: &mut Options<'_>,
    ) -> Result<(), Error> {
        let mut told = 0;
        while let Some(packet) = self.next_packet()? {
            gathered.note_cut(&packet);
            match packet.body {
                Body::Chunk(header, data) => {
                    gathered.words += u64::from(header.count);
                    driver.chunk(packet.offset, header, data);
                }
                Body::Tree(header, data) => driver.tree(packet.offset, &header, data),
                Body::Arcs(header, data) => driver.arcs(packet.offset, &header, data),
                Body::Keyframe(keyframe) => driver.keyframe(packet.offset, &keyframe),
                Body::Filter(filter) if filter.process != 0 => driver.filter(&filter),
                body => gathered.take(packet.offset, body),
            }
            let bytes = self.framing.offset();
            if bytes - told >= 1 << 20
                && let Some(progress) = &mut options.progress
            {
                told = bytes;
                progress(Progress { bytes, events: driver.events() });
            }
        }
        if let Some(progress) = &mut options.progress {
            progress(Progress { bytes: self.framing.offset(), events: driver.events() });
        }
        Ok(())
    }
}

/// Whether a recording is of a later minor version than this reader, which then skips what
/// it does not know.
pub(crate) fn is_later(major: u16, minor: u16) -> bool {
    major == MAJOR && minor > MINOR
}
