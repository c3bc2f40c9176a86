//! The few operations on abstract `SOCK_SEQPACKET` sockets that the standard library has
//! not. Nothing here waits, but for [`Connection::connect`].

use crate::memory::checked;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use teeperf_wire::hello::{MAX_SOCKET_NAME, SOCKET_FOLDER};

/// Connections that may wait to be accepted.
const BACKLOG: libc::c_int = 1024;
/// Most descriptors sent at once.
const MAX_FILES: usize = 3;

/// A socket that others connect to.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: OwnedFd,
    /// Its file, which goes with it.
    path: Option<PathBuf>,
}

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Connection(OwnedFd);

/// Who is at the other end, as the kernel says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// 0 when it is in a namespace that this process cannot see.
    pub(crate) pid: u32,
    pub(crate) uid: u32,
}

impl Listener {
    /// Listens under this name.
    pub(crate) fn bind(name: &str) -> io::Result<Self> {
        Self::bind_to(address(name)?, None)
    }

    /// Listens at a file of this name, for processes in a network of their own; for those of all users, if so
    /// said. What is there already stays.
    pub(crate) fn bind_file(name: &str, for_all: bool) -> io::Result<Self> {
        let path = format!("{SOCKET_FOLDER}{name}");
        let listener = Self::bind_to(address_of(path.as_bytes())?, Some(path.clone().into()))?;
        let mode = if for_all { 0o666 } else { 0o600 };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
        Ok(listener)
    }

    fn bind_to(
        (address, length): (libc::sockaddr_un, libc::socklen_t),
        path: Option<PathBuf>,
    ) -> io::Result<Self> {
        let socket = new_socket(libc::SOCK_NONBLOCK)?;
        // SAFETY: the address is a sockaddr_un of at least `length` bytes.
        checked(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
        let listener = Self { socket, path };
        // SAFETY: no pointers are involved.
        checked(unsafe { libc::listen(listener.socket.as_raw_fd(), BACKLOG) })?;
        Ok(listener)
    }

    /// The next connection; `WouldBlock` when there is none.
    pub(crate) fn accept(&self) -> io::Result<Connection> {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let (address, length) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the kernel takes null for an address that is not wanted.
        let fd = unsafe { libc::accept4(self.socket.as_raw_fd(), address, length, flags) };
        checked(fd)?;
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Connection(unsafe { OwnedFd::from_raw_fd(fd) }))
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // What cannot be removed leads nowhere.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Connection {
    /// Connects to the socket of this name, waiting for its turn.
    pub(crate) fn connect(name: &str) -> io::Result<Self> {
        let socket = new_socket(0)?;
        let (address, length) = address(name)?;
        // SAFETY: the address is a sockaddr_un of at least `length` bytes.
        checked(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
        Ok(Self(socket))
    }

    /// The next message, cut to `room`; 0 bytes when the other end has closed.
    pub(crate) fn receive(&self, room: &mut [u8]) -> io::Result<usize> {
        // SAFETY: address and length are those of `room`.
        let bytes =
            unsafe { libc::recv(self.0.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), 0) };
        usize::try_from(bytes).map_err(|_| io::Error::last_os_error())
    }

    /// Sends a message with copies of these descriptors.
    pub(crate) fn send(&self, message: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<()> {
        assert!(files.len() <= MAX_FILES);
        let mut part =
            libc::iovec { iov_base: message.as_ptr().cast_mut().cast(), iov_len: message.len() };
        // Room for a control header and descriptors, aligned as the header needs.
        let mut control = [0u64; 8];
        // SAFETY: a struct of numbers and pointers, for which zeros are a value.
        let mut all: libc::msghdr = unsafe { std::mem::zeroed() };
        all.msg_iov = &mut part;
        all.msg_iovlen = 1;
        if !files.is_empty() {
            let bytes = size_of_val(files) as u32;
            all.msg_control = control.as_mut_ptr().cast();
            // SAFETY: arithmetic alone.
            all.msg_controllen = unsafe { libc::CMSG_SPACE(bytes) } as _;
            assert!(all.msg_controllen as usize <= size_of_val(&control));
            // SAFETY: `control` has room for the header and `files`, as was checked.
            unsafe {
                let header = libc::CMSG_FIRSTHDR(&all);
                (*header).cmsg_level = libc::SOL_SOCKET;
                (*header).cmsg_type = libc::SCM_RIGHTS;
                (*header).cmsg_len = libc::CMSG_LEN(bytes) as _;
                let room = libc::CMSG_DATA(header).cast::<libc::c_int>();
                for (at, file) in files.iter().enumerate() {
                    room.add(at).write_unaligned(file.as_raw_fd());
                }
            }
        }
        // SAFETY: message, descriptors and lengths are as set up above and live on.
        let sent = unsafe { libc::sendmsg(self.0.as_raw_fd(), &all, libc::MSG_NOSIGNAL) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Who connected.
    pub(crate) fn peer(&self) -> io::Result<Peer> {
        let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
        self.option(libc::SO_PEERCRED, &mut peer)?;
        Ok(Peer { pid: peer.pid as u32, uid: peer.uid })
    }

    /// A descriptor of the process that connected: by the socket where the kernel knows it
    /// so (Linux 6.5), else by its number, which may have been given to another since.
    pub(crate) fn peer_process(&self, peer: Peer) -> io::Result<OwnedFd> {
        const SO_PEERPIDFD: libc::c_int = 77;
        let mut fd: libc::c_int = -1;
        if self.option(SO_PEERPIDFD, &mut fd).is_err() || fd < 0 {
            return open_process(peer.pid);
        }
        // SAFETY: the descriptor is new and nobody else's.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    fn option<T>(&self, option: libc::c_int, value: &mut T) -> io::Result<()> {
        let mut length = size_of::<T>() as libc::socklen_t;
        let value = (value as *mut T).cast();
        // SAFETY: address and length are those of `value`, which is a struct of numbers.
        let done = unsafe {
            libc::getsockopt(self.0.as_raw_fd(), libc::SOL_SOCKET, option, value, &mut length)
        };
        checked(done).map(drop)
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A descriptor of the process that has this number now.
pub(crate) fn open_process(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: no pointers are involved.
    let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = checked(opened as libc::c_int)?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn new_socket(flags: libc::c_int) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | flags;
    // SAFETY: no pointers are involved.
    let fd = checked(unsafe { libc::socket(libc::AF_UNIX, kind, 0) })?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// An abstract name is a path that begins with a 0 and is as long as it says: unix(7).
fn address(name: &str) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    if name.len() > MAX_SOCKET_NAME {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    address_of(format!("\0{name}").as_bytes())
}

fn address_of(path: &[u8]) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    // SAFETY: a struct of numbers, for which zeros are a value.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    if path.len() >= address.sun_path.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (out, byte) in address.sun_path.iter_mut().zip(path) {
        *out = *byte as libc::c_char;
    }
    let length = std::mem::offset_of!(libc::sockaddr_un, sun_path) + path.len();
    Ok((address, length as libc::socklen_t))
}
