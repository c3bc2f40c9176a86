//! A traced process in the tests' hands: attaches as a runtime does, and writes what it is
//! told. Single steps are public, so that a test can leave one out.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use teeperf_wire::hello::{Hello, SOCKET_VARIABLE, VERSION, WELCOME_SIZE, Welcome, want};
use teeperf_wire::shared::{MAGIC, chunk, clock, segment, state};
use teeperf_wire::word::{code, escape};

/// Memory of the recorder's, mapped.
#[derive(Clone, Copy)]
pub(crate) struct Mapped {
    base: usize,
    pub(crate) length: usize,
}

impl Mapped {
    fn new(file: &OwnedFd, length: usize, write: bool) -> io::Result<Self> {
        let access = libc::PROT_READ | if write { libc::PROT_WRITE } else { 0 };
        let (null, fd) = (std::ptr::null_mut(), file.as_raw_fd());
        // SAFETY: a new mapping, never taken back; the result is checked.
        let base = unsafe { libc::mmap(null, length, access, libc::MAP_SHARED, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { base: base as usize, length })
    }

    /// The number at this offset.
    pub(crate) fn number(&self, offset: usize) -> &'static AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.length);
        // SAFETY: within a mapping that is never taken back, aligned, atomic.
        unsafe { &*((self.base + offset) as *const AtomicU32) }
    }
}

/// An attached process.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) welcome: Welcome,
    pub(crate) clock: Mapped,
    segments: Arc<Mutex<Vec<(Mapped, Welcome)>>>,
    serials: Arc<AtomicU32>,
}

impl Client {
    /// Attaches to the recorder in the environment.
    pub(crate) fn attach() -> Self {
        let (welcome, files) = ask(0, 0).unwrap();
        assert_eq!((welcome.refusal, files.len()), (0, 3));
        let clock = Mapped::new(&files[0], clock::SIZE, false).unwrap();
        assert!(Mapped::new(&files[0], clock::SIZE, true).is_err(), "the clock can be written");
        let wide = |low: u64, high: u64| low | high << 32;
        let magic =
            wide(clock.number(0).load(Acquire).into(), clock.number(4).load(Acquire).into());
        assert_eq!(magic, MAGIC);
        let client = Self { welcome, clock, segments: Arc::default(), serials: Arc::default() };
        client.segments.lock().unwrap().push((map(welcome, &files[1]), welcome));
        client
    }

    /// All segments mapped so far.
    pub(crate) fn segments(&self) -> Vec<(Mapped, Welcome)> {
        self.segments.lock().unwrap().clone()
    }

    /// A number of the first segment.
    pub(crate) fn first(&self, offset: usize) -> &'static AtomicU32 {
        self.segments.lock().unwrap()[0].0.number(offset)
    }

    /// Bits of the control word.
    pub(crate) fn control(&self) -> u32 {
        self.clock.number(clock::CONTROL).load(Acquire)
    }

    /// Waits until the control word has, or has not, this bit.
    pub(crate) fn wait_for_control(&self, bit: u32, set: bool) {
        let since = Instant::now();
        while (self.control() & bit != 0) != set {
            assert!(since.elapsed() < Duration::from_secs(20), "control stays {}", self.control());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Maps a segment that was announced, and says whether there was one; nothing when the
    /// recorder is gone.
    fn map_announced(&self) -> Option<bool> {
        let announced = self.first(segment::SEGMENTS).load(Acquire) as usize;
        // One thread at a time, so that each segment is mapped once.
        let mut segments = self.segments.lock().unwrap();
        if segments.len() >= announced {
            return Some(false);
        }
        let (welcome, files) = ask(segments.len() as u32, self.welcome.token).ok()?;
        assert_eq!((welcome.refusal, files.len()), (0, 1));
        segments.push((map(welcome, &files[0]), welcome));
        Some(true)
    }

    /// Takes a free chunk of this size, waiting for one; nothing when recording has ended.
    fn take(&self, size: usize) -> Option<Chunk> {
        let mut told = false;
        loop {
            let wake = self.first(segment::WAKE).load(Ordering::SeqCst);
            for (mapped, welcome) in self.segments() {
                if welcome.chunk_size as usize != size {
                    continue;
                }
                for index in 0..welcome.chunks as usize {
                    let state = mapped.number(segment::STATES + index * 4);
                    let (free, taken) = (state::FREE, state::TAKEN);
                    if state.compare_exchange(free, taken, AcqRel, Relaxed).is_ok() {
                        let start = segment::DATA + index * size;
                        return Some(Chunk { mapped, start, size, state, at: 0 });
                    }
                }
            }
            if self.map_announced()? {
                continue;
            }
            if self.control() & teeperf_wire::shared::control::STOPPED != 0 {
                return None;
            }
            if !told {
                self.first(segment::WANTED).fetch_add(1, Ordering::SeqCst);
                told = true;
                continue;
            }
            let pause = libc::timespec { tv_sec: 0, tv_nsec: 10_000_000 };
            let word = self.first(segment::WAKE).as_ptr();
            // SAFETY: address of a mapped number and of a timespec.
            unsafe {
                libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, wake, &raw const pause)
            };
        }
    }

    /// A thread that writes.
    pub(crate) fn thread(&self) -> Writer {
        let serial = self.serials.fetch_add(1, Relaxed) + 1;
        Writer { client: self.clone(), serial, sequence: 0, chunk: None }
    }
}

/// Maps a segment for writing, and sees that it cannot be made shorter.
fn map(welcome: Welcome, file: &OwnedFd) -> Mapped {
    let size = segment::size(welcome.chunk_size as usize, welcome.chunks as usize).unwrap();
    let mapped = Mapped::new(file, size, true).unwrap();
    assert_eq!(mapped.number(segment::CHUNKS).load(Acquire), welcome.chunks);
    // SAFETY: no pointers are involved.
    assert_eq!(unsafe { libc::ftruncate(file.as_raw_fd(), 0) }, -1, "it can be cut");
    mapped
}

/// One exchange with the recorder: what it answers, and the descriptors with it.
pub(crate) fn ask(segment: u32, token: u64) -> io::Result<(Welcome, Vec<OwnedFd>)> {
    let (pid, want) = (std::process::id(), want::SEGMENTS);
    let hello = Hello { version: VERSION, segment, token, pid, want };
    let socket = connect()?;
    send(&socket, &hello.encode())?;
    let mut bytes = [0u8; WELCOME_SIZE];
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut control = [0u64; 8];
    // SAFETY: a struct of numbers and pointers, for which zeros are a value.
    let mut all: libc::msghdr = unsafe { std::mem::zeroed() };
    all.msg_iov = &mut part;
    all.msg_iovlen = 1;
    all.msg_control = control.as_mut_ptr().cast();
    all.msg_controllen = size_of_val(&control) as _;
    let flags = libc::MSG_CMSG_CLOEXEC;
    // SAFETY: all addresses and lengths are those of values above.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &mut all, flags) };
    let welcome = usize::try_from(got).ok().and_then(|length| Welcome::decode(&bytes[..length]));
    let welcome = welcome.ok_or_else(|| io::Error::other("no welcome"))?;
    let mut files = Vec::new();
    // SAFETY: the kernel filled the control buffer in, and says how long it is.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&all);
        if !header.is_null() && (*header).cmsg_type == libc::SCM_RIGHTS {
            let bytes = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
            for at in 0..bytes / 4 {
                let fd = libc::CMSG_DATA(header).cast::<i32>().add(at).read_unaligned();
                files.push(OwnedFd::from_raw_fd(fd));
            }
        }
    }
    Ok((welcome, files))
}

/// Connects to the recorder's socket.
pub(crate) fn connect() -> io::Result<OwnedFd> {
    let name = std::env::var(SOCKET_VARIABLE).map_err(io::Error::other)?;
    // SAFETY: no pointers are involved; the result is checked.
    let fd = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0) };
    assert!(fd >= 0);
    // SAFETY: the descriptor is new and nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: a struct of numbers, for which zeros are a value.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as _;
    for (out, byte) in address.sun_path[1..].iter_mut().zip(name.bytes()) {
        *out = byte as _;
    }
    let length = (2 + 1 + name.len()) as libc::socklen_t;
    // SAFETY: the address is a sockaddr_un of at least `length` bytes.
    let done = unsafe { libc::connect(fd, (&raw const address).cast(), length) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(socket) }
}

/// Sends one message.
pub(crate) fn send(socket: &OwnedFd, message: &[u8]) -> io::Result<()> {
    // SAFETY: address and length are those of `message`.
    let sent = unsafe { libc::send(socket.as_raw_fd(), message.as_ptr().cast(), message.len(), 0) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A chunk in this process's hands.
pub(crate) struct Chunk {
    mapped: Mapped,
    start: usize,
    size: usize,
    state: &'static AtomicU32,
    at: usize,
}

impl Chunk {
    /// The word at this index.
    pub(crate) fn word(&self, at: usize) -> &'static AtomicU32 {
        self.mapped.number(self.start + chunk::WORDS + at * 4)
    }

    /// Its state.
    pub(crate) fn state(&self) -> u32 {
        self.state.load(Acquire)
    }

    fn room(&self) -> usize {
        // One is for the word that ends the chunk.
        (self.size - chunk::WORDS) / 4 - self.at - 1
    }
}

/// A thread that writes words.
pub(crate) struct Writer {
    client: Client,
    pub(crate) serial: u32,
    sequence: u32,
    pub(crate) chunk: Option<Chunk>,
}

impl Writer {
    /// Takes the next chunk; false when recording has stopped.
    pub(crate) fn begin(&mut self) -> bool {
        let size = if self.sequence == 0 { segment::SMALL_CHUNK } else { segment::LARGE_CHUNK };
        let Some(chunk) = self.client.take(size) else { return false };
        self.sequence += 1;
        let number = |at: usize, value: u32| {
            chunk.mapped.number(chunk.start + at).store(value, Relaxed);
        };
        number(chunk::PID, std::process::id());
        // SAFETY: no pointers are involved.
        number(chunk::TID, unsafe { libc::gettid() } as u32);
        number(chunk::SERIAL, self.serial);
        number(chunk::SEQUENCE, self.sequence);
        number(chunk::TIME, self.client.clock.number(clock::TICK).load(Acquire));
        let kind = self.client.welcome.clock;
        chunk.mapped.number(chunk.start + chunk::CLOCK).store(kind, Release);
        self.chunk = Some(chunk);
        true
    }

    /// Writes these words side by side, into a new chunk where the present one is full. False
    /// when recording has stopped.
    pub(crate) fn put(&mut self, words: &[u32]) -> bool {
        if self.chunk.as_ref().is_some_and(|chunk| chunk.room() < words.len()) {
            self.hand_over();
        }
        if self.chunk.is_none() && !self.begin() {
            return false;
        }
        let Some(chunk) = &mut self.chunk else { return false };
        for &word in words {
            chunk.word(chunk.at).store(word, Release);
            chunk.at += 1;
        }
        true
    }

    /// Reserves room for one word, and says where.
    pub(crate) fn reserve(&mut self) -> &'static AtomicU32 {
        let chunk = self.chunk.as_mut().unwrap();
        chunk.at += 1;
        chunk.word(chunk.at - 1)
    }

    /// Ends the present chunk and gives it to the recorder.
    pub(crate) fn hand_over(&mut self) -> Option<Chunk> {
        let chunk = self.chunk.take()?;
        chunk.word(chunk.at).store(escape(code::PAD, 0), Release);
        chunk.state.store(state::FULL, Release);
        Some(chunk)
    }
}
