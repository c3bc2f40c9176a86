//! The kinds of hooks that are judged, one beside the other.

use std::path::Path;
use std::process::Command;

use crate::bench::hooks::Hooks;
use crate::bench::lab::Lab;

/// Where a program's hooks come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The compiler puts them into all functions of the source, before it inlines.
    Source,
    /// The wrapper puts them into the assembly, after all of the compiler's work.
    Late,
    /// None: perf samples the program, as often as new hooks are to. It tells what is possible,
    /// and whether the truth is one.
    Perf,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Source, Self::Late, Self::Perf];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Late => "late",
            Self::Perf => "perf",
        }
    }

    /// What builds have them.
    pub(super) fn hooks(self) -> Hooks {
        match self {
            Self::Source => Hooks::Source,
            Self::Late => Hooks::Late,
            Self::Perf => Hooks::None,
        }
    }

    /// In how many rounds it is recorded, at most. perf is there for comparison alone.
    pub(super) fn rounds(self) -> usize {
        if self == Self::Perf { 1 } else { 2 }
    }

    /// Whether the wrapper under test knows them.
    pub(super) fn is_offered(self, lab: &Lab) -> bool {
        let compile = |words: &str| {
            let mut words = words.split(' ');
            let mut command = Command::new(words.next().unwrap_or_default());
            command.args(words).args(["-c", "-x", "c", "/dev/null", "-o"]);
            command.arg(lab.scratch("offered.o"));
            command.output().is_ok_and(|output| output.status.success())
        };
        lab.compilers(self.hooks()).is_ok_and(|compilers| compile(&compilers.cc))
    }
}

/// Whether a file is a program that this kind can be built into: Rust's hooks are those of an
/// attribute in the source.
pub(super) fn fits(kind: Kind, source: &Path) -> bool {
    kind != Kind::Late || source.file_name().is_none_or(|name| name != "rust")
}
