//! The sampler inside a process, as small as it can be: stands between a host and the driver, samples each thread by a timer of
//! its own, and leaves samples in a file for the test to read.
//!
//! `AEX_RINGS` names the file; `AEX_PERIOD_NS`, `AEX_CLOCK` (`processor`, `event`), `AEX_STACK` and `AEX_DELAY_NS` (for each word that is
//! read of an enclave) say how, `AEX_HOST` that the host's stack is copied.

use std::ffi::{CStr, c_int, c_long, c_ulong, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use teeperf_aex::debug_read::{DebugRead, MemoryFile, Refused};
use teeperf_aex::enclaves::Enclaves;
use teeperf_aex::sampler::{PRODUCTION, Sampler, Settings};
use teeperf_aex::state::Wanted;
use teeperf_aex::threads::Threads;
use teeperf_aex::{driver, sampler};

/// Threads at one time, and bytes of each one's ring.
const PLACES: usize = 8;
const CAPACITY: usize = 4 << 20;
const SIGPROF: c_int = 27;
const SA_SIGINFO: c_int = 4;
const SA_RESTART: c_int = 0x1000_0000;

/// glibc's `struct sigaction`.
#[repr(C)]
struct Action {
    handler: usize,
    mask: [u64; 16],
    flags: c_int,
    restorer: usize,
}

type Ioctl = unsafe extern "C" fn(c_int, c_ulong, *mut c_void) -> c_int;
type Munmap = unsafe extern "C" fn(*mut c_void, usize) -> c_int;
type Start = extern "C" fn(*mut c_void) -> *mut c_void;
type Create = unsafe extern "C" fn(*mut c_void, *const c_void, Start, *mut c_void) -> c_int;
type MayRead = unsafe extern "C" fn(u64) -> c_int;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const std::ffi::c_char) -> *mut c_void;
    fn sigaction(signal: c_int, action: *const Action, before: *mut Action) -> c_int;
    fn mmap(
        wish: *mut c_void,
        length: usize,
        protection: c_int,
        flags: c_int,
        file: c_int,
        at: c_long,
    ) -> *mut c_void;
    fn pthread_self() -> usize;
    fn pthread_getattr_np(thread: usize, attributes: *mut [u64; 8]) -> c_int;
    fn pthread_attr_getstack(
        attributes: *const [u64; 8],
        start: *mut usize,
        size: *mut usize,
    ) -> c_int;
    fn pthread_atfork(
        before: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
}

/// The calling thread's stack, where hosts' stacks are wanted: nobody empties rings, so where they are not, there is room for more samples.
fn stack() -> std::ops::Range<u64> {
    if std::env::var_os("AEX_HOST").is_none() {
        return 0..0;
    }
    let (mut attributes, mut start, mut size) = ([0; 8], 0, 0);
    // SAFETY: each address is that of a value of this kind; what is in the attributes is left.
    unsafe {
        assert_eq!(pthread_getattr_np(pthread_self(), &raw mut attributes), 0);
        pthread_attr_getstack(&raw const attributes, &raw mut start, &raw mut size);
    }
    start as u64..(start + size) as u64
}

/// The function of that name that the host would have without this library.
///
/// # Safety
/// `T` is its type.
unsafe fn next<T: Copy>(name: &CStr) -> T {
    // SAFETY: a string of C; RTLD_NEXT.
    let found = unsafe { dlsym(-1isize as *mut c_void, name.as_ptr()) };
    assert!(!found.is_null(), "no {name:?}");
    // SAFETY: the caller's promise.
    unsafe { std::mem::transmute_copy(&found) }
}

/// Enclaves' memory as the kernel would give it: slowly, and only where the simulated machine says so.
struct Simulated {
    file: MemoryFile,
    may_read: MayRead,
    delay: Duration,
}

impl DebugRead for Simulated {
    fn leave(&self) {
        self.file.leave();
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<usize, Refused> {
        // SAFETY: it looks an address up.
        match unsafe { (self.may_read)(at) } {
            0 => return Err(Refused),
            1 => {
                let (begun, delay) = (Instant::now(), self.delay * into.len().div_ceil(8) as u32);
                while begun.elapsed() < delay {}
            }
            _ => {}
        }
        self.file.read(at, into)
    }
}

static SAMPLER: OnceLock<Sampler<Simulated>> = OnceLock::new();
/// A child of the process that is sampled.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

fn this() -> Option<&'static Sampler<Simulated>> {
    SAMPLER.get().filter(|_| !IS_CHILD.load(Relaxed))
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    use std::os::fd::AsRawFd;
    let Some(path) = std::env::var_os("AEX_RINGS") else { return };
    let file =
        std::fs::OpenOptions::new().read(true).write(true).open(path).expect("a file for samples");
    let length = Threads::bytes(PLACES, CAPACITY);
    // SAFETY: a new mapping, shared, for reading and writing.
    let memory = unsafe { mmap(null_mut(), length, 3, 1, file.as_raw_fd(), 0) };
    assert!(memory as isize != -1);
    // SAFETY: the simulated machine's function has this type.
    let may_read = unsafe { next(c"machine_may_read") };
    let sampler = Sampler {
        enclaves: Enclaves::new(),
        memory: Simulated {
            file: MemoryFile::of_this_process().expect("/proc/self/mem"),
            may_read,
            delay: Duration::from_nanos(number("AEX_DELAY_NS").unwrap_or(0)),
        },
        // SAFETY: the mapping stays, and the test made the file as long as this.
        threads: unsafe { Threads::new(memory.cast(), PLACES, CAPACITY) },
        settings: Settings {
            clock: match std::env::var("AEX_CLOCK").as_deref() {
                Ok("event") => sampler::Clock::Event,
                _ => sampler::Clock::Processor,
            },
            period_ns: number("AEX_PERIOD_NS").unwrap_or(1_000_000),
            is_constant: false,
            has_enclaves: true,
            wanted: number("AEX_STACK").map_or(Wanted::Chain, |most| Wanted::Stack(most as usize)),
            signal: SIGPROF,
            process: std::process::id(),
        },
    };
    assert!(SAMPLER.set(sampler).is_ok());
    let handler: extern "C" fn(c_int, *const u8, *const u8) = expired;
    let action = Action {
        handler: handler as usize,
        mask: [0; 16],
        flags: SA_SIGINFO | SA_RESTART,
        restorer: 0,
    };
    // SAFETY: a handler of that type; functions that stay.
    unsafe {
        assert_eq!(sigaction(SIGPROF, &raw const action, null_mut()), 0);
        pthread_atfork(None, None, Some(forked));
    }
    SAMPLER
        .get()
        .and_then(|sampler| sampler.thread_begins(stack()))
        .expect("the first thread is sampled");
}

/// A child has no enclave and no timer; what it does is not sampled.
extern "C" fn forked() {
    if let Some(sampler) = this() {
        sampler.leave();
        IS_CHILD.store(true, Relaxed);
    }
}

extern "C" fn expired(_signal: c_int, info: *const u8, context: *const u8) {
    if let Some(sampler) = this() {
        // SAFETY: as the kernel gave them to this handler.
        unsafe { sampler.expired(info, context) };
    }
}

/// # Safety
/// As the C library has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(file: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    static NEXT: OnceLock<Ioctl> = OnceLock::new();
    // SAFETY: its type.
    let next = NEXT.get_or_init(|| unsafe { next(c"ioctl") });
    // SAFETY: the caller's promise.
    let result = unsafe { next(file, request, argument) };
    if let (0, Some(sampler)) = (result, this()) {
        let told = driver::seen(&sampler.enclaves, &sampler.memory, file, request, argument as u64);
        if let Some(enclave) = told.filter(|enclave| !enclave.secs.is_debug) {
            eprintln!("teeperf: the enclave at {:#x} {PRODUCTION}", enclave.secs.base);
        }
    }
    result
}

/// # Safety
/// As the C library has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(base: *mut c_void, length: usize) -> c_int {
    static NEXT: OnceLock<Munmap> = OnceLock::new();
    // SAFETY: its type.
    let next = NEXT.get_or_init(|| unsafe { next(c"munmap") });
    if let Some(sampler) = this() {
        sampler.enclaves.gone(base as u64, length as u64);
    }
    // SAFETY: the caller's promise.
    unsafe { next(base, length) }
}

extern "C" fn thread(argument: *mut c_void) -> *mut c_void {
    // SAFETY: made below, for this thread alone.
    let (start, argument) = *unsafe { Box::from_raw(argument.cast::<(Start, *mut c_void)>()) };
    let sampler = this();
    sampler.and_then(|sampler| sampler.thread_begins(stack()));
    let result = start(argument);
    if let Some(sampler) = sampler {
        sampler.thread_ends();
    }
    result
}

/// # Safety
/// As the C library has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    id: *mut c_void,
    attributes: *const c_void,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: its type.
    let next: Create = unsafe { next(c"pthread_create") };
    // SAFETY: the caller's promise; the box is the new thread's.
    unsafe { next(id, attributes, thread, Box::into_raw(Box::new((start, argument))).cast()) }
}
