//! Which files a recording names.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use teeperf_profile::Recording;
use teeperf_profile::chunks::Decoder;
use teeperf_profile::contents::{Body, Map};
use teeperf_profile::escape::Escape;
use teeperf_profile::events::{Events, Item};
use teeperf_profile::model::Profile;
use teeperf_profile::samples::{self, jitted};
use teeperf_symbols::vdso;
use teeperf_wire::body::{map, sample};
use teeperf_wire::word::{self, code};

use crate::error::EditError;

/// Most modules and sources of a recording that are looked for.
const MOST: usize = 1 << 14;

/// What it names.
#[derive(Default)]
pub(super) struct Named {
    /// Files of code by path, with build-ids.
    pub(super) modules: BTreeMap<String, Vec<u8>>,
    /// Paths of sources.
    pub(super) sources: BTreeSet<String>,
    /// Path and build-id of the kernel, if it was sampled.
    pub(super) kernel: Option<(String, Vec<u8>)>,
    /// Processes with code that they made.
    pub(super) jitted: Vec<u32>,
    pub(super) has_samples: bool,
    /// The recording says that it is of this machine and of the system that runs.
    pub(super) is_here: bool,
}

/// Of samples: code of processes that may have some.
#[derive(Default)]
struct Sampled {
    /// Of each process, files of code.
    maps: BTreeMap<u32, BTreeMap<String, Vec<u8>>>,
    /// Processes with code in memory that is no file's.
    jitted: BTreeSet<u32>,
    /// Processes' parents.
    parents: BTreeMap<u32, u32>,
    pids: BTreeSet<u32>,
    kernel: Option<(String, Vec<u8>)>,
    is_in_kernel: bool,
    /// Files that the recording itself has.
    own: BTreeSet<u64>,
}

impl Named {
    /// All that a recording names; of samples what is code of the processes that have some, and the parents that they have it of.
    pub(super) fn of(
        mut recording: Recording<impl Read>,
        with_sources: bool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, EditError> {
        let mut decoder = Decoder::new().map_err(EditError::Memory)?;
        let mut stacks = samples::Decoder::new().map_err(EditError::Memory)?;
        let (mut named, mut sampled) = (Self::default(), Sampled::default());
        let opens = word::escape(code::MODULE, 0);
        let mut told = 0;
        while let Some(packet) = recording.next_packet()? {
            match &packet.body {
                Body::Chunk(header, data) => {
                    let Ok((clock, words)) = decoder.words(header, data) else { continue };
                    if !words.contains(&opens) {
                        continue;
                    }
                    for event in Events::of(header, clock, words) {
                        if let Item::Escape(Escape::Module(module)) = event.item {
                            named.module(&module.path.to_string(), module.build_id.bytes());
                        }
                    }
                }
                Body::Keyframe(keyframe) => {
                    for window in keyframe.windows.iter().take(MOST) {
                        named.module(window.path(), window.build_id().to_vec());
                    }
                }
                Body::Symbols(symbols) if with_sources => {
                    let files = symbols.iter().map(|symbol| symbol.file);
                    files.for_each(|file| named.source(&String::from_utf8_lossy(file)));
                }
                Body::Start(start) => named.is_here = samples::kernel::is_here(start),
                Body::Map(map) => sampled.map(map),
                Body::File(part) if sampled.own.len() < MOST => {
                    sampled.own.insert(part.file);
                }
                Body::Task(task) if task.parent_pid != task.pid => {
                    sampled.parents.insert(task.pid, task.parent_pid);
                }
                Body::Samples(header, data) => {
                    let Ok(found) = stacks.samples(header, data) else { continue };
                    found.for_each(|sample| sampled.sample(&sample));
                }
                _ => {}
            }
            if packet.offset - told >= 1 << 20 {
                told = packet.offset;
                progress(told);
            }
        }
        named.has_samples = !sampled.pids.is_empty();
        named.kernel = sampled.kernel.take().filter(|_| sampled.is_in_kernel);
        for pid in sampled.with_samples() {
            for (path, build_id) in sampled.maps.remove(&pid).unwrap_or_default() {
                named.module(&path, build_id);
            }
            named.jitted.extend(sampled.jitted.take(&pid));
        }
        Ok(named)
    }

    /// The sources of functions that were sampled, which a profile tells.
    pub(super) fn add_sources_of_samples(&mut self, profile: &Profile) {
        for profile in [profile].into_iter().chain(&profile.beside) {
            let files = profile.functions.iter().filter_map(|function| function.file.as_deref());
            files.for_each(|file| self.source(file));
        }
    }

    fn module(&mut self, path: &str, build_id: Vec<u8>) {
        if self.modules.len() < MOST {
            self.modules.insert(path.to_owned(), build_id);
        }
    }

    fn source(&mut self, file: &str) {
        if file.starts_with('/') && self.sources.len() < MOST {
            self.sources.insert(file.to_owned());
        }
    }
}

impl Sampled {
    fn map(&mut self, map: &Map<'_>) {
        let path = || String::from_utf8_lossy(map.path).into_owned();
        match map.mode {
            sample::mode::KERNEL if self.kernel.is_none() => {
                self.kernel = Some((path(), map.build_id.to_vec()));
            }
            sample::mode::USER if is_code(map) && self.is_looked_for(map) => {
                if self.maps.len() >= MOST && !self.maps.contains_key(&map.pid) {
                    return;
                }
                let files = self.maps.entry(map.pid).or_default();
                if files.len() < MOST {
                    files.insert(path(), map.build_id.to_vec());
                }
            }
            sample::mode::USER
                if jitted::is_memory(map.path, map.build_id)
                    && map.protection & map::PROT_EXEC != 0
                    && self.jitted.len() < MOST =>
            {
                self.jitted.insert(map.pid);
            }
            _ => {}
        }
    }

    /// Of a file that the process saw elsewhere, only a build-id tells which one here it is.
    fn is_looked_for(&self, map: &Map<'_>) -> bool {
        map.file == 0 || (!map.build_id.is_empty() && !self.own.contains(&map.file))
    }

    fn sample(&mut self, sample: &sample::Sample<'_>) {
        if self.pids.len() < MOST {
            self.pids.insert(sample.pid);
        }
        self.is_in_kernel |= sample.mode == sample::mode::KERNEL
            || sample.chain.iter().next() == Some(sample::CONTEXT_KERNEL);
    }

    /// Processes that have samples, and those that they were forked from.
    fn with_samples(&self) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        for &pid in &self.pids {
            let mut at = Some(pid);
            while let Some(pid) = at.filter(|&pid| found.insert(pid)) {
                at = self.parents.get(&pid).copied();
            }
        }
        found
    }
}

/// Whether it is of a file's code, or may be.
fn is_code(Map { path, protection, .. }: &Map<'_>) -> bool {
    (*protection == 0 || protection & map::PROT_EXEC != 0)
        && (samples::is_file(Path::new(OsStr::from_bytes(path))) || *path == vdso::VDSO.as_bytes())
}
