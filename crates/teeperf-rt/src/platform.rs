//! What the runtime asks of the system it runs on. One file for each system; nothing
//! outside knows which. None of it allocates, takes a lock, or touches the C library's
//! state (`errno` included): hooks call it anywhere, signal handlers included.

mod linux;
pub(crate) use linux::*;
