//! Pieces in a file: one behind the other, or as digits in lines of a console. What is no piece is passed over, and
//! told.

use super::File;
use super::checksums::Checksums;
use std::borrow::Cow;
use teeperf_wire::piece::{Damage, MARK, Piece, SYNC};

/// The bytes of a file that may be pieces.
pub(super) struct Stream<'a> {
    name: &'a str,
    bytes: Cow<'a, [u8]>,
    /// Of lines: where the bytes of each begin here, and its digits in the file.
    lines: Vec<(usize, usize)>,
}

impl<'a> Stream<'a> {
    /// Of a file. Lines are looked for where there is no piece as it is.
    pub(super) fn of(file: &'a File, progress: &mut dyn FnMut(usize)) -> Self {
        let raw = Self { name: &file.name, bytes: Cow::Borrowed(&file.bytes), lines: Vec::new() };
        if next(&file.bytes, &Checksums::of(&file.bytes), 0).is_some() {
            return raw;
        }
        let text = Self::of_lines(file, progress);
        if text.lines.is_empty() { raw } else { text }
    }

    fn of_lines(file: &'a File, progress: &mut dyn FnMut(usize)) -> Self {
        let (mut bytes, mut lines, mut at) = (Vec::new(), Vec::new(), 0);
        for line in file.bytes.split_inclusive(|&byte| byte == b'\n') {
            let mark = line.windows(MARK.len()).position(|window| window == MARK.as_bytes());
            if let Some(mark) = mark {
                let digits = &line[mark + MARK.len()..];
                let (pairs, _) = digits.as_chunks::<2>();
                let begin = bytes.len();
                bytes.extend(pairs.iter().map_while(|pair| byte(*pair)));
                if bytes.len() > begin {
                    lines.push((begin, at + mark + MARK.len()));
                }
            }
            at += line.len();
            progress(at);
        }
        Self { name: &file.name, bytes: Cow::Owned(bytes), lines }
    }

    /// All pieces, and where they begin.
    pub(super) fn pieces(&self, damage: &mut Vec<String>) -> Vec<(usize, Piece<'_>)> {
        let sums = Checksums::of(&self.bytes);
        let (mut found, mut at) = (Vec::new(), 0);
        while let Some(rest) = self.bytes.get(at..).filter(|rest| !rest.is_empty()) {
            match piece(rest, &sums, at) {
                Ok(piece) => {
                    found.push((at, piece));
                    at += piece.length;
                }
                Err(why) => {
                    let end = next(&self.bytes, &sums, at + 1).unwrap_or(self.bytes.len());
                    let skipped = end - at;
                    let s = if skipped == 1 { "" } else { "s" };
                    damage.push(format!("{}: {why}; {skipped} byte{s} left out", self.place(at)));
                    at = end;
                }
            }
        }
        found
    }

    /// The bytes of a piece.
    pub(super) fn bytes_of(&self, at: usize, piece: &Piece<'_>) -> &[u8] {
        &self.bytes[at..at + piece.length]
    }

    /// For people: which file it is.
    pub(super) fn name(&self) -> &str {
        self.name
    }

    /// For people: where in the file something is.
    pub(super) fn place(&self, at: usize) -> String {
        let line = self.lines.partition_point(|&(begin, _)| begin <= at).checked_sub(1);
        match line.and_then(|line| self.lines.get(line)) {
            Some((begin, digits)) => format!("{}: offset {}", self.name, digits + 2 * (at - begin)),
            None => format!("{}: offset {at}", self.name),
        }
    }
}

/// Where the next piece is, from an offset on.
fn next(bytes: &[u8], sums: &Checksums<'_>, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let rest = bytes.get(at..)?;
        at += rest.windows(SYNC.len()).position(|window| window == SYNC)?;
        if piece(&bytes[at..], sums, at).is_ok() {
            return Some(at);
        }
        at += 1;
    }
}

/// The piece that begins with these bytes, which are the file's from an offset on.
fn piece<'a>(rest: &'a [u8], sums: &Checksums<'_>, at: usize) -> Result<Piece<'a>, Damage> {
    Piece::decode_with(rest, |body| sums.at(at + body.start, body.len()))
}

fn byte(digits: [u8; 2]) -> Option<u8> {
    let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
    u8::try_from(high? << 4 | low?).ok()
}
