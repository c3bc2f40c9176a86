//! A hostile normal world: random numbers all over the lent memory while a trusted application works. It
//! has to give the right answers throughout, and the recorder to come to its end. How long is in
//! `TEEPERF_HOSTILE_SECONDS`; half an hour is for once, some seconds for always.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::recorded::prepare as with_command;
use super::{Group, Ran, Share, teeperf};
use crate::checks::Checks;
use crate::optee::applications;
use crate::optee::lab::Lab;

pub(super) const GROUP: Group = Group {
    name: "hostile",
    script: "SECONDS_OF=$(cat hostile.seconds)\n\
             for full in wait drop; do\n\
             bin/teeperf record -q --optee --on-full $full --limit-size 32M -o out/hostile-$full.teeperf -- bin/optee-demo hammer $SECONDS_OF >out/hammer-$full.txt 2>&1 &\n\
             sleep 1\n\
             echo \"## $full\"; bin/optee-hostile $((SECONDS_OF - 2))\n\
             wait $!; echo $?; tail -n 3 out/hammer-$full.txt\n\
             done\n\
             echo '## calm'; bin/optee-demo calls 7\n",
    prepare,
    judge,
};

/// Variable with the length of each of the two runs.
const SECONDS: &str = "TEEPERF_HOSTILE_SECONDS";
/// Where it is not set.
const USUAL: u64 = 6;

/// How long a script may take, on a machine that is busy with other things.
pub(super) fn limit() -> Result<Duration> {
    Ok(Duration::from_secs(150 + 2 * seconds()?))
}

fn seconds() -> Result<u64> {
    match std::env::var(SECONDS) {
        Ok(text) => text.parse().with_context(|| format!("{SECONDS} is a number")),
        Err(_) => Ok(USUAL),
    }
}

fn prepare(lab: &Lab, share: &Share) -> Result<()> {
    with_command(lab, share)?;
    share.put(&applications::hostile(lab), "bin")?;
    Ok(std::fs::write(share.folder().join("hostile.seconds"), seconds()?.to_string())?)
}

fn judge(ran: &Ran, checks: &mut Checks) {
    checks.add("a hostile world runs", ran.succeeded());
    for full in ["wait", "drop"] {
        checks.add(&format!("answers in a hostile world, --on-full {full}"), answers(ran, full));
        checks.add(&format!("what a hostile world leaves, --on-full {full}"), is_read(ran, full));
    }
    checks.add("answers behind it", behind(ran));
}

fn answers(ran: &Ran, full: &str) -> Result<()> {
    let text = ran.section(full)?;
    let number = |word: &str| {
        let at = text.find(word).with_context(|| format!("no {word} in:\n{text}"))?;
        let digits = text[at + word.len()..].split(|c: char| !c.is_ascii_digit()).next();
        digits.unwrap_or_default().parse::<u64>().with_context(|| text.clone())
    };
    let (writes, right) = (number("writes=")?, number("right=")?);
    // Memory that does not look as it should is a parameter too many.
    let (refused, wrong) = (number("refused=")?, number("wrong=")?);
    println!(
        "         {writes} random writes, {right} right answers, {refused} refused, {wrong} wrong"
    );
    ensure!(writes > 100_000 && right > 20 && wrong == 0, "{text}");
    Ok(())
}

/// The recording is nonsense, which is read to its end.
fn is_read(ran: &Ran, full: &str) -> Result<()> {
    teeperf(ran, &["report", "--json"], &format!("hostile-{full}.teeperf")).map(drop)
}

fn behind(ran: &Ran) -> Result<()> {
    let text = ran.section("calm")?;
    ensure!(text.contains("result=0x00000000 origin=4 a=1995"), "{text}");
    Ok(())
}
