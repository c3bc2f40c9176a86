//! Checksums of stretches of a file, each in a time that does not depend on its length. Whoever writes a piece's first
//! eight bytes again and again has as many stretches of 64 KiB looked at, which overlap.
//!
//! A checksum of bytes is known from those of all bytes up to their beginning and up to their end: the one, moved on by
//! as many zeros, is what the other has of it.

use crc32fast::Hasher;

/// See the module.
pub(super) struct Checksums<'a> {
    bytes: &'a [u8],
    /// Of all bytes before each block.
    before: Vec<u32>,
}

const BLOCK: usize = 1024;

impl<'a> Checksums<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        let mut hasher = Hasher::new();
        let mut before = vec![0];
        for block in bytes.chunks(BLOCK) {
            hasher.update(block);
            before.push(hasher.clone().finalize());
        }
        Self { bytes, before }
    }

    /// That of so many bytes from an offset on, all of which are there.
    pub(super) fn at(&self, from: usize, length: usize) -> u32 {
        let mut moved = Hasher::new_with_initial(self.up_to(from));
        moved.combine(&Hasher::new_with_initial_len(0, length as u64));
        moved.finalize() ^ self.up_to(from + length)
    }

    fn up_to(&self, end: usize) -> u32 {
        let block = end / BLOCK;
        let mut hasher = Hasher::new_with_initial(self.before[block]);
        hasher.update(&self.bytes[block * BLOCK..end]);
        hasher.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_those_of_the_bytes() {
        let bytes: Vec<u8> = (0..5000u32).map(|at| ((at * at) >> 3) as u8).collect();
        let sums = Checksums::of(&bytes);
        for (from, length) in
            [(0, 0), (0, 5000), (1, 1), (1023, 2), (1024, 1024), (700, 3000), (4999, 1), (5000, 0)]
        {
            let expected = crc32fast::hash(&bytes[from..from + length]);
            assert_eq!(sums.at(from, length), expected, "{from}, {length}");
        }
    }
}
