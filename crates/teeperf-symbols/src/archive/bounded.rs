//! What a compressed stream may become: a bounded multiple of what was read of it. A file of some kilobytes can stand for
//! gigabytes otherwise.

use std::cell::Cell;
use std::io::{self, BufReader, Read};
use std::rc::Rc;
use zstd::stream::read::Decoder;

/// Most bytes that one byte of an archive may stand for. Programs and their debug files come to about four, and recordings,
/// whose chunks are compressed already, to less.
const MAX_RATIO: u64 = 256;
/// So many bytes are borne whatever the archive's size: zeros at the end of a file come to more.
const FREE: u64 = 64 << 20;
/// Most bytes of history that an archive may have its reader keep: 2 to this.
const WINDOW_LOG: u32 = 27;

/// The content of a compressed stream, up to its bound.
pub struct Decompressed<R: Read> {
    decoder: Decoder<'static, BufReader<Counted<R>>>,
    taken: Rc<Cell<u64>>,
    given: u64,
}

/// A stream, of which is known how much was read.
struct Counted<R> {
    stream: R,
    bytes: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(into)?;
        self.bytes.set(self.bytes.get() + read as u64);
        Ok(read)
    }
}

impl<R: Read> Decompressed<R> {
    /// Of this stream.
    ///
    /// # Errors
    ///
    /// When the system has no memory for it.
    pub(super) fn of(stream: R) -> io::Result<Self> {
        let taken = Rc::new(Cell::new(0));
        let mut decoder = Decoder::new(Counted { stream, bytes: Rc::clone(&taken) })?;
        decoder.window_log_max(WINDOW_LOG)?;
        Ok(Self { decoder, taken, given: 0 })
    }
}

impl<R: Read> Read for Decompressed<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let given = self.decoder.read(into)?;
        self.given += given as u64;
        let taken = self.taken.get();
        if self.given > taken.saturating_mul(MAX_RATIO).saturating_add(FREE) {
            let why =
                format!("{taken} bytes of it stand for {}: more than an archive's do", self.given);
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> io::Result<u64> {
        io::copy(&mut Decompressed::of(bytes)?, &mut io::sink())
    }

    #[test]
    fn a_few_bytes_do_not_become_gigabytes() {
        let zeros = |count| zstd::stream::encode_all(io::repeat(0).take(count), 1).unwrap();
        assert_eq!(read(&zeros(FREE)).unwrap(), FREE);
        let bomb = zeros(1 << 30);
        assert!(bomb.len() < 1 << 18, "{}", bomb.len());
        assert!(read(&bomb).unwrap_err().to_string().contains("more than an archive's do"));
    }
}
