//! Functions whose time is that of going elsewhere: into the kernel, or out of a TEE. Called often, they are what programs in
//! enclaves lose most time to, and what is cheapest to mend: keep the answer, or ask once for many.
//!
//! A hook sees only what it was built into, and a system call is made in the C library. So what is known of a function is, in this
//! order:
//!
//! * the user says that it crosses (patterns),
//! * its name says so: that of a system call, or of a way out of a TEE,
//! * its code calls a function of such a name ([`teeperf_symbols::called()`]), and nothing that has hooks; its module's file must be here, and
//!   be of the build that was recorded.
//! * Where its code is not to be looked at, its cost alone, which proves nothing.
//!
//! Looked at are functions that are called [`LEAST_CALLS`] times or more, with [`LEAST_SHARE`] of the time or more, whose calls
//! take as long as a crossing does ([`CALL_NS`]), whatever hooks may have cost of that.

use std::collections::{BTreeMap, HashSet};
use std::ops::RangeInclusive;
use std::path::Path;

use teeperf_symbols::{Search, called, demangle};

use crate::aggregate::{self, Row, Sort};
use crate::model::{Code, FunctionId, Place, Profile, Unit};
use crate::pattern::Pattern;

/// Fewer calls are not worth changing a program.
pub const LEAST_CALLS: u64 = 10_000;
/// Part of all time below which nothing is said.
pub const LEAST_SHARE: f64 = 0.05;
/// How long calls take that may be crossings: from a time stamp that the kernel lets a program make by itself to what waits for more
/// than the way. (A system call takes 50 ns to 1 µs, a way out of an enclave 2 to 20 µs.)
pub const CALL_NS: RangeInclusive<f64> = 15.0..=100_000.0;
/// Part of the time, calls, and time of a call from which on cost alone is worth a word.
const COSTLY: (f64, u64, f64) = (0.2, 100_000, 200.0);
/// Of its calls a function may make this part to others with hooks and still be one that does nothing but cross.
const MOST_BELOW: f64 = 0.01;
/// Most functions whose code is looked at.
const MOST_LOOKED_AT: usize = 64;

/// A function that crosses, or may.
#[derive(Clone, Debug, PartialEq)]
pub struct Crossing {
    /// Which, its calls, and its times.
    pub row: Row,
    /// Part of the time with a recorded function that it has, with all it calls.
    pub share: f64,
    /// From what that is known.
    pub evidence: Evidence,
    /// What it goes for; nothing where that is not known.
    pub kind: Option<Kind>,
}

/// From what it is known that a function crosses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The user says so.
    Pattern,
    /// Its own name.
    Name,
    /// What its code calls.
    Code(Vec<String>),
    /// Nothing but that it costs as much.
    Cost,
}

/// What a crossing is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// What hardly ever changes, such as the process's id.
    Constant,
    /// The time.
    Time,
    /// Random numbers.
    Random,
    /// To move data.
    Data,
    /// Anything else of the kernel's.
    System,
    /// The way out of a TEE.
    Exit,
}

/// Functions of the C library that are system calls, or are where the kernel does not let programs answer themselves; those
/// whose purpose is to wait are not here.
const SYSTEM_CALLS: &[(Kind, &[&str])] = &[
    (
        Kind::Constant,
        &[
            "getpid",
            "getppid",
            "gettid",
            "getpgrp",
            "getpgid",
            "getsid",
            "getuid",
            "geteuid",
            "getgid",
            "getegid",
            "sysconf",
            "uname",
            "gethostname",
            "sched_getcpu",
            "getcpu",
            "getrlimit",
        ],
    ),
    (
        Kind::Time,
        &[
            "clock_gettime",
            "gettimeofday",
            "time",
            "clock",
            "times",
            "getrusage",
            "timespec_get",
            "std::chrono::_V2::system_clock::now()",
            "std::chrono::_V2::steady_clock::now()",
        ],
    ),
    (Kind::Random, &["getrandom", "getentropy", "arc4random", "std::random_device::_M_getval()"]),
    (
        Kind::Data,
        &[
            "read", "write", "pread", "pwrite", "pread64", "pwrite64", "readv", "writev", "preadv",
            "pwritev", "send", "sendto", "sendmsg", "recv", "recvfrom", "recvmsg",
        ],
    ),
    (
        Kind::System,
        &[
            "syscall",
            "open",
            "open64",
            "openat",
            "openat64",
            "close",
            "stat",
            "stat64",
            "fstat",
            "fstat64",
            "lstat",
            "access",
            "lseek",
            "lseek64",
            "ioctl",
            "fcntl",
            "fcntl64",
            "fsync",
            "fdatasync",
            "mmap",
            "mmap64",
            "munmap",
            "mprotect",
            "madvise",
            "sched_yield",
            "sigprocmask",
            "pthread_sigmask",
            "kill",
            "epoll_ctl",
        ],
    ),
    (
        Kind::Exit,
        &[
            "TEEC_InvokeCommand",
            "TEE_InvokeTACommand",
            "sgx_ocall",
            "oe_call_host_function",
            "sbi_ecall",
        ],
    ),
];

/// What a function of this name crosses for, if it is one that does.
fn kind(name: &str) -> Option<Kind> {
    // Static programs have the C library's own names.
    let plain = name.trim_start_matches("__libc_").trim_start_matches("__");
    let known =
        SYSTEM_CALLS.iter().find(|(_, names)| names.contains(&plain) || names.contains(&name));
    known.map(|(kind, _)| *kind).or_else(|| is_way_out(name).then_some(Kind::Exit))
}

/// As the tools of SGX call them: `ocall_write`, `u_write_ocall`.
fn is_way_out(name: &str) -> bool {
    let bare = name.split('(').next().unwrap_or_default();
    bare.rsplit("::").next().unwrap_or_default().split('_').any(|word| word == "ocall")
}

/// What crosses, the function with most time first. `patterns` are the user's.
pub fn find(profile: &Profile, patterns: &[Pattern]) -> Vec<Crossing> {
    let all = profile.framed_ns();
    let below = calls_below(profile);
    let calls_of = |row: &Row| below.get(row.function.0 as usize).copied().unwrap_or_default();
    let candidate = |row: Row| {
        let function = profile.functions.get(row.function.0 as usize)?;
        let share = if all > 0.0 { row.total.value / all } else { 0.0 };
        let ns = |time: f64| time / row.calls.max(1) as f64;
        let is_as_long =
            ns(row.total.low) >= *CALL_NS.start() && ns(row.total.value) <= *CALL_NS.end();
        let fits = profile.info.unit == Unit::Counts || is_as_long;
        if row.calls < LEAST_CALLS || share < LEAST_SHARE || !fits || function.is_placeholder() {
            return None;
        }
        let kind = kind(&function.name);
        let is_said = patterns.iter().any(|pattern| pattern.fits(function));
        let is_leaf = calls_of(&row) as f64 <= MOST_BELOW * row.calls as f64;
        let evidence = match kind {
            _ if is_said => Evidence::Pattern,
            // What marshals its parameters may call others for that.
            Some(Kind::Exit) => Evidence::Name,
            _ if !is_leaf => return None,
            Some(_) => Evidence::Name,
            None => Evidence::Cost,
        };
        Some(Crossing { row, share, evidence, kind })
    };
    let rows = aggregate::table(profile, Sort::Total);
    let mut found: Vec<Crossing> = rows.into_iter().filter_map(candidate).collect();
    look_at_code(profile, &mut found, |crossing| calls_of(&crossing.row) > 0);
    let (share, calls, ns) = COSTLY;
    found.retain(|crossing| {
        let Row { calls: made, total, .. } = crossing.row;
        crossing.evidence != Evidence::Cost
            || crossing.share >= share && made >= calls && total.value >= ns * made as f64
    });
    found
}

/// Calls that each function made to others, or itself.
fn calls_below(profile: &Profile) -> Vec<u64> {
    let mut below = vec![0u64; profile.functions.len()];
    for thread in &profile.threads {
        for node in thread.tree.nodes.iter().skip(1).filter(|node| node.parent > 0) {
            let caller = thread.tree.nodes[node.parent as usize].function;
            if let Some(calls) = below.get_mut(caller.0 as usize) {
                *calls = calls.saturating_add(node.calls);
            }
        }
    }
    below
}

/// Places in a list of crossings, each with the function's first address.
type Starts = Vec<(usize, u64)>;

/// Looks at the code of those of which no more than their cost is known, and lets those go whose code calls nothing that crosses.
/// Of those that call others with hooks, however seldom, these may be inlined: then their code has what the others call.
fn look_at_code(
    profile: &Profile,
    found: &mut Vec<Crossing>,
    calls_others: impl Fn(&Crossing) -> bool,
) {
    let place = |id: FunctionId| profile.places.get(id.0 as usize)?.as_ref();
    // By path and build-id.
    let mut by_file: BTreeMap<(&str, &[u8]), Starts> = BTreeMap::new();
    let unknown = found.iter().enumerate().filter(|(_, it)| it.evidence == Evidence::Cost);
    for (at, crossing) in unknown.take(MOST_LOOKED_AT) {
        if let Some(Place { path, build_id, address, code: Code::Process, .. }) =
            place(crossing.row.function)
        {
            by_file.entry((path, build_id)).or_default().push((at, *address));
        }
    }
    let mut harmless = HashSet::new();
    for ((path, build_id), places) in by_file {
        let build_id = (!build_id.is_empty()).then(|| build_id.to_vec());
        let search = Search { build_id, ..Search::default() };
        let starts: Vec<u64> = places.iter().map(|place| place.1).collect();
        // A file that is not here, or of another build, says nothing.
        let Ok(names) = called(Path::new(path), &search, &starts) else { continue };
        for (&(at, _), names) in places.iter().zip(names) {
            let known = names.iter().map(|name| demangle(name).into_owned());
            let known: Vec<(Kind, String)> =
                known.filter_map(|name| Some((kind(&name)?, name))).collect();
            match known.iter().map(|(kind, _)| *kind).min() {
                Some(kind) if !calls_others(&found[at]) => {
                    let names = known.into_iter().map(|(_, name)| name).collect();
                    found[at].kind = Some(kind);
                    found[at].evidence = Evidence::Code(names);
                }
                _ => _ = harmless.insert(at),
            }
        }
    }
    let mut at = 0..;
    found.retain(|_| at.next().is_some_and(|at| !harmless.contains(&at)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::profile;

    fn found<'a>(profile: &'a Profile, patterns: &[&str]) -> Vec<(&'a str, Evidence)> {
        let patterns: Vec<Pattern> =
            patterns.iter().map(|text| Pattern::new(text).unwrap()).collect();
        let name = |it: Crossing| {
            let function = &profile.functions[it.row.function.0 as usize];
            (function.name.as_str(), it.evidence)
        };
        find(profile, &patterns).into_iter().map(name).collect()
    }

    #[test]
    fn names_and_patterns_are_known() {
        let known = |name| kind(name);
        assert_eq!(known("getpid"), Some(Kind::Constant));
        assert_eq!(known("__libc_write"), Some(Kind::Data));
        assert_eq!(known("__clock_gettime"), Some(Kind::Time));
        assert_eq!(known("enclave::ocall_time(long*)"), Some(Kind::Exit));
        assert_eq!(known("u_write_ocall"), Some(Kind::Exit));
        for other in ["autocall", "protocol", "reader", "my_getpid", "File::read(int)", ""] {
            assert_eq!(known(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_called_often_with_much_time_and_calls_nothing_is_one() {
        // 1 µs a call each: 100,000 calls of getpid, 20,000 of time and of work.
        let names = ["main", "getpid", "time", "work", "read"];
        let mut nodes = vec![
            (0, 0, 1, 1e7),
            (1, 1, 100_000, 1e8),
            (1, 2, 20_000, 2e7),
            (1, 3, 20_000, 2e7),
            (1, 4, 9_999, 2e7),
        ];
        assert_eq!(
            found(&profile(&names, &nodes), &[]),
            [("getpid", Evidence::Name), ("time", Evidence::Name)]
        );
        assert_eq!(
            found(&profile(&names, &nodes), &["work", "read"])[2],
            ("work", Evidence::Pattern)
        );
        // What calls others is no crossing, whatever it is called.
        nodes.push((3, 3, 1_000, 1e6));
        assert_eq!(found(&profile(&names, &nodes), &[]), [("getpid", Evidence::Name)]);
    }

    #[test]
    fn calls_too_short_or_too_long_or_with_little_time_are_none() {
        let of = |calls, own| {
            let profile = profile(&["main", "getpid"], &[(0, 0, 1, 1e9), (1, 1, calls, own)]);
            found(&profile, &[]).len()
        };
        assert_eq!(of(100_000, 1e9), 1);
        assert_eq!(of(100_000_000, 1e9), 0);
        assert_eq!(of(10_000, 2e9), 0);
        assert_eq!(of(100_000, 4e7), 0);
    }

    #[test]
    fn cost_alone_takes_more_and_ways_out_may_call() {
        let of = |calls, own| {
            let nodes = [(0, 0, 1, 1e9), (1, 1, calls, own)];
            let profile = profile(&["main", "odd"], &nodes);
            found(&profile, &[]).into_iter().map(|(_, evidence)| evidence).collect::<Vec<_>>()
        };
        assert_eq!(of(100_000, 3e8), [Evidence::Cost]);
        assert_eq!(of(99_999, 3e8), []);
        assert_eq!(of(100_000, 2e8), []);
        assert_eq!(of(2_000_000, 3e8), []);
        let nodes = [(0, 0, 1, 1e8), (1, 1, 20_000, 1e8), (2, 2, 20_000, 1e6)];
        assert_eq!(found(&profile(&["main", "ocall_put", "pack"], &nodes), &[])[0].0, "ocall_put");
    }
}
