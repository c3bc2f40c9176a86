//! What a thread of another process shows that was stopped, as ptrace(2) gives its registers: for hosts that no library can be preloaded
//! into, or that ask the kernel without the C library.

use crate::interrupted::Shown;

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
