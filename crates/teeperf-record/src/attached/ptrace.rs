//! What is asked of the kernel of threads that are traced: ptrace(2), waitid(2). All of it is for the thread that seized them.

use std::io;
use teeperf_aex::attached::UserRegisters;

/// What new threads and processes of a traced one are: traced as well.
const OPTIONS: libc::c_int = libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT;

/// Threads as well as processes, and this thread's alone: others wait for the command.
const MINE: libc::c_int = libc::__WALL | libc::__WNOTHREAD;

/// What happened to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// It has a signal, which is to be handed on.
    Signal(i32),
    /// It stands with its whole group, until that goes on.
    GroupStop,
    /// It stands because it was asked to, or has just begun.
    Stopped,
    /// It has made another thread or process.
    Began,
    /// It has executed another program.
    Executed,
    /// It is about to end.
    Ends,
    /// It has ended.
    Ended,
}

/// What waiting came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    Event(u32, Event),
    /// A signal came.
    Interrupted,
    /// The command's first thread has ended, which others wait for, and nothing else has happened.
    Ending,
    /// There is nobody to wait for.
    Nobody,
}

fn ask(request: libc::c_uint, tid: u32, address: usize, data: usize) -> io::Result<libc::c_long> {
    // SAFETY: requests of this module write to nothing but what they are given behind `data`.
    let result = unsafe { libc::ptrace(request, tid.cast_signed(), address, data) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// From here on a thread is traced. It does not stop.
pub(super) fn seize(tid: u32) -> io::Result<()> {
    ask(libc::PTRACE_SEIZE, tid, 0, OPTIONS as usize).map(drop)
}

/// Has it stop soon. May be called by a signal handler.
pub(super) fn interrupt(tid: u32) {
    // It may have ended.
    let _ = ask(libc::PTRACE_INTERRUPT, tid, 0, 0);
}

/// Lets it go on, with a signal; 0: without.
pub(super) fn go_on(tid: u32, signal: i32) {
    // A thread that is killed goes on by itself.
    let _ = ask(libc::PTRACE_CONT, tid, 0, signal as usize);
}

/// Leaves it standing with its group, until that goes on.
pub(super) fn listen(tid: u32) {
    let _ = ask(libc::PTRACE_LISTEN, tid, 0, 0);
}

/// It is not traced any more, and goes on.
pub(super) fn leave(tid: u32) {
    let _ = ask(libc::PTRACE_DETACH, tid, 0, 0);
}

/// What an event is about: of a thread that began its id, of an execution the id that the thread had before.
pub(super) fn message(tid: u32) -> Option<u32> {
    let mut message: libc::c_ulong = 0;
    ask(libc::PTRACE_GETEVENTMSG, tid, 0, (&raw mut message) as usize).ok()?;
    u32::try_from(message).ok()
}

/// Registers of a thread that stands.
pub(super) fn registers(tid: u32) -> Option<UserRegisters> {
    const PRSTATUS: usize = 1;
    let mut registers: UserRegisters = [0; 27];
    let vector =
        libc::iovec { iov_base: (&raw mut registers).cast(), iov_len: size_of_val(&registers) };
    ask(libc::PTRACE_GETREGSET, tid, PRSTATUS, (&raw const vector) as usize).ok()?;
    Some(registers)
}

/// Waits for what happens next to any thread that is traced. Of the command's first thread that it has ended is left to who waits for the
/// command.
pub(super) fn wait(command: Option<u32>, all: impl Iterator<Item = u32>) -> Waited {
    let both = libc::WSTOPPED | libc::WEXITED | MINE;
    let found = match look(libc::P_ALL, 0, both | libc::WNOWAIT) {
        Ok(found) => found,
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Waited::Nobody,
        Err(_) => return Waited::Interrupted,
    };
    let take = |tid| {
        let ends = if Some(tid) == command { 0 } else { libc::WEXITED };
        let options = libc::WSTOPPED | ends | libc::WNOHANG | MINE;
        let (tid, event) = look(libc::P_PID, tid, options).ok()??;
        Some(Waited::Event(tid, event?))
    };
    match found {
        // It hides what others have.
        Some((tid, Some(Event::Ended))) if Some(tid) == command => {
            all.into_iter().find_map(take).unwrap_or(Waited::Ending)
        }
        Some((tid, _)) => take(tid).unwrap_or(Waited::Interrupted),
        None => Waited::Interrupted,
    }
}

/// What waitid(2) says, and of whom.
fn look(
    kind: libc::idtype_t,
    id: u32,
    options: libc::c_int,
) -> io::Result<Option<(u32, Option<Event>)>> {
    // SAFETY: a struct of numbers, for which zeros are a value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the address is that of such a struct.
    crate::memory::checked(unsafe { libc::waitid(kind, id, &mut info, options) })?;
    // SAFETY: waitid fills these in, or leaves zeros.
    let (tid, status) = unsafe { (info.si_pid(), info.si_status()) };
    if tid <= 0 {
        return Ok(None);
    }
    let event = match info.si_code {
        libc::CLD_TRAPPED | libc::CLD_STOPPED => event(status),
        libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED => Some(Event::Ended),
        _ => None,
    };
    Ok(Some((tid.cast_unsigned(), event)))
}

/// Of a status: the signal, and behind it the event.
fn event(status: i32) -> Option<Event> {
    let signal = status & 0xff;
    Some(match status >> 8 {
        0 => Event::Signal(signal),
        libc::PTRACE_EVENT_STOP if signal == libc::SIGTRAP => Event::Stopped,
        libc::PTRACE_EVENT_STOP => Event::GroupStop,
        libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
            Event::Began
        }
        libc::PTRACE_EVENT_EXEC => Event::Executed,
        libc::PTRACE_EVENT_EXIT => Event::Ends,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_events() {
        for (status, expected) in [
            (libc::SIGUSR1, Event::Signal(libc::SIGUSR1)),
            (libc::SIGTRAP, Event::Signal(libc::SIGTRAP)),
            (libc::SIGTRAP | 128 << 8, Event::Stopped),
            (libc::SIGSTOP | 128 << 8, Event::GroupStop),
            (libc::SIGTTIN | 128 << 8, Event::GroupStop),
            (libc::SIGTRAP | 3 << 8, Event::Began),
            (libc::SIGTRAP | 4 << 8, Event::Executed),
            (libc::SIGTRAP | 6 << 8, Event::Ends),
        ] {
            assert_eq!(event(status), Some(expected), "{status:x}");
        }
        assert_eq!(event(libc::SIGTRAP | 99 << 8), None);
    }
}
