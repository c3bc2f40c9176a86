//! Real programs from Debian's sources, of which perf tells the truth.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;

use super::kind::Kind;
use super::subject::{Subject, Told};
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::subject::text;

/// A real program and what it is given to do.
pub(super) struct Real {
    pub(super) id: &'static str,
    what: &'static str,
    words: fn(&Lab, Hooks) -> Result<Vec<String>>,
}

pub(super) const REAL: &[Real] = &[
    Real { id: "lua", what: "lua, work.lua", words: lua },
    Real { id: "sqlite3", what: "sqlite3, speedtest1", words: sqlite },
    Real { id: "bzip2", what: "bzip2 -9", words: bzip2 },
    Real { id: "zstd", what: "zstd -9", words: zstd },
];

impl Real {
    pub(super) fn subject<'a>(&'static self, lab: &'a Lab, kinds: &[Kind]) -> Subject<'a> {
        Subject {
            id: self.id.to_owned(),
            what: self.what.to_owned(),
            told: Told::ByPerf,
            judges_cpu: false,
            repeats: 1,
            file: match self.id {
                "sqlite3" => "speedtest1-truth".to_owned(),
                id => format!("{id}-truth"),
            },
            kinds: kinds.to_vec(),
            words: Box::new(|hooks| (self.words)(lab, hooks)),
        }
    }
}

fn lua(lab: &Lab, hooks: Hooks) -> Result<Vec<String>> {
    let script = text(&lab.bench_file("programs/work.lua"));
    Ok(vec![text(&lab.lua_for_truth(hooks)?), script, lab.size("14", "2").into()])
}

fn sqlite(lab: &Lab, hooks: Hooks) -> Result<Vec<String>> {
    let program = text(&lab.speedtest_for_truth(hooks)?);
    Ok([program.as_str(), "--memdb", "--size", lab.size("150", "15")].map(String::from).into())
}

fn bzip2(lab: &Lab, hooks: Hooks) -> Result<Vec<String>> {
    let program = text(&lab.bzip2_for_truth(hooks)?);
    Ok([&program, "-9", "-k", "-f", &text(&input(lab)?)].map(String::from).into())
}

fn zstd(lab: &Lab, hooks: Hooks) -> Result<Vec<String>> {
    let program = text(&lab.zstd_for_truth(hooks)?);
    let out = text(&lab.scratch("truth.zst"));
    let words = [&program, "-q", "-f", "-9", "--single-thread", &text(&input(lab)?), "-o", &out];
    Ok(words.map(String::from).into())
}

/// What is compressed: sqlite3's source, again and again.
fn input(lab: &Lab) -> Result<PathBuf> {
    let input = lab.scratch(lab.size("truth.in", "truth-quick.in"));
    if !input.is_file() {
        let text = fs::read(lab.amalgamation()?)?;
        fs::write(&input, text.repeat(lab.size(3, 1)))?;
    }
    Ok(input)
}
