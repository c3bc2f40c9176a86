//! First look at a chunk's words: one pass without branches, which compilers turn into
//! vector instructions, so that what is rare costs nothing where it is absent.

use teeperf_wire::word::{ESCAPE_BASE, code};

/// What a chunk's words are, as far as one pass can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Words up to the last that is not 0.
    pub(crate) used: usize,
    /// Number of zeros among them: reserved and not written.
    pub(crate) holes: usize,
    /// Whether a word looks like an escape that the recorder wants to read. It may also be
    /// payload of another.
    pub(crate) telling: bool,
    /// Calls and returns, or twice as many where each has a time word. Payload that looks
    /// like an event counts, and sites of 2^30 and above do not.
    pub(crate) events: usize,
    /// The largest word below 2^31, in which all sites below 2^30 have theirs.
    pub(crate) highest: u32,
}

impl Survey {
    /// Of these words.
    pub(crate) fn of(words: &[u32]) -> Self {
        let used = words.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1);
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { with_avx2(&words[..used]) };
        }
        pass(&words[..used])
    }
}

/// The same pass for processors that take eight words at a time.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2(words: &[u32]) -> Survey {
    pass(words)
}

#[inline(always)]
fn pass(words: &[u32]) -> Survey {
    let (mut holes, mut telling, mut events, mut highest) = (0u32, 0u32, 0u32, 0i32);
    for &word in words {
        let top = word >> 24;
        holes += (word == 0) as u32;
        telling |= (top == TOP_GAP) as u32 | (top & !1 == TOP_MODULE) as u32;
        events += (word as i32 > 0) as u32;
        highest = highest.max(word as i32);
    }
    Survey {
        used: words.len(),
        holes: holes as usize,
        telling: telling != 0,
        events: events as usize,
        highest: highest as u32,
    }
}

/// First byte of the escapes that the recorder reads.
const TOP_GAP: u32 = ESCAPE_BASE >> 24 | code::GAP;
/// With the lowest bit set it is a name.
const TOP_MODULE: u32 = ESCAPE_BASE >> 24 | code::MODULE;
const _: () = assert!(code::MODULE & 1 == 0 && code::NAME == code::MODULE + 1);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use teeperf_wire::word::{call, escape, payload, ret};

    proptest! {
        #[test]
        fn as_a_slow_look_says(words in proptest::collection::vec(prop_oneof![
            Just(0), 2u32..0x9000, Just(escape(code::TICK, 9)), Just(escape(code::NAME, 0)), any::<u32>(),
        ], 0..70)) {
            let survey = Survey::of(&words);
            let mut used = &words[..];
            while let [before @ .., 0] = used {
                used = before;
            }
            prop_assert_eq!(pass(used), survey);
            prop_assert_eq!(survey.used, used.len());
            prop_assert_eq!(survey.holes, used.iter().filter(|&&word| word == 0).count());
            let tells = |&word: &u32| [code::GAP, code::MODULE, code::NAME]
                .iter().any(|&code| word >> 24 == escape(code, 0) >> 24);
            prop_assert_eq!(survey.telling, used.iter().any(tells));
            let low = used.iter().filter(|&&word| word >> 31 == 0);
            prop_assert_eq!(survey.highest, low.max().copied().unwrap_or(0));
        }
    }

    #[test]
    fn an_ordinary_chunk_tells_nothing() {
        let words = [escape(code::TICK, 3), call(0x1000), ret(0x1000), payload(5)];
        let survey = Survey::of(&words);
        assert_eq!((survey.used, survey.holes, survey.telling, survey.events), (4, 0, false, 2));
        assert_eq!(survey.highest, ret(0x1000));
    }
}
