//! What perf is shown of a sample. It knows registers and a copy of one stack, and what it finds there stands behind the call
//! chain: so the inner stack of two becomes a chain, and the outer one is what is copied.

use std::borrow::Cow;

use teeperf_wire::body::sample::{CONTEXT_USER, Outer, Sample, abi};

/// A sample, as perf has room for it.
pub(super) struct Shown<'a> {
    sample: Sample<'a>,
    /// Of one of which the outer stack is shown: the chain in place of the inner, or what stands for one.
    chain: Cow<'a, [[u8; 8]]>,
    is_outer: bool,
}

impl<'a> Shown<'a> {
    /// Of a sample, and the chain that its inner stack was made into, if it was.
    pub(super) fn of(sample: &Sample<'a>, inner: Option<&'a [[u8; 8]]>) -> Self {
        let is_outer = sample.outer.is_there() && (sample.stack.is_empty() || inner.is_some());
        if !is_outer {
            let chain = Cow::Borrowed(sample.chain.bytes().as_chunks().0);
            return Self { sample: *sample, chain, is_outer };
        }
        let chain = match (inner, sample.chain.bytes().as_chunks().0) {
            (Some(inner), _) => Cow::Borrowed(inner),
            (None, []) => Cow::Owned([CONTEXT_USER, sample.ip].map(u64::to_le_bytes).to_vec()),
            (None, chain) => Cow::Borrowed(chain),
        };
        let Outer { mask, registers, stack } = sample.outer;
        Self { sample: Sample { mask, registers, stack, ..*sample }, chain, is_outer }
    }

    /// The innermost part.
    pub(super) fn chain(&self) -> &[u8] {
        self.chain.as_flattened()
    }

    /// Whether there is another stack, which is not shown.
    pub(super) fn hides_one(&self) -> bool {
        self.sample.outer.is_there() && !self.is_outer
    }

    pub(super) fn stack(&self) -> &'a [u8] {
        self.sample.stack
    }

    /// Puts the registers that an event's samples have behind what is there; false where these are others. Of an outer stack those
    /// that are not known are 0, as an asynchronous exit leaves them.
    pub(super) fn registers(&self, wanted: u64, out: &mut Vec<u8>) -> bool {
        let Sample { mask, abi, .. } = self.sample;
        if abi == abi::NONE {
            return mask == 0;
        }
        if mask == wanted {
            out.extend_from_slice(self.sample.registers.bytes());
            return true;
        }
        if !self.is_outer || mask & !wanted != 0 {
            return mask == 0;
        }
        let there = (0..64).filter(|number| wanted >> number & 1 == 1);
        out.extend(
            there.flat_map(|number| self.sample.register(number).unwrap_or_default().to_le_bytes()),
        );
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use teeperf_wire::body::sample::Numbers;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn registers(shown: &Shown<'_>, wanted: u64) -> (bool, Vec<u8>) {
        let mut out = Vec::new();
        (shown.registers(wanted, &mut out), out)
    }

    #[test]
    fn the_outer_stack_is_shown_behind_a_chain() {
        let (inner, outer) = (words(&[1, 2, 3, 4]), words(&[7, 8]));
        let chain = words(&[CONTEXT_USER, 20]);
        let two = Sample {
            abi: abi::BITS_64,
            ip: 20,
            mask: 0b1111,
            registers: Numbers::of(&inner),
            outer: Outer { mask: 0b0110, registers: Numbers::of(&outer), stack: &[5; 16] },
            ..Sample::default()
        };
        for sample in [two, Sample { chain: Numbers::of(&chain), ..two }] {
            let shown = Shown::of(&sample, None);
            assert_eq!((shown.chain(), shown.stack()), (&chain[..], &[5; 16][..]));
            assert_eq!(registers(&shown, 0b1111), (true, words(&[0, 7, 8, 0])));
            assert_eq!(registers(&shown, 0b0110), (true, outer.clone()));
            assert_eq!(registers(&shown, 0b0011), (false, vec![]));
        }
        // A copy of the inner stack is left out where it was made into a chain.
        let followed = [CONTEXT_USER, 20, 30].map(u64::to_le_bytes);
        let copied = Sample { stack: &[6; 8], ..two };
        let shown = Shown::of(&copied, Some(&followed));
        assert_eq!((shown.chain(), shown.stack()), (followed.as_flattened(), &[5; 16][..]));
        assert!(!shown.hides_one());
        // Where it was not, and of one without an outer, the inner is shown.
        for sample in [Sample { stack: &[6; 8], ..two }, Sample { outer: Outer::default(), ..two }]
        {
            let shown = Shown::of(&sample, None);
            assert_eq!((shown.chain().len(), shown.stack()), (0, sample.stack));
            assert_eq!(shown.hides_one(), sample == copied);
            assert_eq!(registers(&shown, 0b1111), (true, inner.clone()));
            assert_eq!(registers(&shown, 0b11111), (false, vec![]));
        }
    }
}
