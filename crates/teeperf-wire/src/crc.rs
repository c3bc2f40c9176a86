//! CRC-32 as in IEEE 802.3 and gzip (RFC 1952, section 8): polynomial 0xEDB88320, reflected.
//! Eight bytes a step with tables built at compile time, so that a device without a host's
//! libraries can make packets; hosts with faster instructions may compute the same value
//! their own way.

/// A checksum under way.
#[derive(Clone, Copy, Debug)]
pub struct Crc(u32);

const TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut all = [[0u32; 256]; 8];
    let mut i = 0;
    while i < 256 {
        all[0][i] = bit_by_bit(i as u32);
        i += 1;
    }
    let mut t = 1;
    while t < 8 {
        let mut i = 0;
        while i < 256 {
            let before = all[t - 1][i];
            all[t][i] = before >> 8 ^ all[0][(before & 0xFF) as usize];
            i += 1;
        }
        t += 1;
    }
    all
}

/// What becomes of the checksum's lowest byte, without a table.
pub(crate) const fn bit_by_bit(mut value: u32) -> u32 {
    let mut bit = 0;
    while bit < 8 {
        let is_odd = 0u32.wrapping_sub(value & 1);
        value = value >> 1 ^ (0xEDB8_8320 & is_odd);
        bit += 1;
    }
    value
}

impl Crc {
    /// Of no bytes.
    pub const fn new() -> Self {
        Self(!0)
    }

    /// With these bytes behind what was.
    #[must_use]
    pub fn update(self, bytes: &[u8]) -> Self {
        let mut crc = self.0;
        let mut blocks = bytes.chunks_exact(8);
        for block in &mut blocks {
            let low = crc ^ u32::from_le_bytes([block[0], block[1], block[2], block[3]]);
            crc = TABLES[7][(low & 0xFF) as usize]
                ^ TABLES[6][(low >> 8 & 0xFF) as usize]
                ^ TABLES[5][(low >> 16 & 0xFF) as usize]
                ^ TABLES[4][(low >> 24) as usize]
                ^ TABLES[3][block[4] as usize]
                ^ TABLES[2][block[5] as usize]
                ^ TABLES[1][block[6] as usize]
                ^ TABLES[0][block[7] as usize];
        }
        for &byte in blocks.remainder() {
            crc = crc >> 8 ^ TABLES[0][((crc ^ byte as u32) & 0xFF) as usize];
        }
        Self(crc)
    }

    /// The checksum.
    pub const fn finish(self) -> u32 {
        !self.0
    }
}

impl Default for Crc {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_catalogue() {
        // CRC-32/ISO-HDLC: check 0xcbf43926 for the nine digits.
        assert_eq!(Crc::new().update(b"123456789").finish(), 0xCBF4_3926);
    }

    #[test]
    fn pieces_make_the_same_as_the_whole() {
        let bytes: [u8; 100] = core::array::from_fn(|i| (i * 37) as u8);
        for at in 0..100 {
            let pieces = Crc::new().update(&bytes[..at]).update(&bytes[at..]).finish();
            assert_eq!(pieces, Crc::new().update(&bytes).finish());
        }
    }
}
