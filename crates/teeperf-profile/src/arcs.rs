//! The arcs and spans of a packet ([`teeperf_wire::body::arcs`]): decoded with hard limits, whatever the header
//! claims.

use teeperf_wire::body::arcs::{FAR, Header, MAX_BYTES, MAX_ITEMS, encoding};

use crate::trees::{decompress, leb128};

/// A place of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Of nobody known.
    Nobody,
    /// The word of a call there.
    Word(u32),
    /// An address outside every window.
    Far(u64),
}

/// Two places and a count: of an arc calls, of a span clock units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Of an arc where the call was; of a span the function that was entered last.
    pub from: Place,
    /// Of an arc the function that was called; of a span where the next call was.
    pub to: Place,
    /// How many.
    pub count: u64,
}

/// Why the items cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArcsError {
    /// An encoding that this reader does not know.
    #[error("encoding {0} is not known")]
    Encoding(u8),
    /// The data does not decompress, or to more than a packet holds.
    #[error("its data does not decompress")]
    Compression,
    /// The data ends within an item, or a number has too many bits.
    #[error("item {0} of {1} cannot be read")]
    Cut(usize, usize),
}

/// Arcs, then spans, as far as they can be read, and what is wrong with the rest.
pub fn items(header: &Header, data: &[u8]) -> (Vec<Item>, Vec<Item>, Option<ArcsError>) {
    let mut bytes = Vec::new();
    let plain = match header.encoding {
        encoding::PLAIN => data,
        encoding::ZSTD => match decompress(data, &mut bytes, MAX_BYTES) {
            Some(()) => &bytes[..],
            None => return (Vec::new(), Vec::new(), Some(ArcsError::Compression)),
        },
        other => return (Vec::new(), Vec::new(), Some(ArcsError::Encoding(other))),
    };
    let of_arcs = (header.arcs as usize).min(MAX_ITEMS);
    let count = of_arcs + (header.spans as usize).min(MAX_ITEMS);
    let (mut rest, mut error) = (plain, None);
    let mut arcs = Vec::with_capacity(count.min(plain.len() / 3 + 1));
    for at in 0..count {
        match item(&mut rest) {
            Some(item) => arcs.push(item),
            None => {
                error = Some(ArcsError::Cut(at, count));
                break;
            }
        }
    }
    let spans = arcs.split_off(of_arcs.min(arcs.len()));
    (arcs, spans, error)
}

fn item(rest: &mut &[u8]) -> Option<Item> {
    let (from, to) = (place(rest)?, place(rest)?);
    Some(Item { from, to, count: leb128(rest)? })
}

fn place(rest: &mut &[u8]) -> Option<Place> {
    match u32::try_from(leb128(rest)?).ok()? {
        FAR => Some(match leb128(rest)? {
            0 => Place::Nobody,
            address => Place::Far(address),
        }),
        word => Some(Place::Word(word)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_items_or_an_error(
            encoding in 0u8..3, arcs: u32, spans: u32, data in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let header = Header { arcs, spans, encoding, ..Header::default() };
            let (found, spans, error) = items(&header, &data);
            let whole = (arcs as usize).min(MAX_ITEMS) + (header.spans as usize).min(MAX_ITEMS);
            prop_assert!(error.is_some() || found.len() + spans.len() == whole);
        }
    }

    #[test]
    fn places_are_words_addresses_or_nobody() {
        let header = Header { arcs: 1, spans: 1, ..Header::default() };
        let data = [0x82, 0x40, 0, 9, 5, 0, 0, 4, 200, 1];
        let arc = Item { from: Place::Word(0x2002), to: Place::Far(9), count: 5 };
        let span = Item { from: Place::Nobody, to: Place::Word(4), count: 200 };
        assert_eq!(items(&header, &data), (vec![arc], vec![span], None));
        let cut = items(&header, &data[..9]);
        assert_eq!(cut, (vec![arc], vec![], Some(ArcsError::Cut(1, 2))));
    }
}
