//! Why a file is not read or written, always with its name and where in it.

/// What keeps a file from being read, or a profile from being written as one.
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
    /// There is nothing in it.
    #[error("{name}: offset 0: the file is empty")]
    Empty {
        /// Which file.
        name: String,
    },
    /// It begins otherwise.
    #[error(
        "{name}: offset 0: no gmon file: it does not begin with `gmon`. If it is of the old BSD form, \
         `gprof -s PROGRAM {name}` rewrites it as gmon.sum, which can be read"
    )]
    NotGmon {
        /// Which file.
        name: String,
    },
    /// It ends before its first record.
    #[error("{name}: offset {length}: the file ends in its header, which has 20 bytes")]
    Header {
        /// Which file.
        name: String,
        /// Its length.
        length: usize,
    },
    /// It was written by the dynamic linker.
    #[error(
        "{name}: offset 4: written by LD_PROFILE, in a form of its own: `sprof LIBRARY {name}` reads it"
    )]
    Sprof {
        /// Which file.
        name: String,
    },
    /// Neither byte order makes a known version of it.
    #[error("{name}: offset 4: version {version:#x} is not known; 1 is the only one there is")]
    Version {
        /// Which file.
        name: String,
        /// The version, with its first byte as the least.
        version: u32,
    },
    /// It is from another program.
    #[error(
        "{name}: written by a program that is {file}; {elf} is {program}. Name the program that wrote it"
    )]
    OtherProgram {
        /// Which file.
        name: String,
        /// How its numbers stand.
        file: super::Layout,
        /// The ELF file.
        elf: String,
        /// How numbers stand there.
        program: super::Layout,
    },
    /// No file of this kind is that large.
    #[error("{name}: offset {limit}: larger than any gmon file; what follows is not read")]
    TooLarge {
        /// Which file.
        name: String,
        /// Bytes that may be.
        limit: u64,
    },
    /// The profile has no functions of that module.
    #[error("nothing of {module} was called{}", but_of(.others))]
    NoModule {
        /// Which module.
        module: String,
        /// Those of which something was.
        others: Vec<String>,
    },
    /// The name does not say which.
    #[error("several modules are called {module}: {}. Name one by its path", .paths.join(", "))]
    SeveralModules {
        /// Their name.
        module: String,
        /// Their paths.
        paths: Vec<String>,
    },
    /// Nothing says how wide addresses are.
    #[error("how wide the addresses of {module} are its file alone says: name that with --elf")]
    NoLayout {
        /// Which module.
        module: String,
    },
    /// The file is not that of the image, or was stripped.
    #[error(
        "{elf}: the functions of {module} are not there: name the file that ran, with its symbols, \
         teeperf_anchor among them"
    )]
    OtherImage {
        /// The ELF file.
        elf: String,
        /// The image.
        module: String,
    },
    /// The recording is of another build.
    #[error(
        "{elf}: its build-id is not that of the file that was recorded: it has been replaced since"
    )]
    OtherBuild {
        /// The ELF file.
        elf: String,
    },
    /// An address does not fit.
    #[error("{address:#x} is beyond the addresses of the program")]
    Address {
        /// Which address.
        address: u64,
    },
    /// The histogram would be too large.
    #[error("a histogram of this would be larger than any gmon file; use a lower rate")]
    TooManySamples,
}

fn but_of(modules: &[String]) -> String {
    match modules {
        [] => String::new(),
        modules => format!("; but of {}: name one of them", modules.join(", ")),
    }
}
