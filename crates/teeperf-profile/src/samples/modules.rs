//! Modules: files whose code was sampled, each opened once, when an address in it is first looked for.
//!
//! Each has a range of addresses to itself, whatever process it is loaded in, and wherever: a **location** is an
//! address in these. So what is known of one, such as how to unwind there, is known for all processes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use rustc_hash::FxHashMap;
use teeperf_symbols::Search;

use super::kernel::Elsewhere;
use super::module::Module;

/// Bits of a location within its module: parts of larger files are not told apart.
const MODULE_BITS: u32 = 33;
/// What of an address is left within its module.
pub(crate) const WITHIN: u64 = (1 << MODULE_BITS) - 1;
/// Most modules: what has code of its own for each function, as just-in-time compilers do, has many.
const MAX_MODULES: usize = 1 << 20;

/// A module, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ModuleId(pub(crate) u32);

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
    known: Mutex<FxHashMap<Key, ModuleId>>,
    list: RwLock<Vec<Arc<Slot>>>,
    search: Search,
    is_inlined: bool,
    /// Functions of a kernel that is not the running one.
    elsewhere: Arc<Elsewhere>,
    has_kernel: AtomicBool,
    has_libc: AtomicBool,
}

/// Path and build-id.
type Key = (Arc<[u8]>, Arc<[u8]>);

struct Slot {
    path: Arc<[u8]>,
    build_id: Arc<[u8]>,
    of_kernel: bool,
    /// Stacks lead through it.
    is_met: AtomicBool,
    opened: OnceLock<Module>,
}

impl Slot {
    fn open(&self, search: &Search, is_inlined: bool, elsewhere: &Elsewhere) -> Module {
        let (path, of_kernel) = (path(&self.path), self.of_kernel);
        Module::open(&path, &self.build_id, of_kernel, search, is_inlined, elsewhere)
    }
}

impl Modules {
    /// None yet. `is_inlined` says whether functions that were inlined are told apart.
    pub(crate) fn new(search: Search, is_inlined: bool) -> Self {
        Self {
            known: Mutex::default(),
            list: RwLock::default(),
            search,
            is_inlined,
            elsewhere: Arc::default(),
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

    /// The number of a file; nothing where there are too many. The file is not looked at.
    pub(crate) fn id(&self, path: &[u8], build_id: &[u8], of_kernel: bool) -> Option<ModuleId> {
        let mut known = lock(&self.known);
        let key: Key = (path.into(), build_id.into());
        if let Some(&id) = known.get(&key) {
            return Some(id);
        }
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        if list.len() >= MAX_MODULES {
            return None;
        }
        let id = ModuleId(list.len() as u32);
        let (path, build_id) = key.clone();
        // One of each, whatever a recording says.
        let is_needed = (of_kernel && !self.has_kernel.swap(true, Relaxed))
            || (!of_kernel && is_libc(&path) && !self.has_libc.swap(true, Relaxed));
        let (is_met, opened) = (AtomicBool::new(false), OnceLock::new());
        let slot = Arc::new(Slot { path, build_id, of_kernel, is_met, opened });
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
        let (search, is_inlined) = (self.search.clone(), self.is_inlined);
        let elsewhere = self.elsewhere.clone();
        let open =
            move || _ = slot.opened.get_or_init(|| slot.open(&search, is_inlined, &elsewhere));
        // Where there is no thread for it, whoever needs it first opens it.
        let _ = std::thread::Builder::new().name("opens early".into()).spawn(open);
    }

    /// Path and build-id of a module.
    pub(crate) fn file(&self, id: ModuleId) -> Option<Key> {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        list.get(id.0 as usize).map(|slot| (slot.path.clone(), slot.build_id.clone()))
    }

    /// Why files that stacks lead through are not here, or not those that were sampled.
    pub(crate) fn missing(&self) -> Vec<String> {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        let met = list.iter().filter(|slot| slot.is_met.load(Relaxed));
        met.filter_map(|slot| slot.opened.get()?.missing.clone()).collect()
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
        let Modules { search, is_inlined, elsewhere, .. } = &*self.modules;
        let opened = slot.opened.get_or_init(|| slot.open(search, *is_inlined, elsewhere));
        Some((opened, is_new))
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
