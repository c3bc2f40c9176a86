//! Whole recordings, made by hand, and what must be told of them. All expectations here were
//! worked out by hand.

mod chunks;
mod names;
mod packets;
#[path = "../support/mod.rs"]
mod support;

use teeperf_profile::model::Profile;
use teeperf_profile::{Options, Recording};
use teeperf_wire::body::chunk;
use teeperf_wire::shared::ClockKind;
use teeperf_wire::word::{code, escape, pack_bytes, payload, split64};

pub(crate) fn replay(bytes: &[u8]) -> Profile {
    let mut options = Options { jobs: 1, ..Options::default() };
    Recording::from_read(bytes, "test").replay(&mut options).unwrap()
}

pub(crate) fn header(process: u32, thread: u32, time: u64) -> chunk::Header {
    chunk::Header {
        process,
        thread,
        tid: 500 + thread,
        sequence: 1,
        time,
        cpu_ns: u64::MAX,
        clock: ClockKind::Tick as u8,
        flags: chunk::WHOLE,
        ..chunk::Header::default()
    }
}

/// Words that open a window of 0x10000 sites.
pub(crate) fn module(first_site: u32, address: u64, bias: u64, path: &str) -> Vec<u32> {
    let mut words = vec![payload(1), payload(first_site), payload(0x10000)];
    words.extend(split64(address));
    words.extend(split64(bias));
    words.push(payload(2));
    words.push(pack_bytes(&[0xAB, 0xCD]));
    words.extend(path.as_bytes().chunks(3).map(pack_bytes));
    [vec![escape(code::MODULE, 0), payload(words.len() as u32)], words].concat()
}

pub(crate) fn function<'a>(
    profile: &'a Profile,
    name: &str,
) -> &'a teeperf_profile::model::Function {
    let names: Vec<&String> = profile.functions.iter().map(|f| &f.name).collect();
    profile
        .functions
        .iter()
        .find(|f| f.name == name)
        .unwrap_or_else(|| panic!("{name} in {names:?}"))
}
