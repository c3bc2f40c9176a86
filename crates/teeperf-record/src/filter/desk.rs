//! The thread that hands out maps of filters and changes them. To read a module's symbols may take long, so it is not
//! the one that processes attach to.

use super::map::{FileId, Layout, Map};
use super::unused::Unused;
use super::{Part, Rules, threads};
use crate::Level;
use crate::clock::{ClockPage, Time};
use crate::control::Asker;
use crate::drain::Event;
use crate::escapes::Module;
use crate::packets::Payload;
use crate::socket::Connection;
use crate::symbols::{self, WindowId};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};
use teeperf_symbols::{Functions, Search};
use teeperf_wire::body::filter;
use teeperf_wire::filter::{Filter, MAX_NUMBER};
use teeperf_wire::hello::{Welcome, flag, refusal};
use teeperf_wire::packet::kind;
use teeperf_wire::shared::{ClockKind, control};

/// What the thread is asked for.
#[derive(Debug)]
pub(crate) enum Job {
    /// The map of a module of a process, by the filter of this number.
    Map {
        connection: Connection,
        welcome: Welcome,
        pid: u32,
        process: u32,
        number: u32,
        module: Module,
    },
    /// Other rules in place of a part of those there are.
    Change { asker: Asker, rules: Rules, part: Part },
    /// Recording is to go on, if it waits for that, for this reason: by a process, where that is not 0.
    Begin { why: String, process: u32, answers: Answers },
    /// A process has a module: its map is drawn ahead of need.
    Opened { pid: u32, process: u32, module: Module },
    /// The recording ends.
    Finish { done: Sender<()> },
    /// The process is gone.
    Forget { process: u32 },
}

/// Who waits for recording to go on.
#[derive(Debug)]
pub(crate) enum Answers {
    Process(Connection, Welcome),
    Asker(Asker),
    Nobody,
}

impl Answers {
    fn answer(self) {
        match self {
            // Who asked may be gone.
            Self::Process(connection, welcome) => _ = connection.send(&welcome.encode(), &[]),
            Self::Asker(asker) => asker.answer(),
            Self::Nobody => {}
        }
    }
}

/// The thread's other end. It ends when nobody has that any more.
#[derive(Clone, Debug)]
pub(crate) struct FilterDesk {
    jobs: Sender<Job>,
    rules: Arc<RwLock<Rules>>,
}

/// What the thread works with.
#[derive(Debug)]
pub(crate) struct Means {
    pub(crate) page: Arc<ClockPage>,
    pub(crate) clock: ClockKind,
    /// Whether the counter, which times functions, runs at one speed.
    pub(crate) counter_is_even: bool,
    pub(crate) search: Search,
    pub(crate) events: Sender<Event>,
    pub(crate) time: Time,
}

/// Most bytes that maps of one filter have, and most files that have one.
const MOST_BYTES: usize = 1 << 30;
const MOST_FILES: usize = 1 << 14;
/// Longest wait for what is left to say at the recording's end.
const FAREWELL: Duration = Duration::from_secs(1);
/// Longest wait for a tick.
const PATIENCE: Duration = Duration::from_secs(2);

impl FilterDesk {
    /// Starts the thread. The first rules hold from the beginning; where there are others for what recording waits for, those
    /// do, and the first hold as soon as it goes on.
    pub(crate) fn start(means: Means, rules: Rules, trigger: Option<Rules>) -> io::Result<Self> {
        let (jobs, inbox) = channel();
        let shared = Arc::new(RwLock::new(Rules::default()));
        let mut worker = Worker {
            means,
            rules: Rules::default(),
            shared: Arc::clone(&shared),
            unused: Vec::new(),
            has_drawn: false,
            filter: Filter::default(),
            users: HashMap::new(),
            maps: HashMap::new(),
            files: HashMap::new(),
            held: trigger.as_ref().map(|_| rules.clone()),
        };
        let rules = trigger.unwrap_or(rules);
        if !rules.is_empty() {
            worker.take(rules);
            worker.means.page.set_filter(worker.filter.encode());
            worker.means.page.set_filter_due(worker.filter.encode());
        }
        let thread = std::thread::Builder::new().name("teeperf-filter".into());
        thread.spawn(move || worker.run(inbox))?;
        Ok(Self { jobs, rules: shared })
    }

    /// Asks.
    pub(crate) fn ask(&self, job: Job) {
        // A thread that is gone has panicked and said so; who asked gets no answer.
        let _ = self.jobs.send(job);
    }

    /// The recording ends: what is left to say is said before this returns.
    pub(crate) fn finish(&self) {
        let (done, is_done) = channel();
        self.ask(Job::Finish { done });
        let _ = is_done.recv_timeout(FAREWELL);
    }

    /// Whether a thread is left out; its id is that which its process knows.
    pub(crate) fn leaves_out(&self, pid: u32, tid: u32) -> bool {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        rules.is_of_threads() && !rules.has_thread(tid, &threads::name(pid, tid))
    }
}

struct Worker {
    means: Means,
    rules: Rules,
    /// The same, for whoever asks of threads.
    shared: Arc<RwLock<Rules>>,
    /// Rules that have fitted nothing so far.
    unused: Vec<String>,
    /// Whether something was looked at for them.
    has_drawn: bool,
    filter: Filter,
    /// By what is mapped there.
    users: HashMap<Layout, Users>,
    /// By the filter that holds.
    maps: HashMap<Layout, Map>,
    /// Functions by path and build-id; nothing where the file could not be read.
    files: HashMap<FileId, Option<Arc<Functions>>>,
    /// Those that hold when recording goes on, as long as it waits for a call of what the present ones name.
    held: Option<Rules>,
}

/// Processes that have mapped a file.
struct Users {
    processes: BTreeSet<u32>,
    /// The first of them, where its file may be looked for.
    pid: u32,
    module: Module,
}

impl Worker {
    fn run(mut self, inbox: Receiver<Job>) {
        while let Ok(job) = inbox.recv() {
            let mut jobs: VecDeque<Job> = [job].into_iter().chain(inbox.try_iter()).collect();
            while let Some(job) = jobs.pop_front() {
                match job {
                    Job::Map { connection, welcome, pid, process, number, module } => {
                        self.hand_out(&connection, welcome, (pid, process), number, &module);
                    }
                    Job::Change { asker, rules, part } => {
                        // Of several that wait, the last one's holds in the end.
                        let is_change = |job: &Job| matches!(job, Job::Change { part: other, .. } if *other == part);
                        if jobs.iter().any(is_change) {
                            asker.refuse("another filter was asked for meanwhile");
                            continue;
                        }
                        let rules =
                            self.held.as_ref().unwrap_or(&self.rules).clone().with(part, &rules);
                        if let Some(held) = &mut self.held {
                            *held = rules;
                            self.tell_rules();
                            asker.answer();
                            continue;
                        }
                        self.change(rules);
                        let unused = if self.has_drawn { &self.unused[..] } else { &[] };
                        asker.answer_with(&unused.join("\n"));
                    }
                    Job::Begin { why, process, answers } => {
                        self.begin(why, process);
                        answers.answer();
                    }
                    Job::Opened { pid, process, module } => _ = self.note(pid, process, &module),
                    Job::Forget { process } => self.forget(process),
                    Job::Finish { done } => {
                        self.warn_of_unused();
                        // Who asked may wait no longer.
                        let _ = done.send(());
                    }
                }
            }
        }
    }

    fn hand_out(
        &mut self,
        connection: &Connection,
        welcome: Welcome,
        (pid, process): (u32, u32),
        number: u32,
        module: &Module,
    ) {
        // Another holds by now, which the process sees next.
        let is_late = number != self.filter.number || !self.filter.has_maps();
        let layout = Layout::of(module);
        let made = if is_late { Ok(()) } else { self.see_to_map(&layout, pid, process, module) };
        if let Err(error) = made {
            let path = layout.path();
            self.warn(
                format!("all functions of {path} are recorded: it has no filter: {error}"),
                process,
            );
        }
        let map = self.maps.get_mut(&layout).filter(|_| !is_late);
        let Some(map) = map else {
            let refusal = refusal::CLOSED;
            // Who asked may be gone.
            let _ = connection.send(&Welcome { refusal, ..welcome }.encode(), &[]);
            return;
        };
        // Before the process writes the first word of what it records by it.
        let window = WindowId { process, first_site: module.first_site };
        // Nothing is recorded by that which recording waits for.
        for payload in map.tell(window, module.sites).into_iter().filter(|_| self.held.is_none()) {
            tell(&self.means.events, payload);
        }
        let flags = welcome.flags | flag::OF_FILTER;
        let welcome = Welcome { flags, chunk_size: layout.size() as u32, ..welcome };
        if connection.send(&welcome.encode(), &[map.file()]).is_err() {
            let path = layout.path();
            self.warn(
                format!(
                    "process {pid} has not waited for the filter of {path}, or has ended: if it goes on, it records all \
                     of its functions"
                ),
                process,
            );
        }
    }

    /// See [`teeperf_wire::filter`] for why in this order.
    fn change(&mut self, rules: Rules) {
        self.take(rules);
        let mut next = HashMap::new();
        let known =
            if self.filter.has_maps() { self.users.keys().cloned().collect() } else { Vec::new() };
        for layout in known {
            // Where it cannot be had, whoever asks hears why.
            if is_room(&next, &layout)
                && let Ok(map) = self.draw(&layout)
            {
                next.insert(layout, map);
            }
        }
        let before = std::mem::replace(&mut self.maps, next);
        let page = &self.means.page;
        page.set_filter(self.filter.encode());
        self.wait_for_tick();
        self.means.page.set_filter_due(self.filter.encode());
        before.values().for_each(Map::open);
        // Whoever calls something by then is recorded as was asked.
        self.wait_for_tick();
    }

    /// Recording goes on, if it waits for a call: when the rules hold that were held back.
    fn begin(&mut self, why: String, process: u32) {
        let Some(rules) = self.held.take() else { return };
        self.unused.clear();
        self.change(rules);
        let page = &self.means.page;
        page.control(0, control::ARMED);
        page.turn(false, self.means.time.now());
        let _ = self.means.events.send(Event::Began { why, process });
    }

    /// Tells who asks which rules hold, or will.
    fn tell_rules(&self) {
        let rules = self.held.as_ref().unwrap_or(&self.rules);
        let _ = self.means.events.send(Event::Rules(rules.lines().collect()));
    }

    /// Takes other rules for the next filter.
    fn take(&mut self, rules: Rules) {
        self.warn_of_unused();
        self.filter = Filter {
            // Where numbers have been used up, which takes years, they begin again, and 0 stays the first.
            number: self.filter.number % MAX_NUMBER + 1,
            is_on: rules.is_of_functions(),
            is_of_threads: rules.is_of_threads(),
            is_timed: rules.are_of_timing() && self.means.clock == ClockKind::Tick,
            is_without_points: !rules.kinds().marks,
        };
        if self.filter.is_timed && !self.means.counter_is_even {
            let text =
                "the counter changes its speed on this machine: lengths that it tells are wrong";
            self.warn(text.into(), 0);
        }
        self.unused = Unused::of(&rules).lines();
        *self.shared.write().unwrap_or_else(PoisonError::into_inner) = rules.clone();
        self.rules = rules;
        self.tell_rules();
        if self.held.is_some() {
            // Nothing is recorded by them.
            return;
        }
        let payload = Payload::default()
            .number(filter::NUMBER, self.filter.number.into())
            .list(filter::RULE, self.rules.lines());
        tell(&self.means.events, payload.finish());
    }

    /// Sees to it that there is a map of a file that a process has mapped.
    fn see_to_map(
        &mut self,
        layout: &Layout,
        pid: u32,
        process: u32,
        module: &Module,
    ) -> io::Result<()> {
        if !self.note(pid, process, module) || !is_room(&self.maps, layout) {
            return Err(io::Error::other("there are too many files, or too large ones"));
        }
        if !self.maps.contains_key(layout) {
            let map = self.draw(layout)?;
            self.maps.insert(layout.clone(), map);
        }
        Ok(())
    }

    /// A process has a module. Says whether that can be kept.
    fn note(&mut self, pid: u32, process: u32, module: &Module) -> bool {
        let layout = Layout::of(module);
        let is_new = !self.users.contains_key(&layout);
        if is_new && self.users.len() >= MOST_FILES {
            return false;
        }
        let new = || Users { processes: BTreeSet::new(), pid, module: module.clone() };
        self.users.entry(layout).or_insert_with(new).processes.insert(process);
        true
    }

    fn draw(&mut self, layout: &Layout) -> io::Result<Map> {
        let functions = self.functions(layout);
        let functions = functions.as_deref();
        let mut unused = Unused::of(&self.rules).only(&self.unused);
        let map = Map::draw(layout, functions, self.filter, &self.rules, &mut unused);
        self.unused = unused.lines();
        self.has_drawn = true;
        map
    }

    fn functions(&mut self, layout: &Layout) -> Option<Arc<Functions>> {
        let key = layout.file();
        if let Some(known) = self.files.get(&key) {
            return known.clone();
        }
        let Users { processes, pid, module } = self.users.get(layout)?;
        let process = processes.first().copied().unwrap_or(0);
        let functions = match symbols::File::open(&self.means.search, module, *pid, None) {
            Ok(file) => Some(Arc::new(file.into_functions())),
            Err(error) => {
                let path = layout.path();
                self.warn(format!("the filter knows no function of {path}: {error}"), process);
                None
            }
        };
        if self.files.len() >= MOST_FILES {
            self.files.clear();
        }
        self.files.insert(key, functions.clone());
        functions
    }

    fn forget(&mut self, process: u32) {
        for map in self.maps.values_mut() {
            map.forget(process);
        }
        self.users.retain(|_, users| {
            users.processes.remove(&process);
            !users.processes.is_empty()
        });
        self.maps.retain(|layout, _| self.users.contains_key(layout));
    }

    /// Hooks look up when the tick moves; under the counter, with each event.
    fn wait_for_tick(&self) {
        let (before, since) = (self.means.page.tick(), Instant::now());
        while self.means.clock == ClockKind::Tick
            && self.means.page.tick() == before
            && since.elapsed() < PATIENCE
        {
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Says which rules have fitted nothing as long as they held.
    fn warn_of_unused(&mut self) {
        let unused = std::mem::take(&mut self.unused);
        let has_looked = std::mem::take(&mut self.has_drawn);
        for rule in unused.into_iter().filter(|_| has_looked) {
            let rule = match (&self.held, rule.strip_prefix("only ")) {
                (Some(_), Some(function)) => format!("--trigger {function}"),
                _ => format!("the filter \"{rule}\""),
            };
            self.warn(format!("{rule} has fitted no function that was seen"), 0);
        }
    }

    fn warn(&self, text: String, process: u32) {
        let _ = self.means.events.send(Event::Notice { level: Level::Warning, text, process });
    }
}

/// Whether a file may have a map besides those that have one.
fn is_room(maps: &HashMap<Layout, Map>, layout: &Layout) -> bool {
    let bytes: usize = maps.keys().map(Layout::size).sum();
    maps.contains_key(layout) || maps.len() < MOST_FILES && bytes + layout.size() <= MOST_BYTES
}

fn tell(events: &Sender<Event>, payload: Vec<u8>) {
    // After the recording's end nobody listens.
    let _ = events.send(Event::Packet(kind::FILTER, payload));
}
