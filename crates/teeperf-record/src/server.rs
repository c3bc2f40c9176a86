//! The thread that processes attach to. Answers hellos, and sees processes end.

use crate::arena::{self, Manner};
use crate::clock::{Audience, ClockPage, Time};
use crate::control::{Asker, LONGEST, Request};
use crate::drain::Event;
use crate::escapes::Module;
use crate::filter::Part;
use crate::filter::desk::{Answers, FilterDesk, Job};
use crate::heirs::Heirs;
use crate::inside::View;
use crate::liveness;
use crate::missing::{Ledger, Why};
use crate::packets::Level;
use crate::process::{Attached, Shared};
use crate::registry::{Decision, MAX_ARENAS, Registry};
use crate::segment::{Class, Segment};
use crate::socket::{Connection, Listener, Peer};
use crate::trust::Owner;
use std::collections::HashSet;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use teeperf_wire::hello::{VERSION, Welcome, flag, refusal};
use teeperf_wire::shared::{ClockKind, OnFull};

/// What every process is told alike.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) page: Arc<ClockPage>,
    pub(crate) time: Time,
    pub(crate) clock: ClockKind,
    /// [`teeperf_wire::hello::flag`]s.
    pub(crate) flags: u32,
    pub(crate) hz: u64,
    pub(crate) on_full: OnFull,
    /// Told of the first process before that looks at the tick.
    pub(crate) audience: Arc<Audience>,
    /// Bytes of a thread's tree, where calls are summed.
    pub(crate) tree: Option<usize>,
    pub(crate) filters: FilterDesk,
    /// What is recorded is not in this system: it does not ask for filters.
    pub(crate) is_elsewhere: bool,
    pub(crate) ledger: Arc<Ledger>,
}

/// The running thread. Dropping it ends it: who comes later finds no recorder.
#[derive(Debug)]
pub(crate) struct Server {
    door: Arc<Mutex<Door>>,
    thread: Option<JoinHandle<()>>,
    /// Closed to end the thread.
    stop: Option<io::PipeWriter>,
}

/// Whether processes may still attach. Held while one does.
#[derive(Debug)]
struct Door {
    attached: u64,
    is_closed: bool,
}

impl Server {
    /// Listens, and starts the thread. Those that have numbers have attached already, without asking.
    pub(crate) fn start(
        name: &str,
        terms: Terms,
        events: Sender<Event>,
        ids: Arc<AtomicU32>,
    ) -> io::Result<Self> {
        let mut listeners = vec![Listener::bind(name)?];
        // Without, only who has left the network does not find it.
        listeners.extend(Listener::bind_file(name, Owner::of_this_process().is_root()).ok());
        let (stopped, stop) = io::pipe()?;
        let door = Door { attached: ids.load(Relaxed).into(), is_closed: false };
        let door = Arc::new(Mutex::new(door));
        let desk = Desk {
            listeners,
            door: Arc::clone(&door),
            stopped,
            terms,
            events,
            owner: Owner::of_this_process(),
            registry: Registry::numbered(ids),
            waiting: Vec::new(),
            processes: Vec::new(),
            odd: HashSet::new(),
        };
        let thread = std::thread::Builder::new().name("teeperf-attach".into());
        let thread = thread.spawn(|| desk.run())?;
        Ok(Self { door, thread: Some(thread), stop: Some(stop) })
    }

    /// Lets nobody attach any more, unless others have attached than these so many: the events of those
    /// are still to be taken. Says whether it did.
    pub(crate) fn close(&self, attached: u64) -> bool {
        let mut door = self.door.lock().unwrap_or_else(|lock| lock.into_inner());
        door.is_closed |= door.attached == attached;
        door.is_closed
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic in it was already reported by the thread itself.
            let _ = thread.join();
        }
    }
}

struct Desk {
    /// One in the abstract namespace, which belongs to a network, and perhaps one in the file system.
    listeners: Vec<Listener>,
    door: Arc<Mutex<Door>>,
    stopped: io::PipeReader,
    terms: Terms,
    events: Sender<Event>,
    owner: Owner,
    registry: Registry,
    /// Connected, and said nothing yet.
    waiting: Vec<(Connection, Instant)>,
    /// Attached, to see them end.
    processes: Vec<Watched>,
    /// Of these it was said that they asked for what there is not: one with very many threads does for each.
    odd: HashSet<u32>,
}

struct Watched {
    process: OwnedFd,
    pid: u32,
    id: u32,
}

/// Who attaches.
struct Newcomer {
    id: u32,
    inner_pid: u32,
    exec_of: u32,
}

/// Bytes of an arena: fifteen large chunks.
const ARENA: usize = 1 << 20;
/// Most connections that may be silent at once.
const MAX_WAITING: usize = 64;
/// Longest silence of a connection.
const SILENCE: Duration = Duration::from_secs(2);

impl Desk {
    fn run(mut self) {
        loop {
            let ready = self.poll();
            let [stopped, ref rest @ ..] = ready[..] else { return };
            if stopped {
                return self.hear_last();
            }
            let (arrivals, rest) = rest.split_at(self.listeners.len());
            let (said, ended) = rest.split_at(self.waiting.len());
            self.see_off(ended);
            self.hear(said);
            for (at, _) in arrivals.iter().enumerate().filter(|(_, arrives)| **arrives) {
                self.accept(at);
            }
        }
    }

    /// Those that connected at the end and closed without a word are not forgotten. Nobody is answered any more.
    fn hear_last(mut self) {
        (0..self.listeners.len()).for_each(|at| self.accept(at));
        for (connection, _) in std::mem::take(&mut self.waiting) {
            let has_closed = connection.receive(&mut [0]).is_ok_and(|length| length == 0);
            if let Ok(peer) = connection.peer()
                && has_closed
            {
                self.hear_nothing(peer);
            }
        }
    }

    /// Waits until something is to be done. Says which: the pipe that ends the thread, the
    /// listeners, the silent, the processes.
    fn poll(&self) -> Vec<bool> {
        let entry = |file: BorrowedFd<'_>, events| libc::pollfd {
            fd: file.as_raw_fd(),
            events,
            revents: 0,
        };
        let crowded = self.waiting.len() >= MAX_WAITING;
        let listen = if crowded { 0 } else { libc::POLLIN };
        let mut all = vec![entry(self.stopped.as_fd(), libc::POLLIN)];
        all.extend(self.listeners.iter().map(|listener| entry(listener.as_fd(), listen)));
        all.extend(self.waiting.iter().map(|(silent, _)| entry(silent.as_fd(), libc::POLLIN)));
        all.extend(self.processes.iter().map(|one| entry(one.process.as_fd(), libc::POLLIN)));
        let timeout = if self.waiting.is_empty() { -1 } else { SILENCE.as_millis() as libc::c_int };
        // SAFETY: address and length are those of `all`. After an error nothing is ready.
        unsafe { libc::poll(all.as_mut_ptr(), all.len() as libc::nfds_t, timeout) };
        all.iter().map(|entry| entry.revents != 0).collect()
    }

    fn accept(&mut self, at: usize) {
        while self.waiting.len() < MAX_WAITING {
            match self.listeners[at].accept() {
                Ok(connection) if self.is_stranger(&connection) => {}
                Ok(connection) => self.waiting.push((connection, Instant::now())),
                Err(error) => {
                    if error.kind() != io::ErrorKind::WouldBlock {
                        // Such as too many open files: those who wait are tried again soon.
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    return;
                }
            }
        }
    }

    /// Whether a process of another user is at the other end that does not descend from this recorder: nothing that it does is
    /// of interest, and it takes no place from others.
    fn is_stranger(&self, connection: &Connection) -> bool {
        let is_known = |pid: u32| self.processes.iter().any(|one| one.pid == pid);
        connection.peer().is_ok_and(|peer| !self.owner.is_of(peer) && !descends(peer.pid, is_known))
    }

    fn hear(&mut self, said: &[bool]) {
        let waiting = std::mem::take(&mut self.waiting);
        for ((connection, since), &speaks) in waiting.into_iter().zip(said) {
            if speaks {
                self.answer(connection);
            } else if since.elapsed() < SILENCE {
                self.waiting.push((connection, since));
            } else if let Ok(peer) = connection.peer()
                && self.owner.is_of(peer)
            {
                self.notice(format!("process {} connected and said nothing", peer.pid));
            }
        }
    }

    /// Answers one message; the connection is closed behind the answer.
    fn answer(&mut self, connection: Connection) {
        let mut message = vec![0; LONGEST];
        let Ok(peer) = connection.peer() else { return };
        let Ok(length) = connection.receive(&mut message) else { return };
        if length == 0 {
            return self.hear_nothing(peer);
        }
        let processes = &self.processes;
        let is_descendant = || descends(peer.pid, |pid| processes.iter().any(|one| one.pid == pid));
        match self.registry.decide(&message[..length], peer, self.owner, is_descendant) {
            Decision::Attach { id, inner_pid, exec_of, with_arenas } => {
                let memory = if with_arenas {
                    self.arena(inner_pid).map(|arena| vec![arena])
                } else {
                    self.segments()
                };
                let newcomer = Newcomer { id, inner_pid, exec_of };
                let attached =
                    memory.and_then(|memory| self.attach(&connection, peer, newcomer, memory));
                if let Err(error) = attached {
                    // It may be gone.
                    let _ = self.refuse(&connection, refusal::CLOSED);
                    self.tell_of_failure(peer, &error);
                }
            }
            Decision::Segment { segment, token } => {
                // Who asked may be gone; its process's end is seen elsewhere.
                let _ = self.welcome(&connection, &segment, token, &[segment.file()]);
            }
            Decision::Arena { shared, inner_pid, token } => match self.arena(inner_pid) {
                // Who did not wait for it has none, and another thread may have one in its place.
                Ok(arena) => {
                    if self.welcome(&connection, &arena, token, &[arena.file()]).is_ok() {
                        let segments = &shared.segments;
                        segments.lock().unwrap_or_else(|lock| lock.into_inner()).push(arena);
                    }
                }
                Err(error) => {
                    let _ = self.refuse(&connection, refusal::CLOSED);
                    self.notice(format!("process {} needs more memory: {error}", peer.pid));
                }
            },
            Decision::Map { id: process, token, number, module } => {
                let Some(module) = Module::told(&module) else { return };
                let (welcome, pid) = (Welcome { token, ..self.blank(refusal::NONE) }, peer.pid);
                let job = Job::Map { connection, welcome, pid, process, number, module };
                self.terms.filters.ask(job);
            }
            Decision::Thread { tid, token } => {
                let is_left_out = self.terms.filters.leaves_out(peer.pid, tid);
                let flags = if is_left_out { flag::LEFT_OUT } else { 0 };
                let welcome = Welcome { token, flags, ..self.blank(refusal::NONE) };
                // Who asked may be gone.
                let _ = connection.send(&welcome.encode(), &[]);
            }
            Decision::Begin { id, token } => {
                let welcome = Welcome { token, ..self.blank(refusal::NONE) };
                let why = format!("process {} called a function of --trigger", peer.pid);
                self.terms.filters.ask(Job::Begin {
                    why,
                    process: id,
                    answers: Answers::Process(connection, welcome),
                });
            }
            Decision::Unmapped => {
                self.terms.ledger.misses(Why::Limits, &executable_of(peer.pid), peer.pid);
            }
            Decision::Control(request) => self.control(Asker { connection, request }),
            // Who asked may be gone.
            Decision::Answer(answer) => _ = connection.send(&answer, &[]),
            Decision::Refuse(refusal::UNKNOWN) => self.refuse_once(
                &connection,
                peer.pid,
                "sent a request that the recorder does not know: most likely it has the library of another version of teeperf",
            ),
            Decision::NoMoreArenas => {
                let what = format!("asked for memory for more than {MAX_ARENAS} threads");
                self.refuse_once(&connection, peer.pid, &what);
            }
            Decision::Refuse(why) => {
                // Who asked may be gone.
                let _ = self.refuse(&connection, why);
                self.notice(match why {
                    refusal::VERSION => {
                        format!("process {} was built with another version of teeperf", peer.pid)
                    }
                    _ => format!("process {} is one too many", peer.pid),
                });
            }
            Decision::Ignore => {}
        }
    }

    /// Who is at the other end has closed without a word, as hooks do that do not trust the recorder.
    fn hear_nothing(&mut self, peer: Peer) {
        // One that descends from this recorder, or it would not have been let in.
        if !self.owner.is_of(peer) && self.odd.insert(peer.pid) {
            let mut name = executable_of(peer.pid);
            if name.is_empty() {
                name = format!("of user {}", peer.uid).into_bytes();
            }
            self.terms.ledger.misses(Why::User, &name, peer.pid);
        }
    }

    /// The first memory of a process: small chunks, and large ones or trees.
    fn segments(&self) -> io::Result<Vec<Arc<Segment>>> {
        let first = Segment::create(Class::Small)?;
        first.announce(2);
        let second = self.terms.tree.map_or(Class::Large, Class::first_trees);
        Ok(vec![Arc::new(first), Arc::new(Segment::create_what_fits(second)?)])
    }

    fn arena(&self, pid: u32) -> io::Result<Arc<Segment>> {
        let manner = Manner {
            clock: self.terms.clock,
            on_full: self.terms.on_full,
            hz: self.terms.hz,
            cookie: random()? | 1,
            pid,
        };
        arena::create(ARENA, manner, &self.terms.page).map(Arc::new)
    }

    fn attach(
        &mut self,
        connection: &Connection,
        peer: Peer,
        Newcomer { id, inner_pid, exec_of }: Newcomer,
        memory: Vec<Arc<Segment>>,
    ) -> io::Result<()> {
        let Some(first) = memory.first().map(Arc::clone) else { return Ok(()) };
        let process = connection.peer_process(peer)?;
        let door = Arc::clone(&self.door);
        let mut door = door.lock().unwrap_or_else(|lock| lock.into_inner());
        if door.is_closed {
            let _ = self.refuse(connection, refusal::CLOSED);
            return Ok(());
        }
        if self.terms.audience.arrives() && self.terms.clock == ClockKind::Tick {
            self.terms.page.set_time(self.terms.time.now());
        }
        self.terms.ledger.attaches(peer.pid);
        let token = random()? | 1;
        let shared = Arc::new(Shared { segments: Mutex::new(memory) });
        // An arena is no process's whose children have it.
        let heirs = match first.clock() {
            None => Some(Arc::new(Heirs::create(self.terms.tree)?)),
            Some(_) => None,
        };
        let attached = Attached {
            id,
            pid: peer.pid,
            inner_pid,
            exec_of,
            parent_pid: parent_of(peer.pid).unwrap_or(0),
            executable: executable_of(peer.pid),
            arguments: arguments_of(peer.pid),
            shared: Arc::clone(&shared),
            heirs: heirs.clone(),
            // It waits for the answer, and has no more until then.
            filters: liveness::filters(peer.pid),
            view: View::of(peer.pid),
        };
        // Where there is no /proc, children that are left without having attached are not known.
        let lent = first.lend();
        let own = lent.as_ref().map_or(first.file(), AsFd::as_fd);
        let lent_heirs = heirs.as_ref().and_then(|heirs| heirs.lend().ok());
        let of_heirs = heirs.as_ref().map(|heirs| heirs.file());
        let of_heirs = lent_heirs.as_ref().map(AsFd::as_fd).or(of_heirs);
        // An arena has a clock of its own.
        let files = match of_heirs {
            Some(heirs) => vec![self.terms.page.file(), own, heirs],
            None => vec![own],
        };
        self.welcome(connection, &first, token, &files).map_err(|error| match error.kind() {
            // It did not wait for the answer.
            io::ErrorKind::ConnectionReset => io::ErrorKind::BrokenPipe.into(),
            _ => error,
        })?;
        door.attached += 1;
        if exec_of != 0 {
            // The program before this one in the same process writes no more.
            self.processes.retain(|watched| watched.id != exec_of);
            self.terms.filters.ask(Job::Forget { process: exec_of });
            self.tell(Event::Gone { id: exec_of, at: self.terms.time.now(), replaced: true });
        }
        let has_arenas = first.clock().is_some();
        self.registry.attached((peer.pid, has_arenas), id, token, shared);
        self.processes.push(Watched { process, pid: peer.pid, id });
        self.tell(Event::Attached(attached));
        Ok(())
    }

    /// An error when who asked did not wait for it.
    fn welcome(
        &self,
        connection: &Connection,
        segment: &Segment,
        token: u64,
        files: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let (chunk_size, chunks) = segment.class().shape();
        let of_trees = matches!(segment.class(), Class::Trees { .. });
        let blank = self.blank(refusal::NONE);
        let welcome = Welcome {
            token,
            chunk_size: chunk_size as u32,
            chunks: chunks as u32,
            flags: blank.flags | if of_trees { flag::OF_TREES } else { 0 },
            ..blank
        };
        connection.send(&welcome.encode(), files)
    }

    /// An error when who asked did not wait for it.
    fn refuse(&self, connection: &Connection, why: u32) -> io::Result<()> {
        connection.send(&self.blank(why).encode(), &[])
    }

    /// Says so of the first of a process's requests alone, and not where it has ended meanwhile.
    fn refuse_once(&mut self, connection: &Connection, pid: u32, what: &str) {
        if self.refuse(connection, refusal::UNKNOWN).is_ok() && self.odd.insert(pid) {
            self.notice(format!("process {pid} {what}"));
        }
    }

    fn blank(&self, refusal: u32) -> Welcome {
        Welcome {
            version: VERSION,
            refusal,
            clock: self.terms.clock as u32,
            on_full: self.terms.on_full as u32,
            token: 0,
            hz: self.terms.hz,
            chunk_size: 0,
            chunks: 0,
            flags: self.terms.flags,
        }
    }

    fn control(&self, asker: Asker) {
        match &asker.request {
            Request::Pause => {
                self.terms.page.turn(true, self.terms.time.now());
                self.wait_for_tick();
                self.tell(Event::Paused(true));
            }
            // It waits for a call, and begins now.
            Request::Resume if self.terms.page.is_armed() => {
                let why = "it was resumed".into();
                let answers = Answers::Asker(asker);
                return self.terms.filters.ask(Job::Begin { why, process: 0, answers });
            }
            Request::Resume => {
                self.terms.page.turn(false, self.terms.time.now());
                self.tell(Event::Paused(false));
            }
            // It is answered when it is written. That may take long, and others need memory meanwhile.
            Request::Snapshot => return self.tell(Event::Snapshot(Some(asker))),
            Request::Filter(_) | Request::Events(_) if self.terms.is_elsewhere => {
                return asker.refuse(
                    "code in a TEE records all functions that it was built with: name what is to have hooks when it is built",
                );
            }
            Request::Timed(rules) if !rules.is_empty() && self.refusal_to_time().is_some() => {
                return asker.refuse(self.refusal_to_time().unwrap_or_default());
            }
            // It is answered when it holds.
            Request::Filter(rules) | Request::Timed(rules) | Request::Events(rules) => {
                let rules = rules.clone();
                let part = match asker.request {
                    Request::Timed(_) => Part::Timing,
                    Request::Events(_) => Part::Events,
                    _ => Part::Recording,
                };
                return self.terms.filters.ask(Job::Change { asker, rules, part });
            }
            Request::Status => return self.tell(Event::Status(asker)),
            Request::Stop => self.tell(Event::Stop("it was asked to end".into())),
        }
        asker.answer();
    }

    /// Why functions cannot be timed by the counter.
    fn refusal_to_time(&self) -> Option<&'static str> {
        if self.terms.is_elsewhere {
            Some("code in a TEE does not ask which functions are timed: record with --clock cycle")
        } else if self.terms.clock == ClockKind::Cycle {
            Some("its clock is the counter, which times every call already")
        } else if self.terms.tree.is_some() {
            Some("calls are summed, and no single ones are written: record without --probe tree")
        } else {
            None
        }
    }

    /// Hooks look up when the tick moves: behind that, nothing more is recorded, which is what
    /// the answer says. No tick is waited for longer than [`SILENCE`].
    fn wait_for_tick(&self) {
        let (before, since) = (self.terms.page.tick(), Instant::now());
        while self.terms.clock == ClockKind::Tick
            && self.terms.page.tick() == before
            && since.elapsed() < SILENCE
        {
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    fn see_off(&mut self, ended: &[bool]) {
        let mut ended = ended.iter();
        let is_gone = |_: &mut Watched| ended.next().copied().unwrap_or(false);
        let at = self.terms.time.now();
        let gone: Vec<_> = self.processes.extract_if(.., is_gone).collect();
        for Watched { pid, id, .. } in gone {
            self.registry.gone(pid, id);
            self.terms.filters.ask(Job::Forget { process: id });
            self.tell(Event::Gone { id, at, replaced: false });
        }
    }

    /// A process asked and was given nothing. The recorder says so once: it does not look for its reasons.
    fn tell_of_failure(&self, peer: Peer, error: &io::Error) {
        let ledger = &self.terms.ledger;
        ledger.attaches(peer.pid);
        match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM) => {
                ledger.misses(Why::NoRoom, &executable_of(peer.pid), peer.pid);
            }
            _ if error.kind() == io::ErrorKind::BrokenPipe => {
                let program = executable_of(peer.pid);
                ledger.misses(Why::without_answer(&program), &program, peer.pid);
            }
            _ => self.notice(format!("process {} could not attach: {error}", peer.pid)),
        }
    }

    fn notice(&self, text: String) {
        self.tell(Event::Notice { level: Level::Warning, text, process: 0 });
    }

    fn tell(&self, event: Event) {
        // After the recording's end nobody listens.
        let _ = self.events.send(event);
    }
}

/// From the kernel's generator.
pub(crate) fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    // SAFETY: address and length are those of `bytes`.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got == 8 { Ok(u64::from_ne_bytes(bytes)) } else { Err(io::Error::last_os_error()) }
}

pub(crate) fn executable_of(pid: u32) -> Vec<u8> {
    let link = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    link.into_os_string().into_vec()
}

/// A process's arguments; of many bytes the first, and a mark: a program may have megabytes of them.
pub(crate) fn arguments_of(pid: u32) -> Vec<Vec<u8>> {
    const MOST: u64 = 64 << 10;
    let mut line = Vec::new();
    if let Ok(file) = std::fs::File::open(format!("/proc/{pid}/cmdline")) {
        // Of a process that ends meanwhile there is what was read.
        let _ = file.take(MOST).read_to_end(&mut line);
    }
    if line.len() as u64 == MOST {
        line.extend("…".bytes());
    }
    let line = line.strip_suffix(&[0]).unwrap_or(&line);
    line.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect()
}

/// Fourth number of proc_pid_stat(5), behind a name that may contain anything.
pub(crate) fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// Whether a process descends from this one, or from one that is known.
pub(crate) fn descends(pid: u32, is_known: impl Fn(u32) -> bool) -> bool {
    is_known(pid) || ancestors(pid).skip(1).any(|pid| pid == std::process::id() || is_known(pid))
}

/// The process, its parent, and so on.
pub(crate) fn ancestors(pid: u32) -> impl Iterator<Item = u32> {
    const MOST_GENERATIONS: usize = 64;
    std::iter::successors(Some(pid), |&pid| parent_of(pid)).take(MOST_GENERATIONS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Rules;
    use crate::filter::desk::Means;
    use std::collections::HashMap;
    use std::sync::mpsc::{Receiver, channel};
    use teeperf_symbols::Search;
    use teeperf_wire::hello::{Hello, WELCOME_SIZE, want};

    fn server(name: &str) -> (Server, Receiver<Event>) {
        server_and_ledger(name, Arc::default())
    }

    fn server_and_ledger(name: &str, ledger: Arc<Ledger>) -> (Server, Receiver<Event>) {
        let (events, heard) = channel();
        let page = Arc::new(ClockPage::create(0, 0).unwrap());
        let means = Means {
            page: Arc::clone(&page),
            clock: ClockKind::Tick,
            counter_is_even: true,
            search: Search::default(),
            events: events.clone(),
            time: Time::start(ClockKind::Tick),
        };
        let terms = Terms {
            page,
            time: Time::start(ClockKind::Tick),
            clock: ClockKind::Tick,
            flags: 0,
            hz: 0,
            on_full: OnFull::Wait,
            audience: Arc::new(Audience::new(true)),
            tree: None,
            filters: FilterDesk::start(means, Rules::default(), None).unwrap(),
            is_elsewhere: false,
            ledger,
        };
        (Server::start(name, terms, events, Arc::default()).unwrap(), heard)
    }

    fn hello(name: &str) -> Connection {
        let (pid, want) = (std::process::id(), want::SEGMENTS);
        let hello = Hello { version: VERSION, segment: 0, token: 0, pid, want };
        let connection = Connection::connect(name).unwrap();
        connection.send(&hello.encode(), &[]).unwrap();
        connection
    }

    /// This process attaches, or tries to.
    fn attach(name: &str) -> u32 {
        let connection = hello(name);
        let mut welcome = [0; WELCOME_SIZE];
        let length = connection.receive(&mut welcome).unwrap();
        Welcome::decode(&welcome[..length]).unwrap().refusal
    }

    /// Who is welcomed is heard of, whenever that is: to look for newcomers takes time, in which one may attach.
    #[test]
    fn the_door_closes_behind_those_who_were_heard_of() {
        let name = format!("teeperf-door-{}", std::process::id());
        let (server, heard) = server(&name);
        assert_eq!(attach(&name), refusal::NONE);
        assert!(!server.close(0), "one has attached");
        assert!(matches!(heard.try_recv(), Ok(Event::Attached(_))));
        assert_eq!(attach(&name), refusal::NONE);
        assert!(!server.close(1));
        assert!(server.close(2));
        assert_eq!(attach(&name), refusal::CLOSED);
        drop(server);
        let attached = heard.iter().filter(|event| matches!(event, Event::Attached(_)));
        assert_eq!(attached.count(), 1);
    }

    /// Such as a program that was started while the recorder was stopped, and has gone on without it.
    #[test]
    fn a_process_that_did_not_wait_for_the_answer_is_missing() {
        let name = format!("teeperf-late-{}", std::process::id());
        let ledger: Arc<Ledger> = Arc::default();
        let (server, heard) = server_and_ledger(&name, Arc::clone(&ledger));
        let door = server.door.lock().unwrap();
        drop(hello(&name));
        drop(door);
        while ledger.missing(HashMap::new()).is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let [missing] = &ledger.missing(HashMap::new())[..] else { panic!("one is missing") };
        assert!(missing.text.contains("answered too late"), "{missing:?}");
        assert!(server.close(0));
        drop(server);
        assert_eq!(heard.iter().count(), 0);
    }

    #[test]
    fn an_arena_that_nobody_waited_for_is_none_of_the_processes() {
        let name = format!("teeperf-arena-{}", std::process::id());
        let (server, heard) = server(&name);
        let ask = |segment, token| {
            let (pid, want) = (std::process::id(), want::ARENA);
            let hello = Hello { version: VERSION, segment, token, pid, want };
            let connection = Connection::connect(&name).unwrap();
            connection.send(&hello.encode(), &[]).unwrap();
            connection
        };
        let answer = |connection: Connection| {
            let mut welcome = [0; WELCOME_SIZE];
            let length = connection.receive(&mut welcome).unwrap();
            Welcome::decode(&welcome[..length]).unwrap()
        };
        let token = answer(ask(0, 0)).token;
        let Ok(Event::Attached(Attached { shared, .. })) = heard.recv() else {
            panic!("it has not attached")
        };
        // Until it is gone the recorder cannot see how many there are.
        let arenas = shared.segments.lock().unwrap();
        drop(ask(1, token));
        drop(arenas);
        assert_eq!(answer(ask(2, token)).refusal, refusal::NONE);
        drop(server);
        assert_eq!(shared.segments.lock().unwrap().len(), 2);
    }

    #[test]
    fn a_process_is_described() {
        let own = std::process::id();
        assert_eq!(
            executable_of(own),
            std::env::current_exe().unwrap().into_os_string().into_vec()
        );
        let arguments: Vec<_> = std::env::args_os().map(OsStringExt::into_vec).collect();
        assert_eq!(arguments_of(own), arguments);
        assert_eq!(parent_of(own), Some(std::os::unix::process::parent_id()));
        assert_eq!(parent_of(u32::MAX), None);
    }
}
