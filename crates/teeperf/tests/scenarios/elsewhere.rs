//! Samples that are read on another machine than they were taken on, or when the program is gone: what names functions stands in archives,
//! below another root, or where other programs keep files by build-id.

use crate::support::*;
use std::fs;
use std::path::{Path, PathBuf};
use teeperf_symbols::Loaded;

/// A program that was sampled, how it read then, and an archive of it. The program is gone.
struct Gone {
    shop: Workshop,
    file: PathBuf,
    archive: PathBuf,
    program: PathBuf,
    kept: PathBuf,
    before: String,
}

impl Gone {
    fn new(within: bool) -> Self {
        let shop = Workshop::new();
        let flags = ["-O2", "-g", "-pthread", "-Wl,--build-id=sha1"];
        let program = shop.build_unhooked("samples.c", Compiler::Gcc, &flags);
        let mut recording = shop.recording(&["--sample"], &program, &["shares", "400"]);
        if within {
            without_perf_event_open(&mut recording.command);
        }
        run(&mut recording.command).expect_code(0);
        let (file, archive) = (recording.file.clone(), shop.path("packed.tar.zst"));
        let before = table(&file, &[], &[]).0;
        assert!(before.contains("\nlarge,") && before.contains("\nmain,"), "{before}");
        // Code that the kernel puts into each process has names too.
        assert!(!before.contains("\n[vdso],"), "{before}");
        run(teeperf().args(["pack", "--sources"]).arg(&file).arg("-o").arg(&archive))
            .expect_code(0);
        let kept = shop.path("kept");
        fs::rename(&program, &kept).unwrap();
        Self { shop, file, archive, program, kept, before }
    }

    /// Puts the program there.
    fn put(&self, at: &Path) {
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::copy(&self.kept, at).unwrap();
    }
}

/// Functions as a table, and what was said beside it.
fn table(file: &Path, options: &[&str], environment: &[(&str, &Path)]) -> (String, String) {
    let mut report = teeperf();
    report.args(["report", "--csv"]).args(options).arg(file);
    // What the user keeps is none of the tests' business.
    report.env("HOME", "/nonexistent").env_remove("XDG_CACHE_HOME");
    report.envs(environment.iter().copied());
    let outcome = run(&mut report);
    outcome.expect_code(0);
    (outcome.stdout, outcome.stderr)
}

/// The report as people read it, in one line.
fn words(file: &Path) -> String {
    report(file).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Guards: an archive reads as the recording did where it was made, sources and all, and needs none of the files.
#[test]
fn an_archive_has_what_names_need() {
    for within in [false, true] {
        let gone = Gone::new(within);
        let plain = words(&gone.file);
        let missing = format!("{}: No such file", gone.program.display());
        assert!(plain.contains(&missing) && plain.contains("--symfs"), "{plain}");
        assert!(!plain.contains("large"), "{plain}");
        let (packed, said) = table(&gone.archive, &[], &[]);
        assert_eq!(packed, gone.before, "{said}");
        let mut annotate = teeperf();
        let outcome = run(annotate.arg("annotate").arg(&gone.archive).arg("large"));
        assert!(outcome.stdout.contains("samples.c"), "{}", outcome.stdout);
        let mut export = teeperf();
        let data = gone.shop.path("exported.data");
        export.args(["export", "--to", "perf", "-o"]).arg(&data).arg(&gone.archive);
        run(&mut export).expect_code(0);
        let ids = fs::read(&data).unwrap();
        let build_id = Loaded::open(&gone.kept).unwrap().build_id().unwrap().to_vec();
        assert!(ids.windows(20).any(|bytes| bytes == build_id));
    }
}

/// Guards: of an archive that is cut off behind its recording that is read, and it is said what is missing.
#[test]
fn an_archive_that_is_damaged_behind_its_recording() {
    let gone = Gone::new(true);
    let bytes = fs::read(&gone.archive).unwrap();
    fs::write(&gone.archive, &bytes[..bytes.len() - bytes.len() / 3]).unwrap();
    let (packed, said) = table(&gone.archive, &[], &[]);
    assert!(packed.lines().count() > 1, "{packed}");
    assert!(said.contains("packed.tar.zst: ") && said.contains("could not be unpacked"), "{said}");
}

/// Guards: files are found below another root, in perf's folder and in that of debuginfod's client, and no others are taken for them.
#[test]
fn files_of_another_machine_are_found() {
    let gone = Gone::new(true);
    let build_id = Loaded::open(&gone.kept).unwrap().build_id().unwrap().to_vec();
    let hex: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    let reads = |options: &[&str], environment: &[(&str, &Path)]| {
        let (found, said) = table(&gone.file, options, environment);
        assert_eq!(found, gone.before, "{said}");
    };
    let root = gone.shop.path("root");
    gone.put(&root.join(gone.program.strip_prefix("/").unwrap()));
    reads(&["--symfs", root.to_str().unwrap()], &[]);
    let home = gone.shop.path("home");
    gone.put(&home.join(format!(".debug/.build-id/{}/{}/elf", &hex[..2], &hex[2..])));
    reads(&[], &[("HOME", &home)]);
    let cache = gone.shop.path("cache");
    gone.put(&cache.join(hex).join("executable"));
    reads(&[], &[("DEBUGINFOD_CACHE_PATH", &cache)]);
    // Another program stands there now.
    fs::copy("/bin/true", &gone.program).unwrap();
    let other = words(&gone.file);
    assert!(!other.contains("large") && other.contains("its build-id is "), "{other}");
    reads(&[], &[("HOME", &home)]);
}

/// Guards: names of inlined functions stand in files that the compiler split off the program. Where these are gone, that is said once.
#[test]
fn an_archive_has_what_was_split_off() {
    const SOURCE: &str = "static volatile unsigned sink;
static inline __attribute__((always_inline)) void inner(unsigned n) { while (n--) sink ^= n; }
__attribute__((noinline)) void outer(unsigned n) { inner(n); }
int main(void) { for (int i = 0; i < 40; i++) outer(10000000); return 0; }
";
    let shop = Workshop::new();
    fs::write(shop.path("split.c"), SOURCE).unwrap();
    let mut gcc = std::process::Command::new("gcc");
    gcc.args(["-O2", "-g", "-gsplit-dwarf", "-Wl,--build-id=sha1", "-c", "split.c"]);
    assert!(gcc.current_dir(shop.path("")).status().unwrap().success());
    let mut gcc = std::process::Command::new("gcc");
    gcc.args(["-Wl,--build-id=sha1", "split.o", "-o", "split"]).current_dir(shop.path(""));
    assert!(gcc.status().unwrap().success());
    let mut recording = shop.recording(&["--sample"], &shop.path("split"), &[]);
    run(&mut recording.command).expect_code(0);
    let before = table(&recording.file, &[], &[]).0;
    assert!(before.contains("\ninner,") && before.contains("\nouter,"), "{before}");
    let archive = shop.path("packed.tar.zst");
    run(teeperf().arg("pack").arg(&recording.file).arg("-o").arg(&archive)).expect_code(0);
    fs::remove_file(shop.path("split.dwo")).unwrap();
    let without = words(&recording.file);
    assert_eq!(without.matches("split its debug information off into").count(), 1, "{without}");
    assert!(without.contains("split.dwo") && without.contains("llvm-dwp -e"), "{without}");
    assert!(!without.contains(" inner "), "{without}");
    fs::remove_file(shop.path("split")).unwrap();
    let (packed, said) = table(&archive, &[], &[]);
    assert_eq!(packed, before, "{said}");
}
