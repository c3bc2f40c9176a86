//! Samples: from interrupted states to call paths.
//!
//! * [`Decoder`]: the samples of a packet.

mod decode;

pub use decode::{Decoder, SamplesError};
