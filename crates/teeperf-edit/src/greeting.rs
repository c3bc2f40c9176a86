//! What who sends a recording and who collects it say to each other before and behind it: a line each.
//!
//! ```text
//! teeperf-send 1                                  ->
//!                                                 <-  teeperf-collect 1 ready
//! the recording, and the end of what is sent      ->
//!                                                 <-  kept BYTES PACKETS whole PATH
//! ```
//!
//! In place of `ready` stands `refused` and why, in place of `whole` and the path `cut`, and why; words are separated by tabs.
//! Where both know a secret, all of it goes over a connection that [`secured`](crate::secured) opens first.
//! A recording that comes without a greeting, such as a file by `nc`, is taken as well, without a word.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use teeperf_wire::packet::SYNC;

use crate::collect::Received;
use crate::secured::{OPENS, Secret, Secured};

/// How both greet, with the version of what they say.
const SENDS: &str = "teeperf-send";
const COLLECTS: &str = "teeperf-collect";
const VERSION: &str = "1";
/// Longest line.
const MOST: usize = 4096;

/// A connection, of which one side can be ended.
pub trait Stream: Read + Write + Send {
    /// The same once more.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    fn again(&self) -> io::Result<Box<dyn Stream>>;
    /// A read that takes longer is an error, [`is_late`].
    ///
    /// # Errors
    ///
    /// When the connection is gone.
    fn patience(&self, most: Option<Duration>) -> io::Result<()>;
    /// Nothing more is sent.
    ///
    /// # Errors
    ///
    /// When the connection is gone.
    fn end(&self) -> io::Result<()>;
    /// Nothing more is sent or read, whoever waits for it.
    ///
    /// # Errors
    ///
    /// When the connection is gone.
    fn cut(&self) -> io::Result<()>;
}

macro_rules! is_a_stream {
    ($socket:ty) => {
        impl Stream for $socket {
            fn again(&self) -> io::Result<Box<dyn Stream>> {
                Ok(Box::new(self.try_clone()?))
            }

            fn patience(&self, most: Option<Duration>) -> io::Result<()> {
                self.set_read_timeout(most)
            }

            fn end(&self) -> io::Result<()> {
                self.shutdown(Shutdown::Write)
            }

            fn cut(&self) -> io::Result<()> {
                self.shutdown(Shutdown::Both)
            }
        }
    };
}

is_a_stream!(TcpStream);
is_a_stream!(UnixStream);

/// Reads up to a moment, and not longer.
pub struct Until<'a> {
    /// The connection.
    pub stream: &'a mut dyn Stream,
    /// The moment.
    pub deadline: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.patience(Some(left))?;
        self.stream.read(into)
    }
}

/// Whether nothing came in time.
pub fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}

/// How somebody begins who connects to a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// Says what this version says, and waits for an answer.
    Greets,
    /// Sends a recording; these bytes of it have come.
    Sends([u8; 4]),
}

/// The connection that somebody opens who knows the secret.
///
/// # Errors
///
/// When it does not, or says nothing in time; a sender without a secret is told that it needs one.
pub fn secured(
    mut stream: Box<dyn Stream>,
    secret: &Secret,
    deadline: Instant,
) -> io::Result<Box<dyn Stream>> {
    let mut reader = Until { stream: &mut *stream, deadline };
    // Both greetings are longer.
    let mut heard = [0; SENDS.len()];
    reader.read_exact(&mut heard)?;
    if OPENS.starts_with(&heard) {
        let mut rest = [0; OPENS.len() - SENDS.len()];
        reader.read_exact(&mut rest)?;
        if OPENS.ends_with(&rest) {
            return Ok(Box::new(Secured::accept(stream, secret, deadline)?));
        }
    } else if heard == SENDS.as_bytes() {
        // The kernel drops the answer where bytes of the sender were not read.
        line(&mut reader)?;
        answer(&mut *stream, Some("it takes recordings by its secret alone: --secret FILE"))?;
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "it came without the secret"))
}

/// What somebody says first.
///
/// # Errors
///
/// When it is nothing that a collector is for; who sends by another version is told so.
pub fn hear(stream: &mut dyn Stream, deadline: Instant) -> io::Result<Beginning> {
    let mut heard = [0; 4];
    let mut reader = Until { stream, deadline };
    reader.read_exact(&mut heard).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => invalid("nothing was sent".into()),
        _ if is_late(&error) => invalid("nothing was sent in time".into()),
        _ => error,
    })?;
    if heard == SYNC {
        return Ok(Beginning::Sends(heard));
    }
    let is_no_recording = || invalid("what was sent is no recording".into());
    if heard != SENDS.as_bytes()[..heard.len()] {
        return Err(is_no_recording());
    }
    let rest = line(&mut reader).map_err(|_| is_no_recording())?;
    match rest.strip_prefix(&SENDS[heard.len()..]).map(str::trim) {
        Some(VERSION) => Ok(Beginning::Greets),
        Some(other) => {
            let why = format!(
                "this collector understands version {VERSION}, and the sender is of {other}"
            );
            answer(stream, Some(&why))?;
            Err(invalid(why))
        }
        None => Err(is_no_recording()),
    }
}

/// Answers a greeting: whether a recording is taken, or why not.
///
/// # Errors
///
/// When the connection is gone.
pub fn answer(stream: &mut dyn Stream, refused: Option<&str>) -> io::Result<()> {
    let text = match refused {
        None => format!("{COLLECTS} {VERSION} ready\n"),
        Some(why) => format!("{COLLECTS} {VERSION} refused {}\n", plain(why)),
    };
    stream.write_all(text.as_bytes())
}

/// Greets a collector, and waits for its answer.
///
/// # Errors
///
/// When it is none, or takes no recording.
pub(crate) fn greet(stream: &mut dyn Stream, patience: Duration) -> io::Result<()> {
    let is_none =
        |why: &str| invalid(format!("{why}: no `teeperf collect` of this version listens there"));
    // Who has gone already may have said something before.
    let _ = stream.write_all(format!("{SENDS} {VERSION}\n").as_bytes());
    let deadline = Instant::now() + patience;
    let said = line(&mut Until { stream, deadline }).map_err(|error| match error {
        error if is_late(&error) => is_none("nothing was answered"),
        error => is_none(&format!("the connection ended ({error})")),
    })?;
    let mut words = said.splitn(4, ' ');
    match [words.next(), words.next(), words.next()] {
        [Some(COLLECTS), Some(VERSION), Some("ready")] => Ok(()),
        [Some(COLLECTS), Some(_), Some("refused")] => Err(io::Error::new(
            io::ErrorKind::ConnectionRefused,
            format!("the collector refuses: {}", words.next().unwrap_or_default()),
        )),
        _ => Err(is_none(&format!("the answer was {said:?}"))),
    }
}

/// What a collector says that it has kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Bytes of whole packets.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Where it is on the collector's machine; or why it is not whole.
    pub what: Result<String, String>,
}

/// Says what was kept.
///
/// # Errors
///
/// When the connection is gone.
pub fn tell(stream: &mut dyn Stream, received: &Received) -> io::Result<()> {
    let what = match received.is_whole {
        true => format!("whole\t{}", plain(&received.path.display().to_string())),
        false => format!("cut\t{}", plain(&received.why)),
    };
    let text = format!("kept\t{}\t{}\t{what}\n", received.bytes, received.packets);
    stream.write_all(text.as_bytes())
}

/// Waits for what a collector says that it has kept.
///
/// # Errors
///
/// When it says nothing that could be understood.
pub(crate) fn told(stream: &mut dyn Stream, patience: Duration) -> io::Result<Kept> {
    let deadline = Instant::now() + patience;
    let said = line(&mut Until { stream, deadline })?;
    let words: Vec<_> = said.splitn(5, '\t').collect();
    let read = || {
        let [kept, bytes, packets, how, text] = words[..] else { return None };
        let what = match (kept, how) {
            ("kept", "whole") => Ok(text.to_owned()),
            ("kept", "cut") => Err(text.to_owned()),
            _ => return None,
        };
        Some(Kept { bytes: bytes.parse().ok()?, packets: packets.parse().ok()?, what })
    };
    read().ok_or_else(|| invalid(format!("the collector said {said:?}, which is not known")))
}

/// A line, without what terminals would take for commands.
fn line(reader: &mut impl Read) -> io::Result<String> {
    let mut text = Vec::new();
    loop {
        let mut byte = [0];
        match reader.read(&mut byte) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) if byte == *b"\n" => break,
            Ok(_) if text.len() >= MOST => return Err(invalid("a line is too long".into())),
            Ok(_) => text.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let text = String::from_utf8_lossy(&text);
    Ok(text.chars().filter(|c| *c == '\t' || !c.is_control()).collect())
}

fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MOST / 8).collect()
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    /// What a collector hears of these bytes, and what it answers.
    fn heard(bytes: &[u8]) -> (io::Result<Beginning>, String) {
        let (mut own, mut other) = UnixStream::pair().unwrap();
        own.write_all(bytes).unwrap();
        own.end().unwrap();
        let heard = hear(&mut other, Instant::now() + SOON);
        drop(other);
        let mut answer = String::new();
        // Bytes that nobody read have the connection end with an error.
        let _ = own.read_to_string(&mut answer);
        (heard, answer)
    }

    #[test]
    fn a_collector_knows_who_comes() {
        assert_eq!(heard(b"teeperf-send 1\nTPRF").0.unwrap(), Beginning::Greets);
        assert_eq!(heard(b"TPRFxyz").0.unwrap(), Beginning::Sends(*b"TPRF"));
        let (refused, answer) = heard(b"teeperf-send 7\n");
        assert!(refused.unwrap_err().to_string().contains("is of 7"));
        assert!(answer.starts_with("teeperf-collect 1 refused this collector"), "{answer}");
        let long = [b"teeperf-send ".to_vec(), vec![b'1'; 2 * MOST]].concat();
        for bytes in [&b""[..], b"GE", b"GET / HTTP/1.1\r\n", b"teeperf-sends 1\n", b"teep", &long]
        {
            assert!(heard(bytes).0.is_err());
        }
        let (_silent, mut other) = UnixStream::pair().unwrap();
        let late =
            hear(&mut other, Instant::now() + Duration::from_millis(10)).unwrap_err().to_string();
        assert!(late.contains("in time"), "{late}");
    }

    #[test]
    fn a_sender_knows_who_answers() {
        let answered = |text: &str| {
            let (mut own, mut other) = UnixStream::pair().unwrap();
            other.write_all(text.as_bytes()).unwrap();
            other.end().unwrap();
            greet(&mut own, SOON).map_err(|error| error.to_string())
        };
        assert_eq!(answered("teeperf-collect 1 ready\n"), Ok(()));
        let refused = answered("teeperf-collect 1 refused 64 send already\n").unwrap_err();
        assert!(refused.ends_with("refuses: 64 send already"), "{refused}");
        for text in ["", "HTTP/1.1 400 Bad Request\r\n", "teeperf-collect 2 ready\n", "ready"] {
            let refused = answered(text).unwrap_err();
            assert!(refused.contains("of this version"), "{text}: {refused}");
        }
    }

    #[test]
    fn what_was_kept_is_told() {
        let told_of = |text: &[u8]| {
            let (mut own, mut other) = UnixStream::pair().unwrap();
            other.write_all(text).unwrap();
            drop(other);
            told(&mut own, SOON).ok()
        };
        let (mut own, mut other) = UnixStream::pair().unwrap();
        let mut received = Received {
            path: "/a b\n".into(),
            bytes: 7,
            packets: 2,
            is_whole: true,
            why: String::new(),
        };
        tell(&mut other, &received).unwrap();
        let kept = told(&mut own, SOON).unwrap();
        assert_eq!(kept, Kept { bytes: 7, packets: 2, what: Ok("/a b".into()) });
        received.is_whole = false;
        received.why = "why\tnot".into();
        tell(&mut other, &received).unwrap();
        assert_eq!(told(&mut own, SOON).unwrap().what, Err("whynot".into()));
        for text in
            [&b""[..], b"kept\t1\t2\twhole", b"kept\t1\tx\twhole\t/\n", b"lost\t1\t1\tcut\t\n"]
        {
            assert_eq!(told_of(text), None);
        }
    }
}
