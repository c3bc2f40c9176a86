//! Why a process with hooks is not recorded.

use crate::liveness::filters;
use crate::server::executable_of;
use std::fs;
use teeperf_wire::hello::SOCKET_VARIABLE;
use teeperf_wire::hook;
use teeperf_wire::trust::is_secure;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    /// Its hooks have another interface.
    Version(u32),
    /// A filter of system calls that the recorder does not have.
    Filter,
    Rights,
    /// It has no name to ask.
    Nameless,
    User,
    /// It was given memory, and could not map it.
    Limits,
    /// The recorder had no memory to give.
    NoRoom,
    /// It did not wait for the recorder's answer.
    Late,
    /// It asked, and has ended without the recorder's answer.
    Ended,
    /// It is not its program that has hooks, but a library.
    Library,
    /// Likewise, and nothing that answers hooks was preloaded.
    NotPreloaded,
    /// It ended before the recorder looked at it.
    Brief,
    Unknown,
}

/// The recorder that a process's environment names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    This,
    Nobody,
    /// Another recorder, or, by an empty variable, none.
    NotThis,
}

impl Why {
    /// Reasons that looking at a process finds, which are wrong where the process asked after all.
    pub(super) const BY_LOOK: [Self; 4] =
        [Self::Library, Self::NotPreloaded, Self::Brief, Self::Unknown];

    /// Of a process that asked, and did not take the answer.
    pub(crate) fn without_answer(program: &[u8]) -> Self {
        if program.is_empty() { Self::Ended } else { Self::Late }
    }

    /// Of a process that has hooks of this interface, in this file, and maybe the library that answers hooks;
    /// nothing where the recorder of this name is not to record it.
    pub(super) fn of(
        pid: u32,
        (version, file): (u32, &[u8]),
        has_runtime: bool,
        recorder: &str,
    ) -> Option<Self> {
        let named = named(&read(pid, "environ"), recorder);
        if named == Named::NotThis {
            return None;
        }
        let has_filters = filters(pid) > filters(std::process::id());
        Some(match (named, version) {
            (_, version) if version != hook::VERSION => Self::Version(version),
            _ if has_filters => Self::Filter,
            _ if has_rights(&read(pid, "auxv")) => Self::Rights,
            (Named::Nobody, _) => Self::Nameless,
            _ => match &executable_of(pid)[..] {
                // It has ended meanwhile.
                [] => Self::Brief,
                program if program == file => Self::Unknown,
                _ if has_runtime => Self::Library,
                _ => Self::NotPreloaded,
            },
        })
    }

    /// The reason, and what to do.
    pub(super) fn told(self) -> (String, &'static str) {
        let (why, next) = match self {
            Self::Version(version) => {
                let own = hook::VERSION;
                let why =
                    format!("the hooks have interface {version}, and this teeperf speaks {own}");
                return (why, "build the program again with this teeperf");
            }
            Self::Filter => (
                "executed under a filter of system calls (seccomp) that the recorder does not have, so hooks make no system call",
                "start the recorder behind that filter, or the program without it",
            ),
            Self::Rights => (
                "the program has more rights than its starter, and takes no recorder from its environment",
                "record a copy without these rights",
            ),
            Self::Nameless => (
                "executed without the variable TEEPERF_SOCKET, and none of eight generations above leads to the recorder",
                "keep that variable, or the processes between",
            ),
            Self::User => (
                "the process has another user or group than the recorder, and shows itself to no such recorder",
                "record as root, or as that user",
            ),
            Self::NoRoom => (
                "the recorder had no descriptors or no memory left for it",
                "raise the recorder's limits (ulimit -n), or record fewer processes at a time",
            ),
            Self::Late => (
                "it asked the recorder, which had no processor for seconds and answered too late",
                "record on a machine with less other work, or give the recorder a higher priority",
            ),
            Self::Ended => (
                "it asked the recorder and ended before the answer came: something killed it as it \
                 began, or the recorder had no processor for seconds",
                "if nothing kills it, record on a machine with less other work",
            ),
            Self::Limits => (
                "it could not map the recorder's memory, most likely for a limit of its files or of its memory",
                "raise RLIMIT_NOFILE to 8 or more, and RLIMIT_AS by 64 MiB",
            ),
            Self::Library => (
                "the hooks are a library's, most likely in a namespace of its own (dlmopen), in which nothing answers them",
                "load the library by dlopen",
            ),
            Self::NotPreloaded => (
                "the hooks are a library's, the program has none, and the library of the recorder's that answers them was not \
                 preloaded",
                "keep LD_PRELOAD as the recorder sets it, let the program's user read that library, or build the program with hooks",
            ),
            Self::Brief => (
                "ended before the recorder looked at it, without asking for the recorder: it was kept from that, was told to ask \
                 nobody (an empty TEEPERF_SOCKET), or did not get as far as its first call",
                "run `teeperf record PROGRAM` with that program alone, or see what `teeperf doctor PROGRAM` says",
            ),
            Self::Unknown => (
                "nothing asked the recorder, though the environment names it",
                "see what `teeperf doctor PROGRAM` says",
            ),
        };
        (why.into(), next)
    }
}

fn read(pid: u32, what: &str) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default()
}

fn named(environment: &[u8], recorder: &str) -> Named {
    let mut variables = environment.split(|&byte| byte == 0);
    let value = variables
        .find_map(|variable| variable.strip_prefix(SOCKET_VARIABLE.as_bytes())?.strip_prefix(b"="));
    match value {
        None => Named::Nobody,
        Some(name) if name == recorder.as_bytes() => Named::This,
        Some(_) => Named::NotThis,
    }
}

fn has_rights(vector: &[u8]) -> bool {
    let (words, _) = vector.as_chunks::<{ size_of::<usize>() }>();
    let words: Vec<usize> = words.iter().map(|word| usize::from_ne_bytes(*word)).collect();
    // A file that cannot be read says nothing.
    !words.is_empty() && is_secure(&words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_names_a_recorder() {
        assert_eq!(named(b"A=1\0TEEPERF_SOCKET=us\0", "us"), Named::This);
        assert_eq!(named(b"TEEPERF_SOCKET=\0A=1\0", "us"), Named::NotThis);
        assert_eq!(named(b"TEEPERF_SOCKET=them\0", "us"), Named::NotThis);
        assert_eq!(named(b"TEEPERF_SOCKETS=us\0", "us"), Named::Nobody);
        assert_eq!(named(b"", "us"), Named::Nobody);
    }

    #[test]
    fn this_process_has_no_rights_of_its_own() {
        assert!(!has_rights(&read(std::process::id(), "auxv")));
        assert!(!has_rights(&[]));
        assert!(has_rights(&[0; 16]));
    }
}
