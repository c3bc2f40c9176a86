//! Pausing, resuming and ending a recording from outside: one message on the recorder's own
//! socket, which it takes from its own user alone.

use crate::socket::Connection;
use std::io;
use teeperf_wire::hello::SOCKET_VARIABLE;

/// What a recorder can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Request {
    /// Record nothing until [`Request::Resume`].
    Pause = 1,
    /// Go on.
    Resume = 2,
    /// End the recording; the program goes on.
    Stop = 3,
    /// Write out what the trees of all threads have grown by.
    Snapshot = 4,
}

/// Why a recorder could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No recorder of that process id, and no process that is being recorded.
    #[error("process {0} neither records nor is recorded")]
    NoRecorder(u32),
    /// The recorder was there and gave no answer.
    #[error("the recorder does not answer: {0}")]
    NoAnswer(#[from] io::Error),
}

/// The socket of a recorder that may be asked begins with this, its process id and a hyphen.
const NAME: &str = "teeperf-";
/// That of others.
const UNLISTED: &str = "teeperf.";
const MAGIC: [u8; 4] = *b"TPCt";
/// Bytes of a request and of its answer.
pub(crate) const SIZE: usize = 8;

/// Asks the recorder that has the process id `pid`, or records the process of that id.
///
/// # Errors
///
/// When there is none, or it does not answer.
pub fn request(pid: u32, request: Request) -> Result<(), ControlError> {
    let socket = socket_of_recorder(pid).or_else(|| socket_of_program(pid));
    let connection = Connection::connect(&socket.ok_or(ControlError::NoRecorder(pid))?)?;
    let message = request.encode();
    connection.send(&message, &[])?;
    let mut answer = [0; SIZE];
    let length = connection.receive(&mut answer)?;
    if answer[..length] != message {
        return Err(ControlError::NoAnswer(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(())
}

/// Name of a new recorder's socket, which others find or do not.
pub(crate) fn socket_name(is_found: bool, random: u64) -> String {
    let name = if is_found { NAME } else { UNLISTED };
    format!("{name}{}-{random:016x}", std::process::id())
}

impl Request {
    /// As bytes; the recorder answers with the same when it has done it.
    pub(crate) fn encode(self) -> [u8; SIZE] {
        let mut out = [0; SIZE];
        out[..4].copy_from_slice(&MAGIC);
        out[4..].copy_from_slice(&(self as u32).to_le_bytes());
        out
    }

    /// Nothing when the bytes are no request.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        [Self::Pause, Self::Resume, Self::Stop, Self::Snapshot]
            .into_iter()
            .find(|known| known.encode() == bytes)
    }
}

/// Who waits for an answer.
#[derive(Debug)]
pub(crate) struct Asker {
    pub(crate) connection: Connection,
    pub(crate) request: Request,
}

impl Asker {
    /// It is done.
    pub(crate) fn answer(self) {
        // Who asked may be gone.
        let _ = self.connection.send(&self.request.encode(), &[]);
    }
}

/// Process ids of all that record at present, of every user.
pub fn recorders() -> Vec<u32> {
    let sockets = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let mut found: Vec<u32> = recorders_sockets(&sockets).map(|(pid, _)| pid).collect();
    // Each connection has the name once more.
    found.sort_unstable();
    found.dedup();
    found
}

fn socket_of_recorder(pid: u32) -> Option<String> {
    let sockets = std::fs::read_to_string("/proc/net/unix").ok()?;
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

/// From the environment that a program was started with.
fn socket_of_program(pid: u32) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|&byte| byte == 0);
    let prefix = format!("{SOCKET_VARIABLE}=");
    let value = variables.find_map(|variable| variable.strip_prefix(prefix.as_bytes()))?;
    String::from_utf8(value.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_back_and_nothing_else_does() {
        for request in [Request::Pause, Request::Resume, Request::Stop] {
            assert_eq!(Request::decode(&request.encode()), Some(request));
        }
        assert_eq!(Request::decode(b"TPCt\x09\0\0\0"), None);
        assert_eq!(Request::decode(b"TPCt"), None);
    }

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
    fn nobody_is_asked_where_nobody_records() {
        let asked = request(u32::MAX, Request::Pause);
        assert!(matches!(asked, Err(ControlError::NoRecorder(u32::MAX))));
    }
}
