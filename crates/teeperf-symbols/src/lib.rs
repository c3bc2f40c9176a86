//! Addresses of ELF files to functions, files and lines.
//!
//! * [`Functions`]: the function table of an executable or shared library, from its own
//!   symbol table, a separate debug file, or what the dynamic linker sees.
//! * [`Lines`]: where functions are defined, and from where they call others, from DWARF.
//! * [`Frames`]: what is at an address, with what was inlined there.
//! * [`Loaded`]: what a loader puts where: code, and variables by name.
//! * [`Unwinding`]: what it takes to find callers on a stack.
//! * [`called()`]: which functions a function's code calls, by name.
//! * [`tail_callers()`]: hooked functions that end with calls which lead back to them.
//! * [`Sources`]: the text of source files; [`Shown`]: which of them others may see.
//! * `demangle`: names as programmers write them; `spellings`: what else they write.
//!
//! Every address here is the file's own virtual address: an address in a process less the
//! load bias of its module. Knows nothing of processes, recordings or words.
//!
//! Files are hostile: whatever stands in them, there is an answer or an [`Error`] that names
//! the file, never a panic, and no allocation is larger than the file warrants. Files may
//! also change while they are read. They are read into memory, not mapped, so that a file
//! that is cut short gives an error where a mapped one would end the process with `SIGBUS`;
//! the one exception stands in [`Lines`]. The same holds for the files with debug information that a file names.

pub mod archive;
mod called;
mod calls;
mod debuginfod;
mod decompress;
mod definitions;
mod demangle;
mod error;
mod frames;
mod functions;
mod image;
mod information;
mod inlined;
mod lines;
mod loaded;
mod memory;
mod plt;
mod search;
mod sections;
mod shown;
mod sites;
mod sources;
mod spellings;
mod table;
mod tail_calls;
mod unpacked;
mod unwinding;
pub mod vdso;

pub use called::{called, called_from_bytes};
pub use debuginfod::Debuginfod;
pub use demangle::demangle;
pub use error::Error;
pub use frames::{Frame, Frames};
pub use functions::{Functions, Origin, Symbol};
pub use lines::{CallSite, Lines, Location};
pub use loaded::{Loaded, Part};
pub use memory::is_memory;
pub use search::{Kept, Search, debug_file};
pub use shown::{Refusal, Shown};
pub use sources::{MAX_SOURCES, Source, Sources};
pub use spellings::{spellings, without_copy};
pub use tail_calls::{TailCaller, tail_callers, tail_callers_from_bytes};
pub use unpacked::Unpacked;
pub use unwinding::{Rbx, Table, Unwinding};
