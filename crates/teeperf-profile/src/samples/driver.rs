//! Gives packets of samples to workers, and keeps what holds when each was taken.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Sender, bounded};
use rustc_hash::FxHashMap;
use teeperf_symbols::Search;
use teeperf_wire::body::sample::Header;
use teeperf_wire::body::sampled::BRANCH_CALL_STACK;

use super::chain::EventTraits;
use super::functions::Functions;
use super::modules::Modules;
use super::profile;
use super::spaces::History;
use super::worker::{Batch, Data, Found, Worker};
use crate::contents::{Map, Part, Sampled, Start, Task};
use crate::model::{Info, Profile};
use crate::warnings::Warnings;

/// Most events that are told apart.
const MAX_EVENTS: usize = 1 << 12;
/// Packets that wait for each worker, at most.
const WAITING: usize = 2;

/// How to work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Workers.
    pub(crate) jobs: usize,
    /// Most call paths that each tells apart.
    pub(crate) paths: usize,
    /// Functions that were inlined are told apart.
    pub(crate) is_inlined: bool,
    /// Samples are counted by where they were taken.
    pub(crate) by_line: bool,
}

/// What was sampled in a recording, as far as it was read.
pub(crate) struct Driver {
    settings: Settings,
    pub(super) events: BTreeMap<u16, Sampled>,
    pub(super) lost: BTreeMap<u32, u64>,
    samples: u64,
    batches: u64,
    /// `e_machine` of the machine that it was recorded on.
    machine: u16,
    history: History,
    traits: Arc<FxHashMap<u16, EventTraits>>,
    pub(super) modules: Arc<Modules>,
    pub(super) functions: Arc<Functions>,
    pool: Option<Pool>,
}

struct Pool {
    batches: Sender<Batch>,
    workers: Vec<JoinHandle<Found>>,
}

impl Driver {
    /// Nothing yet. Files of images and debug files are looked for as `search` says.
    pub(crate) fn new(settings: Settings, search: Search) -> Self {
        Self {
            settings,
            events: BTreeMap::new(),
            lost: BTreeMap::new(),
            samples: 0,
            batches: 0,
            machine: 0,
            history: History::default(),
            traits: Arc::default(),
            modules: Arc::new(Modules::new(search, settings.is_inlined)),
            functions: Arc::default(),
            pool: None,
        }
    }

    /// What it was recorded on. The code of what does not say it is most likely like that of here: a file of perf that comes through a
    /// pipe says it behind its samples.
    pub(crate) fn start(&mut self, start: &Start) {
        let name = if start.machine.is_empty() { std::env::consts::ARCH } else { &start.machine };
        self.machine = super::unwind::machine::of(name);
        self.modules.is_here(super::kernel::is_here(start), super::kernel::may_be_here(start));
    }

    /// An event is sampled.
    pub(crate) fn sampled(&mut self, sampled: Sampled) {
        if self.events.len() >= MAX_EVENTS && !self.events.contains_key(&sampled.event) {
            return;
        }
        let machine = if sampled.machine == 0 { self.machine } else { sampled.machine };
        let traits = EventTraits {
            machine,
            is_precise: sampled.precise > 0,
            has_call_stacks: sampled.branches & BRANCH_CALL_STACK != 0,
            stack: sampled.stack,
        };
        Arc::make_mut(&mut self.traits).insert(sampled.event, traits);
        self.events.insert(sampled.event, sampled);
    }

    /// Code came into a process.
    pub(crate) fn map(&mut self, map: &Map<'_>) {
        self.history.map(map, &self.modules);
    }

    /// A process or thread began, changed or ended.
    pub(crate) fn task(&mut self, task: &Task<'_>) {
        self.history.task(task);
    }

    /// A part of a file that the recording brings with it.
    pub(crate) fn file(&mut self, part: &Part<'_>) {
        self.modules.take(part);
    }

    /// Samples, which a worker takes.
    ///
    /// # Errors
    ///
    /// When the system has no thread or no memory for workers.
    pub(crate) fn samples(&mut self, offset: u64, header: Header, data: Data) -> io::Result<()> {
        let lost = self.lost.entry(header.event).or_default();
        *lost = lost.saturating_add(header.lost);
        self.samples += u64::from(header.samples);
        if header.samples == 0 {
            return Ok(());
        }
        self.batches += 1;
        let batch = Batch {
            number: self.batches,
            offset,
            header,
            data,
            spaces: self.history.now().clone(),
            traits: self.traits.clone(),
        };
        let pool = match &mut self.pool {
            Some(pool) => pool,
            none => none.insert(Pool::start(self.settings, &self.modules, &self.functions)?),
        };
        // Fails where all workers have panicked, which joining them tells.
        let _ = pool.batches.send(batch);
        Ok(())
    }

    /// Samples that packets claim to have, so far.
    pub(crate) fn count(&self) -> u64 {
        self.samples
    }

    /// A profile for each event that has samples, by number; `info` is what is known of the run.
    pub(crate) fn finish(mut self, info: &Info, warnings: &mut Warnings) -> Vec<Profile> {
        let found = self.pool.take().map_or_else(Vec::new, Pool::finish);
        profile::of(&self, found, info, warnings)
    }
}

impl Pool {
    fn start(
        settings: Settings,
        modules: &Arc<Modules>,
        functions: &Arc<Functions>,
    ) -> io::Result<Self> {
        let (batches, taken) = bounded::<Batch>(WAITING * settings.jobs);
        let mut workers = Vec::with_capacity(settings.jobs);
        for _ in 0..settings.jobs {
            let mut worker = Worker::new(modules, functions, settings)?;
            let taken = taken.clone();
            let work = move || {
                taken.iter().for_each(|batch| worker.batch(&batch));
                worker.finish()
            };
            workers.push(std::thread::Builder::new().name("samples".into()).spawn(work)?);
        }
        Ok(Self { batches, workers })
    }

    fn finish(self) -> Vec<Found> {
        drop(self.batches);
        let ends = self.workers.into_iter().map(JoinHandle::join);
        ends.map(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    }
}
