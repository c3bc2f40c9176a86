//! Takes hooks out of the assembly that gcc or clang wrote for x86-64.
//!
//! A hook's call says in its first argument of which function it is: gcc hooks functions before they are inlined, so
//! that code of one has hooks of many. So what that argument is is followed through the code (`flow`), and calls of
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
pub mod late;
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
use teeperf_symbols::{demangle, spellings};
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

impl Options<'_> {
    /// Whether a function is wanted; notes which patterns it fits.
    fn wants(&self, name: &str, known: &Names<'_>, met: &mut Vec<bool>) -> bool {
        let whole = demangle(name);
        let spellings = spellings(&whole);
        let names: Vec<&str> =
            std::iter::once(name).chain(spellings.iter().map(AsRef::as_ref)).collect();
        let code = known.resolve(name);
        let file = known.files.get(name).or_else(|| known.files.get(code));
        let files = file.map(|path| (self.paths)(path)).unwrap_or_default();
        let size = known.sizes.get(code).copied();
        let function = Function { names: &names, files: &files, size };
        self.selection.note(&function, met);
        self.selection.wants(&function)
    }
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

/// What came of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filtered {
    /// The file without the hooks of functions that are not wanted. Whatever is no hook is as it was.
    pub text: Vec<u8>,
    /// Which of the selection's patterns a function with hooks fits, in the order of [`Selection::lines`]; empty where no
    /// function has hooks.
    pub met: Vec<bool>,
}

/// Takes out the hooks of functions that are not wanted.
pub fn filter(text: &[u8], options: &Options<'_>) -> Result<Filtered, Error> {
    let lines = text::lines(text);
    let mut edits = Edits::default();
    if options.drop_line_info {
        lineinfo::drop(&lines, &mut edits);
    }
    check(text, &lines)?;
    let graph = Graph::new(&lines);
    let data = passed_over(&lines, &graph);
    let mut values = Values::new(data.clone());
    let hooks = hooks(text, &lines, &mut values, &graph)?;
    let mut met = Vec::new();
    if !hooks.is_empty() {
        let loads: Vec<_> = hooks.iter().flat_map(|hook| edit::loads(&lines, hook.line)).collect();
        let mut counts: Vec<bool> = vec![true; lines.len()];
        for &line in loads.iter().chain(hooks.iter().map(|hook| &hook.line)) {
            counts[line] = false;
        }
        let names = Names::new(text, &lines, |line| counts[line]);
        let mut judge = Judge {
            options,
            lines: &lines,
            graph: &graph,
            data: &data,
            names,
            known: HashMap::new(),
            met: Vec::new(),
        };
        for hook in &hooks {
            let leaves_out =
                judge.leaves_out(hook, &values).map_err(|NotKnown| form(text, hook.line))?;
            match leaves_out {
                Some(out) if out.is_empty() => {}
                Some(out) => edits
                    .call_but_for(&lines, hook.line, hook.is_jump, &out)
                    .ok_or_else(|| form(text, hook.line))?,
                None => edits.remove_call(&lines, hook.line, hook.is_jump),
            }
        }
        met = judge.met;
    }
    Ok(Filtered { text: edits.apply(text), met })
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
            Line::Directive(".intel_syntax", _)
                if mentions(text, HOOK) || mentions(text, late::MARK) =>
            {
                return Err(Error::Syntax { line: at + 1 });
            }
            _ => {}
        }
    }
    Ok(())
}

fn mentions(text: &[u8], word: &str) -> bool {
    text.windows(word.len()).any(|part| part == word.as_bytes())
}

/// All calls of hooks, in order.
fn hooks<'a>(
    text: &'a [u8],
    lines: &[Line<'a>],
    values: &mut Values<'a>,
    graph: &Graph<'a>,
) -> Result<Vec<Hook>, Error> {
    let mut hooks = Vec::new();
    if !mentions(text, HOOK) {
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

/// Of which function a hook is cannot be told.
struct NotKnown;

/// Decides of functions, once for each.
struct Judge<'o, 'a> {
    options: &'o Options<'o>,
    lines: &'o [Line<'a>],
    graph: &'o Graph<'a>,
    /// Symbols that are no functions.
    data: &'o HashSet<&'a str>,
    names: Names<'a>,
    known: HashMap<&'a str, bool>,
    /// Patterns that some function fits.
    met: Vec<bool>,
}

impl<'a> Judge<'_, 'a> {
    /// Functions for which this call is not to be made: nothing where it is to be made for none.
    fn leaves_out(
        &mut self,
        hook: &Hook,
        values: &Values<'a>,
    ) -> Result<Option<Vec<&'a str>>, NotKnown> {
        let mut symbols = self.symbols(hook.argument, values);
        let is_known = symbols.len() == values.atoms(hook.argument).len() && !symbols.is_empty();
        if !is_known {
            // It is one of those whose addresses are loaded somewhere in this code.
            symbols.extend(self.loaded(hook.function));
            symbols.sort_unstable();
            symbols.dedup();
        }
        if symbols.is_empty() {
            return Err(NotKnown);
        }
        let out: Vec<&str> = symbols.iter().copied().filter(|&name| !self.wants(name)).collect();
        Ok((out.is_empty() || out.len() < symbols.len() || !is_known).then_some(out))
    }

    /// Symbols whose addresses are loaded in the code of a function, but for data.
    fn loaded(&self, function: usize) -> Vec<&'a str> {
        let blocks = self
            .graph
            .blocks
            .iter()
            .enumerate()
            .filter(|(at, _)| self.graph.function(*at) == function);
        let lines = blocks.flat_map(|(_, lines)| &self.lines[lines.clone()]);
        let is_code =
            |name: &&str| !is_local(name) && !name.starts_with(HOOK) && !self.data.contains(name);
        lines.filter_map(edit::loaded).filter(is_code).collect()
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
        let wanted = self.options.wants(name, &self.names, &mut self.met);
        self.known.insert(name, wanted);
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The file without the hooks of `f`.
    fn without_f(text: &str) -> Result<String, Error> {
        let selection = Selection { exclude: vec!["f".parse().unwrap()], ..Selection::default() };
        let options =
            Options { selection: &selection, drop_line_info: false, paths: &|_| Vec::new() };
        let filtered = filter(text.as_bytes(), &options)?;
        Ok(String::from_utf8(filtered.text).unwrap())
    }

    fn function(code: &str) -> String {
        format!("\t.text\n\t.type\th, @function\nh:\n{code}\n\t.size\th, .-h\n")
    }

    const ENTER: &str = "__cyg_profile_func_enter";

    #[test]
    fn calls_of_all_forms_go() {
        for (code, left) in [
            ("\tleaq\tf(%rip), %rdi\n\tmovq\t24(%rsp), %rsi\n\tcall\tENTER@PLT\n\tret", "\tret"),
            ("\tmovl\t$f, %edi\n\tcall\tENTER\n\tret", "\tret"),
            ("\tmovq\tf@GOTPCREL(%rip), %rdi\n\tcall\t*ENTER@GOTPCREL(%rip)\n\tret", "\tret"),
            // What holds the address otherwise stays: something else may need it.
            (
                "\tleaq\tf(%rip), %rbx\n\tmovq\t%rbx, %rdi\n\tcallq\tENTER@PLT\n\tret",
                "\tleaq\tf(%rip), %rbx\n\tret",
            ),
            // The hook's return was the function's.
            ("\tleaq\tf(%rip), %rdi\n\tpopq\t%rbx\n\tjmp\tENTER@PLT", "\tpopq\t%rbx\n\tret"),
            ("\tleaq\tf(%rip), %rdi\n\tjmp\t*ENTER@GOTPCREL(%rip)", "\tret"),
            (
                "\tmovabsq\t$ENTER, %rax\n\tmovabsq\t$f, %rdi\n\tcall\t*%rax\n\tret",
                "\tmovabsq\t$ENTER, %rax\n\tret",
            ),
            // An argument that is used before stays.
            (
                "\tleaq\tf(%rip), %rdi\n\tmovq\t%rdi, %rbx\n\tcall\tENTER\n\tret",
                "\tleaq\tf(%rip), %rdi\n\tmovq\t%rdi, %rbx\n\tret",
            ),
        ] {
            let code = code.replace("ENTER", ENTER);
            let left = left.replace("ENTER", ENTER);
            assert_eq!(without_f(&function(&code)), Ok(function(&left)), "{code}");
            let other = function(&code.replace("f(", "g(").replace("$f", "$g").replace("f@", "g@"));
            assert_eq!(without_f(&other), Ok(other.clone()));
        }
    }

    #[test]
    fn patterns_that_fit_are_known() {
        let selection: Selection = "only f\nonly g\nexclude nosuch\n".parse().unwrap();
        let options =
            Options { selection: &selection, drop_line_info: false, paths: &|_| Vec::new() };
        let met = |code: &str| filter(function(code).as_bytes(), &options).unwrap().met;
        assert_eq!(met(&format!("\tmovl\t$f, %edi\n\tcall\t{ENTER}\n\tret")), [true, false, false]);
        assert!(met("\tret").is_empty());
    }

    #[test]
    fn one_call_for_several_is_made_for_those_that_are_wanted() {
        let code = format!(
            "\tleaq\tf(%rip), %rdi\n\ttestl\t%eax, %eax\n\tje\t.L1\n\tleaq\tg(%rip), %rdi\n.L1:\n\tjmp\t{ENTER}@PLT"
        );
        let left = without_f(&function(&code)).unwrap();
        let guarded = format!(
            ".L1:\n\tleaq\tf(%rip), %r11\n\tcmpq\t%r11, %rdi\n\tje\t.Lteeperf0\n\tjmp\t{ENTER}@PLT\n.Lteeperf0:\n\tret\n"
        );
        assert!(left.contains(&guarded), "{left}");
    }

    #[test]
    fn what_is_not_followed_is_compared() {
        let code = format!(
            "\tleaq\tf(%rip), %rax\n\tmovq\t%rax, %xmm1\n\tmovq\t%xmm1, %rdi\n\tcall\t{ENTER}\n\tret"
        );
        let left = without_f(&function(&code)).unwrap();
        assert!(left.contains("\tcmpq\t%r11, %rdi\n\tje\t.Lteeperf0\n"), "{left}");
    }

    #[test]
    fn tables_of_jumps_and_catches_are_followed() {
        // Of the two ways that lead to each call, one is by a table, or by an exception.
        let by_table = format!(
            "\tleaq\tf(%rip), %rbx\n\tleaq\t.L4(%rip), %rdx\n\tmovslq\t(%rdx,%rax,4), %rax\n\taddq\t%rdx, %rax\n\t\
             notrack jmp\t*%rax\n\t.section\t.rodata\n.L4:\n\t.long\t.L5-.L4\n\t.text\n.L5:\n\tmovq\t%rbx, %rdi\n\tcall\t{ENTER}\n\tret"
        );
        let by_catch = format!(
            "\tleaq\tf(%rip), %rbx\n.LEHB0:\n\tcall\tg\n.LEHE0:\n\tret\n.L5:\n\tmovq\t%rbx, %rdi\n\tcall\t{ENTER}\n\tret\n\
             \t.section\t.gcc_except_table,\"a\"\n\t.uleb128 .LEHB0-.LFB0\n\t.uleb128 .LEHE0-.LEHB0\n\t.uleb128 .L5-.LFB0\n\t.text"
        );
        for code in [by_table, by_catch] {
            let left = without_f(&function(&code)).unwrap();
            assert!(!left.contains(ENTER) && !left.contains(".Lteeperf"), "{left}");
        }
    }

    #[test]
    fn what_is_not_known_is_an_error() {
        for code in [
            "\tleaq\tf(%rip), %rdi\n\tje\tENTER",
            "\tmovq\t8(%rax), %rdi\n\tcall\tENTER",
            // There is no way to compare with it.
            "\tmovabsq\t$f@GOTOFF, %rax\n\tmovq\t8(%rcx), %rdi\n\tcall\tENTER",
            "\tpushq\t$ENTER\n\tret",
            "\tmovabsq\t$ENTER, %rax\n\ttestl\t%ecx, %ecx\n\tje\t.L1\n\tmovq\t8(%rcx), %rax\n.L1:\n\tleaq\tf(%rip), %rdi\n\tcall\t*%rax",
        ] {
            let said = without_f(&function(&code.replace("ENTER", ENTER)));
            assert!(matches!(said, Err(Error::Form { .. })), "{code}: {said:?}");
        }
        let intel = format!("\t.intel_syntax noprefix\n{}", function(&format!("\tcall\t{ENTER}")));
        assert_eq!(without_f(&intel), Err(Error::Syntax { line: 1 }));
        assert_eq!(without_f("\t.section\t.gnu.lto_.decls,\"e\"\n"), Err(Error::NoCode));
    }

    proptest! {
        #[test]
        fn any_text_is_filtered_or_refused(
            parts in prop::collection::vec(prop::sample::select(vec![
                "\t.type\tf, @function\n", "f:\n", ".L1:\n", "\tcall\t__cyg_profile_func_enter\n", "\tleaq\tf(%rip), %rdi\n",
                "\tjmp\t.L1\n", "\tje\t.L1\n", "\tjmp\t*%rax\n", "\tleaq\t.L1(%rip), %rax\n", "\t.section\t.rodata\n",
                "\t.long\t.L1-f\n", "\t.text\n", "\tpushq\t%rbx\n", "#APP\n", "#NO_APP\n", "\t.loc 1 2 3\n", "(,\"%$@\n", "\tmovq\t%rdi, 8(%rsp)\n",
                "\tmovq\t8(%rsp), %rdi\n", "\t.section\t.gcc_except_table\n", "\t.uleb128 .L1-f\n", "\tret\n", "\tcmovne\t%rax, %rdi\n",
            ]), 0..60)
        ) {
            let selection = Selection { exclude: vec!["f".parse().unwrap()], ..Selection::default() };
            let options = Options { selection: &selection, drop_line_info: true, paths: &|_| Vec::new() };
            let _ = filter(parts.concat().as_bytes(), &options);
        }
    }
}
