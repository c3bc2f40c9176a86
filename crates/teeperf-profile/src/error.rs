//! Why a recording cannot be read at all. What is merely damaged is no error: it is
//! skipped, and said in [`crate::model::Health::warnings`].

use std::io;

/// A recording that cannot be read. Names the file, and the offset where there is one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened.
    #[error("{name}: cannot be opened: {source}")]
    Open {
        /// Name of the file.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// The first read failed; later ones end a recording with a warning.
    #[error("{name}: cannot be read at offset {offset}: {source}")]
    Read {
        /// Name of the file.
        name: String,
        /// Bytes read before.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// There is nothing in it.
    #[error("{name}: the file is empty: nothing was recorded into it, or it was not written yet")]
    Empty {
        /// Name of the file.
        name: String,
    },
    /// No packet begins in the first bytes.
    #[error("{name}: not a recording of teeperf: no packet in its first {searched} bytes")]
    NotARecording {
        /// Name of the file.
        name: String,
        /// Bytes looked at.
        searched: u64,
    },
    /// The system has no thread or no memory to work with.
    #[error("{name}: replay cannot begin: {source}")]
    Workers {
        /// Name of the file.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// It cannot be read in the way that was asked for.
    #[error("{name}: {why}")]
    Refused {
        /// Name of the file.
        name: String,
        /// What stands against it.
        why: String,
    },
    /// Made by a later teeperf, in a format that this one cannot know.
    #[error(
        "{name}: offset {offset}: recording format {major}.{minor} is newer than this \
         teeperf reads ({}.x); read it with a newer one",
        teeperf_wire::packet::MAJOR
    )]
    Version {
        /// Name of the file.
        name: String,
        /// Offset of the start packet.
        offset: u64,
        /// Major version of the recording.
        major: u16,
        /// Minor version of the recording.
        minor: u16,
    },
}
