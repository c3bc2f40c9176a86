//! Names of threads, asked of the system: a runtime need not tell them. Threads that live for
//! a moment only keep none.

use std::collections::HashMap;

/// Names by serial.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: HashMap<u32, Known>,
}

#[derive(Debug, Default)]
struct Known {
    name: Vec<u8>,
    looks: u32,
}

/// A thread is often named some time after it began, so it is looked at so many times.
const LOOKS: u32 = 3;
/// Most threads whose names are looked for.
const MAX_THREADS: usize = 4096;

impl Names {
    /// The thread's name when it is news. `ask` reads it, and is not called more often than
    /// needed.
    pub(super) fn news(
        &mut self,
        serial: u32,
        ask: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        if self.known.len() >= MAX_THREADS && !self.known.contains_key(&serial) {
            return None;
        }
        let known = self.known.entry(serial).or_default();
        if known.looks >= LOOKS {
            return None;
        }
        known.looks += 1;
        let name = ask().filter(|name| *name != known.name)?;
        known.name.clone_from(&name);
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_told_once_and_asked_for_three_times() {
        let mut names = Names::default();
        let say = |name: &str| Some(name.as_bytes().to_vec());
        assert_eq!(names.news(1, || None), None);
        assert_eq!(names.news(1, || say("a")), say("a"));
        assert_eq!(names.news(2, || say("a")), say("a"));
        assert_eq!(names.news(1, || say("a")), None);
        assert_eq!(names.news(1, || panic!("once too often")), None);
        assert_eq!(names.news(2, || say("b")), say("b"));
    }

    #[test]
    fn the_memory_is_bounded() {
        let mut names = Names::default();
        for serial in 0..MAX_THREADS as u32 * 2 {
            names.news(serial, || None);
        }
        assert_eq!(names.known.len(), MAX_THREADS);
    }
}
