//! What registers hold at each call, over all ways that lead there.

use super::graph::Graph;
use super::instruction::{self, Flow, flow, symbol};
use super::state::State;
use super::text::{Line, Memory, register};
use super::values::{Atom, NONE, OTHER, Value, Values};
use std::collections::BTreeSet;

/// Where control leaves the code that is looked at, for a function. Of code that nothing leads to, nothing is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    /// Its line.
    pub(super) line: usize,
    /// What is called.
    pub(super) target: Value,
    /// The first argument.
    pub(super) argument: Value,
    /// Of which function the code is.
    pub(super) function: usize,
}

/// All calls, and jumps that are none within the file's code, in the order of lines.
pub(super) fn leavings<'a>(
    lines: &[Line<'a>],
    values: &mut Values<'a>,
    graph: &Graph<'a>,
) -> Vec<Leaving> {
    let mut walk = Walk {
        before: vec![None; graph.blocks.len()],
        waiting: BTreeSet::new(),
        lines,
        graph,
        values,
    };
    for &entry in &graph.entries {
        walk.reach(entry, &State::new());
    }
    walk.run();
    // Cold parts that are functions: nothing jumps there, but calls.
    for &part in &graph.parts {
        if walk.before[part].is_none() {
            walk.reach(part, &State::new());
            walk.run();
        }
    }
    let mut found = Vec::new();
    for block in 0..graph.blocks.len() {
        walk.pass(block, &mut |leaving| found.push(leaving));
    }
    found
}

struct Walk<'w, 'a> {
    /// What registers hold where each block begins.
    before: Vec<Option<State>>,
    /// Blocks to pass through once more: the first of them next, since most ways lead down.
    waiting: BTreeSet<usize>,
    lines: &'w [Line<'a>],
    graph: &'w Graph<'a>,
    values: &'w mut Values<'a>,
}

impl<'a> Walk<'_, 'a> {
    /// Goes on until nothing more is learnt.
    fn run(&mut self) {
        while let Some(block) = self.waiting.pop_first() {
            self.pass(block, &mut |_| {});
        }
    }

    /// A way leads to this block with these registers.
    fn reach(&mut self, block: usize, state: &State) {
        let merged = match &self.before[block] {
            None => state.clone(),
            Some(known) => known.merged(state, self.values),
        };
        if self.before[block].as_ref() != Some(&merged) {
            self.before[block] = Some(merged);
            self.waiting.insert(block);
        }
    }

    fn pass(&mut self, block: usize, tell: &mut impl FnMut(Leaving)) {
        let known = self.before[block].clone();
        let is_reached = known.is_some();
        let mut state = known.unwrap_or_else(State::new);
        let lines = self.graph.blocks[block].clone();
        let function = self.graph.function(block);
        let mut goes_on = true;
        for line in lines {
            match self.lines[line] {
                Line::Foreign(text) => {
                    instruction::step_foreign(&mut state, text);
                    for (at, _) in text.match_indices(".L") {
                        let end = text[at..]
                            .find(|c: char| !c.is_ascii_alphanumeric() && !"._$".contains(c));
                        let name = &text[at..end.map_or(text.len(), |end| at + end)];
                        self.reach_label(name, &state);
                    }
                }
                Line::Instruction(mnemonic, rest) => match flow(mnemonic, rest) {
                    Flow::Next => instruction::step(&mut state, mnemonic, rest, self.values),
                    Flow::Call(operand) => {
                        let target = target(&state, operand, self.values);
                        tell(Leaving {
                            line,
                            target,
                            argument: if is_reached { state[7] } else { NONE },
                            function,
                        });
                        instruction::step_call(&mut state);
                        if let Some(pad) = self.graph.catch(line) {
                            self.reach(pad, &state);
                        }
                        goes_on = !never_returns(target, self.values);
                    }
                    Flow::Branch(operand) => {
                        if !self.reach_label(operand, &state) {
                            let target = target(&state, operand, self.values);
                            tell(Leaving {
                                line,
                                target,
                                argument: if is_reached { state[7] } else { NONE },
                                function,
                            });
                        }
                    }
                    Flow::Jump(operand) => {
                        goes_on = false;
                        if !self.reach_label(operand, &state) {
                            let target = target(&state, operand, self.values);
                            tell(Leaving {
                                line,
                                target,
                                argument: if is_reached { state[7] } else { NONE },
                                function,
                            });
                            if operand.starts_with('*') {
                                self.reach_by_table(block, target, &state);
                            }
                        }
                    }
                    Flow::End => goes_on = false,
                },
                Line::Directive(".cfi_endproc" | ".size" | ".section" | ".text", _) => {
                    goes_on = false
                }
                _ => {}
            }
        }
        if goes_on && is_reached && block + 1 < self.graph.blocks.len() {
            self.reach(block + 1, &state);
        }
    }

    /// Whether it is a label of this file's code.
    fn reach_label(&mut self, name: &str, state: &State) -> bool {
        let block = self.graph.at.get(super::text::unquoted(name)).copied();
        if let Some(block) = block {
            self.reach(block, state);
        }
        block.is_some()
    }

    fn reach_by_table(&mut self, block: usize, target: Value, state: &State) {
        let table = |atom: &Atom| match atom {
            Atom::Symbol(symbol) => Some(self.values.name(*symbol)),
            _ => None,
        };
        let tables: Option<Vec<&str>> = self.values.atoms(target).iter().map(table).collect();
        for next in self.graph.targets(block, tables.as_deref()) {
            self.reach(next, state);
        }
    }
}

/// What a call or a jump with this operand leads to.
fn target<'a>(state: &State, operand: &'a str, values: &mut Values<'a>) -> Value {
    let Some(place) = operand.strip_prefix('*') else {
        return symbol(operand).map_or(OTHER, |name| values.symbol(name));
    };
    if let Some(number) = register(place) {
        return state[number];
    }
    let Some(memory) = Memory::read(place) else { return OTHER };
    let named =
        symbol(memory.displacement).filter(|name| !name.is_empty()).map(|name| values.symbol(name));
    let parts = [memory.base, memory.index].map(|name| register(name).map(|number| state[number]));
    match (memory.displacement, named) {
        // An entry of the table of addresses, or of one of jumps.
        (_, Some(named)) => named,
        ("" | "0", None) => match parts {
            [Some(base), Some(index)] => values.add(base, index),
            [one, other] => one.or(other).unwrap_or(OTHER),
        },
        _ => OTHER,
    }
}

/// Functions behind whose calls code stands that no way leads to from there. Of those that are not known, what is
/// said of that code is less exact.
fn never_returns(target: Value, values: &Values<'_>) -> bool {
    const NEVER: [&str; 11] = [
        "abort",
        "exit",
        "_exit",
        "_Exit",
        "__assert_fail",
        "__stack_chk_fail",
        "__cxa_throw",
        "__cxa_rethrow",
        "_Unwind_Resume",
        "__cxa_bad_cast",
        "__clang_call_terminate",
    ];
    let is_one =
        |name: &str| NEVER.contains(&name) || name.starts_with("_ZSt") && name.contains("__throw_");
    let atoms = values.atoms(target);
    let is_known =
        |atom: &Atom| matches!(atom, Atom::Symbol(symbol) if is_one(values.name(*symbol)));
    !atoms.is_empty() && atoms.iter().all(is_known)
}
