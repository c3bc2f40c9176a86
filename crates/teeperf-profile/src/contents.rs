//! What packets say, taken apart: every field by its name. Text is made UTF-8. Fields in front
//! of one that is cut off count; what does not parse is [`Body::Malformed`], never a panic.

use std::fmt::Debug;
use std::sync::Arc;

use teeperf_wire::body::sample::Sample;
use teeperf_wire::body::{self, arcs, chunk, sample, tree};
use teeperf_wire::fields::{self, Field};
use teeperf_wire::packet::kind;

use crate::keyframes::Keyframe;

mod sampling;

pub use sampling::{Map, Part, Sampled, Task};

/// A packet with its contents.
#[derive(Clone, Debug)]
pub struct Packet<'a> {
    /// Where it begins in the stream.
    pub offset: u64,
    /// Its type.
    pub kind: u16,
    /// Its number.
    pub sequence: u32,
    /// Bytes of payload.
    pub length: u32,
    /// From this byte of the payload on it cannot be read; what stands before is in `body`.
    pub cut_at: Option<usize>,
    /// As it stands.
    pub payload: &'a [u8],
    /// What it says.
    pub body: Body<'a>,
}

impl<'a> Packet<'a> {
    /// Of this payload, which is taken apart. `offset` is where it stands.
    pub fn of(offset: u64, sequence: u32, kind: u16, payload: &'a [u8]) -> Self {
        let (body, cut_at) = decode(kind, payload);
        let length = payload.len().try_into().unwrap_or(u32::MAX);
        Self { offset, kind, sequence, length, cut_at, payload, body }
    }
}

/// Contents of a packet.
#[derive(Clone, Debug)]
pub enum Body<'a> {
    /// First packet: the run.
    Start(Box<Start>),
    /// A process attached.
    Process(Process),
    /// Words of a thread; see [`crate::chunks`].
    Chunk(chunk::Header, &'a [u8]),
    /// What a thread did, summed; see [`crate::trees`].
    Tree(tree::Header, &'a [u8]),
    /// A thread's calls without paths; [`crate::arcs`] decodes them.
    Arcs(arcs::Header, &'a [u8]),
    /// Symbols of a module.
    Symbols(Symbols<'a>),
    /// Name of a thread.
    Thread(Thread),
    /// A process ended.
    ProcessEnd(ProcessEnd),
    /// Something the user should know.
    Notice(Notice),
    /// The recording was closed in order.
    End(End),
    /// Events lost of which no chunk speaks.
    Loss(Loss),
    /// What replay is to know of a thread; see [`crate::keyframes`].
    Keyframe(Box<Keyframe>),
    /// Which functions are recorded.
    Filter(Filter<'a>),
    /// An event that was sampled.
    Sampled(Box<Sampled>),
    /// Samples of any events; [`crate::samples`] decodes them.
    Samples(sample::Header, &'a [u8]),
    /// Samples of any events that stay where their reader has them; only where
    /// [`Packets::share_samples`](crate::Packets::share_samples) was called.
    SharedSamples(sample::Header, Arc<dyn SharedSamples>),
    /// Code of a process that is sampled.
    Map(Box<Map<'a>>),
    /// A process or thread that is sampled began, changed or ended.
    Task(Task<'a>),
    /// A part of a file whose code was sampled.
    File(Part<'a>),
    /// A type that this reader does not know.
    Unknown(u16),
    /// A chunk or tree too short for its header.
    Malformed,
}

/// Samples that nobody copies: who works on them takes them from where they were read.
pub trait SharedSamples: Debug + Send + Sync {
    /// Gives them one by one.
    fn each(&self, take: &mut dyn FnMut(&Sample<'_>));
}

/// [`teeperf_wire::body::start`]. Numbers that are missing are 0, texts empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Start {
    /// Major and minor number, if it says so in the four bytes that this takes.
    pub version: Option<(u16, u16)>,
    pub writer: String,
    pub clock: u64,
    pub hz: u64,
    pub period: u64,
    pub clock_reason: String,
    pub clock_start: u64,
    pub wall_ns: u64,
    pub arguments: Vec<String>,
    pub host: String,
    pub system: String,
    pub machine: String,
    pub processor: String,
    pub processors: u64,
    pub on_full: u64,
    pub directory: String,
    pub ordered: u64,
    /// Of the counter that times chosen functions beside the tick.
    pub counter_hz: u64,
    pub counter_start: u64,
}

/// [`teeperf_wire::body::process`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Process {
    pub id: u32,
    pub pid: u32,
    pub parent_pid: u32,
    pub executable: String,
    pub arguments: Vec<String>,
    pub time: u64,
    pub exec_of: u32,
}

/// [`teeperf_wire::body::process_end`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ProcessEnd {
    pub id: u32,
    pub time: u64,
    pub exit_status: Option<i64>,
    pub signal: Option<i64>,
}

/// [`teeperf_wire::body::thread`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Thread {
    pub process: u32,
    pub serial: u32,
    pub tid: u32,
    pub name: Option<String>,
}

/// [`teeperf_wire::body::notice`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Notice {
    pub level: u64,
    pub text: String,
    pub process: u32,
    /// Processes and libraries with hooks that are not in the recording.
    pub unrecorded: u64,
}

/// [`teeperf_wire::body::loss`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Loss {
    pub process: u32,
    pub events: u64,
}

/// [`teeperf_wire::body::filter`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter<'a> {
    /// Its number.
    pub number: u32,
    /// What was asked for.
    pub rules: Vec<String>,
    /// The process that this is about; 0: about none.
    pub process: u32,
    /// First site of the window.
    pub first_site: u32,
    /// Number of its sites.
    pub sites: u32,
    /// Whether sites pass that are not listed, and those that are do not; or the other way round.
    pub others_pass: bool,
    lists: Vec<&'a [u8]>,
}

impl Filter<'_> {
    /// The sites that are listed.
    pub fn listed(&self) -> impl Iterator<Item = u32> {
        let all = self.lists.iter().flat_map(|list| list.as_chunks::<4>().0);
        all.map(|&site| u32::from_le_bytes(site))
    }
}

/// [`teeperf_wire::body::end`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct End {
    pub time: u64,
    pub words: u64,
    pub exit_status: Option<i64>,
    pub signal: Option<i64>,
    pub reason: String,
    pub recorder_cpu_ns: u64,
}

/// [`teeperf_wire::body::symbols`].
#[derive(Clone, Debug)]
pub struct Symbols<'a> {
    /// Number of the process.
    pub process: u32,
    /// First site of the window.
    pub first_site: u32,
    /// Address in the module's file of what its window is told from, if it is.
    pub anchor: Option<u64>,
    payload: &'a [u8],
}

/// One symbol. Its bytes are as the linker and the compiler wrote them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Site of its first byte.
    pub site: u32,
    /// Size in bytes.
    pub size: u32,
    /// Line, 0 unknown.
    pub line: u32,
    /// Mangled name.
    pub name: &'a [u8],
    /// Source file, may be empty.
    pub file: &'a [u8],
}

impl<'a> Symbols<'a> {
    /// Of a packet's payload, a row of fields.
    pub fn decode(payload: &'a [u8]) -> Self {
        symbols(fields::read(payload).map_while(Result::ok), payload)
    }

    /// The symbols; those cut short are left out.
    pub fn iter(&self) -> impl Iterator<Item = Symbol<'a>> + use<'a> {
        fields::read(self.payload)
            .map_while(Result::ok)
            .filter(|field| field.tag == body::symbols::SYMBOL)
            .filter_map(|field| Symbol::decode(field.value))
    }
}

impl<'a> Symbol<'a> {
    fn decode(value: &'a [u8]) -> Option<Self> {
        let (site, rest) = value.split_first_chunk()?;
        let (size, rest) = rest.split_first_chunk()?;
        let (line, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (name, file) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
        Some(Self {
            site: u32::from_le_bytes(*site),
            size: u32::from_le_bytes(*size),
            line: u32::from_le_bytes(*line),
            name,
            file,
        })
    }
}

/// Takes a payload apart, and tells from which byte on it cannot be read, if it cannot.
pub(crate) fn decode(packet_kind: u16, payload: &[u8]) -> (Body<'_>, Option<usize>) {
    let mut cut_at = None;
    let fields = fields::read(payload)
        .map_while(|field| field.map_err(|fields::CutOff { at }| cut_at = Some(at)).ok());
    let body = match packet_kind {
        kind::START => Body::Start(Box::new(start(fields))),
        kind::PROCESS => Body::Process(process(fields)),
        kind::CHUNK => {
            return match chunk::Header::decode(payload) {
                Some((header, data)) => (Body::Chunk(header, data), None),
                None => (Body::Malformed, Some(0)),
            };
        }
        kind::TREE => {
            return match tree::Header::decode(payload) {
                Some((header, data)) => (Body::Tree(header, data), None),
                None => (Body::Malformed, Some(0)),
            };
        }
        kind::ARCS => {
            return match arcs::Header::decode(payload) {
                Some((header, data)) => (Body::Arcs(header, data), None),
                None => (Body::Malformed, Some(0)),
            };
        }
        kind::SYMBOLS => Body::Symbols(symbols(fields, payload)),
        kind::THREAD => Body::Thread(thread(fields)),
        kind::PROCESS_END => Body::ProcessEnd(process_end(fields)),
        kind::NOTICE => Body::Notice(notice(fields)),
        kind::END => Body::End(end(fields)),
        kind::LOSS => Body::Loss(loss(fields)),
        kind::KEYFRAME => Body::Keyframe(Box::new(Keyframe::read(fields))),
        kind::FILTER => Body::Filter(filter(fields)),
        kind::SAMPLED => Body::Sampled(Box::new(Sampled::read(fields))),
        kind::SAMPLES => {
            return match sample::Header::decode(payload) {
                Some((header, data)) => (Body::Samples(header, data), None),
                None => (Body::Malformed, Some(0)),
            };
        }
        kind::MAP => Body::Map(Box::new(Map::read(fields))),
        kind::TASK => Body::Task(Task::read(fields)),
        kind::FILE => Body::File(Part::read(fields)),
        _ => return (Body::Unknown(packet_kind), None),
    };
    (body, cut_at)
}

fn text(field: &Field<'_>) -> String {
    String::from_utf8_lossy(field.value).into_owned()
}

fn number(field: &Field<'_>) -> u64 {
    field.number().unwrap_or(0)
}

/// Numbers of 32 bits; what is larger is no number this recording can have meant.
fn number32(field: &Field<'_>) -> u32 {
    u32::try_from(number(field)).unwrap_or(0)
}

fn signed(field: &Field<'_>) -> Option<i64> {
    field.number().map(|n| n as i64)
}

fn start<'a>(fields: impl Iterator<Item = Field<'a>>) -> Start {
    use body::start as tag;
    let mut out = Start::default();
    for field in fields {
        match field.tag {
            tag::VERSION => out.version = version(field.value),
            tag::WRITER => out.writer = text(&field),
            tag::CLOCK => out.clock = number(&field),
            tag::HZ => out.hz = number(&field),
            tag::PERIOD => out.period = number(&field),
            tag::CLOCK_REASON => out.clock_reason = text(&field),
            tag::CLOCK_START => out.clock_start = number(&field),
            tag::WALL_NS => out.wall_ns = number(&field),
            tag::ARGUMENT => out.arguments.push(text(&field)),
            tag::HOST => out.host = text(&field),
            tag::SYSTEM => out.system = text(&field),
            tag::MACHINE => out.machine = text(&field),
            tag::PROCESSOR => out.processor = text(&field),
            tag::PROCESSORS => out.processors = number(&field),
            tag::ON_FULL => out.on_full = number(&field),
            tag::DIRECTORY => out.directory = text(&field),
            tag::ORDERED => out.ordered = number(&field),
            tag::COUNTER_HZ => out.counter_hz = number(&field),
            tag::COUNTER_START => out.counter_start = number(&field),
            _ => {}
        }
    }
    out
}

fn version(value: &[u8]) -> Option<(u16, u16)> {
    let &[a, b, c, d] = value else { return None };
    Some((u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])))
}

fn process<'a>(fields: impl Iterator<Item = Field<'a>>) -> Process {
    use body::process as tag;
    let mut out = Process::default();
    for field in fields {
        match field.tag {
            tag::ID => out.id = number32(&field),
            tag::PID => out.pid = number32(&field),
            tag::PARENT_PID => out.parent_pid = number32(&field),
            tag::EXECUTABLE => out.executable = text(&field),
            tag::ARGUMENT => out.arguments.push(text(&field)),
            tag::TIME => out.time = number(&field),
            tag::EXEC_OF => out.exec_of = number32(&field),
            _ => {}
        }
    }
    out
}

fn process_end<'a>(fields: impl Iterator<Item = Field<'a>>) -> ProcessEnd {
    use body::process_end as tag;
    let mut out = ProcessEnd::default();
    for field in fields {
        match field.tag {
            tag::ID => out.id = number32(&field),
            tag::TIME => out.time = number(&field),
            tag::EXIT_STATUS => out.exit_status = signed(&field),
            tag::SIGNAL => out.signal = signed(&field),
            _ => {}
        }
    }
    out
}

fn thread<'a>(fields: impl Iterator<Item = Field<'a>>) -> Thread {
    use body::thread as tag;
    let mut out = Thread::default();
    for field in fields {
        match field.tag {
            tag::PROCESS => out.process = number32(&field),
            tag::SERIAL => out.serial = number32(&field),
            tag::TID => out.tid = number32(&field),
            tag::NAME => out.name = Some(text(&field)),
            _ => {}
        }
    }
    out
}

fn notice<'a>(fields: impl Iterator<Item = Field<'a>>) -> Notice {
    use body::notice as tag;
    let mut out = Notice::default();
    for field in fields {
        match field.tag {
            tag::LEVEL => out.level = number(&field),
            tag::TEXT => out.text = text(&field),
            tag::PROCESS => out.process = number32(&field),
            tag::UNRECORDED => out.unrecorded = number(&field),
            _ => {}
        }
    }
    out
}

fn loss<'a>(fields: impl Iterator<Item = Field<'a>>) -> Loss {
    use body::loss as tag;
    let mut out = Loss::default();
    for field in fields {
        match field.tag {
            tag::PROCESS => out.process = number32(&field),
            tag::EVENTS => out.events = number(&field),
            _ => {}
        }
    }
    out
}

fn filter<'a>(fields: impl Iterator<Item = Field<'a>>) -> Filter<'a> {
    use body::filter as tag;
    let mut out = Filter::default();
    for field in fields {
        match field.tag {
            tag::NUMBER => out.number = number32(&field),
            tag::RULE => out.rules.push(text(&field)),
            tag::PROCESS => out.process = number32(&field),
            tag::FIRST_SITE => out.first_site = number32(&field),
            tag::SITES => out.sites = number32(&field),
            tag::OTHERS_PASS => out.others_pass = number(&field) == 1,
            tag::LIST => out.lists.push(field.value),
            _ => {}
        }
    }
    out
}

fn end<'a>(fields: impl Iterator<Item = Field<'a>>) -> End {
    use body::end as tag;
    let mut out = End::default();
    for field in fields {
        match field.tag {
            tag::TIME => out.time = number(&field),
            tag::WORDS => out.words = number(&field),
            tag::EXIT_STATUS => out.exit_status = signed(&field),
            tag::SIGNAL => out.signal = signed(&field),
            tag::REASON => out.reason = text(&field),
            tag::RECORDER_CPU_NS => out.recorder_cpu_ns = number(&field),
            _ => {}
        }
    }
    out
}

fn symbols<'a>(fields: impl Iterator<Item = Field<'a>>, payload: &'a [u8]) -> Symbols<'a> {
    use body::symbols as tag;
    let mut out = Symbols { process: 0, first_site: 0, anchor: None, payload };
    for field in fields {
        match field.tag {
            tag::PROCESS => out.process = number32(&field),
            tag::FIRST_SITE => out.first_site = number32(&field),
            tag::ANCHOR => out.anchor = field.number(),
            _ => {}
        }
    }
    out
}
