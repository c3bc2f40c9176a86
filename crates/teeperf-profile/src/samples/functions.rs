//! Functions of all workers, each once, and what locations stand for: one function, or those that were inlined into one
//! another there.

use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use super::module::Named;
use super::modules::{ModuleId, lock};

/// Most functions told apart; a hostile file of names can have any number.
const MAX_FUNCTIONS: usize = 1 << 22;

/// All of them.
#[derive(Default)]
pub(crate) struct Functions {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    numbers: FxHashMap<(Arc<str>, Arc<str>), u32>,
    list: Vec<Function>,
}

/// A function.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: Arc<str>,
    pub(crate) module: Arc<str>,
    /// Where its code begins, in which file, where it is known.
    pub(crate) start: Option<(ModuleId, u64)>,
    /// Source file and line.
    pub(crate) defined: Option<(String, Option<u32>)>,
}

impl Functions {
    /// The number of a function.
    pub(crate) fn number(&self, id: Option<ModuleId>, module: &str, named: Named) -> u32 {
        let mut known = lock(&self.known);
        let key: (Arc<str>, Arc<str>) = (named.name.into(), module.into());
        if let Some(&number) = known.numbers.get(&key) {
            let start = named.start.and_then(|start| Some((id?, start)));
            let there = &mut known.list[number as usize];
            // Of several of one name the lowest is shown, whichever a worker came upon first.
            if start.is_some() && there.start.is_none_or(|known| start < Some(known)) {
                (there.start, there.defined) = (start, named.defined);
            } else if there.start.is_none() && named.defined.is_some() {
                // Of what was inlined alone, the first by file.
                let known = there.defined.take();
                there.defined = known.into_iter().chain(named.defined).min();
            }
            return number;
        }
        if known.list.len() >= MAX_FUNCTIONS {
            return 0;
        }
        let number = known.list.len() as u32;
        let start = named.start.and_then(|start| Some((id?, start)));
        let (name, module) = key.clone();
        known.list.push(Function { name, module, start, defined: named.defined });
        known.numbers.insert(key, number);
        number
    }

    /// All that there are, by number.
    pub(crate) fn all(&self) -> Vec<Function> {
        lock(&self.known).list.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_was_inlined_alone_the_first_file_is_shown_in_any_order() {
        let inlined =
            |file: &str| Named { defined: Some((file.into(), Some(7))), ..Named::plain("min") };
        for order in [["a.h", "b.h"], ["b.h", "a.h"]] {
            let functions = Functions::default();
            for file in order {
                functions.number(Some(ModuleId(0)), "lib", inlined(file));
            }
            functions.number(Some(ModuleId(0)), "lib", Named::plain("min"));
            assert_eq!(functions.all()[0].defined, Some(("a.h".into(), Some(7))));
        }
    }

    #[test]
    fn of_one_name_the_lowest_is_shown_in_any_order() {
        let at = |start: u64| Named {
            start: Some(start),
            defined: Some(("file".into(), Some(start as u32))),
            ..Named::plain("init")
        };
        for order in [[5, 9, 7], [9, 5, 7], [7, 9, 5]] {
            let functions = Functions::default();
            let number = functions.number(Some(ModuleId(0)), "lib", Named::plain("init"));
            for start in order {
                assert_eq!(functions.number(Some(ModuleId(0)), "lib", at(start)), number);
            }
            let [only] = &functions.all()[..] else { panic!("one function") };
            assert_eq!(only.start, Some((ModuleId(0), 5)));
            assert_eq!(only.defined, Some(("file".into(), Some(5))));
        }
    }
}
