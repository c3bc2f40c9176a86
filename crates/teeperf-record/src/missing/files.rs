//! Files whose code processes map, and whether these have hooks.

use super::file::{hooks_of, kibibytes_of_code};
use super::lives::Content;
use super::mapped::Code;
use crate::rights::takes_rights;
use crate::sample::Map;
use crate::server::{ancestors, arguments_of};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What is known of files, by device and number as proc_pid_maps(5) has them.
pub(super) struct Files {
    known: HashMap<(Vec<u8>, u64), (Version, Option<u32>)>,
    /// The number and path of the recorder's own program.
    recorder: Option<(u64, Vec<u8>)>,
    /// Bytes that may still be read, of all files.
    left: u64,
    /// Whether a file was not read to its end.
    has_cut: bool,
}

/// Most bytes of all files that are read, and of one.
const MOST: u64 = 4 << 30;
const MOST_OF_ONE: u64 = 256 << 20;

/// A program that is known by its file.
pub(super) struct Program {
    /// The interface of its hooks.
    pub(super) hooks: Option<u32>,
    pub(super) path: Vec<u8>,
    pub(super) takes_rights: bool,
}

/// Tells a file from a later one that has its number: size, and when it was last written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version([i64; 3]);

impl Default for Files {
    fn default() -> Self {
        let own = std::env::current_exe().ok();
        let own = own.and_then(|path| Some((path.metadata().ok()?.ino(), path)));
        let recorder = own.map(|(number, path)| (number, path.as_os_str().as_bytes().to_vec()));
        Self { known: HashMap::new(), recorder, left: MOST, has_cut: false }
    }
}

impl Files {
    /// Whether a part of some file was not read, because it had, or all have, too much code.
    pub(super) fn are_cut(&self) -> bool {
        self.has_cut
    }

    /// The interface of a file's hooks, which a process has mapped.
    pub(super) fn hooks(&mut self, pid: u32, code: &Code) -> Option<u32> {
        self.look(pid, code).flatten()
    }

    /// The program of a process that does not show what it has mapped; nothing where its file is
    /// not found. Its first argument names the file, or its thread's name, which the kernel takes
    /// from the program's. Anybody may give a program another name, so the kernel's word on how
    /// much code the process has must be that of the file.
    pub(super) fn program_of(&mut self, pid: u32) -> Option<Program> {
        let code = kibibytes_of_code_of(pid)?;
        let argument = arguments_of(pid).into_iter().next();
        let thread = std::fs::read(format!("/proc/{pid}/comm")).ok();
        let thread = thread.and_then(|name| name.strip_suffix(b"\n").map(<[u8]>::to_vec));
        let names = argument.into_iter().chain(thread);
        let paths = names.filter_map(|name| file_called(pid, &name));
        let with_number = |path: PathBuf| Some((path.metadata().ok()?.ino(), path));
        let (number, path) = paths.filter_map(with_number).find(|(number, path)| {
            let of_file = open(path, *number).and_then(|(file, _)| kibibytes_of_code(&file));
            of_file.is_some_and(|all| all.contains(&code))
        })?;
        let takes_rights = takes_rights(&path);
        let code = Code { file: (Vec::new(), number), path: path.into_os_string().into_vec() };
        Some(Program { hooks: self.hooks(pid, &code), path: code.path, takes_rights })
    }

    /// Nothing where the file cannot be opened.
    fn look(&mut self, pid: u32, code: &Code) -> Option<Option<u32>> {
        let path = Path::new(OsStr::from_bytes(&code.path));
        let process = Path::new("/proc").join(pid.to_string());
        let below = process.join("root").join(path.strip_prefix("/").ok()?);
        // A program that was replaced, or never had a path, is there while it runs. A process that has ended has
        // no root any more.
        let paths = [&below, &process.join("exe"), path];
        let (file, about) = paths.into_iter().find_map(|path| open(path, code.file.1))?;
        let version = Version([about.len() as i64, about.mtime(), about.mtime_nsec()]);
        let known = self.known.get(&code.file).filter(|(known, _)| *known == version);
        if let Some((_, hooks)) = known {
            return Some(*hooks);
        }
        let mut most = self.left.min(MOST_OF_ONE);
        let before = most;
        let hooks = hooks_of(&file, &mut most);
        self.left -= before - most;
        self.has_cut |= hooks.is_none() && most == 0;
        self.known.insert(code.file.clone(), (version, hooks));
        Some(hooks)
    }

    /// What a file is that a process mapped, as the kernel told.
    pub(super) fn content(&mut self, map: &Map<'_>) -> Content {
        let own = self.recorder.as_ref().map(|(number, path)| (*number, &path[..]));
        if is_recorder(map.path) || own == Some((map.inode, map.path)) {
            return Content::Recorder;
        }
        let [major, minor] = map.device;
        let file = (format!("{major:02x}:{minor:02x}").into_bytes(), map.inode);
        match self.look(map.pid, &Code { file, path: map.path.to_vec() }) {
            Some(Some(_)) => Content::Hooked,
            Some(None) => Content::Other,
            None => Content::OutOfSight,
        }
    }
}

/// How much code a process's program has: `VmExe` of proc_pid_status(5), which everybody may read.
fn kibibytes_of_code_of(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmExe:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The file that a shell takes for a name: below the folder that the process is in, or, where it
/// does not show that, the next of its ancestors.
fn file_called(pid: u32, name: &[u8]) -> Option<PathBuf> {
    let name = Path::new(OsStr::from_bytes(name));
    if name.as_os_str().as_bytes().contains(&b'/') {
        let folder = |pid| std::fs::read_link(format!("/proc/{pid}/cwd")).ok();
        let folder = ancestors(pid).find_map(folder)?;
        return Some(folder.join(name)).filter(|at| at.is_file());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|at| at.is_file())
}

/// Whether a path is that of another recorder.
fn is_recorder(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    name == b"teeperf"
}

/// The regular file of this number, if it is there.
fn open(path: &Path, number: u64) -> Option<(File, Metadata)> {
    // To open a device does something. The program may put one, or a pipe, in the file's place at any time: so what
    // the path leads to is held first, without opening it, and opened once it is known.
    let held = File::options().read(true).custom_flags(libc::O_PATH).open(path).ok()?;
    let about = held.metadata().ok()?;
    if !about.is_file() || about.ino() != number {
        return None;
    }
    let file = File::open(format!("/proc/self/fd/{}", held.as_raw_fd())).ok()?;
    Some((file, about))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A program with one segment of code, which has hooks of this interface or none.
    fn write(path: &Path, hooks: Option<u8>) {
        let mut bytes = vec![0; 120];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (bytes[18], bytes[32], bytes[54], bytes[56]) = (62, 64, 56, 1);
        (bytes[64], bytes[68], bytes[72]) = (1, 5, 120);
        bytes[96..104].copy_from_slice(&100u64.to_le_bytes());
        if let Some(version) = hooks {
            bytes.extend([0x48, 0x8d, 0x3d, 1, 2, 3, 4, 0xc7, 0x47, 0x20, version, 0, 0, 0]);
        }
        File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .unwrap()
            .write_all(&bytes)
            .unwrap();
    }

    #[test]
    fn a_file_is_read_again_where_another_has_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let mut files = Files::default();
        for hooks in [None, Some(7), None] {
            write(&path, hooks);
            let number = path.metadata().unwrap().ino();
            let file = (b"00:01".to_vec(), number);
            let code = Code { file, path: path.as_os_str().as_bytes().to_vec() };
            let own = std::process::id();
            assert_eq!(files.hooks(own, &code), hooks.map(u32::from));
            let another = Code { file: (b"00:01".to_vec(), number + 1), ..code };
            assert_eq!(files.hooks(own, &another), None);
        }
    }

    /// Guards: the program puts a device or a pipe in the place of a file that it has mapped.
    #[test]
    fn what_is_no_file_is_not_opened() {
        for path in ["/dev/null", "/dev/watchdog", "/proc/self", "/"] {
            let path = Path::new(path);
            let number = path.metadata().map_or(0, |about| about.ino());
            assert!(open(path, number).is_none(), "{}", path.display());
        }
        let own = std::env::current_exe().unwrap();
        assert!(open(&own, own.metadata().unwrap().ino()).is_some());
    }
}
