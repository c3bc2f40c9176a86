//! The program's own code where it stands in stacks: which module an address is of, as the kernel tells, and what sites that
//! has. Looked at once for each module.

use crate::thread::Own;
use crate::windows::{self, Window};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use teeperf_wire::compose;
use teeperf_wire::word::{self, module::MAX_PATH};

/// A module that has code in stacks.
struct Module {
    /// First address, and one behind the last.
    addresses: (usize, usize),
    path: Vec<u8>,
    bias: usize,
    window: Window,
    /// Whether the recording tells of it.
    is_told: bool,
}

static KNOWN: Mutex<(u32, Vec<Module>)> = Mutex::new((0, Vec::new()));

/// The site of code of whatever module; nothing where it is in none, or there are no more windows.
pub fn site_of(own: &Own, address: usize) -> Option<u32> {
    let mut known = KNOWN.lock().unwrap_or_else(|lock| lock.into_inner());
    let (pid, modules) = &mut *known;
    if *pid != own.pid {
        // The child of a fork tells of them itself.
        *pid = own.pid;
        modules.iter_mut().for_each(|module| module.is_told = false);
    }
    let has = |module: &Module| (module.addresses.0..module.addresses.1).contains(&address);
    let at = match modules.iter().position(has) {
        Some(at) => at,
        None => {
            modules.push(found(address)?);
            modules.len() - 1
        }
    };
    let module = modules.get_mut(at)?;
    module.is_told = module.is_told || own.words(&module.words());
    let offset = u32::try_from(address - module.addresses.0).ok()?;
    (offset < module.window.sites).then(|| module.window.first_site + offset)
}

impl Module {
    /// As recordings tell of it.
    fn words(&self) -> Vec<u32> {
        let Self { addresses: (low, high), path, bias, window, .. } = self;
        let fixed = compose::Window {
            opens: true,
            is_anchored: false,
            first_site: window.first_site,
            sites: window.sites.min((high - low) as u32),
            address: *low as u64,
            bias: *bias as u64,
        };
        let path = path.get(path.len().saturating_sub(MAX_PATH)..).unwrap_or_default();
        let mut words = compose::module(&fixed, 0, path.len()).to_vec();
        words.extend(path.chunks(3).map(word::pack_bytes));
        words
    }
}

fn found(address: usize) -> Option<Module> {
    let maps = std::fs::read("/proc/self/maps").ok()?;
    let (low, high, path) = extent(&maps, address)?;
    // What of it is looked at is there as long as it is loaded; a file is not of another length all at once.
    let file = File::open(std::str::from_utf8(&path).ok()?).ok()?;
    let bias = if is_fixed(&file)? { 0 } else { low };
    Some(Module { addresses: (low, high), path, bias, window: windows::next()?, is_told: false })
}

/// The addresses of the file that is mapped at this one, from where it begins on, and its path.
fn extent(maps: &[u8], address: usize) -> Option<(usize, usize, Vec<u8>)> {
    let mut file: Option<(usize, usize, &[u8])> = None;
    for line in maps.split(|&byte| byte == b'\n') {
        let Some(mapping) = mapping(line) else { continue };
        file = match file {
            Some((low, _, path)) if path == mapping.path && mapping.offset != 0 => {
                Some((low, mapping.high, path))
            }
            // A file's first page begins it; what has none of it is nothing that was loaded.
            _ if mapping.offset == 0 && mapping.path.first() == Some(&b'/') => {
                Some((mapping.low, mapping.high, mapping.path))
            }
            // Zeroed memory behind a module's data.
            known if mapping.path.is_empty() => known,
            _ => None,
        };
        if (mapping.low..mapping.high).contains(&address) {
            let (low, _, path) = file.filter(|file| file.2 == mapping.path)?;
            let path_of = path.to_vec();
            // Code lies in the midst of a module: what is behind belongs to it as well.
            let high = last(maps, path, low).unwrap_or(mapping.high);
            return Some((low, high, path_of));
        }
    }
    None
}

/// One behind the last address of the file that begins at `low`.
fn last(maps: &[u8], path: &[u8], low: usize) -> Option<usize> {
    let lines = maps.split(|&byte| byte == b'\n').filter_map(mapping);
    let own = lines
        .skip_while(|mapping| mapping.low < low)
        .filter(|mapping| !mapping.path.is_empty())
        .take_while(|mapping| mapping.path == path && (mapping.low == low || mapping.offset != 0));
    own.last().map(|mapping| mapping.high)
}

struct Mapping<'a> {
    low: usize,
    high: usize,
    offset: usize,
    path: &'a [u8],
}

/// A line of `/proc/PID/maps` (proc_pid_maps(5)).
fn mapping(line: &[u8]) -> Option<Mapping<'_>> {
    let text_until = |end: usize| std::str::from_utf8(line.get(..end)?).ok();
    let path_at = line.iter().position(|&byte| byte == b'/' || byte == b'[');
    let path = path_at.and_then(|at| line.get(at..)).unwrap_or_default();
    let mut words = text_until(path_at.unwrap_or(line.len()))?.split_whitespace();
    let (low, high) = words.next()?.split_once('-')?;
    let offset = words.nth(1)?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    Some(Mapping { low: number(low)?, high: number(high)?, offset: number(offset)?, path })
}

/// Whether a program lies where its file says (`ET_EXEC`; ELF gABI, chapter 4).
fn is_fixed(file: &File) -> Option<bool> {
    let mut kind = [0; 2];
    file.read_exact_at(&mut kind, 16).ok()?;
    Some(u16::from_ne_bytes(kind) == 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &[u8] = b"\
1000-2000 r--p 00000000 08:01 7                  /bin/a file
2000-4000 r-xp 00001000 08:01 7                  /bin/a file
4000-5000 rw-p 00003000 08:01 7                  /bin/a file
5000-6000 rw-p 00000000 00:00 0 
6000-7000 rw-p 00000000 00:00 0                  [heap]
8000-9000 r--p 00000000 08:01 9                  /lib/b.so
9000-a000 r-xp 00001000 08:01 9                  /lib/b.so
a000-b000 r--p 00000000 08:01 9                  /lib/b.so
b000-c000 r-xp 00001000 08:01 9                  /lib/b.so
d000-e000 r-xp 00001000 08:01 5                  /lib/c.so
nonsense
";

    #[test]
    fn a_module_is_all_that_is_loaded_of_its_file() {
        let of = |address| extent(MAPS, address);
        let a = Some((0x1000, 0x5000, b"/bin/a file".to_vec()));
        assert_eq!((of(0x2fff), of(0x1000), of(0x4000)), (a.clone(), a.clone(), a));
        // Twice, one behind the other.
        assert_eq!(of(0x9abc), Some((0x8000, 0xa000, b"/lib/b.so".to_vec())));
        assert_eq!(of(0xb000), Some((0xa000, 0xc000, b"/lib/b.so".to_vec())));
        for none in [0, 0x5000, 0x6000, 0x7000, 0xd800, 0xffff] {
            assert_eq!(of(none), None, "{none:x}");
        }
    }

    #[test]
    fn code_of_this_very_test_is_found() {
        let here = code_of_this_very_test_is_found as fn() as usize;
        let found = found(here).unwrap();
        let own = std::env::current_exe().unwrap();
        assert_eq!(found.path, own.to_str().unwrap().as_bytes());
        assert!((found.addresses.0..found.addresses.1).contains(&here));
    }
}
