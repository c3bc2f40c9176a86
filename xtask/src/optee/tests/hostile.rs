//! A hostile normal world: random numbers all over the lent memory while a trusted application works. It
//! has to give the right answers throughout, and the recorder to come to its end. How long is in
//! `TEEPERF_HOSTILE_SECONDS`; half an hour is for once, some seconds for always.
//!
//! And a hostile application, which lies in the memory that it is lent: the recorder comes to its end, with no more
//! than it may write, and what it has written is read.

use std::fs;
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
             wait $!; echo $?; tail -n 40 out/hammer-$full.txt\n\
             echo \"## lies, $full\"; bin/teeperf record -q --optee --on-full $full --limit-size 32M -o out/lies-$full.teeperf -- bin/optee-demo lies 4 2>&1; echo status=$?\n\
             done\n\
             echo '## calm'; bin/optee-demo calls 7\n",
    prepare,
    judge,
};

/// Variable with the length of each of the two runs.
const SECONDS: &str = "TEEPERF_HOSTILE_SECONDS";
/// Where it is not set.
const USUAL: u64 = 6;

/// How long a script may take, on a machine that is busy with other things. Longest takes that of `recorded` where OP-TEE
/// counts calls itself and writes a file for each session: three minutes.
pub(super) fn limit() -> Result<Duration> {
    Ok(Duration::from_secs(360 + 2 * seconds()?))
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
    Ok(fs::write(share.folder().join("hostile.seconds"), seconds()?.to_string())?)
}

fn judge(ran: &Ran, checks: &mut Checks) {
    checks.add("a hostile world runs", ran.succeeded());
    for full in ["wait", "drop"] {
        checks.add(&format!("answers in a hostile world, --on-full {full}"), answers(ran, full));
        let left = format!("hostile-{full}.teeperf");
        checks.add(&format!("what a hostile world leaves, --on-full {full}"), is_read(ran, &left));
        checks.add(&format!("an application that lies, --on-full {full}"), lies(ran, full));
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
fn is_read(ran: &Ran, recording: &str) -> Result<()> {
    for words in [&["report", "--json", "--tree"][..], &["dump"], &["flame", "-o", "-"]] {
        teeperf(ran, words, recording)?;
    }
    Ok(())
}

fn lies(ran: &Ran, full: &str) -> Result<()> {
    let (text, recording) =
        (ran.section(&format!("lies, {full}"))?, format!("lies-{full}.teeperf"));
    ensure!(text.contains("lies result=0x00000000") && text.contains("status=0"), "{text}");
    let report = teeperf(ran, &["report"], &recording)?;
    ensure!(report.contains("made no sense"), "it was believed: {report}");
    // Behind the limit come the chunks that were found at once.
    let bytes = fs::metadata(ran.folder.join("out").join(&recording))?.len();
    ensure!(bytes < 64 << 20, "{bytes} bytes");
    is_read(ran, &recording)
}

fn behind(ran: &Ran) -> Result<()> {
    let text = ran.section("calm")?;
    ensure!(text.contains("result=0x00000000 origin=4 a=1995"), "{text}");
    Ok(())
}
