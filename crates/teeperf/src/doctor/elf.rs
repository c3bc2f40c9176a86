//! What a program or library says of itself: whether it has hooks, and of which interface with the runtime. Stripped files too:
//! hooks announce themselves by an instruction that is the same in all.

use object::elf;
use object::read::elf::ProgramHeader;
use object::{Architecture, Object, ObjectSegment, ObjectSymbol, SegmentFlags};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use teeperf_wire::hook;

/// The runtime's entrance, which a program that has one shows to its libraries.
const REGISTER: &[u8] = b"teeperf_rt_register";
/// What a compiler has functions call.
const ENTER: &[u8] = b"__cyg_profile_func_enter";
/// Of late hooks, in each object that has some.
const LATE: &[u8] = b"teeperf_late_enter";
/// Longest file that is looked at.
const MOST: u64 = 4 << 30;

/// A module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Elf {
    /// Whether it is code of this machine's processor.
    pub(super) is_ours: bool,
    /// The processor, for messages.
    pub(super) machine: String,
    /// Interface of its hooks with the runtime, where it has any.
    pub(super) hooks: Option<u32>,
    /// Whether it has calls of hooks that are others'.
    pub(super) calls_others_hooks: bool,
    /// Whether it has late hooks, which are off where it was linked without teeperf.
    pub(super) has_late_hooks: bool,
    /// Whether it has the runtime.
    pub(super) has_runtime: bool,
    /// Its dynamic linker; none where it is static, or a library.
    pub(super) interpreter: Option<PathBuf>,
    /// Whether it is linked dynamically.
    pub(super) is_dynamic: bool,
    /// Whether it has line information of its own.
    pub(super) has_lines: bool,
    pub(super) build_id: Option<Vec<u8>>,
}

/// Reads a file; the error says why it is no module.
pub(super) fn read(path: &Path) -> Result<Elf, String> {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let about = fs::metadata(path).map_err(|error| named(&error))?;
    if !about.is_file() || about.len() > MOST {
        return Err(named(&"no program"));
    }
    let bytes = fs::read(path).map_err(|error| named(&error))?;
    of(&bytes).map_err(|error| named(&error))
}

/// Of a file's bytes.
fn of(bytes: &[u8]) -> Result<Elf, object::Error> {
    let file = object::File::parse(bytes)?;
    let is_x86_64 = file.architecture() == Architecture::X86_64;
    let is_ours = match std::env::consts::ARCH {
        "x86_64" => is_x86_64,
        "aarch64" => file.architecture() == Architecture::Aarch64,
        _ => false,
    };
    let is_executable = |flags| match flags {
        SegmentFlags::Elf { p_flags } => p_flags & elf::PF_X != 0,
        _ => false,
    };
    let code = file.segments().filter(|segment| is_executable(segment.flags()));
    let hooks = match is_x86_64 {
        true => code.filter_map(|segment| hook::announced(segment.data().ok()?)).next(),
        false => None,
    };
    let shown = || file.symbols().chain(file.dynamic_symbols());
    let has = |name: &[u8], is_defined: bool| {
        let is_it = |symbol: object::Symbol<'_, '_>| {
            symbol.name_bytes() == Ok(name) && symbol.is_undefined() != is_defined
        };
        shown().any(is_it)
    };
    Ok(Elf {
        is_ours,
        machine: format!("{:?}", file.architecture()),
        hooks,
        calls_others_hooks: has(ENTER, false),
        has_late_hooks: has(LATE, true),
        has_runtime: has(REGISTER, true),
        interpreter: interpreter(bytes),
        is_dynamic: file.dynamic_symbol_table().is_some(),
        has_lines: file.section_by_name(".debug_line").is_some(),
        build_id: file.build_id().ok().flatten().map(<[u8]>::to_vec),
    })
}

/// As the file names it.
fn interpreter(bytes: &[u8]) -> Option<PathBuf> {
    let header = object::read::elf::FileHeader::parse(bytes);
    let header: &elf::FileHeader64<object::Endianness> = header.ok()?;
    let endian = object::read::elf::FileHeader::endian(header).ok()?;
    let segments = object::read::elf::FileHeader::program_headers(header, endian, bytes).ok()?;
    let name =
        segments.iter().find_map(|segment| segment.interpreter(endian, bytes).ok().flatten())?;
    Some(PathBuf::from(OsStr::from_bytes(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_module_is_said() {
        assert!(of(b"#!/bin/sh\n").is_err() && read(Path::new("/")).is_err());
        // This program has no hooks, and is one.
        let own = read(&std::env::current_exe().unwrap()).unwrap();
        assert!(own.is_ours && own.is_dynamic && own.interpreter.is_some() && own.hooks.is_none());
    }

    #[test]
    fn damage_is_an_error_or_another_answer() {
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        for cut in [0, 4, 16, 63, 64, 100, 1000, 5000] {
            let _ = of(&own[..cut]);
        }
        let mut damaged = own[..4096.min(own.len())].to_vec();
        for at in 0..damaged.len().min(512) {
            damaged[at] ^= 0xff;
            let _ = of(&damaged);
            damaged[at] ^= 0xff;
        }
    }
}
