//! zlib in a trusted application, built with hooks as it is: whether its work is right, and whether each of its
//! functions was called as often as in a Linux program that does the same, in all ways of recording.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::recorded::{Profile, prepare as with_command};
use super::{Group, Ran, Share};
use crate::checks::Checks;
use crate::commands::{root, run_quietly};
use crate::optee::fetch;
use crate::optee::lab::{Lab, emptied};
use crate::optee::timed;
use crate::packages::Unavailable;
use crate::sdk;

pub(super) const GROUP: Group = Group {
    name: "library",
    script: "set -e\n\
             bin/optee-demo squeeze 400000\n\
             bin/teeperf record -q --optee --elf linked/6093aedd-5083-4868-bee3-accd3e6c3147.elf -o out/library.teeperf -- bin/optee-demo squeeze 400000 >out/squeezed.txt\n",
    prepare,
    judge,
};

/// The same work as a Linux program, which prints as the client does.
const MAIN: &str = "#include <squeeze.h>\n\
                    #include <stdio.h>\n\
                    int main(void)\n\
                    {\n\
                    struct squeezed squeezed;\n\
                    if (squeeze(400000, &squeezed))\n\
                    return 1;\n\
                    printf(\"a=%u b=%u\\n\", squeezed.length, squeezed.crc);\n\
                    return 0;\n\
                    }\n";
/// What it printed, and its recording: below the folder of the recordings of the guest.
const PRINTED: &str = "here/printed.txt";
const RECORDING: &str = "here/program.teeperf";
/// A function without a body: no call of it is left where there are no hooks in it.
const EMPTY: &str = "tr_static_init";

fn prepare(lab: &Lab, share: &Share) -> Result<()> {
    let zlib = fetch::zlib_folder(lab);
    if !zlib.is_dir() {
        return Err(Unavailable("zlib's sources are not there".into()).into());
    }
    with_command(lab, share)?;
    timed("zlib in a program", || record(&zlib, &share.folder().join("out")))
}

fn record(zlib: &Path, out: &Path) -> Result<()> {
    let teeperf = sdk::teeperf()?;
    let (work, folder) = (root().join("integrations/optee/ta/library"), out.join("here"));
    emptied(&folder)?;
    fs::write(folder.join("main.c"), MAIN)?;
    let mut build = Command::new(&teeperf);
    // Trusted applications have hooks at the calls of the source.
    build.args(["cc", "--teeperf-hooks=source", "-O2", "-g", "-DZ_SOLO"]).current_dir(&folder);
    build.args(["main.c", "-o", "program"]);
    build.arg("-I").arg(zlib).arg("-I").arg(&work).arg(work.join("squeeze.c"));
    build.args(sources(&work)?.iter().map(|name| zlib.join(format!("{name}.c"))));
    run_quietly(&mut build)?;
    let run = |words: &[&str]| run_quietly(Command::new(&teeperf).args(words).current_dir(out));
    let printed = run(&["record", "-q", "-o", RECORDING, "--", "here/program"])?;
    Ok(fs::write(out.join(PRINTED), printed)?)
}

/// Those of zlib's sources that the application is built with.
fn sources(work: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(work.join("sub.mk"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("ZLIB_SOURCES = "));
    let names = line.context("sub.mk of the application does not name zlib's sources")?;
    Ok(names.split_whitespace().map(str::to_owned).collect())
}

fn judge(ran: &Ran, checks: &mut Checks) {
    checks.add("zlib's client ends", ran.succeeded());
    checks.add("zlib does its work, recorded or not", answers(ran));
    checks.add("zlib: each function was called as often as in a Linux program", counts(ran));
}

fn answers(ran: &Ran) -> Result<()> {
    let read = |name: &str| {
        let file = ran.folder.join("out").join(name);
        fs::read_to_string(&file).with_context(|| file.display().to_string())
    };
    let expected = format!("squeeze result=0x00000000 origin=4 {}", read(PRINTED)?.trim_end());
    for found in [ran.text.clone(), read("squeezed.txt")?] {
        ensure!(found.trim_end() == expected, "the answer was {found}, not {expected}");
    }
    Ok(())
}

/// Of all functions of the program; the application has others that lead to the work.
fn counts(ran: &Ran) -> Result<()> {
    let here = Profile::of(ran, RECORDING, &[])?;
    let guest = Profile::of(ran, "library.teeperf", &[])?;
    here.is_whole()?;
    guest.is_whole()?;
    let is_shared = |name: &str| name != "main" && name != EMPTY;
    let expected: Vec<_> = here.functions().filter(|(name, _)| is_shared(name)).collect();
    let sum: u64 = expected.iter().map(|(_, calls)| calls).sum();
    let number = expected.len();
    ensure!(number > 40 && sum > 50_000, "the program has made {sum} calls of {number} functions");
    guest.has(&expected)?;
    guest.has(&[("TEEC_InvokeCommand", 1), ("TA_InvokeCommandEntryPoint", 1)])
}
