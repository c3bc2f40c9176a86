//! How the runtime becomes a library: one object with all of it, and one for each function of the platform's
//! that an image may bring itself, so that a link takes those alone that it does not bring.

use super::archive::{self, Member};
use super::compile::Build;
use super::compiler::Compiler;
use super::target::Wanted;
use super::{Kind, Threads};
use anyhow::{Context, Result, ensure};
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};
use std::path::Path;

/// A built library.
pub(super) struct Library {
    /// The `.a` file.
    pub(super) archive: Vec<u8>,
    /// The target that it is for.
    pub(super) triple: &'static str,
    /// Bytes of code of the runtime, without the platform's functions.
    pub(super) code: u64,
}

/// Functions of `port.rs`, which has a feature for each.
const PORTS: [&str; 8] =
    ["is_outside", "pause", "counter", "counter_hz", "name", "tree", "sums", "arcs"];
/// Calls that are counted.
const TABLE: &str = "teeperf_arcs";
/// The rest of the ports' names.
const PORT: &str = "teeperf_port_";

/// Compiles it in `work`, where the sources are.
pub(super) fn build(
    compiler: &Compiler,
    wanted: &Wanted,
    kind: Kind,
    work: &Path,
) -> Result<Library> {
    let (triple, sysroot) = compiler.core_for(wanted.triples(), work)?;
    let out = work.join(triple);
    std::fs::create_dir_all(&out)?;
    let crates = work.join("crates");
    let sysroot = sysroot.to_str().context("the sysroot's name is no text")?;
    let mut flags = vec!["--target", triple, "--sysroot", sysroot];
    flags.extend(wanted.architecture().flags);
    flags.push("--cfg=feature=\"never-folds\"");
    let build = Build { crates: &crates, out: &out, flags: &flags };
    let told = anyhow::Error::msg;
    build.library("teeperf_wire", &[]).map_err(told)?;
    build.library("teeperf_tally", &["teeperf_wire"]).map_err(told)?;

    let runtime = out.join("libteeperf_tee.a");
    // As a static library with link-time optimisation, so that what it uses of other crates and of the core
    // library comes with it in one object, and nothing else does.
    let mut options = vec!["--crate-type=staticlib", "-Clto=fat"];
    // What hooks do each time is inlined whatever this says; of the rest each function is there once.
    options.push("-Cllvm-args=-inline-threshold=25");
    options.push("--cfg=feature=\"object\"");
    if kind.nested {
        options.push("--cfg=feature=\"nested\"");
    }
    match kind.threads {
        Threads::Single => {}
        Threads::Tls => options.push("--cfg=feature=\"threads\""),
        Threads::Apart => options.push("--cfg=feature=\"apart\""),
    }
    build
        .rustc("teeperf_tee", &["teeperf_wire", "teeperf_tally"], &runtime, &options)
        .map_err(told)?;

    let mut members = vec![Member { name: "tee.o".into(), contents: object_of(&runtime)? }];
    let mut small = |file: &str, name: &str, uses: &[&str], features: &[&str]| -> Result<()> {
        let object = out.join(format!("{name}.o"));
        let features: Vec<String> =
            features.iter().map(|feature| format!("--cfg=feature=\"{feature}\"")).collect();
        let mut options = vec!["--crate-type=lib", "--emit=obj"];
        options.extend(features.iter().map(String::as_str));
        let source = format!("teeperf-tee/{file}");
        let crate_name = format!("teeperf_port_{name}");
        build.source(&source, &crate_name, uses, &object, &options).map_err(told)?;
        members.push(Member::read(&format!("{name}.o"), &object)?);
        Ok(())
    };
    let threads: &[&str] = if kind.threads == Threads::Tls { &["threads"] } else { &[] };
    // Threads apart have no table that they could count in.
    let has_mcount = kind.threads != Threads::Apart;
    if has_mcount {
        small("mcount/mcount.rs", "mcount", &["teeperf_tally"], threads)?;
    }
    for port in PORTS {
        small("port/port.rs", port, &[], &[port])?;
    }
    let code = check(&members[0].contents)?;
    if has_mcount {
        check_table(&members[1].contents)?;
    }
    Ok(Library { archive: archive::of(&members)?, triple, code })
}

/// The runtime's object in the library that the compiler made, beside which lies what the compiler calls by
/// itself, on some processors.
fn object_of(library: &Path) -> Result<Vec<u8>> {
    let bytes = std::fs::read(library).with_context(|| library.display().to_string())?;
    let archive = ArchiveFile::parse(&*bytes)?;
    let members: Result<Vec<_>, _> = archive.members().collect();
    let is_own = |name: &[u8]| String::from_utf8_lossy(name).contains(".teeperf_tee.");
    let mut own = members?.into_iter().filter(|member| is_own(member.name()));
    let only = own.next().filter(|_| own.next().is_none());
    let only = only.context("the compiler has not made one object of the runtime")?;
    Ok(only.data(&*bytes)?.to_vec())
}

/// Looks whether the runtime stands alone but for the platform's functions; the bytes of its code.
fn check(object: &[u8]) -> Result<u64> {
    let file = object::File::parse(object)?;
    for symbol in file.symbols().filter(|symbol| symbol.is_undefined()) {
        let name = symbol.name().unwrap_or_default();
        ensure!(
            name.is_empty() || name.starts_with(PORT),
            "this compiler makes the runtime call {name}, which nobody brings: try another version of it"
        );
    }
    let code = file.sections().filter(|section| section.kind() == SectionKind::Text);
    Ok(code.map(|section| section.size()).sum())
}

/// Looks whether the table of calls lies in zeroed memory, where assembly has put it.
fn check_table(object: &[u8]) -> Result<()> {
    let file = object::File::parse(object)?;
    let table = file.symbol_by_name(TABLE).and_then(|table| table.section_index());
    let kind = table.map(|section| file.section_by_index(section)).transpose()?;
    let kind = kind.map(|section| section.kind());
    ensure!(
        matches!(kind, Some(SectionKind::UninitializedData | SectionKind::UninitializedTls)),
        "this compiler puts {TABLE} elsewhere than into zeroed memory: try another version of it"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The table in this section.
    fn assembled(section: &str) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let [source, object] = ["table.s", "table.o"].map(|name| folder.path().join(name));
        std::fs::write(&source, format!("{section}\n{TABLE}:\n.zero 8\n")).unwrap();
        let done = Command::new("cc").arg("-c").arg(&source).arg("-o").arg(&object).status();
        assert!(done.unwrap().success());
        std::fs::read(object).unwrap()
    }

    #[test]
    fn a_table_that_lies_in_code_is_refused() {
        for section in [".bss", ".section .tbss.x, \"awT\", %nobits"] {
            check_table(&assembled(section)).unwrap();
        }
        for section in [".text", ".data"] {
            let error = check_table(&assembled(section)).unwrap_err();
            assert!(error.to_string().contains(TABLE), "{error}");
        }
    }
}
