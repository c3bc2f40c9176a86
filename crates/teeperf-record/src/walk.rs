//! Walks over the words of a chunk item by item, and knows where an item begins and what
//! time it is there. For the few chunks where one look at them is not enough.

use teeperf_wire::word::{
    self, Word, call, code, decode, escape, has_payload, join, payload_value,
};

/// One event or escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// A call or return, with its time word where the clock is `cycle`.
    Event {
        /// The event word itself.
        word: u32,
        /// See [`teeperf_wire::word`].
        time: Option<u32>,
    },
    /// An escape.
    Escape {
        /// [`code`].
        code: u32,
        /// Its own 24 bits.
        arg: u32,
        /// Payload words, without the count word.
        payload: &'a [u32],
    },
    /// A word that means nothing.
    Invalid,
}

/// The items of a chunk. Ends at the first 0 and where an item is cut off.
#[derive(Clone, Debug)]
pub(crate) struct Walk<'a> {
    words: &'a [u32],
    cycle: bool,
    at: usize,
}

impl<'a> Walk<'a> {
    /// Over these words, which begin with an item; `cycle` tells whether events have times.
    pub(crate) fn new(words: &'a [u32], cycle: bool) -> Self {
        Self { words, cycle, at: 0 }
    }

    /// Index of the first word not walked over.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Goes on behind the next escape, and gives its code, argument and payload. As long as events
    /// have no times, those before it are passed over at about a word a clock cycle.
    pub(crate) fn next_escape(&mut self) -> Option<(u32, u32, &'a [u32])> {
        loop {
            if !self.cycle {
                let rest = self.words.get(self.at..)?;
                self.at += rest.iter().position(|&word| word == 0 || word >> 31 != 0)?;
            }
            if let Item::Escape { code, arg, payload } = self.next()? {
                return Some((code, arg, payload));
            }
        }
    }

    fn escape(&self, code: u32, arg: u32) -> Option<(Item<'a>, usize)> {
        if !has_payload(code) {
            return Some((Item::Escape { code, arg, payload: &[] }, 1));
        }
        let count = payload_value(*self.words.get(self.at + 1)?)? as usize;
        let start = self.at + 2;
        let payload = self.words.get(start..start.checked_add(count)?)?;
        // A 0 in it is not written yet.
        (!payload.contains(&0)).then_some((Item::Escape { code, arg, payload }, 2 + count))
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        let &word = self.words.get(self.at)?;
        let (item, length) = match decode(word) {
            Word::End => return None,
            Word::Invalid => (Item::Invalid, 1),
            Word::Escape { code, arg } => self.escape(code, arg)?,
            Word::Call { .. } | Word::Return { .. } if self.cycle => {
                let time = *self.words.get(self.at + 1).filter(|&&time| time != 0)?;
                (Item::Event { word, time: Some(time) }, 2)
            }
            Word::Call { .. } | Word::Return { .. } => (Item::Event { word, time: None }, 1),
        };
        self.at += length;
        Some(item)
    }
}

/// Absolute time behind an item, given that before it: never an earlier one.
pub(crate) fn time_after(before: u64, item: &Item<'_>) -> u64 {
    let time = match *item {
        Item::Event { time: Some(low), .. } => before & !(u32::MAX as u64) | low as u64,
        Item::Escape { code: code::TICK, arg, .. } => before.saturating_add(arg as u64),
        Item::Escape { code: code::STAMP, payload: [low, high, ..], .. } => {
            join(&[*low, *high]).unwrap_or(before)
        }
        _ => before,
    };
    time.max(before)
}

/// Makes tick words that go on at `time` go on at `told`, which the recording has already: the clock moved by so much less,
/// or, where it has not got there, not at all.
pub(crate) fn catch_up(words: &mut [u32], mut time: u64, mut told: u64) {
    let mut at = 0;
    while time < told && at < words.len() {
        let mut walk = Walk::new(&words[at..], false);
        let Some(item) = walk.next() else { return };
        let length = walk.at();
        let after = time_after(time, &item);
        if matches!(item, Item::Escape { code: code::TICK, .. }) {
            words[at] = match after.saturating_sub(told) {
                0 => escape(code::PAD, 0),
                passed => escape(code::TICK, passed as u32),
            };
        }
        (time, told) = (after, told.max(after));
        at += length;
    }
}

/// Puts [`code::HOLE`] words in place of zeros. A hole where a time word belongs takes the
/// time before it, so that the event is kept. One within payload becomes a word that payload
/// never is, because [`code::HOLE`] would be taken for a value: readers then skip the escape.
pub(crate) fn fill_holes(words: &mut [u32], cycle: bool) {
    const HOLE: u32 = escape(code::HOLE, 0);
    const NO_PAYLOAD: u32 = 1;
    /// Its address takes three words.
    const FAR_TIME: usize = 3;
    let mut time = word::payload(1);
    let mut at = 0;
    while at < words.len() {
        let rest = &mut words[at..];
        at += match (decode(rest[0]), &mut rest[1..]) {
            (Word::End, _) => {
                rest[0] = HOLE;
                1
            }
            (Word::Call { .. } | Word::Return { .. }, [behind, ..]) if cycle => {
                if *behind == 0 {
                    *behind = time;
                }
                time = *behind | 1;
                2
            }
            (Word::Escape { code, .. }, [count, payload @ ..]) if has_payload(code) => {
                let length = payload_value(*count).unwrap_or(0) as usize;
                for (i, word) in payload.iter_mut().take(length).enumerate() {
                    let is_time = cycle && code == code::FAR && i == FAR_TIME;
                    *word = match *word {
                        0 if is_time => time,
                        0 => NO_PAYLOAD,
                        written => written,
                    };
                }
                if *count == 0 {
                    // Nobody could tell where it ends. The count is looked at again, as a hole of its own.
                    rest[0] = HOLE;
                    1
                } else {
                    2 + length
                }
            }
            _ => 1,
        };
    }
}

// A time word's stand-in is no event, so that the next event is found where it is.
const _: () = assert!(call(1) < word::ESCAPE_BASE);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use teeperf_wire::word::{payload, ret, split62};

    fn any_word() -> impl Strategy<Value = u32> {
        prop_oneof![
            any::<u32>(),
            2u32..100,
            Just(0),
            (0u32..32, 0u32..9).prop_map(|(code, arg)| escape(code, arg)),
            (0u32..6).prop_map(payload),
        ]
    }

    proptest! {
        #[test]
        fn a_walk_ends_within_the_words(words in proptest::collection::vec(any_word(), 0..60), cycle: bool) {
            let mut walk = Walk::new(&words, cycle);
            let mut items = 0;
            while walk.next().is_some() {
                items += 1;
                prop_assert!(walk.at() <= words.len());
            }
            prop_assert!(items <= words.len());
            let again = Walk::new(&words[..walk.at()], cycle);
            prop_assert_eq!(again.count(), items);
        }

        #[test]
        fn escapes_are_those_of_a_whole_walk(words in proptest::collection::vec(any_word(), 0..60), cycle: bool) {
            let mut walk = Walk::new(&words, cycle);
            let escapes: Vec<_> = std::iter::from_fn(|| walk.next_escape()).collect();
            let items = Walk::new(&words, cycle).filter_map(|item| match item {
                Item::Escape { code, arg, payload } => Some((code, arg, payload)),
                _ => None,
            });
            prop_assert_eq!(escapes, items.collect::<Vec<_>>());
        }

        #[test]
        fn no_hole_is_left(words in proptest::collection::vec(any_word(), 0..60), cycle: bool) {
            let mut filled = words.clone();
            fill_holes(&mut filled, cycle);
            prop_assert!(!filled.contains(&0));
            let torn = |at: usize| {
                let Word::Escape { code, .. } = decode(words[at]) else { return false };
                has_payload(code) && words.get(at + 1) == Some(&0)
            };
            let kept = |at: usize| words[at] == 0 || words[at] == filled[at] || torn(at);
            prop_assert!((0..words.len()).all(kept));
        }
    }

    #[test]
    fn items_and_their_times() {
        let [low, high] = split62(7 << 32);
        let words =
            [escape(code::TICK, 5), call(9), escape(code::STAMP, 0), payload(2), low, high, ret(9)];
        let mut walk = Walk::new(&words, false);
        let mut time = 100;
        let times: Vec<_> = std::iter::from_fn(|| {
            time = time_after(time, &walk.next()?);
            Some((walk.at(), time))
        })
        .collect();
        assert_eq!(times, [(1, 105), (2, 105), (6, 7 << 32), (7, 7 << 32)]);
    }

    proptest! {
        /// A reader that has come to a later time charges what passes behind it, and nothing twice.
        #[test]
        fn what_was_told_ahead_is_caught_up_with(
            ticks in proptest::collection::vec((1u32..50, any::<bool>()), 0..20), ahead in 0u64..300,
        ) {
            let (mut words, mut time) = (Vec::new(), 1000);
            for &(units, is_stamp) in &ticks {
                time += u64::from(units);
                match is_stamp {
                    true => words.extend(teeperf_wire::compose::stamp(time)),
                    false => words.push(escape(code::TICK, units)),
                }
                words.push(call(0x1000));
            }
            let mut caught = words.clone();
            catch_up(&mut caught, 1000, 1000 + ahead);
            let ends = Walk::new(&caught, false).fold(1000 + ahead, |time, item| time_after(time, &item));
            prop_assert_eq!(ends, time.max(1000 + ahead));
            prop_assert_eq!(caught.len(), words.len());
            let calls = |words: &[u32]| words.iter().filter(|&&word| word == call(0x1000)).count();
            prop_assert_eq!(calls(&caught), ticks.len());
        }
    }

    #[test]
    fn an_item_cut_off_is_left_for_later() {
        for cut in
            [&[call(9), 5, call(9)][..], &[call(9), 5, escape(code::STAMP, 0), payload(2), 9]]
        {
            let mut walk = Walk::new(cut, true);
            assert_eq!(walk.by_ref().count(), 1);
            assert_eq!(walk.at(), 2);
        }
    }

    #[test]
    fn a_cycle_has_its_high_half_from_the_stamp_before() {
        let event = |time| Item::Event { word: call(9), time: Some(time) };
        assert_eq!(time_after(0x5_0000_0001, &event(0x11)), 0x5_0000_0011);
        assert_eq!(time_after(0x6_0000_0011, &event(0xF000_0001)), 0x6_F000_0001);
        // Read before a signal handler came in, which wrote later times.
        assert_eq!(time_after(0x5_FFFF_FFF0, &event(0x11)), 0x5_FFFF_FFF0);
        assert_eq!(time_after(0x6_0000_0111, &event(0x11)), 0x6_0000_0111);
    }

    #[test]
    fn a_time_that_was_not_written_is_the_one_before() {
        let mut words = [call(9), 0x55, 0, ret(9), 0, call(8), 0x77];
        fill_holes(&mut words, true);
        assert_eq!(words, [call(9), 0x55, escape(code::HOLE, 0), ret(9), 0x55, call(8), 0x77]);
    }

    #[test]
    fn an_escape_without_its_count_hides_nothing_behind_it() {
        let mut words = [call(9), escape(code::STAMP, 0), 0, 0, 0, call(8), ret(8)];
        fill_holes(&mut words, false);
        let hole = escape(code::HOLE, 0);
        assert_eq!(words, [call(9), hole, hole, hole, hole, call(8), ret(8)]);
        assert_eq!(Walk::new(&words, false).count(), words.len());
    }

    #[test]
    fn payload_that_was_not_written_is_no_value() {
        let gap = escape(code::GAP, 2);
        let mut words = [gap, payload(3), payload(7), 0, payload(8), 0, call(9)];
        fill_holes(&mut words, false);
        let hole = escape(code::HOLE, 0);
        assert_eq!(words, [gap, payload(3), payload(7), 1, payload(8), hole, call(9)]);
        assert_eq!(payload_value(words[3]), None);

        let far = [escape(code::FAR, 0), payload(4)];
        let mut words = [&[call(9), 0x55][..], &far, &[payload(7), payload(8), 0, 0]].concat();
        fill_holes(&mut words, true);
        assert_eq!(words[4..], [payload(7), payload(8), 1, 0x55]);
    }
}
