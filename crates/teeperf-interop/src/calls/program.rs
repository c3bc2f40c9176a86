//! The program whose calls a file has: its ELF file, where it was loaded, and which of its functions were seen.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use teeperf_symbols::{Error, Functions, Lines, Search};
use teeperf_wire::body::symbols;
use teeperf_wire::fields::{FIELD_HEADER, Writer};

use super::PROCESS;

/// Most code that has a window of its own. No program has half as much.
const MOST_CODE: u64 = 1 << 30;
/// Most places that calls led to that are kept, to see whether they are beginnings of functions.
const MOST_PLACES: usize = 1 << 20;
/// Bytes of a payload of symbols.
const PAYLOAD: usize = 256 << 10;
/// Longest name, and longest path, that is told.
const LONGEST: usize = 4096;

/// An ELF file, and how much higher than its own addresses it was loaded.
pub struct Program {
    path: PathBuf,
    functions: Functions,
    bias: u64,
}

impl Program {
    /// Reads an ELF file.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is no executable or shared library.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let functions = Functions::open(path, &Search::default())?;
        Ok(Self { path: path.to_owned(), functions, bias: 0 })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// It was loaded so much higher than the file says, modulo 2^64.
    pub fn loaded_at(self, bias: u64) -> Self {
        Self { bias, ..self }
    }

    /// Whether it may have been loaded anywhere.
    pub(crate) fn is_relocatable(&self) -> bool {
        self.functions.is_relocatable()
    }

    /// Where the file has the function of this name.
    pub(crate) fn named(&self, name: &str) -> Option<u64> {
        self.functions.named(name).map(|symbol| symbol.start)
    }

    pub(super) fn bias(&self) -> u64 {
        self.bias
    }

    /// First address of its code when it ran, and bytes of it.
    pub(super) fn extent(&self) -> (u64, u64) {
        let code = self.functions.code();
        let bytes = code.end.saturating_sub(code.start).min(MOST_CODE);
        (code.start.wrapping_add(self.bias), bytes)
    }
}

/// What of a program was seen.
pub(super) struct Found {
    program: Program,
    path: Vec<u8>,
    /// Places that calls led to, as the file has them.
    places: HashSet<u64>,
}

impl Found {
    pub(super) fn new(program: Program) -> Self {
        let path = program.path.as_os_str().as_encoded_bytes().to_vec();
        Self { program, path, places: HashSet::new() }
    }

    /// Path and build-id.
    pub(super) fn module(&self) -> (&[u8], &[u8]) {
        (&self.path, self.program.functions.build_id().unwrap_or_default())
    }

    /// A call led to this address, or a return from there.
    pub(super) fn note(&mut self, address: u64) {
        if self.places.len() < MOST_PLACES {
            self.places.insert(address.wrapping_sub(self.program.bias));
        }
    }

    /// Payloads of symbol packets: `site` says where an address lies in the window.
    pub(super) fn symbols(
        &self,
        site: impl Fn(u64) -> Option<u32>,
        first_site: u32,
    ) -> Vec<Vec<u8>> {
        let Program { path, functions, bias } = &self.program;
        let mut seen: Vec<_> =
            self.places.iter().filter_map(|&place| functions.at(place)).collect();
        seen.sort_unstable_by_key(|symbol| symbol.start);
        seen.dedup_by_key(|symbol| symbol.start);
        let starts: Vec<u64> = seen.iter().map(|symbol| symbol.start).collect();
        // Without lines, functions have no source file.
        let lines = Lines::open(path, &Search::default());
        let locations = lines.and_then(|lines| lines.definitions(&starts)).unwrap_or_default();
        let mut locations = locations.into_iter();
        let mut payloads = Vec::new();
        let mut payload = Payload::new(first_site);
        for symbol in &seen {
            let location = locations.next().flatten();
            let Some(site) = site(symbol.start.wrapping_add(*bias)) else { continue };
            let file = location.as_ref().map_or("", |location| location.file.as_str());
            let line = location.as_ref().and_then(|location| location.line).unwrap_or(0);
            payload.symbol(site, symbol.size, line, symbol.name.as_bytes(), file.as_bytes());
            if payload.bytes.len() >= PAYLOAD {
                payloads.push(std::mem::replace(&mut payload, Payload::new(first_site)).bytes);
            }
        }
        payloads.push(payload.bytes);
        payloads
    }

    /// What to say where calls led to places that are no beginnings of functions: compilers' hooks tell
    /// beginnings, so the file is that of another program, or its symbols are missing.
    pub(super) fn doubt(&self) -> Option<String> {
        let is_beginning = |place: u64| {
            self.program.functions.at(place).is_some_and(|symbol| symbol.start == place)
        };
        let others = self.places.iter().filter(|&&place| !is_beginning(place)).count();
        let (all, path) = (self.places.len(), self.program.path.display());
        (others > 0 && others * 4 >= all).then(|| {
            format!(
                "calls led to {all} places in {path}, {others} of them not the beginning of a function: it may not be the \
                 program that was run, or lack symbols. Then names are wrong"
            )
        })
    }
}

/// A payload of a symbol packet.
struct Payload {
    bytes: Vec<u8>,
}

impl Payload {
    fn new(first_site: u32) -> Self {
        let mut payload = Self { bytes: Vec::new() };
        payload.field(symbols::PROCESS, &PROCESS.to_le_bytes());
        payload.field(symbols::FIRST_SITE, &first_site.to_le_bytes());
        payload
    }

    fn symbol(&mut self, site: u32, size: u64, line: u32, name: &[u8], file: &[u8]) {
        let name = &name[..name.len().min(LONGEST)];
        let file = &file[..file.len().min(LONGEST)];
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        let head = symbols::head(site, size, line, name.len() as u16);
        self.field(symbols::SYMBOL, &[&head[..], name, file].concat());
    }

    fn field(&mut self, tag: u16, value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.resize(start + FIELD_HEADER + value.len(), 0);
        // It is as long as that.
        let _ = Writer::new(&mut self.bytes[start..]).bytes(tag, value);
    }
}
