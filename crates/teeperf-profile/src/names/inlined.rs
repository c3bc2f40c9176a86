//! Functions that compilers inlined where threads were interrupted, by the debug information of the
//! modules' files.

use super::files::Files;
use super::{Window, file_name};
use crate::model::Function;
use teeperf_symbols::{Frames, Search};

/// Most functions that are inlined into one another.
const MOST_FRAMES: usize = 64;

/// Debug information by file.
#[derive(Default)]
pub(super) struct Inlined(Files<Frames>);

impl Inlined {
    /// Functions that were inlined at an address of a window's file, the outermost first.
    pub(super) fn at(&mut self, window: &Window, address: u64, search: &Search) -> Vec<Function> {
        let open = |path: &_, search: &_| Frames::open(path, search).ok().flatten();
        let Some(frames) = self.0.of(window, search, open) else { return Vec::new() };
        let mut found = frames.at(address);
        // The last is the function that the code is of.
        found.pop();
        let function = |frame: &teeperf_symbols::Frame| {
            let declared = frames.declared(address, frame);
            Some(Function {
                name: frame.name.clone()?,
                module: file_name(&window.path),
                file: declared.as_ref().map(|place| place.file.clone()),
                line: declared.and_then(|place| place.line),
                place: None,
            })
        };
        found.iter().rev().take(MOST_FRAMES).filter_map(function).collect()
    }
}
