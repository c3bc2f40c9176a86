//! What a compiler's command line asks for. Knows the options that gcc and clang share so
//! far as they decide what happens to hooks: how far the compiler goes, which inputs are
//! sources, what is linked. Decides nothing about what to add; see [`super::additions`].

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use teeperf_select::Pattern;

/// How far the compiler goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It answers a question, preprocesses, checks or analyses: no code is made.
    NoCode,
    /// Code is made and not linked: `-c`, `-S`, a precompiled header.
    Compile,
    /// Everything up to a linked file.
    Link,
}

/// What linking makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Product {
    /// A program that uses shared libraries.
    #[default]
    Program,
    /// A program of one piece: `-static`, `-static-pie`.
    StaticProgram,
    /// `-shared`.
    SharedLibrary,
    /// `-r`: one object for a later link.
    Relocatable,
}

/// What an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    /// Source in which functions can be hooked; `cxx`: C++.
    Source { cxx: bool },
    /// A header, to be precompiled.
    Header { cxx: bool },
    /// Assembler.
    Assembler,
    /// Source of another language, which is left alone.
    Other,
    /// For the linker.
    Linkable,
}

/// A command line, understood.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// How far it goes.
    pub(crate) stage: Stage,
    /// What linking makes, when it links.
    pub(crate) product: Product,
    /// `-nostdlib`, `-nostartfiles`, or `-nodefaultlibs` without `-lc`: no C library can be relied on.
    pub(crate) bare: bool,
    /// The compiler adds code behind all else that calls functions of the C library: a static C++ library, split stacks.
    pub(crate) static_code: bool,
    /// The compiler brings the C++ library, or is told to, if it links.
    pub(crate) cxx_library: bool,
    /// Names of the sources in which functions can be hooked.
    pub(crate) sources: Vec<OsString>,
    /// One of the sources is C++.
    pub(crate) cxx: bool,
    /// The user has said something about `-finstrument-functions`.
    pub(crate) hooks_decided: bool,
    /// `-pg`: gprof's counting beside the hooks.
    pub(crate) pg: bool,
    /// `-p`: gcc counts as with `-pg`, and clang does not.
    pub(crate) prof: bool,
    /// clang's `-fmodules`: headers are not included as text.
    pub(crate) modules: bool,
    /// Options that move the compiler's own header folders.
    pub(crate) header_options: Vec<OsString>,
    /// `-S`: what is made is assembly.
    pub(crate) to_assembly: bool,
    /// `-o`
    pub(crate) output: Option<OsString>,
    /// `-flto` or `-emit-llvm`: no code is made before the link.
    pub(crate) late_code: bool,
    /// There will be line information.
    pub(crate) line_info: bool,
    /// clang is to have an assembler make objects of what it writes.
    pub(crate) own_assembler: bool,
    /// The language that is asked for has coroutines.
    pub(crate) coroutines: bool,
    /// An option that late hooks have no form for: another syntax, another processor, or addresses
    /// of eight bytes.
    pub(crate) not_late: Option<String>,
    /// Functions of gcc's own lists of those that have no hooks.
    pub(crate) left_out: Vec<Pattern>,
}

/// gcc's list of functions that have no hooks, by parts of their names.
const FUNCTIONS_WITHOUT: &str = "-finstrument-functions-exclude-function-list=";

/// Patterns for the parts of such a list. A comma that belongs to one has a backslash before it.
fn patterns(list: &str) -> Vec<Pattern> {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let mut chars = list.chars();
    while let Some(c) = chars.next() {
        let c = match c {
            ',' => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            '\\' => chars.next().unwrap_or('\\'),
            other => other,
        };
        part.push(c);
    }
    parts.push(part);
    parts.retain(|part| !part.is_empty());
    parts.iter().filter_map(|part| Pattern::of_part(part).ok()).collect()
}

/// Options with a value of their own behind them as a separate word.
const WITH_VALUE: &[&str] = &[
    "-o",
    "-x",
    "-I",
    "-L",
    "-l",
    "-D",
    "-U",
    "-A",
    "-B",
    "-T",
    "-u",
    "-z",
    "-e",
    "-h",
    "-G",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-iprefix",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-isysroot",
    "-iframework",
    "-iwithsysroot",
    "-cxx-isystem",
    "-imultilib",
    "-imultiarch",
    "-ivfsoverlay",
    "-include-pch",
    "--sysroot",
    "--include",
    "--output",
    "--define-macro",
    "--undefine-macro",
    "--include-directory",
    "--library-directory",
    "--language",
    "--entry",
    "-Xlinker",
    "-Xassembler",
    "-Xpreprocessor",
    "-Xclang",
    "-Xanalyzer",
    "-Xarch_host",
    "-Xarch_device",
    "-Xopenmp-target",
    "--for-linker",
    "--for-assembler",
    "-mllvm",
    "-MF",
    "-MT",
    "-MQ",
    "-MJ",
    "--param",
    "-wrapper",
    "-aux-info",
    "-dumpbase",
    "-dumpbase-ext",
    "-dumpdir",
    "-target",
    "-arch",
    "-gcc-toolchain",
    "-rpath",
    "-Ttext",
    "-Tdata",
    "-Tbss",
    "-framework",
    "-working-directory",
    "-serialize-diagnostics",
    "--serialize-diagnostics",
    "-dependency-file",
    "-dependency-dot",
];

/// Options that end before any code is made.
const NO_CODE: &[&str] = &[
    "-E",
    "--preprocess",
    "-M",
    "-MM",
    "--dependencies",
    "--user-dependencies",
    "-fsyntax-only",
    "--version",
    "--help",
    "--target-help",
    "-###",
    "-cc1",
    "-cc1as",
    "-cc1gen-reproducer",
    "--analyze",
    "-dumpversion",
    "-dumpfullversion",
    "-dumpmachine",
    "-dumpspecs",
    "-emit-ast",
    "-module-file-info",
    "-verify-pch",
    "--precompile",
    "-rewrite-objc",
];

/// Beginnings of options that ask the compiler a question.
const QUESTIONS: &[&str] = &["-print-", "--print-", "--help=", "-fdump-driver"];

/// Beginnings of options that move the compiler's own header folders.
const MOVES_HEADERS: &[&str] = &[
    "--sysroot=",
    "--target=",
    "--gcc-toolchain=",
    "--gcc-install-dir=",
    "-stdlib=",
    "-B",
    "-nostdinc",
    "-specs=",
    "-isysroot",
    "-resource-dir=",
];

impl Request {
    /// Understands the words behind the compiler's name; response files are opened before
    /// ([`super::response`]). `cxx_driver`: g++ and clang++ take `.c` for C++.
    pub(crate) fn read(arguments: &[OsString], cxx_driver: bool) -> Self {
        let mut request = Self {
            stage: Stage::Link,
            product: Product::Program,
            bare: false,
            static_code: false,
            cxx_library: cxx_driver,
            sources: Vec::new(),
            cxx: false,
            hooks_decided: false,
            pg: false,
            prof: false,
            modules: false,
            header_options: Vec::new(),
            to_assembly: false,
            output: None,
            late_code: false,
            line_info: false,
            own_assembler: false,
            coroutines: false,
            not_late: None,
            left_out: Vec::new(),
        };
        let mut language: Option<OsString> = None;
        let mut any_input = false;
        let mut only_headers = true;
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let text = word.as_bytes();
            if text.first() != Some(&b'-') || text == b"-" {
                any_input = true;
                let input = kind_of(word, language.as_deref(), cxx_driver);
                only_headers &= matches!(input, Input::Header { .. });
                if let Input::Source { cxx } | Input::Header { cxx } = input {
                    request.sources.push(word.clone());
                    request.cxx |= cxx;
                }
                continue;
            }
            let option = word.to_str().unwrap_or("");
            if WITH_VALUE.contains(&option) {
                let value = words.next();
                match option {
                    "-x" | "--language" => language = value.cloned(),
                    "-Xlinker" | "--for-linker" => {
                        any_input |= request.linker_word(value.map_or(b"", |v| v.as_bytes()));
                    }
                    "-l" => any_input = true,
                    "-mllvm" => request.llvm_option(value.map_or(b"", |v| v.as_bytes())),
                    "-o" | "--output" => request.output = value.cloned(),
                    "-target" | "--sysroot" | "-isysroot" | "-gcc-toolchain" | "-B" => {
                        request.header_options.push(word.clone());
                        request.header_options.extend(value.cloned());
                    }
                    _ => {}
                }
                continue;
            }
            if let Some(value) = option.strip_prefix("-x").or(option.strip_prefix("--language=")) {
                language = Some(value.into());
            } else if let Some(list) = text.strip_prefix(b"-Wl,") {
                for piece in list.split(|&byte| byte == b',') {
                    any_input |= request.linker_word(piece);
                }
            } else if let Some(name) = text.strip_prefix(b"-o").or(text.strip_prefix(b"--output="))
                && !text.starts_with(b"-object")
            {
                request.output = Some(OsStr::from_bytes(name).to_owned());
            } else {
                any_input |= option.starts_with("-l");
                request.option(option);
            }
        }
        request.cxx_library |= arguments.iter().any(|word| names_cxx_library(word));
        // Rust's compiler names all libraries itself, that of C too.
        request.bare |= arguments.iter().any(|word| word == "-nodefaultlibs")
            && !arguments.iter().any(|word| word == "-lc");
        if !any_input {
            request.stage = Stage::NoCode;
        } else if request.stage == Stage::Link && only_headers && !request.sources.is_empty() {
            request.stage = Stage::Compile;
        }
        request
    }

    /// An option of LLVM's.
    fn llvm_option(&mut self, option: &[u8]) {
        if option.trim_ascii_start() == b"-x86-asm-syntax=intel" {
            self.not_late = Some("-mllvm -x86-asm-syntax=intel".into());
        }
    }

    /// An option that stands alone.
    fn option(&mut self, option: &str) {
        let begins = |list: &[&str]| list.iter().any(|start| option.starts_with(start));
        self.to_assembly |= matches!(option, "-S" | "--assemble");
        self.learn_debug(option);
        // `-mrecord-mcount` writes a table of the calls that late hooks replace. Thunks in place have
        // returns that are jumps.
        if matches!(
            option,
            "-masm=intel"
                | "-m32"
                | "-mx32"
                | "-mcmodel=large"
                | "-fsplit-stack"
                | "-mrecord-mcount"
                | "-mindirect-branch=thunk-inline"
                | "-mfunction-return=thunk-inline"
        ) {
            self.not_late = Some(option.into());
        }
        self.left_out
            .extend(option.strip_prefix(FUNCTIONS_WITHOUT).map(patterns).unwrap_or_default());
        match option {
            "-c" | "--compile" | "-S" | "--assemble" if self.stage == Stage::Link => {
                self.stage = Stage::Compile;
            }
            "-shared" | "--shared" => self.product = Product::SharedLibrary,
            "-static" | "--static" | "-static-pie" => self.make_static(),
            "-r" | "--relocatable" => self.product = Product::Relocatable,
            "-nostdlib" | "--no-standard-libraries" => {
                self.bare = true;
                self.cxx_library = false;
            }
            "-nodefaultlibs" => self.cxx_library = false,
            "-nostartfiles" => self.bare = true,
            "-static-libstdc++" | "-fsplit-stack" => self.static_code = true,
            "-fno-split-stack" => self.static_code = false,
            "-nostdlib++" => self.cxx_library = false,
            "-finstrument-functions"
            | "-fno-instrument-functions"
            | "-finstrument-functions-after-inlining"
            | "-finstrument-function-entry-bare" => self.hooks_decided = true,
            "-pg" => self.pg = true,
            "-p" | "-profile" => self.prof = true,
            "-flto" | "-emit-llvm" => self.late_code = true,
            "-fno-lto" => self.late_code = false,
            "-fno-integrated-as" | "-no-integrated-as" => self.own_assembler = true,
            "-fintegrated-as" | "-integrated-as" => self.own_assembler = false,
            "-fmodules" | "-fcxx-modules" | "-fmodules-ts" => self.modules = true,
            "-m32" | "-mx32" | "-m64" => self.header_options.push(option.into()),
            _ if NO_CODE.contains(&option) || begins(QUESTIONS) => self.stage = Stage::NoCode,
            "-fcoroutines" => self.coroutines = true,
            _ if option.starts_with("-flto=") => self.late_code = true,
            _ if option.starts_with("-std=") || option.starts_with("--std=") => {
                self.coroutines = has_coroutines(option);
            }
            _ if begins(MOVES_HEADERS) => self.header_options.push(option.into()),
            _ => {}
        }
    }

    /// Whether there will be line information: the last that is said of it holds.
    fn learn_debug(&mut self, option: &str) {
        let Some(kind) = option.strip_prefix("-g") else { return };
        let level = kind.strip_prefix("gdb").unwrap_or(kind);
        match level {
            "0" => self.line_info = false,
            "" | "1" | "2" | "3" | "mlt" | "line-tables-only" | "line-directives-only" | "full" => {
                self.line_info = true;
            }
            _ if kind.starts_with("dwarf") => self.line_info = true,
            _ => {}
        }
    }

    /// A word that goes straight to the linker. Returns whether it is a file to link.
    fn linker_word(&mut self, word: &[u8]) -> bool {
        match word {
            b"-shared" | b"--shared" | b"-Bshareable" => self.product = Product::SharedLibrary,
            b"-r" | b"--relocatable" | b"-Ur" => self.product = Product::Relocatable,
            _ => {}
        }
        !word.starts_with(b"-") && [&b".o"[..], b".a", b".so"].iter().any(|end| word.ends_with(end))
    }

    /// What `-S` writes.
    pub(crate) fn assembly_files(&self) -> Vec<PathBuf> {
        match &self.output {
            Some(name) => vec![name.into()],
            None => {
                let named = |source: &OsString| {
                    Some(Path::new(Path::new(source).file_name()?).with_extension("s"))
                };
                self.sources.iter().filter_map(named).collect()
            }
        }
    }

    /// `-shared -static` and `-r -static` stay what they are.
    fn make_static(&mut self) {
        if self.product == Product::Program {
            self.product = Product::StaticProgram;
        }
    }
}

/// Whether an option asks for C++20 or a later standard, each of which has a draft's name too.
fn has_coroutines(option: &str) -> bool {
    const BEFORE: [&str; 8] = ["98", "03", "0x", "11", "1y", "14", "1z", "17"];
    let standard = option.split_once("++").map(|(_, year)| year);
    standard.is_some_and(|year| !BEFORE.contains(&year))
}

/// As a library or as a file, to compiler or linker.
fn names_cxx_library(word: &OsStr) -> bool {
    let text = word.as_bytes();
    let is_named = text == b"-lc++" || text.windows(6).any(|part| part == b"stdc++");
    is_named && !text.starts_with(b"-static-")
}

/// What the compiler takes an input for: by `-x` if one is in force, else by its ending.
fn kind_of(name: &OsStr, language: Option<&OsStr>, cxx_driver: bool) -> Input {
    match language.and_then(OsStr::to_str) {
        Some("none") | None => {}
        Some(language) => {
            let cxx = language.contains("c++");
            return match language {
                "assembler" | "assembler-with-cpp" => Input::Assembler,
                _ if language.ends_with("-header") => Input::Header { cxx },
                "c"
                | "cpp-output"
                | "c++"
                | "c++-cpp-output"
                | "objective-c"
                | "objective-c++"
                | "objective-c-cpp-output"
                | "objective-c++-cpp-output"
                | "c++-module" => Input::Source { cxx },
                _ => Input::Other,
            };
        }
    }
    let bytes = name.as_bytes();
    let file = bytes.rsplit(|&byte| byte == b'/').next().unwrap_or(bytes);
    let Some(dot) = file.iter().rposition(|&byte| byte == b'.') else { return Input::Linkable };
    match &file[dot + 1..] {
        b"c" | b"i" | b"m" | b"mi" => Input::Source { cxx: cxx_driver },
        b"ii" | b"cc" | b"cp" | b"cxx" | b"cpp" | b"CPP" | b"c++" | b"C" | b"mm" | b"M"
        | b"mii" | b"cppm" | b"ccm" | b"cxxm" | b"c++m" | b"ixx" => Input::Source { cxx: true },
        b"h" => Input::Header { cxx: cxx_driver },
        b"hh" | b"H" | b"hp" | b"hxx" | b"hpp" | b"HPP" | b"h++" | b"tcc" => {
            Input::Header { cxx: true }
        }
        b"s" | b"S" | b"sx" => Input::Assembler,
        b"f" | b"for" | b"ftn" | b"F" | b"f90" | b"f95" | b"f03" | b"f08" | b"F90" | b"F95"
        | b"adb" | b"ads" | b"d" | b"go" | b"cu" | b"hip" | b"cl" | b"ll" | b"bc" => Input::Other,
        _ => Input::Linkable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Request {
        Request::read(&super::super::response::split(line.as_bytes()), false)
    }

    #[test]
    fn questions_and_checks_make_no_code() {
        for line in [
            "--version",
            "-v",
            "-###",
            "-### a.c",
            "-E a.c",
            "-E -",
            "-M a.c",
            "-MM a.c",
            "",
            "-fsyntax-only a.c",
            "-print-prog-name=ld",
            "--print-search-dirs",
            "-dumpmachine",
            "-dumpversion",
            "--help=target",
            "-Wl,--version",
            "-cc1 -emit-obj a.c",
            "--analyze a.c",
            "-c -E a.c",
            "-E -c a.c",
            "-Wl,-v",
            "-x c -E -",
        ] {
            assert_eq!(read(line).stage, Stage::NoCode, "{line}");
        }
    }

    #[test]
    fn the_stage_is_the_last_one_asked_for() {
        for (line, stage, sources) in [
            ("a.c", Stage::Link, 1),
            ("-v a.c", Stage::Link, 1),
            ("a.o b.o -o a", Stage::Link, 0),
            ("-c a.c", Stage::Compile, 1),
            ("-c a.c b.cc c.cpp", Stage::Compile, 3),
            ("-S a.c -o -", Stage::Compile, 1),
            ("-c -x c -", Stage::Compile, 1),
            ("-xc++ - -c", Stage::Compile, 1),
            ("-MD -MF a.d -c a.c", Stage::Compile, 1),
            ("-MMD -MP a.c", Stage::Link, 1),
            ("a.h", Stage::Compile, 1),
            ("-x c++-header a.h", Stage::Compile, 1),
            ("-c a.s b.S", Stage::Compile, 0),
            ("a.S", Stage::Link, 0),
            ("-dumpbase a -c a.c", Stage::Compile, 1),
            ("-o a.c b.o", Stage::Link, 0),
            ("-include x.h -c a.c", Stage::Compile, 1),
            ("-Xlinker -r -o a.o b.o", Stage::Link, 0),
            ("-x c a.txt -x none b.o", Stage::Link, 1),
            ("-lfoo -shared", Stage::Link, 0),
            ("-Wl,--whole-archive,a.a", Stage::Link, 0),
            ("-emit-llvm -c a.c", Stage::Compile, 1),
        ] {
            let request = read(line);
            assert_eq!((request.stage, request.sources.len()), (stage, sources), "{line}");
        }
    }

    #[test]
    fn the_product_is_known() {
        for (line, product) in [
            ("a.o", Product::Program),
            ("-pie a.o", Product::Program),
            ("-static a.o", Product::StaticProgram),
            ("-static-pie a.o", Product::StaticProgram),
            ("-static-libgcc a.o", Product::Program),
            ("-shared a.o", Product::SharedLibrary),
            ("-shared-libgcc a.o", Product::Program),
            ("-shared -static a.o", Product::SharedLibrary),
            ("-static -shared a.o", Product::SharedLibrary),
            ("-Wl,-O1,-shared a.o", Product::SharedLibrary),
            ("-r a.o", Product::Relocatable),
            ("-r -static a.o", Product::Relocatable),
            ("-Wl,-r a.o", Product::Relocatable),
            ("-rdynamic a.o", Product::Program),
            ("-Wl,-rpath,/x a.o", Product::Program),
        ] {
            assert_eq!(read(line).product, product, "{line}");
        }
    }

    #[test]
    fn lists_of_functions_without_hooks_are_read() {
        for (list, names, others) in [
            (
                "slp_,f\\\\,g,a*,",
                &["slp_switch", "_slp_", "ns::slp_x(int)", "f,g", "a*"][..],
                &["slp", "f", "a", "x(slp_)", "_ZN4slp_1fEv"][..],
            ),
            ("int", &["print", "_int", "int f<int>(char)"], &["foo(int)", "_ZN1aintEi", "_Zint"]),
            ("operator()", &["A::operator()(char)"], &["A::operator[](char)"]),
        ] {
            let request = read(&format!("-c a.c {FUNCTIONS_WITHOUT}{list}"));
            let fits = |name: &&str| request.left_out.iter().any(|list| list.fits_name([*name]));
            assert!(names.iter().all(&fits), "{list}");
            assert!(!others.iter().any(fits), "{list}");
        }
    }

    #[test]
    fn languages_and_decisions_are_seen() {
        assert!(read("-c a.cc").cxx);
        assert!(read("-c -x c++ a.c").cxx);
        assert!(!read("-c a.c").cxx);
        assert!(Request::read(&["-c".into(), "a.c".into()], true).cxx);
        assert!(read("-c a.c -fno-instrument-functions").hooks_decided);
        assert!(read("-c a.c -finstrument-functions").hooks_decided);
        assert!(!read("-c a.c -finstrument-functions-exclude-file-list=x").hooks_decided);
        assert!(read("-c a.c -mllvm -x86-asm-syntax=intel").not_late.is_some());
        assert!(read("-c a.c -mllvm -x86-asm-syntax=att").not_late.is_none());
        assert!(read("-c a.c -p").prof && !read("-c a.c -pipe").prof);
        assert!(read("-c a.c -pg").pg && !read("-c a.c -o -pg").pg);
        assert!(read("-nostartfiles a.o").bare);
        assert!(read("-static-libstdc++ a.o").static_code && !read("a.o").static_code);
        assert!(read("-nodefaultlibs a.o").bare && read("-nostdlib a.o -lc").bare);
        assert!(!read("a.o -lc -nodefaultlibs").bare);
        let brings = |line: &str| {
            let words: Vec<_> = line.split(' ').map(OsString::from).collect();
            Request::read(&words, true).cxx_library
        };
        assert!(brings("a.o") && !brings("a.o -nostdlib++") && !brings("a.o -nodefaultlibs"));
        assert!(brings("a.o -nostdlib++ -lc++") && brings("a.o -nodefaultlibs -lstdc++"));
        assert!(read("a.o -lstdc++").cxx_library && read("a.o -Wl,-lstdc++").cxx_library);
        assert!(read("a.o /usr/lib/libstdc++.so.6").cxx_library);
        assert!(!read("a.o").cxx_library && !read("a.o -static-libstdc++").cxx_library);
        assert_eq!(
            read("--sysroot=/x -target y -c a.c").header_options,
            ["--sysroot=/x", "-target", "y"]
        );
    }

    #[test]
    fn coroutines_come_with_the_standard() {
        for (line, has) in [
            ("-c a.cc", false),
            ("-std=c++17 -c a.cc", false),
            ("-std=gnu++1z -c a.cc", false),
            ("-std=c++20 -c a.cc", true),
            ("--std=gnu++2b -c a.cc", true),
            ("-std=c++20 -std=c++17 -c a.cc", false),
            ("-fcoroutines -c a.cc", true),
            ("-std=c11 -c a.c", false),
            ("-o -std=c++20 -c a.cc", false),
        ] {
            assert_eq!(read(line).coroutines, has, "{line}");
        }
    }

    #[test]
    fn what_is_written_is_known() {
        let output = |line: &str| read(line).output.and_then(|name| name.into_string().ok());
        assert_eq!(output("-S a.c -o b.s").as_deref(), Some("b.s"));
        assert_eq!(output("-S a.c -ob.s").as_deref(), Some("b.s"));
        assert_eq!(output("-S a.c --output=b.s").as_deref(), Some("b.s"));
        assert_eq!(output("-S a.c"), None);
        assert!(
            read("-S a.c").to_assembly
                && read("-c -S a.c").to_assembly
                && !read("-c a.c").to_assembly
        );
        for (line, late) in
            [("-flto", true), ("-flto=thin", true), ("-flto -fno-lto", false), ("-emit-llvm", true)]
        {
            assert_eq!(read(&format!("-c a.c {line}")).late_code, late, "{line}");
        }
        for (line, lines) in [
            ("-g", true),
            ("-g -g0", false),
            ("-g0 -ggdb3", true),
            ("-gdwarf-4", true),
            ("-gz", false),
            ("-gsplit-dwarf", false),
            ("-ggdb0", false),
            ("-gno-column-info", false),
        ] {
            assert_eq!(read(&format!("-c a.c {line}")).line_info, lines, "{line}");
        }
    }

    #[test]
    fn a_value_at_the_end_may_be_missing() {
        for option in WITH_VALUE {
            assert_eq!(read(option).sources.len(), 0);
        }
    }
}
