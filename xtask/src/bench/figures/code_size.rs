//! How much larger code is with hooks.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use object::{Object, ObjectSection, SectionKind};

use super::Figure;
use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;
use crate::bench::subject::text;
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
    let lua = vec![folder, include];
    let sqlite = vec![lab.amalgamation()?];
    let mut rows = Vec::new();
    for level in ["-O2", "-Os"] {
        rows.push(row(lab, "lua", &lua, level)?);
        rows.push(row(lab, "sqlite3", &sqlite, level)?);
    }
    Ok(rows)
}

/// `sources` is one file, or a folder of files and one of headers.
fn row(lab: &Lab, name: &str, sources: &[PathBuf], level: &str) -> Result<Row> {
    let size = |hooks| size(lab, name, sources, level, hooks);
    let (plain, late, source) = (size(Hooks::None)?, size(Hooks::Late)?, size(Hooks::Source)?);
    let kilobytes = |bytes: u64| format!("{} kB", digits(bytes as f64 / 1e3));
    Ok(Row::new(&format!("{name}{level}"), &format!("{name}, {level}"), kilobytes(late))
        .beside(format!("no hooks {}, of the source {}", kilobytes(plain), kilobytes(source)))
        .limit(Limit::AtMost(1.6), Some(late as f64 / plain as f64), "×"))
}

/// Bytes of code of all objects.
fn size(lab: &Lab, name: &str, sources: &[PathBuf], level: &str, hooks: Hooks) -> Result<u64> {
    let folder = lab.work.join(hooks.name()).join(format!("size-{name}{level}"));
    super::super::programs::empty(&folder)?;
    let mut command = lab.compilers(hooks)?.command(false);
    command.args(["-c", level, "-DSQLITE_THREADSAFE=0", "-DLUA_USE_LINUX"]).current_dir(&folder);
    match sources {
        [files, headers] => {
            command.arg("-I").arg(headers);
            for entry in fs::read_dir(files)? {
                let file = text(&entry?.path());
                if file.ends_with(".c") {
                    command.arg(file);
                }
            }
        }
        _ => drop(command.args(sources)),
    }
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
