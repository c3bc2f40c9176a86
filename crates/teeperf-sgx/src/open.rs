//! Crossings of a thread that are open, the outermost first. Each is known by where its frame is on the stack: one that was left by
//! `longjmp` or an exception is found below those that are made later, and closed then.

use crate::usage::{self, Usage};
use std::cell::Cell;
use teeperf_lender::windows::Window;

/// An open crossing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    /// Address of its frame.
    pub(crate) frame: usize,
    /// Site of its label.
    pub(crate) label: u32,
    /// Site of the host's function beside it: of an ECALL who makes it, of an OCALL what it is.
    pub(crate) function: Option<u32>,
    /// Of an ECALL.
    pub(crate) ecall: Option<Ecall>,
}

/// What an ECALL has besides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ecall {
    pub(crate) number: usize,
    /// Of the enclave.
    pub(crate) window: Option<Window>,
    /// Name of the mark at its beginning.
    pub(crate) mark: u32,
    /// What the kernel counted inside, without OCALLs.
    pub(crate) inside: Usage,
}

/// Those of one thread.
#[derive(Debug, Default)]
pub(crate) struct Crossings {
    /// The thread that they are of: a child of fork has others.
    serial: u32,
    pub(crate) open: Vec<Open>,
    /// What the kernel had counted at the last crossing.
    counted: Option<Usage>,
}

thread_local! {
    static CROSSINGS: Cell<Option<Box<Crossings>>> = const { Cell::new(None) };
}

/// Does something with those of the calling thread, which has this serial. Not at the end of a thread.
pub(crate) fn with<T>(serial: u32, work: impl FnOnce(&mut Crossings) -> T) -> Option<T> {
    let mut crossings = CROSSINGS.try_with(Cell::take).ok()?.unwrap_or_default();
    if crossings.serial != serial {
        *crossings = Crossings { serial, ..Crossings::default() };
    }
    let result = work(&mut crossings);
    let _ = CROSSINGS.try_with(|own| own.set(Some(crossings)));
    Some(result)
}

/// Frames farther from each other are not of one stack, but of a signal's or a coroutine's.
const STACK: usize = 8 << 20;

impl Open {
    /// Whether a call with this frame shows that the crossing was left: stacks grow downward.
    pub(crate) fn is_left_by(&self, frame: usize) -> bool {
        frame >= self.frame && frame - self.frame < STACK
    }
}

impl Crossings {
    /// Takes the innermost crossing that a call with this frame shows to be left.
    pub(crate) fn take_left(&mut self, frame: usize) -> Option<Open> {
        self.open.pop_if(|open| open.is_left_by(frame))
    }

    /// Whether a crossing with this frame is open.
    pub(crate) fn has(&self, frame: usize) -> bool {
        self.open.iter().any(|open| open.frame == frame)
    }

    /// What the kernel counted since the last crossing goes to the enclave, if the thread was inside.
    pub(crate) fn count(&mut self) {
        let Some(now) = usage::now() else { return };
        let before = self.counted.replace(now);
        let inside = self.open.last_mut().and_then(|open| open.ecall.as_mut());
        if let Some((ecall, before)) = inside.zip(before) {
            ecall.inside.add(now.since(before));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(frame: usize) -> Open {
        Open { frame, label: 1, function: None, ecall: None }
    }

    #[test]
    fn what_lies_below_a_later_call_was_left() {
        let mut crossings =
            Crossings { open: [9000, 8000, 7000].map(open).into(), ..Crossings::default() };
        assert!(crossings.take_left(6000).is_none());
        assert_eq!(crossings.take_left(8000).map(|open| open.frame), Some(7000));
        assert_eq!(crossings.take_left(8000).map(|open| open.frame), Some(8000), "as deep again");
        assert!(crossings.take_left(8000).is_none() && crossings.has(9000));
        assert!(crossings.take_left(9000 + STACK).is_none(), "another stack");
    }

    #[test]
    fn another_threads_crossings_are_not_known() {
        with(1, |crossings| crossings.open.push(open(1))).unwrap();
        assert_eq!(with(1, |crossings| crossings.open.len()), Some(1));
        assert_eq!(with(2, |crossings| crossings.open.len()), Some(0));
        assert_eq!(with(1, |crossings| crossings.open.len()), Some(0));
    }
}
