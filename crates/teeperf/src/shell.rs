//! Words for shells.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

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
}
