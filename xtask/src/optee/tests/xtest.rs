//! OP-TEE's own tests as Debian has built them. Two of them: whether the machine is one at all. And all of them, beside
//! the recorder: whether anything is otherwise for those who know nothing of it.

use std::fs;
use std::time::Duration;

use anyhow::{Result, bail, ensure};

use super::recorded::{Profile, prepare as with_command};
use super::{Group, Ran};
use crate::checks::Checks;

pub(super) const GROUP: Group = Group {
    name: "xtest",
    script: "echo '## 1001'; xtest -t regression 1001\n\
             echo '## 1004'; xtest -t regression 1004\n",
    prepare: |_, _| Ok(()),
    judge,
};

/// Takes five minutes, or more where the machine is busy.
pub(super) const LIMIT: Duration = Duration::from_secs(1800);

pub(super) const WHOLE: Group = Group {
    name: "xtest-whole",
    script: "bin/teeperf record -q --optee -o out/whole.teeperf -- xtest -t regression >out/whole.txt 2>&1\n",
    prepare: with_command,
    judge: judge_whole,
};

fn judge(ran: &Ran, checks: &mut Checks) {
    for test in ["1001", "1004"] {
        checks.add(&format!("xtest regression {test}"), passed(ran, test));
    }
}

fn passed(ran: &Ran, test: &str) -> Result<()> {
    let text = ran.section(test)?;
    let is_ok = |line: &str| line.trim_end() == format!("regression_{test} OK");
    ensure!(text.lines().any(is_ok), "it did not pass:\n{text}");
    let none_failed = |line: &str| line.trim_end().ends_with(" of which 0 failed");
    ensure!(text.lines().any(none_failed), "parts of it failed:\n{text}");
    Ok(())
}

fn judge_whole(ran: &Ran, checks: &mut Checks) {
    checks.add("xtest, all of it, recorded", whole(ran));
}

fn whole(ran: &Ran) -> Result<()> {
    let text = fs::read_to_string(ran.folder.join("out/whole.txt"))?;
    let failed: Vec<&str> = text.lines().filter(|line| line.contains(" FAILED")).collect();
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    let ended = |line: &&str| line.ends_with(" test cases of which 0 failed");
    let Some(line) = text.lines().find(ended) else { bail!("it did not come to its end") };
    println!("         {line}");
    let cases: u32 = line.split(' ').next().unwrap_or_default().parse()?;
    ensure!(cases > 90, "{line}");
    let profile = Profile::of(ran, "whole.teeperf", &[])?;
    let sessions = profile.calls("TEEC_OpenSession");
    ensure!(sessions > 500 && profile.health("lost") == 0, "{sessions} sessions");
    Ok(())
}
