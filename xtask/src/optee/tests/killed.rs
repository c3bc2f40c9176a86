//! Who takes part in a recording ends in the midst of it: clients that are killed, an application that OP-TEE ends, a
//! supplicant that is killed and started anew, the recorder itself. What was done up to there is recorded, and whoever
//! comes behind is served and recorded as ever.
//!
//! No client is killed while it opens a session: that at times ends the supplicant, with and without a recorder
//! (`integrations/optee/README.md`).

use std::cell::Cell;
use std::fs;

use anyhow::{Context, Result, ensure};

use super::recorded::{Profile, prepare, whole};
use super::rounds::DEMO;
use super::{Group, Ran};
use crate::checks::Checks;

/// Rounds in which each is tried; fewer, where they take long.
const ROUNDS: u32 = 3;
const FEWER_ROUNDS: u32 = 1;
/// Calls of `outer` that a client makes with each command until it is killed.
const EACH: u64 = 2000;
/// Events of such a call: its own, those of three calls of `middle`, of five of `leaf` in each.
const EVENTS: u64 = 2 * (1 + 3 + 15);
/// More than the events around these, of a command or a session.
const AROUND: u64 = 20;
/// And with the one command of a client that comes behind.
const BEHIND: u64 = 7;

pub(super) const GROUP: Group = Group {
    name: "killed",
    script: "set -e\n\
             record() { to=$1; shift; timeout -s KILL 60 bin/teeperf record -q --optee --elf linked/80391883-0ed0-447a-a4d2-13769a2c6c84.elf -o out/$to.teeperf -- \"$@\"; }\n\
             cat >until <<'END'\n\
             for time in $(seq 600); do [ $(cat $1 2>/dev/null | wc -l) -lt $2 ] || exit 0; usleep 50000; done\n\
             echo \"$1 has no $2 lines\"; exit 1\n\
             END\n\
             cat >client <<'END'\n\
             bin/optee-demo $2 $3 >out/$1 & client=$!\n\
             sh until out/$1 1 && usleep $4\n\
             kill -9 $client; wait $client\n\
             bin/optee-demo calls 7\n\
             END\n\
             cat >supplied <<'END'\n\
             bin/optee-demo endless 2000 >out/$1 & client=$!\n\
             sh until out/$1 1 && killall -9 tee-supplicant && sleep 1\n\
             env -u LD_PRELOAD -u TEEPERF_SOCKET tee-supplicant -d\n\
             sh until out/$1 $(($(wc -l <out/$1) + 2))\n\
             kill -9 $client; wait $client\n\
             bin/optee-demo calls 7\n\
             END\n\
             for round in 1 2 3; do\n\
             record midst-$round sh client midst-$round endless 2000 $((round * 70000))\n\
             record between-$round sh client between-$round linger 2000 $((round * 10000))\n\
             (sh until out/interrupted-$round 2; usleep $((round * 70000)); kill -INT $(pidof teeperf)) &\n\
             record interrupted-$round bin/optee-demo endless 2000 >out/interrupted-$round || echo \"## interrupted-$round $?\"\n\
             done\n\
             record crash bin/optee-demo crash 66 >out/crash\n\
             for round in 1; do\n\
             record supplied-$round sh supplied supplied-$round\n\
             (sh until out/left-$round 40; kill -9 $(pidof teeperf)) &\n\
             record left-$round bin/optee-demo endless 2000 >out/left-$round || echo \"## left-$round $?\"\n\
             sh until out/left-$round $(($(wc -l <out/left-$round) + 50))\n\
             killall -9 optee-demo\n\
             record behind-$round bin/optee-demo calls 7\n\
             done\n",
    prepare,
    judge,
};

fn judge(ran: &Ran, checks: &mut Checks) {
    // In how many rounds something found no room.
    let lossy = Cell::new(0);
    let mut each = |rounds: u32, name: &str, check: &dyn Fn(u32) -> Result<()>| {
        let check = |round| check(round).with_context(|| format!("round {round}"));
        checks.add(name, (1..=rounds).try_for_each(check));
    };
    each(ROUNDS, "clients killed in the midst of a call", &|round| {
        killed(ran, "midst", round, &lossy)
    });
    each(ROUNDS, "clients killed between calls", &|round| between(ran, round));
    each(ROUNDS, "a recorder that is interrupted", &|round| interrupted(ran, round, &lossy));
    each(FEWER_ROUNDS, "another supplicant", &|round| killed(ran, "supplied", round, &lossy));
    each(FEWER_ROUNDS, "a client goes on without its recorder", &|round| left(ran, round));
    each(FEWER_ROUNDS, "a recording behind a recorder that was killed", &|round| {
        behind(ran, round)
    });
    checks.add("an application that OP-TEE ends", crashed(ran));
    checks.add("answers behind what was killed", answers(ran));
}

/// Who comes behind is served.
fn answers(ran: &Ran) -> Result<()> {
    ran.succeeded()?;
    let is_right = |line: &&str| *line == "calls result=0x00000000 origin=4 a=1995 b=0";
    let (found, expected) =
        (ran.text.lines().filter(is_right).count(), 2 * (ROUNDS + FEWER_ROUNDS));
    ensure!(found == expected as usize, "{found} right answers, not {expected}");
    Ok(())
}

/// Calls of `endless` whose answers the client has told.
fn told(ran: &Ran, what: &str, round: u32) -> Result<u64> {
    let text = fs::read_to_string(ran.folder.join(format!("out/{what}-{round}")))?;
    let is_right = |line: &str| line.starts_with("endless result=0x00000000 origin=4 ");
    ensure!(text.ends_with('\n') && text.lines().all(is_right), "the client has told {text:?}");
    Ok(text.lines().count() as u64)
}

/// What was answered is recorded; so is the call that the client did not see the end of, where there was one: the
/// application came to its end. An application waits for a second; a recorder that the machine gives no time for as long
/// makes no room, and then what found none is told. That may be so in one round of all.
fn is_recorded(profile: &Profile, told: u64, behind: u64, lossy: &Cell<u32>) -> Result<()> {
    let made = [EACH * told + behind, EACH * (told + 1) + behind];
    let (outer, lost) = (profile.calls("outer"), profile.health("lost"));
    if lost == 0 {
        ensure!(made.contains(&outer), "{outer} calls of outer, when {told} answers were told");
        return profile.has(&[("middle", 3 * outer), ("leaf", 15 * outer)]);
    }
    ensure!(lossy.replace(lossy.get() + 1) == 0, "{lost} lost, and not in one round alone");
    let all = profile.health("events").saturating_add(lost);
    let is_all =
        |outer: &u64| (EVENTS * outer..EVENTS * outer + AROUND * (told + 3)).contains(&all);
    ensure!(made.iter().any(is_all), "{all} events with those lost, when {told} answers were told");
    Ok(())
}

fn killed(ran: &Ran, what: &str, round: u32, lossy: &Cell<u32>) -> Result<()> {
    let profile = Profile::of(ran, &format!("{what}-{round}.teeperf"), &[])?;
    is_recorded(&profile, told(ran, what, round)?, BEHIND, lossy)?;
    profile.has(&[("TEEC_OpenSession", 2), ("TEEC_CloseSession", 1)])
}

fn between(ran: &Ran, round: u32) -> Result<()> {
    let outer = EACH + BEHIND;
    whole(
        ran,
        &format!("between-{round}.teeperf"),
        &[
            ("TEEC_OpenSession", 2),
            ("TEEC_InvokeCommand", 2),
            ("TEEC_CloseSession", 1),
            ("outer", outer),
            ("leaf", 15 * outer),
        ],
    )
}

/// What it was about stands there, and what the next session has done.
fn crashed(ran: &Ran) -> Result<()> {
    let text = fs::read_to_string(ran.folder.join("out/crash"))?;
    ensure!(text.contains("crash result=0xffff3024 origin=3"), "{text}");
    whole(
        ran,
        "crash.teeperf",
        &[
            ("TEEC_InvokeCommand", 3),
            ("TA_InvokeCommandEntryPoint", 3),
            ("TA_OpenSessionEntryPoint", 2),
            ("crash", 1),
            ("outer", 2 * 66),
            ("leaf", 2 * 66 * 15),
        ],
    )
}

/// The interrupt goes on to the client, and ends the recorder as well when that has written all.
fn interrupted(ran: &Ran, round: u32, lossy: &Cell<u32>) -> Result<()> {
    ended_with(ran, "interrupted", round, "130")?;
    let profile = Profile::of(ran, &format!("interrupted-{round}.teeperf"), &[])?;
    is_recorded(&profile, told(ran, "interrupted", round)?, 0, lossy)
}

/// The client goes on; the recording ends where the recorder was.
fn left(ran: &Ran, round: u32) -> Result<()> {
    ended_with(ran, "left", round, "137")?;
    // Names are what a recorder writes last.
    let elf = format!("linked/{DEMO}");
    let profile = Profile::of(ran, &format!("left-{round}.teeperf"), &["--elf", &elf])?;
    let (outer, told) = (profile.calls("outer"), told(ran, "left", round)?);
    ensure!(outer >= EACH && outer < EACH * told, "{outer} calls of outer, {told} answers told");
    Ok(())
}

fn ended_with(ran: &Ran, what: &str, round: u32, status: &str) -> Result<()> {
    let found = ran.line(&format!("## {what}-{round}"))?;
    ensure!(found == status, "the recorder of {what}-{round} ended with {found}");
    Ok(())
}

fn behind(ran: &Ran, round: u32) -> Result<()> {
    let outer = BEHIND;
    let calls = [("TEEC_OpenSession", 1), ("outer", outer), ("leaf", 15 * outer)];
    whole(ran, &format!("behind-{round}.teeperf"), &calls)
}
