//! Whether memory lies outside of a range of addresses that is the trusted side's own, such as an enclave's.

/// Whether all of a stretch of memory lies outside of another. None, or one that does not end within the address space,
/// does not: an address that somebody hands over is not to be reasoned about further.
pub(crate) fn is_outside(start: usize, length: usize, base: usize, size: usize) -> bool {
    let (Some(end), Some(own_end)) = (last(start, length), last(base, size)) else { return false };
    start != 0 && (end < base || own_end < start)
}

/// The last address of a stretch that has some, and ends.
fn last(start: usize, length: usize) -> Option<usize> {
    start.checked_add(length.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BASE: usize = 0x7000_0000;
    const SIZE: usize = 0x40_0000;

    #[test]
    fn memory_that_is_inside_straddles_or_wraps_is_not_outside() {
        let outside = |start, length| is_outside(start, length, BASE, SIZE);
        assert!(outside(BASE - 4096, 4096), "right before");
        assert!(outside(BASE + SIZE, 4096), "right behind");
        assert!(outside(usize::MAX - 4095, 4096), "up to the last address");
        for (start, length) in [
            (BASE, 1),
            (BASE + 100, 4096),
            (BASE + SIZE - 1, 1),
            // Partly.
            (BASE - 4096, 4097),
            (BASE + SIZE - 1, 4096),
            // Around it.
            (BASE - 4096, SIZE + 2 * 4096),
            // Round the end of the address space, into it.
            (usize::MAX - 4095, 4097),
            (BASE + SIZE, usize::MAX),
            (0x1000, usize::MAX),
            // Nothing.
            (0, 4096),
            (0x1000, 0),
        ] {
            assert!(!outside(start, length), "{start:x} {length:x}");
        }
        assert!(!is_outside(0x1000, 4096, BASE, 0), "what is the trusted side's own is not known");
        assert!(!is_outside(0x1000, 4096, usize::MAX, 2), "nor where it ends");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 4096 }))]

        /// As numbers that do not wrap have it.
        #[test]
        fn no_byte_of_it_is_inside(
            start in prop_oneof![any::<usize>(), BASE - 64..BASE + 64, BASE + SIZE - 64..BASE + SIZE + 64],
            length in prop_oneof![any::<usize>(), 0usize..128, SIZE - 64..SIZE + 256],
            base in prop_oneof![9 => Just(BASE), 1 => any::<usize>()],
            size in prop_oneof![9 => Just(SIZE), 1 => any::<usize>()],
        ) {
            let [first, bytes, own, own_bytes] = [start, length, base, size].map(|number| number as u128);
            let is_sound = |first: u128, bytes: u128| bytes > 0 && first + bytes <= 1 << usize::BITS;
            let is_apart = first + bytes <= own || own + own_bytes <= first;
            let expected = first > 0 && is_sound(first, bytes) && is_sound(own, own_bytes) && is_apart;
            prop_assert_eq!(is_outside(start, length, base, size), expected);
        }
    }
}
