//! The recorder's arenas, asked for on its socket ([`teeperf_wire::hello`]).

use crate::{rights, system};
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};
use teeperf_wire::arena::MIN_LENGTH;
use teeperf_wire::hello::{
    Hello, SOCKET_VARIABLE, VERSION, WELCOME_SIZE, Welcome, flag, refusal, want,
};

/// Lent memory, mapped for the life of the process: a thread may still be about to write to it.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Where it begins.
    pub base: *mut u8,
    /// Its bytes.
    pub length: usize,
    /// Only the calls between the worlds are recorded: it is lent to nobody.
    pub is_kept: bool,
}

// SAFETY: an address that is used by one thread at a time, who has it from here.
unsafe impl Send for Memory {}

/// What is known of the recorder, for this process.
struct Known {
    pid: u32,
    token: u64,
    asked: u32,
    /// Arenas whose threads have ended.
    idle: Vec<Memory>,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

/// An arena for the calling thread, if there is a recorder and it has one.
pub fn arena() -> Option<Memory> {
    let name = rights::variable(SOCKET_VARIABLE)?.into_string().ok()?;
    let pid = std::process::id();
    let mut known = KNOWN.lock().ok()?;
    // The child of a fork is another process, and its arenas are the parent's.
    let mut here = known.take().filter(|known| known.pid == pid);
    if let Some(memory) = here.as_mut().and_then(|known| known.idle.pop()) {
        *known = here;
        return Some(memory);
    }
    let (token, segment) = here.as_ref().map_or((0, 0), |known| (known.token, known.asked));
    let hello = Hello { version: VERSION, segment, token, pid, want: want::ARENA };
    let answered = exchange(&name, &hello).and_then(|(welcome, file)| {
        let length = usize::try_from(file.metadata().ok()?.len()).ok()?;
        let base = (length >= MIN_LENGTH).then(|| system::map(&file, length)).flatten()?;
        let is_kept = welcome.flags & flag::CROSSINGS_ALONE != 0;
        Some((welcome.token, Memory { base, length, is_kept }))
    });
    let (token, memory) = match answered {
        Some((token, memory)) => (token, Some(memory)),
        None => (token, None),
    };
    let idle = here.map_or_else(Vec::new, |known| known.idle);
    // Without an answer no other is asked for: it would take as long.
    let asked = if memory.is_some() { segment + 1 } else { segment };
    *known = Some(Known { pid, token, asked, idle });
    memory
}

/// Gives an arena to the next thread.
pub fn give_back(memory: Memory) {
    if let Ok(mut known) = KNOWN.lock()
        && let Some(known) = known.as_mut().filter(|known| known.pid == std::process::id())
    {
        known.idle.push(memory);
    }
}

#[repr(C)]
struct Address {
    family: u16,
    path: [u8; 108],
}

/// `struct iovec`.
#[repr(C)]
struct Part {
    base: *mut c_void,
    length: usize,
}

/// `struct msghdr`.
#[repr(C)]
struct Message {
    name: *mut c_void,
    name_length: u32,
    parts: *mut Part,
    part_count: usize,
    control: *mut c_void,
    control_length: usize,
    flags: c_int,
}

/// `struct cmsghdr` and room for one descriptor.
#[repr(C, align(8))]
struct Control {
    length: usize,
    level: c_int,
    kind: c_int,
    file: c_int,
}

unsafe extern "C" {
    fn socket(family: c_int, kind: c_int, protocol: c_int) -> c_int;
    fn connect(socket: c_int, address: *const Address, length: u32) -> c_int;
    fn setsockopt(
        socket: c_int,
        level: c_int,
        name: c_int,
        value: *const c_void,
        length: u32,
    ) -> c_int;
    fn send(socket: c_int, bytes: *const u8, length: usize, flags: c_int) -> isize;
    fn recvmsg(socket: c_int, message: *mut Message, flags: c_int) -> isize;
}

const AF_UNIX: c_int = 1;
const SOCK_SEQPACKET_CLOEXEC: c_int = 5 | 0o2_000_000;
const SOL_SOCKET: c_int = 1;
const SO_RCVTIMEO: c_int = 20;
const SO_SNDTIMEO: c_int = 21;
const SCM_RIGHTS: c_int = 1;
const MSG_NOSIGNAL: c_int = 0x4000;
const MSG_CMSG_CLOEXEC: c_int = 0x4000_0000;
/// Longest time to wait for the recorder in one step.
const SECONDS: u32 = 2;

/// Repeats a call that a signal interrupts, such as that of samples: one that waits no longer than it is told to does not go on by
/// itself, whatever the handler asks for (signal(7)).
fn patiently(mut call: impl FnMut() -> isize) -> isize {
    let begun = Instant::now();
    loop {
        let result = call();
        let is_interrupted = || std::io::Error::last_os_error().kind() == ErrorKind::Interrupted;
        let is_over = || begun.elapsed() > Duration::from_secs(SECONDS.into());
        if result >= 0 || !is_interrupted() || is_over() {
            return result;
        }
    }
}

/// One message and its answer, with the file that comes along.
fn exchange(name: &str, hello: &Hello) -> Option<(Welcome, File)> {
    let mut address = Address { family: AF_UNIX as u16, path: [0; 108] };
    address.path.get_mut(1..=name.len())?.copy_from_slice(name.as_bytes());
    // SAFETY: no pointers; the descriptor is new and nobody else's.
    let socket = unsafe {
        let fd = socket(AF_UNIX, SOCK_SEQPACKET_CLOEXEC, 0);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))?
    };
    let fd = socket.as_raw_fd();
    let limit: [isize; 2] = [SECONDS as isize, 0];
    let length = size_of_val(&limit) as u32;
    let bytes = hello.encode();
    let address_length = (2 + 1 + name.len()) as u32;
    // SAFETY: every address is that of a value here, with its size.
    unsafe {
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(fd, SOL_SOCKET, option, (&raw const limit).cast(), length);
        }
        let connected = patiently(|| connect(fd, &raw const address, address_length) as isize);
        let sent = || patiently(|| send(fd, bytes.as_ptr(), bytes.len(), MSG_NOSIGNAL));
        if connected < 0 || !rights::trusts_peer(&socket) || sent() < 0 {
            return None;
        }
    }
    receive(&socket)
}

fn receive(socket: &OwnedFd) -> Option<(Welcome, File)> {
    let mut bytes = [0u8; WELCOME_SIZE];
    let mut part = Part { base: bytes.as_mut_ptr().cast(), length: bytes.len() };
    let mut control = Control { length: 0, level: 0, kind: 0, file: -1 };
    let mut message = Message {
        name: std::ptr::null_mut(),
        name_length: 0,
        parts: &raw mut part,
        part_count: 1,
        control: (&raw mut control).cast(),
        control_length: size_of::<Control>(),
        flags: 0,
    };
    let (fd, place) = (socket.as_raw_fd(), &raw mut message);
    // SAFETY: every address in the message is that of a value here, with its size.
    let length = patiently(|| unsafe { recvmsg(fd, place, MSG_CMSG_CLOEXEC) });
    let brings_file = message.control_length >= std::mem::offset_of!(Control, file) + 4
        && (control.level, control.kind) == (SOL_SOCKET, SCM_RIGHTS)
        && control.file >= 0;
    // SAFETY: the kernel has just made the descriptor for this process.
    let file = brings_file.then(|| unsafe { File::from_raw_fd(control.file) });
    let welcome = Welcome::decode(bytes.get(..usize::try_from(length).ok()?)?)?;
    if welcome.refusal == refusal::UNKNOWN {
        // Who asks has a token: there is no more.
        static IS_TOLD: Once = Once::new();
        IS_TOLD.call_once(|| {
            crate::tell(format_args!(
                "process {} has more threads that call into another world than there is memory for: of the others \
                 nothing is recorded",
                std::process::id()
            ));
        });
    }
    let file = file?;
    let is_welcome = welcome.version == VERSION && welcome.refusal == refusal::NONE;
    is_welcome.then_some((welcome, file))
}
