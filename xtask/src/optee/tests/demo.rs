//! The demo in `integrations/optee`, in each of its modes: whether its client gets the answers that follow
//! from what it asked.

use anyhow::{Result, ensure};

use super::{Group, Ran};
use crate::checks::Checks;

pub(super) const GROUP: Group = Group {
    name: "demo",
    script: "set -e\n\
             bin/optee-demo calls 7\n\
             bin/optee-demo compute 20000000\n\
             bin/optee-demo params 7\n\
             bin/optee-demo nested 10\n\
             bin/optee-demo sessions 20\n\
             bin/optee-demo cancel 200\n\
             bin/optee-demo panic 66\n\
             bin/optee-demo unknown\n",
    prepare: |_, _| Ok(()),
    judge,
};

/// How answers begin: with the result, as OP-TEE's client library has it, and with who gave it, which is the
/// application (4) or OP-TEE itself (3).
const SUCCESS: &str = "result=0x00000000 origin=4";
const CANCELLED: &str = "result=0xffff0002 origin=4";
const NOT_SUPPORTED: &str = "result=0xffff000a origin=4";
const TOO_SHORT: &str = "result=0xffff0010 origin=4";
const DEAD: &str = "result=0xffff3024 origin=3";

fn judge(ran: &Ran, checks: &mut Checks) {
    checks.add("demo ends", ran.succeeded());
    answers(ran, checks, "");
}

/// Whether the client has printed what follows from the numbers that the script gives it; how it ran is for
/// the check's name.
pub(super) fn answers(ran: &Ran, checks: &mut Checks, how: &str) {
    answers_to(ran, checks, how, |_| true);
}

/// Likewise, where not all is asked.
pub(super) fn answers_to(
    ran: &Ran,
    checks: &mut Checks,
    how: &str,
    is_asked: impl Fn(&str) -> bool,
) {
    let sum: u32 = "normal world".bytes().map(u32::from).sum();
    let params = format!("{SUCCESS} a=8 b=7 size=12 sum={sum} length=12 text=dlrow lamron");
    for (word, answer) in [
        ("calls", format!("{SUCCESS} a={} b=0", calls(7))),
        ("compute", format!("{SUCCESS} a={} b=0", compute(20_000_000))),
        ("params", params),
        ("short", format!("{TOO_SHORT} size=12")),
        ("nested", format!("{SUCCESS} a=1024 b=0")),
        ("sessions", format!("{SUCCESS} a={} b=0", calls(20))),
        ("cancel", CANCELLED.into()),
        ("panic", DEAD.into()),
        ("panicked", DEAD.into()),
        ("anew", format!("{SUCCESS} a={} b=0", calls(66))),
        ("unknown", NOT_SUPPORTED.into()),
    ] {
        if !is_asked(word) {
            continue;
        }
        checks.add(format!("demo {word} {how}").trim_end(), answered(ran, word, &answer));
    }
}

fn answered(ran: &Ran, word: &str, answer: &str) -> Result<()> {
    let found = ran.line(word)?;
    ensure!(found.starts_with(answer), "the answer was {found}, not {answer}");
    Ok(())
}

/// What `calls` of the demo gives: see `ta/demo/work.c`.
fn calls(rounds: u32) -> u32 {
    let leaf = |number: u32| 3 * number + 1;
    let middle = |number: u32| (number..number + 5).map(leaf).sum::<u32>();
    let outer = |number: u32| (number..number + 3).map(middle).sum::<u32>();
    (0..rounds).map(outer).sum()
}

/// What `compute` of the demo gives.
fn compute(rounds: u32) -> u32 {
    (0..rounds).fold(1u32, |number, _| number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223))
}
