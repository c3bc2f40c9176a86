//! Waits for the command, and then for the end of the recording; passes on what signals say.

use crate::drain::Event;
use crate::memory::checked;
use crate::process::Ending;
use crate::signals::{self, Signal, Signals};
use std::io::{self, PipeReader};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::Sender;

/// See the module.
pub(crate) struct Watch<'a> {
    pub(crate) signals: Option<&'a Signals>,
    pub(crate) events: &'a Sender<Event>,
}

/// Signals in vain until the recording is given up.
const PATIENCE: u32 = 3;

impl Watch<'_> {
    /// Waits for the command's end. Signals that only the recorder got go on to it; those of
    /// the terminal it has got itself.
    pub(crate) fn command(&self, child: &mut Child) -> io::Result<ExitStatus> {
        // SAFETY: no pointers are involved. The child is not waited for yet, so that its
        // number is its own.
        let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) };
        let fd = checked(opened as libc::c_int)?;
        // SAFETY: the descriptor is new and nobody else's.
        let process = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut ends = 0;
        while !self.wait(process.as_raw_fd())? {
            while let Some(signal) = self.next_signal() {
                if !signal.from_terminal {
                    // SAFETY: no pointers are involved; the child is still not waited for.
                    unsafe { libc::kill(child.id() as libc::pid_t, signal.number) };
                    ends += 1;
                }
                if ends == 2 {
                    self.stop();
                }
            }
        }
        // What ended the command was meant for it, not for the recording.
        while self.next_signal().is_some() {}
        child.wait()
    }

    /// Waits until the other end of the pipe is closed. A signal ends the recording now:
    /// what is still recorded are processes that the command left behind.
    pub(crate) fn recording(&self, ended: &PipeReader) -> io::Result<()> {
        let mut asked = 0;
        while !self.wait(ended.as_raw_fd())? {
            while self.next_signal().is_some() {
                self.stop();
                asked += 1;
                if asked == PATIENCE {
                    // Such as a pipe that nobody reads: nothing can be finished.
                    return Err(io::ErrorKind::Interrupted.into());
                }
            }
        }
        Ok(())
    }

    /// Waits for this descriptor or a signal; true when it was the descriptor.
    fn wait(&self, file: RawFd) -> io::Result<bool> {
        let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // A negative descriptor is none: poll(2).
        let signals = self.signals.map_or(-1, Signals::as_raw_fd);
        let mut entries = [entry(file), entry(signals)];
        // SAFETY: address and length are those of `entries`.
        let polled = checked(unsafe { libc::poll(entries.as_mut_ptr(), 2, -1) });
        match polled {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
            _ => Ok(entries[0].revents != 0),
        }
    }

    /// The next signal that is to end something. What others ask for is passed on.
    fn next_signal(&self) -> Option<Signal> {
        loop {
            let signal = self.signals?.next()?;
            let event = match signal.number {
                signals::TURN => Event::Turn,
                signals::SNAPSHOT => Event::Snapshot(None),
                _ => return Some(signal),
            };
            self.tell(event);
        }
    }

    fn tell(&self, event: Event) {
        // A drain that is gone needs no telling.
        let _ = self.events.send(event);
    }

    fn stop(&self) {
        self.tell(Event::Stop("it was interrupted".into()));
    }
}

/// As the recording has it.
pub(crate) fn ending(status: ExitStatus) -> Ending {
    Ending {
        exit_status: status.code().map(|code| code as u64),
        signal: status.signal().map(|signal| signal as u64),
    }
}
