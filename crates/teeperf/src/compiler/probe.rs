//! What a compiler says of itself: whether it is gcc or clang, and in which folders it
//! looks for the system's headers. Asked once for each compiler and set of options that
//! move the folders, and kept in the cache folder.

use super::real::RealCompiler;
use crate::bundle;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, PathBuf};
use std::process::{Command, Stdio};

/// A family of compilers that understand the same options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// GNU.
    Gcc,
    /// LLVM.
    Clang,
}

/// What is known of a compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// Its family.
    pub(crate) family: Family,
    /// The first number of its version; 0 where it tells none.
    pub(crate) version: u32,
    /// Folders of the system's headers as the compiler spells them.
    pub(crate) header_folders: Vec<String>,
}

/// Looks into the cache, or asks.
pub(crate) fn ask(compiler: &RealCompiler, options: &[OsString]) -> Result<Known> {
    let kept = cache_file(compiler, options);
    let text = kept.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
    if let Some(known) = text.and_then(|text| parse_kept(&text)) {
        return Ok(known);
    }
    let known = run(compiler, options)?;
    if let Some(path) = kept {
        // Without the cache every call asks again: slower, not wrong.
        let _ = bundle::write_atomically(&path, print_kept(&known).as_bytes(), 0o600);
    }
    Ok(known)
}

/// Asks the compiler: `-E -v` on nothing.
fn run(compiler: &RealCompiler, options: &[OsString]) -> Result<Known> {
    let mut answer = String::new();
    // A gcc without C++ cannot preprocess C++; then C has to do.
    for language in ["c++", "c"] {
        let output = Command::new(&compiler.path)
            .args(&compiler.words)
            .args(options)
            .args(["-E", "-v", "-x", language, "/dev/null"])
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run the compiler {}", compiler.path.display()))?;
        answer = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            break;
        }
    }
    match parse(&answer) {
        Some(known) => Ok(known),
        None => {
            bail!("{} is neither gcc nor clang: `-E -v` does not say so", compiler.path.display())
        }
    }
}

/// Reads what `-E -v` prints.
fn parse(answer: &str) -> Option<Known> {
    let version_of = |name: &str| answer.lines().find_map(|line| Some(line.split_once(name)?.1));
    let clang = version_of("clang version ").map(|version| (Family::Clang, version));
    let (family, version) =
        clang.or_else(|| version_of("gcc version ").map(|version| (Family::Gcc, version)))?;
    let digits = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    let version = version[..digits].parse().unwrap_or(0);
    let mut header_folders: Vec<String> = Vec::new();
    let list = answer
        .lines()
        .skip_while(|line| !line.starts_with("#include <...>"))
        .skip(1)
        .take_while(|line| line.starts_with(' '));
    for line in list {
        let printed = line.trim();
        let real = std::fs::canonicalize(printed).unwrap_or_else(|_| PathBuf::from(printed));
        for spelling in [printed, &real.to_string_lossy()] {
            if names_enough(spelling) && !header_folders.iter().any(|known| known == spelling) {
                header_folders.push(spelling.to_owned());
            }
        }
    }
    Some(Known { family, version, header_folders })
}

/// gcc leaves out each file whose name *contains* such a folder: `/include` alone would leave
/// out half a program.
fn names_enough(folder: &str) -> bool {
    let path = std::path::Path::new(folder);
    path.is_absolute()
        && path.components().filter(|c| matches!(c, Component::Normal(_))).count() > 1
}

/// Where the answer is kept: under a name made of all that it depends on.
fn cache_file(compiler: &RealCompiler, options: &[OsString]) -> Option<PathBuf> {
    let file = compiler.path.metadata().ok()?;
    let mut key = Vec::new();
    for word in [compiler.path.as_os_str()]
        .into_iter()
        .chain(compiler.words.iter().map(OsString::as_os_str))
        .chain(options.iter().map(OsString::as_os_str))
    {
        key.extend_from_slice(word.as_bytes());
        key.push(0);
    }
    for number in [file.dev(), file.ino(), file.size(), file.mtime() as u64] {
        key.extend_from_slice(&number.to_le_bytes());
    }
    let name = format!("compiler-{:032x}", bundle::fingerprint(&key));
    Some(bundle::folder().ok()?.join(name))
}

fn print_kept(known: &Known) -> String {
    let family = match known.family {
        Family::Gcc => "gcc",
        Family::Clang => "clang",
    };
    format!("{family} {}\n{}\nend\n", known.version, known.header_folders.join("\n"))
}

/// What [`print_kept`] wrote; nothing when it is not whole.
fn parse_kept(text: &str) -> Option<Known> {
    let mut lines = text.strip_suffix("end\n")?.lines();
    let (family, version) = lines.next()?.split_once(' ')?;
    let family = match family {
        "gcc" => Family::Gcc,
        "clang" => Family::Clang,
        _ => return None,
    };
    let version = version.parse().ok()?;
    let header_folders = lines.filter(|line| !line.is_empty()).map(str::to_owned).collect();
    Some(Known { family, version, header_folders })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GCC: &str = "Using built-in specs.\ngcc version 12.2.0 (Debian 12.2.0-14)\n\
        #include \"...\" search starts here:\n /home/me/quoted\n\
        #include <...> search starts here:\n /usr/include/c++/99\n /include\n \
        /no/such/../include\nEnd of search list.\n";

    #[test]
    fn the_answer_is_read() {
        let known = parse(GCC).unwrap();
        assert_eq!((known.family, known.version), (Family::Gcc, 12));
        assert_eq!(known.header_folders, ["/usr/include/c++/99", "/no/such/../include"]);
        assert_eq!(parse(&GCC.replace("gcc", "Debian clang")).unwrap().family, Family::Clang);
        assert_eq!(parse("gcc version trunk\n").unwrap().version, 0);
        assert_eq!(parse("tcc version 0.9\n"), None);
    }

    #[test]
    fn a_kept_answer_comes_back_whole_or_not_at_all() {
        let known = parse(GCC).unwrap();
        let text = print_kept(&known);
        assert_eq!(parse_kept(&text), Some(known));
        for cut in 0..text.len() {
            assert_eq!(parse_kept(&text[..cut]), None);
        }
    }
}
