//! A call of rustc: what it makes, and the words that have hooks put into it.

use anyhow::{Context, Result};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Options of rustc that have their value in the next word; the others that cargo writes have it in the same.
const WITH_VALUE: [&str; 16] = [
    "--crate-name",
    "--crate-type",
    "--emit",
    "--out-dir",
    "--target",
    "--extern",
    "--cfg",
    "--check-cfg",
    "--edition",
    "--error-format",
    "--json",
    "--cap-lints",
    "--color",
    "--sysroot",
    "-L",
    "-o",
];
/// Words of the output that is not wanted where only names are.
const OF_OUTPUT: [&str; 4] = ["--emit", "--json", "--error-format", "-o"];

/// One option: its name, as `--emit` or `-C opt-level`, and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Word {
    name: String,
    value: Option<OsString>,
    /// As it was written, in one word or two.
    written: Vec<OsString>,
}

/// What the compiler is asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Request {
    words: Vec<Word>,
}

impl Request {
    pub(super) fn read(words: &[OsString]) -> Result<Self> {
        let mut read = Vec::new();
        let mut rest = expanded(words)?.into_iter();
        while let Some(word) = rest.next() {
            let text = word.to_string_lossy().into_owned();
            let mut written = vec![word.clone()];
            let is_short = text == "-C" || text == "-Z" || text == "--codegen";
            let (name, value) = if is_short || WITH_VALUE.contains(&&*text) {
                let value = rest.next();
                written.extend(value.clone());
                (text, value)
            } else if let Some(setting) = text.strip_prefix("-C") {
                ("-C".to_owned(), Some(OsString::from(setting)))
            } else if text.starts_with("--") && text.contains('=') {
                let at = text.find('=').unwrap_or(text.len());
                (
                    text[..at].to_owned(),
                    Some(OsString::from_vec(word.as_bytes()[at + 1..].to_vec())),
                )
            } else {
                (text, None)
            };
            let is_codegen = name == "-C" || name == "--codegen";
            let (name, value) = match value {
                Some(value) if is_codegen => {
                    let bytes = value.as_bytes();
                    let at = bytes.iter().position(|&byte| byte == b'=').unwrap_or(bytes.len());
                    let setting = String::from_utf8_lossy(&bytes[..at]).replace('_', "-");
                    let value = bytes.get(at + 1..).map(|rest| OsStr::from_bytes(rest).to_owned());
                    (format!("-C {setting}"), value)
                }
                value => (name, value),
            };
            read.push(Word { name, value, written });
        }
        Ok(Self { words: read })
    }

    fn values<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a OsStr> {
        let named = self.words.iter().filter(move |word| word.name == name);
        named.filter_map(|word| word.value.as_deref())
    }

    fn value<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.values(name).next_back()?.to_str()
    }

    fn has(&self, name: &str) -> bool {
        self.words.iter().any(|word| word.name == name)
    }

    /// The crate, as the compiler calls it.
    pub(super) fn crate_name(&self) -> &str {
        self.value("--crate-name").unwrap_or_default()
    }

    fn crate_types(&self) -> impl Iterator<Item = &str> {
        self.values("--crate-type").filter_map(OsStr::to_str).flat_map(|types| types.split(','))
    }

    /// Whether it makes code that a program is made of: no build script, nothing that runs in the compiler, no other processor's.
    pub(super) fn makes_code(&self) -> bool {
        let links = self.values("--emit").filter_map(OsStr::to_str);
        let mut links = links.flat_map(|kinds| kinds.split(',')).map(|kind| kind.split('=').next());
        let is_of_compiler =
            self.crate_types().any(|kind| kind == "proc-macro") && !self.has("--test");
        let is_script = self.crate_name().starts_with("build_script_");
        let is_here = self
            .value("--target")
            .is_none_or(|target| target.starts_with("x86_64-") && target.contains("-linux"));
        links.any(|kind| kind == Some("link"))
            && !is_of_compiler
            && !is_script
            && is_here
            && !self.has("--print")
    }

    /// Whether it links a program or a library that is loaded.
    pub(super) fn links(&self) -> bool {
        let mut kinds = self.crate_types().peekable();
        self.has("--test")
            || kinds.peek().is_none()
            || kinds.any(|kind| matches!(kind, "bin" | "cdylib" | "dylib"))
    }

    /// The linker that was asked for.
    pub(super) fn linker(&self) -> Option<&OsStr> {
        self.values("-C linker").next_back()
    }

    /// Where output goes.
    pub(super) fn folder(&self) -> PathBuf {
        self.values("--out-dir").next_back().map_or_else(std::env::temp_dir, PathBuf::from)
    }

    /// All words but those of the output.
    pub(super) fn without_output(&self) -> impl Iterator<Item = &OsString> {
        self.words
            .iter()
            .filter(|word| !OF_OUTPUT.contains(&&*word.name))
            .flat_map(|word| &word.written)
    }

    fn level(&self) -> &str {
        match self.value("-C opt-level") {
            Some(level) => level,
            None if self.has("-O") => "3",
            None => "0",
        }
    }

    /// Words for both calls, so that both make the same functions: with types in their names, in one piece.
    pub(super) fn common(&self, work: &Path, name: &str) -> Vec<OsString> {
        let mut words = vec!["-Csymbol-mangling-version=v0".into(), "-Ccodegen-units=1".into()];
        if matches!(self.level(), "2" | "3") {
            // Before LLVM sees them the compiler inlines small functions by itself, but not where it is to build again
            // in part.
            let mut word = OsString::from("-Cincremental=");
            word.push(work.join(name));
            words.push(word);
        }
        words
    }

    /// Words that have hooks put into the functions that a file names.
    pub(super) fn hooks(&self, after_inlining: bool, file: &str) -> Vec<String> {
        let mut words = vec![format!("-Cllvm-args=-forceattrs-csv-path={file}")];
        if self.level() == "0" {
            // Otherwise LLVM does so by itself, before anything else.
            let passes = if after_inlining { "forceattrs" } else { "forceattrs,ee-instrument" };
            words.extend([
                "-Cno-prepopulate-passes".into(),
                format!("-Cpasses={passes},default<O0>"),
            ]);
        }
        if !self.has("-C debuginfo") && !self.has("-g") {
            words.push("-Cdebuginfo=line-tables-only".into());
        }
        // Functions are known by symbols, and their lines by debug information.
        words.push("-Cstrip=none".into());
        words
    }
}

/// Words with those of files that are named by `@`, a line each, as cargo writes them where there are too many.
fn expanded(words: &[OsString]) -> Result<Vec<OsString>> {
    let mut all = Vec::new();
    for word in words {
        match word.as_bytes().strip_prefix(b"@") {
            Some(path) => {
                let path = Path::new(OsStr::from_bytes(path));
                let text = std::fs::read(path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
                all.extend(lines.map(|line| OsStr::from_bytes(line).to_owned()));
            }
            None => all.push(word.clone()),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Request {
        let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
        Request::read(&words).unwrap()
    }

    #[test]
    fn as_cargo_calls_it() {
        let program = request(
            "--crate-name rg --edition=2024 src/main.rs --error-format=json --json=artifacts,future-incompat \
             --crate-type bin --emit=dep-info,link -C opt-level=3 -C strip=debuginfo --out-dir /t/deps -Clinker=clang \
             --extern regex=/t/r.rlib -L dependency=/t/deps",
        );
        assert!(program.makes_code() && program.links());
        assert_eq!(program.crate_name(), "rg");
        assert_eq!(program.linker(), Some(OsStr::new("clang")));
        assert_eq!(program.folder(), Path::new("/t/deps"));
        let rest: Vec<_> = program.without_output().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(
            rest.join(" "),
            "--crate-name rg --edition=2024 src/main.rs --crate-type bin -C opt-level=3 -C strip=debuginfo --out-dir \
             /t/deps -Clinker=clang --extern regex=/t/r.rlib -L dependency=/t/deps"
        );
        assert_eq!(program.common(Path::new("/w"), "x").len(), 3);
        assert_eq!(program.hooks(false, "f").len(), 3);

        let library =
            request("--crate-name a a.rs --crate-type lib --emit=metadata,link -C debuginfo=2");
        assert!(library.makes_code() && !library.links());
        assert_eq!(library.common(Path::new("/w"), "x").len(), 2);
        let words = library.hooks(false, "f");
        assert_eq!(words[2..], ["-Cpasses=forceattrs,ee-instrument,default<O0>", "-Cstrip=none"]);
    }

    #[test]
    fn what_no_program_is_made_of() {
        for words in [
            "--crate-name a a.rs --crate-type lib --emit=dep-info,metadata",
            "--crate-name a a.rs --crate-type proc-macro --emit=dep-info,link",
            "--crate-name build_script_build build.rs --crate-type bin --emit=dep-info,link",
            "--crate-name a a.rs --crate-type bin --emit=link --target aarch64-unknown-linux-gnu",
            "- --crate-name ___ --print=file-names --crate-type bin --emit=link",
            "-vV",
        ] {
            assert!(!request(words).makes_code(), "{words}");
        }
        assert!(
            request("--crate-name a a.rs --crate-type proc-macro --test --emit=link").makes_code()
        );
    }
}
