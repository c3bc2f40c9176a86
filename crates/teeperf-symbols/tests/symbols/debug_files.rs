//! Stripped programs, and where their symbols are looked for.

use crate::toolchain::{Workshop, address_of};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use teeperf_symbols::{Error, Functions, Kept, Lines, Origin, Search, Unpacked};

const SOURCE: &str = "static __attribute__((noinline)) int inner(int x) { return x * 3; }
int main(int argc, char **argv) { (void)argv; return inner(argc); }
";

struct Program {
    workshop: Workshop,
    whole: PathBuf,
    stripped: PathBuf,
}

impl Program {
    fn new(options: &str) -> Self {
        let workshop = Workshop::new();
        let whole = workshop.build(&format!("gcc -O1 -g {options}"), "program.c", SOURCE);
        let stripped = workshop.stripped(&whole, "bin/program");
        Self { workshop, whole, stripped }
    }

    /// Writes into the stripped program the name and checksum of this debug file.
    fn link(&self, debug: &Path) {
        let command =
            format!("objcopy --add-gnu-debuglink={} {}", debug.display(), self.stripped.display());
        self.workshop.run(&command, self.workshop.path("").as_path());
    }

    fn search(&self) -> Search {
        Search { debug_folders: vec![self.workshop.path("debug")], ..Search::default() }
    }

    fn origin(&self) -> Origin {
        Functions::open(&self.stripped, &self.search()).unwrap().origin().clone()
    }

    fn build_id(&self) -> Vec<u8> {
        Functions::open(&self.whole, &Search::default()).unwrap().build_id().unwrap().to_vec()
    }

    /// Symbols and lines of the debug file are those of the program.
    fn is_found_in(&self, debug: &Path) {
        assert_eq!(self.origin(), Origin::DebugFile(debug.to_owned()));
        let inner = address_of(&self.whole, "inner");
        let functions = Functions::open(&self.stripped, &self.search()).unwrap();
        assert_eq!(functions.at(inner).unwrap().name, "inner");
        let lines = Lines::open(&self.stripped, &self.search()).unwrap();
        assert_eq!(lines.path(), Some(debug));
        let found = lines.definitions(&[inner]).unwrap();
        assert_eq!(found[0].as_ref().unwrap().line, Some(1));
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn by_build_id() {
    let program = Program::new("-Wl,--build-id=sha1");
    assert_eq!(program.origin(), Origin::Nothing);
    let id = hex(&program.build_id());
    let name = format!("debug/.build-id/{}/{}.debug", &id[..2], &id[2..]);
    let debug = program.workshop.debug_file(&program.whole, &name);
    program.is_found_in(&debug);
    // Debian compresses them.
    let command = format!("objcopy --compress-debug-sections=zlib {}", debug.display());
    program.workshop.run(&command, Path::new("/"));
    program.is_found_in(&debug);
}

#[test]
fn by_build_id_only_when_it_is_the_same_build() {
    let program = Program::new("-Wl,--build-id=sha1");
    let other = Program::new("-Wl,--build-id=sha1 -fno-builtin -DX -O2 -falign-functions=128");
    let id = hex(&program.build_id());
    assert_ne!(program.build_id(), other.build_id());
    let place = program.workshop.path(&format!("debug/.build-id/{}/{}.debug", &id[..2], &id[2..]));
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::copy(&other.whole, place).unwrap();
    assert_eq!(program.origin(), Origin::Nothing);
}

#[test]
fn by_debuglink_in_every_place() {
    let program = Program::new("-Wl,--build-id=none");
    let folder = program.stripped.parent().unwrap().to_owned();
    let below = program.workshop.path("debug").join(folder.strip_prefix("/").unwrap());
    let debug = program.workshop.debug_file(&program.whole, "program.debug");
    program.link(&debug);
    assert_eq!(program.origin(), Origin::Nothing, "not beside the program");
    for place in [folder.clone(), folder.join(".debug"), below] {
        fs::create_dir_all(&place).unwrap();
        let place = place.join("program.debug");
        fs::copy(&debug, &place).unwrap();
        program.is_found_in(&place);
        fs::remove_file(&place).unwrap();
    }
}

#[test]
fn by_debuglink_only_when_the_checksum_fits() {
    let program = Program::new("-Wl,--build-id=none");
    let debug = program.workshop.debug_file(&program.whole, "bin/program.debug");
    program.link(&debug);
    program.is_found_in(&debug);
    let mut bytes = fs::read(&debug).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&debug, bytes).unwrap();
    assert_eq!(program.origin(), Origin::Nothing);
}

#[test]
fn a_debuglink_leads_nowhere_else() {
    let program = Program::new("-Wl,--build-id=none");
    let debug = program.workshop.debug_file(&program.whole, "elsewhere.debug");
    program.link(&debug);
    // The name has the length of "../x.debug" and lies one folder up.
    let mut bytes = fs::read(&program.stripped).unwrap();
    let at = bytes.windows(16).position(|part| part == b"elsewhere.debug\0").unwrap();
    bytes[at..at + 15].copy_from_slice(b"../elsewh.debug");
    fs::write(&program.stripped, bytes).unwrap();
    fs::rename(&debug, program.workshop.path("elsewh.debug")).unwrap();
    assert_eq!(program.origin(), Origin::Nothing);
}

#[test]
fn another_build_than_the_one_asked_for_is_said() {
    let program = Program::new("-Wl,--build-id=sha1");
    let found = program.build_id();
    let search = |id: &[u8]| Search { build_id: Some(id.to_vec()), ..Search::default() };
    assert!(Functions::open(&program.whole, &search(&found)).is_ok());
    assert!(Lines::open(&program.whole, &search(&found)).is_ok());
    let expected = [0xAB; 20];
    for error in [
        Functions::open(&program.whole, &search(&expected)).unwrap_err(),
        Lines::open(&program.whole, &search(&expected)).err().unwrap(),
    ] {
        let text = error.to_string();
        assert!(text.starts_with(&program.whole.display().to_string()), "{text}");
        assert!(text.contains(&hex(&found)) && text.contains(&hex(&expected)), "{text}");
        assert!(matches!(error, Error::BuildId { .. }));
    }
    let none = Program::new("-Wl,--build-id=none");
    let error = Functions::open(&none.whole, &search(&expected)).unwrap_err().to_string();
    assert!(error.contains("its build-id is missing"), "{error}");
}

#[test]
fn what_is_no_module_is_said() {
    let workshop = Workshop::new();
    let said = |path: &Path| Functions::open(path, &Search::default()).unwrap_err().to_string();
    let object = workshop.build("gcc -c", "object.c", SOURCE);
    assert!(said(&object).ends_with("neither an executable nor a shared library"));
    let text = workshop.path("text");
    for content in ["", "\x7fELF", "#!/bin/sh\nexit 1\n"] {
        fs::write(&text, content).unwrap();
        assert_eq!(said(&text), format!("{}: not an ELF file", text.display()));
    }
    let folder = text.parent().unwrap();
    assert_eq!(said(folder), format!("{}: not a regular file", folder.display()));
    assert!(said(&folder.join("missing")).contains("No such file"));
    // Opening a pipe would wait for a writer.
    workshop.run("mkfifo pipe", folder);
    assert!(said(&folder.join("pipe")).ends_with("not a regular file"));
}

#[test]
fn a_file_cut_short_says_where() {
    let workshop = Workshop::new();
    let file = workshop.build("gcc", "cut.c", SOURCE);
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    let error = Functions::open(&file, &Search::default()).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Malformed { .. }), "{text}");
    assert!(text.contains("offset 0x") && text.contains("section headers"), "{text}");
}

#[test]
fn files_of_another_machine_are_not_this_ones() {
    let program = Program::new("-Wl,--build-id=sha1");
    let (shop, id) = (&program.workshop, program.build_id());
    let open = |search: &Search| Functions::open(&program.whole, search).is_ok();
    let root = Some(shop.path("root"));
    let below = root.as_ref().unwrap().join(program.whole.strip_prefix("/").unwrap());
    let there = Search { root: root.clone(), ..program.search() };
    let archive = Search { unpacked: Some(Arc::default()), ..program.search() };
    for elsewhere in [&there, &archive] {
        // One that is known to be the same is taken wherever it is, and what the user names is meant.
        assert!(!open(elsewhere));
        assert!(open(&Search { build_id: Some(id.clone()), ..elsewhere.clone() }));
        let named = Search { images: vec![program.whole.clone()], ..elsewhere.clone() };
        assert!(named.image(Path::new("program"), "main").is_some());
    }
    fs::create_dir_all(below.parent().unwrap()).unwrap();
    fs::copy(&program.whole, &below).unwrap();
    assert!(open(&there));
    let mut unpacked = Unpacked::default();
    unpacked.add(program.whole.clone(), fs::File::open(&below).unwrap());
    assert!(open(&Search { unpacked: Some(Arc::new(unpacked)), ..program.search() }));
}

#[test]
fn by_build_id_where_others_keep_files() {
    let program = Program::new("-Wl,--build-id=sha1");
    let (shop, id) = (&program.workshop, program.build_id());
    let hex = hex(&id);
    let (perf, debuginfod) = (shop.path("perf"), shop.path("debuginfod"));
    let kept = Kept { perf: Some(perf.clone()), debuginfod: Some(debuginfod.clone()) };
    let search = Search { kept, build_id: Some(id), ..program.search() };
    let of_perf = perf.join(format!(".build-id/{}/{}", &hex[..2], &hex[2..]));
    let of_debuginfod = debuginfod.join(&hex);
    let gone = shop.path("gone");
    let put = |file: &Path, place: PathBuf| {
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(file, &place).unwrap();
        place
    };
    for (place, debug) in [
        (of_perf.join("elf"), of_perf.join("debug")),
        (of_debuginfod.join("executable"), of_debuginfod.join("debuginfo")),
    ] {
        assert!(Functions::open(&gone, &search).is_err());
        let place = put(&program.stripped, place);
        assert_eq!(*Functions::open(&gone, &search).unwrap().origin(), Origin::Nothing);
        let debug = put(&program.whole, debug);
        let found = Functions::open(&gone, &search).unwrap();
        assert_eq!(*found.origin(), Origin::DebugFile(debug.clone()));
        fs::remove_file(place).unwrap();
        fs::remove_file(debug).unwrap();
    }
}
