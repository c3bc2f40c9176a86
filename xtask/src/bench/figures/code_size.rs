//! How much larger code is with hooks.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use object::{Object, ObjectSection, SectionKind};

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::programs::{empty, lua_sources};
use crate::bench::table::{Limit, Row, digits};
use crate::commands::run_quietly;

pub(crate) const FIGURE: Figure = Figure {
    name: "size",
    title: "Size of code with hooks",
    method: "lua 5.4 and sqlite3 as one object file for each source, compiled at -O2 and at -Os: \
             bytes of all sections with code, without the runtime, beside no hooks and hooks of \
             the source.",
    measure,
};

fn measure(lab: &Lab) -> Result<Vec<Row>> {
    let (folder, include) = lab.lua_source()?;
    let lua = Sources { name: "lua", files: lua_sources(&folder, |_| true)?, include };
    let file = lab.amalgamation()?;
    let include = file.with_file_name("");
    let sqlite = Sources { name: "sqlite3", files: vec![file], include };
    let mut rows = Vec::new();
    for level in ["-O2", "-Os"] {
        for sources in [&lua, &sqlite] {
            rows.push(row(lab, sources, level)?);
        }
    }
    Ok(rows)
}

/// Files to compile, and a folder of headers.
struct Sources {
    name: &'static str,
    files: Vec<PathBuf>,
    include: PathBuf,
}

fn row(lab: &Lab, sources: &Sources, level: &str) -> Result<Row> {
    let size = |hooks| size(lab, sources, level, hooks);
    let (plain, late, source) = (size(Hooks::None)?, size(Hooks::Late)?, size(Hooks::Source)?);
    let kilobytes = |bytes: u64| format!("{} kB", digits(bytes as f64 / 1e3));
    let name = sources.name;
    Ok(Row::new(&format!("{name}{level}"), &format!("{name}, {level}"), kilobytes(late))
        .beside(format!("no hooks {}, of the source {}", kilobytes(plain), kilobytes(source)))
        .limit(Limit::AtMost(1.6), Some(late as f64 / plain as f64), "×"))
}

/// Bytes of code of all objects.
fn size(lab: &Lab, sources: &Sources, level: &str, hooks: Hooks) -> Result<u64> {
    let folder = lab.work.join(hooks.name()).join(format!("size-{}{level}", sources.name));
    empty(&folder)?;
    let mut command = lab.compilers(hooks)?.command(false);
    command.args(["-c", level, "-DSQLITE_THREADSAFE=0", "-DLUA_USE_LINUX"]).current_dir(&folder);
    command.arg("-I").arg(&sources.include).args(&sources.files);
    run_quietly(&mut command)?;
    let mut bytes = 0;
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        let data = fs::read(&path)?;
        let object = object::File::parse(&*data).with_context(|| path.display().to_string())?;
        let code = object.sections().filter(|section| section.kind() == SectionKind::Text);
        bytes += code.map(|section| section.size()).sum::<u64>();
    }
    Ok(bytes)
}
