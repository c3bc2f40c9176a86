//! What travels inside the binary, so that it needs no other file: the objects that hooked
//! programs are linked with, the library for programs without them, and `teeperf.h`. Unpacked into
//! a cache folder when first needed.

mod fingerprint;
mod others;
mod store;

use crate::compiler::Files;
use anyhow::{Result, ensure};
pub(crate) use fingerprint::fingerprint;
pub(crate) use others::for_all_users;
use std::path::{Path, PathBuf};
pub(crate) use store::write_atomically;

/// An embedded file: name, mode, contents.
pub(crate) type Embedded = (&'static str, u32, &'static [u8]);

/// Whether programs of this processor can be given hooks; `build.rs` knows for which there are any.
pub(crate) const HAS_HOOKS: bool = cfg!(hooks);

/// For clients of trusted applications, whatever the processor.
const OPTEE: Embedded = (
    "libteeperf_optee.so",
    0o755,
    include_bytes!(concat!(env!("OUT_DIR"), "/libteeperf_optee.so")),
);

/// For hosts of enclaves, where the processor has such.
#[cfg(target_arch = "x86_64")]
const SGX: Option<Embedded> = Some((
    "libteeperf_sgx.so",
    0o755,
    include_bytes!(concat!(env!("OUT_DIR"), "/libteeperf_sgx.so")),
));
/// For hosts of enclaves, where the processor has such.
#[cfg(not(target_arch = "x86_64"))]
const SGX: Option<Embedded> = None;

/// Samples programs from within, and what runtimes of enclaves may call of it.
#[cfg(inside)]
pub(crate) const INSIDE: &[Embedded] = &[
    (
        "libteeperf_inside.so",
        0o755,
        include_bytes!(concat!(env!("OUT_DIR"), "/libteeperf_inside.so")),
    ),
    (AEX_HEADER, 0o644, include_bytes!(concat!(env!("OUT_DIR"), "/teeperf_aex.h"))),
];
/// Samples programs from within.
#[cfg(not(inside))]
pub(crate) const INSIDE: &[Embedded] = &[];

/// Files that programs are linked with.
#[cfg(not(hooks))]
pub(crate) const FILES: &[Embedded] = &[];
/// Files that programs are linked with.
#[cfg(hooks)]
pub(crate) const FILES: &[Embedded] = &[
    (STUB, 0o644, include_bytes!(concat!(env!("OUT_DIR"), "/teeperf_stub.o"))),
    (WRAPPERS, 0o644, include_bytes!(concat!(env!("OUT_DIR"), "/libteeperf_wrap.a"))),
    (RUNTIME, 0o644, include_bytes!(concat!(env!("OUT_DIR"), "/teeperf_rt.o"))),
    (LIBRARY, 0o755, include_bytes!(concat!(env!("OUT_DIR"), "/libteeperf.so"))),
    (HEADER, 0o644, include_bytes!(concat!(env!("OUT_DIR"), "/teeperf.h"))),
];

/// For every hooked module.
pub(crate) const STUB: &str = "teeperf_stub.o";
/// For every hooked module, behind its own objects.
pub(crate) const WRAPPERS: &str = "libteeperf_wrap.a";
/// For programs.
pub(crate) const RUNTIME: &str = "teeperf_rt.o";
/// The same, for programs that do not have it.
pub(crate) const LIBRARY: &str = "libteeperf.so";
/// For sources.
pub(crate) const HEADER: &str = "include/teeperf.h";
/// For runtimes of enclaves.
pub(crate) const AEX_HEADER: &str = "include/teeperf_aex.h";

/// Linker options: in each line whether for `all` modules, an `executable`, a shared `library`, or what `clang` links,
/// and the option.
const LINK_FLAGS: &str = include_str!(concat!(env!("OUT_DIR"), "/link_flags.txt"));

/// The embedded files, on disk.
#[derive(Clone, Debug)]
pub(crate) struct Bundle {
    include: PathBuf,
    stub: PathBuf,
    wrappers: PathBuf,
    runtime: PathBuf,
    link_flags: Vec<&'static str>,
    program_flags: Vec<&'static str>,
    library_flags: Vec<&'static str>,
    cxx_flags: Vec<&'static str>,
    late_flags: Vec<&'static str>,
    /// The runtime as a shared library, for programs that do not have it.
    pub(crate) library: PathBuf,
}

/// The cache folder of exactly these files.
pub(crate) fn folder() -> Result<PathBuf> {
    store::folder(env!("TEEPERF_BUNDLE"))
}

/// A cache folder of this name that versions share.
pub(crate) fn lasting(name: &str) -> Result<PathBuf> {
    store::folder(name)
}

/// An error where programs cannot be given hooks.
pub(crate) fn needs_hooks() -> Result<()> {
    ensure!(
        HAS_HOOKS,
        "there are no hooks for programs of this processor ({}) yet: build and record them on x86-64; what \
         was recorded can be read here",
        std::env::consts::ARCH
    );
    Ok(())
}

/// The embedded files, unpacked.
pub(crate) fn unpacked() -> Result<Bundle> {
    needs_hooks()?;
    let folder = folder()?;
    for file in FILES.iter().chain(INSIDE) {
        unpack(&folder, file)?;
    }
    Ok(Bundle {
        include: folder.join("include"),
        stub: folder.join(STUB),
        wrappers: folder.join(WRAPPERS),
        runtime: folder.join(RUNTIME),
        link_flags: link_flags("all"),
        program_flags: link_flags("executable"),
        library_flags: link_flags("library"),
        cxx_flags: link_flags("cxx"),
        late_flags: link_flags("late"),
        library: folder.join(LIBRARY),
    })
}

/// The library that stands between clients of trusted applications and the TEE Client API, unpacked.
pub(crate) fn for_clients() -> Result<PathBuf> {
    unpack(&folder()?, &OPTEE)
}

/// The library that stands between hosts of enclaves and their untrusted runtime, unpacked; nothing where there is none for this
/// processor.
pub(crate) fn for_enclave_hosts() -> Result<Option<PathBuf>> {
    SGX.map(|library| unpack(&folder()?, &library)).transpose()
}

/// The library that samples a program from within, unpacked; nothing where there is none for this processor.
pub(crate) fn for_sampling() -> Result<Option<PathBuf>> {
    let folder = folder()?;
    let paths: Result<Vec<_>> = INSIDE.iter().map(|file| unpack(&folder, file)).collect();
    Ok(paths?.into_iter().next())
}

/// Where the file is, which is put there if it is not.
fn unpack(folder: &Path, &(name, mode, contents): &Embedded) -> Result<PathBuf> {
    let path = folder.join(name);
    // One that was cut off, or lost its content when the machine failed, is written anew.
    if !std::fs::read(&path).is_ok_and(|file| file == contents) {
        std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
        write_atomically(&path, contents, mode)?;
    }
    Ok(path)
}

impl Bundle {
    /// As the wrapper adds them to a compiler's command line.
    pub(crate) fn files(&self) -> Files<'_> {
        Files {
            include: &self.include,
            stub: &self.stub,
            wrappers: &self.wrappers,
            runtime: &self.runtime,
            clang_headers: None::<&Path>,
            link_flags: &self.link_flags,
            program_flags: &self.program_flags,
            library_flags: &self.library_flags,
            cxx_flags: &self.cxx_flags,
            late_flags: &self.late_flags,
        }
    }
}

/// Linker options of a scope, as [`LINK_FLAGS`] has them.
pub(crate) fn link_flags(scope: &str) -> Vec<&'static str> {
    let lines = LINK_FLAGS.lines().filter_map(|line| line.split_once(' '));
    lines.filter(|(of, _)| *of == scope).map(|(_, flag)| flag.trim()).collect()
}
