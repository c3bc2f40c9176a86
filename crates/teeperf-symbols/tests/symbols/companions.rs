//! Files that a program names for a part of its debug information: what becomes of those that are missing, are of another
//! build, or are not what a hostile program says.

use crate::toolchain::{Workshop, address_of};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use teeperf_symbols::{Frames, Functions, Lines, Search, Unpacked};

const SOURCE: &str = "
static volatile int sink;
static inline __attribute__((always_inline)) int inner(int x) { sink = x; return x * 3; }
__attribute__((noinline)) int outer(int x) { return inner(x) + 1; }
int main(int argc, char **argv) { (void)argv; return outer(argc); }
";

struct Program {
    shop: Workshop,
    file: PathBuf,
}

impl Program {
    fn split(options: &str) -> Self {
        let shop = Workshop::new();
        let file = shop.build(&format!("gcc -O2 -g -gsplit-dwarf {options}"), "program.c", SOURCE);
        Self { shop, file }
    }

    fn dwo(&self) -> PathBuf {
        let all = fs::read_dir(self.file.parent().unwrap()).unwrap();
        let mut all = all.map(|entry| entry.unwrap().path());
        all.find(|path| path.extension().is_some_and(|end| end == "dwo")).unwrap()
    }

    fn inlined(&self) -> (Vec<String>, Option<String>) {
        inlined(&self.file)
    }

    /// Answers without what was split off: the line, and one text that says what is missing.
    fn goes_without(&self, why: &str) {
        let (found, missing) = self.inlined();
        let missing = missing.expect(why);
        assert!(found.is_empty(), "{why}: {found:?}");
        assert!(missing.contains(why) && missing.contains("next: "), "{why}: {missing}");
        let outer = address_of(&self.file, "outer");
        let frames = Frames::open(&self.file, &Search::nowhere_else()).unwrap().unwrap();
        for _ in 0..3 {
            let at = frames.at(outer);
            assert!(at[0].line.as_ref().unwrap().0.ends_with("program.c"), "{why}: {at:?}");
        }
        assert_eq!(frames.missing().as_ref(), Some(&missing), "{why}");
        let lines = Lines::open(&self.file, &Search::nowhere_else()).unwrap();
        assert_eq!(
            lines.definitions(&[outer]).unwrap()[0].as_ref().unwrap().line,
            Some(4),
            "{why}"
        );
        assert_eq!(lines.missing(), None, "lines of functions need nothing that was split off");
        assert_eq!(lines.companions().unwrap(), [] as [PathBuf; 0], "{why}");
    }
}

fn inlined(file: &Path) -> (Vec<String>, Option<String>) {
    let lines = Lines::open(file, &Search::nowhere_else()).unwrap();
    let found = lines.inlined(&[address_of(file, "outer")]).unwrap().remove(0);
    (found, lines.missing())
}

#[test]
fn what_was_split_off_and_is_gone_is_said_once() {
    for options in ["-gdwarf-5", "-gdwarf-4"] {
        let program = Program::split(options);
        assert_eq!(program.inlined(), (vec!["inner".to_owned()], None));
        let lines = Lines::open(&program.file, &Search::nowhere_else()).unwrap();
        assert_eq!(lines.companions().unwrap(), [program.dwo()]);
        fs::remove_file(program.dwo()).unwrap();
        program.goes_without("is not here");
    }
}

#[test]
fn what_was_split_off_another_build_is_not_taken() {
    for options in ["-gdwarf-5", "-gdwarf-4"] {
        let program = Program::split(options);
        let other = Program::split(&format!("{options} -DOTHER -fno-builtin"));
        fs::copy(other.dwo(), program.dwo()).unwrap();
        program.goes_without("is of another build");
    }
}

#[test]
fn a_file_that_is_none_of_debug_information_is_told_apart() {
    let program = Program::split("");
    let dwo = program.dwo();
    fs::write(&dwo, "root:secret").unwrap();
    program.goes_without("not an ELF file");
    let whole = fs::read(Program::split("").dwo()).unwrap();
    fs::write(&dwo, &whole[..whole.len() / 2]).unwrap();
    program.goes_without("cannot be read");
    fs::remove_file(&dwo).unwrap();
    fs::create_dir(&dwo).unwrap();
    program.goes_without("not a regular file");
}

/// Guards: to open a pipe would wait until somebody writes to it.
#[test]
fn a_pipe_is_not_waited_for() {
    let program = Program::split("");
    let dwo = program.dwo();
    fs::remove_file(&dwo).unwrap();
    program.shop.run(&format!("mkfifo {}", dwo.display()), Path::new("/"));
    program.shop.run(&format!("mkfifo {}.dwp", program.file.display()), Path::new("/"));
    let begun = Instant::now();
    program.goes_without("not a regular file");
    assert!(begun.elapsed() < Duration::from_secs(30));
}

/// Guards: each byte of a file may be anything.
#[test]
fn changed_bytes_of_what_was_split_off_are_answered() {
    for options in ["-gdwarf-5", "-gdwarf-4"] {
        let program = Program::split(options);
        let (dwo, outer) = (program.dwo(), address_of(&program.file, "outer"));
        let whole = fs::read(&dwo).unwrap();
        for step in 0..400 {
            let mut bytes = whole.clone();
            let at = (step * 7919) % bytes.len();
            bytes[at] ^= 1 << (step % 8);
            if step % 3 == 0 {
                bytes[(at * 31) % whole.len()] = 0xFF;
            }
            fs::write(&dwo, bytes).unwrap();
            let search = Search::nowhere_else();
            if let Ok(Some(frames)) = Frames::open(&program.file, &search) {
                for address in outer..outer + 16 {
                    for frame in frames.at(address) {
                        frames.declared(address, &frame);
                    }
                }
            }
            let lines = Lines::open(&program.file, &search).unwrap();
            let _ = (lines.inlined(&[outer]), lines.call_sites(&[outer]));
        }
    }
}

/// What dwz makes of two programs, and where it put what they have in common.
fn dwz(options: &str) -> Option<(Workshop, PathBuf, PathBuf)> {
    if std::process::Command::new("dwz").arg("--version").output().is_err() {
        eprintln!("goes without: dwz is not installed");
        return None;
    }
    let shop = Workshop::new();
    let file = shop.build("gcc -O2 -g", "program.c", SOURCE);
    let folder = file.parent().unwrap();
    fs::copy(&file, folder.join("other")).unwrap();
    shop.run(&format!("dwz {options} -m common -M common out other"), folder);
    let common = folder.join("common");
    Some((shop, file, common))
}

#[test]
fn what_dwz_moved_and_is_gone_or_of_another_build_is_said_once() {
    for options in ["", "--dwarf-5"] {
        let Some((_shop, file, common)) = dwz(options) else { return };
        assert_eq!(inlined(&file), (vec!["inner".to_owned()], None));
        let lines = Lines::open(&file, &Search::nowhere_else()).unwrap();
        assert_eq!(lines.companions().unwrap(), [common.as_path()]);
        let other = Workshop::new().build(
            "gcc -g -Wl,--build-id=sha1",
            "x.c",
            "int main(void) { return 0; }",
        );
        let told = |why: &str| {
            let (_, missing) = inlined(&file);
            let missing = missing.expect(why);
            assert!(missing.contains("`dwz` moved a part") && missing.contains(why), "{missing}");
            let frames = Frames::open(&file, &Search::nowhere_else()).unwrap().unwrap();
            assert!(!frames.at(address_of(&file, "outer")).is_empty());
            assert_eq!(frames.missing(), Some(missing));
        };
        if other.exists() {
            fs::copy(&other, &common).unwrap();
            told("is of another build");
        }
        fs::remove_file(&common).unwrap();
        told("is not here");
        Workshop::new().run(&format!("mkfifo {}", common.display()), Path::new("/"));
        told("is not here");
    }
}

/// Guards: gimli keeps each table of abbreviations that a unit names, and in a hostile file one may begin at each byte of another.
#[test]
fn tables_of_abbreviations_over_one_another_are_refused() {
    let workshop = Workshop::new();
    let units = 20_000_u32;
    let mut text = String::from(".section .debug_abbrev,\"\",@progbits\n");
    // Declarations of 5 bytes: a code, a tag, no children, no attributes. Any of them may begin a table.
    text += ".rept 200000\n.byte 1, 0x2e, 0, 0, 0\n.endr\n.byte 0\n.section .debug_info,\"\",@progbits\n";
    text += &format!(
        ".set at, 0\n.rept {units}\n.long 8\n.short 4\n.long at\n.byte 8, 1\n.set at, at + 5\n.endr\n"
    );
    text += ".section .debug_line,\"\",@progbits\n.long 0\n.text\n.globl main\nmain: ret\n";
    let file = workshop.build("gcc -g0 -nostdlib -shared", "tables.s", &text);
    let search = Search::nowhere_else();
    let said = [
        Frames::open(&file, &search).err().unwrap().to_string(),
        Lines::open(&file, &search).unwrap().inlined(&[0x1000]).unwrap_err().to_string(),
    ];
    for said in said {
        assert!(said.contains("tables of abbreviations lie over one another"), "{said}");
    }
}

/// Guards: seeds of the fuzz target `companions` that never come to the file they are about.
#[test]
fn seeds_of_the_fuzzer_have_a_part_in_another_file() {
    use std::io::Write;
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/companions");
    for seed in ["dwo4", "dwo5", "dwp5", "dwz"] {
        let bytes = fs::read(corpus.join(seed)).unwrap();
        let size = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
        let (program, companion) = bytes[2..].split_at(size);
        let name = match seed {
            "dwp5" => "/seed/p.dwp",
            "dwz" => "/seed/alt",
            _ => "/seed/a.dwo",
        };
        let inlined = |is_there: bool| {
            let mut unpacked = Unpacked::default();
            if is_there {
                let mut file = tempfile::tempfile().unwrap();
                file.write_all(companion).unwrap();
                unpacked.add(name.into(), file);
            }
            let search = Search { unpacked: Some(Arc::new(unpacked)), ..Search::nowhere_else() };
            let path = Path::new("/seed/p");
            let functions = Functions::from_bytes(path, program.to_vec(), &search).unwrap();
            let near = functions.named("near").unwrap().start;
            let lines = Lines::from_bytes(path, program.to_vec(), &search).unwrap();
            lines.inlined(&[near]).unwrap().remove(0)
        };
        assert_eq!(inlined(true), ["inlined"], "{seed}");
        assert_ne!(inlined(false), ["inlined"], "{seed}");
    }
}
