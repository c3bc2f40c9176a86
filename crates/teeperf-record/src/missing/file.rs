//! Whether a file has hooks, read piece by piece: it may be large, and need not be a program. And
//! how much code it has, as the kernel tells of a process.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use teeperf_wire::hook::announced;

/// Bytes that are looked at at once, and how far two such pieces overlap: more than an announcement has.
const PIECE: usize = 64 << 10;
const OVERLAP: usize = 32;
/// Most of a file's segments that are looked at.
const MOST_SEGMENTS: u16 = 64;

/// The interface of a file's hooks, where it is a program or library of this processor that has some. Reads no more
/// than `most` bytes, and takes off what it read: segments may lie over one another, and a file may be all holes.
pub(super) fn hooks_of(file: &File, most: &mut u64) -> Option<u32> {
    let code = segments(file)?.into_iter().filter(|segment| segment.is_code);
    code.into_iter().find_map(|segment| hooks_in(file, &segment, most))
}

/// KiB of a program's code that the kernel may tell of its process (`VmExe` of proc_pid_status(5)):
/// it begins where the first segment does that is code, or, by kernels before 5.10, where the first
/// does.
pub(super) fn kibibytes_of_code(file: &File) -> Option<[u64; 2]> {
    const PAGE: u64 = 4096;
    let segments = segments(file)?;
    let code = || segments.iter().filter(|segment| segment.is_code);
    let end = code().filter_map(|segment| segment.address.checked_add(segment.bytes)).max()?;
    let starts = [
        code().map(|segment| segment.address).min()?,
        segments.iter().map(|segment| segment.address).min()?,
    ];
    let pages = |start: u64| end.div_ceil(PAGE).saturating_sub(start / PAGE);
    Some(starts.map(|start| pages(start).saturating_mul(PAGE >> 10)))
}

/// A part of a file that is loaded: Elf64_Phdr of elf(5).
struct Segment {
    is_code: bool,
    offset: u64,
    address: u64,
    bytes: u64,
}

/// Those of a program or library of this processor.
fn segments(file: &File) -> Option<Vec<Segment>> {
    let header: [u8; 64] = read(file, 0).ok()?;
    let is_of_x86_64 = header.starts_with(b"\x7fELF\x02\x01") && header[18..20] == [62, 0];
    if !is_of_x86_64 {
        return None;
    }
    let start = u64::from_le_bytes(*header[32..].first_chunk()?);
    let size = u64::from(u16::from_le_bytes(*header[54..].first_chunk()?));
    let count = u16::from_le_bytes(*header[56..].first_chunk()?).min(MOST_SEGMENTS);
    let segment = |at| {
        const LOADED: [u8; 4] = [1, 0, 0, 0];
        const EXECUTABLE: u8 = 1;
        let header: [u8; 56] = read(file, start.checked_add(at * size)?).ok()?;
        let number = |at: usize| header[at..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        let is_code = header[4] & EXECUTABLE != 0;
        let (offset, address, bytes) = (number(8)?, number(16)?, number(32)?);
        (header[..4] == LOADED).then_some(Segment { is_code, offset, address, bytes })
    };
    Some((0..u64::from(count)).filter_map(segment).collect())
}

fn hooks_in(file: &File, segment: &Segment, most: &mut u64) -> Option<u32> {
    let start = segment.offset;
    let end = start.checked_add(segment.bytes)?;
    let mut piece = vec![0; PIECE];
    let mut at = start;
    while at < end {
        let room = usize::try_from((end - at).min(*most)).unwrap_or(PIECE).min(PIECE);
        let count = file.read_at(&mut piece[..room], at).ok().filter(|&count| count > 0)?;
        *most -= count as u64;
        if let Some(version) = announced(&piece[..count]) {
            return Some(version);
        }
        if count <= OVERLAP {
            return None;
        }
        at += (count - OVERLAP) as u64;
    }
    None
}

fn read<const SIZE: usize>(file: &File, at: u64) -> io::Result<[u8; SIZE]> {
    let mut bytes = [0; SIZE];
    file.read_exact_at(&mut bytes, at).map(|()| bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A file with one segment of code, which announces hooks at this place.
    fn program(place: usize, length: usize) -> File {
        let mut bytes = vec![0; 120];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (bytes[18], bytes[32], bytes[54], bytes[56]) = (62, 64, 56, 1);
        (bytes[64], bytes[68], bytes[72]) = (1, 5, 120);
        bytes[96..104].copy_from_slice(&(length as u64).to_le_bytes());
        bytes.resize(120 + place, 0x90);
        bytes.extend([0x48, 0x8d, 0x3d, 1, 2, 3, 4, 0xc7, 0x47, 0x20, 7, 0, 0, 0]);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        file
    }

    #[test]
    fn hooks_are_found_wherever_they_lie() {
        for place in [0, 1000, PIECE - 20, PIECE - 5, PIECE, 3 * PIECE - 70] {
            let hooks_of = |length| hooks_of(&program(place, length), &mut (1 << 20));
            assert_eq!(hooks_of(place + 14), Some(7), "{place}");
            assert_eq!(hooks_of(usize::MAX / 2), Some(7), "{place}");
            assert_eq!(hooks_of(place), None, "{place}: behind the segment");
        }
    }

    #[test]
    fn no_more_is_read_than_may_be() {
        let file = program(3 * PIECE, 4 * PIECE);
        let mut most = 2 * PIECE as u64;
        assert_eq!(hooks_of(&file, &mut most), None);
        assert_eq!(most, 0);
        let mut most = 4 * PIECE as u64;
        assert_eq!(hooks_of(&file, &mut most), Some(7));
        assert!(most < PIECE as u64);
    }

    #[test]
    fn other_files_have_none() {
        let own = File::open(std::env::current_exe().unwrap()).unwrap();
        let hooks_of = |file: &File| hooks_of(file, &mut (1 << 30));
        assert_eq!(hooks_of(&own), None);
        assert_eq!(hooks_of(&tempfile::tempfile().unwrap()), None);
        assert_eq!(hooks_of(&File::open("/").unwrap()), None);
    }
}
