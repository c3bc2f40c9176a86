//! One module: names of its code, and how to find callers from there.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use framehop::{ExplicitModuleSectionInfo, Module as Tables};
use teeperf_symbols::{Error, Frames, Functions, Rbx, Search, Unwinding, demangle};

use super::jitted::{self, JITTED, Jitted};
use super::kernel::{Elsewhere, Kernel};
use super::modules::{Location, ModuleId, lock};

/// Bytes of a table that unwinding reads.
pub(crate) type Bytes = Arc<[u8]>;

/// What code was sampled of, opened.
pub(crate) struct Module {
    /// File name, without directory.
    pub(crate) name: String,
    /// Why a file is not here, or not the one that was sampled.
    pub(crate) missing: Option<String>,
    code: Code,
}

enum Code {
    /// A file that is here, and is the one that was sampled.
    File(Box<File>),
    /// The kernel, or a module of it.
    Kernel(Kernel),
    /// One function of the kernel's, which the module is called after.
    Function,
    /// What a process made, and where the module begins.
    Jitted(Arc<Jitted>, u64),
    /// Nothing is known but addresses.
    Unknown,
}

struct File {
    functions: Functions,
    frames: Option<Mutex<Frames>>,
    unwinding: Unwinding,
    /// First address that is loaded.
    begin: u64,
    /// Functions whose frames are told from RBX: of loaders, whose tables are small.
    by_rbx: Vec<Range<u64>>,
    /// What was inlined is told apart.
    is_inlined: bool,
}

/// A function at a location.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Named {
    pub(crate) name: String,
    /// File's own virtual address where the function begins, if it is one that was not inlined.
    pub(crate) start: Option<u64>,
    /// Source file and line where it begins, or is declared, where that is known.
    pub(crate) defined: Option<(String, Option<u32>)>,
}

impl Named {
    /// Nothing but a name.
    pub(crate) fn plain(name: impl Into<String>) -> Self {
        Self { name: name.into(), start: None, defined: None }
    }
}

impl Module {
    /// That of a path as the system has it, which may be no file's.
    pub(crate) fn file(path: &Path, build_id: &[u8], search: &Search, is_inlined: bool) -> Self {
        let build_id = (!build_id.is_empty()).then(|| build_id.to_vec());
        let search = Search { build_id, ..search.clone() };
        let (code, missing) = match File::open(path, &search, is_inlined) {
            Ok(file) => (Code::File(Box::new(file)), None),
            Err(error) => (Code::Unknown, is_file(path).then(|| error.to_string())),
        };
        Self { name: name(path), missing, code }
    }

    /// That of a file that was seen in another mount namespace, below another root, or on another
    /// machine. Where the recording does not have it, the file at that path here is another one,
    /// unless its build-id or the user says otherwise.
    pub(crate) fn inside(
        path: &Path,
        build_id: &[u8],
        search: &Search,
        is_inlined: bool,
        has_own: bool,
        why: &str,
    ) -> Self {
        if has_own || !build_id.is_empty() || search.root.is_some() {
            return Self::file(path, build_id, search, is_inlined);
        }
        let missing = is_file(path).then(|| format!("{}: {why}", path.display()));
        Self { name: name(path), missing, code: Code::Unknown }
    }

    /// That of the kernel, or a part of it.
    pub(crate) fn kernel(
        path: &Path,
        build_id: &[u8],
        at: u64,
        search: &Search,
        elsewhere: &Elsewhere,
        is_here: bool,
    ) -> Self {
        let name = name(path);
        if !name.starts_with('[') && !path.is_absolute() {
            // A name alone is that of a function that the kernel made.
            return Self { name, missing: None, code: Code::Function };
        }
        let (kernel, why) = Kernel::open(path, build_id, at, search, elsewhere, is_here);
        let missing = why.map(|why| format!("{name}: {why}"));
        Self { name, missing, code: Code::Kernel(kernel) }
    }

    /// That of code which was made in memory, from `base` on; `path` is what the system has for that.
    pub(crate) fn jitted(path: &Path, told: Arc<Jitted>, base: u64) -> Self {
        Self { name: name(path), missing: None, code: Code::Jitted(told, base) }
    }

    /// That of a file that is in memory, if it is one with code.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (path, search) = (Path::new("file"), Search::nowhere_else());
        let unwinding = Unwinding::from_bytes(path, bytes.to_vec(), &search).ok()?;
        let functions = Functions::from_bytes(path, bytes.to_vec(), &search).ok()?;
        let frames = Frames::from_bytes(path, bytes.to_vec(), &search).ok().flatten();
        let file = File::new(unwinding, functions, frames, true);
        Some(Self { name: "file".into(), missing: None, code: Code::File(Box::new(file)) })
    }

    /// Where an address is told from, of what stands at an offset of the file.
    pub(crate) fn relative(&self, offset: u64) -> u64 {
        match &self.code {
            Code::File(file) => {
                let address = file.unwinding.address(offset).unwrap_or(offset);
                address.wrapping_sub(file.begin)
            }
            _ => offset,
        }
    }

    /// What of its debug information stands in files that are not here.
    pub(crate) fn incomplete(&self) -> Option<String> {
        let Code::File(file) = &self.code else { return None };
        lock(file.frames.as_ref()?).missing()
    }

    /// Whether it is code that was made in memory.
    pub(crate) fn is_jitted(&self) -> bool {
        matches!(self.code, Code::Jitted(..))
    }

    /// Whether the frame of what stands there may be told from RBX.
    pub(crate) fn is_by_rbx(&self, relative: u64) -> bool {
        let Code::File(file) = &self.code else { return false };
        let address = file.begin.wrapping_add(relative);
        file.by_rbx.iter().any(|function| function.contains(&address))
    }

    /// What RBX has to do with the frame of what stands there.
    pub(crate) fn rbx(&self, relative: u64) -> Option<Rbx> {
        let Code::File(file) = &self.code else { return None };
        file.unwinding.rbx(file.begin.wrapping_add(relative))
    }

    /// What unwinding needs, where there is any.
    pub(crate) fn tables(&self, id: ModuleId) -> Option<Tables<Bytes>> {
        let Code::File(file) = &self.code else { return None };
        file.tables(&self.name, Location::base(id))
    }

    /// Whether the function there is the one that the file is entered at: nothing of it called that.
    pub(crate) fn is_entry(&self, relative: u64) -> bool {
        let Code::File(file) = &self.code else { return false };
        let (functions, entry) = (&file.functions, file.unwinding.entry);
        let found = functions.at(file.begin.wrapping_add(relative)).map(|symbol| symbol.start);
        entry > 0 && found.is_some() && found == functions.at(entry).map(|symbol| symbol.start)
    }

    /// The function that code is of there, or was inlined, with its source file and line, where these are known.
    pub(crate) fn line(&self, relative: u64) -> Option<(Named, (String, u32))> {
        let Code::File(file) = &self.code else { return None };
        let line = file.line(relative)?;
        Some((self.functions(relative).1.into_iter().next()?, line))
    }

    /// The functions there, the innermost first, never none; and what they are of.
    pub(crate) fn functions(&self, relative: u64) -> (&str, Vec<Named>) {
        let found = match &self.code {
            Code::File(file) => file.functions(relative),
            Code::Kernel(kernel) => kernel.function(relative).into_iter().collect(),
            Code::Jitted(told, base) => match told.function(base.wrapping_add(relative)) {
                Some(name) => return (JITTED, vec![Named::plain(name)]),
                None => Vec::new(),
            },
            Code::Function => vec![Named::plain(&*self.name)],
            Code::Unknown => Vec::new(),
        };
        if !found.is_empty() {
            return (&self.name, found);
        }
        let name = match &self.code {
            Code::File(file) => {
                let address = file.begin.wrapping_add(relative);
                let start = file.unwinding.function(address);
                let name = format!("{}+{:#x}", self.name, start.unwrap_or(address));
                return (&self.name, vec![Named { start, ..Named::plain(name) }]);
            }
            // One by one they say nothing, and there may be any number.
            Code::Kernel(_) => "[kernel]".to_owned(),
            _ if self.name.starts_with(['[', '/']) => self.name.clone(),
            _ => format!("[{}]", self.name),
        };
        (&self.name, vec![Named::plain(name)])
    }
}

fn name(path: &Path) -> String {
    let whole = path.to_string_lossy();
    match path.file_name() {
        Some(name) if !whole.starts_with('[') => name.to_string_lossy().into_owned(),
        _ => whole.into_owned(),
    }
}

/// Whether a file is a loader's, by its name: glibc's.
fn is_loader(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(b"ld-") || name.starts_with(b"ld.")
}

/// Whether the path of code is that of a file: names of other memory, and of devices, begin as paths do.
pub fn is_file(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    path.is_absolute() && !path.starts_with("/dev") && !jitted::is_memory(bytes, &[])
}

impl File {
    fn open(path: &Path, search: &Search, is_inlined: bool) -> Result<Self, Error> {
        let unwinding = Unwinding::open(path, search)?;
        let functions = Functions::open(path, search)?;
        let frames = Frames::open(path, search).ok().flatten();
        let by_rbx = if is_loader(path) { unwinding.by_rbx() } else { Vec::new() };
        Ok(Self { by_rbx, ..Self::new(unwinding, functions, frames, is_inlined) })
    }

    fn new(
        unwinding: Unwinding,
        functions: Functions,
        frames: Option<Frames>,
        is_inlined: bool,
    ) -> Self {
        let begin = unwinding.extent().start;
        let (frames, by_rbx) = (frames.map(Mutex::new), Vec::new());
        Self { functions, frames, unwinding, begin, by_rbx, is_inlined }
    }

    fn tables(&self, name: &str, base: u64) -> Option<Tables<Bytes>> {
        let Unwinding { eh_frame, eh_frame_hdr, debug_frame, text, got, .. } = &self.unwinding;
        let extent = self.unwinding.extent();
        let size = u32::try_from(extent.end - extent.start).ok()?;
        let bytes = |table: &Option<teeperf_symbols::Table>| {
            table.as_ref().map(|table| Bytes::from(&table.bytes[..]))
        };
        let addresses = |table: &Option<teeperf_symbols::Table>| {
            table.as_ref().map(|table| table.addresses.clone())
        };
        let sections = ExplicitModuleSectionInfo {
            base_svma: self.begin,
            text_svma: text.clone(),
            got_svma: got.clone(),
            eh_frame_svma: addresses(eh_frame),
            eh_frame: bytes(eh_frame),
            eh_frame_hdr_svma: addresses(eh_frame_hdr),
            eh_frame_hdr: bytes(eh_frame_hdr),
            debug_frame: bytes(debug_frame),
            ..ExplicitModuleSectionInfo::default()
        };
        Some(Tables::new(name.to_owned(), base..base + u64::from(size), base, sections))
    }

    fn line(&self, relative: u64) -> Option<(String, u32)> {
        let found = lock(self.frames.as_ref()?).at(self.begin.wrapping_add(relative));
        let shown = if self.is_inlined { found.first() } else { found.last() };
        shown?.line.clone()
    }

    fn functions(&self, relative: u64) -> Vec<Named> {
        let address = self.begin.wrapping_add(relative);
        let frames = self.frames.as_ref().map(lock);
        let mut inlined = frames.as_ref().map_or_else(Vec::new, |frames| frames.at(address));
        // The last is what the symbol names, and linkers have the last word on that.
        let last = inlined.pop();
        if !self.is_inlined {
            inlined.clear();
        }
        let outer = match self.functions.at(address) {
            Some(symbol) => {
                let defined = || {
                    let frames = frames.as_ref()?;
                    let frame = frames.at(symbol.start).pop()?;
                    let declared = frames.declared(symbol.start, &frame);
                    let known = declared.filter(|place| place.line.is_some());
                    let here = || frame.line.map(|(file, line)| (file, Some(line)));
                    known.map(|place| (place.file, place.line)).or_else(here)
                };
                Some(Named {
                    name: demangle(&symbol.name).into_owned(),
                    start: Some(symbol.start),
                    defined: defined(),
                })
            }
            None => last.and_then(|frame| frame.name).map(Named::plain),
        };
        let inlined = inlined.into_iter().filter_map(|frame| {
            let declared = frames.as_ref()?.declared(address, &frame);
            let defined = declared.map(|place| (place.file, place.line));
            Some(Named { defined, ..Named::plain(frame.name?) })
        });
        inlined.chain(outer).collect()
    }
}
