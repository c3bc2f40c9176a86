//! The recording that is made: packets one by one, chunks counted for its end. Written, or handed on to whoever
//! replays it.

use std::collections::VecDeque;

use teeperf_record::writing::{Encoder, Level, Output, PacketWriter, Payload, notice};
use teeperf_wire::body::chunk::Header;
use teeperf_wire::body::end;
use teeperf_wire::fields::{self, Field};
use teeperf_wire::packet::{MAJOR, MINOR, kind};

use crate::error::EditError;

/// See the module.
pub(crate) struct Out {
    target: Target,
    encoder: Encoder,
    /// Words of all chunks so far.
    pub(crate) words: u64,
}

/// Where packets go.
enum Target {
    /// To a file or a stream; the name is for messages.
    Writer(PacketWriter, String),
    /// To whoever takes them, with [`Out::queued`].
    Queue(VecDeque<(u16, Vec<u8>)>),
}

impl Out {
    /// Into this; `name` is for messages.
    pub(crate) fn new(output: Output, name: &str) -> Result<Self, EditError> {
        let name = name.to_owned();
        match PacketWriter::open(output) {
            Ok(writer) => Self::of(Target::Writer(writer, name)),
            Err(source) => Err(EditError::Write { name, source }),
        }
    }

    /// Of packets that are taken one by one.
    pub(crate) fn queue() -> Result<Self, EditError> {
        Self::of(Target::Queue(VecDeque::new()))
    }

    fn of(target: Target) -> Result<Self, EditError> {
        let encoder = Encoder::new().map_err(EditError::Memory)?;
        Ok(Self { target, encoder, words: 0 })
    }

    /// The next packet that nobody has taken, its type first; nothing of what is written.
    pub(crate) fn queued(&mut self) -> Option<(u16, Vec<u8>)> {
        match &mut self.target {
            Target::Writer(..) => None,
            Target::Queue(packets) => packets.pop_front(),
        }
    }

    /// A packet.
    pub(crate) fn packet(&mut self, packet_kind: u16, payload: &[u8]) -> Result<(), EditError> {
        self.target.packet(packet_kind, payload)
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
        self.target.packet(kind::CHUNK, self.encoder.payload())
    }

    /// What the user should know, in the recording.
    pub(crate) fn notice(&mut self, level: Level, text: &str) -> Result<(), EditError> {
        self.packet(kind::NOTICE, &notice(level, text, None))
    }

    /// The last packet, with these fields besides. Gives the bytes that were written.
    pub(crate) fn end(
        &mut self,
        time: u64,
        more: impl FnOnce(Payload) -> Payload,
    ) -> Result<u64, EditError> {
        let payload = Payload::default().number(end::TIME, time).number(end::WORDS, self.words);
        self.packet(kind::END, &more(payload).finish())?;
        match &mut self.target {
            Target::Queue(_) => Ok(0),
            Target::Writer(writer, name) => match writer.flush() {
                Ok(()) => Ok(writer.bytes()),
                Err(source) => Err(EditError::Write { name: name.clone(), source }),
            },
        }
    }
}

impl Target {
    fn packet(&mut self, packet_kind: u16, payload: &[u8]) -> Result<(), EditError> {
        match self {
            Self::Queue(packets) => {
                packets.push_back((packet_kind, payload.to_vec()));
                Ok(())
            }
            Self::Writer(writer, name) => writer
                .packet(packet_kind, payload)
                .map_err(|source| EditError::Write { name: name.clone(), source }),
        }
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
