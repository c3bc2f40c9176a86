//! `record --sample`. Where the kernel lets nothing be sampled, tests say so and are left out.

use crate::support::*;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use teeperf_profile::contents::Body;
use teeperf_profile::samples::Decoder;
use teeperf_wire::body::map;
use teeperf_wire::hello::SOCKET_VARIABLE;

/// One sample, as far as tests look at it.
struct Taken {
    time_ns: u64,
    pid: u32,
    tid: u32,
    ip: u64,
    period: u64,
    stack: usize,
    chain: usize,
}

/// What a recording has of samples.
#[derive(Default)]
struct Samples {
    taken: Vec<Taken>,
    lost: u64,
    /// Name of the event, and the samples' clock when the recording began.
    sampled: Vec<(String, u64)>,
    clock_start: u64,
    /// Of code.
    maps: Vec<(u32, String)>,
    /// Maps of files without code.
    data: usize,
    /// What, process, thread, parent process, name.
    tasks: Vec<(u64, u32, u32, u32, String)>,
    /// Packets of hooks' words.
    chunks: usize,
    has_end: bool,
    notices: Vec<String>,
}

impl Samples {
    fn of(file: &Path) -> Self {
        let mut recording = teeperf_profile::Recording::open(file).unwrap();
        let (mut all, mut decoder) = (Self::default(), Decoder::new().unwrap());
        while let Some(packet) = recording.next_packet().unwrap() {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            match packet.body {
                Body::Start(start) => all.clock_start = start.clock_start,
                Body::Sampled(sampled) => all.sampled.push((sampled.name, sampled.zero_ns)),
                Body::Samples(header, data) => {
                    all.lost += header.lost;
                    let mut samples = decoder.samples(&header, data).unwrap();
                    let before = all.taken.len();
                    all.taken.extend(samples.by_ref().map(|sample| Taken {
                        time_ns: sample.time_ns,
                        pid: sample.pid,
                        tid: sample.tid,
                        ip: sample.ip,
                        period: sample.period,
                        stack: sample.stack.len(),
                        chain: sample.chain.len(),
                    }));
                    assert!(samples.rest.is_empty());
                    assert_eq!(all.taken.len() - before, header.samples as usize);
                }
                Body::Map(map) if map.protection & map::PROT_EXEC == 0 => all.data += 1,
                Body::Map(map) => {
                    // What may be in the kernel finds its code told.
                    assert!(map.pid != map::KERNEL || all.taken.is_empty());
                    all.maps.push((map.pid, text(map.path)));
                }
                Body::Task(task) => {
                    let name = text(task.name);
                    all.tasks.push((task.what, task.pid, task.tid, task.parent_pid, name));
                }
                Body::Chunk(..) => all.chunks += 1,
                Body::Notice(notice) => all.notices.push(notice.text),
                Body::End(_) => all.has_end = true,
                _ => {}
            }
        }
        all
    }

    /// Weight of the samples in each function of a program that told where they are.
    fn weights(&self, told: &str) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for (name, pid, code) in code(told) {
            let is_in = |taken: &&Taken| taken.pid == pid && code.contains(&taken.ip);
            let weight: u64 = self.taken.iter().filter(is_in).map(|taken| taken.period).sum();
            *all.entry(name.to_owned()).or_default() += weight;
        }
        all
    }

    /// Share of `large` in it and `small`, percent.
    fn share_of_large(&self, told: &str) -> f64 {
        let weights = self.weights(told);
        100.0 * weights["large"] as f64 / (weights["large"] + weights["small"]) as f64
    }

    /// How far the share of `large` is from a half on average, in twenty samples that follow each other: points.
    fn one_sidedness(&self, told: &str) -> f64 {
        let code = code(told);
        let is_large = |taken: &Taken| {
            let is_in = |(_, pid, code): &&(&str, u32, Range<u64>)| {
                *pid == taken.pid && code.contains(&taken.ip)
            };
            code.iter().find(is_in).map(|(name, ..)| *name == "large")
        };
        let sides: Vec<bool> = self.taken.iter().filter_map(is_large).collect();
        let off = sides.chunks_exact(20).map(|twenty| {
            let large = twenty.iter().filter(|&&is_large| is_large).count();
            (5.0 * large as f64 - 50.0).abs()
        });
        off.clone().sum::<f64>() / off.count() as f64
    }

    fn assert_in_order(&self) {
        assert!(self.taken.is_sorted_by_key(|taken| taken.time_ns));
        assert!(self.taken.first().is_none_or(|first| first.time_ns > self.sampled[0].1));
    }
}

/// Functions, the process in which they are, and where, as a program told.
fn code(told: &str) -> Vec<(&str, u32, Range<u64>)> {
    let lines = told.lines().filter_map(|line| line.strip_prefix("code "));
    let read = |line| {
        let [name, pid, begin, end] = str::split(line, ' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let address = |text: &str| u64::from_str_radix(&text[2..], 16).unwrap();
        (name, pid.parse().unwrap(), address(begin)..address(end))
    };
    lines.map(read).collect()
}

/// Threads that worked, and nanoseconds of processor time that each says it had: without what a virtual machine waited for its host, of which
/// there are no samples, and with it.
fn worked(told: &str) -> BTreeMap<u32, Range<u64>> {
    let lines = told.lines().filter_map(|line| line.strip_prefix("worked "));
    let read = |line| {
        let words: Vec<&str> = str::split(line, ' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        (number(0) as u32, number(1)..number(2))
    };
    lines.map(read).collect()
}

/// Whether samples of this weight stand for such a time, but for so many parts of a hundred.
fn stands_for(weight: u64, worked: &Range<u64>, less: u64, more: u64) -> bool {
    weight * 100 > worked.start * (100 - less) && weight * 100 < worked.end * (100 + more)
}

/// Whether the kernel lets anything be sampled.
fn is_possible() -> bool {
    let mut command = teeperf();
    command.args(["record", "--sample", "-o", "-", "--", "true"]);
    let outcome = run(&mut command);
    if !outcome.success() {
        eprintln!("skipped: {}", outcome.stderr);
    }
    outcome.success()
}

/// Samples a program of `samples.c`.
struct Run {
    samples: Samples,
    outcome: Outcome,
}

impl Run {
    fn of(shop: &Workshop, options: &[&str], program: &Path, arguments: &[&str]) -> Self {
        let mut recording = shop.recording(options, program, arguments);
        let outcome = run(&mut recording.command);
        outcome.expect_code(0);
        Self { samples: Samples::of(&recording.file), outcome }
    }
}

fn plain(shop: &Workshop, flags: &[&str]) -> std::path::PathBuf {
    shop.build_unhooked("samples.c", Compiler::Gcc, flags)
}

/// Guards: weights are what was spent, samples have stacks, and no hooks are asked for.
#[test]
fn shares_of_work_that_is_known() {
    if !is_possible() {
        return;
    }
    let shop = Workshop::new();
    let program = plain(&shop, &["-O1", "-pthread"]);
    let Run { samples, outcome } = Run::of(&shop, &["--sample"], &program, &["shares", "1500"]);
    samples.assert_in_order();
    let share = samples.share_of_large(&outcome.stdout);
    assert!((61.0..72.0).contains(&share), "{share} %, and two thirds are right");
    let spent: u64 = samples.taken.iter().map(|taken| taken.period).sum();
    let worked: Vec<_> = worked(&outcome.stdout).into_values().collect();
    assert!(stands_for(spent, &worked[0], 10, 20), "{spent} ns of {worked:?}");
    assert_eq!(samples.lost, 0);
    assert!(samples.taken.iter().any(|taken| taken.stack > 500));
    assert!(samples.has_end && samples.sampled.len() == 1);
    let told = format!("{} samples of {}", samples.taken.len(), samples.sampled[0].0);
    assert!(outcome.stderr.contains(&told), "{told}: {}", outcome.stderr);
    assert!(!outcome.stderr.contains("nothing was recorded"), "{}", outcome.stderr);
    let is_program = |(_, path): &&(u32, String)| path == program.to_str().unwrap();
    assert_eq!(samples.maps.iter().filter(is_program).count(), 1, "{:?}", samples.maps);
    // perf follows stacks by tables that stand there.
    assert!(samples.data > 0);
    assert!(samples.notices.iter().any(|text| text.starts_with("samples are of ")));
}

/// Guards: turns of two events, whose periods differ.
#[test]
fn a_program_that_beats_in_step_with_the_samples() {
    if !is_possible() {
        return;
    }
    let shop = Workshop::new();
    let program = plain(&shop, &["-O1", "-pthread", "-static"]);
    let of = |options: &[&str]| {
        let arguments = ["beats", "4000", "5000000"];
        let Run { samples, outcome } = Run::of(&shop, options, &program, &arguments);
        assert!(samples.taken.len() > 400, "{}", samples.taken.len());
        (samples.share_of_large(&outcome.stdout), samples.one_sidedness(&outcome.stdout))
    };
    // Where it shares its processor the two may get out of step by and by, and the sum come out right by luck.
    let (share, one_sided) = of(&["--sample=5ms", "--sample-constant"]);
    assert!(one_sided > 30.0, "in step: {one_sided} points off, {share} % in all");
    let (share, one_sided) = of(&["--sample=5ms"]);
    assert!((41.0..59.0).contains(&share), "{share} %, and half is right");
    assert!(one_sided < 20.0, "{one_sided} points off");
}

/// Guards: threads and their weights.
#[test]
fn both_threads_of_a_program() {
    if !is_possible() {
        return;
    }
    let shop = Workshop::new();
    let program = plain(&shop, &["-O1", "-pthread"]);
    let Run { samples, outcome } = Run::of(&shop, &["--sample"], &program, &["threads", "600"]);
    samples.assert_in_order();
    let mut weights = BTreeMap::<u32, u64>::new();
    for taken in &samples.taken {
        *weights.entry(taken.tid).or_default() += taken.period;
    }
    let worked = worked(&outcome.stdout);
    assert_eq!(worked.len(), 2);
    assert!(weights.keys().eq(worked.keys()), "{weights:?} {worked:?}");
    // While the sampler waits for a processor in the midst of a turn, samples are taken twice.
    let mut both = weights.values().zip(worked.values());
    assert!(both.all(|(&weight, time)| stands_for(weight, time, 10, 20)), "{weights:?} {worked:?}");
    let is_fork = |task: &&(u64, u32, u32, u32, String)| task.0 == 1;
    let [fork] = samples.tasks.iter().filter(is_fork).collect::<Vec<_>>()[..] else {
        panic!("{:?}", samples.tasks)
    };
    assert!(fork.1 == fork.3 && fork.2 != fork.1, "a thread of the same process: {fork:?}");
    let ended = samples.tasks.iter().filter(|task| task.0 == 4).count();
    assert_eq!(ended, 2);
}

/// Guards: children, and what they execute.
#[test]
fn children_and_what_they_execute() {
    if !is_possible() {
        return;
    }
    let shop = Workshop::new();
    let program = plain(&shop, &["-O1", "-pthread"]);
    let arguments = ["children", "400"];
    let Run { samples, outcome } = Run::of(&shop, &["--sample"], &program, &arguments);
    samples.assert_in_order();
    let heavy = |pid: &u32| {
        let of_it = samples.taken.iter().filter(|taken| taken.pid == *pid);
        of_it.map(|taken| taken.period).sum::<u64>() > 300_000_000
    };
    let pids: BTreeSet<u32> = samples.taken.iter().map(|taken| taken.pid).collect();
    let busy: Vec<u32> = pids.into_iter().filter(heavy).collect();
    assert_eq!(busy.len(), 2);
    let executed = samples.tasks.iter().filter(|task| task.0 == 3).collect::<Vec<_>>();
    // The command, and one of its children.
    assert_eq!(executed.len(), 2, "{executed:?}");
    assert!(executed[1].4.starts_with("samples") && busy.contains(&executed[1].1));
    // The one that executes nothing has its parent's code.
    let command = executed[0].1;
    let forked = samples.tasks.iter().filter(|task| task.0 == 1 && task.3 == command).count();
    assert_eq!(forked, 2);
    assert!(outcome.stdout.lines().count() >= 4);
}

/// Guards: events and samples are in one recording, on one time line.
#[test]
fn a_program_with_hooks() {
    if !is_possible() {
        return;
    }
    let shop = Workshop::new();
    let program = shop.build("samples.c", Compiler::Gcc, &["-O1", "-pthread"]);
    for clock in ["tick", "cycle"] {
        let options = ["--sample", "--clock", clock];
        let mut recording = shop.recording(&options, &program, &["shares", "500"]);
        let outcome = run(&mut recording.command);
        outcome.expect_code(0);
        let samples = Samples::of(&recording.file);
        samples.assert_in_order();
        assert!(samples.taken.len() > 300);
        let report = Report::of(&recording.file);
        assert_eq!(report.calls_below("main", "shares"), 1);
        assert!(report.calls_below("shares", "large") > 10);
        assert!(outcome.stderr.contains(" events of 1 thread and "), "{}", outcome.stderr);
        let span = samples.taken.last().unwrap().time_ns - samples.sampled[0].1;
        let (main, _) = report.total_and_duration("main");
        assert!(span as f64 > main * 0.9, "{span} ns from the start on, main took {main}");
    }
}

/// Guards: stacks are followed to the end, by reports and, of what is exported, by perf; both have the same shares.
#[test]
fn stacks_lead_to_main() {
    if !is_possible() {
        return;
    }
    let shop = Workshop::new();
    let program = plain(&shop, &["-O2", "-g", "-pthread", "-fomit-frame-pointer"]);
    let mut recording = shop.recording(&["--sample"], &program, &["shares", "600"]);
    run(&mut recording.command).expect_code(0);
    let report = Report::of(&recording.file);
    let samples = report.health("events");
    let whole: u64 = report
        .paths()
        .iter()
        .filter(|(path, _)| path.contains("main;shares;"))
        .map(|(_, n)| n)
        .sum();
    assert!(samples > 300 && whole * 20 > samples * 19, "{whole} of {samples}");
    let data = shop.path("exported.data");
    let mut export = teeperf();
    export.args(["export", "--to", "perf", "-o"]).arg(&data).arg(&recording.file);
    run(&mut export).expect_code(0);
    let mut script = Command::new("perf");
    script.args(["script", "--no-inline", "-F", "ip,sym", "-i"]).arg(&data);
    let Ok(output) = script.output() else {
        eprintln!("skipped: perf is not installed");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    let script = String::from_utf8(output.stdout).unwrap();
    let mut annotate = Command::new("perf");
    let annotated = annotate.args(["annotate", "--stdio", "-s", "large", "-i"]).arg(&data).output();
    let annotated = annotated.unwrap();
    let (said, text) =
        (String::from_utf8_lossy(&annotated.stderr), String::from_utf8_lossy(&annotated.stdout));
    assert!(annotated.status.success() && said.is_empty(), "{said}");
    assert!(text.contains("Percent") && text.contains("large"), "{text}");
    let stacks: Vec<&str> = script.split("\n\n").filter(|stack| !stack.trim().is_empty()).collect();
    assert_eq!(stacks.len() as u64, samples);
    let with = |name: &str| {
        let has = |stack: &&&str| stack.lines().any(|line| line.ends_with(&format!(" {name}")));
        stacks.iter().filter(has).count() as u64
    };
    assert!(with("main") * 20 > samples * 19, "{script}");
    for name in ["large", "small"] {
        // The kernel interrupts it now and then.
        let through = |path: &str| path.split(';').any(|function| function == name);
        let ours: u64 =
            report.paths().iter().filter(|(path, _)| through(path)).map(|(_, n)| n).sum();
        assert!(with(name).abs_diff(ours) <= samples / 100, "{name}: {ours} and {}", with(name));
    }
}

/// Guards: stacks lead through the loader where it looks for what is called first, whose frame a register tells that callees have saved.
#[test]
fn calls_that_the_loader_finds() {
    if !is_possible() {
        return;
    }
    let shop = Workshop::new();
    let flags = ["-O1", "-shared", "-fPIC", "-DLIBRARY", "-Wl,-z,lazy"];
    let library = shop.build_unhooked("lazy.c", Compiler::Gcc, &flags);
    let program = shop.build_unhooked("lazy.c", Compiler::Gcc, &["-O1"]);
    let arguments = [library.to_str().unwrap(), "400"];
    let mut recording = shop.recording(&["--sample"], &program, &arguments);
    run(&mut recording.command).expect_code(0);
    let paths = Report::of(&recording.file).paths();
    let sum = |fits: &dyn Fn(&str) -> bool| -> u64 {
        paths.iter().filter(|(path, _)| fits(path)).map(|(_, count)| count).sum()
    };
    let found = sum(&|path| path.contains(";_dl_runtime_resolve"));
    let called = sum(&|path| path.contains("main;call_all;_dl_runtime_resolve"));
    let fixed = sum(&|path| {
        path.contains("main;call_all;_dl_runtime_resolve") && path.contains(";_dl_fixup")
    });
    assert!(
        found > 40 && fixed > 20 && called * 20 > found * 19,
        "{called} of {found}, {fixed}: {paths:#?}"
    );
    let all = sum(&|_| true);
    let whole = sum(&|path| path.contains("main;"));
    assert!(whole * 10 > all * 9, "{whole} of {all}: {paths:#?}");
}

/// Guards: samples stand at the lines that they were taken at, all of them; a part of the paths has none.
#[test]
fn samples_by_source_line() {
    if !is_possible() {
        return;
    }
    let shop = Workshop::new();
    let program = plain(&shop, &["-O1", "-g", "-pthread"]);
    let mut recording = shop.recording(&["--sample"], &program, &["shares", "500"]);
    run(&mut recording.command).expect_code(0);
    let annotate = |words: &[&str]| {
        let mut annotate = teeperf();
        annotate.arg("annotate").args(words).arg(&recording.file).arg("large");
        run(&mut annotate).stdout
    };
    let json: Value = serde_json::from_str(&annotate(&["--json"])).unwrap();
    let large = &json["functions"][0];
    let lines = large["lines"].as_array().unwrap();
    let sum = |what: &str| lines.iter().map(|line| line[what].as_f64().unwrap()).sum::<f64>();
    assert!(sum("samples") > 50.0 && lines.len() > 1, "{lines:?}");
    assert_eq!(sum("samples"), large["calls"].as_f64().unwrap());
    assert_eq!(sum("self"), large["self"].as_f64().unwrap());
    let begin = large["line"].as_u64().unwrap();
    assert!(lines.iter().all(|line| (begin..begin + 9).contains(&line["line"].as_u64().unwrap())));
    let text = annotate(&[]);
    assert!(text.contains("SAMPLES") && !text.contains("CALLS"), "{text}");
    let part: Value = serde_json::from_str(&annotate(&["--json", "--focus", "large"])).unwrap();
    assert_eq!(part["functions"][0]["lines"], Value::Array(Vec::new()));
}

/// Guards: hooks are left alone where only samples are asked for.
#[test]
fn a_program_with_hooks_of_which_only_samples_are_taken() {
    if !is_possible() {
        return;
    }
    let shop = Workshop::new();
    let program = shop.build("samples.c", Compiler::Gcc, &["-O1", "-pthread"]);
    let options = ["--probe", "sample", "--call-graph", "none"];
    let mut recording = shop.recording(&options, &program, &["shares", "300"]);
    // As below a recorder of its own.
    recording.command.env("LD_PRELOAD", "").env(SOCKET_VARIABLE, "nobody");
    let outcome = run(&mut recording.command);
    outcome.expect_code(0);
    let samples = Samples::of(&recording.file);
    assert!(samples.taken.len() > 100);
    let is_ours = |(_, path): &&(u32, String)| path.contains("libteeperf");
    assert_eq!(samples.maps.iter().filter(is_ours).count(), 0);
    assert_eq!(samples.chunks, 0);
    for option in [["--timed", "main"], ["--only", "main"], ["--events", "marks"]] {
        let outcome =
            run(&mut shop.recording(&[&options[..], &option].concat(), &program, &[]).command);
        assert!(!outcome.success() && outcome.stderr.contains("leaves hooks alone"), "{option:?}");
    }
}

/// Guards: the beginning of what is kept says what is sampled, and where code is.
#[test]
fn a_folder_that_keeps_the_latest_part() {
    if !is_possible() {
        return;
    }
    let shop = Workshop::new();
    let program = plain(&shop, &["-O1", "-pthread"]);
    let options =
        ["--probe", "sample", "--sample=50000", "--call-graph", "dwarf,512", "--rotate", "4M"];
    let mut recording = shop.recording(&options, &program, &["threads", "3000"]);
    run(&mut recording.command).expect_code(0);
    let parts = std::fs::read_dir(&recording.file).unwrap().map(|of| of.unwrap().file_name());
    let first = parts.filter_map(|name| name.into_string().ok()).min().unwrap();
    assert!(first.trim_start_matches('0').len() > ".head".len(), "nothing is gone: {first}");
    let mut command = teeperf();
    let told = run(command.arg("dump").arg(&recording.file)).stdout;
    let told: Vec<&str> = told.lines().filter(|line| !line.contains(" sample ")).collect();
    for text in [" sampled ", " map ", program.to_str().unwrap()] {
        assert!(told.iter().any(|line| line.contains(text)), "{text}: {told:#?}");
    }
}

/// Guards: what found no room is counted.
#[test]
fn samples_that_found_no_room() {
    if !is_possible() {
        return;
    }
    let shop = Workshop::new();
    let program = plain(&shop, &["-O1", "-pthread"]);
    let options = ["--sample=20000", "--sample-buffer", "128KiB"];
    let Run { samples, outcome } = Run::of(&shop, &options, &program, &["shares", "300"]);
    assert!(samples.lost > 0);
    let told = format!("{} samples LOST", samples.lost);
    assert!(outcome.stderr.contains(&told), "{told}: {}", outcome.stderr);
    let all = samples.taken.len() as u64 + samples.lost;
    assert!(all > 3000, "{all} of 6000");
}

/// Guards: what is asked for of stacks.
#[test]
fn stacks_as_they_are_asked_for() {
    if !is_possible() {
        return;
    }
    let shop = Workshop::new();
    let program = plain(&shop, &["-O1", "-pthread", "-fno-omit-frame-pointer"]);
    let of = |how| {
        let options = ["--sample", "--call-graph", how];
        Run::of(&shop, &options, &program, &["shares", "200"]).samples.taken
    };
    let copied = of("dwarf,1024");
    assert!(copied.iter().all(|taken| taken.stack <= 1024));
    assert!(copied.iter().any(|taken| taken.stack == 1024));
    let chains = of("fp");
    assert!(chains.iter().all(|taken| taken.stack == 0 && taken.chain > 0));
    assert!(chains.iter().any(|taken| taken.chain > 3));
    assert!(of("none").iter().all(|taken| taken.stack == 0 && taken.chain == 0));
}

/// Guards: an interrupt, which ends the program, leaves a whole recording.
#[test]
fn an_interrupted_program() {
    if !is_possible() {
        return;
    }
    let shop = Workshop::new();
    let program = plain(&shop, &["-O1", "-pthread"]);
    let mut recording = shop.recording(&["--sample"], &program, &["waits", "300"]);
    let running = Running::start(&mut recording.command);
    wait_until("its work", || running.stdout_so_far().contains("waits"));
    running.signal(libc::SIGINT);
    let outcome = running.wait();
    assert_eq!(signal_of(outcome.status), Some(libc::SIGINT));
    let samples = Samples::of(&recording.file);
    assert!(samples.has_end && samples.taken.len() > 200);
}

/// Guards: what was there before the recorder was killed is in the file.
#[test]
fn a_recorder_that_is_killed() {
    if !is_possible() {
        return;
    }
    let shop = Workshop::new();
    let program = plain(&shop, &["-O1", "-pthread"]);
    let mut recording = shop.recording(&["--sample"], &program, &["waits", "500"]);
    let running = Running::start(&mut recording.command);
    wait_until("its work", || running.stdout_so_far().contains("waits"));
    // Some of it is on its way for half a second at most.
    wait_until("samples in the file", || Samples::of(&recording.file).taken.len() > 300);
    let program = child_of(running.pid());
    running.signal(libc::SIGKILL);
    running.wait();
    // SAFETY: only takes numbers.
    unsafe { libc::kill(program, libc::SIGKILL) };
    let samples = Samples::of(&recording.file);
    assert!(!samples.has_end && samples.taken.len() > 300);
    samples.assert_in_order();
}

/// Guards: no samples of a pause.
#[test]
fn a_recording_that_is_paused() {
    if !is_possible() {
        return;
    }
    let shop = Workshop::new();
    let program = plain(&shop, &["-O1", "-pthread"]);
    let options = ["--sample", "--paused"];
    let Run { samples, outcome } = Run::of(&shop, &options, &program, &["shares", "300"]);
    assert_eq!(samples.taken.len(), 0);
    assert!(!samples.maps.is_empty(), "code is told of all the same");
    assert!(outcome.stderr.contains("paused"), "{}", outcome.stderr);
}

/// Guards: where the kernel lets nothing be sampled, the program's own timers do, short threads count, and what to do is said.
#[test]
fn a_sandbox_that_lets_nothing_be_sampled() {
    let shop = Workshop::new();
    let program = plain(&shop, &["-O1", "-pthread"]);
    let mut recording = shop.recording(&["--sample"], &program, &["shares", "1000"]);
    let outcome = run(without_perf_event_open(&mut recording.command));
    outcome.expect_code(0);
    let says = |text: &str| assert!(outcome.stderr.contains(text), "{}", outcome.stderr);
    says("perf_event_open");
    says("timers within the program");
    says(if outcome.stderr.contains("paranoid is") { "sudo sysctl" } else { "--cap-add PERFMON" });
    let samples = Samples::of(&recording.file);
    assert_eq!(samples.sampled.len(), 1);
    assert_eq!(samples.sampled[0].0, "cpu-timer");
    let spent: u64 = samples.taken.iter().map(|taken| taken.period).sum();
    let worked: Vec<_> = worked(&outcome.stdout).into_values().collect();
    assert!(stands_for(spent, &worked[0], 20, 30), "{spent} ns of {worked:?}");
    assert!(samples.taken.iter().any(|taken| taken.stack > 500));
    let share = samples.share_of_large(&outcome.stdout);
    assert!((55.0..78.0).contains(&share), "{share} %, and two thirds are right");
    let mut command = teeperf();
    let told = run(without_perf_event_open(command.arg("doctor"))).stdout;
    assert!(told.contains("warning  `record --sample` has timers within programs"), "{told}");
    assert_short_threads_count(&shop, &program);
}

/// Threads that live shorter than a period, or than the kernel's tick, have the samples that stand for their time. No test of its own: they
/// go before others, such as the one above, which counts time too.
fn assert_short_threads_count(shop: &Workshop, program: &Path) {
    // With periods below a tick, and of two.
    for (often, percent) in [("--sample", 20), ("--sample=200", 40)] {
        let mut recording = shop.recording(&[often], program, &["short", "150", "3400"]);
        let outcome = run(without_perf_event_open(&mut recording.command));
        outcome.expect_code(0);
        if outcome.stdout.contains("waits for others") {
            eprintln!("skipped: sched_setscheduler is not permitted");
            return;
        }
        let used = outcome.stdout.lines().find_map(|line| line.strip_prefix("used "));
        let used: u64 = used.unwrap().parse().unwrap();
        let samples = Samples::of(&recording.file);
        let spent: u64 = samples.taken.iter().map(|taken| taken.period).sum();
        assert!(spent.abs_diff(used) * 100 < used * percent, "{often}: {spent} of {used} ns");
    }
}

/// Guards: where nothing was sampled from within, reports do not say that the program did nothing.
#[test]
fn a_program_that_takes_no_library() {
    let shop = Workshop::new();
    let program = plain(&shop, &["-O1", "-pthread", "-static"]);
    let options = ["--sample", "--sample-within"];
    let mut recording = shop.recording(&options, &program, &["shares", "200"]);
    run(&mut recording.command).expect_code(0);
    assert_eq!(Samples::of(&recording.file).taken.len(), 0);
    let report = run(teeperf().arg("report").arg(&recording.file)).stdout;
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["is linked statically, or handles SIGURG", "`--sgx=outside`"] {
        assert!(report.contains(part), "{report}");
    }
}

/// Guards: options that mean nothing alone.
#[test]
fn options_of_samples_without_samples() {
    for option in [&["--call-graph", "fp"][..], &["--sample-buffer", "1M"], &["--sample-constant"]]
    {
        let mut command = teeperf();
        command.arg("record").args(option).args(["-o", "-", "--", "true"]);
        let outcome = run(&mut command);
        assert!(!outcome.success());
        assert!(outcome.stderr.contains("give --sample as well"), "{}", outcome.stderr);
    }
    for others in [&[][..], &["--sample"], &["--probe", "sample"]] {
        let mut command = teeperf();
        command.args(["record", "--module", "a.so"]).args(others).args(["-o", "-", "--", "true"]);
        let outcome = run(&mut command);
        assert!(!outcome.success());
        assert!(outcome.stderr.contains("give --sgx as well"), "{}", outcome.stderr);
    }
}
