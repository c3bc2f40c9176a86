//! Words for shells.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// As a shell and make take it for one word. Without quotes where it needs none: the words that
/// `$(…)` puts into a line keep theirs. A `*` stays as it is, as no file fits an option.
pub(crate) fn quoted(word: &OsStr) -> OsString {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_=+,./:@%*".contains(byte);
    if !word.is_empty() && word.as_bytes().iter().all(plain) {
        return word.to_owned();
    }
    let mut text = vec![b'\''];
    for &byte in word.as_bytes() {
        match byte {
            b'\'' => text.extend(b"'\\''"),
            _ => text.push(byte),
        }
    }
    text.push(b'\'');
    OsString::from_vec(text)
}

/// A file's name as the user may type it behind a command, in an interactive shell.
pub(crate) fn typed(path: &Path) -> String {
    // Else it would be an option, or standard input.
    let prefix = if path.as_os_str().as_bytes().starts_with(b"-") { "./" } else { "" };
    let mut name = OsString::from(prefix);
    name.push(path);
    match name.to_str() {
        Some(text) if !text.contains(char::is_control) => quoted(&name).display().to_string(),
        _ => escaped(&name),
    }
}

/// `$'…'`, for what cannot be shown as it is.
fn escaped(word: &OsStr) -> String {
    let bytes = word.as_bytes().iter().map(|&byte| match byte {
        b'\'' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).into(),
        _ => format!("\\{byte:03o}"),
    });
    format!("$'{}'", bytes.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_gets_the_word_back() {
        for word in ["", "plain", "-Wl,--name=x_*", "two words", "it's", "$HOME `ls` \"\\"] {
            let line = quoted(word.as_ref());
            let mut shell = std::process::Command::new("sh");
            let shell = shell.args(["-fc".as_ref(), OsStr::new("eval printf %s \"$0\""), &line]);
            assert_eq!(shell.output().unwrap().stdout, word.as_bytes(), "{line:?}");
        }
        assert_eq!(quoted("-Wl,--name=x_*".as_ref()), "-Wl,--name=x_*");
    }

    #[test]
    fn a_typed_name_is_that_file() {
        let names = ["plain", "-x", "-", "two words", "it's\nü\\", "\x1b[1m"].map(str::as_bytes);
        for name in [&names[..], &[b"\xff1 '\\'.teeperf"]].concat() {
            let path = Path::new(OsStr::from_bytes(name));
            let line = typed(path);
            assert!(!line.contains(char::is_control) && !line.starts_with('-'), "{line}");
            let mut shell = std::process::Command::new("bash");
            let output = shell.args(["-c", &format!("printf %s {line}")]).output().unwrap();
            assert_eq!(output.stdout.strip_prefix(b"./").unwrap_or(&output.stdout), name, "{line}");
        }
        assert_eq!(typed(Path::new("a.teeperf")), "a.teeperf");
        assert_eq!(typed(Path::new("-x.teeperf")), "./-x.teeperf");
        assert_eq!(typed(Path::new(OsStr::from_bytes(b"\xff.teeperf"))), "$'\\377.teeperf'");
    }
}
