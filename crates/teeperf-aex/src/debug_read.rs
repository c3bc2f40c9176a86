//! The way into enclaves' memory: the kernel reads a debug enclave for whoever reads the process's memory by file.
//!
//! It does so eight bytes at a time, with the enclave's lock held, so what is read is counted.

use crate::system;

/// Memory cannot be read: it is a production enclave's, or no more there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// Reads memory of a process, and of debug enclaves in it.
pub trait DebugRead {
    /// Reads from `at` on as far as there is memory, and says how far; an error where there is none at all.
    fn read(&self, at: u64, into: &mut [u8]) -> Result<usize, Refused>;

    /// In the child of a fork: what there is of the parent's is closed.
    fn leave(&self) {}

    /// Reads all of `into`.
    fn read_all(&self, at: u64, into: &mut [u8]) -> Result<(), Refused> {
        if self.read(at, into)? == into.len() { Ok(()) } else { Err(Refused) }
    }
}

/// An open `/proc/PID/mem`: of this process when it is `/proc/self/mem`. It stays that of the process which opened it, after a fork too.
#[derive(Debug)]
pub struct MemoryFile(i32);

impl MemoryFile {
    /// This process's.
    pub fn of_this_process() -> Option<Self> {
        system::open_read_only(c"/proc/self/mem").map(Self)
    }

    /// The descriptor.
    pub fn descriptor(&self) -> i32 {
        self.0
    }

    /// Of a descriptor that stays open.
    pub fn of_descriptor(descriptor: i32) -> Self {
        Self(descriptor)
    }
}

impl DebugRead for MemoryFile {
    fn leave(&self) {
        system::close(self.0);
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<usize, Refused> {
        system::read_at(self.0, at, into).filter(|&count| count > 0).ok_or(Refused)
    }
}

/// Counts what is read.
#[derive(Debug)]
pub(crate) struct Counted<'a, R> {
    from: &'a R,
    /// Calls of the kernel, and reads of eight bytes in them.
    pub(crate) calls: u64,
    pub(crate) words: u64,
}

impl<'a, R: DebugRead> Counted<'a, R> {
    pub(crate) fn new(from: &'a R) -> Self {
        Self { from, calls: 0, words: 0 }
    }

    pub(crate) fn read(&mut self, at: u64, into: &mut [u8]) -> Result<usize, Refused> {
        self.calls += 1;
        let count = self.from.read(at, into)?;
        self.words += count.div_ceil(8) as u64;
        Ok(count)
    }

    pub(crate) fn read_all(&mut self, at: u64, into: &mut [u8]) -> Result<(), Refused> {
        if self.read(at, into)? == into.len() { Ok(()) } else { Err(Refused) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_this_process_is_read_and_what_is_not_there_refused() {
        let file = MemoryFile::of_this_process().unwrap();
        let there = *b"teeperf and more";
        let mut read = [0; 7];
        let mut counted = Counted::new(&file);
        counted.read_all(there.as_ptr() as u64, &mut read).unwrap();
        assert_eq!(&read, b"teeperf");
        assert_eq!(counted.read(8, &mut read), Err(Refused));
        assert_eq!((counted.calls, counted.words), (2, 1));
        assert_eq!(file.read_all(u64::MAX, &mut read), Err(Refused));
    }
}
