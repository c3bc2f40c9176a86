//! A thread's arena, from its first call into the other world until it ends.

use crate::recorder::{self, Memory};
use crate::system;
use crate::windows::Window;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use teeperf_tee::thread::{Image, Thread};
use teeperf_wire::arena::baton;
use teeperf_wire::word::{MAX_SITE, code};

/// The calling thread's side of the recording.
pub struct Own {
    /// Its arena.
    pub memory: Memory,
    /// Which of the process's threads it is.
    pub serial: u32,
    /// The process that it is of.
    pub(crate) pid: u32,
    recording: Thread,
    /// Others may be writing into it.
    is_handed_on: bool,
}

/// Bytes on each side of the anchor that have sites: below those of trusted applications.
const REACH: usize = 16 << 20;

/// Readers find by it where the library lies: [`teeperf_wire::word::module::ANCHOR`].
#[unsafe(no_mangle)]
pub extern "C" fn teeperf_anchor() {}

fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let anchor = teeperf_anchor as extern "C" fn() as usize;
        let name = system::file_of(anchor).map_or(&b""[..], |name| name.to_bytes());
        Image { anchor, low: anchor.wrapping_sub(REACH), length: 2 * REACH, name }
    })
}

static NEXT_SERIAL: AtomicU32 = AtomicU32::new(1);

impl Own {
    fn new() -> Option<Self> {
        let memory = recorder::arena()?;
        let serial = NEXT_SERIAL.fetch_add(1, Relaxed);
        let recording = Thread::new();
        let pid = std::process::id();
        let mut own = Self { memory, serial, recording, pid, is_handed_on: false };
        own.number(baton::TID, system::thread_id());
        own.number(baton::SERIAL, serial);
        // Of a thread that is no more something may stand there.
        for offset in [baton::LOST, baton::LOST + 4, baton::POPPED, baton::PUSHED] {
            own.number(offset, 0);
        }
        own.number(baton::SEQUENCE, 0);
        own.number(baton::CHUNK, 0);
        own.number(baton::HELD, 0);
        own.come_back(None);
        own.recording.is_attached().then_some(own)
    }

    /// A number of the arena's head.
    fn number(&mut self, offset: usize, value: u32) {
        self.at(offset).store(value, Relaxed);
    }

    fn at(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: offsets are those of the arena's first page, which stays mapped; others may write there
        // meanwhile, so it is an atomic.
        unsafe { &*self.memory.base.add(offset).cast() }
    }

    /// A call (0) or return (1) of the function at this address.
    pub fn event(&self, function: usize, kind: u32) {
        self.recording.event(function, kind);
    }

    /// The site of code of the library's own.
    pub fn site_of(&self, address: usize) -> Option<u32> {
        self.recording.site_of(address)
    }

    /// A call (0) or return (1) at a site, timed by the processor's counter as well.
    pub fn timed_event(&self, site: u32, kind: u32) {
        self.recording.event_at(site, kind, system::counter());
    }

    /// A call (0) or return (1) at a site.
    pub fn event_at(&self, site: u32, kind: u32) {
        self.recording.event_at(site, kind, None);
    }

    /// The value of a counter, on the time line.
    pub fn count(&self, site: u32, value: u64) {
        self.recording.count(site, value);
    }

    /// Words that belong together; says whether they were written.
    pub fn words(&self, words: &[u32]) -> bool {
        self.recording.words(words)
    }

    /// Leaves the arena to whoever has this window, or has none, until [`Own::come_back`]. Where a call begins with that, the depth is
    /// kept under a name.
    pub fn hand_on(&mut self, window: Option<Window>, mark: Option<u32>) {
        if let Some(mark) = mark {
            self.recording.escape(code::MARK, mark);
        }
        self.recording.detach();
        let (first_site, sites) =
            window.map_or((MAX_SITE, 0), |window| (window.first_site, window.sites));
        self.number(baton::FIRST_SITE, first_site);
        self.number(baton::SITES, sites);
        self.is_handed_on = true;
    }

    /// Whether others may be writing into it.
    pub fn is_handed_on(&self) -> bool {
        self.is_handed_on
    }

    /// Goes on where whoever had it left off. Where a call that began with this name ends with that, the frames of one who
    /// ended in there are gone.
    pub fn come_back(&mut self, mark: Option<u32>) {
        self.is_handed_on = false;
        self.number(baton::FIRST_SITE, 0);
        let Memory { base, length, .. } = self.memory;
        // SAFETY: mapped as long as the process lives. What is wrong with it shows as not being attached.
        let attached = unsafe { self.recording.attach(base, length, image()) };
        if let Some(mark) = mark.filter(|_| attached == Ok(true)) {
            self.recording.escape(code::JUMP, mark);
        }
    }

    /// Whether the last to whom the arena was handed on has not the counter that is its clock.
    pub fn lacks_counter(&self) -> bool {
        self.at(baton::HELD).load(Relaxed) == baton::WITHOUT_COUNTER
    }

    /// How often somebody has entered the arena.
    pub fn entered(&self) -> u32 {
        self.at(baton::ENTERED).load(Relaxed)
    }
}

impl Drop for Own {
    /// In the child of a fork the arena is the parent's.
    fn drop(&mut self) {
        if self.pid == std::process::id() {
            self.recording.detach();
            recorder::give_back(self.memory);
        }
    }
}

thread_local! {
    static OWN: Cell<State> = const { Cell::new(State::New) };
}

#[derive(Default)]
enum State {
    /// Not asked for yet.
    #[default]
    New,
    /// There is no recorder for this process.
    Without(u32),
    With(Box<Own>),
    /// Somebody further up the stack has it.
    Taken,
}

/// The calling thread's side, for as long as this lives.
pub struct Taken {
    own: Option<Box<Own>>,
    pid: u32,
    /// Nobody further up the stack has it.
    is_outermost: bool,
}

/// The calling thread's side, if it is recorded, and nobody further up the stack has it.
pub fn take() -> Taken {
    let pid = std::process::id();
    let (own, is_outermost) = match OWN.try_with(|own| own.replace(State::Taken)) {
        Ok(State::With(known)) if known.pid == pid => (Some(known), true),
        Ok(State::Without(of)) if of == pid => (None, true),
        Ok(State::Taken) | Err(_) => (None, false),
        Ok(_) => (Own::new().map(Box::new), true),
    };
    Taken { own, pid, is_outermost }
}

impl Taken {
    /// What is recorded with; nothing: nothing is.
    pub fn own(&mut self) -> Option<&mut Own> {
        self.own.as_deref_mut()
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if self.is_outermost {
            let state = self.own.take().map_or(State::Without(self.pid), State::With);
            // A thread that is ending has no place for it any more.
            let _ = OWN.try_with(|own| own.set(state));
        }
    }
}
