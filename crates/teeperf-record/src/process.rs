//! One traced process as the drain sees it: its chunks, from the moment their threads hand
//! them over or die, to packets.

mod chunks;
mod introduction;
mod names;
mod pool;
mod windows;
mod words;

use crate::heirs::Heirs;
use crate::inside::View;
use crate::liveness::{self, Census, Threads};
use crate::order::Order;
use crate::packets::Payload;
use crate::seen::Seen;
use crate::segment::{Class, Segment};
use crate::sink::{Encoded, Sink};
use crate::sums::Sums;
use crate::symbols::WindowId;
use crate::trees::{Growth, Trees};
use chunks::{Chunks, Place};
use introduction::Introduction;
use names::Names;
use pool::{Full, Pool};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use teeperf_wire::body::{loss, process_end};
use teeperf_wire::packet::kind;
use teeperf_wire::shared::{ClockKind, state};
use windows::Windows;
use words::Why;
pub(crate) use words::{Telling, listen};

/// What server and drain share of a process.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Made before they are announced, and never taken back.
    pub(crate) segments: Mutex<Vec<Arc<Segment>>>,
}

/// A process that has attached.
#[derive(Debug)]
pub(crate) struct Attached {
    /// Number in the recording, from 1.
    pub(crate) id: u32,
    /// As the recorder's system knows it.
    pub(crate) pid: u32,
    /// As it knows itself.
    pub(crate) inner_pid: u32,
    /// The one it took over from by `exec`, 0 if none.
    pub(crate) exec_of: u32,
    pub(crate) parent_pid: u32,
    pub(crate) executable: Vec<u8>,
    pub(crate) arguments: Vec<Vec<u8>>,
    pub(crate) shared: Arc<Shared>,
    /// Memory for children that cannot attach.
    pub(crate) heirs: Option<Arc<Heirs>>,
    /// Filters of system calls that it has.
    pub(crate) filters: Option<u32>,
    /// Which files it sees, where that is known.
    pub(crate) view: Option<View>,
}

impl Attached {
    /// What lies behind memory that was lent: nothing is known of it but the memory.
    pub(crate) fn unknown(segment: Arc<Segment>, path: &Path) -> Self {
        let segments = Mutex::new(vec![segment]);
        Self {
            id: 1,
            pid: 0,
            inner_pid: 0,
            exec_of: 0,
            parent_pid: 0,
            executable: path.as_os_str().as_bytes().to_vec(),
            arguments: Vec::new(),
            shared: Arc::new(Shared { segments }),
            heirs: None,
            filters: None,
            view: None,
        }
    }
}

/// How a process ended, as far as the recorder saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) exit_status: Option<u64>,
    pub(crate) signal: Option<u64>,
}

/// See the module.
pub(crate) struct Process {
    pub(crate) id: u32,
    pub(crate) pid: u32,
    /// Of its file.
    pub(crate) name: String,
    introduction: Introduction,
    threads: Threads,
    shared: Arc<Shared>,
    segments: Vec<Chunks>,
    trees: Vec<Trees>,
    sums: Sums,
    /// Events that found no room there.
    unsummed: u64,
    /// Segments of either kind that are known.
    adopted: usize,
    order: Order<Encoded>,
    seen: Seen,
    windows: Windows,
    names: Names,
    pool: Pool,
    /// Chunks found handed over in the present round, kept for its memory.
    found: Vec<(u32, (u64, u64, u32), Place)>,
    /// Chunks thrown away because their headers make no sense.
    refused: u64,
    /// It has ended recording by itself.
    stopped: bool,
    /// Its memory are arenas, which have what they have.
    has_arenas: bool,
    /// Whether the last sweep knew which of its threads live.
    knows_threads: bool,
    /// Filters of system calls that it had at first.
    filters: Option<u32>,
    /// Time in the program's own pauses, as it was last seen.
    pauses: u64,
    /// It has ended, and its threads with it.
    is_leaving: bool,
}

impl Process {
    /// Writes the packet that introduces it.
    pub(crate) fn new(attached: Attached, sink: &mut Sink) -> Self {
        let introduction = Introduction::of(&attached, sink.time.now());
        sink.packet(kind::PROCESS, &introduction.packet());
        sink.symbols.attached(attached.id, attached.view);
        let mut process = Self {
            id: attached.id,
            pid: attached.pid,
            name: name_of(&attached.executable),
            introduction,
            threads: Threads::new(attached.pid, attached.inner_pid),
            shared: attached.shared,
            segments: Vec::new(),
            trees: Vec::new(),
            sums: Sums::default(),
            unsummed: 0,
            adopted: 0,
            order: Order::default(),
            seen: Seen::default(),
            windows: Windows::default(),
            names: Names::default(),
            pool: Pool::default(),
            found: Vec::new(),
            refused: 0,
            stopped: false,
            has_arenas: false,
            knows_threads: false,
            filters: attached.filters,
            pauses: 0,
            is_leaving: false,
        };
        process.adopt_segments();
        if let Some(trees) = process.trees.first() {
            process.pool = Pool::with_trees(trees.segment.class().shape().0);
        }
        if matches!(process.first_segment().class(), Class::OfHeir { .. }) {
            // It cannot ask for more.
            process.pool.give_up_growing();
        }
        if process.first_segment().clock().is_some() {
            process.has_arenas = true;
            process.pool.give_up_growing();
        }
        process
    }

    /// It has ended, and is to be finished soon.
    pub(crate) fn is_leaving(&mut self) {
        self.is_leaving = true;
    }

    /// Whether it is no process that the recorder's system knows: one end of memory that was lent.
    pub(crate) fn is_unknown(&self) -> bool {
        self.pid == 0
    }

    /// The first segment, which every child of a fork has at first.
    pub(crate) fn first_segment(&self) -> Arc<Segment> {
        Arc::clone(&self.segments[0].segment)
    }

    /// Drains what was handed over, makes room where threads want some. Returns how many
    /// chunks were drained.
    pub(crate) fn round(&mut self, sink: &mut Sink) -> usize {
        if self.has_arenas {
            // Its threads ask the server for theirs.
            self.adopt_segments();
        }
        self.heed_pauses(sink);
        self.scan();
        let mut found = std::mem::take(&mut self.found);
        found.sort_unstable();
        let mut drained = 0;
        for &(.., place) in &found {
            drained += self.drain_full(place, Why::HandedOver, sink) as usize;
        }
        found.clear();
        self.found = found;
        drained + self.make_room(sink)
    }

    /// Has hooks look up when the program has paused or resumed recording. Under the counter a thread
    /// that slept meanwhile would not notice: the clock page, which hooks watch, is the recorder's.
    fn heed_pauses(&mut self, sink: &Sink) {
        let pauses = self.segments.first().map_or(0, |first| first.segment.pauses());
        if !self.has_arenas && std::mem::replace(&mut self.pauses, pauses) != pauses {
            sink.page.have_hooks_look();
        }
    }

    /// Whether code inside of arenas may hand sums over.
    pub(crate) fn has_arenas(&self) -> bool {
        self.has_arenas
    }

    /// Asks the code inside of arenas for what it has summed.
    pub(crate) fn ask_for_sums(&self) {
        self.segments.iter().for_each(|chunks| chunks.segment.ask_for_sums());
    }

    /// Whether some of it has not handed over what it was asked for.
    pub(crate) fn owes_sums(&self) -> bool {
        self.segments.iter().any(|chunks| chunks.segment.owes_sums())
    }

    /// Once in a while: writes what live threads have written into chunks that are not full
    /// yet, what was kept too long, and asks for the symbols of what was seen.
    pub(crate) fn look_in(&mut self, sink: &mut Sink) {
        for segment in 0..self.segments.len() {
            for index in 0..self.segments[segment].tracks.len() {
                self.drain_part(Place { segment, index }, sink);
            }
        }
        let mut kept = Vec::new();
        self.order.give_up_old(&mut kept);
        sink.write_kept(&mut kept);
        self.ask_for_symbols(sink);
        if !self.is_leaving && self.introduction.has_changed() {
            sink.packet(kind::PROCESS, &self.introduction.packet());
        }
        self.look_for_filters();
    }

    /// Tells the process of filters of system calls that came by ways that its runtime does not see.
    fn look_for_filters(&self) {
        let now = if self.is_leaving { None } else { liveness::filters(self.pid) };
        if let (Some(before), Some(now)) = (self.filters, now) {
            self.segments[0].segment.tell_filters(now.saturating_sub(before));
        }
    }

    /// Takes back what threads have that are gone, so that those live that still have something.
    pub(crate) fn look_for_threads(&mut self, sink: &mut Sink) {
        if !self.is_leaving {
            self.sweep(Duration::ZERO, sink);
        }
    }

    /// Up to now threads live that live, and what is open in them lasts. They go on from there.
    pub(crate) fn tell_time(&mut self, sink: &mut Sink) {
        self.look_for_threads(sink);
        // As threads see it: none of them tells an earlier time from here on.
        let now = match sink.clock {
            ClockKind::Tick => sink.page.time(),
            ClockKind::Cycle => sink.time.now(),
        };
        for segment in 0..self.segments.len() {
            for index in 0..self.segments[segment].tracks.len() {
                self.tell_time_of(Place { segment, index }, now, sink);
            }
        }
    }

    /// Writes all that is left, whatever state it is in, and the packet that says that the
    /// process was gone at a time, with an ending; without, that recording ended then, before it.
    pub(crate) fn finish(&mut self, ending: Option<Ending>, at: u64, sink: &mut Sink) {
        self.adopt_segments();
        let mut left = Vec::new();
        for (segment, chunks) in self.segments.iter().enumerate() {
            for (index, state) in chunks.segment.states().enumerate() {
                if matches!(state, state::TAKEN | state::FULL) && !chunks.tracks[index].retired {
                    let header = chunks.segment.header(index);
                    let turn = chunks::turn(&header);
                    left.push((header.serial, turn, Place { segment, index }, state));
                }
            }
        }
        left.sort_unstable();
        for (.., place, state) in left {
            match state {
                state::FULL => _ = self.drain_full(place, Why::Ending, sink),
                _ => self.drain_rest(place, Why::Ending, at, sink),
            }
        }
        let mut kept = Vec::new();
        self.order.give_up_all(&mut kept);
        sink.write_kept(&mut kept);
        self.take_trees(sink);
        self.take_sums(sink);
        self.segments[0].segment.wake();
        self.segments[0].segment.wake_sleepers();
        if self.refused > 0 {
            let text = format!("{} chunks of process {} made no sense", self.refused, self.pid);
            sink.notice(crate::Level::Warning, text, Some(self.id));
        }
        self.tell_losses(sink);
        if ending.is_some() {
            // Who is inside has ended with it, and does not answer.
            self.ask_for_sums();
        }
        if self.owes_sums() {
            let text = "code that sums its calls was still attached at the end: those that it had not handed over are \
                        missing; next: have it detach before it ends, and each of its threads end by \
                        teeperf_end_thread()";
            sink.notice(crate::Level::Warning, text.into(), Some(self.id));
        }
        if self.segments.iter().any(|chunks| chunks.segment.has_lost_sums()) {
            let text = "code that sums its calls has ended while it was attached: those that it had not handed over \
                        are missing; next: have it detach before it ends";
            sink.notice(crate::Level::Warning, text.into(), Some(self.id));
        }
        let Some(ending) = ending else { return };
        for clock in self.segments.iter().filter_map(|chunks| chunks.segment.clock()) {
            sink.page.leave(clock);
        }
        let packet = Payload::default()
            .number(process_end::ID, self.id as u64)
            .number(process_end::TIME, at)
            .maybe(process_end::EXIT_STATUS, ending.exit_status)
            .maybe(process_end::SIGNAL, ending.signal);
        sink.packet(kind::PROCESS_END, &packet.finish());
    }

    /// What threads left out, and ended before they could say so.
    fn tell_losses(&self, sink: &mut Sink) {
        let losses = self.segments.iter().map(|chunks| chunks.segment.losses());
        let events = losses.fold(self.unsummed, u64::saturating_add);
        if events > 0 {
            let packet = Payload::default()
                .number(loss::PROCESS, self.id as u64)
                .number(loss::EVENTS, events);
            sink.packet(kind::LOSS, &packet.finish());
            sink.stats.lost.add(events);
            if self.has_arenas {
                let next =
                    if self.is_unknown() { "; next: lend more of it, by --size" } else { "" };
                let text = format!("{events} calls and returns found no room in lent memory{next}");
                sink.notice(crate::Level::Warning, text, Some(self.id));
            }
        }
    }

    /// One pass over the states of all chunks.
    fn scan(&mut self) {
        self.pool.begin();
        for (segment, chunks) in self.segments.iter().enumerate() {
            for (index, state) in chunks.segment.states().enumerate() {
                if chunks.tracks[index].retired {
                    self.pool.count_retired(chunks.segment.class());
                    continue;
                }
                self.pool.count(chunks.segment.class(), state);
                if state == state::FULL {
                    let header = chunks.segment.header(index);
                    self.order.handed(header.serial, header.sequence);
                    let place = Place { segment, index };
                    self.found.push((header.serial, chunks::turn(&header), place));
                }
            }
        }
        for trees in &self.trees {
            let class = trees.segment.class();
            trees.segment.states().for_each(|state| self.pool.count(class, state));
        }
    }

    /// Writes out what the trees of all threads grew by.
    pub(crate) fn take_trees(&mut self, sink: &mut Sink) {
        for at in 0..self.trees.len() {
            for index in self.trees[at].taken() {
                if let Some(growth) = self.trees[at].growth(index, self.id) {
                    self.write_growth(&growth, sink);
                }
            }
        }
        self.ask_for_symbols(sink);
    }

    /// Writes out what threads of arenas have handed over as sums.
    pub(crate) fn take_sums(&mut self, sink: &mut Sink) {
        for growth in self.sums.take(self.id) {
            self.write_growth(&growth, sink);
        }
        self.ask_for_symbols(sink);
    }

    fn write_growth(&mut self, growth: &Growth, sink: &mut Sink) {
        self.tell_first(growth, sink);
        self.seen.mark(&growth.words);
        sink.stats.threads.add(growth.is_first.into());
        sink.stats.events.add(growth.calls.saturating_add(growth.returns));
        sink.stats.lost.add(growth.lost);
        for payload in &growth.payloads {
            sink.packet(growth.kind, payload);
        }
    }

    /// Takes chunks back from threads that are gone, and makes a segment where the living
    /// need one. Returns how many chunks were taken back and segments made.
    fn make_room(&mut self, sink: &mut Sink) -> usize {
        let now = Instant::now();
        self.pool.note_wanted(self.segments[0].segment.wanted(), now);
        let mut taken_back = 0;
        if !self.is_leaving && self.pool.wants_sweep(now) {
            let long = if self.pool.is_low() { Duration::ZERO } else { ENDING };
            taken_back = self.sweep(long, sink);
            self.pool.swept(now, now.elapsed());
        }
        // Of chunks that come back a thread needs one after the other, of trees each needs its own.
        let had = self.adopted;
        if taken_back == 0 || !self.trees.is_empty() {
            self.grow(now, sink);
        }
        taken_back + self.adopted - had
    }

    fn grow(&mut self, now: Instant, sink: &mut Sink) {
        while let Some(class) = self.pool.wants_segment(self.adopted, now) {
            match Segment::create_what_fits(class) {
                Ok(segment) => {
                    self.pool.grew(segment.class());
                    self.add_segment(segment, sink);
                }
                Err(error) => {
                    let text = format!("process {} needs more memory: {error}", self.pid);
                    sink.notice(crate::Level::Warning, text, Some(self.id));
                    self.pool.give_up_growing();
                }
            }
        }
        if let Some(full) = self.pool.ends_growing(self.adopted, now) {
            let why = match full {
                Full::Trees { threads } => format!(
                    "call trees for {threads} threads at once, which is all it may have; a smaller \
                     --tree-size has room for more"
                ),
                Full::Retired { mib } => format!(
                    "all the memory it may have, {mib} MiB of it out of use because signal handlers \
                     jumped out of hooks"
                ),
                Full::Chunks => "all the memory it may have".into(),
            };
            let text =
                format!("process {} has {why}: its threads wait, and may lose calls", self.pid);
            sink.notice(crate::Level::Warning, text, Some(self.id));
        }
    }

    fn add_segment(&mut self, segment: Segment, sink: &Sink) {
        // Nothing that can panic runs under this lock.
        let mut shared = self.shared.segments.lock().unwrap_or_else(|lock| lock.into_inner());
        shared.push(Arc::new(segment));
        let count = shared.len();
        drop(shared);
        self.adopt_segments();
        self.segments[0].segment.announce(count);
        self.gave_memory(sink);
    }

    /// Who sleeps until there is memory looks again, and waits on if others were faster.
    fn gave_memory(&self, sink: &Sink) {
        sink.page.progress();
        self.segments[0].segment.wake();
        self.segments[0].segment.wake_sleepers();
    }

    fn adopt_segments(&mut self) {
        let shared = self.shared.segments.lock().unwrap_or_else(|lock| lock.into_inner());
        for segment in &shared[self.adopted..] {
            let segment = Arc::clone(segment);
            match segment.class() {
                Class::Trees { .. } => self.trees.push(Trees::new(segment)),
                _ => self.segments.push(Chunks::new(segment)),
            }
        }
        self.adopted = shared.len();
    }

    /// Chunks of threads that have been gone for so long, in the order of threads and chunks.
    fn sweep(&mut self, long: Duration, sink: &mut Sink) -> usize {
        let mut held = Vec::new();
        for (segment, chunks) in self.segments.iter().enumerate() {
            for (index, state) in chunks.segment.states().enumerate() {
                let track = &chunks.tracks[index];
                let waits = state == state::FULL && track.hole.is_some() && !track.retired;
                if state == state::TAKEN || waits {
                    let header = chunks.segment.header(index);
                    // Without a header a thread has only just taken it. Of another process
                    // that shares this one's memory nothing is known.
                    if header.clock != 0 && self.threads.are_of(header.pid) {
                        held.push((header, Place { segment, index }, state));
                    }
                }
            }
        }
        let census = self.threads.census();
        let arenas: Vec<_> =
            self.segments.iter().map(|one| one.segment.clock().is_some()).collect();
        let is_arena = |segment: usize| arenas[segment];
        let mut dead = chunks::of_the_dead(&mut held, &census, is_arena);
        self.knows_threads = !matches!(census, Census::Unknown);
        let now = if self.knows_threads { sink.time.now() } else { 0 };
        held.retain(|held| !is_arena(held.1.segment));
        for &(header, Place { segment, index }, _) in &held {
            let track = &mut self.segments[segment].tracks[index];
            track.is_about(&header);
            (track.alive, track.gone) = (now, None);
        }
        // When a process ends, its threads are gone a moment before it is.
        dead.retain(|(header, Place { segment, index }, _)| {
            let track = &mut self.segments[*segment].tracks[*index];
            track.is_about(header);
            track.gone.get_or_insert_with(Instant::now).elapsed() >= long
        });
        let mut freed = 0;
        for at in 0..self.trees.len() {
            for index in self.trees[at].taken() {
                let is_gone = self.trees[at]
                    .owner(index)
                    .is_some_and(|(tid, pid)| self.threads.are_of(pid) && !census.is_alive(tid));
                if !is_gone {
                    continue;
                }
                let last = self.trees[at].give_back(index);
                self.pool.took_back(self.trees[at].segment.class());
                self.gave_memory(sink);
                if let Some(growth) = last.growth(self.id) {
                    self.write_growth(&growth, sink);
                }
                freed += 1;
            }
        }
        for &(header, place, state) in &dead {
            match state {
                state::FULL => _ = self.drain_full(place, Why::ThreadGone, sink),
                _ => {
                    let alive = self.segments[place.segment].tracks[place.index].alive;
                    self.drain_rest(place, Why::ThreadGone, alive, sink);
                }
            }
            self.pool.took_back(self.segments[place.segment].segment.class());
            self.order.forget(header.serial);
        }
        dead.len() + freed
    }

    fn ask_for_symbols(&mut self, sink: &mut Sink) {
        for module in self.windows.iter() {
            let window = WindowId { process: self.id, first_site: module.first_site };
            sink.symbols.seen(window, self.seen.take_new(module));
        }
    }
}

/// The last part of a path, as one line.
fn name_of(path: &[u8]) -> String {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    String::from_utf8_lossy(name).replace(|character: char| character.is_control(), "?")
}

/// Threads that are gone may have been so long before their process is seen to be, where they have ended with it.
const ENDING: Duration = Duration::from_millis(100);
/// How often [`Process::look_in`] is due.
pub(crate) const LOOK_IN: Duration = Duration::from_secs(1);
