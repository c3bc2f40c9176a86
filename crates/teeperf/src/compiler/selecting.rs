//! How only some functions get hooks. Compilers hook all, so hooks are taken out of the assembly that they write
//! ([`teeperf_select::assembly`]), by whom they start to make an object of it: this command, called `as`, in a folder in
//! which the compiler looks for its programs first (`-B`). So the compiler names and removes its files as ever. What is
//! to be left out stands in that folder, which is named after it: who keeps objects by the compiler's words (ccache) makes
//! others where something else is wanted.
//!
//! clang makes objects itself unless it is told not to; then it is clang that assembles what it wrote.

use super::arguments::Request;
use super::clang_text;
use super::options::Options;
use super::probe::{Family, Known};
use super::real::RealCompiler;
use crate::bundle;
use anyhow::{Context, Result, bail, ensure};
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use teeperf_select::assembly::late::{self, Late};
use teeperf_select::{Selection, assembly, told};

/// The file beside the link called `as`: a line for each word, then the selection.
const PLAN: &str = "plan";
/// Lines of the plan.
const PROGRAM: &str = "program ";
const WORD: &str = "word ";
const IS_CLANG: &str = "clang";
const DROP_LINES: &str = "drop-line-info";
const LATE: &str = "late";
const COUNTS_ITSELF: &str = "counts-itself";
const WITH_LIBRARY: &str = "with-library";
/// The file beside it with words for gcc's own compilers, which its driver would take for its
/// linker as well. One called `specs` would stand for all that the driver knows.
const SPECS: &str = "marked.specs";
/// These have a function's entry marked (GCC manual, `-mfentry`). The driver's `-pg` is `-p` there.
const MARKED: &str = "*cc1:\n+ -p -mfentry\n\n*cc1plus:\n+ -p -mfentry\n\n";

/// What is wanted of a compiler's assembly, and who makes objects of it.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    program: OsString,
    words: Vec<OsString>,
    /// The program is clang, which assembles what it wrote.
    is_clang: bool,
    drop_line_info: bool,
    selection: Selection,
    /// Hooks are put in, and not taken out.
    late: Option<Late>,
}

/// Words for the compiler.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    /// In front of what the user typed.
    pub(crate) before: Vec<OsString>,
    /// Behind it: these hold whatever the user says.
    pub(crate) after: Vec<OsString>,
}

impl Plan {
    /// What it takes for this call; nothing where the compiler puts hooks into all functions.
    pub(crate) fn new(
        request: &Request,
        options: &Options,
        known: &Known,
        compiler: &RealCompiler,
        is_late: bool,
    ) -> Result<Option<Self>> {
        if options.selection.is_all() && !is_late {
            return Ok(None);
        }
        let counts_itself = request.pg || request.prof && known.family == Family::Gcc;
        let late = is_late.then_some(Late { counts_itself, with_library: options.system_headers });
        let own = match known.family {
            Family::Gcc => {
                "or leave out by gcc's own -finstrument-functions-exclude-file-list=PART,… and \
                 -exclude-function-list=PART,…, which compare parts of names; "
            }
            Family::Clang => "",
        };
        ensure!(
            !request.late_code || late.is_some(),
            "with -flto (or -emit-llvm) no code is made before the link, so hooks of single functions cannot be taken \
             out (--teeperf-only, --teeperf-exclude, --teeperf-min-size, {}): build with -fno-lto; {own}or leave out by \
             __attribute__((no_instrument_function)) in the source",
            crate::config::files::NAME
        );
        let other =
            request.header_options.iter().find(|option| *option == "-m32" || *option == "-mx32");
        if let Some(option) = other {
            bail!("hooks of single functions cannot be taken out of code made with {option:?}");
        }
        let mut selection = options.selection.clone();
        if late.is_some() {
            // The compiler goes by its lists where it puts hooks in itself.
            selection.exclude.extend(request.left_out.iter().cloned());
        }
        let drop_line_info = selection.needs_files() && !request.line_info;
        let is_clang = known.family == Family::Clang && !request.own_assembler;
        let (program, words) = match is_clang {
            true => {
                let words = compiler.words.iter().chain(&request.header_options).cloned();
                (compiler.path.clone().into(), words.collect())
            }
            false => (assembler(compiler, &request.header_options)?, Vec::new()),
        };
        Ok(Some(Self { program, words, is_clang, drop_line_info, selection, late }))
    }

    /// The compiler's words, so that it has its assembly filtered. With `-S` it is filtered afterwards.
    pub(crate) fn words(&self, request: &Request, family: Family) -> Result<Words> {
        let mut words = Words::default();
        if let Some(late) = self.late {
            words.before.extend(self.marking(late, family)?);
            if family == Family::Gcc {
                // Callers must not know which registers a function leaves as they were.
                words.after.push("-fno-ipa-ra".into());
            }
        }
        if self.drop_line_info {
            words.after.push("-g1".into());
        }
        if self.selection.needs_files() && !self.is_clang {
            // Of functions that have no code of their own comments alone tell the file.
            words.after.push("-dA".into());
        }
        if !request.to_assembly {
            let mut option = OsString::from("-B");
            option.push(self.folder()?);
            option.push("/");
            words.before.push(option);
            if self.is_clang {
                words.after.push("-fno-integrated-as".into());
            }
        }
        Ok(words)
    }

    /// Words that have the compiler mark functions.
    fn marking(&self, late: Late, family: Family) -> Result<Vec<OsString>> {
        let mut words = Vec::new();
        if family == Family::Clang {
            if !late.counts_itself {
                words.extend(["-Xclang", "-pg", "-Xclang", "-mfentry"].map(OsString::from));
            }
            return Ok(words);
        }
        if !late.counts_itself {
            let mut option = OsString::from("-specs=");
            option.push(self.folder()?.join(SPECS));
            words.push(option);
        }
        Ok(words)
    }

    /// Runs the compiler and takes the hooks out of what it writes. Comes back with its exit status.
    pub(crate) fn run(&self, command: &mut Command, request: &Request) -> Result<u8> {
        let to_stdout = request.output.as_deref() == Some(OsStr::new("-"));
        if to_stdout {
            command.stdout(Stdio::piped());
        }
        let name = command.get_program().to_owned();
        let mut child =
            command.spawn().with_context(|| format!("cannot run the compiler {name:?}"))?;
        let mut text = Vec::new();
        if let Some(out) = &mut child.stdout {
            out.read_to_end(&mut text)?;
        }
        let status = child.wait()?;
        if let Some(signal) = status.signal() {
            // SAFETY: raises in this process the signal that ended the compiler; no memory is involved.
            unsafe { libc::raise(signal) };
        }
        if !status.success() {
            return Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1));
        }
        if to_stdout {
            let filtered = self.filter(&text, "the compiler's output")?;
            std::io::stdout().write_all(&filtered)?;
            return Ok(0);
        }
        for path in request.assembly_files() {
            let text =
                std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let filtered = self.filter(&text, &path.display().to_string());
            if filtered.is_err() {
                // It has hooks of functions that are not wanted.
                let _ = std::fs::remove_file(&path);
            }
            std::fs::write(&path, filtered?)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(0)
    }

    /// Without the hooks that are not wanted.
    fn filter(&self, text: &[u8], name: &str) -> Result<Vec<u8>> {
        let here = std::env::current_dir().unwrap_or_default();
        let options = assembly::Options {
            selection: &self.selection,
            drop_line_info: self.drop_line_info && is_compilers(text),
            paths: &|path| whole_paths(&here, path),
        };
        let (mut text, met) = match self.late {
            Some(late) => match late::insert(text, &options, late) {
                // Code is made when the program is linked, and comes here then.
                Err(assembly::Error::NoCode) => return Ok(text.to_vec()),
                hooked => {
                    let hooked = hooked.with_context(|| {
                        format!("{name}: take --teeperf-hooks=source for this file")
                    })?;
                    (hooked.text, hooked.met)
                }
            },
            None => {
                let filtered = assembly::filter(text, &options).with_context(|| {
                    format!("{name}: leave --teeperf-only, --teeperf-exclude and --teeperf-min-size away for this file")
                })?;
                (filtered.text, filtered.met)
            }
        };
        if !met.is_empty() {
            text.extend_from_slice(told::assembly(&self.selection, &met).as_bytes());
        }
        Ok(text)
    }

    /// The folder in which this command is called `as`, made if it is not there.
    fn folder(&self) -> Result<PathBuf> {
        let own = std::env::current_exe().context("where this command stands")?;
        let plan = self.print()?;
        let mut key = plan.clone();
        key.extend_from_slice(own.as_os_str().as_bytes());
        key.extend_from_slice(MARKED.as_bytes());
        let name = format!("selection-{:032x}", bundle::fingerprint(&key));
        let folder = bundle::folder()?.join(name);
        let link = folder.join("as");
        if std::fs::read_link(&link).is_ok_and(|to| to == own) {
            return Ok(folder);
        }
        std::fs::create_dir_all(&folder)?;
        bundle::write_atomically(&folder.join(PLAN), &plan, 0o600)?;
        bundle::write_atomically(&folder.join(SPECS), MARKED.as_bytes(), 0o600)?;
        match std::os::unix::fs::symlink(&own, &link) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(error).with_context(|| format!("cannot make {}", link.display()))
            }
            _ => Ok(folder),
        }
    }

    /// What stands in lines: an error where a word has more than one.
    fn print(&self) -> Result<Vec<u8>> {
        let words = [&self.program].into_iter().chain(&self.words);
        if let Some(word) = words.into_iter().find(|word| word.as_bytes().contains(&b'\n')) {
            bail!(
                "{word:?}: with a choice of functions, no line may end in a compiler's name or words"
            );
        }
        let mut text = Vec::new();
        let mut line = |start: &str, word: &OsStr| {
            text.extend_from_slice(start.as_bytes());
            text.extend_from_slice(word.as_bytes());
            text.push(b'\n');
        };
        line(PROGRAM, &self.program);
        self.words.iter().for_each(|word| line(WORD, word));
        for (is_so, name) in [
            (self.is_clang, IS_CLANG),
            (self.drop_line_info, DROP_LINES),
            (self.late.is_some(), LATE),
            (self.late.is_some_and(|late| late.counts_itself), COUNTS_ITSELF),
            (self.late.is_some_and(|late| late.with_library), WITH_LIBRARY),
        ] {
            if is_so {
                line(name, OsStr::new(""));
            }
        }
        text.extend_from_slice(self.selection.to_string().as_bytes());
        Ok(text)
    }

    fn read(path: &Path) -> Result<Self> {
        let text =
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut plan = Self {
            program: OsString::new(),
            words: Vec::new(),
            is_clang: false,
            drop_line_info: false,
            selection: String::from_utf8_lossy(&text).parse()?,
            late: None,
        };
        for line in text.split(|&byte| byte == b'\n') {
            let behind = |start: &str| {
                line.strip_prefix(start.as_bytes()).map(|word| OsString::from_vec(word.to_vec()))
            };
            if let Some(program) = behind(PROGRAM) {
                plan.program = program;
            } else if let Some(word) = behind(WORD) {
                plan.words.push(word);
            }
            plan.is_clang |= line == IS_CLANG.as_bytes();
            plan.drop_line_info |= line == DROP_LINES.as_bytes();
        }
        let has =
            |name: &str| text.split(|&byte| byte == b'\n').any(|line| line == name.as_bytes());
        plan.late = has(LATE)
            .then(|| Late { counts_itself: has(COUNTS_ITSELF), with_library: has(WITH_LIBRARY) });
        ensure!(!plan.program.is_empty(), "{} names no assembler", path.display());
        Ok(plan)
    }
}

/// Whether this command was called as an assembler; then where its plan stands.
pub(crate) fn plan_of(name: &Path) -> Option<PathBuf> {
    let folder = name.parent().filter(|_| name.file_name() == Some(OsStr::new("as")))?;
    let is_ours = folder.file_name()?.as_bytes().starts_with(b"selection-");
    Some(folder.join(PLAN)).filter(|plan| is_ours && plan.is_file())
}

/// Stands in for the assembler: takes hooks out of what it is to read, then becomes it.
pub(crate) fn become_assembler(plan: &Path, arguments: Vec<OsString>) -> Result<u8> {
    let plan = Plan::read(plan)?;
    let (inputs, mut options) = taken_apart(arguments);
    let (text, name) = match &inputs[..] {
        [] => (None, OsString::from("the compiler's output")),
        [one] if one == "-" => (None, OsString::from("the compiler's output")),
        [one] => (Some(Path::new(one)), one.clone()),
        _ => {
            bail!("the compiler gave several files to its assembler, which is not of a known form")
        }
    };
    let text = match text {
        Some(path) => {
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?
        }
        None => {
            let mut text = Vec::new();
            std::io::stdin().read_to_end(&mut text)?;
            text
        }
    };
    let mut text = plan.filter(&text, &name.to_string_lossy())?;
    if plan.drop_line_info && is_compilers(&text) {
        // Asked for along with the compiler's lines: lines of the assembly itself.
        options.retain(|option| {
            !option.as_bytes().starts_with(b"-g") && !option.as_bytes().starts_with(b"--g")
        });
    }
    let mut command = Command::new(&plan.program);
    command.args(&plan.words);
    if plan.is_clang {
        options = clang_text::options(options);
        // Versions before 5 tell of lines in another form; what the compiler wrote is of one of them.
        if let Some(version) = clang_text::dwarf_version(&text) {
            command.arg(format!("-fdebug-default-version={version}"));
        }
        clang_text::without_some_checksums(&mut text);
        clang_text::quote_names(&mut text);
        clang_text::end_intel_syntax(&mut text);
        command.args(["-Wno-unused-command-line-argument", "-c", "-x", "assembler"]);
    }
    let mut child = command
        .args(options)
        .arg("-")
        .stdin(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run the assembler {:?}", plan.program))?;
    if let Some(mut input) = child.stdin.take() {
        // One that reads no further says why.
        let _ = input.write_all(&text);
    }
    let status = child.wait()?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Inputs, and all other words of an assembler.
fn taken_apart(arguments: Vec<OsString>) -> (Vec<OsString>, Vec<OsString>) {
    const WITH_VALUE: [&str; 6] = ["-o", "-I", "--defsym", "-defsym", "--MD", "--debug-prefix-map"];
    let (mut inputs, mut options) = (Vec::new(), Vec::new());
    let mut words = arguments.into_iter();
    while let Some(word) = words.next() {
        if word == "-" || !word.as_bytes().starts_with(b"-") {
            inputs.push(word);
            continue;
        }
        let takes_value = WITH_VALUE.contains(&word.to_str().unwrap_or(""));
        options.push(word);
        if takes_value {
            options.extend(words.next());
        }
    }
    (inputs, options)
}

/// Whether a compiler wrote it, and no hand: the line information in it is what was asked for.
fn is_compilers(text: &[u8]) -> bool {
    let start = &text[..text.len().min(4096)];
    start.starts_with(b"\t.") && start.windows(8).any(|part| part == b"\t.file\t\"")
}

/// A file as the compiler names it: from the root on, and with links followed.
fn whole_paths(here: &Path, path: &str) -> Vec<String> {
    let path = here.join(path);
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(plain.pop()),
            std::path::Component::CurDir => {}
            part => plain.push(part),
        }
    }
    let linked = path.canonicalize().ok().filter(|linked| *linked != plain);
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    [Some(plain), linked].into_iter().flatten().map(text).collect()
}

/// The assembler that gcc takes.
fn assembler(compiler: &RealCompiler, options: &[OsString]) -> Result<OsString> {
    let mut command = Command::new(&compiler.path);
    command.args(&compiler.words).args(options).arg("-print-prog-name=as");
    let output = command
        .output()
        .with_context(|| format!("cannot run the compiler {}", compiler.path.display()))?;
    let name = output.stdout.trim_ascii();
    ensure!(
        output.status.success() && !name.is_empty(),
        "{} does not say what its assembler is",
        compiler.path.display()
    );
    Ok(OsStr::from_bytes(name).to_owned())
}
