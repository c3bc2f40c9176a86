//! Recordings of earlier versions are read for ever: what reports said of them when they were written, they
//! say today. `tests/recordings/README.md` tells how they were made.

use crate::support::{Folder, run, teeperf};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The recordings of all versions.
fn recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let listed = |folder: &Path| {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    let versions = listed(&folder).into_iter().filter(|path| path.is_dir());
    let files = versions.flat_map(|version| listed(&version));
    files.filter(|path| path.extension().is_some_and(|end| end == "recording")).collect()
}

/// Whatever was said then is said now; more may be.
#[track_caller]
fn says(now: &Value, then: &Value, place: &str) {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            for (key, value) in then {
                says(now.get(key).unwrap_or(&Value::Null), value, &format!("{place}.{key}"));
            }
        }
        (Value::Array(now), Value::Array(then)) => {
            assert_eq!(now.len(), then.len(), "{place}");
            for (at, (now, then)) in now.iter().zip(then).enumerate() {
                says(now, then, &format!("{place}[{at}]"));
            }
        }
        _ => assert_eq!(now, then, "{place}"),
    }
}

#[test]
fn recordings_of_earlier_versions_say_what_they_said() {
    let folder = Folder::new();
    let recordings = recordings();
    assert!(recordings.len() >= 13);
    let mut compared = 0;
    for path in recordings {
        let tables =
            [("--tree", "json"), ("--lengths", "lengths.json"), ("--time-line", "time-line.json")];
        for (table, ending) in tables {
            let Ok(then) = std::fs::read_to_string(path.with_extension(ending)) else { continue };
            let words = ["report", "--json", table];
            let now = run(teeperf(&folder).args(words).arg(&path));
            let [now, then] = [&now, &then].map(|text| serde_json::from_str(text).unwrap());
            says(&now, &then, &path.display().to_string());
            compared += 1;
        }
        // All that is in it has a name.
        let info = run(teeperf(&folder).args(["info", "--json"]).arg(&path));
        assert!(!info.contains("\"type_"), "{}: {info}", path.display());
    }
    assert!(compared >= 16, "{compared}");
}
