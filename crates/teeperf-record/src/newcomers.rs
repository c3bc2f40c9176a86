//! Programs that the command left behind and that may be about to attach: started, but not come to
//! their first hook. They are known by their environment, in which they find the recorder; so are
//! programs that have no hooks. Of those that ran before the recorder nobody is asked.

use std::collections::HashSet;
use std::fs::{self, DirEntry, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};
use teeperf_wire::hello::SOCKET_VARIABLE;

/// Between two looks, each of which reads the environment of every process of the user.
const PAUSE: Duration = Duration::from_millis(5);
/// So much of an environment is read, at once: what is read later may be of the next program, or of none.
/// Linux grants all arguments and variables together a quarter of the stack: execve(2).
const ENVIRONMENT: usize = 2 << 20;

/// See the module.
#[derive(Debug)]
pub(crate) struct Newcomers {
    /// As it stands in an environment.
    variable: Vec<u8>,
    /// See [`begun`], when this was made.
    begun: Option<u64>,
    /// The number that was given out last, when this was made.
    last: Option<u64>,
    looked: Option<Instant>,
    /// Numbers of those that had ended, and were in the list still, when it was last looked.
    ended: HashSet<u64>,
    are_there: bool,
}

/// What there is to say of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    MayFindUs,
    DoesNot,
    /// It is no more, or only waits for its parent.
    Ended,
}

impl Newcomers {
    /// Those that find the recorder by this name.
    pub(crate) fn of(socket: &str) -> Self {
        Self {
            variable: format!("{SOCKET_VARIABLE}={socket}").into_bytes(),
            begun: begun(),
            last: last_number(),
            looked: None,
            ended: HashSet::new(),
            are_there: false,
        }
    }

    /// Whether there was one when it was last looked.
    pub(crate) fn are_there(&mut self) -> bool {
        if self.looked.is_none_or(|looked| looked.elapsed() >= PAUSE) {
            self.looked = Some(Instant::now());
            self.are_there = self.look().unwrap_or(false);
        }
        self.are_there
    }

    fn look(&mut self) -> io::Result<bool> {
        let first = self.numbers_before_us().map_or(0, |last| last + 1);
        let mut ended = HashSet::new();
        let mut room = vec![0; ENVIRONMENT];
        for process in fs::read_dir("/proc")?.flatten() {
            let number = number_of(&process).filter(|&number| number >= first);
            let Some(number) = number else { continue };
            match self.look_at(&process.path(), &mut room) {
                Look::MayFindUs => return Ok(true),
                Look::DoesNot => {}
                Look::Ended => _ = ended.insert(number),
            }
        }
        // Who ended behind the making of the list may have left one that is not in it.
        let is_incomplete = !ended.is_subset(&self.ended);
        if is_incomplete {
            self.looked = None;
        }
        self.ended = ended;
        Ok(is_incomplete)
    }

    /// All processes with numbers up to this one began before this was made: numbers are given out in a row,
    /// as long as they cannot have begun anew.
    fn numbers_before_us(&self) -> Option<u64> {
        let since = begun()?.checked_sub(self.begun?)?;
        self.last.filter(|&last| largest().is_some_and(|most| are_in_a_row(last, since, most)))
    }

    /// Of another user's process nothing can be read. One that is executing a program has no environment until
    /// its new stack is made: environ of proc_pid(5) is empty then, as it is of those that have ended.
    fn look_at(&self, process: &Path, room: &mut [u8]) -> Look {
        match environment(process, room) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Look::DoesNot,
            Ok(environment) if !environment.is_empty() => {
                let mut entries = environment.split(|&byte| byte == 0);
                match entries.any(|entry| entry == self.variable) {
                    true => Look::MayFindUs,
                    false => Look::DoesNot,
                }
            }
            Ok(_) if fs::read_link(process.join("exe")).is_ok() => Look::MayFindUs,
            _ => Look::Ended,
        }
    }
}

fn environment<'a>(process: &Path, room: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let length = File::open(process.join("environ"))?.read(room)?;
    Ok(&room[..length])
}

fn number_of(process: &DirEntry) -> Option<u64> {
    process.file_name().to_str()?.parse().ok()
}

/// Whether none of the numbers given out to so many processes behind this one began anew.
fn are_in_a_row(last: u64, since: u64, largest: u64) -> bool {
    last.saturating_add(since) < largest
}

/// So many processes have begun in all, as proc_stat(5) has it.
fn begun() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("processes "))?.parse().ok()
}

/// The number given out last, of proc_loadavg(5). It is one of this process's namespace, which need not be
/// that of `/proc`.
fn last_number() -> Option<u64> {
    let own: u32 = fs::read_link("/proc/self").ok()?.to_str()?.parse().ok()?;
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    let last = load.split_whitespace().next_back()?.parse().ok()?;
    (own == std::process::id()).then_some(last)
}

/// The largest number there is.
fn largest() -> Option<u64> {
    fs::read_to_string("/proc/sys/kernel/pid_max").ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    #[test]
    fn older_processes_are_known_by_their_numbers_until_these_begin_anew() {
        assert!(are_in_a_row(300, 32_000, 32_768));
        assert!(!are_in_a_row(300, 32_468, 32_768));
        assert!(!are_in_a_row(300, u64::MAX, 32_768));
        let mut newcomers = Newcomers::of("nobody");
        assert!(newcomers.last.is_none_or(|last| last > 0));
        newcomers.last = largest();
        assert_eq!(newcomers.numbers_before_us(), None);
    }

    /// This process's own number may be from before the numbers began anew.
    #[test]
    fn those_who_begin_later_are_not_taken_for_older() {
        let newcomers = Newcomers::of("nobody");
        let mut child = Command::new("true").spawn().unwrap();
        let before_us = newcomers.numbers_before_us();
        assert!(before_us.is_none_or(|last| last < child.id().into()));
        child.wait().unwrap();
    }

    /// What is said of a program with this environment while it runs, and once it has ended.
    fn while_and_after(newcomers: &Newcomers, environment: &[(&str, &str)]) -> [Look; 2] {
        let mut command = Command::new("cat");
        command.env_clear().envs(environment.iter().copied());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut to, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        to.write_all(b"?").unwrap();
        from.read_exact(&mut [0]).unwrap();
        let process = PathBuf::from(format!("/proc/{}", child.id()));
        let mut room = vec![0; ENVIRONMENT];
        let running = newcomers.look_at(&process, &mut room);
        drop(to);
        // Ended, and not waited for: a zombie.
        from.read_to_end(&mut Vec::new()).unwrap();
        while fs::read_link(process.join("exe")).is_ok() {
            std::thread::yield_now();
        }
        let ended = newcomers.look_at(&process, &mut room);
        child.wait().unwrap();
        [running, ended]
    }

    #[test]
    fn a_program_with_the_name_in_its_environment_finds_us_until_it_ends() {
        let newcomers = Newcomers::of("somebody");
        let said = |environment: &[_]| while_and_after(&newcomers, environment);
        let (finds, does_not) = (Look::MayFindUs, Look::DoesNot);
        assert_eq!(said(&[("A", "1"), (SOCKET_VARIABLE, "somebody")]), [finds, Look::Ended]);
        assert_eq!(said(&[("A", "1"), (SOCKET_VARIABLE, "nobody")]), [does_not, Look::Ended]);
        assert_eq!(said(&[("A", SOCKET_VARIABLE)]), [does_not, Look::Ended]);
        let long = "1".repeat(100_000);
        assert_eq!(said(&[("A", &long), (SOCKET_VARIABLE, "somebody")]), [finds, Look::Ended]);
        assert_eq!(newcomers.look_at(Path::new("/proc/0"), &mut []), Look::Ended);
    }

    /// That is all that can be seen of one that executes a program at this moment.
    #[test]
    fn a_program_without_an_environment_may_find_us() {
        let said = while_and_after(&Newcomers::of("somebody"), &[]);
        assert_eq!(said, [Look::MayFindUs, Look::Ended]);
    }

    /// Guards: it is looked again, at once, where one in the list has ended meanwhile.
    #[test]
    fn who_has_ended_may_have_left_another() {
        let mut child = Command::new("true").spawn().unwrap();
        let exe = PathBuf::from(format!("/proc/{}/exe", child.id()));
        while fs::read_link(&exe).is_ok() {
            std::thread::yield_now();
        }
        let mut newcomers = Newcomers { begun: None, ..Newcomers::of("nobody") };
        let since = Instant::now();
        // Nobody knows when the zombie ended. Others of this machine may be seen first.
        while !(newcomers.look().unwrap() && newcomers.ended.contains(&child.id().into())) {
            assert!(since.elapsed() < Duration::from_secs(20), "it is not looked again");
        }
        assert!(newcomers.looked.is_none());
        while newcomers.are_there() {
            assert!(since.elapsed() < Duration::from_secs(20), "the same one again");
        }
        child.wait().unwrap();
    }

    #[test]
    fn those_who_begin_later_are_looked_at() {
        let mut newcomers = Newcomers::of("us");
        let mut command = Command::new("sleep");
        let mut child = command.arg("100").env(SOCKET_VARIABLE, "us").spawn().unwrap();
        assert!(newcomers.look().unwrap());
        assert!(newcomers.ended.is_empty(), "it is not for those that it looks again");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
