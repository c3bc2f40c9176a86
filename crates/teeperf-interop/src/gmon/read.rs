//! Takes a file apart. What is cut off or damaged ends the reading there, with a warning, and what was
//! read before counts.
//!
//! The file says its byte order, but not how wide addresses are: that is the program's, which not
//! everybody has at hand. So it is read both ways, and that way counts in which it makes sense.

use std::collections::BTreeMap;
use std::io::Read;

use super::{Arc, Error, Gmon, HEADER, Histogram, Layout, MAGIC, SPROF_VERSION, VERSION, tag};
use super::{SECONDS, SECONDS_SHORT};

/// Largest file that is read: one of a program with half a gigabyte of code has half as much.
pub const MAX_FILE: u64 = 256 << 20;
/// Most arcs that are read. What writes these files stops at a quarter of that.
const MAX_ARCS: usize = 1 << 22;
/// Most warnings of one file.
const MAX_WARNINGS: usize = 20;

/// Reads a file. `name` is for messages; `program` an ELF file's name, and how numbers stand in it, where that
/// is known.
///
/// # Errors
///
/// When it is no such file, of a form that is not read, too large, or of another program. What is
/// wrong behind the header is none.
pub fn read(name: &str, from: impl Read, program: Option<(&str, Layout)>) -> Result<Gmon, Error> {
    let mut bytes = Vec::new();
    let outcome = from.take(MAX_FILE + 1).read_to_end(&mut bytes);
    outcome.map_err(|source| Error::Read {
        name: name.to_owned(),
        offset: bytes.len() as u64,
        source,
    })?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(Error::TooLarge { name: name.to_owned(), limit: MAX_FILE });
    }
    let little_endian = header(name, &bytes)?;
    let parse = |wide| Records::parse(&bytes, Layout { little_endian, wide });
    let (wide, narrow) = (parse(true), parse(false));
    let is_wide = match program {
        Some((_, program)) if wide.sense == narrow.sense => program.wide,
        _ => wide.sense >= narrow.sense,
    };
    let read = if is_wide { wide } else { narrow };
    if let Some((elf, program)) = program
        && program != read.layout
    {
        return Err(Error::OtherProgram {
            name: name.to_owned(),
            file: read.layout,
            elf: elf.to_owned(),
            program,
        });
    }
    Ok(read.finish(name))
}

/// Whether numbers stand with their least byte first.
fn header(name: &str, bytes: &[u8]) -> Result<bool, Error> {
    let name = || name.to_owned();
    if bytes.is_empty() {
        return Err(Error::Empty { name: name() });
    }
    if !bytes.starts_with(MAGIC) {
        return Err(Error::NotGmon { name: name() });
    }
    let Some(&[.., a, b, c, d]) = bytes.get(..8).filter(|_| bytes.len() >= HEADER) else {
        return Err(Error::Header { name: name(), length: bytes.len() });
    };
    let (little, big) = (u32::from_le_bytes([a, b, c, d]), u32::from_be_bytes([a, b, c, d]));
    match (little, big) {
        (VERSION, _) => Ok(true),
        (_, VERSION) => Ok(false),
        (SPROF_VERSION, _) | (_, SPROF_VERSION) => Err(Error::Sprof { name: name() }),
        (version, _) => Err(Error::Version { name: name(), version }),
    }
}

/// Records as they are found.
struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
    layout: Layout,
    arcs: Vec<Arc>,
    arcs_left_out: u64,
    /// By first address.
    histograms: BTreeMap<u64, Histogram>,
    warnings: Vec<String>,
    more_warnings: u64,
    /// Up to where it makes sense, for comparison: the offset of the first thing that nobody would
    /// write.
    sense: usize,
}

/// The file ends before the end of a record.
struct CutOff {
    /// Up to where it makes sense all the same, if not only up to its beginning.
    sense: Option<usize>,
}

const CUT_OFF: CutOff = CutOff { sense: None };

impl<'a> Records<'a> {
    fn parse(bytes: &'a [u8], layout: Layout) -> Self {
        let mut records = Self {
            bytes,
            at: HEADER,
            layout,
            arcs: Vec::new(),
            arcs_left_out: 0,
            histograms: BTreeMap::new(),
            warnings: Vec::new(),
            more_warnings: 0,
            sense: usize::MAX,
        };
        while let Some(&tag) = bytes.get(records.at) {
            let begin = records.at;
            records.at += 1;
            let outcome = match tag {
                tag::HISTOGRAM => records.histogram(begin),
                tag::ARC => records.arc(begin),
                tag::BLOCKS => records.blocks(begin),
                _ => {
                    records.doubt(begin);
                    records.warn(begin, format!(
                        "{tag} is no kind of record: the file is damaged, and what follows is not read"
                    ));
                    break;
                }
            };
            if let Err(CutOff { sense }) = outcome {
                let length = bytes.len();
                records.doubt(sense.unwrap_or(begin));
                records.warn(begin, format!(
                    "the file ends at {length}, in the midst of the record that begins here; what is whole of it was read"
                ));
                break;
            }
        }
        records
    }

    fn doubt(&mut self, offset: usize) {
        self.sense = self.sense.min(offset);
    }

    fn finish(self, name: &str) -> Gmon {
        let mut warnings: Vec<String> =
            self.warnings.into_iter().map(|warning| format!("{name}: {warning}")).collect();
        if self.arcs_left_out > 0 {
            warnings.push(format!(
                "{name}: {} arcs are left out: only the first {MAX_ARCS} are read",
                self.arcs_left_out
            ));
        }
        if self.more_warnings > 0 {
            warnings.push(format!("{name}: and {} more warnings", self.more_warnings));
        }
        Gmon {
            layout: self.layout,
            arcs: self.arcs,
            histograms: self.histograms.into_values().collect(),
            warnings,
        }
    }

    fn warn(&mut self, offset: usize, what: String) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(format!("offset {offset}: {what}"));
        } else {
            self.more_warnings += 1;
        }
    }

    fn histogram(&mut self, begin: usize) -> Result<(), CutOff> {
        let (low, high) = (self.address()?, self.address()?);
        let (count, hz) = (self.number()?, self.number()?);
        let dimension = self.take(16)?;
        // Only what is there, however many it claims.
        let length = (count as usize).saturating_mul(2);
        let rest = &self.bytes[self.at..];
        let there = &rest[..length.min(rest.len())];
        self.at += there.len();
        let is_text = |text: &[u8]| {
            let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
            text[..end].iter().all(|byte| (0x20..0x7f).contains(byte))
                && text[end..].iter().all(|&byte| byte == 0)
        };
        if low >= high || !is_text(&dimension[..15]) || hz > 1_000_000_000 {
            self.doubt(begin);
        }
        if low >= high {
            if count > 0 {
                self.warn(begin, format!("a histogram from {low:#x} to {high:#x} is left out"));
            }
        } else if !there.is_empty() {
            if dimension[..15] != *SECONDS || dimension[15] != SECONDS_SHORT {
                let unit = String::from_utf8_lossy(&dimension[..15]);
                let unit = unit.trim_end_matches('\0').escape_default().to_string();
                self.warn(begin, format!("what is said to be {unit:?} is taken for seconds"));
            }
            let little_endian = self.layout.little_endian;
            let bins = there
                .as_chunks::<2>()
                .0
                .iter()
                .map(|&bytes| match little_endian {
                    true => u16::from_le_bytes(bytes),
                    false => u16::from_be_bytes(bytes),
                })
                .map(u32::from);
            let bins = bins.collect();
            self.keep(begin, Histogram { low, high, hz, parts: count, bins });
        }
        let sense = Some(self.at);
        if there.len() < length { Err(CutOff { sense }) } else { Ok(()) }
    }

    /// Adds a histogram to one of the same range. One that overlaps others otherwise is left out,
    /// as by gprof, which ends there.
    fn keep(&mut self, begin: usize, new: Histogram) {
        let before = self.histograms.range_mut(..new.high).next_back();
        match before {
            Some((_, old))
                if (old.low, old.high, old.parts, old.hz)
                    == (new.low, new.high, new.parts, new.hz) =>
            {
                old.bins.resize(old.bins.len().max(new.bins.len()), 0);
                for (old, new) in old.bins.iter_mut().zip(new.bins) {
                    *old = old.saturating_add(new);
                }
            }
            Some((_, old)) if old.high > new.low => {
                let (low, high) = (old.low, old.high);
                self.warn(begin, format!(
                    "a histogram from {:#x} to {:#x} is left out: it overlaps another, from {low:#x} to {high:#x}",
                    new.low, new.high
                ));
            }
            _ => {
                self.histograms.insert(new.low, new);
            }
        }
    }

    fn arc(&mut self, begin: usize) -> Result<(), CutOff> {
        let (from, to, calls) = (self.address()?, self.address()?, self.number()?);
        if to == 0 {
            self.doubt(begin);
        }
        if self.arcs.len() < MAX_ARCS {
            self.arcs.push(Arc { from, to, calls: calls.into() });
        } else {
            self.arcs_left_out += 1;
        }
        Ok(())
    }

    /// Counts of basic blocks, which compilers no longer make: an address and a count, both as wide as
    /// addresses are.
    fn blocks(&mut self, begin: usize) -> Result<(), CutOff> {
        let count = self.number()?;
        let length = (count as usize).saturating_mul(2 * self.layout.address_bytes());
        self.warn(begin, format!("counts of {count} basic blocks are left out"));
        self.take(length).map(|_| ())
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], CutOff> {
        let bytes = self.bytes[self.at..].get(..count).ok_or(CUT_OFF)?;
        self.at += count;
        Ok(bytes)
    }

    fn number(&mut self) -> Result<u32, CutOff> {
        let bytes = self.take(4)?.try_into().map_err(|_| CUT_OFF)?;
        Ok(match self.layout.little_endian {
            true => u32::from_le_bytes(bytes),
            false => u32::from_be_bytes(bytes),
        })
    }

    fn address(&mut self) -> Result<u64, CutOff> {
        if !self.layout.wide {
            return Ok(self.number()?.into());
        }
        let bytes = self.take(8)?.try_into().map_err(|_| CUT_OFF)?;
        Ok(match self.layout.little_endian {
            true => u64::from_le_bytes(bytes),
            false => u64::from_be_bytes(bytes),
        })
    }
}
