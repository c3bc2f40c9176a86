//! Samples that become one packet.

use teeperf_wire::body::sample::{HEADER, Header};
use teeperf_wire::packet::MAX_PAYLOAD;

use crate::perf_data::packets;

/// See the module.
#[derive(Default)]
pub(super) struct Batch {
    payload: Vec<u8>,
    samples: u32,
    is_taken: bool,
}

impl Batch {
    /// Takes samples that are to be in one packet; false where there is no room: what there is has to go first.
    pub(super) fn samples(&mut self, bytes: &[u8], count: u32) -> bool {
        if std::mem::take(&mut self.is_taken) {
            self.samples = 0;
            self.payload.clear();
        }
        if self.payload.is_empty() {
            self.payload.resize(HEADER, 0);
        }
        if self.payload.len() + bytes.len() > MAX_PAYLOAD {
            return false;
        }
        self.payload.extend_from_slice(bytes);
        self.samples += count;
        true
    }

    /// Finishes the packet; false where there is nothing for one.
    pub(super) fn take(&mut self) -> bool {
        if self.is_taken || self.samples == 0 {
            return false;
        }
        let header = Header { samples: self.samples, ..Header::default() };
        packets::head_of_samples(&mut self.payload, header);
        self.is_taken = true;
        true
    }

    /// What was finished.
    pub(super) fn payload(&self) -> &[u8] {
        &self.payload
    }
}
