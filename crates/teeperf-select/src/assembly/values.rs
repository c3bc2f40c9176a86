//! What registers can hold, as far as it matters: addresses of symbols. A value is the set of all that may be
//! there; sets are numbered, so that states of a program are small.

use std::collections::{HashMap, HashSet};

/// One of the things that a register may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Atom {
    /// Something else.
    Other,
    /// The address of the global offset table, to which other addresses are added with `-mcmodel=large`.
    Got,
    /// More than are told apart.
    Anything,
    /// The address of a symbol, by number; or how far it is from the table, or an entry of the jump table there.
    Symbol(u32),
}

/// A set of atoms, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Value(u32);

/// Nothing: no way leads there as far as is known.
pub(super) const NONE: Value = Value(0);
/// Something else, and that alone.
pub(super) const OTHER: Value = Value(1);

/// More than so many are not told apart.
const MOST_ATOMS: usize = 8;

/// Sets and symbols by number.
#[derive(Debug)]
pub(super) struct Values<'a> {
    sets: Vec<Vec<Atom>>,
    numbers: HashMap<Vec<Atom>, Value>,
    merged: HashMap<(Value, Value), Value>,
    symbols: Vec<&'a str>,
    /// Symbols whose addresses do not matter.
    passed_over: HashSet<&'a str>,
    by_name: HashMap<&'a str, u32>,
}

impl<'a> Values<'a> {
    /// These symbols' addresses are something else.
    pub(super) fn new(passed_over: HashSet<&'a str>) -> Self {
        let mut values = Self {
            sets: Vec::new(),
            numbers: HashMap::new(),
            merged: HashMap::new(),
            symbols: Vec::new(),
            passed_over,
            by_name: HashMap::new(),
        };
        values.number(Vec::new());
        values.number(vec![Atom::Other]);
        values
    }

    fn number(&mut self, set: Vec<Atom>) -> Value {
        if let Some(&known) = self.numbers.get(&set) {
            return known;
        }
        let number = Value(self.sets.len() as u32);
        self.sets.push(set.clone());
        self.numbers.insert(set, number);
        number
    }

    /// What is in a set, in order.
    pub(super) fn atoms(&self, value: Value) -> &[Atom] {
        &self.sets[value.0 as usize]
    }

    pub(super) fn name(&self, symbol: u32) -> &'a str {
        self.symbols[symbol as usize]
    }

    #[cfg(test)]
    /// The symbol, if it is that and nothing else.
    pub(super) fn only_symbol(&self, value: Value) -> Option<&'a str> {
        match self.atoms(value) {
            [Atom::Symbol(symbol)] => Some(self.name(*symbol)),
            _ => None,
        }
    }

    /// The address of a symbol, which may be of the table.
    pub(super) fn symbol(&mut self, name: &'a str) -> Value {
        if name == "_GLOBAL_OFFSET_TABLE_" {
            return self.number(vec![Atom::Got]);
        }
        if self.passed_over.contains(name) {
            return OTHER;
        }
        let symbol = *self.by_name.entry(name).or_insert_with(|| {
            self.symbols.push(name);
            self.symbols.len() as u32 - 1
        });
        self.number(vec![Atom::Symbol(symbol)])
    }

    /// Either.
    pub(super) fn merge(&mut self, a: Value, b: Value) -> Value {
        match (a, b) {
            (NONE, value) | (value, NONE) => return value,
            _ if a == b => return a,
            _ => {}
        }
        if let Some(&known) = self.merged.get(&(a, b)) {
            return known;
        }
        let mut set = [self.atoms(a), self.atoms(b)].concat();
        set.sort_unstable();
        set.dedup();
        if set.len() > MOST_ATOMS || set.contains(&Atom::Anything) {
            set = vec![Atom::Anything];
        }
        let merged = self.number(set);
        self.merged.insert((a, b), merged);
        merged
    }

    /// The sum.
    pub(super) fn add(&mut self, a: Value, b: Value) -> Value {
        let mut sum = NONE;
        for first in self.atoms(a).to_vec() {
            for second in self.atoms(b).to_vec() {
                let atom = self.sum(first, second);
                let one = self.number(vec![atom]);
                sum = self.merge(sum, one);
            }
        }
        sum
    }

    fn sum(&self, a: Atom, b: Atom) -> Atom {
        match (a, b) {
            // The place that the table is told from.
            (Atom::Got, Atom::Symbol(symbol)) | (Atom::Symbol(symbol), Atom::Got) => {
                match is_local(self.name(symbol)) {
                    true => Atom::Got,
                    false => Atom::Symbol(symbol),
                }
            }
            (Atom::Symbol(symbol), Atom::Other) | (Atom::Other, Atom::Symbol(symbol)) => {
                Atom::Symbol(symbol)
            }
            (Atom::Anything, _) | (_, Atom::Anything) => Atom::Anything,
            _ if a == b && a != Atom::Got => a,
            _ => Atom::Other,
        }
    }
}

/// Whether it is a name that the compiler made, and the assembler forgets.
pub(super) fn is_local(name: &str) -> bool {
    name.starts_with(".L")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_one_number_each() {
        let mut values = Values::new(["data"].into());
        let (f, g) = (values.symbol("f"), values.symbol("g"));
        assert_eq!(values.symbol("f"), f);
        assert_eq!(values.symbol("data"), OTHER);
        let both = values.merge(f, g);
        assert_eq!(values.merge(g, f), both);
        assert_eq!(values.merge(both, f), both);
        assert_eq!(values.merge(NONE, g), g);
        assert_eq!((values.only_symbol(f), values.only_symbol(both)), (Some("f"), None));
    }

    #[test]
    fn sets_that_grow_end() {
        let mut values = Values::new(HashSet::new());
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        let all = names.iter().fold(OTHER, |set, name| {
            let one = values.symbol(name);
            values.merge(set, one)
        });
        assert_eq!(values.atoms(all), [Atom::Anything]);
        let one = values.symbol("a");
        assert_eq!(values.merge(all, one), all);
        assert_eq!(values.merge(one, all), all);
    }

    #[test]
    fn sums() {
        let mut values = Values::new(["data"].into());
        let (f, g) = (values.symbol("f"), values.symbol("g"));
        let (here, got) = (values.symbol(".L1"), values.symbol("_GLOBAL_OFFSET_TABLE_"));
        assert_eq!(values.add(here, got), got);
        assert_eq!(values.add(f, got), f);
        assert_eq!(values.add(OTHER, f), f);
        assert_eq!(values.add(f, g), OTHER);
        let either = values.merge(f, OTHER);
        assert_eq!(values.add(either, got), either);
    }
}
