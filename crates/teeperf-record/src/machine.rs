//! What is known of the machine and of this process, for the first and the last packet.

use std::ffi::CStr;

/// Names of system and machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Machine {
    pub(crate) host: Vec<u8>,
    /// System and release.
    pub(crate) system: Vec<u8>,
    /// As `uname -m` has it.
    pub(crate) machine: Vec<u8>,
    pub(crate) processor: String,
    pub(crate) processors: u64,
}

impl Machine {
    /// This one.
    pub(crate) fn this() -> Self {
        // SAFETY: a struct of bytes alone, for which zeros are a value.
        let mut names: libc::utsname = unsafe { std::mem::zeroed() };
        // SAFETY: the address is that of a utsname.
        unsafe { libc::uname(&mut names) };
        // SAFETY: the kernel ends each name with a 0, and where it failed all are 0.
        let text =
            |name: &[libc::c_char]| unsafe { CStr::from_ptr(name.as_ptr()) }.to_bytes().to_vec();
        let (name, release) = (text(&names.sysname), text(&names.release));
        Self {
            host: text(&names.nodename),
            system: [name, release].join(&b' '),
            machine: text(&names.machine),
            processor: processor(),
            processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
        }
    }
}

/// The first processor's name; empty where the system does not tell.
fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or(String::new(), |(_, name)| name.trim().to_owned())
}

/// Has the calling thread run before ordinary ones as soon as it is to, where it may (sched(7),
/// SCHED_FIFO). It must sleep most of the time.
pub(crate) fn go_first() {
    let priority = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the address is that of a sched_param. A refusal only makes the thread late.
    unsafe { libc::sched_setscheduler(0, policy, &raw const priority) };
}

/// Has the calling thread run as ordinary ones do. The kernel wakes those on an idle processor, and
/// leaves one that [goes first](go_first) on its own, whatever else runs there.
pub(crate) fn go_along() {
    let priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: as in `go_first`.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const priority) };
}

/// Processors that this process may use, by number; none where the system does not tell.
pub(crate) fn processors() -> Vec<usize> {
    // SAFETY: a struct of numbers alone, for which zeros are a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the address and size are those of the set.
    if unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) } != 0 {
        return Vec::new();
    }
    let is_in = |&processor: &usize| {
        // SAFETY: below the number of bits that the set has.
        unsafe { libc::CPU_ISSET(processor, &set) }
    };
    (0..libc::CPU_SETSIZE as usize).filter(is_in).collect()
}

/// Keeps the calling thread on a processor, as far as the system lets it.
pub(crate) fn stay_on(processor: usize) {
    // SAFETY: a struct of numbers alone, for which zeros are a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: it is one that such a set had.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: the address and size are those of the set. A refusal leaves the thread where it is.
    unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
}

/// CPU time of this process, nanoseconds.
pub(crate) fn own_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of the calling thread, nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The system's steady clock, nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the address is that of a timespec.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_names_and_takes_time() {
        let machine = Machine::this();
        assert!(machine.system.starts_with(b"Linux "));
        assert!(!machine.machine.is_empty() && machine.processors > 0);
        let before = own_cpu_ns();
        let sum: u64 = (0..100_000u64).map(std::hint::black_box).sum();
        assert!(sum > 0 && own_cpu_ns() > before);
        assert!(thread_cpu_ns() > 0);
    }
}
