//! Records of one stream, or of several that perf's threads wrote beside each other, each with a part of what was recorded
//! (`perf record --threads`). Of several the one is read on that is furthest behind in time, so that what waits for its turn is little.

use std::io::Read;

use super::bytes::Order;
use super::records::{Found, Records};

/// See the module.
pub(super) struct Streams<R> {
    /// The first has the head.
    all: Vec<Stream<R>>,
    /// Which the latest record came from.
    current: usize,
}

/// One of them.
struct Stream<R> {
    /// What stands before its warnings.
    name: String,
    records: Records<R>,
    /// The latest that came.
    time: u64,
    is_over: bool,
}

impl<R: Read> Streams<R> {
    pub(super) fn of(first: Records<R>) -> Self {
        let mut streams = Self { all: Vec::new(), current: 0 };
        streams.add(String::new(), first);
        streams
    }

    /// One more. `name` stands before its warnings.
    pub(super) fn add(&mut self, name: String, records: Records<R>) {
        self.all.push(Stream { name, records, time: 0, is_over: false });
    }

    /// The one with the head.
    pub(super) fn first(&mut self) -> &mut Records<R> {
        &mut self.all[0].records
    }

    /// Which byte of a number comes first.
    pub(super) fn order(&self) -> Order {
        self.all[0].records.order
    }

    /// Whether there are several: then a finished round is one of its stream's alone.
    pub(super) fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    /// The next record; nothing at the end of all.
    pub(super) fn next(&mut self) -> Option<Found<'_>> {
        loop {
            self.current = self.furthest_behind()?;
            let place = self.all[self.current].records.advance();
            match place {
                Some(place) => return Some(self.all[self.current].records.found(place)),
                None => self.all[self.current].is_over = true,
            }
        }
    }

    fn furthest_behind(&self) -> Option<usize> {
        let left = self.all.iter().enumerate().filter(|(_, stream)| !stream.is_over);
        left.min_by_key(|(_, stream)| stream.time).map(|(at, _)| at)
    }

    /// The latest record has this time; 0: none.
    pub(super) fn at(&mut self, time: u64) {
        let stream = &mut self.all[self.current];
        stream.time = stream.time.max(time);
    }

    /// Bytes that were read of all.
    pub(super) fn offset(&self) -> u64 {
        self.all.iter().fold(0, |sum, stream| sum.saturating_add(stream.records.offset()))
    }

    /// Whether all had their ends where they should.
    pub(super) fn are_whole(&self) -> bool {
        self.all.iter().all(|stream| stream.records.is_whole)
    }

    pub(super) fn take_warnings(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        for Stream { name, records, .. } in &mut self.all {
            let own = std::mem::take(&mut records.warnings).into_iter();
            all.extend(own.map(|warning| format!("{name}{warning}")));
        }
        all
    }
}
