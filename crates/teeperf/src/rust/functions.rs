//! The functions that a crate's code has, as LLVM's assembly names them, and where they are written.

use super::Plan;
use super::names;
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;
use teeperf_select::Function;

/// What LLVM's assembly defines (LLVM Language Reference: Functions; Specialized Metadata Nodes).
#[derive(Debug, Default)]
pub(super) struct Defined {
    /// Names, and the number of what tells of them.
    functions: Vec<(String, Option<u64>)>,
    /// What tells of functions: the number of the file.
    subprograms: HashMap<u64, u64>,
    /// Files by number.
    files: HashMap<u64, String>,
}

impl Defined {
    pub(super) fn read(mut text: impl BufRead) -> Result<Self> {
        let mut defined = Self::default();
        let mut line = Vec::new();
        while text.read_until(b'\n', &mut line).context("what the compiler wrote")? > 0 {
            if line.starts_with(b"define ") {
                defined.functions.extend(function(&String::from_utf8_lossy(&line)));
            } else if line.starts_with(b"!") {
                defined.node(&String::from_utf8_lossy(&line));
            }
            line.clear();
        }
        Ok(defined)
    }

    fn node(&mut self, line: &str) {
        let Some((number, node)) = line.strip_prefix('!').and_then(|line| line.split_once(" = "))
        else {
            return;
        };
        let Ok(number) = number.parse() else { return };
        if node.contains("!DISubprogram(") {
            if let Some(file) = numbered(node, "file: !") {
                self.subprograms.insert(number, file);
            }
        } else if node.contains("!DIFile(")
            && let (Some(name), Some(folder)) =
                (quoted(node, "filename: \""), quoted(node, "directory: \""))
        {
            self.files.insert(number, Path::new(folder).join(name).to_string_lossy().into_owned());
        }
    }

    /// The names of those that a plan has hooks for.
    pub(super) fn wanted(self, plan: &Plan, here: &Path) -> Vec<String> {
        let Self { functions, subprograms, files } = self;
        let is_wanted = |(name, told): &(String, Option<u64>)| {
            let is_own = match names::owner(name) {
                Some(owner) => plan.has(&owner),
                // By a name of its own, which is not the compiler's: of this crate.
                None => !names::is_compilers(name),
            };
            let files: Vec<String> = told
                .and_then(|told| files.get(subprograms.get(&told)?))
                .map(|file| here.join(file).to_string_lossy().into_owned())
                .into_iter()
                .collect();
            let readable = teeperf_symbols::demangle(name);
            let spellings = teeperf_symbols::spellings(&readable);
            let names: Vec<&str> =
                std::iter::once(&**name).chain(spellings.iter().map(AsRef::as_ref)).collect();
            let function = Function { names: &names, files: &files, size: None };
            is_own && plan.selection.wants(&function)
        };
        let mut wanted: Vec<String> =
            functions.into_iter().filter(is_wanted).map(|(name, _)| name).collect();
        wanted.sort();
        wanted.dedup();
        wanted
    }
}

/// The function that a line defines; none where another module's definition counts, and where the name could not be told.
fn function(line: &str) -> Option<(String, Option<u64>)> {
    let (before, rest) = line.split_once('@')?;
    if before.contains(" available_externally ") {
        return None;
    }
    let name = match rest.strip_prefix('"') {
        Some(rest) => rest.split_once('"')?.0,
        None => rest.split_once('(')?.0,
    };
    let is_plain = !name.is_empty() && !name.contains([',', '=', '\\', '#', ' ']);
    is_plain.then(|| (name.to_owned(), numbered(rest, "!dbg !")))
}

/// The number behind these words.
fn numbered(text: &str, words: &str) -> Option<u64> {
    let rest = &text[text.rfind(words)? + words.len()..];
    rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
}

/// The text behind these words, up to a quotation mark.
fn quoted<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    Some(text[text.find(words)? + words.len()..].split_once('"')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
declare void @_RNvCs1_1a4gone()
define internal noundef i32 @_RNvCs1_1a1f(i32 noundef %n) unnamed_addr #0 !dbg !7 {
define void @_RINvCs1_1b1gmECs1_1a(ptr align 8 %x) #0 personality ptr @rust_eh_personality !dbg !8 {
define linkonce_odr void @_RINvNtCs2_4core3ptr13drop_in_placeNtCs1_1a1XEB2_() {
define available_externally void @_RNvCs1_1a5other() {
define i32 @\"for_c\"(i32 %n) {
define i32 @main(i32 %0, ptr %1) {
!7 = distinct !DISubprogram(name: \"f\", scope: !9, file: !10, line: 1)
!8 = distinct !DISubprogram(name: \"g\", scope: !9, file: !11, line: 1)
!10 = !DIFile(filename: \"src/a.rs\", directory: \"/w\")
!11 = !DIFile(filename: \"/lib/b.rs\", directory: \"/w\")
";

    fn wanted(crates: &[&str], selection: &str) -> Vec<String> {
        let plan = Plan {
            crates: crates.iter().map(|&name| name.to_owned()).collect(),
            selection: selection.parse().unwrap(),
            after_inlining: false,
        };
        Defined::read(TEXT.as_bytes()).unwrap().wanted(&plan, Path::new("/"))
    }

    #[test]
    fn those_of_the_crates_that_are_meant() {
        assert_eq!(wanted(&["a"], ""), ["_RNvCs1_1a1f", "for_c"]);
        assert_eq!(wanted(&["a", "b"], ""), ["_RINvCs1_1b1gmECs1_1a", "_RNvCs1_1a1f", "for_c"]);
        assert_eq!(wanted(&["a", "b"], "exclude for_c\nexclude a::f"), ["_RINvCs1_1b1gmECs1_1a"]);
        assert_eq!(wanted(&["a", "b"], "only file:src/a.rs"), ["_RNvCs1_1a1f"]);
        assert_eq!(wanted(&["a", "b"], "only file:/lib/"), ["_RINvCs1_1b1gmECs1_1a"]);
    }
}
