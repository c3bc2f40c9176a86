//! Packets, whoever brings them: what replay takes, and `dump` shows. A [`Recording`](crate::Recording) has them as
//! they stand in its bytes; a reader of another format, such as those of `teeperf-interop`, makes them of what its
//! file says. So there is one replay for all that is known call by call.

use teeperf_symbols::Search;

use crate::contents::{Body, Packet};
use crate::error::Error;
use crate::finish::Gathered;
use crate::long_names;
use crate::model::Profile;
use crate::replay::{self, Settings};
use crate::samples::{self, Data};

/// Chunks that are summarised at once. More of them make less work twice, fewer take less
/// memory and share better among workers.
const BATCH_CHUNKS: usize = 128;
/// Call paths of a profile, at most, where [`Options::most_paths`] says nothing else. Each takes
/// some hundred bytes of memory.
pub const MAX_PATHS: usize = 1 << 22;

/// Gives packets one by one. What they must say, and in which order, is that of a recording (`docs/format.md`).
pub trait Packets {
    /// Name of what they come from, for messages.
    fn name(&self) -> &str;

    /// The next packet, or nothing at the end.
    ///
    /// # Errors
    ///
    /// When nothing of it can be read. What is merely damaged is none: it is skipped, and said in a warning.
    fn next_packet(&mut self) -> Result<Option<Packet<'_>>, Error>;

    /// Bytes used up so far.
    fn offset(&self) -> u64;

    /// What was skipped so far, and why. Takes the list.
    fn take_warnings(&mut self) -> Vec<String>;

    /// From here on samples may come as [`Body::SharedSamples`], where they need not be put into packets' form.
    fn share_samples(&mut self) {}
}

impl<P: Packets + ?Sized> Packets for Box<P> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn next_packet(&mut self) -> Result<Option<Packet<'_>>, Error> {
        (**self).next_packet()
    }

    fn offset(&self) -> u64 {
        (**self).offset()
    }

    fn take_warnings(&mut self) -> Vec<String> {
        (**self).take_warnings()
    }

    fn share_samples(&mut self) {
        (**self).share_samples();
    }
}

/// How to replay.
#[derive(Default)]
pub struct Options<'a> {
    /// Threads that work; 0: as many as there are processors.
    pub jobs: usize,
    /// Called now and then with what was done so far.
    pub progress: Option<&'a mut dyn FnMut(Progress)>,
    /// Tell functions apart by where their code stands, and say so in
    /// [`Function::place`](crate::model::Function::place); else those of one name and module are one.
    pub by_place: bool,
    /// Files of images whose symbols the recording may not have. Taken by replay.
    pub search: Search,
    /// Chunks in a batch; 0: what is best. The result does not depend on it.
    pub batch_chunks: usize,
    /// Most call paths, in all threads; 0: [`MAX_PATHS`]. Calls on later ones are counted by
    /// function, below `[beyond limits]`.
    pub most_paths: usize,
    /// Somebody still records it: it has no end yet.
    pub goes_on: bool,
    /// Of samples: functions as they were compiled; what was inlined into them is theirs.
    pub without_inlined: bool,
    /// Of samples: count them by source line, for [`Profile::lines`].
    pub lines: bool,
    /// Time each call, for [`Thread::lengths`](crate::model::Thread::lengths).
    pub lengths: bool,
}

/// What replay has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the recording read.
    pub bytes: u64,
    /// Calls and returns replayed, and samples.
    pub events: u64,
}

/// The profile. What is damaged is left out and said in its health.
///
/// # Errors
///
/// When nothing can be read, or the system has no thread or no memory to work with.
pub fn replay(
    packets: &mut (impl Packets + ?Sized),
    options: &mut Options<'_>,
) -> Result<Profile, Error> {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    let settings = Settings {
        jobs: if options.jobs == 0 { processors() } else { options.jobs },
        batch_chunks: if options.batch_chunks == 0 { BATCH_CHUNKS } else { options.batch_chunks },
        paths: if options.most_paths == 0 { MAX_PATHS } else { options.most_paths },
        timed: options.lengths,
    };
    packets.share_samples();
    let mut gathered = Gathered::default();
    let search = std::mem::take(&mut options.search);
    let mut samples = samples::Driver::new(
        samples::Settings {
            jobs: settings.jobs,
            paths: settings.paths,
            is_inlined: !options.without_inlined,
            by_line: options.lines,
        },
        search.clone(),
    );
    let fed =
        replay::run(settings, |driver| feed(packets, driver, &mut samples, &mut gathered, options));
    let (fed, threads) =
        fed.map_err(|source| Error::Workers { name: packets.name().to_owned(), source })?;
    fed?;
    for warning in packets.take_warnings() {
        gathered.warnings.add(|| warning);
    }
    let mut profile = gathered.finish(threads, samples, options, search);
    long_names::cut(&mut profile, packets.offset());
    Ok(profile)
}

fn feed(
    packets: &mut (impl Packets + ?Sized),
    driver: &mut replay::Driver,
    samples: &mut samples::Driver,
    gathered: &mut Gathered,
    options: &mut Options<'_>,
) -> Result<(), Error> {
    let name = packets.name().to_owned();
    let no_workers = |source| Error::Workers { name: name.clone(), source };
    let mut told = 0;
    while let Some(packet) = packets.next_packet()? {
        gathered.note_cut(&packet);
        match packet.body {
            Body::Chunk(header, data) => {
                gathered.words += u64::from(header.count);
                driver.chunk(packet.offset, header, data);
            }
            Body::Tree(header, data) => driver.tree(packet.offset, &header, data),
            Body::Arcs(header, data) => driver.arcs(packet.offset, &header, data),
            Body::Keyframe(keyframe) => driver.keyframe(packet.offset, &keyframe),
            Body::Filter(filter) if filter.process != 0 => driver.filter(&filter),
            Body::Sampled(sampled) => samples.sampled(*sampled),
            Body::Map(map) => samples.map(&map),
            Body::Task(task) => samples.task(&task),
            Body::File(part) => samples.file(&part),
            Body::Samples(header, data) => {
                let taken = samples.samples(packet.offset, header, Data::Packet(data.to_vec()));
                taken.map_err(no_workers)?;
            }
            Body::SharedSamples(header, shared) => {
                let taken = samples.samples(packet.offset, header, Data::Shared(shared));
                taken.map_err(no_workers)?;
            }
            body => {
                if let Body::Start(start) = &body {
                    driver.start(start);
                    samples.start(start);
                }
                gathered.take(packet.offset, body);
            }
        }
        let bytes = packets.offset();
        if bytes - told >= 1 << 20
            && let Some(progress) = &mut options.progress
        {
            told = bytes;
            progress(Progress { bytes, events: driver.events() + samples.count() });
        }
    }
    if let Some(progress) = &mut options.progress {
        progress(Progress { bytes: packets.offset(), events: driver.events() + samples.count() });
    }
    Ok(())
}
