//! A connection that only those who know a secret can open, read and change: Noise (<https://noiseprotocol.org/noise.html>),
//! `NNpsk0` with Curve25519, ChaCha20-Poly1305 and BLAKE2s.
//!
//! ```text
//! teeperf-secret 1, and the first message        ->
//!                                                <-  the second message
//! what was said by greeting, encrypted           <->
//! ```
//!
//! Each message stands behind its length, two bytes, the high one first. Both sides have fresh keys for each connection: what
//! was recorded on the way can neither be sent again nor be read later by somebody who learns the secret. The
//! secret is random and of 32 bytes, so nobody guesses it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use snow::{Builder, HandshakeState, StatelessTransportState};

use crate::greeting::{Stream, Until};

/// How such a connection begins.
pub(crate) const OPENS: [u8; 16] = *b"teeperf-secret 1";
const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
/// Longest message of Noise, and how much longer it is than what it says.
const MOST: usize = 65_535;
const TAG: usize = 16;
/// Longest message before both know each other.
const MOST_FIRST: usize = 256;
/// Digits of a secret.
const DIGITS: usize = 64;

/// The key that sender and collector share.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Secret")
    }
}

impl Secret {
    /// Of a file with 64 hexadecimal digits that nobody else may read.
    ///
    /// # Errors
    ///
    /// When it cannot be read, others may read it, or something else stands in it.
    pub fn read(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let about = file.metadata()?;
        if !about.is_file() || about.mode() & 0o077 != 0 {
            return Err(invalid("others may read or change it; next: chmod 600"));
        }
        let mut text = String::new();
        file.take(DIGITS as u64 + 64).read_to_string(&mut text)?;
        Self::parse(text.trim()).ok_or_else(|| invalid("64 hexadecimal digits are to stand in it"))
    }

    /// A new one, kept in a file that was not there.
    ///
    /// # Errors
    ///
    /// When the file is there already, or cannot be written.
    pub fn make(path: &Path) -> io::Result<Self> {
        let mut bytes = [0; 32];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        file.write_all((text + "\n").as_bytes())?;
        Ok(Self(bytes))
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_hex = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate().filter(|_| is_hex) {
            *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        is_hex.then_some(Self(bytes))
    }
}

/// See the module.
pub struct Secured {
    stream: Box<dyn Stream>,
    both: Arc<Both>,
}

/// State that all handles of a connection share.
struct Both {
    noise: StatelessTransportState,
    /// Number of the next message that is sent.
    sent: Mutex<u64>,
    heard: Mutex<Heard>,
    patience: Mutex<Option<Duration>>,
}

/// Messages that have come.
#[derive(Default)]
struct Heard {
    /// Number of the next message.
    number: u64,
    /// A message with its length, as far as it has come.
    message: Vec<u8>,
    /// The decrypted message, and how much of it was used.
    said: Vec<u8>,
    used: usize,
}

impl Secured {
    /// Opens a connection to a collector that knows the secret.
    ///
    /// # Errors
    ///
    /// When it does not, says nothing in time, or is gone.
    pub(crate) fn offer(
        mut stream: Box<dyn Stream>,
        secret: &Secret,
        patience: Duration,
    ) -> io::Result<Self> {
        let deadline = Instant::now() + patience;
        let mut noise = builder(secret)?.build_initiator().map_err(broken)?;
        let unknown = |_| {
            let why = "the collector ended the connection: it knows no secret, or another one";
            io::Error::new(io::ErrorKind::PermissionDenied, why)
        };
        stream.write_all(&OPENS)?;
        say(&mut *stream, &mut noise)?;
        hear(&mut Until { stream: &mut *stream, deadline }, &mut noise).map_err(unknown)?;
        Self::of(stream, noise)
    }

    /// Takes a connection that begins with [`OPENS`], which was read already.
    ///
    /// # Errors
    ///
    /// When who connects does not know the secret, says nothing in time, or is gone.
    pub(crate) fn accept(
        mut stream: Box<dyn Stream>,
        secret: &Secret,
        deadline: Instant,
    ) -> io::Result<Self> {
        let mut noise = builder(secret)?.build_responder().map_err(broken)?;
        hear(&mut Until { stream: &mut *stream, deadline }, &mut noise)?;
        say(&mut *stream, &mut noise)?;
        Self::of(stream, noise)
    }

    fn of(stream: Box<dyn Stream>, noise: HandshakeState) -> io::Result<Self> {
        let noise = noise.into_stateless_transport_mode().map_err(broken)?;
        let (sent, heard) = (Mutex::new(0), Mutex::default());
        let both = Both { noise, sent, heard, patience: Mutex::default() };
        Ok(Self { stream, both: Arc::new(both) })
    }

    /// Reads the next message to its end, and what it says. False: the connection has ended.
    fn next(&mut self, heard: &mut Heard) -> io::Result<bool> {
        let patience = *lock(&self.both.patience);
        let deadline = patience.map(|most| Instant::now() + most);
        loop {
            let whole = match heard.message.first_chunk::<2>() {
                Some(length) => 2 + usize::from(u16::from_be_bytes(*length)),
                None => 2,
            };
            if heard.message.len() >= whole && whole > 2 {
                break;
            }
            if whole == 2 && heard.message.len() == 2 {
                return Err(invalid("a message is empty"));
            }
            let left = deadline.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.stream.patience(left)?;
            let mut room = [0; 4096];
            let wanted = (whole - heard.message.len()).min(room.len());
            match self.stream.read(&mut room[..wanted]) {
                Ok(0) if heard.message.is_empty() => return Ok(false),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => heard.message.extend_from_slice(&room[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let message = &heard.message[2..];
        heard.said.resize(message.len(), 0);
        let noise = &self.both.noise;
        let length = noise.read_message(heard.number, message, &mut heard.said).map_err(broken)?;
        heard.said.truncate(length);
        heard.message.clear();
        heard.used = 0;
        heard.number += 1;
        Ok(true)
    }
}

impl Read for Secured {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let both = Arc::clone(&self.both);
        let mut heard = lock(&both.heard);
        while heard.used == heard.said.len() && !into.is_empty() {
            if !self.next(&mut heard)? {
                return Ok(0);
            }
        }
        let rest = heard.said.get(heard.used..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        heard.used += count;
        Ok(count)
    }
}

impl Write for Secured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(MOST - TAG)];
        let mut number = lock(&self.both.sent);
        let mut message = vec![0; 2 + bytes.len() + TAG];
        let noise = &self.both.noise;
        let length = noise.write_message(*number, bytes, &mut message[2..]).map_err(broken)?;
        message[..2].copy_from_slice(&(length as u16).to_be_bytes());
        *number += 1;
        self.stream.write_all(&message[..2 + length])?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Stream for Secured {
    fn again(&self) -> io::Result<Box<dyn Stream>> {
        Ok(Box::new(Self { stream: self.stream.again()?, both: Arc::clone(&self.both) }))
    }

    fn patience(&self, most: Option<Duration>) -> io::Result<()> {
        *lock(&self.both.patience) = most;
        Ok(())
    }

    fn end(&self) -> io::Result<()> {
        self.stream.end()
    }

    fn cut(&self) -> io::Result<()> {
        self.stream.cut()
    }
}

fn builder(secret: &Secret) -> io::Result<Builder<'_>> {
    let pattern = PATTERN.parse().map_err(broken)?;
    Builder::new(pattern).prologue(&OPENS).and_then(|of| of.psk(0, &secret.0)).map_err(broken)
}

fn say(stream: &mut dyn Stream, noise: &mut HandshakeState) -> io::Result<()> {
    let mut message = [0; 2 + MOST_FIRST];
    let length = noise.write_message(&[], &mut message[2..]).map_err(broken)?;
    message[..2].copy_from_slice(&(length as u16).to_be_bytes());
    stream.write_all(&message[..2 + length])
}

fn hear(stream: &mut impl Read, noise: &mut HandshakeState) -> io::Result<()> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut message = [0; MOST_FIRST];
    let length = usize::from(u16::from_be_bytes(length));
    let message = message.get_mut(..length).ok_or_else(|| invalid("a message is too long"))?;
    stream.read_exact(message)?;
    let told = noise.read_message(message, &mut [0; MOST_FIRST]);
    told.map(drop)
        .map_err(|_| io::Error::new(io::ErrorKind::PermissionDenied, "it does not know the secret"))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn broken(error: snow::Error) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("what was encrypted cannot be read: {error}"),
    )
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.to_owned())
}

#[cfg(test)]
mod tests;
