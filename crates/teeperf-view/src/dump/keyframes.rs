//! Lines for keyframes, and the depths that events behind them begin with.

use teeperf_profile::keyframes::Keyframe;

use super::Depths;

/// What a keyframe says, as a line has it.
pub(super) fn text(keyframe: &Keyframe) -> String {
    let goes_on = match keyframe.goes_on {
        Some((sequence, first)) => format!(" sequence={sequence} first={first}"),
        None => String::new(),
    };
    format!(
        "serial={}{goes_on} stack={:#x} frames={} below={} recent={} debt={} marks={} modules={}{}",
        keyframe.thread,
        keyframe.stack,
        frames(keyframe),
        keyframe.below,
        keyframe.recent,
        keyframe.debt,
        keyframe.marks.len(),
        keyframe.windows.len(),
        match (keyframe.is_left, keyframe.is_gone) {
            (_, true) => " gone",
            (true, _) => " left",
            _ => "",
        },
    )
}

fn frames(keyframe: &Keyframe) -> u64 {
    keyframe.frames.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
}

impl Depths {
    /// Goes on from there.
    pub(super) fn begin_at(&mut self, keyframe: &Keyframe) {
        let depth = keyframe.below.saturating_add(frames(keyframe));
        if !keyframe.is_left {
            self.stack = keyframe.stack;
            for &(key, _, depth) in &keyframe.marks {
                self.marks.insert(key, depth);
            }
        }
        self.by_stack.insert(keyframe.stack, depth);
    }
}
