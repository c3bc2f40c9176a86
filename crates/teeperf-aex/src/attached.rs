//! Threads of another process, stopped for as long as it takes to see what they show: by ptrace (ptrace(2)), for hosts that no
//! library can be preloaded into, or that ask the kernel without the C library.
//!
//! A thread is seized, so that it notices nothing but the time it stands. Signals that it gets meanwhile are handed on to it.

use crate::interrupted::Shown;
use crate::system;

/// The kernel's `struct user_regs_struct`: R15 R14 R13 R12 RBP RBX R11 R10 R9 R8 RAX RCX RDX RSI RDI ORIG_RAX RIP CS RFLAGS RSP SS …
pub type UserRegisters = [u64; 27];

/// What a stopped thread shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stopped {
    /// Registers that tell whether it left an enclave.
    pub shown: Shown,
    /// RSP.
    pub sp: u64,
    /// RBP.
    pub bp: u64,
}

impl Stopped {
    /// Of the registers that ptrace gives.
    pub fn of(registers: &UserRegisters) -> Self {
        let shown =
            Shown { ip: registers[16], ax: registers[10], bx: registers[5], cx: registers[11] };
        Self { shown, sp: registers[19], bp: registers[4] }
    }
}

/// Stops threads, one at a time.
pub trait Stop {
    /// Stops a thread. Nothing when it is not there any more.
    fn stop(&mut self, thread: u32) -> Option<Stopped>;
    /// Lets it go on.
    fn go_on(&mut self, thread: u32);
}

/// By ptrace. All of it is for one thread of the tracer, as ptrace has it.
#[derive(Debug, Default)]
pub struct Ptrace;

impl Ptrace {
    const CONT: usize = 7;
    const GETREGSET: usize = 0x4204;
    const SEIZE: usize = 0x4206;
    const INTERRUPT: usize = 0x4207;
    const PRSTATUS: usize = 1;
    /// Behind the signal in a status: the stop was asked for.
    const EVENT_STOP: u32 = 128;

    /// From here on a thread may be stopped.
    pub fn seize(&mut self, thread: u32) -> Option<()> {
        system::ptrace(Self::SEIZE, thread, 0, 0)
    }

    /// Hands on what signals a thread has got since it was looked at. Whether it is still there.
    pub fn serve(&mut self, thread: u32) -> bool {
        while let Some(status) = system::wait(thread, true) {
            match status {
                0 => return true,
                status => {
                    if !self.hand_on(thread, status) {
                        return false;
                    }
                }
            }
        }
        false
    }

    /// Whether the thread of this status has not ended.
    fn hand_on(&mut self, thread: u32, status: u32) -> bool {
        let is_stopped = status & 0xff == 0x7f;
        if is_stopped {
            let signal = if status >> 16 == 0 { status >> 8 & 0xff } else { 0 };
            system::ptrace(Self::CONT, thread, 0, signal as usize);
        }
        is_stopped
    }

    /// Registers of a thread that stands.
    pub fn registers(&self, thread: u32) -> Option<UserRegisters> {
        let mut registers = [0u64; 27];
        let vector = [(&raw mut registers) as usize, size_of_val(&registers)];
        system::ptrace(Self::GETREGSET, thread, Self::PRSTATUS, (&raw const vector) as usize)?;
        Some(registers)
    }
}

impl Stop for Ptrace {
    fn stop(&mut self, thread: u32) -> Option<Stopped> {
        system::ptrace(Self::INTERRUPT, thread, 0, 0)?;
        loop {
            let status = system::wait(thread, false)?;
            if status & 0xff == 0x7f && status >> 16 == Self::EVENT_STOP {
                return self.registers(thread).map(|registers| Stopped::of(&registers));
            }
            if !self.hand_on(thread, status) {
                return None;
            }
        }
    }

    fn go_on(&mut self, thread: u32) {
        system::ptrace(Self::CONT, thread, 0, 0);
    }
}
