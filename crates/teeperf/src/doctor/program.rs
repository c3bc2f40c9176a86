//! A program: whether it has hooks, and whether a recorder can be found by it.

use super::elf::{self, Elf};
use super::{Finding, Verdict};
use crate::commands;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use teeperf_record::has_capabilities;
use teeperf_symbols::{Functions, Origin, Search, TailCaller};
use teeperf_wire::hook;

const HOOKS: &str = "hooks";
const BUILD: &str =
    "build it with CC=\"teeperf cc\" CXX=\"teeperf c++\" (`teeperf help cc`), all of its own code";

/// What the library is called by which clients of OP-TEE reach trusted applications.
const OPTEE_CLIENT: &str = "libteec.so";

/// A program, by its path or its name in `PATH`.
pub(crate) fn examine(name: &OsStr) -> Vec<Finding> {
    let Some(path) = commands::program(name).filter(|path| path.exists()) else {
        let text = format!("there is no program {}", name.to_string_lossy());
        return vec![Finding::missing("program", text, "name its file, or one in PATH")];
    };
    if let Some(interpreter) = script(&path) {
        let text = format!(
            "{} is a script for {interpreter}: the programs that it starts are recorded, as far as they have hooks",
            path.display()
        );
        return vec![Finding::note("program", text)];
    }
    match elf::read(&path) {
        Ok(elf) => judge(&path, &elf),
        Err(why) => {
            let next = "name a program, or a library, of this machine";
            vec![Finding::missing("program", format!("it is no program: {why}"), next)]
        }
    }
}

/// What a script is for.
fn script(path: &Path) -> Option<String> {
    let mut start = Vec::new();
    std::fs::File::open(path).ok()?.take(256).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).trim().to_owned())
}

fn judge(path: &Path, elf: &Elf) -> Vec<Finding> {
    if !elf.is_ours {
        let text = format!("it is of another processor ({})", elf.machine);
        let next =
            "record it there; trusted applications and images without a system: docs/porting.md";
        return vec![Finding::missing("program", text, next)];
    }
    let libraries = libraries(path, elf);
    let mut findings = vec![hooks(elf, &libraries)];
    let hooked: Vec<_> =
        libraries.iter().filter_map(|(path, elf)| Some((path, elf.hooks?))).collect();
    if !libraries.is_empty() {
        let names = hooked.iter().map(|(path, version)| match *version {
            hook::VERSION => file_name(path),
            other => format!(
                "{} (of interface {other}, which is not {}: silent)",
                file_name(path),
                hook::VERSION
            ),
        });
        let names = names.collect::<Vec<_>>().join(", ");
        let text = match hooked.len() {
            0 => format!(
                "of the libraries that it is linked with ({}) none has hooks",
                libraries.len()
            ),
            count => format!("{count} of its {} libraries have hooks: {names}", libraries.len()),
        };
        findings.push(Finding::note(HOOKS, text));
    }
    findings.extend(attaching(path, elf));
    findings.extend(patterns(path));
    let files = std::iter::once(path).chain(hooked.iter().map(|(path, _)| path.as_path()));
    let callers =
        files.filter_map(|file| teeperf_symbols::tail_callers(file, &Search::default()).ok());
    findings.extend(depths(&callers.flatten().collect::<Vec<_>>()));
    findings.extend(names(path, elf));
    findings
}

fn hooks(elf: &Elf, libraries: &[(PathBuf, Elf)]) -> Finding {
    let are_in_libraries = libraries.iter().any(|(_, elf)| elf.hooks == Some(hook::VERSION));
    let is_client = libraries.iter().any(|(path, _)| file_name(path).starts_with(OPTEE_CLIENT));
    match elf.hooks {
        Some(hook::VERSION) => Finding::ready(
            HOOKS,
            format!("it has hooks, of interface {}, which this teeperf speaks", hook::VERSION),
        ),
        Some(other) => Finding::missing(
            HOOKS,
            format!(
                "its hooks are of interface {other}, and this teeperf speaks {}: they stay silent",
                hook::VERSION
            ),
            "build it again with this teeperf, or record it with the one that it was built with",
        ),
        None if elf.calls_others_hooks => Finding::missing(
            HOOKS,
            "it calls hooks (-finstrument-functions) and was linked without teeperf's",
            "link it with `teeperf cc` or `teeperf c++` too",
        ),
        None if elf.has_late_hooks => Finding::missing(
            HOOKS,
            "it was linked without teeperf's runtime: its hooks are off",
            "link it with `teeperf cc` or `teeperf c++` too",
        ),
        None if are_in_libraries => {
            Finding::note(HOOKS, "it has no hooks itself; libraries of it have some")
        }
        None if is_client => Finding::note(
            HOOKS,
            "it has no hooks itself; it is a client of trusted applications, and `teeperf record --optee` records these, if \
             they have some",
        ),
        None => Finding::missing(HOOKS, "it has no hooks", BUILD),
    }
}

/// Whether a recorder that starts it gets into it.
fn attaching(path: &Path, elf: &Elf) -> Vec<Finding> {
    const AREA: &str = "recording";
    let mut findings = Vec::new();
    let is_dynamic = elf.interpreter.is_some();
    findings.push(match (is_dynamic, elf.has_runtime || (!is_dynamic && elf.hooks.is_some())) {
        (true, true) => Finding::ready(AREA, "it is linked dynamically, and has the runtime"),
        (true, false) => {
            Finding::ready(AREA, "it is linked dynamically, and the recorder preloads the runtime")
        }
        (false, true) => Finding::ready(AREA, "it is static, or a library, and has what it needs"),
        (false, false) => Finding::note(
            AREA,
            "it is static, or a library: nothing can be preloaded into it by itself",
        ),
    });
    let Ok(about) = path.metadata() else { return findings };
    // SAFETY: asks for a number and cannot fail.
    let own = unsafe { libc::geteuid() };
    if about.mode() & 0o6000 != 0 || has_capabilities(path) {
        findings.push(Finding::warning(
            AREA,
            "it gets other rights when it starts (set-user-id, set-group-id or capabilities): nothing is preloaded into it, \
             its hooks look for no recorder where its starter could name one, and the recorder takes no process of another user",
            "record a copy without these: `cp`, as the user that records",
        ));
    }
    if about.mode() & 0o111 == 0 && elf.interpreter.is_some() {
        findings.push(Finding::missing(
            AREA,
            "it may not be executed",
            format!("chmod +x {}", path.display()),
        ));
    } else if about.mode() & 0o4000 != 0 && about.uid() != own {
        findings.push(Finding::missing(
            AREA,
            format!("it runs as user {}, and you are {own}", about.uid()),
            "record as that user, or record a copy that is your own",
        ));
    }
    findings
}

/// Patterns of its build that fit nothing.
fn patterns(path: &Path) -> Option<Finding> {
    let unmet = commands::unmet_patterns(path);
    (!unmet.is_empty()).then(|| {
        let text =
            format!("patterns that it was built with fit no function of it: {}", unmet.join(", "));
        Finding::warning(
            HOOKS,
            text,
            "`teeperf selection` with all its libraries tells whether they fit there",
        )
    })
}

/// Functions that need stack with hooks for calls that are jumps without.
fn depths(callers: &[TailCaller]) -> Vec<Finding> {
    /// Most functions named.
    const NAMED: usize = 8;
    const NEXT: &str = "where it overflows its stack, compile their files with --teeperf-no-hooks, or see \"Programs that rely on \
        tail calls\" in docs/building.md for functions alone";
    let list = |is_through_pointers: bool| {
        let callers =
            callers.iter().filter(|caller| caller.through_pointers == is_through_pointers);
        let names: Vec<_> = callers.map(|caller| teeperf_symbols::demangle(&caller.name)).collect();
        let shown = names.iter().take(NAMED).map(|name| &**name).collect::<Vec<_>>().join(", ");
        let more = names.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        (!names.is_empty()).then(|| format!("{shown}{more}"))
    };
    let direct = list(false).map(|names| {
        let text = format!(
            "functions that call themselves or each other last need stack for each such call, which hooks keep from being \
             a jump: {names}"
        );
        Finding::warning(HOOKS, text, NEXT)
    });
    let through_pointers = list(true).map(|names| {
        let text = format!(
            "functions that call last through a pointer, as handlers of interpreters do, may need stack for each such call: \
             {names}"
        );
        Finding { verdict: Verdict::Note, ..Finding::warning(HOOKS, text, NEXT) }
    });
    direct.into_iter().chain(through_pointers).collect()
}

/// Whether its functions have names, and lines.
fn names(path: &Path, elf: &Elf) -> Vec<Finding> {
    const AREA: &str = "names";
    let mut findings = Vec::new();
    match Functions::open(path, &Search::default()) {
        Ok(functions) => {
            let count = functions.iter().filter(|symbol| !symbol.name.ends_with("@plt")).count();
            findings.push(match functions.origin() {
                Origin::Own => Finding::ready(AREA, format!("{count} functions have names")),
                Origin::DebugFile(file) => {
                    Finding::ready(AREA, format!("{count} functions have names, in {}", file.display()))
                }
                Origin::Dynamic | Origin::Nothing => Finding::warning(
                    AREA,
                    "it is stripped, and no debug file of it was found: most functions will be addresses",
                    debug_file(elf.build_id.as_deref()),
                ),
            });
        }
        Err(error) => findings.push(Finding::warning(AREA, error.to_string(), BUILD)),
    }
    if elf.build_id.is_none() {
        let text =
            "it has no build-id: whether a file is the one that was recorded cannot be told later";
        findings.push(Finding::note(AREA, text));
    }
    if !elf.has_lines && findings.iter().all(|finding| finding.verdict == Verdict::Ready) {
        let text = "it has no line information of its own: `teeperf annotate` needs that, by -g";
        findings.push(Finding::note(AREA, text));
    }
    findings
}

/// Where names of a stripped file would be found.
pub(super) fn debug_file(build_id: Option<&[u8]>) -> String {
    let place = build_id.and_then(|id| id.split_first()).map(|(first, rest)| {
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        format!(", or put its debug file at /usr/lib/debug/.build-id/{first:02x}/{rest}.debug")
    });
    format!("do not strip it (-s, strip){}", place.unwrap_or_default())
}

/// The libraries that a program is linked with, as its dynamic linker finds them. No code of the program runs for it, and
/// no linker but the system's.
fn libraries(path: &Path, elf: &Elf) -> Vec<(PathBuf, Elf)> {
    let Some(linker) = elf.interpreter.as_ref().filter(|linker| is_the_systems(linker)) else {
        return Vec::new();
    };
    let Ok(path) = std::path::absolute(path) else { return Vec::new() };
    let Ok(listed) = Command::new(linker).arg("--list").arg(path).output() else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    listed_files(&text).filter_map(|file| Some((file.clone(), elf::read(&file).ok()?))).collect()
}

fn is_the_systems(linker: &Path) -> bool {
    let is_named = linker.file_name().is_some_and(|name| name.as_bytes().starts_with(b"ld-"));
    let real = linker.canonicalize().unwrap_or_default();
    is_named
        && ["/lib", "/lib64", "/usr/lib", "/usr/lib64"]
            .iter()
            .any(|folder| real.starts_with(folder))
}

/// Files in the list of a dynamic linker: `libm.so.6 => /lib/…/libm.so.6 (0x…)`.
fn listed_files(list: &str) -> impl Iterator<Item = PathBuf> {
    let files = list.lines().filter_map(|line| line.split_once(" => "));
    let files = files.filter_map(|(_, rest)| Some(rest.rsplit_once(" (0x")?.0.trim()));
    // A folder in LD_LIBRARY_PATH may be named from here.
    files.filter(|file| file.contains('/')).map(PathBuf::from)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(elf: &Elf, libraries: &[(PathBuf, Elf)]) -> (Verdict, String) {
        let finding = hooks(elf, libraries);
        (finding.verdict, finding.text)
    }

    #[test]
    fn hooks_of_each_kind() {
        let hooked = |version| Elf { hooks: Some(version), is_ours: true, ..Elf::default() };
        assert_eq!(verdict(&hooked(hook::VERSION), &[]).0, Verdict::Ready);
        let (is, text) = verdict(&hooked(1), &[]);
        assert!(is == Verdict::Missing && text.contains("interface 1"), "{text}");
        let others = Elf { calls_others_hooks: true, ..Elf::default() };
        assert!(verdict(&others, &[]).1.contains("linked without"));
        let libraries = [("/lib/x.so".into(), hooked(hook::VERSION))];
        assert_eq!(verdict(&Elf::default(), &libraries).0, Verdict::Note);
        assert_eq!(verdict(&Elf::default(), &[("/x".into(), hooked(1))]).0, Verdict::Missing);
    }

    #[test]
    fn files_of_a_linkers_list() {
        let list = "\tlinux-vdso.so.1 (0x00007ffc)\n\tlibm.so.6 => /lib/a b/libm.so.6 (0x00007f)\n\tx.so => not found\n\
                    \ty.so => ./y.so (0x2)\n\t/lib64/ld-linux-x86-64.so.2 (0x1)\n";
        assert_eq!(
            listed_files(list).collect::<Vec<_>>(),
            ["/lib/a b/libm.so.6", "./y.so"].map(PathBuf::from)
        );
        assert!(!is_the_systems(Path::new("/tmp/ld-evil")));
        assert!(debug_file(Some(&[0xab, 0xcd, 0xef])).ends_with(".build-id/ab/cdef.debug"));
        assert!(!debug_file(None).contains("build-id"));
    }
}
