//! The link by which a process without a variable finds the recorder that it descends from. Its name has the recorder's
//! process id, and the namespace that the id is of: containers may share `/tmp`.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
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

    #[test]
    fn a_link_takes_the_place_of_one_that_was_left() {
        let path = path().unwrap();
        symlink("left", &path).unwrap();
        let link = Link::to("name").unwrap();
        assert_eq!(std::fs::read_link(&path).unwrap(), PathBuf::from("name"));
        drop(link);
        assert!(std::fs::read_link(&path).is_err());
    }
}
