//! Why a log cannot be read at all, with its name and where in it. What is merely damaged is said in
//! warnings.

/// What keeps a log from being read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system did not let it be read.
    #[error("{name}: cannot be read at offset {offset}: {source}")]
    Read {
        /// Which file.
        name: String,
        /// Bytes read before.
        offset: u64,
        /// What the system said.
        source: std::io::Error,
    },
    /// It ends before its first entry could begin.
    #[error("{name}: offset {length}: the file ends in the header of the log, which has 56 bytes")]
    Header {
        /// Which file.
        name: String,
        /// Its length.
        length: usize,
    },
    /// Its entries may be of any form.
    #[error(
        "{name}: offset 8: a log of TEE-Perf of version {version}, which is not known; 1 is the only one there is"
    )]
    Version {
        /// Which file.
        name: String,
        /// Its version.
        version: u16,
    },
}
