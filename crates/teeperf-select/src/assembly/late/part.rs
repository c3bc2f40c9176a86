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
    /// The section that it begins in, and the line behind its last instruction.
    section: &'a str,
    behind: usize,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Parts<'a> {
    pub(super) functions: Vec<Function<'a>>,
    /// In the order of lines.
    pub(super) parts: Vec<Part<'a>>,
    /// Function that has a label of code.
    pub(super) of_label: HashMap<&'a str, usize>,
    /// Labels of code where the function has a frame. No jump from where it has none leads there.
    pub(super) framed: HashSet<&'a str>,
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
        // Labels of the next instruction: what is said of its frame stands behind them.
        let mut labels: Vec<&str> = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            match *line {
                Line::Label(name) => labels.push(name),
                Line::Instruction(..) | Line::Foreign(_) if frame.is_bare() == Some(false) => {
                    parts.framed.extend(labels.drain(..));
                }
                Line::Instruction(..) | Line::Foreign(_) => labels.clear(),
                Line::Directive(..) | Line::Empty => {}
            }
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
                    parts.close(open.take(), at, &section);
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
                    let (kept, section) = (Vec::new(), section.name);
                    let (start, end, behind) = (at, at, at + 1);
                    open = Some(Part { function, start, end, kept, frames, section, behind });
                    parts.of_label.insert(name, function);
                }
                Line::Label(name) if is_end(name) => parts.close(open.take(), at, &section),
                Line::Label(name) if section.is_code => {
                    if let Some(part) = &open {
                        parts.of_label.insert(name, part.function);
                    }
                }
                Line::Directive(name, rest) => {
                    if name == ".size" || name == ".cfi_endproc" {
                        parts.close(open.take(), at, &section);
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
                    let Some(part) = &mut open else { continue };
                    part.behind = at + 1;
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
                    if let Some(part) = &mut open {
                        part.behind = at + 1;
                        parts.functions[part.function].code.step(*line);
                    }
                }
                Line::Empty | Line::Label(_) => {}
            }
        }
        parts.close(open, lines.len(), &section);
        parts.is_r11_used = parts.parts.iter().any(|part| {
            let is_first = lines[part.start] == Line::Label(parts.functions[part.function].name);
            is_first && has_argument_in_r11(&lines[part.start..part.end])
        });
        parts
    }

    /// Ends a part here, where `section` is. Without unwind information, code of another section
    /// may stand in between.
    fn close(&mut self, part: Option<Part<'a>>, here: usize, section: &Section<'_>) {
        self.parts.extend(part.map(|part| {
            let end = if part.section == section.name { here } else { part.behind };
            Part { end, ..part }
        }));
    }
}

/// The section that lines stand in.
#[derive(Debug, Default)]
pub(super) struct Section<'a> {
    pub(super) name: &'a str,
    /// It has code.
    pub(super) is_code: bool,
    before: (&'a str, bool),
    pushed: Vec<(&'a str, bool)>,
    /// Whether one has code: gcc writes its flags the first time alone.
    known: HashMap<&'a str, bool>,
}

impl<'a> Section<'a> {
    pub(super) fn step(&mut self, directive: &'a str, rest: &'a str) {
        let now = (self.name, self.is_code);
        (self.name, self.is_code) = match directive {
            ".text" => (directive, true),
            ".data" | ".bss" => (directive, false),
            ".section" => self.named(rest),
            ".pushsection" => {
                self.pushed.push(now);
                self.named(rest)
            }
            ".popsection" => self.pushed.pop().unwrap_or(now),
            ".previous" => self.before,
            _ => return,
        };
        self.before = now;
    }

    /// By its flags, or by its name: `name,"ax",@progbits`.
    fn named(&mut self, rest: &'a str) -> (&'a str, bool) {
        let mut words = operands(rest);
        let name = words.next().map_or("", unquoted);
        let is_code =
            match words.next() {
                Some(flags) => flags.contains('x'),
                None => self.known.get(name).copied().unwrap_or_else(|| {
                    name.starts_with(".text") || matches!(name, ".init" | ".fini")
                }),
            };
        self.known.insert(name, is_code);
        (name, is_code)
    }
}

/// Whether a function is called with arguments in such registers that one may be in r11: it reads
/// r11 first, or, as in clang's `preserve_none`, one that other functions keep for their callers.
/// Calls that only pass such an argument on are not seen.
fn has_argument_in_r11<'a>(lines: &[Line<'a>]) -> bool {
    let uses = |line: &Line<'a>| match *line {
        Line::Instruction(mnemonic, rest) if rest.contains("%r1") => Some((mnemonic, rest)),
        _ => None,
    };
    let uses: Vec<(&str, &str)> = lines.iter().filter_map(uses).collect();
    ["%r11", "%r12", "%r13", "%r14", "%r15"].iter().any(|register| reads_first(&uses, register))
}

/// Whether the first of these instructions that names a register is one that uses what is in it, and
/// does not only keep that on the stack.
fn reads_first(instructions: &[(&str, &str)], register: &str) -> bool {
    let first = instructions.iter().find(|(_, rest)| rest.contains(register));
    first.is_some_and(|&(mnemonic, rest)| {
        let is_cleared = mnemonic.starts_with("xor") && rest.matches(register).count() == 2;
        let (source, target) = rest.rsplit_once(',').unwrap_or(("", rest));
        let target = target.trim_start();
        let is_move = mnemonic.starts_with("mov");
        let is_written = (is_move || mnemonic.starts_with("lea") || mnemonic.starts_with("pop"))
            && target.starts_with(register)
            && !source.contains(register);
        // r11 is no function's to keep.
        let is_kept = register != "%r11"
            && (mnemonic.starts_with("push")
                || is_move
                    && source == register
                    && (target.ends_with("(%rsp)") || target.ends_with("(%rbp)")));
        !(is_cleared || is_written || is_kept)
    })
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
