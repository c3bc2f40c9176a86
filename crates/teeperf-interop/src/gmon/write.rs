//! A [`Gmon`] as bytes, in the form that gprof reads. What has no room in a number of the format
//! stands in several records, which gprof adds up.

use std::io::{self, Write};

use super::{Arc, Gmon, HEADER, Histogram, Layout, MAGIC, VERSION, tag};
use super::{SECONDS, SECONDS_SHORT};

impl Gmon {
    /// Writes it: histograms first, then calls.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(MAGIC);
        header[4..8].copy_from_slice(&number(self.layout, VERSION));
        out.write_all(&header)?;
        for histogram in &self.histograms {
            write_histogram(self.layout, histogram, out)?;
        }
        for arc in &self.arcs {
            write_arc(self.layout, arc, out)?;
        }
        Ok(())
    }
}

fn write_histogram(layout: Layout, histogram: &Histogram, out: &mut impl Write) -> io::Result<()> {
    let Histogram { low, high, hz, parts, ref bins } = *histogram;
    let mut rest: Vec<u32> = bins.clone();
    loop {
        out.write_all(&[tag::HISTOGRAM])?;
        write_address(layout, low, out)?;
        write_address(layout, high, out)?;
        out.write_all(&number(layout, parts))?;
        out.write_all(&number(layout, hz))?;
        out.write_all(SECONDS)?;
        out.write_all(&[SECONDS_SHORT])?;
        for part in 0..parts as usize {
            let now = rest.get_mut(part).map_or(0, |left| {
                let now = u16::try_from(*left).unwrap_or(u16::MAX);
                *left -= u32::from(now);
                now
            });
            out.write_all(&match layout.little_endian {
                true => now.to_le_bytes(),
                false => now.to_be_bytes(),
            })?;
        }
        if rest.iter().all(|&left| left == 0) {
            return Ok(());
        }
    }
}

fn write_arc(layout: Layout, arc: &Arc, out: &mut impl Write) -> io::Result<()> {
    let mut left = arc.calls;
    while left > 0 {
        let now = u32::try_from(left).unwrap_or(u32::MAX);
        left -= u64::from(now);
        out.write_all(&[tag::ARC])?;
        write_address(layout, arc.from, out)?;
        write_address(layout, arc.to, out)?;
        out.write_all(&number(layout, now))?;
    }
    Ok(())
}

fn number(layout: Layout, number: u32) -> [u8; 4] {
    if layout.little_endian { number.to_le_bytes() } else { number.to_be_bytes() }
}

/// Of a 32-bit program only the lower half; see [`super::Builder::finish`].
fn write_address(layout: Layout, address: u64, out: &mut impl Write) -> io::Result<()> {
    match layout {
        Layout { wide: false, .. } => out.write_all(&number(layout, address as u32)),
        Layout { little_endian: true, .. } => out.write_all(&address.to_le_bytes()),
        Layout { little_endian: false, .. } => out.write_all(&address.to_be_bytes()),
    }
}
