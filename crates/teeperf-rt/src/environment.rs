//! The recorder's name in the process's environment, or in that of its ancestors.

use crate::ancestors::{self, PATH, PROC, path_of};
use crate::{arch, platform};
use core::ffi::CStr;
use teeperf_wire::hello::{MAX_SOCKET_NAME, SOCKET_VARIABLE};

/// Gives the socket's name to `keep`; nothing where no environment has one. A program that was
/// executed without an environment has that of its ancestors; where the variable is empty, it has
/// none. The environment of a program with more rights than its starter is the starter's, and must
/// not be asked.
pub(crate) fn find_name(keep: impl FnOnce(&[u8]) -> Option<()>) -> Option<()> {
    let search = own().or_else(of_ancestors)?;
    keep(search.name())
}

/// Gives the name in the process's own environment to `take`; says whether there is one.
pub(crate) fn find_own_name(take: impl FnOnce(&[u8])) -> bool {
    own().map(|search| take(search.name())).is_some()
}

fn own() -> Option<Search> {
    let environ = arch::environ();
    // SAFETY: where there is a C library it is its variable, null or an array of strings that ends in null. It is
    // read in a constructor, before the program's own code can change it.
    match unsafe { environ.as_ref().copied() } {
        Some(entries) if !entries.is_null() => of_the_c_library(entries),
        _ => of_the_kernel(c"/proc/self/environ"),
    }
}

fn of_the_c_library(mut entry: *const *const u8) -> Option<Search> {
    // SAFETY: as above.
    unsafe {
        while let Some(&string) = entry.as_ref().filter(|string| !string.is_null()) {
            let string = core::ffi::CStr::from_ptr(string.cast()).to_bytes_with_nul();
            let mut search = Search::new();
            if string.iter().any(|&byte| search.take(byte)) {
                return Some(search);
            }
            entry = entry.add(1);
        }
    }
    None
}

/// What a process was started with: of its own, because the C library has not looked at it yet where a library's constructors
/// run ahead of its own: those of one that names no other that it needs, as linkers make them with `--as-needed` of code that
/// calls nothing.
fn of_the_kernel(path: &CStr) -> Option<Search> {
    let file = platform::open(path)?;
    let mut search = Search::new();
    file.find_byte(|byte| search.take(byte)).then_some(search)
}

/// That of the nearest ancestor which is a recorder, or was started with the variable and may be looked at.
fn of_ancestors() -> Option<Search> {
    ancestors::find(|ancestor| {
        let link = ancestor.link(&mut [0; PATH]).and_then(of_link);
        let environment = || {
            let mut room = [0; PATH];
            of_the_kernel(path_of(PROC, ancestor.process, b"/environ\0", &mut room)?)
        };
        link.or_else(environment)
    })
}

/// What the link of a recorder leads to. Anybody may make one: that of a user who is neither this process's nor root is none.
fn of_link(path: &CStr) -> Option<Search> {
    let user = platform::Inode::of(path, false)?.user;
    if user != 0 && user != platform::effective_user() {
        return None;
    }
    let mut name = [0; MAX_SOCKET_NAME + 1];
    let length = platform::read_link(path, &mut name);
    (1..=MAX_SOCKET_NAME).contains(&length).then_some(Search {
        length: SOCKET_VARIABLE.len() + 1 + length,
        is_it: true,
        name,
    })
}

/// One variable after the other, byte by byte, each with a 0 at its end.
struct Search {
    /// Bytes of this one so far.
    length: usize,
    is_it: bool,
    name: [u8; MAX_SOCKET_NAME + 1],
}

impl Search {
    fn new() -> Self {
        Self { length: 0, is_it: true, name: [0; MAX_SOCKET_NAME + 1] }
    }

    /// Takes the next byte; says whether it ended the variable that is looked for.
    fn take(&mut self, byte: u8) -> bool {
        let variable = SOCKET_VARIABLE.as_bytes();
        if byte == 0 {
            if self.is_it && self.length > variable.len() {
                return true;
            }
            (self.length, self.is_it) = (0, true);
            return false;
        }
        let expected = variable.iter().chain(b"=").nth(self.length);
        if let Some(&expected) = expected {
            self.is_it &= byte == expected;
        } else if let Some(to) = self.name.get_mut(self.length - variable.len() - 1) {
            *to = byte;
        }
        self.length += 1;
        false
    }

    /// What it holds: one byte more than a name can have where it is too long.
    fn name(&self) -> &[u8] {
        let length = self.length.saturating_sub(SOCKET_VARIABLE.len() + 1);
        self.name.get(..length).unwrap_or(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The name that is found in these bytes.
    fn found(environment: &[u8]) -> Option<Vec<u8>> {
        let mut search = Search::new();
        let ends = environment.iter().any(|&byte| search.take(byte));
        ends.then(|| search.name().to_vec())
    }

    #[test]
    fn the_name_is_found_among_other_variables() {
        let of = |value: &str| format!("{SOCKET_VARIABLE}={value}\0");
        let mine = of("@teeperf-1");
        let long = of(&"x".repeat(if cfg!(miri) { 2 * MAX_SOCKET_NAME } else { 9000 }));
        for before in
            ["", "A=b\0", "\0", "=\0", "T\0", &format!("X{mine}"), &long.replace('=', "2=")]
        {
            for behind in ["", "B=c\0", &of("other")] {
                let bytes = format!("{before}{mine}{behind}");
                assert_eq!(
                    found(bytes.as_bytes()).as_deref(),
                    Some(&b"@teeperf-1"[..]),
                    "{bytes:?}"
                );
            }
        }
        assert_eq!(found(long.as_bytes()).unwrap().len(), MAX_SOCKET_NAME + 1);
        assert_eq!(found(of("").as_bytes()).unwrap(), b"");
        for none in
            ["", "A=b\0", SOCKET_VARIABLE, &format!("{SOCKET_VARIABLE}\0"), &mine[..mine.len() - 1]]
        {
            assert_eq!(found(none.as_bytes()), None, "{none:?}");
        }
    }
}
