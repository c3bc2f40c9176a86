//! Response files (`@file`), and other text that holds arguments, read as gcc and clang
//! read them, so that the wrapper sees what the compiler will see. Only for looking: the
//! compiler is given the response file itself, unless it has options of the wrapper.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// gcc gives up after 2,000 response files; no build needs that many.
const MOST_FILES: usize = 2000;

/// The arguments with each `@file` replaced by what is in it. A file that cannot be read
/// stays as it is, as the compiler leaves it.
pub(crate) fn expanded(arguments: &[OsString]) -> Vec<OsString> {
    let mut files_left = MOST_FILES;
    let mut done = Vec::with_capacity(arguments.len());
    let mut waiting: Vec<OsString> = arguments.iter().rev().cloned().collect();
    while let Some(argument) = waiting.pop() {
        match argument.as_bytes().strip_prefix(b"@") {
            Some(name) if files_left > 0 => match std::fs::read(OsStr::from_bytes(name)) {
                Ok(text) => {
                    files_left -= 1;
                    waiting.extend(split(&text).into_iter().rev());
                }
                Err(_) => done.push(argument),
            },
            _ => done.push(argument),
        }
    }
    done
}

/// The arguments, with each `@file` replaced by what is in it that has words of the wrapper's own, which the compiler
/// would not know.
pub(crate) fn opened(arguments: Vec<OsString>, is_own: impl Fn(&OsStr) -> bool) -> Vec<OsString> {
    let open = |argument: OsString| {
        if argument.as_bytes().starts_with(b"@") {
            let words = expanded(std::slice::from_ref(&argument));
            if words.iter().any(|word| is_own(word)) {
                return words;
            }
        }
        vec![argument]
    };
    arguments.into_iter().flat_map(open).collect()
}

/// Splits text at white space; quotes of both kinds hold words together, a backslash takes
/// the next byte as it is, inside quotes too (libiberty's `buildargv`).
pub(crate) fn split(text: &[u8]) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match (quote, byte) {
            (_, b'\\') => {
                if let Some(next) = bytes.next() {
                    word.get_or_insert_default().push(next);
                }
            }
            (Some(open), _) if byte == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(byte),
            (None, b'"' | b'\'') => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            (None, _) if byte.is_ascii_whitespace() || byte == 0x0B => {
                words.extend(word.take().map(OsString::from_vec));
            }
            (None, _) => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word.map(OsString::from_vec));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        split(text.as_bytes()).into_iter().map(|w| w.into_string().unwrap()).collect()
    }

    #[test]
    fn words_are_split_as_gcc_splits_them() {
        assert_eq!(words("-c  a.c\n\t-o a.o"), ["-c", "a.c", "-o", "a.o"]);
        assert_eq!(words(r#"-DX="a b" 'c d' \ e ''"#), ["-DX=a b", "c d", " e", ""]);
        assert_eq!(words(r#""a\"b" 'c\'d'"#), ["a\"b", "c'd"]);
        assert_eq!(words("   "), Vec::<String>::new());
    }

    #[test]
    fn only_files_with_own_words_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("plain"), "-O2").unwrap();
        std::fs::write(path("inner"), "--own 'a b'").unwrap();
        std::fs::write(path("outer"), format!("-c @{}", path("inner"))).unwrap();
        let [plain, outer] =
            ["plain", "outer"].map(|name| OsString::from(format!("@{}", path(name))));
        let words = opened(vec![plain.clone(), outer, "@none".into()], |word| word == "--own");
        assert_eq!(words, [plain, "-c".into(), "--own".into(), "a b".into(), "@none".into()]);
    }

    #[test]
    fn files_are_opened_inside_files_and_a_circle_ends() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        let outer = folder.path().join("outer");
        let circle = folder.path().join("circle");
        std::fs::write(&inner, "-O2 a.c").unwrap();
        std::fs::write(&outer, format!("-c @{} -g", inner.display())).unwrap();
        std::fs::write(&circle, format!("-c @{}", circle.display())).unwrap();
        let at = |path: &std::path::Path| OsString::from(format!("@{}", path.display()));
        assert_eq!(expanded(&[at(&outer), "b".into()]), ["-c", "-O2", "a.c", "-g", "b"]);
        assert_eq!(expanded(&["@/no/such".into()]), ["@/no/such"]);
        assert_eq!(expanded(&[at(&circle)]).len(), MOST_FILES + 1);
    }
}
