//! Events by thread, in chunks: what is not given out yet is limited to some megabytes, however many threads
//! there are.

use std::collections::{HashMap, VecDeque};

use teeperf_profile::contents::Thread as Named;
use teeperf_wire::body::chunk::{self, Header, encoding};
use teeperf_wire::compose::{self, Window};
use teeperf_wire::shared::{ClockKind, segment};
use teeperf_wire::word::module::{MAX_BUILD_ID, MAX_PATH};
use teeperf_wire::word::{gap, pack_bytes};

use super::{Event, PROCESS};

/// Bytes of memory that chunks take while they grow.
const SIZES: [usize; 3] = [1 << 8, 1 << 12, segment::LARGE_CHUNK];
/// Bytes that an event takes, with all that may stand before it but windows; and what two of these take.
const EVENT: usize = 128;
const WINDOWS: usize = 2 * (12 + (MAX_PATH + MAX_BUILD_ID).div_ceil(3) + 1) * 4;
/// Memory of all chunks that still grow: enough for each thread to have one, so that chunks do not come to be of
/// single events, which take replay a thousand times as long.
const MOST_OPEN_BYTES: usize = 32 << 20;
/// Most threads that are told apart. Events of later ones are left out.
const MOST_THREADS: usize = 1 << 16;
/// Full buffers kept for new chunks.
const MOST_SPARE: usize = 64;
/// Places of the cache of threads, as a power of two.
const CACHE_BITS: u32 = 8;

/// See the module.
pub(super) struct Threads {
    /// In the order in which they were first seen.
    threads: Vec<Thread>,
    by_id: HashMap<u64, usize>,
    /// Threads seen last, by id.
    cache: Box<[(u64, usize)]>,
    /// Those with a chunk that grows, the one that began first in front.
    open: VecDeque<usize>,
    open_bytes: usize,
    ready: VecDeque<Chunk>,
    /// The one given out last.
    given: Option<Chunk>,
    spare: Vec<Vec<u8>>,
    pauses: Pauses,
    paused_since: Option<u64>,
    /// Threads whose names were told.
    named: usize,
    left_out: u64,
}

/// When nothing was recorded, in the whole process: how often, and for how long in all.
#[derive(Clone, Copy, Debug, Default)]
struct Pauses {
    number: u32,
    units: u64,
}

struct Chunk {
    offset: u64,
    header: Header,
    data: Vec<u8>,
}

/// A thread, and its chunk that grows, if there is one.
pub(super) struct Thread {
    id: u64,
    /// Latest time of an event, and how many had an earlier one than the event before.
    time: u64,
    went_back: u64,
    /// Pauses it has been told of.
    pauses: Pauses,
    sequence: u32,
    /// Upper half of the time that was last given whole.
    high: u32,
    /// Where the chunk's first event stands in the file, and when the chunk begins.
    offset: u64,
    begin: u64,
    data: Vec<u8>,
    /// Memory that it may take, and bytes from which on it needs more, or another chunk; 0 where there is none.
    size: usize,
    limit: usize,
}

impl Default for Threads {
    fn default() -> Self {
        Self {
            threads: Vec::new(),
            by_id: HashMap::new(),
            cache: vec![(0, usize::MAX); 1 << CACHE_BITS].into(),
            open: VecDeque::new(),
            open_bytes: 0,
            ready: VecDeque::new(),
            given: None,
            spare: Vec::new(),
            pauses: Pauses::default(),
            paused_since: None,
            named: 0,
            left_out: 0,
        }
    }
}

impl Threads {
    /// The thread of an event, with room for it. Nothing when there are too many threads.
    #[inline(always)]
    pub(super) fn of(&mut self, event: &Event) -> Option<&mut Thread> {
        let (id, mut index) = self.cache[place(event.thread)];
        if id != event.thread || index == usize::MAX {
            index = self.look_up(event.thread)?;
        }
        let thread = &self.threads[index];
        if thread.data.len() >= thread.limit {
            self.make_room(index, event);
        }
        let thread = &mut self.threads[index];
        if thread.pauses.number != self.pauses.number {
            thread.pause(self.pauses);
        }
        Some(thread)
    }

    #[inline(never)]
    fn look_up(&mut self, id: u64) -> Option<usize> {
        let index = match self.by_id.get(&id) {
            Some(&index) => index,
            None if self.threads.len() < MOST_THREADS => {
                self.threads.push(Thread::new(id, self.pauses));
                self.by_id.insert(id, self.threads.len() - 1);
                self.threads.len() - 1
            }
            None => {
                self.left_out += 1;
                return None;
            }
        };
        self.cache[place(id)] = (id, index);
        Some(index)
    }

    #[cold]
    fn make_room(&mut self, index: usize, event: &Event) {
        let size = self.threads[index].size;
        match SIZES.into_iter().find(|&larger| size > 0 && larger > size) {
            Some(larger) => {
                let spare = if larger == SIZES[2] { self.spare.pop() } else { None };
                self.threads[index].grow(larger, spare);
                self.open_bytes += larger - size;
            }
            None => {
                if size > 0 {
                    self.close(index);
                }
                self.threads[index].begin(event);
                self.open.push_back(index);
                self.open_bytes += SIZES[0];
            }
        }
        while self.open_bytes > MOST_OPEN_BYTES {
            let Some(oldest) = self.open.iter().copied().find(|&oldest| oldest != index) else {
                break;
            };
            self.close(oldest);
        }
    }

    /// The chunk of a thread is ready.
    fn close(&mut self, index: usize) {
        if let Some(at) = self.open.iter().position(|&open| open == index) {
            self.open.remove(at);
        }
        let thread = &mut self.threads[index];
        self.open_bytes -= thread.size;
        let data = std::mem::take(&mut thread.data);
        (thread.size, thread.limit) = (0, 0);
        let header = Header {
            process: PROCESS,
            thread: serial(index),
            tid: tid(thread.id, index),
            sequence: thread.sequence,
            first: 0,
            count: (data.len() / 4) as u32,
            time: thread.begin,
            cpu_ns: u64::MAX,
            stack: 0,
            clock: ClockKind::Cycle as u8,
            encoding: encoding::PLAIN,
            flags: chunk::WHOLE,
            words_bytes: 0,
        };
        self.ready.push_back(Chunk { offset: thread.offset, header, data });
    }

    /// All chunks are ready.
    pub(super) fn close_all(&mut self) {
        while let Some(&oldest) = self.open.front() {
            self.close(oldest);
        }
    }

    /// Whether a chunk is.
    #[inline(always)]
    pub(super) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The next chunk: where it begins in the file, header and data.
    pub(super) fn ready(&mut self) -> Option<(u64, Header, &[u8])> {
        if let Some(mut chunk) = self.given.take()
            && chunk.data.capacity() >= SIZES[2]
            && self.spare.len() < MOST_SPARE
        {
            chunk.data.clear();
            self.spare.push(chunk.data);
        }
        let chunk = self.given.insert(self.ready.pop_front()?);
        Some((chunk.offset, chunk.header, &chunk.data))
    }

    /// From this time on nothing is recorded, or something is again.
    pub(super) fn switch(&mut self, is_on: bool, time: u64) {
        match (is_on, self.paused_since) {
            (false, None) => self.paused_since = Some(time),
            (true, Some(since)) => {
                self.paused_since = None;
                self.pauses.number = self.pauses.number.wrapping_add(1);
                let units = time.saturating_sub(since);
                self.pauses.units = self.pauses.units.wrapping_add(units);
            }
            _ => {}
        }
    }

    /// The next thread whose id a recording has no room for, so that it is its name. The others' names are
    /// the program's.
    pub(super) fn next_named(&mut self, name: impl Fn(u64) -> String) -> Option<Named> {
        loop {
            let index = self.named;
            let id = self.threads.get(index)?.id;
            self.named += 1;
            if u32::try_from(id).is_err() {
                let (serial, tid) = (serial(index), tid(id, index));
                return Some(Named { process: PROCESS, serial, tid, name: Some(name(id)) });
            }
        }
    }

    /// Latest time of any event.
    pub(super) fn end(&self) -> u64 {
        self.threads.iter().map(|thread| thread.time).max().unwrap_or(0)
    }

    /// Events left out.
    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// What is to be known of times and threads.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let went_back = self.threads.iter().map(|thread| thread.went_back);
        let went_back = went_back.fold(0, u64::saturating_add);
        if went_back > 0 {
            warnings.push(format!(
                "{went_back} events are earlier than the one before them in their thread: they are taken to be of its time"
            ));
        }
        if self.left_out > 0 {
            warnings.push(format!(
                "there are more than {MOST_THREADS} threads: {} calls and returns of later ones are left out",
                self.left_out
            ));
        }
        warnings
    }
}

impl Thread {
    fn new(id: u64, pauses: Pauses) -> Self {
        Self {
            id,
            time: 0,
            went_back: 0,
            pauses,
            sequence: 0,
            high: 0,
            offset: 0,
            begin: 0,
            data: Vec::new(),
            size: 0,
            limit: 0,
        }
    }

    /// Begins a chunk.
    fn begin(&mut self, event: &Event) {
        if self.sequence == 0 {
            self.time = event.time;
        }
        self.sequence += 1;
        self.offset = event.offset;
        // What has passed since is for the first event to say.
        self.begin = self.time;
        self.high = (self.time >> 32) as u32;
        self.grow(SIZES[0], None);
    }

    /// Gives the chunk more memory, that of an old one if there is one.
    fn grow(&mut self, size: usize, spare: Option<Vec<u8>>) {
        let mut data = spare.unwrap_or_else(|| Vec::with_capacity(size));
        data.extend_from_slice(&self.data);
        self.data = data;
        (self.size, self.limit) = (size, limit(size));
    }

    /// A call or return of a site.
    #[inline(always)]
    pub(super) fn event(&mut self, word: u32, time: u64) {
        let low = self.time_is(time);
        let event = u64::from(word) | u64::from(low) << 32;
        self.data.extend_from_slice(&event.to_le_bytes());
    }

    /// A call or return outside every window.
    #[cold]
    pub(super) fn far(&mut self, address: u64, is_return: bool, time: u64) {
        let low = self.time_is(time);
        self.words(&compose::far(address, is_return.into(), true));
        self.words(&[low]);
    }

    /// A window opens.
    #[cold]
    pub(super) fn window(&mut self, window: &Window, (path, build_id): (&[u8], &[u8])) {
        let build_id = &build_id[..build_id.len().min(MAX_BUILD_ID)];
        let path = &path[path.len().saturating_sub(MAX_PATH)..];
        self.words(&compose::module(window, build_id.len(), path.len()));
        for bytes in build_id.chunks(3).chain(path.chunks(3)) {
            self.words(&[pack_bytes(bytes)]);
        }
    }

    /// Lower half of a time, which is told whole where the upper one is another. Time does not go back.
    #[inline(always)]
    fn time_is(&mut self, time: u64) -> u32 {
        self.went_back += u64::from(time < self.time);
        self.time = self.time.max(time);
        if (self.time >> 32) as u32 != self.high {
            self.high = (self.time >> 32) as u32;
            self.words(&compose::stamp(self.time & !u64::from(u32::MAX)));
        }
        self.time as u32
    }

    /// Nothing was recorded since its last event, for some time.
    #[cold]
    fn pause(&mut self, pauses: Pauses) {
        let units = pauses.units.wrapping_sub(self.pauses.units);
        self.pauses = pauses;
        self.words(&compose::gap(gap::PAUSED, 0, 0, 0, units));
    }

    fn words(&mut self, words: &[u32]) {
        self.data.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
}

/// Number of a thread in its process.
fn serial(index: usize) -> u32 {
    index as u32 + 1
}

/// Its id, where that has no more than 32 bits; else its number.
fn tid(id: u64, index: usize) -> u32 {
    u32::try_from(id).unwrap_or(serial(index))
}

/// Bytes of a chunk from which on one of this size has no room for another event.
const fn limit(size: usize) -> usize {
    if size == SIZES[2] { size - EVENT - WINDOWS } else { size - EVENT }
}

#[inline(always)]
fn place(id: u64) -> usize {
    (id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - CACHE_BITS)) as usize
}
