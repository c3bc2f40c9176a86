//! What the wrapper adds to a compiler's command line, decided from what was asked
//! ([`Request`]), by whom ([`Known`]) and with which wishes ([`Options`]). Looks at nothing
//! else, and runs nothing.

use super::arguments::{Product, Request, Stage};
use super::options::{Hooks, Options};
use super::probe::{Family, Known};
use anyhow::{Result, bail, ensure};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Files that additions refer to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Files<'a> {
    /// Folder with `teeperf.h`.
    pub(crate) include: &'a Path,
    /// The object for every hooked module.
    pub(crate) stub: &'a Path,
    /// The archive for every hooked module: ways out of functions that no hook sees.
    pub(crate) wrappers: &'a Path,
    /// The object for programs.
    pub(crate) runtime: &'a Path,
    /// Folder that keeps clang's hooks out of the C++ library, where it is wanted.
    pub(crate) clang_headers: Option<&'a Path>,
    /// Linker options for every hooked module.
    pub(crate) link_flags: &'a [&'a str],
    /// Linker options for programs.
    pub(crate) program_flags: &'a [&'a str],
    /// Linker options for shared libraries.
    pub(crate) library_flags: &'a [&'a str],
    /// Linker options for every hooked module that is linked with the C++ library.
    pub(crate) cxx_flags: &'a [&'a str],
    /// Linker options for modules that may have late hooks and are linked dynamically.
    pub(crate) late_flags: &'a [&'a str],
}

/// clang's options for hooks.
pub(crate) const CLANG_HOOKS: [&str; 2] =
    ["-finstrument-functions-after-inlining", "-fno-optimize-sibling-calls"];

/// clang gives the place of the enter hook to what `-pg` calls, unless that stands in front of the function.
const BESIDE_PG: &str = "-mfentry";

/// With hooks, gcc before version 15 ends in an internal error where a coroutine hands on to another one. It has to
/// make a jump of that, and cannot: a hook stands behind it. Without this wish of its own it makes a call.
const NO_SIBLING_CALLS: &str = "-fno-optimize-sibling-calls";
const SOUND_COROUTINES: u32 = 15;

/// The C++ library, whether an object asks for it or not.
const NEEDED_CXX_LIBRARY: [&str; 3] =
    ["-Wl,--push-state,--no-as-needed", "-lstdc++", "-Wl,--pop-state"];

/// Whether functions of this call's sources are to be hooked.
pub(crate) fn wants_hooks(request: &Request, options: &Options) -> bool {
    request.stage != Stage::NoCode
        && !request.sources.is_empty()
        && !request.hooks_decided
        && !options.no_hooks
}

/// Whether this call links something that may hold hooks.
pub(crate) fn wants_linking(request: &Request) -> bool {
    request.stage == Stage::Link && request.product != Product::Relocatable
}

/// Whether hooks are put in late. Where the user does not say, they are so wherever an assembly comes
/// to be in which they can be.
pub(crate) fn is_late(request: &Request, options: &Options, known: &Known) -> Result<bool> {
    if !options.may_be_late() {
        return Ok(false);
    }
    let obstacle = match known.family {
        Family::Clang if request.late_code => Some("clang's -flto, which makes no assembly"),
        _ => request.not_late.as_deref(),
    };
    match obstacle {
        Some(obstacle) if options.hooks == Some(Hooks::Late) => bail!(
            "--teeperf-hooks=late cannot be together with {obstacle}: take --teeperf-hooks=source"
        ),
        Some(_) => Ok(false),
        None => Ok(true),
    }
}

/// Words that hook the functions of this call's sources. They go in front, so that what the
/// user says later wins.
pub(crate) fn hooks(
    request: &Request,
    options: &Options,
    known: &Known,
    files: &Files<'_>,
    is_late: bool,
) -> Result<Vec<OsString>> {
    let mut words: Vec<OsString> = Vec::new();
    match known.family {
        _ if is_late => {}
        Family::Gcc => {
            words.push("-finstrument-functions".into());
            if request.coroutines && known.version < SOUND_COROUTINES {
                words.push(NO_SIBLING_CALLS.into());
            }
            ensure!(
                !options.after_inlining,
                "gcc hooks functions of the source before it inlines them: for --teeperf-after-inlining leave out \
                 --teeperf-hooks=source, or take clang"
            );
            let system = known.header_folders.iter().filter(|_| !options.system_headers);
            words.extend(list("-finstrument-functions-exclude-file-list=", system.map(OsStr::new)));
        }
        Family::Clang => {
            // The second keeps a call of itself in tail position a call; with a hook behind
            // it, every other one is one anyway.
            words.extend(CLANG_HOOKS.map(OsString::from));
            if request.pg {
                words.push(BESIDE_PG.into());
            }
            if let Some(folder) = files.clang_headers {
                words.extend(["-isystem".into(), folder.into()]);
            }
        }
    }
    words.extend(["-idirafter".into(), files.include.into()]);
    Ok(words)
}

/// Words that link hooks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Link {
    /// In front of what the user typed.
    pub(crate) before: Vec<OsString>,
    /// Behind it: an archive gives what the objects in front of it lack.
    pub(crate) after: Vec<OsString>,
}

/// Words that link the stub into every module, and the runtime into programs.
pub(crate) fn linking(
    request: &Request,
    options: &Options,
    family: Family,
    files: &Files<'_>,
) -> Link {
    let mut before = vec![OsString::from(files.stub)];
    match request.product {
        Product::Relocatable => return Link::default(),
        Product::SharedLibrary => {
            // A wrapper that is asked for needs the C library, and so would a library that needs nothing of it.
            let asks = request.static_code && !request.bare;
            let is_meant = |flag: &&&str| asks || !flag.starts_with("-Wl,-u,");
            let flags = files.library_flags.iter().filter(is_meant);
            before.extend(flags.map(OsString::from));
        }
        Product::Program | Product::StaticProgram => {
            // Without the C library the stub keeps hooks quiet; the runtime is not there.
            if !request.bare {
                before.push(files.runtime.into());
                before.extend(files.program_flags.iter().map(OsString::from));
            }
        }
    }
    let mut after = Vec::new();
    if !request.bare || request.product == Product::SharedLibrary {
        before.extend(files.link_flags.iter().map(OsString::from));
        let is_static = request.product == Product::StaticProgram;
        // gcc has the linker take the shared library only where an object asks for it.
        let asks = family == Family::Clang || request.static_code || is_static;
        // Where gcc has hooked the source, an exception leaves no frame without its exit hook.
        let is_late = options.may_be_late();
        if request.cxx_library && (family == Family::Clang || is_late) {
            before.extend(asking(files.cxx_flags, asks));
        }
        if is_late && !request.bare && !is_static {
            before.extend(files.late_flags.iter().map(OsString::from));
        }
        // gcc's linker leaves out a library that only the wrapper asks for, weakly.
        if request.cxx_library && family == Family::Gcc && is_late && !asks {
            after.extend(NEEDED_CXX_LIBRARY.map(OsString::from));
        }
        // Through -Xlinker, because an -x of the user's would make it a source.
        after.extend(["-Xlinker".into(), files.wrappers.into()]);
    }
    Link { before, after }
}

/// The flags, without those that ask for a symbol where that is not so.
fn asking(flags: &[&str], asks: bool) -> impl Iterator<Item = OsString> {
    let is_meant = move |flag: &&&str| asks || !flag.starts_with("-Wl,-u,");
    flags.iter().filter(is_meant).map(OsString::from)
}

/// One option with a list: gcc separates with commas, and takes `\,` for a comma.
fn list<'a>(option: &str, items: impl Iterator<Item = &'a OsStr>) -> Option<OsString> {
    let mut word = option.as_bytes().to_vec();
    for item in items {
        if word.len() > option.len() {
            word.push(b',');
        }
        for &byte in item.as_bytes() {
            if byte == b',' {
                word.push(b'\\');
            }
            word.push(byte);
        }
    }
    (word.len() > option.len()).then(|| OsString::from_vec(word))
}
