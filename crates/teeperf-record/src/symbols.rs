//! Symbols of what was seen, found while the program runs: a thread of its own reads the
//! files of modules and answers with payloads of symbol packets.

use crate::control::Asker;
use crate::drain::Event;
use crate::escapes::Module;
use crate::inside::{self, View};
use crate::packets::{Level, Payload};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::{fs, io};
use teeperf_symbols::{Functions, Lines, Location, Search, Unpacked};
use teeperf_wire::body::symbols;
use teeperf_wire::packet::kind;
use teeperf_wire::word::module::ANCHOR;

/// Where a module's window is, and whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WindowId {
    /// Number of the process in the recording.
    pub(crate) process: u32,
    /// First site of the window.
    pub(crate) first_site: u32,
}

/// What the thread is asked for.
enum Job {
    Attached { process: u32, view: View },
    Open { window: WindowId, pid: u32, module: Module },
    Seen { window: WindowId, sites: Vec<Range<u32>> },
    Forget { process: u32 },
    Report(Option<Asker>),
    Finish,
}

/// The thread's other end. Dropping it lets the thread end when it has done its work.
#[derive(Debug)]
pub(crate) struct Symbols {
    jobs: Sender<Job>,
}

impl Symbols {
    /// Starts the thread, which answers with packets of symbols.
    pub(crate) fn start(search: Search, answers: Sender<Event>) -> std::io::Result<Self> {
        let (jobs, inbox) = channel();
        let thread = std::thread::Builder::new().name("teeperf-symbols".into());
        thread.spawn(|| {
            let (files, windows, views) = (HashMap::new(), HashMap::new(), HashMap::new());
            Worker { search, answers, files, windows, views }.run(inbox);
        })?;
        Ok(Self { jobs })
    }

    /// A process has attached, and sees these files.
    pub(crate) fn attached(&self, process: u32, view: Option<View>) {
        if let Some(view) = view {
            self.ask(Job::Attached { process, view });
        }
    }

    /// A window was opened: its file is read ahead of need.
    pub(crate) fn open(&self, window: WindowId, pid: u32, module: Module) {
        self.ask(Job::Open { window, pid, module });
    }

    /// Functions at these sites were seen.
    pub(crate) fn seen(&self, window: WindowId, sites: Vec<Range<u32>>) {
        if !sites.is_empty() {
            self.ask(Job::Seen { window, sites });
        }
    }

    /// Nothing more will be asked about this process.
    pub(crate) fn forget(&self, process: u32) {
        self.ask(Job::Forget { process });
    }

    /// Asks for [`Event::SnapshotSymbols`] when all that was asked before is answered.
    pub(crate) fn report(&self, asker: Option<Asker>) {
        self.ask(Job::Report(asker));
    }

    /// Asks for [`Event::SymbolsDone`] when all that was asked before is answered.
    pub(crate) fn finish(&self) {
        self.ask(Job::Finish);
    }

    fn ask(&self, job: Job) {
        // A thread that is gone has panicked and said so; the recording goes without symbols.
        let _ = self.jobs.send(job);
    }
}

/// Reading files must not take the processor from the program.
fn lower_priority() {
    set_priority(10);
}

/// At the end somebody waits for it. Refused without privilege, which costs time at worst
/// on a machine that is busy otherwise.
fn normal_priority() {
    set_priority(0);
}

fn set_priority(nice: libc::c_int) {
    // SAFETY: no pointers are involved. On Linux this is about the calling thread alone.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, libc::gettid() as libc::id_t, nice) };
}

/// Path and build-id, and where the path is that file's.
type FileId = (Vec<u8>, Vec<u8>, Option<View>);

struct Worker {
    search: Search,
    answers: Sender<Event>,
    /// By path and build-id; nothing where it could not be read.
    files: HashMap<FileId, Option<Rc<File>>>,
    windows: HashMap<WindowId, Window>,
    /// By processes' numbers, what they saw when they attached.
    views: HashMap<u32, View>,
}

/// A file that modules were loaded from.
pub(crate) struct File {
    path: PathBuf,
    search: Search,
    functions: Functions,
    /// Where the functions are defined that were asked for, by their starts: thousands of processes have the same ones.
    places: RefCell<HashMap<u64, Option<Rc<Location>>>>,
}

struct Window {
    module: Module,
    file: Rc<File>,
    /// Address in the file of what the module's addresses were told from.
    anchor: Option<u64>,
    /// Starts of the functions that were sent.
    sent: HashSet<u64>,
}

/// Most files kept open at once.
const MAX_FILES: usize = 1024;
/// Most places that are kept of a file.
const MAX_PLACES: usize = 1 << 18;
/// Most bytes of a payload, and one symbol more: where a disk is nearly full, as many as fit are written.
const PAYLOAD: usize = 16 << 10;

impl Worker {
    fn run(mut self, inbox: Receiver<Job>) {
        lower_priority();
        for job in inbox {
            match job {
                Job::Attached { process, view } => _ = self.views.insert(process, view),
                Job::Open { window, pid, module } => self.open(window, pid, module),
                Job::Seen { window, sites } => self.seen(window, &sites),
                Job::Forget { process } => {
                    self.windows.retain(|id, _| id.process != process);
                    self.views.remove(&process);
                }
                Job::Report(asker) => self.answer(Event::SnapshotSymbols(asker)),
                Job::Finish => {
                    normal_priority();
                    self.answer(Event::SymbolsDone);
                }
            }
        }
    }

    fn open(&mut self, window: WindowId, pid: u32, module: Module) {
        if self.files.len() >= MAX_FILES {
            self.files.clear();
        }
        let view = self.views.get(&window.process).copied();
        let key = (module.path.clone(), module.build_id.clone(), view);
        let file = match self.files.get(&key) {
            Some(file) => file.clone(),
            None => {
                let file = match File::open(&self.search, &module, pid, view) {
                    Ok(file) => Some(Rc::new(file)),
                    Err(error) => {
                        let path = String::from_utf8_lossy(&module.path);
                        let text = format!("no symbols of {path}: {error}");
                        let (level, process) = (Level::Information, window.process);
                        self.answer(Event::Notice { level, text, process });
                        None
                    }
                };
                self.files.insert(key, file.clone());
                file
            }
        };
        match file.and_then(|file| Window::of(module, file)) {
            Some(found) => {
                self.windows.insert(window, found);
            }
            None => {
                self.windows.remove(&window);
            }
        }
    }

    fn seen(&mut self, id: WindowId, sites: &[Range<u32>]) {
        let Some(window) = self.windows.get_mut(&id) else { return };
        for payload in window.payloads(id, sites) {
            self.answer(Event::Packet(kind::SYMBOLS, payload));
        }
    }

    fn answer(&self, event: Event) {
        // Without a recorder nobody waits for the answer.
        let _ = self.answers.send(event);
    }
}

impl File {
    /// The file as the process sees it; `view` is what it saw when it attached. An image that tells
    /// its name alone is looked for among those that the user named.
    pub(crate) fn open(
        search: &Search,
        module: &Module,
        pid: u32,
        view: Option<View>,
    ) -> Result<Self, teeperf_symbols::Error> {
        let mut search = search.clone();
        search.build_id = (!module.build_id.is_empty()).then(|| module.build_id.clone());
        let path = Path::new(OsStr::from_bytes(&module.path)).to_owned();
        if module.is_anchored
            && !path.is_absolute()
            && let Some((path, functions)) = search.image(&path, ANCHOR)
        {
            return Ok(Self::of(path, search, functions));
        }
        let own = View::own();
        // One that goes into another root later has its code from before.
        if let Some(view) = view.or_else(|| View::of(pid)).filter(|&view| Some(view) != own) {
            match inside(view, pid, &module.path) {
                Ok(None) => {}
                Ok(Some(copy)) => {
                    let mut unpacked = Unpacked::default();
                    unpacked.add(path.clone(), copy);
                    search.unpacked = Some(Arc::new(unpacked));
                }
                // A file here is another one, unless its build-id says otherwise.
                Err(source) if search.build_id.is_none() => {
                    return Err(teeperf_symbols::Error::Io { path, source });
                }
                Err(_) => {}
            }
        }
        let functions = Functions::open(&path, &search)?;
        Ok(Self::of(path, search, functions))
    }

    fn of(path: PathBuf, search: Search, functions: Functions) -> Self {
        Self { path, search, functions, places: RefCell::default() }
    }
}

/// A copy of the file that a process with this view sees at a path; nothing where this process sees
/// the same one. The file itself is not kept open, since a file system that is unmounted behind the
/// process must not be busy.
fn inside(view: View, pid: u32, path: &[u8]) -> io::Result<Option<fs::File>> {
    let mut file = view.open(pid, path)?;
    if inside::is_here(path, &file.metadata()?) {
        return Ok(None);
    }
    let mut copy = tempfile::tempfile()?;
    io::copy(&mut file, &mut copy)?;
    Ok(Some(copy))
}

impl File {
    /// Its functions alone.
    pub(crate) fn into_functions(self) -> Functions {
        self.functions
    }
}

impl Window {
    /// A module's, where it is known how far from its file it lies.
    fn of(mut module: Module, file: Rc<File>) -> Option<Self> {
        let mut anchor = None;
        if std::mem::take(&mut module.is_anchored) {
            let address = file.functions.named(ANCHOR)?.start;
            module.address = module.address.wrapping_add(address);
            anchor = Some(address);
        }
        Some(Self { module, file, anchor, sent: HashSet::new() })
    }

    /// Payloads with the functions that begin or lie at these sites and were not sent yet.
    fn payloads(&mut self, id: WindowId, sites: &[Range<u32>]) -> Vec<Vec<u8>> {
        let module = &self.module;
        let functions = &self.file.functions;
        let addresses = sites.iter().cloned().flatten().map(|site| file_address(module, site));
        let mut new: Vec<_> = addresses
            .filter_map(|address| functions.at(address))
            .filter(|symbol| self.sent.insert(symbol.start))
            .collect();
        new.retain(|symbol| site_of(module, symbol.start).is_some());
        let starts: Vec<_> = new.iter().map(|symbol| symbol.start).collect();
        let places = match starts.is_empty() {
            true => Vec::new(),
            false => self.file.places(&starts),
        };
        let begin = || {
            Payload::default()
                .number(symbols::PROCESS, id.process as u64)
                .number(symbols::FIRST_SITE, id.first_site as u64)
                .maybe(symbols::ANCHOR, self.anchor)
        };
        let (mut payloads, mut payload) = (Vec::new(), begin());
        let mut places = places.into_iter();
        for symbol in &new {
            let place = places.next().flatten();
            let Some(site) = site_of(module, symbol.start) else { continue };
            payload
                .push(symbols::SYMBOL, &record(site, symbol.size, &symbol.name, place.as_deref()));
            if payload.len() >= PAYLOAD {
                payloads.push(std::mem::replace(&mut payload, begin()).finish());
            }
        }
        if payload != begin() {
            payloads.push(payload.finish());
        }
        payloads
    }
}

impl File {
    /// Where the functions that start there are defined. Without that a symbol is still
    /// worth having, so what goes wrong here leaves the places empty.
    fn places(&self, starts: &[u64]) -> Vec<Option<Rc<Location>>> {
        let mut known = self.places.borrow_mut();
        if known.len() >= MAX_PLACES {
            known.clear();
        }
        let new = starts.iter().copied().filter(|start| !known.contains_key(start));
        let new: Vec<_> = new.collect();
        if !new.is_empty() {
            let lines = Lines::open(&self.path, &self.search);
            let places = lines.and_then(|lines| lines.definitions(&new)).unwrap_or_default();
            let mut places = places.into_iter();
            known.extend(new.into_iter().map(|start| {
                let from_lines = places.next().flatten();
                (start, self.functions.definition(start).or(from_lines).map(Rc::new))
            }));
        }
        starts.iter().map(|start| known.get(start).cloned().flatten()).collect()
    }
}

/// A symbol as [`symbols::SYMBOL`] has it.
fn record(site: u32, size: u64, name: &str, place: Option<&Location>) -> Vec<u8> {
    let name = &name.as_bytes()[..name.len().min(u16::MAX as usize)];
    let file = place.map_or("", |place| place.file.as_str()).as_bytes();
    let line = place.and_then(|place| place.line).unwrap_or(0);
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    let mut record = symbols::head(site, size, line, name.len() as u16).to_vec();
    record.extend(name);
    record.extend(file);
    record
}

/// The file's own virtual address of a site.
fn file_address(module: &Module, site: u32) -> u64 {
    let address = module.address.wrapping_add(site.wrapping_sub(module.first_site) as u64);
    address.wrapping_sub(module.bias)
}

/// Site of an address of the file, if it lies in the window.
pub(crate) fn site_of(module: &Module, address: u64) -> Option<u32> {
    let offset = address.wrapping_add(module.bias).wrapping_sub(module.address);
    (offset < module.sites as u64).then(|| module.first_site + offset as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use teeperf_wire::fields::read;

    #[inline(never)]
    fn somebody_to_be_found() -> u64 {
        // A call that is not inlined: the function's first line is its own, however it is optimised.
        std::fs::metadata("/proc/self").map_or(0, |_| 7)
    }

    /// Address in this process, and the load bias of its executable.
    fn own_module(first_site: u32) -> (Module, u32) {
        let path = std::env::current_exe().unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.ends_with(path.to_str().unwrap())).unwrap();
        let bias = u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
        let address = somebody_to_be_found as fn() -> u64 as usize as u64;
        let start = address & !0xFFF;
        let module = Module {
            first_site,
            sites: 0x2000,
            address: start,
            bias,
            is_anchored: false,
            build_id: vec![],
            path: path.as_os_str().as_bytes().to_vec(),
        };
        (module, first_site + (address - start) as u32)
    }

    fn symbols_in(payload: &[u8]) -> Vec<(u32, u32, String, String)> {
        let fields = read(payload).map(|field| field.unwrap());
        let symbols = fields.filter(|field| field.tag == symbols::SYMBOL).map(|field| {
            let number =
                |at: usize| u32::from_le_bytes(field.value[at..at + 4].try_into().unwrap());
            let name_length = u16::from_le_bytes(field.value[12..14].try_into().unwrap()) as usize;
            let text = |range: &[u8]| String::from_utf8(range.to_vec()).unwrap();
            let (name, file) = field.value[14..].split_at(name_length);
            (number(0), number(8), text(name), text(file))
        });
        symbols.collect()
    }

    #[test]
    fn a_function_that_was_seen_is_named_once() {
        assert_eq!(somebody_to_be_found(), 7);
        let (answers, events) = channel();
        let symbols = Symbols::start(Search::default(), answers).unwrap();
        let (module, site) = own_module(0x5000);
        let window = WindowId { process: 3, first_site: 0x5000 };
        symbols.open(window, std::process::id(), module);
        let bucket = site & !15..(site & !15) + 16;
        symbols.seen(window, vec![bucket.clone()]);
        symbols.seen(window, vec![bucket]);
        symbols.finish();
        let mut found = Vec::new();
        loop {
            match events.recv().unwrap() {
                Event::Packet(kind::SYMBOLS, payload) => found.extend(symbols_in(&payload)),
                Event::SymbolsDone => break,
                other => panic!("{other:?}"),
            }
        }
        let own: Vec<_> =
            found.iter().filter(|symbol| symbol.2.contains("somebody_to_be_found")).collect();
        let [(found_site, line, _, file)] = own[..] else { panic!("{found:?}") };
        assert_eq!(*found_site, site);
        assert!(file.ends_with("symbols.rs") && *line > 0, "{file}:{line}");
    }

    /// Guards: of thousands of processes with one program, each had the program's debug information read for it.
    #[test]
    fn a_function_of_a_second_process_is_not_looked_up_again() {
        let (answers, events) = channel();
        let symbols = Symbols::start(Search::default(), answers).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
        let (module, site) = own_module(0x5000);
        let module = Module { path: copy.as_os_str().as_bytes().to_vec(), ..module };
        let bucket = site..site + 1;
        let file_of = |process| {
            let window = WindowId { process, first_site: 0x5000 };
            symbols.open(window, std::process::id(), module.clone());
            symbols.seen(window, vec![bucket.clone()]);
            match events.recv().unwrap() {
                Event::Packet(kind::SYMBOLS, payload) => symbols_in(&payload).remove(0).3,
                other => panic!("{other:?}"),
            }
        };
        assert!(file_of(1).ends_with("symbols.rs"));
        fs::write(&copy, "no program any more").unwrap();
        assert!(file_of(2).ends_with("symbols.rs"));
    }

    #[test]
    fn a_file_that_is_none_is_a_notice_and_asks_nothing_of_the_rest() {
        let (answers, events) = channel();
        let symbols = Symbols::start(Search::default(), answers).unwrap();
        let (mut module, site) = own_module(0x5000);
        module.path = b"/nowhere".to_vec();
        let window = WindowId { process: 1, first_site: 0x5000 };
        symbols.open(window, std::process::id(), module);
        symbols.seen(window, Vec::from([site..site + 16, site..site + 16]));
        symbols.finish();
        let Event::Notice { text, process: 1, .. } = events.recv().unwrap() else { panic!() };
        assert!(text.contains("/nowhere"), "{text}");
        assert!(matches!(events.recv().unwrap(), Event::SymbolsDone));
    }
}
