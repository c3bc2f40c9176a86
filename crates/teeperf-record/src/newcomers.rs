//! Programs that the command left behind and that may be about to attach: started, but not come to
//! their first hook. They are known by their environment, in which they find the recorder; so are
//! programs that have no hooks. Of those that ran before the recorder nobody is asked.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};
use teeperf_wire::hello::SOCKET_VARIABLE;

/// Between two looks, each of which reads the environment of every process of the user.
const PAUSE: Duration = Duration::from_millis(5);

/// See the module.
#[derive(Debug)]
pub(crate) struct Newcomers {
    /// As it stands in an environment.
    variable: Vec<u8>,
    /// See [`begun`], when this was made.
    begun: Option<u64>,
    looked: Option<Instant>,
    are_there: bool,
}

impl Newcomers {
    /// Those that find the recorder by this name.
    pub(crate) fn of(socket: &str) -> Self {
        let variable = format!("{SOCKET_VARIABLE}={socket}").into_bytes();
        Self { variable, begun: begun(), looked: None, are_there: false }
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
        let before_us = self.numbers_before_us().unwrap_or(0);
        let began_later = |process: &DirEntry| {
            let number = process.file_name().to_str().and_then(|name| name.parse::<u64>().ok());
            number.is_some_and(|number| number > before_us)
        };
        let mut processes = fs::read_dir("/proc")?.flatten().filter(began_later);
        Ok(processes.any(|process| self.may_find_us(&process.path())))
    }

    /// All processes with numbers up to this one began before this process: numbers are given out in a row, as
    /// long as they cannot have begun anew.
    fn numbers_before_us(&self) -> Option<u64> {
        let (own, largest) = own_and_largest()?;
        let since = begun()?.checked_sub(self.begun?)?;
        are_in_a_row(own, since, largest).then_some(own)
    }

    /// Of processes that ended meanwhile, or are another user's, nothing can be read. One that is executing a
    /// program has no environment until its new stack is made: environ of proc_pid(5) is empty then, as it
    /// is for kernel threads, which execute nothing.
    fn may_find_us(&self, process: &Path) -> bool {
        fs::read(process.join("environ")).is_ok_and(|environment| {
            if environment.is_empty() {
                return fs::read_link(process.join("exe")).is_ok();
            }
            environment.split(|&byte| byte == 0).any(|entry| entry == self.variable)
        })
    }
}

/// Whether none of the numbers given out to so many processes behind this one began anew.
fn are_in_a_row(own: u64, since: u64, largest: u64) -> bool {
    own.saturating_add(since) < largest
}

/// So many processes have begun in all, as proc_stat(5) has it.
fn begun() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("processes "))?.parse().ok()
}

/// Number of this process as `/proc` has it, and the largest there is.
fn own_and_largest() -> Option<(u64, u64)> {
    let own = fs::read_link("/proc/self").ok()?.to_str()?.parse().ok()?;
    let largest = fs::read_to_string("/proc/sys/kernel/pid_max").ok()?.trim().parse().ok()?;
    Some((own, largest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    #[test]
    fn older_processes_are_known_by_their_numbers_until_these_begin_anew() {
        let own = u64::from(std::process::id());
        let before_us = Newcomers::of("nobody").numbers_before_us();
        assert!(before_us.is_none_or(|before| before == own));
        assert!(are_in_a_row(300, 32_000, 32_768));
        assert!(!are_in_a_row(300, 32_468, 32_768));
        assert!(!are_in_a_row(300, u64::MAX, 32_768));
    }

    /// What is said of a program with this environment while it runs, and once it has ended.
    fn while_and_after(newcomers: &Newcomers, environment: &[(&str, &str)]) -> (bool, bool) {
        let mut command = Command::new("cat");
        command.env_clear().envs(environment.iter().copied());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut to, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        to.write_all(b"?").unwrap();
        from.read_exact(&mut [0]).unwrap();
        let process = PathBuf::from(format!("/proc/{}", child.id()));
        let running = newcomers.may_find_us(&process);
        drop(to);
        // Ended, and not waited for: a zombie.
        from.read_to_end(&mut Vec::new()).unwrap();
        while fs::read_link(process.join("exe")).is_ok() {
            std::thread::yield_now();
        }
        let ended = newcomers.may_find_us(&process);
        child.wait().unwrap();
        (running, ended)
    }

    #[test]
    fn a_program_with_the_name_in_its_environment_finds_us_until_it_ends() {
        let newcomers = Newcomers::of("somebody");
        let said = |environment: &[_]| while_and_after(&newcomers, environment);
        assert_eq!(said(&[("A", "1"), (SOCKET_VARIABLE, "somebody")]), (true, false));
        assert_eq!(said(&[("A", "1"), (SOCKET_VARIABLE, "nobody")]), (false, false));
        assert_eq!(said(&[("A", SOCKET_VARIABLE)]), (false, false));
        assert!(!newcomers.may_find_us(Path::new("/proc/0")));
    }

    /// That is all that can be seen of one that executes a program at this moment.
    #[test]
    fn a_program_without_an_environment_may_find_us() {
        assert_eq!(while_and_after(&Newcomers::of("somebody"), &[]), (true, false));
    }

    #[test]
    fn all_processes_are_looked_at() {
        let mut child =
            Command::new("sleep").arg("100").env(SOCKET_VARIABLE, "us").spawn().unwrap();
        assert!(Newcomers::of("us").are_there());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
