//! Programs that the command left behind and that may be about to attach: started, but not come to
//! their first hook. They are known by their environment, in which they find the recorder; so are
//! programs that have no hooks. Of those that ran before the recorder nobody is asked.

use std::fs::{self, DirEntry};
use std::io;
use std::time::{Duration, Instant};
use teeperf_wire::hello::SOCKET_VARIABLE;

/// Between two looks, each of which reads the environment of every process of the user.
const PAUSE: Duration = Duration::from_millis(5);

/// See the module.
#[derive(Debug)]
pub(crate) struct Newcomers {
    /// As it stands in an environment.
    variable: Vec<u8>,
    looked: Option<Instant>,
    are_there: bool,
}

impl Newcomers {
    /// Those that find the recorder by this name.
    pub(crate) fn of(socket: &str) -> Self {
        let variable = format!("{SOCKET_VARIABLE}={socket}").into_bytes();
        Self { variable, looked: None, are_there: false }
    }

    /// Whether there was one when it was last looked.
    pub(crate) fn are_there(&mut self) -> bool {
        if self.looked.is_none_or(|looked| looked.elapsed() >= PAUSE) {
            self.are_there = self.look().unwrap_or(false);
            self.looked = Some(Instant::now());
        }
        self.are_there
    }

    fn look(&self) -> io::Result<bool> {
        let before_us = numbers_before_us()?;
        Ok(fs::read_dir("/proc")?.flatten().any(|entry| self.finds_us(&entry, before_us)))
    }

    /// Of processes that ended meanwhile, or are another user's, nothing can be read.
    fn finds_us(&self, process: &DirEntry, before_us: u32) -> bool {
        let number = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        number.is_some_and(|number| number > before_us)
            && fs::read(process.path().join("environ")).is_ok_and(|environment| {
                environment.split(|&byte| byte == 0).any(|entry| entry == self.variable)
            })
    }
}

/// All processes with numbers up to this one began before this process. Numbers are given out in a row, until
/// they begin anew; the last one given stands in proc_loadavg(5).
fn numbers_before_us() -> io::Result<u32> {
    let own = fs::read_link("/proc/self")?.to_str().and_then(|own| own.parse().ok());
    let load = fs::read_to_string("/proc/loadavg")?;
    let last = load.split_whitespace().next_back().and_then(|last| last.parse().ok());
    Ok(own.filter(|&own: &u32| last.is_some_and(|last: u32| last >= own)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    #[test]
    fn a_program_with_the_name_in_its_environment_is_seen_until_it_ends() {
        let name = format!("newcomers-{}", std::process::id());
        assert!(!Newcomers::of(&name).are_there());
        let mut command = Command::new("cat");
        assert!(numbers_before_us().unwrap() <= std::process::id());
        command.env(SOCKET_VARIABLE, &name).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (mut to, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        to.write_all(b"?").unwrap();
        from.read_exact(&mut [0]).unwrap();
        assert!(Newcomers::of(&name).are_there());
        assert!(!Newcomers::of(&name[1..]).are_there());
        drop(to);
        child.wait().unwrap();
        assert!(!Newcomers::of(&name).are_there());
    }
}
