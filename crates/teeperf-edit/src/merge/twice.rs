//! Whether two recordings have the same of a thread, as copies have, and windows of one recording that overlap: what they have would
//! count twice.
//!
//! A process is known again by its machine, its id and when it attached, its threads by their serials, and what they wrote by
//! where it stands among their words, or by when it was summed.

use std::collections::HashMap;

use teeperf_profile::contents::{Body, Start};
use teeperf_wire::body::chunk::{self, Header};

/// Most stretches that are known, in all and of a thread, which has one for each recording if nothing is missing in it; later ones
/// are not looked for.
const MOST: usize = 1 << 20;
const MOST_OF_THREAD: usize = 256;

/// What recordings before the present one have, and what that has.
#[derive(Default)]
pub(super) struct Seen {
    names: Vec<String>,
    host: String,
    /// Processes of the present recording, by their numbers.
    processes: HashMap<u32, Process>,
    words: Known<(u32, u32)>,
    sums: Known<u64>,
}

/// Machine, id, and when it attached.
type Process = (String, u32, u64);
/// A thread of one, by its serial.
type Thread = (Process, u32);

impl Seen {
    /// Another recording begins.
    pub(super) fn begin(&mut self, name: &str) {
        self.names.push(name.to_owned());
        self.processes.clear();
    }

    pub(super) fn start(&mut self, start: &Start) {
        self.host.clone_from(&start.host);
    }

    /// Takes a packet; an error where it has what another recording has.
    pub(super) fn packet(&mut self, body: &Body<'_>) -> Result<(), String> {
        let this = self.names.len();
        match body {
            // Where it is not told when it attached, ids may have come again.
            Body::Process(process) if process.time > 0 => {
                let known = (self.host.clone(), process.pid, process.time);
                self.processes.insert(process.id, known);
                Ok(())
            }
            Body::Chunk(header, _) => {
                let Some(process) = self.processes.get(&header.process) else { return Ok(()) };
                let of = (process.clone(), header.thread);
                let from = (header.sequence, header.first);
                let other = self.words.add(this, of, from, behind(header));
                other.map_or(Ok(()), |other| Err(self.twice(other, header.process, header.tid)))
            }
            Body::Tree(
                teeperf_wire::body::tree::Header { process, thread, tid, begin, end, .. },
                _,
            )
            | Body::Arcs(
                teeperf_wire::body::arcs::Header { process, thread, tid, begin, end, .. },
                _,
            ) => {
                let Some(known) = self.processes.get(process) else { return Ok(()) };
                let other = self.sums.add(this, (known.clone(), *thread), *begin, *end);
                other.map_or(Ok(()), |other| Err(self.twice(other, *process, *tid)))
            }
            _ => Ok(()),
        }
    }

    fn twice(&self, other: usize, process: u32, tid: u32) -> String {
        let pid = self.processes.get(&process).map_or(0, |(_, pid, _)| *pid);
        let (one, two) = (&self.names[other - 1], &self.names[self.names.len() - 1]);
        format!(
            "{one} and {two} both have a part of thread {tid} of process {pid}, which would count twice: they are copies, or \
             windows of one recording that overlap. Name one of them, or windows that follow one another"
        )
    }
}

/// Where a thread's next piece begins.
fn behind(header: &Header) -> (u32, u32) {
    match header.flags & chunk::WHOLE != 0 {
        true => (header.sequence.saturating_add(1), 0),
        false => (header.sequence, header.first.saturating_add(header.count)),
    }
}

/// Stretches, each with the number of the recording that has it.
struct Known<T> {
    of: HashMap<Thread, Vec<(usize, T, T)>>,
    count: usize,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self { of: HashMap::new(), count: 0 }
    }
}

impl<T: Ord + Copy> Known<T> {
    /// Adds a stretch; the recording that has a part of it, if another does.
    fn add(&mut self, this: usize, of: Thread, from: T, to: T) -> Option<usize> {
        let known = self.of.entry(of).or_default();
        let others = known.iter().filter(|(whose, ..)| *whose != this);
        let twice = others.clone().find(|(_, begin, end)| from < *end && *begin < to);
        if let Some((whose, ..)) = twice {
            return Some(*whose);
        }
        let has_room = self.count < MOST && known.len() < MOST_OF_THREAD;
        match known.last_mut() {
            // What follows makes one with what was before.
            Some((whose, _, end)) if *whose == this && *end == from => *end = to.max(from),
            _ if from < to && has_room => {
                self.count += 1;
                known.push((this, from, to));
            }
            _ => {}
        }
        None
    }
}
