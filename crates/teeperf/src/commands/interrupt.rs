//! Ctrl-C and its like, where something is to be done before the process ends by it.

use anyhow::{Context, Result};

/// What asks a process to end.
const ENDING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Prepares something, with what is to be done first when a signal ends the process. Once, and before other threads begin, which
/// have the signals kept back as well. Those that were ignored from the start, as nohup has it, stay so.
pub(crate) fn before_end<T, A: FnOnce() + Send + 'static>(
    prepare: impl FnOnce() -> Result<(T, A)>,
) -> Result<T> {
    // SAFETY: a set of bits, for which zeros are a value; the calls below write into it alone.
    let mut kept: libc::sigset_t = unsafe { std::mem::zeroed() };
    for signal in ENDING {
        // SAFETY: a struct of numbers, for which zeros are a value; it is written whole, and nothing is changed.
        let is_ignored = unsafe {
            let mut known: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut known) == 0
                && known.sa_sigaction == libc::SIG_IGN
        };
        if !is_ignored {
            // SAFETY: as above.
            unsafe { libc::sigaddset(&mut kept, signal) };
        }
    }
    // SAFETY: the set is read.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &kept, std::ptr::null_mut()) };
    // One that comes meanwhile waits.
    let (prepared, act) = prepare()?;
    let wait = move || {
        let mut signal = 0;
        // SAFETY: the set is read, the number written.
        if unsafe { libc::sigwait(&kept, &mut signal) } != 0 {
            return;
        }
        act();
        // SAFETY: the signal ends the process, as it would have: nobody has given it a handler.
        unsafe {
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &kept, std::ptr::null_mut());
            libc::raise(signal);
        }
    };
    let thread = std::thread::Builder::new().name("teeperf-signals".into());
    thread.spawn(wait).context("a thread")?;
    Ok(prepared)
}
