//! Files of gprof as a profile: opened, read with the names of their program, and summed.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use teeperf_interop::gmon::{self, Names};
use teeperf_profile::combine::combine;
use teeperf_profile::model::Profile;

/// The sum of a file that was opened and of more; `bias` is how much higher their addresses are than
/// those of the ELF file.
pub(crate) fn profile(
    first: impl Read,
    name: &str,
    more: &[PathBuf],
    elf: Option<&Path>,
    bias: u64,
) -> Result<Profile> {
    let names = elf.map(Names::open).transpose()?;
    let mut sum = one(first, name, names.as_ref(), bias)?;
    for path in more {
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| name.clone())?;
        sum = combine(sum, one(file, &name, names.as_ref(), bias)?);
    }
    if names.is_none() {
        sum.health.warnings.push(
            "there are only addresses; name the program with --elf. Samples, and the calls that a function made, \
             count for the address before them that calls led to: callers and cycles may be wrong"
                .into(),
        );
    }
    Ok(sum)
}

fn one(file: impl Read, name: &str, names: Option<&Names>, bias: u64) -> Result<Profile> {
    let gmon = gmon::read(name, file, names.and_then(Names::program))?;
    Ok(match names {
        Some(names) => gmon::profile(&gmon, names, bias),
        None => gmon::profile(&gmon, &Names::of_calls(&gmon, bias), bias),
    })
}
