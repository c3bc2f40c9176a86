//! Two builds of a program compared, as people type it. Times are not asserted: calls are exact, and tell enough.

use crate::support::{Folder, run, teeperf};
use serde_json::Value;
use std::process::Output;

/// `parse` is called half as often again in the other build, `old` gives way to `new`.
const PROGRAM: &str = r#"
static volatile unsigned sink;
static __attribute__((noinline)) void work(unsigned n) { while (n--) sink += n; }
__attribute__((noinline)) void parse(void) { work(2000); sink++; }
#ifdef OTHER
__attribute__((noinline)) void new(void) { work(1000); sink++; }
#else
__attribute__((noinline)) void old(void) { work(1000); sink++; }
#endif
int main(void) {
    for (int i = 0; i < TIMES; i++) parse();
#ifdef OTHER
    new();
#else
    old();
#endif
    return 0;
}
"#;

fn diff(folder: &Folder, words: &[&str]) -> Output {
    teeperf(folder).arg("diff").args(words).output().unwrap()
}

fn code(folder: &Folder, words: &[&str]) -> (i32, String) {
    let output = diff(folder, words);
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn two_builds_of_a_program_are_compared() {
    let folder = Folder::new();
    folder.write("program.c", PROGRAM);
    let build = ["cc", "-O1", "-g", "-DTIMES=100", "program.c", "-o", "before"];
    run(teeperf(&folder).args(build));
    let build = ["cc", "-O1", "-g", "-DTIMES=150", "-DOTHER", "program.c", "-o", "after"];
    run(teeperf(&folder).args(build));
    for (program, runs) in [("before", ["b1", "b2"]), ("after", ["a1", "a2"])] {
        for name in runs {
            let name = format!("{name}.teeperf");
            run(teeperf(&folder).args([
                "record",
                "-q",
                "-o",
                &name,
                "--",
                &format!("./{program}"),
            ]));
        }
    }
    let only = ["record", "-q", "--only", "parse", "-o", "only.teeperf", "--", "./before"];
    run(teeperf(&folder).args(only));

    let all = ["--json", "b1.teeperf", "b2.teeperf", "--", "a1.teeperf", "a2.teeperf"];
    let json = run(teeperf(&folder).arg("diff").args(all));
    let json: Value = serde_json::from_str(&json).unwrap();
    let function = |name: &str| {
        let mut functions = json["functions"].as_array().unwrap().iter();
        functions.find(|f| f["name"] == name).unwrap_or_else(|| panic!("no {name}")).clone()
    };
    let calls = |name: &str| {
        let function = function(name);
        let calls = &function["calls"];
        let figures = ["before", "after"].map(|side| calls[side].as_f64().unwrap());
        (
            function["presence"].as_str().unwrap().to_owned(),
            figures,
            calls["is_change"].as_bool().unwrap(),
        )
    };
    assert_eq!(calls("parse"), ("both".into(), [100.0, 150.0], true));
    assert_eq!(calls("work"), ("both".into(), [101.0, 151.0], true));
    assert_eq!(calls("main"), ("both".into(), [1.0, 1.0], false));
    assert_eq!(calls("old"), ("gone".into(), [1.0, 0.0], true));
    assert_eq!(calls("new"), ("new".into(), [0.0, 1.0], true));
    assert_eq!(json["before"][1]["recording"], "b2.teeperf");

    // What a build server goes by.
    let two = ["b1.teeperf", "a1.teeperf"];
    let status = |condition: &str| code(&folder, &[&["--fail-if", condition], &two[..]].concat());
    assert_eq!(status("calls(parse) > +60%").0, 0);
    let (failed, said) = status("calls(parse) > +40%");
    assert_eq!(failed, 1);
    assert!(
        said.contains("failed: calls(parse) > +40%: parse: calls 100 → 150, +50.0 %"),
        "{said}"
    );
    let (wrong, said) = status("calls(parse) + 40%");
    assert!(
        wrong == 2 && said.contains("expected `>` or `<`\n  calls(parse) + 40%\n               ^"),
        "{said}"
    );
    let (unknown, said) = status("calls(prase) > 1");
    assert!(
        unknown == 2 && said.contains("no function of either side is called \"prase\""),
        "{said}"
    );
    let copy = folder.path().join("copy.teeperf");
    std::fs::copy(folder.path().join("a1.teeperf"), copy).unwrap();
    run(teeperf(&folder).args(["record", "-q", "--paused", "-o", "none.teeperf", "--", "./after"]));
    for (words, expected) in [
        (&["b1.teeperf", "none.teeperf"][..], "none.teeperf has no calls"),
        (&["b1.teeperf", "nothing.teeperf"][..], "nothing.teeperf"),
        (&["b1.teeperf", "program.c"], "program.c: not a recording"),
        (&["b1.teeperf"], "two sides are compared"),
        (&["b1.teeperf", "b2.teeperf", "a1.teeperf"], "put `--` between them"),
        (&["b1.teeperf", "--", "a1.teeperf", "--limit", "3"], "--limit stands behind `--`"),
        (
            &["b1.teeperf", "b1.teeperf", "--", "a1.teeperf"],
            "are the same run, named twice for before",
        ),
        (
            &["b1.teeperf", "--", "a1.teeperf", "copy.teeperf"],
            "are the same run, named twice for after",
        ),
    ] {
        let (wrong, said) = code(&folder, words);
        assert!(wrong == 2 && said.contains(expected), "{said}");
    }

    // One run a side does not show a change of a hundredth: there is no answer, unless one is asked for.
    let asked = ["--fail-if", "total(main) > +1% and calls(parse) > 0"];
    let same = ["b1.teeperf", "b2.teeperf"];
    let unsure = |words: &[&str]| code(&folder, &[&asked, words, &same[..]].concat());
    let (status, said) = unsure(&[]);
    if !said.contains("failed") {
        assert!(status == 2 && said.contains("cannot tell: total(main) > +1%"), "{said}");
        assert_eq!(unsure(&["--unsure", "pass"]).0, 0);
        assert_eq!(unsure(&["--unsure", "fail"]).0, 1);
    }

    // What is not alike is said.
    let text = run(teeperf(&folder).args(["diff", "b1.teeperf", "only.teeperf"]));
    assert!(text.contains("WARNING") && text.contains("only parse"), "{text}");
    // A build against itself has no other calls.
    let itself =
        ["--fail-if", "any calls > +0", "--fail-if", "any calls < -0", "b1.teeperf", "b2.teeperf"];
    assert_eq!(code(&folder, &itself).0, 0);

    let files = ["--html", "d.html", "--svg", "d.svg", "--folded", "d.folded", "--csv"];
    let csv = run(teeperf(&folder).arg("diff").args([&files, &two[..]].concat()));
    assert!(
        csv.lines().any(|line| line.starts_with("parse,after,both,100,150,50,0,true,")),
        "{csv}"
    );
    for (file, expected) in [("d.html", "<!doctype html>"), ("d.svg", "<svg"), ("d.folded", "")] {
        let written = std::fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(written.starts_with(expected), "{file}");
    }
    std::fs::write(folder.path().join("mine.txt"), "precious").unwrap();
    let (refused, said) = code(&folder, &[&["--html", "mine.txt"], &two[..]].concat());
    assert!(refused == 2 && said.contains("mine.txt is there"), "{said}");
}
