//! What tests of new recordings share.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod chunks;

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex};
use teeperf_profile::model::Profile;
use teeperf_profile::{Options, Recording};
use teeperf_record::writing::Output;

/// An output that is memory.
#[derive(Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    pub(crate) fn output(&self) -> Output {
        Output::Writer(Box::new(self.clone()))
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub(crate) fn replay(bytes: &[u8]) -> Profile {
    let mut options = Options { jobs: 1, lengths: true, ..Options::default() };
    Recording::from_read(bytes, "window").replay(&mut options).unwrap()
}

/// Thread and path.
pub(crate) type Path = (u32, Vec<String>);

/// Calls and self time by path.
pub(crate) fn paths(profile: &Profile) -> BTreeMap<Path, (u64, u64)> {
    let mut out = BTreeMap::new();
    for thread in &profile.threads {
        let mut names: Vec<Vec<String>> = Vec::new();
        for (at, node) in thread.tree.nodes.iter().enumerate() {
            let mut path = if at == 0 { vec![] } else { names[node.parent as usize].clone() };
            if at > 0 {
                path.push(profile.functions[node.function.0 as usize].name.clone());
            }
            if node.calls > 0 || node.self_time.value > 0.0 {
                let sum: &mut (u64, u64) = out.entry((thread.tid, path.clone())).or_default();
                *sum = (sum.0 + node.calls, sum.1 + node.self_time.value as u64);
            }
            names.push(path);
        }
    }
    out
}

/// Calls by thread, function, and the shortest length of the bucket that theirs is in.
pub(crate) fn lengths(profile: &Profile) -> BTreeMap<(u32, String, u64), u64> {
    let mut out = BTreeMap::new();
    for thread in &profile.threads {
        for (function, lengths) in &thread.lengths {
            let name = &profile.functions[function.0 as usize].name;
            for bucket in lengths.buckets() {
                out.insert((thread.tid, name.clone(), bucket.first), bucket.calls);
            }
        }
    }
    out
}

/// All that is counted.
pub(crate) fn counts(profile: &Profile) -> BTreeMap<String, u64> {
    let health = &profile.health;
    let counts = [
        ("events", health.events),
        ("lost", health.lost),
        ("mended", health.mended),
        ("unopened", health.unopened),
    ];
    let counts = counts.into_iter().map(|(name, count)| (name.to_owned(), count));
    counts.chain(health.gaps.iter().map(|gap| (gap.0.clone(), gap.1))).collect()
}
