//! The recorder's side of the shared memory, as simple as it can be.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use teeperf_wire::hello::{HELLO_SIZE, Hello, SOCKET_VARIABLE, VERSION, Welcome, refusal};
use teeperf_wire::shared::{
    ChunkHeader, ClockKind, MAGIC, OnFull, chunk, clock, control, pauses, segment, state,
};

/// What kind of recorder it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) clock: ClockKind,
    /// [`teeperf_wire::hello::flag`].
    pub(crate) flags: u32,
    pub(crate) on_full: OnFull,
    /// Chunks of the first segment, of small chunks, and of the second, of large ones.
    pub(crate) small: usize,
    pub(crate) large: usize,
    /// Whether further segments are made when threads want them.
    pub(crate) grows: bool,
    /// Whether chunks are drained while the program runs.
    pub(crate) drains: bool,
    pub(crate) tick: Duration,
    /// Whether the memory is sealed, as it must be.
    pub(crate) sealed: bool,
    /// Whether children of a fork get SIGUSR1 before each answer.
    pub(crate) signals_heirs: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock: ClockKind::Tick,
            flags: 0,
            on_full: OnFull::Wait,
            small: 64,
            large: 16,
            grows: true,
            drains: true,
            tick: Duration::from_micros(100),
            sealed: true,
            signals_heirs: false,
        }
    }
}

/// A chunk as it was drained.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    /// Number of the attachment it belongs to.
    pub(crate) process: usize,
    pub(crate) header: ChunkHeader,
    /// Words up to the first 0, or with the holes in it if it was handed over.
    pub(crate) words: Vec<u32>,
    pub(crate) handed_over: bool,
}

/// Memory that this side made.
pub(crate) struct Memory {
    pub(crate) file: OwnedFd,
    pub(crate) address: *mut u8,
    pub(crate) size: usize,
}

// SAFETY: plain shared memory, used by atomics alone.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(size: usize, sealed: bool) -> Self {
        // SAFETY: system calls on a file of our own; the mapping is as long as the file.
        unsafe {
            let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
            let file = libc::memfd_create(c"test".as_ptr(), flags);
            assert!(file >= 0 && libc::ftruncate(file, size as i64) == 0);
            if sealed {
                let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
                assert_eq!(libc::fcntl(file, libc::F_ADD_SEALS, seals), 0);
            }
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            let address = libc::mmap(std::ptr::null_mut(), size, rights, libc::MAP_SHARED, file, 0);
            assert_ne!(address, libc::MAP_FAILED);
            Self { file: OwnedFd::from_raw_fd(file), address: address.cast(), size }
        }
    }

    pub(crate) fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(offset + 4 <= self.size && offset.is_multiple_of(4));
        // SAFETY: within the mapping, aligned.
        unsafe { &*self.address.add(offset).cast() }
    }

    fn wide(&self, offset: usize) -> &AtomicU64 {
        assert!(offset + 8 <= self.size && offset.is_multiple_of(8));
        // SAFETY: within the mapping, aligned.
        unsafe { &*self.address.add(offset).cast() }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: our mapping; nobody has a reference into it any more.
        unsafe { libc::munmap(self.address.cast(), self.size) };
    }
}

struct Segment {
    memory: Memory,
    chunk_size: usize,
    chunks: usize,
}

impl Segment {
    fn new(chunk_size: usize, chunks: usize, sealed: bool) -> Self {
        let memory = Memory::new(segment::size(chunk_size, chunks).unwrap(), sealed);
        memory.word(segment::CHUNK_SIZE).store(chunk_size as u32, Relaxed);
        memory.word(segment::CHUNKS).store(chunks as u32, Relaxed);
        memory.wide(segment::MAGIC).store(MAGIC, Release);
        Self { memory, chunk_size, chunks }
    }
}

struct Process {
    segments: Vec<Segment>,
    pid: u32,
    wanted: u32,
    /// Whether it had a segment mapped when it introduced itself: its parent's.
    is_heir: bool,
}

/// A recorder that runs in threads of this test.
pub(crate) struct Host {
    options: Options,
    name: String,
    shared: Arc<Shared>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

struct Shared {
    clock: Memory,
    processes: Mutex<Vec<Process>>,
    chunks: Mutex<Vec<Chunk>>,
    ends: AtomicBool,
    listener: OwnedFd,
}

impl Host {
    pub(crate) fn new(options: Options) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("teeperf-rt-test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let clock = Memory::new(clock::SIZE, options.sealed);
        clock.wide(clock::MAGIC).store(MAGIC, Release);
        clock.word(clock::GENERATION).store(1, Relaxed);
        let shared = Arc::new(Shared {
            clock,
            processes: Mutex::default(),
            chunks: Mutex::default(),
            ends: AtomicBool::new(false),
            listener: listen(&name),
        });
        set_tick(&shared.clock);
        let mut host = Self { options, name, shared, threads: Vec::new() };
        host.start(move |shared| accept(shared, &options));
        host.start(move |shared| {
            while !shared.ends.load(Relaxed) {
                std::thread::sleep(options.tick);
                set_tick(&shared.clock);
            }
        });
        if options.drains {
            host.start(move |shared| {
                while !shared.ends.load(Relaxed) {
                    drain(shared, &options, false);
                    std::thread::sleep(Duration::from_micros(500));
                }
            });
        }
        host
    }

    fn start(&mut self, work: impl Fn(&Shared) + Send + 'static) {
        let shared = self.shared.clone();
        self.threads.push(std::thread::spawn(move || work(&shared)));
    }

    /// A command that this recorder records.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env(SOCKET_VARIABLE, &self.name);
        command
    }

    /// Runs a program to its end; at most a minute.
    pub(crate) fn run(&self, program: &Path, arguments: &[&str]) -> Output {
        let mut command = self.command(program);
        finish(command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    /// The clock page, to pause and stop by.
    pub(crate) fn clock(&self) -> &Memory {
        &self.shared.clock
    }

    /// Says that chunks were drained, though none were.
    pub(crate) fn feign_progress(&self) {
        self.shared.clock.word(clock::PROGRESS).fetch_add(1, Release);
    }

    /// Sets the control word, and counts the time of pauses, as a recorder does.
    pub(crate) fn control(&self, bits: u32) {
        let turned = if bits & control::PAUSED != 0 { pauses::begin } else { pauses::end };
        let word = self.shared.clock.wide(clock::PAUSES);
        word.store(turned(word.load(Relaxed), counter()), Release);
        self.shared.clock.word(clock::CONTROL).store(bits, Relaxed);
        self.shared.clock.word(clock::GENERATION).fetch_add(1, Release);
    }

    /// Writes random words to random places of all segments, a thousand of them: every other to
    /// the first page, where the states are, and small as states are. Says how many.
    pub(crate) fn scribble(&self, random: &mut impl FnMut() -> u32) -> usize {
        let mut words = 0;
        let processes = self.shared.processes.lock().unwrap();
        for segment in processes.iter().flat_map(|process| &process.segments) {
            for round in 0..1000 {
                let in_states = round % 2 == 0;
                let size = if in_states { segment::DATA } else { segment.memory.size };
                let value = if in_states { random() % 4 } else { random() };
                let word = segment.memory.word(random() as usize % (size / 4) * 4);
                word.store(value, Relaxed);
                words += 1;
            }
        }
        words
    }

    /// How many processes have attached.
    pub(crate) fn attached(&self) -> usize {
        self.shared.processes.lock().unwrap().len()
    }

    /// Of each process that attached, whether it then had its parent's memory.
    pub(crate) fn heirs(&self) -> Vec<bool> {
        self.shared.processes.lock().unwrap().iter().map(|process| process.is_heir).collect()
    }

    /// Events that processes left out and have not said so in a chunk. A line alone may be below zero: a
    /// thread's first losses count before it has a number.
    pub(crate) fn unsaid(&self) -> u64 {
        let processes = self.shared.processes.lock().unwrap();
        let first_pages = processes.iter().map(|process| &process.segments[0].memory);
        let line = |page: &Memory, line: usize| {
            page.wide(segment::LOSSES + line * segment::LOSS_LINE).load(Acquire)
        };
        let lines = first_pages.flat_map(|page| (0..segment::LOSS_LINES).map(|at| line(page, at)));
        lines.fold(0, u64::wrapping_add)
    }

    /// Ends the recorder as if it had been killed: nobody answers, nothing moves.
    pub(crate) fn vanish(&mut self) {
        self.shared.ends.store(true, Relaxed);
        // SAFETY: wakes the accepting thread; the descriptor is ours.
        unsafe { libc::shutdown(self.shared.listener.as_raw_fd(), libc::SHUT_RDWR) };
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }

    /// Ends the recorder and takes what is left in the memory.
    pub(crate) fn finish(mut self) -> Vec<Chunk> {
        self.vanish();
        drain(&self.shared, &self.options, true);
        let mut chunks = std::mem::take(&mut *self.shared.chunks.lock().unwrap());
        chunks.sort_by_key(|c| (c.process, c.header.serial, c.header.sequence));
        chunks
    }
}

/// Runs a command to its end, which must come within a minute.
pub(crate) fn finish(command: &mut Command) -> Output {
    let child = command.spawn().unwrap();
    let id = child.id();
    let done = Arc::new(AtomicBool::new(false));
    let watch = done.clone();
    std::thread::spawn(move || {
        let start = Instant::now();
        while !watch.load(Relaxed) {
            if start.elapsed() > Duration::from_secs(60) {
                // SAFETY: a child of ours that has not been waited for.
                unsafe { libc::kill(id as i32, libc::SIGKILL) };
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let output = child.wait_with_output().unwrap();
    done.store(true, Relaxed);
    output
}

/// Fails with what the program said unless it ended well.
pub(crate) fn expect_success(output: &Output) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {errors}", output.status);
}

/// Ends a child that must still be running.
pub(crate) fn kill(child: &mut Child) -> ExitStatus {
    child.kill().unwrap();
    child.wait().unwrap()
}

/// The time of this side's clocks.
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

fn set_tick(page: &Memory) {
    let now = counter();
    page.word(clock::TICK_HIGH).store((now >> 32) as u32, Release);
    page.word(clock::TICK).store(now as u32, Release);
    page.word(clock::TICK_HIGH_AGAIN).store((now >> 32) as u32, Release);
}

fn listen(name: &str) -> OwnedFd {
    // SAFETY: system calls with an address of our own.
    unsafe {
        let flags = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        let socket = libc::socket(libc::AF_UNIX, flags, 0);
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        address.sun_family = libc::AF_UNIX as u16;
        for (to, from) in address.sun_path[1..].iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        let length = 3 + name.len() as u32;
        assert_eq!(libc::bind(socket, (&raw const address).cast(), length), 0);
        assert_eq!(libc::listen(socket, 128), 0);
        OwnedFd::from_raw_fd(socket)
    }
}

fn accept(shared: &Shared, options: &Options) {
    loop {
        // SAFETY: the listener is ours.
        let socket = unsafe {
            let flags = libc::SOCK_CLOEXEC;
            let (address, length) = (std::ptr::null_mut(), std::ptr::null_mut());
            libc::accept4(shared.listener.as_raw_fd(), address, length, flags)
        };
        if socket < 0 || shared.ends.load(Relaxed) {
            return;
        }
        // SAFETY: a fresh descriptor.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let mut bytes = [0u8; HELLO_SIZE];
        // SAFETY: receives into the array.
        let count =
            unsafe { libc::recv(socket.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        let Some(hello) = Hello::decode(&bytes[..usize::try_from(count).unwrap_or(0)]) else {
            continue;
        };
        answer(shared, options, &socket, &hello);
    }
}

fn answer(shared: &Shared, options: &Options, socket: &OwnedFd, hello: &Hello) {
    let mut processes = shared.processes.lock().unwrap();
    let mut welcome = Welcome {
        version: VERSION,
        refusal: refusal::UNKNOWN,
        clock: options.clock as u32,
        on_full: options.on_full as u32,
        token: hello.token,
        hz: 1_000_000_000,
        chunk_size: 0,
        chunks: 0,
        flags: options.flags,
    };
    if hello.segment == 0 {
        let new = |size, chunks| Segment::new(size, chunks, options.sealed);
        let mut segments = vec![new(segment::SMALL_CHUNK, options.small)];
        if options.large > 0 {
            segments.push(new(segment::LARGE_CHUNK, options.large));
        }
        segments[0].memory.word(segment::SEGMENTS).store(segments.len() as u32, Release);
        let is_heir = has_segments(hello.pid);
        processes.push(Process { segments, pid: hello.pid, wanted: 0, is_heir });
        welcome.token = processes.len() as u64;
    }
    let process =
        usize::try_from(welcome.token).ok().and_then(|t| processes.get(t.wrapping_sub(1)));
    if options.signals_heirs && process.is_some_and(|process| process.is_heir) {
        // SAFETY: kill only takes numbers. The sleep leaves it time to get there.
        unsafe { libc::kill(hello.pid as i32, libc::SIGUSR1) };
        std::thread::sleep(Duration::from_millis(100));
    }
    let found = process.and_then(|process| process.segments.get(hello.segment as usize));
    let mut files: Vec<RawFd> = Vec::new();
    if let Some(found) = found {
        welcome.refusal = refusal::NONE;
        welcome.chunk_size = found.chunk_size as u32;
        welcome.chunks = found.chunks as u32;
        if hello.segment == 0 {
            files.push(shared.clock.file.as_raw_fd());
        }
        files.push(found.memory.file.as_raw_fd());
    }
    send(socket, &welcome.encode(), &files);
}

fn has_segments(pid: u32) -> bool {
    // A process may be gone before it is answered.
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.lines().any(|line| line.contains(" rw-s ") && line.contains("/memfd:"))
}

fn send(socket: &OwnedFd, bytes: &[u8], files: &[RawFd]) {
    let mut control = [0u64; 8];
    let part = libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: bytes.len() };
    // SAFETY: a message built from memory that lives here; the control block fits two files.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = (&raw const part).cast_mut();
        message.msg_iovlen = 1;
        if !files.is_empty() {
            let size = std::mem::size_of_val(files) as u32;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(size) as usize;
            let head = libc::CMSG_FIRSTHDR(&raw const message);
            (*head).cmsg_level = libc::SOL_SOCKET;
            (*head).cmsg_type = libc::SCM_RIGHTS;
            (*head).cmsg_len = libc::CMSG_LEN(size) as usize;
            let data = libc::CMSG_DATA(head).cast::<RawFd>();
            data.copy_from_nonoverlapping(files.as_ptr(), files.len());
        }
        libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL);
    }
}

/// Drains what was handed over; chunks of dead threads, and at the end all, as far as they are.
fn drain(shared: &Shared, options: &Options, everything: bool) {
    let mut processes = shared.processes.lock().unwrap();
    let mut out = shared.chunks.lock().unwrap();
    for (number, process) in processes.iter_mut().enumerate() {
        let mut freed = false;
        let mut alive: HashMap<u32, bool> = HashMap::new();
        for part in &process.segments {
            for index in 0..part.chunks {
                let word = part.memory.word(segment::STATES + 4 * index);
                let status = word.load(Acquire);
                if status != state::TAKEN && status != state::FULL {
                    continue;
                }
                let offset = segment::DATA + index * part.chunk_size;
                let header = header(&part.memory, offset);
                let dead = everything || {
                    let tid = header.tid;
                    header.clock != 0
                        && !*alive.entry(tid).or_insert_with(|| {
                            Path::new(&format!("/proc/{}/task/{tid}", process.pid)).exists()
                        })
                };
                if status == state::TAKEN && !dead {
                    continue;
                }
                let count = (part.chunk_size - chunk::WORDS) / 4;
                let start = offset + chunk::WORDS;
                let mut words: Vec<u32> =
                    (0..count).map(|i| part.memory.word(start + 4 * i).load(Relaxed)).collect();
                words.truncate(words.iter().rposition(|&w| w != 0).map_or(0, |at| at + 1));
                if !dead && words.contains(&0) {
                    continue;
                }
                let handed_over = status == state::FULL;
                if header.clock != 0 {
                    out.push(Chunk { process: number, header, words, handed_over });
                }
                for at in 0..part.chunk_size / 4 {
                    part.memory.word(offset + 4 * at).store(0, Relaxed);
                }
                word.store(state::FREE, Release);
                shared.clock.word(clock::PROGRESS).fetch_add(1, Release);
                freed = true;
            }
        }
        let wanted = process.segments[0].memory.word(segment::WANTED).load(Relaxed);
        let mut grown = false;
        if options.grows && wanted != process.wanted {
            process.wanted = wanted;
            let (size, chunks) = (segment::SMALL_CHUNK, segment::SMALL_CHUNKS);
            process.segments.push(Segment::new(size, chunks, options.sealed));
            let count = process.segments.len() as u32;
            process.segments[0].memory.word(segment::SEGMENTS).store(count, Release);
            grown = true;
        }
        if freed || grown {
            let wake = process.segments[0].memory.word(segment::WAKE);
            wake.fetch_add(1, Release);
            // SAFETY: wakes sleepers on a word of our mapping.
            unsafe {
                libc::syscall(libc::SYS_futex, wake.as_ptr(), libc::FUTEX_WAKE, i32::MAX);
            }
        }
    }
}

fn header(memory: &Memory, offset: usize) -> ChunkHeader {
    let mut bytes = [0u8; chunk::WORDS];
    for at in (0..chunk::WORDS).step_by(4) {
        let word = memory.word(offset + at).load(Relaxed);
        bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    ChunkHeader::decode(&bytes)
}
