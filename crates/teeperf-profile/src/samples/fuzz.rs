//! Any bytes as a file with code, and as registers and a stack; and as what a just-in-time compiler tells.

use teeperf_wire::body::sample::{Numbers, Sample, abi};

use super::jitted::{Told, lines};
use super::module::Module;
use super::modules::{Location, ModuleId};
use super::unwind::{Locate, MAX_FRAMES, Stacks, Top, machine};

/// The only module of an address space: its addresses are locations. At odd ones it is as if the code had been made in memory.
struct Alone {
    is_odd: bool,
}

impl Locate for Alone {
    fn locate(&mut self, address: u64) -> Option<u64> {
        let (module, _) = Location(address).parts()?;
        self.is_odd = !address.is_multiple_of(2);
        (module == ModuleId(0)).then_some(address)
    }

    fn is_jitted(&self) -> bool {
        self.is_odd
    }
}

/// Follows the stack that `bytes` are, through the file that `file` is, on each processor; and asks what is at each place.
pub(crate) fn any_stack(file: &[u8], bytes: &[u8]) {
    let Some(module) = Module::from_bytes(file) else { return };
    let mut stacks = Stacks::new();
    if let Some(tables) = module.tables(ModuleId(0)) {
        stacks.add(tables);
    }
    // Of each machine the registers are all there: numbers up to 33.
    let count = (bytes.len() / 8).min(33);
    let (registers, stack) = bytes.split_at(8 * count);
    let registers = Numbers::of(registers);
    let mask = (1 << count) - 1;
    for machine in [machine::X86_64, machine::AARCH64, machine::I386, machine::ARM, machine::RISCV]
    {
        for abi in [abi::BITS_64, abi::BITS_32] {
            let sample = Sample { abi, mask, registers, stack, ..Sample::default() };
            for top in [Top::Interrupted, Top::Called] {
                let mut found = Vec::new();
                stacks.follow(machine, &sample, top, &mut Alone { is_odd: false }, |location| {
                    found.push(Location(location));
                });
                assert!(found.len() <= MAX_FRAMES);
                for location in found {
                    if let Some((_, relative)) = location.parts() {
                        assert!(!module.functions(relative).1.is_empty());
                    }
                }
            }
        }
    }
}

/// Lines that are looked for one by one, at most.
const MAX_LINES: usize = 200;

/// Compares what is found in a text with the last line that has an address.
pub(crate) fn any_perf_map(bytes: &[u8]) {
    let told = Told::parse(bytes.to_vec());
    let lines: Vec<_> = lines(bytes).collect();
    for line in lines.iter().take(MAX_LINES) {
        for address in [line.begin, line.end - 1] {
            let last = lines.iter().rev().find(|line| line.has(address));
            assert_eq!(told.at(address), last.map(|last| last.name(bytes)));
        }
    }
}
