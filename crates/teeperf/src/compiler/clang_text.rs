//! Changes that clang needs before it assembles its own text: options in another form, and lines
//! that some of its versions write and do not read.

use std::ffi::OsString;

/// clang hands words to its assembler that clang as an assembler takes in another form.
pub(super) fn options(options: Vec<OsString>) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut options = options.into_iter();
    while let Some(option) = options.next() {
        match option.to_str() {
            Some("-o" | "-I") => {
                words.push(option);
                words.extend(options.next());
            }
            Some("--debug-prefix-map") => {
                if let Some(map) = options.next() {
                    let mut word = OsString::from("-fdebug-prefix-map=");
                    word.push(map);
                    words.push(word);
                }
            }
            Some("--64") => words.push("-m64".into()),
            // From version 16 on clang has it said to itself, and refuses it from here.
            Some(debug) if debug.starts_with("-g") => words.push(option),
            _ => words.extend(["-Xassembler".into(), option]),
        }
    }
    words
}

/// Checksums of sources are of use if all have one. Where some have none, clang writes none into an
/// object, but warns of those that it has written into assembly.
///
/// Without checksums, versions before 17 take a file of the first one's name for that one, and
/// refuse its number: another spelling of the name tells them apart.
pub(super) fn without_some_checksums(text: &mut Vec<u8>) {
    let lines = || text.split_inclusive(|&byte| byte == b'\n');
    let sources: Vec<_> = lines().filter_map(Source::of).collect();
    let with = sources.iter().filter(|source| source.has_checksum).count();
    if with == 0 || with == sources.len() {
        return;
    }
    let first = sources.iter().find(|source| source.number == b"0").map(|source| source.name);
    let mut bare = Vec::with_capacity(text.len() + 8);
    for line in lines() {
        let Some(source) = Source::of(line) else {
            bare.extend_from_slice(line);
            continue;
        };
        let is_like_first = source.number != b"0" && first == Some(source.name);
        let mark: &[u8] = match source.name {
            _ if !is_like_first => b"",
            [b'/', ..] => b"/.",
            _ => b"./",
        };
        bare.extend_from_slice(source.before);
        bare.extend_from_slice(mark);
        bare.extend_from_slice(source.name);
        bare.extend_from_slice(b"\"\n");
    }
    *text = bare;
}

/// A line of assembly that numbers a source, as clang writes it.
struct Source<'a> {
    number: &'a [u8],
    /// All of the line up to the name.
    before: &'a [u8],
    name: &'a [u8],
    has_checksum: bool,
}

impl<'a> Source<'a> {
    fn of(line: &'a [u8]) -> Option<Self> {
        let rest = line.strip_prefix(b"\t.file\t")?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let quotes = |&at: &usize| line[at] == b'"' && line[at - 1] != b'\\';
        let mut quotes = (1..line.len()).rev().filter(quotes);
        let (end, start) = (quotes.next()?, quotes.next()? + 1);
        (digits > 0).then(|| Self {
            number: &rest[..digits],
            before: &line[..start],
            name: &line[start..end],
            has_checksum: line[end..].starts_with(b"\" md5 0x"),
        })
    }
}

/// Of the debug information that is there.
pub(super) fn dwarf_version(text: &[u8]) -> Option<u32> {
    let text = String::from_utf8_lossy(text);
    let mut lines =
        text.lines().map(str::trim).skip_while(|line| !line.starts_with(".section\t.debug_info"));
    let line = lines.find_map(|line| line.strip_prefix(".short"))?;
    line.trim()
        .split([' ', '\t', '#'])
        .next()?
        .parse()
        .ok()
        .filter(|version| (2..=5).contains(version))
}

/// Quotes names of functions with clang's `vectorcall`, which end with `@@` and the bytes of their
/// arguments. Versions before 16 write them without quotes, and then take the end for a relocation.
pub(super) fn quote_names(text: &mut Vec<u8>) {
    if !text.windows(2).any(|pair| pair == b"@@") {
        return;
    }
    let mut quoted = Vec::with_capacity(text.len() + 64);
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        // A version of a symbol has two names, and is not quoted.
        match line.trim_ascii_start().starts_with(b".symver") {
            true => quoted.extend_from_slice(line),
            false => quote_line(line, &mut quoted),
        }
    }
    *text = quoted;
}

/// Copies one line, with such names in quotes.
fn quote_line(line: &[u8], quoted: &mut Vec<u8>) {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.$@".contains(byte);
    let (mut rest, mut is_text) = (line, false);
    while let Some(&first) = rest.first() {
        let length = rest.iter().take_while(|byte| is_of_name(byte)).count().max(1);
        let (word, behind) = rest.split_at(length);
        rest = behind;
        if !is_text && first == b'#' {
            quoted.extend_from_slice(word);
            break;
        }
        if is_text && first == b'\\' {
            // The byte behind it stands for itself, a quote too.
            quoted.push(first);
            if let Some((&escaped, behind)) = rest.split_first() {
                quoted.push(escaped);
                rest = behind;
            }
            continue;
        }
        is_text ^= first == b'"';
        let name = if is_text { 0 } else { vectorcall_length(word) };
        if name > 0 {
            quoted.push(b'"');
            quoted.extend_from_slice(&word[..name]);
            quoted.push(b'"');
        }
        quoted.extend_from_slice(&word[name..]);
    }
    quoted.extend_from_slice(rest);
}

/// How many bytes of a word are a name, `@@` and a number. A relocation may follow (`@PLT`).
fn vectorcall_length(word: &[u8]) -> usize {
    let Some(at) = word.windows(2).position(|pair| pair == b"@@") else { return 0 };
    let digits = word[at + 2..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let end = at + 2 + digits;
    let is_whole = matches!(word.get(end), None | Some(b'@'));
    if at > 0 && digits > 0 && is_whole { end } else { 0 }
}

/// Ends Intel's syntax with each block of inline assembly that leaves it on. clang reads each block
/// for itself, and as text all that follows would be in that syntax.
pub(super) fn end_intel_syntax(text: &mut Vec<u8>) {
    const INTEL: &[u8] = b".intel_syntax";
    if !text.windows(INTEL.len()).any(|word| word == INTEL) {
        return;
    }
    let mut ended = Vec::with_capacity(text.len() + 64);
    let (mut is_block, mut is_intel) = (false, false);
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        ended.extend_from_slice(line);
        match line.trim_ascii() {
            b"#APP" => (is_block, is_intel) = (true, false),
            b"#NO_APP" => {
                if is_block && is_intel {
                    ended.extend_from_slice(b"\t.att_syntax prefix\n");
                }
                is_block = false;
            }
            statements => {
                for statement in statements.split(|&byte| byte == b';') {
                    let statement = statement.trim_ascii_start();
                    is_intel |= statement.starts_with(INTEL);
                    is_intel &= !statement.starts_with(b".att_syntax");
                }
            }
        }
    }
    *text = ended;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intel_syntax_ends_with_its_block() {
        let of = |text: &str| {
            let mut text = text.as_bytes().to_vec();
            end_intel_syntax(&mut text);
            String::from_utf8(text).unwrap()
        };
        let block = |lines: &str| format!("\t#APP\n{lines}\n\t#NO_APP\n");
        let on = block("\t.intel_syntax noprefix\n\tmov eax, 5");
        assert_eq!(of(&format!("{on}\tretq\n")), format!("{on}\t.att_syntax prefix\n\tretq\n"));
        assert_eq!(
            of(&(on.clone() + &block("nop"))),
            on + "\t.att_syntax prefix\n" + &block("nop")
        );
        for as_it_is in [
            block(".intel_syntax noprefix; nop; .att_syntax"),
            "\t.intel_syntax noprefix\n\tnop\n".into(),
        ] {
            assert_eq!(of(&as_it_is), as_it_is);
        }
    }

    #[test]
    fn names_of_vectorcall_are_quoted() {
        let of = |line: &str| {
            let mut text = line.as_bytes().to_vec();
            quote_names(&mut text);
            String::from_utf8(text).unwrap()
        };
        assert_eq!(of("f@@16:                 # @f\n"), "\"f@@16\":                 # @f\n");
        assert_eq!(
            of("\t.size\tf@@16, .Lfunc_end0-f@@16\n\tcallq\tg@@8"),
            "\t.size\t\"f@@16\", .Lfunc_end0-\"f@@16\"\n\tcallq\t\"g@@8\""
        );
        assert_eq!(
            of("\tmovq\tf@@16@GOTPCREL(%rip), %rax"),
            "\tmovq\t\"f@@16\"@GOTPCREL(%rip), %rax"
        );
        for as_it_is in [
            "\t.symver\tf, f@@2\n",
            "\tcallq\tmunmap@PLT\n",
            "\t.asciz\t\"a \\\" f@@16\"",
            "\tcallq\t\"f@@16\"\t# f@@16",
            "\t# f@@16",
            "@@16",
            "f@@V",
        ] {
            assert_eq!(of(as_it_is), as_it_is);
        }
    }
}
