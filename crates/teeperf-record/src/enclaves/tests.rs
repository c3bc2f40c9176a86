//! Lists as the runtimes keep them, in programs of their own (`tests/enclaves/runtimes.c`), read from outside.

use super::*;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const RUNTIMES: [&str; 3] = ["INTEL", "OPEN_ENCLAVE", "GRAMINE"];

/// A program that has a runtime's list, and where its enclave is.
struct Running {
    child: Child,
    enclave: Range<u64>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn cc(folder: &Path, words: &[&str]) {
    let status = Command::new("cc").current_dir(folder).args(words).status().unwrap();
    assert!(status.success(), "cc {words:?}");
}

struct Workshop(tempfile::TempDir);

impl Workshop {
    /// With an enclave's file in it.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("in.c"), "int inside(void) { return 7; }").unwrap();
        let words = ["-shared", "-fPIC", "-nostdlib", "-Wl,--build-id", "in.c", "-o", "in.so"];
        cc(folder.path(), &words);
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("in.so")
    }

    fn run(&self, runtime: &str, flags: &[&str], file: &str, wrong: &str) -> Running {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/enclaves/runtimes.c");
        let (define, out) = (format!("-D{runtime}"), format!("{runtime}{}", flags.join("")));
        let mut words = vec!["-O1", "-Wall", "-Wextra", "-Werror", &define, source, "-o", &out];
        words.extend(flags);
        if !self.0.path().join(&out).exists() {
            cc(self.0.path(), &words);
        }
        let mut command = Command::new(self.0.path().join(out));
        command.current_dir(self.0.path()).args([file, wrong]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (base, end) = line.trim().split_once(' ').unwrap();
        let number = |text| u64::from_str_radix(text, 16).unwrap();
        Running { child, enclave: number(base)..number(end) }
    }
}

fn look(running: &Running, named: &[GivenModule]) -> News {
    let enclave = running.enclave.clone();
    Finder::new(running.child.id(), enclave, named.into()).look()
}

#[test]
fn lists_of_runtimes_say_which_files_lie_where() {
    let shop = Workshop::new();
    let path = shop.file();
    let file = teeperf_symbols::Loaded::open(&path).unwrap();
    let code: Vec<_> = file.code().collect();
    for runtime in RUNTIMES {
        // In the program itself, wherever it is loaded; and without anything else.
        for flags in [&[][..], &["-static"]] {
            // Names that are not absolute are the program's.
            for name in [path.to_str().unwrap(), "in.so"] {
                let running = shop.run(runtime, flags, name, "");
                let news = look(&running, &[]);
                assert_eq!(news.problems, [""; 0], "{runtime} {flags:?}");
                let count = if runtime == "INTEL" { 1 } else { 2 };
                assert_eq!(news.modules.len(), count, "{runtime} {flags:?} {name}");
                let begins = |module: &Module| module.code[0].address - code[0].address;
                let mut bases: Vec<_> = news.modules.iter().map(begins).collect();
                bases.sort_unstable();
                let half = (running.enclave.start + running.enclave.end) / 2;
                assert_eq!(bases, [running.enclave.start, half][..count]);
                for module in &news.modules {
                    assert_eq!(module.path, path.as_os_str().as_bytes());
                    assert_eq!(module.build_id, file.build_id().unwrap());
                    let parts: Vec<_> =
                        module.code.iter().map(|part| (part.length, part.offset)).collect();
                    let expected: Vec<_> =
                        code.iter().map(|part| (part.length, part.offset)).collect();
                    assert_eq!(parts, expected);
                    let [map, others @ ..] = &module.maps(9).collect::<Vec<_>>()[..] else {
                        panic!()
                    };
                    // Where perf finds the tables.
                    assert_eq!(others.len(), file.data().count());
                    assert!(others.iter().all(|other| other.protection == libc::PROT_READ as u32));
                    assert_eq!((map.pid, map.offset), (9, code[0].offset));
                    assert_ne!(map.protection & teeperf_wire::body::map::PROT_EXEC, 0);
                }
            }
        }
    }
}

#[test]
fn what_is_known_is_not_new() {
    let shop = Workshop::new();
    let running = shop.run("OPEN_ENCLAVE", &[], "in.so", "nowhere");
    let mut finder = Finder::new(running.child.id(), running.enclave.clone(), Arc::new([]));
    assert_eq!(finder.look().problems.len(), 1);
    assert_eq!(finder.look(), News::default());
    let running = shop.run("INTEL", &[], "in.so", "");
    let mut finder = Finder::new(running.child.id(), running.enclave.clone(), Arc::new([]));
    assert!(!finder.is_found() && !finder.has(running.enclave.start + 0x1000));
    let [module] = &finder.look().modules[..] else { panic!() };
    assert!(finder.has(module.code[0].address) && !finder.has(running.enclave.end - 1));
    assert_eq!(finder.look(), News::default());
}

/// Guards: bounds of lists, of names, and of what is read where.
#[test]
fn lists_that_make_no_sense_are_errors_that_say_where() {
    let shop = Workshop::new();
    for (runtime, wrong, expected) in [
        ("INTEL", "cycle", "the list of enclaves of Intel's runtime has no end at 0x"),
        ("INTEL", "nowhere", "the list of enclaves of Intel's runtime cannot be read at 0x1000"),
        ("INTEL", "name", "the name of an enclave's file cannot be read at 0x2000"),
        ("OPEN_ENCLAVE", "cycle", "the list of enclaves of Open Enclave has no end at 0x"),
        (
            "OPEN_ENCLAVE",
            "nowhere",
            "the list of enclaves of Open Enclave cannot be read at 0x1000",
        ),
        ("OPEN_ENCLAVE", "magic", "an entry of Open Enclave's lists is none at 0x"),
        ("GRAMINE", "cycle", "the list of files of Gramine has no end at 0x"),
        ("GRAMINE", "nowhere", "the list of files of Gramine cannot be read at 0x1000"),
    ] {
        let running = shop.run(runtime, &[], "in.so", wrong);
        let news = look(&running, &[]);
        let expected = format!("process {}: {expected}", running.child.id());
        let [problem] = &news.problems[..] else { panic!("{runtime} {wrong}: {news:?}") };
        assert!(problem.starts_with(&expected), "{problem}");
        assert_eq!(news.modules, []);
    }
    // A name's length is no reason to read on behind its end.
    let running = shop.run("INTEL", &[], "in.so", "length");
    assert_eq!(look(&running, &[]).modules.len(), 1);
}

#[test]
fn files_that_are_gone_are_told_and_the_enclave_has_their_name() {
    let shop = Workshop::new();
    let running = shop.run("INTEL", &[], "/no/such/enclave.so", "");
    let news = look(&running, &[]);
    let Range { start, end } = running.enclave;
    let code = Part { address: start, length: end - start, offset: 0 };
    let path = b"/no/such/enclave.so".to_vec();
    assert_eq!(
        news.modules,
        [Module { path, code: vec![code], data: Vec::new(), build_id: Vec::new() }]
    );
    let [problem] = &news.problems[..] else { panic!("{news:?}") };
    assert!(problem.contains("/no/such/enclave.so in it"), "{problem}");
    let finder = Finder::new(u32::MAX, start..end, Arc::new([])).look();
    assert!(finder.problems[0].starts_with("process 4294967295: "), "{finder:?}");
}

#[test]
fn what_the_user_names_counts() {
    let shop = Workshop::new();
    let running = shop.run("INTEL", &[], "/no/such/enclave.so", "");
    let Range { start, end } = running.enclave;
    let at = |base| GivenModule { path: shop.file(), base };
    let news = look(&running, &[at(None), at(Some(start + 0x10_0000)), at(Some(end))]);
    assert_eq!(news.problems, [""; 0]);
    let file = teeperf_symbols::Loaded::open(&shop.file()).unwrap();
    let begins: Vec<_> = news.modules.iter().map(|module| module.code[0].address).collect();
    let code = file.code().next().unwrap().address;
    assert_eq!(begins, [start + code, start + 0x10_0000 + code]);
    let missing = GivenModule { path: "/no/such.so".into(), base: None };
    let news = look(&running, &[missing]);
    assert!(news.problems[0].starts_with("--module: /no/such.so: "), "{news:?}");
}

#[test]
fn lines_of_maps() {
    let line = b"7f00-7f10 r-xs 00001000 08:01 42      /a file with spaces (deleted)";
    let expected = Mapping {
        start: 0x7f00,
        end: 0x7f10,
        protection: (libc::PROT_READ | libc::PROT_EXEC) as u32,
        is_shared: true,
        offset: 0x1000,
        inode: 42,
        path: b"/a file with spaces (deleted)".to_vec(),
    };
    assert_eq!(Mapping::read(line), Some(expected));
    let stack = Mapping::read(b"7ffc0-7ffd0 rw-p 00000000 00:00 0          [stack]").unwrap();
    assert!(!stack.has_file() && stack.path == b"[stack]");
    assert_eq!(Mapping::read(b"1-2 rw-p 0 0:0 0").unwrap().path, b"");
    for wrong in [&b"2-1 rw-p 0 0:0 0"[..], b"", b"1-2", b"x-2 rw-p 0 0:0 0", b"1-2 rw-p 0 0:0 x"] {
        assert_eq!(Mapping::read(wrong), None);
    }
    let own = Mapping::all(std::process::id()).unwrap();
    let here = lines_of_maps as fn() as usize as u64;
    assert!(own.iter().any(|mapping| (mapping.start..mapping.end).contains(&here)
        && mapping.protection & libc::PROT_EXEC as u32 != 0));
}

/// A program that changes its list for ever has the recorder remember no more for it.
#[test]
fn what_is_remembered_is_bounded() {
    let mut finder = Finder::new(0, 0..1, Arc::default());
    let mut news = News::default();
    for number in 0..2 * MOST {
        let path = number.to_string();
        let module =
            Module { path: path.clone().into(), code: vec![], data: vec![], build_id: vec![] };
        let new = finder.news(vec![module.clone(), module], vec![path.clone(), path]);
        news.modules.extend(new.modules);
        news.problems.extend(new.problems);
    }
    assert_eq!((news.modules.len(), news.problems.len()), (MOST, MOST_PROBLEMS));
    assert_eq!((finder.known.len(), finder.told.len()), (MOST, MOST_PROBLEMS));
}
