//! Takes hooks out of the assembly that gcc or clang wrote for x86-64.
//!
//! A hook's call says in its first argument of which function it is: gcc hooks functions before they are inlined, so
//! that code of one has hooks of many. So what that argument is is followed through the code ([`flow`]), and calls of
//! functions that are not wanted go. To take a call away is always safe: the code around it allows for everything
//! that a call may change, and uses nothing of what it leaves. What loaded its arguments goes with it where nothing
//! else can need it. A jump to a hook in place of a call and a return becomes the return.
//!
//! Where one call serves several functions and not all are wanted, it is made only for these, by a comparison in front of it.
//! A form that is not known is an [`Error`].

mod edit;
mod flow;
mod graph;
mod instruction;
mod lineinfo;
mod names;
mod state;
mod text;
mod values;

use crate::{Function, Selection};
use edit::Edits;
use graph::Graph;
use names::Names;
use std::collections::{HashMap, HashSet};
use teeperf_symbols::{demangle, demangle_without_parameters};
use text::{Line, operands};
use values::{Atom, Value, Values, is_local};

/// What the compiler calls.
const HOOK: &str = "__cyg_profile_func_";

/// How a file is to be gone through.
pub struct Options<'a> {
    /// What is wanted.
    pub selection: &'a Selection,
    /// Take out line information, which was asked for only to know the files of functions.
    pub drop_line_info: bool,
    /// Whole paths of a file as the compiler names it.
    pub paths: &'a dyn Fn(&str) -> Vec<String>,
}

/// What keeps hooks from being taken out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// With `-flto` code is made when the program is linked.
    #[error("this is no code yet, as with -flto: hooks cannot be taken out of it")]
    NoCode,
    /// `-masm=intel`
    #[error(
        "line {line}: this is Intel's syntax (-masm=intel), of which hooks cannot be taken out"
    )]
    Syntax {
        /// From 1 on.
        line: usize,
    },
    /// A use of a hook that is not known.
    #[error("line {line}: hooks cannot be taken out of this, which is not of a known form: {text}")]
    Form {
        /// From 1 on.
        line: usize,
        /// What stands there.
        text: String,
    },
}

/// The file without the hooks of functions that are not wanted. Whatever is no hook stays as it is.
pub fn filter(text: &[u8], options: &Options<'_>) -> Result<Vec<u8>, Error> {
    let lines = text::lines(text);
    let mut edits = Edits::default();
    if options.drop_line_info {
        lineinfo::drop(&lines, &mut edits);
    }
    check(text, &lines)?;
    let graph = Graph::new(&lines);
    let mut values = Values::new(passed_over(&lines, &graph));
    let hooks = hooks(text, &lines, &mut values, &graph)?;
    if !hooks.is_empty() {
        let loads: Vec<_> = hooks.iter().flat_map(|hook| edit::loads(&lines, hook.line)).collect();
        let mut counts: Vec<bool> = vec![true; lines.len()];
        for &line in loads.iter().chain(hooks.iter().map(|hook| &hook.line)) {
            counts[line] = false;
        }
        let names = Names::new(text, &lines, |line| counts[line]);
        let mut judge = Judge { options, names, known: HashMap::new() };
        for hook in &hooks {
            let leaves_out = judge.leaves_out(hook, &hooks, &values);
            match leaves_out {
                Some(out) if out.is_empty() => {}
                Some(out) => edits
                    .call_but_for(&lines, hook.line, hook.is_jump, &out)
                    .ok_or_else(|| form(text, hook.line))?,
                None => edits.remove_call(&lines, hook.line, hook.is_jump),
            }
        }
    }
    Ok(edits.apply(text))
}

/// A call of a hook.
struct Hook {
    line: usize,
    /// It is a jump, and the hook's return is the function's.
    is_jump: bool,
    /// The function's address.
    argument: Value,
    /// In whose code it stands.
    function: usize,
}

/// What can be known without a look at the code.
fn check(text: &[u8], lines: &[Line<'_>]) -> Result<(), Error> {
    for (at, line) in lines.iter().enumerate() {
        match line {
            Line::Directive(".section", rest)
                if rest.starts_with(".gnu.lto_") || rest.starts_with(".llvm.lto") =>
            {
                return Err(Error::NoCode);
            }
            Line::Directive(".intel_syntax", _) if mentions_hooks(text) => {
                return Err(Error::Syntax { line: at + 1 });
            }
            _ => {}
        }
    }
    Ok(())
}

fn mentions_hooks(text: &[u8]) -> bool {
    text.windows(HOOK.len()).any(|part| part == HOOK.as_bytes())
}

/// All calls of hooks, in order.
fn hooks<'a>(
    text: &'a [u8],
    lines: &[Line<'a>],
    values: &mut Values<'a>,
    graph: &Graph<'a>,
) -> Result<Vec<Hook>, Error> {
    let mut hooks = Vec::new();
    if !mentions_hooks(text) {
        return Ok(hooks);
    }
    for leaving in flow::leavings(lines, values, graph) {
        let is_hook = |atom: &Atom| matches!(atom, Atom::Symbol(symbol) if values.name(*symbol).starts_with(HOOK));
        let targets = values.atoms(leaving.target);
        if !targets.iter().any(is_hook) {
            continue;
        }
        let is_jump = match lines[leaving.line] {
            Line::Instruction("call" | "callq", _) => false,
            Line::Instruction("jmp" | "jmpq", _) => true,
            _ => return Err(form(text, leaving.line)),
        };
        if !targets.iter().all(is_hook) {
            return Err(form(text, leaving.line));
        }
        hooks.push(Hook {
            line: leaving.line,
            is_jump,
            argument: leaving.argument,
            function: leaving.function,
        });
    }
    for (at, line) in lines.iter().enumerate() {
        let is_known = match line {
            Line::Instruction(mnemonic, rest) if rest.contains(HOOK) => {
                let found = hooks.binary_search_by_key(&at, |hook| hook.line);
                let is_load = mnemonic.starts_with("mov") || mnemonic.starts_with("lea");
                found.is_ok()
                    || is_load
                        && operands(rest)
                            .nth(1)
                            .is_some_and(|target| text::register(target).is_some())
            }
            Line::Instruction(_, rest) => {
                !rest.starts_with("__x86_indirect_thunk") || !loads_hooks(lines)
            }
            _ => true,
        };
        if !is_known {
            return Err(form(text, at));
        }
    }
    Ok(hooks)
}

/// Data: it has addresses, too, but none of functions.
fn passed_over<'a>(lines: &[Line<'a>], graph: &Graph<'a>) -> HashSet<&'a str> {
    let is_of_jumps = |name: &str| graph.at.contains_key(name) || graph.tables.contains_key(name);
    let of = |line: &Line<'a>| match *line {
        Line::Directive(".type", rest) => {
            let (name, kind) = rest.split_once(',')?;
            (kind.trim() == "@object").then(|| text::unquoted(name.trim()))
        }
        Line::Label(name) => Some(name).filter(|name| is_local(name)),
        _ => None,
    };
    lines.iter().filter_map(of).filter(|name| !is_of_jumps(name)).collect()
}

/// Whether addresses of hooks are in registers.
fn loads_hooks(lines: &[Line<'_>]) -> bool {
    lines.iter().any(|line| matches!(line, Line::Instruction(mnemonic, rest) if mnemonic.starts_with("mov") && rest.contains(HOOK)))
}

fn form(text: &[u8], line: usize) -> Error {
    let found = text.split(|&byte| byte == b'\n').nth(line).unwrap_or_default();
    Error::Form { line: line + 1, text: String::from_utf8_lossy(found).trim().to_owned() }
}

/// Decides of functions, once for each.
struct Judge<'o, 'a> {
    options: &'o Options<'o>,
    names: Names<'a>,
    known: HashMap<&'a str, bool>,
}

impl<'a> Judge<'_, 'a> {
    /// Functions for which this call is not to be made: nothing where it is to be made for none.
    fn leaves_out(
        &mut self,
        hook: &Hook,
        all: &[Hook],
        values: &Values<'a>,
    ) -> Option<Vec<&'a str>> {
        let mut symbols = self.symbols(hook.argument, values);
        let is_known = symbols.len() == values.atoms(hook.argument).len() && !symbols.is_empty();
        if !is_known {
            // It is one of those whose hooks are called in this code.
            let beside = all.iter().filter(|other| other.function == hook.function);
            symbols.extend(beside.flat_map(|other| self.symbols(other.argument, values)));
            symbols.sort_unstable();
            symbols.dedup();
        }
        let out: Vec<&str> = symbols.iter().copied().filter(|&name| !self.wants(name)).collect();
        (out.is_empty() || out.len() < symbols.len() || !is_known).then_some(out)
    }

    fn symbols(&self, value: Value, values: &Values<'a>) -> Vec<&'a str> {
        let name = |atom: &Atom| match atom {
            Atom::Symbol(symbol) => Some(values.name(*symbol)),
            _ => None,
        };
        values.atoms(value).iter().filter_map(name).collect()
    }

    fn wants(&mut self, name: &'a str) -> bool {
        if let Some(&known) = self.known.get(name) {
            return known;
        }
        let (whole, bare) = (demangle(name), demangle_without_parameters(name));
        let code = self.names.resolve(name);
        let file = self.names.files.get(name).or_else(|| self.names.files.get(code));
        let files = file.map(|path| (self.options.paths)(path)).unwrap_or_default();
        let size = self.names.sizes.get(code).copied();
        let wanted = self.options.selection.wants(&Function {
            names: [&whole, &bare, name],
            files: &files,
            size,
        });
        self.known.insert(name, wanted);
        wanted
    }
}
