//! Files that set options: which count, what takes them back, what is wrong in them, and how they are shown.

use crate::support::{Folder, prepared, run, teeperf};
use std::process::Output;

const PROGRAM: &str = "__attribute__((noinline)) static int twice(int n) { return 2 * n; }\n\
    __attribute__((noinline)) static int thrice(int n) { return 3 * n; }\n\
    int main(void) { int sum = 0; for (int i = 0; i < 1000; i++) sum += twice(i) + thrice(i); return sum & 1; }\n";

fn with_recording() -> Folder {
    let folder = Folder::new();
    folder.write("program.c", PROGRAM);
    run(teeperf(&folder).args(["cc", "-O1", "-g", "program.c", "-o", "program"]));
    let _ = teeperf(&folder).args(["record", "-q", "--", "./program"]).status().unwrap();
    folder
}

fn output(folder: &Folder, words: &[&str]) -> Output {
    teeperf(folder).args(words).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Functions of a CSV report.
fn rows(folder: &Folder, words: &[&str]) -> usize {
    let said = output(folder, &[&["report"], words].concat());
    assert!(said.status.success(), "{said:?}");
    stdout(&said).lines().count() - 1
}

#[test]
fn what_is_typed_counts_then_the_project_then_the_user() {
    let folder = with_recording();
    assert_eq!(rows(&folder, &["--csv"]), 3);
    folder.write(".config/teeperf/config.toml", "[report]\nlimit = 2\ncsv = true\n");
    assert_eq!(rows(&folder, &[]), 2);
    folder.write("teeperf.toml", "[report]\nlimit = 1\n");
    assert_eq!(rows(&folder, &[]), 1);
    assert_eq!(rows(&folder, &["--limit", "3"]), 3);
    // Below the project's folder as well; none where none is to be.
    folder.write("below/x", "");
    let mut below = teeperf(&folder);
    below.current_dir(folder.path().join("below")).args(["report", "../program.teeperf"]);
    assert_eq!(run(&mut below).lines().count(), 2);
    assert!(run(teeperf(&folder).arg("report").env("TEEPERF_CONFIG", "")).contains("FUNCTION"));
    // Named, in place of the project's.
    folder.write("named", "[report]\ncsv = false\n");
    let named = run(teeperf(&folder).arg("report").env("TEEPERF_CONFIG", "named"));
    assert!(named.contains("FUNCTION"), "{named}");
}

#[test]
fn a_switch_is_taken_back_and_gives_way_to_what_does_not_go_with_it() {
    let folder = with_recording();
    folder.write("teeperf.toml", "[report]\ntree = true\nsort = 'calls'\n");
    let tree = stdout(&output(&folder, &["report"]));
    let flat = |words: &[&str]| stdout(&output(&folder, &[&["report"], words].concat()));
    assert!(tree.contains("Call tree"), "{tree}");
    assert!(!flat(&["--no-tree"]).contains("Call tree"));
    assert_ne!(flat(&["--no-tree"]), tree);
    assert!(!flat(&["--threads"]).contains("Call tree"));
    assert!(flat(&["--json"]).starts_with('{'), "{}", flat(&["--json"]));
    assert_eq!(flat(&["--no-tree", "--tree"]), tree);
    // Nothing of it is to be seen in help. What an option itself calls so can be set, and is told.
    assert!(!flat(&["--help"]).contains("--no-tree"));
}

#[test]
fn what_is_recorded_is_as_files_say() {
    let folder = with_recording();
    folder
        .write("teeperf.toml", "[record]\nclock = \"cycle\"\nquiet = true\nexclude = ['twice']\n");
    let recorded = output(&folder, &["record", "--", "./program"]);
    assert_eq!(stderr(&recorded), "");
    let info = run(teeperf(&folder).args(["info", "--json"]));
    assert!(info.contains(r#""clock":"cycle""#), "{info}");
    let report = run(teeperf(&folder).args(["report", "--csv"]));
    assert!(report.contains("thrice") && !report.contains("twice"), "{report}");
    let recorded = output(&folder, &["record", "--no-quiet", "--clock", "tick", "--", "./program"]);
    assert!(stderr(&recorded).contains("next: teeperf report"), "{recorded:?}");
    assert!(run(teeperf(&folder).args(["info", "--json"])).contains(r#""clock":"tick""#));
}

#[test]
fn what_is_wrong_ends_the_command_with_file_line_and_nearest_name() {
    let folder = with_recording();
    for (text, told) in [
        ("[report]\n\nlimt = 5\n", "teeperf.toml:3: `teeperf report` has no option --limt"),
        ("[report]\n\nlimt = 5\n", "is `limit` meant?"),
        ("[reprot]\n", "teeperf.toml:1: there is no section [reprot]; is [report] meant?"),
        (
            "[report]\nlimit = 'many'\n",
            "teeperf.toml:2: invalid value 'many' for '--limit <COUNT>'",
        ),
        ("[flame]\noutput = '/tmp/x'\n", "a project does not say that"),
    ] {
        folder.write("teeperf.toml", text);
        let refused = output(&folder, &["report"]);
        assert_eq!((refused.status.code(), stdout(&refused)), (Some(1), String::new()));
        assert!(
            stderr(&refused).starts_with("teeperf: /") && stderr(&refused).contains(told),
            "{refused:?}"
        );
        // What compares says that there is no answer; what asks for help gets it; what does not need it goes on.
        let diff = output(&folder, &["diff", "program.teeperf", "program.teeperf"]);
        assert_eq!(diff.status.code(), Some(2), "{diff:?}");
        for words in [&["report", "--help"][..], &["version"]] {
            assert!(output(&folder, words).status.success());
        }
        let shown = output(&folder, &["config"]);
        assert!(!shown.status.success() && stderr(&shown).contains(told), "{shown:?}");
    }
    // Builds look at sections' names alone.
    folder.write("teeperf.toml", "[report]\nlimt = 5\n");
    assert!(output(&folder, &["cc", "-c", "program.c"]).status.success());
    folder.write("teeperf.toml", "[biuld]\n");
    let refused = output(&folder, &["cc", "-c", "program.c"]);
    assert!(stderr(&refused).contains("is [build] meant?") && !refused.status.success());
}

#[test]
fn an_error_says_what_files_had_set() {
    let folder = with_recording();
    folder.write("teeperf.toml", "[record]\nprobe = 'tree'\n");
    let refused = output(&folder, &["record", "--timed", "twice", "--", "./program"]);
    let told = "teeperf: --probe tree was set in ";
    assert!(
        stderr(&refused).contains(told) && stderr(&refused).contains("teeperf.toml:2"),
        "{refused:?}"
    );
}

#[test]
fn a_file_that_anybody_may_have_written_is_said_and_not_used() {
    let folder = with_recording();
    folder.write("teeperf.toml", "[report]\ncsv = true\n");
    let shared = folder.path().join("teeperf.toml");
    let mode = |mode| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&shared, mode).unwrap();
    };
    mode(0o666);
    let said = output(&folder, &["report"]);
    assert!(stderr(&said).contains("teeperf.toml is not used: everybody may write to it"));
    assert!(stdout(&said).contains("FUNCTION"));
    mode(0o644);
    assert!(!stdout(&output(&folder, &["report"])).contains("FUNCTION\n"));
    let text = run(teeperf(&folder).arg("report"));
    assert!(text.starts_with("function,") || text.contains(','), "{text}");
}

#[test]
fn what_holds_is_shown_with_where_it_stands() {
    let folder = with_recording();
    let nothing = run(teeperf(&folder).arg("config"));
    assert!(nothing.starts_with("no settings: ") && nothing.contains("config.toml"), "{nothing}");
    folder.write("teeperf.toml", "[build]\nmin-size = 3\n[report]\nlimit = 7\n");
    folder.write(".config/teeperf/config.toml", "color = 'never'\n[report]\nlimit = 9\n");
    let shown = run(teeperf(&folder).arg("config"));
    for line in ["teeperf.toml (project)", "  min-size = 3", "  limit = 7", "config.toml (user)"] {
        assert!(shown.contains(line), "{shown}");
    }
    let overruled = shown.lines().find(|line| line.contains("limit = 9")).unwrap();
    assert!(overruled.ends_with("teeperf.toml:4 counts"), "{shown}");
    let report = run(teeperf(&folder).args(["config", "report"]));
    let limit = report.lines().find(|line| line.starts_with("limit ")).unwrap();
    assert!(limit.contains(" 7 ") && limit.ends_with("teeperf.toml:4"), "{report}");
    assert!(
        report.lines().any(|line| line.starts_with("sort ") && line.ends_with("self")),
        "{report}"
    );
    // A switch that is called so, and none that takes one back.
    let has = |key: &str| report.lines().any(|line| line.split(' ').next() == Some(key));
    assert!(has("fold-unhooked") && !has("no-tree"), "{report}");
    let json: serde_json::Value =
        serde_json::from_str(&run(teeperf(&folder).args(["config", "--json"]))).unwrap();
    assert_eq!(json["format"], "teeperf-config");
    let settings = json["settings"].as_array().unwrap();
    let used: Vec<bool> = settings.iter().map(|of| of["used"].as_bool().unwrap()).collect();
    assert_eq!(used, [true, true, false]);
    let refused = output(&folder, &["config", "version"]);
    assert!(stderr(&refused).contains("nothing can be set for \"version\""), "{refused:?}");
}

#[test]
fn colour_is_as_the_user_says() {
    let folder = with_recording();
    let coloured = |words: &[&str], set: &[(&str, &str)]| {
        let mut command = teeperf(&folder);
        command.args(words).envs(set.iter().copied());
        run(&mut command).contains('\x1b')
    };
    assert!(!coloured(&["report"], &[]));
    assert!(coloured(&["report", "--color", "always"], &[("NO_COLOR", "1")]));
    assert!(coloured(&["--color=always", "report"], &[]));
    assert!(coloured(&["report"], &[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&["report"], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    folder.write("teeperf.toml", "color = 'always'\n");
    assert!(coloured(&["report"], &[]) && !coloured(&["report", "--color", "never"], &[]));
}

#[test]
fn words_behind_a_program_are_its_own() {
    let folder = with_recording();
    folder.write("teeperf.toml", "[record]\nquiet = true\n");
    let mut command = prepared(std::process::Command::new(env!("CARGO_BIN_EXE_teeperf")), &folder);
    command.args(["record", "--", "echo", "--no-quiet", "--color=never"]);
    let said = command.output().unwrap();
    assert_eq!(stdout(&said), "--no-quiet --color=never\n");
    assert!(!stderr(&said).contains("next: teeperf report"), "{said:?}");
}

/// What a file says of a mode waits until that is asked for; who types it is told that it is not.
#[test]
fn what_means_nothing_here_waits() {
    let folder = with_recording();
    folder.write(
        "teeperf.toml",
        "[record]\ntree-size = '2M'\nfold-recursion = true\ninterval = '10s'\nquiet = true\n\
         [report]\nsort = 'p99'\ncsv = true\n[flame]\ninverted = true\n",
    );
    let words = ["record", "-o", "made.teeperf", "--clock", "cycle", "--", "./program"];
    let said = output(&folder, &words);
    assert!(stderr(&said).is_empty() && folder.path().join("made.teeperf").exists(), "{said:?}");
    // The rest of the file holds, and these where they mean something.
    assert!(run(teeperf(&folder).args(["report", "made.teeperf"])).starts_with("function,"));
    let lengths = run(teeperf(&folder).args(["report", "made.teeperf", "--lengths"]));
    let (head, rows) = lengths.split_once('\n').unwrap();
    let at = head.split(',').position(|column| column == "p99_ns").unwrap();
    let p99: Vec<f64> =
        rows.lines().map(|row| row.split(',').nth(at).unwrap().parse().unwrap()).collect();
    assert!(p99.len() == 3 && p99.is_sorted_by(|a, b| a >= b), "{lengths}");
    run(teeperf(&folder).args(["flame", "--folded", "-o", "-", "made.teeperf"]));
    run(teeperf(&folder).args(["record", "--probe", "tree", "-o", "t.teeperf", "--", "./program"]));
    folder.write("teeperf.toml", "[record]\nprobe = 'tree'\ntree-size = '8k'\n");
    run(teeperf(&folder).args(["record", "--probe", "trace", "--", "./program"]));
    // Typed, it is an error, whatever else a file says.
    folder.write("teeperf.toml", "[record]\ninterval = '10s'\n");
    let said = output(&folder, &["record", "--tree-size", "2M", "--", "./program"]);
    assert!(stderr(&said).contains("--tree-size is about trees: give --probe tree"), "{said:?}");
    let said = output(&folder, &["report", "--sort", "p99", "made.teeperf"]);
    assert!(!said.status.success() && stderr(&said).contains("--lengths"), "{said:?}");
}
