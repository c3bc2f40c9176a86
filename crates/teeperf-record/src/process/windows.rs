//! Windows of a process: where in the space of sites its modules are.

use crate::escapes::Module;
use std::collections::BTreeMap;

/// Windows by their first site. None overlap.
#[derive(Debug, Default)]
pub(super) struct Windows {
    modules: BTreeMap<u32, Module>,
    opened: usize,
}

/// Most windows open at a time.
const MAX_WINDOWS: usize = 4096;
/// Most windows ever: more than a program opens that loads and unloads a plugin two
/// thousand times an hour for a day.
const MAX_OPENED: usize = 1 << 16;

/// What became of a window.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opened {
    /// It was open already.
    Known,
    /// It is open now; those replaced are not any more.
    New {
        /// Those that overlapped with it, or the lowest where there were too many.
        replaced: Vec<Module>,
    },
    /// It is the first that is too many.
    TooMany,
    /// There were too many before.
    StillTooMany,
}

impl Windows {
    /// Those that are open.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Module> {
        self.modules.values()
    }

    /// The module that has this site.
    pub(super) fn at(&self, site: u32) -> Option<&Module> {
        let (_, module) = self.modules.range(..=site).next_back()?;
        (last(module) >= site).then_some(module)
    }

    /// Opens a window.
    pub(super) fn open(&mut self, module: &Module) -> Opened {
        if self.modules.get(&module.first_site) == Some(module) {
            return Opened::Known;
        }
        self.opened += 1;
        if self.opened >= MAX_OPENED {
            return if self.opened == MAX_OPENED { Opened::TooMany } else { Opened::StillTooMany };
        }
        let below_end = self.modules.range(..=last(module)).rev();
        let overlapping = below_end.take_while(|(_, other)| last(other) >= module.first_site);
        let overlapping: Vec<_> = overlapping.map(|(&first_site, _)| first_site).collect();
        let mut replaced: Vec<_> =
            overlapping.iter().filter_map(|first_site| self.modules.remove(first_site)).collect();
        if self.modules.len() >= MAX_WINDOWS {
            replaced.extend(self.modules.pop_first().map(|(_, lowest)| lowest));
        }
        self.modules.insert(module.first_site, module.clone());
        Opened::New { replaced }
    }
}

fn last(module: &Module) -> u32 {
    module.first_site + (module.sites - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn window(first_site: u32, sites: u32) -> Module {
        let (build_id, path, is_anchored) = (vec![], vec![], false);
        Module { first_site, sites, address: 0, bias: 0, is_anchored, build_id, path }
    }

    proptest! {
        #[test]
        fn windows_never_overlap(all in proptest::collection::vec((0x1000u32..0x9000, 1u32..0x2000), 0..60)) {
            let mut windows = Windows::default();
            for (first_site, sites) in all {
                windows.open(&window(first_site, sites));
                let open: Vec<_> = windows.iter().collect();
                for pair in open.windows(2) {
                    prop_assert!(pair[0].first_site + pair[0].sites <= pair[1].first_site);
                }
            }
        }
    }

    #[test]
    fn windows_are_limited() {
        let mut windows = Windows::default();
        let mut told = 0;
        for n in 0..MAX_OPENED as u32 + 100 {
            told += matches!(windows.open(&window(0x1000 + n * 16, 16)), Opened::TooMany) as u32;
            assert!(windows.modules.len() <= MAX_WINDOWS);
        }
        assert_eq!(told, 1);
    }
}
