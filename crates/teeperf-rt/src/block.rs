//! The stub's side of a module: what the runtime writes there to switch its hooks on and off.

use crate::arch;
use crate::clock;
use crate::filter::map::Map;
use crate::platform;
use crate::process;
use crate::stacks;
use crate::thread::{self, Thread};
use core::sync::atomic::Ordering::{Relaxed, Release};
use core::sync::atomic::{AtomicI32, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};
use teeperf_wire::hook;
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word;

/// Restartable sequences of one module's late hooks, and of its others.
const OF_LATE: usize = 2;
const OF_OTHERS: usize = hook::module::HOOK_SEQUENCES.len();
pub(crate) const SEQUENCES: usize = OF_LATE + OF_OTHERS;
pub(crate) type Sequences = [Sequence; SEQUENCES];

/// One of them, as the kernel reads it: `struct rseq_cs` of rseq(2). All 0, it is none.
#[repr(C, align(32))]
pub(crate) struct Sequence {
    version: AtomicU32,
    flags: AtomicU32,
    start: AtomicUsize,
    length: AtomicUsize,
    abandoned: AtomicUsize,
}

impl Sequence {
    pub(crate) const fn none() -> Self {
        Self {
            version: AtomicU32::new(0),
            flags: AtomicU32::new(0),
            start: AtomicUsize::new(0),
            length: AtomicUsize::new(0),
            abandoned: AtomicUsize::new(0),
        }
    }

    /// No thread is at any of these places.
    fn set(&self, start: usize, length: usize, abandoned: usize) {
        self.abandoned.store(abandoned, Relaxed);
        self.length.store(length, Relaxed);
        self.start.store(start, Release);
    }

    /// Makes it one that no thread is ever in.
    pub(crate) fn forget(&self) {
        self.length.store(0, Relaxed);
        self.abandoned.store(arch::nowhere(), Release);
    }
}

/// Keeps the sequences of a stub's table, and tells the stub where.
fn keep<const N: usize>(
    table: &[[i32; 3]; N],
    kept: &'static [Sequence],
    places: [&AtomicPtr<Sequence>; N],
) {
    let base = core::ptr::from_ref(table) as usize;
    for ((&[start, length, abandoned], sequence), place) in table.iter().zip(kept).zip(places) {
        let [start, abandoned] =
            [start, abandoned].map(|offset| base.wrapping_add_signed(offset as isize));
        sequence.set(start, length as usize, abandoned);
        place.store((&raw const *sequence).cast_mut(), Relaxed);
    }
}

/// The block of one module: [`hook::module`].
#[repr(C, align(64))]
pub struct Block {
    mode: AtomicI64,
    tls: AtomicI64,
    low: AtomicU64,
    first_word: AtomicU32,
    late_word: AtomicU32,
    version: AtomicU32,
    hook: AtomicI32,
    gate: AtomicPtr<AtomicU64>,
    clock: AtomicUsize,
    header: AtomicUsize,
    filter: AtomicUsize,
    timed: AtomicUsize,
    enter_sequence: AtomicPtr<Sequence>,
    code_start: AtomicUsize,
    code_end: AtomicUsize,
    exit_sequence: AtomicPtr<Sequence>,
    sequences: AtomicPtr<[[i32; 3]; OF_LATE]>,
    hook_sequences: [AtomicPtr<Sequence>; OF_OTHERS],
    hook_table: AtomicPtr<[[i32; 3]; OF_OTHERS]>,
}

const _: () = assert!(size_of::<Block>() == hook::module::SIZE);
const _: () = assert!(core::mem::offset_of!(Block, tls) == hook::module::TLS);
const _: () = assert!(core::mem::offset_of!(Block, low) == hook::module::LOW);
const _: () = assert!(core::mem::offset_of!(Block, first_word) == hook::module::FIRST_WORD);
const _: () = assert!(core::mem::offset_of!(Block, version) == hook::module::VERSION);
const _: () = assert!(core::mem::offset_of!(Block, hook) == hook::module::HOOK);
const _: () = assert!(core::mem::offset_of!(Block, gate) == hook::module::GATE);
const _: () = assert!(core::mem::offset_of!(Block, clock) == hook::module::CLOCK);
const _: () = assert!(core::mem::offset_of!(Block, header) == hook::module::HEADER);
const _: () = assert!(core::mem::offset_of!(Block, filter) == hook::module::FILTER);
const _: () = assert!(core::mem::offset_of!(Block, timed) == hook::module::TIMED);
/// [`Block::window`] is the gate's first word.
const _: () = assert!(hook::gate::WINDOW == 0);
const _: () = assert!(core::mem::offset_of!(Block, late_word) == hook::module::LATE_WORD);
const _: () = assert!(core::mem::offset_of!(Block, enter_sequence) == hook::module::ENTER_SEQUENCE);
const _: () = assert!(core::mem::offset_of!(Block, exit_sequence) == hook::module::EXIT_SEQUENCE);
const _: () = assert!(core::mem::offset_of!(Block, sequences) == hook::module::SEQUENCES);
const _: () =
    assert!(core::mem::offset_of!(Block, hook_sequences) == hook::module::HOOK_SEQUENCES[0]);
const _: () = assert!(core::mem::offset_of!(Block, hook_table) == hook::module::HOOK_TABLE);
const _: () = assert!(core::mem::offset_of!(Block, code_start) == hook::module::CODE_START);
const _: () = assert!(core::mem::offset_of!(Block, code_end) == hook::module::CODE_END);

impl Block {
    /// Whether the stub speaks this runtime's language, and has all that a recording needs.
    pub(crate) fn is_usable(&self) -> bool {
        self.version.load(Relaxed) == hook::VERSION && self.header() != 0
    }

    /// Address of the module's ELF header.
    pub(crate) fn header(&self) -> usize {
        self.header.load(Relaxed)
    }

    /// Address of the module's enter hook.
    pub(crate) fn hook(&self) -> usize {
        (&raw const *self as usize).wrapping_add_signed(self.hook.load(Relaxed) as isize)
    }

    /// Whether an address is one of the module's hooks.
    pub(crate) fn has_hook_at(&self, address: usize) -> bool {
        (self.code_start.load(Relaxed)..self.code_end.load(Relaxed)).contains(&address)
    }

    /// The calling thread's block, while the module's hooks are on.
    #[inline(always)]
    pub(crate) fn thread(&self) -> &'static Thread {
        let offset = self.tls.load(Relaxed) as isize;
        // SAFETY: what the runtime has put there: where the block lies in every thread's storage.
        unsafe { &*(arch::thread_pointer().wrapping_add_signed(offset) as *const Thread) }
    }

    /// Whether the module's hooks are on.
    pub(crate) fn is_on(&self) -> bool {
        self.mode.load(Relaxed) != 0
    }

    /// Has the kernel wipe the gate in every child of this process.
    pub(crate) fn wipe_on_fork(&self) -> bool {
        platform::wipe_on_fork(self.gate.load(Relaxed) as usize, hook::gate::SIZE)
    }

    /// Switches the module's hooks off.
    pub(crate) fn switch_off(&self) {
        self.mode.store(0, Release);
        self.set_late(hook::gate::LATE_OFF);
    }

    /// Switches them on, with sites from `first_site` on for `size` bytes from `low`, as a map has it, if there is
    /// one; where the clock page cannot be shown, off.
    pub(crate) fn switch_on(&self, first_site: u32, low: u64, size: u64, map: Option<Map>) {
        // Where an heir has it, its parent has put it.
        let is_shown = process::is_heir() && self.tls.load(Relaxed) != 0;
        if !is_shown && !clock::show_at(self.clock.load(Relaxed)) {
            return self.switch_off();
        }
        self.tls.store(thread::offset(), Relaxed);
        self.low.store(low, Relaxed);
        let first_word = word::call(first_site);
        self.first_word.store(first_word, Relaxed);
        self.late_word.store(first_word.wrapping_sub((low as u32).wrapping_mul(2)), Relaxed);
        self.open_window(size);
        self.record_by(map);
    }

    /// Has its hooks, which have all that they need, record as a map has it, or all.
    pub(crate) fn record_by(&self, map: Option<Map>) {
        let mut filtered = 0;
        if let Some(map) = map {
            self.filter.store(map.passing(), Relaxed);
            self.timed.store(map.timed(), Relaxed);
            filtered |= if map.filter.is_on { hook::module::FILTERED } else { 0 };
            filtered |= if map.filter.is_timed { hook::module::TIMES } else { 0 };
        }
        filtered |= if stacks::are_watched() { hook::module::STACKS } else { 0 };
        let mode = match clock::kind() {
            // Negative: thread-local storage lies below the thread pointer.
            ClockKind::Tick if filtered == 0 => self.tls.load(Relaxed),
            ClockKind::Tick => hook::module::TICKS | filtered,
            ClockKind::Cycle if clock::is_ordered() => {
                hook::module::CYCLES | hook::module::ORDERED | filtered
            }
            ClockKind::Cycle => hook::module::CYCLES | filtered,
        };
        // No late hook writes by itself what others would not.
        self.set_late(hook::gate::LATE_OUT);
        self.mode.store(mode, Release);
        self.set_late(self.late());
    }

    /// Has the module's hooks reserve by these restartable sequences.
    pub(crate) fn keep_sequences(&self, kept: &'static Sequences) {
        let (of_late, of_others) = kept.split_at(OF_LATE);
        let late = [&self.enter_sequence, &self.exit_sequence];
        // SAFETY: the stub has put its tables' addresses there, and stays loaded.
        let tables = unsafe {
            (self.sequences.load(Relaxed).as_ref(), self.hook_table.load(Relaxed).as_ref())
        };
        if let (Some(of_late_hooks), Some(of_hooks)) = tables {
            keep(of_late_hooks, of_late, late);
            keep(of_hooks, of_others, self.hook_sequences.each_ref());
        }
    }

    /// The gate's word for late hooks while the module's hooks are on.
    fn late(&self) -> u32 {
        let is_plain = self.mode.load(Relaxed) < 0 && self.window().load(Relaxed) != 0;
        if is_plain && !process::has_trees() { hook::gate::LATE_ON } else { hook::gate::LATE_OUT }
    }

    fn set_late(&self, word: u32) {
        let gate = self.gate.load(Relaxed);
        if !gate.is_null() {
            // SAFETY: a page of the module, which is loaded as long as its block is used.
            unsafe { &*gate.byte_add(hook::gate::LATE).cast::<AtomicU32>() }.store(word, Release);
        }
    }

    /// Address of the word that late hooks look at first.
    pub(crate) fn late_word(&self) -> usize {
        self.gate.load(Relaxed) as usize + hook::gate::LATE
    }

    /// Bytes of the module's addresses that have sites: the gate's first word.
    fn window(&self) -> &AtomicU64 {
        // SAFETY: the gate is a page of the module, which is loaded as long as its block is used.
        unsafe { &*self.gate.load(Relaxed) }
    }

    /// Lets `size` bytes of the module's addresses have sites, or none while the program has paused
    /// recording: then every hook takes the slow path.
    pub(crate) fn open_window(&self, size: u64) {
        let size = if process::is_paused_inside() { 0 } else { size };
        self.window().store(size, Release);
        if self.is_on() {
            self.set_late(self.late());
        }
    }
}
