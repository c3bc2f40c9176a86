//! Addresses as sites: each part of the address space that is called into gets a window of sites, the program's
//! code one of its own. What finds no window is told by its address, which takes longer and no room here.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use teeperf_wire::compose::Window;
use teeperf_wire::word::{self, FIRST_SITE, MAX_SITE};

use super::program::{Found, Program};

/// Bytes of address space in a window, as a power of two. There is room for a hundred such windows.
const WINDOW_BITS: u32 = 24;
/// Places of the cache, as a power of two.
const CACHE_BITS: u32 = 12;
/// Not the word of any call.
const NOTHING: u32 = 0;

/// What is known of an address.
pub(super) enum Site {
    /// This is its call word.
    Known(u32),
    /// Likewise, in a window that is to be told of first.
    InNew(Window, u32),
    /// It is in no window.
    Far,
}

/// See the module.
pub(super) struct Sites {
    /// Addresses seen last, with their call words.
    cache: Box<[(u64, u32)]>,
    /// First site of each part of the address space that has one.
    windows: HashMap<u64, u32>,
    /// Next site to be given out.
    next: u32,
    program: Option<ProgramWindow>,
}

struct ProgramWindow {
    window: Window,
    is_told: bool,
    found: Found,
}

impl Sites {
    pub(super) fn new(program: Option<Program>) -> Self {
        let mut sites = Self {
            cache: vec![(0, NOTHING); 1 << CACHE_BITS].into(),
            windows: HashMap::new(),
            next: FIRST_SITE,
            program: None,
        };
        if let Some(program) = program {
            let (address, bytes) = program.extent();
            if let Some(first_site) = sites.give_out(bytes) {
                let window = Window {
                    opens: true,
                    is_anchored: false,
                    first_site,
                    sites: bytes as u32,
                    address,
                    bias: program.bias(),
                };
                let found = Found::new(program);
                sites.program = Some(ProgramWindow { window, is_told: false, found });
            }
        }
        sites
    }

    /// What is known of an address.
    #[inline(always)]
    pub(super) fn of(&mut self, address: u64) -> Site {
        let (cached, word) = self.cache[place(address)];
        if cached == address && word != NOTHING { Site::Known(word) } else { self.look_up(address) }
    }

    #[inline(never)]
    fn look_up(&mut self, address: u64) -> Site {
        if let Some(program) = &mut self.program
            && let Some(site) = site_in(&program.window, address)
        {
            program.found.note(address);
            let word = word::call(site);
            self.cache[place(address)] = (address, word);
            if program.is_told {
                return Site::Known(word);
            }
            program.is_told = true;
            return Site::InNew(program.window, word);
        }
        let part = address >> WINDOW_BITS;
        let within = (address & ((1 << WINDOW_BITS) - 1)) as u32;
        if let Some(first) = self.windows.get(&part) {
            let word = word::call(first + within);
            self.cache[place(address)] = (address, word);
            return Site::Known(word);
        }
        let Some(first_site) = self.give_out(1 << WINDOW_BITS) else { return Site::Far };
        let Entry::Vacant(entry) = self.windows.entry(part) else { return Site::Far };
        entry.insert(first_site);
        let window = Window {
            opens: true,
            is_anchored: false,
            first_site,
            sites: 1 << WINDOW_BITS,
            address: part << WINDOW_BITS,
            bias: 0,
        };
        Site::InNew(window, word::call(first_site + within))
    }

    /// Room for a window, if there is some left.
    fn give_out(&mut self, bytes: u64) -> Option<u32> {
        let first = self.next;
        let end = u64::from(first).checked_add(bytes).filter(|&end| end <= u64::from(MAX_SITE))?;
        self.next = end as u32;
        Some(first)
    }

    /// Path and build-id of a window's module; empty where it is not known.
    pub(super) fn path(&self, window: &Window) -> (&[u8], &[u8]) {
        match &self.program {
            Some(program) if program.window.first_site == window.first_site => {
                program.found.module()
            }
            _ => (&[], &[]),
        }
    }

    /// Payloads of symbol packets for all that was seen.
    pub(super) fn symbols(&self) -> Vec<Vec<u8>> {
        let Some(program) = &self.program else { return Vec::new() };
        program
            .found
            .symbols(|address| site_in(&program.window, address), program.window.first_site)
    }

    /// Whether the program may be another.
    pub(super) fn doubt(&self) -> Option<String> {
        self.program.as_ref()?.found.doubt()
    }
}

fn site_in(window: &Window, address: u64) -> Option<u32> {
    let distance = address.wrapping_sub(window.address);
    (distance < u64::from(window.sites)).then(|| window.first_site + distance as u32)
}

/// Multiply-shift hashing. Whoever makes all addresses fall into one place makes this slower, and nothing else.
#[inline(always)]
fn place(address: u64) -> usize {
    (address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - CACHE_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_word_and_parts_have_windows_as_long_as_there_is_room() {
        let mut sites = Sites::new(None);
        let Site::InNew(window, first) = sites.of(0x7f00_1234_5678) else { panic!("no window") };
        assert_eq!((window.address, window.sites, window.bias), (0x7f00_1200_0000, 1 << 24, 0));
        let known = |sites: &mut Sites, address| match sites.of(address) {
            Site::Known(word) => word,
            _ => panic!("{address:#x} is not known"),
        };
        assert_eq!(known(&mut sites, 0x7f00_1234_5678), first);
        assert_eq!(known(&mut sites, 0x7f00_1234_5679), first + 2);
        assert_eq!(known(&mut sites, 0x7f00_12ff_ffff) >> 1, window.first_site + (1 << 24) - 1);
        let mut windows = 1;
        for part in 1..1000u64 {
            windows += u32::from(matches!(sites.of(part << 24), Site::InNew(..)));
        }
        assert_eq!(windows, 111);
        assert!(matches!(sites.of(u64::MAX), Site::Far));
        assert_eq!(known(&mut sites, 0x7f00_1234_5678), first);
    }
}
