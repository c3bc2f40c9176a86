//! A sampler's packets, on their way to the drain.

use crate::drain::Event;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::Sender;

/// A packet on its way.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) kind: u16,
    pub(crate) payload: Vec<u8>,
    /// Bytes of all that are.
    backlog: Arc<AtomicUsize>,
}

impl Drop for Parcel {
    fn drop(&mut self) {
        self.backlog.fetch_sub(self.payload.len(), Relaxed);
    }
}

/// Bytes on their way to a drain that is held up, until samples stay in the rings, and are lost when these are full.
const BACKLOG: usize = 64 << 20;

/// Where a sampler's packets go.
#[derive(Debug)]
pub(crate) struct Outlet {
    events: Sender<Event>,
    backlog: Arc<AtomicUsize>,
}

impl Outlet {
    pub(crate) fn new(events: Sender<Event>) -> Self {
        Self { events, backlog: Arc::default() }
    }

    pub(crate) fn send(&self, kind: u16, payload: Vec<u8>) {
        self.backlog.fetch_add(payload.len(), Relaxed);
        let parcel = Parcel { kind, payload, backlog: Arc::clone(&self.backlog) };
        // After the recording's end nobody listens.
        let _ = self.events.send(Event::Sampled(parcel));
    }

    /// Whether so much is on its way that no more is to be sent.
    pub(crate) fn is_held_up(&self) -> bool {
        self.backlog.load(Relaxed) > BACKLOG
    }
}
