//! What the kernel says of rights: of this process's, and of those of who answers it.

use super::file::{File, open};
use crate::arch::{number, syscall};
use teeperf_wire::trust::{self, Credentials};

/// Linux 6.4 and later.
const PR_GET_AUXV: usize = 0x4155_5856;
const SOL_SOCKET: usize = 1;
const SO_PEERCRED: usize = 17;

/// Whether the program has rights that its starter may not have (`AT_SECURE`). The environment is its starter's, and so is
/// whoever that names. Where the kernel does not tell, it has.
pub(crate) fn has_rights_of_its_own() -> bool {
    let mut vector = [0usize; 128];
    let (place, size) = (&raw mut vector as usize, size_of_val(&vector));
    // SAFETY: the kernel writes at most `size` bytes of the vector there.
    let length = unsafe { syscall(number::PRCTL, [PR_GET_AUXV, place, size, 0, 0, 0]) };
    let words = match usize::try_from(length) {
        Ok(length) => length.min(size) / size_of::<usize>(),
        Err(_) => read_vector(&mut vector),
    };
    trust::is_secure(vector.get(..words).unwrap_or_default())
}

/// The vector as an older kernel has it; gives the words.
fn read_vector(vector: &mut [usize; 128]) -> usize {
    let Some(file) = open(c"/proc/self/auxv") else { return 0 };
    let mut bytes = [0; size_of::<[usize; 128]>()];
    let length = read_all(&file, &mut bytes);
    let (words, _) = bytes.as_chunks::<{ size_of::<usize>() }>();
    for (to, from) in vector.iter_mut().zip(words) {
        *to = usize::from_ne_bytes(*from);
    }
    length / size_of::<usize>()
}

/// The user whose rights this process has.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: no pointers.
    unsafe { syscall(number::GETEUID, [0; 6]) as u32 }
}

/// Whether the recorder at the other end may see what this process does.
pub(super) fn trusts_peer(socket: &File) -> bool {
    // `struct ucred`: process, user, group.
    let mut peer = [0u32; 3];
    let mut length = size_of_val(&peer) as u32;
    let (place, room) = (&raw mut peer as usize, &raw mut length as usize);
    let arguments = [socket.0 as usize, SOL_SOCKET, SO_PEERCRED, place, room, 0];
    // SAFETY: the kernel writes one structure of `length` bytes, and their number.
    let told = unsafe { syscall(number::GETSOCKOPT, arguments) };
    // SAFETY: no pointers.
    let gid = unsafe { syscall(number::GETEGID, [0; 6]) as u32 };
    let uid = effective_user();
    let [_, peer_uid, peer_gid] = peer;
    let (own, peer) = (Credentials { uid, gid }, Credentials { uid: peer_uid, gid: peer_gid });
    told == 0
        && length as usize == size_of::<[u32; 3]>()
        && trust::is_trusted(own, peer, knows_all_users)
}

fn knows_all_users() -> bool {
    let mut map = [0; 128];
    let length = open(c"/proc/self/uid_map").map_or(0, |file| read_all(&file, &mut map));
    trust::maps_all_users(map.get(..length).unwrap_or_default())
}

/// Reads as much as there is, or room for; gives the bytes.
fn read_all(file: &File, room: &mut [u8]) -> usize {
    let mut length = 0;
    while let Some(rest) = room.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            0 => break,
            count => length += count,
        }
    }
    length
}
