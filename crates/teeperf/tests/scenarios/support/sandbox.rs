//! Sandboxes as containers are.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has the command run where perf_event_open is an error, as in many containers: seccomp(2).
pub(crate) fn without_perf_event_open(command: &mut Command) -> &mut Command {
    let statement =
        |code: u32, k: u32, (jt, jf)| libc::sock_filter { code: code as u16, jt, jf, k };
    let filter = [
        // The number of the system call.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, (0, 0)),
        statement(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            libc::SYS_perf_event_open as u32,
            (0, 1),
        ),
        statement(
            libc::BPF_RET | libc::BPF_K,
            libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
            (0, 0),
        ),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, (0, 0)),
    ];
    let install = move || {
        let program =
            libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
        // SAFETY: numbers, and the address of a program that is there for the call.
        let results = unsafe {
            [
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
                libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program),
            ]
        };
        if results == [0, 0] { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: the closure makes system calls alone.
    unsafe { command.pre_exec(install) }
}
