//! What the system and the processor have to offer.

use super::Finding;
use std::io;
use std::path::Path;
use teeperf_record::Choice;
use teeperf_record::offers::{self, ClockOffer};

/// What was found out.
struct Facts {
    memory: io::Result<()>,
    socket: io::Result<()>,
    clock: ClockOffer,
    /// Bytes of the C library's area for restartable sequences, rseq(2); none without one.
    rseq: Option<u32>,
    /// What would be sampled, or why nothing can be, and the way out.
    sampling: Result<String, (String, String)>,
    /// As `/proc/self/status` has it: 0, or 1 strict, or 2 a filter.
    seccomp: u32,
    container: Option<&'static str>,
    optee: Optee,
    emulator: bool,
}

/// What there is for clients of OP-TEE's trusted applications.
struct Optee {
    library: bool,
    device: bool,
}

pub(super) fn examine() -> Vec<Finding> {
    judge(&Facts::gather())
}

impl Facts {
    fn gather() -> Self {
        let clock = offers::clock();
        let is_there = |path: &str| Path::new(path).exists();
        let folders = [
            "/usr/lib",
            "/usr/local/lib",
            "/lib",
            "/usr/lib/x86_64-linux-gnu",
            "/usr/lib/aarch64-linux-gnu",
        ];
        let names = ["libteec.so", "libteec.so.1", "libteec.so.2"];
        let library = folders
            .iter()
            .any(|folder| names.iter().any(|name| Path::new(folder).join(name).exists()));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let emulator =
            std::env::split_paths(&path).any(|folder| folder.join("qemu-system-aarch64").is_file());
        Self {
            memory: offers::shared_memory(),
            socket: offers::socket(),
            clock,
            rseq: rseq(),
            sampling: offers::sampling().map_err(|refused| (refused.to_string(), refused.advice())),
            seccomp: status("Seccomp").unwrap_or_default(),
            container: [("/run/.containerenv", "podman"), ("/.dockerenv", "docker")]
                .iter()
                .find(|(mark, _)| is_there(mark))
                .map(|(_, name)| *name),
            optee: Optee { library, device: is_there("/dev/tee0") },
            emulator,
        }
    }
}

/// Bytes of the area that the C library has registered with the kernel for each thread (glibc from 2.35 on).
fn rseq() -> Option<u32> {
    // SAFETY: the name is a string that ends with 0.
    let size = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()) };
    // SAFETY: glibc has an `unsigned int` of this name, which does not change.
    (!size.is_null()).then(|| unsafe { size.cast::<u32>().read() })
}

/// A number of `/proc/self/status`.
fn status(name: &str) -> Option<u32> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().parse().ok()
}

fn judge(facts: &Facts) -> Vec<Finding> {
    const SYSTEM: &str = "system";
    let mut findings = Vec::new();
    findings.push(match &facts.memory {
        Ok(()) => {
            Finding::ready(SYSTEM, "memory can be shared with programs, and sealed (memfd_create)")
        }
        Err(error) => Finding::missing(
            SYSTEM,
            format!("memory cannot be shared with programs (memfd_create, F_ADD_SEALS): {error}"),
            "Linux 5.1 or later is needed, and no seccomp filter that keeps memfd_create from it",
        ),
    });
    findings.push(match &facts.socket {
        Ok(()) => Finding::ready(SYSTEM, "programs can find the recorder (abstract sockets)"),
        Err(error) => Finding::missing(
            SYSTEM,
            format!("programs cannot find the recorder (abstract sockets of AF_UNIX): {error}"),
            "let the sandbox that this runs in have sockets",
        ),
    });
    findings.push(match facts.seccomp {
        0 => Finding::ready(SYSTEM, "no seccomp filter"),
        _ => Finding::note(
            SYSTEM,
            "a seccomp filter holds here; what was recorded above got through it, and programs may have stricter ones",
        ),
    });
    if let Some(name) = facts.container {
        let text = format!(
            "this is a container ({name}): the recorder and the program have to be in the same one, or in one network namespace"
        );
        findings.push(Finding::note(SYSTEM, text));
    }
    findings.push(match facts.rseq {
        Some(size) if size > 0 => Finding::ready(SYSTEM, "restartable sequences (rseq), which hooks use on AMD's processors"),
        _ => Finding::note(
            SYSTEM,
            "no restartable sequences (rseq): hooks on AMD's processors cost some nanoseconds more; glibc has them from 2.35 on",
        ),
    });
    findings.push(match &facts.sampling {
        Ok(told) => {
            Finding::ready(SYSTEM, format!("programs can be sampled (`record --sample`): {told}"))
        }
        Err((why, next)) => {
            let text = format!("`record --sample` has timers within programs in place of the kernel's samples: {why}");
            Finding::warning(SYSTEM, text, next.as_str())
        }
    });
    findings.extend(clock(facts));
    findings.extend(optional(facts));
    findings
}

fn clock(facts: &Facts) -> Vec<Finding> {
    const CLOCK: &str = "clock";
    let ClockOffer { choice, period, reason, counter_is_even } = &facts.clock;
    let name = match choice {
        Choice::Cycle => "cycle",
        Choice::Ordered => "ordered",
        Choice::Tick | Choice::Auto => "tick",
    };
    let period = period.map_or(String::new(), |period| format!(" of {period:?}"));
    let mut findings =
        vec![Finding::ready(CLOCK, format!("`record` would choose {name}{period}: {reason}"))];
    findings.push(match counter_is_even {
        true => Finding::ready(
            CLOCK,
            "the processor's counter runs at one speed: `record --clock cycle` times single calls",
        ),
        false => Finding::warning(
            CLOCK,
            "the processor's counter changes its speed: times by it are wrong",
            "record with --clock tick, which is the default here",
        ),
    });
    findings
}

/// What only some need.
fn optional(facts: &Facts) -> Vec<Finding> {
    const OPTEE: &str = "OP-TEE";
    let library = match (facts.optee.library, facts.optee.device) {
        (true, true) => Finding::ready(
            OPTEE,
            "libteec and /dev/tee0 are there: `record --optee` records trusted applications",
        ),
        (true, false) => Finding::note(
            OPTEE,
            "libteec is there, and no /dev/tee0: this machine has no OP-TEE, or its driver is not loaded",
        ),
        (false, _) => Finding::note(
            OPTEE,
            "no libteec: trusted applications are recorded on the board (`record --optee`)",
        ),
    };
    let emulator = match facts.emulator {
        true => Finding::ready(OPTEE, "qemu-system-aarch64 is there, for `cargo xtask optee`"),
        false => {
            Finding::note(OPTEE, "no qemu-system-aarch64: only this project's own tests need it")
        }
    };
    vec![library, emulator]
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;
    use std::time::Duration;

    fn good() -> Facts {
        Facts {
            memory: Ok(()),
            socket: Ok(()),
            clock: ClockOffer {
                choice: Choice::Tick,
                period: Some(Duration::from_micros(200)),
                reason: "the cheapest".into(),
                counter_is_even: true,
            },
            rseq: Some(32),
            sampling: Ok("samples are of cycles".into()),
            seccomp: 0,
            container: None,
            optee: Optee { library: true, device: true },
            emulator: true,
        }
    }

    /// Those that are not ready, by verdict and what they say.
    fn wrong(facts: &Facts) -> Vec<(Verdict, String)> {
        let found = judge(facts).into_iter().filter(|found| found.verdict != Verdict::Ready);
        found.map(|found| (found.verdict, found.text)).collect()
    }

    #[test]
    fn nothing_is_said_of_a_machine_that_has_all() {
        assert_eq!(wrong(&good()), []);
        let text: Vec<String> = judge(&good()).into_iter().map(|found| found.text).collect();
        assert!(
            text.contains(&"`record` would choose tick of 200µs: the cheapest".into()),
            "{text:?}"
        );
    }

    #[test]
    fn each_thing_that_is_not_there_has_its_verdict() {
        let refused = || Err(io::Error::from_raw_os_error(libc::EPERM));
        let one = |facts: Facts| match &wrong(&facts)[..] {
            [one] => one.clone(),
            several => panic!("{several:?}"),
        };
        let (verdict, text) = one(Facts { memory: refused(), ..good() });
        assert!(verdict == Verdict::Missing && text.contains("memfd_create"), "{text}");
        let (verdict, text) = one(Facts { socket: refused(), ..good() });
        assert!(verdict == Verdict::Missing && text.contains("AF_UNIX"), "{text}");
        let (verdict, text) = one(Facts { seccomp: 2, ..good() });
        assert!(verdict == Verdict::Note && text.contains("seccomp"), "{text}");
        let (verdict, text) = one(Facts { container: Some("docker"), ..good() });
        assert!(verdict == Verdict::Note && text.contains("docker"), "{text}");
        let refused = Err(("why".to_owned(), "way out".to_owned()));
        let (verdict, text) = one(Facts { sampling: refused, ..good() });
        assert!(verdict == Verdict::Warning && text.ends_with("samples: why"), "{text}");
        for rseq in [None, Some(0)] {
            assert!(one(Facts { rseq, ..good() }).1.contains("rseq"));
        }
        let uneven = ClockOffer { counter_is_even: false, ..good().clock };
        let (verdict, text) = one(Facts { clock: uneven, ..good() });
        assert!(verdict == Verdict::Warning && text.contains("changes its speed"), "{text}");
        let optee = |library, device| one(Facts { optee: Optee { library, device }, ..good() });
        assert!(
            optee(false, false).1.contains("no libteec")
                && optee(true, false).1.contains("/dev/tee0")
        );
        assert_eq!(one(Facts { emulator: false, ..good() }).0, Verdict::Note);
    }

    #[test]
    fn this_machine_is_asked() {
        assert!(status("Seccomp").is_some() && status("NoSuch").is_none());
    }
}
