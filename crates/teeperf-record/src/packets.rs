//! Payloads of the packets that are made of fields.

use teeperf_wire::body::notice;
use teeperf_wire::fields::{FIELD_HEADER, Writer};
use teeperf_wire::packet::MAX_PAYLOAD;

/// A payload under way. A field that would make it too long is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload(Vec<u8>);

impl Payload {
    /// A field of bytes.
    pub fn bytes(mut self, tag: u16, value: &[u8]) -> Self {
        self.push(tag, value);
        self
    }

    /// A field of a number.
    pub fn number(self, tag: u16, value: u64) -> Self {
        self.bytes(tag, &value.to_le_bytes())
    }

    /// A field of a number, if there is one.
    pub fn maybe(self, tag: u16, value: Option<u64>) -> Self {
        match value {
            Some(value) => self.number(tag, value),
            None => self,
        }
    }

    /// A field for each of these, up to `MAX_LIST` bytes in all.
    pub fn list<T: AsRef<[u8]>>(self, tag: u16, values: impl IntoIterator<Item = T>) -> Self {
        let mut room = MAX_LIST;
        values.into_iter().fold(self, |payload, value| {
            let value = value.as_ref();
            room = room.saturating_sub(FIELD_HEADER + value.len());
            if room > 0 { payload.bytes(tag, value) } else { payload }
        })
    }

    /// Adds a field; false when there was no room for it.
    pub fn push(&mut self, tag: u16, value: &[u8]) -> bool {
        let start = self.0.len();
        let end = start + FIELD_HEADER + value.len();
        if end > MAX_PAYLOAD {
            return false;
        }
        self.0.resize(end, 0);
        Writer::new(&mut self.0[start..]).bytes(tag, value).is_ok()
    }

    /// The bytes.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    /// Bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Most bytes of a list such as a command line, which the system lets be megabytes long.
const MAX_LIST: usize = 128 << 10;

/// How much a notice matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Good to know.
    Information,
    /// The recording is not complete.
    Warning,
}

/// Payload of a notice that so many processes with hooks are not in the recording.
pub(crate) fn unrecorded(text: &str, processes: u32) -> Vec<u8> {
    Payload::default()
        .number(notice::LEVEL, Level::Warning as u64)
        .bytes(notice::TEXT, text.as_bytes())
        .number(notice::UNRECORDED, processes.into())
        .finish()
}

/// Payload of a notice.
pub fn notice(level: Level, text: &str, process: Option<u32>) -> Vec<u8> {
    Payload::default()
        .number(notice::LEVEL, level as u64)
        .bytes(notice::TEXT, text.as_bytes())
        .maybe(notice::PROCESS, process.map(u64::from))
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use teeperf_wire::fields::read;

    #[test]
    fn fields_come_back() {
        let payload = Payload::default().number(1, 7).maybe(2, None).list(3, ["a", "bc"]).finish();
        let fields: Vec<_> = read(&payload).map(|field| field.unwrap()).collect();
        let tags: Vec<_> = fields.iter().map(|field| field.tag).collect();
        assert_eq!(tags, [1, 3, 3]);
        assert_eq!(fields[0].number(), Some(7));
        assert_eq!(fields[2].value, b"bc");
    }

    #[test]
    fn a_giant_command_line_is_cut() {
        let word = vec![b'x'; 1000];
        let payload = Payload::default().list(1, std::iter::repeat_n(&word, 5_000)).number(2, 1);
        assert!(payload.len() < MAX_LIST + 100);
        let last = read(&payload.finish()).last().unwrap().unwrap().number();
        assert_eq!(last, Some(1));
        assert!(!Payload::default().push(1, &vec![0; MAX_PAYLOAD]));
    }
}
