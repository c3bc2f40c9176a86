//! What compilers inlined where threads were interrupted, as the debug information of the modules'
//! files tells. A file is taken if it is of the recorded build.

use super::elsewhere::{FileId, MAX_FILES, is_known};
use super::{Window, file_name};
use crate::model::Function;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use teeperf_symbols::{Frames, Search};

/// Most functions that are inlined into one another.
const MOST_FRAMES: usize = 64;

/// Debug information by file; nothing where there is none here.
#[derive(Default)]
pub(super) struct Inlined(HashMap<FileId, Option<Frames>>);

impl Inlined {
    /// Functions that were inlined at an address of a window's file, the outermost first.
    pub(super) fn at(&mut self, window: &Window, address: u64, search: &Search) -> Vec<Function> {
        if !is_known(window) {
            return Vec::new();
        }
        let open = || {
            let build_id = Some(window.build_id.to_vec());
            let search = Search { build_id, ..search.clone() };
            Frames::open(Path::new(&*window.path), &search).ok().flatten()
        };
        let key = (Arc::clone(&window.path), Arc::clone(&window.build_id));
        if self.0.len() >= MAX_FILES && !self.0.contains_key(&key) {
            return Vec::new();
        }
        let Some(frames) = self.0.entry(key).or_insert_with(open) else { return Vec::new() };
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
