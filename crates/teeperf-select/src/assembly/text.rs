//! Lines of assembly as gcc and clang write them for x86-64: AT&T syntax, one statement a line. Says what
//! stands in a line, and nothing of what it does.

/// What stands in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Nothing that matters.
    Empty,
    /// `name:`
    Label(&'a str),
    /// `.name rest`
    Directive(&'a str, &'a str),
    /// `mnemonic operands`, prefixes such as `lock` being part of the mnemonic.
    Instruction(&'a str, &'a str),
    /// Of an assembler block that somebody wrote by hand, and passed through.
    Foreign(&'a str),
}

/// All lines of a file.
pub(super) fn lines(text: &[u8]) -> Vec<Line<'_>> {
    let mut is_foreign = false;
    let mut read = Vec::new();
    for line in text.split(|&byte| byte == b'\n') {
        // What is no UTF-8 stands in strings, or by hand.
        let line = std::str::from_utf8(line).unwrap_or("").trim();
        let now = match line {
            "#APP" | "# Start of file scope inline assembly" => {
                is_foreign = true;
                Line::Empty
            }
            "#NO_APP" | "# End of file scope inline assembly" => {
                is_foreign = false;
                Line::Empty
            }
            // gcc ends a block in such a way, and says later that it writes itself again: what is
            // in between is its own.
            "# 0 \"\" 2" => {
                is_foreign = false;
                Line::Empty
            }
            _ if begins_block(line) => {
                is_foreign = true;
                Line::Empty
            }
            _ if is_foreign && !line.is_empty() => Line::Foreign(line),
            _ => statement(without_comment(line)),
        };
        read.push(now);
    }
    read
}

/// `# line "file" 1`: where gcc says that a block of the file begins.
fn begins_block(line: &str) -> bool {
    let mark = line.strip_prefix("# ").and_then(|rest| rest.strip_suffix("\" 1"));
    mark.and_then(|rest| rest.split_once(" \""))
        .is_some_and(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn statement(text: &str) -> Line<'_> {
    if text.is_empty() {
        return Line::Empty;
    }
    if let Some(name) = text.strip_suffix(':').filter(|name| is_name(name)) {
        return Line::Label(unquoted(name));
    }
    let (mut word, mut rest) = split_word(without_number(text));
    if word.starts_with('.') {
        return Line::Directive(word, rest);
    }
    // The prefix says nothing of which registers are written, but for `rep`, which goes with instructions that are
    // known for themselves.
    while matches!(
        word,
        "lock"
            | "rep"
            | "repz"
            | "repe"
            | "repnz"
            | "repne"
            | "notrack"
            | "bnd"
            | "data16"
            | "rex64"
    ) {
        let next = split_word(rest);
        if next.0.is_empty() {
            break;
        }
        (word, rest) = next;
    }
    Line::Instruction(word, rest)
}

/// The statement behind a local label that is a number, as compilers put in front of calls that
/// count.
fn without_number(text: &str) -> &str {
    let is_number =
        |label: &str| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once(':') {
        Some((label, rest)) if is_number(label) => rest.trim_start(),
        _ => text,
    }
}

fn split_word(text: &str) -> (&str, &str) {
    match text.find([' ', '\t']) {
        Some(at) => (&text[..at], text[at..].trim_start()),
        None => (text, ""),
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with('"') || !text.contains([' ', '\t', '"', ','])
}

/// A name without the quotes that stand around some.
pub(super) fn unquoted(name: &str) -> &str {
    name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name)
}

/// The line up to a `#` outside of quotes.
fn without_comment(text: &str) -> &str {
    let mut is_quoted = false;
    let mut bytes = text.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'\\' if is_quoted => {
                bytes.next();
            }
            b'#' if !is_quoted => return text[..at].trim_end(),
            _ => {}
        }
    }
    text
}

/// Operands, which commas outside of brackets and quotes keep apart.
pub(super) fn operands(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text).filter(|text| !text.is_empty());
    std::iter::from_fn(move || {
        let text = rest?;
        let (mut depth, mut is_quoted) = (0_u32, false);
        let comma = text.bytes().position(|byte| {
            match byte {
                b'"' => is_quoted = !is_quoted,
                b'(' => depth += 1,
                b')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            byte == b',' && depth == 0 && !is_quoted
        });
        rest = comma.map(|at| &text[at + 1..]);
        Some(text[..comma.unwrap_or(text.len())].trim())
    })
}

/// A place in memory: `displacement(base, index, scale)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Memory<'a> {
    pub(super) displacement: &'a str,
    pub(super) base: &'a str,
    pub(super) index: &'a str,
}

impl<'a> Memory<'a> {
    /// Nothing, if it is a register or a number.
    pub(super) fn read(operand: &'a str) -> Option<Self> {
        if operand.starts_with(['%', '$']) || operand.is_empty() {
            return None;
        }
        let Some((displacement, inside)) = operand.split_once('(') else {
            return Some(Self { displacement: operand, base: "", index: "" });
        };
        let mut parts = inside.trim_end_matches(')').split(',').map(str::trim);
        let mut part = || parts.next().unwrap_or("");
        Some(Self { displacement, base: part(), index: part() })
    }
}

/// The number of a general register by any of its names, `%` in front: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
pub(super) fn register(name: &str) -> Option<usize> {
    let name = name.strip_prefix('%')?;
    if let Some(number) = name.strip_prefix('r') {
        let number = number.trim_end_matches(['d', 'w', 'b']);
        if let Some(number) = number.parse().ok().filter(|number| (8..16).contains(number)) {
            return Some(number);
        }
    }
    const NAMES: [&[&str]; 8] = [
        &["rax", "eax", "ax", "al", "ah"],
        &["rcx", "ecx", "cx", "cl", "ch"],
        &["rdx", "edx", "dx", "dl", "dh"],
        &["rbx", "ebx", "bx", "bl", "bh"],
        &["rsp", "esp", "sp", "spl"],
        &["rbp", "ebp", "bp", "bpl"],
        &["rsi", "esi", "si", "sil"],
        &["rdi", "edi", "di", "dil"],
    ];
    NAMES.iter().position(|names| names.contains(&name))
}

/// Whether the register's name is one of 64 or of 32 bits: to write it is to write all of it.
pub(super) fn is_whole(name: &str) -> bool {
    match name.strip_prefix("%r") {
        Some(rest) => !rest.ends_with(['w', 'b']),
        None => name.starts_with("%e"),
    }
}

/// All registers that are named anywhere in the text.
pub(super) fn registers(text: &str) -> impl Iterator<Item = usize> {
    text.match_indices('%').filter_map(move |(at, _)| {
        let end = text[at + 1..].find(|c: char| !c.is_ascii_alphanumeric());
        register(&text[at..end.map_or(text.len(), |end| at + 1 + end)])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_what_they_look_like() {
        let text = b"f:                        # @f\n\t.loc 1 2 3 # x\n\tcall\tg@PLT # y\n\"a b\":\n\t.ascii \"# no\"\n#APP\n\tcall x\n#NO_APP\n\trep stosq\n\xFF\n";
        assert_eq!(
            lines(text),
            [
                Line::Label("f"),
                Line::Directive(".loc", "1 2 3"),
                Line::Instruction("call", "g@PLT"),
                Line::Label("a b"),
                Line::Directive(".ascii", "\"# no\""),
                Line::Empty,
                Line::Foreign("call x"),
                Line::Empty,
                Line::Instruction("stosq", ""),
                Line::Empty,
                Line::Empty,
            ]
        );
    }

    #[test]
    fn what_stands_behind_a_block_is_the_compilers() {
        let text = b"#APP\n# 7 \"a b.c\" 1\n\tcall x\n# 0 \"\" 2\n\t.loc 1 2 3\n.L2:\n# 9 \"a b.c\" 1\n\tnop\n# 0 \"\" 2\n#NO_APP\n\tret\n";
        assert_eq!(
            lines(text),
            [
                Line::Empty,
                Line::Empty,
                Line::Foreign("call x"),
                Line::Empty,
                Line::Directive(".loc", "1 2 3"),
                Line::Label(".L2"),
                Line::Empty,
                Line::Foreign("nop"),
                Line::Empty,
                Line::Empty,
                Line::Instruction("ret", ""),
                Line::Empty,
            ]
        );
    }

    #[test]
    fn operands_and_registers() {
        let list: Vec<_> = operands("8(%rax,%r9,4), %xmm0, $f").collect();
        assert_eq!(list, ["8(%rax,%r9,4)", "%xmm0", "$f"]);
        assert_eq!(operands("").count(), 0);
        assert_eq!(
            Memory::read("f@GOT(%rbx,%rax)"),
            Some(Memory { displacement: "f@GOT", base: "%rbx", index: "%rax" })
        );
        assert_eq!(Memory::read("%rax"), None);
        assert_eq!(
            ["%dil", "%r15d", "%xmm1", "%r16", "%rip"].map(register),
            [Some(7), Some(15), None, None, None]
        );
        assert_eq!(registers("8(%rsp,%r9,2), %ebx").collect::<Vec<_>>(), [4, 9, 3]);
        assert!(
            is_whole("%edi")
                && is_whole("%r8d")
                && is_whole("%rsi")
                && !is_whole("%r8b")
                && !is_whole("%ax")
        );
    }
}
