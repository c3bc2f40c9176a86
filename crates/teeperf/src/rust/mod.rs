//! Hooks in Rust programs whose source says nothing of them: the compiler is asked which functions it makes, and then told by
//! name which of them are to call hooks.
//!
//! LLVM has calls of hooks put into a function that has two attributes, which rustc gives to none; and it reads
//! attributes from a file (`-forceattrs-csv-path`), which names functions as the linker knows them. So each crate is compiled
//! twice: once up to the point where names are known, without optimising, and then whole.
//!
//! * [`Plan`]: of which crates which functions are wanted; [`become_rustc`]: what cargo calls in the compiler's place;
//! * `request`: a call of the compiler; `functions`: what it makes; `names`: whose these are.

mod functions;
mod names;
mod plan;
mod request;

use crate::{bundle, shell};
use anyhow::{Context, Result, ensure};
use functions::Defined;
pub(crate) use plan::{COMPILER, Plan, folder_of};
use request::Request;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// What LLVM says of each function of the file that is not in a module.
const NOT_THERE: &[u8] = b"Function in CSV file at line ";
/// The descriptor by which the compiler is given the file: a name without spaces, and the same in each build.
const DESCRIPTOR: i32 = 200;

/// Stands in for rustc, as cargo calls it: the compiler's file, then its words.
pub(crate) fn become_rustc(folder: &Path, words: Vec<OsString>) -> Result<u8> {
    let (rustc, words) =
        words.split_first().context("cargo calls this with the compiler behind it")?;
    let request = Request::read(words)?;
    let plan = Plan::read(folder)?;
    if !request.makes_code() || !plan.has(request.crate_name()) {
        let error = Command::new(rustc).args(words).exec();
        return Err(error).with_context(|| format!("cannot run {}", rustc.display()));
    }
    let name = request.crate_name();
    let work = tempfile::Builder::new().prefix(".teeperf-").tempdir_in(request.folder());
    let work = work.context("no place for the compiler's output")?;
    let listed = list(rustc, &request, &plan, work.path())?;
    let Some(hooked) = listed else {
        // The compiler says what it is that it does not compile.
        let status = Command::new(rustc).args(words).status()?;
        if status.success() {
            note!(
                "teeperf: {name} has no hooks: the compiler did not say which functions it makes"
            );
        }
        return Ok(code(status));
    };
    let attributes = attributes(&hooked, plan.after_inlining)?;
    let mut command = Command::new(rustc);
    command.args(words).args(request.common(work.path(), "code"));
    command.args(request.hooks(plan.after_inlining, &format!("/proc/self/fd/{DESCRIPTOR}")));
    if request.links() {
        link(&mut command, &request, folder);
    }
    let descriptor = attributes.as_raw_fd();
    // SAFETY: between fork and exec it makes one call, which is async-signal-safe; the copy stays open across exec.
    unsafe {
        command.pre_exec(move || match libc::dup2(descriptor, DESCRIPTOR) {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    let (status, lines) = run(&mut command)?;
    if status.success() {
        let missing = (lines / (3 + usize::from(plan.after_inlining))).min(hooked.len());
        let count = hooked.len() - missing;
        let functions = if count == 1 { "function has" } else { "functions have" };
        note!("teeperf: {count} {functions} hooks in {name}");
        if missing > 0 {
            note!(
                "teeperf: {missing} functions have none: the compiler made them under other names"
            );
        }
    }
    Ok(code(status))
}

/// Whether the compiler takes a file of attributes, and LLVM follows them.
pub(crate) fn check(rustc: &OsStr) -> Result<()> {
    let attributes = attributes(&["teeperf_probe".into()], false)?;
    let mut command = Command::new(rustc);
    command.args([
        "--crate-name",
        "probe",
        "--crate-type",
        "lib",
        "--emit=asm=-",
        "-Copt-level=2",
        "-",
    ]);
    command.arg(format!(
        "-Cllvm-args=-forceattrs-csv-path=/proc/{}/fd/{}",
        std::process::id(),
        attributes.as_raw_fd()
    ));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run the Rust compiler {}", rustc.display()))?;
    if let Some(mut source) = child.stdin.take() {
        // One that reads nothing says nothing of hooks either.
        let _ = source.write_all(b"#![no_std]\n#[no_mangle]\npub fn teeperf_probe() {}\n");
    }
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let is_there = |hook: &str| text.contains(hook);
    ensure!(
        is_there("__cyg_profile_func_enter") && is_there("__cyg_profile_func_exit"),
        "{} gives no hooks to functions that it is told by name: it takes LLVM's -forceattrs-csv-path, which rustc 1.95 and later are \
         known to have",
        rustc.display()
    );
    Ok(())
}

/// The names of the functions that are to have hooks; none where the compiler fails.
fn list(rustc: &OsStr, request: &Request, plan: &Plan, work: &Path) -> Result<Option<Vec<String>>> {
    let file = work.join("functions.ll");
    let mut command = Command::new(rustc);
    command.args(request.without_output()).args(request.common(work, "names"));
    let mut emit = OsString::from("--emit=llvm-ir=");
    emit.push(&file);
    command.arg(emit).arg("-Cno-prepopulate-passes");
    command.arg(if plan.selection.needs_files() {
        "-Cdebuginfo=line-tables-only"
    } else {
        "-Cdebuginfo=0"
    });
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot run {}", rustc.display()))?;
    if !output.status.success() {
        return Ok(None);
    }
    let text = std::fs::File::open(&file).with_context(|| file.display().to_string())?;
    let here = std::env::current_dir().unwrap_or_default();
    let defined = Defined::read(BufReader::new(text))?;
    Ok(Some(defined.wanted(plan, &here)))
}

/// The file of attributes, in memory: two hooks for each function, and more that have these tell the truth.
fn attributes(names: &[String], after_inlining: bool) -> Result<std::fs::File> {
    let when = if after_inlining { "-inlined" } else { "" };
    let mut text = String::new();
    for (number, name) in names.iter().enumerate() {
        // Of functions that differ in nothing but what they tell hooks, their own address, LLVM keeps one, unless their
        // attributes differ, whatever these say.
        text += &format!("{name},teeperf-function={number}\n");
        for (side, hook) in [("entry", "enter"), ("exit", "exit")] {
            text += &format!("{name},instrument-function-{side}{when}=__cyg_profile_func_{hook}\n");
        }
        if after_inlining {
            // Behind a call in tail position there is no place for a hook.
            text += &format!("{name},disable-tail-calls=true\n");
        }
    }
    // SAFETY: a name that ends; the descriptor is new, and nobody else's.
    let mut file = unsafe {
        let descriptor = libc::memfd_create(c"teeperf-hooks".as_ptr(), libc::MFD_CLOEXEC);
        ensure!(descriptor >= 0, "no memory for names: {}", std::io::Error::last_os_error());
        <std::fs::File as std::os::fd::FromRawFd>::from_raw_fd(descriptor)
    };
    file.write_all(text.as_bytes())?;
    Ok(file)
}

/// Has the program linked by `teeperf cc`, which stands in for the linker that it would have.
fn link(command: &mut Command, request: &Request, folder: &Path) {
    let mut linker = OsString::from("-Clinker=");
    linker.push(folder.join(plan::LINKER));
    command.arg(linker);
    for flag in bundle::link_flags("rust") {
        command.arg(format!("-Clink-arg={flag}"));
    }
    if let Some(linker) = request.linker() {
        command.env(crate::compiler::Driver::C.variable(), shell::quoted(linker));
    }
}

/// Runs the compiler, and hands on what it says but for functions that are not there; how many lines told of these.
fn run(command: &mut Command) -> Result<(ExitStatus, usize)> {
    let mut child = command
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let mut missing = 0;
    if let Some(said) = child.stderr.take() {
        let mut said = BufReader::new(said);
        let mut line = Vec::new();
        while said.read_until(b'\n', &mut line)? > 0 {
            if line.starts_with(NOT_THERE) {
                missing += 1;
            } else {
                std::io::stderr().write_all(&line)?;
            }
            line.clear();
        }
    }
    Ok((child.wait()?, missing))
}

fn code(status: ExitStatus) -> u8 {
    if let Some(signal) = status.signal() {
        // SAFETY: raises in this process the signal that ended the compiler; no memory is involved.
        unsafe { libc::raise(signal) };
    }
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
