//! Where the command waits, before it executes its program, until the events are open.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};

/// The command's side.
#[derive(Debug)]
pub(crate) struct Gate {
    told: PipeWriter,
    go: PipeReader,
    /// The keeper's end, of which the command gets a copy: with it open it would never see that the keeper is gone.
    keepers: RawFd,
}

/// The sampler's side.
#[derive(Debug)]
pub(crate) struct Keeper {
    told: PipeReader,
    go: PipeWriter,
}

/// Both sides.
pub(crate) fn gate() -> io::Result<(Gate, Keeper)> {
    let ((told_to, told), (go, opens)) = (io::pipe()?, io::pipe()?);
    let keepers = opens.as_raw_fd();
    Ok((Gate { told, go, keepers }, Keeper { told: told_to, go: opens }))
}

impl Gate {
    /// Says who waits, and waits. For between fork and exec: it allocates nothing. Without a sampler, it goes on at once.
    pub(crate) fn pass(&self) {
        // SAFETY: the descriptor is this process's own copy, and nobody uses it here.
        unsafe { libc::close(self.keepers) };
        let pid = std::process::id();
        if (&self.told).write_all(&pid.to_ne_bytes()).is_ok() {
            // The end of the pipe says as much.
            let _ = (&self.go).read_exact(&mut [0]);
        }
    }
}

impl Keeper {
    /// Who waits; nothing when there will be nobody.
    pub(crate) fn waiting(&self) -> Option<libc::pid_t> {
        let mut pid = [0; 4];
        (&self.told).read_exact(&mut pid).ok()?;
        Some(libc::pid_t::from_ne_bytes(pid))
    }

    /// Lets it go on.
    pub(crate) fn open(mut self) {
        // It may have been killed.
        let _ = self.go.write_all(&[1]);
    }
}
