//! What runs in the guest: groups of checks, one file for each. A group brings a script, what the script
//! needs in the shared folder, and the checks of what it has printed. All groups of a boot share a machine.

mod command;
mod counted;
mod demo;
mod gprof;
mod guest;
mod hostile;
mod recorded;
mod summed;
mod timer;
mod xtest;

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::applications::{self, Build};
use super::boot::Machine;
use super::fetch::Kit;
use super::firmware::Firmware;
use super::lab::Lab;
use super::{initramfs, timed};
use crate::checks::Checks;
use crate::commands::{run_quietly, target};
use crate::cross::{ARM64_LINUX, Toolchain};
use crate::sdk;
use guest::{Ran, Share};

/// One file in this folder.
struct Group {
    name: &'static str,
    /// What the guest's shell runs, in the shared folder.
    script: &'static str,
    /// Puts into the shared folder what the script needs beside the applications and their client.
    prepare: fn(&Lab, &Share) -> Result<()>,
    /// Looks at what came of it.
    judge: fn(&Ran, &mut Checks),
}

const EVERYWHERE: &[Group] = &[xtest::GROUP, demo::GROUP, command::GROUP];
const WITH_32_BITS: &[Group] = &[demo::GROUP];
const WITH_COUNTED_CALLS: &[Group] = &[gprof::GROUP];
const WITH_HOOKS: &[Group] = &[recorded::GROUP, hostile::GROUP];
const WITH_TREES: &[Group] = &[summed::GROUP];
const WITH_ARCS: &[Group] = &[counted::GROUP];
const WITH_TIMER: &[Group] = &[timer::GROUP];

/// Of all groups.
pub(super) fn names() -> Vec<&'static str> {
    [EVERYWHERE, WITH_COUNTED_CALLS, WITH_HOOKS, WITH_TREES, WITH_ARCS, WITH_TIMER]
        .iter()
        .copied()
        .flatten()
        .map(|group| group.name)
        .collect()
}

/// Boots a firmware once for each way in which applications are built for it, and runs what is to be tried
/// there; of that only what is wanted by name, if anything is.
pub(super) fn run(
    lab: &Lab,
    kit: &Kit,
    firmware: &Firmware,
    wanted: &[String],
    checks: &mut Checks,
) -> Result<()> {
    let build = |what: &str| Build {
        name: format!("{}-{what}", firmware.name),
        kit: &firmware.kit,
        compiler: "aarch64-linux-gnu-",
        variables: Vec::new(),
    };
    let mut boots = vec![(build("64-bit"), EVERYWHERE)];
    if let Some(kit) = &firmware.kit_32 {
        let compiler = "arm-linux-gnueabihf-";
        boots.push((Build { kit, compiler, ..build("32-bit") }, WITH_32_BITS));
    } else {
        checks.skip(
            &format!("{}-32-bit", firmware.name),
            "this OP-TEE's kit is for 64-bit applications alone; --from-source builds both",
        );
    }
    if firmware.has_gprof {
        let variables = vec!["CFG_TA_MCOUNT=y".into()];
        boots.push((Build { variables, ..build("counted") }, WITH_COUNTED_CALLS));
    }
    let folder = lab.path("sdk");
    let sdk = Toolchain::open(&lab.path("rust")).and_then(|toolchain| {
        let (targets, log) = ([(ARM64_LINUX, Some(&toolchain))], lab.log("sdk"));
        sdk::install(&folder, &targets, &[], &log)
    });
    match sdk {
        Ok(()) => {
            let variables = vec![format!("TEEPERF={}/optee", folder.display())];
            let summed = [&variables[..], &["TEEPERF_PROBE=tree".into()]].concat();
            let arcs = [&variables[..], &["TEEPERF_PROBE=gprof".into()]].concat();
            if firmware.has_timer {
                let timer = [&variables[..], &["TEEPERF_COUNTER=y".into()]].concat();
                boots.push((Build { variables: timer, ..build("timer") }, WITH_TIMER));
            }
            boots.push((Build { variables, ..build("hooked") }, WITH_HOOKS));
            boots.push((Build { variables: summed, ..build("summed") }, WITH_TREES));
            boots.push((Build { variables: arcs, ..build("arcs") }, WITH_ARCS));
        }
        Err(error) => checks.add("an SDK for trusted applications", Err(error)),
    }
    for (build, groups) in boots {
        let is_wanted =
            |group: &&Group| wanted.is_empty() || wanted.iter().any(|w| w == group.name);
        let groups: Vec<&Group> = groups.iter().filter(is_wanted).collect();
        if !groups.is_empty() {
            checks.on(&build.name);
            boot(lab, kit, firmware, &build, &groups, checks)?;
        }
    }
    Ok(())
}

fn boot(
    lab: &Lab,
    kit: &Kit,
    firmware: &Firmware,
    build: &Build<'_>,
    groups: &[&Group],
    checks: &mut Checks,
) -> Result<()> {
    let share = Share::anew(lab.path("boots").join(&build.name))?;
    timed("applications and their client", || {
        for application in build.applications(lab)? {
            share.put(&application.signed, "ta")?;
            share.put(&application.linked, "linked")?;
        }
        share.put(&applications::client(lab, kit)?, "bin")
    })?;
    let limit = hostile::limit()?;
    fs::write(share.folder().join("limit"), limit.as_secs().to_string())?;
    let mut prepared = Vec::new();
    for group in groups {
        match (group.prepare)(lab, &share).and_then(|()| share.script(group.name, group.script)) {
            Ok(()) => prepared.push(group),
            Err(error) => checks.add(group.name, Err(error)),
        }
    }
    let (archive, kernel) = (initramfs::archive(lab, kit)?, kit.kernel()?);
    let machine = Machine {
        flash: &firmware.flash,
        kernel: &kernel,
        initramfs: &archive,
        share: share.folder(),
        scripts: limit,
    };
    let consoles = timed("the machine", || machine.run(lab, &build.name))?;
    let has_ended = consoles.normal.contains("all scripts have run");
    ensure!(has_ended, "the guest did not come to its end:\n{}", consoles.normal);
    for group in prepared {
        match share.ran(group.name) {
            Ok(ran) => (group.judge)(&ran, checks),
            Err(error) => checks.add(group.name, Err(error)),
        }
    }
    Ok(())
}

/// What this machine's `teeperf` prints.
fn teeperf(ran: &Ran, words: &[&str], recording: &str) -> Result<String> {
    let mut command = Command::new(target()?.join("debug/teeperf"));
    command.args(words).arg(ran.folder.join("out").join(recording)).current_dir(&ran.folder);
    run_quietly(&mut command).with_context(|| recording.to_owned())
}
