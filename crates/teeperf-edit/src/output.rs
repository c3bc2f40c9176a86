//! The recording that is written: packets one by one, chunks counted for its end.

use teeperf_record::writing::{Encoder, Level, Output, PacketWriter, Payload, notice};
use teeperf_wire::body::chunk::Header;
use teeperf_wire::body::end;
use teeperf_wire::fields::{self, Field};
use teeperf_wire::packet::{MAJOR, MINOR, kind};

use crate::error::EditError;

/// See the module.
pub(crate) struct Out {
    writer: PacketWriter,
    encoder: Encoder,
    name: String,
    /// Words of all chunks so far.
    pub(crate) words: u64,
}

impl Out {
    /// Into this; `name` is for messages.
    pub(crate) fn new(output: Output, name: &str) -> Result<Self, EditError> {
        let name = name.to_owned();
        let encoder = Encoder::new().map_err(EditError::Memory)?;
        match PacketWriter::open(output) {
            Ok(writer) => Ok(Self { writer, encoder, name, words: 0 }),
            Err(source) => Err(EditError::Write { name, source }),
        }
    }

    /// A packet.
    pub(crate) fn packet(&mut self, packet_kind: u16, payload: &[u8]) -> Result<(), EditError> {
        self.writer
            .packet(packet_kind, payload)
            .map_err(|source| EditError::Write { name: self.name.clone(), source })
    }

    /// A chunk as it stands.
    pub(crate) fn chunk(&mut self, header: &Header, payload: &[u8]) -> Result<(), EditError> {
        self.words += u64::from(header.count);
        self.packet(kind::CHUNK, payload)
    }

    /// A chunk of these words.
    pub(crate) fn words(&mut self, header: Header, words: &[u32]) -> Result<(), EditError> {
        self.words += words.len() as u64;
        self.encoder.chunk(header, words);
        let result = self.writer.packet(kind::CHUNK, self.encoder.payload());
        result.map_err(|source| EditError::Write { name: self.name.clone(), source })
    }

    /// What the user should know, in the recording.
    pub(crate) fn notice(&mut self, level: Level, text: &str) -> Result<(), EditError> {
        self.packet(kind::NOTICE, &notice(level, text, None))
    }

    /// The last packet, with these fields besides.
    pub(crate) fn end(
        mut self,
        time: u64,
        more: impl FnOnce(Payload) -> Payload,
    ) -> Result<u64, EditError> {
        let payload = Payload::default().number(end::TIME, time).number(end::WORDS, self.words);
        self.packet(kind::END, &more(payload).finish())?;
        let name = self.name.clone();
        self.writer.flush().map_err(|source| EditError::Write { name, source })?;
        Ok(self.writer.bytes())
    }
}

/// The version that a recording has which is made of one of this version.
pub(crate) fn version(of: Option<(u16, u16)>) -> [u8; 4] {
    let (major, minor) = of.unwrap_or((MAJOR, 0)).max((MAJOR, MINOR));
    let [a, b] = major.to_le_bytes();
    let [c, d] = minor.to_le_bytes();
    [a, b, c, d]
}

/// The fields of a payload, each as `change` has it; without those of which it makes none.
pub(crate) fn changed<'a>(
    payload: &'a [u8],
    mut change: impl FnMut(Field<'a>) -> Option<Vec<u8>>,
) -> Payload {
    fields::read(payload).map_while(Result::ok).fold(Payload::default(), |out, field| match change(
        field,
    ) {
        Some(value) => out.bytes(field.tag, &value),
        None => out,
    })
}
