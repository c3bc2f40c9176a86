//! Trusted applications with hooks, and their client as it is: whether what is recorded of them is what they
//! did, in both worlds, and whether they give the answers that they give without.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::rounds::{CALLEE, DEMO, often};
use super::{Group, Ran, Share, demo, teeperf};
use crate::checks::Checks;
use crate::commands::{cargo, run_quietly};
use crate::cross::Toolchain;
use crate::optee::lab::Lab;
use crate::optee::{command, timed};

const TIMED: [&str; 3] = ["timed-1.teeperf", "timed-2.teeperf", "timed-3.teeperf"];

pub(super) const GROUP: Group = Group {
    name: "recorded",
    script: "set -e\n\
             record() { bin/teeperf record -q --optee --elf linked/$DEMO --elf linked/$CALLEE -o \"out/$1.teeperf\" -- bin/optee-demo \"$@\"; }\n\
             DEMO=80391883-0ed0-447a-a4d2-13769a2c6c84.elf\n\
             CALLEE=15cc187a-0d9c-4ce6-b9c4-532575f57ded.elf\n\
             for mode in 'calls 7' 'compute 20000000' 'params 7' 'nested 10' 'sessions 20' 'cancel 200' 'panic 66' unknown; do record $mode; done\n\
             for mode in 'slots 5' 'both 4' 'leaps 50' 'often 500'; do record $mode >/dev/null; done\n\
             for time in 1 2 3; do bin/teeperf record -q --optee --elf linked/$DEMO -o out/timed-$time.teeperf -- bin/optee-demo compute 60000000 >/dev/null; done\n\
             echo '## uncounted'; bin/teeperf record -q --optee --clock cycle -o out/uncounted.teeperf -- bin/optee-demo compute 1000 2>&1 | sed 's/^/- /'\n\
             bin/teeperf record -q --optee -o out/nameless.teeperf -- bin/optee-demo calls 7 >/dev/null\n\
             bin/teeperf record -q --optee --elf linked/$DEMO -o out/many.teeperf -- bin/optee-demo calls 20000 >/dev/null\n\
             bin/teeperf record -q --optee --on-full drop --elf linked/$DEMO -o out/dropped.teeperf -- bin/optee-demo calls 20000 >/dev/null\n\
             bin/teeperf record -q --optee --elf linked/$DEMO --elf linked/$CALLEE -o out/several.teeperf -- sh -c 'for n in 1 2 3; do bin/optee-demo calls 2000 & bin/optee-demo sessions 5 & bin/optee-demo both 4 & done; wait' >out/several.txt\n\
             killall tee-supplicant\n\
             bin/teeperf record -q --optee --elf linked/$DEMO -o out/worlds.teeperf -- sh -c 'tee-supplicant & sleep 1; bin/optee-demo calls 7 && xtest -t regression 6001; kill $!' >out/worlds.txt 2>&1\n\
             tee-supplicant -d\n\
             echo '## xtest'; bin/teeperf record -q --optee -o out/xtest.teeperf -- xtest -t regression 1001 2>&1\n",
    prepare,
    judge,
};

pub(super) fn prepare(lab: &Lab, share: &Share) -> Result<()> {
    let toolchain = Toolchain::open(&lab.path("rust"))?;
    share.put(&timed("the command", || command::build(lab, &toolchain))?, "bin")?;
    // Recordings are read on this machine.
    run_quietly(cargo().args(["build", "-j2", "-q", "-p", "teeperf"])).map(drop)
}

fn judge(ran: &Ran, checks: &mut Checks) {
    checks.add("recorded clients end", ran.succeeded());
    demo::answers(ran, checks, "while recorded");
    checks.add("calls: counts in both worlds", counts(ran));
    checks.add("calls: one stack leads from the client into the application", one_stack(ran));
    checks.add("compute: its time is found", time(ran));
    checks.add("params: a call with four parameters leaves the rest as it was", params(ran));
    checks.add("nested: the calls of the caller", nested(ran));
    checks.add("slots: what had no memory lent is handed over later", slots(ran));
    checks.add("both: calls from application to application are handed over later", both(ran));
    checks.add("sessions: each of them", sessions(ran));
    checks.add("panic: what was called up to it, and by the next", panic(ran));
    checks.add("an application without the counter that is the clock", uncounted(ran));
    checks.add("leaps: calls are right, and told that paths may not be", leaps(ran, 100));
    checks.add("five hundred calls in a row", often(ran));
    checks.add("cancel: what was called until then", cancelled(ran));
    checks.add("symbols given when it is read", nameless(ran));
    checks.add("four hundred thousand calls: each recorded", many(ran));
    checks.add("dropped: each recorded or counted as lost", dropped(ran));
    checks.add("both worlds in one flame graph", flame(ran));
    checks.add("several clients, sessions and applications at once", several(ran));
    checks.add("worlds: what the supplicant was asked for", worlds(ran));
    checks.add("xtest, whose applications have no hooks", xtest(ran));
    checks.add("what a profile looks like", shown(ran));
}

/// A recording's profile.
pub(super) struct Profile(pub(super) Value);

impl Profile {
    pub(super) fn of(ran: &Ran, recording: &str, more: &[&str]) -> Result<Self> {
        let words = [&["report", "--json"], more].concat();
        Ok(Self(serde_json::from_str(&teeperf(ran, &words, recording)?)?))
    }

    /// Functions with their calls.
    pub(super) fn functions(&self) -> impl Iterator<Item = (&str, u64)> {
        let rows = self.0["functions"].as_array().into_iter().flatten();
        rows.map(|row| {
            let calls = row["calls"].as_u64().unwrap_or_default();
            (row["name"].as_str().unwrap_or_default(), calls)
        })
    }

    pub(super) fn calls(&self, function: &str) -> u64 {
        self.functions().filter(|row| row.0 == function).map(|row| row.1).sum()
    }

    /// A time of a function, nanoseconds.
    pub(super) fn time(&self, function: &str, which: &str) -> f64 {
        let rows = self.0["functions"].as_array().into_iter().flatten();
        let mut rows = rows.filter(|row| row["name"] == function);
        rows.find_map(|row| row[which].as_f64()).unwrap_or_default()
    }

    /// A figure of the recording's health; nothing where it is not known, as of calls that are open in sums.
    pub(super) fn health(&self, what: &str) -> u64 {
        let figure = self.0["health"].get(what);
        figure.map_or(u64::MAX, |figure| figure.as_u64().unwrap_or(0))
    }

    /// Whether these functions were called so often.
    pub(super) fn has(&self, expected: &[(&str, u64)]) -> Result<()> {
        for &(function, calls) in expected {
            let found = self.calls(function);
            ensure!(found == calls, "{function} was called {found} times, not {calls}");
        }
        Ok(())
    }

    /// Whether nothing is missing.
    pub(super) fn is_whole(&self) -> Result<()> {
        for what in ["lost", "mended", "open", "unopened"] {
            ensure!(self.health(what) == 0, "{} {what}", self.health(what));
        }
        Ok(())
    }
}

/// Nothing is missing in a recording, and these functions were called so often.
pub(super) fn whole(ran: &Ran, recording: &str, calls: &[(&str, u64)]) -> Result<()> {
    let profile = Profile::of(ran, recording, &[])?;
    profile.is_whole()?;
    profile.has(calls)
}

fn counts(ran: &Ran) -> Result<()> {
    whole(
        ran,
        "calls.teeperf",
        &[
            ("TEEC_OpenSession", 1),
            ("TEEC_InvokeCommand", 1),
            ("TEEC_CloseSession", 1),
            ("TA_OpenSessionEntryPoint", 1),
            ("TA_InvokeCommandEntryPoint", 1),
            ("calls", 1),
            ("outer", 7),
            ("middle", 21),
            ("leaf", 105),
        ],
    )
}

fn one_stack(ran: &Ran) -> Result<()> {
    let path = [
        "TEEC_InvokeCommand",
        "command 0",
        "TA_InvokeCommandEntryPoint",
        "calls",
        "outer",
        "middle",
        "leaf",
    ];
    is_path(ran, "calls.teeperf", &path)
}

/// Whether these functions called each other, the last one in no other way.
pub(super) fn is_path(ran: &Ran, recording: &str, path: &[&str]) -> Result<()> {
    let Profile(profile) = Profile::of(ran, recording, &["--tree"])?;
    let nodes = profile["threads"][0]["tree"].as_array().context("no call tree")?;
    let last = path.last().context("a path leads somewhere")?;
    let mut there = nodes.iter().find(|node| node["name"] == *last);
    let mut found = Vec::new();
    while let Some(node) = there {
        found.insert(0, node["name"].as_str().unwrap_or_default());
        there = node["caller"].as_u64().and_then(|caller| nodes.get(caller as usize));
    }
    ensure!(found == path, "the path is {found:?}");
    Ok(())
}

fn time(ran: &Ran) -> Result<()> {
    Profile::of(ran, "compute.teeperf", &[])?.has(&[("compute", 1)])?;
    TIMED.into_iter().try_for_each(|recording| is_timed(ran, recording))
}

/// Most of the time of a command is the computation's.
pub(super) fn is_timed(ran: &Ran, recording: &str) -> Result<()> {
    let profile = Profile::of(ran, recording, &[])?;
    profile.is_whole()?;
    profile.has(&[("compute", 1), ("TEEC_InvokeCommand", 1)])?;
    let (inside, outside) =
        (profile.time("compute", "total"), profile.time("TEEC_InvokeCommand", "total"));
    let is_most = inside <= outside && inside > 0.5 * outside;
    ensure!(is_most, "{recording}: compute took {inside} ns of the {outside} ns of its command");
    Ok(())
}

fn params(ran: &Ran) -> Result<()> {
    whole(
        ran,
        "params.teeperf",
        &[("TEEC_InvokeCommand", 2), ("TA_OpenSessionEntryPoint", 1), ("all_four", 0)],
    )
}

fn nested(ran: &Ran) -> Result<()> {
    whole(ran, "nested.teeperf", &[("TEEC_InvokeCommand", 1), ("nested", 1)])
}

fn cancelled(ran: &Ran) -> Result<()> {
    whole(ran, "cancel.teeperf", &[("TEEC_InvokeCommand", 1), ("until_cancelled", 1)])
}

/// Ten calls in which nothing is lent, one in which something is.
fn slots(ran: &Ran) -> Result<()> {
    whole(
        ran,
        "slots.teeperf",
        &[
            ("TEEC_InvokeCommand", 11),
            ("TA_InvokeCommandEntryPoint", 11),
            ("all_four", 10),
            ("leaf", 75),
        ],
    )
}

fn both(ran: &Ran) -> Result<()> {
    // Four from the demo, one from the client.
    whole(ran, "both.teeperf", &[("twice", 5), ("nested", 1), ("TEEC_InvokeCommand", 2)])
}

fn sessions(ran: &Ran) -> Result<()> {
    whole(
        ran,
        "sessions.teeperf",
        &[
            ("TEEC_OpenSession", 21),
            ("TEEC_CloseSession", 21),
            ("TA_OpenSessionEntryPoint", 21),
            ("leaf", 300),
        ],
    )
}

fn panic(ran: &Ran) -> Result<()> {
    whole(
        ran,
        "panic.teeperf",
        &[
            ("TEEC_InvokeCommand", 3),
            // Into the panic, and anew; behind the panic nobody is called.
            ("TA_InvokeCommandEntryPoint", 2),
            ("TA_OpenSessionEntryPoint", 2),
            ("leaf", 66 * 15),
        ],
    )
}

/// Two frames are left each time without a word.
pub(super) fn leaps(ran: &Ran, mended: u64) -> Result<()> {
    let profile = Profile::of(ran, "leaps.teeperf", &[])?;
    profile.has(&[("leaps", 1), ("dive", 50), ("fall", 50), ("leaf", 50)])?;
    for (what, expected) in [("lost", 0), ("open", 0), ("unopened", 0), ("mended", mended)] {
        let found = profile.health(what);
        ensure!(found == expected, "{found} {what}, not {expected}");
    }
    Ok(())
}

fn nameless(ran: &Ran) -> Result<()> {
    let unnamed = Profile::of(ran, "nameless.teeperf", &[])?;
    ensure!(unnamed.calls("leaf") == 0, "there are names that nobody gave");
    let elf = "linked/80391883-0ed0-447a-a4d2-13769a2c6c84.elf";
    Profile::of(ran, "nameless.teeperf", &["--elf", elf])?.has(&[("leaf", 105), ("outer", 7)])
}

/// Many chunks.
fn many(ran: &Ran) -> Result<()> {
    whole(ran, "many.teeperf", &[("outer", 20_000), ("middle", 60_000), ("leaf", 300_000)])
}

/// Events that found no room are counted.
fn dropped(ran: &Ran) -> Result<()> {
    let profile = Profile::of(ran, "dropped.teeperf", &[])?;
    let (events, lost) = (profile.health("events"), profile.health("lost"));
    // outer, middle and leaf are 1 + 3 + 15 calls; eight lead to them, or begin and end the session.
    let all = 2 * (20_000 * 19 + 8);
    ensure!(events + lost == all, "{events} events and {lost} lost of {all}");
    Ok(())
}

fn flame(ran: &Ran) -> Result<()> {
    let names = ["TEEC_InvokeCommand", "TA_InvokeCommandEntryPoint", "compute"];
    for recording in TIMED {
        let svg = teeperf(ran, &["flame", "--svg", "-o", "-"], recording)?;
        ensure!(names.iter().all(|name| svg.contains(name)), "{recording} has not {names:?}");
    }
    Ok(())
}

/// Prints one, for whoever reads the output.
fn shown(ran: &Ran) -> Result<()> {
    let report = teeperf(ran, &["report", "--tree"], "many.teeperf")?;
    let profile = Profile::of(ran, "many.teeperf", &[])?;
    for name in ["TEEC_InvokeCommand", "command 0", "outer", "middle", "leaf"] {
        ensure!(profile.functions().any(|function| function.0 == name), "no {name}: {report}");
    }
    report.lines().for_each(|line| println!("         {line}"));
    Ok(())
}

/// It is not recorded and not disturbed, and why is said once; its client is recorded.
fn uncounted(ran: &Ran) -> Result<()> {
    let text = ran.section("uncounted")?;
    ensure!(text.contains("compute result=0x00000000"), "{text}");
    ensure!(text.matches("it has no counter").count() == 1, "{text}");
    whole(
        ran,
        "uncounted.teeperf",
        &[("TEEC_OpenSession", 1), ("TEEC_InvokeCommand", 1), ("compute", 0)],
    )
}

fn several(ran: &Ran) -> Result<()> {
    // On a busy machine the recorder has no time to find all names.
    let linked = [DEMO, CALLEE].map(|name| format!("linked/{name}"));
    let files = ["--elf", &linked[0], "--elf", &linked[1]];
    let profile = Profile::of(ran, "several.teeperf", &files)?;
    profile.is_whole()?;
    profile.has(&[
        ("TEEC_OpenSession", 3 + 3 * 6 + 3 * 2),
        ("outer", 3 * (2000 + 5)),
        ("middle", 3 * (6000 + 15)),
        ("leaf", 3 * (30_000 + 75)),
        ("nested", 3),
        // Each time four from the demo, one from the client, while the others call the same instance.
        ("twice", 3 * 5),
    ])
}

/// Client and supplicant in one recording, on one time line.
fn worlds(ran: &Ran) -> Result<()> {
    let text = fs::read_to_string(ran.folder.join("out/worlds.txt"))?;
    ensure!(text.contains("regression_6001 OK"), "{text}");
    let profile = Profile::of(ran, "worlds.teeperf", &[])?;
    profile.has(&[("outer", 7), ("request to the RPMB", 0)])?;
    for request in ["request to load an application", "request to the file system"] {
        let (calls, time) = (profile.calls(request), profile.time(request, "total"));
        ensure!(calls > 0, "no {request}");
        ensure!(time > 0.0, "{calls} times {request}, in no time");
    }
    Ok(())
}

fn xtest(ran: &Ran) -> Result<()> {
    let text = ran.section("xtest")?;
    ensure!(text.contains("regression_1001 OK"), "{text}");
    let profile = Profile::of(ran, "xtest.teeperf", &[])?;
    ensure!(profile.calls("TEEC_OpenSession") > 0, "no calls of the API in the recording");
    Ok(())
}
