//! Where control leaves a function: returns, and jumps to other functions.

use super::super::flow::leavings;
use super::super::graph::Graph;
use super::super::instruction::{Flow, flow};
use super::super::text::{Line, Memory, operands, unquoted};
use super::super::values::{Atom, Values, is_local};
use super::part::{Part, Parts, Section};
use std::cell::OnceCell;
use std::collections::HashSet;

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exit<'a> {
    pub(super) line: usize,
    pub(super) kind: Kind<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// `ret`, a jump to what stands for it, or one to a function.
    Always,
    /// A jump to a function on a condition: what makes it go on instead, and its target.
    Branch { otherwise: &'static str, target: &'a str },
    /// A jump to an address that may be one of the function's own code: where it stands.
    Unsure { address: &'a str },
}

/// Decides which jumps by address stay in their function.
pub(super) struct Jumps<'l, 'a> {
    lines: &'l [Line<'a>],
    parts: &'l Parts<'a>,
    known: OnceCell<ByAddress>,
}

/// Facts about them.
#[derive(Debug, Default)]
struct ByAddress {
    /// Lines of those that lead where a table says, within their function.
    by_table: HashSet<usize>,
    /// Functions in which others may lead back to their own code without a frame: that takes
    /// addresses of it as for `goto *`, or has tables which no jump is known to use.
    may_stay: HashSet<usize>,
}

impl<'l, 'a> Jumps<'l, 'a> {
    pub(super) fn new(lines: &'l [Line<'a>], parts: &'l Parts<'a>) -> Self {
        Self { lines, parts, known: OnceCell::new() }
    }

    /// As what a jump to the address that stands in `address` leaves the function, if it may.
    fn by_address<'o>(&self, line: usize, address: &'o str, function: usize) -> Option<Kind<'o>> {
        if address.contains("@GOTPCREL") {
            return Some(Kind::Always);
        }
        // A function's frame is gone where it jumps to another one.
        if self.parts.is_bare.get(&line) == Some(&false) {
            return None;
        }
        let known = self.known.get_or_init(|| ByAddress::find(self.lines, self.parts));
        match known.may_stay.contains(&function) {
            _ if known.by_table.contains(&line) => None,
            true => Some(Kind::Unsure { address }),
            false => Some(Kind::Always),
        }
    }

    /// Where control leaves this part's function, in the order of lines.
    pub(super) fn exits(&self, part: &Part<'a>) -> Vec<Exit<'a>> {
        let exit = |line: usize| {
            let Line::Instruction(mnemonic, rest) = self.lines[line] else { return None };
            let kind = match flow(mnemonic, rest) {
                Flow::End if is_return(mnemonic) => Kind::Always,
                Flow::Jump(target) => self.goes_out(line, target, part.function)?,
                Flow::Branch(target)
                    if self.goes_out(line, target, part.function) == Some(Kind::Always) =>
                {
                    Kind::Branch { otherwise: opposite(mnemonic)?, target }
                }
                _ => return None,
            };
            Some(Exit { line, kind })
        };
        (part.start..part.end).filter_map(exit).collect()
    }

    /// As what a jump leaves the function, if it may.
    fn goes_out(&self, line: usize, target: &'a str, function: usize) -> Option<Kind<'a>> {
        if let Some(address) = target.strip_prefix('*') {
            return self.by_address(line, address, function);
        }
        let name = unquoted(target);
        let name = name.split('@').next().unwrap_or(name);
        if let Some(register) = name.strip_prefix("__x86_indirect_thunk_") {
            return self.by_address(line, register, function);
        }
        let is_exit = match self.parts.of_label.get(name) {
            // To its own beginning: it is called once more.
            Some(&of) if of == function => name == self.parts.functions[function].name,
            Some(_) => true,
            // Numbers are labels of what was written by hand.
            None => !is_local(name) && !name.starts_with(|first: char| first.is_ascii_digit()),
        };
        is_exit.then_some(Kind::Always)
    }
}

fn is_return(mnemonic: &str) -> bool {
    matches!(mnemonic, "ret" | "retq")
}

impl ByAddress {
    fn find<'a>(lines: &[Line<'a>], parts: &Parts<'a>) -> Self {
        let graph = Graph::new(lines);
        let mut values = Values::new(super::super::passed_over(lines, &graph));
        let mut found = Self::default();
        let mut used: HashSet<&str> = HashSet::new();
        for leaving in leavings(lines, &mut values, &graph) {
            let table = |atom: &Atom| match atom {
                Atom::Symbol(symbol) => {
                    Some(values.name(*symbol)).filter(|name| graph.tables.contains_key(name))
                }
                _ => None,
            };
            let atoms = values.atoms(leaving.target);
            let tables: Option<Vec<&str>> = atoms.iter().map(table).collect();
            if let Some(tables) = tables.filter(|tables| !tables.is_empty()) {
                found.by_table.insert(leaving.line);
                used.extend(tables.into_iter().filter(|name| is_of_compiler(name)));
            }
        }
        found.may_stay = takes_labels(lines, parts, &used);
        found
    }
}

/// Functions whose code's addresses are loaded, or stand in data that is no table of jumps that is
/// used. Addresses where the function has a frame do not count: jumps from there need no look.
fn takes_labels<'a>(
    lines: &[Line<'a>],
    parts: &Parts<'a>,
    tables: &HashSet<&str>,
) -> HashSet<usize> {
    let mut found = HashSet::new();
    let mut data = "";
    let mut section = Section::default();
    for line in lines {
        match *line {
            Line::Label(name) => data = name,
            Line::Directive(
                ".quad" | ".long" | ".8byte" | ".4byte" | ".value" | ".short" | ".2byte" | ".byte",
                rest,
            ) if rest.contains(".L") && !is_of_tools(section.name) && !tables.contains(data) => {
                found.extend(operands(rest).filter_map(|item| code_label(item, parts)));
            }
            Line::Directive(name, rest) => section.step(name, rest),
            Line::Instruction(mnemonic, rest) if flow(mnemonic, rest) == Flow::Next => {
                for operand in operands(rest) {
                    let place = Memory::read(operand).map(|memory| memory.displacement);
                    let named = place.or(operand.strip_prefix('$'));
                    found.extend(named.and_then(|name| code_label(name, parts)));
                }
            }
            _ => {}
        }
    }
    found
}

/// Whether it is the compiler's table of a `switch`: gcc's `.L4`, or clang's `.LJTI0_0`. An array
/// of labels that the program has is read elsewhere too.
fn is_of_compiler(table: &str) -> bool {
    let Some(name) = table.strip_prefix(".L") else { return false };
    name.starts_with("JTI") || name.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a section is for unwinders, debuggers and tools: it has no addresses of code that jumps
/// go to.
fn is_of_tools(section: &str) -> bool {
    const NAMES: [&str; 11] = [
        ".debug",
        ".zdebug",
        ".eh_frame",
        ".gcc_except_table",
        ".note",
        ".stapsdt",
        ".stack_sizes",
        ".llvm",
        "__patchable_function_entries",
        "__sancov",
        "xray_",
    ];
    NAMES.iter().any(|start| section.starts_with(start))
}

/// The function that a label of code without a frame lies in, of `label`, `label-other` and the like.
fn code_label(text: &str, parts: &Parts<'_>) -> Option<usize> {
    let name = &text[..text.find(['-', '+', '@']).unwrap_or(text.len())];
    let name = unquoted(name.trim());
    let is_bare = is_local(name) && !parts.framed.contains(name);
    parts.of_label.get(name).copied().filter(|_| is_bare)
}

/// The branch on the opposite condition (Intel SDM 2A, Jcc).
fn opposite(mnemonic: &str) -> Option<&'static str> {
    const PAIRS: [(&str, &str); 16] = [
        ("ja", "jbe"),
        ("jae", "jb"),
        ("jc", "jnc"),
        ("je", "jne"),
        ("jg", "jle"),
        ("jge", "jl"),
        ("jo", "jno"),
        ("jp", "jnp"),
        ("js", "jns"),
        ("jz", "jnz"),
        ("jna", "ja"),
        ("jnae", "jae"),
        ("jng", "jg"),
        ("jnge", "jge"),
        ("jpe", "jpo"),
        ("jnb", "jb"),
    ];
    let pair = |(one, other): &(&'static str, &'static str)| match mnemonic {
        _ if mnemonic == *one => Some(*other),
        _ if mnemonic == *other => Some(*one),
        _ => None,
    };
    PAIRS.iter().find_map(pair)
}

#[cfg(test)]
mod tests {
    use super::opposite;

    #[test]
    fn opposites_of_opposites() {
        for name in ["ja", "jbe", "jae", "jb", "je", "jne", "jg", "jle", "jl", "js", "jnp", "jno"] {
            let other = opposite(name).unwrap();
            assert_eq!(opposite(other), Some(name), "{name}");
        }
        assert_eq!(opposite("jrcxz"), None);
    }
}
