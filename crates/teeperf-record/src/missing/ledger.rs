//! Processes and libraries that are missing, and those that are not.

use super::why::Why;
use crate::machine::monotonic_ns;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use teeperf_wire::body::notice;
use teeperf_wire::hello::LONGEST_STAY_NS;

/// Processes as the thread that looks, the server and the drain know them.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Lists>);

#[derive(Debug, Default)]
struct Lists {
    /// When processes of each id have attached, by `CLOCK_MONOTONIC`, nanoseconds.
    attached: HashMap<u32, Vec<u64>>,
    /// What the kernel would have told of programs, and had no room for.
    untold: u64,
    has_files_left_out: bool,
    /// Programs that never asked, and whose files nobody could look at.
    out_of_sight: u64,
    /// Processes that show neither their code nor their program's file.
    hidden: BTreeSet<u32>,
    /// The longest time between two looks, where the kernel tells nothing.
    longest_pause: Duration,
    /// Libraries, by their paths, that processes announced, and that they have mapped: these with the
    /// ids of the process and its ancestors.
    announced: HashSet<(u32, Vec<u8>)>,
    mapped: BTreeMap<(u32, Vec<u8>), Vec<u32>>,
    /// By reason and file.
    missing: BTreeMap<(Why, String), Processes>,
}

impl Lists {
    /// A process asks at this time: it is none that was missed for one of these reasons.
    fn takes_back(&mut self, pid: u32, now: u64, reasons: &[Why]) {
        self.missing.retain(|(why, _), processes| {
            if reasons.contains(why) {
                let since = now.saturating_sub(LATEST_NS);
                let is_it = |&(missed, at): &(u32, u64)| missed == pid && at >= since;
                let found = processes.first.iter().position(is_it);
                found.into_iter().for_each(|at| _ = processes.first.remove(at));
                processes.number -= u32::from(found.is_some());
            }
            processes.number > 0
        });
    }
}

/// Latest that the recorder hears a process that asked, nanoseconds.
const LATEST_NS: u64 = 30_000_000_000;

/// Some processes.
#[derive(Debug, Default)]
struct Processes {
    number: u32,
    /// Ids of the first, and when each was missed: of more than are named, since some may be taken
    /// back.
    first: Vec<(u32, u64)>,
}

/// Processes or libraries that are not in the recording.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) number: u32,
    pub(crate) text: String,
}

/// Most process ids that are named, and that are kept; most files.
const MOST_NAMED: usize = 8;
const MOST_KEPT: usize = 1024;
const MOST_FILES: usize = 1000;

impl Ledger {
    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.0.lock().unwrap_or_else(|lock| lock.into_inner())
    }

    /// A process is about to attach. It may have asked long ago, when the recorder had no processor:
    /// then it was not missing when it was looked at.
    pub(crate) fn attaches(&self, pid: u32) {
        let (mut lists, now) = (self.lists(), monotonic_ns());
        lists.attached.entry(pid).or_default().push(now);
        lists.takes_back(pid, now, &[Why::Unknown]);
    }

    /// How often a process of this id has attached.
    pub(super) fn times_attached(&self, pid: u32) -> usize {
        self.lists().attached.get(&pid).map_or(0, Vec::len)
    }

    /// Whether a process of this id has attached then.
    pub(super) fn attached_within(&self, pid: u32, times: RangeInclusive<u64>) -> bool {
        let lists = self.lists();
        lists.attached.get(&pid).is_some_and(|all| all.iter().any(|time| times.contains(time)))
    }

    /// So many records of the kernel's found no room.
    pub(super) fn heard_nothing_of(&self, records: u64) {
        self.lists().untold += records;
    }

    /// A program has ended that never asked, and whose file nobody could look at.
    pub(super) fn could_not_look(&self) {
        self.lists().out_of_sight += 1;
    }

    /// A process shows the recorder neither its code nor the file of its program.
    pub(super) fn is_hidden(&self, pid: u32) {
        let mut lists = self.lists();
        if lists.hidden.len() < MOST_FILES {
            lists.hidden.insert(pid);
        }
    }

    /// Nothing was seen for so long, and the kernel tells nothing.
    pub(super) fn looked_after(&self, pause: Duration) {
        let mut lists = self.lists();
        lists.longest_pause = lists.longest_pause.max(pause);
    }

    /// Files were left out that may have hooks.
    pub(super) fn leaves_files_out(&self) {
        self.lists().has_files_left_out = true;
    }

    /// Why processes may be missing that nobody knows of.
    pub(crate) fn doubts(&self) -> Vec<String> {
        let lists = self.lists();
        let untold = (lists.untold > 0).then(|| {
            format!(
                "the kernel had no room for {} records of programs that began or ended on this \
                 machine, some maybe of the command's that lived for less than 20 ms",
                lists.untold
            )
        });
        let files = lists.has_files_left_out.then(|| {
            "the command's processes have mapped more code than the recorder looks through for \
             hooks, or files that could not be read to their ends"
                .to_owned()
        });
        let programs = (lists.out_of_sight > 0).then(|| {
            format!(
                "{} programs that never asked for the recorder ended before it could look at \
                 their files, which are gone or in another mount namespace",
                lists.out_of_sight
            )
        });
        let hidden = (!lists.hidden.is_empty()).then(|| {
            let first: Vec<_> = lists.hidden.iter().take(MOST_NAMED).map(u32::to_string).collect();
            format!(
                "processes of other users, or with more rights, that never asked for the recorder \
                 show it neither their code nor their program: {} (first process ids: {}); next: \
                 record as root",
                lists.hidden.len(),
                first.join(", ")
            )
        });
        let late = (lists.longest_pause > Duration::from_nanos(LONGEST_STAY_NS)).then(|| {
            format!(
                "the recorder looked at the command's processes after {:.1} s once, and may not \
                 have seen those that could not ask for it and lived for less",
                lists.longest_pause.as_secs_f64()
            )
        });
        let all = [untold, files, programs, hidden, late];
        all.into_iter().flatten().map(|text| format!("{text}; {}", notice::MAY_MISS)).collect()
    }

    /// A process has announced a module.
    pub(crate) fn announced(&self, pid: u32, path: &[u8]) {
        self.lists().announced.insert((pid, path.to_vec()));
    }

    /// A process that has attached, the first of a line of ancestors, has a library with hooks.
    pub(super) fn has_mapped(&self, line: &[u32], path: &[u8]) {
        let (mut lists, Some(&pid)) = (self.lists(), line.first()) else { return };
        if lists.mapped.len() < MOST_FILES {
            lists.mapped.insert((pid, path.to_vec()), line.to_vec());
        }
    }

    /// A process is not recorded whose hooks are in this file.
    pub(crate) fn misses(&self, why: Why, file: &[u8], pid: u32) {
        let (mut lists, now) = (self.lists(), monotonic_ns());
        if matches!(why, Why::Late | Why::Ended) {
            // When it was looked at, nobody had heard it.
            lists.takes_back(pid, now, &Why::BY_LOOK);
        }
        let is_room = lists.missing.len() < MOST_FILES;
        let name = match (is_room, file) {
            (false, _) => "others".into(),
            (true, []) => "of an unknown file".into(),
            (true, _) => shown(file),
        };
        let processes = lists.missing.entry((why, name)).or_default();
        processes.number += 1;
        if processes.first.len() < MOST_KEPT {
            processes.first.push((pid, now));
        }
    }

    /// All that are missing. `told` has how many libraries a process, and its children, said were not
    /// recorded: these are known already. A process that lies hides its own and its children's.
    pub(crate) fn missing(&self, mut told: HashMap<u32, u32>) -> Vec<Missing> {
        let lists = self.lists();
        let processes = lists.missing.iter().map(|((why, name), all)| all.missing(*why, name));
        let mut all: Vec<_> = processes.collect();
        // A process that was killed before it announced any module says nothing of its libraries.
        let announcing: HashSet<u32> = lists.announced.iter().map(|(pid, _)| *pid).collect();
        let told_of = lists.mapped.iter().filter(|((pid, _), _)| announcing.contains(pid));
        for (library @ (pid, path), line) in told_of {
            let mut by = line.iter().filter_map(|pid| told.get(pid).map(|number| (*pid, *number)));
            if lists.announced.contains(library) {
                continue;
            }
            if let Some((by, left)) = by.find(|(_, number)| *number > 0) {
                told.insert(by, left - 1);
                continue;
            }
            let name = shown(path);
            let text = format!(
                "a library with hooks, {name}, was not recorded in process {pid}: nothing answers its hooks, most likely \
                 because it is in a namespace of its own (dlmopen); next: load it by dlopen while it is recorded"
            );
            all.push(Missing { number: 1, text });
        }
        all
    }
}

impl Processes {
    fn missing(&self, why: Why, name: &str) -> Missing {
        let number = self.number;
        let who = match number {
            1 => "a process with hooks was".into(),
            _ => format!("{number} processes with hooks were"),
        };
        let named = self.first.iter().take(MOST_NAMED);
        let pids: Vec<_> = named.map(|(pid, _)| pid.to_string()).collect();
        let first = if pids.len() < number as usize { "first " } else { "" };
        let (why, next) = why.told();
        let text = format!(
            "{who} not recorded ({name}; {first}process ids: {}): {why}; next: {next}",
            pids.join(", ")
        );
        Missing { number, text }
    }
}

/// A path, free of characters that steer terminals.
fn shown(path: &[u8]) -> String {
    use std::os::unix::ffi::OsStrExt;
    let path = Path::new(std::ffi::OsStr::from_bytes(path));
    path.display().to_string().replace(char::is_control, "?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_told_by_file_and_reason() {
        let ledger = Ledger::default();
        for pid in 1..=10 {
            ledger.misses(Why::Nameless, b"/bin/a", pid);
        }
        ledger.misses(Why::Filter, b"/bin/a", 11);
        let all = ledger.missing(HashMap::new());
        assert_eq!(all.iter().map(|one| one.number).collect::<Vec<_>>(), [1, 10]);
        assert!(all[0].text.contains("(/bin/a; process ids: 11)"), "{}", all[0].text);
        assert!(all[1].text.contains("first process ids: 1, 2, 3, 4, 5, 6, 7, 8)"));
    }

    /// Guards: a process told as one that asks nobody, whose question waited for the recorder.
    #[test]
    fn processes_that_are_heard_late_are_not_missing() {
        let ledger = Ledger::default();
        ledger.misses(Why::Unknown, b"/bin/a", 1);
        ledger.misses(Why::Brief, b"/bin/a", 2);
        ledger.misses(Why::Brief, b"/bin/a", 3);
        ledger.misses(Why::Filter, b"/bin/a", 4);
        (1..=5).for_each(|pid| ledger.attaches(pid));
        ledger.misses(Why::Late, b"", 2);
        let all = ledger.missing(HashMap::new());
        let named = ["process ids: 4)", "(of an unknown file; process ids: 2)", "process ids: 3)"];
        assert_eq!(all.len(), named.len());
        for (missing, named) in all.iter().zip(named) {
            assert!(missing.number == 1 && missing.text.contains(named), "{}", missing.text);
        }
    }

    /// Guards: a process that was killed as it began, told for two reasons.
    #[test]
    fn processes_that_end_without_an_answer_are_told_once() {
        let ledger = Ledger::default();
        let all: Vec<u32> = (1..=20).collect();
        all.iter().for_each(|&pid| ledger.misses(Why::Brief, b"/bin/a", pid));
        ledger.misses(Why::without_answer(b""), b"", 20);
        ledger.misses(Why::without_answer(b"/bin/a"), b"/bin/a", 19);
        let missing = ledger.missing(HashMap::new());
        assert_eq!(missing.iter().map(|one| one.number).collect::<Vec<_>>(), [1, 1, 18]);
        let told = |text| missing.iter().any(|one| one.text.contains(text));
        assert!(told("process ids: 20): it asked the recorder and ended before the answer came"));
        assert!(told("process ids: 19): it asked the recorder, which had no processor"));
    }

    #[test]
    fn libraries_are_told_that_nobody_announced_or_told_of() {
        let ledger = Ledger::default();
        ledger.has_mapped(&[5, 4], b"/lib/a");
        ledger.has_mapped(&[5, 4], b"/lib/b");
        ledger.has_mapped(&[5, 4], b"/lib/b");
        // It was killed when it had attached.
        ledger.has_mapped(&[8, 4], b"/lib/a");
        ledger.announced(5, b"/lib/a");
        ledger.announced(6, b"/lib/b");
        let missing = |told| ledger.missing(HashMap::from([told]));
        assert!(missing((4, 0))[0].text.contains("/lib/b, was not recorded in process 5"));
        assert!(missing((5, 1)).is_empty() && missing((4, 1)).is_empty());
        // Guards: a process that lies hid the libraries of all others.
        assert_eq!(missing((7, u32::MAX)).len(), 1);
    }
}
