//! Which recordings run, and which of them a process is of.

use super::NAME;
use crate::clock;
use std::fs;
use std::os::unix::fs::MetadataExt;
use teeperf_wire::hello::SOCKET_VARIABLE;

/// Process ids of all that record at present, of this user.
pub fn recorders() -> Vec<u32> {
    let sockets = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    // SAFETY: no pointers are involved.
    let own = unsafe { libc::geteuid() };
    let is_own = |pid: &u32| fs::metadata(format!("/proc/{pid}")).is_ok_and(|of| of.uid() == own);
    let mut found: Vec<u32> =
        recorders_sockets(&sockets).map(|(pid, _)| pid).filter(is_own).collect();
    // Each connection has the name once more.
    found.sort_unstable();
    found.dedup();
    found
}

/// The socket of the recorder with this process id, or of the one that records it.
pub(super) fn socket_of(pid: u32) -> Option<String> {
    socket_of_recorder(pid)
        .or_else(|| socket_in_environment(pid))
        .or_else(|| socket_of_recorder(recorder_of(pid)?))
}

fn socket_of_recorder(pid: u32) -> Option<String> {
    let sockets = fs::read_to_string("/proc/net/unix").ok()?;
    recorders_sockets(&sockets).find(|(of, _)| *of == pid).map(|(_, name)| name.to_owned())
}

/// Process ids and names, from the system's list of all sockets.
pub(crate) fn recorders_sockets(sockets: &str) -> impl Iterator<Item = (u32, &str)> {
    let names = sockets.lines().filter_map(|line| line.split_whitespace().next_back());
    names.filter_map(|name| {
        let name = name.strip_prefix('@')?;
        let (pid, _) = name.strip_prefix(NAME)?.split_once('-')?;
        Some((pid.parse().ok()?, name))
    })
}

/// From the environment that a program was started with, unless it has written something else there, as those do that
/// set their own title.
fn socket_in_environment(pid: u32) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|&byte| byte == 0);
    let prefix = format!("{SOCKET_VARIABLE}=");
    let value = variables.find_map(|variable| variable.strip_prefix(prefix.as_bytes()))?;
    String::from_utf8(value.to_vec()).ok()
}

/// The recorder whose clock a process has mapped: each has one of its own.
fn recorder_of(pid: u32) -> Option<u32> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let clock = clock_in(&maps)?;
    recorders().into_iter().find(|recorder| has_open(*recorder, clock))
}

/// Inode of the clock in proc_pid_maps(5): the fifth of the numbers before the path.
fn clock_in(maps: &str) -> Option<u64> {
    let path = format!("/memfd:{} (deleted)", clock::NAME.to_str().ok()?);
    let line = maps.lines().find(|line| line.ends_with(&path))?;
    line.split_whitespace().nth(4)?.parse().ok()
}

/// Whether a process has a descriptor of the clock that has this inode.
fn has_open(pid: u32, clock: u64) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.map(|file| file.path()).any(|file| {
        let is_clock = fs::read_link(&file).is_ok_and(|to| {
            to.to_str().is_some_and(|to| to.contains(clock::NAME.to_str().unwrap_or_default()))
        });
        is_clock && fs::metadata(&file).is_ok_and(|about| about.ino() == clock)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorders_are_found_in_the_list_of_sockets() {
        let list = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000: 00000002 00000000 00010000 0005 01 11 @teeperf-41-00ff\n\
            0000: 00000003 00000000 00000000 0005 03 12 @teeperf-41-00ff\n\
            0000: 00000002 00000000 00010000 0001 01 13 /run/teeperf-7-x\n\
            0000: 00000002 00000000 00010000 0001 01 14 @teeperf-x-y\n\
            0000: 00000002 00000000 00010000 0005 01 16 @teeperf.42-00ff\n\
            0000: 00000002 00000000 00010000 0001 01 15\n";
        let found: Vec<_> = recorders_sockets(list).collect();
        assert_eq!(found, [(41, "teeperf-41-00ff"), (41, "teeperf-41-00ff")]);
    }

    #[test]
    fn a_clock_is_found_in_maps() {
        let maps = "5589e000-5589f000 r-xp 00001000 08:01 3801095 /bin/a\n\
            7f1de000-7f1df000 r--s 00000000 00:01 4711 /memfd:teeperf-clock (deleted)\n";
        assert_eq!(clock_in(maps), Some(4711));
        assert_eq!(clock_in(&maps.replace("clock", "other")), None);
        assert_eq!(clock_in("/memfd:teeperf-clock (deleted)"), None);
    }
}
