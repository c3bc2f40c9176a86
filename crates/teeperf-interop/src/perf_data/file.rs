//! The head of a file: where its sections lie. And the attributes, which stand there.

use super::attr::Attr;
use super::bytes::{Bytes, Order};

/// First bytes, where the writing processor puts the byte of least value first.
pub const MAGIC: &[u8; 8] = b"PERFILE2";
/// First bytes of a file of the other order.
const SWAPPED: &[u8; 8] = b"2ELIFREP";
/// Bytes of the head in a pipe, and in a file.
pub(super) const PIPE_HEAD: usize = 16;
pub(super) const HEAD: usize = 104;
/// Where in the head stands where attributes are, and where data is.
pub(super) const ATTRIBUTES: u64 = 24;
pub(super) const DATA: u64 = 40;
/// Bits for features.
pub(super) const FEATURES: usize = 256;

/// Whether a file that begins like this is a `perf.data`.
pub fn is_perf_data(start: &[u8]) -> bool {
    start.starts_with(MAGIC) || start.starts_with(SWAPPED)
}

/// A part of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) offset: u64,
    pub(super) size: u64,
}

impl Section {
    pub(super) fn read(bytes: &mut Bytes<'_>) -> Option<Self> {
        Some(Self { offset: bytes.u64()?, size: bytes.u64()? })
    }

    /// Whether it ends where the file does, or before.
    pub(super) fn is_within(&self, file: u64) -> bool {
        self.offset.checked_add(self.size).is_some_and(|end| end <= file)
    }
}

/// How a file begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) order: Order,
    /// Nothing in a pipe, where records come next.
    pub(super) sections: Option<Sections>,
}

/// Where what lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sections {
    pub(super) attributes: Section,
    pub(super) data: Section,
    /// Numbers of the features, whose sections are listed behind the data.
    pub(super) features: Vec<u32>,
}

impl Head {
    /// Of the first bytes, up to [`HEAD`] of them.
    ///
    /// # Errors
    ///
    /// Where it is wrong, and how.
    pub(super) fn read(start: &[u8]) -> Result<Self, (u64, &'static str)> {
        let order = match start {
            _ if start.starts_with(MAGIC) => Order::Little,
            _ if start.starts_with(SWAPPED) => Order::Big,
            _ => return Err((0, "this is no perf.data")),
        };
        let mut bytes = Bytes { rest: &start[MAGIC.len()..], order };
        let cut = (start.len() as u64, "the file ends in its head");
        if bytes.u64().ok_or(cut)? == PIPE_HEAD as u64 {
            return Ok(Self { order, sections: None });
        }
        let sections = Sections::read(bytes).ok_or(cut)?;
        if sections.data.offset < HEAD as u64 {
            return Err((DATA, "the data begins within the head"));
        }
        Ok(Self { order, sections: Some(sections) })
    }
}

impl Sections {
    fn read(mut bytes: Bytes<'_>) -> Option<Self> {
        bytes.u64()?;
        let attributes = Section::read(&mut bytes)?;
        let data = Section::read(&mut bytes)?;
        Section::read(&mut bytes)?;
        let bits: [u8; FEATURES / 8] = bytes.array()?;
        Some(Self { attributes, data, features: features(bytes.order, bits) })
    }

    /// Where the list of the features' sections lies; nothing where data has no known end.
    pub(super) fn list(&self) -> Option<Section> {
        let size = 16 * self.features.len() as u64;
        let offset = self.data.offset.checked_add(self.data.size)?;
        (self.data.size > 0 && size > 0).then_some(Section { offset, size })
    }
}

/// Bits are in words of the machine that wrote them, of eight bytes or of four: a machine's name is there always, where
/// anything is.
fn features(order: Order, bits: [u8; FEATURES / 8]) -> Vec<u32> {
    let by_word = |length: usize| {
        let mut bits = bits;
        if order == Order::Big {
            bits.chunks_mut(length).for_each(<[u8]>::reverse);
        }
        (0..FEATURES as u32).filter(move |&bit| bits[bit as usize / 8] >> (bit % 8) & 1 == 1)
    };
    let wide: Vec<u32> = by_word(8).collect();
    let narrow: Vec<u32> = by_word(4).collect();
    let is_likely = |list: &[u32]| list.contains(&super::features::number::HOSTNAME);
    if !is_likely(&wide) && is_likely(&narrow) { narrow } else { wide }
}

/// Events, and which of them an id is of, as the section of attributes has them. `ids` reads a part of the file.
/// And whether all was whole.
pub(super) fn attributes(
    section: &[u8],
    order: Order,
    mut ids: impl FnMut(Section) -> Vec<u8>,
) -> (Vec<(Attr, Vec<u64>)>, bool) {
    let mut bytes = Bytes { rest: section, order };
    let mut all = Vec::new();
    while !bytes.rest.is_empty() {
        let Some(attr) = Attr::read(&mut bytes) else { return (all, false) };
        // Gramine leaves out where ids are in the size that it says, and writes it all the same.
        let Some(place) = Section::read(&mut bytes) else { return (all, false) };
        let ids = if place.size == 0 { Vec::new() } else { ids(place) };
        let ids = ids.as_chunks().0.iter().map(|&id| order.u64(id)).collect();
        all.push((attr, ids));
    }
    (all, true)
}
