//! Sites to functions: the modules of each process with their windows, and the symbols that
//! the recording brings along. What has no symbol is named by module and offset.

use std::collections::HashMap;
use std::path::Path;

use crate::contents::Symbols;
use crate::model::{Function, FunctionId};
use crate::replay::{Window, pseudo};

/// Symbols kept of one recording, and bytes of their texts. A recording has those of the
/// functions that were called, some ten thousand.
const MAX_SYMBOLS: usize = 1 << 22;
const MAX_TEXT: usize = 256 << 20;

/// The symbols of each process, of all its windows: sites mean the same in its whole life, so
/// that a symbol names its function even where the window was lost.
#[derive(Default)]
pub(crate) struct SymbolTables {
    /// By process, sorted by site where `in_order` says so.
    tables: HashMap<u32, Vec<Entry>>,
    in_order: bool,
    text: Vec<u8>,
    count: usize,
    /// Symbols that found no room.
    pub(crate) left_out: u64,
}

/// Names by the symbols of a recording alone, for whoever looks at its words. Symbols come
/// behind the words they belong to, so it takes a first pass to gather them.
#[derive(Default)]
pub struct SiteNames {
    tables: SymbolTables,
    known: HashMap<(u32, u32), Option<String>>,
}

impl SiteNames {
    /// Keeps the symbols of a packet.
    pub fn add(&mut self, symbols: &Symbols<'_>) {
        self.tables.add(symbols);
        self.known.clear();
    }

    /// The function at a site of a process, demangled; nothing when it has no symbol.
    pub fn name(&mut self, process: u32, site: u32) -> Option<&str> {
        let tables = &mut self.tables;
        let name = self.known.entry((process, site)).or_insert_with(|| {
            tables.put_in_order();
            let entry = tables.symbol(process, site)?;
            Some(teeperf_symbols::demangle(&tables.text(entry.name)).into_owned())
        });
        name.as_deref()
    }
}

struct Entry {
    site: u32,
    size: u32,
    line: u32,
    name: (u32, u32),
    file: (u32, u32),
}

impl SymbolTables {
    /// Keeps the symbols of a packet.
    pub(crate) fn add(&mut self, symbols: &Symbols<'_>) {
        self.in_order = false;
        let table = self.tables.entry(symbols.process).or_default();
        for symbol in symbols.iter().filter(|symbol| !symbol.name.is_empty()) {
            if self.count >= MAX_SYMBOLS || self.text.len() >= MAX_TEXT {
                self.left_out += 1;
                continue;
            }
            self.count += 1;
            let name = keep(&mut self.text, symbol.name);
            // Functions of one file stand together: its name is kept once for them.
            let same = table.last().map(|last: &Entry| last.file);
            let file = match same {
                Some((start, n)) if self.text[start as usize..][..n as usize] == *symbol.file => {
                    (start, n)
                }
                _ => keep(&mut self.text, symbol.file),
            };
            table.push(Entry {
                site: symbol.site,
                size: symbol.size,
                line: symbol.line,
                name,
                file,
            });
        }
    }

    fn put_in_order(&mut self) {
        if !self.in_order {
            // Of symbols at one site the later stays behind the earlier.
            self.tables.values_mut().for_each(|table| table.sort_by_key(|entry| entry.site));
            self.in_order = true;
        }
    }

    /// The last symbol that begins at the site or before it, if it reaches that far. Symbols
    /// must be in order.
    fn symbol(&self, process: u32, site: u32) -> Option<&Entry> {
        let table = self.tables.get(&process)?;
        let after = table.partition_point(|entry| entry.site <= site);
        let entry = table.get(after.checked_sub(1)?)?;
        (site - entry.site < entry.size.max(1)).then_some(entry)
    }

    fn text(&self, (start, length): (u32, u32)) -> String {
        let bytes = &self.text[start as usize..][..length as usize];
        String::from_utf8_lossy(bytes).into_owned()
    }
}

fn keep(text: &mut Vec<u8>, bytes: &[u8]) -> (u32, u32) {
    let start = text.len() as u32;
    text.extend_from_slice(bytes);
    (start, bytes.len() as u32)
}

/// Functions found so far, and what is needed to find more.
pub(crate) struct Names {
    symbols: SymbolTables,
    /// By process: windows by first site.
    windows: HashMap<u32, Vec<Window>>,
    far: Vec<u64>,
    by_word: HashMap<(u32, u32), FunctionId>,
    by_name: HashMap<(String, String), FunctionId>,
    functions: Vec<Function>,
}

impl Names {
    /// With everything that the recording says of names.
    pub(crate) fn new(
        mut symbols: SymbolTables,
        windows: HashMap<(u32, u32), Window>,
        far: Vec<u64>,
    ) -> Self {
        symbols.put_in_order();
        let mut by_process: HashMap<u32, Vec<Window>> = HashMap::new();
        for ((process, _), window) in windows {
            by_process.entry(process).or_default().push(window);
        }
        for windows in by_process.values_mut() {
            windows.sort_by_key(|window| window.first_site);
        }
        Self {
            symbols,
            windows: by_process,
            far,
            by_word: HashMap::new(),
            by_name: HashMap::new(),
            functions: Vec::new(),
        }
    }

    /// The function of a node's word.
    pub(crate) fn function(&mut self, process: u32, word: u32) -> FunctionId {
        if let Some(&id) = self.by_word.get(&(process, word)) {
            return id;
        }
        let function = self.describe(process, word);
        let next = FunctionId(self.functions.len() as u32);
        let name = (function.name.clone(), function.module.clone());
        let id = *self.by_name.entry(name).or_insert(next);
        if id == next {
            self.functions.push(function);
        }
        self.by_word.insert((process, word), id);
        id
    }

    /// All functions that were asked for.
    pub(crate) fn into_functions(self) -> Vec<Function> {
        self.functions
    }

    fn describe(&self, process: u32, word: u32) -> Function {
        match word {
            pseudo::UNKNOWN => return nameless("[unknown]".into()),
            pseudo::TOO_DEEP => return nameless("[too deep]".into()),
            pseudo::FAR.. => {
                let number = (word - pseudo::FAR) >> 1;
                return nameless(match self.far.get(number as usize) {
                    Some(address) => format!("[unknown module]+{address:#x}"),
                    None => "[unknown module]".into(),
                });
            }
            _ => {}
        }
        let site = word >> 1;
        let window = self.window(process, site);
        let module = window.map_or(String::new(), |window| file_name(&window.path));
        if let Some(entry) = self.symbols.symbol(process, site) {
            let file = self.symbols.text(entry.file);
            return Function {
                name: teeperf_symbols::demangle(&self.symbols.text(entry.name)).into_owned(),
                module,
                file: (!file.is_empty()).then_some(file),
                line: (entry.line != 0).then_some(entry.line),
            };
        }
        let offset = window.map_or(site.into(), |window| {
            window.file_address.wrapping_add((site - window.first_site).into())
        });
        let shown = if module.is_empty() { "[unknown module]" } else { &module };
        Function { name: format!("{shown}+{offset:#x}"), module, file: None, line: None }
    }

    fn window(&self, process: u32, site: u32) -> Option<&Window> {
        let windows = self.windows.get(&process)?;
        let after = windows.partition_point(|window| window.first_site <= site);
        let window = windows.get(after.checked_sub(1)?)?;
        (site - window.first_site < window.sites).then_some(window)
    }
}

fn nameless(name: String) -> Function {
    Function { name, module: String::new(), file: None, line: None }
}

/// Last part of a path.
pub(crate) fn file_name(path: &str) -> String {
    Path::new(path)
        .file_name()
        .map_or_else(|| path.into(), |name| name.to_string_lossy().into_owned())
}
