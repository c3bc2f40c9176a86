//! Starts the command as a shell would: found on the path, in the same process group, with
//! the terminal, the signals and the limits that the recorder was started with.

use crate::sample::Gate;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use teeperf_wire::hello::SOCKET_VARIABLE;
use teeperf_wire::sampling::SAMPLES_VARIABLE;

/// Why a command does not run.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// No words at all.
    #[error("no command was given")]
    Empty,
    /// No such file, or none of that name on the path.
    #[error("{0}: command not found")]
    NotFound(String),
    /// There, but it cannot be executed.
    #[error("{command}: {source}")]
    NotExecutable {
        /// As it was given.
        command: String,
        /// What the system says.
        source: io::Error,
    },
}

impl LaunchError {
    /// What a shell would end with.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Empty => 2,
            Self::NotFound(_) => 127,
            Self::NotExecutable { .. } => 126,
        }
    }
}

/// A command whose file was found.
#[derive(Debug)]
pub(crate) struct Found {
    path: PathBuf,
    words: Vec<OsString>,
}

/// Finds the command's file, before anything else is done.
pub(crate) fn find(words: &[OsString]) -> Result<Found, LaunchError> {
    let name = words.first().filter(|name| !name.is_empty()).ok_or(LaunchError::Empty)?;
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let path = find_in(name, &path)?;
    Ok(Found { path, words: words.to_vec() })
}

fn find_in(name: &OsStr, path: &OsStr) -> Result<PathBuf, LaunchError> {
    let command = || name.to_string_lossy().into_owned();
    let candidates: Vec<PathBuf> = if name.as_bytes().contains(&b'/') {
        vec![name.into()]
    } else {
        std::env::split_paths(path).map(|folder| folder.join(name)).collect()
    };
    let mut refused = None;
    for candidate in candidates {
        match executable(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(error) if is_absence(&error) => {}
            Err(source) => {
                refused = Some(LaunchError::NotExecutable { command: command(), source })
            }
        }
    }
    Err(refused.unwrap_or_else(|| LaunchError::NotFound(command())))
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn executable(path: &Path) -> io::Result<()> {
    if std::fs::metadata(path)?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path is a C string.
    crate::memory::checked(unsafe { libc::access(path.as_ptr(), libc::X_OK) }).map(drop)
}

/// What the command gets beside its words.
#[derive(Debug)]
pub(crate) struct Surroundings {
    /// Name of the recorder's socket, where hooks are to find it.
    pub(crate) socket: Option<String>,
    /// Of the socket of who samples within programs.
    pub(crate) samples: Option<String>,
    pub(crate) preload: Vec<PathBuf>,
    /// The recording goes to standard output, so the command's goes to standard error.
    pub(crate) output_taken: bool,
    /// The limit of open files before the recorder raised its own.
    pub(crate) files: Option<libc::rlimit>,
}

impl Found {
    /// Whether this is the command's own file, under whatever name.
    pub(crate) fn is(&self, path: &Path) -> bool {
        let same = |path: &Path| path.metadata().map(|file| (file.dev(), file.ino())).ok();
        same(path).is_some_and(|file| same(&self.path) == Some(file))
    }

    /// Starts it; at the gate it waits before it executes its program.
    pub(crate) fn start(
        &self,
        surroundings: &Surroundings,
        gate: Option<Gate>,
    ) -> Result<Child, LaunchError> {
        let failed = |source| LaunchError::NotExecutable {
            command: self.words[0].to_string_lossy().into_owned(),
            source,
        };
        let mut command = Command::new(&self.path);
        command.arg0(&self.words[0]).args(&self.words[1..]);
        for (variable, socket) in
            [(SOCKET_VARIABLE, &surroundings.socket), (SAMPLES_VARIABLE, &surroundings.samples)]
        {
            match socket {
                Some(socket) => command.env(variable, socket),
                // Another recorder's would have the program attach to that.
                None => command.env_remove(variable),
            };
        }
        if !surroundings.preload.is_empty() {
            let before = std::env::var_os(PRELOAD);
            command.env(PRELOAD, preloads(&surroundings.preload, before));
            command.env(SANITIZER, sanitizer(std::env::var_os(SANITIZER)));
        }
        if surroundings.output_taken {
            command.stdout(standard_error().map_err(failed)?);
        }
        let files = surroundings.files;
        let restore = move || {
            if let Some(files) = &files {
                // SAFETY: the address is that of a value the closure owns.
                unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, files) };
            }
            gate.iter().for_each(Gate::pass);
            Ok(())
        };
        // SAFETY: the closure makes system calls alone, which are allowed between fork and exec,
        // and touches nothing else.
        unsafe { command.pre_exec(restore) };
        command.spawn().map_err(failed)
    }
}

const PRELOAD: &str = "LD_PRELOAD";

const SANITIZER: &str = "ASAN_OPTIONS";

/// AddressSanitizer refuses to start behind a preloaded library, lest that library's functions
/// hide its own. Ours has none that could.
fn sanitizer(before: Option<OsString>) -> OsString {
    let mut all = before.filter(|before| !before.is_empty()).unwrap_or_default();
    if !all.is_empty() {
        all.push(":");
    }
    all.push("verify_asan_link_order=0");
    all
}

/// The libraries before those that are there already: ld.so(8).
fn preloads(libraries: &[PathBuf], before: Option<OsString>) -> OsString {
    let ours = libraries.iter().map(|library| library.as_os_str().to_owned());
    let all: Vec<OsString> = ours.chain(before.filter(|before| !before.is_empty())).collect();
    all.join(OsStr::new(":"))
}

fn standard_error() -> io::Result<Stdio> {
    let copy: OwnedFd = io::stderr().as_fd().try_clone_to_owned()?;
    Ok(copy.into())
}

/// Lets this process open as many files as it may, until it is dropped.
pub(crate) struct FileLimit {
    /// The limit before, which is the command's.
    pub(crate) before: libc::rlimit,
}

impl FileLimit {
    pub(crate) fn raise() -> Option<Self> {
        let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the address is that of an rlimit.
        crate::memory::checked(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut before) })
            .ok()?;
        let raised = libc::rlimit { rlim_cur: before.rlim_max, ..before };
        // SAFETY: as above. A refusal leaves the limit as it was.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raised) };
        Some(Self { before })
    }
}

impl Drop for FileLimit {
    fn drop(&mut self) {
        // SAFETY: the address is that of an rlimit.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &self.before) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_as_a_shell_finds_them() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("plain");
        std::fs::write(&plain, "").unwrap();
        let path: OsString = [folder.path().as_os_str(), OsStr::new("/bin")].join(OsStr::new(":"));
        assert!(find_in(OsStr::new("sh"), &path).unwrap().ends_with("bin/sh"));
        assert!(find_in(OsStr::new("/bin/sh"), OsStr::new("")).is_ok());
        let code = |name: &OsStr| find_in(name, &path).unwrap_err().exit_code();
        assert_eq!(code(OsStr::new("no such command")), 127);
        assert_eq!(code(OsStr::new("/no/such/command")), 127);
        assert_eq!(code(plain.as_os_str()), 126);
        assert_eq!(code(OsStr::new("plain")), 126);
        assert_eq!(code(folder.path().as_os_str()), 126);
        assert_eq!(find(&[]).unwrap_err().exit_code(), 2);
    }

    #[test]
    fn options_of_the_sanitizer_are_kept() {
        assert_eq!(sanitizer(None), "verify_asan_link_order=0");
        assert_eq!(sanitizer(Some("a=1".into())), "a=1:verify_asan_link_order=0");
    }

    #[test]
    fn preloads_keep_those_before() {
        let libraries = ["/a.so".into(), "/o.so".into()];
        assert_eq!(preloads(&libraries[..1], None), "/a.so");
        assert_eq!(preloads(&libraries[..1], Some("".into())), "/a.so");
        assert_eq!(preloads(&libraries, Some("/b.so /c.so".into())), "/a.so:/o.so:/b.so /c.so");
    }
}
