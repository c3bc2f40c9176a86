//! Whom to trace, and why not.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

/// Whose enclaves are sampled from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The command's, and those of all that it starts.
    Command,
    /// A process that runs already.
    Process(u32),
}

/// Why a process cannot be traced.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// There is none.
    #[error("there is no process {0}; next: ps -e, or pgrep NAME, lists those that run")]
    Missing(u32),
    /// It is a thread of another one.
    #[error("{tid} is a thread of process {pid}; next: --attach {pid}")]
    IsThread {
        /// The thread.
        tid: u32,
        /// Its process.
        pid: u32,
    },
    /// It is this process.
    #[error("process {0} is this recorder")]
    IsRecorder(u32),
    /// Another one traces it.
    #[error(
        "process {pid} is traced by process {tracer} already, and a process has one tracer: end that first"
    )]
    Traced {
        /// The process.
        pid: u32,
        /// Who traces it.
        tracer: u32,
    },
    /// Its registers are not known here.
    #[error("process {0} is no program of x86-64, which enclaves have as hosts")]
    Machine(u32),
    /// This processor has none of them.
    #[error("SGX enclaves are sampled from outside on x86-64")]
    Here,
    /// It is another user's.
    #[error(
        "process {0} belongs to another user, or may not be looked into; next: run teeperf as root; in a container, with \
         --cap-add SYS_PTRACE"
    )]
    User(u32),
    /// Yama.
    #[error(
        "process {pid} may not be traced: kernel.yama.ptrace_scope is {scope}; next: sudo sysctl kernel.yama.ptrace_scope=0, or run \
         teeperf as root, or have it start the program: --sgx=outside -- PROGRAM"
    )]
    Scope {
        /// The process.
        pid: u32,
        /// The setting.
        scope: u32,
    },
    /// The system has other reasons.
    #[error("process {pid} cannot be traced: {source}")]
    System {
        /// The process.
        pid: u32,
        /// What it says.
        source: io::Error,
    },
}

/// Whether registers of threads are known here.
pub(super) fn check_machine() -> Result<(), AttachError> {
    if cfg!(target_arch = "x86_64") { Ok(()) } else { Err(AttachError::Here) }
}

/// Whether a process can be traced, as far as can be told before.
pub(super) fn check(pid: u32) -> Result<(), AttachError> {
    if pid == std::process::id() {
        return Err(AttachError::IsRecorder(pid));
    }
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    match number(&status, "Tgid:") {
        None => return Err(AttachError::Missing(pid)),
        Some(of) if of != pid => return Err(AttachError::IsThread { tid: pid, pid: of }),
        Some(_) => {}
    }
    match number(&status, "TracerPid:") {
        // A thread.
        Some(tracer) if tracer != 0 => {
            let tracer = process_of(tracer).unwrap_or(tracer);
            return Err(AttachError::Traced { pid, tracer });
        }
        _ => {}
    }
    let program = fs::File::open(format!("/proc/{pid}/exe"));
    let mut header = [0; 20];
    if program.is_ok_and(|file| io::Read::read_exact(&mut &file, &mut header).is_ok()) {
        const X86_64: [u8; 2] = [62, 0];
        const BITS_64: u8 = 2;
        if header[..4] == *b"\x7fELF" && (header[4] != BITS_64 || header[18..] != X86_64) {
            return Err(AttachError::Machine(pid));
        }
    }
    Ok(())
}

/// Why it was refused.
pub(super) fn refused(pid: u32, source: io::Error) -> AttachError {
    match source.raw_os_error() {
        Some(libc::ESRCH) => AttachError::Missing(pid),
        Some(libc::EPERM | libc::EACCES) => {
            // SAFETY: no pointers are involved.
            let own = unsafe { libc::geteuid() };
            let is_own = fs::metadata(format!("/proc/{pid}")).is_ok_and(|of| of.uid() == own);
            let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
            match scope.and_then(|scope| scope.trim().parse().ok()) {
                Some(scope) if scope > 0 && is_own => AttachError::Scope { pid, scope },
                _ => AttachError::User(pid),
            }
        }
        _ => AttachError::System { pid, source },
    }
}

/// A number of proc_pid_status(5).
pub(super) fn number(status: &str, name: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

/// The process of a thread.
pub(super) fn process_of(tid: u32) -> Option<u32> {
    number(&fs::read_to_string(format!("/proc/{tid}/status")).ok()?, "Tgid:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_says_what_to_do_next() {
        let own = std::process::id();
        assert!(matches!(check(own), Err(AttachError::IsRecorder(pid)) if pid == own));
        assert!(matches!(check(u32::MAX), Err(AttachError::Missing(u32::MAX))));
        std::thread::spawn(move || {
            // SAFETY: no pointers are involved.
            let own_tid = unsafe { libc::gettid() }.cast_unsigned();
            let error = check(own_tid).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("{own_tid} is a thread of process {own}; next: --attach {own}")
            );
            assert_eq!(process_of(own_tid), Some(own));
        })
        .join()
        .unwrap();
        let of = |error| refused(1, io::Error::from_raw_os_error(error));
        assert!(matches!(of(libc::ESRCH), AttachError::Missing(1)));
        assert!(matches!(of(libc::EPERM), AttachError::User(1) | AttachError::Scope { .. }));
        assert!(matches!(of(libc::EIO), AttachError::System { .. }));
    }
}
