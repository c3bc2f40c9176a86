//! Workers: each takes packets of samples, follows stacks, and sums call paths of its own.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use teeperf_wire::body::sample::{self, Header, Outer, Sample, mode};

use super::chain::{self, EventTraits};
use super::decode::Decoder;
use super::driver::Settings;
use super::follow::{Code, follow};
use super::functions::Functions;
use super::module::Named;
use super::modules::{Location, Modules, View};
use super::paths::{Of, Paths};
use super::spaces::{self, Space, Spaces};
use super::unwind::{End, Stacks, Top};
use crate::contents::SharedSamples;
use crate::names::UNKNOWN;
use crate::warnings::Warnings;

/// Locations whose functions are remembered, at most; then all are forgotten.
const MAX_KNOWN: usize = 1 << 20;

/// Places that samples are counted at, at most: what comes at others is at none.
const MAX_PLACES: usize = 1 << 20;

/// Samples of a packet, with what held when they were taken.
pub(crate) struct Batch {
    /// Of all packets of samples, from the recording's first on.
    pub(crate) number: u64,
    /// Where the packet is in the stream.
    pub(crate) offset: u64,
    pub(crate) header: Header,
    pub(crate) data: Data,
    pub(crate) spaces: Arc<Spaces>,
    /// By event.
    pub(crate) traits: Arc<FxHashMap<u16, EventTraits>>,
}

/// The samples.
pub(crate) enum Data {
    /// A packet's.
    Packet(Vec<u8>),
    /// Where their reader has them.
    Shared(Arc<dyn SharedSamples>),
}

/// What a worker found.
pub(crate) struct Found {
    pub(crate) paths: Paths,
    /// Names of threads, each with the number of the latest batch that it is of.
    pub(crate) names: FxHashMap<Of, (u64, Arc<str>)>,
    pub(crate) warnings: Warnings,
    /// Samples of events that no packet told of before.
    pub(crate) untold: u64,
    /// Where that is asked for: samples and their periods, by event and place.
    pub(crate) places: Option<FxHashMap<(u16, Location), (u64, u64)>>,
}

/// One of them.
pub(crate) struct Worker {
    decoder: Decoder,
    stacks: Stacks,
    finder: Finder,
    /// Innermost first.
    path: Vec<Location>,
    found: Found,
}

/// Finds modules, and functions of locations.
struct Finder {
    view: View,
    functions: Arc<Functions>,
    /// Where in `listed` those of a location are, the outermost first.
    known: FxHashMap<Location, (u32, u32)>,
    listed: Vec<u32>,
    unknown: u32,
}

impl Worker {
    pub(crate) fn new(
        modules: &Arc<Modules>,
        functions: &Arc<Functions>,
        settings: Settings,
    ) -> std::io::Result<Self> {
        let unknown = functions.number(None, "", Named::plain(UNKNOWN));
        Ok(Self {
            decoder: Decoder::new()?,
            stacks: Stacks::new(),
            finder: Finder {
                view: modules.view(),
                functions: functions.clone(),
                known: FxHashMap::default(),
                listed: Vec::new(),
                unknown,
            },
            path: Vec::new(),
            found: Found {
                paths: Paths::new(settings.paths),
                names: FxHashMap::default(),
                warnings: Warnings::default(),
                untold: 0,
                places: settings.by_line.then(FxHashMap::default),
            },
        })
    }

    /// Adds the samples of a packet.
    pub(crate) fn batch(&mut self, batch: &Batch) {
        let Batch { offset, header, data, traits, .. } = batch;
        let Self { decoder, stacks, finder, path, found } = self;
        let mut read = 0u32;
        let mut take = |sample: &Sample<'_>| {
            read += 1;
            let event = traits.get(&sample.event).copied();
            found.untold += u64::from(event.is_none());
            one(sample, event.unwrap_or_default(), batch, stacks, finder, path, found);
        };
        let is_whole = match data {
            Data::Shared(samples) => {
                samples.each(&mut take);
                true
            }
            Data::Packet(data) => match decoder.samples(header, data) {
                Ok(mut samples) => {
                    samples.by_ref().for_each(|sample| take(&sample));
                    samples.rest.is_empty()
                }
                Err(error) => {
                    found.warnings.add(|| {
                        format!(
                            "{} samples at offset {offset} cannot be read: {error}",
                            header.samples
                        )
                    });
                    return;
                }
            },
        };
        if read != header.samples || !is_whole {
            found.warnings.add(|| {
                format!("samples at offset {offset}: {read} of {} could be read", header.samples)
            });
        }
    }

    pub(crate) fn finish(self) -> Found {
        self.found
    }
}

fn one(
    sample: &Sample<'_>,
    event: EventTraits,
    Batch { number, spaces, .. }: &Batch,
    stacks: &mut Stacks,
    finder: &mut Finder,
    path: &mut Vec<Location>,
    found: &mut Found,
) {
    let space = spaces.of(sample.pid);
    path.clear();
    let mut end = locations(sample, event, (spaces.kernel(), space), stacks, finder, path);
    if sample.outer.is_there() {
        end = Some(outer(sample, end, event.machine, space, stacks, finder, path));
    }
    let generation = space.map_or(0, |space| space.generation);
    let of = Of { event: sample.event, pid: sample.pid, generation, tid: sample.tid };
    let functions = |at: Location, each: &mut dyn FnMut(u32)| finder.functions(at).for_each(each);
    if let (Some(places), Some(&at)) = (&mut found.places, path.first()) {
        let place = (sample.event, at);
        if places.len() < MAX_PLACES || places.contains_key(&place) {
            let (samples, weight) = places.entry(place).or_default();
            *samples += 1;
            *weight = weight.saturating_add(sample.period);
        }
    }
    let thread = found.paths.add(of, path.iter().rev().copied(), functions, sample.period);
    if let Some(end) = end {
        let length = sample.stack.len().max(sample.outer.stack.len());
        thread.ended(end, (length as u64) < event.stack);
    }
    if sample.time_ns != sample::NO_TIME {
        let (first, last) = thread.span.unwrap_or((sample.time_ns, sample.time_ns));
        thread.span = Some((first.min(sample.time_ns), last.max(sample.time_ns)));
    }
    match space.and_then(|space| space.name(sample.tid)) {
        Some(name) => {
            let known = found.names.entry(of).or_insert_with(|| (*number, name.clone()));
            if !Arc::ptr_eq(&known.1, name) {
                known.1 = name.clone();
            }
            known.0 = *number;
        }
        None => {
            if let Some(name) = spaces::unnamed(sample.pid, sample.tid) {
                found.names.entry(of).or_insert_with(|| (*number, name.into()));
            }
        }
    }
}

/// What the sample says of who called whom, the innermost first. Tells how that ended, if it says any.
fn locations(
    sample: &Sample<'_>,
    event: EventTraits,
    (kernel, space): (&Space, Option<&Space>),
    stacks: &mut Stacks,
    finder: &mut Finder,
    path: &mut Vec<Location>,
) -> Option<End> {
    if matches!(sample.mode, mode::HYPERVISOR | mode::GUEST_KERNEL | mode::GUEST_USER) {
        path.push(Location::UNKNOWN);
        return None;
    }
    let mut users = 0;
    chain::steps(sample, event, |in_mode, instruction| {
        let space = match in_mode {
            mode::KERNEL => Some(kernel),
            mode::USER | mode::UNKNOWN => {
                users += 1;
                space
            }
            // Others have addresses of their own.
            _ => None,
        };
        path.push(finder.location(space, instruction, stacks).unwrap_or(Location::UNKNOWN));
    });
    match users {
        0 => {}
        1 => return Some(End::Alone),
        _ => return Some(End::Chain),
    }
    if path.is_empty() && sample.mode == mode::KERNEL {
        let at = finder.location(Some(kernel), sample.ip, stacks);
        path.push(at.unwrap_or(Location::UNKNOWN));
    }
    if sample.mask == 0 {
        if path.is_empty() {
            path.push(finder.location(space, sample.ip, stacks).unwrap_or(Location::UNKNOWN));
        }
        return None;
    }
    let before = path.len();
    let code = Code { machine: event.machine, space, view: &mut finder.view };
    let end = follow(sample, Top::Interrupted, code, stacks, path, |location, _| location);
    if path.len() == before {
        // Of the instruction pointer alone more is known than of nothing, where it is the program's.
        let ip = if sample.mode == mode::KERNEL {
            None
        } else {
            finder.location(space, sample.ip, stacks)
        };
        path.push(ip.unwrap_or(Location::UNKNOWN));
    }
    // Of a sample that has no stack, as with `--call-graph none`, or while a program is executed, none was cut short.
    (!sample.stack.is_empty()).then_some(end)
}

/// Who called what was entered from another stack, behind what is there. Tells how both together ended.
fn outer(
    sample: &Sample<'_>,
    inner: Option<End>,
    machine: u16,
    space: Option<&Space>,
    stacks: &mut Stacks,
    finder: &mut Finder,
    path: &mut Vec<Location>,
) -> End {
    // A chain that leads to where its file is entered has all of it.
    let is_entered = path.last().is_some_and(|&at| finder.view.is_entry(at));
    let Outer { mask, registers, stack } = sample.outer;
    let sample = Sample { mask, registers, stack, ..*sample };
    let code = Code { machine, space, view: &mut finder.view };
    let end = follow(&sample, Top::Called, code, stacks, path, |location, _| location);
    match inner {
        Some(inner @ (End::Cut | End::Beyond)) => inner,
        Some(inner @ (End::Chain | End::Alone)) if end == End::Whole && !is_entered => inner,
        _ => end,
    }
}

impl Finder {
    /// Where an address of a space is, in all modules.
    fn location(
        &mut self,
        space: Option<&Space>,
        address: u64,
        stacks: &mut Stacks,
    ) -> Option<Location> {
        let mapped = space?.at(address)?;
        let (module, is_new) = self.view.module(mapped.module)?;
        if is_new && let Some(tables) = module.tables(mapped.module) {
            stacks.add(tables);
        }
        let relative = module.relative(mapped.offset(address));
        Some(Location::of(mapped.module, relative))
    }

    /// Numbers of the functions at a location, the outermost first.
    fn functions(&mut self, location: Location) -> impl Iterator<Item = u32> {
        let (begin, end) = match self.known.get(&location) {
            Some(&range) => range,
            None => self.look_up(location),
        };
        self.listed[begin as usize..end as usize].iter().copied()
    }

    fn look_up(&mut self, location: Location) -> (u32, u32) {
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
            self.listed.clear();
        }
        let begin = self.listed.len() as u32;
        match location.parts().and_then(|(id, at)| Some((id, at, self.view.module(id)?.0))) {
            Some((id, relative, module)) => {
                let (of, functions) = module.functions(relative);
                for named in functions.into_iter().rev() {
                    self.listed.push(self.functions.number(Some(id), of, named));
                }
            }
            None => self.listed.push(self.unknown),
        }
        let range = (begin, self.listed.len() as u32);
        self.known.insert(location, range);
        range
    }
}
