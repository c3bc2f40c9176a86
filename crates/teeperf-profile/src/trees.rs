//! The nodes of a tree packet ([`teeperf_wire::body::tree`]): decoded with hard limits, whatever the header
//! claims.

use teeperf_wire::body::tree::{Header, MAX_BYTES, MAX_NODES, encoding, word};

/// A call path of a packet, and what it grew by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Index of the caller's node in the packet, smaller than this one's; of the first node 0.
    pub parent: u32,
    /// Word of a call of the function, or one of [`word`].
    pub word: u32,
    /// Its address, with [`word::FAR`].
    pub address: u64,
    /// Calls.
    pub calls: u64,
    /// Clock units in the function itself.
    pub own: u64,
    /// Clock units of its shortest and longest call so far, if one has ended.
    pub extremes: Option<(u64, u64)>,
}

/// Why the nodes cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// An encoding that this reader does not know.
    #[error("encoding {0} is not known")]
    Encoding(u8),
    /// The data does not decompress, or to more than a packet holds.
    #[error("its data does not decompress")]
    Compression,
    /// The data ends within a node, or a number has more than 64 bits.
    #[error("node {0} of {1} cannot be read")]
    Cut(usize, u32),
    /// A node's caller is not before it.
    #[error("node {0} has no caller before it")]
    Caller(usize),
}

/// The nodes that can be read, and what is wrong with the rest.
pub fn nodes(header: &Header, data: &[u8]) -> (Vec<Node>, Option<TreeError>) {
    let mut bytes = Vec::new();
    let plain = match header.encoding {
        encoding::PLAIN => data,
        encoding::ZSTD => match decompress(data, &mut bytes, MAX_BYTES) {
            Some(()) => &bytes[..],
            None => return (Vec::new(), Some(TreeError::Compression)),
        },
        other => return (Vec::new(), Some(TreeError::Encoding(other))),
    };
    let mut rest = plain;
    let count = (header.nodes as usize).min(MAX_NODES);
    let mut out = Vec::with_capacity(count.min(plain.len() / 6 + 1));
    for at in 0..count {
        match node(&mut rest, at, header.nodes) {
            Ok(node) => out.push(node),
            Err(error) => return (out, Some(error)),
        }
    }
    (out, None)
}

/// Into at most so many bytes.
pub(crate) fn decompress(data: &[u8], into: &mut Vec<u8>, most: usize) -> Option<()> {
    into.try_reserve_exact(most).ok()?;
    // Writes into the capacity that is there, and no further.
    zstd::bulk::Decompressor::new().ok()?.decompress_to_buffer(data, into).ok().map(drop)
}

fn node(rest: &mut &[u8], at: usize, of: u32) -> Result<Node, TreeError> {
    let cut = TreeError::Cut(at, of);
    let mut next = || leb128(rest).ok_or(cut);
    let back = next()?;
    let parent = (at as u64).checked_sub(back).ok_or(TreeError::Caller(at))?;
    if at > 0 && back == 0 {
        return Err(TreeError::Caller(at));
    }
    let word = u32::try_from(next()?).map_err(|_| cut)?;
    let address = if word == word::FAR { next()? } else { 0 };
    let (calls, own, least, most) = (next()?, next()?, next()?, next()?);
    let extremes = least.checked_sub(1).map(|least| (least, most.max(least)));
    Ok(Node { parent: parent as u32, word, address, calls, own, extremes })
}

/// An unsigned number, seven bits a byte, low ones first (DWARF 5, 7.6).
pub(crate) fn leb128(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        let bits = u64::from(byte & 0x7F);
        if shift == 63 && bits > 1 {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_nodes_or_an_error(encoding in 0u8..3, nodes: u32, data in proptest::collection::vec(any::<u8>(), 0..200)) {
            let header = Header { nodes, encoding, ..Header::default() };
            let (nodes, error) = super::nodes(&header, &data);
            prop_assert!(error.is_some() || nodes.len() == (header.nodes as usize).min(MAX_NODES));
            for (at, node) in nodes.iter().enumerate() {
                prop_assert!((node.parent as usize) < at.max(1));
            }
        }
    }

    #[test]
    fn numbers_of_more_than_64_bits_are_none() {
        let read = |bytes: &[u8]| leb128(&mut &bytes[..]);
        assert_eq!(read(&[0xE5, 0x8E, 0x26]), Some(624_485));
        let most = [[0xFF; 9].as_slice(), &[1]].concat();
        assert_eq!(read(&most), Some(u64::MAX));
        assert_eq!(read(&[[0xFF; 9].as_slice(), &[2]].concat()), None);
        assert_eq!(read(&[0x80]), None);
    }
}
