//! A recording: the way in. Gives its packets one by one, or replays it whole.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use teeperf_wire::packet::{MAJOR, MINOR};

use crate::contents::{self, Body, Packet};
use crate::error::Error;
use crate::framing::{Framing, RawPacket};
use crate::model::Profile;
use crate::packets::{self, Options, Packets};

/// A recording in a file or a stream.
pub struct Recording<R> {
    framing: Framing<R>,
    name: String,
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

    /// The profile; see [`packets::replay`].
    pub fn replay(mut self, options: &mut Options<'_>) -> Result<Profile, Error> {
        packets::replay(&mut self, options)
    }
}

impl<R: Read> Packets for Recording<R> {
    fn name(&self) -> &str {
        &self.name
    }

    fn next_packet(&mut self) -> Result<Option<Packet<'_>>, Error> {
        Recording::next_packet(self)
    }

    fn offset(&self) -> u64 {
        self.framing.offset()
    }

    fn take_warnings(&mut self) -> Vec<String> {
        Recording::take_warnings(self)
    }
}

/// Whether a recording is of a later minor version than this reader, which then skips what
/// it does not know.
pub(crate) fn is_later(major: u16, minor: u16) -> bool {
    major == MAJOR && minor > MINOR
}
