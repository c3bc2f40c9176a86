//! What the process does about a signal.

use crate::arch::{self, number, syscall};

const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;
const SA_SIGINFO: usize = 4;
const SA_RESTART: usize = 0x1000_0000;

/// The beginning of the kernel's `struct sigaction`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Action {
    pub(crate) handler: usize,
    flags: usize,
    returns_to: usize,
}

impl Action {
    /// The present one; nothing where that cannot be told.
    pub(crate) fn of(signal: u32) -> Option<Self> {
        // Handler, flags, restorer, set.
        let mut action = [usize::MAX; 4];
        let place = &raw mut action as usize;
        let arguments = [signal as usize, 0, place, size_of::<u64>(), 0, 0];
        // SAFETY: the kernel writes four words there.
        let result = unsafe { syscall(number::RT_SIGACTION, arguments) };
        (result == 0).then_some(Self {
            handler: action[0],
            flags: action[1],
            returns_to: action[2],
        })
    }

    pub(crate) fn is_default(self) -> bool {
        self.handler == SIG_DFL
    }

    pub(crate) fn has_handler(self) -> bool {
        !matches!(self.handler, SIG_DFL | SIG_IGN)
    }

    /// Whether the kernel tells the handler more than the signal.
    pub(crate) fn has_information(self) -> bool {
        self.flags & SA_SIGINFO != 0
    }

    /// Whether the handler is one of the runtime's.
    pub(crate) fn is_of_runtime(self) -> bool {
        self.returns_to == arch::return_from_signal()
    }

    /// Whether system calls end with EINTR where the handler runs.
    pub(crate) fn ends_calls(self) -> bool {
        self.flags & SA_RESTART == 0
    }
}
