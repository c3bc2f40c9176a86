//! What stands in each packet: tags of the fields, and the fixed header of a chunk.
//!
//! Numbers are unsigned and little-endian, eight bytes unless said otherwise; text is
//! UTF-8 where the system's was, else its bytes. Times are clock units of the recording
//! unless named `_NS`.

pub mod keyframe;
pub mod sample;

/// [`crate::packet::kind::START`].
pub mod start {
    /// Two u16: [`crate::packet::MAJOR`] and minor.
    pub const VERSION: u16 = 1;
    /// Text: what wrote the recording.
    pub const WRITER: u16 = 2;
    /// 1 tick, 2 cycle: [`crate::shared::ClockKind`].
    pub const CLOCK: u16 = 3;
    /// Clock units in a second.
    pub const HZ: u16 = 4;
    /// Clock units between two ticks on average, 0 for `cycle`.
    pub const PERIOD: u16 = 5;
    /// Text: why this clock was chosen.
    pub const CLOCK_REASON: u16 = 6;
    /// Clock value at the start of the recording.
    pub const CLOCK_START: u16 = 7;
    /// Nanoseconds since 1970 UTC at the same moment.
    pub const WALL_NS: u16 = 8;
    /// One field for each word of the command.
    pub const ARGUMENT: u16 = 9;
    /// Text: host name.
    pub const HOST: u16 = 10;
    /// Text: system and release.
    pub const SYSTEM: u16 = 11;
    /// Text: architecture as in `uname -m`.
    pub const MACHINE: u16 = 12;
    /// Text: processor's name.
    pub const PROCESSOR: u16 = 13;
    /// Number of processors the program could use.
    pub const PROCESSORS: u16 = 14;
    /// 1 wait, 2 drop, 3 stop.
    pub const ON_FULL: u16 = 15;
    /// Text: working directory.
    pub const DIRECTORY: u16 = 16;
    /// Older writers: what the hooks cost, picoseconds, eight numbers.
    pub const HOOK_COST_PS: u16 = 17;
    /// Older writers: how much of that was added in any case, picoseconds.
    pub const LEAST_COST_PS: u16 = 18;
    /// 1: each reading of the `cycle` clock waited for all work before it. 0 where it is missing.
    pub const ORDERED: u16 = 19;
    /// Number: steps in a second of the processor's counter, which times chosen functions beside the tick.
    pub const COUNTER_HZ: u16 = 20;
    /// Number: the counter at [`CLOCK_START`].
    pub const COUNTER_START: u16 = 21;
}

/// [`crate::packet::kind::PROCESS`].
pub mod process {
    /// Number of the process in this recording, from 1.
    pub const ID: u16 = 1;
    /// Process id as the recorder's system knows it.
    pub const PID: u16 = 2;
    /// Process id of the parent.
    pub const PARENT_PID: u16 = 3;
    /// Text: path of the executable.
    pub const EXECUTABLE: u16 = 4;
    /// One field for each word of the command line.
    pub const ARGUMENT: u16 = 5;
    /// Clock value when it attached.
    pub const TIME: u16 = 6;
    /// Number (ID) of the process this one took over from by `exec`, 0 if none.
    pub const EXEC_OF: u16 = 7;
}

/// [`crate::packet::kind::PROCESS_END`].
pub mod process_end {
    /// [`super::process::ID`].
    pub const ID: u16 = 1;
    /// Clock value.
    pub const TIME: u16 = 2;
    /// Exit status where the recorder saw it.
    pub const EXIT_STATUS: u16 = 3;
    /// Signal that killed it, where the recorder saw it.
    pub const SIGNAL: u16 = 4;
}

/// [`crate::packet::kind::THREAD`].
pub mod thread {
    /// [`super::process::ID`].
    pub const PROCESS: u16 = 1;
    /// [`crate::shared::chunk::SERIAL`].
    pub const SERIAL: u16 = 2;
    /// Thread id.
    pub const TID: u16 = 3;
    /// Text: name; the last packet counts.
    pub const NAME: u16 = 4;
}

/// [`crate::packet::kind::NOTICE`].
pub mod notice {
    /// 0 information, 1 warning: the recording is not complete.
    pub const LEVEL: u16 = 1;
    /// Text.
    pub const TEXT: u16 = 2;
    /// [`super::process::ID`], where it is about one.
    pub const PROCESS: u16 = 3;
    /// So many processes, or libraries, with hooks are not in the recording.
    pub const UNRECORDED: u16 = 4;
    /// The end of a text about processes that the recorder could not look at.
    pub const MAY_MISS: &str = "processes with hooks may be missing";
}

/// [`crate::packet::kind::END`].
pub mod end {
    /// Clock value.
    pub const TIME: u16 = 1;
    /// Words in all chunk packets.
    pub const WORDS: u16 = 2;
    /// Exit status of the command, where it ended by itself.
    pub const EXIT_STATUS: u16 = 3;
    /// Signal that killed the command.
    pub const SIGNAL: u16 = 4;
    /// Text: why recording ended, when it was before the command's end.
    pub const REASON: u16 = 5;
    /// CPU time of the recorder, nanoseconds.
    pub const RECORDER_CPU_NS: u16 = 6;
}

/// [`crate::packet::kind::LOSS`].
pub mod loss {
    /// [`super::process::ID`].
    pub const PROCESS: u16 = 1;
    /// Calls and returns that threads of the process left out without a `GAP` to say so, because
    /// they or the recording ended first.
    pub const EVENTS: u16 = 2;
}

/// [`crate::packet::kind::FILTER`]. Without a process it says what was asked for; with one, which sites of a
/// window pass, and several packets of one filter and window add up.
pub mod filter {
    /// Number of the filter, from 1, as [`crate::word::code::FILTER`] has it.
    pub const NUMBER: u16 = 1;
    /// Text: what was asked for, one field for each rule; none where all is recorded.
    pub const RULE: u16 = 2;
    /// [`super::process::ID`].
    pub const PROCESS: u16 = 3;
    /// First site of the window.
    pub const FIRST_SITE: u16 = 4;
    /// Number of its sites.
    pub const SITES: u16 = 5;
    /// 1: sites of the window that are not listed pass, and those that are do not. 0: the other way round.
    pub const OTHERS_PASS: u16 = 6;
    /// Sites, four bytes each: any number of them.
    pub const LIST: u16 = 7;
}

/// [`crate::packet::kind::SAMPLED`]: an event whose samples are in the recording, and how they are taken.
pub mod sampled {
    /// Number of the event in this recording, from 1.
    pub const EVENT: u16 = 1;
    /// Text: its name, as perf spells it, such as `cpu-clock` or `cycles:u`.
    pub const NAME: u16 = 2;
    /// What periods are in: 1 nanoseconds; 2 a count of the event, as of a processor's cycles.
    pub const UNIT: u16 = 3;
    /// Mean period, in that unit; 0 where it is not known.
    pub const PERIOD: u16 = 4;
    /// Samples a second that were asked for; missing where a period was.
    pub const FREQUENCY: u16 = 5;
    /// 1: periods are drawn at random around the mean, each or a few at a time.
    pub const RANDOM: u16 = 6;
    /// Value of the samples' clock, nanoseconds, at the clock value [`super::start::CLOCK_START`].
    pub const ZERO_NS: u16 = 7;
    /// What takes the samples, see [`source`].
    pub const SOURCE: u16 = 8;
    /// `e_machine` of the code (ELF, gABI chapter 4), which says what registers have which numbers.
    pub const MACHINE: u16 = 9;
    /// Registers that samples are to have, a mask.
    pub const REGISTERS: u16 = 10;
    /// Bytes of the stack that samples are to have, at most.
    pub const STACK: u16 = 11;
    /// 1: samples are to have a call chain.
    pub const CHAIN: u16 = 12;
    /// `type` of Linux's `perf_event_attr`, where it is an event of that.
    pub const PERF_TYPE: u16 = 13;
    /// `config` of it.
    pub const PERF_CONFIG: u16 = 14;
    /// Number: mask of the registers of outer stacks that samples were to have.
    pub const OUTER_REGISTERS: u16 = 15;
    /// Number: bytes of these stacks, at most.
    pub const OUTER_STACK: u16 = 16;
    /// Number: `precise_ip` of Linux's `perf_event_attr`, where it is not 0. The processor then says where a sample is, and the call
    /// chain is of a later moment.
    pub const PRECISE: u16 = 17;
    /// Number: `branch_sample_type` of it: what the entries of samples' branch stacks are.
    pub const BRANCHES: u16 = 18;

    /// Bit of [`BRANCHES`]: they are the calls that have not returned, `PERF_SAMPLE_BRANCH_CALL_STACK`.
    pub const BRANCH_CALL_STACK: u64 = 1 << 11;

    /// What takes samples.
    pub mod source {
        /// The kernel, by `perf_event_open`.
        pub const PERF_EVENT: u64 = 1;
        /// Timers of each thread, with signals.
        pub const TIMER: u64 = 2;
        /// Asynchronous exits of SGX enclaves, seen in their process.
        pub const AEX: u64 = 3;
        /// The same, seen from another process.
        pub const AEX_ATTACHED: u64 = 4;
        /// Interrupts of a counter on a machine without a system.
        pub const COUNTER: u64 = 5;
        /// A file of another profiler.
        pub const FOREIGN: u64 = 6;
    }
}

/// [`crate::packet::kind::MAP`]: code that a process can run from some time on.
pub mod map {
    /// Process id; all ones (four bytes): the kernel's.
    pub const PID: u16 = 1;
    /// Thread id.
    pub const TID: u16 = 2;
    /// Nanoseconds on the samples' clock; missing: from the beginning on.
    pub const TIME_NS: u16 = 3;
    /// First address.
    pub const ADDRESS: u16 = 4;
    /// Bytes.
    pub const LENGTH: u16 = 5;
    /// Where in the file it begins, bytes.
    pub const OFFSET: u16 = 6;
    /// `PROT_…` of mmap(2).
    pub const PROTECTION: u16 = 7;
    /// `MAP_…` of mmap(2).
    pub const FLAGS: u16 = 8;
    /// Text: path of the file, or what else it is, such as `[vdso]`, `//anon`.
    pub const PATH: u16 = 9;
    /// Bytes: build-id of the file.
    pub const BUILD_ID: u16 = 10;
    /// Of the processor where it is, see [`super::sample::mode`]; missing: a program's.
    pub const MODE: u16 = 11;
    /// Number of the file ([`super::file`]), where the process sees other files than the recorder;
    /// missing: it does not.
    pub const FILE: u16 = 12;

    /// Process id of the kernel's.
    pub const KERNEL: u32 = u32::MAX;
    /// `PROT_EXEC` of [`PROTECTION`]: it is code.
    pub const PROT_EXEC: u32 = 4;
}

/// [`crate::packet::kind::FILE`]: a part of a file that the recorder's system does not have at its
/// path. Parts of a file come in their order, before the first [`map::FILE`] of its number.
pub mod file {
    /// Number of the file, not 0.
    pub const FILE: u16 = 1;
    /// Bytes of the whole file.
    pub const SIZE: u16 = 2;
    /// Where in it the part begins.
    pub const OFFSET: u16 = 3;
    /// Bytes: the part, a zstd frame.
    pub const DATA: u16 = 4;

    /// Most bytes of a part, decompressed.
    pub const MAX_PART: usize = 1 << 19;
    /// Most bytes of all files of a recording, decompressed.
    pub const MAX_BYTES: u64 = 1 << 28;
    /// Most files of a recording.
    pub const MAX_FILES: usize = 512;
}

/// [`crate::packet::kind::TASK`]: a process or thread that is sampled began, changed or ended.
pub mod task {
    /// What happened, see [`what`].
    pub const WHAT: u16 = 1;
    /// Process id.
    pub const PID: u16 = 2;
    /// Thread id.
    pub const TID: u16 = 3;
    /// Process that it comes from.
    pub const PARENT_PID: u16 = 4;
    /// Thread that it comes from.
    pub const PARENT_TID: u16 = 5;
    /// Nanoseconds on the samples' clock; missing: at the beginning.
    pub const TIME_NS: u16 = 6;
    /// Text: its name from now on.
    pub const NAME: u16 = 7;

    /// What happened.
    pub mod what {
        /// A process, or a thread of the process that it comes from, began.
        pub const FORK: u64 = 1;
        /// A thread has a name.
        pub const NAME: u64 = 2;
        /// The process runs another program, of this name: its maps are gone.
        pub const EXEC: u64 = 3;
        /// A thread ended.
        pub const EXIT: u64 = 4;
    }
}

/// [`crate::packet::kind::CHUNK`]: a header of `HEADER` bytes, then the words.
///
/// ```text
/// 0   4  process         number of the process in this recording
/// 4   4  thread          serial of the thread in its process
/// 8   4  tid             thread id
/// 12  4  sequence        number of the chunk within its thread
/// 16  4  first           index of the first word in the chunk: a chunk may come in pieces
/// 20  4  count           words, at most MAX_WORDS
/// 24  8  time            absolute time at this piece's start
/// 32  8  cpu_ns          CPU time of the thread at the chunk's start; all ones: unknown
/// 40  8  stack           id of the stack at the chunk's start
/// 48  1  clock           1 tick, 2 cycle
/// 49  1  encoding        0 plain words; 1 zstd; 2 cycle planes, zstd
/// 50  2  flags           bit 0: the chunk ends here, whole; bit 1: its thread was cut off
/// 52  4  words_bytes     encoding 2: bytes of the first plane once decompressed
/// 56  …  data
/// ```
///
/// Encoding 2 splits a chunk of the `cycle` clock: the first plane has all words but the
/// time words; the second has for each time word the difference from the one before (the
/// first of the packet from the low 32 bits of `time`), modulo 2^32, as unsigned LEB128. Both together
/// are one zstd frame. A decompressed chunk is at most `MAX_BYTES` long.
pub mod chunk {
    use super::{put, u32_at, u64_at};

    /// Bytes before the data.
    pub const HEADER: usize = 56;
    /// Most words in one packet.
    pub const MAX_WORDS: usize = crate::shared::segment::LARGE_CHUNK / 4;
    /// Most bytes a chunk's data may decompress to: 16,384 words, or as many time words of
    /// five bytes and event words.
    pub const MAX_BYTES: usize = MAX_WORDS * 9;
    /// Flag: the chunk is whole, the next piece of this thread is another chunk.
    pub const WHOLE: u16 = 1;
    /// Flag: the thread was killed, or the recording ended, while it wrote this chunk.
    pub const CUT: u16 = 2;

    /// Encoding of the data.
    pub mod encoding {
        /// Words as they are.
        pub const PLAIN: u8 = 0;
        /// Words as one zstd frame.
        pub const ZSTD: u8 = 1;
        /// Two planes as one zstd frame.
        pub const CYCLE_ZSTD: u8 = 2;
    }

    /// The header.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Header {
        /// See the table.
        pub process: u32,
        /// See the table.
        pub thread: u32,
        /// See the table.
        pub tid: u32,
        /// See the table.
        pub sequence: u32,
        /// See the table.
        pub first: u32,
        /// See the table.
        pub count: u32,
        /// See the table.
        pub time: u64,
        /// See the table.
        pub cpu_ns: u64,
        /// See the table.
        pub stack: u64,
        /// See the table.
        pub clock: u8,
        /// See the table.
        pub encoding: u8,
        /// See the table.
        pub flags: u16,
        /// See the table.
        pub words_bytes: u32,
    }

    impl Header {
        /// As bytes.
        pub fn encode(&self) -> [u8; HEADER] {
            let mut out = [0; HEADER];
            let words =
                [self.process, self.thread, self.tid, self.sequence, self.first, self.count];
            put(&mut out, &words, &[self.time, self.cpu_ns, self.stack]);
            out[48] = self.clock;
            out[49] = self.encoding;
            out[50..52].copy_from_slice(&self.flags.to_le_bytes());
            out[52..56].copy_from_slice(&self.words_bytes.to_le_bytes());
            out
        }

        /// Header and data of a payload; nothing when it is too short or claims more words
        /// than a chunk has.
        pub fn decode(payload: &[u8]) -> Option<(Self, &[u8])> {
            let (head, data) = payload.split_at_checked(HEADER)?;
            let header = Self {
                process: u32_at(head, 0),
                thread: u32_at(head, 4),
                tid: u32_at(head, 8),
                sequence: u32_at(head, 12),
                first: u32_at(head, 16),
                count: u32_at(head, 20),
                time: u64_at(head, 24),
                cpu_ns: u64_at(head, 32),
                stack: u64_at(head, 40),
                clock: head[48],
                encoding: head[49],
                flags: u16::from_le_bytes([head[50], head[51]]),
                words_bytes: u32_at(head, 52),
            };
            (header.count as usize <= MAX_WORDS && header.first as usize <= MAX_WORDS)
                .then_some((header, data))
        }
    }
}

/// [`crate::packet::kind::TREE`]: a header of [`HEADER`](tree::HEADER) bytes, then nodes.
///
/// ```text
/// 0   4  process         number of the process in this recording
/// 4   4  thread          serial of the thread in its process
/// 8   4  tid             thread id
/// 12  4  nodes           at most MAX_NODES
/// 16  8  begin           clock value from which on the sums are
/// 24  8  end             clock value up to which they are
/// 32  8  mended          frames closed, or returns left out, because a call or return was not seen
/// 40  1  encoding        0 plain; 1 zstd
/// 41  1  flags           bit 0: calls of functions that were open on the path stand in those
/// 42  6  0
/// 48  …  data
/// ```
///
/// Calls and times are those between `begin` and `end` alone: packets of a thread are added up. Those of one
/// moment may come in several packets. Each packet stands alone: it has all ancestors of its nodes.
///
/// The data are unsigned LEB128 numbers. For each node, callers before callees: how many nodes before it its
/// caller's is (of the first, which is the thread itself, 0); the word of a call of the function, or one of
/// [`tree::word`]; with [`tree::word::FAR`] the function's address; calls; clock units in the function
/// itself; clock units of its shortest call that has ended so far, and one more (0: none has); of its longest.
pub mod tree {
    use super::{put, u32_at, u64_at};

    /// Bytes before the data.
    pub const HEADER: usize = 48;
    /// Most nodes in one packet.
    pub const MAX_NODES: usize = 16384;
    /// Most bytes that the data may decompress to.
    pub const MAX_BYTES: usize = MAX_NODES * 64;
    /// Flag: calls are folded.
    pub const FOLDS: u8 = 1;

    /// Words of nodes that are no function of a window.
    pub mod word {
        /// The thread itself; a function that has no site: its address comes next.
        pub const FAR: u32 = 0;
        /// Functions that found no room on their own paths stand below this.
        pub const OVERFLOW: u32 = 1;
    }

    /// Encoding of the data.
    pub mod encoding {
        /// As it is.
        pub const PLAIN: u8 = 0;
        /// One zstd frame.
        pub const ZSTD: u8 = 1;
    }

    /// The header.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Header {
        /// See the table.
        pub process: u32,
        /// See the table.
        pub thread: u32,
        /// See the table.
        pub tid: u32,
        /// See the table.
        pub nodes: u32,
        /// See the table.
        pub begin: u64,
        /// See the table.
        pub end: u64,
        /// See the table.
        pub mended: u64,
        /// See the table.
        pub encoding: u8,
        /// See the table.
        pub flags: u8,
    }

    impl Header {
        /// As bytes.
        pub fn encode(&self) -> [u8; HEADER] {
            let mut out = [0; HEADER];
            let words = [self.process, self.thread, self.tid, self.nodes];
            put(&mut out, &words, &[self.begin, self.end, self.mended]);
            out[40] = self.encoding;
            out[41] = self.flags;
            out
        }

        /// Header and data of a payload; nothing when it is too short or claims more nodes than a packet has.
        pub fn decode(payload: &[u8]) -> Option<(Self, &[u8])> {
            let (head, data) = payload.split_at_checked(HEADER)?;
            let header = Self {
                process: u32_at(head, 0),
                thread: u32_at(head, 4),
                tid: u32_at(head, 8),
                nodes: u32_at(head, 12),
                begin: u64_at(head, 16),
                end: u64_at(head, 24),
                mended: u64_at(head, 32),
                encoding: head[40],
                flags: head[41],
            };
            (header.nodes as usize <= MAX_NODES).then_some((header, data))
        }
    }
}

/// [`crate::packet::kind::ARCS`]: a header of [`HEADER`](arcs::HEADER) bytes, then arcs, then spans.
///
/// ```text
/// 0   4  process         number of the process in this recording
/// 4   4  thread          serial of the thread in its process
/// 8   4  tid             thread id
/// 12  4  arcs            with spans at most MAX_ITEMS
/// 16  8  begin           clock value from which on the sums are
/// 24  8  end             clock value up to which they are
/// 32  8  lost            calls that are in no arc
/// 40  4  spans
/// 44  1  encoding        0 plain; 1 zstd
/// 45  3  0
/// 48  …  data
/// ```
///
/// Calls and times are those between `begin` and `end` alone: packets add up.
///
/// The data are unsigned LEB128 numbers, three for each arc and each span: two places of code and a count. A place
/// is the word of a call there, or 0 and behind it, as one number more, an address; an address of 0 is nobody
/// known. An arc goes from a call to the function that was called, and counts calls. A span is clock units between the
/// entry of a function, the first place, and the next call by anybody, the second: that the function was left
/// in between is not seen.
pub mod arcs {
    use super::{put, u32_at, u64_at};

    /// Bytes before the data.
    pub const HEADER: usize = 48;
    /// Most arcs and spans in one packet.
    pub const MAX_ITEMS: usize = 16384;
    /// Most bytes that the data may decompress to.
    pub const MAX_BYTES: usize = MAX_ITEMS * 32;
    /// Word of a place that has no site: its address comes next.
    pub const FAR: u32 = 0;
    pub use super::tree::encoding;

    /// The header.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Header {
        /// See the table.
        pub process: u32,
        /// See the table.
        pub thread: u32,
        /// See the table.
        pub tid: u32,
        /// See the table.
        pub arcs: u32,
        /// See the table.
        pub begin: u64,
        /// See the table.
        pub end: u64,
        /// See the table.
        pub lost: u64,
        /// See the table.
        pub spans: u32,
        /// See the table.
        pub encoding: u8,
    }

    impl Header {
        /// As bytes.
        pub fn encode(&self) -> [u8; HEADER] {
            let mut out = [0; HEADER];
            let words = [self.process, self.thread, self.tid, self.arcs];
            put(&mut out, &words, &[self.begin, self.end, self.lost]);
            out[40..44].copy_from_slice(&self.spans.to_le_bytes());
            out[44] = self.encoding;
            out
        }

        /// Header and data of a payload; nothing when it is too short or claims more than a packet has.
        pub fn decode(payload: &[u8]) -> Option<(Self, &[u8])> {
            let (head, data) = payload.split_at_checked(HEADER)?;
            let header = Self {
                process: u32_at(head, 0),
                thread: u32_at(head, 4),
                tid: u32_at(head, 8),
                arcs: u32_at(head, 12),
                begin: u64_at(head, 16),
                end: u64_at(head, 24),
                lost: u64_at(head, 32),
                spans: u32_at(head, 40),
                encoding: head[44],
            };
            let items = header.arcs as u64 + header.spans as u64;
            (items <= MAX_ITEMS as u64).then_some((header, data))
        }
    }
}

/// [`crate::packet::kind::SYMBOLS`]: fields. A module with many symbols has many packets.
pub mod symbols {
    /// [`super::process::ID`] of the process whose window this is.
    pub const PROCESS: u16 = 1;
    /// First site of the module's window.
    pub const FIRST_SITE: u16 = 2;
    /// A symbol, as often as there are: site of its first byte in this window (u32), size in
    /// bytes (u32), line (u32, 0 unknown), length of the name (u16), then the name as the
    /// linker knows it (mangled), then the source file's path, which may be empty.
    pub const SYMBOL: u16 = 3;
    /// Where the module's window is told from [`crate::word::module::ANCHOR`] on: that function's virtual
    /// address in the module's file.
    pub const ANCHOR: u16 = 4;

    /// Beginning of a [`SYMBOL`]: name and file come behind it.
    pub const fn head(site: u32, size: u32, line: u32, name_bytes: u16) -> [u8; 14] {
        let [a, b, c, d] = site.to_le_bytes();
        let [e, f, g, h] = size.to_le_bytes();
        let [i, j, k, l] = line.to_le_bytes();
        let [m, n] = name_bytes.to_le_bytes();
        [a, b, c, d, e, f, g, h, i, j, k, l, m, n]
    }
}

/// Puts numbers of four bytes at a header's beginning, and behind them some of eight.
pub(crate) fn put(out: &mut [u8], words: &[u32], wides: &[u64]) {
    let (first, rest) = out.split_at_mut(4 * words.len());
    for (place, word) in first.as_chunks_mut().0.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
    for (place, wide) in rest.as_chunks_mut().0.iter_mut().zip(wides) {
        *place = wide.to_le_bytes();
    }
}

/// The number of four bytes at an offset of a header.
pub(crate) fn u32_at(head: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
}

/// The one of eight.
pub(crate) fn u64_at(head: &[u8], at: usize) -> u64 {
    u32_at(head, at) as u64 | (u32_at(head, at + 4) as u64) << 32
}

#[cfg(test)]
mod tests {
    use super::chunk::{HEADER, Header, MAX_WORDS};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn chunk_header_comes_back(n: [u32; 5], count in 0u32..=16384, wide: [u64; 3], clock: u8, encoding: u8, flags: u16) {
            let header = Header {
                process: n[0], thread: n[1], tid: n[2], sequence: n[3], first: n[4] % 16385, count,
                time: wide[0], cpu_ns: wide[1], stack: wide[2], clock, encoding, flags,
                words_bytes: n[4],
            };
            let mut bytes = header.encode().to_vec();
            bytes.push(9);
            prop_assert_eq!(Header::decode(&bytes), Some((header, &[9u8][..])));
        }

        #[test]
        fn tree_header_comes_back(n: [u32; 3], nodes in 0u32..=16384, wide: [u64; 3], encoding: u8, flags: u8) {
            let [process, thread, tid] = n;
            let [begin, end, mended] = wide;
            let header =
                super::tree::Header { process, thread, tid, nodes, begin, end, mended, encoding, flags };
            let bytes = [&header.encode()[..], &[9]].concat();
            prop_assert_eq!(super::tree::Header::decode(&bytes), Some((header, &[9u8][..])));
        }

        #[test]
        fn arcs_header_comes_back(n: [u32; 3], arcs in 0u32..=16000, spans in 0u32..=384, wide: [u64; 3], encoding: u8) {
            let [process, thread, tid] = n;
            let [begin, end, lost] = wide;
            let header =
                super::arcs::Header { process, thread, tid, arcs, begin, end, lost, spans, encoding };
            let bytes = [&header.encode()[..], &[9]].concat();
            prop_assert_eq!(super::arcs::Header::decode(&bytes), Some((header, &[9u8][..])));
        }

        #[test]
        fn chunk_header_takes_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..99)) {
            if let Some((header, data)) = Header::decode(&bytes) {
                prop_assert!(header.count as usize <= MAX_WORDS);
                prop_assert_eq!(data.len(), bytes.len() - HEADER);
            }
        }
    }
}
