//! Fields: how a packet that is not a chunk says what it has to say, so that a later
//! version can say more. A payload is a row of fields, each a tag (u16), two zero bytes, a
//! length (u32) and that many bytes. A reader skips tags it does not know. A tag may come
//! more than once: then it is a list.

/// Bytes before a field's value.
pub const FIELD_HEADER: usize = 8;

/// Puts fields into a buffer that the caller owns.
pub struct Writer<'a> {
    out: &'a mut [u8],
    used: usize,
}

/// The buffer given to a [`Writer`] is too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl<'a> Writer<'a> {
    /// Into this buffer, from its start.
    pub fn new(out: &'a mut [u8]) -> Self {
        Self { out, used: 0 }
    }

    /// A field of bytes.
    pub fn bytes(&mut self, tag: u16, value: &[u8]) -> Result<(), Full> {
        let end = self.used + FIELD_HEADER + value.len();
        let room = self.out.get_mut(self.used..end).ok_or(Full)?;
        room[0..2].copy_from_slice(&tag.to_le_bytes());
        room[2..4].fill(0);
        room[4..8].copy_from_slice(&(value.len() as u32).to_le_bytes());
        room[8..].copy_from_slice(value);
        self.used = end;
        Ok(())
    }

    /// A field of a number, eight bytes.
    pub fn number(&mut self, tag: u16, value: u64) -> Result<(), Full> {
        self.bytes(tag, &value.to_le_bytes())
    }

    /// The payload so far.
    pub fn finish(self) -> &'a [u8] {
        &self.out[..self.used]
    }
}

/// One field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// What it says.
    pub tag: u16,
    /// As it stands.
    pub value: &'a [u8],
}

impl Field<'_> {
    /// The value as a number of up to eight bytes, little-endian; nothing when it is longer.
    pub fn number(&self) -> Option<u64> {
        (self.value.len() <= 8)
            .then(|| self.value.iter().rev().fold(0, |sum, &byte| sum << 8 | byte as u64))
    }
}

/// A field's length runs past the payload's end; `at` is its offset in the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutOff {
    /// Offset of the field.
    pub at: usize,
}

/// The fields of a payload, in order. After an error there is nothing more.
pub fn read(payload: &[u8]) -> Fields<'_> {
    Fields { payload, at: 0 }
}

/// See [`read`].
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    payload: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, CutOff>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.payload.get(self.at..)?;
        if rest.is_empty() {
            return None;
        }
        let at = self.at;
        self.at = self.payload.len();
        let Some(head) = rest.get(..FIELD_HEADER) else { return Some(Err(CutOff { at })) };
        let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        match rest[FIELD_HEADER..].get(..length) {
            Some(value) => {
                self.at = at + FIELD_HEADER + length;
                Some(Ok(Field { tag: u16::from_le_bytes([head[0], head[1]]), value }))
            }
            None => Some(Err(CutOff { at })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(read(&bytes).count() <= bytes.len());
        }

        #[test]
        fn fields_come_back(a: u16, n: u64, b in proptest::collection::vec(any::<u8>(), 0..50)) {
            let mut room = [0; 100];
            let mut writer = Writer::new(&mut room);
            writer.number(a, n).unwrap();
            writer.bytes(7, &b).unwrap();
            let mut fields = read(writer.finish());
            prop_assert_eq!(fields.next().unwrap().unwrap().number(), Some(n));
            prop_assert_eq!(fields.next().unwrap().unwrap(), Field { tag: 7, value: &b[..] });
            prop_assert!(fields.next().is_none());
        }
    }

    #[test]
    fn a_full_buffer_is_said() {
        assert_eq!(Writer::new(&mut [0; 9]).number(1, 2), Err(Full));
    }
}
