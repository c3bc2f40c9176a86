//! Libraries in namespaces of the dynamic loader's (dlmopen(3)), which find no runtime: the recorder is told of
//! those with hooks.

use crate::heirs;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;
use teeperf_wire::heirs::reason;

/// The namespace of the program.
const LM_ID_BASE: usize = 0;
/// Most libraries that one call loads, and most that are remembered.
const MOST: usize = 256;
/// Those that were looked at.
static SEEN: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];

/// The beginning of the loader's `struct link_map` (link.h).
#[repr(C)]
struct LinkMap {
    base: usize,
    name: usize,
    dynamic: *const [usize; 2],
    next: *const LinkMap,
}

/// A library was loaded into a namespace, with those that it needs: `library` is what `dlmopen` gave.
#[cfg_attr(feature = "object", unsafe(no_mangle))]
pub extern "C" fn teeperf_rt_namespace(library: usize, namespace: usize) {
    if namespace == LM_ID_BASE {
        return;
    }
    let mut next = library as *const LinkMap;
    for _ in 0..MOST {
        // SAFETY: null, or the loader's list, which grows at its end and loses nothing that is open.
        let Some(map) = (unsafe { next.as_ref() }) else { return };
        // SAFETY: a library that is loaded.
        if is_new(map) && unsafe { has_hooks(map) } {
            heirs::refuse(reason::NAMESPACE, 0);
        }
        next = map.next;
    }
}

fn is_new(map: &LinkMap) -> bool {
    let address = &raw const *map as usize;
    let is_it = |seen: &AtomicUsize| {
        let before = seen.compare_exchange(0, address, Relaxed, Relaxed);
        before.map_or_else(|before| (before == address).then_some(false), |_| Some(true))
    };
    SEEN.iter().find_map(is_it).unwrap_or(false)
}

/// Whether a library refers to the runtime: the name stands in the table of its dynamic symbols' names.
///
/// # Safety
/// It is loaded, by a loader that has put addresses in place of offsets into its dynamic section.
unsafe fn has_hooks(map: &LinkMap) -> bool {
    const DT_NULL: usize = 0;
    const DT_STRTAB: usize = 5;
    const DT_STRSZ: usize = 10;
    const NAME: &[u8] = b"teeperf_rt_register\0";
    let (mut table, mut size, mut entry) = (0, 0, map.dynamic);
    // SAFETY: the section ends in an entry of kind 0.
    while let Some(&[kind, value]) = unsafe { entry.as_ref() }.filter(|entry| entry[0] != DT_NULL) {
        match kind {
            DT_STRTAB => table = value,
            DT_STRSZ => size = value,
            _ => {}
        }
        entry = entry.wrapping_add(1);
    }
    // Below where the library lies it is an offset still.
    let table = if table < map.base { map.base.wrapping_add(table) } else { table };
    if table == 0 || map.base == 0 {
        return false;
    }
    // SAFETY: the caller's promise.
    let names = unsafe { core::slice::from_raw_parts(table as *const u8, size) };
    names.windows(NAME.len()).any(|window| window == NAME)
}
