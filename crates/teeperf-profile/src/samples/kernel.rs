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

/// Most bytes read of what the kernel says: it comes to some 15 MB.
const MAX_BYTES: u64 = 256 << 20;
/// Where the kernel says it.
pub const SYMBOLS: &str = "/proc/kallsyms";
/// Where the kernel's own notes and those of its modules are.
const SYS: &str = "/sys";

/// Addresses and names of the kernel that was sampled; none where it is another, or says none.
pub(crate) struct Kernel(Option<Arc<Symbols>>);

/// Those of a kernel that does not run here: its modules have the same.
pub(crate) type Elsewhere = OnceLock<Option<Arc<Symbols>>>;

/// By what modules have of an address: the kernel's are alike in the rest.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    text: Vec<u8>,
    /// And where in the text the name stands.
    list: Vec<(u64, Range<u32>)>,
}

impl Kernel {
    /// Of the kernel's or a module's path as the system has it, and a build-id, which may be empty where it is not known: then it is taken to
    /// be of the one that runs, unless files are another machine's.
    pub(crate) fn open(
        path: &Path,
        build_id: &[u8],
        search: &Search,
        elsewhere: &Elsewhere,
    ) -> Self {
        static RUNNING: OnceLock<Option<Arc<Symbols>>> = OnceLock::new();
        if runs(path, build_id, !search.is_elsewhere()) {
            let read = || Symbols::read(File::open(SYMBOLS).ok()?);
            return Self(RUNNING.get_or_init(read).clone());
        }
        let read = || {
            let told = search.text(Path::new(SYMBOLS)).and_then(Symbols::read);
            told.or_else(|| Symbols::read(search.kept_kernel(build_id)?))
        };
        Self(elsewhere.get_or_init(read).clone())
    }

    /// The function at an address.
    pub(crate) fn function(&self, address: u64) -> Option<Named> {
        let (start, name) = self.0.as_ref()?.at(address)?;
        let name = String::from_utf8_lossy(name).into_owned();
        Some(Named { name, start: Some(start), defined: None })
    }
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

/// Whether the kernel that runs here is of this build, or has a module of it, by its path; where no build-id is known, `otherwise`.
pub fn runs(path: &Path, build_id: &[u8], otherwise: bool) -> bool {
    if build_id.is_empty() {
        return otherwise;
    }
    let notes = fs::read(notes(Path::new(SYS), path)).unwrap_or_default();
    notes.windows(build_id.len()).any(|part| part == build_id)
}

/// Where the notes are of the kernel, or a module of it: `[name]`, or its file, in which `-` may stand for `_`.
fn notes(sys: &Path, path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let of_file = name.split_once(".ko").map(|(name, _)| name.replace('-', "_"));
    let in_brackets = || name.strip_prefix('[')?.strip_suffix(']').map(str::to_owned);
    let module = of_file.or_else(in_brackets).map(|name| sys.join("module").join(name));
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
            if let Some((address, name)) = function(line) {
                let place = |at: usize| (begin + at) as u32;
                list.push((address & WITHIN, place(name.start)..place(name.end)));
            }
            begin += line.len();
        }
        list.sort_by_key(|&(address, _)| address);
        list.dedup_by_key(|&mut (address, _)| address);
        Self { text, list }
    }

    fn at(&self, address: u64) -> Option<(u64, &[u8])> {
        let address = address & WITHIN;
        let behind = self.list.partition_point(|&(start, _)| start <= address);
        let (start, name) = self.list[..behind].last()?;
        Some((*start, &self.text[name.start as usize..name.end as usize]))
    }
}

/// Address and where the name is of a line of address, type, name and, in brackets, the kernel's module, if it is of a function. Where
/// addresses are hidden they are all 0.
fn function(line: &[u8]) -> Option<(u64, Range<usize>)> {
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
    is_function.then_some((address, word()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_functions_by_address() {
        let text = b"ffffffff81000020 T b\nffffffff81000000 t a\nffffffff81000030 D data\n\
            ffffffffc0000000 t m\t[mod]\n0000000000000000 T hidden\nzz T bad\nffffffff81000020 T twice\n";
        let symbols = Symbols::parse(text.to_vec());
        let name = |address| symbols.at(address).map(|(_, name)| name);
        assert_eq!(name(0xffff_ffff_8100_001f), Some(&b"a"[..]));
        assert_eq!(name(0xffff_ffff_8100_0031), Some(&b"b"[..]));
        assert_eq!(name(0xffff_ffff_c000_0005), Some(&b"m"[..]));
        assert_eq!(name(0x1000), None);
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
