//! The end of threads, where each tells its CPU time: what it had behind its last sample would be
//! missing otherwise. The C library calls a function there of each thread that has set a value of
//! its own (pthread_key_create(3)).

use super::{sources, tell_cpu_time};
use crate::arch;
use crate::thread;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

/// One more than the key of the value, 0 where there is none.
static KEY: AtomicU32 = AtomicU32::new(0);
/// Keys for which glibc has room in each thread. A value of another one would need memory, which a
/// hook must not ask for.
const KEYS_WITH_ROOM: u32 = 32;

/// Readies the process.
pub(super) fn begin() {
    let Some((create, _)) = arch::thread_keys().filter(|_| KEY.load(Relaxed) == 0) else { return };
    let mut key = KEYS_WITH_ROOM;
    if create(&mut key, ended) == 0 && key < KEYS_WITH_ROOM {
        KEY.store(key + 1, Relaxed);
    }
}

/// Has the C library call when the calling thread ends.
pub(super) fn begin_thread() {
    let key = KEY.load(Relaxed).checked_sub(1);
    if let (Some(key), Some((_, set))) = (key, arch::thread_keys()) {
        set(key, 1);
    }
}

extern "C" fn ended(_: usize) {
    tell_cpu_time();
    sources::end_thread(thread::current());
}
