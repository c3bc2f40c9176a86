//! What a file says of its functions: how large they are, which names are the same one's, and where they were
//! written, if there is line information (`-g1`).

use super::instruction::symbol;
use super::text::{Line, operands, unquoted};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Functions by name.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    /// Instructions of each that has code here.
    pub(super) sizes: HashMap<&'a str, u64>,
    /// Path of the file in which each was written.
    pub(super) files: HashMap<&'a str, String>,
    aliases: HashMap<&'a str, &'a str>,
}

impl<'a> Names<'a> {
    /// `counts` says which lines are instructions that count.
    pub(super) fn new(text: &'a [u8], lines: &[Line<'a>], counts: impl Fn(usize) -> bool) -> Self {
        let mut names = Self::default();
        let functions = functions(lines);
        let mut files: HashMap<&str, String> = HashMap::new();
        // The function, and whether it is not known yet where it was written.
        let mut current: Option<(&str, bool)> = None;
        for (at, line) in lines.iter().enumerate() {
            match *line {
                Line::Label(name) if functions.contains(name) => {
                    let whole = name.split(".cold").next().unwrap_or(name);
                    current = Some((whole, whole.len() == name.len()));
                    names.sizes.entry(whole).or_insert(0);
                }
                Line::Instruction(..) | Line::Foreign(_) if counts(at) => {
                    if let Some((name, _)) = current {
                        *names.sizes.entry(name).or_insert(0) += 1;
                    }
                }
                Line::Directive(".file", rest) => {
                    if let Some((number, path)) = file(rest) {
                        files.insert(number, path);
                    }
                }
                Line::Directive(".loc", rest) => {
                    if let Some((name, is_new @ true)) = &mut current {
                        *is_new = false;
                        if let Some(path) =
                            rest.split_whitespace().next().and_then(|number| files.get(number))
                        {
                            names.files.insert(name, path.clone());
                        }
                    }
                }
                Line::Directive(".set", rest) => {
                    let mut words = operands(rest);
                    if let (Some(alias), Some(name)) = (words.next(), words.next().and_then(symbol))
                    {
                        names.aliases.insert(unquoted(alias), name);
                    }
                }
                _ => {}
            }
        }
        names.read_entries(text);
        names
    }

    /// The name that has the code.
    pub(super) fn resolve<'n>(&self, name: &'n str) -> &'n str
    where
        'a: 'n,
    {
        self.aliases.get(name).copied().unwrap_or(name)
    }

    /// gcc hooks functions that have no code here: such as are inlined, and compiled elsewhere. Where they were written
    /// stands in their entries alone, which it explains with `-dA`.
    fn read_entries(&mut self, text: &'a [u8]) {
        let (mut name, mut path) = (None, None);
        for line in text.split(|&byte| byte == b'\n') {
            let Ok(line) = std::str::from_utf8(line) else { continue };
            let Some((code, comment)) = line.rsplit_once("# ").filter(|_| line.starts_with('\t'))
            else {
                continue;
            };
            if comment.starts_with("(DIE (") || comment.starts_with("end of children") {
                self.learn(&mut name, &mut path);
                // Of what is none, name and path are not looked at.
                let is_function = comment.ends_with("DW_TAG_subprogram)");
                path = is_function.then(String::new);
            } else if let Some(file) = comment.strip_prefix("DW_AT_decl_file (") {
                let file = file.strip_suffix(')').unwrap_or(file);
                let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
                let bare = file.split_once(", ").filter(|(number, _)| is_number(number));
                if let Some(path) = &mut path {
                    *path = bare.map_or(file, |(_, path)| path).to_owned();
                }
            } else if let Some(linked) = comment.strip_prefix("DW_AT_linkage_name: ") {
                name = Some(unquoted(linked));
            } else if name.is_none() {
                let quoted = code
                    .trim()
                    .strip_prefix(".ascii \"")
                    .and_then(|text| text.strip_suffix("\\0\""));
                let named = comment.strip_prefix("DW_AT_name: ").map(unquoted);
                name = named.or(quoted.filter(|_| comment == "DW_AT_name"));
            }
        }
        self.learn(&mut name, &mut path);
    }

    fn learn(&mut self, name: &mut Option<&'a str>, path: &mut Option<String>) {
        let (name, path) = (name.take(), path.take());
        if let (Some(name), Some(path)) = (name, path.filter(|path| !path.is_empty())) {
            self.files.entry(name).or_insert(path);
        }
    }
}

/// Names that the file says are functions'.
pub(super) fn functions<'a>(lines: &[Line<'a>]) -> HashSet<&'a str> {
    let of = |line: &Line<'a>| match line {
        Line::Directive(".type", rest) => {
            let mut words = operands(rest);
            let name = words.next();
            name.filter(|_| words.next() == Some("@function")).map(unquoted)
        }
        _ => None,
    };
    lines.iter().filter_map(of).collect()
}

/// `number "folder" "name"`, or without the folder.
fn file(rest: &str) -> Option<(&str, String)> {
    let (number, rest) = rest.split_once([' ', '\t'])?;
    number.parse::<u32>().ok()?;
    let mut strings = strings(rest);
    let first = strings.next()?;
    Some((
        number,
        match strings.next() {
            Some(name) if name.starts_with('/') => name.into_owned(),
            Some(name) => format!("{first}/{name}"),
            None => first.into_owned(),
        },
    ))
}

/// Strings in quotes, with their escapes resolved.
fn strings(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find('"')? + 1;
        let mut is_escaped = false;
        let length = rest[start..].bytes().position(|byte| {
            let ends = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            ends
        })?;
        let string = &rest[start..start + length];
        rest = &rest[start + length + 1..];
        Some(if string.contains('\\') {
            Cow::Owned(unescaped(string))
        } else {
            Cow::Borrowed(string)
        })
    })
}

/// With octal numbers, and characters that stand for themselves.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let digits = rest.iter().take(3).take_while(|digit| (b'0'..=b'7').contains(digit)).count();
        if digits > 0 {
            bytes.push(
                rest[..digits]
                    .iter()
                    .fold(0_u8, |number, digit| number.wrapping_mul(8).wrapping_add(digit - b'0')),
            );
            rest = &rest[digits..];
        } else if let Some((&byte, after)) = rest.split_first() {
            bytes.push(byte);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::text::lines;
    use super::*;

    type Sizes = Vec<(String, u64)>;
    type Files = Vec<(String, String)>;

    fn names(text: &str) -> (Sizes, Files) {
        let names = Names::new(text.as_bytes(), &lines(text.as_bytes()), |_| true);
        let mut sizes: Vec<_> =
            names.sizes.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
        let mut files: Vec<_> =
            names.files.iter().map(|(name, path)| ((*name).to_owned(), path.clone())).collect();
        sizes.sort();
        files.sort();
        (sizes, files)
    }

    #[test]
    fn sizes_and_files_of_functions_with_code() {
        let text = "\t.file\t\"a.c\"\n\t.file 0 \"/x\" \"a.c\"\n\t.type\tf, @function\nf:\n\t.loc 0 1 2\n\tnop\n\t.file 1 \"b.h\"\n\
            \t.loc 1 7 1\n\tret\n\t.type\tg, @function\ng:\n\tret\n\t.type\tf.cold, @function\nf.cold:\n\tnop\n";
        let (sizes, files) = names(text);
        assert_eq!(sizes, [("f".into(), 3), ("g".into(), 1)]);
        assert_eq!(files, [("f".into(), "/x/a.c".into())]);
        assert_eq!(file("3 \"a \\\"b\\\" \\303\\274.c\""), Some(("3", "a \"b\" ü.c".into())));
        assert_eq!(file("\"a.c\""), None);
    }

    #[test]
    fn files_of_functions_without_code() {
        let text = "\t.uleb128 0x5\t# (DIE (0x77) DW_TAG_subprogram)\n\t\t\t# DW_AT_external\n\t.ascii \"c99\\0\"\t# DW_AT_name\n\
            \t.byte\t0x1\t# DW_AT_decl_file (i.h)\n\t.uleb128 0x1\t# (DIE (0x33) DW_TAG_subprogram)\n\t.ascii \"f\\0\"\t# DW_AT_name\n\
            \t\t\t# DW_AT_decl_file (1, a, b.h)\n\t.long\t.LASF3\t# DW_AT_linkage_name: \"_ZN1XIlE1fEl\"\n\
            \t.uleb128 0x1\t# (DIE (0x44) DW_TAG_variable)\n\t.ascii \"v\\0\"\t# DW_AT_name\n\t.byte\t0x1\t# DW_AT_decl_file (i.h)\n";
        let (_, files) = names(text);
        assert_eq!(files, [("_ZN1XIlE1fEl".into(), "a, b.h".into()), ("c99".into(), "i.h".into())]);
    }
}
