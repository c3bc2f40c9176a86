//! What is known of this process: the memory that its recorder gave it, and what samples its threads. A child of a fork has
//! memory of its own.

use crate::{descriptors, libc, linux, threads};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::*};
use teeperf_aex::debug_read::MemoryFile;
use teeperf_aex::enclaves::{Enclave, Enclaves};
use teeperf_aex::sampler::{Sampler, Settings, has_events};
use teeperf_aex::threads::Threads;
use teeperf_wire::hello::MAX_SOCKET_NAME;
use teeperf_wire::sampling::{Ask, SAMPLES_VARIABLE, Terms, VERSION, flag, what};

/// Longest time that the recorder is waited for, in each step.
const SECONDS: u64 = 2;
/// Memory for more than this is no recorder's.
const MOST_BYTES: usize = 1 << 40;

/// A process that is sampled.
pub(crate) struct Process {
    pub(crate) sampler: Sampler<MemoryFile>,
    recorder: Recorder,
}

/// Name of its socket.
#[derive(Clone, Copy)]
struct Recorder {
    name: [u8; MAX_SOCKET_NAME],
    length: usize,
}

/// Stays once it is there: a signal handler may look at it at any time.
static PROCESS: AtomicPtr<Process> = AtomicPtr::new(null_mut());

/// This process, if it is sampled.
pub(crate) fn this() -> Option<&'static Process> {
    // SAFETY: null, or what `attach` has put there, which stays.
    unsafe { PROCESS.load(Acquire).as_ref() }
}

/// Asks for memory for a program that begins, and cares for its children. Whether it is sampled: one that has more rights than its
/// starter is not, since the environment is its starter's.
pub(crate) fn attach_program() -> bool {
    use std::os::unix::ffi::OsStrExt;
    if linux::has_rights_of_its_own() {
        return false;
    }
    let Some(name) = std::env::var_os(SAMPLES_VARIABLE) else { return false };
    let mut recorder = Recorder { name: [0; MAX_SOCKET_NAME], length: name.len() };
    let Some(place) = recorder.name.get_mut(..name.len()) else { return false };
    place.copy_from_slice(name.as_bytes());
    let is_attached = attach(recorder, 0).is_some();
    if is_attached {
        // SAFETY: functions that stay.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    }
    is_attached
}

/// Nothing here allocates by the C library: in the child of a fork a thread that is not there may have its lock.
fn attach(recorder: Recorder, flags: u16) -> Option<()> {
    let flags = flags | if has_events() { 0 } else { flag::NO_EVENTS };
    let pid = linux::process_id();
    let ask = Ask { version: VERSION, what: what::ATTACH, flags, pid, ..Ask::default() };
    let name = &recorder.name[..recorder.length];
    let (answer, [file, ..]) = linux::exchange(name, &ask.encode(), &[], SECONDS)?;
    let terms = Terms::decode(&answer).filter(|terms| terms.version == VERSION)?;
    let (places, capacity) = (terms.places as usize, terms.capacity as usize);
    let bytes = Threads::bytes(places, capacity);
    if !capacity.is_power_of_two() || places == 0 || bytes > MOST_BYTES {
        return None;
    }
    let memory = linux::map(Some(&file?), bytes)?;
    let process = linux::map(None, size_of::<Process>())?.cast::<Process>();
    let own = MemoryFile::of_this_process()?;
    descriptors::keep(own.descriptor());
    let sampler = Sampler {
        enclaves: Enclaves::new(),
        memory: own,
        // SAFETY: as many bytes as were mapped, which stay, at a page; the recorder has zeroed them.
        threads: unsafe { Threads::new(memory, places, capacity) },
        settings: Settings::of(&terms, crate::signals::SIGNAL),
    };
    // SAFETY: new memory, as long as this is and aligned as pages are.
    unsafe { process.write(Process { sampler, recorder }) };
    PROCESS.store(process, Release);
    Some(())
}

/// Tells the recorder, which looks at the process before it answers.
pub(crate) fn ask(what: u16, flags: u16, enclave: Option<&Enclave>) {
    let Some(Process { recorder, .. }) = this() else { return };
    let (base, size) = enclave.map_or((0, 0), |enclave| (enclave.secs.base, enclave.secs.size));
    let ask = Ask { version: VERSION, what, flags, pid: linux::process_id(), base, size };
    // Without an answer the program goes on as well.
    let _ = linux::exchange(&recorder.name[..recorder.length], &ask.encode(), &[], SECONDS);
}

/// A child has one thread, none of its parent's enclaves, and asks for memory of its own.
extern "C" fn forked() {
    let parent = PROCESS.swap(null_mut(), AcqRel);
    // SAFETY: as in `this`; it stays.
    let Some(parent) = (unsafe { parent.as_ref() }) else { return };
    parent.sampler.leave();
    descriptors::forget();
    if attach(parent.recorder, flag::FORKED).is_some() {
        threads::of_child();
    }
}
