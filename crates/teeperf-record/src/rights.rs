//! Programs that the kernel starts with more rights than their starter has: execve(2),
//! capabilities(7).

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether a program, started by this process's user, has rights that this user may not have. Its
/// hooks then ask for no recorder. False of a file that cannot be seen.
pub(crate) fn takes_rights(path: &Path) -> bool {
    const SET_USER: u32 = 0o4000;
    /// Without the right to execute, it is a lock's mark.
    const SET_GROUP: u32 = 0o2010;
    let Ok(about) = path.metadata() else { return false };
    // SAFETY: these ask for numbers and cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    about.mode() & SET_USER != 0 && about.uid() != user
        || about.mode() & SET_GROUP == SET_GROUP && about.gid() != group
        || user != 0 && has_capabilities(path)
}

/// Whether a file is given capabilities.
pub fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: both are strings that end with 0; with no room for an answer only its length is told.
    let length = unsafe {
        libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0)
    };
    length > 0
}
