//! A recorder that does not record: it listens, and tells what a program sends.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// A user without any rights.
pub(crate) const NOBODY: u32 = 65534;
/// Bytes of `struct sockaddr_un` before its path.
const PATH: usize = 2;

/// Whether the tests can take other users' parts.
pub(crate) fn are_root() -> bool {
    // SAFETY: no pointers are involved.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !is_root {
        eprintln!("skipped: only root can be other users");
    }
    is_root
}

/// Runs `what` in a thread that has this user's and group's rights. What it starts has them too.
pub(crate) fn as_user<T: Send>(uid: u32, gid: u32, what: impl FnOnce() -> T + Send) -> T {
    let become_user = || {
        let (uid, gid) = (uid as libc::c_long, gid as libc::c_long);
        // The C library's functions change all threads; the system calls change the caller alone.
        // SAFETY: numbers, and an empty list of groups.
        unsafe {
            assert_eq!(libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<u32>()), 0);
            assert_eq!(libc::syscall(libc::SYS_setresgid, gid, gid, gid), 0);
            assert_eq!(libc::syscall(libc::SYS_setresuid, uid, uid, uid), 0);
        }
        what()
    };
    std::thread::scope(|scope| scope.spawn(become_user).join().expect("the thread"))
}

/// The socket.
pub(crate) struct Peer {
    socket: OwnedFd,
    name: String,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Nobody connected.
    Nothing,
    /// Somebody connected, and said nothing.
    Silence,
    /// Somebody told of itself.
    Hello,
}

impl Peer {
    /// Listens as this user.
    pub(crate) fn of(uid: u32, gid: u32) -> Self {
        as_user(uid, gid, Self::listen)
    }

    fn listen() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("teeperf-trust-{}-{number}", std::process::id());
        // SAFETY: a struct of numbers, for which zeros are a value.
        let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        for (to, from) in address.sun_path[1..].iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        let length = (PATH + 1 + name.len()) as libc::socklen_t;
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: the address has at least `length` bytes; the descriptor is new.
        let socket = unsafe {
            let socket = OwnedFd::from_raw_fd(libc::socket(libc::AF_UNIX, kind, 0));
            let place = (&raw const address).cast();
            assert_eq!(libc::bind(socket.as_raw_fd(), place, length), 0);
            assert_eq!(libc::listen(socket.as_raw_fd(), 8), 0);
            socket
        };
        Self { socket, name }
    }

    /// Its name, as the environment has it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What those that have ended meanwhile said.
    pub(crate) fn heard(&self) -> Heard {
        let mut heard = Heard::Nothing;
        loop {
            let (address, length) = (std::ptr::null_mut(), std::ptr::null_mut());
            // SAFETY: the kernel takes null for an address that is not wanted.
            let fd = unsafe { libc::accept(self.socket.as_raw_fd(), address, length) };
            if fd < 0 {
                assert_eq!(io::Error::last_os_error().kind(), io::ErrorKind::WouldBlock);
                return heard;
            }
            // SAFETY: the descriptor is new.
            let one = unsafe { OwnedFd::from_raw_fd(fd) };
            let mut bytes = [0u8; 256];
            // SAFETY: address and length are those of `bytes`.
            let said = unsafe { libc::recv(one.as_raw_fd(), bytes.as_mut_ptr().cast(), 256, 0) };
            match said {
                1.. => return Heard::Hello,
                _ => heard = Heard::Silence,
            }
        }
    }
}
