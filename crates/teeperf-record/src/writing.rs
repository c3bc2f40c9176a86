//! What writes a recording, for those who make one of another: packets into an output, fields into
//! payloads, words into chunks.

pub use crate::encode::Encoder;
pub use crate::output_file::{is_locked, lock};
pub use crate::packets::{Level, Payload, notice};
pub use crate::writer::{Output, PacketWriter};
