//! Why no recording came of it.

use std::io;

/// See the variants.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// What was to be read cannot be.
    #[error(transparent)]
    Read(#[from] teeperf_profile::Error),
    /// The new recording cannot be written.
    #[error("cannot write {name}: {source}")]
    Write {
        /// Where it was to go.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// The system refuses memory.
    #[error("there is no memory: {0}")]
    Memory(io::Error),
    /// It cannot be done with this recording.
    #[error("{0}")]
    Refused(String),
}
