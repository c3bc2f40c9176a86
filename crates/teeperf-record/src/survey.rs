//! First look at the words of a chunk: how far they go, and whether all are there.

/// How many of these words are used: up to the last that is not 0.
pub(crate) fn used(words: &[u32]) -> usize {
    words.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1)
}

/// How many are 0: reserved, and not written.
pub(crate) fn holes(words: &[u32]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has what the function was compiled for.
        return unsafe { with_avx2(words) };
    }
    zeros(words)
}

/// The same pass for processors that take eight words at a time.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2(words: &[u32]) -> usize {
    zeros(words)
}

/// Without branches, which compilers turn into vector instructions.
#[inline(always)]
fn zeros(words: &[u32]) -> usize {
    words.iter().fold(0u32, |zeros, &word| zeros + (word == 0) as u32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_a_slow_look_says(words in proptest::collection::vec(
            prop_oneof![Just(0), Just(u32::MAX), any::<u32>()], 0..70,
        )) {
            let mut slow = &words[..];
            while let [before @ .., 0] = slow {
                slow = before;
            }
            prop_assert_eq!(used(&words), slow.len());
            prop_assert_eq!(holes(&words), words.iter().filter(|&&word| word == 0).count());
            prop_assert_eq!(zeros(&words), holes(&words));
        }
    }
}
