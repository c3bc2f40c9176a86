//! Each document for programs is as its schema in `docs` has it, and the schema has nothing that no document has.

use crate::schema_check::Schema;
use crate::support::{Folder, run, teeperf};
use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};

const PROGRAM: &str = "#include <stdio.h>\n#include <unistd.h>\n\
    __attribute__((noinline)) int twice(int n) { return 2 * n; }\n\
    int main(int argc, char **argv) { int sum = 0; for (int i = 0; i < 1000; i++) sum += twice(i);\n\
    if (argc > 1) { puts(\"begun\"); fflush(stdout); for (;;) { sum += twice(1); usleep(1000); } }\n\
    return sum == 0; }\n";

fn with_recording() -> Folder {
    let folder = Folder::new();
    folder.write("program.c", PROGRAM);
    run(teeperf(&folder).args(["cc", "-O1", "-g", "program.c", "-o", "program"]));
    // Between two ticks it would have ended.
    run(teeperf(&folder).args(["record", "-q", "--clock", "cycle", "--", "./program"]));
    folder
}

/// What a command prints, whatever its exit status.
fn json(folder: &Folder, words: &[&str]) -> Value {
    let output = teeperf(folder).args(words).output().unwrap();
    let parsed = serde_json::from_slice(&output.stdout);
    parsed.unwrap_or_else(|error| panic!("{words:?}: {error}: {output:?}"))
}

/// All of them fit, and together have all that is described.
#[track_caller]
fn expect(schema: &str, documents: &[Value]) {
    let mut schema = Schema::of(schema);
    for document in documents {
        assert_eq!(schema.errors(document), Vec::<String>::new());
    }
    let missing: Vec<String> = schema.properties().difference(&schema.seen).cloned().collect();
    assert_eq!(missing, Vec::<String>::new(), "described, and in none");
}

#[test]
fn info() {
    let folder = with_recording();
    run(teeperf(&folder).args([
        "record",
        "-q",
        "--only",
        "twice",
        "-o",
        "part.teeperf",
        "--",
        "./program",
    ]));
    let mut words = vec!["info", "--json", "program.teeperf"];
    let whole = json(&folder, &words);
    words[2] = "part.teeperf";
    let documents = [whole, json(&folder, &words)];
    let mut schema = Schema::of(include_str!("../../../../docs/info.schema.json"));
    for document in &documents {
        assert_eq!(schema.errors(document), Vec::<String>::new());
    }
    let mut record = teeperf(&folder);
    record.args(["record", "-q", "--sample", "-o", "sampled.teeperf", "--", "./program"]);
    let can_sample = record.output().unwrap().status.success();
    if can_sample {
        let sampled = json(&folder, &["info", "--json", "sampled.teeperf"]);
        assert_eq!(schema.errors(&sampled), Vec::<String>::new());
        assert_eq!(sampled["samples"]["processes"][0]["name"], "program");
    }
    // Cut off: it has damage, and no end.
    let bytes = std::fs::read(folder.path().join("program.teeperf")).unwrap();
    std::fs::write(folder.path().join("cut.teeperf"), &bytes[..bytes.len() - 7]).unwrap();
    let cut = json(&folder, &["info", "--json", "cut.teeperf"]);
    assert_eq!(schema.errors(&cut), Vec::<String>::new());
    assert_eq!(cut["is_whole"], false);
    let notices = ["/notices/items/text", "/notices/items/warning"];
    let missing = schema.properties();
    let missing: Vec<&String> = missing.difference(&schema.seen).collect();
    let is_excused = |name: &&&String| {
        notices.contains(&name.as_str()) || !can_sample && name.starts_with("/samples")
    };
    assert!(missing.iter().all(|name| is_excused(&name)), "{missing:?}");
}

#[test]
fn diff_and_suggestion_and_annotation() {
    let folder = with_recording();
    let words = ["diff", "--json", "program.teeperf", "program.teeperf"];
    expect(include_str!("../../../../docs/diff.schema.json"), &[json(&folder, &words)]);
    // What its hooks cost may be all of its time.
    let words = ["suggest", "--json", "program.teeperf"];
    expect(include_str!("../../../../docs/suggestion.schema.json"), &[json(&folder, &words)]);
    // Samples stand at lines.
    run(teeperf(&folder).args(["export", "--to", "perf", "-o", "perf.data", "program.teeperf"]));
    let words = [&["annotate", "--json", "main"][..], &["annotate", "--json", "perf.data", "main"]];
    let documents = words.map(|words| json(&folder, words));
    expect(include_str!("../../../../docs/annotation.schema.json"), &documents);
}

#[test]
fn status() {
    let folder = with_recording();
    let mut command = teeperf(&folder);
    command.args([
        "record",
        "-q",
        "--only",
        "twice",
        "-o",
        "long.teeperf",
        "--",
        "./program",
        "long",
    ]);
    let mut recorder = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = recorder.id().to_string();
    let began = Instant::now();
    let status = loop {
        let output = teeperf(&folder).args(["ctl", &pid, "status", "--json"]).output().unwrap();
        match serde_json::from_slice::<Value>(&output.stdout) {
            Ok(status) if status["events"].as_u64() > Some(0) => break status,
            _ => assert!(began.elapsed() < Duration::from_secs(60), "{output:?}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    expect(include_str!("../../../../docs/status.schema.json"), &[status]);
    // What `doctor` says of the recorder's program while it runs.
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let program = children.split_whitespace().next().expect("the program");
    let told = json(&folder, &["doctor", "--json", "--pid", program]);
    assert_eq!((&told["about"], &told["ready"]), (&"process".into(), &true.into()), "{told}");
    // SAFETY: a process that this test has started.
    unsafe { libc::kill(program.parse().unwrap(), libc::SIGTERM) };
    recorder.wait().unwrap();
}

#[test]
fn doctor() {
    let folder = with_recording();
    let documents = [
        &["doctor", "--json"][..],
        &["doctor", "--json", "program"],
        &["doctor", "--json", "./program"],
        &["doctor", "--json", "program.teeperf"],
        &["doctor", "--json", "--pid", "1"],
    ]
    .map(|words| json(&folder, words));
    expect(include_str!("../../../../docs/doctor.schema.json"), &documents);
}

#[test]
fn config() {
    let folder = with_recording();
    folder.write("teeperf.toml", "color = 'never'\n[build]\nmin-size = 3\n[report]\nlimit = 7\n");
    let documents = [json(&folder, &["config", "--json"])];
    expect(include_str!("../../../../docs/config.schema.json"), &documents);
}
