//! A large `perf.data` of a small one: its samples again and again, each time later.

use std::fs::{self, File};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Bytes of the file's head, where in it the data's place and size stand, and the bits of its features.
const HEAD: usize = 104;
const ATTRIBUTES: usize = 24;
const DATA: usize = 40;
const SIZE: usize = 48;
const FEATURES: usize = 72;
/// Where in an attribute `sample_type` stands, and of its bits those of what is before a sample's time.
const SAMPLE_TYPE: usize = 24;
const BEFORE_TIME: u64 = 1 << 16 | 1 << 1 | 1;
/// `PERF_RECORD_SAMPLE`, `PERF_RECORD_FINISHED_ROUND`.
const SAMPLE: u32 = 9;
const FINISHED_ROUND: u32 = 68;
/// Nanoseconds between a copy and the next.
const APART: u64 = 1_000_000;

/// Writes a file with so many samples at least, and tells how many there are.
pub(crate) fn copies(of: &Path, wanted: u64, to: &Path) -> Result<u64> {
    let bytes = fs::read(of)?;
    let word = |at: usize| -> Result<u64> {
        let word = bytes.get(at..at + 8).context("the file ends too early")?;
        Ok(u64::from_le_bytes(word.try_into()?))
    };
    let (data, size) = (word(DATA)? as usize, word(SIZE)? as usize);
    let sample_type = word(word(ATTRIBUTES)? as usize + SAMPLE_TYPE)?;
    let time = 8 + 8 * (sample_type & BEFORE_TIME).count_ones() as usize;
    let (mut others, mut samples, mut count) = (Vec::new(), Vec::new(), 0);
    let (mut first, mut last) = (u64::MAX, 0);
    let mut at = data;
    while at < data + size {
        let kind = word(at)? as u32;
        let length = (word(at)? >> 48) as usize;
        let record = bytes.get(at..at + length).context("a record is not whole")?;
        if kind == SAMPLE {
            let then = word(at + time)?;
            (first, last) = (first.min(then), last.max(then));
            count += 1;
        }
        if matches!(kind, SAMPLE | FINISHED_ROUND) {
            samples.push((kind, record));
        } else {
            others.extend_from_slice(record);
        }
        at += length;
    }
    ensure!(count > 0, "{} has no samples", of.display());
    let mut out = BufWriter::new(File::create(to)?);
    out.write_all(&bytes[..data])?;
    out.write_all(&others)?;
    let (mut written, mut end) = (0, data + others.len());
    while written < wanted {
        let later = written / count * (last - first + APART);
        for &(kind, record) in &samples {
            let mut record = record.to_vec();
            if kind == SAMPLE {
                let then = u64::from_le_bytes(record[time..time + 8].try_into()?) + later;
                record[time..time + 8].copy_from_slice(&then.to_le_bytes());
            }
            out.write_all(&record)?;
            end += record.len();
        }
        written += count;
    }
    // What stands behind the data says where it stands.
    let mut behind = bytes[data + size..].to_vec();
    let features: u32 = bytes[FEATURES..HEAD].iter().map(|byte| byte.count_ones()).sum();
    for place in behind.as_chunks_mut::<16>().0.iter_mut().take(features as usize) {
        let at = u64::from_le_bytes(place[..8].try_into()?) + (end - data - size) as u64;
        place[..8].copy_from_slice(&at.to_le_bytes());
    }
    out.write_all(&behind)?;
    out.seek(SeekFrom::Start(SIZE as u64))?;
    out.write_all(&((end - data) as u64).to_le_bytes())?;
    out.flush()?;
    Ok(written)
}
