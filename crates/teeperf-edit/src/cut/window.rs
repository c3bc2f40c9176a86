//! A window as packets, without a recording written in between: what [`cut`](super::cut) would write is handed on to
//! replay, or to whoever else takes packets. So a report of a window is that of the recording cut from it.

use teeperf_profile::contents::Packet;
use teeperf_profile::{Error, Packets};

use super::{Cut, Cutter};
use crate::error::EditError;

/// See the module. No more of it is in memory than what came of one packet.
pub struct Window<P> {
    packets: P,
    cutter: Cutter,
    /// What was handed on last.
    current: (u16, Vec<u8>),
    sequence: u32,
    /// Where the packet stands of which it came.
    origin: u64,
    is_over: bool,
}

impl<P: Packets> Window<P> {
    /// Of packets as they stand in a recording, each with its payload.
    ///
    /// # Errors
    ///
    /// When there is no memory.
    pub fn new(packets: P, wanted: Cut) -> Result<Self, EditError> {
        let cutter = Cutter::new(wanted, None)?;
        let current = (0, Vec::new());
        Ok(Self { packets, cutter, current, sequence: 0, origin: 0, is_over: false })
    }

    fn cut_next(&mut self) -> Result<(), Error> {
        let name = self.packets.name().to_owned();
        let refused = |error| match error {
            EditError::Read(error) => error,
            other => Error::Refused { name, why: other.to_string() },
        };
        match self.packets.next_packet()? {
            Some(packet) => {
                self.origin = packet.offset;
                self.cutter.packet(&packet).map_err(refused)
            }
            None => {
                self.is_over = true;
                // They stand in what is cut, as in a recording.
                self.cutter.made.warnings = self.packets.take_warnings();
                self.cutter.finish().map_err(refused)
            }
        }
    }
}

impl<P: Packets> Packets for Window<P> {
    fn name(&self) -> &str {
        self.packets.name()
    }

    fn next_packet(&mut self) -> Result<Option<Packet<'_>>, Error> {
        self.current = loop {
            match self.cutter.out.as_mut().and_then(|out| out.queued()) {
                Some(packet) => break packet,
                None if self.is_over => return Ok(None),
                None => self.cut_next()?,
            }
        };
        self.sequence = self.sequence.wrapping_add(1);
        let (kind, payload) = &self.current;
        Ok(Some(Packet::of(self.origin, self.sequence - 1, *kind, payload)))
    }

    fn offset(&self) -> u64 {
        self.packets.offset()
    }

    fn take_warnings(&mut self) -> Vec<String> {
        self.packets.take_warnings()
    }
}
