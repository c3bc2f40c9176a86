//! The link by which a process without a variable finds the recorder that it descends from. Its name has the recorder's
//! process id, and the namespace that the id is of: containers may share `/tmp`. Its time is when
//! the recorder's last complete look at its descendants began. A process that the recorder does not
//! hear waits for that.

use filetime::{FileTime, set_symlink_file_times};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::SystemTime;
use teeperf_wire::hello::RECORDER_LINK;

/// Goes when it is dropped. One that a recorder left which was killed leads to nobody.
#[derive(Debug)]
pub(crate) struct Link(PathBuf);

impl Link {
    /// Leads to the name of this process's socket.
    pub(crate) fn to(socket: &str) -> io::Result<Self> {
        let path = path()?;
        // Of a recorder that had this id before.
        let _ = std::fs::remove_file(&path);
        symlink(socket, &path)?;
        Ok(Self(path))
    }

    /// A look that began then has seen all that ran.
    pub(crate) fn has_looked_at(&self, began: SystemTime) {
        let time = FileTime::from_system_time(began);
        // Without, processes stay for as long as they do at most.
        let _ = set_symlink_file_times(&self.0, time, time);
    }
}

/// That of this process.
fn path() -> io::Result<PathBuf> {
    let namespace = std::fs::metadata("/proc/self/ns/pid")?.ino();
    Ok(format!("{RECORDER_LINK}{namespace}-{}", std::process::id()).into())
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_link_takes_the_place_of_one_that_was_left() {
        let path = path().unwrap();
        symlink("left", &path).unwrap();
        let link = Link::to("name").unwrap();
        assert_eq!(std::fs::read_link(&path).unwrap(), PathBuf::from("name"));
        let time = SystemTime::UNIX_EPOCH + Duration::new(1_800_000_000, 123_456_789);
        link.has_looked_at(time);
        assert_eq!(path.symlink_metadata().unwrap().modified().unwrap(), time);
        drop(link);
        assert!(std::fs::read_link(&path).is_err());
    }
}
