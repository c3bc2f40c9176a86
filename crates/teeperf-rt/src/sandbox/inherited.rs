//! Filters of system calls that a program was executed under: nobody can look into them, and one may end the
//! process for a call of the runtime's. So before all others, files below `/proc` are read, which a program that is
//! linked dynamically could not have begun without.
//!
//! * The recorder has as many filters itself, by its name: they are the same, and let its calls pass.
//! * The parent has as many: it forks and waits under them, so a child of the runtime's may try the calls.
//! * Else no call is made, and the recorder tells of the process by itself ([`super::forbid_all`]).

use super::{calls, forbid_all};
use crate::ancestors::{PATH, PROC, path_of};
use crate::arch::number;
use crate::environment;
use crate::platform::{self, open};
use core::ffi::CStr;
use teeperf_wire::hello::filters_in;

/// What proc_pid_status(5) says of a process's filters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Status {
    parent: u32,
    /// As of prctl(2), `PR_GET_SECCOMP`.
    mode: u32,
    /// Linux 5.9 and later.
    filters: Option<u32>,
}

/// Forbids what filters may end the process for, where it was executed under some.
#[cold]
pub(crate) fn examine() {
    let Some(own) = status_at(c"/proc/thread-self/status") else { return };
    if own.mode != 0 && !are_harmless(own) {
        forbid_all();
    }
}

fn are_harmless(own: Status) -> bool {
    let mut of_recorder = None;
    let is_named = environment::find_own_name(|name| of_recorder = filters_in(name));
    if is_named && own.filters.is_some() && own.filters == of_recorder {
        return true;
    }
    let mut room = [0; PATH];
    let path = path_of(PROC, own.parent, b"/status\0", &mut room);
    let parent = path.and_then(status_at);
    let is_parents = |parent: Status| (parent.mode, parent.filters) == (own.mode, own.filters);
    is_named && parent.is_some_and(is_parents) && platform::child_survives(&numbers())
}

/// Numbers of the runtime's calls. With arguments that make no sense they do nothing.
fn numbers() -> [usize; super::CALLS + 4] {
    let mut numbers = [number::PRCTL; super::CALLS + 4];
    let others = [number::GETPPID, number::GETUID, number::NEWFSTATAT];
    // A child cannot try calls that end it, or have it go on elsewhere.
    const UNTRIED: [usize; 3] = [number::RT_SIGRETURN, number::EXIT, number::CLONE];
    let tried = |number: &usize| !UNTRIED.contains(number);
    let all = calls().into_iter().map(|(number, _)| number).filter(tried).chain(others);
    for (to, number) in numbers.iter_mut().skip(1).zip(all) {
        *to = number;
    }
    numbers
}

fn status_at(path: &CStr) -> Option<Status> {
    let file = open(path)?;
    let mut lines = Lines::default();
    file.find_byte(|byte| lines.take(byte));
    Some(lines.status)
}

/// One line after the other, byte by byte, as far as its beginning goes.
#[derive(Default)]
struct Lines {
    line: [u8; 32],
    length: usize,
    status: Status,
}

impl Lines {
    /// Takes the next byte; says whether all is known.
    fn take(&mut self, byte: u8) -> bool {
        if byte != b'\n' {
            if let Some(to) = self.line.get_mut(self.length) {
                *to = byte;
                self.length += 1;
            }
            return false;
        }
        let line = self.line.get(..self.length).unwrap_or_default();
        let value = |name: &[u8]| line.strip_prefix(name).and_then(number_in);
        if let Some(parent) = value(b"PPid:\t") {
            self.status.parent = parent;
        }
        if let Some(mode) = value(b"Seccomp:\t") {
            self.status.mode = mode;
        }
        self.status.filters = self.status.filters.or(value(b"Seccomp_filters:\t"));
        self.length = 0;
        self.status.filters.is_some()
    }
}

fn number_in(text: &[u8]) -> Option<u32> {
    core::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Status {
        let mut lines = Lines::default();
        text.bytes().any(|byte| lines.take(byte));
        lines.status
    }

    #[test]
    fn filters_are_read_from_a_status() {
        let text = "Name:\tSeccomp:\t9\nPPid:\t41\nGroups:\t1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 \n\
                    Seccomp:\t2\nSeccomp_filters:\t3\nSeccomp:\t0\n";
        assert_eq!(read(text), Status { parent: 41, mode: 2, filters: Some(3) });
        let old = text.replace("_filters", "_other");
        assert_eq!(read(&old), Status { parent: 41, mode: 0, filters: None });
        assert_eq!(read("PPid:\tx\nSeccomp:\t-1\n"), Status::default());
        assert_eq!(read("PPid:\t7"), Status::default(), "no whole line");
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn a_process_has_a_status() {
        let own = status_at(c"/proc/thread-self/status").unwrap();
        assert_eq!(own.parent, std::os::unix::process::parent_id());
        assert!(status_at(c"/proc/0/status").is_none());
    }

    #[test]
    #[cfg_attr(miri, ignore = "forks")]
    fn a_child_tries_all_calls_of_the_runtime() {
        let numbers = numbers();
        assert!(numbers.contains(&number::SOCKET) && numbers.contains(&number::GETPPID));
        assert!(platform::child_survives(&numbers));
    }
}
