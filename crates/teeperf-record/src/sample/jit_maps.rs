//! What programs in containers tell perf of code that they make: `/tmp/perf-PID.map`, with their
//! own process id and in their own `/tmp`. Whoever reads samples knows the process's id here, and
//! looks in the `/tmp` of here. So the sampler puts a copy there when the process ends, or the
//! recording does, as users of perf do by hand.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use teeperf_symbols::is_memory;

use super::record::{Map, Record};
use crate::inside::{self, View};
use crate::liveness::innermost;

/// Most processes whose files are held open.
const MOST: usize = 256;
/// Most bytes that are copied, of one and of all.
const MOST_BYTES: u64 = 64 << 20;
const MOST_OF_ALL: u64 = 256 << 20;

/// Processes with code that they made, and another id or view there.
pub(super) struct JitMaps {
    own: Option<View>,
    /// Nothing for those that need no copy.
    processes: HashMap<u32, Option<Inner>>,
    /// Bytes that may still be copied.
    left: u64,
}

/// One of them.
struct Inner {
    /// Its id where it is.
    pid: u32,
    /// Its user, by the number here.
    user: u32,
    /// The file, once there is one: it outlives the container.
    file: Option<File>,
}

impl JitMaps {
    pub(super) fn new() -> Self {
        Self { own: View::own(), processes: HashMap::new(), left: MOST_OF_ALL }
    }

    /// Looks at the process that has just made code, while it lives.
    pub(super) fn look(&mut self, record: &Record<'_>) {
        let Record::Map(map) = record else { return };
        if !is_made(map) || self.processes.len() >= MOST {
            return;
        }
        let own = self.own;
        self.processes.entry(map.pid).or_insert_with(|| Inner::of(map.pid, own));
    }

    /// Looks for files that were not there yet.
    pub(super) fn look_again(&mut self) {
        for (&pid, inner) in &mut self.processes {
            if let Some(inner) = inner.as_mut().filter(|inner| inner.file.is_none()) {
                inner.file = inner.open(pid).ok();
            }
        }
    }

    /// A record's turn has come: where a process ends its file is copied. What the user is to know
    /// is told.
    pub(super) fn follow(&mut self, record: &Record<'_>) -> Option<String> {
        match record {
            Record::Exited(kin) if kin.pid == kin.tid => {
                let inner = self.processes.remove(&kin.pid).flatten()?;
                inner.copy(kin.pid, &mut self.left)
            }
            _ => None,
        }
    }

    /// The recording ends before these processes do.
    pub(super) fn finish(&mut self) -> Vec<String> {
        self.look_again();
        let (processes, left) = (self.processes.drain(), &mut self.left);
        processes.filter_map(|(pid, inner)| inner?.copy(pid, left)).collect()
    }
}

impl Inner {
    /// What is to be copied of a process, if anything is.
    fn of(pid: u32, own: Option<View>) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let inner = innermost(&status)?;
        if inner == pid && View::of(pid) == own {
            return None;
        }
        let user = inside::user_of(pid)?;
        let mut found = Self { pid: inner, user, file: None };
        found.file = found.open(pid).ok();
        Some(found)
    }

    /// Opens the file, if it is one of the process's user: the process says by its mounts what the path leads to.
    fn open(&self, pid: u32) -> io::Result<File> {
        let folder = libc::O_PATH | libc::O_DIRECTORY;
        let root =
            OpenOptions::new().read(true).custom_flags(folder).open(format!("/proc/{pid}/root"))?;
        let path = format!("/tmp/perf-{}.map", self.pid);
        let file = inside::below(&root, path.as_bytes(), libc::O_NOFOLLOW)?;
        match file.metadata()?.uid() == self.user && !inside::is_of_kernel(&file) {
            true => Ok(file),
            false => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    /// Puts the copy where the process's id here has it looked for.
    fn copy(self, pid: u32, left: &mut u64) -> Option<String> {
        let file = self.file?;
        let place = format!("/tmp/perf-{pid}.map");
        let inner = self.pid;
        let told = match copy(&file, &place, left) {
            Ok(()) => format!(
                "process {pid} is process {inner} in its container: {place} has what it told there of code that it made"
            ),
            Err(error) => format!(
                "what process {pid}, {inner} in its container, told of code that it made could not be copied to {place}: {error}"
            ),
        };
        Some(told)
    }
}

/// What an earlier process of this id left there goes, where it is this user's. `left`: bytes that may still be copied. A file
/// that is too large is not copied in part.
fn copy(file: &File, place: &str, left: &mut u64) -> io::Result<()> {
    let there = fs::symlink_metadata(place);
    let source = file.metadata()?;
    if let Ok(there) = &there {
        if (there.dev(), there.ino()) == (source.dev(), source.ino()) {
            return Ok(());
        }
        if there.uid() != fs::metadata("/proc/self/status")?.uid() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        fs::remove_file(place)?;
    }
    if source.len() > MOST_BYTES.min(*left) {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    *left -= source.len();
    let mut copy = OpenOptions::new().write(true).create_new(true).mode(0o600).open(place)?;
    io::copy(&mut file.take(source.len()), &mut copy).map(drop)
}

/// Whether a map is of code that was made in memory.
fn is_made(map: &Map<'_>) -> bool {
    map.protection & libc::PROT_EXEC as u32 != 0 && is_memory(map.path, map.build_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards: a copy takes an earlier process's place, and a file is not copied over itself.
    #[test]
    fn a_copy_takes_the_place_of_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        fs::write(at("inner"), "1000 10 f\n").unwrap();
        fs::write(at("outer"), "of an earlier process").unwrap();
        for _ in 0..2 {
            copy(&File::open(at("inner")).unwrap(), &at("outer"), &mut 1000).unwrap();
            assert_eq!(fs::read_to_string(at("outer")).unwrap(), "1000 10 f\n");
        }
        copy(&File::open(at("outer")).unwrap(), &at("outer"), &mut 1000).unwrap();
        assert_eq!(fs::read_to_string(at("outer")).unwrap(), "1000 10 f\n");
        // What there is no room for is not copied in part.
        assert!(copy(&File::open(at("inner")).unwrap(), &at("large"), &mut 9).is_err());
        assert!(fs::metadata(at("large")).is_err());
    }
}
