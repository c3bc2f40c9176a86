//! What the side from which calls lead into a TEE writes besides calls and returns of its own code: code of other modules,
//! single calls timed by the processor's counter, values of counters.

use super::Thread;
use super::slow::LONGEST;
use teeperf_wire::compose;
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word;

/// Words of an event and of what stands before it, at most.
const WITH_COUNTER: usize = LONGEST + 4;

impl Thread {
    /// The site of code of the thread's own image; nothing where it has none.
    pub fn site_of(&self, address: usize) -> Option<u32> {
        let site = address.wrapping_sub(self.low.get());
        (site < self.window.get()).then(|| self.word(site, 0) >> 1)
    }

    /// A call (kind 0) or return (1) at a site, of whatever window; with what the processor's counter is, where the clock
    /// is another.
    pub fn event_at(&self, site: u32, kind: u32, counter: Option<u64>) {
        self.undisturbed(|| {
            let Some(arena) = self.arena() else { return };
            let may = self.is_running(&arena)
                && (self.room() >= WITH_COUNTER || self.change_chunk(&arena));
            if !may {
                return self.lose(&arena, kind);
            }
            let now = self.write_time(&arena);
            let is_cycle = arena.clock() == ClockKind::Cycle;
            if let Some(counter) = counter.filter(|_| !is_cycle) {
                self.put_all(&compose::timed(counter));
            }
            self.put(word::call(site) | kind);
            if is_cycle {
                self.put(now as u32 | 1);
            }
        });
    }

    /// The value of a counter on the time line, by the site that has its name.
    pub fn count(&self, site: u32, value: u64) {
        self.undisturbed(|| {
            let Some(arena) = self.arena() else { return };
            let now = self.now(&arena);
            self.put_where_room(&compose::point(word::point::INTEGER, site, now, value));
        });
    }

    /// An escape with payload, as a whole. Says whether it was written.
    pub fn words(&self, words: &[u32]) -> bool {
        self.undisturbed(|| self.put_where_room(words)).unwrap_or(false)
    }
}
