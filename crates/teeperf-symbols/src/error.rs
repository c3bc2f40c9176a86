//! What can be wrong with a file, always with its name.

use std::path::{Path, PathBuf};

/// Why a file gave no symbols.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system did not let it be read.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is a folder, a pipe or a device.
    #[error("{path}: not a regular file", path = path.display())]
    NotAFile {
        /// Which file.
        path: PathBuf,
    },
    /// The archive that is read has no such file.
    #[error("{path}: not in the archive", path = path.display())]
    NotInArchive {
        /// Which file.
        path: PathBuf,
    },
    /// It is no ELF executable or shared library.
    #[error("{path}: {what}", path = path.display())]
    NotAModule {
        /// Which file.
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// It contradicts itself, or was cut short.
    #[error("{path}: offset {offset:#x}: {what}", path = path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Where in the file, bytes from its start.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// It is another build than the one asked for.
    #[error(
        "{path}: its build-id is {found}, not {expected}: the file has been replaced since",
        path = path.display(),
        found = found.as_ref().map_or_else(|| "missing".to_owned(), |id| hex(id)),
        expected = hex(expected)
    )]
    BuildId {
        /// Which file.
        path: PathBuf,
        /// What was asked for.
        expected: Vec<u8>,
        /// What it has.
        found: Option<Vec<u8>>,
    },
    /// Its debug information cannot be read.
    #[error("{path}: debug information: {source}", path = path.display())]
    Dwarf {
        /// Which file.
        path: PathBuf,
        /// What the DWARF reader said.
        source: gimli::Error,
    },
}

impl Error {
    pub(crate) fn malformed(path: &Path, offset: u64, what: &'static str) -> Self {
        Self::Malformed { path: path.to_owned(), offset, what }
    }
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
