//! Files of a recording's modules, each opened once, if it is here and of the recorded build.

use super::Window;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use teeperf_symbols::Search;

/// Most files that are opened for one recording, which may name any.
const MAX_FILES: usize = 1024;

/// Path and build-id.
type FileId = (Arc<str>, Arc<[u8]>);

/// Nothing where there is no such file.
pub(super) struct Files<T>(HashMap<FileId, Option<T>>);

impl<T> Default for Files<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> Files<T> {
    /// The file of a window, which `open` reads.
    pub(super) fn of(
        &mut self,
        window: &Window,
        search: &Search,
        open: impl FnOnce(&Path, &Search) -> Option<T>,
    ) -> Option<&T> {
        is_known(window).then_some(())?;
        let key = (Arc::clone(&window.path), Arc::clone(&window.build_id));
        if self.0.len() >= MAX_FILES && !self.0.contains_key(&key) {
            return None;
        }
        let open = || {
            let build_id = Some(window.build_id.to_vec());
            open(Path::new(&*window.path), &Search { build_id, ..search.clone() })
        };
        self.0.entry(key).or_insert_with(open).as_ref()
    }
}

/// Whether it is known which build of a file a window is of, and where in it.
pub(super) fn is_known(window: &Window) -> bool {
    !window.is_anchored && !window.build_id.is_empty()
}
