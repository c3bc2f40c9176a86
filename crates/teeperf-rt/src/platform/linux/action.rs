//! A process's action for a signal (rt_sigaction(2)).

use crate::arch::{self, number, syscall};

pub(crate) const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;
const SA_SIGINFO: usize = 4;
const SA_RESTORER: usize = 0x0400_0000;
const SA_ONSTACK: usize = 0x0800_0000;
const SA_RESTART: usize = 0x1000_0000;
const SA_NODEFER: usize = 0x4000_0000;

/// The beginning of the kernel's `struct sigaction`, without the signals that the handler blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Action {
    pub(crate) handler: usize,
    flags: usize,
    returns_to: usize,
}

/// Whether a handler is none: SIG_DFL, SIG_IGN.
pub(crate) fn is_no_handler(handler: usize) -> bool {
    matches!(handler, SIG_DFL | SIG_IGN)
}

impl Action {
    /// The present one; nothing where that cannot be told.
    pub(crate) fn of(signal: usize) -> Option<Self> {
        // Handler, flags, restorer, set.
        let mut action = [usize::MAX; 4];
        let place = &raw mut action as usize;
        let arguments = [signal, 0, place, size_of::<u64>(), 0, 0];
        // SAFETY: the kernel writes four words there.
        let result = unsafe { syscall(number::RT_SIGACTION, arguments) };
        let [handler, flags, returns_to, _] = action;
        (result == 0).then_some(Self { handler, flags, returns_to })
    }

    /// Of a handler of the runtime's. It keeps no signal back. One for the whole process would go
    /// to another thread, whose system call it ends: a timer of the program's may expire at the same
    /// tick. Nor is its own signal kept back, so that a handler of the program's which interrupts
    /// this one is sampled.
    pub(crate) fn of_runtime(handler: usize) -> Self {
        let flags = SA_SIGINFO | SA_RESTART | SA_NODEFER | SA_ONSTACK | SA_RESTORER;
        Self { handler, flags, returns_to: arch::return_from_signal() }
    }

    /// Of no handler, as one of these two says: SIG_DFL, SIG_IGN.
    pub(crate) fn of_none(instead: usize) -> Self {
        Self { handler: instead, flags: 0, returns_to: 0 }
    }

    /// Makes it the signal's; says whether it is.
    pub(crate) fn set(self, signal: usize) -> bool {
        let action = [self.handler, self.flags, self.returns_to, 0];
        let place = &raw const action as usize;
        let arguments = [signal, place, 0, size_of::<u64>(), 0, 0];
        // SAFETY: the kernel reads four words; the handler is one.
        unsafe { syscall(number::RT_SIGACTION, arguments) == 0 }
    }

    pub(crate) fn has_handler(self) -> bool {
        !is_no_handler(self.handler)
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
