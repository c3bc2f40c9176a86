//! Address spaces: which file's code stands where in each process, and what threads are called, at one moment.
//!
//! A state is shared with workers that have samples of it still to do, and copied where it changes meanwhile.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use teeperf_wire::body::{map, sample, task};

use super::jitted;
use super::modules::{Kind, ModuleId, Modules};
use crate::contents::{Map, Task};

/// Most maps of a process that are kept. Linux allows 65,530 unless it is told otherwise.
const MAX_MAPS: usize = 1 << 17;
/// Most processes, and most threads, that are known at once.
const MAX_TASKS: usize = 1 << 20;

/// Parts that processes are kept in: of a state that workers still hold, a change copies one.
const PARTS: usize = 64;

/// All of them.
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
    /// Sorted by where they begin; none lies over another.
    maps: Vec<Mapped>,
    /// Names of threads.
    names: FxHashMap<u32, Arc<str>>,
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

impl Default for Spaces {
    fn default() -> Self {
        let processes = std::array::from_fn(|_| Arc::default());
        Self { processes, count: 0, kernel: Arc::default(), generations: 0 }
    }
}

impl Spaces {
    /// Code came into a space, or something else in the place of code.
    pub(crate) fn map(&mut self, map: &Map<'_>, modules: &Modules) {
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
            true => Kind::Kernel,
            false if is_jitted => Kind::jitted(map.pid, map.address),
            false => Kind::File,
        };
        let Some(module) = modules.id(map.path, map.build_id, kind) else { return };
        let offset = match kind {
            Kind::File => map.offset,
            // The kernel tells its code by address, wherever in its file it is.
            Kind::Kernel => map.address,
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

    /// A process or thread began, changed or ended. What ended is kept: the last samples of it come behind its end.
    pub(crate) fn task(&mut self, task: &Task<'_>) {
        match task.what {
            task::what::FORK if task.pid != task.parent_pid => {
                // Of a parent that nobody told of nothing is known, and nothing any more of who had the id before.
                let parent = self.part(task.parent_pid).get(&task.parent_pid).cloned();
                let parent = parent.unwrap_or_default();
                self.generations = self.generations.wrapping_add(1);
                let names = parent.names.get(&task.parent_tid).cloned();
                let space = Space {
                    generation: self.generations,
                    maps: parent.maps.clone(),
                    names: names.map(|name| (task.tid, name)).into_iter().collect(),
                };
                self.insert(task.pid, space);
            }
            task::what::FORK => {
                let Some(space) = self.space(task.pid) else { return };
                if let Some(name) = space.names.get(&task.parent_tid).cloned()
                    && space.names.len() < MAX_TASKS
                {
                    space.names.insert(task.tid, name);
                }
            }
            task::what::NAME | task::what::EXEC => {
                let Some(space) = self.space(task.pid) else { return };
                if task.what == task::what::EXEC {
                    space.maps.clear();
                }
                if space.names.len() < MAX_TASKS {
                    space.names.insert(task.tid, String::from_utf8_lossy(task.name).into());
                }
            }
            _ => {}
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
        let behind = self.maps.partition_point(|mapped| mapped.begin <= address);
        self.maps[..behind].last().filter(|mapped| mapped.has(address))
    }

    /// Name of a thread.
    pub(crate) fn name(&self, tid: u32) -> Option<&Arc<str>> {
        self.names.get(&tid)
    }

    /// Puts a map in the place of what was there, as mmap(2) with `MAP_FIXED` does.
    fn put(&mut self, new: Mapped) {
        if self.maps.len() + 2 <= MAX_MAPS {
            self.replace(new.begin, new.end, Some(new));
        }
    }

    /// Whether anything is between two addresses.
    fn has_some(&self, begin: u64, end: u64) -> bool {
        let first = self.maps.partition_point(|mapped| mapped.end <= begin);
        self.maps.get(first).is_some_and(|mapped| mapped.begin < end)
    }

    /// Takes away what is between two addresses.
    fn take_away(&mut self, begin: u64, end: u64) {
        self.replace(begin, end, None);
    }

    fn replace(&mut self, begin: u64, end: u64, new: Option<Mapped>) {
        let first = self.maps.partition_point(|mapped| mapped.end <= begin);
        let behind = self.maps.partition_point(|mapped| mapped.begin < end).max(first);
        let over = &self.maps[first..behind];
        let before = over.first().filter(|old| old.begin < begin);
        let after = over.last().filter(|old| old.end > end);
        let before = before.map(|old| old.cut(old.begin, begin));
        let after = after.map(|old| old.cut(end, old.end));
        let parts = before.into_iter().chain(new).chain(after);
        self.maps.splice(first..behind, parts);
    }
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
        let mut spaces = Spaces::default();
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
        spaces.map(&map(1, HIGH, b"//anon"), &modules);
        spaces.map(&map(1, HIGH + 0x1000, b"//anon"), &modules);
        spaces.map(&map(1, HIGH + (8 << 30), b"//anon"), &modules);
        spaces.map(&map(1, 0x1000, b"[heap]"), &modules);
        let fork = Task { what: task::what::FORK, pid: 2, parent_pid: 1, ..Task::default() };
        spaces.task(&fork);
        spaces.map(&map(2, HIGH + 0x2000, b"//anon"), &modules);
        let of = |pid, address| {
            let mapped = spaces.of(pid).unwrap().at(address).unwrap();
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
        let mut spaces = Spaces::default();
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
        spaces.map(&map(1, 100), &modules);
        spaces.task(&task(task::what::NAME, 1, 1, b"one"));
        spaces.task(&task(task::what::FORK, 1, 5, b""));
        spaces.task(&task(task::what::FORK, 2, 2, b""));
        let child = spaces.of(2).unwrap();
        assert!(child.at(105).is_some() && child.at(110).is_none() && child.at(99).is_none());
        assert_eq!((child.name(2).map(|n| &**n), child.name(1)), (Some("one"), None));
        assert_eq!(spaces.of(1).unwrap().name(5).map(|n| &**n), Some("one"));
        assert_ne!(child.generation, spaces.of(1).unwrap().generation);
        spaces.map(&Map { protection: 1, ..map(1, 104) }, &modules);
        spaces.map(&Map { protection: 1, ..map(9, 104) }, &modules);
        let parent = spaces.of(1).unwrap();
        assert!(parent.at(103).is_some() && parent.at(104).is_none() && spaces.of(9).is_none());
        spaces.map(&Map { protection: 5, ..map(1, 100) }, &modules);
        assert!(spaces.of(1).unwrap().at(105).is_some());
        spaces.map(&Map { mode: sample::mode::GUEST_USER, ..map(1, 500) }, &modules);
        assert!(spaces.of(1).unwrap().at(505).is_none());
        let of_nobody = Task { parent_pid: 77, ..task(task::what::FORK, 2, 2, b"") };
        spaces.task(&of_nobody);
        assert!(spaces.of(2).unwrap().at(105).is_none());
        spaces.task(&task(task::what::FORK, 2, 2, b""));
        spaces.task(&task(task::what::EXEC, 2, 2, b"two"));
        let child = spaces.of(2).unwrap();
        assert!(child.at(105).is_none() && spaces.of(1).unwrap().at(105).is_some());
        assert_eq!(child.name(2).map(|n| &**n), Some("two"));
    }
}
