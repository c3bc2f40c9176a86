//! Numbers of a file, whichever byte of them comes first.

/// Which byte of a number comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// The one of least value.
    #[default]
    Little,
    /// The one of most.
    Big,
}

impl Order {
    pub(super) fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    pub(super) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    pub(super) fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }
}

/// Takes values from the beginning of some bytes; nothing where there are not enough.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a> {
    pub(super) rest: &'a [u8],
    pub(super) order: Order,
}

impl<'a> Bytes<'a> {
    pub(super) fn u16(&mut self) -> Option<u16> {
        Some(self.order.u16(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        Some(self.order.u32(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        Some(self.order.u64(self.array()?))
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*first)
    }

    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(first)
    }

    /// As many things of so many bytes each.
    pub(super) fn row(&mut self, count: u64, each: usize) -> Option<&'a [u8]> {
        self.take(usize::try_from(count).ok()?.checked_mul(each)?)
    }

    /// Text of features: its length, four bytes, then it, filled up with zeroes.
    pub(super) fn text(&mut self) -> Option<String> {
        let length = self.u32()?;
        Some(until_zero_text(self.row(length.into(), 1)?))
    }
}

/// What stands before the first zero.
pub(super) fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// The same, as text.
pub(super) fn until_zero_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(until_zero(bytes)).into_owned()
}
