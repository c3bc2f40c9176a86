//! Long columns of numbers in few characters: unsigned LEB128, then base64 (RFC 4648,
//! section 4), which JSON carries as a string. A million small numbers take about as
//! many characters as bytes, and a third more.

/// A column under construction.
#[derive(Debug, Default)]
pub(crate) struct Column {
    bytes: Vec<u8>,
}

impl Column {
    /// Appends a number. Page scripts read it back exactly up to 2^53.
    pub(crate) fn push(&mut self, mut value: u64) {
        while value > 127 {
            self.bytes.push(value as u8 | 128);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Appends nanoseconds, rounded; nothing below zero.
    pub(crate) fn push_ns(&mut self, ns: f64) {
        self.push(ns.max(0.0).round() as u64);
    }

    /// As base64.
    pub(crate) fn finish(&self) -> String {
        base64(&self.bytes)
    }
}

/// Bytes as base64 with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let at = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for i in 0..4 {
            out.push(if i <= group.len() {
                char::from(ALPHABET[(bits >> (18 - 6 * i)) as usize & 63])
            } else {
                '='
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_in_the_rfc() {
        // RFC 4648, section 10.
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn numbers_as_in_dwarf() {
        // DWARF 5, appendix C, table C.1.
        for (value, bytes) in [
            (2u64, &[2u8][..]),
            (127, &[127]),
            (128, &[0x80, 1]),
            (129, &[0x81, 1]),
            (12_857, &[0xb9, 0x64]),
        ] {
            let mut column = Column::default();
            column.push(value);
            assert_eq!(column.bytes, bytes);
        }
    }

    #[test]
    fn times_are_rounded_and_never_negative() {
        let mut column = Column::default();
        for ns in [1.5, -3.0, f64::NAN] {
            column.push_ns(ns);
        }
        assert_eq!(column.bytes, [2, 0, 0]);
    }
}
