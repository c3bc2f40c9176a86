//! A process that runs: why a recording has nothing of it.

use super::{Finding, elf};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use teeperf_record::control::{self, Request};
use teeperf_wire::hello::SOCKET_VARIABLE;
use teeperf_wire::hook;

const AREA: &str = "process";

/// What was found out.
#[derive(Clone, Default)]
struct Facts {
    /// Its user.
    user: u32,
    /// Whether it was started with a recorder's socket; nothing where its environment cannot be read.
    has_recorder: Option<bool>,
    /// What the recorder answers, or why it does not.
    answer: Option<Result<String, String>>,
    /// Whether it is in the network namespace of this command; nothing where that cannot be told.
    is_beside_us: Option<bool>,
    /// As `/proc/PID/status` has it.
    seccomp: u32,
    /// Modules with hooks, by name, with the interface.
    hooked: Vec<(String, u32)>,
    /// Files of code that were looked at.
    modules: usize,
    has_runtime: bool,
}

/// Looks at a process.
pub(crate) fn examine(pid: u32) -> Vec<Finding> {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let Ok(about) = folder.metadata() else {
        let text = format!("there is no process {pid}");
        return vec![Finding::missing(
            AREA,
            text,
            "`pidof PROGRAM` tells the number of one that runs",
        )];
    };
    // SAFETY: asks for a number and cannot fail.
    judge(&Facts::gather(pid, &folder, about.uid()), unsafe { libc::geteuid() })
}

impl Facts {
    fn gather(pid: u32, folder: &Path, user: u32) -> Self {
        let environment = std::fs::read(folder.join("environ")).ok();
        let prefix = format!("{SOCKET_VARIABLE}=");
        let has_recorder = environment.map(|environment| {
            let mut variables = environment.split(|&byte| byte == 0);
            variables.any(|variable| variable.starts_with(prefix.as_bytes()))
        });
        let answer = (has_recorder == Some(true))
            .then(|| control::request(pid, &Request::Status).map_err(|error| error.to_string()));
        let space = |of: &Path| std::fs::read_link(of.join("ns/net")).ok();
        let spaces = space(folder).zip(space(Path::new("/proc/self")));
        let maps = std::fs::read_to_string(folder.join("maps")).unwrap_or_default();
        let files = code_files(&maps);
        let mut facts = Self {
            user,
            has_recorder,
            answer,
            is_beside_us: spaces.map(|(its, ours)| its == ours),
            seccomp: seccomp(&std::fs::read_to_string(folder.join("status")).unwrap_or_default()),
            ..Self::default()
        };
        for file in &files {
            // As the process has it: it may be in another root.
            let Ok(elf) =
                elf::read(&folder.join("root").join(file.strip_prefix("/").unwrap_or(file)))
            else {
                continue;
            };
            facts.modules += 1;
            facts.has_runtime |= elf.has_runtime;
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            facts.hooked.extend(elf.hooks.map(|version| (name, version)));
        }
        facts
    }
}

fn seccomp(status: &str) -> u32 {
    let line = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    line.and_then(|text| text.trim().parse().ok()).unwrap_or_default()
}

/// Files of which a process has code: lines of proc_pid_maps(5).
fn code_files(maps: &str) -> BTreeSet<PathBuf> {
    let lines = maps.lines().filter_map(|line| {
        let mut fields = line.splitn(6, ' ');
        let rights = fields.nth(1)?;
        let path = fields.nth(3)?.trim_start();
        (rights.contains('x') && path.starts_with('/')).then(|| PathBuf::from(path))
    });
    lines.collect()
}

fn judge(facts: &Facts, own: u32) -> Vec<Finding> {
    let mut findings = vec![recorder(facts)];
    if facts.user != own && own != 0 {
        let text = format!(
            "it is user {}'s, and you are {own}: a recorder takes only its own user's",
            facts.user
        );
        findings.push(Finding::missing(AREA, text, "record as that user"));
    }
    if facts.is_beside_us == Some(false) {
        let text =
            "it is in another network namespace: it cannot find a recorder that is in this one";
        findings.push(Finding::missing(
            AREA,
            text,
            "record inside the container, or share its network namespace",
        ));
    }
    if facts.seccomp != 0 {
        let text = "it has a seccomp filter: hooks need memory (mmap, with a descriptor that they are sent) and a socket";
        findings.push(Finding::warning(
            AREA,
            text,
            "record it without the filter, if nothing comes",
        ));
    }
    let others = |version: &u32| *version != hook::VERSION;
    let names = |hooked: &[&(String, u32)]| {
        hooked.iter().map(|(name, _)| &name[..]).collect::<Vec<_>>().join(", ")
    };
    let (old, new): (Vec<_>, Vec<_>) =
        facts.hooked.iter().partition(|(_, version)| others(version));
    findings.push(match (new.is_empty(), facts.modules) {
        (false, _) => Finding::ready("hooks", format!("modules with hooks: {}", names(&new))),
        (true, 0) => Finding::warning("hooks", "its files of code cannot be read", "ask as its user, or as root"),
        (true, all) => Finding::missing(
            "hooks",
            format!("none of its {all} files of code has hooks of interface {}", hook::VERSION),
            "build it with CC=\"teeperf cc\" CXX=\"teeperf c++\"; `teeperf doctor PROGRAM` tells more of one",
        ),
    });
    if !old.is_empty() {
        let text =
            format!("modules with hooks of other interfaces, which stay silent: {}", names(&old));
        findings.push(Finding::warning("hooks", text, "build them again with this teeperf"));
    }
    if !new.is_empty() && !facts.has_runtime {
        let text = "none of its modules has the runtime, without which hooks are silent";
        let next = "start it by `teeperf record`, which preloads the runtime, or link the program by `teeperf cc`";
        findings.push(Finding::missing("hooks", text, next));
    }
    findings
}

fn recorder(facts: &Facts) -> Finding {
    match (facts.has_recorder, &facts.answer) {
        (None, _) => {
            Finding::warning(AREA, "its environment cannot be read", "ask as its user, or as root")
        }
        (Some(false), _) => Finding::missing(
            AREA,
            "it was not started by a recorder (or has written over its environment): one that runs cannot be joined",
            "start it by `teeperf record -- PROGRAM`; --paused, and `teeperf resume` later, leaves a beginning out",
        ),
        (_, Some(Ok(status))) => {
            Finding::ready(AREA, format!("it is being recorded: {}", in_short(status)))
        }
        (_, Some(Err(why))) => Finding::missing(
            AREA,
            format!("the recorder that it was started by does not answer: {why}"),
            "start it again by `teeperf record -- PROGRAM`: without a recorder hooks stay silent",
        ),
        (_, None) => Finding::missing(AREA, "its recorder was not asked", "ask as its user"),
    }
}

/// What matters most of a status.
fn in_short(status: &str) -> String {
    let value =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let wanted = ["state", "clock", "events", "lost"];
    let parts = wanted.iter().filter_map(|name| Some(format!("{name} {}", value(name)?)));
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    fn good() -> Facts {
        Facts {
            has_recorder: Some(true),
            answer: Some(Ok("state: recording\nevents: 12\n".into())),
            is_beside_us: Some(true),
            hooked: vec![("program".into(), hook::VERSION)],
            modules: 3,
            has_runtime: true,
            ..Facts::default()
        }
    }

    fn wrong(facts: &Facts) -> Vec<(Verdict, String)> {
        let found = judge(facts, 7).into_iter().filter(|found| found.verdict != Verdict::Ready);
        found.map(|found| (found.verdict, found.text)).collect()
    }

    #[test]
    fn why_nothing_comes_of_a_process() {
        assert_eq!(wrong(&Facts { user: 7, ..good() }), []);
        let of = |facts: Facts| wrong(&Facts { user: 7, ..facts });
        let one = |facts| match &of(facts)[..] {
            [(verdict, text)] => (*verdict, text.clone()),
            other => panic!("{other:?}"),
        };
        let missing = |facts, part: &str| {
            let (verdict, text) = one(facts);
            assert!(verdict == Verdict::Missing && text.contains(part), "{text}");
        };
        missing(Facts { has_recorder: Some(false), ..good() }, "not started by a recorder");
        missing(Facts { answer: Some(Err("gone".into())), ..good() }, "does not answer: gone");
        missing(Facts { is_beside_us: Some(false), ..good() }, "network namespace");
        missing(Facts { hooked: Vec::new(), ..good() }, "none of its 3 files");
        missing(Facts { has_runtime: false, ..good() }, "has the runtime");
        assert_eq!(one(Facts { has_recorder: None, ..good() }).0, Verdict::Warning);
        assert_eq!(one(Facts { seccomp: 2, ..good() }).0, Verdict::Warning);
        let old = vec![("program".into(), hook::VERSION), ("old.so".into(), 1)];
        assert!(one(Facts { hooked: old, ..good() }).1.contains("old.so"));
        assert!(wrong(&good())[0].1.contains("user 0's"));
    }

    #[test]
    fn files_of_code() {
        let maps = "55d0-55d1 r-xp 00000000 08:01 123                        /usr/bin/a b\n\
            55d1-55d2 r--p 00001000 08:01 123    /usr/bin/data\n7ff0-7ff1 r-xp 00000000 00:00 0    [vdso]\n";
        assert_eq!(code_files(maps), BTreeSet::from([PathBuf::from("/usr/bin/a b")]));
        assert_eq!(seccomp("Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n"), 2);
        assert_eq!(in_short("state: paused\nevents: 3\n"), "state paused, events 3");
    }

    #[test]
    fn a_process_that_is_not_there() {
        assert!(examine(u32::MAX)[0].text.contains("no process"));
    }
}
