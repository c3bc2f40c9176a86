//! Signals to the recorder, taken as data. The recorder outlives what ends its command,
//! because it has a recording to finish.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal {
    pub(crate) number: libc::c_int,
    /// The terminal sent it, to the whole process group.
    pub(crate) from_terminal: bool,
}

/// Those taken: whatever would end the recorder, and what asks it for something.
const TAKEN: [libc::c_int; 6] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, TURN, SNAPSHOT];
/// Pauses the recording, or resumes it.
pub(crate) const TURN: libc::c_int = libc::SIGUSR1;
/// Has what is there so far written, so that it can be read: as `perf record` takes it.
pub(crate) const SNAPSHOT: libc::c_int = libc::SIGUSR2;

/// Where the handler writes; -1: the signals are not taken.
static TOLD: AtomicI32 = AtomicI32::new(-1);

/// The process that took them. Its child is another until it executes a program.
static TAKER: AtomicI32 = AtomicI32::new(0);

/// Takes the signals of the whole process while it lives. A program started meanwhile has
/// them as they were: exec leaves no handler.
#[derive(Debug)]
pub(crate) struct Signals {
    heard: PipeReader,
    before: Vec<(libc::c_int, libc::sigaction)>,
    /// Kept open for the handler.
    _told: PipeWriter,
}

impl Signals {
    /// Takes them. Once at a time in a process.
    pub(crate) fn take() -> io::Result<Self> {
        let (heard, told) = io::pipe()?;
        for end in [heard.as_raw_fd(), told.as_raw_fd()] {
            // SAFETY: no pointers are involved.
            crate::memory::checked(unsafe { libc::fcntl(end, libc::F_SETFL, libc::O_NONBLOCK) })?;
        }
        if TOLD.compare_exchange(-1, told.as_raw_fd(), SeqCst, SeqCst).is_err() {
            return Err(io::Error::other("signals are taken by another recording"));
        }
        // SAFETY: no pointers are involved.
        TAKER.store(unsafe { libc::getpid() }, SeqCst);
        let mut signals = Self { heard, before: Vec::new(), _told: told };
        for signal in TAKEN {
            let before = action(signal, None)?;
            // A signal that was ignored from the start, as nohup has it, stays so.
            if before.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            // SAFETY: a struct of numbers and a function address, for which zeros are a value.
            let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = tell;
            ours.sa_sigaction = handler as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            action(signal, Some(&ours))?;
            signals.before.push((signal, before));
        }
        Ok(signals)
    }

    /// To be polled.
    pub(crate) fn as_raw_fd(&self) -> RawFd {
        self.heard.as_raw_fd()
    }

    /// The next signal, if one has come.
    pub(crate) fn next(&self) -> Option<Signal> {
        let mut said = [0; 2];
        (&self.heard).read_exact(&mut said).ok()?;
        let [number, from_terminal] = said;
        Some(Signal { number: number.into(), from_terminal: from_terminal != 0 })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            // What could be set can be set back.
            let _ = action(*signal, Some(before));
        }
        TOLD.store(-1, SeqCst);
    }
}

/// Makes it an error of the write, as a full disk is, when a file may grow no further (`ulimit -f`);
/// otherwise that ends the process without a word. For the whole process, to its end. Programs that it
/// starts have the signal as it was.
///
/// # Errors
///
/// When the system refuses.
pub fn file_limit_is_an_error() -> io::Result<()> {
    if action(libc::SIGXFSZ, None)?.sa_sigaction == libc::SIG_IGN {
        return Ok(());
    }
    // SAFETY: a struct of numbers and a function address, for which zeros are a value.
    let mut quiet: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(libc::c_int) = ignore;
    quiet.sa_sigaction = handler as usize;
    quiet.sa_flags = libc::SA_RESTART;
    action(libc::SIGXFSZ, Some(&quiet)).map(drop)
}

/// The handler: says which signal came, and whether the kernel sent it (sigaction(2)). In a child that has not
/// executed its program yet the signal does what it would do to that program.
extern "C" fn tell(number: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    const SI_KERNEL: libc::c_int = 0x80;
    // SAFETY: the kernel gives a handler with SA_SIGINFO a valid address. errno is the
    // interrupted thread's and is left as it was; what is called may be called here
    // (signal-safety(7)). A full pipe loses a signal behind thousands that were not heard.
    unsafe {
        if libc::getpid() != TAKER.load(SeqCst) {
            libc::signal(number, libc::SIG_DFL);
            libc::raise(number);
            return;
        }
        let said = [number as u8, ((*info).si_code == SI_KERNEL) as u8];
        let error = *libc::__errno_location();
        libc::write(TOLD.load(SeqCst), said.as_ptr().cast(), said.len());
        *libc::__errno_location() = error;
    }
}

/// Not SIG_IGN, which the program would inherit.
extern "C" fn ignore(_: libc::c_int) {}

/// Sets what a signal does, where something is given; returns what it did.
fn action(signal: libc::c_int, new: Option<&libc::sigaction>) -> io::Result<libc::sigaction> {
    // SAFETY: a struct of numbers and a function address, for which zeros are a value.
    let mut before: libc::sigaction = unsafe { std::mem::zeroed() };
    let new = new.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: null asks for no change; the other address is that of a sigaction.
    crate::memory::checked(unsafe { libc::sigaction(signal, new, &mut before) })?;
    Ok(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards: Ctrl-C ends a command that is not executed yet.
    #[test]
    fn a_child_has_its_signals_for_itself() {
        let signals = Signals::take().unwrap();
        for signal in [libc::SIGTERM, libc::SIGINT] {
            // SAFETY: the child calls what may be called between fork and exec alone.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: no pointers are involved.
                unsafe {
                    libc::raise(signal);
                    libc::_exit(0);
                }
            }
            let mut status = 0;
            // SAFETY: the address is that of a number.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == signal, "{status}");
            assert_eq!(signals.next(), None);
        }
        // SAFETY: no pointers are involved.
        unsafe { libc::raise(libc::SIGTERM) };
        let here = Signal { number: libc::SIGTERM, from_terminal: false };
        assert_eq!(signals.next(), Some(here));
    }
}
