//! Where in a process a variable is: its file says where in the file, and a map where that lies.

use super::{Mapping, Process, Runtime};
use teeperf_symbols::Loaded;

/// Files that are looked into.
const MOST_FILES: usize = 256;

/// The variables of these runtimes, in the first file that has one: libraries of the usual names, the program, and then all others.
pub(super) fn find<'a>(
    process: &Process,
    runtimes: &[&'a dyn Runtime],
) -> Vec<(&'a dyn Runtime, u64)> {
    let program = std::fs::read_link(format!("/proc/{}/exe", process.id)).unwrap_or_default();
    let mut files: Vec<&Mapping> = Vec::new();
    for mapping in process.maps.iter().filter(|mapping| mapping.has_file()) {
        if !files.iter().any(|file| file.path == mapping.path) {
            files.push(mapping);
        }
    }
    let order = |mapping: &&Mapping| {
        let name = String::from_utf8_lossy(&mapping.path);
        let is_usual = runtimes.iter().any(|runtime| name.contains(runtime.library()));
        (!is_usual, name != program.to_string_lossy())
    };
    files.sort_by_key(order);
    let found = files.into_iter().take(MOST_FILES).map(|file| in_file(process, file, runtimes));
    found.into_iter().find(|found| !found.is_empty()).unwrap_or_default()
}

fn in_file<'a>(
    process: &Process,
    mapping: &Mapping,
    runtimes: &[&'a dyn Runtime],
) -> Vec<(&'a dyn Runtime, u64)> {
    // Of what is no program or library, or gone, nobody wants to hear.
    let Ok(file) = Loaded::open(&process.path(&mapping.path)) else { return Vec::new() };
    let Some(bias) =
        file.address_of(mapping.offset).map(|address| mapping.start.wrapping_sub(address))
    else {
        return Vec::new();
    };
    let found = runtimes.iter().filter_map(|runtime| {
        let address = file.variable(runtime.variable()).ok().flatten()?;
        Some((*runtime, address.wrapping_add(bias)))
    });
    found.collect()
}
