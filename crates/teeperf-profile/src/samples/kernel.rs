//! The kernel's functions, as the running one tells them: `/proc/kallsyms`. They are those of samples where the kernel that was
//! sampled is the one that runs, which its build-id says.

use std::fs;
use std::sync::{Arc, OnceLock};

use super::module::Named;
use super::modules::WITHIN;

/// Most bytes read of what the kernel says: it comes to some 15 MB.
const MAX_BYTES: u64 = 256 << 20;

/// Addresses and names of the kernel that was sampled; none where it is another, or says none.
pub(crate) struct Kernel(Option<Arc<Symbols>>);

/// By what modules have of an address: the kernel's are alike in the rest.
#[derive(Debug, Default)]
struct Symbols {
    list: Vec<(u64, Box<str>)>,
}

impl Kernel {
    /// Of a build-id, which may be empty where it is not known: then it is taken to be the one that runs.
    pub(crate) fn open(build_id: &[u8]) -> Self {
        static RUNNING: OnceLock<Option<Arc<Symbols>>> = OnceLock::new();
        let own = fs::read("/sys/kernel/notes").ok();
        let is_own = build_id.is_empty()
            || own.is_some_and(|notes| notes.windows(build_id.len()).any(|part| part == build_id));
        if !is_own {
            return Self(None);
        }
        let running = RUNNING.get_or_init(|| {
            use std::io::Read;
            let mut text = Vec::new();
            let file = fs::File::open("/proc/kallsyms").ok()?;
            file.take(MAX_BYTES).read_to_end(&mut text).ok()?;
            Some(Arc::new(Symbols::parse(&text))).filter(|symbols| !symbols.list.is_empty())
        });
        Self(running.clone())
    }

    /// The function at an address.
    pub(crate) fn function(&self, address: u64) -> Option<Named> {
        let (start, name) = self.0.as_ref()?.at(address)?;
        Some(Named { name: name.to_owned(), start: Some(start), defined: None })
    }
}

impl Symbols {
    /// Lines of address, type, name and, in brackets, the kernel's module. Where addresses are hidden they are all 0.
    fn parse(text: &[u8]) -> Self {
        let mut list = Vec::new();
        for line in text.split(|&byte| byte == b'\n') {
            let mut words =
                line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
            let (Some(address), Some(kind), Some(name)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let address =
                std::str::from_utf8(address).ok().and_then(|a| u64::from_str_radix(a, 16).ok());
            let Some(address) = address.filter(|&address| address != 0) else { continue };
            let address = address & WITHIN;
            if matches!(kind, b"t" | b"T" | b"w" | b"W") {
                list.push((address, String::from_utf8_lossy(name).into()));
            }
        }
        list.sort_by_key(|&(address, _)| address);
        list.dedup_by_key(|&mut (address, _)| address);
        Self { list }
    }

    fn at(&self, address: u64) -> Option<(u64, &str)> {
        let address = address & WITHIN;
        let behind = self.list.partition_point(|&(start, _)| start <= address);
        self.list[..behind].last().map(|(start, name)| (*start, &**name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_functions_by_address() {
        let text = b"ffffffff81000020 T b\nffffffff81000000 t a\nffffffff81000030 D data\n\
            ffffffffc0000000 t m\t[mod]\n0000000000000000 T hidden\nzz T bad\nffffffff81000020 T twice\n";
        let symbols = Symbols::parse(text);
        let name = |address| symbols.at(address).map(|(_, name)| name.to_owned());
        assert_eq!(name(0xffff_ffff_8100_001f).as_deref(), Some("a"));
        assert_eq!(name(0xffff_ffff_8100_0031).as_deref(), Some("b"));
        assert_eq!(name(0xffff_ffff_c000_0005).as_deref(), Some("m"));
        assert_eq!(name(0x1000), None);
    }
}
