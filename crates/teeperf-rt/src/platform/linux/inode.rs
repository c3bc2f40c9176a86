//! What the kernel says of a file without opening it.

use crate::arch::{number, syscall};
use core::ffi::CStr;

const AT_FDCWD: usize = -100isize as usize;
const AT_SYMLINK_NOFOLLOW: usize = 0x100;

/// A file's number and its owner, and when it was modified: nanoseconds of the real-time clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inode {
    pub(crate) number: u64,
    pub(crate) user: u32,
    pub(crate) modified: u64,
}

impl Inode {
    /// That of the file at a path; of a symbolic link its own, unless it is to be followed.
    pub(crate) fn of(path: &CStr, is_followed: bool) -> Option<Self> {
        // `struct stat` of x86-64: device, inode, links, mode and user, and seconds and nanoseconds
        // of the modification.
        let mut stat = [0u64; 18];
        let flags = if is_followed { 0 } else { AT_SYMLINK_NOFOLLOW };
        let arguments = [AT_FDCWD, path.as_ptr() as usize, &raw mut stat as usize, flags, 0, 0];
        // SAFETY: the path is a string of C, and the kernel writes one structure, of 144 bytes.
        let told = unsafe { syscall(number::NEWFSTATAT, arguments) };
        let [_, number, _, mode_and_user, _, _, _, _, _, _, _, seconds, nanoseconds, ..] = stat;
        let modified = seconds.wrapping_mul(1_000_000_000).wrapping_add(nanoseconds);
        (told == 0).then_some(Self { number, user: (mode_and_user >> 32) as u32, modified })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{MetadataExt, symlink};

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn a_link_and_what_it_leads_to_are_told_apart() {
        let path = std::env::temp_dir().join(format!("inode-{}", std::process::id()));
        symlink("/proc/self/ns/pid", &path).unwrap();
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        let of = |metadata: std::fs::Metadata| Inode {
            number: metadata.ino(),
            user: metadata.uid(),
            modified: metadata.mtime() as u64 * 1_000_000_000 + metadata.mtime_nsec() as u64,
        };
        let expected = [std::fs::metadata(&path), std::fs::symlink_metadata(&path)];
        let found = [true, false].map(|is_followed| Inode::of(&name, is_followed));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(found, expected.map(|metadata| Some(of(metadata.unwrap()))));
        assert_eq!(Inode::of(c"/nowhere", false), None);
    }
}
