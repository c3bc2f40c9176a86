//! A recording: why there is nothing in it, or less than one may expect, and why names are missing.

use super::program::debug_file;
use super::{Finding, program};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;
use teeperf_profile::info::Info;
use teeperf_profile::model::{Code, Function, Profile, Stacks};
use teeperf_symbols::{Error, Functions, Origin, Search};

/// Of a recording, what its packets say and what replay makes of them, with functions told apart by place.
pub(crate) fn examine(info: &Info, profile: &Profile) -> Vec<Finding> {
    let mut findings = vec![wholeness(info)];
    let is_sampled = !info.sampled.events.is_empty();
    // Where samples are what was to be recorded, hooks may be there besides.
    if !is_sampled || !info.processes.is_empty() {
        findings.extend(contents(info, profile));
        findings.extend(modules(&profile.functions));
    }
    if is_sampled {
        findings.extend(samples(info, profile));
    }
    let said = info.notices.iter().filter(|(is_warning, _)| *is_warning);
    let said =
        said.map(|(_, text)| Finding::warning("notices", text.clone(), "see docs/recording.md"));
    findings.extend(said);
    findings
}

fn wholeness(info: &Info) -> Finding {
    const AREA: &str = "file";
    let repair = "teeperf repair RECORDING -o NEW makes a whole one of what is right";
    match (info.damage.first(), &info.end) {
        (Some(damage), _) => Finding::warning(AREA, format!("it is damaged: {damage}"), repair),
        (None, None) => {
            let next = format!("{repair}; one that is still being recorded needs none");
            Finding::warning(AREA, "it has no end: it was cut off, or goes on", next)
        }
        (None, Some(_)) => Finding::ready(AREA, "it is whole"),
    }
}

fn contents(info: &Info, profile: &Profile) -> Vec<Finding> {
    const AREA: &str = "contents";
    let mut findings = Vec::new();
    let hooked = Some(profile).filter(|profile| !profile.info.is_sampled());
    let events = hooked.map_or(0, |profile| profile.health.events);
    let lost = hooked.map_or(0, |profile| profile.health.lost);
    if info.processes.is_empty() {
        let text = "no process with hooks found the recorder";
        let next = "see what stands below of the program; it needs the environment that it is given, the user that records, and \
                    the same network namespace";
        findings.push(Finding::missing(AREA, text, next));
        if let Some(start) = &info.start
            && let Some(name) = start.arguments.first()
        {
            let beside = Path::new(&start.directory).join(name);
            let name = if name.contains('/') { beside.as_os_str() } else { name.as_ref() };
            findings.extend(program::examine(name));
        }
    } else if events == 0 {
        let (text, next) = match profile.info.filters.first() {
            Some(rules) if !rules.is_empty() => (
                format!(
                    "nothing that was called is of what was to be recorded: {}",
                    rules.join(", ")
                ),
                "record with other --only and --exclude, or none",
            ),
            _ => (
                "hooks were there, and nothing was called while it was recorded".to_owned(),
                "if it began with --paused: `teeperf resume` while the program works; a program that is killed at once, or \
                 leaves by _exit in a child, may have called nothing; of code in memory that was lent: what teeperf_attach() \
                 returned, and docs/porting.md",
            ),
        };
        findings.push(Finding::missing(AREA, text, next));
    } else {
        let (processes, threads) = (info.processes.len(), info.threads.len());
        let text =
            format!("{events} calls and returns, processes: {processes}, threads: {threads}");
        findings.push(Finding::ready(AREA, text));
    }
    if info.unrecorded > 0 {
        let text =
            format!("processes or libraries with hooks that are not in it: {}", info.unrecorded);
        findings.push(Finding::warning(
            AREA,
            text,
            "see the notices of `teeperf info`, which say which and why",
        ));
    }
    if lost > 0 {
        let text = format!("{lost} calls and returns are lost");
        let next = "record with --on-full wait, which is the default, or less: --only, --probe tree, teeperf suggest";
        findings.push(Finding::warning(AREA, text, next));
    }
    findings
}

/// Share of stacks cut short above which it is a warning.
const MOST_CUT: f64 = 0.1;
/// Share of samples above which a file that their functions are in is needed.
const MOST_NAMELESS: f64 = 0.1;
/// Share of them in a file that is here, above which it is worth a word.
const LEAST_NAMELESS: f64 = 0.01;

/// What was sampled, of all events: how much, whether its files are here, and whether stacks are whole.
fn samples(info: &Info, profile: &Profile) -> Vec<Finding> {
    const AREA: &str = "samples";
    let all = || std::iter::once(profile).chain(&profile.beside).filter(|of| of.info.is_sampled());
    let events: Vec<&str> = info.sampled.events.values().map(String::as_str).collect();
    let (events, count) = (events.join(", "), info.sampled.samples);
    let mut findings = Vec::new();
    if count == 0 {
        let next = "if it began with --paused: `teeperf resume` while the program works; else let it run for longer, or sample more \
                    often, such as --sample=10000";
        findings.push(Finding::missing(AREA, format!("no sample of {events} was taken"), next));
    } else {
        let processes = info.sampled.processes.len();
        let text = format!("{count} samples of {events}, processes: {processes}");
        findings.push(Finding::ready(AREA, text));
    }
    if info.sampled.lost > 0 {
        let text = format!("{} samples are lost", info.sampled.lost);
        let next =
            "record with a larger --sample-buffer, fewer samples, or shorter copies of stacks";
        findings.push(Finding::warning(AREA, text, next));
    }
    let mut stacks = Stacks::default();
    all().for_each(|of| stacks += of.health.stacks);
    let Stacks { cut, followed, .. } = stacks;
    if cut as f64 > followed as f64 * MOST_CUT {
        let text = format!("{cut} of {followed} stacks are cut short: callers are missing");
        let next = teeperf_view::findings::cut_stacks(&stacks, profile.info.asked_stack);
        findings.push(Finding::warning(AREA, text, next));
    }
    if count > 0 {
        findings.extend(files(&all().collect::<Vec<_>>()));
    }
    findings
}

/// Files that samples lead through.
fn files(profiles: &[&Profile]) -> Vec<Finding> {
    const AREA: &str = "names";
    let missing: BTreeSet<&(String, String)> =
        profiles.iter().flat_map(|profile| &profile.health.missing).collect();
    let nodes = || {
        profiles.iter().flat_map(|profile| {
            let nodes = profile.threads.iter().flat_map(|thread| thread.tree.nodes.iter().skip(1));
            nodes.map(|node| (&profile.functions[node.function.0 as usize], node.calls))
        })
    };
    let all: u64 = nodes().map(|(_, samples)| samples).sum();
    let absent = missing.into_iter().map(|(module, why)| {
        let own = nodes().filter(|(function, _)| function.module == *module);
        let own: u64 = own.map(|(_, samples)| samples).sum();
        let text = format!("{why}: {own} of {all} samples in it have no names");
        let next = "`teeperf pack` where it is as it was recorded, or name the folder that has it: `teeperf report --symfs FOLDER`; else \
                    record again";
        match own as f64 > all as f64 * MOST_NAMELESS {
            true => Finding::missing(AREA, text, next),
            false => Finding::warning(AREA, text, next),
        }
    });
    let mut findings: Vec<Finding> = absent.chain(stripped(profiles, all)).collect();
    if findings.is_empty() {
        let text = "the files of code that samples lead through are here, as they were recorded";
        findings.push(Finding::ready(AREA, text));
    }
    findings
}

/// Files that are here and have no symbols for a part of the samples. `all`: samples of all files.
fn stripped(profiles: &[&Profile], all: u64) -> Vec<Finding> {
    let mut files: BTreeMap<(&str, &[u8]), u64> = BTreeMap::new();
    for profile in profiles {
        for node in profile.threads.iter().flat_map(|thread| &thread.tree.nodes) {
            let at = node.function.0 as usize;
            let is_nameless = profile.functions.get(at).is_some_and(Function::is_nameless);
            let place = profile.places.get(at).and_then(Option::as_ref);
            if let Some(place) = place.filter(|_| is_nameless) {
                *files.entry((&place.path, &place.build_id)).or_default() += node.calls;
            }
        }
    }
    files.retain(|_, samples| *samples as f64 > all as f64 * LEAST_NAMELESS);
    let finding = |((path, build_id), samples): ((&str, &[u8]), u64)| {
        let module = Named { build_id: build_id.to_vec(), code: Code::Process, ..Named::default() };
        let (why, next) = why_nameless(Path::new(path), &module);
        let text =
            format!("{samples} of {all} samples are of functions of {path} without names: {why}");
        Finding::warning("names", text, next)
    };
    files.into_iter().map(finding).collect()
}

/// Functions of a module: how many, and how many have no name and no file.
#[derive(Default)]
struct Named {
    all: usize,
    nameless: usize,
    fileless: usize,
    build_id: Vec<u8>,
    code: Code,
}

fn modules(functions: &[Function]) -> Vec<Finding> {
    const AREA: &str = "names";
    let mut modules: BTreeMap<&str, Named> = BTreeMap::new();
    for function in functions {
        let Some(place) = &function.place else { continue };
        let module = modules.entry(&place.path).or_default();
        module.all += 1;
        module.nameless += usize::from(function.is_nameless());
        module.fileless += usize::from(function.file.is_none());
        module.build_id = place.build_id.to_vec();
        module.code = place.code;
    }
    let findings = modules.iter().map(|(path, module)| {
        let Named { all, nameless, fileless, .. } = module;
        if *nameless > 0 {
            let (why, next) = why_nameless(Path::new(path), module);
            let text = format!("{nameless} of {all} functions of {path} have no name: {why}");
            return Finding::warning(AREA, text, next);
        }
        let lines = match fileless {
            0 => ", and a line each",
            _ if fileless == all => "; no source lines: it was built without -g",
            _ => "; not all have source lines",
        };
        Finding::ready(AREA, format!("{all} functions of {path} have names{lines}"))
    });
    findings.collect()
}

fn why_nameless(path: &Path, module: &Named) -> (String, String) {
    if module.code != Code::Process {
        let next = "say which file it is: `teeperf report --elf FILE`, likewise the other commands";
        return ("it is an image that does not say where its file lies".into(), next.into());
    }
    let build_id = Some(module.build_id.clone()).filter(|id| !id.is_empty());
    let search = Search { build_id: build_id.clone(), ..Search::default() };
    match Functions::open(path, &search) {
        Err(Error::BuildId { .. }) => (
            "its file is of another build now".into(),
            "record again; `teeperf pack` keeps program and debug files together".into(),
        ),
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => (
            "its file is not on this machine, and had no symbols when it was recorded".into(),
            debug_file(build_id.as_deref()),
        ),
        Err(error) => (error.to_string(), "see that the file can be read".into()),
        Ok(functions) => match functions.origin() {
            Origin::Dynamic | Origin::Nothing => {
                ("it is stripped, and no debug file was found".into(), debug_file(build_id.as_deref()))
            }
            Origin::Own | Origin::DebugFile(_) => (
                "there are symbols now that were not there when it was recorded, or none for these addresses".into(),
                "record again".into(),
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;
    use teeperf_profile::contents::{End, Start};
    use teeperf_profile::model::{FunctionId, Node, Place, Thread, Time, Tree};

    fn verdicts(findings: &[Finding]) -> Vec<(Verdict, &str)> {
        findings.iter().map(|finding| (finding.verdict, &finding.text[..])).collect()
    }

    #[test]
    fn a_recording_that_is_damaged_or_cut_off() {
        assert_eq!(wholeness(&Info::default()).verdict, Verdict::Warning);
        let end = Some(End::default());
        assert_eq!(
            wholeness(&Info { end: end.clone(), ..Info::default() }).verdict,
            Verdict::Ready
        );
        let damaged = Info { end, damage: vec!["offset 7".into()], ..Info::default() };
        assert!(wholeness(&damaged).text.ends_with("offset 7"));
    }

    #[test]
    fn why_nothing_was_recorded() {
        let profile = Profile::default();
        let arguments = vec!["/no/such/program".to_owned()];
        let start = Some(Box::new(Start { arguments, ..Start::default() }));
        let info = Info { start, ..Info::default() };
        let found = contents(&info, &profile);
        assert_eq!(found[0].verdict, Verdict::Missing);
        assert!(found[1].text.contains("/no/such/program"), "{found:?}");
        let mut info = Info::default();
        info.processes.entry(1).or_default();
        assert!(contents(&info, &profile)[0].text.contains("nothing was called"));
        let mut filtered = Profile::default();
        filtered.info.filters = vec![vec!["only x".into()]];
        assert!(contents(&info, &filtered)[0].text.ends_with("only x"));
        let mut lossy = Profile::default();
        (lossy.health.events, lossy.health.lost) = (2, 1);
        info.notices.push((true, "beware".into()));
        let found = examine(&info, &lossy);
        let kinds: Vec<Verdict> = verdicts(&found).iter().map(|(verdict, _)| *verdict).collect();
        let [whole, rest @ ..] = &kinds[..] else { panic!("nothing") };
        assert_eq!(*whole, Verdict::Warning);
        assert_eq!(rest, [Verdict::Ready, Verdict::Warning, Verdict::Warning]);
    }

    #[test]
    fn samples_that_are_lost_and_stacks_that_are_cut_short() {
        let mut info = Info::default();
        info.sampled.events.insert(1, "cpu-clock".into());
        let mut profile = Profile::default();
        profile.info.event = "cpu-clock".into();
        let none = samples(&info, &profile);
        assert!(none[0].verdict == Verdict::Missing && none.len() == 1, "{none:?}");
        (info.sampled.samples, info.sampled.lost) = (50, 2);
        let stacks = &mut profile.health.stacks;
        (stacks.followed, stacks.cut) = (40, 5);
        let some = samples(&info, &profile);
        let told = verdicts(&some);
        assert_eq!(told[0], (Verdict::Ready, "50 samples of cpu-clock, processes: 0"));
        assert_eq!(told[1], (Verdict::Warning, "2 samples are lost"));
        assert!(told[2].0 == Verdict::Warning && told[2].1.starts_with("5 of 40"), "{told:?}");
        profile.health.stacks.cut = 4;
        assert_eq!(samples(&info, &profile).len(), some.len() - 1);
    }

    #[test]
    fn longer_copies_are_advised_where_they_help() {
        let mut info = Info::default();
        info.sampled.samples = 40;
        let mut profile = Profile::default();
        profile.info.event = "cpu-clock".into();
        profile.info.asked_stack = 32768;
        profile.health.stacks = Stacks { followed: 40, cut: 40, holed: 40, ..Stacks::default() };
        let next = |profile: &Profile| samples(&info, profile)[1].next.clone().unwrap();
        assert!(next(&profile).contains("-fstack-clash-protection"), "{}", next(&profile));
        profile.health.stacks = Stacks { followed: 40, cut: 40, beyond: 40, ..Stacks::default() };
        assert!(next(&profile).contains("dwarf,65"), "{}", next(&profile));
    }

    #[test]
    fn samples_of_a_stripped_file_are_told() {
        let own = std::env::current_exe().unwrap();
        let place = |path: &str| {
            let build_id = Default::default();
            Some(Place { path: path.into(), build_id, address: 0, size: 0, code: Code::Process })
        };
        let function =
            |name: &str| Function { name: name.into(), module: "m".into(), ..Function::default() };
        let node = |function, calls| Node {
            parent: 0,
            function: FunctionId(function),
            calls,
            self_time: Time::default(),
            total: Time::default(),
            extremes: None,
            spent: Default::default(),
        };
        let profile = Profile {
            functions: vec![function("f"), function("m+0x10"), function("m+0x20")],
            places: vec![place("/a"), place(own.to_str().unwrap()), place("/gone")],
            threads: vec![Thread {
                tree: Tree { nodes: vec![node(0, 0), node(0, 50), node(1, 49), node(2, 1)] },
                ..Thread::default()
            }],
            ..Profile::default()
        };
        let found = files(&[&profile]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].text.starts_with("49 of 100 samples are of functions of "), "{found:?}");
    }

    #[test]
    fn why_names_are_missing() {
        let function = |name: &str, path: &str, code| Function {
            name: name.into(),
            module: "m".into(),
            place: Some(Place {
                path: path.into(),
                build_id: [0xab, 1][..].into(),
                address: 0,
                size: 0,
                code,
            }),
            ..Function::default()
        };
        let found = modules(&[
            function("f", "/a/m", Code::Process),
            function("m+0x10", "/b/m", Code::Process),
            function("m+0x10", "/c/m", Code::UnknownImage),
        ]);
        let told = verdicts(&found);
        assert!(told[0].0 == Verdict::Ready && told[0].1.contains("without -g"), "{told:?}");
        assert!(
            told[1].0 == Verdict::Warning && told[1].1.contains("not on this machine"),
            "{told:?}"
        );
        assert!(found[1].next.as_ref().unwrap().contains(".build-id/ab/01.debug"));
        assert!(found[2].next.as_ref().unwrap().contains("--elf"), "{told:?}");
        // This very program, as another build.
        let own = std::env::current_exe().unwrap();
        let found = modules(&[function("m+0x10", own.to_str().unwrap(), Code::Process)]);
        assert!(found[0].text.contains("another build"), "{found:?}");
    }
}
