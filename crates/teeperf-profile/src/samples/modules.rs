//! Modules: files whose code was sampled, each opened once, when an address in it is first looked for.
//!
//! Each has a range of addresses to itself, whatever process it is loaded in, and wherever: a **location** is an
//! address in these. So what is known of one, such as how to unwind there, is known for all processes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use rustc_hash::FxHashMap;
use teeperf_symbols::Search;

use super::inside::{FOREIGN, Inside, NOT_HERE};
use super::jitted::Jitted;
use super::kernel::{self, Elsewhere};
use super::module::Module;
use crate::contents::{Map, Part};

/// Bits of a location within its module: parts of larger files are not told apart.
const MODULE_BITS: u32 = 33;
/// What of an address is left within its module.
pub(crate) const WITHIN: u64 = (1 << MODULE_BITS) - 1;
/// Most modules: what has code of its own for each function, as just-in-time compilers do, has many.
const MAX_MODULES: usize = 1 << 20;

/// A module, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ModuleId(pub(crate) u32);

/// Whose code a module is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A file's.
    File,
    /// That of a file of another mount namespace or below another root, by its number in the
    /// recording.
    Inside(u64),
    /// The kernel's. `at` is where the symbol that its path ends with stood, or a module of it; 0: not known.
    Kernel { at: u64 },
    /// It was made in memory, and a process may have told of its functions. Addresses are told from `base`.
    Jitted { pid: u32, base: u64 },
}

impl Kind {
    /// Of a map of the kernel's.
    pub(crate) fn kernel(map: &Map<'_>) -> Self {
        let path = path(map.path);
        let is_whole = kernel::module_of(&path).is_none();
        let at = match kernel::reference(&path) {
            Some(_) => map.offset,
            None if is_whole => 0,
            None => map.address,
        };
        Self::Kernel { at }
    }

    /// Of code that was made in memory, in a stretch that begins at an address. From there on it has 4 GiB or more to itself: a
    /// compiler's code lies together, and each module reads of its process what it needs.
    pub(crate) fn jitted(pid: u32, address: u64) -> Self {
        Self::Jitted { pid, base: address & !(WITHIN >> 1) }
    }
}

/// An address in a module, by which it is known in all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Location(pub(crate) u64);

impl Location {
    /// An address in no module.
    pub(crate) const UNKNOWN: Self = Self(0);

    /// Of an address in a module, told from where the module begins.
    pub(crate) fn of(module: ModuleId, relative: u64) -> Self {
        Self(Self::base(module) | relative & WITHIN)
    }

    /// Where a module begins.
    pub(crate) fn base(module: ModuleId) -> u64 {
        (u64::from(module.0) + 1) << MODULE_BITS
    }

    /// The module, and where in it.
    pub(crate) fn parts(self) -> Option<(ModuleId, u64)> {
        let number = (self.0 >> MODULE_BITS).checked_sub(1)?;
        Some((ModuleId(number as u32), self.0 & WITHIN))
    }
}

/// All of them.
pub(crate) struct Modules {
    known: Mutex<FxHashMap<(Key, Kind), ModuleId>>,
    list: RwLock<Vec<Arc<Slot>>>,
    opening: Arc<Opening>,
    has_kernel: AtomicBool,
    has_libc: AtomicBool,
}

/// Path and build-id.
type Key = (Arc<[u8]>, Arc<[u8]>);

struct Slot {
    path: Arc<[u8]>,
    build_id: Arc<[u8]>,
    kind: Kind,
    /// Stacks lead through it.
    is_met: AtomicBool,
    opened: OnceLock<Module>,
}

/// What modules are opened with.
struct Opening {
    search: Search,
    is_inlined: bool,
    /// The recording is of this machine and of the system that runs.
    is_here: AtomicBool,
    /// It is of another machine.
    is_foreign: AtomicBool,
    /// Functions of a kernel that is not the running one.
    elsewhere: Elsewhere,
    /// What processes told of code that they made.
    jitted: Mutex<FxHashMap<u32, Arc<Jitted>>>,
    /// Files that the recording has.
    inside: Mutex<Inside>,
}

impl Opening {
    fn module<'a>(&self, slot: &'a Slot) -> &'a Module {
        slot.opened.get_or_init(|| {
            let path = path(&slot.path);
            match slot.kind {
                Kind::File if self.is_foreign.load(Relaxed) => {
                    let search = &self.search;
                    let has_own = search.unpacked.is_some();
                    Module::inside(&path, &slot.build_id, search, self.is_inlined, has_own, FOREIGN)
                }
                Kind::File => Module::file(&path, &slot.build_id, &self.search, self.is_inlined),
                Kind::Inside(number) => {
                    let own = lock(&self.inside).search(number, &path, &self.search);
                    let search = own.as_ref().unwrap_or(&self.search);
                    let has_own = own.is_some();
                    Module::inside(
                        &path,
                        &slot.build_id,
                        search,
                        self.is_inlined,
                        has_own,
                        NOT_HERE,
                    )
                }
                Kind::Kernel { at } => {
                    let is_here = self.is_here.load(Relaxed);
                    let id = &slot.build_id;
                    Module::kernel(&path, id, at, &self.search, &self.elsewhere, is_here)
                }
                Kind::Jitted { pid, base } => {
                    let new = || Arc::new(Jitted::of(pid, &self.search));
                    let told = lock(&self.jitted).entry(pid).or_insert_with(new).clone();
                    Module::jitted(&path, told, base)
                }
            }
        })
    }
}

impl Modules {
    /// None yet. `is_inlined` says whether functions that were inlined are told apart.
    pub(crate) fn new(search: Search, is_inlined: bool) -> Self {
        Self {
            known: Mutex::default(),
            list: RwLock::default(),
            opening: Arc::new(Opening {
                search,
                is_inlined,
                is_here: AtomicBool::new(false),
                is_foreign: AtomicBool::new(false),
                elsewhere: Elsewhere::default(),
                jitted: Mutex::default(),
                inside: Mutex::default(),
            }),
            has_kernel: AtomicBool::new(false),
            has_libc: AtomicBool::new(false),
        }
    }

    /// None yet, where nobody will ask for functions.
    pub(crate) fn of_tables(search: Search) -> Self {
        // As if those that are opened early had been.
        let (has_kernel, has_libc) = (AtomicBool::new(true), AtomicBool::new(true));
        Self { has_kernel, has_libc, ..Self::new(search, false) }
    }

    /// Whether the recording is of this machine and of the system that runs, and whether it may be
    /// of this machine.
    pub(crate) fn is_here(&self, is_here: bool, may_be: bool) {
        self.opening.is_here.store(is_here, Relaxed);
        self.opening.is_foreign.store(!may_be, Relaxed);
    }

    /// The recording has a part of a file.
    pub(crate) fn take(&self, part: &Part<'_>) {
        lock(&self.opening.inside).take(part);
    }

    /// The number of a file; nothing where there are too many. The file is not looked at.
    pub(crate) fn id(&self, path: &[u8], build_id: &[u8], kind: Kind) -> Option<ModuleId> {
        let mut known = lock(&self.known);
        let key: (Key, Kind) = ((path.into(), build_id.into()), kind);
        if let Some(&id) = known.get(&key) {
            return Some(id);
        }
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        if list.len() >= MAX_MODULES {
            return None;
        }
        let id = ModuleId(list.len() as u32);
        let (path, build_id) = key.0.clone();
        // One of each, whatever a recording says.
        let is_needed = match kind {
            Kind::File | Kind::Inside(_) => is_libc(&path) && !self.has_libc.swap(true, Relaxed),
            Kind::Kernel { .. } => !self.has_kernel.swap(true, Relaxed),
            Kind::Jitted { .. } => false,
        };
        let (is_met, opened) = (AtomicBool::new(false), OnceLock::new());
        let slot = Arc::new(Slot { path, build_id, kind, is_met, opened });
        list.push(slot.clone());
        known.insert(key, id);
        if is_needed {
            self.open_early(slot);
        }
        Some(id)
    }

    /// The kernel takes longer to tell its functions than a short recording takes to be read, and most samples need some; and stacks
    /// begin in the C library, whose debug information is large. These are opened when they are first heard of.
    fn open_early(&self, slot: Arc<Slot>) {
        let opening = self.opening.clone();
        let open = move || _ = opening.module(&slot);
        // Where there is no thread for it, whoever needs it first opens it.
        let _ = std::thread::Builder::new().name("opens early".into()).spawn(open);
    }

    /// Path and build-id of a module.
    pub(crate) fn file(&self, id: ModuleId) -> Option<Key> {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        list.get(id.0 as usize).map(|slot| (slot.path.clone(), slot.build_id.clone()))
    }

    /// Names of files that stacks lead through and that are not here, or not those that were sampled; and why.
    pub(crate) fn missing(&self) -> Vec<(String, String)> {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        let met = list.iter().filter(|slot| slot.is_met.load(Relaxed));
        met.filter_map(|slot| {
            let module = slot.opened.get()?;
            Some((module.name.clone(), module.missing.clone()?))
        })
        .collect()
    }

    /// Of files that stacks lead through, what of their debug information stands in files that are not here: a text for each.
    pub(crate) fn incomplete(&self) -> Vec<String> {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        let met = list.iter().filter(|slot| slot.is_met.load(Relaxed));
        met.filter_map(|slot| slot.opened.get()?.incomplete()).collect()
    }

    #[cfg(test)]
    pub(crate) fn kind(&self, id: ModuleId) -> Option<Kind> {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        list.get(id.0 as usize).map(|slot| slot.kind)
    }

    /// What a worker asks modules by.
    pub(crate) fn view(self: &Arc<Self>) -> View {
        View { modules: self.clone(), seen: Vec::new() }
    }
}

/// A worker's own way to modules, without locks for those that it has seen.
pub(crate) struct View {
    modules: Arc<Modules>,
    seen: Vec<Option<Arc<Slot>>>,
}

impl View {
    /// The module, and whether the worker has not seen it before.
    pub(crate) fn module(&mut self, id: ModuleId) -> Option<(&Module, bool)> {
        let at = id.0 as usize;
        let is_new = self.seen.get(at).is_none_or(Option::is_none);
        if is_new {
            let list = self.modules.list.read().unwrap_or_else(PoisonError::into_inner);
            let slot = list.get(at)?.clone();
            slot.is_met.store(true, Relaxed);
            self.seen.resize(self.seen.len().max(at + 1), None);
            self.seen[at] = Some(slot);
        }
        let slot = self.seen[at].as_ref()?;
        Some((self.modules.opening.module(slot), is_new))
    }

    /// Whether a file is entered there.
    pub(crate) fn is_entry(&mut self, location: Location) -> bool {
        let module = location.parts().and_then(|(id, at)| Some((self.module(id)?.0, at)));
        module.is_some_and(|(module, at)| module.is_entry(at))
    }
}

/// Whether a file is the C library, by its name: glibc's, the same before 2.34, and musl's.
fn is_libc(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    [&b"libc.so"[..], b"libc-2.", b"libc.musl-", b"ld-musl-"]
        .iter()
        .any(|begin| name.starts_with(begin))
}

fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(bytes)).to_owned()
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
