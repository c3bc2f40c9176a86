//! A command as a line that a shell reads as the same words (POSIX.1-2017, Shell Command Language, 2.2).

use crate::names::printable;

/// Signs that mean nothing to a shell, beside letters and digits.
const PLAIN: &str = "_@%+=:,./-";

/// The words on a line, in quotes where it takes them. Printable.
pub(crate) fn line(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    printable(&words.join(" "))
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || PLAIN.contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_shell_reads_the_same_words() {
        let words =
            ["printf", "%s|", "", "a b", "it's", "$HOME", "*", "--save", "x=1", "ä", "\"\\"];
        let words = words.map(String::from);
        let told = line(&words);
        assert!(told.starts_with("printf '%s|' '' 'a b' "), "{told}");
        assert!(told.contains(" --save x=1 ä "), "{told}");
        let output = Command::new("sh").args(["-c", &told]).output().expect("a shell");
        let read = String::from_utf8(output.stdout).expect("text");
        assert_eq!(read.trim_end_matches('|').split('|').collect::<Vec<_>>(), words[2..]);
        assert_eq!(line(&["a\u{1b}[m".into()]), r"'a\x1b[m'");
    }
}
