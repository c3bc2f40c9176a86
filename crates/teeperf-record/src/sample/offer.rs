//! What the kernel lets be sampled here: tried out on this process.

use super::attr::{Attr, CPU_CLOCK, CYCLES, FORMAT_LOST, Kind, flag};
use super::options::{Rate, Sampling};
use std::fmt;
use std::io;

/// What samples are to be taken of, and what the kernel can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(super) kind: Kind,
    pub(super) with_kernel: bool,
    /// What it tells of code has build-ids.
    pub(super) build_ids: bool,
    /// It counts what found no room.
    pub(super) counts_lost: bool,
    /// Why this event, and not another.
    pub(super) reason: Option<String>,
}

/// Why nothing can be sampled.
#[derive(Debug)]
pub struct Refused {
    error: io::Error,
    /// `kernel.perf_event_paranoid`.
    paranoid: Option<i32>,
}

impl Chosen {
    /// For the user: what it is, and why.
    pub(crate) fn told(&self) -> String {
        let mut text = format!("samples are of {}", self.name());
        if let Some(reason) = &self.reason {
            text += &format!(": {reason}");
        }
        if !self.with_kernel {
            text += "; of the kernel there are none (kernel.perf_event_paranoid)";
        }
        text
    }

    /// Name as perf has it.
    pub(crate) fn name(&self) -> String {
        format!("{}{}", self.kind.name, if self.with_kernel { "" } else { ":u" })
    }
}

/// Chooses what can be sampled so.
pub(crate) fn choose(wish: &Sampling) -> Result<Chosen, Refused> {
    let mut reason = None;
    // A length of time is one of a clock.
    let kinds = match wish.rate {
        Rate::Frequency(_) => &[CYCLES, CPU_CLOCK][..],
        Rate::Period(_) => &[CPU_CLOCK],
    };
    let mut last = io::Error::from(io::ErrorKind::Unsupported);
    for &kind in kinds {
        for with_kernel in [true, false] {
            let attr = Attr::new(kind).sampling(wish.stacks, with_kernel);
            match attr.open(0, -1) {
                Ok(_) => return Ok(equipped(kind, with_kernel, reason)),
                Err(error) => last = error,
            }
        }
        reason = Some(format!("there is no counter of {} here: {last}", kind.name));
    }
    Err(Refused { error: last, paranoid: paranoid() })
}

fn equipped(kind: Kind, with_kernel: bool, reason: Option<String>) -> Chosen {
    let takes = |attr: Attr| attr.open(0, -1).is_ok();
    let plain = Attr::new(CPU_CLOCK);
    let plain = Attr { flags: plain.flags | flag::EXCLUDE_KERNEL, ..plain };
    let counting = Attr { read_format: FORMAT_LOST, ..plain };
    let (build_ids, counts_lost) = (takes(plain.telling()), takes(counting));
    Chosen { kind, with_kernel, build_ids, counts_lost, reason }
}

/// See perf_event_open(2): from 3 on, which Debian and Ubuntu know, users without privileges may sample nothing.
fn paranoid() -> Option<i32> {
    let text = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?;
    text.trim().parse().ok()
}

impl Refused {
    /// What the user can do.
    pub fn advice(&self) -> String {
        match (self.error.raw_os_error(), self.paranoid) {
            (Some(libc::ENOSYS), _) => {
                "let the sandbox that this runs in have perf_event_open, or the kernel be built with it".into()
            }
            (_, Some(level)) if level > 2 => format!(
                "kernel.perf_event_paranoid is {level}: sudo sysctl kernel.perf_event_paranoid=1 lets users sample their \
                 own programs until the system is started again"
            ),
            _ => "in a container, start it with --cap-add PERFMON, and a seccomp profile that has perf_event_open".into(),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the kernel lets nothing be sampled (perf_event_open: {})", self.error)
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(number: i32, paranoid: Option<i32>) -> String {
        Refused { error: io::Error::from_raw_os_error(number), paranoid }.advice()
    }

    #[test]
    fn a_refusal_says_what_to_type() {
        let debian = advice(libc::EACCES, Some(3));
        assert!(debian.contains("sudo sysctl kernel.perf_event_paranoid=1"), "{debian}");
        let container = advice(libc::EPERM, Some(2));
        assert!(container.contains("--cap-add PERFMON"), "{container}");
        assert!(!container.contains("sysctl"));
        assert!(advice(libc::ENOSYS, None).contains("sandbox"));
    }

    #[test]
    fn a_period_is_one_of_a_clock() {
        let wish = Sampling { rate: Rate::Period(1_000_000), ..Sampling::default() };
        match choose(&wish) {
            Ok(chosen) => assert_eq!(chosen.kind, CPU_CLOCK),
            Err(refused) => eprintln!("skipped: {refused}"),
        }
    }
}
