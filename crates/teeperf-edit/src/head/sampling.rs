//! What has to be known of samples where a later part of a recording begins: of what they are, the kernel's code, and of each process
//! that lives its code and the names of its threads.

use std::collections::BTreeMap;

use teeperf_profile::contents::{Body, Packet, Task};
use teeperf_wire::body::{map, sampled, task};
use teeperf_wire::packet::kind;

use crate::output;

/// Most packets of one process that are kept: programs have hundreds.
const MOST: usize = 8192;
/// Most processes, the latest.
const MOST_PROCESSES: usize = 16384;

#[derive(Default)]
pub(super) struct Sampling {
    sampled: Vec<Vec<u8>>,
    kernel: Vec<Vec<u8>>,
    /// By process id.
    processes: BTreeMap<u32, Process>,
}

#[derive(Default)]
struct Process {
    /// Since when, in the order of packets.
    number: u64,
    maps: Vec<Vec<u8>>,
    /// What was told of its threads that live, by their ids: how each began, and its name.
    threads: BTreeMap<u32, [Option<Vec<u8>>; 2]>,
}

impl Sampling {
    pub(super) fn packet(&mut self, packet: &Packet<'_>) {
        let payload = || packet.payload.to_vec();
        match &packet.body {
            Body::Sampled(_) => self.sampled.push(payload()),
            Body::Map(found) if found.pid == map::KERNEL => keep(&mut self.kernel, payload()),
            Body::Map(found) => keep(&mut self.process(found.pid).maps, payload()),
            Body::Task(task) => self.task(task, payload()),
            _ => {}
        }
    }

    fn task(&mut self, task: &Task<'_>, payload: Vec<u8>) {
        match task.what {
            task::what::FORK if task.pid != task.parent_pid => {
                // Its parent may be another program by the time that this is read.
                let parents = self.processes.get(&task.parent_pid);
                let maps = parents.map(|parent| parent.maps.iter().map(|map| of(map, task.pid)));
                let maps = maps.map(Iterator::collect).unwrap_or_default();
                self.processes.remove(&task.pid);
                let child = self.process(task.pid);
                child.maps = maps;
                child.thread(task.tid)[0] = Some(payload);
            }
            task::what::FORK => self.process(task.pid).thread(task.tid)[0] = Some(payload),
            task::what::NAME => self.process(task.pid).thread(task.tid)[1] = Some(payload),
            task::what::EXEC => {
                self.processes.remove(&task.pid);
                self.process(task.pid).thread(task.tid)[0] = Some(payload);
            }
            task::what::EXIT => {
                if let Some(process) = self.processes.get_mut(&task.pid) {
                    process.threads.remove(&task.tid);
                    if process.threads.is_empty() {
                        self.processes.remove(&task.pid);
                    }
                }
            }
            _ => {}
        }
    }

    fn process(&mut self, pid: u32) -> &mut Process {
        if !self.processes.contains_key(&pid) {
            if self.processes.len() >= MOST_PROCESSES {
                let oldest = self.processes.iter().min_by_key(|(_, process)| process.number);
                let oldest = oldest.map(|(&pid, _)| pid);
                oldest.map(|pid| self.processes.remove(&pid));
            }
            let last = self.processes.values().map(|process| process.number).max();
            let number = last.map_or(0, |last| last + 1);
            self.processes.insert(pid, Process { number, ..Process::default() });
        }
        self.processes.entry(pid).or_default()
    }

    /// Packets, to stand at a beginning that is so much later than the recording's.
    pub(super) fn packets(&self, later_ns: u64) -> Vec<(u16, Vec<u8>)> {
        let at_beginning = |payload: &Vec<u8>| {
            let changed = output::changed(payload, |field| match (field.tag, field.number()) {
                (sampled::ZERO_NS, Some(zero)) => {
                    Some(zero.saturating_add(later_ns).to_le_bytes().to_vec())
                }
                _ => Some(field.value.to_vec()),
            });
            (kind::SAMPLED, changed.finish())
        };
        let mut out: Vec<_> = self.sampled.iter().map(at_beginning).collect();
        out.extend(self.kernel.iter().map(|map| (kind::MAP, map.clone())));
        let mut processes: Vec<_> = self.processes.values().collect();
        processes.sort_by_key(|process| process.number);
        for Process { maps, threads, .. } in processes {
            // To execute a program makes maps void, so that comes first.
            let told = threads.values().flatten().flatten();
            out.extend(told.map(|task| (kind::TASK, task.clone())));
            out.extend(maps.iter().map(|map| (kind::MAP, map.clone())));
        }
        out
    }
}

impl Process {
    fn thread(&mut self, tid: u32) -> &mut [Option<Vec<u8>>; 2] {
        if self.threads.len() >= MOST {
            self.threads.pop_first();
        }
        self.threads.entry(tid).or_default()
    }
}

fn keep(maps: &mut Vec<Vec<u8>>, payload: Vec<u8>) {
    if maps.len() < MOST {
        maps.push(payload);
    }
}

/// A map of another process.
fn of(map: &[u8], pid: u32) -> Vec<u8> {
    let changed = output::changed(map, |field| match field.tag {
        map::PID => Some(u64::from(pid).to_le_bytes().to_vec()),
        _ => Some(field.value.to_vec()),
    });
    changed.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use teeperf_record::writing::Payload;

    fn map_of(pid: u64, path: &str) -> (u16, Vec<u8>) {
        let payload = Payload::default().number(map::PID, pid).bytes(map::PATH, path.as_bytes());
        (kind::MAP, payload.finish())
    }

    fn task_of(what: u64, [pid, tid, parent]: [u64; 3]) -> (u16, Vec<u8>) {
        let payload = Payload::default().number(task::WHAT, what).number(task::PID, pid);
        let payload = payload.number(task::TID, tid).number(task::PARENT_PID, parent);
        (kind::TASK, payload.finish())
    }

    fn known(packets: &[(u16, Vec<u8>)]) -> Vec<(u16, Vec<u8>)> {
        let mut sampling = Sampling::default();
        for (at, (kind, payload)) in packets.iter().enumerate() {
            sampling.packet(&Packet::of(0, at as u32, *kind, payload));
        }
        sampling.packets(0)
    }

    #[test]
    fn of_processes_that_live_their_latest_code_is_known() {
        use task::what::{EXEC, EXIT, FORK};
        let packets = [
            map_of(map::KERNEL.into(), "kernel"),
            task_of(EXEC, [1, 1, 0]),
            map_of(1, "shell"),
            task_of(FORK, [2, 2, 1]),
            task_of(FORK, [3, 3, 1]),
            task_of(EXEC, [2, 2, 0]),
            map_of(2, "program"),
            task_of(FORK, [2, 5, 2]),
            task_of(EXIT, [2, 2, 1]),
            task_of(EXIT, [1, 1, 0]),
        ];
        let expected = [
            packets[0].clone(),
            packets[4].clone(),
            map_of(3, "shell"),
            packets[7].clone(),
            packets[6].clone(),
        ];
        assert_eq!(known(&packets), expected);
    }

    #[test]
    fn the_samples_clock_goes_with_the_recordings() {
        let payload = Payload::default().number(sampled::EVENT, 1).number(sampled::ZERO_NS, 500);
        let mut sampling = Sampling::default();
        sampling.packet(&Packet::of(0, 0, kind::SAMPLED, &payload.finish()));
        let later = Payload::default().number(sampled::EVENT, 1).number(sampled::ZERO_NS, 700);
        assert_eq!(sampling.packets(200), [(kind::SAMPLED, later.finish())]);
    }
}
