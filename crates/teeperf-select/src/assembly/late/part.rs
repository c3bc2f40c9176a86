//! Functions of a file, and the parts that their code stands in.

use super::super::instruction::{Flow, flow};
use super::super::names::functions;
use super::super::text::{Line, operands, unquoted};
use super::frame::Frame;
use super::naked::Code;
use super::{Late, MARK};
use std::collections::{HashMap, HashSet};

/// A function.
#[derive(Clone, Debug)]
pub(super) struct Function<'a> {
    /// As the linker knows it.
    pub(super) name: &'a str,
    /// Line of its label.
    pub(super) label: usize,
    /// Line of the call that marks it.
    pub(super) mark: Option<usize>,
    pub(super) code: Code,
}

impl Function<'_> {
    pub(super) fn is_hookable(&self) -> bool {
        self.mark.is_some() && !self.code.is_naked()
    }
}

/// A stretch of one function's code.
#[derive(Clone, Debug)]
pub(super) struct Part<'a> {
    /// Index of the function.
    pub(super) function: usize,
    /// Lines, from its label to what ends it.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Registers that its unwind information says are kept somewhere.
    pub(super) kept: Vec<&'a str>,
    /// Line where its unwind information begins, where it has any.
    pub(super) frames: Option<usize>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Parts<'a> {
    pub(super) functions: Vec<Function<'a>>,
    /// In the order of lines.
    pub(super) parts: Vec<Part<'a>>,
    /// Function that has a label of code.
    pub(super) of_label: HashMap<&'a str, usize>,
    /// Of jumps and branches, whether the frame is as it was where the function began; none where
    /// nothing says so.
    pub(super) is_bare: HashMap<usize, bool>,
    /// Whether some function is called with an argument in r11, as in one convention of clang's.
    pub(super) is_r11_used: bool,
}

impl<'a> Parts<'a> {
    pub(super) fn read(lines: &[Line<'a>], late: Late) -> Self {
        let functions = functions(lines);
        let called = called(lines);
        let mut parts = Self::default();
        let mut by_name: HashMap<&str, usize> = HashMap::new();
        let mut open: Option<Part<'a>> = None;
        let mut frame = Frame::default();
        let mut section = Section::default();
        let mut began = None;
        for (at, line) in lines.iter().enumerate() {
            match *line {
                Line::Label(name)
                    if functions.contains(name)
                        || section.is_code && of_part(name, &by_name, &called).is_some() =>
                {
                    // A second name of the same place.
                    if open.as_ref().is_some_and(|part| is_empty(&lines[part.start..at])) {
                        parts.of_label.insert(name, parts.functions.len() - 1);
                        continue;
                    }
                    parts.close(open.take(), at);
                    let function = match of_part(name, &by_name, &called) {
                        Some(function) => function,
                        None => {
                            by_name.insert(name, parts.functions.len());
                            parts.functions.push(Function {
                                name,
                                label: at,
                                mark: None,
                                code: Code::default(),
                            });
                            parts.functions.len() - 1
                        }
                    };
                    let frames = began.filter(|_| frame.is_told());
                    open = Some(Part { function, start: at, end: at, kept: vec![], frames });
                    parts.of_label.insert(name, function);
                }
                Line::Label(name) if is_end(name) => parts.close(open.take(), at),
                Line::Label(name) if section.is_code => {
                    if let Some(part) = &open {
                        parts.of_label.insert(name, part.function);
                    }
                }
                Line::Directive(name, rest) => {
                    if name == ".size" || name == ".cfi_endproc" {
                        parts.close(open.take(), at);
                    }
                    section.step(name, rest);
                    let kept = frame.step(name, rest);
                    if name == ".cfi_startproc" {
                        began = Some(at);
                    }
                    if let Some(part) = &mut open {
                        part.frames = began.filter(|_| frame.is_told());
                        part.kept.extend(kept);
                    }
                }
                Line::Instruction(mnemonic, rest) => {
                    let Some(part) = &open else { continue };
                    let function = &mut parts.functions[part.function];
                    if is_mark(mnemonic, rest, late) {
                        function.mark.get_or_insert(at);
                        continue;
                    }
                    function.code.step(*line);
                    if let Some(bare) = frame.is_bare()
                        && matches!(flow(mnemonic, rest), Flow::Jump(_) | Flow::Branch(_))
                    {
                        parts.is_bare.insert(at, bare);
                    }
                }
                Line::Foreign(_) => {
                    if let Some(part) = &open {
                        parts.functions[part.function].code.step(*line);
                    }
                }
                Line::Empty | Line::Label(_) => {}
            }
        }
        parts.close(open, lines.len());
        parts.is_r11_used = parts.parts.iter().any(|part| {
            let is_first = lines[part.start] == Line::Label(parts.functions[part.function].name);
            is_first && reads_r11_first(&lines[part.start..part.end])
        });
        parts
    }

    fn close(&mut self, part: Option<Part<'a>>, end: usize) {
        self.parts.extend(part.map(|part| Part { end, ..part }));
    }
}

/// The section that lines stand in.
#[derive(Debug, Default)]
struct Section {
    is_code: bool,
    before: bool,
    pushed: Vec<bool>,
}

impl Section {
    fn step(&mut self, name: &str, rest: &str) {
        let before = self.is_code;
        match name {
            ".text" => self.is_code = true,
            ".data" | ".bss" => self.is_code = false,
            ".section" => self.is_code = is_of_code(rest),
            ".pushsection" => {
                self.pushed.push(before);
                self.is_code = is_of_code(rest);
            }
            ".popsection" => self.is_code = self.pushed.pop().unwrap_or(before),
            ".previous" => self.is_code = self.before,
            _ => return,
        }
        self.before = before;
    }
}

/// By its name, or its flags: `name,"ax",@progbits`.
fn is_of_code(rest: &str) -> bool {
    let mut words = operands(rest);
    let name = words.next().map_or("", unquoted);
    match words.next() {
        Some(flags) => flags.contains('x'),
        None => name.starts_with(".text") || matches!(name, ".init" | ".fini"),
    }
}

/// Whether the first instruction that names r11 is one that uses what is in it.
fn reads_r11_first(lines: &[Line<'_>]) -> bool {
    let uses = lines.iter().find_map(|line| match *line {
        Line::Instruction(mnemonic, rest) if rest.contains("%r11") => {
            let is_cleared = mnemonic.starts_with("xor") && rest.matches("%r11").count() == 2;
            let (source, target) = rest.rsplit_once(',').unwrap_or(("", rest));
            let is_written = (mnemonic.starts_with("mov")
                || mnemonic.starts_with("lea")
                || mnemonic.starts_with("pop"))
                && target.trim_start().starts_with("%r11")
                && !source.contains("%r11");
            Some(!is_cleared && !is_written)
        }
        _ => None,
    });
    uses == Some(true)
}

fn is_empty(lines: &[Line<'_>]) -> bool {
    let is_none = |line: &Line<'_>| match line {
        Line::Empty | Line::Label(_) => true,
        Line::Directive(name, _) => matches!(*name, ".type" | ".globl" | ".weak" | ".hidden"),
        _ => false,
    };
    lines.iter().all(is_none)
}

/// Labels that a call names.
fn called<'a>(lines: &[Line<'a>]) -> HashSet<&'a str> {
    let of = |line: &Line<'a>| match *line {
        Line::Instruction(mnemonic, rest) => match flow(mnemonic, rest) {
            Flow::Call(target) => Some(unquoted(target.split('@').next().unwrap_or(target))),
            _ => None,
        },
        _ => None,
    };
    lines.iter().filter_map(of).collect()
}

/// The function of which a label begins a part, where it is known. One that is called is a function
/// that the compiler made of what seldom runs.
fn of_part(name: &str, functions: &HashMap<&str, usize>, called: &HashSet<&str>) -> Option<usize> {
    let whole = whole(name);
    let function = functions.get(whole).copied();
    function.filter(|_| whole != name && !called.contains(name))
}

/// The function's name, of a part of it that stands apart: `f.cold` or `f.cold.1` as it seldom
/// runs, `f.__part.1` for the linker to place, `f.eh` for what catches exceptions.
fn whole(name: &str) -> &str {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let base = name.rsplit_once('.').filter(|(_, number)| is_number(number));
    let base = base.map_or(name, |(base, _)| base);
    let cut = [".cold", ".__part"].iter().find_map(|end| base.strip_suffix(end));
    cut.or(name.strip_suffix(".eh")).unwrap_or(name)
}

/// Whether a label stands where a function's code ends, for what is said of it.
fn is_end(name: &str) -> bool {
    name.starts_with(".Lfunc_end") || name.starts_with(".LFE") || name.starts_with(".LCOLDE")
}

/// Whether it is what may stand in front of a function's code: the mark of a branch's target, and
/// bytes to be patched.
pub(super) fn stands_first(mnemonic: &str, rest: &str) -> bool {
    mnemonic.starts_with("endbr")
        || mnemonic.starts_with("nop")
        || mnemonic.starts_with("xchg") && rest.replace(' ', "") == "%ax,%ax"
}

fn is_mark(mnemonic: &str, rest: &str, late: Late) -> bool {
    let name = rest.trim_start_matches('*');
    let name = &name[..name.find(['@', '(']).unwrap_or(name.len())];
    matches!(mnemonic, "call" | "callq")
        && (name == MARK || late.counts_itself && matches!(name, "mcount" | "_mcount"))
}
