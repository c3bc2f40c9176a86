//! `perf_event_attr`, and the calls that take it: perf_event_open(2), `linux/perf_event.h`.

use super::options::Stacks;
use crate::memory::checked;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};

/// The struct as of `PERF_ATTR_SIZE_VER6` (Linux 5.5). A kernel that has a longer one takes the rest for 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attr {
    pub(crate) kind: u32,
    pub(crate) size: u32,
    pub(crate) config: u64,
    pub(crate) period: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    /// See [`flag`].
    pub(crate) flags: u64,
    /// Bytes in the ring at which a reader wakes.
    pub(crate) watermark: u32,
    pub(crate) breakpoint: u32,
    pub(crate) config1: u64,
    pub(crate) config2: u64,
    pub(crate) branches: u64,
    pub(crate) registers: u64,
    pub(crate) stack: u32,
    pub(crate) clock: i32,
    pub(crate) registers_at_interrupt: u64,
    pub(crate) aux_watermark: u32,
    pub(crate) most_frames: u16,
    pub(crate) reserved: u16,
    pub(crate) aux_sample: u32,
    pub(crate) reserved_too: u32,
}

/// Bits of [`Attr::flags`].
pub(crate) mod flag {
    pub(crate) const DISABLED: u64 = 1 << 0;
    pub(crate) const INHERIT: u64 = 1 << 1;
    pub(crate) const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub(crate) const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    pub(crate) const MMAP: u64 = 1 << 8;
    pub(crate) const COMM: u64 = 1 << 9;
    /// The period is a frequency.
    pub(crate) const FREQUENCY: u64 = 1 << 10;
    pub(crate) const ENABLE_ON_EXEC: u64 = 1 << 12;
    pub(crate) const TASK: u64 = 1 << 13;
    pub(crate) const WATERMARK: u64 = 1 << 14;
    pub(crate) const MMAP_DATA: u64 = 1 << 17;
    pub(crate) const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub(crate) const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
    pub(crate) const MMAP2: u64 = 1 << 23;
    pub(crate) const COMM_EXEC: u64 = 1 << 24;
    pub(crate) const USE_CLOCKID: u64 = 1 << 25;
    /// Since Linux 5.12.
    pub(crate) const BUILD_ID: u64 = 1 << 34;
}

/// Bits of [`Attr::sample_type`].
pub(crate) mod sample {
    pub(crate) const IP: u64 = 1 << 0;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const REGISTERS_USER: u64 = 1 << 12;
    pub(crate) const STACK_USER: u64 = 1 << 13;
    /// What all records have, in the same place.
    pub(crate) const ALL: u64 = TID | TIME | CPU;
}

/// `PERF_FORMAT_LOST`, since Linux 6.0: reading an event tells how many of its records found no room.
pub(crate) const FORMAT_LOST: u64 = 1 << 4;
const FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;

/// An event as the kernel names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) kind: u32,
    pub(crate) config: u64,
    pub(crate) name: &'static str,
    /// Whether it counts nanoseconds.
    pub(crate) is_time: bool,
}

/// Cycles of the processor: `PERF_TYPE_HARDWARE`, `PERF_COUNT_HW_CPU_CYCLES`.
pub(crate) const CYCLES: Kind = Kind { kind: 0, config: 0, name: "cycles", is_time: false };
/// Nanoseconds: `PERF_TYPE_SOFTWARE`, `PERF_COUNT_SW_CPU_CLOCK`.
pub(crate) const CPU_CLOCK: Kind = Kind { kind: 1, config: 0, name: "cpu-clock", is_time: true };

/// Registers of a user that unwinding takes, by their numbers in `asm/perf_regs.h`.
pub(crate) const REGISTERS: u64 = if cfg!(target_arch = "x86_64") {
    // AX to IP, R8 to R15.
    0xff_01ff
} else if cfg!(target_arch = "aarch64") {
    // X0 to X29, LR, SP, PC.
    0x1_ffff_ffff
} else if cfg!(target_arch = "riscv64") {
    // PC, and X1 to X31.
    0xffff_ffff
} else {
    0
};

/// `e_machine` of this machine's code.
pub(crate) const MACHINE: u64 = if cfg!(target_arch = "x86_64") {
    62
} else if cfg!(target_arch = "aarch64") {
    183
} else if cfg!(target_arch = "riscv64") {
    243
} else {
    0
};

impl Attr {
    /// What all of ours have.
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind: kind.kind,
            config: kind.config,
            size: size_of::<Self>() as u32,
            sample_type: sample::ALL,
            flags: flag::DISABLED | flag::INHERIT | flag::SAMPLE_ID_ALL | flag::USE_CLOCKID,
            clock: libc::CLOCK_MONOTONIC,
            ..Self::default()
        }
    }

    /// Has it sample.
    pub(crate) fn sampling(mut self, stacks: Stacks, with_kernel: bool) -> Self {
        self.sample_type |= sample::IP | sample::PERIOD;
        match stacks {
            Stacks::Copied(bytes) if REGISTERS != 0 => {
                self.sample_type |= sample::REGISTERS_USER | sample::STACK_USER;
                self.registers = REGISTERS;
                self.stack = bytes.into();
                // Tables by which perf follows stacks may be mapped apart from code.
                self.flags |= flag::MMAP_DATA;
                if with_kernel {
                    // Of the kernel's own stack there is no copy.
                    self.sample_type |= sample::CALLCHAIN;
                    self.flags |= flag::EXCLUDE_CALLCHAIN_USER;
                }
            }
            Stacks::Copied(_) | Stacks::FramePointers => self.sample_type |= sample::CALLCHAIN,
            Stacks::None => {}
        }
        if !with_kernel {
            self.flags |= flag::EXCLUDE_KERNEL | flag::EXCLUDE_HYPERVISOR;
        }
        self
    }

    /// Has it tell of code, threads and their names, from the program's first instruction on.
    pub(crate) fn telling(mut self) -> Self {
        self.flags |= flag::MMAP | flag::MMAP2 | flag::COMM | flag::COMM_EXEC | flag::TASK;
        self.flags |= flag::BUILD_ID;
        self
    }

    /// Opens it for a process, on a processor; 0: this thread, -1: any.
    pub(crate) fn open(&self, pid: libc::pid_t, cpu: libc::c_int) -> io::Result<File> {
        // SAFETY: the address is that of a struct of the size that stands in it, which the kernel reads.
        let opened = unsafe {
            libc::syscall(libc::SYS_perf_event_open, self, pid, cpu, -1, FLAG_FD_CLOEXEC)
        };
        let fd = checked(opened as libc::c_int)?;
        // SAFETY: the descriptor is new and nobody else's.
        Ok(unsafe { File::from_raw_fd(fd) })
    }
}

/// Requests to an event: `PERF_EVENT_IOC_ENABLE`, `PERF_EVENT_IOC_DISABLE`, `PERF_EVENT_IOC_SET_OUTPUT`, `PERF_EVENT_IOC_PERIOD`,
/// `PERF_EVENT_IOC_REFRESH`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request<'a> {
    /// It counts, in all threads that have inherited it.
    Enable,
    /// It does not.
    Disable,
    /// Its records go where this one's go.
    Output(&'a File),
    /// Its period is another.
    Period(u64),
    /// It counts until one period is over.
    Once,
}

/// Asks an event for something.
pub(crate) fn ask(event: &File, request: Request<'_>) -> io::Result<()> {
    let period;
    let (number, argument) = match request {
        Request::Enable => (0x2400, 0),
        Request::Disable => (0x2401, 0),
        Request::Output(other) => (0x2405, other.as_raw_fd() as usize),
        Request::Period(new) => {
            period = new;
            (0x4008_2404, (&raw const period) as usize)
        }
        Request::Once => (0x2402, 1),
    };
    // SAFETY: of the one that takes a pointer the kernel reads a number, which stays.
    checked(unsafe { libc::ioctl(event.as_raw_fd(), number, argument) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// As the header has it: `PERF_ATTR_SIZE_VER6`, and where some fields are.
    #[test]
    fn the_struct_is_the_kernels() {
        assert_eq!(size_of::<Attr>(), 120);
        let offsets = [
            offset_of!(Attr, period),
            offset_of!(Attr, flags),
            offset_of!(Attr, watermark),
            offset_of!(Attr, registers),
            offset_of!(Attr, stack),
            offset_of!(Attr, clock),
            offset_of!(Attr, aux_sample),
        ];
        assert_eq!(offsets, [16, 40, 48, 80, 88, 92, 112]);
    }

    #[test]
    fn stacks_are_asked_for_as_they_are_wanted() {
        let copied = Attr::new(CPU_CLOCK).sampling(Stacks::Copied(4096), false);
        assert_eq!((copied.stack, copied.registers), (4096, REGISTERS));
        assert_ne!(copied.flags & flag::MMAP_DATA, 0);
        assert_eq!(copied.sample_type & sample::CALLCHAIN, 0);
        assert_ne!(copied.flags & flag::EXCLUDE_KERNEL, 0);
        let chain = Attr::new(CPU_CLOCK).sampling(Stacks::FramePointers, true);
        assert_eq!((chain.stack, chain.registers), (0, 0));
        assert_ne!(chain.sample_type & sample::CALLCHAIN, 0);
        assert_eq!(chain.flags & (flag::EXCLUDE_KERNEL | flag::EXCLUDE_CALLCHAIN_USER), 0);
    }
}
