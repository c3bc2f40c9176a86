//! What a program says of its own calls: lines `calls NAME N` and `path A;B;C N`.

use std::collections::BTreeMap;

/// Calls by function, and by call path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) calls: BTreeMap<String, u64>,
    pub(crate) paths: BTreeMap<String, u64>,
}

impl Told {
    /// Reads output; lines of several processes add up, others are skipped.
    pub(crate) fn read(output: &str) -> Self {
        let mut told = Self::default();
        for line in output.lines() {
            let Some((kind, rest)) = line.split_once(' ') else { continue };
            let Some((name, number)) = rest.rsplit_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match kind {
                "calls" => told.add(name, number),
                "path" => {
                    let mut frames: Vec<&str> = name.split(';').collect();
                    told.add(frames.last().unwrap_or(&name), number);
                    // Frames nobody records in a row are one step: a run of unknown ones.
                    frames.dedup_by(|a, b| a.starts_with('[') && a == b);
                    *told.paths.entry(frames.join(";")).or_default() += number;
                }
                _ => {}
            }
        }
        told.calls.retain(|name, &mut calls| calls > 0 && !name.starts_with('['));
        told.paths.retain(|_, &mut calls| calls > 0);
        told
    }

    /// More calls, of which the program could not tell.
    pub(crate) fn add(&mut self, name: &str, calls: u64) {
        *self.calls.entry(name.to_owned()).or_default() += calls;
    }

    /// All calls together.
    pub(crate) fn total(&self) -> u64 {
        self.calls.values().sum()
    }
}
