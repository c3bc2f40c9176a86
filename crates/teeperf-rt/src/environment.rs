//! The recorder's name in the process's environment.

use crate::{arch, platform};
use teeperf_wire::hello::{MAX_SOCKET_NAME, SOCKET_VARIABLE};

/// Gives the socket's name to `keep`; nothing where the environment has none, or is of somebody with fewer rights than the program.
pub(crate) fn find_name(keep: impl FnOnce(&[u8]) -> Option<()>) -> Option<()> {
    if platform::has_rights_of_its_own() {
        return None;
    }
    let environ = arch::environ();
    // SAFETY: where there is a C library it is its variable, null or an array of strings that ends in null. It is
    // read in a constructor, before the program's own code can change it.
    match unsafe { environ.as_ref().copied() } {
        Some(entries) if !entries.is_null() => of_the_c_library(entries, keep),
        _ => of_the_kernel(keep),
    }
}

fn of_the_c_library(
    mut entry: *const *const u8,
    keep: impl FnOnce(&[u8]) -> Option<()>,
) -> Option<()> {
    // SAFETY: as above.
    unsafe {
        while let Some(&string) = entry.as_ref().filter(|string| !string.is_null()) {
            let string = core::ffi::CStr::from_ptr(string.cast()).to_bytes();
            let value = string
                .strip_prefix(SOCKET_VARIABLE.as_bytes())
                .and_then(|rest| rest.strip_prefix(b"="));
            if let Some(name) = value {
                return keep(name);
            }
            entry = entry.add(1);
        }
    }
    None
}

/// What the process was started with. The C library has not looked at it yet where a library's constructors run ahead of its
/// own: those of one that names no other that it needs, as linkers make them with `--as-needed` of code that calls nothing.
fn of_the_kernel(keep: impl FnOnce(&[u8]) -> Option<()>) -> Option<()> {
    let file = platform::open(c"/proc/self/environ")?;
    let mut search = Search::new();
    let mut piece = [0; 512];
    loop {
        let count = file.read(&mut piece);
        if count == 0 {
            return None;
        }
        for &byte in piece.iter().take(count) {
            if search.take(byte) {
                return keep(search.name());
            }
        }
    }
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
        let long = of(&"x".repeat(9000));
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
