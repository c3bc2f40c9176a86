//! What this machine has for SGX enclaves, and for samples of them.

use super::Finding;
use crate::bundle;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use teeperf_record::offers;

/// What was found out.
struct Facts {
    processor: Processor,
    /// Whether the kernel has found it usable: `/proc/cpuinfo` has the flags `sgx`, and `sgx_lc`.
    is_listed: bool,
    has_launch_control: bool,
    /// Opening the driver's device.
    driver: Result<(), io::Error>,
    /// Drivers from before Linux 5.11, by their devices.
    old_drivers: Vec<&'static str>,
    /// Whether memory of processes can be read by file.
    reads: Result<(), io::Error>,
    has_library: bool,
    /// The kernel permits events to time threads with.
    has_events: bool,
    /// `kernel.perf_event_paranoid`.
    paranoid: Option<i64>,
    /// Nanoseconds between the kernel's ticks.
    tick_ns: Option<u64>,
    /// `kernel.yama.ptrace_scope`.
    ptrace_scope: Option<i64>,
    is_root: bool,
}

/// What the processor says of itself (Intel SDM, volume 2A, CPUID).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Processor {
    has_sgx: bool,
    /// SGX1, and bytes of memory for enclaves, where the firmware has set them apart.
    has_sgx1: bool,
    memory: u64,
}

/// All of it.
pub(super) fn examine() -> Vec<Finding> {
    judge(&Facts::gather())
}

impl Facts {
    fn gather() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let flags = info.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
        let has_flag = |name: &str| flags.split(' ').any(|flag| flag == name);
        let opened = |path: &str, write: bool| {
            OpenOptions::new().read(true).write(write).open(path).map(drop)
        };
        let old = ["/dev/isgx", "/dev/sgx/enclave"];
        Self {
            processor: processor(),
            is_listed: has_flag("sgx"),
            has_launch_control: has_flag("sgx_lc"),
            driver: opened("/dev/sgx_enclave", true),
            old_drivers: old.into_iter().filter(|path| Path::new(path).exists()).collect(),
            reads: opened("/proc/self/mem", false),
            has_library: bundle::for_sampling().is_ok_and(|library| library.is_some()),
            has_events: offers::timer_events(),
            paranoid: number("/proc/sys/kernel/perf_event_paranoid"),
            tick_ns: tick_ns(),
            ptrace_scope: number("/proc/sys/kernel/yama/ptrace_scope"),
            // SAFETY: no pointers are involved.
            is_root: unsafe { libc::geteuid() } == 0,
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn processor() -> Processor {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const SGX: u32 = 1 << 2;
    if __cpuid(0).eax < 7 || __cpuid_count(7, 0).ebx & SGX == 0 || __cpuid(0).eax < 0x12 {
        return Processor::default();
    }
    // Sections of the enclaves' memory: base and size in pages, in halves.
    let sections = (2..16).map(|leaf| __cpuid_count(0x12, leaf));
    let sections = sections.take_while(|section| section.eax & 0xf == 1);
    let sizes = sections.map(|section| {
        u64::from(section.edx & 0xf_ffff) << 32 | u64::from(section.ecx & 0xffff_f000)
    });
    let has_sgx1 = __cpuid_count(0x12, 0).eax & 1 != 0;
    Processor { has_sgx: true, has_sgx1, memory: sizes.sum() }
}

#[cfg(not(target_arch = "x86_64"))]
fn processor() -> Processor {
    Processor::default()
}

fn number(path: &str) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The coarse clock moves with the ticks.
fn tick_ns() -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the address is that of a timespec.
    let result = unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    (result == 0 && time.tv_sec == 0).then_some(time.tv_nsec as u64).filter(|&ns| ns > 0)
}

fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![of_processor(facts), of_driver(facts)];
    findings.extend(of_sampling(facts));
    findings
}

fn of_processor(facts: &Facts) -> Finding {
    const AREA: &str = "processor";
    const ELSEWHERE: &str = "what was recorded elsewhere can be read here";
    let Processor { has_sgx, has_sgx1, memory } = facts.processor;
    if !has_sgx {
        return Finding::missing(
            AREA,
            "this processor has no SGX, or its hypervisor shows none",
            ELSEWHERE,
        );
    }
    if !has_sgx1 || memory == 0 {
        return Finding::missing(
            AREA,
            "the processor has SGX, and the firmware has not enabled it",
            "enable it there (SGX: Enabled, or Software Controlled, and memory for PRMRR)",
        );
    }
    if !facts.is_listed {
        return Finding::missing(
            AREA,
            "the processor has SGX, and the kernel does not use it",
            "a kernel from 5.11 on with CONFIG_X86_SGX, and launch control unlocked in the firmware; dmesg | grep sgx says why",
        );
    }
    let launch =
        if facts.has_launch_control { "" } else { ", without flexible launch control (sgx_lc)" };
    Finding::ready(AREA, format!("SGX, with {} MiB for enclaves{launch}", memory >> 20))
}

fn of_driver(facts: &Facts) -> Finding {
    const AREA: &str = "driver";
    match (&facts.driver, &facts.old_drivers[..]) {
        (Ok(()), _) => Finding::ready(
            AREA,
            "/dev/sgx_enclave can be opened; the kernel reads debug enclaves for who samples them",
        ),
        (Err(error), []) if error.kind() == io::ErrorKind::NotFound => Finding::missing(
            AREA,
            "there is no /dev/sgx_enclave",
            "a kernel from 5.11 on with CONFIG_X86_SGX; in a container, start it with --device /dev/sgx_enclave",
        ),
        (Err(error), [old, ..]) if error.kind() == io::ErrorKind::NotFound => Finding::missing(
            AREA,
            format!("{old} is of a driver from before Linux 5.11, whose calls are not known here"),
            "a kernel from 5.11 on with CONFIG_X86_SGX, and a runtime that uses /dev/sgx_enclave",
        ),
        (Err(error), _) => Finding::missing(
            AREA,
            format!("/dev/sgx_enclave: {error}"),
            "sudo usermod -aG sgx $USER, and log in again; the group is that of the device (ls -l /dev/sgx_enclave), sgx_prv for \
             enclaves that attest",
        ),
    }
}

fn of_sampling(facts: &Facts) -> Vec<Finding> {
    const AREA: &str = "samples";
    let library = if facts.has_library {
        Finding::ready(AREA, "there is a library that samples hosts from within (`record --sgx`)")
    } else {
        Finding::missing(
            AREA,
            "there is no library for this processor that samples hosts from within",
            "record on x86-64",
        )
    };
    let reads = match &facts.reads {
        Ok(()) => Finding::ready(
            AREA,
            "processes can read their memory by file, and debug enclaves with it",
        ),
        Err(error) => Finding::missing(
            AREA,
            format!("processes cannot read their memory by file (/proc/self/mem): {error}"),
            "mount /proc where this runs, and let its sandbox open /proc/self/mem",
        ),
    };
    let ticks =
        facts.tick_ns.map_or("its ticks".into(), |ns| format!("{} times", 1_000_000_000 / ns));
    let rate = if facts.has_events {
        Finding::ready(AREA, "threads can be sampled as often as is asked for (perf_event_open)")
    } else {
        let level = facts
            .paranoid
            .map_or(String::new(), |level| format!(", kernel.perf_event_paranoid is {level}"));
        Finding::warning(
            AREA,
            format!(
                "a thread can be sampled {ticks} a second at most, as the kernel ticks: it permits no events{level}"
            ),
            match facts.paranoid {
                Some(..=2) => {
                    "in a container, --cap-add PERFMON; else a sandbox denies perf_event_open"
                }
                _ => "sudo sysctl kernel.perf_event_paranoid=2; in a container, --cap-add PERFMON",
            },
        )
    };
    let attach = match facts.ptrace_scope {
        _ if facts.is_root => {
            Finding::ready(AREA, "processes that run can be attached to (`record --sgx --attach`)")
        }
        Some(level @ 1..) => Finding::warning(
            AREA,
            format!(
                "only its own children can be sampled from outside: kernel.yama.ptrace_scope is {level}"
            ),
            "for --attach: sudo sysctl kernel.yama.ptrace_scope=0, or sudo teeperf record --sgx --attach PID",
        ),
        _ => Finding::ready(
            AREA,
            "processes of this user can be attached to (`record --sgx --attach`)",
        ),
    };
    vec![library, reads, rate, attach]
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    fn good() -> Facts {
        Facts {
            processor: Processor { has_sgx: true, has_sgx1: true, memory: 512 << 20 },
            is_listed: true,
            has_launch_control: true,
            driver: Ok(()),
            old_drivers: Vec::new(),
            reads: Ok(()),
            has_library: true,
            has_events: true,
            paranoid: Some(2),
            tick_ns: Some(4_000_000),
            ptrace_scope: Some(0),
            is_root: false,
        }
    }

    fn error(kind: io::ErrorKind) -> Result<(), io::Error> {
        Err(kind.into())
    }

    /// The one that is not ready: verdict, what it says, and what is to be done.
    fn one(facts: Facts) -> (Verdict, String) {
        let found = judge(&facts).into_iter().filter(|found| found.verdict != Verdict::Ready);
        match &found.collect::<Vec<_>>()[..] {
            [one] => (one.verdict, format!("{} => {}", one.text, one.next.as_deref().unwrap())),
            several => panic!("{several:?}"),
        }
    }

    #[test]
    fn a_machine_that_has_all_is_ready() {
        let found = judge(&good());
        assert!(found.iter().all(|found| found.verdict == Verdict::Ready), "{found:?}");
        assert!(found[0].text.contains("512 MiB"), "{found:?}");
    }

    #[test]
    fn each_thing_that_is_missing_has_its_next_step() {
        let none = Processor::default();
        let off = Processor { has_sgx: true, ..none };
        for (facts, verdict, parts) in [
            (Facts { processor: none, ..good() }, Verdict::Missing, ["no SGX", "elsewhere"]),
            (Facts { processor: off, ..good() }, Verdict::Missing, ["firmware", "enable it"]),
            (Facts { is_listed: false, ..good() }, Verdict::Missing, ["kernel", "dmesg"]),
            (
                Facts { driver: error(io::ErrorKind::NotFound), ..good() },
                Verdict::Missing,
                ["no /dev/sgx_enclave", "--device"],
            ),
            (
                Facts {
                    driver: error(io::ErrorKind::NotFound),
                    old_drivers: vec!["/dev/isgx"],
                    ..good()
                },
                Verdict::Missing,
                ["/dev/isgx is", "5.11"],
            ),
            (
                Facts { driver: error(io::ErrorKind::PermissionDenied), ..good() },
                Verdict::Missing,
                ["permission denied", "usermod"],
            ),
            (
                Facts { reads: error(io::ErrorKind::PermissionDenied), ..good() },
                Verdict::Missing,
                ["/proc/self/mem", "sandbox"],
            ),
            (Facts { has_library: false, ..good() }, Verdict::Missing, ["no library", "x86-64"]),
            (
                Facts { has_events: false, paranoid: Some(3), ..good() },
                Verdict::Warning,
                ["250 times a second at most", "perf_event_paranoid=2"],
            ),
            (
                Facts { ptrace_scope: Some(1), ..good() },
                Verdict::Warning,
                ["ptrace_scope is 1", "ptrace_scope=0"],
            ),
        ] {
            let (found, text) = one(facts);
            assert!(found == verdict && parts.iter().all(|part| text.contains(part)), "{text}");
        }
        let root = Facts { ptrace_scope: Some(1), is_root: true, ..good() };
        assert!(judge(&root).iter().all(|found| found.verdict == Verdict::Ready));
    }

    #[test]
    fn this_machine_is_asked() {
        assert_eq!(examine().len(), 6);
        assert!(tick_ns().is_some_and(|ns| (1_000_000..=10_000_000).contains(&ns)));
    }
}
