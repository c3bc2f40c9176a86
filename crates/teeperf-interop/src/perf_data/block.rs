//! Bytes in large blocks: records stay where they were read, or where the file is mapped, until nobody needs them any more, and workers
//! take them from there. A block that was read and that nobody has is filled again.

use std::collections::VecDeque;
use std::ops::{Deref, Range};
use std::sync::{Arc, Mutex, PoisonError};

use super::mapped::Window;

/// Bytes of a block that is read.
pub(super) const SIZE: usize = (1 << 18) + MOST_RECORD;
/// Most bytes of a record: its size has two bytes.
pub(super) const MOST_RECORD: usize = 1 << 16;
/// Blocks that wait to be filled again, at most.
const MOST_FREE: usize = 64;

/// One of them.
#[derive(Debug)]
pub(super) enum Block {
    /// It was filled.
    Read(Vec<u8>, Free),
    Mapped(Window),
}

impl Default for Block {
    fn default() -> Self {
        Self::Read(Vec::new(), Free::default())
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Read(bytes, _) => bytes,
            Self::Mapped(window) => window,
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let Self::Read(bytes, free) = self else { return };
        let mut free = free.0.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes.len() == SIZE && free.len() < MOST_FREE {
            free.push(std::mem::take(bytes));
        }
    }
}

/// Those that nobody has. The latest goes first: a cache may still have it.
#[derive(Clone, Debug, Default)]
pub(super) struct Free(Arc<Mutex<Vec<Vec<u8>>>>);

impl Free {
    /// Bytes to be filled, [`SIZE`] of them; what is in them is of no meaning.
    pub(super) fn take(&self) -> Vec<u8> {
        let free = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.unwrap_or_else(|| vec![0; SIZE])
    }

    /// Those bytes, filled.
    pub(super) fn block(&self, bytes: Vec<u8>) -> Arc<Block> {
        Arc::new(Block::Read(bytes, self.clone()))
    }
}

/// Where something is that is to wait.
pub(super) enum Source<'a> {
    /// In a block, in which it stays.
    Block(&'a Arc<Block>, Range<usize>),
    /// Elsewhere.
    Bytes(&'a [u8]),
}

/// Where something is that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Number of the block.
    block: u32,
    at: u32,
    length: u32,
}

/// Blocks in which something waits, by number.
#[derive(Default)]
pub(super) struct Blocks {
    list: VecDeque<Waiting>,
    /// Number of the first in the list.
    first: u32,
    /// Bytes that they take.
    size: usize,
    /// What does not stand in a block is copied into one.
    open: Option<Open>,
    free: Free,
}

/// One of them; nothing is left of those in which nothing waits any more.
struct Waiting {
    block: Option<Arc<Block>>,
    records: u32,
    size: usize,
}

struct Open {
    number: u32,
    bytes: Vec<u8>,
    end: usize,
}

impl Blocks {
    /// Bytes that they take.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Something waits: where it is, or, of less than [`SIZE`] bytes, in a copy.
    pub(super) fn hold(&mut self, source: Source<'_>) -> Place {
        match source {
            Source::Block(block, range) => {
                let is_it = |last: &Waiting| {
                    last.block.as_ref().is_some_and(|last| Arc::ptr_eq(last, block))
                };
                let is_last = self.list.back().is_some_and(is_it);
                let number = match is_last {
                    true => self.last(),
                    false => self.push(Some(block.clone()), block.len()),
                };
                self.at(number, range)
            }
            Source::Bytes(bytes) => self.copy(bytes),
        }
    }

    fn copy(&mut self, bytes: &[u8]) -> Place {
        if self.open.as_ref().is_none_or(|open| SIZE - open.end < bytes.len()) {
            self.close();
        }
        let mut open = self.open.take().unwrap_or_else(|| Open {
            number: self.push(None, SIZE),
            bytes: self.free.take(),
            end: 0,
        });
        let range = open.end..open.end + bytes.len();
        open.bytes[range.clone()].copy_from_slice(bytes);
        open.end = range.end;
        let place = self.at(open.number, range);
        self.open = Some(open);
        place
    }

    /// Copies can be looked at from here on.
    pub(super) fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let block = self.free.block(open.bytes);
        if let Some(waiting) = self.waiting(open.number) {
            waiting.block = Some(block);
        }
    }

    /// What is mapped is copied: nothing waits in a file that somebody wants to write to.
    pub(super) fn unmap(&mut self) {
        for block in self.list.iter_mut().filter_map(|waiting| waiting.block.as_mut()) {
            if let Block::Mapped(window) = &**block {
                *block = Arc::new(Block::Read(window.to_vec(), Free::default()));
            }
        }
    }

    /// What waits there.
    pub(super) fn get(&self, place: Place) -> Option<(&Arc<Block>, Range<usize>)> {
        let waiting = self.list.get(place.block.wrapping_sub(self.first) as usize)?;
        Some((waiting.block.as_ref()?, place.range()))
    }

    /// It does not wait any more.
    pub(super) fn release(&mut self, place: Place) {
        if let Some(waiting) = self.waiting(place.block) {
            waiting.records -= 1;
            if waiting.records == 0 {
                waiting.block = None;
                let size = waiting.size;
                self.size -= size;
            }
        }
        while self.list.front().is_some_and(|first| first.records == 0) {
            self.list.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    fn at(&mut self, block: u32, range: Range<usize>) -> Place {
        if let Some(waiting) = self.waiting(block) {
            waiting.records += 1;
        }
        Place { block, at: range.start as u32, length: range.len() as u32 }
    }

    fn push(&mut self, block: Option<Arc<Block>>, size: usize) -> u32 {
        self.list.push_back(Waiting { block, records: 0, size });
        self.size += size;
        self.last()
    }

    fn last(&self) -> u32 {
        self.first.wrapping_add(self.list.len() as u32).wrapping_sub(1)
    }

    fn waiting(&mut self, number: u32) -> Option<&mut Waiting> {
        self.list.get_mut(number.wrapping_sub(self.first) as usize)
    }
}

impl Place {
    /// Its bytes.
    pub(super) fn len(self) -> usize {
        self.length as usize
    }

    fn range(self) -> Range<usize> {
        self.at as usize..self.at as usize + self.length as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_in_a_file_keeps_nobody_from_writing_to_it() {
        use std::os::unix::fs::OpenOptionsExt;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("perf.data");
        std::fs::write(&path, vec![7; SIZE]).unwrap();
        let windows = super::super::mapped::Windows::of(&std::fs::File::open(&path).unwrap());
        let (window, begin) = windows.as_ref().unwrap().at(70_000, u64::MAX).unwrap();
        assert_eq!((begin, window.len()), (65_536, SIZE - 65_536));
        let mut blocks = Blocks::default();
        let place = blocks.hold(Source::Block(&Arc::new(Block::Mapped(window)), 4..9));
        assert_eq!(blocks.size(), SIZE - 65_536);
        drop(windows);
        let mut opens = std::fs::OpenOptions::new();
        opens.write(true).custom_flags(libc::O_NONBLOCK);
        let refused = opens.open(&path).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::WouldBlock);
        blocks.unmap();
        opens.open(&path).unwrap().set_len(0).unwrap();
        let (block, range) = blocks.get(place).unwrap();
        assert_eq!(block[range], [7; 5]);
    }

    #[test]
    fn what_nobody_has_is_filled_again() {
        let free = Free::default();
        let block = free.block(free.take());
        let place = block.as_ptr();
        let other = block.clone();
        drop(block);
        let another = free.take();
        assert_ne!(another.as_ptr(), place, "somebody has it");
        drop(other);
        let again = free.take();
        assert_eq!(again.as_ptr(), place);
        for _ in 0..2 {
            let all: Vec<_> = (0..2 * MOST_FREE).map(|_| free.block(free.take())).collect();
            drop(all);
            assert_eq!(free.0.lock().unwrap().len(), MOST_FREE);
        }
    }
}
