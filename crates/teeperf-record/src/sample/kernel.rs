//! Where the kernel's own code is: `/proc/kallsyms`, `/proc/modules`, `/sys/kernel/notes`.

use super::record::Map;
use std::fs::File;
use std::io::{BufRead, BufReader};
use teeperf_wire::body::{map, sample::mode};

/// Code of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Code {
    path: String,
    address: u64,
    length: u64,
    build_id: Vec<u8>,
}

impl Code {
    /// As a map of a process that all have.
    pub(super) fn map(&self) -> Map<'_> {
        Map {
            pid: map::KERNEL,
            tid: 0,
            address: self.address,
            length: self.length,
            // As perf has it: a file of the kernel has its addresses.
            offset: self.address,
            protection: libc::PROT_EXEC as u32,
            flags: 0,
            mode: mode::KERNEL,
            path: self.path.as_bytes(),
            build_id: &self.build_id,
            ..Map::default()
        }
    }
}

/// The kernel and its modules; none where the system does not tell (`kernel.kptr_restrict`).
pub(super) fn code() -> Vec<Code> {
    let Ok(symbols) = File::open("/proc/kallsyms") else { return Vec::new() };
    let Some((address, length)) = text(BufReader::with_capacity(1 << 20, symbols)) else {
        return Vec::new();
    };
    let build_id = note(&std::fs::read("/sys/kernel/notes").unwrap_or_default());
    let kernel = Code { path: "[kernel.kallsyms]_text".into(), address, length, build_id };
    let all = std::fs::read_to_string("/proc/modules").unwrap_or_default();
    let modules = all.lines().filter_map(module).map(|(name, address, length)| {
        let notes = format!("/sys/module/{name}/notes/.note.gnu.build-id");
        let build_id = note(&std::fs::read(notes).unwrap_or_default());
        Code { path: format!("[{name}]"), address, length, build_id }
    });
    std::iter::once(kernel).chain(modules).collect()
}

/// First address and length of the kernel's code. The list is by address there, and read no further than needed.
fn text(symbols: impl BufRead) -> Option<(u64, u64)> {
    let mut begin = None;
    for line in symbols.lines().map_while(Result::ok) {
        let mut words = line.split_ascii_whitespace();
        let (address, name) = (words.next()?, words.nth(1)?);
        match name {
            "_text" | "_stext" if begin.is_none() => begin = hexadecimal(address),
            "_etext" => {
                let (begin, end) = (begin?, hexadecimal(address)?);
                return Some((begin, end.checked_sub(begin)?)).filter(|_| begin > 0);
            }
            _ => {}
        }
    }
    None
}

/// Name, address and length of a line of `/proc/modules`: proc_modules(5).
fn module(line: &str) -> Option<(&str, u64, u64)> {
    let mut words = line.split_ascii_whitespace();
    let (name, length) = (words.next()?, words.next()?.parse().ok()?);
    let address = hexadecimal(words.nth(3)?.strip_prefix("0x")?)?;
    (address > 0).then_some((name, address, length))
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// The build-id (`NT_GNU_BUILD_ID`) among ELF's notes; empty where there is none.
fn note(mut notes: &[u8]) -> Vec<u8> {
    const GNU_BUILD_ID: u32 = 3;
    let word =
        |at: usize, notes: &[u8]| notes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    while let (Some(name), Some(value), Some(kind)) =
        (word(0, notes), word(4, notes), word(8, notes))
    {
        let begin = 12 + (name as usize).next_multiple_of(4);
        let end = begin.saturating_add(value as usize);
        let Some(bytes) = notes.get(begin..end) else { break };
        if kind == GNU_BUILD_ID && notes[12..].starts_with(b"GNU\0") {
            return bytes.to_vec();
        }
        notes = notes.get(end.next_multiple_of(4)..).unwrap_or_default();
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_code_is_found_in_its_symbols() {
        let symbols = "ffffffff81000000 T _stext\nffffffff81000000 T _text\nffffffff81000100 t other\n\
                       ffffffff82000000 T _etext\nnonsense\n";
        assert_eq!(text(symbols.as_bytes()), Some((0xffff_ffff_8100_0000, 0x100_0000)));
        let hidden = "0000000000000000 T _text\n0000000000000000 T _etext\n";
        assert_eq!(text(hidden.as_bytes()), None);
        assert_eq!(text(&b"ffffffff81000000 T _text\n"[..]), None);
    }

    #[test]
    fn modules_have_a_place() {
        let line = "virtio_net 65536 0 - Live 0xffffffffc0200000";
        assert_eq!(module(line), Some(("virtio_net", 0xffff_ffff_c020_0000, 65536)));
        assert_eq!(module("virtio_net 65536 0 - Live 0x0000000000000000"), None);
        assert_eq!(module("virtio_net"), None);
    }

    #[test]
    fn a_build_id_is_found_behind_other_notes() {
        let one = |name: &[u8], kind: u8, value: &[u8]| {
            let lengths = [name.len() as u8, 0, 0, 0, value.len() as u8, 0, 0, 0, kind, 0, 0, 0];
            [&lengths[..], name, value].concat()
        };
        let notes = [one(b"Xen\0", 3, &[1; 8]), one(b"GNU\0", 3, &[7; 20])].concat();
        assert_eq!(note(&notes), [7; 20]);
        for length in 0..notes.len() {
            assert!(note(&notes[..length]).is_empty());
        }
    }
}
