//! Trusted applications whose calls are summed in their own memory: whether the sums are what they did.

use anyhow::Result;

use super::recorded::{Profile, leaps, prepare};
use super::{Group, Ran, demo, teeperf};
use crate::checks::Checks;

pub(super) const GROUP: Group = Group {
    name: "summed",
    script: "set -e\n\
             record() { bin/teeperf record -q --optee --elf linked/$DEMO --elf linked/$CALLEE -o \"out/$1.teeperf\" -- bin/optee-demo \"$@\"; }\n\
             DEMO=80391883-0ed0-447a-a4d2-13769a2c6c84.elf\n\
             CALLEE=15cc187a-0d9c-4ce6-b9c4-532575f57ded.elf\n\
             for mode in 'calls 7' 'compute 20000000' 'params 7' 'nested 10' 'sessions 20' 'cancel 200' 'panic 66' unknown; do record $mode; done\n\
             record slots 5 >/dev/null\n\
             record leaps 50 >/dev/null\n\
             bin/teeperf record -q --optee --elf linked/$DEMO -o out/many.teeperf -- bin/optee-demo calls 200000 >/dev/null\n\
             cd out && ../bin/optee-demo take 7 >/dev/null\n",
    prepare,
    judge,
};

fn judge(ran: &Ran, checks: &mut Checks) {
    checks.add("summed clients end", ran.succeeded());
    demo::answers(ran, checks, "while summed");
    checks.add("summed calls: counts in both worlds", counts(ran, "calls", 7, 1));
    checks.add("summed sessions", counts(ran, "sessions", 20, 21));
    checks.add("summed calls with and without free parameters", slots(ran));
    checks.add("summed: out of functions by leaps", leaps(ran, 100));
    checks.add("summed calls taken in pieces, with no recorder there", taken(ran));
    checks.add("four million calls, summed: none is missing", counts(ran, "many", 200_000, 1));
}

/// Calls of `calls`, so many rounds, behind so many openings of a session.
fn counts(ran: &Ran, recording: &str, rounds: u64, openings: u64) -> Result<()> {
    let profile = Profile::of(ran, &format!("{recording}.teeperf"), &[])?;
    profile.is_whole()?;
    profile.has(&[
        ("TEEC_InvokeCommand", 1),
        ("TA_OpenSessionEntryPoint", openings),
        ("TA_InvokeCommandEntryPoint", 1),
        ("calls", 1),
        ("outer", rounds),
        ("middle", 3 * rounds),
        ("leaf", 15 * rounds),
    ])
}

/// What the client got through a command's parameter, imported here.
fn taken(ran: &Ran) -> Result<()> {
    let elf = ran.folder.join("linked/80391883-0ed0-447a-a4d2-13769a2c6c84.elf");
    let recording = ran.folder.join("out/taken.teeperf");
    let words = [elf.as_path(), &recording].map(|path| path.to_string_lossy().into_owned());
    teeperf(ran, &["import", "--elf", &words[0], "--force", "-o", &words[1]], "taken")?;
    let profile = Profile::of(ran, "taken.teeperf", &[])?;
    profile.is_whole()?;
    profile.has(&[
        ("TA_OpenSessionEntryPoint", 1),
        ("calls", 1),
        ("outer", 7),
        ("middle", 21),
        ("leaf", 105),
    ])
}

fn slots(ran: &Ran) -> Result<()> {
    let profile = Profile::of(ran, "slots.teeperf", &[])?;
    profile.is_whole()?;
    profile.has(&[("TA_InvokeCommandEntryPoint", 11), ("all_four", 10), ("leaf", 75)])
}
