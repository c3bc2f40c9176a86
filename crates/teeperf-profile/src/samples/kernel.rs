//! The kernel's functions: as the running one tells them in `/proc/kallsyms`, where that is the one that was sampled, which its build-id
//! says; as perf keeps them by build-id; or in the place of `/proc/kallsyms` below another root, or in an archive.

use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use teeperf_symbols::Search;

use super::module::Named;
use super::modules::WITHIN;
use crate::contents::Start;

/// Most bytes read of what the kernel says: it comes to some 15 MB.
const MAX_BYTES: u64 = 256 << 20;
/// Where the kernel says it.
pub const SYMBOLS: &str = "/proc/kallsyms";
/// Where the kernel's own notes and those of its modules are.
const SYS: &str = "/sys";

/// Addresses and names of the kernel that was sampled, or of a module of it; none where it is another, or says none.
pub(crate) struct Kernel {
    symbols: Option<Arc<Symbols>>,
    /// Name of the module, where it is one.
    module: Option<String>,
    /// What an address has to be raised by to be one of `symbols`: a kernel stands elsewhere each time that it is started.
    shift: u64,
}

/// Those of a kernel that does not run here: its modules have the same.
pub(crate) type Elsewhere = OnceLock<Option<Arc<Symbols>>>;

/// By what modules have of an address: the kernel's are alike in the rest.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    text: Vec<u8>,
    list: Vec<Symbol>,
}

/// A line of them.
#[derive(Clone, Debug)]
struct Symbol {
    address: u64,
    /// Where in the text its name stands, and that of its module; the kernel itself has none.
    name: Range<u32>,
    module: Range<u32>,
}

impl Kernel {
    /// Of the kernel's or a module's path as the system has it, and a build-id. Where that is empty, as it is where it is not known, it
    /// is of the kernel that runs if `is_here` says that the recording is of this machine and system, and files are not another machine's.
    /// `at` is where the symbol that the path ends with stood, or the module; 0: not known.
    ///
    /// # Errors
    ///
    /// Why functions have no names.
    pub(crate) fn open(
        path: &Path,
        build_id: &[u8],
        at: u64,
        search: &Search,
        elsewhere: &Elsewhere,
        is_here: bool,
    ) -> (Self, Option<&'static str>) {
        static RUNNING: OnceLock<Option<Arc<Symbols>>> = OnceLock::new();
        let module = module_of(path);
        let is_running =
            search.kernel.is_none() && runs(path, build_id, is_here && !search.is_elsewhere());
        let symbols = match is_running {
            true => {
                let read = || Symbols::read(File::open(SYMBOLS).ok()?);
                RUNNING.get_or_init(read).clone()
            }
            false => {
                let beside = || File::open(search.kernel.as_ref()?.join("kallsyms")).ok();
                let told = || beside().or_else(|| search.text(Path::new(SYMBOLS)));
                let kept = || Symbols::read(search.kept_kernel(build_id)?);
                let read = || told().and_then(Symbols::read).or_else(kept);
                elsewhere.get_or_init(read).clone()
            }
        };
        let missing = match &symbols {
            Some(_) => None,
            None if is_running => {
                Some("the kernel does not tell where its functions are (kernel.kptr_restrict)")
            }
            None if build_id.is_empty() => Some(
                "the recording does not say which kernel this is, and it is not known to be of this machine",
            ),
            None => Some("the kernel that runs here is another"),
        };
        let shift = symbols.as_ref().and_then(|symbols| match &module {
            None => Some(symbols.named(reference(path)?)?.wrapping_sub(at)),
            Some(name) if is_running => Some(loaded_at(name)?.wrapping_sub(at)),
            Some(_) => None,
        });
        let shift = shift.filter(|_| at != 0).unwrap_or(0);
        (Self { symbols, module, shift }, missing)
    }

    /// The function at an address.
    pub(crate) fn function(&self, address: u64) -> Option<Named> {
        let symbols = self.symbols.as_ref()?;
        let symbol = symbols.at(address.wrapping_add(self.shift))?;
        let text = |range: &Range<u32>| symbols.text_of(range);
        // Where a module stood there may be another one now, or the kernel says nothing of it.
        let is_its = match &self.module {
            Some(name) => text(&symbol.module) == name.as_bytes(),
            None => symbol.module.is_empty() || self.shift == 0,
        };
        let name = String::from_utf8_lossy(text(&symbol.name)).into_owned();
        let start = symbol.address.wrapping_sub(self.shift) & WITHIN;
        is_its.then_some(Named { name, start: Some(start), defined: None })
    }
}

/// The symbol whose address a map of the kernel has as its offset, as perf writes it: `[kernel.kallsyms]_text`.
pub(crate) fn reference(path: &Path) -> Option<&str> {
    let (kernel, symbol) = path.to_str()?.rsplit_once(']')?;
    (kernel.starts_with('[') && !symbol.is_empty()).then_some(symbol)
}

/// Name of the module whose path this is: `[name]`, or its file, in which `-` may stand for `_`; nothing of the kernel itself.
pub(crate) fn module_of(path: &Path) -> Option<String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let of_file = name.split_once(".ko").map(|(name, _)| name.replace('-', "_"));
    let in_brackets = || name.strip_prefix('[')?.strip_suffix(']').map(str::to_owned);
    of_file.or_else(in_brackets).filter(|name| !is_kernel(name))
}

/// Whether this stands in brackets for the kernel itself, or for that of a guest.
fn is_kernel(name: &str) -> bool {
    name.starts_with("kernel.") || name.starts_with("guest.kernel.")
}

/// Where a module of the running kernel is, as proc_modules(5) has it.
fn loaded_at(module: &str) -> Option<u64> {
    let all = fs::read_to_string("/proc/modules").ok()?;
    let line = all.lines().find(|line| line.split_whitespace().next() == Some(module))?;
    let address = line.split_whitespace().nth(5)?.strip_prefix("0x")?;
    u64::from_str_radix(address, 16).ok().filter(|&address| address != 0)
}

/// The lines of `/proc/kallsyms` that are of functions; nothing where the kernel hides where they are.
pub fn running() -> Option<Vec<u8>> {
    let mut text = Vec::new();
    File::open(SYMBOLS).ok()?.take(MAX_BYTES).read_to_end(&mut text).ok()?;
    let lines = text.split_inclusive(|&byte| byte == b'\n');
    let functions = lines.filter(|line| function(line).is_some());
    let text: Vec<u8> = functions.flatten().copied().collect();
    (!text.is_empty()).then_some(text)
}

/// Whether a recording is of this machine, and of a system of the release that runs: as it says itself, and says all of it.
pub fn is_here(start: &Start) -> bool {
    let told = |name| fs::read_to_string(Path::new("/proc/sys/kernel").join(name));
    let is = |name, text: &str| told(name).is_ok_and(|told| told.trim_end() == text);
    let release = start.system.strip_prefix("Linux ");
    is("hostname", &start.host)
        && release.is_some_and(|release| is("osrelease", release))
        && start.machine == std::env::consts::ARCH
}

/// Whether a recording may be of this machine: as far as it says of which one it is.
pub(crate) fn may_be_here(start: &Start) -> bool {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let is_host = start.host.is_empty() || start.host == host.trim_end();
    is_host && (start.machine.is_empty() || start.machine == std::env::consts::ARCH)
}

/// Whether the kernel that runs here is of this build, or has a module of it, by its path; where no build-id is known, `otherwise`.
pub fn runs(path: &Path, build_id: &[u8], otherwise: bool) -> bool {
    if build_id.is_empty() {
        return otherwise;
    }
    let notes = fs::read(notes(Path::new(SYS), path)).unwrap_or_default();
    notes.windows(build_id.len()).any(|part| part == build_id)
}

/// Where the notes are of the kernel, or a module of it.
fn notes(sys: &Path, path: &Path) -> PathBuf {
    let module = module_of(path).map(|name| sys.join("module").join(name));
    match module.map(|folder| folder.join("notes/.note.gnu.build-id")) {
        Some(notes) if notes.exists() => notes,
        _ => sys.join("kernel/notes"),
    }
}

impl Symbols {
    /// Of what a file has; nothing where that is nothing.
    fn read(file: File) -> Option<Arc<Self>> {
        let mut text = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut text).ok()?;
        Some(Arc::new(Self::parse(text))).filter(|symbols| !symbols.list.is_empty())
    }

    /// Of two functions at one address the first counts.
    fn parse(text: Vec<u8>) -> Self {
        let (mut list, mut begin) = (Vec::new(), 0);
        for line in text.split_inclusive(|&byte| byte == b'\n') {
            if let Some((address, name, module)) = function(line) {
                let place = |at: usize| (begin + at) as u32;
                let [name, module] = [name, module].map(|at| place(at.start)..place(at.end));
                list.push(Symbol { address: address & WITHIN, name, module });
            }
            begin += line.len();
        }
        list.sort_by_key(|symbol| symbol.address);
        list.dedup_by_key(|symbol| symbol.address);
        Self { text, list }
    }

    fn at(&self, address: u64) -> Option<&Symbol> {
        let address = address & WITHIN;
        let behind = self.list.partition_point(|symbol| symbol.address <= address);
        self.list[..behind].last()
    }

    /// Address of a symbol of the kernel itself. It may share that with another, which counts in the list.
    fn named(&self, name: &str) -> Option<u64> {
        let lines =
            self.text.split(|&byte| byte == b'\n').filter_map(|line| Some((function(line)?, line)));
        let mut own = lines.filter(|((_, at, module), line)| {
            module.is_empty() && line[at.clone()] == *name.as_bytes()
        });
        own.next().map(|((address, ..), _)| address & WITHIN)
    }

    fn text_of(&self, range: &Range<u32>) -> &[u8] {
        &self.text[range.start as usize..range.end as usize]
    }
}

/// Address, where the name is and where that of the module, of a line of address, type, name and, in brackets, the kernel's module, if it
/// is of a function. Where addresses are hidden they are all 0.
fn function(line: &[u8]) -> Option<(u64, Range<usize>, Range<usize>)> {
    let mut end = 0;
    let mut word = || {
        let is_word = |byte: &u8| !byte.is_ascii_whitespace();
        let begin = end + line[end..].iter().position(is_word)?;
        let length = line[begin..].iter().position(|byte| !is_word(byte));
        end = length.map_or(line.len(), |length| begin + length);
        Some(begin..end)
    };
    let address = std::str::from_utf8(&line[word()?]).ok()?;
    let address = u64::from_str_radix(address, 16).ok().filter(|&address| address != 0)?;
    let is_function = matches!(line[word()?], [b't' | b'T' | b'w' | b'W']);
    let name = word()?;
    let module = match word() {
        Some(at) if at.len() > 2 && line[at.start] == b'[' => at.start + 1..at.end - 1,
        _ => name.end..name.end,
    };
    is_function.then_some((address, name, module))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_functions_by_address() {
        let text = b"ffffffff81000020 T b\nffffffff81000000 t a\nffffffff81000030 D data\n\
            ffffffffc0000000 t m\t[mod]\n0000000000000000 T hidden\nzz T bad\nffffffff81000020 T twice\n";
        let symbols = Symbols::parse(text.to_vec());
        let name = |address| {
            let symbol = symbols.at(address)?;
            let text = |at| std::str::from_utf8(symbols.text_of(at)).unwrap();
            Some((text(&symbol.name), text(&symbol.module)))
        };
        assert_eq!(name(0xffff_ffff_8100_001f), Some(("a", "")));
        assert_eq!(name(0xffff_ffff_8100_0031), Some(("b", "")));
        assert_eq!(name(0xffff_ffff_c000_0005), Some(("m", "mod")));
        assert_eq!(name(0x1000), None);
        assert_eq!(symbols.named("twice"), Some(0xffff_ffff_8100_0020 & WITHIN));
        assert_eq!((symbols.named("m"), symbols.named("data")), (None, None));
    }

    /// A kernel below another root, with its symbols: where it stood when it was asked.
    fn elsewhere(text: &str) -> (tempfile::TempDir, Search) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("proc")).unwrap();
        fs::write(folder.path().join("proc/kallsyms"), text).unwrap();
        let search = Search { root: Some(folder.path().to_owned()), ..Search::nowhere_else() };
        (folder, search)
    }

    #[test]
    fn a_kernel_that_was_started_again_stands_elsewhere() {
        let (_folder, search) = elsewhere(
            "ffffffff81000000 T _text\nffffffff81000000 T _stext\nffffffff81000100 T f\n\
             ffffffffc0001000 t g\t[net]\nffffffffc0003000 t h\t[disk]\n",
        );
        let name = |path: &str, at, address| {
            let kernel =
                |elsewhere| Kernel::open(Path::new(path), b"", at, &search, elsewhere, true).0;
            kernel(&Elsewhere::default()).function(address).map(|named| (named.name, named.start))
        };
        let own = "[kernel.kallsyms]_text";
        let low = 0xffff_ffff_8100_0100u64;
        let f = |start: u64| Some(("f".to_owned(), Some(start & WITHIN)));
        assert_eq!(name(own, 0xffff_ffff_8100_0000, low + 5), f(low));
        // It was 16 MiB higher when it was sampled. Where that is not known it is taken to have been here.
        assert_eq!(name(own, 0xffff_ffff_8200_0000, low + 0x100_0005), f(low + 0x100_0000));
        assert_eq!(
            name("[kernel.kallsyms]_stext", 0xffff_ffff_8200_0000, low + 0x100_0005),
            f(low + 0x100_0000)
        );
        assert_eq!(
            (name("[kernel.kallsyms]", 0, low + 5), name(own, 0, low + 5)),
            (f(low), f(low))
        );
        // Of a module only its own functions are.
        let found = |path| name(path, 0, 0xffff_ffff_c000_1005).map(|(name, _)| name);
        assert_eq!((found("[net]").as_deref(), found("[disk]")), (Some("g"), None));
        assert_eq!(found("/lib/modules/6.1/kernel/net.ko.zst").as_deref(), Some("g"));
    }

    #[test]
    fn without_a_build_id_it_is_the_running_kernel_on_this_machine_alone() {
        let path = Path::new("[kernel.kallsyms]_text");
        let search = Search::nowhere_else();
        let open = |build_id: &[u8], is_here| {
            let (kernel, missing) =
                Kernel::open(path, build_id, 0, &search, &Elsewhere::default(), is_here);
            (kernel.symbols.is_some(), missing.is_none())
        };
        assert_eq!(open(b"", false), (false, false));
        assert_eq!(open(&[7; 20], true), (false, false));
        let (is_told, is_whole) = open(b"", true);
        assert_eq!((is_told, is_whole), (running().is_some(), running().is_some()));
    }

    #[test]
    fn symbols_beside_a_file_are_of_its_kernel() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("kallsyms"), "ffffffff81000000 T beside\n").unwrap();
        let search = Search { kernel: Some(folder.path().to_owned()), ..Search::nowhere_else() };
        let kernel = Kernel::open(
            Path::new("[kernel.kallsyms]"),
            &[7; 20],
            0,
            &search,
            &Elsewhere::default(),
            true,
        );
        assert_eq!(kernel.0.function(0xffff_ffff_8100_0005).unwrap().name, "beside");
        assert_eq!(kernel.1, None);
    }

    #[test]
    fn notes_are_of_the_kernel_or_of_one_of_its_modules() {
        let folder = tempfile::tempdir().unwrap();
        let sys = folder.path();
        let module = sys.join("module/snd_hda/notes");
        fs::create_dir_all(&module).unwrap();
        fs::write(module.join(".note.gnu.build-id"), b"id").unwrap();
        let notes = |path: &str| notes(sys, Path::new(path));
        for path in ["[snd_hda]", "/lib/modules/6.1/kernel/sound/snd-hda.ko.xz", "/x/snd_hda.ko"] {
            assert_eq!(notes(path), module.join(".note.gnu.build-id"), "{path}");
        }
        for path in
            ["[kernel.kallsyms]_text", "[kernel.kallsyms]", "[gone]", "/usr/lib/debug/vmlinux", ""]
        {
            assert_eq!(notes(path), sys.join("kernel/notes"), "{path}");
        }
    }
}
