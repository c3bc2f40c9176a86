//! What to do about functions whose time is that of going into the kernel or out of a TEE, in plain words; every view says the same.

use teeperf_profile::crossings::{Crossing, Evidence, Kind};
use teeperf_profile::model::Profile;

use crate::names::printable;
use crate::units::{self, count, percent_inline};

/// Names of what a function's code calls that are told, at most.
const MOST_NAMES: usize = 3;

/// What is so, and what to do next.
pub(crate) struct Advice {
    /// A sentence or two.
    pub(crate) what: String,
    /// What to try.
    pub(crate) next: &'static str,
}

/// The advice that follows from a crossing.
pub(crate) fn of(profile: &Profile, crossing: &Crossing) -> Advice {
    let row = &crossing.row;
    let function = profile.functions.get(row.function.0 as usize);
    let name = printable(function.map_or("[unknown]", |function| &function.name));
    let each = units::time_inline(profile.info.unit, row.total.value / row.calls.max(1) as f64);
    let about = if row.total.is_uncertain() { "about " } else { "" };
    let what = format!(
        "{about}{} of the time is {name}: {} calls of {about}{each} each. {}",
        percent_inline(crossing.share),
        count(row.calls),
        known_from(crossing)
    );
    Advice { what: capitalised(what), next: next(crossing.kind) }
}

fn capitalised(text: String) -> String {
    match text.strip_prefix("about ") {
        Some(rest) => format!("About {rest}"),
        None => text,
    }
}

fn known_from(crossing: &Crossing) -> String {
    match &crossing.evidence {
        Evidence::Pattern => "It crosses, as --crossing says.".into(),
        Evidence::Name if crossing.kind == Some(Kind::Exit) => {
            "By its name it is a way out of the TEE.".into()
        }
        Evidence::Name => format!("By its name it is a system call{}.", unless_answered(crossing.kind)),
        Evidence::Code(names) => {
            let more = match names.len().saturating_sub(MOST_NAMES) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let names: Vec<String> =
                names.iter().take(MOST_NAMES).map(|name| printable(name)).collect();
            let what = match crossing.kind {
                Some(Kind::Exit) => "out of the TEE".to_owned(),
                kind => format!("into the kernel{}", unless_answered(kind)),
            };
            format!("Its code calls {}{more}, which goes {what}.", names.join(", "))
        }
        Evidence::Cost => "What it calls is not known here; it calls nothing that has hooks, and takes as long as a way \
                           into the kernel or out of a TEE and back does."
            .into(),
    }
}

/// Time stamps often are no system calls.
fn unless_answered(kind: Option<Kind>) -> &'static str {
    match kind {
        Some(Kind::Time) => " unless the vDSO answers it, and out of a TEE always",
        _ => "",
    }
}

fn next(kind: Option<Kind>) -> &'static str {
    match kind {
        Some(Kind::Constant) => "The answer hardly ever changes: ask once, and keep it.",
        Some(Kind::Time) => {
            "Take fewer time stamps: one for many operations, or one that is kept and refreshed now and then."
        }
        Some(Kind::Random) => "Draw many at once, or have a generator of your own and seed it so.",
        Some(Kind::Data) => "Move more with each call: collect what is small, or map it.",
        Some(Kind::System | Kind::Exit) => "Keep what it returns, or do many with one.",
        None => {
            "If it is one, keep what it returns, or do many with one; if it computes, no advice."
        }
    }
}

/// What programs know a kind by.
pub(crate) fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Constant => "constant",
        Kind::Time => "time",
        Kind::Random => "random",
        Kind::Data => "data",
        Kind::System => "system",
        Kind::Exit => "exit",
    }
}

/// What programs know evidence by.
pub(crate) fn evidence_name(evidence: &Evidence) -> &'static str {
    match evidence {
        Evidence::Pattern => "pattern",
        Evidence::Name => "name",
        Evidence::Code(_) => "code",
        Evidence::Cost => "cost",
    }
}
