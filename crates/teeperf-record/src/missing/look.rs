//! The thread that looks at the recorder's descendants.

use super::files::Files;
use super::ledger::Ledger;
use super::lives::{Ended, Lives, Program};
use super::mapped;
use super::news::News;
use super::why::Why;
use crate::link::Link;
use crate::machine::{monotonic_ns, thread_cpu_ns};
use crate::sample::{Map, Record};
use crate::server::{ancestors, descends, executable_of};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use teeperf_wire::hook;
use teeperf_wire::word::module::MAX_PATH;

/// The running thread. Ends with a last look when it is dropped.
#[derive(Debug)]
pub(crate) struct Lookout {
    thread: Option<JoinHandle<()>>,
    /// Closed to end the thread.
    stop: Option<Sender<()>>,
    /// Closed when it has ended.
    ended: Receiver<()>,
    ledger: Arc<Ledger>,
}

/// Longest wait for its end: a file system may not answer any more.
const END: Duration = Duration::from_secs(3);

/// Between two looks, unless these take long.
const PAUSE: Duration = Duration::from_millis(20);
/// A look takes at most this part of the time: more where the kernel tells nothing, and processes
/// wait to be seen.
const SHARE: u32 = 20;
const SHARE_ALONE: u32 = 8;
/// Between two looks at what one process has mapped, unless it has executed another program.
const PAUSE_OF_ONE: Duration = Duration::from_millis(300);
/// Most judgements of one process that wait for its programs' ends.
const MOST_JUDGED: usize = 1000;
/// Most candidates that wait for what is known at the end.
const MOST_ENDED: usize = 10_000;

impl Lookout {
    /// For the recorder of this name, which is found by this link.
    pub(crate) fn start(
        recorder: String,
        link: Option<Arc<Link>>,
        ledger: Arc<Ledger>,
    ) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let (end, ended) = channel();
        // Before the command is started: the kernel tells of what is forked from here on.
        let news = News::open();
        let share = if news.is_some() { SHARE } else { SHARE_ALONE };
        let mut look = Look::new(recorder, Arc::clone(&ledger), news);
        let thread = std::thread::Builder::new().name("teeperf-lookout".into());
        let thread = thread.spawn(move || {
            let _end: Sender<()> = end;
            let mut next = Instant::now() + PAUSE;
            let mut last = Instant::now();
            while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                // The kernel's news do not wait for a look that is put off.
                look.hear(false);
                let (began, time) = (Instant::now(), SystemTime::now());
                if began >= next {
                    // Waits for a processor are not its own.
                    let cpu = thread_cpu_ns();
                    look.round();
                    link.iter().for_each(|link| link.has_looked_at(time));
                    let took = Duration::from_nanos(thread_cpu_ns().saturating_sub(cpu));
                    next = Instant::now() + PAUSE.max(took * share);
                    if look.news.is_none() {
                        look.ledger.looked_after(last.elapsed());
                    }
                    last = began;
                }
            }
            look.round();
            look.end();
        })?;
        Ok(Self { thread: Some(thread), stop: Some(stop), ended, ledger })
    }
}

impl Drop for Lookout {
    fn drop(&mut self) {
        self.stop = None;
        if self.ended.recv_timeout(END) == Err(RecvTimeoutError::Timeout) {
            return self.ledger.leaves_files_out();
        }
        if let Some(thread) = self.thread.take() {
            // A panic in it was already reported by the thread itself.
            let _ = thread.join();
        }
    }
}

struct Look {
    recorder: String,
    ledger: Arc<Ledger>,
    /// The number that the system gave out last.
    last: Option<String>,
    /// All that ran at the last look; those that descend from the recorder were looked at.
    processes: HashMap<u32, Option<Seen>>,
    files: Files,
    /// What the kernel tells, where it does, and the programs that it told of.
    news: Option<News>,
    lives: Lives,
    /// What looks said of each process with hooks, until the kernel tells of the program's end.
    judged: HashMap<u32, Vec<Judgement>>,
    /// Programs that ended and of which the kernel told, where a look took them for missing: the beginning of
    /// that look.
    heard: HashSet<(u32, u64)>,
    /// Programs that have attached: what is forked from these without a place says so by itself.
    attached: HashSet<Image>,
    /// Candidates whose programs have ended. What they were forked from may be known later.
    ended: VecDeque<(u32, Image, Candidate)>,
}

/// What a look said of a process with hooks.
struct Judgement {
    /// From when to when the look took, by `CLOCK_MONOTONIC`, nanoseconds. The program may have begun or ended
    /// meanwhile.
    look: (u64, u64),
    /// Why it is missing; nothing: it is recorded, or is not to be.
    why: Option<Why>,
}

/// A process of the recorder's.
#[derive(Default)]
struct Seen {
    image: Image,
    size: u64,
    looked: Option<Instant>,
    /// How often the process had attached when the program before this one was last seen: the process may
    /// have attached once more before this one was.
    attached_before: usize,
    attached: usize,
    missing: Option<Candidate>,
    /// It shows neither what it has mapped nor its program's file.
    is_hidden: bool,
}

/// Tells one program of a process from the next: where its code and its stack begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Image([u64; 2]);

/// A process that has hooks and had not attached when it was looked at.
struct Candidate {
    look: (u64, u64),
    why: Why,
    file: Vec<u8>,
    /// Its program is one that never asks this recorder, whatever ran in the process before.
    is_certain: bool,
}

impl Look {
    fn new(recorder: String, ledger: Arc<Ledger>, news: Option<News>) -> Self {
        // The command is not started yet: none of these descends from it.
        let processes = running().map(|all| all.map(|pid| (pid, None)).collect());
        Self {
            recorder,
            ledger,
            last: None,
            processes: processes.unwrap_or_default(),
            files: Files::default(),
            news,
            lives: Lives::of(std::process::id()),
            judged: HashMap::new(),
            heard: HashSet::new(),
            attached: HashSet::new(),
            ended: VecDeque::new(),
        }
    }

    fn round(&mut self) {
        let last = last_number();
        if last.is_none() || last != self.last {
            self.last = last;
            self.list();
        }
        let mut processes = std::mem::take(&mut self.processes);
        for (&pid, seen) in processes.iter_mut() {
            if let Some(seen) = seen {
                self.look_at(pid, seen);
            }
        }
        self.processes = processes;
    }

    /// Takes what the kernel told, up to now or to the end.
    fn hear(&mut self, to_the_end: bool) {
        let Some(mut news) = self.news.take() else { return };
        let mut programs = Vec::new();
        let mut give = |time, record: Record<'_>| match record {
            Record::Lost(records) => self.ledger.heard_nothing_of(records),
            _ => {
                let mut content = |map: &Map<'_>| self.files.content(map);
                programs.extend(self.lives.take(time, record, &mut content));
            }
        };
        if to_the_end {
            news.finish(&mut give)
        } else {
            news.take(&mut give)
        }
        let is_gone = |pid| to_the_end || !Path::new(&format!("/proc/{pid}")).exists();
        let ended = self.lives.gone(is_gone);
        self.news = Some(news);
        programs.into_iter().for_each(|program| self.heard_of(program));
        for ended in ended {
            match ended {
                Ended::Program(program) => self.heard_of(program),
                Ended::Child(pid) => self.heard_of_child(pid),
            }
        }
    }

    /// A process has ended that executed nothing: its program is told with the process that did.
    fn heard_of_child(&mut self, pid: u32) {
        let all = self.judged.remove(&pid).unwrap_or_default();
        let missing = all.into_iter().filter(|one| one.why.is_some());
        self.heard.extend(missing.map(|one| (pid, one.look.0)));
    }

    /// A program with hooks has ended.
    fn heard_of(&mut self, Program { pid, began, ended, hooked }: Program) {
        let all = self.judged.remove(&pid).unwrap_or_default();
        // What lies behind the program's end is about the next one.
        let (own, next): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.look.0 <= ended);
        if !next.is_empty() {
            self.judged.insert(pid, next);
        }
        let own: Vec<_> = own.into_iter().filter(|one| began <= one.look.1).collect();
        let missing = own.iter().filter(|one| one.why.is_some());
        self.heard.extend(missing.map(|one| (pid, one.look.0)));
        let why = own.last().map_or(Some(Why::Brief), |one| one.why);
        if self.ledger.attached_within(pid, began..=ended) {
            return;
        }
        match (why, hooked) {
            (Some(why), Some(hooked)) => self.ledger.misses(why, &hooked, pid),
            (Some(Why::Brief), None) => self.ledger.could_not_look(),
            // What a look took for missing is told by that.
            (Some(_), None) => own.iter().for_each(|one| _ = self.heard.remove(&(pid, one.look.0))),
            (None, _) => {}
        }
    }

    fn end(&mut self) {
        self.hear(true);
        for (pid, mut seen) in std::mem::take(&mut self.processes) {
            seen.as_mut().into_iter().for_each(|seen| self.conclude(pid, seen));
        }
        while self.tell_first() {}
        if self.files.are_cut() {
            self.ledger.leaves_files_out();
        }
    }

    /// Takes in who has come, and lets go of who has ended.
    fn list(&mut self) {
        let Ok(running) = running() else { return };
        let running: HashSet<u32> = running.collect();
        let ended: Vec<_> = self.processes.extract_if(|pid, _| !running.contains(pid)).collect();
        for (pid, mut seen) in ended {
            seen.as_mut().into_iter().for_each(|seen| self.conclude(pid, seen));
        }
        for pid in running {
            if !self.processes.contains_key(&pid) {
                let is_ours = |pid: u32| matches!(self.processes.get(&pid), Some(Some(_)));
                let seen = descends(pid, is_ours).then(Seen::default);
                self.processes.insert(pid, seen);
            }
        }
    }

    fn look_at(&mut self, pid: u32, seen: &mut Seen) {
        let Some((image, size)) = image_of(pid) else { return self.conclude(pid, seen) };
        if image != seen.image {
            self.conclude(pid, seen);
            *seen = Seen { image, attached_before: seen.attached, ..Seen::default() };
        }
        seen.attached = self.ledger.times_attached(pid);
        let is_early = seen.looked.is_some_and(|looked| looked.elapsed() < PAUSE_OF_ONE);
        if !seen.is_hidden && (size == seen.size || is_early) {
            return;
        }
        let began = monotonic_ns();
        let maps = fs::read(format!("/proc/{pid}/maps"));
        (seen.size, seen.looked) = (size, Some(Instant::now()));
        let look = (began, monotonic_ns());
        let maps = match maps {
            Ok(maps) => maps,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return self.look_from_afar(pid, seen, look);
            }
            Err(_) => return,
        };
        let mapped = mapped::read(&maps);
        let hooked =
            mapped.code.iter().filter_map(|code| Some((code, self.files.hooks(pid, code)?)));
        let hooked: Vec<_> = hooked.collect();
        let mut why = None;
        if mapped.has_recorder {
            seen.missing = None;
            self.attached.insert(image);
            // A process that was only forked has announced nothing yet. One that has executed a
            // program since, and attached, has none of these libraries.
            if seen.attached > 0 {
                // A process that has ended meanwhile has none.
                let program = executable_of(pid);
                let is_library = |path: &[u8]| path != program && path.len() < MAX_PATH;
                let line: Vec<_> = ancestors(pid).collect();
                let lives = !program.is_empty();
                let libraries = hooked.iter().filter(|(code, _)| lives && is_library(&code.path));
                libraries.for_each(|(code, _)| self.ledger.has_mapped(&line, &code.path));
            }
        } else if let Some((first, version)) = hooked.first() {
            why = Why::of(pid, (*version, &first.path), mapped.has_runtime, &self.recorder);
            let file = first.path.clone();
            let candidate = |why| Candidate { look, why, file, is_certain: false };
            seen.missing = why.map(candidate);
        }
        if !hooked.is_empty() {
            self.judge(pid, Judgement { look, why });
        }
    }

    /// Looks at a process that does not show what it has mapped: it is another user's, or took on rights.
    fn look_from_afar(&mut self, pid: u32, seen: &mut Seen, look: (u64, u64)) {
        let program = self.files.program_of(pid);
        // It may be about to execute the program: that is looked at again.
        seen.is_hidden = program.is_none();
        let Some(program) = program else { return };
        let Some(version) = program.hooks else { return };
        let why = match version {
            hook::VERSION if program.takes_rights => Why::Rights,
            hook::VERSION => Why::User,
            version => Why::Version(version),
        };
        let is_certain = program.takes_rights;
        seen.missing = Some(Candidate { look, why, file: program.path, is_certain });
        self.judge(pid, Judgement { look, why: Some(why) });
    }

    fn judge(&mut self, pid: u32, judgement: Judgement) {
        let judged = self.judged.entry(pid).or_default();
        if self.news.is_some() && judged.len() < MOST_JUDGED {
            judged.push(judgement);
        }
    }

    /// The program of this process has ended, or the recording has.
    fn conclude(&mut self, pid: u32, seen: &mut Seen) {
        if std::mem::take(&mut seen.is_hidden) {
            self.ledger.is_hidden(pid);
        }
        let has_attached = self.ledger.times_attached(pid) != seen.attached_before;
        let missing = seen.missing.take_if(|candidate| candidate.is_certain || !has_attached);
        if let Some(candidate) = missing {
            self.ended.push_back((pid, seen.image, candidate));
        } else if has_attached {
            self.attached.insert(seen.image);
        }
        if self.ended.len() > MOST_ENDED {
            self.tell_first();
        }
    }

    /// Says whether there was one.
    fn tell_first(&mut self) -> bool {
        let first = self.ended.pop_front();
        if let Some((pid, image, candidate)) = &first
            && (candidate.is_certain || !self.attached.contains(image))
            && !self.is_decided(*pid, candidate.look)
        {
            self.ledger.misses(candidate.why, &candidate.file, *pid);
        }
        first.is_some()
    }

    /// Whether the kernel told when the program began that was looked at then: by that it was told as missing when
    /// it ended, or has attached since.
    fn is_decided(&self, pid: u32, look: (u64, u64)) -> bool {
        let began = self.lives.began(pid).filter(|began| *began <= look.1);
        let has_attached = |began| self.ledger.attached_within(pid, began..=u64::MAX);
        self.heard.contains(&(pid, look.0)) || began.is_some_and(has_attached)
    }
}

/// The ids of all processes that `/proc` shows.
fn running() -> io::Result<impl Iterator<Item = u32>> {
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    Ok(fs::read_dir("/proc")?.flatten().filter_map(number))
}

/// The number that was given out last, of a process or a thread: proc_loadavg(5).
fn last_number() -> Option<String> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    load.split_whitespace().next_back().map(str::to_owned)
}

/// The program of a process, and how much it has mapped: proc_pid_stat(5). Nothing where it has ended.
fn image_of(pid: u32) -> Option<(Image, u64)> {
    const SIZE: usize = 20;
    const CODE: usize = 23;
    const STACK: usize = 25;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<_> = rest.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse().ok();
    let has_ended = matches!(*fields.first()?, "Z" | "X");
    (!has_ended).then_some((Image([number(CODE)?, number(STACK)?]), number(SIZE)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(began: u64, ended: u64) -> Program {
        Program { pid: 5, began, ended, hooked: Some(b"/bin/a".to_vec()) }
    }

    fn look_of(ledger: &Arc<Ledger>) -> Look {
        Look::new("us".into(), Arc::clone(ledger), None)
    }

    /// Guards: what looks said of the programs of one process, one after the other, is known when the kernel tells
    /// of the first one's end.
    #[test]
    fn each_program_of_a_process_is_told_once_and_with_its_reason() {
        let ledger = Arc::new(Ledger::default());
        let mut look = look_of(&ledger);
        let looks = [(110, 120), (210, 220), (310, 320)];
        let whys = [Some(Why::Filter), None, Some(Why::Filter)];
        let judgements = looks.into_iter().zip(whys).map(|(look, why)| Judgement { look, why });
        look.judged.insert(5, judgements.collect());
        for began in [100, 200, 300, 400] {
            look.heard_of(program(began, began + 99));
        }
        for look_at in [looks[0], looks[2]] {
            let candidate = Candidate {
                look: look_at,
                why: Why::Filter,
                file: b"/bin/a".to_vec(),
                is_certain: false,
            };
            look.ended.push_back((5, Image::default(), candidate));
        }
        while look.tell_first() {}
        let told = ledger.missing(HashMap::new());
        assert_eq!(told.iter().map(|one| one.number).collect::<Vec<_>>(), [2, 1], "{told:?}");
        assert!(told[0].text.contains("seccomp") && told[1].text.contains("ended before"));
    }

    #[test]
    fn a_program_that_attached_while_it_ran_is_not_missing() {
        let ledger = Arc::new(Ledger::default());
        let before = monotonic_ns();
        ledger.attaches(5);
        let after = monotonic_ns();
        let mut look = look_of(&ledger);
        look.judged.insert(5, vec![Judgement { look: (before, before), why: Some(Why::Unknown) }]);
        look.heard_of(program(before, after));
        assert!(ledger.missing(HashMap::new()).is_empty());
        look.heard_of(program(after + 1, after + 2));
        assert_eq!(ledger.missing(HashMap::new()).len(), 1);
    }
}
