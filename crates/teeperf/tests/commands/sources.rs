//! Which files are shown to others as sources. A program says where its sources are, and whoever wrote it may have named
//! any file that the user can read.

use crate::support::{Folder, run, teeperf};
use std::path::Path;

const SECRET: &str = "TOPSECRET-of-the-user";

/// A project with a recorded program that says it is from files which are none of its own.
fn with_hostile_program() -> Folder {
    let folder = Folder::new();
    folder.write("home/.ssh/id_rsa", SECRET);
    folder.write("home/letter.txt", SECRET);
    folder.write("proj/.env", SECRET);
    folder.write("lib/lib.c", "int from_the_library;\n");
    folder.write("proj/teeperf.toml", "");
    std::os::unix::fs::symlink("../home/letter.txt", folder.path().join("proj/linked.c")).unwrap();
    let at = |path: &str| folder.path().join(path).display().to_string();
    let mut program = String::from("int own_source;\n");
    let files = ["home/.ssh/id_rsa", "home/letter.txt", "proj/.env", "proj/linked.c", "lib/lib.c"];
    for (number, file) in files.iter().enumerate() {
        program += &format!(
            "#line 1 \"{}\"\n__attribute__((noinline)) int work{number}(int n) \
             {{ int s = 0; for (volatile int i = 0; i < n; i++) s += i; return s; }}\n",
            at(file)
        );
    }
    program += &format!("#line 1 \"{}\"\n", at("proj/src/a.c"));
    program += "int main(void) { int s = 0; for (int i = 0; i < 50; i++) \
                s += work0(i) + work1(i) + work2(i) + work3(i) + work4(i); return s & 1; }\n";
    folder.write("proj/src/a.c", &program);
    run(in_project(&folder).args(["cc", "-O1", "-g"]).arg(at("proj/src/a.c")).args(["-o", "a"]));
    let _ = in_project(&folder).args(["record", "-q", "-o", "a.teeperf", "--", "./a"]).status();
    folder
}

fn in_project(folder: &Folder) -> std::process::Command {
    let mut command = teeperf(folder);
    command.current_dir(folder.path().join("proj"));
    command
}

/// Everything that is in an archive.
fn contents(archive: &Path) -> String {
    let bytes = zstd::decode_all(std::fs::File::open(archive).unwrap()).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Guards: a key of the user's that a `#line` names, in an archive that is passed on.
#[test]
fn an_archive_has_the_projects_sources_and_no_others() {
    let folder = with_hostile_program();
    let archive = folder.path().join("proj/a.tar.zst");
    let packed = |words: &[&str]| {
        let mut command = in_project(&folder);
        let packed = command.args(["pack", "--sources", "--force"]).args(words).args(["-o"]);
        let said = packed.arg(&archive).output().unwrap();
        assert!(said.status.success(), "{said:?}");
        (contents(&archive), String::from_utf8(said.stderr).unwrap())
    };
    let (has, said) = packed(&[]);
    assert!(!has.contains(SECRET), "{said}");
    assert!(has.contains("int own_source") && !has.contains("int from_the_library"), "{said}");
    assert!(said.contains("teeperf: packed: ") && said.contains("proj/src/a.c"), "{said}");
    for (file, why) in [
        ("home/.ssh/id_rsa", "outside of the project's folder"),
        ("home/letter.txt", "outside of the project's folder"),
        ("proj/linked.c", "outside of the project's folder"),
        ("lib/lib.c", "outside of the project's folder"),
        ("proj/.env", "hidden: a name in its path begins with a dot"),
    ] {
        let file = folder.path().join(file);
        let line = format!("teeperf: not packed: {}: {why}\n", file.display());
        assert!(said.contains(&line), "{line}{said}");
        assert!(has.contains(&format!("{}: {why}", file.display())), "the manifest: {line}");
    }
    let library = folder.path().join("lib");
    let (has, _) = packed(&["--sources-from", library.to_str().unwrap()]);
    assert!(has.contains("int from_the_library") && !has.contains(SECRET));
    // Without --sources there is none at all.
    run(in_project(&folder).args(["pack", "--force", "-o"]).arg(&archive));
    assert!(!contents(&archive).contains("int own_source"));
}

/// Guards: whoever wrote the project asking for it.
#[test]
fn a_projects_settings_do_not_have_sources_packed() {
    let folder = with_hostile_program();
    folder.write("proj/teeperf.toml", "[pack]\nsources = true\nsources-from = ['/etc']\n");
    let said = in_project(&folder).args(["pack", "-o", "a.tar.zst"]).output().unwrap();
    let error = String::from_utf8_lossy(&said.stderr);
    assert!(!said.status.success() && error.contains("teeperf.toml:2: "), "{error}");
    assert!(error.contains("is the user's to say"), "{error}");
}

/// Guards: the same in text that goes into a file, such as a build server's log.
#[test]
fn annotated_sources_that_others_may_read_are_the_projects() {
    let folder = with_hostile_program();
    let annotated = |function: &str, words: &[&str]| {
        let mut command = in_project(&folder);
        let said = command.args(["annotate", "a.teeperf", function]).args(words).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&said.stdout), text(&said.stderr))
    };
    for function in ["work0", "work1", "work2", "work3"] {
        let (shown, said) = annotated(function, &[]);
        assert!(!shown.contains(SECRET) && !said.contains(SECRET), "{function}: {shown}");
        assert!(said.contains("--sources-from"), "{function}: {said}");
    }
    let home = folder.path().join("home");
    assert!(annotated("work1", &["--sources-from", home.to_str().unwrap()]).0.contains(SECRET));
    let moved = format!("{}={}", home.display(), home.display());
    assert!(annotated("work1", &["--source-dir", &moved]).0.contains(SECRET));
    assert!(annotated("main", &[]).0.contains("int own_source"));
}
