//! Rust's core library, and what the compiler calls by itself, compiled from the sources of the same version as
//! the compiler: for targets that they are not installed for.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Command;

/// Its build script sets these, for targets whose C compiler gives it nothing.
const BUILTINS: [&str; 5] = [
    r#"feature="compiler-builtins""#,
    r#"feature="unstable-intrinsics""#,
    "intrinsics_enabled",
    "arch_enabled",
    "optimizations_enabled",
];
const BUILTINS_SOURCE: &str = "compiler-builtins/compiler-builtins/src/lib.rs";
const CORE_SOURCE: &str = "core/src/lib.rs";

/// Whether the folder has what is compiled: `library` of Rust's sources, of 2025 or later.
pub(crate) fn are_sources(library: &Path) -> bool {
    [CORE_SOURCE, BUILTINS_SOURCE].iter().all(|source| library.join(source).is_file())
}

/// What is to be run, in this order, so that `sysroot` has them for a target; its folders are made.
pub(crate) fn commands(
    compiler: &OsStr,
    library: &Path,
    triple: &str,
    sysroot: &Path,
) -> io::Result<[Command; 2]> {
    let to = sysroot.join("lib/rustlib").join(triple).join("lib");
    std::fs::create_dir_all(&to)?;
    let compile = |name: &str, source: &str| {
        let mut command = Command::new(compiler);
        command.args(["--crate-name", name, "--crate-type=rlib", "--edition=2024"]);
        command.arg(library.join(source)).args([
            "--target",
            triple,
            "--cap-lints=allow",
            "--sysroot",
        ]);
        command.arg(sysroot).args(["-Copt-level=2", "-Cpanic=abort", "-Cembed-bitcode=yes"]);
        // The core library is written in what the language has for it alone.
        command.env("RUSTC_BOOTSTRAP", "1").arg("--out-dir").arg(&to);
        command
    };
    let mut builtins = compile("compiler_builtins", BUILTINS_SOURCE);
    for feature in BUILTINS {
        builtins.args(["--cfg", feature]);
    }
    Ok([compile("core", CORE_SOURCE), builtins])
}
