//! A [`Gmon`] made from calls and times, whatever these are from.
//!
//! A histogram says where the program counter was, but of a function only its time is known: that is
//! spread evenly over its code. Its parts are two bytes each, the smallest that gprof tells apart, so that
//! none belongs to two functions. Ranges are pages of the file, whatever was called: so the histograms of
//! two runs of a program have the same ranges or others altogether, which gprof asks for if it is to add
//! them up. Where there are no samples, one page stands there all the same: gprof refuses to show calls
//! of a file that has no histogram.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use super::{Arc, Error, Gmon, Histogram, Layout, MAX_FILE, UNIT};

/// Samples in a second where nothing else is said. A hundred times gprof's own, so that what took 0.1 ms
/// is seen; a part of a histogram holds 6.5 s.
pub const RATE: u32 = 10_000;
/// Rates that make sense.
pub const RATES: RangeInclusive<u32> = 1..=1_000_000;

/// Bytes of code that a histogram is of.
const RANGE: u64 = 4096;
const PARTS: u32 = (RANGE / UNIT) as u32;
/// Most parts of a histogram that a function's time is spread over.
const MOST_PARTS: u64 = 1 << 15;

/// Takes calls and times, in any order.
#[derive(Clone, Debug)]
pub struct Builder {
    layout: Layout,
    hz: u32,
    arcs: HashMap<(u64, u64), u64>,
    /// Samples, by address in [`UNIT`]s.
    samples: BTreeMap<u64, u64>,
    /// The first function there is.
    first: Option<u64>,
}

impl Builder {
    /// For a program in which numbers stand like this, with so many samples in a second.
    pub fn new(layout: Layout, hz: u32) -> Self {
        Self { layout, hz, arcs: HashMap::new(), samples: BTreeMap::new(), first: None }
    }

    /// Calls of the function at `to` from the one at `from`, 0 for nobody known.
    pub fn call(&mut self, from: u64, to: u64, calls: u64) {
        if calls > 0 {
            self.has(to);
            let sum = self.arcs.entry((from, to)).or_default();
            *sum = sum.saturating_add(calls);
        }
    }

    /// Time of the function at `address` itself. It becomes the nearest number of samples; where
    /// its size is not known, 0, they all stand at its beginning.
    pub fn time(&mut self, address: u64, size: u64, ns: f64) {
        self.has(address);
        let samples = (ns * f64::from(self.hz) / 1e9).round() as u64;
        let first = address / UNIT;
        let parts = (address.saturating_add(size) / UNIT - first).clamp(1, MOST_PARTS);
        let (each, more) = (samples / parts, samples % parts);
        for part in 0..parts.min(samples) {
            let there = self.samples.entry(first.saturating_add(part)).or_default();
            *there = there.saturating_add(each + u64::from(part < more));
        }
    }

    fn has(&mut self, address: u64) {
        self.first = Some(self.first.map_or(address, |first| first.min(address)));
    }

    /// All of it.
    ///
    /// # Errors
    ///
    /// When an address is too high for the program, or the file would be larger than
    /// [`MAX_FILE`] because a function has very many samples.
    pub fn finish(mut self) -> Result<Gmon, Error> {
        if let (true, Some(first)) = (self.samples.is_empty(), self.first) {
            self.samples.insert(first / UNIT, 0);
        }
        let limit = if self.layout.wide { u64::MAX } else { u32::MAX.into() };
        let mut arcs: Vec<Arc> =
            self.arcs.into_iter().map(|((from, to), calls)| Arc { from, to, calls }).collect();
        arcs.sort_unstable_by_key(|arc| (arc.from, arc.to));
        if let Some(arc) = arcs.iter().find(|arc| arc.from.max(arc.to) > limit) {
            return Err(Error::Address { address: arc.from.max(arc.to) });
        }
        let mut histograms: Vec<Histogram> = Vec::new();
        let (mut most, mut records) = (0, 0u64);
        for (unit, samples) in self.samples {
            let address = unit.saturating_mul(UNIT);
            let low = address - address % RANGE;
            let high = low.checked_add(RANGE).filter(|high| high - 1 <= limit);
            let high = high.ok_or(Error::Address { address })?;
            let samples = u32::try_from(samples).map_err(|_| Error::TooManySamples)?;
            if histograms.last().is_none_or(|last| last.low != low) {
                let bins = vec![0; PARTS as usize];
                histograms.push(Histogram { low, high, hz: self.hz, parts: PARTS, bins });
                (most, records) = (0, records + 1);
            }
            if let Some(bin) = histograms
                .last_mut()
                .and_then(|last| last.bins.get_mut((unit % u64::from(PARTS)) as usize))
            {
                *bin = samples;
            }
            // What a record has no room for stands in further ones.
            let needed = samples / u32::from(u16::MAX);
            records += u64::from(needed.saturating_sub(most));
            most = most.max(needed);
            if records * RANGE > MAX_FILE {
                return Err(Error::TooManySamples);
            }
        }
        Ok(Gmon { layout: self.layout, arcs, histograms, warnings: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_spread_over_the_code_and_calls_are_added() {
        let mut builder = Builder::new(Layout::LITTLE_64, 1000);
        builder.time(0x1ffc, 8, 10.4e6);
        builder.time(0x1ffd, 0, 1e6);
        builder.time(0x5000, 100, 0.4e6);
        builder.call(0, 0x1ffc, 1);
        builder.call(0x10, 0x1ffc, 2);
        builder.call(0x10, 0x1ffc, u64::MAX);
        builder.call(0x10, 0x20, 0);
        let gmon = builder.finish().unwrap();
        let [first, second] = &gmon.histograms[..] else { panic!("{gmon:?}") };
        assert_eq!((first.low, first.high, first.parts, first.hz), (0x1000, 0x2000, 2048, 1000));
        // 10 samples in four parts of two bytes, and one more.
        assert_eq!(first.bins[2045..], [0, 4, 3]);
        assert_eq!((second.low, &second.bins[..3]), (0x2000, &[2, 2, 0][..]));
        let arcs: Vec<_> = gmon.arcs.iter().map(|arc| (arc.from, arc.to, arc.calls)).collect();
        assert_eq!(arcs, [(0, 0x1ffc, 1), (0x10, 0x1ffc, u64::MAX)]);
    }

    #[test]
    fn without_samples_there_is_an_empty_histogram() {
        let mut builder = Builder::new(Layout::LITTLE_64, 1000);
        assert_eq!(builder.clone().finish().unwrap().histograms, []);
        builder.time(0x5ffe, 8, 0.4e6);
        builder.call(0x4000, 0x7000, 1);
        let page = |low: u64| {
            let bins = vec![0; PARTS as usize];
            Histogram { low, high: low + RANGE, hz: 1000, parts: PARTS, bins }
        };
        assert_eq!(builder.clone().finish().unwrap().histograms, [page(0x5000)]);
        builder.time(0x7000, 8, 1e6);
        assert_eq!(builder.finish().unwrap().histograms.len(), 1);
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let narrow = Layout { wide: false, ..Layout::LITTLE_64 };
        let mut builder = Builder::new(narrow, 100);
        builder.time(0xffff_fffe, 2, 1e9);
        assert!(builder.finish().is_ok());
        let mut builder = Builder::new(narrow, 100);
        builder.call(0, 1 << 32, 1);
        let said = builder.finish().unwrap_err().to_string();
        assert_eq!(said, "0x100000000 is beyond the addresses of the program");
        let mut builder = Builder::new(Layout::LITTLE_64, 100);
        builder.time(u64::MAX, 2, 1e9);
        assert!(matches!(builder.finish(), Err(Error::Address { .. })));
        let mut builder = Builder::new(Layout::LITTLE_64, 1_000_000);
        builder.time(0x1000, 0, 1e18);
        assert!(matches!(builder.finish(), Err(Error::TooManySamples)));
    }
}
