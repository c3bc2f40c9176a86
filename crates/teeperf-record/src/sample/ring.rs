//! The memory in which the kernel leaves the records of one processor: `struct perf_event_mmap_page` and a ring
//! behind it (perf_event_open(2), "MMAP layout").

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Where `data_head` is in the first page, and `data_tail` behind it.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// A ring that is mapped.
#[derive(Debug)]
pub(crate) struct Ring {
    base: NonNull<u8>,
    page: usize,
    /// Bytes of the ring, a power of two.
    size: usize,
}

// SAFETY: the mapping belongs to this value until it is dropped.
unsafe impl Send for Ring {}

impl Ring {
    /// Least bytes that one can have: the largest record is 64 KiB.
    pub(crate) const LEAST: usize = 128 << 10;

    /// Maps the ring of an event.
    pub(crate) fn map(event: &File, size: usize) -> io::Result<Self> {
        // SAFETY: no pointers are involved.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let size = size.max(page).next_power_of_two();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let (null, fd) = (std::ptr::null_mut(), event.as_raw_fd());
        // SAFETY: a new mapping at an address of the kernel's choice; the result is checked.
        let base = unsafe { libc::mmap(null, page + size, access, libc::MAP_SHARED, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { base, page, size })
    }

    /// Bytes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Takes out all records that are there, behind what `into` has already.
    pub(crate) fn take(&self, into: &mut Vec<u8>) {
        // Records up to the head are written before it is; the next ones are written behind the tail.
        let head = self.number(HEAD).load(Acquire);
        let tail = self.number(TAIL).load(Relaxed);
        let length = usize::try_from(head.wrapping_sub(tail)).unwrap_or(0).min(self.size);
        let begin = tail as usize & (self.size - 1);
        let first = length.min(self.size - begin);
        for (at, length) in [(begin, first), (0, length - first)] {
            // SAFETY: within the ring, behind the first page. The kernel does not write there until the tail is moved.
            let bytes = unsafe {
                std::slice::from_raw_parts(self.base.as_ptr().add(self.page + at), length)
            };
            into.extend_from_slice(bytes);
        }
        self.number(TAIL).store(head, Release);
    }

    fn number(&self, at: usize) -> &AtomicU64 {
        // SAFETY: within the first page, and aligned; the kernel reads and writes both at any time.
        unsafe { &*self.base.as_ptr().add(at).cast() }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping that `map` made; no reference into it outlives self.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.page + self.size) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file in the place of the kernel: a page with head and tail, and a ring of a page.
    fn ring(head: u64, tail: u64) -> Ring {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        let mapped = Ring::map(&file, 4096).unwrap();
        mapped.number(HEAD).store(head, Release);
        mapped.number(TAIL).store(tail, Release);
        for at in 0..4096 {
            // SAFETY: within the ring, which nobody else writes.
            unsafe { mapped.base.as_ptr().add(mapped.page + at).write(at as u8) };
        }
        mapped
    }

    #[test]
    fn records_are_taken_across_the_end_of_the_ring() {
        let ring = ring(4096 + 2, 4096 - 3);
        let mut taken = vec![7];
        ring.take(&mut taken);
        assert_eq!(taken, [7, 253, 254, 255, 0, 1]);
        taken.clear();
        ring.take(&mut taken);
        assert_eq!((taken.len(), ring.number(TAIL).load(Relaxed)), (0, 4098));
    }

    #[test]
    fn a_head_that_cannot_be_takes_no_more_than_the_ring_has() {
        let mut taken = Vec::new();
        ring(u64::MAX, 0).take(&mut taken);
        assert_eq!(taken.len(), 4096);
    }
}
