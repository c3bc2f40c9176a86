//! The text of hooks.

use super::super::edit::Edits;
use super::super::text::Line;
use super::Late;
use super::exits::{Exit, Jumps, Kind};
use super::part::{Part, Parts, stands_first};
use std::collections::BTreeMap;
use std::fmt::Write;
use teeperf_wire::hook::{gate, late};

/// Hooks that are off: an object brings them for programs that are linked without the stub. Where the
/// stub is there, its symbols count.
pub(super) const ABSENT: &str = "\
\t.section\t.data.teeperf_absent,\"awG\",@progbits,teeperf_absent,comdat
\t.p2align\t3
\t.weak\tteeperf_gate
\t.hidden\tteeperf_gate
teeperf_gate:
\t.long\t0, 0, 1, 0
\t.section\t.text.teeperf_absent,\"axG\",@progbits,teeperf_absent,comdat
\t.weak\tteeperf_late_enter
\t.hidden\tteeperf_late_enter
\t.weak\tteeperf_late_exit
\t.hidden\tteeperf_late_exit
teeperf_late_enter:
teeperf_late_exit:
\tret
";

const _: () = assert!(gate::LATE == 8 && gate::LATE_OFF == 1);

/// The comparison that a hook begins with.
const LOOK: &str = "\tcmpl\t$1, teeperf_gate+8(%rip)\n";

/// Gives one function its hooks.
pub(super) fn hooks<'a>(
    lines: &[Line<'a>],
    parts: &Parts<'a>,
    number: usize,
    late: Late,
    jumps: &Jumps<'_, 'a>,
    edits: &mut Edits,
) {
    let function = &parts.functions[number];
    edits.behind(function.label, format!(".Lteeperf_f{number}:\n"));
    let mut is_entry = true;
    let own = || parts.parts.iter().enumerate().filter(|(_, part)| part.function == number);
    let exits: Vec<Vec<Exit<'_>>> = own().map(|(_, part)| jumps.exits(part)).collect();
    let is_unsure = exits.iter().flatten().any(|exit| matches!(exit.kind, Kind::Unsure { .. }));
    // Within the function, r11 may be in use where it jumps.
    let has_r11 = || own().all(|(_, part)| !is_r11_used(&lines[part.start..part.end]));
    let code: Vec<Stretch> = match is_unsure && has_r11() {
        true => own().map(|(at, part)| Stretch::new(lines, function.label, at, part)).collect(),
        false => Vec::new(),
    };
    for ((at, part), exits) in own().zip(exits) {
        let mut tails = Tails {
            number,
            part: at,
            keeps: parts.is_r11_used,
            has_frames: part.frames.is_some(),
            code: &code,
            text: String::new(),
            returns: BTreeMap::new(),
        };
        if std::mem::take(&mut is_entry) {
            let place = match function.mark.filter(|_| !late.counts_itself) {
                Some(mark) => mark,
                None => beginning(lines, part),
            };
            let apart = if is_jumped_to(lines, part, place) { "\tnop\n" } else { "" };
            edits.before(place, tails.enter() + apart);
        } else if let Some(frames) = part.frames {
            let begins = frames.min(part.start);
            let begins = beginning_of_section(lines, function.label).unwrap_or(begins);
            edits.before(begins, told_apart(number));
        }
        for exit in exits {
            exit_hook(lines, &exit, &mut tails, edits);
        }
        edits.before(part.end, tails.finish(part));
    }
}

/// Says whose a part is that is not the function's beginning, in front of it: the unwinder knows no
/// more of the part than where it begins.
fn told_apart(number: usize) -> String {
    format!("\t.long\t{}\n\t.long\t.Lteeperf_f{number}-.\n", late::PART)
}

/// gcc's label for where the part that stands apart will begin, in front of the function. Tables of
/// exceptions count from there.
fn beginning_of_section(lines: &[Line<'_>], function: usize) -> Option<usize> {
    let is_code = |line: &Line<'_>| {
        matches!(
            line,
            Line::Instruction(..) | Line::Foreign(_) | Line::Directive(".cfi_endproc", _)
        )
    };
    let before = lines[..function].iter().rposition(is_code).map_or(0, |at| at + 1);
    let begins = |line: &Line<'_>| matches!(line, Line::Label(name) if name.starts_with(".LCOLDB"));
    lines[before..function].iter().rposition(begins).map(|at| before + at)
}

fn exit_hook(lines: &[Line<'_>], exit: &Exit<'_>, tails: &mut Tails<'_>, edits: &mut Edits) {
    let Line::Instruction(mnemonic, rest) = lines[exit.line] else { return };
    let leaving = if rest.is_empty() { mnemonic.into() } else { format!("{mnemonic}\t{rest}") };
    match exit.kind {
        Kind::Always => edits.before(exit.line, tails.leave(&leaving)),
        Kind::Branch { otherwise, target } => {
            let jump = format!("jmp\t{target}");
            let label = format!(".Lteeperf_b{}", exit.line);
            let hook = tails.leave(&jump);
            let text = format!("\t{otherwise}\t{label}\n{hook}\t{jump}\n{label}:\n");
            edits.replace(exit.line, text);
        }
        Kind::Unsure { address } => {
            if let Some(hook) = tails.leave_unsurely(&leaving, address) {
                edits.before(exit.line, hook);
            }
        }
    }
}

/// A part's code by its labels: its first instruction, and what is behind its last.
struct Stretch {
    start: String,
    end: String,
}

impl Stretch {
    fn new(lines: &[Line<'_>], function: usize, at: usize, part: &Part<'_>) -> Self {
        let start = match lines[part.start] {
            // The name of one that stands apart is known in this file alone.
            Line::Label(name) if part.start != function => name.to_owned(),
            _ => format!(".Lteeperf_f{}", part.function),
        };
        Self { start, end: end_of(at) }
    }
}

/// Whether an instruction has r11 as an operand.
fn is_r11_used(lines: &[Line<'_>]) -> bool {
    let has = |line: &Line<'_>| match *line {
        Line::Instruction(_, rest) => rest.contains("%r11"),
        _ => false,
    };
    lines.iter().any(has)
}

/// Label behind a part's code.
fn end_of(part: usize) -> String {
    format!(".Lteeperf_z{part}")
}

/// Tails of one part.
struct Tails<'c> {
    number: usize,
    part: usize,
    /// r11 may hold an argument.
    keeps: bool,
    has_frames: bool,
    /// All of the function's code, where jumps may lead back to it and r11 is free meanwhile.
    code: &'c [Stretch],
    text: String,
    /// Labels of those that end so.
    returns: BTreeMap<String, String>,
}

impl Tails<'_> {
    fn enter(&mut self) -> String {
        let (number, part) = (self.number, self.part);
        let [keep, restore] = self.kept(false);
        // Writing to a string does not fail.
        let _ = write!(
            self.text,
            ".Lteeperf_e{part}:\n{keep}\tleaq\t.Lteeperf_f{number}(%rip), %r11\n\
             \tcall\tteeperf_late_enter\n{restore}\tjmp\t.Lteeperf_g{part}\n"
        );
        format!("{LOOK}\tjne\t.Lteeperf_e{part}\n.Lteeperf_g{part}:\n")
    }

    /// A hook in front of what leaves the function so.
    fn leave(&mut self, leaving: &str) -> String {
        self.look(leaving, |tails, _| tails.exit(leaving))
    }

    /// A hook in front of a jump to the address that stands in `operand`, unless it is one of the
    /// function's own code. None where r11 is not free for that.
    fn leave_unsurely(&mut self, leaving: &str, operand: &str) -> Option<String> {
        let is_free = !self.keeps && !self.code.is_empty();
        is_free.then(|| self.look(leaving, |tails, at| tails.unsure_exit(leaving, operand, at)))
    }

    /// A look at the gate and a branch to the tail that leaves the function so: a known one, or the
    /// text that `tail` makes of its number.
    fn look(&mut self, leaving: &str, tail: impl FnOnce(&Self, usize) -> String) -> String {
        let label = match self.returns.get(leaving) {
            Some(label) => label.clone(),
            None => {
                let number = self.returns.len();
                let label = format!(".Lteeperf_x{}_{number}", self.part);
                self.text += &format!("{label}:\n{}", tail(self, number));
                self.returns.insert(leaving.into(), label.clone());
                label
            }
        };
        format!("{LOOK}\tjne\t{label}\n")
    }

    fn exit(&self, leaving: &str) -> String {
        let [keep, restore] = self.kept(leaving.contains("r11"));
        let number = self.number;
        // Debuggers step over what is called, and stop in code without lines that is jumped to.
        format!(
            "{keep}\tleaq\t.Lteeperf_f{number}(%rip), %r11\n\tcall\tteeperf_late_exit\n\
             {restore}\t{leaving}\n"
        )
    }

    fn unsure_exit(&self, leaving: &str, operand: &str, count: usize) -> String {
        let (number, part) = (self.number, self.part);
        // Registers of thunks have names without a mark.
        let is_register = operand.starts_with('r') && !operand.contains('(');
        let operand = if is_register { format!("%{operand}") } else { operand.to_owned() };
        let stays = format!(".Lteeperf_s{part}_{count}");
        let mut text = String::new();
        for (at, Stretch { start, end }) in self.code.iter().enumerate() {
            // At the function's own beginning it is called once more.
            let below = if at == 0 { "jbe" } else { "jb" };
            let other = format!(".Lteeperf_o{part}_{count}_{at}");
            // Writing to a string does not fail.
            let _ = write!(
                text,
                "\tleaq\t{start}(%rip), %r11\n\tcmpq\t%r11, {operand}\n\t{below}\t{other}\n\
                 \tleaq\t{end}(%rip), %r11\n\tcmpq\t%r11, {operand}\n\tjb\t{stays}\n{other}:\n"
            );
        }
        text + &format!(
            "{LOOK}\tje\t{stays}\n\tleaq\t.Lteeperf_f{number}(%rip), %r11\n\
             \tcall\tteeperf_late_exit\n{stays}:\n\t{leaving}\n"
        )
    }

    /// Instructions that keep r11 where it is needed, and that give it back.
    fn kept(&self, is_needed: bool) -> [&'static str; 2] {
        match (self.keeps || is_needed, self.has_frames) {
            (true, true) => [
                "\tpushq\t%r11\n\t.cfi_adjust_cfa_offset 8\n",
                "\tpopq\t%r11\n\t.cfi_adjust_cfa_offset -8\n",
            ],
            (true, false) => ["\tpushq\t%r11\n", "\tpopq\t%r11\n"],
            (false, _) => ["", ""],
        }
    }

    /// All tails, with the frame as it was where the function began.
    fn finish(self, part: &Part<'_>) -> String {
        let is_asked_for = !self.code.is_empty();
        let end = if is_asked_for { format!("{}:\n", end_of(self.part)) } else { String::new() };
        if self.text.is_empty() || !self.has_frames {
            return end + &self.text;
        }
        let mut kept = part.kept.clone();
        kept.sort_unstable();
        kept.dedup();
        let restored = kept.iter().map(|register| format!("\t.cfi_restore {register}\n"));
        let restored: String = restored.collect();
        format!("{end}\t.cfi_def_cfa 7, 8\n{restored}{}", self.text)
    }
}

/// Whether the function jumps to its first instruction behind an entry's hook at this line. A
/// sample there is one of the hook's last instruction, unless there is another one in between.
fn is_jumped_to(lines: &[Line<'_>], part: &Part<'_>, place: usize) -> bool {
    let code = &lines[place..part.end];
    let is_label = |line: &&Line<'_>| !matches!(line, Line::Instruction(..) | Line::Foreign(_));
    // The mark is an instruction of its own, which goes away.
    let labels = code.iter().skip(1).take_while(is_label);
    let mut names = labels.filter_map(|line| match *line {
        Line::Label(name) => Some(name),
        _ => None,
    });
    names.any(|name| {
        let jumps = |line: &Line<'_>| matches!(*line, Line::Instruction(_, to) if to == name);
        code.iter().any(jumps)
    })
}

/// Line of the first instruction behind what must stand first.
fn beginning(lines: &[Line<'_>], part: &Part<'_>) -> usize {
    let is_first = |line: &Line<'_>| match *line {
        Line::Instruction(mnemonic, rest) => !stands_first(mnemonic, rest),
        Line::Foreign(_) => true,
        _ => false,
    };
    (part.start..part.end).find(|&at| is_first(&lines[at])).unwrap_or(part.end)
}
