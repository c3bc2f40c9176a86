//! What is ready and what is missing, each with the next step: on this machine, in a program, in a recording, in a process.
//! Finds out, and judges; how that is shown is `commands/doctor.rs`'.

mod compilers;
mod elf;
mod machine;
mod places;
mod process;
mod program;
mod recording;
mod sgx;
mod trial;

pub(crate) use process::examine as process;
pub(crate) use program::examine as program;
pub(crate) use recording::examine as recording;
use serde::Serialize;

/// How it stands with one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// It is as it should be.
    Ready,
    /// Worth knowing; nothing is to be done.
    Note,
    /// Something will not be as one may expect.
    Warning,
    /// Without it, what was asked about does not work.
    Missing,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// What it belongs to, such as `compilers`.
    pub(crate) area: &'static str,
    pub(crate) verdict: Verdict,
    /// What is so.
    pub(crate) text: String,
    /// What to do about it.
    pub(crate) next: Option<String>,
}

impl Finding {
    pub(crate) fn ready(area: &'static str, text: impl Into<String>) -> Self {
        Self { area, verdict: Verdict::Ready, text: text.into(), next: None }
    }

    pub(crate) fn note(area: &'static str, text: impl Into<String>) -> Self {
        Self { verdict: Verdict::Note, ..Self::ready(area, text) }
    }

    pub(crate) fn warning(
        area: &'static str,
        text: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self { verdict: Verdict::Warning, next: Some(next.into()), ..Self::ready(area, text) }
    }

    pub(crate) fn missing(
        area: &'static str,
        text: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self { verdict: Verdict::Missing, ..Self::warning(area, text, next) }
    }
}

/// What this machine has for SGX enclaves.
pub(crate) fn sgx() -> Vec<Finding> {
    sgx::examine()
}

/// All of this machine; what takes a while is told when it begins.
pub(crate) fn machine(begins: &mut dyn FnMut(&str)) -> Vec<Finding> {
    let mut findings = compilers::examine(begins);
    findings.extend(places::examine());
    findings.extend(machine::examine());
    findings
}
