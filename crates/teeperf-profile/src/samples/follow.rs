//! Follows a copy of a stack through the code of its process.

use std::cell::Cell;

use framehop::Module as Tables;
use teeperf_symbols::Rbx;
use teeperf_wire::body::sample::Sample;

use super::module::Bytes;
use super::modules::{Location, View};
use super::spaces::{Mapped, Space};
use super::unwind::{End, Locate, Stacks, Top};

/// The code that a stack leads through.
pub(super) struct Code<'a> {
    /// `e_machine` of it.
    pub(super) machine: u16,
    /// Nothing where none of the process is known.
    pub(super) space: Option<&'a Space>,
    pub(super) view: &'a mut View,
}

/// Puts what `make` makes of each instruction behind what is in `path`, the innermost first: of where it is in all modules, and its
/// address. Of callers that is one less than where calls return to.
pub(super) fn follow<T>(
    sample: &Sample<'_>,
    top: Top,
    Code { machine, space, view }: Code<'_>,
    stacks: &mut Stacks,
    path: &mut Vec<T>,
    make: impl Fn(Location, u64) -> T,
) -> End {
    let (before, address) = (path.len(), Cell::new(0));
    let mut locate = InSpace {
        space,
        last: None,
        address: &address,
        is_jitted: false,
        is_by_rbx: false,
        view,
        new: Vec::new(),
    };
    let mut outermost = Location::UNKNOWN;
    // A module's tables are there from the next time on: each is new once for each view.
    let end = loop {
        let end = stacks.follow(machine, sample, top, &mut locate, |at| {
            outermost = Location(at);
            path.push(make(outermost, address.get()));
        });
        if locate.new.is_empty() {
            break end;
        }
        for tables in locate.new.drain(..) {
            stacks.add(tables);
        }
        path.truncate(before);
        outermost = Location::UNKNOWN;
    };
    // Where a file is entered tables need not say that nobody called it: enclaves' entries have none.
    let is_whole = matches!(end, End::Cut | End::Beyond) && locate.view.is_entry(outermost);
    if is_whole { End::Whole } else { end }
}

/// Finds code in a process.
struct InSpace<'a> {
    space: Option<&'a Space>,
    /// What the address before was of: callers often are of the same.
    last: Option<&'a Mapped>,
    /// What was looked for last.
    address: &'a Cell<u64>,
    /// Whether that was made in memory.
    is_jitted: bool,
    /// Whether its frame may be told from RBX.
    is_by_rbx: bool,
    view: &'a mut View,
    /// Tables of modules that were not seen before.
    new: Vec<Tables<Bytes>>,
}

impl Locate for InSpace<'_> {
    fn locate(&mut self, address: u64) -> Option<u64> {
        self.address.set(address);
        let mapped = match self.last {
            Some(last) if last.has(address) => last,
            _ => self.space?.at(address)?,
        };
        self.last = Some(mapped);
        let (module, is_new) = self.view.module(mapped.module)?;
        self.is_jitted = module.is_jitted();
        if is_new {
            self.new.extend(module.tables(mapped.module));
        }
        let relative = module.relative(mapped.offset(address));
        self.is_by_rbx = module.is_by_rbx(relative);
        Some(Location::of(mapped.module, relative).0)
    }

    fn is_by_rbx(&self) -> bool {
        self.is_by_rbx
    }

    fn rbx(&mut self, location: u64) -> Option<Rbx> {
        let (id, relative) = Location(location).parts()?;
        self.view.module(id)?.0.rbx(relative)
    }

    fn is_jitted(&self) -> bool {
        self.is_jitted
    }
}
