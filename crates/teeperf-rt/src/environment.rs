//! The recorder's name in the process's environment, or in that of its ancestors.

use crate::{arch, platform};
use core::ffi::CStr;
use teeperf_wire::hello::{MAX_SOCKET_NAME, RECORDER_LINK, SOCKET_VARIABLE};

/// Gives the socket's name to `keep`; nothing where no environment has one, or it is of somebody with fewer rights than the
/// program. A program that was executed without an environment has that of its ancestors; where the variable
/// is empty, it has none.
pub(crate) fn find_name(keep: impl FnOnce(&[u8]) -> Option<()>) -> Option<()> {
    if platform::has_rights_of_its_own() {
        return None;
    }
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

/// Most ancestors that are asked.
const GENERATIONS: u32 = 8;

/// That of the nearest ancestor which is a recorder, or was started with the variable and may be looked at.
fn of_ancestors() -> Option<Search> {
    let mut process = platform::parent_id()?;
    // A number that does not fit is that of no recorder.
    let namespace = platform::Inode::of(c"/proc/self/ns/pid", true)
        .and_then(|inode| u32::try_from(inode.number).ok());
    for _ in 0..GENERATIONS {
        if process <= 1 {
            return None;
        }
        let link =
            namespace.and_then(|namespace| of_link(link_of(namespace, process, &mut [0; PATH])?));
        let search =
            link.or_else(|| of_the_kernel(path_of(PROC, process, b"/environ\0", &mut [0; PATH])?));
        if search.is_some() {
            return search;
        }
        process = parent_of(process)?;
    }
    None
}

/// Path of the link that a recorder makes which has this number in this namespace.
fn link_of(namespace: u32, process: u32, room: &mut [u8; PATH]) -> Option<&CStr> {
    let mut folder = [0; PATH];
    let before = path_of(RECORDER_LINK.as_bytes(), namespace, b"-\0", &mut folder)?;
    path_of(before.to_bytes(), process, b"\0", room)
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

/// Fourth number of proc_pid_stat(5), behind a name that may contain anything.
fn parent_of(process: u32) -> Option<u32> {
    let file = platform::open(path_of(PROC, process, b"/stat\0", &mut [0; PATH])?)?;
    let mut text = [0; 128];
    let count = file.read(&mut text);
    let behind = text.get(..count)?.rsplit(|&byte| byte == b')').next()?;
    let number = behind.split(|&byte| byte == b' ').nth(2)?;
    let digits = number.iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0u32, |sum, digit| {
        sum.wrapping_mul(10).wrapping_add(u32::from(digit.wrapping_sub(b'0')))
    }))
}

const PROC: &[u8] = b"/proc/";
/// Room for a path with a process's number in it.
pub(crate) const PATH: usize = 48;

/// A path with the number of a process in it; it ends in a 0 byte.
pub(crate) fn path_of<'a>(
    before: &[u8],
    process: u32,
    behind: &[u8],
    room: &'a mut [u8; PATH],
) -> Option<&'a CStr> {
    let (mut digits, mut rest) = ([b'0'; 10], process);
    for digit in digits.iter_mut().rev() {
        *digit = (rest % 10) as u8 + b'0';
        rest /= 10;
    }
    let significant = digits.into_iter().skip_while(|&digit| digit == b'0');
    let mut length = 0;
    for byte in before.iter().copied().chain(significant).chain(behind.iter().copied()) {
        *room.get_mut(length)? = byte;
        length += 1;
    }
    CStr::from_bytes_with_nul(room.get(..length)?).ok()
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
    fn paths_below_proc_have_the_number_of_a_process() {
        for (process, path) in [(7, c"/proc/7/stat"), (4_194_304, c"/proc/4194304/stat")] {
            assert_eq!(path_of(PROC, process, b"/stat\0", &mut [0; PATH]), Some(path));
        }
        assert_eq!(
            path_of(
                PROC,
                u32::MAX,
                b"/a name that is too long for the room that there is",
                &mut [0; PATH]
            ),
            None
        );
        let longest = c"/tmp/.teeperf-of-4294967295-4294967295";
        assert_eq!(link_of(u32::MAX, u32::MAX, &mut [0; PATH]), Some(longest));
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn a_process_has_a_parent() {
        assert_eq!(parent_of(std::process::id()), Some(std::os::unix::process::parent_id()));
        assert_eq!(platform::parent_id(), Some(std::os::unix::process::parent_id()));
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
