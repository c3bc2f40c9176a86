//! One message to the recorder and its answer, over a Unix socket that is closed at once.

use super::file::{File, patiently};
use super::rights::trusts_peer;
use crate::arch::{number, syscall};
use teeperf_wire::hello::{HELLO_SIZE, MAX_SOCKET_NAME, SOCKET_FOLDER, WELCOME_SIZE};

const ECONNREFUSED: isize = -111;
const ENOENT: isize = -2;
const AF_UNIX: u16 = 1;
const SOCK_SEQPACKET_CLOEXEC: usize = 5 | 0o2_000_000;
const SOCK_NONBLOCK: usize = 0o4_000;
const SOL_SOCKET: usize = 1;
const SO_RCVTIMEO: usize = 20;
const SO_SNDTIMEO: usize = 21;
const SCM_RIGHTS: u32 = 1;
const MSG_NOSIGNAL: usize = 0x4000;
const MSG_CMSG_CLOEXEC: usize = 0x4000_0000;
/// The recorder's answer, and the files with it.
pub(crate) type Answer = ([u8; WELCOME_SIZE], [Option<File>; FILES]);
/// Most files with an answer.
pub(crate) const FILES: usize = 3;
/// Longest stay for a recorder that is not trusted: seconds and microseconds.
const LOOK: [u64; 2] = [0, 50_000];

#[repr(C)]
struct Address {
    family: u16,
    path: [u8; 108],
}

/// `struct msghdr`.
#[repr(C)]
#[derive(Default)]
struct Message {
    name: usize,
    name_length: u32,
    parts: usize,
    part_count: usize,
    control: usize,
    control_length: usize,
    flags: i32,
}

impl Address {
    /// A name in the abstract namespace, or with the folder before it, and the bytes that count.
    fn of(folder: &[u8], name: &[u8]) -> (Self, usize) {
        const { assert!(MAX_SOCKET_NAME + SOCKET_FOLDER.len() <= 108) };
        let mut address = Self { family: AF_UNIX, path: [0; 108] };
        for (to, from) in address.path.iter_mut().zip(folder.iter().chain(name)) {
            *to = *from;
        }
        (address, 2 + (folder.len() + name.len()).min(108))
    }
}

/// Connects to the recorder of this name: in the abstract namespace, or, where that is another network's, by its
/// file. Gives the error.
fn connect(socket: &File, name: &[u8]) -> isize {
    let mut result = 0;
    for folder in [b"\0".as_slice(), SOCKET_FOLDER.as_bytes()] {
        let (address, length) = Address::of(folder, name);
        let arguments = [socket.0 as usize, &raw const address as usize, length, 0, 0, 0];
        // SAFETY: the kernel reads `length` bytes of the address.
        let error = patiently(|| unsafe { syscall(number::CONNECT, arguments) });
        if error != ECONNREFUSED && error != ENOENT {
            return error;
        }
        result = ECONNREFUSED;
    }
    result
}

/// Whether no recorder listens under that name any more: nobody, or another user, who may take a name that is free. Waits for
/// nothing: a recorder that is too busy to take a connection, or stands still, is there.
pub(crate) fn is_abandoned(name: &[u8]) -> bool {
    let kind = SOCK_SEQPACKET_CLOEXEC | SOCK_NONBLOCK;
    // SAFETY: no pointers.
    let socket = unsafe { syscall(number::SOCKET, [AF_UNIX as usize, kind, 0, 0, 0, 0]) };
    if socket < 0 {
        return false;
    }
    let socket = File(socket as i32);
    match connect(&socket, name) {
        0 => !trusts_peer(&socket),
        error => error == ECONNREFUSED,
    }
}

/// Sends one message, the hello and words behind it, to a `SOCK_SEQPACKET` socket in the abstract namespace and takes
/// one answer; nothing when it cannot be had, or another user listens there. Each step ends within so many seconds.
pub(crate) fn exchange(
    name: &[u8],
    hello: &[u8; HELLO_SIZE],
    words: &[u32],
    seconds: u64,
) -> Option<Answer> {
    // SAFETY: no pointers.
    let socket =
        unsafe { syscall(number::SOCKET, [AF_UNIX as usize, SOCK_SEQPACKET_CLOEXEC, 0, 0, 0, 0]) };
    if socket < 0 {
        return None;
    }
    let socket = File(socket as i32);
    limit(&socket, [seconds, 0]);
    if connect(&socket, name) < 0 {
        return None;
    }
    if !trusts_peer(&socket) {
        stay_for_a_look(&socket);
        return None;
    }
    send(&socket, [hello, bytes_of(words)]).then(|| receive(&socket))?
}

/// Limits how long the socket's calls take: seconds and microseconds.
fn limit(socket: &File, time: [u64; 2]) {
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
        let place = &raw const time as usize;
        let arguments = [socket.0 as usize, SOL_SOCKET, option, place, size_of_val(&time), 0];
        // SAFETY: the kernel reads one `struct timeval`.
        unsafe { syscall(number::SETSOCKOPT, arguments) };
    }
}

/// Tells a recorder that is not trusted nothing, but gives it time to see which process came: of
/// one that has ended, the system does not tell whose child it was.
fn stay_for_a_look(socket: &File) {
    limit(socket, LOOK);
    if send(socket, [&[], &[]]) {
        // The recorder closes the socket when it has looked. Nothing that it sends is taken, and a
        // signal ends the stay.
        let mut message = Message::default();
        let arguments = [socket.0 as usize, &raw mut message as usize, 0, 0, 0, 0];
        // SAFETY: the kernel writes to the message, which has room for nothing.
        unsafe { syscall(number::RECVMSG, arguments) };
    }
}

fn bytes_of(words: &[u32]) -> &[u8] {
    // SAFETY: these are the words' own bytes, for as long as they are borrowed.
    unsafe { core::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// Sends one message that consists of these parts; false when it cannot be sent.
fn send(socket: &File, parts: [&[u8]; 2]) -> bool {
    let parts = parts.map(|part| [part.as_ptr() as usize, part.len()]);
    let message = Message { parts: &raw const parts as usize, part_count: 2, ..Message::default() };
    let arguments = [socket.0 as usize, &raw const message as usize, MSG_NOSIGNAL, 0, 0, 0];
    // SAFETY: the kernel reads the message and its parts, which live until it returns.
    patiently(|| unsafe { syscall(number::SENDMSG, arguments) }) >= 0
}

fn receive(socket: &File) -> Option<Answer> {
    /// `struct cmsghdr` and room for as many descriptors as there may be; the kernel closes
    /// those beyond.
    #[repr(C, align(8))]
    struct Control {
        length: usize,
        level: u32,
        kind: u32,
        descriptors: [i32; FILES + 1],
    }
    let mut bytes = [0u8; WELCOME_SIZE];
    let part = [&raw mut bytes as usize, WELCOME_SIZE];
    let mut control = Control { length: 0, level: 0, kind: 0, descriptors: [-1; FILES + 1] };
    let mut message = Message {
        parts: &raw const part as usize,
        part_count: 1,
        control: &raw mut control as usize,
        control_length: size_of::<Control>(),
        ..Message::default()
    };
    let place = &raw mut message as usize;
    let arguments = [socket.0 as usize, place, MSG_CMSG_CLOEXEC, 0, 0, 0];
    // SAFETY: the kernel writes at most `WELCOME_SIZE` bytes and a control block, to memory
    // that lives here.
    let count = patiently(|| unsafe { syscall(number::RECVMSG, arguments) });
    let mut files = [const { None }; FILES];
    if message.control_length >= 16
        && control.level == SOL_SOCKET as u32
        && control.kind == SCM_RIGHTS
    {
        let sent = control.length.saturating_sub(16) / 4;
        for (file, descriptor) in files.iter_mut().zip(control.descriptors).take(sent) {
            *file = Some(File(descriptor));
        }
    }
    (count == WELCOME_SIZE as isize).then_some((bytes, files))
}
