//! Changes of a file, line by line.

use super::instruction::{Flow, flow, symbol};
use super::text::{Line, Memory, operands, register, registers};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The registers of a hook's arguments: rdi, rsi.
const ARGUMENTS: [usize; 2] = [7, 6];

/// What becomes of lines: text in their place.
#[derive(Debug, Default)]
pub(super) struct Edits {
    changed: BTreeMap<usize, String>,
    added: BTreeMap<usize, String>,
    labels: usize,
}

impl Edits {
    pub(super) fn delete(&mut self, line: usize) {
        self.replace(line, String::new());
    }

    pub(super) fn replace(&mut self, line: usize, text: String) {
        self.changed.insert(line, text);
    }

    /// Puts text in front of a line.
    pub(super) fn before(&mut self, line: usize, text: String) {
        self.added.entry(line).or_default().push_str(&text);
    }

    /// Puts text behind a line.
    pub(super) fn behind(&mut self, line: usize, text: String) {
        self.before(line + 1, text);
    }

    /// Takes a hook's call away, and what loads its arguments.
    pub(super) fn remove_call(&mut self, lines: &[Line<'_>], line: usize, is_jump: bool) {
        self.changed.insert(line, if is_jump { "\tret\n".into() } else { String::new() });
        for load in loads(lines, line) {
            self.delete(load);
        }
    }

    /// Makes a hook's call only if it is not of these functions; nothing if that cannot be told.
    ///
    /// Registers and flags are free there: the call may change them.
    pub(super) fn call_but_for(
        &mut self,
        lines: &[Line<'_>],
        line: usize,
        is_jump: bool,
        functions: &[&str],
    ) -> Option<()> {
        let Line::Instruction(mnemonic, rest) = lines[line] else { return None };
        if rest.contains("%r11") {
            return None;
        }
        let label = format!(".Lteeperf{}", self.labels);
        self.labels += 1;
        let mut text = String::new();
        for name in functions {
            let (mnemonic, source, target) = load_of(lines, name)?;
            writeln!(text, "\t{mnemonic}\t{source}, {target}\n\tcmpq\t%r11, %rdi\n\tje\t{label}")
                .ok()?;
        }
        writeln!(text, "\t{mnemonic}\t{rest}\n{label}:").ok()?;
        if is_jump {
            text += "\tret\n";
        }
        self.changed.insert(line, text);
        Some(())
    }

    pub(super) fn apply(&self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        let mut changed = self.changed.iter().peekable();
        let mut added = self.added.iter().peekable();
        for (at, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
            if let Some((_, text)) = added.next_if(|(line, _)| **line == at) {
                out.extend_from_slice(text.as_bytes());
            }
            match changed.next_if(|(changed, _)| **changed == at) {
                Some((_, new)) => out.extend_from_slice(new.as_bytes()),
                None => out.extend_from_slice(line),
            }
        }
        if !out.ends_with(b"\n") {
            out.push(b'\n');
        }
        for (_, text) in added {
            out.extend_from_slice(text.as_bytes());
        }
        out
    }
}

/// Lines that do nothing but load the arguments of the call in this one. Behind a call that is taken away
/// nothing uses its arguments, so a load goes where nothing between the two can: no other call, no jump.
pub(super) fn loads(lines: &[Line<'_>], call: usize) -> Vec<usize> {
    let mut wanted: Vec<usize> = ARGUMENTS.into();
    let mut found = Vec::new();
    for at in (0..call).rev() {
        let (mnemonic, rest) = match lines[at] {
            Line::Instruction(mnemonic, rest) => (mnemonic, rest),
            Line::Foreign(_) | Line::Directive(".cfi_startproc" | ".section" | ".text", _) => break,
            _ => continue,
        };
        if wanted.is_empty() || flow(mnemonic, rest) != Flow::Next {
            break;
        }
        let is_plain =
            matches!(mnemonic, "mov" | "movq" | "movl" | "movabs" | "movabsq" | "lea" | "leaq");
        let mut list = operands(rest);
        let (source, target) = (list.next().unwrap_or(""), list.next().and_then(register));
        let loaded = target.filter(|number| is_plain && wanted.contains(number));
        match loaded {
            Some(number) if !registers(source).any(|read| ARGUMENTS.contains(&read)) => {
                found.push(at);
                wanted.retain(|&other| other != number);
            }
            // String instructions use both and name neither.
            _ if list.next().is_none() && rest.is_empty() => break,
            _ => wanted.retain(|number| !registers(rest).any(|named| named == *number)),
        }
    }
    found
}

/// How the code itself gets a function's address, with r11 in the place of its register.
fn load_of<'a>(lines: &[Line<'a>], name: &str) -> Option<(&'a str, &'a str, &'static str)> {
    lines.iter().find_map(|line| {
        let load = address_load(line).filter(|load| load.name == name && load.is_whole)?;
        let target = if load.mnemonic == "movl" { "%r11d" } else { "%r11" };
        Some((load.mnemonic, load.source, target))
    })
}

/// The symbol whose address is loaded here into a register, or how far that is from the table of addresses.
pub(super) fn loaded<'a>(line: &Line<'a>) -> Option<&'a str> {
    address_load(line).map(|load| load.name)
}

struct AddressLoad<'a> {
    name: &'a str,
    mnemonic: &'a str,
    source: &'a str,
    /// It is all that it takes.
    is_whole: bool,
}

fn address_load<'a>(line: &Line<'a>) -> Option<AddressLoad<'a>> {
    let Line::Instruction(mnemonic, rest) = *line else { return None };
    let mut list = operands(rest);
    let (source, target) = (list.next()?, list.next()?);
    register(target)?;
    let number = source.strip_prefix('$');
    let place = Memory::read(source);
    let expression = match mnemonic {
        "leaq" | "lea" => place?.displacement,
        "movl" | "movabsq" | "movabs" | "movq" | "mov" if number.is_some() => number?,
        "movq" | "mov" => place.filter(|place| place.displacement.contains("@GOT"))?.displacement,
        _ => return None,
    };
    let is_told_from_here =
        place.is_none_or(|place| place.base == "%rip" && place.index.is_empty());
    let is_part = ["@GOTOFF", "@PLTOFF"].iter().any(|part| expression.contains(part))
        || expression.ends_with("@GOT");
    Some(AddressLoad {
        name: symbol(expression)?,
        mnemonic,
        source,
        is_whole: is_told_from_here && !is_part,
    })
}
