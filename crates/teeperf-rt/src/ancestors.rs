//! The processes that this one descends from. A recorder may be among them: it makes a link that
//! has its process id in its name.

use crate::arch::number;
use crate::platform::{self, Inode};
use crate::sandbox;
use core::ffi::CStr;
use core::sync::atomic::AtomicU32;
use teeperf_wire::hello::{LONGEST_STAY_NS, RECORDER_LINK};

/// Most ancestors that are asked.
const GENERATIONS: u32 = 8;

/// One sleep of a process that is not recorded.
const SLICE_NS: u64 = 2_000_000;

/// One of them.
pub(crate) struct Ancestor {
    pub(crate) process: u32,
    /// The namespace of process ids, where its number fits: no recorder has a larger one.
    namespace: Option<u32>,
}

impl Ancestor {
    /// Path of the link that it makes if it is a recorder.
    pub(crate) fn link<'a>(&self, room: &'a mut [u8; PATH]) -> Option<&'a CStr> {
        link_of(self.namespace?, self.process, room)
    }
}

/// Asks `find` about each ancestor, from the parent on, and gives its first answer.
pub(crate) fn find<T>(find: impl Fn(&Ancestor) -> Option<T>) -> Option<T> {
    let mut process = platform::parent_id()?;
    let namespace =
        Inode::of(c"/proc/self/ns/pid", true).and_then(|inode| u32::try_from(inode.number).ok());
    for _ in 0..GENERATIONS {
        if process <= 1 {
            return None;
        }
        let found = find(&Ancestor { process, namespace });
        if found.is_some() {
            return found;
        }
        process = parent_of(process)?;
    }
    None
}

/// Gives a recorder that this process does not ask, or that does not hear it, time to see it: the
/// system tells a user without rights nothing of a program that has ended. Nothing is taken from
/// the recorder but the time of its link: its last complete look at all processes began then.
#[cold]
pub(crate) fn stay_for_a_look() {
    static NEVER: AtomicU32 = AtomicU32::new(0);
    let Some(since) = platform::real_time_ns() else { return };
    let has_looked = || {
        let modified = find(|ancestor| recorders(ancestor.link(&mut [0; PATH])?));
        modified.is_none_or(|modified| modified >= since)
    };
    while !sandbox::forbids(number::FUTEX) && !has_looked() {
        platform::sleep_on(&NEVER, 0, SLICE_NS);
        let now = platform::real_time_ns();
        if now.is_none_or(|now| now.wrapping_sub(since) > LONGEST_STAY_NS) {
            return;
        }
    }
}

/// When the link at this path was modified, if it is root's or of the user that has started this
/// process.
fn recorders(link: &CStr) -> Option<u64> {
    let inode = Inode::of(link, false)?;
    (inode.user == 0 || inode.user == platform::real_user()).then_some(inode.modified)
}

/// Path of the link that a recorder makes which has this number in this namespace.
fn link_of(namespace: u32, process: u32, room: &mut [u8; PATH]) -> Option<&CStr> {
    let mut folder = [0; PATH];
    let before = path_of(RECORDER_LINK.as_bytes(), namespace, b"-\0", &mut folder)?;
    path_of(before.to_bytes(), process, b"\0", room)
}

/// Fourth number of proc_pid_stat(5), behind a name that may contain anything.
fn parent_of(process: u32) -> Option<u32> {
    let file = platform::open(path_of(PROC, process, b"/stat\0", &mut [0; PATH])?)?;
    let mut text = [0; 128];
    let count = file.read(&mut text);
    let behind = text.get(..count)?.rsplit(|&byte| byte == b')').next()?;
    let number = behind.split(|&byte| byte == b' ').nth(2)?;
    let digits = number.iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0u32, |sum, digit| {
        sum.wrapping_mul(10).wrapping_add(u32::from(digit.wrapping_sub(b'0')))
    }))
}

pub(crate) const PROC: &[u8] = b"/proc/";
/// Room for a path with a process's number in it.
pub(crate) const PATH: usize = 48;

/// A path with the number of a process in it; it ends in a 0 byte.
pub(crate) fn path_of<'a>(
    before: &[u8],
    process: u32,
    behind: &[u8],
    room: &'a mut [u8; PATH],
) -> Option<&'a CStr> {
    let (mut digits, mut rest) = ([b'0'; 10], process);
    for digit in digits.iter_mut().rev() {
        *digit = (rest % 10) as u8 + b'0';
        rest /= 10;
    }
    let significant = digits.into_iter().skip_while(|&digit| digit == b'0');
    let mut length = 0;
    for byte in before.iter().copied().chain(significant).chain(behind.iter().copied()) {
        *room.get_mut(length)? = byte;
        length += 1;
    }
    CStr::from_bytes_with_nul(room.get(..length)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_proc_have_the_number_of_a_process() {
        for (process, path) in [(7, c"/proc/7/stat"), (4_194_304, c"/proc/4194304/stat")] {
            assert_eq!(path_of(PROC, process, b"/stat\0", &mut [0; PATH]), Some(path));
        }
        assert_eq!(
            path_of(
                PROC,
                u32::MAX,
                b"/a name that is too long for the room that there is",
                &mut [0; PATH]
            ),
            None
        );
        let longest = c"/tmp/.teeperf-of-4294967295-4294967295";
        assert_eq!(link_of(u32::MAX, u32::MAX, &mut [0; PATH]), Some(longest));
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn a_process_has_a_parent() {
        assert_eq!(parent_of(std::process::id()), Some(std::os::unix::process::parent_id()));
        assert_eq!(platform::parent_id(), Some(std::os::unix::process::parent_id()));
    }
}
