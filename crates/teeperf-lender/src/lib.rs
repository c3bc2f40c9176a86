//! What the libraries share that are preloaded into programs with two worlds: clients of trusted applications, hosts of
//! enclaves.
//!
//! Each thread has an arena ([`teeperf_wire::arena`]) from the recorder. What the program calls of the other world are events in
//! it, and it is handed on with the call: code in the other world that was built with hooks goes on in the same chunk, so that
//! one stack leads from one world into the other.
//!
//! * [`thread`]: a thread's arena; [`recorder`]: where that is from; [`windows`]: which sites are whose; [`modules`]: the
//!   program's own code, where it is in stacks; [`rights`]: what the environment may say, and whose recorder is taken;
//!   [`system`]: what is asked of the C library.
//!
//! Without a recorder nothing is done.

pub mod modules;
pub mod recorder;
pub mod rights;
pub mod system;
pub mod thread;
pub mod windows;

/// Tells the program's user, on its standard error, which the program may have closed.
pub fn tell(text: std::fmt::Arguments<'_>) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "teeperf: {text}");
}
