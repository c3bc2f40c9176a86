//! What the environment may say, and whose recorder is taken: as the runtime of hooked programs has it (docs/trust.md).

use std::ffi::{OsString, c_int, c_ulong, c_void};
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use teeperf_wire::trust::{self, Credentials};

const AT_SECURE: c_ulong = 23;
const SOL_SOCKET: c_int = 1;
const SO_PEERCRED: c_int = 17;

/// `struct ucred` (unix(7)).
#[repr(C)]
#[derive(Default)]
struct Peer {
    pid: c_int,
    uid: u32,
    gid: u32,
}

unsafe extern "C" {
    fn getauxval(kind: c_ulong) -> c_ulong;
    fn geteuid() -> u32;
    fn getegid() -> u32;
    fn getsockopt(
        socket: c_int,
        level: c_int,
        name: c_int,
        value: *mut c_void,
        length: *mut u32,
    ) -> c_int;
}

/// A variable of the environment. A program with more rights than its starter has none: they are its starter's.
pub fn variable(name: &str) -> Option<OsString> {
    // SAFETY: a number alone.
    let is_secure = unsafe { getauxval(AT_SECURE) } != 0;
    if is_secure { None } else { std::env::var_os(name) }
}

/// Whether the recorder at the other end may see what this process does.
pub(crate) fn trusts_peer(socket: &OwnedFd) -> bool {
    let mut peer = Peer::default();
    let mut length = size_of::<Peer>() as u32;
    let place = (&raw mut peer).cast();
    // SAFETY: the address of a structure of `length` bytes.
    let told =
        unsafe { getsockopt(socket.as_raw_fd(), SOL_SOCKET, SO_PEERCRED, place, &raw mut length) };
    // SAFETY: no pointers.
    let own = unsafe { Credentials { uid: geteuid(), gid: getegid() } };
    let peer = Credentials { uid: peer.uid, gid: peer.gid };
    let knows_all = || fs::read("/proc/self/uid_map").is_ok_and(|map| trust::maps_all_users(&map));
    told == 0 && length as usize == size_of::<Peer>() && trust::is_trusted(own, peer, knows_all)
}
