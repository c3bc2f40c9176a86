//! Memory that is shared with a traced process: a memfd, mapped here before it is sealed.
//!
//! The only place that maps memory. What it gives out are atomics, because the other side
//! may write at any time; whoever wants to look twice copies first.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

#[cfg(target_endian = "big")]
compile_error!("shared memory is little-endian, and is read as the machine's own numbers");

/// Seals of memory that both sides write: nobody can make it smaller and so kill the other.
pub(crate) const SEAL_SIZE: libc::c_int =
    libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
/// Seals of memory that only the mappings made before the seal can write.
pub(crate) const SEAL_READ_ONLY: libc::c_int = SEAL_SIZE | libc::F_SEAL_FUTURE_WRITE;

/// A sealed memfd and its writable mapping. All zero at first.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    base: NonNull<u8>,
    length: usize,
    file: OwnedFd,
}

// SAFETY: the mapping belongs to this value until it is dropped, and is only reached
// through atomics, which any thread may use.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// `length` bytes, mapped for writing, then sealed with `seals`.
    pub(crate) fn create(name: &CStr, length: usize, seals: libc::c_int) -> io::Result<Self> {
        // SAFETY: the name is a C string; the result is checked.
        let fd = unsafe {
            libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)
        };
        checked(fd)?;
        // SAFETY: the descriptor is new and nobody else's.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: no pointers are involved.
        checked(unsafe { libc::ftruncate(fd, length as libc::off_t) })
            .map_err(|error| too_large(error, length))?;
        let base = map(&file, length)?;
        let memory = Self { base, length, file };
        // SAFETY: no pointers are involved.
        checked(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) })?;
        Ok(memory)
    }

    /// The first `length` bytes of a file or device that others map as well, as they are. Whoever can make
    /// the file shorter can end this process.
    pub(crate) fn of(file: OwnedFd, length: usize) -> io::Result<Self> {
        let base = map(&file, length)?;
        Ok(Self { base, length, file })
    }

    /// Bytes.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Where it begins: for what others keep there, in atomics as well.
    pub(crate) fn start(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// To be sent to the process.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The file opened once more, to be sent to the process. It is locked until nobody has it open,
    /// or mapped by what was opened here.
    pub(crate) fn lend(&self) -> io::Result<OwnedFd> {
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let file = File::options().read(true).write(true).open(path)?;
        // SAFETY: no pointers are involved.
        checked(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) })?;
        Ok(file.into())
    }

    /// Whether anybody still has what was lent.
    pub(crate) fn is_lent(&self) -> bool {
        // SAFETY: no pointers are involved.
        checked(unsafe { libc::flock(self.file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) })
            .is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// The aligned number at this offset.
    pub(crate) fn number(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.length);
        // SAFETY: within the mapping, which lives as long as self; aligned, as the mapping
        // begins at a page; sealed, so that the pages cannot go away.
        unsafe { &*self.base.as_ptr().add(offset).cast() }
    }

    /// The aligned number at this offset, eight bytes.
    pub(crate) fn wide(&self, offset: usize) -> &AtomicU64 {
        &self.wides(offset, 8)[0]
    }

    /// Zeroes whole pages, and has them take no memory until they are used again.
    pub(crate) fn forget(&self, offset: usize, bytes: usize) {
        let wides = self.wides(offset, bytes);
        // SAFETY: of the mapping, which others may write at any time; a hole in a memfd is zeros to all
        // (memfd_create(2), madvise(2)).
        let result =
            unsafe { libc::madvise(wides.as_ptr().cast_mut().cast(), bytes, libc::MADV_REMOVE) };
        if result != 0 {
            zero(wides);
        }
    }

    /// `bytes` bytes from this aligned offset on, eight at a time.
    pub(crate) fn wides(&self, offset: usize, bytes: usize) -> &[AtomicU64] {
        assert!(offset.is_multiple_of(8) && bytes.is_multiple_of(8));
        assert!(offset.checked_add(bytes).is_some_and(|end| end <= self.length));
        // SAFETY: within the mapping, which lives as long as self; aligned, as the mapping
        // begins at a page; atomics, so that others may write meanwhile.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(offset).cast(), bytes / 8) }
    }

    /// `count` numbers from this aligned offset on.
    pub(crate) fn numbers(&self, offset: usize, count: usize) -> &[AtomicU32] {
        assert!(offset.is_multiple_of(4) && count <= self.length / 4);
        assert!(offset.checked_add(count * 4).is_some_and(|end| end <= self.length));
        // SAFETY: as in `wides`.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(offset).cast(), count) }
    }
}

fn map(file: &OwnedFd, length: usize) -> io::Result<NonNull<u8>> {
    let (null, access) = (std::ptr::null_mut(), libc::PROT_READ | libc::PROT_WRITE);
    let fd = file.as_raw_fd();
    // SAFETY: a new mapping at an address of the kernel's choice; the result is checked.
    let base = unsafe { libc::mmap(null, length, access, libc::MAP_SHARED, fd, 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(base.cast()).ok_or_else(io::Error::last_os_error)
}

/// Names the limit: shared memory counts as a file.
fn too_large(error: io::Error, length: usize) -> io::Error {
    if error.kind() != io::ErrorKind::FileTooLarge {
        return error;
    }
    let text = format!("shared memory of {length} bytes is more than `ulimit -f` allows a file");
    io::Error::new(error.kind(), text)
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping that `create` made; no reference into it outlives self.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
    }
}

/// Copies what stands there, each number read once. As many as `into` has.
pub(crate) fn copy_out(from: &[AtomicU64], into: &mut [u64]) {
    assert!(into.len() <= from.len());
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads from one slice and writes to the other, within both. An instruction that the
    // compiler does not look into may read what others write meanwhile: any bits are a number.
    // Several times as fast as number by number, see "fast string operation" in Intel's
    // Software Developer's Manual, volume 1, 7.3.9.3.
    unsafe {
        std::arch::asm!(
            "rep movsq",
            inout("rsi") from.as_ptr() => _,
            inout("rdi") into.as_mut_ptr() => _,
            inout("rcx") into.len() => _,
            options(nostack, preserves_flags),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    for (into, from) in into.iter_mut().zip(from) {
        *into = from.load(std::sync::atomic::Ordering::Relaxed);
    }
}

/// Sets all to 0.
pub(crate) fn zero(numbers: &[AtomicU64]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: writes within the slice, whose numbers may be written through a shared reference; as
    // in `copy_out` otherwise.
    unsafe {
        std::arch::asm!(
            "rep stosq",
            inout("rdi") numbers.as_ptr() => _,
            inout("rcx") numbers.len() => _,
            in("rax") 0u64,
            options(nostack, preserves_flags),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    for number in numbers {
        number.store(0, std::sync::atomic::Ordering::Relaxed);
    }
}

/// Wakes every process and thread that sleeps on this number, which is in shared memory.
pub(crate) fn wake_all(number: &AtomicU32) {
    // SAFETY: the kernel only compares the address; waking touches no memory.
    unsafe { libc::syscall(libc::SYS_futex, number.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// Turns the -1 of a system call into its error.
pub(crate) fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    fn seals(memory: &SharedMemory) -> libc::c_int {
        // SAFETY: no pointers are involved.
        unsafe { libc::fcntl(memory.file().as_raw_fd(), libc::F_GET_SEALS) }
    }

    #[test]
    fn it_is_zero_and_cannot_shrink() {
        let memory = SharedMemory::create(c"test", 8192, SEAL_SIZE).unwrap();
        assert!(memory.wides(0, 8192).iter().all(|wide| wide.load(Relaxed) == 0));
        assert_eq!(seals(&memory), SEAL_SIZE);
        // SAFETY: no pointers are involved.
        assert_eq!(unsafe { libc::ftruncate(memory.file().as_raw_fd(), 0) }, -1);
        memory.number(4).store(1, Relaxed);
        assert_eq!(memory.wide(0).load(Relaxed), 1 << 32);
    }

    #[test]
    fn it_is_lent_as_long_as_it_is_open_or_mapped() {
        let memory = SharedMemory::create(c"test", 4096, SEAL_SIZE).unwrap();
        let file = memory.lend().unwrap();
        assert!(memory.is_lent());
        let (null, fd) = (std::ptr::null_mut(), file.as_raw_fd());
        // SAFETY: a new mapping, taken back below.
        let base = unsafe { libc::mmap(null, 4096, libc::PROT_READ, libc::MAP_SHARED, fd, 0) };
        assert_ne!(base, libc::MAP_FAILED);
        drop(file);
        assert!(memory.is_lent());
        // SAFETY: the mapping made above.
        unsafe { libc::munmap(base, 4096) };
        assert!(!memory.is_lent());
    }

    #[test]
    fn a_read_only_one_refuses_further_writers() {
        let memory = SharedMemory::create(c"test", 4096, SEAL_READ_ONLY).unwrap();
        memory.number(0).store(7, Relaxed);
        let write = libc::PROT_READ | libc::PROT_WRITE;
        let fd = memory.file().as_raw_fd();
        // SAFETY: a new mapping, which is expected to be refused.
        let refused =
            unsafe { libc::mmap(std::ptr::null_mut(), 4096, write, libc::MAP_SHARED, fd, 0) };
        assert_eq!(refused, libc::MAP_FAILED);
    }
}
