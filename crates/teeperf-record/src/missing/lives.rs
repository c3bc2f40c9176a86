//! Programs of the recorder's descendants, from their beginning to their end, as the kernel tells of them.

use crate::sample::{Map, Record};
use std::collections::HashMap;

/// Those that run.
#[derive(Debug, Default)]
pub(super) struct Lives(HashMap<u32, Life>);

/// A process.
#[derive(Clone, Debug, Default)]
struct Life {
    /// When it executed its program; nothing: the program is that of the process it was forked from.
    began: Option<u64>,
    /// Path of the first file with hooks whose code it mapped.
    hooked: Option<Vec<u8>>,
    /// Whether it has mapped its program, and nobody could look at that.
    has_mapped: bool,
    is_out_of_sight: bool,
    /// Its program is a recorder, or was started by one.
    is_anothers: bool,
    /// When its first thread ended. Another thread may go on and execute a program.
    ended: Option<u64>,
}

/// A program that has ended, which had hooks or which nobody could look at. Times are by `CLOCK_MONOTONIC`, in nanoseconds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) pid: u32,
    pub(super) began: u64,
    pub(super) ended: u64,
    /// The first file with hooks; nothing: its own file was out of sight.
    pub(super) hooked: Option<Vec<u8>>,
}

/// A process that has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Which ran this program.
    Program(Program),
    /// Which executed nothing: its program is that of the process it was forked from.
    Child(u32),
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Hooked,
    Recorder,
    Other,
    /// It is gone, or in a place that the recorder does not see any more.
    OutOfSight,
}

impl Lives {
    /// Of processes that this one starts from now on.
    pub(super) fn of(recorder: u32) -> Self {
        Self([(recorder, Life::default())].into())
    }

    /// Takes what the kernel told at a time. Gives a program that ended then, if it had hooks. `content` says what
    /// a mapped file is.
    pub(super) fn take(
        &mut self,
        time: u64,
        record: Record<'_>,
        content: &mut dyn FnMut(&Map<'_>) -> Content,
    ) -> Option<Program> {
        match record {
            Record::Forked(kin) if kin.pid != kin.parent_pid => {
                let ended = self.forget(kin.pid);
                if let Some(parent) = self.0.get(&kin.parent_pid) {
                    let is_anothers = parent.is_anothers;
                    self.0.insert(kin.pid, Life { is_anothers, ..Life::default() });
                }
                ended
            }
            Record::Named { pid, is_exec: true, .. } => {
                let life = self.0.get_mut(&pid)?;
                let new =
                    Life { began: Some(time), is_anothers: life.is_anothers, ..Life::default() };
                std::mem::replace(life, new).program(pid, time)
            }
            Record::Map(map) if map.path.starts_with(b"/") => {
                let life = self.0.get_mut(&map.pid)?;
                // The kernel tells of an end where a program takes on rights (set-user-ID), too.
                life.ended = None;
                if life.began.is_some() && life.hooked.is_none() && !life.is_anothers {
                    match content(&map) {
                        Content::Hooked => life.hooked = Some(map.path.to_vec()),
                        Content::Recorder => life.is_anothers = true,
                        Content::OutOfSight => life.is_out_of_sight |= !life.has_mapped,
                        Content::Other => {}
                    }
                    life.has_mapped = true;
                }
                None
            }
            Record::Exited(kin) if kin.pid == kin.tid => {
                self.0.get_mut(&kin.pid)?.ended = Some(time);
                None
            }
            _ => None,
        }
    }

    /// Gives the programs with hooks whose processes have ended, once `is_gone` says that the whole
    /// process has, and processes that executed none.
    pub(super) fn gone(&mut self, is_gone: impl Fn(u32) -> bool) -> Vec<Ended> {
        let gone = self.0.extract_if(|&pid, life| life.ended.is_some() && is_gone(pid));
        let ended = |(pid, life): (u32, Life)| match life.began {
            Some(_) => life.program(pid, u64::MAX).map(Ended::Program),
            None => Some(Ended::Child(pid)),
        };
        gone.filter_map(ended).collect()
    }

    /// When the process executed the program that it runs.
    pub(super) fn began(&self, pid: u32) -> Option<u64> {
        self.0.get(&pid)?.began
    }

    fn forget(&mut self, pid: u32) -> Option<Program> {
        self.0.remove(&pid)?.program(pid, u64::MAX)
    }
}

impl Life {
    fn program(self, pid: u32, time: u64) -> Option<Program> {
        let ended = self.ended.unwrap_or(time);
        let is_wanted = !self.is_anothers && (self.hooked.is_some() || self.is_out_of_sight);
        is_wanted.then_some(())?;
        Some(Program { pid, began: self.began?, ended, hooked: self.hooked })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Kin;

    fn forked(pid: u32, parent_pid: u32) -> Record<'static> {
        Record::Forked(Kin { pid, tid: pid, parent_pid, parent_tid: parent_pid })
    }

    fn executed(pid: u32) -> Record<'static> {
        Record::Named { pid, tid: pid, name: b"a", is_exec: true }
    }

    fn mapped(pid: u32, path: &'static [u8]) -> Record<'static> {
        Record::Map(Map { pid, tid: pid, path, ..Map::default() })
    }

    fn ended(pid: u32, tid: u32) -> Record<'static> {
        Record::Exited(Kin { pid, tid, parent_pid: 1, parent_tid: 1 })
    }

    /// Programs with hooks that end by these records, the first at time 1, below a recorder that is process 1.
    fn programs(records: &[Record<'_>]) -> Vec<Program> {
        let program = |ended| match ended {
            Ended::Program(program) => Some(program),
            Ended::Child(_) => None,
        };
        ended_by(records).into_iter().filter_map(program).collect()
    }

    fn ended_by(records: &[Record<'_>]) -> Vec<Ended> {
        let mut lives = Lives::of(1);
        let mut content = |map: &Map<'_>| match map.path {
            b"/hooked" => Content::Hooked,
            b"/recorder" => Content::Recorder,
            b"/gone" => Content::OutOfSight,
            _ => Content::Other,
        };
        let times = (1..).zip(records);
        let taken = times.filter_map(|(time, record)| lives.take(time, *record, &mut content));
        let mut all: Vec<_> = taken.map(Ended::Program).collect();
        all.extend(lives.gone(|_| true));
        all
    }

    fn program(pid: u32, began: u64, ended: u64) -> Program {
        Program { pid, began, ended, hooked: Some(b"/hooked".to_vec()) }
    }

    #[test]
    fn a_program_lasts_until_its_process_ends_or_executes_another() {
        let one = [forked(5, 1), executed(5), mapped(5, b"/lib"), mapped(5, b"/hooked")];
        assert_eq!(programs(&one), [], "it runs");
        assert_eq!(programs(&[&one[..], &[ended(5, 5)]].concat()), [program(5, 2, 5)]);
        assert_eq!(programs(&[&one[..], &[executed(5)]].concat()), [program(5, 2, 5)]);
        assert_eq!(programs(&[&one[..], &[ended(5, 6), ended(5, 5)]].concat()), [program(5, 2, 6)]);
        // Another thread executes a program.
        let more = [ended(5, 5), executed(5), mapped(5, b"/hooked"), ended(5, 5)];
        let both = [program(5, 2, 5), program(5, 6, 8)];
        assert_eq!(programs(&[&one[..], &more].concat()), both);
        // The process's number is given out again.
        let again = [ended(5, 5), forked(5, 1), ended(5, 5)];
        assert_eq!(programs(&[&one[..], &again].concat()), [program(5, 2, 5)]);
    }

    /// Guards: the kernel has a program that takes on rights leave events, which looks like its end.
    #[test]
    fn a_program_that_goes_on_mapping_has_not_ended() {
        let begin = [forked(5, 1), executed(5), ended(5, 5), mapped(5, b"/hooked")];
        assert_eq!(programs(&begin), []);
        assert_eq!(programs(&[&begin[..], &[ended(5, 5)]].concat()), [program(5, 2, 5)]);
    }

    #[test]
    fn a_child_that_executes_nothing_has_its_parents_program() {
        let child = [forked(5, 1), executed(5), mapped(5, b"/hooked"), forked(6, 5), ended(6, 6)];
        assert_eq!(ended_by(&child), [Ended::Child(6)]);
    }

    #[test]
    fn a_program_that_was_out_of_sight_is_told_without_a_file() {
        let gone = [forked(5, 1), executed(5), mapped(5, b"/gone"), ended(5, 5)];
        assert_eq!(programs(&gone), [Program { hooked: None, ..program(5, 2, 4) }]);
        let library =
            [forked(5, 1), executed(5), mapped(5, b"/a"), mapped(5, b"/gone"), ended(5, 5)];
        assert_eq!(programs(&library), []);
    }

    #[test]
    fn programs_of_others_and_of_another_recorder_are_not_told() {
        let other = [forked(5, 2), executed(5), mapped(5, b"/hooked"), ended(5, 5)];
        assert_eq!(programs(&other), []);
        let inner = [
            forked(5, 1),
            executed(5),
            mapped(5, b"/recorder"),
            forked(6, 5),
            executed(6),
            mapped(6, b"/hooked"),
            ended(6, 6),
        ];
        assert_eq!(programs(&inner), []);
    }
}
