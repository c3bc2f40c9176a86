//! What the runtime costs: bytes of code and data, and instructions of a call and its return while the clock
//! stands, counted one by one by the emulator, beside those of the least that a tracer can do.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::build::{Kind, Workshop, conformance};
use crate::commands::{root, run_quietly, works};

/// As `cost.c` has it.
const CALLS: u64 = 1000;
/// Bytes of code at most.
const MOST_CODE: u64 = 16384;
/// Times the instructions of the least.
const MOST_TIMES: f64 = 1.3;
const HOOKS: [&str; 2] = ["__cyg_profile_func_enter", "__cyg_profile_func_exit"];
/// What most images call; the rest of the runtime is not linked into them, where they are linked with `--gc-sections`.
const USUAL: [&str; 7] = [
    HOOKS[0],
    HOOKS[1],
    "teeperf_tee_arc",
    "teeperf_tee_attach",
    "teeperf_tee_detach",
    "teeperf_tee_end_thread",
    "teeperf_tee_recording",
];

/// Of one processor.
pub(super) struct Cost {
    machine: &'static str,
    /// Instructions of the least.
    least: u64,
    /// Of the kinds of the runtime, and their instructions.
    kinds: Vec<(Kind, u64, Sizes)>,
}

/// Bytes of a kind: see [`sizes`].
struct Sizes {
    code: u64,
    all: u64,
    data: u64,
}

impl Cost {
    /// An error where it is more than it may be, of the kind that most images have.
    pub(super) fn check(&self) -> Result<()> {
        for (kind, instructions, Sizes { code, .. }) in &self.kinds {
            let times = *instructions as f64 / self.least as f64;
            if matches!(kind, Kind::Usual) {
                ensure!(*code <= MOST_CODE, "{code} bytes of code");
                ensure!(
                    times <= MOST_TIMES,
                    "{instructions} instructions are {times:.2} times the least"
                );
            }
        }
        Ok(())
    }
}

/// Builds and counts.
pub(super) fn measure(shop: &Workshop) -> Result<Cost> {
    let word = conformance("word").to_string_lossy().into_owned();
    let least = instructions(shop, &shop.link("cost", "cost-least", Kind::Usual, &[&word])?)?;
    let mut kinds = Vec::new();
    for kind in Kind::ALL {
        let program = shop.program("cost", kind, &[])?;
        kinds.push((kind, instructions(shop, &program)?, sizes(shop, &shop.library(kind))?));
    }
    Ok(Cost { machine: shop.machine.name, least, kinds })
}

/// Instructions of both hooks, for one call.
fn instructions(shop: &Workshop, program: &Path) -> Result<u64> {
    let mut nm = Command::new(format!("{}nm", shop.machine.prefix));
    let symbols = run_quietly(nm.arg("-S").arg(program))?;
    let mut ranges = Vec::new();
    for line in symbols.lines() {
        if let [address, size, _, name] = line.split_whitespace().collect::<Vec<_>>()[..]
            && HOOKS.contains(&name)
        {
            ranges.push(format!("0x{address}+0x{size}"));
        }
    }
    ensure!(ranges.len() == HOOKS.len(), "{} has not both hooks", program.display());
    let log = shop.path("executed.log");
    let emulator = shop.machine.emulator;
    // Since version 8.1 it has another name.
    let steps = ["-one-insn-per-tb", "-singlestep"];
    let step = steps.into_iter().find(|step| works(emulator, &[step, "--version"]));
    let mut emulated = Command::new("timeout");
    emulated.args(["60", emulator]).args(step).args(["-d", "exec,nochain"]);
    emulated.arg("-D").arg(&log).args(["-dfilter", &ranges.join(",")]).arg(program);
    run_quietly(&mut emulated)?;
    let text = fs::read_to_string(&log).with_context(|| log.display().to_string())?;
    let executed = text.lines().filter(|line| line.starts_with("Trace ")).count() as u64;
    fs::remove_file(&log)?;
    // But for the first call, all are alike.
    Ok((executed + CALLS / 2) / CALLS)
}

/// Of a library's first object, the runtime without the platform's functions: bytes of code and of data that an image
/// has of it which has hooks and attaches memory, and bytes of code in all.
fn sizes(shop: &Workshop, library: &Path) -> Result<Sizes> {
    let (object, kept) = (shop.path("tee.o"), shop.path("kept.o"));
    let tool = |name: &str| Command::new(format!("{}{name}", shop.machine.prefix));
    run_quietly(
        tool("ar")
            .arg("x")
            .args(["--output".as_ref(), shop.path("").as_os_str()])
            .args([library, "tee.o".as_ref()]),
    )?;
    let roots = USUAL.iter().map(|name| format!("--undefined={name}"));
    let mut link = tool("ld");
    link.args(["-r", "--gc-sections", "--entry=teeperf_anchor"]).args(roots);
    run_quietly(link.arg(&object).arg("-o").arg(&kept))?;
    let ((code, data), (all, _)) =
        (measured(&mut tool("size"), &kept)?, measured(&mut tool("size"), &object)?);
    ensure!(0 < code && code < all, "{}: {code} of {all} bytes of code", library.display());
    Ok(Sizes { code, all, data })
}

/// Bytes of code, and of data, of an object.
fn measured(size: &mut Command, object: &Path) -> Result<(u64, u64)> {
    let text = run_quietly(size.arg("-A").arg(object))?;
    let (mut code, mut data) = (0, 0);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [section, size, _] = words[..] else { continue };
        let Ok(size) = size.parse::<u64>() else { continue };
        match section.split('.').nth(1) {
            Some("text") => code += size,
            Some("data" | "bss" | "rodata" | "tbss" | "tdata") => data += size,
            _ => {}
        }
    }
    Ok((code, data))
}

/// All figures, for people.
pub(super) fn table(costs: &[Cost]) -> String {
    let mut text = String::from(
        "| processor | kind | instructions of a call and its return | of the least | times | code | with `teeperf_take` | data |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for Cost { machine, least, kinds } in costs {
        for (kind, instructions, Sizes { code, all, data }) in kinds {
            let times = *instructions as f64 / *least as f64;
            let _ = writeln!(
                text,
                "| {machine} | {} | {instructions} | {least} | {times:.2} | {code} | {all} | {data} |",
                kind.name()
            );
        }
    }
    text
}

/// Puts the table where the page has it.
pub(super) fn write(table: &str) -> Result<()> {
    const BEGIN: &str = "<!-- cargo xtask targets --write -->\n";
    const END: &str = "<!-- end -->";
    let path = root().join("docs/porting.md");
    let page = fs::read_to_string(&path)?;
    let (before, rest) = page.split_once(BEGIN).context("docs/porting.md has no place for it")?;
    let (_, after) = rest.split_once(END).context("docs/porting.md has no end of it")?;
    fs::write(&path, format!("{before}{BEGIN}\n{table}\n{END}{after}"))?;
    Ok(())
}
