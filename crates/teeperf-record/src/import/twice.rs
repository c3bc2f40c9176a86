//! Pieces that came before, such as those of a file that is named twice: to add them up would count their calls twice.
//!
//! The same bytes are the same piece, since its times are in it. Where an image has no clock, another run of it may have
//! written the same: there a piece is left out only if it stood in another file before.

use super::Imported;
use super::stream::Stream;
use std::collections::HashMap;
use teeperf_wire::piece::Piece;

/// All pieces so far, with the number of the first file that has each.
#[derive(Default)]
pub(super) struct Seen<'a> {
    pieces: HashMap<&'a [u8], usize>,
}

impl<'a> Seen<'a> {
    /// Those of a file's pieces that are new.
    pub(super) fn leave_out(
        &mut self,
        file: usize,
        stream: &'a Stream<'_>,
        mut pieces: Vec<(usize, Piece<'a>)>,
        told: &mut Imported,
    ) -> Vec<(usize, Piece<'a>)> {
        let all = pieces.len();
        pieces.retain(|(at, piece)| {
            let mut is_new = false;
            let first = self.pieces.entry(stream.bytes_of(*at, piece)).or_insert_with(|| {
                is_new = true;
                file
            });
            is_new || piece.header.end == 0 && *first == file
        });
        let twice = all - pieces.len();
        if twice > 0 {
            let (s, are, they) = if twice == 1 { ("", "is", "it") } else { ("s", "are", "they") };
            told.notices.push(format!(
                "{}: {twice} piece{s} {are} left out, since {they} came before: the same bytes are counted once",
                stream.name()
            ));
        }
        pieces
    }
}
