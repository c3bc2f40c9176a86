//! The thread that opens the events, has them take turns, and makes packets of what they leave.

use super::attr::{Attr, MACHINE};
use super::containers::Containers;
use super::events::{self, Events};
use super::gate::{Gate, Keeper, gate};
use super::jit_maps::JitMaps;
use super::kernel;
use super::offer::Chosen;
use super::options::{Rate, Sampling};
use super::order::Order;
use super::outlet::Outlet;
use super::packets::Packets;
use super::record::{self, Map, Record};
use crate::clock::ClockPage;
use crate::drain::Event;
use crate::machine::monotonic_ns;
use crate::packets::{Level, Payload};
use crate::stats::Stats;
use std::cell::RefCell;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use teeperf_wire::body::sample::Sample;
use teeperf_wire::body::sampled;

/// The running thread. Dropping it has it take what is left, and ends it.
#[derive(Debug)]
pub(crate) struct Sampler {
    thread: Option<JoinHandle<()>>,
    /// Closed to end the thread.
    stop: Option<PipeWriter>,
}

/// What it works with.
#[derive(Debug)]
pub(crate) struct Means {
    pub(crate) wish: Sampling,
    pub(crate) chosen: Chosen,
    pub(crate) page: Arc<ClockPage>,
    pub(crate) stats: Arc<Stats>,
    pub(crate) events: Sender<Event>,
}

/// Number of the event in the recording: there is one.
const EVENT: u16 = 1;
/// Pause while the drain is held up.
const HELD_UP: Duration = Duration::from_millis(5);
/// A turn takes no more than this part of the time: of thousands of threads each is told.
const SHARE: u32 = 50;

/// Payload of the packet that says what is sampled, and how; the samples' clock had this value at the recording's start.
pub(crate) fn sampled(wish: &Sampling, chosen: &Chosen, zero_ns: u64) -> Vec<u8> {
    let attr = Attr::new(chosen.kind).sampling(wish.stacks, chosen.with_kernel);
    let (unit, period) = if chosen.kind.is_time { (1, wish.rate.period_ns()) } else { (2, 0) };
    let frequency = match wish.rate {
        Rate::Frequency(hz) => Some(hz.into()),
        Rate::Period(_) => None,
    };
    Payload::default()
        .number(sampled::EVENT, EVENT.into())
        .bytes(sampled::NAME, chosen.name().as_bytes())
        .number(sampled::UNIT, unit)
        .number(sampled::PERIOD, period)
        .maybe(sampled::FREQUENCY, frequency)
        .number(sampled::RANDOM, (!wish.is_constant).into())
        .number(sampled::ZERO_NS, zero_ns)
        .number(sampled::SOURCE, sampled::source::PERF_EVENT)
        .number(sampled::MACHINE, MACHINE)
        .number(sampled::REGISTERS, attr.registers)
        .number(sampled::STACK, attr.stack.into())
        .number(sampled::CHAIN, (attr.sample_type & super::attr::sample::CALLCHAIN != 0).into())
        .number(sampled::PERF_TYPE, chosen.kind.kind.into())
        .number(sampled::PERF_CONFIG, chosen.kind.config)
        .finish()
}

impl Sampler {
    /// Starts the thread, which waits for who passes the gate.
    pub(crate) fn start(means: Means) -> io::Result<(Self, Gate)> {
        let (gate, keeper) = gate()?;
        let (stopped, stop) = io::pipe()?;
        let thread = std::thread::Builder::new().name("teeperf-sample".into());
        let thread = thread.spawn(move || run(means, keeper, &stopped))?;
        Ok((Self { thread: Some(thread), stop: Some(stop) }, gate))
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic in it was already reported by the thread itself.
            let _ = thread.join();
        }
    }
}

fn run(means: Means, keeper: Keeper, stopped: &PipeReader) {
    let code = means.kernel_code();
    let Some(pid) = keeper.waiting() else { return };
    let opened = Events::open(&means.wish, &means.chosen, pid);
    keeper.open();
    let worked = opened.and_then(|events| {
        if events.ring() < means.wish.ring {
            let text = format!(
                "samples have {} KiB for each processor, in place of {}: raise kernel.perf_event_mlock_kb or ulimit -l if \
                 any are lost",
                events.ring() >> 10,
                means.wish.ring >> 10
            );
            means.notice(Level::Information, text);
        }
        means.work(events, code, stopped)
    });
    if let Err(error) = worked {
        means.notice(Level::Warning, format!("nothing could be sampled: {error}"));
    }
}

impl Means {
    /// Finds out where the kernel's code is, beside all else: its list of symbols takes a tenth of a second to read.
    fn kernel_code(&self) -> Option<JoinHandle<Vec<kernel::Code>>> {
        let thread = std::thread::Builder::new().name("teeperf-kernel".into());
        let began = self.chosen.with_kernel.then(|| thread.spawn(kernel::code))?;
        if let Err(error) = &began {
            let text = format!("where the kernel's code is could not be found out: {error}");
            self.notice(Level::Warning, text);
        }
        began.ok()
    }

    fn work(
        &self,
        mut events: Events,
        mut code: Option<JoinHandle<Vec<kernel::Code>>>,
        stopped: &PipeReader,
    ) -> io::Result<()> {
        let outlet = Outlet::new(self.events.clone());
        // What says where the kernel's code is stands before all samples.
        let early = RefCell::new(code.is_some().then(Vec::new));
        let mut packets = Packets::new(EVENT, |kind, payload| match &mut *early.borrow_mut() {
            Some(early) => early.push((kind, payload)),
            None => outlet.send(kind, payload),
        })?;
        let tell_of = |code: JoinHandle<Vec<kernel::Code>>| -> io::Result<()> {
            // A panic in it was already reported by the thread itself.
            let code = code.join().unwrap_or_default();
            let mut packets = Packets::new(EVENT, |kind, payload| outlet.send(kind, payload))?;
            code.iter().for_each(|code| packets.map(&code.map(), None));
            let early = early.take().into_iter().flatten();
            early.for_each(|(kind, payload)| outlet.send(kind, payload));
            Ok(())
        };
        let attr = Attr::new(self.chosen.kind).sampling(self.wish.stacks, self.chosen.with_kernel);
        let mut told = Told::default();
        let inner = RefCell::new((Containers::new(), JitMaps::new()));
        // Files that a process sees may be gone with it, so it is looked at as soon as anything is
        // told of it.
        let look = |bytes: &[u8]| {
            let (containers, maps) = &mut *inner.borrow_mut();
            record::each(bytes, &attr, &mut |record| {
                containers.look(&record);
                maps.look(&record);
            });
        };
        let mut write =
            |record: &[u8], is_paused: bool, packets: &mut Packets<_>| match record::read(
                record, &attr,
            ) {
                Some(Record::Sample(_)) if is_paused => {}
                Some(Record::Sample(sample)) => packets.sample(Sample { event: EVENT, ..sample }),
                Some(read) if told.is_new(record) => {
                    let (containers, maps) = &mut *inner.borrow_mut();
                    self.follow(read, record::time(record), containers, maps, packets);
                }
                _ => {}
            };
        let mut order = Order::default();
        let mut is_paused = self.page.is_paused();
        let mut files = vec![stopped.as_raw_fd()];
        files.extend(events.files());
        let mut next = Instant::now() + events::turn();
        while !wait(&mut files, next.saturating_duration_since(Instant::now())) {
            if outlet.is_held_up() {
                std::thread::sleep(HELD_UP);
                continue;
            }
            let now = Instant::now();
            if now >= next {
                events.take_turns();
                next = Instant::now() + events::turn().max(now.elapsed() * SHARE);
            }
            let began = monotonic_ns();
            events.take(&mut |bytes| {
                look(&bytes);
                order.add(bytes, began);
            });
            inner.borrow_mut().1.look_again();
            // Of the time since the round before this one.
            let is_paused = std::mem::replace(&mut is_paused, self.page.is_paused());
            order.round(began, &mut |record| write(record, is_paused, &mut packets));
            packets.flush_old();
            if let Some(code) = code.take_if(|code| code.is_finished()) {
                tell_of(code)?;
            }
            self.stats.samples.set(packets.counts.samples);
            self.stats.samples_lost.set(packets.counts.lost);
        }
        events.stop();
        code.map_or(Ok(()), tell_of)?;
        let began = monotonic_ns();
        events.take(&mut |bytes| {
            look(&bytes);
            order.add(bytes, began);
        });
        order.finish(&mut |record| write(record, is_paused, &mut packets));
        let (containers, maps) = &mut *inner.borrow_mut();
        self.tell_of_containers(containers, maps);
        // The kernel tells of a loss with the next record that has room.
        if let Some(lost) = events.lost() {
            packets.lost(lost.saturating_sub(packets.counts.lost));
        }
        if packets.counts.lost > 0 {
            let text = "samples were lost, and perhaps what tells whose some of the others are: --sample-buffer makes more room";
            self.notice(Level::Warning, text.into());
        }
        packets.flush();
        let counts = packets.counts;
        self.stats.samples.set(counts.samples);
        self.stats.samples_lost.set(counts.lost);
        if counts.throttled > 0 {
            let text = format!(
                "the kernel stopped sampling for a while, {} times, since it took too much time: sample less often, or raise \
                 kernel.perf_event_max_sample_rate",
                counts.throttled
            );
            self.notice(Level::Warning, text);
        }
        Ok(())
    }

    /// Writes what a record says that is no sample.
    fn follow<S: FnMut(u16, Vec<u8>)>(
        &self,
        record: Record<'_>,
        time: Option<u64>,
        containers: &mut Containers,
        maps: &mut JitMaps,
        packets: &mut Packets<S>,
    ) {
        if let Some(told) = maps.follow(&record) {
            self.notice(Level::Information, told);
        }
        let file = containers.follow(&record);
        containers.payloads().for_each(|payload| packets.file(payload));
        let record = match record {
            Record::Map(map) => Record::Map(Map { file, ..map }),
            other => other,
        };
        packets.record(record, time);
    }

    /// What is still to be said of containers at the end.
    fn tell_of_containers(&self, containers: &Containers, maps: &mut JitMaps) {
        maps.finish().into_iter().for_each(|told| self.notice(Level::Information, told));
        if let Some((first, others)) = containers.left_out.split_first() {
            let more = match others.len() {
                0 => String::new(),
                count => format!(" and {count} others"),
            };
            let text = format!(
                "files of containers are too large for the recording: {first}{more}; next: while the container is there, \
                 report with --symfs and the folder that is its root"
            );
            self.notice(Level::Warning, text);
        }
    }

    fn notice(&self, level: Level, text: String) {
        // After the recording's end nobody listens.
        let _ = self.events.send(Event::Notice { level, text, process: 0 });
    }
}

/// What the kernel told last. While events take turns it tells the same twice.
#[derive(Default)]
struct Told(Vec<u8>);

impl Told {
    fn is_new(&mut self, record: &[u8]) -> bool {
        let told = record::content(record);
        let is_new = told != self.0 || !record::is_told_once(record);
        if is_new {
            self.0.clear();
            self.0.extend_from_slice(told);
        }
        is_new
    }
}

/// Waits until a ring is half full, or the time is over; true when it is to end. The first file is what says so. Those of
/// which nothing more will be told are taken out.
fn wait(files: &mut Vec<RawFd>, time: Duration) -> bool {
    let entry = |&fd: &RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut all: Vec<_> = files.iter().map(entry).collect();
    // Up to the millisecond that is not over.
    let time = time.as_millis() as libc::c_int + 1;
    // SAFETY: address and length are those of `all`. After an error nothing is ready.
    unsafe { libc::poll(all.as_mut_ptr(), all.len() as libc::nfds_t, time) };
    if all[0].revents != 0 {
        return true;
    }
    let gone = libc::POLLHUP | libc::POLLERR | libc::POLLNVAL;
    files.retain(|fd| !all.iter().any(|entry| entry.fd == *fd && entry.revents & gone != 0));
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `PERF_RECORD_COMM` of this thread, or `PERF_RECORD_LOST`, at this time.
    fn record(kind: u32, thread: u64, time: u64) -> Vec<u8> {
        let head = [&kind.to_le_bytes()[..], &[0, 0, 48, 0]].concat();
        let words = [thread, 0x6873, 0, time, 0].map(u64::to_le_bytes);
        [&head, words.as_flattened()].concat()
    }

    /// Guards: both events tell, while one takes the other's place.
    #[test]
    fn what_both_events_tell_is_written_once() {
        let (mut told, named, lost) = (Told::default(), 3, 2);
        assert!(told.is_new(&record(named, 7, 50)));
        assert!(!told.is_new(&record(named, 7, 51)));
        assert!(told.is_new(&record(named, 8, 52)));
        assert!(told.is_new(&record(lost, 8, 53)) && told.is_new(&record(lost, 8, 54)));
    }
}
