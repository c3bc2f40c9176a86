//! The stacks of a recording alone: what replay knows of each thread at any place of it, to be told in keyframes where
//! a window begins. Replayed as profiles are, by the same code; calls and times that come of it are let go,
//! so memory is bounded by what is open, however long the recording is.

use std::collections::BTreeSet;

use teeperf_wire::body::chunk::Header;
use teeperf_wire::shared::ClockKind;

use crate::contents::Filter;
use crate::keyframes::Keyframe;
use crate::packets::MAX_PATHS;
use crate::replay::{Summariser, Summary, Threads};

/// Nodes that are made before those of closed frames are let go.
const NODES: usize = 1 << 20;

/// See the module.
pub struct Stacks {
    summariser: Summariser,
    threads: Threads,
    spare: Summary,
    /// Nodes made since closed ones were let go, at most.
    made: usize,
    /// Nodes that were left then.
    kept: usize,
}

/// Where a thread is in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Latest time that it told, clock units.
    pub now: u64,
    /// Clock units charged since its last event.
    pub recent: u64,
    /// Clock units not to be charged before its next.
    pub debt: u64,
    /// As much of `recent` as was charged before the keyframe that replay of the thread began with.
    pub before: u64,
    /// Clock units that gaps have taken back of that.
    pub taken_before: u64,
}

impl Stacks {
    /// Of a recording's beginning, or what the system said when there was no memory.
    pub fn new() -> std::io::Result<Self> {
        let mut threads = Threads::new(MAX_PATHS);
        threads.shared.changed = Some(BTreeSet::new());
        Ok(Self {
            summariser: Summariser::new()?,
            threads,
            spare: Summary::default(),
            made: 0,
            kept: 0,
        })
    }

    /// The next piece of a thread, as a packet has it.
    pub fn piece(&mut self, header: &Header, data: &[u8]) {
        self.summariser.begin(std::mem::take(&mut self.spare));
        self.summariser.add(0, header, data);
        self.apply(header);
    }

    /// The next piece of a thread, or a part of one: words of this clock.
    pub fn words(&mut self, header: &Header, clock: ClockKind, words: &[u32]) {
        self.summariser.begin(std::mem::take(&mut self.spare));
        self.summariser.add_words(0, header, clock, words);
        self.apply(header);
    }

    /// What a keyframe says.
    pub fn keyframe(&mut self, keyframe: &Keyframe) {
        self.threads.keyframe(0, keyframe);
    }

    /// What a filter lets pass.
    pub fn filter(&mut self, filter: &Filter<'_>) {
        self.threads.shared.filters.add(filter, &mut self.threads.shared.warnings);
    }

    /// Where a thread is in time; nothing when it has not been seen, or is forgotten because nothing of it is open.
    pub fn moment(&self, process: u32, thread: u32) -> Option<Moment> {
        let state = self.threads.states.get(&(process, thread))?;
        Some(state.moment())
    }

    /// What is known of a thread now; nothing as above.
    pub fn keyframes_of(&self, process: u32, thread: u32) -> Option<Vec<Keyframe>> {
        self.threads.keyframes_of((process, thread))
    }

    /// The name that a thread gave itself.
    pub fn name(&self, process: u32, thread: u32) -> Option<&str> {
        self.threads.states.get(&(process, thread))?.known_name()
    }

    /// Whether any thread has ever changed from one stack to another.
    pub fn has_switched(&self) -> bool {
        self.threads.shared.has_switched
    }

    /// The stacks of a process that were left or entered since this was asked last: what is kept of each now.
    pub fn take_changed(&mut self, process: u32) -> Vec<Keyframe> {
        let Some(changed) = &mut self.threads.shared.changed else { return Vec::new() };
        let of_process: Vec<_> =
            changed.range((process, 0, 0)..=(process, 0, u64::MAX)).copied().collect();
        of_process.iter().for_each(|key| _ = changed.remove(key));
        if of_process.is_empty() {
            return Vec::new();
        }
        let owners = self.threads.owners();
        of_process.iter().map(|key| self.threads.left(key, &owners)).collect()
    }

    /// The stacks of a process that nobody is on, but for threads' own.
    pub fn left_of(&self, process: u32) -> Vec<Keyframe> {
        let mut keys: Vec<_> = self.threads.shared.stacks.keys().copied().collect();
        keys.retain(|&(of, _, id)| of == process && id != 0);
        if keys.is_empty() {
            return Vec::new();
        }
        keys.sort_unstable();
        let owners = self.threads.owners();
        keys.iter().map(|key| self.threads.left(key, &owners)).collect()
    }

    /// A process is gone.
    pub fn forget(&mut self, process: u32) {
        self.threads.states.retain(|key, _| key.0 != process);
        self.threads.shared.stacks.retain(|key, _| key.0 != process);
        self.threads.shared.windows.forget(process);
        // Its trees go with those of closed frames.
        self.kept = 0;
    }

    /// The windows of a process, but for as many as were told before; nothing when there are no more.
    pub fn windows(&self, process: u32, told: usize) -> Option<(Keyframe, usize)> {
        let all: Vec<_> = self.threads.shared.windows.of(process).cloned().collect();
        (all.len() > told).then(|| {
            let count = all.len();
            (Keyframe { process, windows: all, ..Keyframe::default() }, count)
        })
    }

    fn apply(&mut self, header: &Header) {
        let mut summary = self.summariser.finish();
        self.made += summary.tree.nodes().len();
        self.threads.apply((header.process, header.thread), header.tid, &mut summary);
        self.spare = summary;
        if self.made > NODES + self.kept {
            self.let_go();
        }
    }

    /// Makes all trees anew, of what is open.
    fn let_go(&mut self) {
        let mut fresh = Threads::new(MAX_PATHS);
        let mut keys: Vec<_> = self.threads.states.keys().copied().collect();
        keys.sort_unstable();
        for key in keys {
            for keyframe in self.threads.keyframes_of(key).unwrap_or_default() {
                fresh.keyframe(0, &keyframe);
            }
            if let (Some(new), Some(old)) =
                (fresh.states.get_mut(&key), self.threads.states.get(&key))
            {
                new.go_on_as(old);
            }
        }
        let mut left: Vec<_> = self.threads.shared.stacks.keys().copied().collect();
        left.sort_unstable();
        let owners = self.threads.owners();
        for key in left.iter().filter(|(_, _, id)| *id != 0) {
            fresh.keyframe(0, &self.threads.left(key, &owners));
        }
        std::mem::swap(&mut fresh.shared.filters, &mut self.threads.shared.filters);
        std::mem::swap(&mut fresh.shared.windows, &mut self.threads.shared.windows);
        fresh.shared.has_switched = self.threads.shared.has_switched;
        fresh.shared.changed = self.threads.shared.changed.take();
        self.threads = fresh;
        self.made = 0;
        self.kept = self.threads.trees.iter().flatten().map(|tree| tree.tree.nodes().len()).sum();
    }
}
