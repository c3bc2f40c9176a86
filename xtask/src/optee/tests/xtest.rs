//! OP-TEE's own tests, two of them, as Debian has built them: whether the machine is one at all.

use anyhow::{Result, ensure};

use super::{Group, Ran};
use crate::checks::Checks;

pub(super) const GROUP: Group = Group {
    name: "xtest",
    script: "echo '## 1001'; xtest -t regression 1001\n\
             echo '## 1004'; xtest -t regression 1004\n",
    prepare: |_, _| Ok(()),
    judge,
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
