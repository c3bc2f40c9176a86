//! The trusted application in Rust: whether its client gets its answers, and whether what is recorded of it is
//! what it did. Its functions record themselves, or the compiler has them counted.

use anyhow::{Result, ensure};

use super::recorded::{is_path, prepare as with_command, whole};
use super::{Group, Ran, Share, demo};
use crate::checks::Checks;
use crate::optee::lab::Lab;
use crate::packages::Unavailable;

pub(super) const GROUP: Group = Group {
    name: "rust",
    script: "set -e\n\
             record() { bin/teeperf record -q --optee --elf linked/1e049072-b8cb-47f1-9b1a-a928a446c5e9.elf -o \"out/rust-$1.teeperf\" -- bin/optee-demo rust \"$@\"; }\n\
             bin/optee-demo rust calls 9\n\
             echo '## recorded'\n\
             for mode in 'calls 7' 'compute 20000000' 'sessions 20' 'panic 66' unknown; do record $mode; done\n\
             bin/teeperf record -q --optee --elf linked/1e049072-b8cb-47f1-9b1a-a928a446c5e9.elf -o out/rust-many.teeperf -- bin/optee-demo rust calls 20000 >/dev/null\n",
    prepare,
    judge: |ran, checks| {
        judge(ran, checks);
        checks.add("Rust: one stack leads from the client into the application", one_stack(ran));
        // What was called up to the panic, and by the next.
        let calls = [("TA_InvokeCommandEntryPoint", 2), (LEAF, 2 * 66 * 15), (PANICS, 1)];
        checks.add("Rust: a panic leaves what was recorded", panicked(ran, &calls));
    },
};

/// Its calls summed, or counted by the compiler's hooks.
pub(super) const SUMMED: Group = Group {
    judge: |ran, checks| {
        judge(ran, checks);
        checks.add("Rust: a panic leaves what was handed over", panicked(ran, &BEHIND));
    },
    ..GROUP
};

const LEAF: &str = "rust_ta::work::leaf";
const PANICS: &str = "rust_ta::work::panics";
/// By the next session alone: what is summed in an application that panics is lost with it.
const BEHIND: [(&str, u64); 3] = [("TA_InvokeCommandEntryPoint", 1), (LEAF, 66 * 15), (PANICS, 0)];

fn prepare(lab: &Lab, share: &Share) -> Result<()> {
    let built = share.folder().join("ta/1e049072-b8cb-47f1-9b1a-a928a446c5e9.ta");
    if !built.is_file() {
        let why = "the compiler has no calls counted (-Z instrument-mcount)";
        return Err(Unavailable(why.into()).into());
    }
    with_command(lab, share)
}

fn judge(ran: &Ran, checks: &mut Checks) {
    checks.add("Rust's clients end", ran.succeeded());
    let asked = ["compute", "sessions", "panic", "panicked", "anew", "unknown"];
    demo::answers_to(ran, checks, "in Rust, recorded", |word| asked.contains(&word));
    checks.add("Rust: its answers are the same when it is recorded", answers(ran));
    checks.add("Rust: calls", counts(ran, "rust-calls", 7, 1));
    checks.add("Rust: calls of each session", counts(ran, "rust-sessions", 20, 21));
    checks.add("Rust: four hundred thousand calls", counts(ran, "rust-many", 20_000, 1));
}

fn answers(ran: &Ran) -> Result<()> {
    let recorded = ran.section("recorded")?;
    for (text, answer) in [(&*ran.text, "a=2970"), (&*recorded, "a=1995")] {
        let first = text.lines().next().unwrap_or_default();
        let expected = format!("calls result=0x00000000 origin=4 {answer} b=0");
        ensure!(first == expected, "the answer was {first}, not {expected}");
    }
    Ok(())
}

fn counts(ran: &Ran, recording: &str, rounds: u64, openings: u64) -> Result<()> {
    whole(
        ran,
        &format!("{recording}.teeperf"),
        &[
            ("TEEC_InvokeCommand", 1),
            ("TA_OpenSessionEntryPoint", openings),
            ("TA_InvokeCommandEntryPoint", 1),
            ("rust_ta::work::calls", 1),
            (RUN, rounds),
            ("rust_ta::work::middle", 3 * rounds),
            (LEAF, 15 * rounds),
        ],
    )
}

const RUN: &str = "<rust_ta::work::Outer>::run";

fn one_stack(ran: &Ran) -> Result<()> {
    let path = [
        "TEEC_InvokeCommand",
        "command 0",
        "TA_InvokeCommandEntryPoint",
        "rust_ta::work::calls",
        RUN,
        "rust_ta::work::middle",
        LEAF,
    ];
    is_path(ran, "rust-calls.teeperf", &path)
}

fn panicked(ran: &Ran, calls: &[(&str, u64)]) -> Result<()> {
    whole(ran, "rust-panic.teeperf", &[&[("TEEC_InvokeCommand", 3)], calls].concat())
}
