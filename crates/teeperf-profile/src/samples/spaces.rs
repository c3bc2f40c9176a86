//! Address spaces: which file's code stands where in each process, and what threads are called, at one moment.
//!
//! A state is shared with workers that have samples of it still to do, and copied where it changes meanwhile. A process that was forked
//! shares its parent's space until one of both changes it. What ended is kept for a while, since its last samples come behind its
//! end, and then given back.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use teeperf_wire::body::{map, sample, task};

use super::jitted;
use super::modules::{Kind, ModuleId, Modules};
use super::sorted::{Placed, Sorted};
use crate::contents::{Map, Task};

/// Most maps of a process that are kept. Linux allows 65,530 unless it is told otherwise.
const MAX_MAPS: usize = 1 << 17;
/// Most processes, and most threads, that are known at once.
const MAX_TASKS: usize = 1 << 20;
/// Threads that end after one before that is given back.
const KEPT_ENDS: usize = 4096;

/// Parts that processes are kept in: of a state that workers still hold, a change copies one.
const PARTS: usize = 64;

/// Name of the process without an id: what processors do that have nothing to do. perf calls it so.
const IDLE: &str = "swapper";

/// The state as a recording tells it, step by step.
#[derive(Debug)]
pub(crate) struct History {
    spaces: Arc<Spaces>,
    /// Threads that ended, the earliest first.
    ended: VecDeque<Ended>,
    /// How many of them there have been: each has the number that it was of them.
    ends: u64,
    /// So many that ended are kept.
    kept: usize,
}

/// A thread that ended.
#[derive(Clone, Copy, Debug)]
struct Ended {
    pid: u32,
    tid: u32,
    generation: u32,
    number: u64,
}

/// All spaces.
#[derive(Clone, Debug)]
pub(crate) struct Spaces {
    processes: [Arc<FxHashMap<u32, Arc<Space>>>; PARTS],
    /// How many processes there are.
    count: usize,
    kernel: Arc<Space>,
    /// Processes that came so far: ids come again.
    generations: u32,
}

/// That of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Space {
    /// Which process this is, of all that had its id.
    pub(crate) generation: u32,
    /// When it was forked, where that is known.
    born: Option<u64>,
    /// None lies over another.
    maps: Sorted<Mapped>,
    threads: Sorted<Thread>,
}

/// A stretch of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    begin: u64,
    end: u64,
    /// Where in the module's file `begin` is.
    offset: u64,
    pub(crate) module: ModuleId,
}

/// A thread of a process.
#[derive(Clone, Debug)]
struct Thread {
    tid: u32,
    name: Option<Arc<str>>,
    /// Its number among those that ended; nothing while it lives.
    end: Option<u64>,
}

impl Placed for Mapped {
    fn place(&self) -> u64 {
        self.begin
    }
}

impl Placed for Thread {
    fn place(&self) -> u64 {
        self.tid.into()
    }
}

impl Mapped {
    /// Whether an address is in it.
    pub(crate) fn has(&self, address: u64) -> bool {
        (self.begin..self.end).contains(&address)
    }

    /// Where in the module's file an address is.
    pub(crate) fn offset(&self, address: u64) -> u64 {
        self.offset.wrapping_add(address.wrapping_sub(self.begin))
    }

    fn cut(self, begin: u64, end: u64) -> Self {
        Self { begin, end, offset: self.offset(begin), ..self }
    }
}

impl Default for History {
    fn default() -> Self {
        Self { spaces: Arc::default(), ended: VecDeque::new(), ends: 0, kept: KEPT_ENDS }
    }
}

impl History {
    /// What holds now.
    pub(crate) fn now(&self) -> &Arc<Spaces> {
        &self.spaces
    }

    /// Code came into a space, or something else in the place of code.
    pub(crate) fn map(&mut self, map: &Map<'_>, modules: &Modules) {
        Arc::make_mut(&mut self.spaces).map(map, modules);
    }

    /// A process or thread began, changed or ended.
    pub(crate) fn task(&mut self, task: &Task<'_>) {
        if task.what != task::what::EXIT {
            return Arc::make_mut(&mut self.spaces).task(task);
        }
        let number = self.ends;
        let Some(generation) = Arc::make_mut(&mut self.spaces).end(task, number) else { return };
        self.ends += 1;
        self.ended.push_back(Ended { pid: task.pid, tid: task.tid, generation, number });
        if self.ended.len() > self.kept
            && let Some(first) = self.ended.pop_front()
        {
            Arc::make_mut(&mut self.spaces).give_back(first);
        }
    }
}

impl Default for Spaces {
    fn default() -> Self {
        let processes = std::array::from_fn(|_| Arc::default());
        Self { processes, count: 0, kernel: Arc::default(), generations: 0 }
    }
}

impl Spaces {
    fn map(&mut self, map: &Map<'_>, modules: &Modules) {
        let Some(end) = map.address.checked_add(map.length).filter(|&end| end > map.address) else {
            return;
        };
        if matches!(map.mode, sample::mode::GUEST_KERNEL | sample::mode::GUEST_USER) {
            // Its addresses are another machine's.
            return;
        }
        let of_kernel = map.mode == sample::mode::KERNEL;
        // Of data nobody asks what it is. Where nothing is said of that, it may be code.
        if !of_kernel && map.protection != 0 && map.protection & map::PROT_EXEC == 0 {
            if self.of(map.pid).is_some_and(|space| space.has_some(map.address, end))
                && let Some(space) = self.space(map.pid)
            {
                space.take_away(map.address, end);
            }
            return;
        }
        let is_jitted = map.pid != map::KERNEL && jitted::is_memory(map.path, map.build_id);
        let kind = match of_kernel {
            true => Kind::kernel(map),
            false if is_jitted => Kind::jitted(map.pid, map.address),
            false if map.file != 0 => Kind::Inside(map.file),
            false => Kind::File,
        };
        let Some(module) = modules.id(map.path, map.build_id, kind) else { return };
        let offset = match kind {
            Kind::File | Kind::Inside(_) => map.offset,
            // The kernel tells its code by address, wherever in its file it is.
            Kind::Kernel { .. } => map.address,
            // So does who made it.
            Kind::Jitted { base, .. } => map.address - base,
        };
        let mapped = Mapped { begin: map.address, end, offset, module };
        if of_kernel || map.pid == map::KERNEL {
            Arc::make_mut(&mut self.kernel).put(mapped);
        } else if let Some(space) = self.space(map.pid) {
            space.put(mapped);
        }
    }

    /// A process or thread began or changed.
    fn task(&mut self, task: &Task<'_>) {
        match task.what {
            task::what::FORK if task.pid != task.parent_pid => {
                // Of a parent that nobody told of nothing is known, and nothing any more of the process that had the id before.
                let parent = self.part(task.parent_pid).get(&task.parent_pid).cloned();
                let parent = parent.unwrap_or_default();
                self.generations = self.generations.wrapping_add(1);
                let mut space = Space {
                    generation: self.generations,
                    born: task.time_ns,
                    maps: parent.maps.clone(),
                    threads: Sorted::default(),
                };
                space.thread(task.tid, parent.name(task.parent_tid).cloned());
                self.insert(task.pid, space);
            }
            task::what::FORK => {
                let Some(space) = self.space(task.pid) else { return };
                let name = space.name(task.parent_tid).cloned();
                space.thread(task.tid, name);
            }
            task::what::NAME | task::what::EXEC => {
                let Some(space) = self.space(task.pid) else { return };
                if task.what == task::what::EXEC {
                    space.maps = Sorted::default();
                }
                let name = String::from_utf8_lossy(task.name);
                space.thread(task.tid, Some(name.into()));
            }
            _ => {}
        }
    }

    /// A thread of a process ends, as the one of this number; tells which process that is. What is told too late, and is older than
    /// the process, was of the one before.
    fn end(&mut self, task: &Task<'_>, number: u64) -> Option<u32> {
        let born = self.of(task.pid)?.born;
        if born.zip(task.time_ns).is_some_and(|(born, end)| end < born) {
            return None;
        }
        let space = self.space(task.pid)?;
        let name = space.name(task.tid).cloned();
        space.thread(task.tid, name);
        let tid = u64::from(task.tid);
        space.threads.edit(tid, tid + 1, |threads| {
            let own = threads.iter_mut().find(|thread| thread.tid == task.tid);
            own.into_iter().for_each(|thread| thread.end = Some(number));
        });
        Some(space.generation)
    }

    /// Forgets a thread that ended, if it is still that one, and its process with the last of them.
    fn give_back(&mut self, ended: Ended) {
        let tid = u64::from(ended.tid);
        let is_it = |space: &Space| {
            let end = space.threads.get(tid).and_then(|thread| thread.end);
            space.generation == ended.generation && end == Some(ended.number)
        };
        let Some(space) = self.of(ended.pid).filter(|space| is_it(space)) else { return };
        if space.threads.len() > 1 {
            let Some(space) = self.space(ended.pid) else { return };
            space.threads.edit(tid, tid + 1, |threads| {
                threads.retain(|thread| thread.tid != ended.tid);
            });
        } else {
            self.part_mut(ended.pid).remove(&ended.pid);
            self.count -= 1;
        }
    }

    /// The space of a process.
    pub(crate) fn of(&self, pid: u32) -> Option<&Space> {
        self.part(pid).get(&pid).map(|space| &**space)
    }

    /// Where the kernel's code stands.
    pub(crate) fn kernel(&self) -> &Space {
        &self.kernel
    }

    /// The space of a process, which has one from now on; nothing where there are too many.
    fn space(&mut self, pid: u32) -> Option<&mut Space> {
        if !self.part(pid).contains_key(&pid) {
            self.generations = self.generations.wrapping_add(1);
            self.insert(pid, Space { generation: self.generations, ..Space::default() });
        }
        self.part_mut(pid).get_mut(&pid).map(Arc::make_mut)
    }

    fn insert(&mut self, pid: u32, space: Space) {
        let is_new = !self.part(pid).contains_key(&pid);
        if is_new && self.count >= MAX_TASKS {
            return;
        }
        self.count += usize::from(is_new);
        self.part_mut(pid).insert(pid, Arc::new(space));
    }

    fn part(&self, pid: u32) -> &FxHashMap<u32, Arc<Space>> {
        &self.processes[pid as usize % PARTS]
    }

    fn part_mut(&mut self, pid: u32) -> &mut FxHashMap<u32, Arc<Space>> {
        Arc::make_mut(&mut self.processes[pid as usize % PARTS])
    }
}

impl Space {
    /// What an address is of.
    pub(crate) fn at(&self, address: u64) -> Option<&Mapped> {
        self.maps.last_up_to(address).filter(|mapped| mapped.has(address))
    }

    /// Name of a thread.
    pub(crate) fn name(&self, tid: u32) -> Option<&Arc<str>> {
        self.threads.get(tid.into())?.name.as_ref()
    }

    /// There is a thread, and it lives.
    fn thread(&mut self, tid: u32, name: Option<Arc<str>>) {
        let place = u64::from(tid);
        let is_new = self.threads.get(place).is_none();
        if is_new && self.threads.len() >= MAX_TASKS {
            return;
        }
        self.threads.edit(place, place + 1, |threads| {
            let at = threads.partition_point(|thread| thread.tid < tid);
            let thread = Thread { tid, name, end: None };
            match is_new {
                true => threads.insert(at, thread),
                false => threads[at] = thread,
            }
        });
    }

    /// Puts a map in the place of what was there, as mmap(2) with `MAP_FIXED` does.
    fn put(&mut self, new: Mapped) {
        if self.maps.len() + 2 <= MAX_MAPS {
            self.replace(new.begin, new.end, Some(new));
        }
    }

    /// Whether anything is between two addresses.
    fn has_some(&self, begin: u64, end: u64) -> bool {
        let before = self.maps.last_up_to(begin).is_some_and(|mapped| mapped.end > begin);
        before || self.maps.first_behind(begin).is_some_and(|mapped| mapped.begin < end)
    }

    /// Takes away what is between two addresses.
    fn take_away(&mut self, begin: u64, end: u64) {
        self.replace(begin, end, None);
    }

    fn replace(&mut self, begin: u64, end: u64, new: Option<Mapped>) {
        self.maps.edit(begin, end, |maps| {
            let first = maps.partition_point(|mapped| mapped.end <= begin);
            let behind = maps.partition_point(|mapped| mapped.begin < end).max(first);
            let over = &maps[first..behind];
            let before = over.first().filter(|old| old.begin < begin);
            let after = over.last().filter(|old| old.end > end);
            let before = before.map(|old| old.cut(old.begin, begin));
            let after = after.map(|old| old.cut(end, old.end));
            let parts = before.into_iter().chain(new).chain(after);
            maps.splice(first..behind, parts);
        });
    }
}

/// What a thread is called of which no name was told.
pub(crate) fn unnamed(pid: u32, tid: u32) -> Option<&'static str> {
    (pid == 0 && tid == 0).then_some(IDLE)
}

#[cfg(test)]
mod tests {
    use super::super::modules::WITHIN;
    use super::*;
    use proptest::prelude::*;

    fn mapped(begin: u64, end: u64, offset: u64) -> Mapped {
        Mapped { begin, end, offset, module: ModuleId(offset as u32) }
    }

    proptest! {
        #[test]
        fn the_last_map_counts(list in proptest::collection::vec((0u64..100, 1u64..40, any::<bool>()), 1..12)) {
            let mut space = Space::default();
            let mut slow = [None; 150];
            for (at, &(begin, size, is_code)) in list.iter().enumerate() {
                let has_some = slow[begin as usize..][..size as usize].iter().any(Option::is_some);
                prop_assert_eq!(space.has_some(begin, begin + size), has_some);
                if is_code {
                    space.put(mapped(begin, begin + size, 1000 * at as u64));
                } else {
                    space.take_away(begin, begin + size);
                }
                for address in begin..begin + size {
                    slow[address as usize] = is_code.then_some((at, address - begin));
                }
            }
            for (address, known) in slow.iter().enumerate() {
                let found = space.at(address as u64);
                let offset = found.map(|mapped| mapped.offset(address as u64));
                prop_assert_eq!(offset, known.map(|(at, far)| 1000 * at as u64 + far));
                let module = found.map(|mapped| mapped.module.0);
                prop_assert_eq!(module, known.map(|(at, _)| 1000 * at as u32));
            }
        }
    }

    #[test]
    fn code_that_was_made_is_told_of_by_its_maker() {
        let modules = Modules::new(teeperf_symbols::Search::default(), true);
        let mut history = History::default();
        let map = |pid, address, path| Map {
            pid,
            address,
            length: 0x1000,
            offset: address,
            path,
            mode: sample::mode::USER,
            protection: map::PROT_EXEC,
            ..Map::default()
        };
        const HIGH: u64 = 0x7f12_3456_7000;
        history.map(&map(1, HIGH, b"//anon"), &modules);
        history.map(&map(1, HIGH + 0x1000, b"//anon"), &modules);
        history.map(&map(1, HIGH + (8 << 30), b"//anon"), &modules);
        history.map(&map(1, 0x1000, b"[heap]"), &modules);
        let fork = Task { what: task::what::FORK, pid: 2, parent_pid: 1, ..Task::default() };
        history.task(&fork);
        history.map(&map(2, HIGH + 0x2000, b"//anon"), &modules);
        let of = |pid, address| {
            let mapped = history.now().of(pid).unwrap().at(address).unwrap();
            (mapped.module, modules.kind(mapped.module).unwrap(), mapped.offset(address))
        };
        let (module, kind, offset) = of(1, HIGH + 0x10);
        let Kind::Jitted { pid: 1, base } = kind else { panic!("{kind:?}") };
        assert_eq!(base + offset, HIGH + 0x10);
        // A location tells addresses of a module apart, and these are of one.
        let (other, _, offset) = of(1, HIGH + 0x1010);
        assert!(module == other && offset <= WITHIN && base + offset == HIGH + 0x1010);
        assert!(of(1, HIGH + (8 << 30)).0 != module && of(1, 0x1000).0 != module);
        // A child has its parent's code, by the parent's names, and tells of its own.
        assert_eq!(of(2, HIGH + 0x10), of(1, HIGH + 0x10));
        assert_eq!(of(2, HIGH + 0x2000).1, Kind::Jitted { pid: 2, base });
        let mut view = std::sync::Arc::new(modules).view();
        assert_eq!(view.module(module).unwrap().0.name, "anon");
    }

    #[test]
    fn a_fork_has_what_its_parent_had_and_exec_nothing() {
        let modules = Modules::new(teeperf_symbols::Search::default(), true);
        let mut history = History::default();
        let map =
            |pid, address| Map { pid, address, length: 10, path: b"/a", mode: 2, ..Map::default() };
        let task = |what, pid, tid, name| Task {
            what,
            pid,
            tid,
            parent_pid: 1,
            parent_tid: 1,
            name,
            ..Task::default()
        };
        history.map(&map(1, 100), &modules);
        history.task(&task(task::what::NAME, 1, 1, b"one"));
        history.task(&task(task::what::FORK, 1, 5, b""));
        history.task(&task(task::what::FORK, 2, 2, b""));
        let child = history.now().of(2).unwrap();
        assert!(child.at(105).is_some() && child.at(110).is_none() && child.at(99).is_none());
        assert_eq!((child.name(2).map(|n| &**n), child.name(1)), (Some("one"), None));
        assert_eq!(history.now().of(1).unwrap().name(5).map(|n| &**n), Some("one"));
        assert_ne!(child.generation, history.now().of(1).unwrap().generation);
        history.map(&Map { protection: 1, ..map(1, 104) }, &modules);
        history.map(&Map { protection: 1, ..map(9, 104) }, &modules);
        let parent = history.now().of(1).unwrap();
        assert!(
            parent.at(103).is_some() && parent.at(104).is_none() && history.now().of(9).is_none()
        );
        history.map(&Map { protection: 5, ..map(1, 100) }, &modules);
        assert!(history.now().of(1).unwrap().at(105).is_some());
        history.map(&Map { mode: sample::mode::GUEST_USER, ..map(1, 500) }, &modules);
        assert!(history.now().of(1).unwrap().at(505).is_none());
        let of_nobody = Task { parent_pid: 77, ..task(task::what::FORK, 2, 2, b"") };
        history.task(&of_nobody);
        assert!(history.now().of(2).unwrap().at(105).is_none());
        history.task(&task(task::what::FORK, 2, 2, b""));
        history.task(&task(task::what::EXEC, 2, 2, b"two"));
        let child = history.now().of(2).unwrap();
        assert!(child.at(105).is_none() && history.now().of(1).unwrap().at(105).is_some());
        assert_eq!(child.name(2).map(|n| &**n), Some("two"));
    }

    /// The same without sharing and without sorted lists: what was told of each process, step by step.
    #[derive(Clone, Default)]
    struct Slow {
        born: u64,
        maps: Vec<(u64, u64, bool, usize)>,
        /// Names, and which of all ends is each one's.
        threads: std::collections::BTreeMap<u32, (Option<String>, Option<usize>)>,
    }

    impl Slow {
        fn at(&self, address: u64) -> Option<(usize, u64)> {
            let last = self.maps.iter().rev().find(|map| (map.0..map.1).contains(&address))?;
            last.2.then_some((last.3, address - last.0))
        }
    }

    /// A step: what, process, thread, parent, address, length.
    type Step = (u8, u32, u32, u32, u64, u64);

    fn step() -> impl Strategy<Value = Step> {
        (0u8..9, 1u32..6, 1u32..6, 1u32..6, 0u64..60, 1u64..20)
    }

    proptest! {
        /// Guards: forks share, ends give back, ids come again, ends are missing, come twice, or late, and all is as if every
        /// process had its own.
        #[test]
        fn forks_and_ends_are_as_a_slow_model_has_them(
            steps in proptest::collection::vec(step(), 1..120),
            kept in prop_oneof![Just(0usize), Just(1), Just(3), Just(1000)],
        ) {
            let modules = Modules::new(teeperf_symbols::Search::default(), true);
            let mut history = History { kept, ..History::default() };
            let mut slow = std::collections::BTreeMap::<u32, Slow>::new();
            let mut ends: Vec<(u32, u32, usize)> = Vec::new();
            let mut given_back = 0;
            let paths: Vec<String> = (0..steps.len()).map(|number| format!("/{number}")).collect();
            for (number, &(what, pid, tid, other, address, length)) in steps.iter().enumerate() {
                let time = 100 + number as u64;
                // A late one stands here and is from earlier.
                let late = what == 8;
                let told = if late { time.saturating_sub(address) } else { time };
                let task = |what, name| Task {
                    what,
                    pid,
                    tid,
                    parent_pid: other,
                    parent_tid: tid,
                    time_ns: Some(told),
                    name,
                };
                let name = format!("n{number}");
                match what {
                    0..=2 => {
                        let is_code = what < 2;
                        let protection = if is_code { map::PROT_EXEC } else { 1 };
                        let path = paths[number].as_bytes();
                        history.map(&Map { pid, address, length, path, protection, mode: 2, ..Map::default() }, &modules);
                        if is_code || slow.contains_key(&pid) {
                            slow.entry(pid).or_default().maps.push((address, address + length, is_code, number));
                        }
                    }
                    3 | 4 if what == 3 || pid != other => {
                        let parent_pid = if what == 3 { pid } else { other };
                        history.task(&Task { parent_pid, parent_tid: 1, ..task(task::what::FORK, b"") });
                        let parent = slow.get(&parent_pid).cloned().unwrap_or_default();
                        let name = parent.threads.get(&1).and_then(|(name, _)| name.clone());
                        if what == 4 {
                            let new = Slow { born: time, maps: parent.maps, threads: Default::default() };
                            slow.insert(pid, new);
                        }
                        slow.entry(pid).or_default().threads.insert(tid, (name, None));
                    }
                    5 | 6 => {
                        let exec = what == 6;
                        let what = if exec { task::what::EXEC } else { task::what::NAME };
                        history.task(&task(what, name.as_bytes()));
                        let space = slow.entry(pid).or_default();
                        if exec {
                            space.maps.clear();
                        }
                        space.threads.insert(tid, (Some(name), None));
                    }
                    7 | 8 => {
                        history.task(&task(task::what::EXIT, b""));
                        let Some(space) = slow.get_mut(&pid) else { continue };
                        if told < space.born {
                            continue;
                        }
                        space.threads.entry(tid).or_default().1 = Some(ends.len());
                        ends.push((pid, tid, ends.len()));
                        if ends.len() - given_back > kept {
                            let (pid, tid, end) = ends[given_back];
                            given_back += 1;
                            if let Some(space) = slow.get_mut(&pid)
                                && space.threads.get(&tid).is_some_and(|thread| thread.1 == Some(end))
                            {
                                space.threads.remove(&tid);
                                if space.threads.is_empty() {
                                    slow.remove(&pid);
                                }
                            }
                        }
                    }
                    _ => {}
                }
                let now = history.now();
                prop_assert_eq!(now.count, slow.len());
                for pid in 1..6 {
                    let (fast, slow) = (now.of(pid), slow.get(&pid));
                    prop_assert_eq!(fast.is_some(), slow.is_some());
                    let (Some(fast), Some(slow)) = (fast, slow) else { continue };
                    for address in 0..80 {
                        let found = fast.at(address).map(|mapped| {
                            let path = modules.file(mapped.module).unwrap().0;
                            let number: usize = std::str::from_utf8(&path[1..]).unwrap().parse().unwrap();
                            (number, mapped.offset(address))
                        });
                        prop_assert_eq!(found, slow.at(address), "{} at {}", pid, address);
                    }
                    for tid in 1..6 {
                        let wanted = slow.threads.get(&tid).and_then(|(name, _)| name.as_deref());
                        prop_assert_eq!(fast.name(tid).map(|name| &**name), wanted);
                    }
                }
            }
        }
    }

    #[test]
    fn what_ended_is_given_back_and_what_was_forked_is_shared() {
        let modules = Modules::new(teeperf_symbols::Search::default(), true);
        let mut history = History::default();
        for number in 0..300u64 {
            let map = Map {
                pid: 1,
                address: 100 * number,
                length: 50,
                path: b"/a",
                mode: 2,
                ..Map::default()
            };
            history.map(&map, &modules);
        }
        let task = |what, pid| Task {
            what,
            pid,
            tid: pid,
            parent_pid: pid - 1,
            parent_tid: pid - 1,
            ..Task::default()
        };
        for pid in 2..50_000 {
            // A chain: each is the child of the one before.
            history.task(&task(task::what::FORK, pid));
            let map = Map { pid, address: 7, length: 1, path: b"/b", mode: 2, ..Map::default() };
            history.map(&map, &modules);
            assert!(history.now().of(pid).unwrap().at(20_010).is_some());
            history.task(&task(task::what::EXIT, pid));
            // The last samples of it come behind its end.
            assert!(history.now().of(pid).unwrap().at(7).is_some());
        }
        assert_eq!(history.now().count, 1 + KEPT_ENDS);
        assert_eq!(history.ended.len(), KEPT_ENDS);
        let of = |pid| history.now().of(pid).map(|space| space.maps.len());
        assert_eq!((of(2), of(49_999)), (None, Some(302)));
    }

    #[test]
    fn idle_processors_are_called_as_perf_calls_them() {
        assert_eq!((unnamed(0, 0), unnamed(0, 7), unnamed(7, 0)), (Some("swapper"), None, None));
    }
}
