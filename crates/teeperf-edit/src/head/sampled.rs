//! What a reader of later samples has to know: events, where code is in processes that go on, and what threads are called.

use std::collections::BTreeMap;

use teeperf_profile::contents::{Map, Part, Sampled as Event, Task};
use teeperf_wire::body::{map, sampled, task};
use teeperf_wire::packet::kind;

use crate::output;

/// Most packets that are kept of a process.
const MOST_OF_PROCESS: usize = 1 << 14;
/// Most bytes that are kept of files, as they are stored.
const MOST_OF_FILES: usize = 64 << 20;
/// Most processes that are kept.
const MOST_PROCESSES: usize = 1 << 16;

/// See the module.
#[derive(Default)]
pub(super) struct Sampled {
    /// By number.
    events: BTreeMap<u16, (u64, Vec<u8>)>,
    kernel: Vec<Vec<u8>>,
    processes: BTreeMap<u32, Process>,
    /// Parts of files, by the files' numbers, in their order.
    files: BTreeMap<u64, Vec<Vec<u8>>>,
    /// Bytes of all parts.
    file_bytes: usize,
}

#[derive(Clone, Default)]
struct Process {
    maps: Vec<Vec<u8>>,
    /// Of threads that live, by their ids, where they are told.
    names: BTreeMap<u32, Option<Vec<u8>>>,
}

impl Sampled {
    pub(super) fn event(&mut self, event: &Event, payload: &[u8]) {
        self.events.insert(event.event, (event.zero_ns, payload.to_vec()));
    }

    pub(super) fn map(&mut self, found: &Map<'_>, payload: &[u8]) {
        let maps = match found.pid {
            map::KERNEL => &mut self.kernel,
            pid => match self.process(pid) {
                Some(process) => &mut process.maps,
                None => return,
            },
        };
        if maps.len() < MOST_OF_PROCESS {
            maps.push(payload.to_vec());
        }
    }

    /// Processes that begin later may have code of it too, so files are kept as long as there is
    /// room.
    pub(super) fn file(&mut self, part: &Part<'_>, payload: &[u8]) {
        if self.file_bytes + payload.len() <= MOST_OF_FILES {
            self.file_bytes += payload.len();
            self.files.entry(part.file).or_default().push(payload.to_vec());
        }
    }

    pub(super) fn task(&mut self, found: &Task<'_>, payload: &[u8]) {
        match found.what {
            task::what::FORK => self.fork(found),
            task::what::EXEC => {
                if let Some(process) = self.process(found.pid) {
                    process.maps.clear();
                    process.names = BTreeMap::from([(found.tid, Some(payload.to_vec()))]);
                }
            }
            task::what::NAME => {
                if let Some(process) = self.process(found.pid)
                    && process.names.len() < MOST_OF_PROCESS
                {
                    process.names.insert(found.tid, Some(payload.to_vec()));
                }
            }
            task::what::EXIT => {
                let Some(process) = self.processes.get_mut(&found.pid) else { return };
                process.names.remove(&found.tid);
                // The first thread may end before the others do.
                if process.names.is_empty() {
                    self.processes.remove(&found.pid);
                }
            }
            _ => {}
        }
    }

    /// A process has what its parent had, a thread the name of the one that it came from.
    fn fork(&mut self, found: &Task<'_>) {
        let Some(parent) = self.processes.get(&found.parent_pid) else { return };
        let name = parent.names.get(&found.parent_tid).and_then(Option::as_ref);
        let name = name.map(|name| of_other(name, (task::PID, found.pid), (task::TID, found.tid)));
        let maps = match found.pid == found.parent_pid {
            true => None,
            false => {
                let ids = ((map::PID, found.pid), (map::TID, found.tid));
                Some(parent.maps.iter().map(|map| of_other(map, ids.0, ids.1)).collect())
            }
        };
        let Some(process) = self.process(found.pid) else { return };
        if let Some(maps) = maps {
            process.maps = maps;
            process.names.clear();
        }
        if process.names.len() < MOST_OF_PROCESS {
            process.names.insert(found.tid, name);
        }
    }

    fn process(&mut self, pid: u32) -> Option<&mut Process> {
        if self.processes.len() >= MOST_PROCESSES && !self.processes.contains_key(&pid) {
            return None;
        }
        Some(self.processes.entry(pid).or_default())
    }

    /// The packets, of a recording that begins so many nanoseconds later.
    pub(super) fn packets(&self, later_ns: u64) -> impl Iterator<Item = (u16, Vec<u8>)> {
        let events = self.events.values().map(move |(zero, payload)| {
            let zero = zero.saturating_add(later_ns).to_le_bytes().to_vec();
            let changed = output::changed(payload, |field| match field.tag {
                sampled::ZERO_NS => Some(zero.clone()),
                _ => Some(field.value.to_vec()),
            });
            (kind::SAMPLED, changed.finish())
        });
        let files = self.files.values().flatten().map(|part| (kind::FILE, part.clone()));
        let kernel = self.kernel.iter().map(|map| (kind::MAP, map.clone()));
        let processes = self.processes.values().flat_map(|process| {
            let names = process.names.values().flatten().map(|name| (kind::TASK, name.clone()));
            names.chain(process.maps.iter().map(|map| (kind::MAP, map.clone())))
        });
        events.chain(files).chain(kernel).chain(processes)
    }
}

/// A packet of another process or thread. That it is one of `exec` would take maps away, and says nothing any more.
fn of_other(payload: &[u8], pid: (u16, u32), tid: (u16, u32)) -> Vec<u8> {
    let number = |n: u32| Some(u64::from(n).to_le_bytes().to_vec());
    output::changed(payload, |field| match field.tag {
        tag if tag == pid.0 => number(pid.1),
        tag if tag == tid.0 => number(tid.1),
        _ => Some(field.value.to_vec()),
    })
    .finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use teeperf_profile::contents::{Body, Packet};
    use teeperf_record::writing::Payload;

    fn take(state: &mut Sampled, packet_kind: u16, payload: Payload) {
        let payload = payload.finish();
        match Packet::of(0, 0, packet_kind, &payload).body {
            Body::Sampled(event) => state.event(&event, &payload),
            Body::Map(map) => state.map(&map, &payload),
            Body::Task(task) => state.task(&task, &payload),
            other => panic!("{other:?}"),
        }
    }

    fn code(pid: u32, path: &str) -> Payload {
        Payload::default().number(map::PID, pid.into()).bytes(map::PATH, path.as_bytes())
    }

    fn told(what: u64, own: (u32, u32), from: (u32, u32), name: &str) -> Payload {
        Payload::default()
            .number(task::WHAT, what)
            .number(task::PID, own.0.into())
            .number(task::TID, own.1.into())
            .number(task::PARENT_PID, from.0.into())
            .number(task::PARENT_TID, from.1.into())
            .bytes(task::NAME, name.as_bytes())
    }

    /// Events with their zeroes; code by process; names by thread.
    type Known = (Vec<u64>, Vec<(u32, String)>, Vec<(u32, u32, String)>);

    fn known(state: &Sampled, later_ns: u64) -> Known {
        let mut known = Known::default();
        for (packet_kind, payload) in state.packets(later_ns) {
            match Packet::of(0, 0, packet_kind, &payload).body {
                Body::Sampled(event) => known.0.push(event.zero_ns),
                Body::Map(map) => known.1.push((map.pid, String::from_utf8_lossy(map.path).into())),
                Body::Task(task) => {
                    let name = String::from_utf8_lossy(task.name).into();
                    known.2.push((task.pid, task.tid, name));
                }
                other => panic!("{other:?}"),
            }
        }
        known
    }

    #[test]
    fn what_goes_on_is_known_and_what_ended_is_not() {
        let mut state = Sampled::default();
        let event = Payload::default().number(sampled::EVENT, 1).number(sampled::ZERO_NS, 50);
        take(&mut state, kind::SAMPLED, event);
        take(&mut state, kind::MAP, code(map::KERNEL, "kernel"));
        take(&mut state, kind::TASK, told(task::what::EXEC, (1, 1), (0, 0), "main"));
        take(&mut state, kind::MAP, code(1, "a"));
        take(&mut state, kind::TASK, told(task::what::FORK, (2, 2), (1, 1), ""));
        take(&mut state, kind::TASK, told(task::what::FORK, (1, 3), (1, 1), ""));
        take(&mut state, kind::MAP, code(1, "b"));
        let a = |pid, path: &str| (pid, path.to_owned());
        let n = |pid, tid, name: &str| (pid, tid, name.to_owned());
        let kernel = a(u32::MAX, "kernel");
        let (zeroes, maps, names) = known(&state, 7);
        assert_eq!(zeroes, [57]);
        assert_eq!(maps, [kernel.clone(), a(1, "a"), a(1, "b"), a(2, "a")]);
        assert_eq!(names, [n(1, 1, "main"), n(1, 3, "main"), n(2, 2, "main")]);
        take(&mut state, kind::TASK, told(task::what::EXEC, (2, 2), (0, 0), "other"));
        take(&mut state, kind::TASK, told(task::what::EXIT, (1, 3), (0, 0), ""));
        let (_, maps, names) = known(&state, 0);
        assert_eq!(maps, [kernel.clone(), a(1, "a"), a(1, "b")]);
        assert_eq!(names, [n(1, 1, "main"), n(2, 2, "other")]);
        take(&mut state, kind::TASK, told(task::what::FORK, (1, 4), (1, 1), ""));
        take(&mut state, kind::TASK, told(task::what::EXIT, (1, 1), (0, 0), ""));
        assert_eq!(known(&state, 0).1.len(), 3);
        take(&mut state, kind::TASK, told(task::what::EXIT, (1, 4), (0, 0), ""));
        assert_eq!(known(&state, 0).1, [kernel]);
    }
}
