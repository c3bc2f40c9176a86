//! The path of the file mapped at an address, from the kernel's list of mappings. Read
//! piece by piece into a small buffer: a process may have a hundred thousand mappings.

use crate::platform;

const PAGE: u64 = 4096;

/// Writes the path of the file that is mapped at `address` into `room`, or its end when it is
/// too long; gives the length, 0 when it cannot be told.
pub(crate) fn path_at(address: u64, room: &mut [u8]) -> usize {
    let Some(file) = platform::open(c"/proc/self/maps") else {
        return platform::read_link(c"/proc/self/exe", room);
    };
    let mut line = Line::new(address, room);
    if file.find_byte(|byte| line.take(byte)) { line.finish() } else { 0 }
}

/// Where the file that is mapped at `address` begins in memory: its mapping there follows others of
/// the same path without one of another between. Nothing where no file is mapped there, or its
/// first page cannot be read.
pub(crate) fn header_at(address: u64) -> Option<usize> {
    let file = platform::open(c"/proc/self/maps")?;
    let mut path = [0; 128];
    let mut line = Line::new(address, &mut path);
    let (mut last, mut start, mut found) = (0, 0, None);
    file.find_byte(|byte| {
        if byte == b'\n' {
            let path = hash(&[line.room.get(..line.used).unwrap_or_default()]);
            if line.used == 0 || path != last {
                (last, start) = (path, line.bounds[0]);
            }
            if (line.bounds[0]..line.bounds[1]).contains(&address) && line.used > 0 {
                found = Some(start as usize);
            }
        }
        line.take(byte)
    });
    found.filter(|&start| platform::is_readable(start))
}

/// FNV-1a, 64 bits, of all parts as one.
pub(crate) fn hash(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    bytes.fold(0xCBF2_9CE4_8422_2325, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
    })
}

/// Bounds of a thread's own stack: of a process's first thread what the kernel calls so, down to what lies below it; of
/// others the mapping that the thread pointer is in, which the C library has at the stack's upper end.
///
/// The first thread of a child of fork may be a copy of any other; then its stack pointer, which is given, is in that one's stack.
pub(crate) fn own_stack(
    is_first: bool,
    thread_pointer: u64,
    copied: Option<u64>,
) -> Option<(u64, u64)> {
    let file = platform::open(c"/proc/self/maps")?;
    let mut name = [0; 8];
    let mut line = Line::new(u64::MAX, &mut name);
    let (mut below, mut found) = (0, None);
    file.find_byte(|byte| {
        if byte == b'\n' {
            let [low, high] = line.bounds;
            let is_first_stack = line.room.get(..line.used) == Some(b"[stack]");
            let bounds = low..high;
            let is_copy = || copied.is_some_and(|at| at < thread_pointer && bounds.contains(&at));
            if is_first && is_first_stack {
                found = Some((below, high));
            } else if bounds.contains(&thread_pointer) && (!is_first || is_copy()) {
                let upper = (thread_pointer | (PAGE - 1)).saturating_add(1 + PAGE);
                found = Some((low, high.min(upper)));
            }
            below = high;
        }
        line.take(byte);
        found.is_some()
    });
    found
}

/// Hands out the bounds of each mapping of a file that has code, and that can be read.
pub(crate) fn each_code(mut take: impl FnMut(u64, u64)) {
    let Some(file) = platform::open(c"/proc/self/maps") else { return };
    let mut name = [0; 8];
    let mut line = Line::new(u64::MAX, &mut name);
    file.find_byte(|byte| {
        let [low, high] = line.bounds;
        let is_of_file = line.used > 0 && line.room.first() != Some(&b'[');
        if byte == b'\n' && is_of_file && line.is_code && platform::is_readable(low as usize) {
            take(low, high);
        }
        line.take(byte);
        false
    });
}

/// One line of the list, byte by byte: `start-end perms offset device inode   path`.
struct Line<'a> {
    address: u64,
    bounds: [u64; 2],
    field: usize,
    in_space: bool,
    is_code: bool,
    room: &'a mut [u8],
    used: usize,
}

impl<'a> Line<'a> {
    fn new(address: u64, room: &'a mut [u8]) -> Self {
        Self { address, bounds: [0; 2], field: 0, in_space: false, is_code: false, room, used: 0 }
    }

    /// Takes the next byte; says whether it ended the line that is looked for.
    fn take(&mut self, byte: u8) -> bool {
        match (byte, self.field) {
            (b'\n', _) => {
                if self.bounds[0] <= self.address && self.address < self.bounds[1] {
                    return true;
                }
                (self.bounds, self.field, self.in_space, self.used) = ([0; 2], 0, false, 0);
                self.is_code = false;
            }
            (b'-', 0) => self.field = 1,
            (b' ', ..6) => self.in_space = true,
            _ => {
                if self.in_space {
                    self.field = self.field.max(1) + 1;
                    self.in_space = false;
                }
                match self.field {
                    0 | 1 => {
                        let digit = char::from(byte).to_digit(16).unwrap_or(0);
                        let bound = &mut self.bounds[self.field];
                        *bound = *bound << 4 | u64::from(digit);
                    }
                    2 => self.is_code |= byte == b'x',
                    6.. => self.keep(byte),
                    _ => {}
                }
            }
        }
        false
    }

    fn keep(&mut self, byte: u8) {
        if self.used == self.room.len() && !self.room.is_empty() {
            self.room.rotate_left(1);
            self.used -= 1;
        }
        if let Some(place) = self.room.get_mut(self.used) {
            *place = byte;
            self.used += 1;
        }
    }

    /// Length of the path, without what the kernel adds to a file that was removed.
    fn finish(self) -> usize {
        let path = self.room.get(..self.used).unwrap_or_default();
        path.strip_suffix(b" (deleted)").unwrap_or(path).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[u8] = b"55d0a000-55d0b000 r--p 00000000 fe:00 131 /usr/bin/a b\n\
        7f00a000-7f00c000 r-xp 00001000 fe:00 132                        /lib/libc.so.6 (deleted)\n\
        7ffd0000-7ffd1000 rw-p 00000000 00:00 0 \n";

    fn find(address: u64, room: usize) -> Option<String> {
        let mut room = vec![0; room];
        let mut line = Line::new(address, &mut room);
        let length = LIST.iter().any(|&byte| line.take(byte)).then(|| line.finish())?;
        Some(String::from_utf8(room[..length].to_vec()).unwrap())
    }

    #[test]
    fn paths_are_found() {
        assert_eq!(find(0x55d0_a000, 99).as_deref(), Some("/usr/bin/a b"));
        assert_eq!(find(0x7f00_bfff, 99).as_deref(), Some("/lib/libc.so.6"));
        assert_eq!(find(0x7ffd_0001, 99).as_deref(), Some(""));
        assert_eq!(find(0x7f00_c000, 99), None);
    }

    #[test]
    fn a_path_without_room_keeps_its_end() {
        assert_eq!(find(0x55d0_a000, 7).as_deref(), Some("bin/a b"));
        assert_eq!(find(0x55d0_a000, 0).as_deref(), Some(""));
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the system, by assembly")]
    fn this_program_is_found() {
        let mut room = [0; 1200];
        let length = path_at(this_program_is_found as *const () as u64, &mut room);
        let found = std::str::from_utf8(&room[..length]).unwrap();
        assert_eq!(found, std::env::current_exe().unwrap().to_str().unwrap());
    }
}
