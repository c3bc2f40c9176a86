//! Whether a thread of a traced process still lives, asked in a way that is fast enough for
//! hundreds of thousands of short threads.

use std::collections::HashSet;
use std::io;
use teeperf_wire::shared::UNKNOWN_THREAD;

/// Threads of one process, named as the process itself names them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threads {
    /// The process as the recorder's system knows it.
    pid: u32,
    /// The process as it knows itself.
    inner_pid: u32,
}

/// What is known at one moment.
pub(crate) enum Census {
    /// Ask the kernel for each.
    Ask(u32),
    /// In a namespace of its own: these live.
    Living(HashSet<u32>),
    /// It cannot be known: all live.
    Unknown,
}

impl Threads {
    /// Of the process `pid`, which calls itself `inner_pid`.
    pub(crate) fn new(pid: u32, inner_pid: u32) -> Self {
        Self { pid, inner_pid }
    }

    /// Whether a thread that says this of its process is one of them.
    pub(crate) fn are_of(&self, inner_pid: u32) -> bool {
        self.inner_pid == inner_pid
    }

    /// The thread's name as the system knows it, where both sides name threads alike.
    pub(crate) fn name(&self, tid: u32) -> Option<Vec<u8>> {
        if self.pid == 0 || self.pid != self.inner_pid {
            return None;
        }
        let name = std::fs::read(format!("/proc/{}/task/{tid}/comm", self.pid)).ok()?;
        Some(name.strip_suffix(b"\n").unwrap_or(&name).to_vec())
    }

    /// To ask about many threads.
    pub(crate) fn census(&self) -> Census {
        if self.pid == 0 {
            return Census::Unknown;
        }
        if self.pid == self.inner_pid {
            return Census::Ask(self.pid);
        }
        inner_names(self.pid).map_or(Census::Unknown, Census::Living)
    }
}

impl Census {
    /// Whether the thread lives, as far as its id is known. A thread id that was given to a new thread lives on.
    pub(crate) fn is_alive(&self, tid: u32) -> bool {
        match self {
            _ if tid & UNKNOWN_THREAD != 0 => true,
            Self::Ask(pid) => exists(*pid, tid),
            Self::Living(threads) => threads.contains(&tid),
            Self::Unknown => true,
        }
    }
}

fn exists(pid: u32, tid: u32) -> bool {
    let (pid, tid) = (pid as libc::pid_t, tid as libc::pid_t);
    // SAFETY: no pointers are involved; signal 0 is not sent.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, 0) };
    // A number that can be no thread is not proof of a death.
    let is_there = sent == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH);
    is_there && (pid != tid || !has_left_others(pid as u32))
}

/// Whether the first thread of a process has ended while others go on: it stays there until they end
/// (pthread_exit(3)). Where none does, the process has ended, and that is seen elsewhere.
fn has_left_others(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    let is_zombie = |stat: String| stat.rsplit_once(')').is_some_and(|(_, rest)| is_over(rest));
    stat.is_ok_and(is_zombie)
        && std::fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|tasks| tasks.count() > 1)
}

/// Whether a state of proc_pid_stat(5) is one of what has ended.
fn is_over(state: &str) -> bool {
    matches!(state.trim_start().as_bytes().first(), Some(b'Z' | b'X'))
}

/// Filters of system calls that a process has (Linux 5.9: `Seccomp_filters` of proc_pid_status(5)).
pub(crate) fn filters(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"))?.trim().parse().ok()
}

/// The id in the innermost namespace, of what `/proc/PID/status` says.
pub(crate) fn innermost(status: &str) -> Option<u32> {
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    ids.split_whitespace().last()?.parse().ok()
}

/// Innermost names of a process's threads: `NSpid` of proc_pid_status(5).
fn inner_names(pid: u32) -> Option<HashSet<u32>> {
    let (mut names, mut ended) = (HashSet::new(), HashSet::new());
    for entry in std::fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let status = std::fs::read_to_string(entry.ok()?.path().join("status"));
        // A thread may end between the two looks.
        let Ok(status) = status else { continue };
        let value = |name| status.lines().find_map(|line| line.strip_prefix(name));
        let names = if value("State:").is_some_and(is_over) { &mut ended } else { &mut names };
        names.insert(innermost(&status)?);
    }
    // As above.
    Some(if names.is_empty() { ended } else { names })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_id_is_the_last() {
        assert_eq!(innermost("Name:\ta\nNSpid:\t4711\t12\t5\nThreads:\t1\n"), Some(5));
        assert_eq!(innermost("NSpid:\t7\n"), Some(7));
        assert_eq!(innermost("Name:\tNSpid\n"), None);
    }

    #[test]
    fn threads_live_until_they_are_joined() {
        let own = std::process::id();
        let (send, receive) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name("somebody".into()).spawn(move || {
            // SAFETY: no pointers are involved.
            send.send(unsafe { libc::gettid() } as u32).unwrap();
            stopped.recv().unwrap_err();
        });
        let thread = thread.unwrap();
        let tid = receive.recv().unwrap();
        for inner in [own, own + 1] {
            let census = Threads::new(own, inner).census();
            assert!(census.is_alive(tid) && census.is_alive(own));
        }
        assert_eq!(Threads::new(own, own).name(tid).as_deref(), Some(&b"somebody"[..]));
        assert_eq!(Threads::new(own, own + 1).name(tid), None);
        drop(stop);
        thread.join().unwrap();
        // The kernel wakes the joiner a moment before the thread is gone.
        while Threads::new(own, own).census().is_alive(tid) {
            std::thread::yield_now();
        }
        assert!(!Threads::new(own, own + 1).census().is_alive(tid));
        assert!(Threads::new(own, own).census().is_alive(u32::MAX));
        assert!(Threads::new(own, own + 1).census().is_alive(UNKNOWN_THREAD | 1));
    }
}
