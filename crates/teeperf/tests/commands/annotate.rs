//! Sources with figures in their margin, as people type it.

use crate::support::{Folder, prepared, run, teeperf};
use std::process::Command;

const PROGRAM: &str = "\
static volatile unsigned sink;
__attribute__((noinline)) void once(unsigned n) { while (n--) sink += n; }
__attribute__((noinline)) void twice(unsigned n) { while (n--) sink += n; }
void (*volatile pointer)(unsigned) = once;
__attribute__((noinline)) void outer(unsigned n)
{
    twice(n);
    once(n);
    twice(n + 1);
    sink++;
}
int main(void)
{
    for (int i = 0; i < 70; i++)
        outer(9);
    pointer(3);
    return 0;
}
";

/// Lines of the output, and what stands in each column before the source.
fn line<'a>(text: &'a str, end: &str) -> Vec<&'a str> {
    let line = text.lines().find(|line| line.ends_with(end));
    line.unwrap_or_else(|| panic!("no {end} in {text}")).split_whitespace().collect()
}

#[test]
fn figures_stand_beside_sources_wherever_they_are() {
    let folder = Folder::new();
    folder.write("program.c", PROGRAM);
    run(teeperf(&folder).args(["cc", "-O1", "-g", "program.c", "-o", "program"]));
    run(teeperf(&folder).args(["record", "-q", "--", "./program"]));
    let annotate = |words: &[&str]| teeperf(&folder).arg("annotate").args(words).output().unwrap();
    let text = |words: &[&str]| run(teeperf(&folder).arg("annotate").args(words));
    let complaint = |words: &[&str]| String::from_utf8(annotate(words).stderr).unwrap();

    // A function: what one line calls stands there, what two call below it.
    let outer = text(&["outer"]);
    assert_eq!(line(&outer, "void outer(unsigned n)")[0], "70");
    let lines: Vec<&str> = outer.lines().map(str::trim_end).collect();
    let at = lines.iter().position(|line| line.ends_with("once(n);")).unwrap();
    assert!(
        lines[at + 1].ends_with("=> once") && lines[at + 1].trim_start().starts_with("70 "),
        "{outer}"
    );
    assert!(outer.contains("=> twice, from 2 sites, lines 7, 9\n"), "{outer}");
    assert!(!outer.contains("int main"), "{outer}");
    assert_eq!(complaint(&["outer"]), "");

    // In either order, where a pattern or a source file stands in front.
    assert_eq!(text(&["outer", "program.teeperf"]), outer);
    assert_eq!(text(&["program.c", "program.teeperf"]), text(&["program.teeperf", "program.c"]));
    let missing = complaint(&["outer", "none.teeperf"]);
    assert!(missing.contains("outer: No such file"), "{missing}");

    // A file: all of its functions, and calls through a pointer belong to no line.
    let file = text(&["program.teeperf", "program.c"]);
    assert_eq!(line(&file, "void twice(unsigned n) { while (n--) sink += n; }")[0], "140");
    assert!(
        file.lines().any(|line| line.trim_start().starts_with("1 ") && line.ends_with("=> once")),
        "{file}"
    );
    let json: serde_json::Value = serde_json::from_str(&text(&["--json", "outer"])).unwrap();
    assert_eq!(json["functions"][0]["calls"], 70);

    // Packed with its sources, it is read without them.
    run(teeperf(&folder).args(["pack", "--sources", "program.teeperf", "-o", "p.tar.zst"]));
    std::fs::create_dir(folder.path().join("elsewhere")).unwrap();
    std::fs::rename(folder.path().join("program.c"), folder.path().join("elsewhere/program.c"))
        .unwrap();
    assert_eq!(text(&["p.tar.zst", "outer"]), outer);
    let inlined = || run(teeperf(&folder).args(["report", "--inlined", "p.tar.zst"]));
    let with_program = inlined();
    assert!(!with_program.contains("it is not known"), "{with_program}");
    std::fs::rename(folder.path().join("program"), folder.path().join("gone")).unwrap();
    assert_eq!(text(&["p.tar.zst", "outer"]), outer);
    assert_eq!(inlined(), with_program);
    std::fs::rename(folder.path().join("gone"), folder.path().join("program")).unwrap();

    // Without, it says what to do, and does it.
    let said = complaint(&["program.teeperf", "outer"]);
    assert!(said.contains("program.c: No such file") && said.contains("--source-dir"), "{said}");
    assert!(text(&["program.teeperf", "outer"]).contains("(not found)"));
    let moved = format!("{}=elsewhere", std::fs::canonicalize(folder.path()).unwrap().display());
    assert_eq!(text(&["--source-dir", &moved, "program.teeperf", "outer"]), outer);

    // A source that was changed since is told.
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    let source =
        std::fs::File::options().append(true).open(folder.path().join("elsewhere/program.c"));
    source.unwrap().set_modified(later).unwrap();
    let said = complaint(&["--source-dir", &moved, "program.teeperf", "outer"]);
    assert!(said.contains("was changed after program was built"), "{said}");

    let said = complaint(&["program.teeperf", "nothing"]);
    assert!(
        said.contains("no function of program.teeperf that was called fits \"nothing\""),
        "{said}"
    );
    let said = complaint(&["program.teeperf"]);
    assert!(said.contains("program.teeperf is a recording; next: name a function"), "{said}");
}

/// Guards: a server's debug files reach the commands that read them, and no server is asked without a word of the user's. The
/// client is a stand-in: `teeperf-symbols` tries the real one, with a server.
#[test]
fn debug_files_of_servers_are_used_and_packed() {
    let folder = Folder::new();
    let program = "static volatile int sink;\n\
        static inline __attribute__((always_inline)) void inner(void) { sink++; }\n\
        __attribute__((noinline)) void outer(void) { inner(); inner(); }\n\
        int main(void) { for (int i = 0; i < 100; i++) outer(); return 0; }\n";
    folder.write("p.c", program);
    run(teeperf(&folder).args(["cc", "-O1", "-g", "-Wl,--build-id", "p.c", "-o", "p"]));
    run(prepared(Command::new("objcopy"), &folder).args(["--only-keep-debug", "p", "served"]));
    run(prepared(Command::new("strip"), &folder).args(["-g", "p"]));
    run(teeperf(&folder).args(["record", "-q", "-o", "p.teeperf", "--", "./p"]));
    let served = folder.path().join("served");
    let text =
        format!("#!/bin/sh\ncase $1 in debuginfo) echo {};; *) exit 2;; esac\n", served.display());
    folder.program("bin/debuginfod-find", &text);
    let path = format!("{}/bin:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let asking = |words: &[&str]| {
        let mut command = teeperf(&folder);
        command.env("PATH", &path).env("DEBUGINFOD_URLS", "http://127.0.0.1:9").args(words);
        run(&mut command)
    };
    let inlined = |words: &[&str]| asking(&[&["report", "--inlined"], words].concat());
    let is_known =
        |text: &str| text.lines().any(|line| line.contains("outer") && line.contains("inner"));
    assert!(!is_known(&inlined(&["p.teeperf"])));
    let known = inlined(&["p.teeperf", "--debuginfod"]);
    assert!(is_known(&known), "{known}");
    // In an archive they are at hand without a server.
    asking(&["pack", "p.teeperf", "-o", "without.tar.zst"]);
    asking(&["pack", "--debuginfod", "p.teeperf", "-o", "with.tar.zst"]);
    assert!(!is_known(&inlined(&["without.tar.zst"])));
    let known = inlined(&["with.tar.zst"]);
    assert!(is_known(&known), "{known}");
    // Asked for and not to be had: no archive that lacks them without a word.
    let mut none = teeperf(&folder);
    none.args(["pack", "--debuginfod", "p.teeperf", "-o", "none.tar.zst"])
        .env_remove("DEBUGINFOD_URLS");
    let said = none.output().unwrap();
    assert!(!said.status.success() && !folder.path().join("none.tar.zst").exists(), "{said:?}");
    // A server that cannot be asked is told of, and one that does not have a file is not.
    for (error, is_told) in [("Connection refused", true), ("No such file or directory", false)] {
        let text = format!("#!/bin/sh\necho Server query failed: {error} >&2; exit 1\n");
        folder.program("bin/debuginfod-find", &text);
        let mut command = teeperf(&folder);
        command.env("PATH", &path).env("DEBUGINFOD_URLS", "http://127.0.0.1:9");
        let said = command.args(["report", "--inlined", "--debuginfod", "p.teeperf"]).output();
        let said = String::from_utf8(said.unwrap().stderr).unwrap();
        let text = format!("could not be asked for: Server query failed: {error}");
        assert_eq!(said.contains(&text), is_told, "{said}");
    }
}
