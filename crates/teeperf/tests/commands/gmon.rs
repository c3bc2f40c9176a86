//! Files of gprof, as people use them: programs built with `-pg`, their files read; recordings of the same
//! programs written for gprof. Both have to come to the same calls. What needs a tool that is not
//! there says so.

mod printed;

use crate::support::{Folder, prepared, run, teeperf};
use printed::{Arcs, agree, arcs, flat, graph};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use teeperf_wire::piece::{Header, Item, Writer, what};

const ROUNDS: u64 = 600;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// The sources of the program, and how it is built: calls stay calls.
fn sources() -> Vec<PathBuf> {
    vec![
        "-O1".into(),
        "-g".into(),
        "-fno-optimize-sibling-calls".into(),
        source("graph.c"),
        source("graph_other.c"),
    ]
}

fn is_there(tool: &str) -> bool {
    let there = Command::new(tool).arg("--version").output().is_ok_and(|out| out.status.success());
    if !there {
        eprintln!("skipped: {tool} is not installed");
    }
    there
}

/// A folder with a program built by `compiler` with `-pg`, which `runner` ran: `own`, and its `gmon.out`.
fn with_own_file(compiler: &str, flags: &[&str], runner: &[&str]) -> Option<Folder> {
    let folder = Folder::new();
    let mut build = prepared(Command::new(compiler), &folder);
    build.args(flags).arg("-pg").args(sources()).args(["-o", "own"]);
    let built = build.output().unwrap();
    if !built.status.success() {
        eprintln!("skipped: {build:?}: {}", String::from_utf8_lossy(&built.stderr));
        return None;
    }
    let mut words = runner.to_vec();
    words.push("./own");
    let mut program = prepared(Command::new(words[0]), &folder);
    run(program.args(&words[1..]).arg(ROUNDS.to_string()));
    Some(folder)
}

/// Adds the same program with hooks, `hooked`, recorded: `hooked.teeperf`.
fn record(folder: &Folder, flags: &[&str]) {
    run(teeperf(folder).arg("cc").args(flags).args(sources()).args(["-o", "hooked"]));
    let rounds = ROUNDS.to_string();
    run(teeperf(folder).args(["record", "-q", "--", "./hooked", &rounds]));
}

/// Adds the same program as an image that runs elsewhere: `image.elf`; and the calls that [`expected`] has, as it
/// hands them over under a name: `pieces`.
fn image(folder: &Folder, target: &str, flags: &[&str], name: &str) {
    folder.write("anchor.c", "void teeperf_anchor(void) {}\n");
    let mut build = prepared(Command::new(format!("{target}-gcc")), folder);
    run(build.args(flags).args(sources()).args(["anchor.c", "-o", "image.elf"]));
    let table =
        run(prepared(Command::new(format!("{target}-nm")), folder).args(["-n", "image.elf"]));
    let address = |name: &str, which: usize| -> i64 {
        let rows = table.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let row = rows.filter(|words| words[2..] == [name]).nth(which);
        i64::from_str_radix(row.unwrap_or_else(|| panic!("no {name} in\n{table}"))[0], 16).unwrap()
    };
    let anchor = address("teeperf_anchor", 0);
    let mut bytes = vec![0; 4096];
    let header = Header { what: what::ARCS, begins: true, serial: 1, ..Header::default() };
    let put = |at: usize, byte| bytes[at] = byte;
    let mut writer = Writer::new(4096, put, &header, name.as_bytes()).unwrap();
    for (caller, callee, count) in expected() {
        // The second file has a `step` of its own.
        let callee = address(&callee, usize::from(caller == "other"));
        let places = [address(&caller, 0) + 4, callee].map(|address| Some(address - anchor));
        writer.item(&Item { is_span: false, places, count });
    }
    let length = writer.finish(false);
    std::fs::write(folder.path().join("pieces"), &bytes[..length]).unwrap();
}

fn gprof(folder: &Folder, tool: &str, words: &[&str]) -> String {
    run(prepared(Command::new(tool), folder).arg("-b").args(words))
}

fn report(folder: &Folder, words: &[&str]) -> Value {
    let text = run(teeperf(folder).args(["report", "--json"]).args(words));
    serde_json::from_str(&text).unwrap()
}

fn output(folder: &Folder, words: &[&str]) -> Output {
    teeperf(folder).args(words).output().unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// What the program does, so often as [`ROUNDS`] says.
fn expected() -> Arcs {
    let calls = [
        ("main", "heavy", ROUNDS),
        ("main", "light", ROUNDS),
        ("main", "even", ROUNDS),
        ("even", "odd", 4 * ROUNDS),
        ("odd", "even", 3 * ROUNDS),
        ("even", "step", 4 * ROUNDS),
        ("odd", "step", 3 * ROUNDS),
        ("main", "product", ROUNDS),
        ("product", "product", 4 * ROUNDS),
        ("main", "twice", ROUNDS / 3),
        ("main", "thrice", ROUNDS / 3),
        ("main", "step", ROUNDS / 3),
        ("main", "other", ROUNDS),
        ("other", "step", 2 * ROUNDS),
        ("step", "spin", 7 * ROUNDS + ROUNDS / 3),
        ("twice", "spin", ROUNDS / 3),
        ("thrice", "spin", ROUNDS / 3),
    ];
    let mut arcs: Arcs =
        calls.iter().map(|&(from, to, n)| (from.to_owned(), to.to_owned(), n)).collect();
    arcs.sort();
    arcs
}

#[test]
fn gprofs_own_file_says_here_what_gprof_says() {
    if !is_there("gprof") {
        return;
    }
    for flags in [&[][..], &["-no-pie"], &["-static"]] {
        let Some(folder) = with_own_file("gcc", flags, &["env"]) else { continue };
        let report = report(&folder, &["gmon.out", "--elf", "own"]);
        assert_eq!(
            (&report["info"]["clock"], &report["info"]["period"]),
            (&"samples".into(), &1e7.into())
        );
        if flags != ["-static"] {
            let [p, q] =
                ["-p", "-q"].map(|style| gprof(&folder, "gprof", &[style, "./own", "gmon.out"]));
            agree(&report, &p, &q).unwrap();
        }
        let own: Arcs = arcs(&report).into_iter().filter(|arc| expected().contains(arc)).collect();
        assert_eq!(own, expected(), "{flags:?}");
        let file =
            &report["functions"].as_array().unwrap().iter().find(|f| f["name"] == "light").unwrap()
                ["file"];
        assert!(file.as_str().unwrap().ends_with("programs/graph.c"), "{file}");
    }
}

#[test]
fn gprof_reads_a_recording_as_it_reads_its_own_file() {
    if !is_there("gprof") {
        return;
    }
    // Enough work for gprof's hundred samples a second.
    for flags in [&["-DWORK=10"][..], &["-DWORK=10", "-no-pie"]] {
        let Some(folder) = with_own_file("gcc", flags, &["env"]) else { continue };
        std::fs::rename(folder.path().join("gmon.out"), folder.path().join("own.gmon")).unwrap();
        record(&folder, flags);
        let told = run(teeperf(&folder).args(["export", "--to", "gmon"]));
        assert!(
            told.starts_with("wrote gmon.out; to read it: gprof ")
                && told.ends_with("/hooked gmon.out\n"),
            "{told}"
        );

        let [(theirs, _), (ours, _)] = [("./own", "own.gmon"), ("./hooked", "gmon.out")]
            .map(|(program, file)| graph(&gprof(&folder, "gprof", &["-q", program, file])));
        assert_eq!(theirs, expected());
        assert_eq!(ours, expected());

        let [theirs, ours] = [("./own", "own.gmon"), ("./hooked", "gmon.out")]
            .map(|(program, file)| gprof(&folder, "gprof", &["-p", program, file]));
        assert_eq!(by_others(&theirs), by_others(&ours));
        // heavy works three times as long as light, but others work on this machine too.
        let seconds = |text: &str, wanted: &str| -> f64 {
            flat(text).iter().filter(|row| row.0 == wanted).map(|row| row.1).sum()
        };
        for text in [&theirs, &ours] {
            let (heavy, light) = (seconds(text, "heavy"), seconds(text, "light"));
            let share = heavy / (heavy + light);
            assert!((share - 0.75).abs() < 0.2, "{heavy} {light}\n{text}");
        }

        let [theirs, ours] = [("./own", "own.gmon"), ("./hooked", "gmon.out")]
            .map(|(program, file)| annotated(&gprof(&folder, "gprof", &["-A", program, file])));
        assert!(ours.len() >= 10, "{ours:?}");
        assert_eq!(ours, theirs);
    }
}

/// Of annotated sources, as `gprof -A` prints them, the lines with a count: each function's first.
fn annotated(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.contains(" -> ") || line.contains("##### "));
    lines.map(str::to_owned).collect()
}

/// Calls by others, as `gprof -p` prints them, by name.
fn by_others(text: &str) -> Vec<(String, u64)> {
    let mut calls: Vec<_> = flat(text).into_iter().map(|(name, _, calls)| (name, calls)).collect();
    calls.retain(|(_, calls)| *calls > 0);
    calls.sort();
    calls
}

/// Each function's share of all self time, of what `gprof -p` prints.
fn shares(text: &str) -> BTreeMap<String, f64> {
    let rows = flat(text);
    let all: f64 = rows.iter().map(|row| row.1).sum();
    rows.into_iter().map(|(name, own, _)| (name, own / all)).collect()
}

/// Both histograms of one program, function by function. gcc's has so few samples that its shares are known within
/// what chance makes of them; ours are of wall time, in which others on this machine may have their part.
#[test]
fn shares_of_self_time_are_those_of_gccs_own_file() {
    if !is_there("gprof") {
        return;
    }
    let (folder, rounds) = (Folder::new(), "2000");
    let source = source("shares.c");
    let mut build = prepared(Command::new("gcc"), &folder);
    run(build.args(["-pg", "-O1"]).arg(&source).args(["-o", "own"]));
    run(prepared(Command::new("./own"), &folder).arg(rounds));
    run(teeperf(&folder).args(["cc", "-O1"]).arg(&source).args(["-o", "hooked"]));
    run(teeperf(&folder).args(["record", "-q", "--", "./hooked", rounds]));
    run(teeperf(&folder).args(["export", "--to", "gmon", "-o", "ours.gmon"]));
    let [theirs, ours] = [("own", "gmon.out"), ("hooked", "ours.gmon")]
        .map(|(program, file)| gprof(&folder, "gprof", &["-p", program, file]));
    let samples: f64 = flat(&theirs).iter().map(|row| row.1 * 100.0).sum();
    assert!(samples > 60.0, "too few to tell anything:\n{theirs}");
    let (their_shares, our_shares) = (shares(&theirs), shares(&ours));
    for name in ["forty", "thirty", "fifteen", "ten", "five"] {
        assert!(our_shares.contains_key(name), "{name}:\n{ours}");
    }
    for name in their_shares.keys().chain(our_shares.keys()) {
        let [their, our] =
            [&their_shares, &our_shares].map(|shares| shares.get(name).copied().unwrap_or(0.0));
        let bound = 4.0 * (our * (1.0 - our) / samples).sqrt() + 0.02;
        let told = format!("{name}: {our} of ours, {their} of theirs");
        assert!((their - our).abs() <= bound, "{told}, {samples} samples\n{theirs}\n{ours}");
    }
}

/// What a program has summed while it ran is exported as what it has written call by call.
#[test]
fn gprof_reads_a_recording_of_trees() {
    if !is_there("gprof") {
        return;
    }
    let folder = Folder::new();
    record(&folder, &[]);
    let rounds = ROUNDS.to_string();
    run(teeperf(&folder)
        .args(["record", "-q", "--probe", "tree", "-o", "summed.teeperf"])
        .args(["--", "./hooked", &rounds]));
    run(teeperf(&folder).args(["export", "--to", "gmon", "summed.teeperf"]));
    let shown = gprof(&folder, "gprof", &["-q", "./hooked", "gmon.out"]);
    assert_eq!(graph(&shown).0, expected());
    assert_eq!(arcs(&report(&folder, &["gmon.out", "--elf", "hooked"])), expected());
}

/// gprof shows no calls of a file without a histogram, and adds up no histograms that overlap.
#[test]
fn gprof_reads_a_recording_without_samples() {
    if !is_there("gprof") {
        return;
    }
    let folder = Folder::new();
    record(&folder, &[]);
    // With so few samples a second all times become none.
    for (rate, name) in [("1", "none.gmon"), ("10000", "some.gmon")] {
        run(teeperf(&folder).args(["export", "--to", "gmon", "--rate", rate, "-o", name]));
    }
    let none = report(&folder, &["none.gmon", "--elf", "hooked"]);
    let said = "no samples were taken: times are not known, only counts";
    assert!(none["health"].to_string().contains(said), "{}", none["health"]);
    let [p, q] = ["-p", "-q"].map(|style| gprof(&folder, "gprof", &[style, "hooked", "none.gmon"]));
    assert!(p.contains("no time accumulated"), "{p}");
    assert!(flat(&p).contains(&("heavy".to_owned(), 0.0, ROUNDS)), "{p}");
    assert_eq!(graph(&q).0, expected());

    let sum = ["-s", "hooked", "none.gmon", "some.gmon"];
    run(prepared(Command::new("gprof"), &folder).args(sum));
    let twice: Arcs = expected().into_iter().map(|(from, to, n)| (from, to, 2 * n)).collect();
    assert_eq!(graph(&gprof(&folder, "gprof", &["-q", "hooked", "gmon.sum"])).0, twice);
}

#[test]
fn times_are_right_within_a_sample_and_come_back() {
    let folder = Folder::new();
    record(&folder, &[]);
    run(teeperf(&folder).args(["export", "--to", "gmon", "--elf", "hooked"]));
    let recorded = report(&folder, &["hooked.teeperf"]);
    let again = report(&folder, &["gmon.out", "--elf", "hooked"]);
    assert_eq!(arcs(&again), expected());
    let sums = |report: &Value| {
        let mut sums: BTreeMap<String, (f64, u64)> = BTreeMap::new();
        for function in report["functions"].as_array().unwrap() {
            let name = function["name"].as_str().unwrap();
            let calls = function["calls"].as_u64().unwrap();
            // The file is of one module: it has neither `[no sample]` nor code of the C library,
            // which samples may have met.
            if calls == 0 {
                continue;
            }
            let sum = sums.entry(name.to_owned()).or_default();
            sum.0 += function["self"].as_f64().unwrap();
            sum.1 += calls;
        }
        sums
    };
    let (recorded, again) = (sums(&recorded), sums(&again));
    assert_eq!(recorded.len(), again.len());
    for (name, (ns, calls)) in &recorded {
        let functions = if name == "step" { 2.0 } else { 1.0 };
        let (there, calls_there) = again[name];
        assert!((ns - there).abs() <= functions * 0.5e5 + 1.0, "{name}: {ns} {there}");
        assert_eq!(*calls, calls_there, "{name}");
    }
}

#[test]
fn files_are_summed_here_as_by_gprof() {
    if !is_there("gprof") {
        return;
    }
    let folder = Folder::new();
    record(&folder, &[]);
    for name in ["gmon.out", "gmon.1.out", "gmon.2.out"] {
        let told = run(teeperf(&folder).args(["export", "--to", "gmon"]));
        assert!(told.starts_with(&format!("wrote {name}; ")), "{told}");
    }
    run(prepared(Command::new("gprof"), &folder).args([
        "-s",
        "./hooked",
        "gmon.out",
        "gmon.1.out",
        "gmon.2.out",
    ]));
    let thrice: Arcs = expected().into_iter().map(|(from, to, n)| (from, to, 3 * n)).collect();
    assert_eq!(graph(&gprof(&folder, "gprof", &["-q", "./hooked", "gmon.sum"])).0, thrice);
    let sum = report(&folder, &["gmon.sum", "--elf", "hooked"]);
    let three = report(&folder, &["gmon.out", "gmon.1.out", "gmon.2.out", "--elf", "hooked"]);
    assert_eq!((arcs(&sum), arcs(&three)), (thrice.clone(), thrice));
    for (a, b) in
        sum["functions"].as_array().unwrap().iter().zip(three["functions"].as_array().unwrap())
    {
        assert!((a["self"].as_f64().unwrap() - b["self"].as_f64().unwrap()).abs() < 1.0, "{a} {b}");
    }
}

/// Others than this one: flags of their compiler, and what runs their programs.
fn processors() -> [(&'static str, &'static str, &'static [&'static str]); 5] {
    [
        ("i686-linux-gnu", "-O1", &["env"]),
        ("aarch64-linux-gnu", "-O1", &["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]),
        ("arm-linux-gnueabihf", "-marm", &["qemu-arm", "-L", "/usr/arm-linux-gnueabihf"]),
        ("s390x-linux-gnu", "-O1", &["qemu-s390x", "-L", "/usr/s390x-linux-gnu"]),
        ("powerpc-linux-gnu", "-O1", &["qemu-ppc", "-L", "/usr/powerpc-linux-gnu"]),
    ]
}

/// Of those of which there is all here: the name, the flags, its gprof, and where its program has left a file.
fn own_files() -> impl Iterator<Item = (&'static str, [&'static str; 2], String, Folder)> {
    processors().into_iter().filter_map(|(target, flag, runner)| {
        let (compiler, tool) = (format!("{target}-gcc"), format!("{target}-gprof"));
        let is_all_there = [&compiler, &tool, runner[0]].into_iter().all(is_there);
        // Where functions stand at multiples of 16 bytes, the C library keeps their callers apart.
        let flags = [flag, "-falign-functions=16"];
        let folder = is_all_there.then(|| with_own_file(&compiler, &flags, runner)).flatten()?;
        Some((target, flags, tool, folder))
    })
}

#[test]
fn other_widths_and_byte_orders_are_read_as_their_gprof_reads_them() {
    for (target, _, tool, folder) in own_files() {
        let report = report(&folder, &["gmon.out", "--elf", "own"]);
        let [p, q] = ["-p", "-q"].map(|style| gprof(&folder, &tool, &[style, "./own", "gmon.out"]));
        agree(&report, &p, &q).unwrap();
        assert_eq!(arcs(&report), expected(), "{target}");
    }
}

/// A file that OP-TEE 4.10 left of a computation, whose program is no longer there: by its addresses alone, and with
/// a program that has a function at each address that was called.
#[test]
fn a_file_of_optee_is_read() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/gmon/optee");
    let folder = Folder::new();
    std::fs::copy(file, folder.path().join("optee.gmon")).unwrap();
    let counted = |report: &Value| {
        assert_eq!(report["info"]["period"], 446_627.959, "1/2239 s");
        assert_eq!(report["health"]["events"], 111);
        let functions = report["functions"].as_array().unwrap();
        let seconds: f64 = functions.iter().map(|f| f["self"].as_f64().unwrap() / 1e9).sum();
        assert!((seconds - 1695.0 / 2239.0).abs() < 1e-6, "{seconds}");
        let calls = |which: &str| -> u64 {
            let list = report[which].as_array().unwrap();
            list.iter().map(|one| one["calls"].as_u64().unwrap()).sum()
        };
        assert_eq!((functions.len(), calls("functions"), calls("arcs")), (54, 111, 111));
    };
    let bare = report(&folder, &["optee.gmon", "--bias", "0x20"]);
    counted(&bare);
    let timed = &bare["functions"][0];
    assert_eq!((&timed["name"], &timed["calls"]), (&"0x52c".into(), &1.into()));
    assert_eq!(bare["arcs"].as_array().unwrap().len(), 69);

    let (compiler, tool) = ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-gprof");
    if ![compiler, tool].into_iter().all(is_there) {
        return;
    }
    let mut addresses: Vec<u64> = (bare["functions"].as_array().unwrap().iter())
        .map(|function| function["name"].as_str().unwrap().trim_start_matches("0x"))
        .map(|name| u64::from_str_radix(name, 16).unwrap())
        .collect();
    addresses.sort_unstable();
    let function = |at: &u64| format!(".org {at:#x}\n.type at_{at:x}, %function\nat_{at:x}: nop\n");
    // Others than these call from behind the last.
    let code: String = addresses.iter().map(function).chain([".org 0x20000\n".into()]).collect();
    folder.write("program.s", &code);
    for (address, program) in [("0", "program"), ("0x20", "moved")] {
        let link = ["-nostdlib", "-static", "-Wl,-N,-e,0", "program.s", "-o", program];
        let mut build = prepared(Command::new(compiler), &folder);
        run(build.args(link).arg(format!("-Wl,-Ttext={address}")));
    }
    let named = report(&folder, &["optee.gmon", "--bias", "0x20", "--elf", "program"]);
    counted(&named);
    let [p, q] = ["-p", "-q"].map(|style| gprof(&folder, tool, &[style, "moved", "optee.gmon"]));
    assert_eq!(arcs(&named), graph(&q).0);
    assert!(flat(&p).contains(&("at_52c".to_owned(), 0.76, 1)), "{p}");
    assert_eq!(named["functions"][0]["name"], "at_52c");
}

#[test]
fn a_library_has_a_file_of_its_own() {
    let folder = Folder::new();
    let library = source("graph_library.c");
    run(teeperf(&folder)
        .args(["cc", "-O1", "-g", "-shared", "-fPIC", "-o", "libpacked.so"])
        .arg(&library));
    let flags = ["-DWITH_LIBRARY", "-L.", "-Wl,-rpath,$ORIGIN"];
    run(teeperf(&folder).arg("cc").args(flags).args(sources()).args(["-lpacked", "-o", "hooked"]));
    run(teeperf(&folder).args(["record", "-q", "--", "./hooked", "3"]));

    let program = output(&folder, &["export", "--to", "gmon"]);
    assert!(program.status.success());
    assert!(stderr(&program).contains("libpacked.so"), "{}", stderr(&program));
    let told = "teeperf: 5 calls came from elsewhere than ";
    assert!(stderr(&program).contains(told), "{}", stderr(&program));

    run(teeperf(&folder).args([
        "export",
        "--to",
        "gmon",
        "--module",
        "libpacked.so",
        "-o",
        "lib.gmon",
    ]));
    run(teeperf(&folder).args([
        "export",
        "--to",
        "gmon",
        "--elf",
        "libpacked.so",
        "-o",
        "elf.gmon",
    ]));
    let bytes = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(bytes("lib.gmon"), bytes("elf.gmon"));
    let library = report(&folder, &["lib.gmon", "--elf", "libpacked.so"]);
    assert_eq!(arcs(&library), [("packed".to_owned(), "inner".to_owned(), 10)]);
    if is_there("gprof") {
        let theirs = flat(&gprof(&folder, "gprof", &["-p", "libpacked.so", "lib.gmon"]));
        assert!(theirs.iter().any(|row| row.0 == "inner" && row.2 == 10), "{theirs:?}");
    }

    let absent = output(&folder, &["export", "--to", "gmon", "--module", "libm.so.6"]);
    assert_eq!(absent.status.code(), Some(1));
    assert!(
        stderr(&absent).starts_with("teeperf: nothing of libm.so.6 was called; but of "),
        "{}",
        stderr(&absent)
    );
    // Another build of it.
    run(teeperf(&folder)
        .args(["cc", "-O0", "-shared", "-fPIC", "-o", "libpacked.so"])
        .arg(source("graph_library.c")));
    let other = output(&folder, &["export", "--to", "gmon", "--elf", "libpacked.so", "-o", "-"]);
    assert!(
        stderr(&other).contains("libpacked.so: its build-id is not that"),
        "{}",
        stderr(&other)
    );
    assert!(other.stdout.is_empty());
}

/// A library without hooks is in no recording, and in no file of gcc's: there what it called back is missing, here it
/// stands as called by whoever called the library.
#[test]
fn what_a_library_without_hooks_called_back_is_its_callers() {
    if !is_there("gprof") {
        return;
    }
    let folder = Folder::new();
    folder.write(
        "sort.c",
        "#include <stdlib.h>\n\
         static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }\n\
         __attribute__((noinline)) static int again(int n) { return n * 7919 % 503; }\n\
         int main(void) { int all[300]; for (int i = 0; i < 300; i++) all[i] = again(i);\n\
         qsort(all, 300, sizeof(*all), order); return 0; }\n",
    );
    run(prepared(Command::new("gcc"), &folder).args(["-pg", "-O1", "sort.c", "-o", "own"]));
    run(&mut prepared(Command::new("./own"), &folder));
    run(teeperf(&folder).args(["cc", "-O1", "sort.c", "-o", "hooked"]));
    for probe in ["trace", "tree"] {
        run(teeperf(&folder).args(["record", "-q", "--probe", probe, "--", "./hooked"]));
        run(teeperf(&folder).args(["export", "--to", "gmon", "-o", "ours.gmon"]));
        let [theirs, ours] = [("./own", "gmon.out"), ("./hooked", "ours.gmon")]
            .map(|(program, file)| graph(&gprof(&folder, "gprof", &["-q", program, file])).0);
        let again = ("main".to_owned(), "again".to_owned(), 300);
        assert_eq!(theirs, std::slice::from_ref(&again));
        assert_eq!(ours.len(), 2, "{ours:?}");
        assert!(ours.contains(&again), "{ours:?}");
        let of_sort =
            |arc: &(String, String, u64)| arc.0 == "main" && arc.1 == "order" && arc.2 > 300;
        assert!(ours.iter().any(of_sort), "{ours:?}");
    }
}

/// Addresses are those of the file that was recorded, which need not be there any more.
#[test]
fn a_program_that_is_not_the_one_recorded_is_told() {
    for id in ["-Wl,--build-id", "-Wl,--build-id=none"] {
        let folder = Folder::new();
        record(&folder, &[id]);
        let export = || output(&folder, &["export", "--to", "gmon", "-o", "it.gmon"]);
        let told = |why: &str| {
            let export = export();
            assert!(export.status.success(), "{export:?}");
            assert!(stderr(&export).contains(why), "{id}: {}", stderr(&export));
            assert!(stderr(&export).contains("with any other file gprof names wrong functions"));
            let line = "wrote it.gmon; gprof reads it with the file that was recorded\n";
            assert_eq!(String::from_utf8_lossy(&export.stdout), line);
            std::fs::read(folder.path().join("it.gmon")).unwrap()
        };
        assert!(!stderr(&export()).contains("wrong functions"), "{}", stderr(&export()));
        let written = std::fs::read(folder.path().join("it.gmon")).unwrap();
        // Functions begin elsewhere, and so the build-id is another.
        let other = ["-falign-functions=256", id];
        run(teeperf(&folder).arg("cc").args(other).args(sources()).args(["-o", "hooked"]));
        assert_eq!(told("/hooked: "), written);
        assert_eq!(told("the file has been replaced since; "), written);
        std::fs::remove_file(folder.path().join("hooked")).unwrap();
        assert_eq!(told("/hooked: No such file or directory"), written);
    }
}

/// What code without a system has counted: how wide its addresses are its file says, whatever it is called.
#[test]
fn an_image_is_written_as_its_file_says() {
    for (target, flag) in [("arm-linux-gnueabihf", "-marm"), ("aarch64-linux-gnu", "-O1")] {
        let tool = format!("{target}-gprof");
        if ![&format!("{target}-gcc"), &tool].into_iter().all(|tool| is_there(tool)) {
            continue;
        }
        for name in ["", "image.elf", "boot/board.bin"] {
            let folder = Folder::new();
            image(&folder, target, &[flag], name);
            // Its file is found by its name where it lies here.
            std::fs::create_dir(folder.path().join("apart")).unwrap();
            let import = ["import", "../pieces", "-o"];
            let apart = |words: &[&str]| -> Output {
                let mut command = teeperf(&folder);
                command.args(words).current_dir(folder.path().join("apart")).output().unwrap()
            };
            assert!(apart(&[&import[..], &["../bare.teeperf"]].concat()).status.success());
            let named = ["../named.teeperf", "--elf", "../image.elf"];
            assert!(apart(&[&import[..], &named].concat()).status.success());
            let shown = if name.is_empty() { "an image without a name" } else { name };
            let refusal = format!(
                "teeperf: how wide the addresses of {shown} are its file alone says: name that with --elf\n"
            );
            for recording in ["bare.teeperf", "named.teeperf"] {
                let export = ["export", "--to", "gmon", "-o", "it.gmon", recording];
                let told = run(teeperf(&folder).args(export).args(["--elf", "image.elf"]));
                assert_eq!(told, "wrote it.gmon; to read it: gprof image.elf it.gmon\n");
                let [p, q] = ["-p", "-q"]
                    .map(|style| gprof(&folder, &tool, &[style, "image.elf", "it.gmon"]));
                assert!(p.contains("no time accumulated"), "{p}");
                assert_eq!(graph(&q).0, expected(), "{target}");
                let as_said = std::fs::read(folder.path().join("it.gmon")).unwrap();

                let here = output(&folder, &export);
                if name == "image.elf" && recording == "named.teeperf" {
                    assert!(here.status.success(), "{}", stderr(&here));
                    assert_eq!(std::fs::read(folder.path().join("it.gmon")).unwrap(), as_said);
                } else {
                    assert_eq!((here.status.code(), stderr(&here)), (Some(1), &*refusal));
                }
            }
            // A function without a symbol has its place all the same, and its calls.
            run(prepared(Command::new(format!("{target}-strip")), &folder).args([
                "-N",
                "product",
                "image.elf",
                "-o",
                "nearly.elf",
            ]));
            let export = ["export", "--to", "gmon", "-o", "it.gmon", "bare.teeperf"];
            run(teeperf(&folder).args(export).args(["--elf", "nearly.elf"]));
            let all = |arcs: &Arcs| -> u64 { arcs.iter().map(|arc| arc.2).sum() };
            let nearly = report(&folder, &["it.gmon", "--elf", "nearly.elf"]);
            assert_eq!(all(&arcs(&nearly)), all(&expected()));

            // Another file, and one without symbols.
            run(prepared(Command::new(format!("{target}-strip")), &folder).args([
                "image.elf",
                "-o",
                "apart/image.elf",
            ]));
            image(&folder, target, &[flag, "-falign-functions=64"], name);
            let wrong = |elf: &str, recording: &str| {
                let export =
                    ["export", "--to", "gmon", "-o", "wrong.gmon", recording, "--elf", elf];
                let output = output(&folder, &export);
                (output.status.code(), stderr(&output).to_owned())
            };
            for (elf, recording) in [
                ("image.elf", "named.teeperf"),
                ("apart/image.elf", "named.teeperf"),
                ("apart/image.elf", "bare.teeperf"),
            ] {
                let (code, said) = wrong(elf, recording);
                let told = format!("teeperf: {elf}: the functions of {shown} are not there: ");
                assert!(code == Some(1) && said.starts_with(&told), "{said}");
            }
            assert!(!folder.path().join("wrong.gmon").exists());
        }
    }
}

/// The gprof of another processor reads ours as it reads what gcc's own counting left there.
#[test]
fn the_gprof_of_other_processors_reads_ours_as_its_own() {
    for (target, flags, tool, folder) in own_files() {
        std::fs::rename(folder.path().join("gmon.out"), folder.path().join("own.gmon")).unwrap();
        image(&folder, target, &flags, "board");
        run(teeperf(&folder).args(["import", "pieces", "-o", "board.teeperf"]));
        run(teeperf(&folder).args(["export", "--to", "gmon", "--elf", "image.elf"]));
        let [[their_p, their_q, their_a], [our_p, our_q, our_a]] =
            [("own", "own.gmon"), ("image.elf", "gmon.out")].map(|(program, file)| {
                ["-p", "-q", "-A"].map(|style| gprof(&folder, &tool, &[style, program, file]))
            });
        assert_eq!(by_others(&our_p), by_others(&their_p), "{target}");
        let (ours, theirs) = (graph(&our_q).0, graph(&their_q).0);
        assert_eq!((&ours, &theirs), (&expected(), &expected()), "{target}");
        let (ours, theirs) = (annotated(&our_a), annotated(&their_a));
        assert!(ours.len() >= 10, "{target}: {our_a}");
        assert_eq!(ours, theirs, "{target}");
    }
}

#[test]
fn threads_are_told_apart_and_standard_output_is_a_file_too() {
    let folder = Folder::new();
    let program = "#include <pthread.h>\n\
        __attribute__((noinline)) void *work(void *n) { __asm__ volatile(\"\"); return n; }\n\
        int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); pthread_setname_np(t, \"worker\");\n\
        pthread_join(t, 0); for (int i = 0; i < 5; i++) work(0); return 0; }\n";
    folder.write("threads.c", program);
    run(teeperf(&folder).args([
        "cc",
        "-D_GNU_SOURCE",
        "-O1",
        "threads.c",
        "-pthread",
        "-o",
        "threads",
    ]));
    run(teeperf(&folder).args(["record", "-q", "--", "./threads"]));
    let calls = |words: &[&str]| {
        let exported = output(&folder, &[&["export", "--to", "gmon", "-o", "-"], words].concat());
        assert!(exported.status.success(), "{}", stderr(&exported));
        std::fs::write(folder.path().join("it"), &exported.stdout).unwrap();
        let report = report(&folder, &["it", "--elf", "threads"]);
        let functions = report["functions"].as_array().unwrap().iter();
        functions.filter(|f| f["name"] == "work").map(|f| f["calls"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(calls(&[]), 6);
    assert_eq!(calls(&["--focus", "main"]), 5);
    let threads = report(&folder, &["threads.teeperf"]);
    let ids: Vec<String> = threads["threads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|thread| thread["id"].to_string())
        .collect();
    let mut by_thread: Vec<u64> = ids.iter().map(|id| calls(&["--thread", id])).collect();
    by_thread.sort_unstable();
    assert_eq!(by_thread, [1, 5]);
}

#[test]
fn what_a_gmon_file_cannot_tell_is_said() {
    let Some(folder) = with_own_file("gcc", &[], &["env"]) else { return };
    for words in [
        &["report", "--tree", "gmon.out"][..],
        &["report", "--threads", "gmon.out"],
        &["report", "--focus", "main", "gmon.out"],
        &["flame", "gmon.out"],
        &["export", "--to", "gmon", "gmon.out"],
    ] {
        let refused = output(&folder, words);
        assert_eq!((refused.status.code(), &refused.stdout[..]), (Some(1), &b""[..]), "{words:?}");
        assert!(stderr(&refused).contains("call paths"), "{}", stderr(&refused));
    }
    let refused = output(&folder, &["dump", "gmon.out"]);
    assert_eq!((refused.status.code(), &refused.stdout[..]), (Some(1), &b""[..]));
    let told = "gmon.out is a gmon file, of gprof, and no recording; `teeperf report gmon.out --elf PROGRAM`";
    assert!(stderr(&refused).contains(told), "{}", stderr(&refused));
    let text = run(teeperf(&folder).args(["report", "gmon.out", "--elf", "own"]));
    for part in [
        "There are no call paths",
        "estimates",
        "Callers and callees",
        "600 of 600  from main",
        "<cycle 1>",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let nameless = run(teeperf(&folder).args(["report", "gmon.out"]));
    assert!(nameless.contains("name the program with --elf"), "{nameless}");
    assert!(nameless.contains("callers and cycles"), "{nameless}");
    // With the names of another program, in which all is one function.
    folder.write("other.c", "int main(void) { __asm__(\".skip 65536, 0x90\"); return 0; }\n");
    run(prepared(Command::new("gcc"), &folder).args(["other.c", "-o", "other"]));
    let other = report(&folder, &["gmon.out", "--elf", "other"]);
    let told = "it may not be the program that wrote the file, or lack symbols";
    assert!(other["health"].to_string().contains(told), "{}", other["health"]);
    let own = report(&folder, &["gmon.out", "--elf", "own"]);
    assert!(!own["health"].to_string().contains(told), "{}", own["health"]);
    // Through a pipe, and cut off.
    let piped = prepared(Command::new("sh"), &folder)
        .args([
            "-c",
            "head -c 3000 gmon.out | \"$0\" report --elf own -",
            env!("CARGO_BIN_EXE_teeperf"),
        ])
        .output()
        .unwrap();
    let piped = String::from_utf8_lossy(&piped.stdout).into_owned();
    assert!(
        piped.contains("Functions by self time") || piped.contains("the file ends at"),
        "{piped}"
    );

    let other = output(&folder, &["report", "own", "--bias", "0x1000", "--elf", "own"]);
    assert!(
        stderr(&other).contains("`gprof -s PROGRAM own` rewrites it as gmon.sum"),
        "{}",
        stderr(&other)
    );
    let wrong = output(&folder, &["report", "gmon.out", "--elf", "gmon.out"]);
    assert!(stderr(&wrong).contains("gmon.out: not an ELF file"), "{}", stderr(&wrong));
    folder.write("letter", "to my grandmother");
    run(teeperf(&folder).args(["cc", "-O1"]).args(sources()).args(["-o", "hooked"]));
    run(teeperf(&folder).args(["record", "-q", "--", "./hooked"]));
    let kept = output(&folder, &["export", "--to", "gmon", "-o", "letter"]);
    assert!(
        stderr(&kept).contains("letter is there, and is no gmon file; --force"),
        "{}",
        stderr(&kept)
    );
    run(teeperf(&folder).args(["export", "--to", "gmon", "-o", "letter", "--force"]));
    run(teeperf(&folder).args(["export", "--to", "gmon", "-o", "letter"]));
}
