//! Builds what programs are linked with, from the sources of `teeperf-wire`, `teeperf-tally`, `teeperf-rt`
//! and `teeperf-stub`, with nothing but the Rust compiler and the C toolchain it links with. Included by
//! path from the build script of whatever embeds the runtime, and from the runtime's own tests.
//!
//! * `teeperf_stub.o`: into every hooked module;
//! * `libteeperf_wrap.a`: likewise; a link takes the wrappers it needs from it;
//! * `teeperf_rt.o`: into executables; every symbol local but `teeperf_rt_*`;
//! * `libteeperf.so`: the same runtime, to be preloaded where the executable has none.

#[path = "compile.rs"]
mod compile;

pub use compile::{Build, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Symbols of the runtime that stubs and programs refer to weakly. An executable exports them
/// to the shared libraries of its process.
pub const EXPORTED: [&str; 25] = [
    "teeperf_rt_register",
    "teeperf_rt_unregister",
    "teeperf_rt_event",
    "teeperf_rt_leap",
    "teeperf_rt_context",
    "teeperf_rt_context_made",
    "teeperf_rt_catch",
    "teeperf_rt_left",
    "teeperf_rt_pause",
    "teeperf_rt_resume",
    "teeperf_rt_recording",
    "teeperf_rt_note",
    "teeperf_rt_stack_switch",
    "teeperf_rt_stack_new",
    "teeperf_rt_stack_enter",
    "teeperf_rt_stack_memory",
    "teeperf_rt_version",
    "teeperf_rt_now",
    "teeperf_rt_wait",
    "teeperf_rt_point",
    "teeperf_rt_restrict",
    "teeperf_rt_namespace",
    "teeperf_rt_sigaction",
    "teeperf_rt_signal",
    "teeperf_rt_unblock",
];

/// Functions whose wrappers (`-Wl,--wrap=`) are objects of the archive: features of `teeperf-stub`.
pub const WRAPPED: [&str; 21] = [
    "setjmp",
    "_setjmp",
    "__sigsetjmp",
    "longjmp",
    "_longjmp",
    "siglongjmp",
    "__longjmp_chk",
    "vfork",
    "getcontext",
    "setcontext",
    "swapcontext",
    "makecontext",
    "prctl",
    "syscall",
    "seccomp_load",
    "dlmopen",
    "sigaction",
    "signal",
    "__sysv_signal",
    "sigprocmask",
    "pthread_sigmask",
];

/// Where the built files are.
#[derive(Clone, Debug)]
pub struct Outputs {
    /// `teeperf_stub.o`.
    pub stub: PathBuf,
    /// `libteeperf_wrap.a`.
    pub wrap: PathBuf,
    /// `teeperf_rt.o`.
    pub runtime: PathBuf,
    /// `libteeperf.so`.
    pub preload: PathBuf,
}

impl Outputs {
    /// Where they are once [`build`] has made them in this folder.
    pub fn below(out: &Path) -> Self {
        Self {
            stub: out.join("teeperf_stub.o"),
            wrap: out.join("libteeperf_wrap.a"),
            runtime: out.join("teeperf_rt.o"),
            preload: out.join("libteeperf.so"),
        }
    }
}

/// Builds everything into `out`, for the compiler's own target. `crates` is the folder that the crates are
/// in. An error says which command failed, and how.
pub fn build(crates: &Path, out: &Path) -> Result<Outputs, String> {
    // Threads are cancelled, and debuggers unwind, within the runtime.
    let build = Build { crates, out, flags: &["-Cforce-unwind-tables=yes"] };
    build.library("teeperf_wire", &[])?;
    build.library("teeperf_tally", &["teeperf_wire"])?;

    let outputs = Outputs::below(out);
    let object = ["--crate-type=lib", "--emit=obj"];
    let stub = |output: &Path, feature: &str| {
        let feature = format!("--cfg=feature=\"{feature}\"");
        let more = [&object[..], &[&feature]].concat();
        build.rustc("teeperf_stub", &["teeperf_wire"], output, &more)
    };
    stub(&outputs.stub, "hooks")?;
    let mut members = Vec::new();
    for wrapper in WRAPPED {
        let member = out.join(format!("teeperf_wrap_{wrapper}.o"));
        stub(&member, wrapper)?;
        members.push(member);
    }
    let _ = std::fs::remove_file(&outputs.wrap);
    run(tool("ar").arg("crs").arg(&outputs.wrap).args(&members))?;

    // As a static library with link-time optimisation, so that what it uses of Rust's core library
    // comes with it, and nothing else does.
    let library = out.join("libteeperf_rt.a");
    let whole = ["--crate-type=staticlib", "-Clto=fat", "--cfg=feature=\"object\""];
    build.rustc("teeperf_rt", &["teeperf_wire", "teeperf_tally"], &library, &whole)?;
    let linked = out.join("teeperf_rt_linked.o");
    let mut link = tool("ld");
    let script = crates.join("teeperf-rt/runtime.ld");
    link.args(["-r", "--gc-sections", "-T"]).arg(script).arg("-o").arg(&linked);
    link.args(EXPORTED.map(|name| format!("--undefined={name}"))).arg(&library);
    run(&mut link)?;
    let mut localise = tool("objcopy");
    localise.args(EXPORTED.map(|name| format!("--keep-global-symbol={name}")));
    localise.args(["--remove-section=.comment"]);
    run(localise.args(["--strip-debug"]).arg(&linked).arg(&outputs.runtime))?;
    let mut preload = tool("cc");
    preload.args(["-shared", "-nostdlib", "-Wl,-soname,libteeperf.so", "-Wl,-z,noexecstack", "-o"]);
    run(preload.arg(&outputs.preload).arg(&outputs.runtime))?;
    Ok(outputs)
}

/// A tool, or what the environment has in its place, as `CC` for `cc`. That may be several words, as
/// in `ccache gcc`. `teeperf cc` of an earlier installation is not taken: it links its own runtime.
pub fn tool(name: &str) -> Command {
    let wanted = std::env::var(name.to_uppercase()).unwrap_or_default();
    let first = wanted.split_whitespace().next().and_then(|first| Path::new(first).file_name());
    let is_ours = first.is_some_and(|first| first.as_encoded_bytes().starts_with(b"teeperf"));
    let mut words = wanted.split_whitespace().filter(|_| !is_ours);
    let mut command = Command::new(words.next().unwrap_or(name));
    command.args(words);
    command
}
