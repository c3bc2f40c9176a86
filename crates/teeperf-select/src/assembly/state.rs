//! What registers and places on the stack hold.

use super::text::{Memory, register};
use super::values::{OTHER, Value, Values};
use std::ops::Index;

/// Numbers of rsp and rbp.
const RSP: usize = 4;
const RBP: usize = 5;

/// The general registers, and what was put by from them onto the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    registers: [Value; 16],
    /// Bytes from where rsp was first, where they are known.
    depth: Option<i64>,
    /// Values that are not just something else, in order of places.
    slots: Vec<(Slot, Value)>,
}

/// A place on the stack: told from where rsp was, or from where rbp points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Slot {
    base: usize,
    offset: i64,
}

impl State {
    /// Where a function begins.
    pub(super) fn new() -> Self {
        Self { registers: [OTHER; 16], depth: Some(0), slots: Vec::new() }
    }

    /// Either.
    pub(super) fn merged(&self, other: &Self, values: &mut Values<'_>) -> Self {
        let mut merged = self.clone();
        for (one, &more) in merged.registers.iter_mut().zip(&other.registers) {
            *one = values.merge(*one, more);
        }
        if self.depth != other.depth {
            merged.depth = None;
        }
        let mut slots: Vec<Slot> =
            self.slots.iter().chain(&other.slots).map(|(slot, _)| *slot).collect();
        slots.sort_unstable();
        slots.dedup();
        slots.retain(|slot| slot.base != RSP || merged.depth.is_some());
        let both = |slot| (slot, values.merge(self.slot(slot), other.slot(slot)));
        merged.slots = slots.into_iter().map(both).filter(|&(_, value)| value != OTHER).collect();
        merged
    }

    fn slot(&self, slot: Slot) -> Value {
        let found = self.slots.binary_search_by_key(&slot, |(slot, _)| *slot);
        found.map_or(OTHER, |at| self.slots[at].1)
    }

    fn place(&self, operand: &str) -> Option<Slot> {
        let Memory { displacement, base, index } = Memory::read(operand)?;
        let base = register(base).filter(|base| [RSP, RBP].contains(base) && index.is_empty())?;
        let offset =
            if displacement.is_empty() { 0 } else { displacement.parse::<i32>().ok()?.into() };
        let origin = if base == RSP { self.depth? } else { 0 };
        Some(Slot { base, offset: origin + offset })
    }

    /// What is in this place, if it is one of the stack.
    pub(super) fn load(&self, operand: &str) -> Option<Value> {
        self.place(operand).map(|slot| self.slot(slot))
    }

    /// Writes into this place, if it is one of the stack.
    pub(super) fn store(&mut self, operand: &str, value: Value) {
        let Some(slot) = self.place(operand) else { return };
        match self.slots.binary_search_by_key(&slot, |(slot, _)| *slot) {
            Ok(at) if value == OTHER => drop(self.slots.remove(at)),
            Ok(at) => self.slots[at].1 = value,
            Err(_) if value == OTHER => {}
            Err(at) => self.slots.insert(at, (slot, value)),
        }
    }

    /// rsp moves by so many bytes.
    pub(super) fn move_by(&mut self, bytes: i64) {
        self.depth = self.depth.map(|depth| depth.wrapping_add(bytes));
    }

    /// A register has another value. Where rsp then points is told from there anew: all ways lead through here.
    pub(super) fn forget(&mut self, register: usize) {
        self.registers[register] = OTHER;
        if [RSP, RBP].contains(&register) {
            self.slots.retain(|(slot, _)| slot.base != register);
        }
        if register == RSP {
            self.depth = Some(0);
        }
    }

    /// A register has this value.
    pub(super) fn set(&mut self, register: usize, value: Value) {
        self.forget(register);
        self.registers[register] = value;
    }
}

impl Index<usize> for State {
    type Output = Value;

    fn index(&self, register: usize) -> &Value {
        &self.registers[register]
    }
}
