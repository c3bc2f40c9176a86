//! Why a file cannot be read at all, with its name and where in it. What is merely damaged is said in warnings.

/// What keeps a file from being read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system did not let it be read.
    #[error("{name}: cannot be read at offset {offset}: {source}")]
    Read {
        /// Which file.
        name: String,
        /// Where.
        offset: u64,
        /// What the system said.
        source: std::io::Error,
    },
    /// It does not begin as one does, or ends before its head does.
    #[error("{name}: offset {offset}: {what}")]
    Head {
        /// Which file.
        name: String,
        /// Where.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
}
