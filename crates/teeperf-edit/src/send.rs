//! A recording that is sent to who collects: the collector is asked whether it takes one, and at the end what it kept.

use std::io::{self, Write};
use std::time::Duration;

use crate::greeting::{self, Kept, Stream};
use crate::secured::{Secret, Secured};

/// Longest wait for an answer to the greeting, and for what was kept behind the last byte.
const GREETING: Duration = Duration::from_secs(10);
const KEPT: Duration = Duration::from_secs(30);

/// See the module.
pub struct Sender(Box<dyn Stream>);

impl Sender {
    /// Greets who listens there, over a connection that the secret opens, where there is one.
    ///
    /// # Errors
    ///
    /// When that is no collector of this version, does not know the secret, or takes no recording.
    pub fn begin(stream: impl Stream + 'static, secret: Option<&Secret>) -> io::Result<Self> {
        let stream: Box<dyn Stream> = Box::new(stream);
        let mut stream = match secret {
            Some(secret) => Box::new(Secured::offer(stream, secret, GREETING)?),
            None => stream,
        };
        greeting::greet(&mut *stream, GREETING)?;
        Ok(Self(stream))
    }

    /// To write the recording to.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn output(&self) -> io::Result<Box<dyn Write + Send>> {
        let stream = self.0.again()?;
        Ok(Box::new(stream))
    }

    /// All is written; what the collector kept of it. Where the connection broke, this is why, if the collector said so.
    ///
    /// # Errors
    ///
    /// When it says nothing.
    pub fn end(mut self) -> io::Result<Kept> {
        // A connection that broke has ended.
        let _ = self.0.end();
        greeting::told(&mut *self.0, KEPT)
    }
}
