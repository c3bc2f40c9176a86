//! Files as a process sees them, which may be in another mount namespace, or below another root.

use std::ffi::{CString, OsStr};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::memory::checked;
use crate::missing::unescaped;

/// The mount namespace and the root of a process: they decide which file a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct View {
    namespace: u64,
    /// Device and inode of the root.
    root: (u64, u64),
}

impl View {
    /// That of a process; nothing where it is gone, or may not be looked into.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        Self::of_named(&pid.to_string())
    }

    /// That of this process.
    pub(crate) fn own() -> Option<Self> {
        Self::of_named("self")
    }

    fn of_named(process: &str) -> Option<Self> {
        let namespace = fs::metadata(format!("/proc/{process}/ns/mnt")).ok()?.ino();
        let root = fs::metadata(format!("/proc/{process}/root/")).ok()?;
        Some(Self { namespace, root: (root.dev(), root.ino()) })
    }

    /// Opens the file that a process with this view sees at a path, if it still has the view.
    pub(crate) fn open(self, pid: u32, path: &[u8]) -> io::Result<File> {
        let folder = libc::O_PATH | libc::O_DIRECTORY;
        let root =
            OpenOptions::new().read(true).custom_flags(folder).open(format!("/proc/{pid}/root"))?;
        if Self::of(pid) != Some(self) {
            return Err(io::ErrorKind::NotFound.into());
        }
        below(&root, path, 0)
    }
}

/// Path, below the process's own root, of the file that a process has mapped at an address. For processes that have no
/// list of mappings themselves, as below a root without `/proc`.
pub(crate) fn path_at(pid: u32, address: u64) -> Option<Vec<u8>> {
    let maps = fs::read(format!("/proc/{pid}/maps")).ok()?;
    let path = maps.split(|&byte| byte == b'\n').find_map(|line| path_of(line, address))?;
    let root = fs::read_link(format!("/proc/{pid}/root")).ok()?;
    let path = unescaped(path);
    let below = Path::new(OsStr::from_bytes(&path)).strip_prefix(root).ok()?;
    Some(Path::new("/").join(below).as_os_str().as_bytes().to_vec())
}

/// The path in a line of proc_pid_maps(5), where the address lies between its two.
fn path_of(line: &[u8], address: u64) -> Option<&[u8]> {
    let start = line.iter().position(|&byte| byte == b'/')?;
    let (fields, path) = line.split_at(start);
    let bounds = std::str::from_utf8(fields).ok()?.split_whitespace().next()?;
    let (low, high) = bounds.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    (number(low)?..number(high)?).contains(&address).then_some(path)
}

/// Opens a plain file at a path below a root, as if that were this process's own: symbolic links
/// lead nowhere else.
pub(crate) fn below(root: &File, path: &[u8], flags: libc::c_int) -> io::Result<File> {
    let path = CString::new(path)?;
    // SAFETY: numbers alone, of which 0 is one.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    // Without NONBLOCK it would wait for a process at the other end of a pipe.
    let flags = flags | libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    how.flags = flags as u64;
    how.resolve = libc::RESOLVE_IN_ROOT | libc::RESOLVE_NO_MAGICLINKS;
    let (fd, at, size) = (root.as_raw_fd(), path.as_ptr(), size_of_val(&how));
    // SAFETY: the path ends with a 0, and the size is that of the struct, which the kernel reads.
    let opened = unsafe { libc::syscall(libc::SYS_openat2, fd, at, &raw const how, size) };
    let opened = checked(opened as libc::c_int)?;
    // SAFETY: the descriptor is new and nobody else's.
    let file = unsafe { File::from_raw_fd(opened) };
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// The user whose rights a process has, by the number here. `/proc/PID` itself is root's where the process forbids dumps.
pub(crate) fn user_of(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_whitespace().nth(1)?.parse().ok()
}

/// Whether an open file is the one of this inode, 0 for any. A file system that lays others over
/// each other (overlayfs) has numbers of its own, which say nothing.
pub(crate) fn is_inode(file: &File, inode: u64) -> bool {
    let has = file.metadata().is_ok_and(|there| there.ino() == inode);
    inode == 0 || has || is_overlay(file)
}

/// The same for the file at a path of this process.
pub(crate) fn is_inode_at(path: &[u8], inode: u64) -> bool {
    let mut open = OpenOptions::new();
    open.read(true).custom_flags(libc::O_PATH);
    inode == 0 || open.open(as_path(path)).is_ok_and(|file| is_inode(&file, inode))
}

/// Whether this process has a file of this inode at this path; never where none is told.
pub(crate) fn has_inode(path: &[u8], inode: u64) -> bool {
    inode != 0 && fs::metadata(as_path(path)).is_ok_and(|there| there.ino() == inode)
}

/// Whether this process has the same file at this path.
pub(crate) fn is_here(path: &[u8], there: &fs::Metadata) -> bool {
    let own = fs::metadata(as_path(path));
    own.is_ok_and(|own| (own.dev(), own.ino()) == (there.dev(), there.ino()))
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Whether the kernel makes up a file's contents, as below `/proc` and `/sys`.
pub(crate) fn is_of_kernel(file: &File) -> bool {
    const PROC: i64 = 0x9fa0;
    const SYSFS: i64 = 0x6265_6572;
    kind(file).is_none_or(|kind| [PROC, SYSFS].contains(&kind))
}

fn is_overlay(file: &File) -> bool {
    const OVERLAYFS: i64 = 0x794c_7630;
    kind(file) == Some(OVERLAYFS)
}

/// The kernel's number for the kind of a file's file system.
fn kind(file: &File) -> Option<i64> {
    // SAFETY: numbers alone, of which 0 is one.
    let mut told: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one such struct there.
    let result = unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut told) };
    (result == 0).then_some(told.f_type as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_is_known_by_where_it_is_mapped() {
        let own = std::process::id();
        let here = a_file_is_known_by_where_it_is_mapped as *const () as u64;
        let program = std::env::current_exe().unwrap();
        assert_eq!(path_at(own, here), Some(program.as_os_str().as_bytes().to_vec()));
        assert_eq!(path_at(own, 0), None);
        let line = b"1000-2000 r-xp 00000000 08:01 7      /a b (deleted)";
        assert_eq!(path_of(line, 0x1fff), Some(&b"/a b (deleted)"[..]));
        assert_eq!(path_of(line, 0x2000), None);
        for cut in 0..line.len() {
            path_of(&line[..cut], 0x1fff);
        }
    }

    /// Guards: a link within a container names a file of the container, not of this system.
    #[test]
    fn links_stay_below_the_root() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("passwd"), "inner").unwrap();
        fs::create_dir(at("etc")).unwrap();
        symlink("/passwd", at("etc/passwd")).unwrap();
        symlink("../../../../../passwd", at("up")).unwrap();
        let root = File::open(folder.path()).unwrap();
        for path in [&b"/etc/passwd"[..], b"etc/passwd", b"/up"] {
            let mut text = String::new();
            below(&root, path, 0).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "inner");
        }
        assert!(below(&root, b"/etc/passwd", libc::O_NOFOLLOW).is_err());
        assert!(below(&root, b"/etc", 0).is_err() && below(&root, b"/none", 0).is_err());
    }

    #[test]
    fn this_process_has_its_user() {
        let own = fs::metadata("/proc/self/status").unwrap().uid();
        assert_eq!(user_of(std::process::id()), Some(own));
        assert_eq!(user_of(u32::MAX), None);
    }

    #[test]
    fn this_process_has_the_view_of_its_own() {
        assert_eq!(View::of(std::process::id()), View::own());
        assert!(View::own().is_some() && View::of(u32::MAX).is_none());
    }
}
