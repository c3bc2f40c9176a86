//! `teeperf` in the guest: whether it reads what was recorded on another processor as it is read there, and
//! what it says where it has no hooks for programs.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Group, Ran, Share};
use crate::checks::{Checks, same};
use crate::commands::{cargo, root, run_quietly, target};
use crate::cross::Toolchain;
use crate::optee::lab::{Lab, emptied};
use crate::optee::{command, timed};

pub(super) const GROUP: Group = Group {
    name: "command",
    script: "echo '## version'; bin/teeperf --version\n\
             cd recording\n\
             ../bin/teeperf report library.teeperf >report.guest.txt\n\
             ../bin/teeperf flame --folded -o - library.teeperf >folded.guest.txt\n\
             ../bin/teeperf dump library.teeperf >dump.guest.txt\n\
             cd ..\n\
             echo '## cc'; bin/teeperf cc -c none.c; echo $?\n\
             echo '## c++'; bin/teeperf c++ -c none.cc; echo $?\n\
             echo '## flags'; bin/teeperf flags --libs; echo $?\n\
             echo '## install-wrappers'; bin/teeperf install-wrappers /tmp/wrappers; echo $?\n\
             echo '## demo'; bin/teeperf demo --folder /tmp/demo; echo $?\n\
             echo '## record'; bin/teeperf record -o /tmp/none.teeperf -- true; echo $?\n",
    prepare,
    judge,
};

fn prepare(lab: &Lab, share: &Share) -> Result<()> {
    let toolchain = Toolchain::open(&lab.path("rust"))?;
    share.put(&timed("the command", || command::build(lab, &toolchain))?, "bin")?;
    timed("a recording", || record(&share.folder().join("recording")))
}

/// Calls the functions of the demo, whose calls are known in number, and computes for some hundred ticks.
const MAIN: &str = "#include <work.h>\n\
                    int main(void) { return outer(1) + compute(20000000) == 0; }\n";
const RECORDING: &str = "library.teeperf";

/// On this machine: a program with hooks, a recording of it, and what is read in that here.
fn record(folder: &Path) -> Result<()> {
    run_quietly(cargo().args(["build", "-j2", "-q", "-p", "teeperf"]))?;
    let teeperf = target()?.join("debug/teeperf");
    let run = |words: &[&str]| run_quietly(Command::new(&teeperf).args(words).current_dir(folder));
    emptied(folder)?;
    fs::write(folder.join("main.c"), MAIN)?;
    let demo = root().join("integrations/optee/ta/demo");
    let (include, work) = (format!("-I{}", demo.display()), demo.join("work.c"));
    let work = work.to_str().context("the repository's path is not UTF-8")?;
    run(&["cc", "-O2", "-g", &include, "main.c", work, "-o", "program"])?;
    run(&["record", "-q", "-o", RECORDING, "--", "./program"])?;
    for (words, name) in READINGS {
        fs::write(folder.join(format!("{name}.here.txt")), run(words)?)?;
    }
    Ok(())
}

/// What is asked of the recording, here and in the guest.
const READINGS: [(&[&str], &str); 3] = [
    (&["report", RECORDING], "report"),
    (&["flame", "--folded", "-o", "-", RECORDING], "folded"),
    (&["dump", RECORDING], "dump"),
];

fn judge(ran: &Ran, checks: &mut Checks) {
    checks.add("teeperf --version", version(ran));
    for (_, name) in READINGS {
        checks
            .add(&format!("teeperf {name} of a recording of another processor"), reads(ran, name));
    }
    for command in ["cc", "c++", "flags", "install-wrappers", "demo"] {
        checks
            .add(&format!("teeperf {command} says that there are no hooks"), refuses(ran, command));
    }
    checks.add("teeperf record runs what has no hooks", records(ran));
}

fn version(ran: &Ran) -> Result<()> {
    same(&ran.section("version")?, &format!("teeperf {}\n", env!("CARGO_PKG_VERSION")))
}

fn reads(ran: &Ran, name: &str) -> Result<()> {
    let read = |place: &str| {
        let file = ran.folder.join("recording").join(format!("{name}.{place}.txt"));
        fs::read_to_string(&file).with_context(|| file.display().to_string())
    };
    let here = read("here")?;
    ensure!(here.contains("compute"), "it is not of the demo's functions:\n{here}");
    same(&read("guest")?, &here)
}

/// One sentence, and no success.
fn refuses(ran: &Ran, command: &str) -> Result<()> {
    let text = ran.section(command)?;
    let lines: Vec<&str> = text.lines().collect();
    let is_told = lines.first().is_some_and(|line| line.contains("no hooks for programs"));
    ensure!(is_told && lines.len() == 2 && lines[1] == "1", "it said:\n{text}");
    Ok(())
}

fn records(ran: &Ran) -> Result<()> {
    let text = ran.section("record")?;
    ensure!(text.contains("nothing was recorded"), "it said:\n{text}");
    let has_run = text.lines().last() == Some("0");
    ensure!(has_run, "the program's exit status is not passed on:\n{text}");
    Ok(())
}
