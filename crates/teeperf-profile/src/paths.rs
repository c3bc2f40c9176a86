//! Which call paths fit a regular expression. A path is written `main;parse;malloc`, the outermost caller first, and
//! the expression is to be found in it.
//!
//! The expression becomes an automaton whose state after a path is that after its caller's path and a few bytes
//! more. So each node costs the length of its own name, however deep it stands, where to write each path
//! out would take the square of the depth of a recursion.

use std::fmt;
use std::sync::Arc;

use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::util::primitives::StateID;
use regex_automata::util::{start, syntax};

use crate::model::{Function, Tree};

/// Bytes that an automaton may have, and that may be used to make it. Expressions that need more are refused.
const MOST_BYTES: usize = 4 << 20;

/// An expression for call paths. Letters and digits of `\w`, `\d` and `\b` are those of ASCII; `.` is any byte.
#[derive(Clone)]
pub struct PathPattern {
    text: String,
    automaton: Arc<dense::DFA<Vec<u32>>>,
}

impl PathPattern {
    /// Of this text, in the syntax of the crate `regex`.
    ///
    /// # Errors
    ///
    /// What is wrong with it: it is no regular expression, or takes more than 4 MiB.
    pub fn new(text: &str) -> Result<Self, String> {
        let config = dense::Config::new()
            .start_kind(StartKind::Unanchored)
            .dfa_size_limit(Some(MOST_BYTES))
            .determinize_size_limit(Some(MOST_BYTES));
        let syntax = syntax::Config::new().unicode(false).utf8(false).dot_matches_new_line(true);
        let nfa = regex_automata::nfa::thompson::Config::new()
            .utf8(false)
            .nfa_size_limit(Some(MOST_BYTES));
        let built =
            dense::Builder::new().configure(config).syntax(syntax).thompson(nfa).build(text);
        match built {
            Ok(automaton) => Ok(Self { text: text.to_owned(), automaton: Arc::new(automaton) }),
            Err(error) => {
                let why = reason(&error);
                let is_large = error.is_size_limit_exceeded() || why.contains("exceeded limit");
                Err(if is_large {
                    "it takes more than 4 MiB: repeat less in it".into()
                } else {
                    why
                })
            }
        }
    }

    /// The text that it is of.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is found in the path of each node. The root has no path, and never fits.
    pub fn fits(&self, tree: &Tree, functions: &[Function]) -> Vec<bool> {
        let Ok(start) = self.automaton.start_state(&start::Config::new()) else {
            return vec![false; tree.nodes.len()];
        };
        let names: Vec<String> = functions.iter().map(|function| written(&function.name)).collect();
        // Of each node: the state after its path, or nothing where it was found in a part of it.
        let mut states: Vec<Option<StateID>> = Vec::with_capacity(tree.nodes.len());
        let mut out = Vec::with_capacity(tree.nodes.len());
        for (at, node) in tree.nodes.iter().enumerate() {
            if at == 0 {
                states.push(Some(start));
                out.push(false);
                continue;
            }
            let name = names.get(node.function.0 as usize).map_or("[unknown]", String::as_str);
            let separator = if node.parent == 0 { "" } else { ";" };
            let state = states[node.parent as usize].and_then(|state| {
                let mut bytes = separator.bytes().chain(name.bytes());
                bytes.try_fold(state, |state, byte| {
                    let next = self.automaton.next_state(state, byte);
                    (!self.automaton.is_match_state(next)).then_some(next)
                })
            });
            out.push(state.is_none_or(|state| {
                self.automaton.is_match_state(self.automaton.next_eoi_state(state))
            }));
            states.push(state);
        }
        out
    }
}

/// A name as it stands in a path, as in folded stacks: without what separates names, on one line.
fn written(name: &str) -> String {
    name.chars().map(|c| if c == ';' { ':' } else { c }).filter(|c| !c.is_control()).collect()
}

/// What the parser says, on one line.
fn reason(error: &dense::BuildError) -> String {
    let cause = std::error::Error::source(error).map_or_else(|| error.to_string(), deepest);
    let last = cause.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

fn deepest(error: &(dyn std::error::Error + 'static)) -> String {
    error.source().map_or_else(|| error.to_string(), deepest)
}

impl fmt::Debug for PathPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("PathPattern").field(&self.text).finish()
    }
}

impl PartialEq for PathPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for PathPattern {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{FunctionId, Node, Time};
    use proptest::prelude::*;

    const NAMES: [&str; 6] = ["main", "parse", "parser", "m;x", "é", "read_2"];

    fn tree(parents: &[(u32, u32)]) -> (Tree, Vec<Function>) {
        let node = |parent, function| Node {
            parent,
            function: FunctionId(function),
            calls: 1,
            self_time: Time::default(),
            total: Time::default(),
            extremes: None,
            spent: Default::default(),
        };
        let mut nodes = vec![node(0, 0)];
        for (at, &(parent, function)) in parents.iter().enumerate() {
            nodes.push(node(parent % (at as u32 + 1), function % NAMES.len() as u32));
        }
        let function = |name: &&str| Function { name: (*name).to_owned(), ..Function::default() };
        (Tree { nodes }, NAMES.iter().map(function).collect())
    }

    fn paths(tree: &Tree) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for (at, node) in tree.nodes.iter().enumerate() {
            let name = written(NAMES[node.function.0 as usize]);
            out.push(match (at, node.parent) {
                (0, _) => String::new(),
                (_, 0) => name,
                (_, parent) => format!("{};{name}", out[parent as usize]),
            });
        }
        out
    }

    proptest! {
        /// As a search in each path, written out, tells.
        #[test]
        fn each_path_is_searched(parents in prop::collection::vec((any::<u32>(), any::<u32>()), 0..60), which in 0usize..11) {
            let text = ["main;parse", "^main;.*read", "parse$", r"\bparse\b", "(^|;)parser(;|$)", "^[^;]+$", "é;main",
                "parse.*parse", "", r"\d", "m:x"][which];
            let (tree, functions) = tree(&parents);
            let found = PathPattern::new(text).unwrap().fits(&tree, &functions);
            let whole = regex_lite::Regex::new(text).unwrap();
            for (at, path) in paths(&tree).iter().enumerate().skip(1) {
                prop_assert_eq!(found[at], whole.is_match(path), "{} in {}", text, path);
            }
            prop_assert!(!found[0]);
        }
    }

    #[test]
    fn a_recursion_costs_its_length_and_not_the_square() {
        let chain: Vec<(u32, u32)> = (0..400_000).map(|at| (at, 1)).collect();
        let (tree, functions) = tree(&chain);
        let found = PathPattern::new("^(parse;){3}parse$").unwrap().fits(&tree, &functions);
        assert_eq!(found.iter().filter(|found| **found).count(), 1);
    }

    #[test]
    fn what_is_no_expression_or_too_large_is_refused() {
        let why = |text: &str| PathPattern::new(text).unwrap_err();
        assert_eq!(why("a(b"), "unclosed group");
        for text in ["(a{1000}){1000}", "[ab]*a[ab]{40}"] {
            assert!(why(text).contains("4 MiB"), "{text}: {}", why(text));
        }
    }
}
