//! Hooked functions that end with a call which would be a jump if no hook stood behind it, and that such calls can lead
//! back to. A jump needs no stack, and the call does: the depth of such functions grows with their work.
//!
//! Read from the machine's code of x86-64: a call, then what hands on its result unchanged, the exit hook and the return.
//! Code is not taken apart from a function's beginning, so bytes of a constant may look like a call; what stands behind
//! them must then look like a function's end. A function that takes the address of something on its stack is left out:
//! compilers make no jump there, as the callee may use it.

use crate::called::code;
use crate::functions::of_kind;
use crate::image::Image;
use crate::{Error, Functions, Search};
use object::elf;
use std::collections::{HashMap, HashSet};
use std::path::Path;

mod ends;

use ends::{Called, Ends};

/// What the linker knows the exit hook by: its two names have one address.
const HOOKS: [&str; 2] = ["teeperf_scope_exit", "__cyg_profile_func_exit"];
/// Bytes of an entry of a relocation table, and of a symbol table.
const RELOCATION: usize = 24;
const SYMBOL: usize = 24;

/// A function that calls in tail position can lead back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TailCaller {
    /// Its name as the linker knows it.
    pub name: String,
    /// Whether only calls through pointers lead back: which function they call, the code does not say. It may be any whose
    /// address stands in a table.
    pub through_pointers: bool,
}

/// Those of a program or library, by address. On other processors than x86-64, and without hooks, none.
///
/// # Errors
///
/// When the file cannot be read, is no ELF executable or shared library, is malformed, or is not of the build that `search`
/// asks for.
pub fn tail_callers(path: &Path, search: &Search) -> Result<Vec<TailCaller>, Error> {
    of(&search.open(path)?, search)
}

/// The same of a file that is in memory; `path` is for errors, and to look for a debug file beside it.
///
/// # Errors
///
/// As for [`tail_callers`].
pub fn tail_callers_from_bytes(
    path: &Path,
    bytes: Vec<u8>,
    search: &Search,
) -> Result<Vec<TailCaller>, Error> {
    of(&search.check(Image::from_bytes(path, bytes)?)?, search)
}

fn of(image: &Image, search: &Search) -> Result<Vec<TailCaller>, Error> {
    let functions = Functions::of(image, search)?;
    let hook = HOOKS.iter().find_map(|name| functions.named(name));
    let Some(hook) = hook.filter(|_| image.machine == elf::EM_X86_64) else {
        return Ok(Vec::new());
    };
    // Functions that lie over one another must not keep this at work for long.
    let mut work = 8 * image.length;
    let mut calls: HashMap<u64, HashSet<Called>> = HashMap::new();
    for function in functions.iter() {
        work = work.saturating_sub(function.size);
        if work == 0 {
            break;
        }
        let Some(code) = code(image, function.start, function.size) else { continue };
        let ends = Ends { code: &code, start: function.start, hook: hook.start };
        let is_function = |called: &Called| match called {
            Called::Pointer => true,
            Called::To(to) => functions
                .at(*to)
                .is_some_and(|there| there.start == *to && !there.name.ends_with("@plt")),
        };
        let found: HashSet<Called> = ends.calls().into_iter().filter(is_function).collect();
        if !found.is_empty() {
            calls.insert(function.start, found);
        }
    }
    let in_tables = in_tables(image, &calls)?;
    let direct = circles(&calls, &HashSet::new());
    let mut all: Vec<u64> = circles(&calls, &in_tables).into_iter().collect();
    all.sort_unstable();
    let told = all.into_iter().filter_map(|start| {
        let name = functions.at(start)?.name.into_owned();
        Some(TailCaller { name, through_pointers: !direct.contains(&start) })
    });
    Ok(told.collect())
}

/// Which functions calls lead back to, where a call through a pointer may reach any of `in_tables`: those are left that have
/// a caller and a callee among those that are left.
fn circles(calls: &HashMap<u64, HashSet<Called>>, in_tables: &HashSet<u64>) -> HashSet<u64> {
    let starts: Vec<u64> = calls.keys().copied().collect();
    let numbers: HashMap<u64, usize> = starts.iter().copied().zip(0..).collect();
    // All pointers are one place, behind the functions.
    let pointers = starts.len();
    let mut callees: Vec<Vec<usize>> = starts
        .iter()
        .map(|start| {
            let number = |called: &Called| match called {
                Called::To(to) => numbers.get(to).copied(),
                Called::Pointer => Some(pointers),
            };
            calls[start].iter().filter_map(number).collect()
        })
        .collect();
    callees.push(in_tables.iter().filter_map(|start| numbers.get(start).copied()).collect());
    let mut callers = vec![Vec::new(); callees.len()];
    for (from, list) in callees.iter().enumerate() {
        list.iter().for_each(|&to| callers[to].push(from));
    }
    let mut counts: [Vec<usize>; 2] =
        [&callees, &callers].map(|all| all.iter().map(Vec::len).collect());
    let mut is_left = vec![true; callees.len()];
    let is_end = |counts: &[Vec<usize>; 2], at: usize| counts[0][at] == 0 || counts[1][at] == 0;
    let mut ends: Vec<usize> = (0..callees.len()).filter(|&at| is_end(&counts, at)).collect();
    while let Some(at) = ends.pop() {
        if !std::mem::replace(&mut is_left[at], false) {
            continue;
        }
        // Its callers have a callee less, its callees a caller.
        for (side, others) in [&callers[at], &callees[at]].into_iter().enumerate() {
            for &other in others {
                counts[side][other] -= 1;
                if is_left[other] && is_end(&counts, other) {
                    ends.push(other);
                }
            }
        }
    }
    starts
        .into_iter()
        .zip(is_left)
        .filter(|(_, is_left)| *is_left)
        .map(|(start, _)| start)
        .collect()
}

/// Which of the functions have their address in data: in relocations, or as it is.
fn in_tables(
    image: &Image,
    functions: &HashMap<u64, HashSet<Called>>,
) -> Result<HashSet<u64>, Error> {
    let mut found = HashSet::new();
    let mut meet = |address: u64| {
        if functions.contains_key(&address) {
            found.insert(address);
        }
    };
    let symbols = match of_kind(image, elf::SHT_DYNSYM) {
        Some(section) => image.content(section)?,
        None => Vec::new(),
    };
    for section in &image.sections {
        let is_data = section.kind == elf::SHT_PROGBITS
            && section.flags & u64::from(elf::SHF_ALLOC) != 0
            && section.code().is_none();
        if is_data {
            image.content(section)?.chunks_exact(8).filter_map(number).for_each(&mut meet);
        } else if section.kind == elf::SHT_RELA {
            for entry in image.content(section)?.chunks_exact(RELOCATION) {
                let [Some(info), Some(addend)] = [&entry[8..], &entry[16..]].map(number) else {
                    continue;
                };
                // The number of a symbol, whose value stands behind its first eight bytes.
                let symbol = (info >> 32) as usize * SYMBOL + 8;
                let value = symbols.get(symbol..).and_then(number).unwrap_or(0);
                meet(value.wrapping_add(addend));
            }
        }
    }
    Ok(found)
}

fn number(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_lead_back() {
        let calls = |list: &[(u64, &[Called])]| -> HashMap<u64, HashSet<Called>> {
            list.iter().map(|(from, to)| (*from, to.iter().copied().collect())).collect()
        };
        let sorted = |set: HashSet<u64>| {
            let mut list: Vec<u64> = set.into_iter().collect();
            list.sort_unstable();
            list
        };
        use Called::{Pointer, To};
        let graph = calls(&[
            (1, &[To(1)]),
            (2, &[To(3)]),
            (3, &[To(2), To(9)]),
            (4, &[To(2)]),
            (5, &[Pointer]),
            (6, &[To(5)]),
            (7, &[Pointer]),
        ]);
        assert_eq!(sorted(circles(&graph, &HashSet::new())), [1, 2, 3]);
        // A dispatcher that no table has, and a handler that one has.
        assert_eq!(sorted(circles(&graph, &[6].into())), [1, 2, 3, 5, 6]);
        assert!(circles(&calls(&[(1, &[To(2)]), (2, &[Pointer])]), &HashSet::new()).is_empty());
    }
}
