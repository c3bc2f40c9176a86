//! One process's attachment to the recorder: begun by its first module, begun anew in the
//! child of a fork, ended for good when recording ends.
//!
//! Whether a process is attached stands in a page that the kernel wipes on fork: in a
//! child it says [`Life::Unborn`], whichever way the child came about. A `vfork` child shares all
//! memory with its waiting parent and is taken for it.

use crate::ancestors;
use crate::arch;
use crate::clock;
use crate::environment;
use crate::heirs;
use crate::module;
use crate::off_cpu;
use crate::platform::{self, File, Mask};
use crate::pool;
use crate::sampler;
use crate::sandbox;
use crate::stacks;
use crate::sums;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};
use teeperf_wire::filter::Filter;
use teeperf_wire::heirs::reason;
use teeperf_wire::hello::{self, Hello, MAX_SOCKET_NAME, Welcome, flag, refusal, want};
use teeperf_wire::shared::{ClockKind, OnFull, clock as clock_page, pauses};

/// How far a process has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Life {
    /// Not attached yet, or the child of a fork of one that was.
    Unborn = 0,
    /// A thread is attaching it.
    Starting = 1,
    /// Attached.
    On = 2,
    /// Not recorded, for good.
    Off = 3,
}

#[repr(C, align(4096))]
struct WipedPage {
    life: AtomicU32,
    modules_locked: AtomicU32,
    lost: AtomicU32,
    sums: AtomicU8,
    /// Thread pointer of the thread that attaches the process.
    starter: AtomicUsize,
    /// Whether a thread has waited for that in vain.
    is_given_up: AtomicBool,
    /// Whether it waits for the recorder, which reads a large file's symbols.
    takes_long: AtomicBool,
    rest: [AtomicU32; 1016],
}

static WIPED: WipedPage = WipedPage {
    life: AtomicU32::new(0),
    modules_locked: AtomicU32::new(0),
    lost: AtomicU32::new(0),
    sums: AtomicU8::new(0),
    starter: AtomicUsize::new(0),
    is_given_up: AtomicBool::new(false),
    takes_long: AtomicBool::new(false),
    rest: [const { AtomicU32::new(0) }; 1016],
};
const _: () = assert!(size_of::<WipedPage>() == 4096);
/// How often this memory image was attached: a thread whose block has another number begins
/// anew. Survives a fork.
static EPOCH: AtomicU32 = AtomicU32::new(0);
static PAUSED_INSIDE: AtomicBool = AtomicBool::new(false);
/// Time in pauses from inside ([`pauses`]), by a clock that stands still in those from outside.
static PAUSES: AtomicU64 = AtomicU64::new(0);
static IS_RESTARTABLE: AtomicBool = AtomicBool::new(false);
static IS_SAMPLED: AtomicBool = AtomicBool::new(false);
/// Whether the recorder asked for that.
static WANTS_SAMPLES: AtomicBool = AtomicBool::new(false);
/// Whether this process has a slot of the memory of the one that it was forked from, and all that that one
/// mapped.
static IS_HEIR: AtomicBool = AtomicBool::new(false);
/// Flags of the welcome that say what trees are like; 0: there are none.
static TREES: AtomicU32 = AtomicU32::new(0);
static ON_FULL: AtomicU32 = AtomicU32::new(OnFull::Wait as u32);
static TOKEN: AtomicU64 = AtomicU64::new(0);
static PROCESS_ID: AtomicU32 = AtomicU32::new(0);
static NEXT_SERIAL: AtomicU32 = AtomicU32::new(1);
/// Socket name, kept from the first start on: the environment may be gone later.
static NAME: [AtomicU8; MAX_SOCKET_NAME] = [const { AtomicU8::new(0) }; MAX_SOCKET_NAME];
static NAME_LENGTH: AtomicU32 = AtomicU32::new(0);

pub(crate) fn life() -> Life {
    match WIPED.life.load(Acquire) {
        0 => Life::Unborn,
        1 => Life::Starting,
        2 => Life::On,
        _ => Life::Off,
    }
}

/// The lock of the module table. In the wiped page, so that a child never finds it taken.
pub(crate) fn modules_locked() -> &'static AtomicU32 {
    &WIPED.modules_locked
}

/// See [`EPOCH`].
pub(crate) fn epoch() -> u32 {
    EPOCH.load(Relaxed)
}

/// Whether this attachment is of the child of a fork.
pub(crate) fn is_forked() -> bool {
    epoch() > 1
}

/// Process id as the process knows it, as of attaching.
pub(crate) fn id() -> u32 {
    PROCESS_ID.load(Relaxed)
}

/// A new thread's number.
pub(crate) fn next_serial() -> u32 {
    NEXT_SERIAL.fetch_add(1, Relaxed)
}

/// What to do when no chunk is free.
pub(crate) fn on_full() -> OnFull {
    OnFull::from_u32(ON_FULL.load(Relaxed)).unwrap_or(OnFull::Drop)
}

/// Whether hooks are to reserve by restartable sequences, where a thread can.
pub(crate) fn is_restartable() -> bool {
    IS_RESTARTABLE.load(Relaxed)
}

/// Whether threads are interrupted by timers of their CPU time.
pub(crate) fn is_sampled() -> bool {
    IS_SAMPLED.load(Relaxed)
}

/// Whether threads are to be sampled, and those that cannot be tell their CPU time at least.
pub(crate) fn wants_samples() -> bool {
    WANTS_SAMPLES.load(Relaxed)
}

/// They are not any more.
pub(crate) fn is_sampled_no_more() {
    IS_SAMPLED.store(false, Relaxed);
}

/// Whether calls are summed in trees.
pub(crate) fn has_trees() -> bool {
    TREES.load(Relaxed) != 0
}

/// Whether trees fold calls.
pub(crate) fn folds() -> bool {
    TREES.load(Relaxed) & flag::FOLDS != 0
}

/// How hooks may sum in their thread's tree, 0 for not: this process is attached, and has not paused recording
/// itself. One look at a page that the kernel wipes on fork.
#[inline(always)]
pub(crate) fn sums() -> u8 {
    WIPED.sums.load(Relaxed)
}

fn let_sum(is_on: bool) {
    let sums = has_trees() && is_on && !is_paused_inside();
    WIPED.sums.store(if sums { sums::SUMMING } else { 0 }, Relaxed);
}

/// Whether nothing is to be recorded now.
pub(crate) fn is_paused() -> bool {
    is_paused_inside() || clock::is_paused()
}

/// Whether the process is attached, and recording has not ended.
pub(crate) fn is_attached() -> bool {
    life() == Life::On && !clock::is_stopped()
}

/// Whether the program itself has paused recording.
pub(crate) fn is_paused_inside() -> bool {
    PAUSED_INSIDE.load(Relaxed)
}

/// Pauses or resumes from inside the program.
pub(crate) fn set_paused(paused: bool) {
    let now = clock::now();
    let running = now.saturating_sub(pauses::units(clock::pauses(), now));
    let turned = if paused { pauses::begin } else { pauses::end };
    let word = turned(PAUSES.load(Relaxed), running);
    // Before who sees that it is over looks for how long it was.
    PAUSES.store(word, Release);
    pool::tell_pauses(word);
    PAUSED_INSIDE.store(paused, Release);
    let_sum(life() == Life::On);
}

/// Clock units in pauses up to now, from either side.
pub(crate) fn paused_units() -> u64 {
    // Pauses first: a time that is older than a pause would make it longer than all time.
    let (outside, inside) = (clock::pauses(), PAUSES.load(Acquire));
    pauses::of_both(outside, inside, clock::now())
}

/// The same where no pause is on; nothing where one is.
#[inline(always)]
pub(crate) fn units_of_pauses_over() -> Option<u64> {
    let (outside, inside) = (clock::pauses(), PAUSES.load(Acquire));
    let is_on = pauses::is_on(outside | inside);
    (!is_on).then(|| pauses::units(outside, 0) + pauses::units(inside, 0))
}

/// Whether this process is recorded; attaches it when it is new.
pub(crate) fn is_on() -> bool {
    if matches!(life(), Life::Unborn | Life::Starting) {
        if epoch() == 0 && life() == Life::Unborn {
            sandbox::examine();
        }
        // A handler that jumped out of it would leave it undone for ever.
        let mask = Mask::patient();
        let (from, to) = (Life::Unborn as u32, Life::Starting as u32);
        _ = WIPED.life.compare_exchange(from, to, Acquire, Acquire);
        if life() == Life::Starting && claims_start() {
            start();
        } else {
            drop(mask);
            wait_for_start();
        }
    }
    life() == Life::On
}

/// Whether the calling thread is the one that attaches the process.
fn claims_start() -> bool {
    WIPED.starter.compare_exchange(0, arch::thread_pointer(), AcqRel, Acquire).is_ok()
}

fn start() {
    let is_on = attach().is_some();
    // Before anybody writes an event of theirs.
    module::after_attach(is_on);
    let_sum(is_on);
    let life = if is_on { Life::On } else { Life::Off };
    WIPED.life.swap(life as u32, SeqCst);
    platform::wake(&WIPED.life);
    count_early();
}

/// Waits until another thread has attached the process, so that none of this thread's events are missing. A
/// signal handler on the thread that attaches it cannot wait for it.
#[cold]
fn wait_for_start() {
    let began = clock::nanoseconds();
    while life() == Life::Starting && !WIPED.is_given_up.load(Relaxed) {
        if WIPED.starter.load(Acquire) == arch::thread_pointer() {
            return;
        }
        platform::sleep_on(&WIPED.life, Life::Starting as u32, SLICE_NS);
        let most = if WIPED.takes_long.load(Relaxed) { MOST_OF_LONG_NS } else { MOST_NS };
        if clock::nanoseconds().saturating_sub(began) > most {
            // A handler has jumped out of it, most likely.
            WIPED.is_given_up.store(true, Relaxed);
        }
    }
}

/// One sleep of a thread that waits for another one to attach the process.
const SLICE_NS: u64 = 10_000_000;
/// All of them together: as long as the recorder may take to answer.
const MOST_NS: u64 = 2_000_000_000;
/// While it makes a filter's maps: longer than it may take for that.
const MOST_OF_LONG_NS: u64 = 40_000_000_000;

/// Counts an event of another thread that came while the process was being attached. Says whether it did.
pub(crate) fn lose_early() -> bool {
    let is_early = life() == Life::Starting;
    if is_early {
        WIPED.lost.fetch_add(1, SeqCst);
        // Whoever attached it may have looked just before.
        if WIPED.life.load(SeqCst) != Life::Starting as u32 {
            count_early();
        }
    }
    is_early
}

fn count_early() {
    pool::count_losses(0, WIPED.lost.swap(0, SeqCst).into());
}

/// Ends recording in this process. Memory stays mapped: hooks of other threads may be about
/// to write to it. Each module is switched off by the next of its hooks that comes by.
pub(crate) fn stop() {
    WIPED.sums.store(0, Relaxed);
    WIPED.life.store(Life::Off as u32, Release);
}

/// Ends recording when nobody answers to the recorder's name any more. An heir may never have reached it.
pub(crate) fn stop_if_alone() {
    if !is_heir() && with_name(platform::is_abandoned) {
        stop();
    }
}

/// The recorder has drained nothing for as long as a thread waits.
#[cold]
pub(crate) fn stalls() {
    if is_heir() {
        // Those that are forked after it need not find out for themselves.
        heirs::tell_stall();
    }
    stop_if_alone();
}

/// Asks for a further segment and maps it.
pub(crate) fn ask_for_segment(segment: u32) -> Option<()> {
    let want = want::SEGMENTS;
    let ask = Hello { version: hello::VERSION, segment, token: token(), pid: id(), want };
    let (welcome, [file, ..]) = answer(&ask, &[])?;
    map_segment(&welcome, &file?)
}

/// Asks for a filter's map of a module, which these words describe, and has it mapped, at `place`, where that is not 0. Says where
/// it is.
pub(crate) fn ask_for_map(
    filter: Filter,
    words: &[u32],
    size: usize,
    place: usize,
) -> Option<usize> {
    let ask = Hello {
        version: hello::VERSION,
        segment: filter.number,
        token: token(),
        pid: id(),
        want: want::FILTER,
    };
    let (welcome, [file, ..]) = answer(&ask, words)?;
    let is_right = welcome.flags & flag::OF_FILTER != 0 && welcome.chunk_size as usize == size;
    is_right.then(|| platform::map_shared(&file?, size, false, place)).flatten()
}

/// Asks whether the calling thread is left out.
pub(crate) fn asks_whether_left_out() -> bool {
    let segment = platform::thread_id().unwrap_or(0);
    let ask =
        Hello { version: hello::VERSION, segment, token: token(), pid: id(), want: want::THREAD };
    answer(&ask, &[]).is_some_and(|(welcome, _)| welcome.flags & flag::LEFT_OUT != 0)
}

/// Asks for recording to go on, and waits until it does; says whether it does.
pub(crate) fn asks_to_begin() -> bool {
    let segment = platform::thread_id().unwrap_or(0);
    let ask =
        Hello { version: hello::VERSION, segment, token: token(), pid: id(), want: want::BEGIN };
    answer(&ask, &[]).is_some()
}

fn token() -> u64 {
    if is_heir() { 0 } else { TOKEN.load(Relaxed) }
}

fn attach() -> Option<()> {
    let is_first = EPOCH.load(Relaxed) == 0;
    if is_first {
        find_recorder()?;
    }
    let parent = PROCESS_ID.load(Relaxed);
    let greeted = greet();
    if is_first && greeted.is_none() {
        ancestors::stay_for_a_look();
    }
    IS_HEIR.store(false, Relaxed);
    // Not before: a recorder that sees the parent's memory let go looks for its heir.
    pool::forget();
    let token = greeted.as_ref().map(|(welcome, _)| welcome.token);
    let mapped = greeted.and_then(map_all);
    if mapped.is_none() && inherit(parent).is_none() {
        // Of a child that finds no room the recorder hears another way.
        if let Some(token) = token.filter(|_| is_first) {
            tell_unmapped(token);
        }
        return None;
    }
    sandbox::begin();
    off_cpu::begin();
    if is_sampled() {
        IS_SAMPLED.store(sampler::begin(), Relaxed);
    }
    sampler::heed_inherited_filter();
    pool::tell_pauses(PAUSES.load(Relaxed));
    EPOCH.fetch_add(1, AcqRel);
    Some(())
}

/// Finds the recorder's name. A program that has more rights than its starter asks for none.
fn find_recorder() -> Option<()> {
    if platform::has_rights_of_its_own() {
        ancestors::stay_for_a_look();
        return None;
    }
    environment::find_name(keep_name)
}

/// Tells the recorder that its memory could not be mapped: it takes the process for recorded.
#[cold]
fn tell_unmapped(token: u64) {
    let want = want::UNMAPPED;
    answer(&Hello { version: hello::VERSION, segment: 1, token, pid: id(), want }, &[]);
}

/// Maps what came with a welcome.
fn map_all((welcome, files): (Welcome, [Option<File>; 3])) -> Option<()> {
    let [clock_file, segment_file, heirs_file] = files;
    let kind = ClockKind::from_u32(welcome.clock)?;
    let on_full = OnFull::from_u32(welcome.on_full)?;
    let clock = platform::map_shared(&clock_file?, clock_page::SIZE, false, 0)?;
    map_segment(&welcome, &segment_file?)?;
    ON_FULL.store(on_full as u32, Relaxed);
    stacks::begin(welcome.flags & flag::STACKS != 0, welcome.flags & flag::NO_STACKS != 0);
    IS_RESTARTABLE.store(welcome.flags & flag::RESTARTABLE != 0, Relaxed);
    let wants_samples = welcome.flags & flag::SAMPLES != 0;
    IS_SAMPLED.store(wants_samples, Relaxed);
    WANTS_SAMPLES.store(wants_samples, Relaxed);
    let of_trees = if welcome.flags & flag::TREE != 0 { flag::TREE | flag::FOLDS } else { 0 };
    TREES.store(welcome.flags & of_trees, Relaxed);
    TOKEN.store(welcome.token, Relaxed);
    clock::set(clock, kind, welcome.flags & flag::ORDERED != 0, welcome.hz);
    heirs::keep(heirs_file.as_ref());
    Some(())
}

/// Goes on in memory that the process has from the one that it was forked from, because it cannot ask for
/// its own: clock and filters are that one's. The recorder is told of one that cannot do that either.
fn inherit(parent: u32) -> Option<()> {
    if id() == 0 {
        heirs::refuse(reason::FILTERED, 0);
        return None;
    }
    let Some(segments) = heirs::claim(id(), parent) else {
        heirs::refuse(reason::NO_SLOT, id());
        return None;
    };
    for one in segments {
        pool::enter(one.address, one.chunk_size, one.chunks, one.of_trees)?;
    }
    IS_HEIR.store(true, Relaxed);
    Some(())
}

/// Whether clock and filters are mapped as they were in the process that this one was forked from.
pub(crate) fn is_heir() -> bool {
    IS_HEIR.load(Relaxed)
}

/// Introduces the process; the answer has clock and memory.
fn greet() -> Option<(Welcome, [Option<File>; 3])> {
    let page = &raw const WIPED as usize;
    PROCESS_ID.store(platform::process_id().unwrap_or(0), Relaxed);
    NEXT_SERIAL.store(1, Relaxed);
    if NAME_LENGTH.load(Relaxed) == 0 || !platform::wipe_on_fork(page, size_of::<WipedPage>()) {
        return None;
    }
    let want = want::SEGMENTS;
    answer(&Hello { version: hello::VERSION, segment: 0, token: 0, pid: id(), want }, &[])
}

/// Asks, with these words behind the hello.
fn answer(ask: &Hello, words: &[u32]) -> Option<(Welcome, [Option<File>; 3])> {
    // An heir has no token, and cannot reach the recorder.
    (ask.token != 0 || ask.segment == 0 && ask.want == want::SEGMENTS).then_some(())?;
    // To read a large file's symbols takes a while. What needs them waits, instead of recording what is not wanted.
    let takes_long = matches!(ask.want, want::FILTER | want::BEGIN);
    let seconds = if takes_long { 30 } else { 2 };
    let exchange = |name: &[u8]| platform::exchange(name, &ask.encode(), words, seconds);
    WIPED.takes_long.store(takes_long, Relaxed);
    let answered = with_name(exchange);
    WIPED.takes_long.store(false, Relaxed);
    let (bytes, files) = answered?;
    let welcome = Welcome::decode(&bytes)?;
    (welcome.version == hello::VERSION && welcome.refusal == refusal::NONE)
        .then_some((welcome, files))
}

fn map_segment(welcome: &Welcome, file: &File) -> Option<()> {
    let chunk_size = welcome.chunk_size as usize;
    let chunks = welcome.chunks as usize;
    let of_trees = welcome.flags & flag::OF_TREES != 0;
    let size = pool::size_of(chunk_size, chunks, of_trees)?;
    let address = platform::map_shared(file, size, true, 0)?;
    let added = pool::add(address, chunk_size, chunks, of_trees);
    if added.is_none() {
        platform::unmap(address, size);
    }
    added
}

fn with_name<T>(with: impl FnOnce(&[u8]) -> T) -> T {
    let mut name = [0; MAX_SOCKET_NAME];
    for (to, from) in name.iter_mut().zip(&NAME) {
        *to = from.load(Relaxed);
    }
    let length = (NAME_LENGTH.load(Relaxed) as usize).min(MAX_SOCKET_NAME);
    with(&name[..length])
}

fn keep_name(name: &[u8]) -> Option<()> {
    (!name.is_empty() && name.len() <= MAX_SOCKET_NAME).then_some(())?;
    for (to, &from) in NAME.iter().zip(name) {
        to.store(from, Relaxed);
    }
    NAME_LENGTH.store(name.len() as u32, Relaxed);
    Some(())
}
