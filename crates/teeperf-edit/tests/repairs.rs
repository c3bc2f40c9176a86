//! What is damaged is made whole, says the same as before, and that it was damaged; what was whole stays as it is.

#[path = "../../teeperf-profile/tests/support/mod.rs"]
mod by_hand;
mod support;

use by_hand::Builder;
use proptest::prelude::*;
use support::{Memory, counts, paths, replay};
use teeperf_edit::repair::{Repaired, repair};
use teeperf_profile::Recording;
use teeperf_wire::body::chunk::{self, Header};
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word::{call, code, escape, ret};

fn repaired(bytes: &[u8]) -> (Vec<u8>, Repaired) {
    let out = Memory::default();
    let recording = Recording::from_read(bytes, "damaged");
    let repaired = repair(recording, out.output(), "out", &mut |_| {}).unwrap();
    (out.bytes(), repaired)
}

fn recording() -> Vec<u8> {
    let mut builder = Builder::new();
    builder.process(1, 77, "/bin/program");
    let tick = |units| escape(code::TICK, units);
    for sequence in 1..9u32 {
        for thread in 1..3 {
            let site = 0x1000 + 16 * sequence;
            let words = [call(site), tick(5), call(site + 1), tick(3), ret(site + 1), tick(2)];
            let more = if sequence % 2 == 0 { vec![ret(site), ret(site - 16)] } else { vec![] };
            let header = Header {
                process: 1,
                thread,
                tid: 100 + thread,
                sequence,
                time: u64::from(100 * sequence),
                cpu_ns: u64::MAX,
                clock: ClockKind::Tick as u8,
                flags: chunk::WHOLE,
                ..Header::default()
            };
            builder.chunk(header, &[&words[..], &more].concat(), sequence % 3 == 0);
        }
    }
    builder.end()
}

#[test]
fn what_is_whole_stays_as_it_is() {
    let bytes = recording();
    let (copy, told) = repaired(&bytes);
    assert_eq!(told.mended, Vec::<String>::new());
    assert_eq!(paths(&replay(&copy)), paths(&replay(&bytes)));
    assert_eq!(replay(&copy).health.warnings, Vec::<String>::new());
}

#[test]
fn what_was_damaged_says_where() {
    let mut bytes = recording();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    let (fixed, told) = repaired(&bytes);
    assert!(told.mended.iter().any(|text| text.starts_with("damaged: ")), "{told:?}");
    assert!(told.mended.iter().any(|text| text.contains("chunk at offset")), "{told:?}");
    let profile = replay(&fixed);
    assert!(
        profile.health.warnings.iter().all(|text| text.starts_with("before it was repaired: "))
    );
    // And it is whole now.
    assert_eq!(repaired(&fixed).1.mended, Vec::<String>::new());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn it_says_the_same_without_damage(flips in proptest::collection::vec((0usize..4000, 0u8..8), 0..4), cut in 100usize..4000) {
        let mut bytes = recording();
        for (at, bit) in flips {
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
        }
        bytes.truncate(cut.min(bytes.len()));
        if Recording::from_read(&bytes[..], "x").next_packet().is_ok() {
            let (fixed, told) = repaired(&bytes);
            let [before, after] = [&bytes, &fixed].map(|bytes| replay(bytes));
            prop_assert_eq!(paths(&before), paths(&after));
            prop_assert_eq!(counts(&before), counts(&after));
            prop_assert!(after.health.warnings.iter().all(|text| text.starts_with("before it was repaired: ")
                || text.contains("clock's rate is not given")), "{:?}", after.health.warnings);
            prop_assert_eq!(before.health.warnings.is_empty(), told.mended.is_empty());
        }
    }
}
