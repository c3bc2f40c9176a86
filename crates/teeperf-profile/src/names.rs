//! Sites to functions: the modules of each process with their windows, and the symbols that
//! the recording brings along. What has no symbol is named by module and offset.

mod elsewhere;
mod files;
mod inlined;

use elsewhere::Elsewhere;
use inlined::Inlined;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use teeperf_symbols::{Functions, Search};
use teeperf_wire::word::module::ANCHOR;

use crate::chunks::Decoder;
use crate::contents::{Body, Packet, Symbols};
use crate::escape::{Escape, Module};
use crate::events::{Item, events};
use crate::model::{Code, Function, FunctionId, Place};
use crate::replay::pseudo;
use crate::warnings::Warnings;

/// Most windows of modules remembered.
const MAX_WINDOWS: usize = 1 << 16;
/// Symbols kept of one recording, and bytes of their texts. A recording has those of the
/// functions that were called, some ten thousand.
const MAX_SYMBOLS: usize = 1 << 22;
const MAX_TEXT: usize = 256 << 20;

/// Stands for the module of code outside every window.
const UNKNOWN_MODULE: &str = "[unknown module]";
/// Frames whose calls were not seen.
pub(crate) const UNKNOWN: &str = "[unknown]";
/// The kernel, which a call of the function above it was in.
const KERNEL: &str = "[kernel]";
const NO_SAMPLE: &str = "[no sample]";
/// Code that no file has, such as that of a compiler that runs in the program.
const NO_FILE: &str = "[code without a file]";
/// Functions below it found no room on their paths.
pub(crate) const NO_ROOM: &str = "[no room]";

/// The symbols of each process, of all its windows: sites mean the same in its whole life, so
/// that a symbol names its function even where the window was lost.
#[derive(Default)]
pub(crate) struct SymbolTables {
    /// By process, sorted by site where `in_order` says so.
    tables: HashMap<u32, Vec<Entry>>,
    in_order: bool,
    text: Vec<u8>,
    count: usize,
    /// Addresses of [`ANCHOR`] in files, by process and first site of the window.
    anchors: HashMap<(u32, u32), u64>,
    /// Symbols that found no room.
    pub(crate) left_out: u64,
}

/// A window that a module took or gave back, for the process's table: sites, and the code that they stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// First site.
    pub(crate) first_site: u32,
    /// Number of sites.
    pub(crate) sites: u32,
    /// Address of the first byte, less the load bias: the file's own virtual address. Or that less the
    /// address of [`ANCHOR`].
    pub(crate) file_address: u64,
    /// Load bias: 0 where it is anchored.
    pub(crate) bias: u64,
    /// Whether it is the latter.
    pub(crate) is_anchored: bool,
    /// Path of the module.
    pub(crate) path: Arc<str>,
    /// Its build-id; empty when it has none.
    pub(crate) build_id: Arc<[u8]>,
}

impl Window {
    /// What an escape says. A window that is retired keeps its module: sites already recorded
    /// mean it still. What retires it says all that what opened it said, which may be missing.
    pub(crate) fn of(module: &Module<'_>) -> Self {
        Self {
            first_site: module.first_site,
            sites: module.sites,
            file_address: module.address.wrapping_sub(module.bias),
            bias: module.bias,
            is_anchored: module.is_anchored,
            path: module.path.to_string().into(),
            build_id: module.build_id.bytes().into(),
        }
    }
}

impl Window {
    /// Path of the module.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its build-id; empty when it has none.
    pub fn build_id(&self) -> &[u8] {
        &self.build_id
    }

    /// The file's own virtual address of a site; `anchor` is that of [`ANCHOR`].
    fn address(&self, site: u32, anchor: u64) -> u64 {
        // A symbol may begin before the window that it reaches into.
        let distance = i64::from(site) - i64::from(self.first_site);
        let anchor = if self.is_anchored { anchor } else { 0 };
        self.file_address.wrapping_add_signed(distance).wrapping_add(anchor)
    }

    /// `anchor` as for its address.
    fn code(&self, anchor: Option<u64>) -> Code {
        match (self.is_anchored, anchor) {
            (false, _) => Code::Process,
            (true, Some(_)) => Code::Image,
            (true, None) => Code::UnknownImage,
        }
    }

    fn place(&self, address: u64, size: u64, code: Code) -> Place {
        Place { path: self.path.clone(), build_id: self.build_id.clone(), address, size, code }
    }
}

/// Windows of modules, by process and first site.
#[derive(Default)]
pub(crate) struct Windows(BTreeMap<(u32, u32), Window>);

impl Windows {
    /// Keeps a module's window; a file that is loaded again gets the same one.
    pub(crate) fn open(&mut self, process: u32, window: Window, warnings: &mut Warnings) {
        let key = (process, window.first_site);
        match self.0.get(&key) {
            Some(known) if known.path != window.path => warnings.add(|| {
                format!(
                    "process {process}: sites from {:#x} are those of {} and, later, of {}; names are of the first",
                    window.first_site, known.path, window.path
                )
            }),
            Some(_) => {}
            None if self.0.len() < MAX_WINDOWS => {
                self.0.insert(key, window);
            }
            None => warnings.add(|| {
                format!("process {process}: more than {MAX_WINDOWS} modules; {} has no names", window.path)
            }),
        }
    }

    /// Lets those of a process go.
    pub(crate) fn forget(&mut self, process: u32) {
        self.0.retain(|key, _| key.0 != process);
    }

    /// Those of a process.
    pub(crate) fn of(&self, process: u32) -> impl Iterator<Item = &Window> {
        self.0.range((process, 0)..=(process, u32::MAX)).map(|(_, window)| window)
    }

    fn at(&self, process: u32, site: u32) -> Option<&Window> {
        let (_, window) = self.0.range((process, 0)..=(process, site)).next_back()?;
        (site - window.first_site < window.sites).then_some(window)
    }
}

/// What a recording says of names: symbols, and the modules they are in; and files that say more.
#[derive(Default)]
struct Sites {
    symbols: SymbolTables,
    windows: Windows,
    images: Images,
    elsewhere: Elsewhere,
    inlined: Inlined,
}

impl Sites {
    /// The function at a site: by its symbol, demangled, or by module and offset. Symbols must
    /// be in order.
    fn function(&mut self, process: u32, site: u32) -> Function {
        let window = self.windows.at(process, site);
        let module = window.map_or(String::new(), |window| file_name(&window.path));
        let first = window.map_or(0, |window| window.first_site);
        let anchor = self.symbols.anchors.get(&(process, first)).copied();
        if let Some(entry) = self.symbols.symbol(process, site) {
            let place = |window: &Window| {
                let address = window.address(entry.site, anchor.unwrap_or(0));
                window.place(address, entry.size.into(), window.code(anchor))
            };
            return self.symbols.function(entry, module, window.map(place));
        }
        let Some(window) = window else {
            let name = format!("{UNKNOWN_MODULE}+{site:#x}");
            return Function { name, module, ..Function::default() };
        };
        let address = window.address(site, 0);
        let told = self.elsewhere.told(window, address, &self.symbols, &self.windows);
        if let Some((entry, start)) = told {
            let place = window.place(start, entry.size.into(), Code::Process);
            return self.symbols.function(entry, module, Some(place));
        }
        let in_file = self.elsewhere.in_file(window, address, &self.images.search);
        if let Some((name, start, size)) = in_file {
            let place = Some(window.place(start, size, Code::Process));
            return Function { name, module, place, ..Function::default() };
        }
        if let Some((name, address, size)) = self.images.function(window, site) {
            let place = Some(window.place(address, size, Code::Image));
            return Function { name, module, place, ..Function::default() };
        }
        // A file may be of an image, and have no symbol there.
        let anchor = anchor.or_else(|| self.images.open(window).map(|(_, anchor)| *anchor));
        let address = window.address(site, anchor.unwrap_or(0));
        let shown = if module.is_empty() { UNKNOWN_MODULE } else { &module };
        let name = if window.is_anchored && anchor.is_none() {
            // Where the file has it is not known.
            let distance = address.cast_signed();
            let sign = if distance < 0 { '-' } else { '+' };
            format!("{shown}+anchor{sign}{:#x}", distance.unsigned_abs())
        } else {
            format!("{shown}+{address:#x}")
        };
        let place = Some(window.place(address, 0, window.code(anchor)));
        Function { name, module, place, ..Function::default() }
    }
}

/// Files that were named for images of which the recording has no symbols.
#[derive(Default)]
struct Images {
    search: Search,
    /// By what the recording calls the image: its functions, and the address of [`ANCHOR`] among them.
    opened: HashMap<Arc<str>, Option<(Functions, u64)>>,
}

impl Images {
    /// Name, address and size of the function at a site.
    fn function(&mut self, window: &Window, site: u32) -> Option<(String, u64, u64)> {
        let (functions, anchor) = self.open(window)?;
        symbol_at(functions, window.address(site, *anchor))
    }

    /// The functions of a window's file, and the address of [`ANCHOR`] there.
    fn open(&mut self, window: &Window) -> Option<&(Functions, u64)> {
        if !window.is_anchored || self.search.images.is_empty() {
            return None;
        }
        let open = || {
            let (_, functions) = self.search.image(Path::new(&*window.path), ANCHOR)?;
            let anchor = functions.named(ANCHOR)?.start;
            Some((functions, anchor))
        };
        self.opened.entry(window.path.clone()).or_insert_with(open).as_ref()
    }
}

/// Name, start and size of the function at an address of a file.
fn symbol_at(functions: &Functions, address: u64) -> Option<(String, u64, u64)> {
    let symbol = functions.at(address)?;
    let name = teeperf_symbols::demangle(&symbol.name).into_owned();
    Some((name, symbol.start, symbol.size))
}

/// Name of a function outside every window, by its address.
pub fn far_name(address: u64) -> String {
    format!("{UNKNOWN_MODULE}+{address:#x}")
}

/// Names as a profile has them, for whoever looks at words. Symbols come behind the words
/// they belong to, and a thread may call into a module before another tells of it, so it
/// takes a first pass to gather them.
#[derive(Default)]
pub struct SiteNames {
    sites: Sites,
    known: HashMap<(u32, u32), String>,
}

impl SiteNames {
    /// None yet. Files of images that may be asked for names stand in `search`.
    pub fn new(search: Search) -> Self {
        let images = Images { search, opened: HashMap::new() };
        Self { sites: Sites { images, ..Sites::default() }, known: HashMap::new() }
    }

    /// Keeps what a packet says of names. A chunk that cannot be read says nothing.
    pub fn packet(&mut self, packet: &Packet<'_>, decoder: &mut Decoder) {
        match &packet.body {
            Body::Symbols(symbols) => {
                self.sites.symbols.add(symbols);
                self.known.clear();
            }
            Body::Chunk(header, data) => {
                for event in events(decoder, header, data).into_iter().flatten() {
                    if let Item::Escape(Escape::Module(module)) = event.item {
                        self.module(header.process, &module);
                    }
                }
            }
            _ => {}
        }
    }

    /// Keeps the window of a module.
    pub fn module(&mut self, process: u32, module: &Module<'_>) {
        // Who makes a profile of the recording is warned of what is wrong with windows.
        self.sites.windows.open(process, Window::of(module), &mut Warnings::default());
        self.known.clear();
    }

    /// The function at a site of a process.
    pub fn name(&mut self, process: u32, site: u32) -> &str {
        // A recording may name any number of sites that are in no window.
        if self.known.len() >= MAX_SYMBOLS {
            self.known.clear();
        }
        let sites = &mut self.sites;
        self.known.entry((process, site)).or_insert_with(|| {
            sites.symbols.put_in_order();
            sites.function(process, site).name
        })
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
        if let Some(anchor) = symbols.anchor
            && self.anchors.len() < MAX_WINDOWS
        {
            self.anchors.insert((symbols.process, symbols.first_site), anchor);
        }
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

    /// The function of a symbol.
    fn function(&self, entry: &Entry, module: String, place: Option<Place>) -> Function {
        let file = self.text(entry.file);
        Function {
            name: teeperf_symbols::demangle(&self.text(entry.name)).into_owned(),
            module,
            file: (!file.is_empty()).then_some(file),
            line: (entry.line != 0).then_some(entry.line),
            place,
        }
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
    sites: Sites,
    far: Vec<u64>,
    by_word: HashMap<(u32, u32), FunctionId>,
    known: HashMap<FunctionKey, FunctionId>,
    functions: Vec<Function>,
    /// Of each, where its code stands.
    places: Vec<Option<Place>>,
    /// Whether functions keep their places and are told apart by them.
    by_place: bool,
}

/// What makes two functions one: name, module, and the place where they have one.
pub(crate) type FunctionKey = (String, String, Option<Place>);

/// The key of a function.
pub(crate) fn key(function: &Function) -> FunctionKey {
    (function.name.clone(), function.module.clone(), function.place.clone())
}

impl Names {
    /// With everything that the recording says of names.
    pub(crate) fn new(
        mut symbols: SymbolTables,
        windows: Windows,
        far: Vec<u64>,
        by_place: bool,
        search: Search,
    ) -> Self {
        symbols.put_in_order();
        let images = Images { search, opened: HashMap::new() };
        Self {
            sites: Sites { symbols, windows, images, ..Sites::default() },
            far,
            by_word: HashMap::new(),
            known: HashMap::new(),
            functions: Vec::new(),
            places: Vec::new(),
            by_place,
        }
    }

    /// The function of a node's word.
    pub(crate) fn function(&mut self, process: u32, word: u32) -> FunctionId {
        if let Some(&id) = self.by_word.get(&(process, word)) {
            return id;
        }
        let mut function = self.describe(process, word);
        let place = function.place.clone();
        if !self.by_place {
            function.place = None;
        }
        let id = self.number(function, place);
        self.by_word.insert((process, word), id);
        id
    }

    /// The site of an address in a process.
    pub(crate) fn site_at(&self, process: u32, address: u64) -> Option<u32> {
        let site = |window: &Window| {
            let start = window.file_address.wrapping_add(window.bias);
            let offset = address.wrapping_sub(start);
            let is_within = !window.is_anchored && offset < window.sites.into();
            is_within.then(|| window.first_site.wrapping_add(offset as u32))
        };
        self.sites.windows.of(process).find_map(site)
    }

    /// The function that has the instruction at a site, which may be in a part of it that stands
    /// apart.
    pub(crate) fn at(&mut self, process: u32, site: u32) -> FunctionId {
        let word = teeperf_wire::word::call(site);
        if let Some(&id) = self.by_word.get(&(process, word)) {
            return id;
        }
        let id = self.function(process, word);
        let function = &self.functions[id.0 as usize];
        let whole = function.name.split_once(".cold").map(|(whole, _)| whole.to_owned());
        let Some(name) = whole else { return id };
        let whole = Function { name, place: None, ..function.clone() };
        let id = self.known.get(&key(&whole)).copied().unwrap_or(id);
        self.by_word.insert((process, word), id);
        id
    }

    /// Functions that were inlined where a site is, the outermost first. Where functions are told
    /// apart by their code there are none: these have no code of their own.
    pub(crate) fn inlined_at(&mut self, process: u32, site: u32) -> Vec<FunctionId> {
        let Sites { windows, images, inlined, .. } = &mut self.sites;
        let Some(window) = windows.at(process, site).filter(|_| !self.by_place) else {
            return Vec::new();
        };
        let found = inlined.at(window, window.address(site, 0), &images.search);
        found.into_iter().map(|function| self.number(function, None)).collect()
    }

    /// The number of a function, which may be known.
    fn number(&mut self, function: Function, place: Option<Place>) -> FunctionId {
        let next = FunctionId(self.functions.len() as u32);
        let id = *self.known.entry(key(&function)).or_insert(next);
        if id == next {
            self.functions.push(function);
            self.places.push(place);
        }
        id
    }

    /// What is called so, without making a function of it.
    pub(crate) fn name(&mut self, process: u32, word: u32) -> String {
        self.describe(process, word).name
    }

    /// All functions that were asked for, and where their code stands.
    pub(crate) fn into_functions(self) -> (Vec<Function>, Vec<Option<Place>>) {
        (self.functions, self.places)
    }

    fn describe(&mut self, process: u32, word: u32) -> Function {
        match word {
            pseudo::UNKNOWN => nameless(UNKNOWN.into()),
            pseudo::BEYOND_LIMITS => nameless("[beyond limits]".into()),
            pseudo::KERNEL => nameless(KERNEL.into()),
            pseudo::NO_SAMPLE => nameless(NO_SAMPLE.into()),
            pseudo::NO_FILE => nameless(NO_FILE.into()),
            pseudo::NO_ROOM => nameless(NO_ROOM.into()),
            pseudo::FAR.. => {
                let number = (word - pseudo::FAR) >> 1;
                nameless(match self.far.get(number as usize) {
                    Some(&address) => far_name(address),
                    None => UNKNOWN_MODULE.into(),
                })
            }
            _ => self.sites.function(process, word >> 1),
        }
    }
}

fn nameless(name: String) -> Function {
    Function { name, ..Function::default() }
}

/// Last part of a path.
pub(crate) fn file_name(path: &str) -> String {
    Path::new(path)
        .file_name()
        .map_or_else(|| path.into(), |name| name.to_string_lossy().into_owned())
}
