//! Ctrl-C and its like, where something is to be done before the process ends by it.

use anyhow::{Context, Result};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What asks a process to end.
const ENDING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

type Action = Box<dyn FnOnce() + Send>;

/// What is to be done first, the last first; nothing while nobody waits for signals.
static ACTIONS: Mutex<Option<Vec<Action>>> = Mutex::new(None);

fn actions() -> MutexGuard<'static, Option<Vec<Action>>> {
    ACTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prepares something, with what is to be done first when a signal ends the process. The first time before other threads begin, which
/// have the signals kept back as well. Those that were ignored from the start, as nohup has it, stay so.
pub(crate) fn before_end<T, A: FnOnce() + Send + 'static>(
    prepare: impl FnOnce() -> Result<(T, A)>,
) -> Result<T> {
    let kept = keep_back();
    // One that comes meanwhile waits.
    let (prepared, act) = prepare()?;
    let mut actions = actions();
    if let Some(actions) = &mut *actions {
        actions.push(Box::new(act));
        return Ok(prepared);
    }
    let thread = std::thread::Builder::new().name("teeperf-signals".into());
    thread.spawn(move || wait(&kept)).context("a thread")?;
    *actions = Some(vec![Box::new(act)]);
    Ok(prepared)
}

/// Has signals that end processes wait; those are returned.
fn keep_back() -> libc::sigset_t {
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
    kept
}

/// Waits for a signal, and ends the process by it, when all is done.
fn wait(kept: &libc::sigset_t) {
    let mut signal = 0;
    // SAFETY: the set is read, the number written.
    if unsafe { libc::sigwait(kept, &mut signal) } != 0 {
        return;
    }
    let all = actions().take().unwrap_or_default();
    all.into_iter().rev().for_each(|act| act());
    // SAFETY: the signal ends the process, as it would have: nobody has given it a handler.
    unsafe {
        libc::pthread_sigmask(libc::SIG_UNBLOCK, kept, std::ptr::null_mut());
        libc::raise(signal);
    }
}
