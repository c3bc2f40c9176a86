//! Which recorder a process takes, by what the kernel says of both (docs/trust.md).

/// `AT_NULL` (getauxval(3)): the vector ends.
const END: usize = 0;
/// `AT_SECURE`: the process has rights that its starter may not have.
const SECURE: usize = 23;
/// How the kernel shows a user that a user namespace has no number for (user_namespaces(7)).
const UNKNOWN: u32 = 65534;

/// A user and a group, as the reader's user namespace numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// Whether this auxiliary vector, pairs of a kind and a value, is of a program with more rights than its starter. A vector
/// that does not tell is taken for one.
pub fn is_secure(vector: &[usize]) -> bool {
    let pairs = vector.chunks_exact(2).take_while(|pair| pair[0] != END);
    pairs.filter(|pair| pair[0] == SECURE).map(|pair| pair[1]).next() != Some(0)
}

/// Whether a process with these rights lets the recorder at the other end see what it does, as the kernel lets debuggers: it
/// is root's, or has the same user and group. `knows_all_users` tells whether the process's user namespace has a number
/// for each user ([`maps_all_users`]).
pub fn is_trusted(
    own: Credentials,
    peer: Credentials,
    knows_all_users: impl FnOnce() -> bool,
) -> bool {
    peer.uid == 0 || own == peer && is_same_user(own.uid, peer.uid, knows_all_users)
}

/// Whether both numbers are one user's. Users that a namespace does not know share a number.
pub fn is_same_user(own: u32, peer: u32, knows_all_users: impl FnOnce() -> bool) -> bool {
    own == peer && (own != UNKNOWN || knows_all_users())
}

/// Whether a user namespace with this `uid_map` has a number for each user: the first one has, and those that are like it.
pub fn maps_all_users(map: &[u8]) -> bool {
    let mut fields = map.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    [b"0".as_slice(), b"0", b"4294967295"].iter().all(|wanted| fields.next() == Some(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_that_does_not_say_no_says_yes() {
        assert!(!is_secure(&[6, 4096, SECURE, 0, END, 0]));
        assert!(is_secure(&[6, 4096, SECURE, 1, END, 0]));
        assert!(is_secure(&[]) && is_secure(&[6, 4096, END, 0]) && is_secure(&[SECURE]));
        assert!(is_secure(&[END, 0, SECURE, 0]), "behind the end");
        assert!(is_secure(&[0x17_0000, SECURE, SECURE, 2]));
    }

    fn of(uid: u32, gid: u32) -> Credentials {
        Credentials { uid, gid }
    }

    #[test]
    fn a_recorder_is_roots_or_the_own_users() {
        let trusts = |own, peer| is_trusted(own, peer, || true);
        assert!(trusts(of(7, 7), of(7, 7)) && trusts(of(7, 7), of(0, 4)));
        assert!(trusts(of(UNKNOWN, 7), of(UNKNOWN, 7)));
        assert!(!trusts(of(7, 7), of(8, 7)) && !trusts(of(0, 0), of(7, 0)));
        assert!(!trusts(of(7, 7), of(7, 8)) && !trusts(of(7, 7), of(u32::MAX, 7)));
        assert!(!is_trusted(of(UNKNOWN, 7), of(UNKNOWN, 7), || false));
        assert!(is_trusted(of(7, 7), of(7, 7), || false));
    }

    #[test]
    fn a_namespace_knows_all_users_by_a_map_of_all() {
        assert!(maps_all_users(b"         0          0 4294967295\n"));
        for map in ["", "0 0 1000", "0 1000 1\n", "0 1 4294967295", "1000 0 4294967295"] {
            assert!(!maps_all_users(map.as_bytes()), "{map:?}");
        }
    }
}
