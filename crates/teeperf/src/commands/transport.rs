//! Where recordings are sent and come from: `tcp:HOST:PORT` or `unix:PATH`.

use anyhow::{Context, Result};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;
use teeperf_edit::greeting::Stream;
use teeperf_edit::send::Sender;

/// A place to connect to, or to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Host and port.
    Tcp(String),
    /// A socket's path.
    Unix(PathBuf),
}

/// Who takes nothing for so long is gone.
const PATIENCE: Duration = Duration::from_secs(10);

impl Place {
    /// As it is typed.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("tcp", place))
                if place.rsplit_once(':').is_some_and(|(host, port)| {
                    !host.is_empty() && port.parse::<u16>().is_ok()
                }) =>
            {
                Ok(Self::Tcp(place.into()))
            }
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            _ => Err("such as tcp:HOST:PORT or unix:PATH".into()),
        }
    }

    /// Connects to a collector that takes a recording.
    pub(crate) fn connect(&self) -> Result<Sender> {
        let failed =
            || format!("nobody listens at {self}; next: teeperf collect --listen {self} -o FOLDER");
        let sender = match self {
            Self::Tcp(place) => {
                let stream = TcpStream::connect(place).with_context(failed)?;
                stream.set_write_timeout(Some(PATIENCE)).context("a connection")?;
                Sender::begin(stream)
            }
            Self::Unix(path) => {
                let stream = UnixStream::connect(path).with_context(failed)?;
                stream.set_write_timeout(Some(PATIENCE)).context("a connection")?;
                Sender::begin(stream)
            }
        };
        sender.with_context(|| self.to_string())
    }

    /// Listens; and the place as it is then, with the port that was chosen where 0 was named.
    pub(crate) fn listen(&self) -> Result<(Listener, Self)> {
        let failed = || format!("cannot listen at {self}");
        match self {
            Self::Tcp(place) => {
                let listener = TcpListener::bind(place).with_context(failed)?;
                let place = listener.local_addr().with_context(failed)?.to_string();
                Ok((Listener::Tcp(listener), Self::Tcp(place)))
            }
            Self::Unix(path) => {
                let is_left_behind = UnixStream::connect(path)
                    .is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused);
                let is_socket = std::fs::symlink_metadata(path)
                    .is_ok_and(|about| about.file_type().is_socket());
                if is_left_behind && is_socket {
                    // Of one that was killed. What cannot be removed is said to be in use.
                    let _ = std::fs::remove_file(path);
                }
                let listener = UnixListener::bind(path).with_context(failed)?;
                Ok((Listener::Unix(listener), self.clone()))
            }
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(place) => write!(f, "tcp:{place}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Waits for connections.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// The next connection, and who it is.
    pub(crate) fn accept(&self) -> std::io::Result<(Box<dyn Stream>, String)> {
        let (stream, from): (Box<dyn Stream>, _) = match self {
            Self::Tcp(listener) => {
                let (stream, from) = listener.accept()?;
                notice_who_is_gone(&stream);
                stream.set_write_timeout(Some(PATIENCE))?;
                (Box::new(stream), from.to_string())
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_write_timeout(Some(PATIENCE))?;
                (Box::new(stream), "a program of this machine".into())
            }
        };
        Ok((stream, from))
    }
}

/// Has the system end a connection to a machine that is gone without a word, within two minutes. Programs may call nothing for
/// days, so what is not sent tells nothing.
fn notice_who_is_gone(stream: &TcpStream) {
    let options = [
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 60),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 10),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 6),
    ];
    for (level, option, value) in options {
        let value: libc::c_int = value;
        // SAFETY: the number is read, and as long as is said. What is refused was not needed.
        unsafe {
            let size = size_of_val(&value) as libc::socklen_t;
            libc::setsockopt(stream.as_raw_fd(), level, option, (&raw const value).cast(), size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        let tcp = |place: &str| Ok(Place::Tcp(place.into()));
        assert_eq!(Place::parse("tcp:board:7000"), tcp("board:7000"));
        assert_eq!(Place::parse("tcp:[::1]:0"), tcp("[::1]:0"));
        assert_eq!(Place::parse("unix:/run/x"), Ok(Place::Unix("/run/x".into())));
        for text in ["", "board:7000", "tcp:board", "tcp::1", "tcp:board:x", "unix:", "udp:a:1"] {
            assert!(Place::parse(text).is_err(), "{text}");
        }
    }
}
