//! Names of functions that the symbols of their own process do not tell: the recorder was killed, or
//! had no time for them. Another process of the same file may have told them; else the file itself
//! does, if it is the recorded build.

use super::files::{Files, is_known};
use super::{Entry, SymbolTables, Window, Windows, symbol_at};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use teeperf_symbols::{Functions, Search};

/// See the module.
#[derive(Default)]
pub(super) struct Elsewhere {
    /// By build-id. Made when it is needed.
    told: Option<HashMap<Arc<[u8]>, Told>>,
    /// As they are here.
    files: Files<Functions>,
}

/// Symbols of one file, by address in it: the process that told it, and the place in its table.
type Told = BTreeMap<u64, (u32, usize)>;

impl Elsewhere {
    /// Symbol of the function at an address of a window's file, as another process told it, and where
    /// that begins in the file. Tables must be in order.
    pub(super) fn told<'a>(
        &mut self,
        window: &Window,
        address: u64,
        symbols: &'a SymbolTables,
        windows: &Windows,
    ) -> Option<(&'a Entry, u64)> {
        is_known(window).then_some(())?;
        let told = self.told.get_or_insert_with(|| all(symbols, windows));
        let (&start, &(process, at)) = told.get(&window.build_id)?.range(..=address).next_back()?;
        let entry = symbols.tables.get(&process)?.get(at)?;
        (address - start < u64::from(entry.size.max(1))).then_some((entry, start))
    }

    /// Name, start and size of the function at an address, as the file itself has it.
    pub(super) fn in_file(
        &mut self,
        window: &Window,
        address: u64,
        search: &Search,
    ) -> Option<(String, u64, u64)> {
        let functions =
            self.files.of(window, search, |path, search| Functions::open(path, search).ok())?;
        symbol_at(functions, address)
    }
}

/// All symbols of files whose builds are known.
fn all(symbols: &SymbolTables, windows: &Windows) -> HashMap<Arc<[u8]>, Told> {
    let mut all: HashMap<_, Told> = HashMap::new();
    for (&(process, first), window) in windows.0.iter().filter(|(_, window)| is_known(window)) {
        let Some(table) = symbols.tables.get(&process) else { continue };
        let file = all.entry(Arc::clone(&window.build_id)).or_default();
        let begin = table.partition_point(|entry| entry.site < first);
        let in_window = table[begin..].iter().take_while(|entry| entry.site - first < window.sites);
        for (at, entry) in in_window.enumerate() {
            file.entry(window.address(entry.site, 0)).or_insert((process, begin + at));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::keep;
    use super::*;

    fn window(first_site: u32, address: u64, build_id: &[u8]) -> Window {
        Window {
            first_site,
            sites: 0x1000,
            file_address: address,
            bias: 0,
            is_anchored: false,
            path: "/bin/a".into(),
            build_id: build_id.into(),
        }
    }

    /// A symbol of sixteen bytes at a site of a process.
    fn add(symbols: &mut SymbolTables, process: u32, site: u32, name: &str) {
        let name = keep(&mut symbols.text, name.as_bytes());
        let entry = Entry { site, size: 16, line: 7, name, file: (0, 0) };
        symbols.tables.entry(process).or_default().push(entry);
    }

    #[test]
    fn a_symbol_that_one_process_told_is_one_of_another_with_the_same_file() {
        let (mut symbols, mut windows) = (SymbolTables::default(), Windows::default());
        // The file lies elsewhere in the second process; the third has another build.
        for (process, first, build_id) in
            [(1, 0x1000, b"one"), (2, 0x8000, b"one"), (3, 0x1000, b"two")]
        {
            windows.0.insert((process, first), window(first, 0x400, build_id));
        }
        add(&mut symbols, 1, 0x1020, "work");
        add(&mut symbols, 1, 0x3000, "of another window");
        let mut elsewhere = Elsewhere::default();
        let mut told = |process, first, site| {
            let window = &windows.0[&(process, first)];
            let address = window.address(site, 0);
            let found = elsewhere.told(window, address, &symbols, &windows);
            found.map(|(entry, start)| (symbols.text(entry.name), start))
        };
        assert_eq!(told(2, 0x8000, 0x8020), Some(("work".into(), 0x420)));
        assert_eq!(told(2, 0x8000, 0x802F), Some(("work".into(), 0x420)));
        assert_eq!(told(2, 0x8000, 0x8030), None);
        assert_eq!(told(2, 0x8000, 0x8010), None);
        assert_eq!(told(3, 0x1000, 0x1020), None);
    }
}
