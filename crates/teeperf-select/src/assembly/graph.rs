//! How control goes through a file: blocks, and what leads from one to another. Jumps by table go where the table
//! says, and exceptions from the calls that they may come from to where they are caught.

use super::instruction::{Flow, flow, symbol};
use super::text::{Line, Memory, operands, unquoted};
use super::values::is_local;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Blocks of a file.
#[derive(Debug, Default)]
pub(super) struct Graph<'a> {
    /// Lines of each block, in order.
    pub(super) blocks: Vec<Range<usize>>,
    /// Block that begins with a label.
    pub(super) at: HashMap<&'a str, usize>,
    /// Blocks that functions begin with.
    pub(super) entries: Vec<usize>,
    /// Blocks that parts of functions begin with, which stand apart because they seldom run.
    pub(super) parts: Vec<usize>,
    /// Code that each jump table may lead to, by the table's label.
    pub(super) tables: HashMap<&'a str, Vec<usize>>,
    /// Blocks to which a jump by address may lead where no table is known, by function.
    taken: HashMap<usize, Vec<usize>>,
    /// Where exceptions of the calls in these lines are caught; by the first line.
    catches: Vec<(Range<usize>, usize)>,
    /// Number of the function of each block.
    function: Vec<usize>,
}

impl<'a> Graph<'a> {
    pub(super) fn new(lines: &[Line<'a>]) -> Self {
        let labels = labels(lines);
        let mut graph = Self::default();
        graph.cut(lines, &labels);
        graph.read_data(lines, &labels);
        graph
    }

    /// Cuts the code into blocks.
    fn cut(&mut self, lines: &[Line<'a>], labels: &Labels<'a>) {
        let mut begun = None;
        // Cold parts are their function's.
        let mut names: HashMap<&str, usize> = HashMap::new();
        let mut function = 0;
        for (at, line) in lines.iter().enumerate() {
            if let Line::Label(name) = line
                && labels.code.contains_key(name)
            {
                // Labels that stand together are one place.
                if begun.is_some_and(|start| has_code(&lines[start..at])) {
                    self.end(&mut begun, at, function);
                }
                let count = names.len() + 1;
                let is_function = labels.functions.contains(name);
                if is_function {
                    let whole = name.split(".cold").next().unwrap_or(name);
                    function = *names.entry(whole).or_insert(count);
                }
                self.at.insert(name, self.blocks.len());
                if is_function {
                    let is_part = name.contains(".cold");
                    let list = if is_part { &mut self.parts } else { &mut self.entries };
                    list.push(self.blocks.len());
                }
                begun.get_or_insert(at);
            }
            let ends = match line {
                Line::Instruction(mnemonic, rest) => {
                    begun.get_or_insert(at);
                    !matches!(flow(mnemonic, rest), Flow::Next | Flow::Call(_))
                }
                Line::Foreign(text) => {
                    begun.get_or_insert(at);
                    text.contains(".L")
                }
                _ => false,
            };
            if ends {
                self.end(&mut begun, at + 1, function);
            }
        }
        self.end(&mut begun, lines.len(), function);
    }

    fn end(&mut self, begun: &mut Option<usize>, end: usize, function: usize) {
        if let Some(start) = begun.take() {
            self.blocks.push(start..end);
            self.function.push(function);
        }
    }

    /// Tables of jumps, tables of exceptions, and addresses of code that are taken.
    fn read_data(&mut self, lines: &[Line<'a>], labels: &Labels<'a>) {
        let mut section = "";
        let mut table = None;
        let mut before: [Option<Difference<'a>>; 2] = [None; 2];
        for line in lines {
            match *line {
                Line::Label(name) => table = Some(name),
                Line::Directive(name, rest) => {
                    let items = || operands(rest);
                    match name {
                        ".section" | ".pushsection" => {
                            section = items().next().map_or("", unquoted)
                        }
                        ".text" | ".data" | ".bss" => section = name,
                        ".long" | ".quad" | ".uleb128" | ".byte" | ".value" | ".4byte"
                        | ".8byte" => {}
                        _ => continue,
                    }
                    if section.starts_with(".debug") {
                        continue;
                    }
                    let is_of_exceptions = section.starts_with(".gcc_except_table");
                    for item in items() {
                        let now = Difference::read(item);
                        if is_of_exceptions {
                            if let [Some(start), Some(length)] = before
                                && length.less == start.of
                                && let Some(pad) = now.and_then(|pad| self.at.get(pad.of))
                                && let (Some(&from), Some(&to)) =
                                    (labels.code.get(start.of), labels.code.get(length.of))
                            {
                                self.catches.push((from..to, *pad));
                            }
                            before = [before[1], now];
                            continue;
                        }
                        let name =
                            now.map_or_else(|| symbol(item), |difference| Some(difference.of));
                        let block =
                            name.filter(|name| is_local(name)).and_then(|name| self.at.get(name));
                        if let Some((&block, table)) = block.zip(table) {
                            self.tables.entry(table).or_default().push(block);
                            self.take(block);
                        }
                    }
                }
                Line::Instruction(mnemonic, rest) if flow(mnemonic, rest) == Flow::Next => {
                    for operand in operands(rest) {
                        let place = Memory::read(operand).map(|memory| memory.displacement);
                        let named = place.or(operand.strip_prefix('$')).and_then(symbol);
                        let block =
                            named.filter(|name| is_local(name)).and_then(|name| self.at.get(name));
                        if let Some(&block) = block {
                            self.take(block);
                        }
                    }
                }
                _ => {}
            }
        }
        self.catches.sort_by_key(|(calls, _)| calls.start);
    }

    fn take(&mut self, block: usize) {
        self.taken.entry(self.function[block]).or_default().push(block);
    }

    /// Where a jump by address in this block may lead: by these tables, or anywhere in the function whose address is taken.
    pub(super) fn targets(&self, block: usize, tables: Option<&[&str]>) -> Vec<usize> {
        let all = || self.taken.get(&self.function[block]);
        let known = tables.map(|tables| tables.iter().map(|table| self.tables.get(table)));
        let known = known.and_then(|lists| lists.collect::<Option<Vec<_>>>());
        match known {
            Some(lists) => lists.into_iter().flatten().copied().collect(),
            None => all().into_iter().flatten().copied().collect(),
        }
    }

    /// Where exceptions of a call in this line are caught.
    pub(super) fn catch(&self, line: usize) -> Option<usize> {
        let end = self.catches.partition_point(|(calls, _)| calls.start <= line);
        let (calls, pad) = self.catches[..end].last()?;
        calls.contains(&line).then_some(*pad)
    }

    pub(super) fn function(&self, block: usize) -> usize {
        self.function[block]
    }
}

/// Labels of code, and their lines.
struct Labels<'a> {
    code: HashMap<&'a str, usize>,
    functions: HashSet<&'a str>,
}

fn labels<'a>(lines: &[Line<'a>]) -> Labels<'a> {
    let mut functions = HashSet::new();
    let mut code = HashMap::new();
    let mut waiting: Vec<(&str, usize)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        match line {
            Line::Directive(".type", rest) => {
                let mut words = operands(rest);
                if let (Some(name), Some("@function" | "@gnu_indirect_function")) =
                    (words.next(), words.next())
                {
                    functions.insert(unquoted(name));
                }
            }
            Line::Label(name) => waiting.push((name, at)),
            Line::Instruction(..) | Line::Foreign(_) => code.extend(waiting.drain(..)),
            // A label at the end of code is one of a stretch of calls, too.
            Line::Directive(name, _) if is_data(name) => {
                code.extend(waiting.drain(..).filter(|&(_, at)| ends_code(lines, at)));
            }
            _ => {}
        }
    }
    Labels { code, functions }
}

fn has_code(lines: &[Line<'_>]) -> bool {
    lines.iter().any(|line| !matches!(line, Line::Empty | Line::Label(_)))
}

/// Whether what stands in front of this line is code.
fn ends_code(lines: &[Line<'_>], at: usize) -> bool {
    let before =
        lines[..at].iter().rev().find(|line| !matches!(line, Line::Empty | Line::Label(_)));
    matches!(before, Some(Line::Instruction(..) | Line::Foreign(_) | Line::Directive(".loc", _)))
}

/// Whether the directive makes bytes, or leaves the section.
fn is_data(name: &str) -> bool {
    const DATA: [&str; 17] = [
        ".long",
        ".quad",
        ".byte",
        ".value",
        ".uleb128",
        ".sleb128",
        ".ascii",
        ".asciz",
        ".string",
        ".zero",
        ".section",
        ".data",
        ".bss",
        ".text",
        ".cfi_endproc",
        ".size",
        ".comm",
    ];
    DATA.contains(&name)
}

/// `of-less`
#[derive(Clone, Copy)]
struct Difference<'a> {
    of: &'a str,
    less: &'a str,
}

impl<'a> Difference<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let (of, less) = text.split_once('-')?;
        (is_local(of) && is_name(less)).then_some(Self { of, less })
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| !c.is_ascii_digit()) && !text.contains(['+', ' '])
}
