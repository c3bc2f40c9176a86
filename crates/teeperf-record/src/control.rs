//! Asking a recording from outside to pause, to resume, to end, to record other functions, or how it goes: one message on
//! the recorder's own socket, which it takes from its own user alone.

mod found;

use crate::filter::Rules;
use crate::socket::Connection;
use crate::trust::Owner;
pub use found::recorders;
pub(crate) use found::recorders_sockets;
use std::io;
use teeperf_wire::hello::FILTERS;

/// What a recorder can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Record nothing until [`Request::Resume`].
    Pause,
    /// Go on.
    Resume,
    /// End the recording; the program goes on.
    Stop,
    /// Write out what the trees of all threads have grown by.
    Snapshot,
    /// Record what these rules have, and nothing else. What is timed by the counter stays.
    Filter(Rules),
    /// Time the functions by the counter of which these rules say so ([`Rules::timed`]), and no others. What is recorded stays.
    Timed(Rules),
    /// Record the kinds of events that these rules have ([`Rules::events`]), and no others. What else is asked for stays.
    Events(Rules),
    /// Say how it goes: the answer is [`Status`].
    Status,
}

/// How a recording goes: lines of a name, a colon and a space, and a value. Names, and what their values are, stay;
/// others may come. `state` is `recording`, `paused`, or `waiting` for a call; `output`, `clock`, `seconds`, `events`, `lost`, `bytes`,
/// `processes`, `threads`, `waits`, and `waited`, seconds of all threads together; one `program` for each process, of a hundred at most:
/// its id, a space, and its name; one `trigger` for each function that recording waits for, or waited; one `rule` for each rule of the filter.
pub type Status = String;

/// Why a recorder could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No recorder of that process id, and no process that is being recorded.
    #[error("process {0} neither records nor is recorded")]
    NoRecorder(u32),
    /// Another user, who is not root, listens where the recorder should.
    #[error("another user listens where the recorder of process {0} should")]
    Stranger(u32),
    /// The recorder was there and gave no answer.
    #[error("the recorder does not answer: {0}")]
    NoAnswer(#[from] io::Error),
    /// It cannot do it, for this reason.
    #[error("the recorder refuses: {0}")]
    Refused(String),
}

/// The socket of a recorder that may be asked begins with this, its process id and a hyphen.
const NAME: &str = "teeperf-";
/// That of others.
const UNLISTED: &str = "teeperf.";
const MAGIC: [u8; 4] = *b"TPCt";
/// Bytes of a request and of its answer before the text.
const HEAD: usize = 8;
/// Longest request, and longest answer.
pub(crate) const LONGEST: usize = 64 << 10;
/// In an answer's number: the text says why it is not done.
const REFUSED: u32 = 1 << 31;

/// Asks the recorder that has the process id `pid`, or records the process of that id. Comes back when it is done,
/// with the answer's text, which only [`Request::Status`] has.
///
/// # Errors
///
/// When there is none, it does not answer, or it refuses.
pub fn request(pid: u32, request: &Request) -> Result<Status, ControlError> {
    let socket = found::socket_of(pid).ok_or(ControlError::NoRecorder(pid))?;
    let connection = Connection::connect(&socket)?;
    if !Owner::of_this_process().believes(connection.peer()?) {
        return Err(ControlError::Stranger(pid));
    }
    let message = request.encode();
    if message.len() > LONGEST {
        return Err(ControlError::Refused("the rules are longer than 64 KiB".into()));
    }
    connection.send(&message, &[])?;
    let mut answer = vec![0; LONGEST];
    let length = connection.receive(&mut answer)?;
    match parts(&answer[..length]) {
        Some((number, text)) if number == request.number() => Ok(text.into()),
        Some((number, text)) if number == request.number() | REFUSED => {
            Err(ControlError::Refused(text.into()))
        }
        _ => Err(ControlError::NoAnswer(io::ErrorKind::UnexpectedEof.into())),
    }
}

fn message(number: u32, text: &str) -> Vec<u8> {
    [&MAGIC[..], &number.to_le_bytes(), text.as_bytes()].concat()
}

/// Number and text of a request or an answer.
fn parts(bytes: &[u8]) -> Option<(u32, &str)> {
    let (head, text) = bytes.split_first_chunk::<HEAD>()?;
    let [magic @ .., a, b, c, d] = head;
    let number = u32::from_le_bytes([*a, *b, *c, *d]);
    (*magic == MAGIC).then_some((number, std::str::from_utf8(text).ok()?))
}

/// Name of a new recorder's socket, which others find or do not.
pub(crate) fn socket_name(is_found: bool, random: u64) -> String {
    let name = if is_found { NAME } else { UNLISTED };
    let pid = std::process::id();
    let filters = crate::liveness::filters(pid);
    let filters = filters.map(|filters| format!("-{}{filters}", char::from(FILTERS)));
    format!("{name}{pid}-{random:016x}{}", filters.unwrap_or_default())
}

impl Request {
    fn number(&self) -> u32 {
        match self {
            Self::Pause => 1,
            Self::Resume => 2,
            Self::Stop => 3,
            Self::Snapshot => 4,
            Self::Filter(_) => 5,
            Self::Status => 6,
            Self::Timed(_) => 10,
            Self::Events(_) => 11,
        }
    }

    /// As bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let text = match self {
            Self::Filter(rules) | Self::Timed(rules) | Self::Events(rules) => {
                rules.lines().collect::<Vec<_>>().join("\n")
            }
            _ => String::new(),
        };
        message(self.number(), &text)
    }

    /// Nothing when the bytes are no request; the answer, where it is one that cannot be done.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Result<Self, Vec<u8>>> {
        let (number, text) = parts(bytes)?;
        let of_rules: Option<fn(Rules) -> Self> = match number {
            5 => Some(Self::Filter),
            10 => Some(Self::Timed),
            11 => Some(Self::Events),
            _ => None,
        };
        if let Some(of_rules) = of_rules {
            let refused = |why: String| message(number | REFUSED, &why);
            return Some(Rules::read(text).map(of_rules).map_err(refused));
        }
        let known = [Self::Pause, Self::Resume, Self::Stop, Self::Snapshot, Self::Status];
        known.into_iter().find(|known| known.encode() == bytes).map(Ok)
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
        self.answer_with("");
    }

    /// It cannot be done, for this reason.
    pub(crate) fn refuse(self, why: &str) {
        // As below.
        let _ = self.connection.send(&message(self.request.number() | REFUSED, why), &[]);
    }

    /// This is the answer.
    pub(crate) fn answer_with(self, text: &str) {
        // Who asked may be gone.
        let _ = self.connection.send(&message(self.request.number(), text), &[]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_back_and_nothing_else_does() {
        let mut rules = Rules::default();
        rules.function(true, "parse*@libz").unwrap();
        rules.thread(false, "worker").unwrap();
        let mut timed = Rules::default();
        timed.timed("parse*@libz").unwrap();
        let mut events = Rules::default();
        events.events("marks".parse().unwrap());
        let of_rules = [Request::Filter(rules), Request::Timed(timed), Request::Events(events)];
        let others = [Request::Pause, Request::Resume, Request::Status];
        for request in others.into_iter().chain(of_rules) {
            assert_eq!(Request::decode(&request.encode()), Some(Ok(request)));
        }
        assert_eq!(Request::decode(b"TPCt\x09\0\0\0"), None);
        assert_eq!(Request::decode(b"TPCt\x01\0\0\0more"), None);
        assert_eq!(Request::decode(b"TPCt"), None);
        assert!(matches!(Request::decode(b"TPCt\x05\0\0\0only /(/"), Some(Err(_))));
    }

    #[test]
    fn nobody_is_asked_where_nobody_records() {
        let asked = request(u32::MAX, &Request::Pause);
        assert!(matches!(asked, Err(ControlError::NoRecorder(u32::MAX))));
    }
}
