//! Features: what a file knows of the machine and the run. In a file they stand behind the data, in a pipe they are records.

use std::collections::HashMap;

use teeperf_wire::body::sample::mode;

use super::bytes::{Bytes, until_zero};
use super::record;

/// Numbers of features, `HEADER_…` in Linux's `tools/perf/util/header.h`.
pub(super) mod number {
    pub(in super::super) const BUILD_ID: u32 = 2;
    pub(in super::super) const HOSTNAME: u32 = 3;
    pub(in super::super) const OSRELEASE: u32 = 4;
    pub(in super::super) const VERSION: u32 = 5;
    pub(in super::super) const ARCH: u32 = 6;
    pub(in super::super) const NRCPUS: u32 = 7;
    pub(in super::super) const CPUDESC: u32 = 8;
    pub(in super::super) const CMDLINE: u32 = 11;
    pub(in super::super) const EVENT_DESC: u32 = 12;
    pub(in super::super) const CLOCK_DATA: u32 = 29;

    /// What it tells, of those that are read.
    pub(in super::super) fn name(number: u32) -> Option<&'static str> {
        Some(match number {
            BUILD_ID => "build-ids",
            HOSTNAME => "host",
            OSRELEASE => "system",
            VERSION => "perf's version",
            ARCH => "architecture",
            NRCPUS => "number of processors",
            CPUDESC => "processor",
            CMDLINE => "command",
            EVENT_DESC => "names of events",
            CLOCK_DATA => "time of day",
            _ => return None,
        })
    }
}

/// Bit of `misc`: the build-id's length is known.
const MISC_BUILD_ID_SIZE: u16 = 1 << 15;
/// Longest build-id, which those of unknown length have.
const BUILD_ID: usize = 20;
/// The kernel's names begin so; a map may have the name of a symbol behind that. The other one is
/// that of a guest's kernel.
const KERNEL: &[u8] = b"[kernel.";
const GUEST_KERNEL: &[u8] = b"[guest.kernel.";

/// The part of the kernel that a path stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum KernelFile {
    Kernel,
    Guest,
    /// A module, by its name: `[name]`, or its file, in which `-` may stand for `_`.
    Module(Vec<u8>),
}

impl KernelFile {
    /// By the path alone; nothing of any other file, such as the kernel's own.
    fn of(path: &[u8]) -> Option<Self> {
        if path.starts_with(KERNEL) {
            return Some(Self::Kernel);
        }
        if path.starts_with(GUEST_KERNEL) {
            return Some(Self::Guest);
        }
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        let in_brackets = || path.strip_prefix(b"[")?.strip_suffix(b"]");
        let of_file = name.windows(3).position(|part| part == b".ko").map(|at| &name[..at]);
        let name = of_file.or_else(in_brackets)?;
        Some(Self::Module(
            name.iter().map(|&byte| if byte == b'-' { b'_' } else { byte }).collect(),
        ))
    }
}

/// Whether a path is that of a file of the kernel itself, by its name.
fn is_vmlinux(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    name.starts_with(b"vmlinu") || path == b"/proc/kcore"
}

/// See the module.
#[derive(Default)]
pub(super) struct Features {
    pub(super) host: String,
    pub(super) release: String,
    pub(super) version: String,
    pub(super) arch: String,
    pub(super) processors: u32,
    pub(super) processor: String,
    pub(super) command: Vec<String>,
    /// Names of the events, in the order of the attributes.
    pub(super) events: Vec<String>,
    /// Nanoseconds since 1970, and on the samples' clock at that moment.
    pub(super) clock: Option<(u64, u64)>,
    build_ids: HashMap<Vec<u8>, Vec<u8>>,
    /// Of the kernel, whatever it is called there, and of modules of it by their names.
    kernel: Option<Vec<u8>>,
    modules: HashMap<Vec<u8>, Vec<u8>>,
}

impl Features {
    /// Takes one; false where it cannot be read to its end.
    pub(super) fn take(&mut self, number: u32, bytes: Bytes<'_>) -> bool {
        self.read(number, bytes).is_some()
    }

    fn read(&mut self, number: u32, mut bytes: Bytes<'_>) -> Option<()> {
        match number {
            number::HOSTNAME => self.host = bytes.text()?,
            number::OSRELEASE => self.release = bytes.text()?,
            number::VERSION => self.version = bytes.text()?,
            number::ARCH => self.arch = bytes.text()?,
            number::CPUDESC => self.processor = bytes.text()?,
            number::NRCPUS => {
                bytes.u32()?;
                self.processors = bytes.u32()?;
            }
            number::CMDLINE => {
                self.command.clear();
                for _ in 0..bytes.u32()? {
                    self.command.push(bytes.text()?);
                }
            }
            number::EVENT_DESC => {
                self.events.clear();
                let (events, attr) = (bytes.u32()?, bytes.u32()?);
                for _ in 0..events {
                    bytes.row(attr.into(), 1)?;
                    let ids = bytes.u32()?;
                    self.events.push(bytes.text()?);
                    bytes.row(ids.into(), 8)?;
                }
            }
            number::CLOCK_DATA => {
                let (_, _) = (bytes.u32()?, bytes.u32()?);
                self.clock = Some((bytes.u64()?, bytes.u64()?));
            }
            number::BUILD_ID => {
                while !bytes.rest.is_empty() {
                    let (_, misc, size) = (bytes.u32()?, bytes.u16()?, bytes.u16()?);
                    let rest = bytes.take(usize::from(size).checked_sub(8)?)?;
                    self.build_id(misc, Bytes { rest, ..bytes })?;
                }
            }
            _ => {}
        }
        Some(())
    }

    /// Takes a file's build-id, as a record and a feature have it behind their heads.
    pub(super) fn build_id(&mut self, misc: u16, mut bytes: Bytes<'_>) -> Option<()> {
        bytes.u32()?;
        // Twenty bytes, how many of them count, and three to fill.
        let id: [u8; BUILD_ID + 4] = bytes.array()?;
        let length = match misc & MISC_BUILD_ID_SIZE {
            0 => BUILD_ID,
            _ => usize::from(id[BUILD_ID]).min(BUILD_ID),
        };
        let (path, id) = (until_zero(bytes.rest), id[..length].to_vec());
        let is_kernels = misc & record::MISC_MODE == u16::from(mode::KERNEL);
        match KernelFile::of(path) {
            Some(KernelFile::Module(name)) if is_kernels => {
                self.modules.insert(name, id.clone());
            }
            // By its own name it is the kernel whatever the record says of it, and by the path of a file if that is the kernel's.
            Some(KernelFile::Kernel) => self.kernel = Some(id.clone()),
            None if is_kernels && self.kernel.is_none() => self.kernel = Some(id.clone()),
            _ => {}
        }
        self.build_ids.insert(path.to_vec(), id);
        Some(())
    }

    /// The build-id of what is mapped under this path, by the kernel or by a process; empty where it is not known.
    pub(super) fn build_id_of(&self, path: &[u8], is_kernels: bool) -> &[u8] {
        let known = self.build_ids.get(path);
        let kernels = || match KernelFile::of(path) {
            Some(KernelFile::Module(name)) if is_kernels => self.modules.get(&name),
            Some(KernelFile::Module(_)) => None,
            Some(KernelFile::Guest) => {
                let guest =
                    |entry: &(&Vec<u8>, _)| KernelFile::of(entry.0) == Some(KernelFile::Guest);
                self.build_ids.iter().find(guest).map(|(_, id)| id)
            }
            Some(KernelFile::Kernel) => self.kernel.as_ref(),
            None if is_kernels && is_vmlinux(path) => self.kernel.as_ref(),
            None => None,
        };
        known.or_else(kernels).map_or(&[], Vec::as_slice)
    }

    /// `e_machine` of the machine's code, 0 where it is not known.
    pub(super) fn machine(&self) -> u16 {
        // ELF, gABI chapter 4.
        match self.arch.as_str() {
            "x86_64" => 62,
            "i386" | "i486" | "i586" | "i686" => 3,
            "aarch64" | "aarch64_be" | "arm64" => 183,
            "riscv64" | "riscv32" | "riscv" => 243,
            "ppc64" | "ppc64le" => 21,
            "ppc" => 20,
            "s390x" | "s390" => 22,
            "mips" | "mips64" => 8,
            "loongarch64" => 258,
            arch if arch.starts_with("arm") => 40,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bytes::Order;
    use super::*;

    fn record(id: u8, path: &str) -> Vec<u8> {
        [&[0; 4][..], &[id; 20], &[20, 0, 0, 0], path.as_bytes(), &[0]].concat()
    }

    #[test]
    fn the_kernels_build_id_is_found_under_any_name() {
        let own = u16::from(mode::KERNEL);
        for (misc, name) in [
            (own, "[kernel.kallsyms]"),
            (own, "[kernel.kallsyms]_text"),
            (0, "[kernel.kallsyms]"),
            (own, "/usr/lib/debug/boot/vmlinux-5.10"),
            (own, "/boot/vmlinuz"),
            (own, "/proc/kcore"),
        ] {
            let mut features = Features::default();
            let take = |features: &mut Features, misc, id, path: &str| {
                let rest = &record(id, path)[..];
                features.build_id(misc, Bytes { rest, order: Order::Little }).unwrap();
            };
            take(&mut features, misc, 7, name);
            take(&mut features, own, 8, "/lib/modules/5.10/kernel/fs/ext4/ext4.ko.xz");
            take(&mut features, u16::from(mode::GUEST_KERNEL), 9, "[guest.kernel.kallsyms]");
            take(&mut features, u16::from(mode::USER), 10, "/usr/bin/vmlinux");
            let of = |path: &str| features.build_id_of(path.as_bytes(), true).first().copied();
            for path in
                ["[kernel.kallsyms]_text", "[kernel.kallsyms]_stext", "[kernel.vmlinux]_text"]
            {
                assert_eq!(of(path), Some(7), "{name}: {path}");
            }
            assert_eq!(of("/usr/lib/debug/boot/vmlinux-5.10"), Some(7), "{name}");
            assert_eq!((of("[ext4]"), of("[xfs]"), of("[vdso]")), (Some(8), None, None), "{name}");
            assert_eq!(of("[guest.kernel.kallsyms]_text"), Some(9), "{name}");
            assert_eq!(features.build_id_of(b"/tmp/vmlinux", false), b"", "{name}");
        }
    }
}
