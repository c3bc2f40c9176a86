//! The modules of the process: which are hooked, and which stretch of the site space each
//! has as its window.
//!
//! A module's constructor registers it, its destructor retires it. A file that is loaded again
//! gets its window again, so a program that loads and unloads one library for ever does not
//! use the space up. What a module is, is written as a word by the first thread that can
//! ([`announce`]); until the recorder has the word, the recording has sites without a name, never
//! wrong ones.
//!
//! The lock of the table is held by registration and retirement, which the dynamic loader calls
//! outside of any hook, and by the first hook of a fork's child. Looking an address up needs none.

use crate::arch;
use crate::block::{Block, SEQUENCES, Sequence, Sequences};
use crate::clock;
use crate::elf;
use crate::event;
use crate::filter::{self, map::Map, map::Maps};
use crate::maps;
use crate::platform::{self, Mask};
use crate::process;
use crate::stacks;
use crate::thread::Thread;
use crate::writer::{self, Places};
use core::cell::UnsafeCell;
use core::ops::Range;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};
use teeperf_wire::compose;
use teeperf_wire::filter::{Filter, map_size};
use teeperf_wire::word::{self, FIRST_SITE, MAX_SITE, code};

/// Most different files in the life of one process; modules beyond them stay off.
const MAX_MODULES: usize = 1024;
/// Sites are given out in units of this many.
const UNIT: u64 = 0x1000;

/// One file, loaded now or before.
struct Module {
    /// Its block, null when it is not loaded.
    block: AtomicPtr<Block>,
    /// Whether it is a file without hooks, in which a thread was interrupted.
    is_hookless: AtomicBool,
    /// One of [`announcement`].
    pending: AtomicU32,
    low: AtomicU64,
    size: AtomicU64,
    first_site: AtomicU32,
    /// Sites of its window, a multiple of [`UNIT`].
    room: AtomicU64,
    bias: AtomicU64,
    /// Which functions the filter lets pass.
    maps: Maps,
    /// Of its late hooks. A thread may still have the kernel look at them when it is unloaded.
    sequences: Sequences,
    /// Says whether a file is the same again.
    identity: AtomicU64,
    /// Behind the lock, and behind `pending`.
    name: UnsafeCell<Name>,
}

impl Module {
    /// Keeps where it is loaded.
    fn lies_at(&self, image: &elf::Image) {
        self.low.store(image.low, Relaxed);
        self.size.store(image.size, Relaxed);
        self.bias.store(image.bias, Relaxed);
    }

    /// The site of an address that lies in it.
    fn site(&self, address: u64) -> Option<u32> {
        let offset = address.wrapping_sub(self.low.load(Relaxed));
        let first_site = self.first_site.load(Relaxed);
        (offset < self.size.load(Relaxed))
            .then(|| first_site.wrapping_add(offset as u32).min(MAX_SITE))
    }

    /// With the filter that is in effect.
    fn switch_on(&self, block: &Block) {
        self.switch_on_by(block, self.change_map(filter::in_effect()));
    }

    /// As a map has it, if there is one.
    fn switch_on_by(&self, block: &Block, map: Option<Map>) {
        let first_site = self.first_site.load(Relaxed);
        block.switch_on(first_site, self.low.load(Relaxed), self.size.load(Relaxed), map);
    }

    /// Where hooks are to look by this filter, if not everything passes. The lock of the table is held.
    fn change_map(&self, filter: Filter) -> Option<Map> {
        let sites = self.size.load(Relaxed) as u32;
        self.maps.change(filter, sites, |place| ask_for_map(self, filter, place))
    }
}

struct Name {
    build_id: [u8; word::module::MAX_BUILD_ID],
    build_id_length: usize,
    path: [u8; word::module::MAX_PATH],
    path_length: usize,
}

/// How far a module's word has come.
mod announcement {
    pub(super) const NONE: u32 = 0;
    pub(super) const OPENS: u32 = 1;
    pub(super) const RETIRES: u32 = 2;
    pub(super) const WRITING: u32 = 3;
}

// SAFETY: `name` is written under the table's lock while `pending` is `WRITING`, and read by the
// thread that set it so; everything else is atomic.
unsafe impl Sync for Module {}

static MODULES: [Module; MAX_MODULES] = [const {
    Module {
        block: AtomicPtr::new(core::ptr::null_mut()),
        is_hookless: AtomicBool::new(false),
        pending: AtomicU32::new(0),
        low: AtomicU64::new(0),
        size: AtomicU64::new(0),
        first_site: AtomicU32::new(0),
        room: AtomicU64::new(0),
        bias: AtomicU64::new(0),
        maps: Maps::none(),
        sequences: [const { Sequence::none() }; SEQUENCES],
        identity: AtomicU64::new(0),
        name: UnsafeCell::new(Name {
            build_id: [0; word::module::MAX_BUILD_ID],
            build_id_length: 0,
            path: [0; word::module::MAX_PATH],
            path_length: 0,
        }),
    }
}; MAX_MODULES];
/// Entries of the table that are in use.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// First site that no window has.
static NEXT_SITE: AtomicU64 = AtomicU64::new(FIRST_SITE as u64);
/// Modules whose word is still to be written.
static PENDING: AtomicUsize = AtomicUsize::new(0);

/// The lock of the table, held.
struct Locked {
    /// A handler that jumped out would leave it taken for ever.
    _mask: Mask,
}

impl Locked {
    fn new() -> Self {
        let mask = Mask::new();
        let lock = process::modules_locked();
        while lock.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            platform::give_way();
        }
        Self { _mask: mask }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        process::modules_locked().store(0, Release);
    }
}

/// Takes a module into the recording and switches its hooks on, where all of it is as it
/// should be; else it stays off.
///
/// # Safety
/// `block` is the block of a stub, in a module that stays loaded until [`unregister`].
pub(crate) unsafe fn register(block: &'static Block) {
    if !block.is_usable() || block.is_on() || !process::is_on() || !block.wipe_on_fork() {
        return;
    }
    // SAFETY: the stub found the header by its own module's symbol; the caller keeps it loaded.
    let Some(image) = (unsafe { elf::image(block.header()) }) else { return };
    let locked = Locked::new();
    let Some(module) = enlist(&image) else {
        drop(locked);
        let text = b"a module has no hooks: too many modules, or too much code, in one process";
        event::put(None, |thread| writer::text(thread, code::NOTE, text));
        return;
    };
    module.lies_at(&image);
    module.is_hookless.store(false, Relaxed);
    module.block.store((&raw const *block).cast_mut(), Release);
    block.keep_sequences(&module.sequences);
    request(module, announcement::OPENS);
    drop(locked);
    // Its word comes before its events, wherever this thread can write at all.
    event::put(None, announce);
    if stacks::code::look_through(&image) {
        watch_stacks();
    }
    let _locked = Locked::new();
    module.switch_on(block);
}

/// Retires a module that is about to be unloaded. The program itself is never unloaded: its
/// destructors run at the process's end, with more of its functions to come.
pub(crate) fn unregister(block: &'static Block) {
    if block.header() == arch::own_header() {
        return;
    }
    let locked = Locked::new();
    block.switch_off();
    let own = |module: &&Module| core::ptr::eq(module.block.load(Relaxed), block);
    if let Some(module) = used().iter().find(own) {
        module.block.store(core::ptr::null_mut(), Release);
        module.sequences.iter().for_each(Sequence::forget);
        request(module, announcement::RETIRES);
    }
    drop(locked);
    event::put(None, announce);
}

/// Puts the modules right after the process was attached: in the child of a fork their
/// gates were wiped, and nobody has announced them there. Where it could not be attached, they
/// are switched off.
pub(crate) fn after_attach(is_on: bool) {
    PENDING.store(0, Relaxed);
    let before = filter::in_effect();
    filter::is_in_effect(if is_on { clock::filter_due() } else { 0 });
    let keeps_maps = process::is_heir() && filter::in_effect() == before;
    for module in used() {
        module.pending.store(announcement::NONE, Relaxed);
        if !keeps_maps {
            module.maps.forget();
        }
        if is_on && module.is_hookless.load(Relaxed) {
            request(module, announcement::OPENS);
        }
        // SAFETY: a registered module is loaded until it is unregistered, which takes the lock that
        // only a child without other threads is here without, or nobody has registered yet.
        let Some(block) = (unsafe { module.block.load(Acquire).as_ref() }) else { continue };
        if is_on {
            request(module, announcement::OPENS);
            if keeps_maps {
                let sites = module.size.load(Relaxed) as u32;
                module.switch_on_by(block, module.maps.kept(before, sites));
            } else {
                module.switch_on(block);
            }
        } else {
            block.switch_off();
        }
    }
}

/// Has all hooks look at the stack pointer from here on.
#[cold]
pub(crate) fn watch_stacks() {
    let _locked = Locked::new();
    for module in used() {
        // SAFETY: a registered module is loaded until it is unregistered, which takes the lock.
        let block = unsafe { module.block.load(Acquire).as_ref() };
        if let Some(block) = block.filter(|block| block.is_on()) {
            module.switch_on(block);
        }
    }
}

/// Puts the filter into effect that is due.
#[cold]
pub(crate) fn filter_all() {
    let _locked = Locked::new();
    let due = clock::filter_due();
    for module in used() {
        // SAFETY: registered modules stay loaded while the lock is held.
        let block = unsafe { module.block.load(Acquire).as_ref() };
        if let Some(block) = block.filter(|block| block.is_on()) {
            block.record_by(module.change_map(Filter::decode(due)));
        }
    }
    filter::is_in_effect(due);
}

/// Whether a function passes the filter that is in effect.
pub(crate) fn passes(address: u64) -> bool {
    let passes =
        |module: &Module| module.maps.pass(address.wrapping_sub(module.low.load(Relaxed)) as u32);
    at(address).is_none_or(passes)
}

/// Whether a function is timed by the filter that is in effect.
pub(crate) fn is_timed(address: u64) -> bool {
    let is_timed = |module: &Module| {
        let offset = address.wrapping_sub(module.low.load(Relaxed)) as u32;
        module.maps.time(module.size.load(Relaxed) as u32, offset)
    };
    at(address).is_some_and(is_timed)
}

/// Has every thread see that the program has paused or resumed recording.
pub(crate) fn look_again() {
    let _locked = Locked::new();
    for module in used() {
        // SAFETY: registered modules stay loaded while the lock is held.
        if let Some(block) = unsafe { module.block.load(Acquire).as_ref() } {
            block.open_window(module.size.load(Relaxed));
        }
    }
}

/// The block of the module that has an address, and all addresses that have sites in it.
pub(crate) fn block_of(address: u64) -> Option<(&'static Block, Range<usize>)> {
    let module = at(address)?;
    // SAFETY: a block is that of a module that is loaded, since it has the address; code there runs.
    let block = unsafe { module.block.load(Acquire).as_ref() }?;
    let low = module.low.load(Relaxed) as usize;
    Some((block, low..low.saturating_add(module.size.load(Relaxed) as usize)))
}

fn at(address: u64) -> Option<&'static Module> {
    used().iter().find(|module| {
        !module.block.load(Acquire).is_null()
            && address.wrapping_sub(module.low.load(Relaxed)) < module.size.load(Relaxed)
    })
}

/// The site of an address, in whichever module has it.
pub(crate) fn site_of(address: u64) -> Option<u32> {
    at(address)?.site(address)
}

/// Whether a thread that was interrupted there spent its time in one of a module's hooks.
///
/// # Safety
///
/// It can be read where it is in a module with hooks.
pub(crate) unsafe fn has_hook_at(address: usize) -> bool {
    // SAFETY: the block of a module that is loaded, since it has the address; code there runs.
    let block =
        at(address as u64).and_then(|module| unsafe { module.block.load(Acquire).as_ref() });
    let Some(block) = block else { return false };
    let is_hook = |address| block.has_hook_at(address);
    // SAFETY: the caller's promise.
    is_hook(address) || unsafe { arch::is_of_hook(address, block.late_word(), is_hook) }
}

/// The site of code that runs, in a module with hooks or without; 0 where it is not known to be in
/// any. A file without hooks is entered into the table by the next hook that comes the long way.
pub(crate) fn sampled_site(address: u64) -> u32 {
    site_of(address).or_else(|| hookless_site(address)).unwrap_or_else(|| {
        SOUGHT.store(address, Release);
        0
    })
}

/// An address whose file is to be entered into the table, 0: none.
static SOUGHT: AtomicU64 = AtomicU64::new(0);
/// Times that code was in no file.
static NOWHERE: AtomicU32 = AtomicU32::new(0);

fn hookless_site(address: u64) -> Option<u32> {
    let is_hookless = |module: &&Module| module.is_hookless.load(Acquire);
    used().iter().filter(is_hookless).find_map(|module| module.site(address))
}

/// Enters the file into the table that is sought.
#[cold]
fn find_sought() {
    /// From so many times on a look at all mappings is worth it now and then only.
    const OFTEN: u32 = 32;
    const NOW_AND_THEN: u32 = 256;
    let address = SOUGHT.swap(0, AcqRel);
    let nowhere = NOWHERE.load(Relaxed);
    let is_worth_it = nowhere < OFTEN || nowhere.is_multiple_of(NOW_AND_THEN);
    let is_found = is_worth_it && address != 0 && enlist_hookless(address).is_some();
    if !is_found {
        NOWHERE.fetch_add(1, Relaxed);
    }
}

fn enlist_hookless(address: u64) -> Option<()> {
    let header = maps::header_at(address)?;
    // SAFETY: the first page of a file that is mapped, and whose code has run just now.
    let image = unsafe { elf::image(header) }?;
    let _locked = Locked::new();
    if site_of(address).or_else(|| hookless_site(address)).is_some() {
        return Some(());
    }
    let module = enlist(&image)?;
    module.lies_at(&image);
    module.is_hookless.store(true, Release);
    request(module, announcement::OPENS);
    Some(())
}

/// Whether a module's word is still to be written.
pub(crate) fn is_pending() -> bool {
    PENDING.load(Relaxed) != 0 || SOUGHT.load(Relaxed) != 0
}

/// Writes the words of modules that nobody has announced into the calling thread's chunk; says whether
/// there was room for all.
pub(crate) fn announce(thread: &Thread) -> bool {
    if !is_pending() {
        return true;
    }
    if SOUGHT.load(Relaxed) != 0 {
        find_sought();
    }
    // A handler that jumped out would leave a module half announced, and nobody to end it.
    let _mask = Mask::new();
    let mut all = true;
    for module in used() {
        let what = module.pending.load(Relaxed);
        if !matches!(what, announcement::OPENS | announcement::RETIRES)
            || module
                .pending
                .compare_exchange(what, announcement::WRITING, AcqRel, Relaxed)
                .is_err()
        {
            continue;
        }
        let written = write(thread, module, what == announcement::OPENS);
        let next = if written { announcement::NONE } else { what };
        if module.pending.compare_exchange(announcement::WRITING, next, AcqRel, Relaxed).is_ok()
            && written
        {
            PENDING.fetch_sub(1, Relaxed);
        }
        all &= written;
    }
    all
}

fn used() -> &'static [Module] {
    &MODULES[..COUNT.load(Acquire).min(MAX_MODULES)]
}

/// Asks for a module's word. A window that opened and was not announced is still to be announced when
/// it is retired, because it may have been used.
fn request(module: &Module, what: u32) {
    let before = module.pending.load(Relaxed);
    if before == announcement::OPENS && what == announcement::RETIRES {
        return;
    }
    if module.pending.swap(what, AcqRel) == announcement::NONE {
        PENDING.fetch_add(1, Relaxed);
    }
}

/// The table's entry for a file, with a window of its own: the entry it had before, or a new one.
/// Nothing when the table or the site space is used up.
fn enlist(image: &elf::Image) -> Option<&'static Module> {
    let room = image.size.checked_next_multiple_of(UNIT)?;
    let build_id = image.build_id.get(..image.build_id_length).unwrap_or_default();
    let mut path = [0; word::module::MAX_PATH];
    // Copies of one file are different modules.
    let path_length = maps::path_at(image.low, &mut path);
    let identity = maps::hash(&[
        build_id,
        path.get(..path_length).unwrap_or_default(),
        &image.size.to_le_bytes(),
    ]);
    let again = |module: &&Module| {
        module.identity.load(Relaxed) == identity
            && module.room.load(Relaxed) == room
            && module.block.load(Relaxed).is_null()
    };
    if let Some(module) = used().iter().find(again) {
        return Some(module);
    }
    let index = COUNT.load(Relaxed);
    let module = MODULES.get(index)?;
    let first = NEXT_SITE.load(Relaxed);
    let next = first.checked_add(room).filter(|&next| next <= u64::from(MAX_SITE))?;
    NEXT_SITE.store(next, Relaxed);
    module.first_site.store(first as u32, Relaxed);
    module.room.store(room, Relaxed);
    module.identity.store(identity, Relaxed);
    // SAFETY: the entry is not in use yet, and the lock is held.
    let name = unsafe { &mut *module.name.get() };
    name.build_id = image.build_id;
    name.build_id_length = image.build_id_length;
    name.path = path;
    name.path_length = path_length;
    COUNT.store(index + 1, Release);
    Some(module)
}

fn write(thread: &Thread, module: &Module, opens: bool) -> bool {
    let (build_id, path) = module.name();
    let fixed = module.fixed_words(opens);
    let count = fixed.len() + build_id.len().div_ceil(3) + path.len().div_ceil(3);
    let Some(mut places) = Places::reserve(thread, count) else { return false };
    places.put_all(&fixed);
    for bytes in build_id.chunks(3).chain(path.chunks(3)) {
        places.put(word::pack_bytes(bytes));
    }
    true
}

/// Has the map of a filter put at a place, or anywhere, if the recorder gives one, and says where it is. Where it does not, it says
/// so to its user.
fn ask_for_map(module: &Module, filter: Filter, place: usize) -> Option<usize> {
    const MOST_BYTES: usize = word::module::MAX_BUILD_ID + word::module::MAX_PATH + 4;
    const WORDS: usize = 2 + word::module::FIXED + MOST_BYTES / 3;
    let (build_id, path) = module.name();
    let mut words = [0; WORDS];
    let fixed = module.fixed_words(true);
    let texts = build_id.chunks(3).chain(path.chunks(3)).map(word::pack_bytes);
    let mut count = 0;
    for (to, from) in words.iter_mut().zip(fixed.into_iter().chain(texts)) {
        *to = from;
        count += 1;
    }
    let size = map_size(module.size.load(Relaxed) as u32);
    process::ask_for_map(filter, words.get(..count)?, size, place)
}

impl Module {
    /// Build-id and path.
    fn name(&self) -> (&[u8], &[u8]) {
        // SAFETY: names are written once, before the entry counts as used.
        let name = unsafe { &*self.name.get() };
        let build_id = name.build_id.get(..name.build_id_length).unwrap_or_default();
        (build_id, name.path.get(..name.path_length).unwrap_or_default())
    }

    /// The words that say what it is, up to the bytes of its build-id.
    fn fixed_words(&self, opens: bool) -> [u32; 12] {
        let (build_id, path) = self.name();
        let window = compose::Window {
            opens,
            is_anchored: false,
            first_site: self.first_site.load(Relaxed),
            sites: self.size.load(Relaxed) as u32,
            address: self.low.load(Relaxed),
            bias: self.bias.load(Relaxed),
        };
        compose::module(&window, build_id.len(), path.len())
    }
}
