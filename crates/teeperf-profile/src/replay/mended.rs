//! Frames that were mended, by the function whose call or return was not seen where it belongs.

use std::collections::BTreeMap;

use crate::model::{FunctionId, Mended};
use crate::names::Names;

/// Most functions whose frames are told apart.
const MAX_FUNCTIONS: usize = 1 << 16;

/// Frames of one thread's pieces, by the word of the call.
pub(crate) type MendedWords = BTreeMap<u32, u64>;

/// Those of all, by process and word, in an order: functions that are new here get their numbers by it. Of more functions than
/// are told apart, the sum alone knows.
#[derive(Debug, Default)]
pub(crate) struct AllMended {
    frames: u64,
    of: BTreeMap<(u32, u32), u64>,
}

impl AllMended {
    /// So many frames of calls with this word.
    pub(super) fn add(&mut self, process: u32, word: u32, frames: u64) {
        self.add_nameless(frames);
        if self.of.len() < MAX_FUNCTIONS || self.of.contains_key(&(process, word)) {
            let known = self.of.entry((process, word)).or_default();
            *known = known.saturating_add(frames);
        }
    }

    /// So many frames of which nobody says what function they are of.
    pub(super) fn add_nameless(&mut self, frames: u64) {
        self.frames = self.frames.saturating_add(frames);
    }

    /// All frames.
    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// By function, the one with most frames first.
    pub(crate) fn shown(self, names: &mut Names) -> Vec<Mended> {
        let mut by_function: BTreeMap<FunctionId, u64> = BTreeMap::new();
        for ((process, word), frames) in self.of {
            let known = by_function.entry(names.function(process, word)).or_default();
            *known = known.saturating_add(frames);
        }
        let shown = by_function.into_iter().map(|(function, frames)| Mended { function, frames });
        let mut shown: Vec<_> = shown.collect();
        shown.sort_by_key(|mended| (std::cmp::Reverse(mended.frames), mended.function));
        shown
    }
}
