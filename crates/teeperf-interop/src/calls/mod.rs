//! Calls and returns of a foreign format as chunks of a recording, so that there is one replay, and one `dump`,
//! for both. A reader gives `Calls` its events in the order of its file: who called or returned, which address, at
//! which time of its clock. Here they are put into chunks by thread, addresses into windows of sites, and the
//! functions that were seen are named by the program's ELF file.
//!
//! Threads and addresses are whatever the file says, up to a new one in each event, so all that is kept of them has
//! a limit, and what lies beyond is counted.

mod program;
mod sites;
mod threads;

pub use program::Program;

use teeperf_profile::contents::Body;

use sites::{Site, Sites};
use threads::Threads;

/// Number of the process that all of it is of.
pub(crate) const PROCESS: u32 = 1;

/// A call or a return.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    /// Where it stands in the file.
    pub(crate) offset: u64,
    /// Who.
    pub(crate) thread: u64,
    /// An address of the function.
    pub(crate) address: u64,
    pub(crate) is_return: bool,
    /// Of the file's clock.
    pub(crate) time: u64,
}

/// See the module.
pub(crate) struct Calls {
    sites: Sites,
    threads: Threads,
}

impl Calls {
    /// Of this program, if it is known.
    pub(crate) fn new(program: Option<Program>) -> Self {
        Self { sites: Sites::new(program), threads: Threads::default() }
    }

    /// Takes the next event. Whether there is a chunk now, or more than one.
    #[inline(always)]
    pub(crate) fn take(&mut self, event: Event) -> bool {
        let Some(thread) = self.threads.of(&event) else { return false };
        match self.sites.of(event.address) {
            Site::Known(word) => thread.event(word | u32::from(event.is_return), event.time),
            Site::InNew(window, word) => {
                thread.window(&window, self.sites.path(&window));
                thread.event(word | u32::from(event.is_return), event.time);
            }
            Site::Far => thread.far(event.address, event.is_return, event.time),
        }
        self.threads.is_ready()
    }

    /// From here on nothing is recorded, or something is again.
    pub(crate) fn switch(&mut self, is_on: bool, time: u64) {
        self.threads.switch(is_on, time);
    }

    /// No event comes any more: what is there becomes chunks.
    pub(crate) fn finish(&mut self) {
        self.threads.close_all();
    }

    /// Whether there is a chunk.
    pub(crate) fn has_chunk(&self) -> bool {
        self.threads.is_ready()
    }

    /// The next chunk, with its place in the file, if there is one.
    pub(crate) fn chunk(&mut self) -> Option<(u64, Body<'_>)> {
        let (offset, header, data) = self.threads.ready()?;
        Some((offset, Body::Chunk(header, data)))
    }

    /// Name of the next thread that has one to be told, if there is one left. `name` makes it of the thread's id.
    pub(crate) fn thread(&mut self, name: impl Fn(u64) -> String) -> Option<Body<'static>> {
        self.threads.next_named(name).map(Body::Thread)
    }

    /// Payloads of symbol packets: names of all functions that were seen.
    pub(crate) fn symbols(&mut self) -> Vec<Vec<u8>> {
        self.sites.symbols()
    }

    /// Latest time of any event.
    pub(crate) fn end(&self) -> u64 {
        self.threads.end()
    }

    /// Events left out, because there were too many threads.
    pub(crate) fn left_out(&self) -> u64 {
        self.threads.left_out()
    }

    /// What is to be known of it.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.threads.warnings().into_iter().chain(self.sites.doubt()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events by turns of so many threads, `rounds` times; what is said of them in all: events, chunks, left out.
    fn of_threads(threads: u64, rounds: u64) -> (u64, u64, u64) {
        let mut calls = Calls::new(None);
        let (mut words, mut chunks) = (0, 0);
        let mut empty = |calls: &mut Calls| {
            while let Some((_, Body::Chunk(header, data))) = calls.chunk() {
                assert_eq!(data.len(), 4 * header.count as usize);
                words += u64::from(header.count);
                chunks += 1;
            }
        };
        for number in 0..threads * rounds {
            let event = Event {
                offset: number,
                thread: number % threads,
                address: 0x1000,
                is_return: false,
                time: number,
            };
            if calls.take(event) {
                empty(&mut calls);
            }
        }
        calls.finish();
        empty(&mut calls);
        // The first one told of its window, in 12 words.
        ((words - 12) / 2, chunks, calls.left_out())
    }

    #[test]
    fn however_many_threads_there_are_each_event_is_in_a_chunk_or_left_out() {
        assert_eq!(of_threads(1, 10_000).0, 10_000);
        assert_eq!(of_threads(70_000, 1), (1 << 16, 1 << 16, 70_000 - (1 << 16)));
        // Chunks of many that take turns are not of single events.
        let (events, chunks, left_out) = of_threads(10_000, 40);
        assert_eq!((events, left_out), (400_000, 0));
        assert!(chunks < events / 10, "{chunks}");
    }
}
