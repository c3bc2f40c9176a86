//! One program with its debug information in every form that tools give it: the answers are the same.

use crate::toolchain::Workshop;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use teeperf_symbols::{Frames, Functions, Lines, Search, demangle};

const HEADER: &str = "
namespace demo {
extern volatile int sink;
struct Box {
    int value;
    __attribute__((always_inline)) int twice(int x) const { sink = x; return value * x; }
};
struct Deep { Box inner; int more[4]; int sum() const; };
inline __attribute__((always_inline)) int
nested(const Box &b, int x) {
    int s = 0;
    for (int i = 0; i < 3; i++) s += b.twice(i ^ x);
    return s;
}
int far(const Box &b, int x);
}
";

const FIRST: &str = "#include \"h.h\"
namespace demo {
volatile int sink;
int Deep::sum() const { return nested(inner, more[0]) + more[1]; }
static __attribute__((noinline)) int near(const Box &b, int x) {
    if (x > 100) return far(b, x - 1);
    return nested(b, x) + b.twice(x + 1);
}
__attribute__((noinline)) int middle(const Deep &d, int x) { return near(d.inner, x) + d.sum(); }
}
int main(int argc, char **) {
    demo::Deep d{{argc}, {1, 2, 3, 4}};
    return demo::middle(d, argc) + demo::far(d.inner, argc);
}
";

const SECOND: &str = "#include \"h.h\"
namespace demo {
static inline __attribute__((always_inline)) int only(const Box &b, int x) { return nested(b, x) - 1; }
__attribute__((noinline)) int far(const Box &b, int x) { sink = x; return only(b, x) + b.twice(x); }
}
";

/// How the program is compiled.
struct Build<'a> {
    compiler: &'static str,
    options: &'static str,
    /// Options to link with, beside those.
    link: &'a str,
}

/// What is done to have it in a form: `$CC` compiles with what else the form needs, `$LINK` links.
struct Form {
    name: &'static str,
    script: &'static str,
    /// What a build has to be of.
    only: fn(&Build<'_>) -> bool,
}

const COMPILE: &str = "$CC -c a.cpp -o a.o; $CC -c b.cpp -o b.o; $LINK a.o b.o -o out";

const FORMS: [Form; 17] = [
    Form { name: "zlib", script: "PLAIN; objcopy --compress-debug-sections=zlib out", only: any },
    Form {
        name: "zdebug",
        script: "PLAIN; objcopy --compress-debug-sections=zlib-gnu out; readelf -S out | grep -q zdebug_info",
        only: any,
    },
    Form { name: "zstd", script: "PLAIN; objcopy --compress-debug-sections=zstd out", only: any },
    Form { name: "split", script: "CC=\"$CC -gsplit-dwarf\"; PLAIN; ls *.dwo", only: no_lto },
    Form {
        name: "split, types apart",
        script: "CC=\"$CC -gsplit-dwarf -fdebug-types-section\"; PLAIN; ls *.dwo",
        only: no_lto,
    },
    Form {
        name: "split, compressed",
        script: "CC=\"$CC -gsplit-dwarf\"; PLAIN; for f in *.dwo; do objcopy --compress-debug-sections=zlib $f; done",
        only: no_lto,
    },
    Form {
        name: "split, in the objects",
        script: "CC=\"$CC -gsplit-dwarf=single\"; PLAIN; ! ls *.dwo",
        only: is_clang,
    },
    Form {
        name: "split, moved beside the program",
        script: "CC=\"$CC -gsplit-dwarf\"; mkdir x; cp *.cpp *.h x; cd x; PLAIN; cd ..; mv x/out x/*.dwo .; rm -r x",
        only: no_lto,
    },
    Form {
        name: "package",
        script: "CC=\"$CC -gsplit-dwarf\"; PLAIN; llvm-dwp-19 -e out -o out.dwp; rm *.dwo",
        // Of gcc's DWARF 5 in C++ this tool comes to no end, and that of binutils crashes.
        only: |build| no_lto(build) && (is_clang(build) || build.options.contains("dwarf-4")),
    },
    Form {
        name: "package of binutils",
        script: "CC=\"$CC -gsplit-dwarf\"; PLAIN; dwp -e out -o out.dwp; rm *.dwo",
        // GNU's tool takes DWARF 5 of its own compiler alone.
        only: |build| build.options.contains("dwarf-4") && no_lto(build),
    },
    Form {
        name: "debug file",
        script: "PLAIN; objcopy --only-keep-debug out out.debug; strip out; objcopy --add-gnu-debuglink=out.debug out",
        only: any,
    },
    Form {
        name: "debug file, split",
        script: "CC=\"$CC -gsplit-dwarf\"; PLAIN; objcopy --only-keep-debug out out.debug; strip out; \
                 objcopy --add-gnu-debuglink=out.debug out",
        only: no_lto,
    },
    Form { name: "dwz", script: "PLAIN; dwz out", only: is_known_to_dwz },
    Form {
        name: "dwz, of several programs",
        script: "PLAIN; cp out other; dwz -m common -M common out other; readelf -S out | grep -q debugaltlink",
        only: is_known_to_dwz,
    },
    Form {
        name: "dwz, by DWARF 5",
        script: "PLAIN; cp out other; dwz --dwarf-5 -m common -M common out other; readelf -S out | grep -q debug_sup",
        only: |build| build.options.contains("dwarf-5") && is_known_to_dwz(build),
    },
    Form {
        name: "dwz, of a debug file",
        script: "PLAIN; objcopy --only-keep-debug out out.debug; strip out; cp out.debug other; mkdir .debug; mv out.debug .debug; \
                 dwz -m .debug/common -M common .debug/out.debug other; objcopy --add-gnu-debuglink=.debug/out.debug out",
        only: is_known_to_dwz,
    },
    Form {
        name: "split by link-time optimisation",
        script: "CC=\"$CC -gsplit-dwarf\"; LINK=\"$LINK -gsplit-dwarf\"; PLAIN; ls out_dwo/*.dwo",
        only: |build| is_lto(build) && is_clang(build),
    },
];

fn any(_: &Build<'_>) -> bool {
    true
}

fn is_clang(build: &Build<'_>) -> bool {
    build.compiler.starts_with("clang")
}

/// dwz 0.15 does not know what clang writes of DWARF 5.
fn is_known_to_dwz(build: &Build<'_>) -> bool {
    !(is_clang(build) && build.options.contains("dwarf-5"))
}

fn is_lto(build: &Build<'_>) -> bool {
    build.options.contains("-flto")
}

fn no_lto(build: &Build<'_>) -> bool {
    !is_lto(build)
}

/// All that is asked of a program.
#[derive(Debug, PartialEq)]
struct Answers {
    /// For each address of its functions, by the function and where in it: the functions there, each with its line and where it is
    /// declared.
    frames: BTreeMap<(String, u64), Vec<String>>,
    definitions: Vec<String>,
    inlined: Vec<Vec<String>>,
    calls: Vec<String>,
}

/// Names of the functions that are looked at, with their addresses in the unstripped program.
fn ask(file: &Path, functions: &[(String, u64, u64)]) -> Answers {
    let search = Search::nowhere_else();
    let lines = Lines::open(file, &search).unwrap();
    let frames = Frames::open(file, &search).unwrap().expect("debug information");
    let short = |file: &str| Path::new(file).file_name().unwrap().to_string_lossy().into_owned();
    let mut found = BTreeMap::new();
    for (name, start, size) in functions {
        for at in 0..*size {
            let shown = frames.at(start + at).into_iter().map(|frame| {
                let line =
                    frame.line.as_ref().map(|(file, line)| format!("{}:{line}", short(file)));
                let declared = frames.declared(start + at, &frame);
                let declared = declared.map(|at| format!("{}:{:?}", short(&at.file), at.line));
                format!("{:?} at {line:?} of {declared:?}", frame.name)
            });
            found.insert((name.clone(), at), shown.collect());
        }
    }
    let starts: Vec<u64> = functions.iter().map(|function| function.1).collect();
    let definitions = lines.definitions(&starts).unwrap();
    let place = |at: &teeperf_symbols::Location| format!("{}:{:?}", short(&at.file), at.line);
    let mut inlined = lines.inlined(&starts).unwrap();
    inlined.iter_mut().for_each(|names| names.sort());
    let calls = lines.call_sites(&starts).unwrap().into_iter().map(|call| {
        format!("{} from {} at {:?}", call.callee, call.caller, call.location.as_ref().map(place))
    });
    let mut calls: Vec<String> = calls.collect();
    calls.sort();
    let answers = Answers {
        frames: found,
        definitions: definitions
            .iter()
            .map(|at| at.as_ref().map_or(String::new(), place))
            .collect(),
        inlined,
        calls,
    };
    assert_eq!((lines.missing(), frames.missing()), (None, None), "{}", file.display());
    answers
}

/// The functions of the program's own code.
fn functions(file: &Path) -> Vec<(String, u64, u64)> {
    let functions = Functions::open(file, &Search::nowhere_else()).unwrap();
    let own = functions
        .iter()
        .map(|symbol| (demangle(&symbol.name).into_owned(), symbol.start, symbol.size));
    own.filter(|(name, ..)| name.starts_with("demo::") || name == "main").collect()
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn build(shop: &Workshop, build: &Build<'_>, name: &str, script: &str) -> Option<PathBuf> {
    let folder = shop.path(&name.replace([' ', ','], "_"));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text) in [("h.h", HEADER), ("a.cpp", FIRST), ("b.cpp", SECOND)] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let tools = ["llvm-dwp-19", "dwp", "dwz", "objcopy", "strip"];
    let is_named = |tool: &&&str| script.split([' ', ';']).any(|word| word == **tool);
    if let Some(tool) = tools.iter().filter(is_named).find(|tool| !has(tool)) {
        eprintln!("{name}: goes without, {tool} is not installed");
        return None;
    }
    let Build { compiler, options, link } = build;
    let script = script.replace("PLAIN", COMPILE);
    let script =
        format!("set -e; CC='{compiler} {options}'; LINK='{compiler} {options} {link}'; {script}");
    let output = Command::new("sh").args(["-c", &script]).current_dir(&folder).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {script}: {errors}");
    Some(folder.join("out"))
}

/// All forms of what one compiler makes.
fn every_form_of(compilers: &[&'static str], options: &[&'static str], link: &str) {
    for compiler in compilers {
        if !has(compiler) {
            eprintln!("goes without: {compiler} is not installed");
            continue;
        }
        for options in options {
            let way = Build { compiler, options, link };
            let shop = Workshop::new();
            let plain = build(&shop, &way, "plain", "PLAIN").unwrap();
            let functions = functions(&plain);
            assert!(functions.len() >= 3, "{functions:?}");
            let wanted = ask(&plain, &functions);
            let name = format!("{compiler} {options}");
            let all = || wanted.frames.values().flatten();
            for function in ["demo::Box::twice(int) const", "demo::nested(demo::Box const&, int)"] {
                let is_inlined = wanted.inlined.iter().flatten().any(|name| name == function);
                let is_declared = |shown: &String| {
                    let of =
                        if function.contains("Box::") { "h.h:Some(6)" } else { "h.h:Some(10)" };
                    shown.contains(&format!("{function:?}")) && shown.contains(of)
                };
                assert!(is_inlined, "{name}: {function}: {:?}", wanted.inlined);
                assert!(all().any(is_declared), "{name}: {function}: {:?}", wanted.frames);
            }
            agrees_with_llvm(&plain, &functions, &name);
            for form in FORMS.iter().filter(|form| (form.only)(&way)) {
                let Some(file) = build(&shop, &way, form.name, form.script) else { continue };
                let found = ask(&file, &functions);
                let Answers { frames, definitions, inlined, calls } = &found;
                let name = format!("{name}: {}", form.name);
                for (place, shown) in frames {
                    assert_eq!(*shown, wanted.frames[place], "{name}: {place:?}");
                }
                assert_eq!(*definitions, wanted.definitions, "{name}");
                assert_eq!(*inlined, wanted.inlined, "{name}");
                assert_eq!(*calls, wanted.calls, "{name}");
            }
        }
    }
}

/// Functions at each address and their lines, as another reader of debug information has them.
fn agrees_with_llvm(file: &Path, functions: &[(String, u64, u64)], name: &str) {
    const READER: &str = "llvm-symbolizer-19";
    if !has(READER) {
        return eprintln!("{name}: is compared with nothing, {READER} is not installed");
    }
    let frames = Frames::open(file, &Search::nowhere_else()).unwrap().unwrap();
    let places = functions.iter().flat_map(|(_, start, size)| *start..start + size);
    let mut command = Command::new(READER);
    command.args(["--output-style=GNU", "-a", "-f", "-i", "-C", "-e"]).arg(file);
    command.args(places.clone().map(|address| format!("{address:#x}")));
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let mut told: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    let mut at = 0;
    for line in text.lines() {
        match line.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16)) {
            Some(address) => at = address.unwrap(),
            None => told.entry(at).or_default().push(line),
        }
    }
    for address in places {
        let (own, told) = (frames.at(address), &told[&address]);
        assert_eq!(2 * own.len(), told.len(), "{name}: {address:#x}: {own:?} and {told:?}");
        for (at, (frame, told)) in own.iter().zip(told.chunks_exact(2)).enumerate() {
            // Of the function itself that one has the symbol's name.
            if at + 1 < own.len() {
                assert_eq!(frame.name.as_deref(), Some(told[0]), "{name}: {address:#x}");
            }
            let line = told[1].rsplit('/').next().unwrap().split(" (").next().unwrap();
            let Some((file, number)) = &frame.line else {
                assert!(line.ends_with(['0', '?']), "{name}: {address:#x}: {line}");
                continue;
            };
            let short = Path::new(file).file_name().unwrap().to_string_lossy();
            assert_eq!(format!("{short}:{number}"), line, "{name}: {address:#x}");
        }
    }
}

#[test]
fn of_gcc() {
    every_form_of(&["g++"], &["-O2 -gdwarf-5", "-O2 -gdwarf-4", "-O0 -gdwarf-5"], "");
}

#[test]
fn of_gcc_across_units() {
    every_form_of(&["g++"], &["-O2 -g -flto", "-O2 -gdwarf-4 -flto"], "");
}

const CLANG: [&str; 3] = ["-O2 -gdwarf-5", "-O2 -gdwarf-4", "-O0 -gdwarf-5"];
const CLANG_ACROSS: [&str; 2] = ["-O2 -gdwarf-5 -flto", "-O2 -gdwarf-4 -flto=thin"];

#[test]
fn of_clang() {
    every_form_of(&["clang++"], &CLANG, "");
}

#[test]
fn of_clang_16() {
    every_form_of(&["clang++-16"], &CLANG[..1], "");
}

#[test]
fn of_clang_19() {
    every_form_of(&["clang++-19"], &CLANG[..2], "");
}

#[test]
fn of_clang_across_units() {
    for (compiler, linker) in
        [("clang++", "lld"), ("clang++-16", "lld-16"), ("clang++-19", "lld-19")]
    {
        if !has(&format!("ld.{linker}")) {
            eprintln!("goes without: {linker} is not installed");
            continue;
        }
        every_form_of(&[compiler], &CLANG_ACROSS, &format!("-fuse-ld={linker}"));
    }
}
