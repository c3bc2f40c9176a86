//! Modules of enclaves that the user names, since no runtime's list of them is found.

use super::code::Code;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A file that is loaded in an enclave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenModule {
    /// The file, as it is here.
    pub path: PathBuf,
    /// Where its address 0 is; nothing: where the enclave begins.
    pub base: Option<u64>,
}

/// Most program headers that are looked at.
const MOST_SEGMENTS: u16 = 128;
const PT_LOAD: u32 = 1;
const PF_X: u32 = 1;
const PF_W: u32 = 2;
const PF_R: u32 = 4;

impl GivenModule {
    /// What is loaded of it in the enclave that is at these addresses.
    pub(super) fn code(&self, base: u64, size: u64) -> io::Result<Vec<Code>> {
        let at = self.base.unwrap_or(base);
        if at.wrapping_sub(base) >= size {
            return Ok(Vec::new());
        }
        let path = self.path.canonicalize()?;
        let segments =
            segments(&path)?.into_iter().map(|([offset, address, length], protection)| Code {
                address: at.wrapping_add(address),
                length,
                offset,
                protection,
                path: path.as_os_str().as_encoded_bytes().to_vec(),
            });
        Ok(segments.collect())
    }
}

/// Offset, address and length of an ELF file's segments (gABI, chapter 5, program header), and their protection as mmap(2) has it.
fn segments(path: &Path) -> io::Result<Vec<([u64; 3], u32)>> {
    let refused = || io::Error::other("it is no ELF file of 64 bits");
    let mut file = File::open(path)?;
    let mut header = [0; 64];
    file.read_exact(&mut header)?;
    if header[..6] != *b"\x7fELF\x02\x01" {
        return Err(refused());
    }
    let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let start = u64::from_le_bytes(header[32..40].try_into().map_err(|_| refused())?);
    let (size, count) = (usize::from(half(54)), half(56).min(MOST_SEGMENTS));
    if size < 56 {
        return Err(refused());
    }
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = vec![0; size * usize::from(count)];
    file.read_exact(&mut bytes)?;
    let loaded = bytes.chunks_exact(size).filter_map(|segment| {
        let word = |at: usize| segment[at..].first_chunk().map(|&four| u32::from_le_bytes(four));
        let wide = |at: usize| segment[at..].first_chunk().map(|&eight| u64::from_le_bytes(eight));
        let flags = word(4)?;
        let protection =
            [(PF_X, libc::PROT_EXEC), (PF_W, libc::PROT_WRITE), (PF_R, libc::PROT_READ)];
        let protection = protection.iter().filter(|(flag, _)| flags & flag != 0);
        let protection = protection.fold(0, |all, (_, bit)| all | *bit as u32);
        let place = [wide(8)?, wide(16)?, wide(32)?];
        (word(0)? == PT_LOAD && place[2] > 0).then_some((place, protection))
    });
    Ok(loaded.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_a_file_is_where_the_enclave_has_it() {
        let path = std::env::current_exe().unwrap();
        let given = |base| GivenModule { path: path.clone(), base };
        let at_base = given(None).code(1 << 30, 1 << 30).unwrap();
        assert!(!at_base.is_empty());
        let elsewhere = given(Some((1 << 30) + 0x5000)).code(1 << 30, 1 << 30).unwrap();
        assert_eq!(elsewhere[0].address, at_base[0].address + 0x5000);
        assert_eq!(elsewhere[0].offset, at_base[0].offset);
        assert_eq!(given(Some(0x5000)).code(1 << 30, 1 << 30).unwrap(), []);
        let text = GivenModule { path: file!().into(), base: None };
        assert!(text.code(0, 1 << 30).is_err());
    }
}
