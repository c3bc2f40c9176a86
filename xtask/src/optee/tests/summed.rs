//! Trusted applications whose calls are summed in their own memory: whether the sums are what they did.

use anyhow::Result;

use super::recorded::{leaps, prepare, whole};
use super::rounds::{DEMO, clients, counts, often};
use super::{Group, Ran, demo, teeperf};
use crate::checks::Checks;

pub(super) const GROUP: Group = Group {
    name: "summed",
    script: clients!("cd out && ../bin/optee-demo take 7 >/dev/null\n"),
    prepare,
    judge,
};

/// By each client once.
const CALLS: [(&str, u64); 1] = [("calls", 1)];

fn judge(ran: &Ran, checks: &mut Checks) {
    checks.add("summed clients end", ran.succeeded());
    demo::answers(ran, checks, "while summed");
    checks.add("summed calls: counts in both worlds", counts(ran, "calls", 7, 1, &CALLS));
    checks.add("summed sessions", counts(ran, "sessions", 20, 21, &CALLS));
    checks.add("summed calls with and without free parameters", slots(ran));
    checks.add("summed: five hundred calls in a row", often(ran));
    checks.add("summed: out of functions by leaps", leaps(ran, 100));
    checks.add("summed calls taken in pieces, with no recorder there", taken(ran));
    checks.add(
        "four million calls, summed: none is missing",
        counts(ran, "many", 200_000, 1, &CALLS),
    );
}

/// What the client got through a command's parameter, imported here.
fn taken(ran: &Ran) -> Result<()> {
    let elf = ran.folder.join("linked").join(DEMO);
    let recording = ran.folder.join("out/taken.teeperf");
    let words = [elf.as_path(), &recording].map(|path| path.to_string_lossy().into_owned());
    teeperf(ran, &["import", "--elf", &words[0], "--force", "-o", &words[1]], "taken")?;
    whole(
        ran,
        "taken.teeperf",
        &[
            ("TA_OpenSessionEntryPoint", 1),
            ("calls", 1),
            ("outer", 7),
            ("middle", 21),
            ("leaf", 105),
        ],
    )
}

fn slots(ran: &Ran) -> Result<()> {
    whole(
        ran,
        "slots.teeperf",
        &[("TA_InvokeCommandEntryPoint", 11), ("all_four", 10), ("leaf", 75)],
    )
}
