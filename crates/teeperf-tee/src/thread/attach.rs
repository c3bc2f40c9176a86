//! Coming to an arena, leaving it, and coming to it again, wherever it lies then.

use super::{Image, Kept, State, Thread, Who};
use crate::arena::{Arena, Refusal};
use crate::chunk::{self, Chunk};
use crate::losses::Losses;
use crate::platform;
use crate::sums::Window;
use teeperf_tally::arcs::Arcs;
use teeperf_wire::arena::{OF_SUMS, baton, request};
use teeperf_wire::compose;
use teeperf_wire::shared::{ClockKind, OnFull};
use teeperf_wire::word::{self, FIRST_SITE, MAX_SITE, gap};

impl Thread {
    /// Goes on in lent memory: where the host says, if it names a thread, else where this one left it, or
    /// in a chunk of its own. Says whether that was left by somebody who ended there without a word.
    ///
    /// # Safety
    /// As [`Arena::check`], until [`Thread::detach`].
    pub unsafe fn attach(
        &self,
        base: *mut u8,
        length: usize,
        image: &Image,
    ) -> Result<bool, Refusal> {
        // SAFETY: the caller's promise.
        self.undisturbed(|| unsafe { self.come(base, length, image, true) })
            .unwrap_or(Err(Refusal::Attached))
    }

    /// Likewise, to an arena that another thread has attached, and that names none.
    ///
    /// # Safety
    /// As [`Arena::check`], until [`Thread::let_go`].
    #[cfg(feature = "threads")]
    pub(crate) unsafe fn follow(&self, base: *mut u8, length: usize, image: &Image) {
        let come = || {
            self.let_go();
            // SAFETY: the caller's promise.
            unsafe { self.come(base, length, image, false) }
        };
        // Where that fails it is not recorded.
        let _ = self.undisturbed(come);
    }

    /// Leaves the arena, and says there how far it came. Nothing of it is touched any more.
    pub fn detach(&self) {
        self.undisturbed(|| {
            let Some(arena) = self.arena() else { return };
            self.counted.leave(self.now(&arena));
            self.hand_over_sums(&arena);
            if self.state.get() == State::Paused {
                self.resume(&arena);
            }
            self.tell_nested_at_last(&arena);
            self.let_go();
            // Behind what was handed over. What other threads have counted was not.
            let others = if platform::others_count() { request::SEVERAL } else { 0 };
            arena.publish(request::ANSWERED, others);
            let chunk = self.chunk();
            // Without a number of the host's, the next one here is this one.
            let losses =
                if arena.read(baton::TID) != 0 { self.losses.take() } else { Losses::default() };
            arena.write_wide(baton::LOST, losses.events);
            arena.write(baton::POPPED, losses.popped);
            arena.write(baton::PUSHED, losses.pushed);
            arena.write(baton::SEQUENCE, self.who.get().sequence);
            arena.write(baton::USED, self.kept.get().used as u32);
            arena.write_wide(baton::TIME, self.time.get());
            arena.write(baton::CHUNK, chunk.map_or(0, |chunk| chunk.index as u32 + 1));
            arena.publish(baton::HELD, 0);
        });
    }

    /// An escape without payload ([`word::code`]), where events are recorded.
    pub fn escape(&self, code: u32, arg: u32) {
        self.undisturbed(|| {
            self.put_where_room(&[word::escape(code, arg)]);
        });
    }

    /// Writes words that belong together, if there is a chunk, or the next is free. Says whether it did.
    pub(super) fn put_where_room(&self, words: &[u32]) -> bool {
        let Some(arena) = self.arena().filter(|_| self.state.get() == State::On) else {
            return false;
        };
        let has_room = self.room() >= words.len() || self.change_chunk(&arena);
        if has_room {
            self.put_all(words);
        }
        has_room
    }

    /// The thread ends: its chunk is the host's.
    #[cfg(feature = "threads")]
    pub(crate) fn end(&self) {
        self.undisturbed(|| {
            let Some(arena) = self.arena() else {
                return self.counted.leave_behind(self.owed.take());
            };
            if self.state.get() == State::Paused {
                self.resume(&arena);
            }
            self.counted.leave(self.now(&arena));
            if !self.hand_over_sums(&arena) {
                self.counted.leave_behind(self.owed.take());
            }
            self.tell_nested_at_last(&arena);
            if let Some(chunk) = self.chunk() {
                chunk.hand_over(&arena, self.next.get(), None);
            }
            self.chunk.set(Chunk::NONE);
            self.let_go();
        });
    }

    /// Nothing of the arena is touched any more, nor now: it may be gone.
    pub(crate) fn let_go(&self) {
        self.close();
        self.counted.let_go();
        if let Some(arena) = self.arena() {
            let used = self.chunk().map_or(0, |chunk| chunk.used(&arena, self.next.get()));
            self.kept.set(Kept { cookie: arena.cookie, used });
        }
        self.arena.set(Arena::NONE);
        self.next.set(core::ptr::null_mut());
        self.end.set(core::ptr::null_mut());
    }

    /// Keeps hooks that interrupt this out; nothing, where this interrupts a hook.
    pub(crate) fn undisturbed<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        #[cfg(feature = "nested")]
        if !self.nested.begin() {
            return None;
        }
        let result = work();
        #[cfg(feature = "nested")]
        self.nested.end();
        Some(result)
    }

    /// # Safety
    /// As [`Thread::attach`].
    unsafe fn come(
        &self,
        base: *mut u8,
        length: usize,
        image: &Image,
        is_first: bool,
    ) -> Result<bool, Refusal> {
        if self.arena().is_some() {
            return Err(Refusal::Attached);
        }
        // SAFETY: the caller's promise.
        let arena = unsafe { Arena::check(base, length, platform::is_outside) }?;
        if arena.clock() == ClockKind::Cycle && !platform::has_counter() {
            arena.write(baton::HELD, baton::WITHOUT_COUNTER);
            return Err(Refusal::Clock);
        }
        self.open_window(&arena, image);
        self.arena.set(arena);
        self.watched.set(arena.tick_word());
        if is_first {
            arena.write(baton::ENTERED, arena.read(baton::ENTERED).wrapping_add(1));
            let answered = arena.read(request::ANSWERED);
            // This one has left it so itself, for other threads that counted.
            let is_own = answered == request::SEVERAL && self.kept.get().cookie == arena.cookie;
            if answered != 0 && !is_own {
                // Whoever that was is no more, and what it had not handed over.
                arena.write(request::ENDED, arena.read(request::ENDED).wrapping_add(1));
            }
            arena.write(request::ANSWERED, 0);
        }
        let is_held = self.go_on(&arena, is_first);
        if arena.is_stopped() {
            self.state.set(State::Off);
        }
        self.asked.set(arena.read(request::ASKED));
        if self.state.get() != State::Off {
            self.counted.follow(&arena, self.now(&arena));
        }
        if is_first && self.state.get() != State::Off {
            self.announce(&arena, image);
            self.sums.follow(&arena);
            if platform::always_sums() {
                // It goes along with what comes, and takes no chunk of its own.
                self.tell_answered(&arena);
            } else {
                self.hand_over_sums(&arena);
                if self.counted.is_counting() {
                    self.tell_answered(&arena);
                }
            }
        }
        if self.state.get() == State::On && arena.is_paused() && !platform::always_sums() {
            self.pause(&arena);
        }
        self.open(&arena);
        Ok(is_held)
    }

    /// As which thread, and in which chunk; says whether that was left without a word.
    fn go_on(&self, arena: &Arena, takes_baton: bool) -> bool {
        let kept = self.kept.get();
        let was_here = kept.cookie == arena.cookie;
        if !was_here {
            self.start_anew();
            // Nobody else has come as the same.
            self.sums.is_known_as(arena.read(baton::ENTERED));
        }
        let own = self.chunk.replace(Chunk::NONE).some();
        let pid = arena.read(baton::PID);
        let (tid, serial) = (arena.read(baton::TID), arena.read(baton::SERIAL));
        if takes_baton && tid != 0 && serial != 0 {
            if serial != self.who.get().serial {
                self.sums.start_anew();
            }
            self.who.set(Who { pid, tid, serial, sequence: arena.read(baton::SEQUENCE) });
            return self.take_baton(arena);
        }
        if was_here {
            let there = own.and_then(|own| chunk::there(arena, own.index, kept.used));
            if let Some(chunk) = there {
                self.set_chunk(arena, chunk, kept.used);
            }
        } else {
            let serial = platform::next_serial();
            self.who.set(Who { pid, tid: serial, serial, sequence: 0 });
        }
        false
    }

    /// Goes on where whoever was in the arena has left it.
    fn take_baton(&self, arena: &Arena) -> bool {
        if self.state.get() != State::Off {
            self.state.set(State::On);
        }
        let is_held = arena.read(baton::HELD) == 1;
        if is_held {
            self.go_on_behind(arena);
        } else {
            let left = Losses {
                events: arena.wide(baton::LOST),
                popped: arena.read(baton::POPPED),
                pushed: arena.read(baton::PUSHED),
            };
            self.losses.set(left.then(self.losses.get()));
            if let Some((chunk, used)) = chunk::left(arena) {
                self.time.set(arena.wide(baton::TIME));
                self.set_chunk(arena, chunk, used);
            } else if left.events > 0 && arena.on_full() == OnFull::Wait {
                self.go_on_without(arena);
            }
        }
        arena.write_wide(baton::LOST, 0);
        arena.write(baton::HELD, 1);
        is_held
    }

    /// Whoever left has waited for a chunk in vain, and gone without: so does this one, unless there is one by now. A
    /// host that is no more would hold up each that comes.
    fn go_on_without(&self, arena: &Arena) {
        if self.state.get() == State::On {
            self.state.set(State::Stalled);
            self.find(arena, gap::STALLED);
        }
    }

    /// Goes on behind the last word that somebody has written who ended there.
    fn go_on_behind(&self, arena: &Arena) {
        let mut who = self.who.get();
        let Some((chunk, sequence, used)) = chunk::abandoned(arena, who.serial) else { return };
        who.sequence = sequence;
        self.who.set(who);
        self.time.set(self.now(arena));
        self.set_chunk(arena, chunk, used);
        self.put_where_room(&compose::stamp(self.time.get()));
    }

    /// Hands over what was summed and counted, unless recording has ended here. What finds no chunk stays for the next
    /// time, and counts as lost until then: it may be the last. Says whether recording goes on.
    #[inline(never)]
    fn hand_over_sums(&self, arena: &Arena) -> bool {
        if self.state.get() == State::Off || arena.is_stopped() {
            return false;
        }
        // Not as the thread's own: there is no telling below which of its frames they were.
        let own = self.who.get();
        match platform::take_left() {
            0 => {}
            left => arena.count_losses(own.serial, left.cast_signed()),
        }
        let who = Who { serial: own.serial | OF_SUMS, ..own };
        let (now, window) = (self.now(arena), self.own_window());
        let called = self.sums.hand_over(arena, who, window, || self.find_for_sums(arena));
        // Returns were summed as well, but not counted.
        let mut owes = 2 * called;
        if let Some(table) = self.counted.lent() {
            owes += (table.hand_over)(self, table.arcs, arena, now, who, window);
        }
        let owed = self.owed.replace(owes);
        if owes != owed {
            arena.count_losses(own.serial, owes.wrapping_sub(owed).cast_signed());
        }
        true
    }

    /// Hands sums over if the host has asked for them: it gets them from who stays for long, or ends without a word.
    pub(super) fn answer(&self, arena: &Arena) {
        let asked = arena.read(request::ASKED);
        if self.asked.replace(asked) != asked {
            self.sums.come_to(arena);
            self.hand_over_sums(arena);
            self.sums.go_on(arena);
            self.counted.go_on(arena, self.now(arena));
            self.tell_answered(arena);
        }
    }

    /// Somebody who sums is inside, and has handed over what there was when the host asked last.
    fn tell_answered(&self, arena: &Arena) {
        let several = cfg!(feature = "threads");
        let answered = if several { request::SEVERAL } else { self.asked.get() };
        arena.publish(request::ANSWERED, answered);
    }

    /// What has sites.
    fn own_window(&self) -> Window {
        Window { low: self.low.get(), sites: self.window.get(), first_word: self.first_word.get() }
    }

    /// A call, of code that is compiled with `-pg`, which its hook does not count by itself.
    pub fn arc(&self, arcs: &'static Arcs, from: usize, to: usize) {
        let count = || {
            let arena = self.arena().filter(|_| self.state.get() != State::Off);
            let counted = self.counted.is_counting();
            self.counted.call(arcs, arena.as_ref(), (from, to), |arena| self.now(arena));
            if let Some(arena) = arena {
                if !counted && self.counted.is_counting() {
                    self.tell_answered(&arena);
                }
                self.answer(&arena);
            }
        };
        if self.undisturbed(count).is_none() {
            arcs.miss(1);
        }
    }

    /// Another recording: what was left out of the last one is no matter of this one.
    fn start_anew(&self) {
        self.losses.take();
        self.sums.start_anew();
        self.owed.set(0);
        self.has_waited_in_vain.set(false);
        #[cfg(feature = "nested")]
        self.nested.take();
        self.state.set(State::On);
        self.chunk.set(Chunk::NONE);
    }

    /// The sites that the host has left to this image.
    fn open_window(&self, arena: &Arena, image: &Image) {
        let (first, sites) = (arena.read(baton::FIRST_SITE), arena.read(baton::SITES));
        let (first, sites) = if first == 0 { (FIRST_SITE, MAX_SITE) } else { (first, sites) };
        let first = first.clamp(FIRST_SITE, MAX_SITE);
        let room = (sites as usize).min((MAX_SITE - first) as usize + 1);
        self.low.set(image.low);
        self.window.set(image.length.min(room));
        self.first_word.set(word::call(first));
    }

    /// Says what the image is, once in each arena. Where there is no room for it now, the next attaching says it.
    fn announce(&self, arena: &Arena, image: &Image) {
        let first_site = self.first_word.get() >> 1;
        if self.announced.get() == (arena.cookie, first_site) {
            return;
        }
        let window = compose::Window {
            opens: true,
            is_anchored: true,
            first_site,
            sites: self.window.get() as u32,
            address: image.low.wrapping_sub(image.anchor).cast_signed() as u64,
            bias: 0,
        };
        let name = image.name.get(..word::module::MAX_PATH).unwrap_or(image.name);
        let fixed = compose::module(&window, 0, name.len());
        let finds = || match self.state.get() {
            State::Stalled => self.find(arena, gap::STALLED),
            _ => self.change_chunk(arena),
        };
        if self.room() < fixed.len() + name.len().div_ceil(3) && !finds() {
            return;
        }
        self.put_all(&fixed);
        for bytes in name.chunks(3) {
            self.put(word::pack_bytes(bytes));
        }
        self.announced.set((arena.cookie, first_site));
    }

    /// Whoever comes next may be another runtime: what interrupted hooks of this one is told now.
    #[cfg(feature = "nested")]
    fn tell_nested_at_last(&self, arena: &Arena) {
        let Some(lost) = self.nested.take() else { return };
        let words = compose::gap(gap::NESTED, lost.events, lost.popped, lost.pushed, 0);
        if self.state.get() == State::On && (self.room() >= words.len() || self.change_chunk(arena))
        {
            self.put_all(&words);
        } else {
            self.losses.set(self.losses.get().then(lost));
            arena.count_losses(self.who.get().serial, lost.events as i64);
        }
    }

    #[cfg(not(feature = "nested"))]
    fn tell_nested_at_last(&self, _arena: &Arena) {}
}
