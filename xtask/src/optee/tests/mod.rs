//! What runs in the guest: groups of checks, one file for each. A group brings a script, what the script
//! needs in the shared folder, and the checks of what it has printed. All groups of a boot share a machine.

mod command;
mod counted;
mod demo;
mod gprof;
mod guest;
mod hostile;
mod killed;
mod library;
mod recorded;
mod rounds;
mod rust;
mod summed;
mod timer;
mod xtest;

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::added::Added;
use super::applications::{self, Build};
use super::boot::Machine;
use super::fetch::{self, Kit};
use super::firmware::Firmware;
use super::lab::Lab;
use super::{Arguments, initramfs, timed};
use crate::checks::Checks;
use crate::commands::{run_quietly, target};
use crate::cross::{ARM64_LINUX, Toolchain};
use crate::sdk;
use guest::{Ran, Share};

/// One file in this folder.
#[derive(Clone, Copy)]
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
const WITH_HOOKS: &[Group] =
    &[recorded::GROUP, killed::GROUP, library::GROUP, rust::GROUP, hostile::GROUP];
const WITH_TREES: &[Group] = &[summed::GROUP, library::GROUP, rust::SUMMED];
const WITH_ARCS: &[Group] = &[counted::GROUP, library::GROUP, rust::SUMMED];
const XTEST: &[Group] = &[xtest::WHOLE];
const WITH_TIMER: &[Group] = &[timer::GROUP];
const WITH_HOOKS_AND_32_BITS: &[Group] = &[recorded::GROUP, library::GROUP];
const WITH_TREES_AND_32_BITS: &[Group] = &[summed::GROUP, library::GROUP];
const WITH_ARCS_AND_32_BITS: &[Group] = &[counted::GROUP, library::GROUP];

/// What 32-bit applications are built with.
const ARM_COMPILER: &str = "arm-linux-gnueabihf-";
const ARM_BARE: &str = "armv7a-none-eabi";
/// Applications whose size is looked at, and what is told of them: one has nothing of the library's but what the
/// makefile brings.
const MEASURED: [(&str, &str); 2] =
    [(rounds::CALLEE, "an application"), (rounds::DEMO, "one that calls teeperf_take")];

/// Of all groups.
pub(super) fn names() -> Vec<&'static str> {
    let mut names = Vec::new();
    for group in
        [EVERYWHERE, WITH_COUNTED_CALLS, WITH_HOOKS, WITH_TREES, WITH_ARCS, WITH_TIMER, XTEST]
            .concat()
    {
        if !names.contains(&group.name) {
            names.push(group.name);
        }
    }
    names
}

/// Boots a firmware once for each way in which applications are built for it, and runs what is to be tried
/// there; of that only what is wanted by name, if anything is, and what takes long only when it is, or with `--from-source`.
pub(super) fn run(
    lab: &Lab,
    kit: &Kit,
    firmware: &Firmware,
    arguments: &Arguments,
    checks: &mut Checks,
) -> Result<()> {
    let build = |what: &str| Build {
        name: format!("{}-{what}", firmware.name),
        kit: &firmware.kit,
        compiler: "aarch64-linux-gnu-",
        variables: Vec::new(),
        others: Vec::new(),
        rust: None,
    };
    let wanted = &arguments.groups;
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|one| one == name);
    let mut boots = vec![(build("64-bit"), EVERYWHERE)];
    if firmware.has_tests && (arguments.from_source || !wanted.is_empty()) {
        boots.push((build("xtest"), XTEST));
    }
    if let Some(kit) = &firmware.kit_32 {
        boots.push((Build { kit, compiler: ARM_COMPILER, ..build("32-bit") }, WITH_32_BITS));
    } else {
        checks.skip(
            &format!("{}-32-bit", firmware.name),
            "this OP-TEE's kit is for 64-bit applications alone; --from-source builds both",
        );
    }
    let folder = lab.path("sdk");
    let sdk = Toolchain::open(&lab.path("rust")).and_then(|toolchain| {
        let mut targets = vec![(ARM64_LINUX, Some(&toolchain))];
        if firmware.kit_32.is_some() {
            targets.push((ARM_BARE, Some(&toolchain)));
        }
        sdk::install(&folder, &targets, &[], &lab.log("sdk"))?;
        Ok(toolchain)
    });
    let toolchain;
    match sdk {
        Ok(found) => {
            toolchain = found;
            let mut variables = vec![format!("TEEPERF={}/optee", folder.display())];
            if is_wanted(library::GROUP.name) {
                match timed("zlib's sources", || fetch::zlib(lab)) {
                    Ok(sources) => variables.push(format!("ZLIB={}", sources.display())),
                    Err(error) => checks.add("zlib in an application", Err(error)),
                }
            }
            let rust = is_wanted(rust::GROUP.name).then_some(&toolchain);
            let counted = rust.filter(|toolchain| toolchain.has_mcount());
            let summed = [&variables[..], &["TEEPERF_PROBE=tree".into()]].concat();
            let arcs = [&variables[..], &["TEEPERF_PROBE=gprof".into()]].concat();
            if firmware.has_gprof {
                let own = vec!["CFG_TA_MCOUNT=y".into()];
                let both = [&variables[..], &own].concat();
                let others = vec![("ours", arcs.clone()), ("both", both)];
                let counted =
                    |name| Build { variables: own.clone(), others: others.clone(), ..build(name) };
                boots.push((counted("counted"), WITH_COUNTED_CALLS));
                if let Some(kit) = &firmware.kit_32 {
                    let compiler = ARM_COMPILER;
                    let build = Build { kit, compiler, ..counted("counted-32-bit") };
                    boots.push((build, WITH_COUNTED_CALLS));
                }
            }
            if firmware.has_timer {
                let timer = [&variables[..], &["TEEPERF_COUNTER=y".into()]].concat();
                boots.push((Build { variables: timer, ..build("timer") }, WITH_TIMER));
            }
            if let Some(kit) = &firmware.kit_32 {
                let variables = [variables.clone(), summed.clone(), arcs.clone()];
                let groups =
                    [WITH_HOOKS_AND_32_BITS, WITH_TREES_AND_32_BITS, WITH_ARCS_AND_32_BITS];
                let names = ["hooked-32-bit", "summed-32-bit", "arcs-32-bit"];
                for ((variables, groups), name) in variables.into_iter().zip(groups).zip(names) {
                    let compiler = ARM_COMPILER;
                    boots.push((Build { kit, compiler, variables, ..build(name) }, groups));
                }
            }
            boots.push((Build { variables, rust, ..build("hooked") }, WITH_HOOKS));
            boots.push((Build { variables: summed, rust, ..build("summed") }, WITH_TREES));
            boots.push((Build { variables: arcs, rust: counted, ..build("arcs") }, WITH_ARCS));
        }
        Err(error) => checks.add("an SDK for trusted applications", Err(error)),
    }
    for (build, groups) in boots {
        let groups: Vec<&Group> = groups.iter().filter(|group| is_wanted(group.name)).collect();
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
            let is_hooked = build.variables.iter().any(|one| one.starts_with("TEEPERF="));
            let ours = MEASURED.iter().find(|(name, _)| application.linked.ends_with(name));
            if let Some((_, what)) = ours.filter(|_| is_hooked) {
                let added = Added::of(&application.linked.with_extension("map"))?;
                let Added { code, data } = added;
                let name = format!("{code} bytes of code and {data} of data are added to {what}");
                checks.add(&name, added.check());
            }
        }
        for (folder, variables) in &build.others {
            for application in build.other(lab, folder, variables)? {
                share.put(&application.signed, folder)?;
                share.put(&application.linked, folder)?;
            }
        }
        share.put(&applications::client(lab, kit)?, "bin")
    })?;
    let limit = if groups.iter().any(|group| group.name == xtest::WHOLE.name) {
        xtest::LIMIT
    } else {
        hostile::limit()?
    };
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
        emulator: &kit.emulator,
        flash: &firmware.flash,
        kernel: &kernel,
        initramfs: &archive,
        share: share.folder(),
        scripts: limit * prepared.len() as u32,
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
