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
\t.weak\tteeperf_late_return
\t.hidden\tteeperf_late_return
teeperf_late_enter:
teeperf_late_exit:
teeperf_late_return:
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
    let own = parts.parts.iter().enumerate().filter(|(_, part)| part.function == number);
    for (at, part) in own {
        let mut tails = Tails {
            number,
            part: at,
            keeps: parts.is_r11_used,
            has_frames: part.frames.is_some(),
            text: String::new(),
            returns: BTreeMap::new(),
        };
        if std::mem::take(&mut is_entry) {
            let place = match function.mark.filter(|_| !late.counts_itself) {
                Some(mark) => mark,
                None => beginning(lines, part),
            };
            edits.before(place, tails.enter());
        } else if let Some(frames) = part.frames {
            let begins = frames.min(part.start);
            let begins = beginning_of_section(lines, function.label).unwrap_or(begins);
            edits.before(begins, told_apart(number));
        }
        for exit in jumps.exits(part) {
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

fn exit_hook(lines: &[Line<'_>], exit: &Exit<'_>, tails: &mut Tails, edits: &mut Edits) {
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
    }
}

/// Tails of one part.
struct Tails {
    number: usize,
    part: usize,
    /// r11 may hold an argument.
    keeps: bool,
    has_frames: bool,
    text: String,
    /// Labels of those that end so.
    returns: BTreeMap<String, String>,
}

impl Tails {
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
        let label = match self.returns.get(leaving) {
            Some(label) => label.clone(),
            None => self.leave_anew(leaving),
        };
        format!("{LOOK}\tjne\t{label}\n")
    }

    fn leave_anew(&mut self, leaving: &str) -> String {
        let (number, part) = (self.number, self.part);
        let label = format!(".Lteeperf_x{part}_{}", self.returns.len());
        self.returns.insert(leaving.into(), label.clone());
        let [keep, restore] = self.kept(leaving.contains("r11"));
        let address = format!("{label}:\n{keep}\tleaq\t.Lteeperf_f{number}(%rip), %r11\n");
        self.text += &address;
        self.text += &if leaving == "ret" && keep.is_empty() {
            "\tjmp\tteeperf_late_return\n".into()
        } else {
            format!("\tcall\tteeperf_late_exit\n{restore}\t{leaving}\n")
        };
        label
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
        if self.text.is_empty() {
            return String::new();
        }
        if !self.has_frames {
            return self.text;
        }
        let mut kept = part.kept.clone();
        kept.sort_unstable();
        kept.dedup();
        let restored = kept.iter().map(|register| format!("\t.cfi_restore {register}\n"));
        let restored: String = restored.collect();
        format!("\t.cfi_def_cfa 7, 8\n{restored}{}", self.text)
    }
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
