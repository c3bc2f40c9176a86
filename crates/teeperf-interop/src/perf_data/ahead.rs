//! Reads ahead in a file that came out of a pipe, for what it says of the machine and of builds of files: perf may say that behind the code and
//! the samples that it is of. All else is passed over.

use std::io::{BufRead, BufReader, Read, Seek};

use super::bytes::{Bytes, Order};
use super::features::Features;
use super::record::kind;
use super::records::HEAD;

/// Bytes that are read at once. Most records are passed over in them.
const AT_ONCE: usize = 1 << 18;

/// Reads from where the file stands to its end, or to where it cannot be read: whoever reads it again says so.
pub(super) fn read(file: &mut (impl Read + Seek), order: Order, features: &mut Features) {
    let mut file = BufReader::with_capacity(AT_ONCE, file);
    // At an error as well as at the end there is nothing more to know.
    while next(&mut file, order, features).is_some() {}
}

/// Takes the next record.
fn next(
    file: &mut BufReader<impl Read + Seek>,
    order: Order,
    features: &mut Features,
) -> Option<()> {
    // A seek may lead beyond the end.
    if file.fill_buf().ok()?.is_empty() {
        return None;
    }
    let mut head = [0; HEAD];
    file.read_exact(&mut head).ok()?;
    let mut head = Bytes { rest: &head, order };
    let (kind, misc, size) = (head.u32()?, head.u16()?, head.u16()?);
    let length = usize::from(size).checked_sub(HEAD)?;
    if !matches!(kind, kind::BUILD_ID | kind::HEADER_FEATURE | kind::AUXTRACE | kind::TRACING_DATA)
    {
        return file.seek_relative(length as i64).ok();
    }
    let mut body = vec![0; length];
    file.read_exact(&mut body).ok()?;
    let mut bytes = Bytes { rest: &body, order };
    // Data that is not counted in stands behind some.
    let behind = match kind {
        kind::AUXTRACE => bytes.u64()?,
        kind::TRACING_DATA => bytes.u32()?.into(),
        kind::BUILD_ID => {
            features.build_id(misc, bytes);
            0
        }
        _ => {
            let number = bytes.u64()?;
            features.take(u32::try_from(number).ok()?, bytes);
            0
        }
    };
    file.seek_relative(i64::try_from(behind).ok()?).ok()
}
