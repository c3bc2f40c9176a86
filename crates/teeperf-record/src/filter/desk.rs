//! The thread that hands out maps of filters and changes them. To read a module's symbols may take long, so it is not
//! the one that processes attach to.

use super::Rules;
use super::maps::Maps;
use crate::Level;
use crate::clock::ClockPage;
use crate::control::Asker;
use crate::drain::Event;
use crate::escapes::Module;
use crate::packets::Payload;
use crate::socket::Connection;
use crate::symbols::{self, WindowId};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use teeperf_symbols::{Functions, Search};
use teeperf_wire::body::filter;
use teeperf_wire::filter::{Filter, MAX_NUMBER};
use teeperf_wire::hello::{Welcome, flag, refusal};
use teeperf_wire::packet::kind;
use teeperf_wire::shared::ClockKind;

/// What the thread is asked for.
#[derive(Debug)]
pub(crate) enum Job {
    /// The maps of a module of a process.
    Maps { connection: Connection, welcome: Welcome, pid: u32, process: u32, module: Module },
    /// Whether a thread is left out; its id is that which its process knows.
    Thread { connection: Connection, welcome: Welcome, pid: u32, tid: u32 },
    /// Other rules.
    Change { asker: Asker, rules: Rules },
    /// The process is gone.
    Forget { process: u32 },
}

/// The thread's other end. It ends when nobody has that any more.
#[derive(Clone, Debug)]
pub(crate) struct FilterDesk(Sender<Job>);

/// What the thread works with.
#[derive(Debug)]
pub(crate) struct Means {
    pub(crate) page: Arc<ClockPage>,
    pub(crate) clock: ClockKind,
    pub(crate) search: Search,
    pub(crate) events: Sender<Event>,
}

/// Most modules that have maps.
const MOST_MAPS: usize = 1 << 14;
/// Shortest time between two filters. A thread may have lost its processor between two instructions of a hook, about to
/// look at a map that is the next filter's by then.
const PAUSE: Duration = Duration::from_millis(50);
/// Longest wait for a tick.
const PATIENCE: Duration = Duration::from_secs(2);

impl FilterDesk {
    /// Starts the thread. The first rules hold from the beginning.
    pub(crate) fn start(means: Means, rules: Rules) -> io::Result<Self> {
        let (jobs, inbox) = channel();
        let mut worker = Worker {
            means,
            rules: Rules::default(),
            filter: Filter::default(),
            changed: None,
            maps: Vec::new(),
            files: HashMap::new(),
        };
        if !rules.is_empty() {
            worker.take(rules);
            worker.means.page.set_filter(worker.filter.encode());
            worker.means.page.set_filter_due(worker.filter.encode());
        }
        let thread = std::thread::Builder::new().name("teeperf-filter".into());
        thread.spawn(move || worker.run(inbox))?;
        Ok(Self(jobs))
    }

    /// Asks.
    pub(crate) fn ask(&self, job: Job) {
        // A thread that is gone has panicked and said so; who asked gets no answer.
        let _ = self.0.send(job);
    }
}

/// Path and build-id.
type FileId = (Vec<u8>, Vec<u8>);

struct Worker {
    means: Means,
    rules: Rules,
    filter: Filter,
    /// When that was changed last.
    changed: Option<Instant>,
    maps: Vec<Maps>,
    /// Functions by path and build-id; nothing where the file could not be read.
    files: HashMap<FileId, Option<Arc<Functions>>>,
}

impl Worker {
    fn run(mut self, inbox: Receiver<Job>) {
        for job in inbox {
            match job {
                Job::Maps { connection, welcome, pid, process, module } => {
                    // Who asked may be gone.
                    let _ = match self.maps_of(pid, process, module) {
                        Ok(maps) => {
                            let flags = welcome.flags | flag::OF_FILTER;
                            let chunk_size = maps.size() as u32;
                            let welcome = Welcome { flags, chunk_size, ..welcome };
                            connection.send(&welcome.encode(), &[maps.file()])
                        }
                        Err(error) => {
                            self.warn(format!("no filter for process {pid}: {error}"), process);
                            let refusal = refusal::CLOSED;
                            connection.send(&Welcome { refusal, ..welcome }.encode(), &[])
                        }
                    };
                }
                Job::Thread { connection, welcome, pid, tid } => {
                    let is_left_out = !self.has_thread(pid, tid);
                    let left_out = if is_left_out { flag::LEFT_OUT } else { 0 };
                    let flags = welcome.flags | left_out;
                    let _ = connection.send(&Welcome { flags, ..welcome }.encode(), &[]);
                }
                Job::Change { asker, rules } => {
                    self.change(rules);
                    asker.answer();
                }
                Job::Forget { process } => self.maps.retain(|maps| maps.window.process != process),
            }
        }
    }

    /// See [`teeperf_wire::filter`] for why in this order.
    fn change(&mut self, rules: Rules) {
        if let Some(changed) = self.changed {
            std::thread::sleep(PAUSE.saturating_sub(changed.elapsed()));
        }
        let before = self.filter;
        self.take(rules);
        for maps in &self.maps {
            if self.filter.is_on {
                self.tell(maps.draw(self.filter, &self.rules));
            }
        }
        let page = &self.means.page;
        page.set_filter(self.filter.encode());
        self.wait_for_tick();
        self.means.page.set_filter_due(self.filter.encode());
        for maps in &self.maps {
            maps.open(before.map());
        }
        // Whoever calls something by then is recorded as was asked.
        self.wait_for_tick();
        self.changed = Some(Instant::now());
    }

    /// Takes other rules for the next filter.
    fn take(&mut self, rules: Rules) {
        self.filter = Filter {
            // Where numbers have been used up, which takes years, they begin again, and 0 stays the first.
            number: self.filter.number % MAX_NUMBER + 1,
            is_on: rules.is_of_functions(),
            is_of_threads: rules.is_of_threads(),
        };
        self.rules = rules;
        let payload = Payload::default()
            .number(filter::NUMBER, self.filter.number.into())
            .list(filter::RULE, self.rules.lines());
        self.tell(vec![payload.finish()]);
        let _ = self.means.events.send(Event::Rules(self.rules.lines().collect()));
    }

    fn maps_of(&mut self, pid: u32, process: u32, module: Module) -> io::Result<&Maps> {
        let window = WindowId { process, first_site: module.first_site };
        if let Some(at) = self.maps.iter().position(|maps| maps.is_of(window, &module)) {
            return Ok(&self.maps[at]);
        }
        if self.maps.len() >= MOST_MAPS {
            return Err(io::Error::other(format!("more than {MOST_MAPS} modules have one")));
        }
        let functions = self.functions(pid, process, &module);
        let maps = Maps::create(window, module, functions)?;
        if self.filter.is_on {
            self.tell(maps.draw(self.filter, &self.rules));
        }
        self.maps.push(maps);
        let last = self.maps.len() - 1;
        Ok(&self.maps[last])
    }

    fn functions(&mut self, pid: u32, process: u32, module: &Module) -> Option<Arc<Functions>> {
        let key = (module.path.clone(), module.build_id.clone());
        if let Some(known) = self.files.get(&key) {
            return known.clone();
        }
        let functions = match symbols::File::open(&self.means.search, module, pid) {
            Ok(file) => Some(Arc::new(file.into_functions())),
            Err(error) => {
                let path = String::from_utf8_lossy(&module.path);
                self.warn(format!("the filter knows no function of {path}: {error}"), process);
                None
            }
        };
        self.files.insert(key, functions.clone());
        functions
    }

    fn has_thread(&self, pid: u32, tid: u32) -> bool {
        let name = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm"));
        self.rules.has_thread(tid, name.unwrap_or_default().trim_end_matches('\n'))
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

    fn tell(&self, payloads: Vec<Vec<u8>>) {
        for payload in payloads {
            // After the recording's end nobody listens.
            let _ = self.means.events.send(Event::Packet(kind::FILTER, payload));
        }
    }

    fn warn(&self, text: String, process: u32) {
        let _ = self.means.events.send(Event::Notice { level: Level::Warning, text, process });
    }
}
