//! Drives replay: batches go to workers, summaries come back and are put into their threads
//! in the order of the batches. At most a few of either exist at any time.

use std::collections::BTreeMap;
use std::io;
use std::thread::{Builder, Scope};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use teeperf_wire::body::{arcs, chunk::Header, tree};

use super::batch::{Batch, Gatherer};
use super::fold;
use super::summarise::{Summariser, Unit};
use super::summary::Summary;
use super::sums::Sums;
use super::threads::Threads;
use crate::contents::{Filter, Start};
use crate::keyframes::Keyframe;

/// How to replay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Workers; with one, everything is done on the caller's thread.
    pub(crate) jobs: usize,
    /// Chunks in a batch.
    pub(crate) batch_chunks: usize,
    /// Call paths in all trees.
    pub(crate) paths: usize,
    /// Whether calls are timed.
    pub(crate) timed: bool,
}

/// A batch on its way; `number` counts batches.
struct Work {
    number: u64,
    batch: Batch,
    summary: Summary,
}

/// A batch whose first `done` chunks are summarised.
struct Done {
    batch: Batch,
    summary: Summary,
    done: usize,
}

/// Takes chunks, in the order of the recording.
pub(crate) struct Driver {
    gatherer: Gatherer,
    threads: Threads,
    summariser: Summariser,
    workers: Option<Workers>,
    spare_batches: Vec<Batch>,
    spare_summaries: Vec<Summary>,
    sums: Sums,
}

struct Workers {
    work: Sender<Work>,
    results: Receiver<(u64, Done)>,
    /// Batches sent, and batches whose summaries were put into their threads.
    sent: u64,
    applied: u64,
    most_under_way: u64,
    /// Results that came before their turn.
    early: BTreeMap<u64, Done>,
}

/// Replays the chunks that `feed` gives to the driver.
pub(crate) fn run<T>(
    settings: Settings,
    feed: impl FnOnce(&mut Driver) -> T,
) -> io::Result<(T, Threads)> {
    std::thread::scope(|scope| {
        let mut driver = Driver::new(settings)?;
        if settings.jobs > 1 {
            driver.workers = Some(Workers::spawn(scope, settings, &driver.threads.shared.unit)?);
        }
        let fed = feed(&mut driver);
        Ok((fed, driver.finish()))
    })
}

impl Driver {
    fn new(settings: Settings) -> io::Result<Self> {
        let threads = Threads::new(settings.paths);
        Ok(Self {
            gatherer: Gatherer::new(settings.batch_chunks),
            summariser: Summariser::timing(settings.timed, threads.shared.unit.clone())?,
            threads,
            workers: None,
            spare_batches: Vec::new(),
            spare_summaries: Vec::new(),
            sums: Sums::default(),
        })
    }

    /// The next chunk of the recording; `offset` is that of its packet.
    pub(crate) fn chunk(&mut self, offset: u64, header: Header, data: &[u8]) {
        let spare = &mut self.spare_batches;
        let complete = self.gatherer.add(offset, header, data, || spare.pop().unwrap_or_default());
        if let Some(batch) = complete {
            self.submit(batch);
        }
    }

    /// The next tree of the recording; `offset` is that of its packet.
    pub(crate) fn tree(&mut self, offset: u64, header: &tree::Header, data: &[u8]) {
        self.sums.add(offset, header, data, &mut self.threads.shared);
    }

    /// The next arcs of the recording; `offset` is that of their packet.
    pub(crate) fn arcs(&mut self, offset: u64, header: &arcs::Header, data: &[u8]) {
        self.threads.arcs.add(offset, header, data, &mut self.threads.shared);
    }

    /// What replay is to know of a thread from here on, or of stacks that no thread is on.
    pub(crate) fn keyframe(&mut self, offset: u64, keyframe: &Keyframe) {
        while let Some(batch) = self.gatherer.oldest() {
            self.submit(batch);
        }
        self.wait_until(0);
        self.threads.keyframe(offset, keyframe);
    }

    /// How fast the counter goes that times calls beside the tick: as the first start packet has it.
    pub(crate) fn start(&mut self, start: &Start) {
        let ps = |hz: u64| if hz > 0 { 1e12 / hz as f64 } else { 0.0 };
        if self.threads.shared.counter_ps.0 == 0.0 {
            self.threads.shared.counter_ps = (ps(start.counter_hz), ps(start.hz));
            self.threads.shared.unit.of_rate(start.hz);
        }
    }

    /// What a filter lets pass.
    pub(crate) fn filter(&mut self, filter: &Filter<'_>) {
        self.threads.shared.filters.add(filter, &mut self.threads.shared.warnings);
    }

    /// Calls and returns replayed so far.
    pub(crate) fn events(&self) -> u64 {
        self.threads.shared.counts.events
    }

    fn finish(mut self) -> Threads {
        while let Some(batch) = self.gatherer.oldest() {
            self.submit(batch);
        }
        self.wait_until(0);
        self.threads.take_sums(self.sums);
        fold::fold_returned(&mut self.threads);
        self.threads.end_samples();
        self.threads
    }

    fn submit(&mut self, batch: Batch) {
        let summary = self.spare_summaries.pop().unwrap_or_default();
        let Some(workers) = &mut self.workers else {
            let done = summarise(&mut self.summariser, &batch, 0, summary);
            return self.apply(Done { batch, summary: done.0, done: done.1 });
        };
        let number = workers.sent;
        workers.sent += 1;
        let most = workers.most_under_way - 1;
        // Fails only when all workers are gone, that is, panicked: the scope says so.
        let _ = workers.work.send(Work { number, batch, summary });
        self.wait_until(most);
    }

    /// Puts summaries into their threads until at most so many batches are under way, and
    /// those that are there already in any case.
    fn wait_until(&mut self, under_way: u64) {
        while let Some(workers) = &mut self.workers {
            if let Some(done) = workers.early.remove(&workers.applied) {
                workers.applied += 1;
                self.apply(done);
                continue;
            }
            let result = if workers.sent - workers.applied > under_way {
                workers.results.recv().ok()
            } else {
                workers.results.try_recv().ok()
            };
            let Some((number, done)) = result else { return };
            workers.early.insert(number, done);
        }
    }

    fn apply(&mut self, mut done: Done) {
        let (key, tid) = (done.batch.key(), done.batch.tid());
        self.threads.apply(key, tid, &mut done.summary);
        let mut summary = done.summary;
        // A summary that grew too large left chunks over: they are done here, one summary
        // after the other, so that no more than one of those is ever there.
        while done.done < done.batch.chunks().len() {
            (summary, done.done) = summarise(&mut self.summariser, &done.batch, done.done, summary);
            self.threads.apply(key, tid, &mut summary);
        }
        self.spare_summaries.push(summary);
        done.batch.clear();
        self.spare_batches.push(done.batch);
    }
}

impl Workers {
    fn spawn<'scope>(
        scope: &'scope Scope<'scope, '_>,
        Settings { jobs, timed, .. }: Settings,
        unit: &Unit,
    ) -> io::Result<Self> {
        let (work, inbox) = bounded::<Work>(2 * jobs);
        let (outbox, results) = unbounded();
        for _ in 0..jobs {
            let (inbox, outbox) = (inbox.clone(), outbox.clone());
            let mut summariser = Summariser::timing(timed, unit.clone())?;
            let serve = move || {
                for Work { number, batch, summary } in inbox {
                    let (summary, done) = summarise(&mut summariser, &batch, 0, summary);
                    if outbox.send((number, Done { batch, summary, done })).is_err() {
                        return;
                    }
                }
            };
            Builder::new().name("replay".into()).spawn_scoped(scope, serve)?;
        }
        Ok(Self {
            work,
            results,
            sent: 0,
            applied: 0,
            most_under_way: 2 * jobs as u64 + 1,
            early: BTreeMap::new(),
        })
    }
}

/// Summarises a batch from this chunk on, as far as one summary goes. Gives the summary and
/// the chunk where the next must begin.
fn summarise(
    summariser: &mut Summariser,
    batch: &Batch,
    first: usize,
    recycled: Summary,
) -> (Summary, usize) {
    summariser.begin(recycled);
    let mut done = first;
    for (offset, header, data) in batch.chunks().skip(first) {
        summariser.add(offset, header, data);
        done += 1;
        if summariser.is_full() {
            break;
        }
    }
    (summariser.finish(), done)
}
