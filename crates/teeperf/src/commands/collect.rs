//! `teeperf collect`: takes recordings that are sent.

mod desk;
mod guests;

use super::progress::{Progress, say};
use super::transport::{Access, Place};
use super::{amounts, interrupt};
use anyhow::{Context, Result};
use clap::Args;
use desk::Desk;
use guests::Limits;
use std::ffi::CString;
use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use teeperf_edit::secured::Secret;

/// Takes recordings that `teeperf record --to` sends, each into a file of its own
///
/// Several may send at once; each is told at its end what was kept. A connection that breaks leaves a valid recording, cut
/// off there. What is no recording, or says nothing for some seconds, is turned away. Ends with Ctrl-C, or behind so
/// many recordings (--count).
///
/// Who can connect can write into the folder. At tcp:127.0.0.1 that is any user of this machine, at unix:PATH those who may write to
/// the socket, and elsewhere any machine that reaches the port: so there a secret is needed, which senders have as well, and what
/// is sent is encrypted. --insecure does without both.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  teeperf collect -o taken                                 on this machine alone, tcp:127.0.0.1:7377
  teeperf collect --listen tcp:0.0.0.0:7377 --secret key -o taken     from other machines too; makes the file `key`,
                                                           which is to be copied to them
  teeperf record --to tcp:collector:7377 --secret key -- ./program    sends")]
pub(crate) struct Arguments {
    /// Where to listen: tcp:HOST:PORT or unix:PATH; port 0 is any that is free
    #[arg(long, value_name = "PLACE", value_parser = Place::parse, default_value = "tcp:127.0.0.1:7377")]
    listen: Place,
    /// The folder for recordings
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    #[command(flatten)]
    access: Access,
    /// Most bytes of all recordings together [default: half of what is free on the disk]
    #[arg(long, value_name = "SIZE", value_parser = amounts::bytes)]
    limit_total: Option<u64>,
    /// Most connections from one address of another machine
    #[arg(long, value_name = "N", default_value_t = 16)]
    per_address: usize,
    /// Who has sent nothing for so long gives way, where another wants the place
    #[arg(long, value_name = "TIME", value_parser = amounts::time, default_value = "10m")]
    idle: Duration,
    /// Most bytes of one recording
    #[arg(long, value_name = "SIZE", value_parser = amounts::bytes, default_value = "10G")]
    limit_size: u64,
    /// Most that send at once; others are turned away
    #[arg(long, value_name = "N", default_value_t = 64)]
    senders: usize,
    /// End behind so many recordings
    #[arg(long, value_name = "N")]
    count: Option<usize>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let secret = arguments.secret()?;
    std::fs::create_dir_all(&arguments.output)
        .with_context(|| format!("cannot write {}", arguments.output.display()))?;
    let desk = Arc::new(Desk {
        folder: arguments.output.clone(),
        limit: arguments.limit_size,
        limits: Limits {
            senders: arguments.senders,
            per_address: arguments.per_address,
            idle: arguments.idle,
        },
        count: arguments.count,
        secret,
        left: AtomicU64::new(
            arguments.limit_total.or_else(|| half_of_free(&arguments.output)).unwrap_or(u64::MAX),
        ),
        slots: Mutex::default(),
        bytes: AtomicU64::new(0),
    });
    let (listener, place) = interrupt::before_end(|| {
        let (listener, place) = arguments.listen.listen()?;
        let (at_end, ended) = (place.clone(), Arc::clone(&desk));
        let end = move || {
            leave(&at_end);
            let sending = ended.sending();
            if sending > 0 {
                say(format!(
                    "teeperf: {sending} of what was being sent is cut off there, and can be read"
                ));
            }
        };
        Ok(((listener, place), end))
    })?;
    say(format!(
        "teeperf: listening at {place}; send with: teeperf record --to {place}{} -- PROGRAM",
        arguments.access.shown()
    ));
    let (taken, all_taken) = channel();
    if arguments.count == Some(0) {
        leave(&place);
        return Ok(());
    }
    if io::stderr().is_terminal() {
        let (desk, progress) = (Arc::clone(&desk), Progress::of_what_comes("receiving"));
        let show = move || desk.show(progress);
        std::thread::Builder::new().spawn(show).context("a thread")?;
    }
    let accept = move || loop {
        desk.accept(&listener, &taken);
    };
    std::thread::Builder::new().spawn(accept).context("a thread")?;
    for _ in all_taken.iter().take(arguments.count.unwrap_or(usize::MAX)) {}
    leave(&place);
    Ok(())
}

impl Arguments {
    /// The secret, made where its file is not there yet.
    fn secret(&self) -> Result<Option<Secret>> {
        self.access.check(&self.listen)?;
        let Some(path) = self.access.secret.as_deref().filter(|path| !path.exists()) else {
            return self.access.read();
        };
        let made = Secret::make(path).with_context(|| path.display().to_string())?;
        say(format!(
            "teeperf: {} has a new secret; next: copy it to where recordings are sent from, for the sender's eyes alone",
            path.display()
        ));
        Ok(Some(made))
    }
}

/// A socket that nobody listens at any more.
fn leave(place: &Place) {
    if let Place::Unix(path) = place {
        let _ = std::fs::remove_file(path);
    }
}

/// Half of what is free where a folder is.
fn half_of_free(folder: &Path) -> Option<u64> {
    let path = CString::new(folder.as_os_str().as_bytes()).ok()?;
    // SAFETY: a struct of numbers, for which zeros are a value.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path is a string that ends with 0, and the struct has room for the answer.
    let answer = unsafe { libc::statvfs(path.as_ptr(), &mut found) };
    (answer == 0).then(|| found.f_bavail.saturating_mul(found.f_frsize) / 2)
}
