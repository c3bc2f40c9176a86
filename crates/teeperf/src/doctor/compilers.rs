//! Compilers that `teeperf cc` and `teeperf c++` can stand in for, and Rust's.

use super::{Finding, Verdict, trial};
use crate::bundle;
use crate::compiler::{Driver, candidates};
use crate::sdk;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

const AREA: &str = "compilers";

/// Tries each of them.
pub(super) fn examine(begins: &mut dyn FnMut(&str)) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Err(error) = bundle::needs_hooks() {
        findings.push(Finding::note(AREA, error.to_string()));
    } else {
        for (driver, wrapper) in [(Driver::C, "cc"), (Driver::Cxx, "c++")] {
            findings.extend(of_language(driver, wrapper, begins));
        }
    }
    findings.push(rust());
    findings
}

fn of_language(driver: Driver, wrapper: &str, begins: &mut dyn FnMut(&str)) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut tried: Vec<PathBuf> = Vec::new();
    for candidate in candidates(driver) {
        let (name, path) = match candidate {
            Ok(found) => found,
            Err(why) => {
                let next = format!("set {} to a compiler, or to nothing", driver.variable());
                findings.push(Finding::missing(AREA, why, next));
                continue;
            }
        };
        // Several names of one file are one compiler.
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if tried.contains(&real) {
            continue;
        }
        tried.push(real);
        begins(&format!("trying {}", name.to_string_lossy()));
        let told = told(&name, &path);
        findings.push(match trial::run(wrapper, &name) {
            Ok(()) => {
                let text = format!(
                    "{told}: three functions built, linked, recorded and read back, counts exact"
                );
                Finding::ready(AREA, text)
            }
            Err(failure) => {
                Finding::warning(AREA, format!("{told}: {}", failure.text), failure.next)
            }
        });
    }
    let works = findings.iter().any(|finding| finding.verdict == Verdict::Ready);
    if !works && driver == Driver::C {
        let next = format!(
            "install gcc or clang (Debian: apt install gcc libc6-dev), or name one in {}",
            driver.variable()
        );
        findings.push(Finding::missing(AREA, "no C compiler builds programs with hooks", next));
    } else if !works && findings.is_empty() {
        let next = "for C++ programs install g++ or clang (Debian: apt install g++)";
        findings.push(Finding {
            verdict: Verdict::Note,
            ..Finding::warning(AREA, "no C++ compiler", next)
        });
    }
    findings
}

/// A compiler's name with its version and place.
fn told(name: &OsString, path: &Path) -> String {
    let output = Command::new(path).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let version =
        text.ok().and_then(|text| text.lines().next().map(str::to_owned)).unwrap_or_default();
    let place = path.display();
    match version.trim() {
        "" => format!("{} ({place})", name.to_string_lossy()),
        version => format!("{} ({place}, {version})", name.to_string_lossy()),
    }
}

/// What `install-sdk` compiles with.
fn rust() -> Finding {
    const AREA: &str = "Rust";
    match sdk::compiler() {
        Ok(told) => Finding::ready(AREA, format!("{told}: for `teeperf install-sdk`")),
        Err(error) => {
            let text = format!("`teeperf install-sdk` cannot compile: {error:#}");
            let next = "only code without a system needs it: install Rust (https://rustup.rs)";
            Finding { verdict: Verdict::Note, ..Finding::warning(AREA, text, next) }
        }
    }
}
