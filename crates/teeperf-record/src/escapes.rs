//! Escapes that tell the recorder something: modules, thread names, gaps.

use teeperf_wire::word::module::{ANCHORED, FIXED, MAX_BUILD_ID, MAX_PATH, OPENED};
use teeperf_wire::word::{MAX_SITE, Word, code, decode, gap, join, payload_value, unpack_bytes};

/// A window that was opened for a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Module {
    /// First site of the window.
    pub(crate) first_site: u32,
    /// Number of sites, which are bytes of the process's memory.
    pub(crate) sites: u32,
    /// Address in the process of the window's first byte.
    pub(crate) address: u64,
    /// Address less the file's own virtual address.
    pub(crate) bias: u64,
    /// The address is told from [`teeperf_wire::word::module::ANCHOR`] on.
    pub(crate) is_anchored: bool,
    /// Build-id, empty when it has none.
    pub(crate) build_id: Vec<u8>,
    /// Path of the file as the process knows it.
    pub(crate) path: Vec<u8>,
}

impl Module {
    /// From the payload of [`teeperf_wire::word::code::MODULE`]. Nothing when it retires a
    /// window, or makes no sense: a window without sites or beyond the last.
    pub(crate) fn opened(payload: &[u32]) -> Option<Self> {
        let (fixed, text) = payload.split_at_checked(FIXED)?;
        let what = payload_value(fixed[0])?;
        let first_site = payload_value(fixed[1])?;
        let sites = payload_value(fixed[2])?;
        let last = first_site.checked_add(sites.checked_sub(1)?)?;
        let build_id_bytes = payload_value(fixed[9])? as usize;
        let (build_id, path) = text.split_at_checked(build_id_bytes.div_ceil(3))?;
        let opens = matches!(what, OPENED | ANCHORED);
        let possible = opens && last <= MAX_SITE && build_id_bytes <= MAX_BUILD_ID;
        possible.then_some(())?;
        let mut build_id = unpack(build_id);
        build_id.truncate(build_id_bytes);
        let mut path = unpack(path);
        path.truncate(path.iter().position(|&byte| byte == 0).unwrap_or(path.len()));
        path.truncate(MAX_PATH);
        Some(Self {
            first_site,
            sites,
            address: join(&fixed[3..6])?,
            bias: join(&fixed[6..9])?,
            is_anchored: what == ANCHORED,
            build_id,
            path,
        })
    }
}

impl Module {
    /// From the bytes of the words of a whole [`code::MODULE`] escape. Nothing when they are none.
    pub(crate) fn told(bytes: &[u8]) -> Option<Self> {
        let (words, []) = bytes.as_chunks::<4>() else { return None };
        let words: Vec<u32> = words.iter().map(|&word| u32::from_le_bytes(word)).collect();
        let [escape, count, payload @ ..] = &words[..] else { return None };
        let is_module = decode(*escape) == Word::Escape { code: code::MODULE, arg: 0 };
        let is_whole = payload_value(*count).is_some_and(|count| count as usize == payload.len());
        (is_module && is_whole).then(|| Self::opened(payload)).flatten()
    }
}

/// Longest name of a thread that is kept, in bytes.
const MAX_NAME: usize = 64;

/// From the payload of [`teeperf_wire::word::code::NAME`].
pub(crate) fn name(payload: &[u32]) -> Vec<u8> {
    let mut name = unpack(&payload[..payload.len().min(MAX_NAME)]);
    name.truncate(name.iter().position(|&byte| byte == 0).unwrap_or(name.len()));
    name.truncate(MAX_NAME);
    name
}

/// What a gap says of losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loss {
    /// Events lost, of those that were not left out by wish.
    pub(crate) events: u64,
    /// Whether the thread waited for a free chunk, and for how many clock units.
    pub(crate) waited: bool,
    pub(crate) units: u64,
    /// Whether it ended recording in its process, because none was free.
    pub(crate) stops: bool,
}

/// From argument and payload of [`teeperf_wire::word::code::GAP`].
pub(crate) fn loss(reason: u32, payload: &[u32]) -> Loss {
    let events = payload.get(..2).and_then(join).unwrap_or(0);
    let by_accident = matches!(reason, gap::DROPPED | gap::NESTED | gap::STALLED);
    let waited = matches!(reason, gap::WAITED | gap::STALLED);
    let units = payload.get(4..6).and_then(join).unwrap_or(0);
    Loss {
        events: if by_accident { events } else { 0 },
        waited,
        units: if waited { units } else { 0 },
        stops: reason == gap::STOPPED,
    }
}

fn unpack(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|&word| unpack_bytes(word)).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use teeperf_wire::word::{
        escape, pack_bytes, payload, payload as payload_word, split62, split64,
    };

    /// Payload as a runtime makes it.
    pub(crate) fn payload_of(module: &Module) -> Vec<u32> {
        let opens = if module.is_anchored { ANCHORED } else { OPENED };
        let mut words = vec![payload(opens), payload(module.first_site), payload(module.sites)];
        words.extend(split64(module.address));
        words.extend(split64(module.bias));
        words.push(payload(module.build_id.len() as u32));
        words.extend(module.build_id.chunks(3).map(pack_bytes));
        words.extend(module.path.chunks(3).map(pack_bytes));
        words
    }

    proptest! {
        #[test]
        fn modules_come_back(
            address: u64, bias: u64, build_id in proptest::collection::vec(any::<u8>(), 0..=MAX_BUILD_ID),
            path in "[a-z/]{0,50}", is_anchored: bool, first_site in 0x1000u32..0x1000_0000, sites in 1u32..0x1000_0000,
        ) {
            let path = path.into();
            let module = Module { first_site, sites, address, bias, is_anchored, build_id, path };
            let payload = payload_of(&module);
            let head = [escape(code::MODULE, 0), payload_word(payload.len() as u32)];
            let bytes: Vec<u8> = head.iter().chain(&payload).flat_map(|word| word.to_le_bytes()).collect();
            prop_assert_eq!(Module::told(&bytes), Some(module.clone()));
            prop_assert_eq!(Module::told(&bytes[..bytes.len() - 4]), None);
            prop_assert_eq!(Module::opened(&payload), Some(module));
        }

        #[test]
        fn any_bytes_tell_of_a_module_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            Module::told(&bytes);
        }

        #[test]
        fn any_words_are_a_module_within_bounds_or_none(words in proptest::collection::vec(prop_oneof![
            any::<u32>(), (0u32..9).prop_map(payload),
        ], 0..40)) {
            if let Some(module) = Module::opened(&words) {
                prop_assert!(module.first_site + (module.sites - 1) <= MAX_SITE);
                prop_assert!(module.build_id.len() <= MAX_BUILD_ID && module.path.len() <= 90);
            }
            prop_assert!(name(&words).len() <= MAX_NAME);
        }
    }

    /// A window without a path, at this place in the space of sites.
    fn window(first_site: u32, sites: u32) -> Vec<u32> {
        let (build_id, path) = (vec![], vec![]);
        let is_anchored = false;
        payload_of(&Module { first_site, sites, address: 0, bias: 0, is_anchored, build_id, path })
    }

    #[test]
    fn a_retired_window_opens_nothing() {
        let mut words = window(0x1000, 1);
        assert!(Module::opened(&words).is_some());
        words[0] = payload(0);
        assert_eq!(Module::opened(&words), None);
    }

    #[test]
    fn a_window_without_sites_or_beyond_the_last_opens_nothing() {
        assert!(Module::opened(&window(MAX_SITE, 1)).is_some());
        for (first_site, sites) in [(0x1000, 0), (MAX_SITE, 2), (0x7FFF_FFFF, 0x7FFF_FFFF)] {
            assert_eq!(Module::opened(&window(first_site, sites)), None);
        }
    }

    #[test]
    fn losses_by_accident_count() {
        let payload = split62(1 << 40);
        let none = Loss::default();
        assert_eq!(loss(gap::DROPPED, &payload), Loss { events: 1 << 40, ..none });
        assert_eq!(loss(gap::PAUSED, &payload), none);
        assert_eq!(loss(gap::WAITED, &[]), Loss { waited: true, ..none });
        let gap = teeperf_wire::compose::gap(0, 3, 0, 0, 1 << 33);
        let waited = Loss { waited: true, units: 1 << 33, ..none };
        assert_eq!(loss(gap::WAITED, &gap[2..]), waited);
        assert_eq!(loss(gap::STALLED, &gap[2..]), Loss { events: 3, ..waited });
        assert_eq!(loss(gap::PAUSED, &gap[2..]), none);
        assert_eq!(loss(gap::STOPPED, &payload), Loss { stops: true, ..none });
    }
}
