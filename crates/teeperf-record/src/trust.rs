//! Whose processes a recorder serves, and whose requests it takes (docs/trust.md).

use crate::socket::Peer;
use std::fs;
use teeperf_wire::trust;

/// The user that a recorder, or somebody who asks one, works for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    uid: u32,
    /// See [`trust::maps_all_users`].
    knows_all_users: bool,
}

impl Owner {
    /// The user of this process.
    pub(crate) fn of_this_process() -> Self {
        let map = fs::read("/proc/self/uid_map").unwrap_or_default();
        // SAFETY: no pointers are involved.
        let uid = unsafe { libc::geteuid() };
        Self { uid, knows_all_users: trust::maps_all_users(&map) }
    }

    /// This user, of all that there are.
    pub(crate) fn of(uid: u32) -> Self {
        Self { uid, knows_all_users: true }
    }

    /// Whether it may see what all others do.
    pub(crate) fn is_root(self) -> bool {
        self.uid == 0
    }

    /// Whether the process at the other end is this user's.
    pub(crate) fn is_of(self, peer: Peer) -> bool {
        trust::is_same_user(self.uid, peer.uid, || self.knows_all_users)
    }

    /// Whether this user takes answers from the process at the other end: it is the same user's, or root's.
    pub(crate) fn believes(self, peer: Peer) -> bool {
        peer.uid == 0 || self.is_of(peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_not_served() {
        let peer = |uid| Peer { pid: 1, uid };
        let owner = Owner::of(1000);
        assert!(owner.is_of(peer(1000)) && !owner.is_of(peer(0)) && !owner.is_of(peer(1001)));
        assert!(owner.believes(peer(0)) && !owner.believes(peer(1001)));
        let unknown = Owner { uid: 65534, knows_all_users: false };
        assert!(!unknown.is_of(peer(65534)) && Owner::of(65534).is_of(peer(65534)));
    }
}
