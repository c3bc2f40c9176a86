//! Features: what a file knows of the machine and the run. In a file they stand behind the data, in a pipe they are records.

use std::collections::HashMap;

use super::bytes::{Bytes, until_zero};

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
/// What a file calls the kernel, where a map of it may have the name of a symbol behind that.
const KERNEL: &[u8] = b"[kernel.kallsyms]";
const GUEST_KERNEL: &[u8] = b"[guest.kernel.kallsyms]";

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
        self.build_ids.insert(until_zero(bytes.rest).to_vec(), id[..length].to_vec());
        Some(())
    }

    /// The build-id of what is mapped under this path; empty where it is not known.
    pub(super) fn build_id_of(&self, path: &[u8]) -> &[u8] {
        let kernel = [KERNEL, GUEST_KERNEL].into_iter().find(|name| path.starts_with(name));
        self.build_ids.get(kernel.unwrap_or(path)).map_or(&[], Vec::as_slice)
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
