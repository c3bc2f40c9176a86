//! Compiles crates of ours without cargo, with nothing but the Rust compiler. Included by path wherever that is
//! done: when the command is built, and by the command where it builds for other machines.

use std::path::Path;
use std::process::Command;

/// Builds crates without cargo: each from its folder below `crates`, libraries into `out`, with `flags` for
/// the compiler beside the usual ones.
pub struct Build<'a> {
    /// See above.
    pub crates: &'a Path,
    /// See above.
    pub out: &'a Path,
    /// See above.
    pub flags: &'a [&'a str],
}

impl Build<'_> {
    /// A crate that others use.
    pub fn library(&self, name: &str, uses: &[&str]) -> Result<(), String> {
        self.rustc(name, uses, &self.out.join(format!("lib{name}.rlib")), &["--crate-type=rlib"])
    }

    /// A crate as something else.
    pub fn rustc(
        &self,
        name: &str,
        uses: &[&str],
        output: &Path,
        more: &[&str],
    ) -> Result<(), String> {
        let source = format!("{}/src/lib.rs", name.replace('_', "-"));
        self.source(&source, name, uses, output, more)
    }

    /// A file below `crates`, as a crate of this name.
    pub fn source(
        &self,
        source: &str,
        name: &str,
        uses: &[&str],
        output: &Path,
        more: &[&str],
    ) -> Result<(), String> {
        let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let mut command = Command::new(compiler);
        command.arg(self.crates.join(source)).args(["--edition=2024", "--crate-name", name]);
        command.args(["-Copt-level=3", "-Ccodegen-units=1", "-Cpanic=abort", "-Cdebuginfo=0"]);
        command.args(["-Crelocation-model=pic", "--cap-lints=allow"]);
        command.arg("-L").arg(self.out);
        for used in uses {
            let library = self.out.join(format!("lib{used}.rlib"));
            command.arg("--extern").arg(format!("{used}={}", library.display()));
        }
        run(command.args(self.flags).args(more).arg("-o").arg(output))
    }
}

/// Runs a command; an error has what it printed.
pub fn run(command: &mut Command) -> Result<(), String> {
    let result = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if result.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}\n{}", result.status, String::from_utf8_lossy(&result.stderr)))
}
